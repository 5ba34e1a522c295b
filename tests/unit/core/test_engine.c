/* One engine by itself: events in, actions and views out. What several engines do together is in
 * tests/scenario and tests/sim. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/core/engine.h"
#include "agent/core/engine_view.h"
#include "tests/lib/catalog_builder.h"

#define MS UINT64_C(1000000)
#define SECOND (1000 * MS)
#define BOOT (5000 * SECOND) /* boot time is ahead of monotonic time here */

struct fixture {
    struct catalog_state *state;
    struct engine *engine;
    struct engine_actions actions;
    uint64_t now_ns;
};

static void new_engine(struct fixture *f, uint64_t node_id, uint64_t epoch, uint64_t table_revision)
{
    struct engine_config config = {
        .node_id = node_id, .epoch = epoch, .seed = 1, .table_revision = table_revision};

    engine_free(f->engine);
    f->engine = engine_new(&config, f->now_ns);
    assert_non_null(f->engine);
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    assert_non_null(f);
    f->now_ns = 1000 * SECOND;
    f->state = build_state(3);
    engine_actions_init(&f->actions);
    new_engine(f, 1, 1, 0);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    engine_free(f->engine);
    engine_actions_close(&f->actions);
    catalog_state_free(f->state);
    free(f);
    return 0;
}

static void step(struct fixture *f, struct engine_event *event)
{
    event->now_ns = f->now_ns;
    event->boot_ns = f->now_ns + BOOT;
    assert_int_equal(engine_step(f->engine, event, &f->actions), 0);
}

static void tick(struct fixture *f, uint64_t after_ns)
{
    f->now_ns += after_ns;
    step(f, &(struct engine_event){.kind = ENGINE_TICK});
}

static void publish(struct fixture *f)
{
    struct catalog *catalog = catalog_state_catalog(f->state);

    step(f, &(struct engine_event){.kind = ENGINE_CATALOG, .u.catalog = catalog});
    catalog_unref(catalog);
}

/* A group "web" of the given backends; nlb with drain on, rule as given. */
static void put(struct fixture *f, const char *endpoints, enum rule_kind rule)
{
    struct command command = {0};
    struct server_group group;

    build_group(&group, "web", endpoints);
    group.rule.down = (struct rule_column){.kind = (uint8_t)rule};
    group.rule.up = group.rule.down;
    group.rule.below_quorum = BELOW_QUORUM_HOLD;
    group.drain = (struct drain_policy){.is_on = true, .timeout_ms = 300000};
    build_put_group(&command, &group);
    build_commit(f->state, &command);
    server_group_close(&group);
    publish(f);
}

static struct backend_view view_of(struct fixture *f, const char *at)
{
    struct endpoint endpoint = build_endpoint(at);
    struct backend_view view;

    assert_int_equal(
        engine_view_backend(f->engine, "web", &endpoint, f->now_ns, f->now_ns + BOOT, &view), 0);
    return view;
}

static struct target_id target_of(struct fixture *f, const char *at)
{
    return view_of(f, at).target;
}

static void result(struct fixture *f, struct target_id id, enum probe_reason reason)
{
    struct probe_result result = {.id = id,
                                  .probe_class = (uint8_t)probe_reason_class(reason),
                                  .reason = (uint8_t)reason,
                                  .start_ns = f->now_ns - 10 * MS,
                                  .end_ns = f->now_ns};

    step(f, &(struct engine_event){.kind = ENGINE_PROBE_RESULT, .u.result = &result});
}

/* A peer's change message for one target. */
static void peer_says(struct fixture *f, uint64_t peer, struct target_id id, enum opinion opinion,
                      uint64_t sequence)
{
    struct vote_change change = {.epoch = 1,
                                 .sequence = sequence,
                                 .target = id,
                                 .opinion = (uint8_t)opinion,
                                 .reason =
                                     opinion == OPINION_FAIL ? REASON_CONNECT_FAILED : REASON_OK};

    step(f, &(struct engine_event){.kind = ENGINE_VOTE_CHANGE, .peer = peer, .u.change = &change});
}

static const struct row_word *word_of(const struct fixture *f, uint32_t row)
{
    for (uint32_t i = 0; i < f->actions.n_rows; i++) {
        if (f->actions.rows[i].row == row) {
            return &f->actions.rows[i];
        }
    }
    return NULL;
}

static const char b1[] = "10.0.0.1:80";
static const char b2[] = "10.0.0.2:80";

/* --- */

static void first_catalog_gives_probes_rows_and_a_layout(void **state)
{
    struct fixture *f = *state;

    put(f, "10.0.0.1:80 10.0.0.2:80", RULE_MAJORITY);
    assert_int_equal(f->actions.n_probes, 2);
    assert_non_null(f->actions.probes[0].target);
    assert_true(f->actions.probes[0].is_at_start);
    assert_int_equal(f->actions.n_rows, 3);
    assert_true(f->actions.layout_due);
    assert_ptr_equal(f->actions.catalog, engine_catalog(f->engine));
    struct backend_view view = view_of(f, b1);
    assert_int_equal(view.health_state, HEALTH_INITIAL);
    assert_int_equal(word_of(f, view.row.row)->row_class, ROW_WARMING);
    assert_int_equal(view.n_votes, 3);
    assert_true(view.votes[0].is_self);

    put(f, "10.0.0.1:80 10.0.0.2:80 10.0.0.3:80", RULE_MAJORITY);
    assert_int_equal(f->actions.n_probes, 1);
    assert_false(f->actions.probes[0].is_at_start);
}

static void older_equal_and_foreign_catalogs_are_ignored(void **state)
{
    struct fixture *f = *state;

    put(f, b1, RULE_LOCAL);
    publish(f);
    assert_int_equal(engine_view_counters(f->engine)->catalogs_old, 1);
    assert_false(f->actions.layout_due);

    struct catalog_state *other = catalog_state_new();
    struct command command = {0};
    build_init(&command, 3)->u.init->cluster_id.bytes[0] ^= 1;
    build_commit(other, &command);
    for (int i = 0; i < 3; i++) { /* newer, but another cluster's */
        command = (struct command){0};
        build_put(&command, i == 0 ? "one" : i == 1 ? "two" : "three", b2);
        build_commit(other, &command);
    }
    struct catalog *catalog = catalog_state_catalog(other);
    step(f, &(struct engine_event){.kind = ENGINE_CATALOG, .u.catalog = catalog});
    assert_int_equal(engine_view_counters(f->engine)->catalogs_other_cluster, 1);
    assert_int_equal(view_of(f, b1).revision, 2);
    catalog_unref(catalog);
    catalog_state_free(other);
}

static void local_rule_follows_the_own_opinion_at_once(void **state)
{
    struct fixture *f = *state;

    put(f, b1, RULE_LOCAL);
    struct target_id id = target_of(f, b1);
    result(f, id, REASON_OK);
    assert_int_equal(view_of(f, b1).health_state, HEALTH_INITIAL);
    result(f, id, REASON_OK);
    struct backend_view view = view_of(f, b1);
    assert_int_equal(view.health_state, HEALTH_HEALTHY);
    assert_int_equal(word_of(f, view.row.row)->row_class, ROW_HEALTHY);
    assert_int_equal(f->actions.n_changes, 1);
    assert_int_equal(f->actions.changes[0].opinion, OPINION_PASS);

    result(f, id, REASON_CONNECT_TIMEOUT);
    result(f, id, REASON_LOCAL_NO_PORT); /* inconclusive: moves nothing */
    assert_int_equal(view_of(f, b1).health_state, HEALTH_HEALTHY);
    assert_int_equal(view_of(f, b1).last.reason, REASON_LOCAL_NO_PORT);
    result(f, id, REASON_CONNECT_TIMEOUT);
    view = view_of(f, b1);
    assert_int_equal(view.health_state, HEALTH_UNHEALTHY);
    assert_int_equal(view.reason, REASON_CONNECT_TIMEOUT);
    const struct event *event =
        engine_event_at(f->engine, f->actions.first_event + f->actions.n_events - 2);
    assert_int_equal(event->kind, EVENT_VERDICT_CHANGED);
    assert_int_equal(event->to, HEALTH_UNHEALTHY);
    assert_int_equal(event->n_votes, 1);
}

static void result_of_a_definition_changed_in_flight_is_dropped(void **state)
{
    struct fixture *f = *state;

    put(f, b1, RULE_LOCAL);
    struct target_id old = target_of(f, b1);
    struct command command = {0};
    struct server_group group;
    build_group(&group, "web", b1);
    group.rule.down = group.rule.up = (struct rule_column){.kind = RULE_LOCAL};
    group.check.interval_ms += 1000;
    build_put_group(&command, &group);
    build_commit(f->state, &command);
    server_group_close(&group);
    publish(f);

    assert_true(f->actions.n_probes == 2 && f->actions.probes[0].target == NULL);
    result(f, old, REASON_OK);
    result(f, old, REASON_OK);
    assert_int_equal(view_of(f, b1).health_state, HEALTH_INITIAL);
    assert_int_equal(engine_view_counters(f->engine)->results_dropped, 2);
}

static void majority_needs_two_of_three_and_names_them(void **state)
{
    struct fixture *f = *state;

    put(f, b1, RULE_MAJORITY);
    struct target_id id = target_of(f, b1);
    result(f, id, REASON_OK);
    result(f, id, REASON_OK);
    assert_int_equal(view_of(f, b1).health_state, HEALTH_HEALTHY); /* alone: the own vote is pass */
    assert_int_equal(view_of(f, b1).held_causes, HELD_FEW_VOTES);
    peer_says(f, 2, id, OPINION_FAIL, 1);
    assert_int_equal(view_of(f, b1).health_state, HEALTH_HEALTHY);
    assert_int_equal(view_of(f, b1).held_causes, 0);
    peer_says(f, 3, id, OPINION_FAIL, 1);

    struct backend_view view = view_of(f, b1);
    assert_int_equal(view.health_state, HEALTH_UNHEALTHY);
    assert_int_equal(view.n_fail, 2);
    assert_int_equal(view.n_pass, 1);
    assert_int_equal(view.reason, REASON_CONNECT_FAILED);
    assert_string_equal(view.sentence, "unhealthy: 2 of 3 counted votes fail (rule majority), "
                                       "mostly CONNECT_FAILED");
    assert_string_equal(view.up.sentence, "goes healthy with 1 more vote to pass (now 2 fail, 1 "
                                          "pass of 3, rule majority)");
    peer_says(f, 3, id, OPINION_PASS, 2);
    assert_int_equal(view_of(f, b1).health_state, HEALTH_HEALTHY);
}

/* Only those who decided were kept. */
static void an_event_of_a_verdict_names_the_nodes_for_it_and_against_it(void **state)
{
    struct fixture *f = *state;
    const struct event *event = NULL;

    put(f, b1, RULE_MAJORITY);
    struct target_id id = target_of(f, b1);
    result(f, id, REASON_OK);
    result(f, id, REASON_OK);
    peer_says(f, 2, id, OPINION_FAIL, 1);
    peer_says(f, 3, id, OPINION_FAIL, 1);
    for (uint64_t at = engine_event_first(f->engine); at < engine_event_next(f->engine); at++) {
        if (engine_event_at(f->engine, at)->to == HEALTH_UNHEALTHY &&
            engine_event_at(f->engine, at)->kind == EVENT_VERDICT_CHANGED) {
            event = engine_event_at(f->engine, at);
        }
    }
    assert_non_null(event);
    assert_int_equal(event->n_votes, 3);
    assert_true(event->votes[0].node_id == 2 && event->votes[0].opinion == OPINION_FAIL);
    assert_true(event->votes[1].node_id == 3 && event->votes[1].opinion == OPINION_FAIL);
    assert_true(event->votes[2].node_id == 1 && event->votes[2].opinion == OPINION_PASS);
    assert_int_equal(event->reason, REASON_CONNECT_FAILED);
}

/* The age beside a peer's streak was that of its answer to `why`, not of its probe. */
static void a_peers_detail_is_as_old_as_its_probe(void **state)
{
    struct fixture *f = *state;

    put(f, b1, RULE_MAJORITY);
    struct vote_change change = {.epoch = 1,
                                 .sequence = 1,
                                 .target = target_of(f, b1),
                                 .opinion = OPINION_PASS,
                                 .reason = REASON_OK,
                                 .probe_age_ms = 4000};
    step(f, &(struct engine_event){.kind = ENGINE_VOTE_CHANGE, .peer = 2, .u.change = &change});
    peer_says(f, 3, change.target, OPINION_PASS, 1); /* one that does not tell */
    tick(f, SECOND);
    struct backend_view view = view_of(f, b1);
    assert_int_equal(view.votes[1].detail_age_ns, SECOND);
    assert_int_equal(view.votes[1].probe_age_ns, 5 * SECOND);
    assert_true(view.votes[2].probe_age_ns == AGE_NEVER);
}

static void own_failing_opinion_beside_a_healthy_verdict_is_the_second_class(void **state)
{
    struct fixture *f = *state;

    put(f, "10.0.0.1:80 10.0.0.2:80", RULE_MAJORITY);
    struct target_id id = target_of(f, b1);
    peer_says(f, 2, id, OPINION_PASS, 1);
    peer_says(f, 3, id, OPINION_PASS, 1);
    result(f, id, REASON_CONNECT_FAILED);
    result(f, id, REASON_CONNECT_FAILED);
    struct backend_view view = view_of(f, b1);
    assert_int_equal(view.health_state, HEALTH_HEALTHY);
    assert_true(view.is_unreachable);
    assert_int_equal(view.row_class, ROW_WARMING); /* b2 is initial: the scope warms up */
    id = target_of(f, b2);
    peer_says(f, 2, id, OPINION_PASS, 2);
    peer_says(f, 3, id, OPINION_PASS, 2);
    assert_int_equal(view_of(f, b1).row_class, ROW_UNREACHABLE);
    assert_int_equal(view_of(f, b2).row_class, ROW_HEALTHY);
}

static void vector_goes_out_each_interval_whatever_it_holds(void **state)
{
    struct fixture *f = *state;
    unsigned n_vectors = 0;
    uint64_t last_sequence = 0;

    put(f, b1, RULE_MAJORITY);
    uint64_t end_ns = f->now_ns + 60 * SECOND;
    while (f->actions.wake_ns <= end_ns) {
        f->now_ns = f->actions.wake_ns;
        tick(f, 0);
        if (f->actions.n_chunks > 0) {
            n_vectors++;
            assert_true(f->actions.has_hello && f->actions.hello.is_observer);
            assert_true(f->actions.chunks[0].sequence > last_sequence);
            last_sequence = f->actions.chunks[0].sequence;
        }
    }
    assert_int_equal(n_vectors, 60);

    f->now_ns += 10 * SECOND; /* a loop that stood still sends one, not ten */
    tick(f, 0);
    assert_int_equal(f->actions.n_chunks, 1);
    assert_in_range(f->actions.wake_ns, f->now_ns + 1, f->now_ns + SECOND);
}

static void no_votes_without_an_epoch_or_as_a_node_unknown_to_the_catalog(void **state)
{
    struct fixture *f = *state;

    new_engine(f, 1, 0, 0);
    put(f, b1, RULE_LOCAL);
    tick(f, 2 * SECOND);
    assert_int_equal(f->actions.n_chunks, 0);
    struct target_id id = target_of(f, b1);
    result(f, id, REASON_OK);
    result(f, id, REASON_OK);
    assert_int_equal(f->actions.n_changes, 0);
    assert_int_equal(view_of(f, b1).health_state, HEALTH_HEALTHY); /* it still judges */

    new_engine(f, 9, 1, 0);
    publish(f);
    tick(f, 2 * SECOND);
    assert_int_equal(f->actions.n_chunks, 0);
    assert_false(f->actions.hello.is_observer);
}

/* A sender's opinion lasts for 3 x (T + I) after its last conclusive probe. */
static void opinion_turns_none_without_conclusive_probes(void **state)
{
    struct fixture *f = *state;

    put(f, b1, RULE_LOCAL);
    struct target_id id = target_of(f, b1);
    result(f, id, REASON_OK);
    result(f, id, REASON_OK);
    uint64_t end_ns = f->now_ns + 3 * 10 * SECOND; /* nlb: T = I = 5 s */
    while (f->actions.wake_ns <= end_ns) {
        f->now_ns = f->actions.wake_ns;
        tick(f, 0);
        assert_int_equal(view_of(f, b1).votes[0].opinion, OPINION_PASS);
    }
    f->now_ns = end_ns + 1;
    tick(f, 0);
    struct backend_view view = view_of(f, b1);
    assert_int_equal(view.votes[0].opinion, OPINION_NONE);
    assert_int_equal(view.health_state, HEALTH_HEALTHY); /* silence changes no verdict */
    assert_int_equal(view.held_causes, HELD_NO_OWN_VOTE);
    assert_int_equal(f->actions.n_changes, 1);
    assert_int_equal(f->actions.changes[0].opinion, OPINION_NONE);
}

static void suspect_own_vote_does_not_count_and_steers_nothing(void **state)
{
    struct fixture *f = *state;

    put(f, b1, RULE_LOCAL);
    struct target_id id = target_of(f, b1);
    result(f, id, REASON_OK);
    result(f, id, REASON_OK);
    step(f, &(struct engine_event){.kind = ENGINE_LOOP_LATE, .u.late_ns = 2 * SECOND});
    assert_int_equal(f->actions.n_probes, 0); /* no probe is changed by it */
    assert_int_equal(f->actions.n_chunks, 1); /* the peers are told at once */
    assert_int_equal(f->actions.chunks[0].suspect_mask, 1 << CHECK_TYPE_TCP);
    assert_int_equal(f->actions.chunks[0].doubt_causes, 1 << DOUBT_LOOP_LATE);
    result(f, id, REASON_CONNECT_FAILED);
    result(f, id, REASON_CONNECT_FAILED);
    struct backend_view view = view_of(f, b1);
    assert_int_equal(view.health_state, HEALTH_HEALTHY);
    assert_false(view.is_unreachable);
    assert_int_equal(view.marks, MARK_HELD | MARK_SUSPECT);
    assert_int_equal(view.votes[0].standing, STANDING_SUSPECT);
    assert_int_equal(f->actions.changes[0].suspect_mask, 1 << CHECK_TYPE_TCP);
}

static struct doubt_view doubt_of(const struct fixture *f)
{
    struct doubt_view view;

    engine_view_doubt(f->engine, f->now_ns, &view);
    return view;
}

static void what_failed_in_doubt_must_fail_again_to_count(void **state)
{
    struct fixture *f = *state;

    put(f, b1, RULE_LOCAL);
    struct target_id id = target_of(f, b1);
    result(f, id, REASON_OK);
    result(f, id, REASON_OK);
    step(f, &(struct engine_event){.kind = ENGINE_LOOP_LATE, .u.late_ns = 2 * SECOND});
    result(f, id, REASON_CONNECT_FAILED);
    result(f, id, REASON_CONNECT_FAILED);
    assert_int_equal(view_of(f, b1).votes[0].opinion, OPINION_FAIL);
    while (doubt_of(f).suspect_mask != 0) {
        tick(f, SECOND);
    }
    assert_int_equal(view_of(f, b1).votes[0].opinion, OPINION_NONE);
    assert_int_equal(view_of(f, b1).health_state, HEALTH_HEALTHY);
    assert_int_equal(engine_view_counters(f->engine)->doubts_begun, 1);
    assert_int_equal(engine_view_counters(f->engine)->doubts_ended, 1);
    assert_int_equal(engine_view_counters(f->engine)->doubt_failures_dropped, 1);
    result(f, id, REASON_CONNECT_FAILED);
    assert_int_equal(view_of(f, b1).health_state, HEALTH_HEALTHY);
    result(f, id, REASON_CONNECT_FAILED);
    assert_int_equal(view_of(f, b1).health_state, HEALTH_UNHEALTHY);
}

static void what_failed_in_doubt_is_dropped_though_a_pass_came_since(void **state)
{
    struct fixture *f = *state;

    put(f, b1, RULE_LOCAL);
    struct target_id id = target_of(f, b1);
    result(f, id, REASON_OK);
    result(f, id, REASON_OK);
    step(f, &(struct engine_event){.kind = ENGINE_LOOP_LATE, .u.late_ns = 2 * SECOND});
    result(f, id, REASON_CONNECT_FAILED);
    result(f, id, REASON_CONNECT_FAILED);
    result(f, id, REASON_OK); /* one of two: the opinion is still fail */
    for (unsigned i = 0; i < 20; i++) {
        tick(f, SECOND);
    }
    assert_int_equal(doubt_of(f).suspect_mask, 0);
    assert_int_equal(view_of(f, b1).votes[0].opinion, OPINION_NONE);
    assert_int_equal(view_of(f, b1).health_state, HEALTH_HEALTHY);
}

static void what_failed_before_the_doubt_stands_after_it(void **state)
{
    struct fixture *f = *state;

    put(f, b1, RULE_LOCAL);
    struct target_id id = target_of(f, b1);
    result(f, id, REASON_CONNECT_FAILED);
    result(f, id, REASON_CONNECT_FAILED);
    assert_int_equal(view_of(f, b1).health_state, HEALTH_UNHEALTHY);
    tick(f, SECOND);
    step(f, &(struct engine_event){.kind = ENGINE_LOOP_LATE, .u.late_ns = 2 * SECOND});
    assert_int_not_equal(doubt_of(f).suspect_mask, 0);
    for (unsigned i = 0; i < 20 && doubt_of(f).suspect_mask != 0; i++) {
        tick(f, SECOND);
        result(f, id, REASON_CONNECT_FAILED);
    }
    assert_int_equal(doubt_of(f).suspect_mask, 0);
    assert_int_equal(view_of(f, b1).votes[0].opinion, OPINION_FAIL);
    assert_int_equal(view_of(f, b1).held_causes, 0);
}

static void questions_are_answered_with_what_is_known_now(void **state)
{
    struct fixture *f = *state;

    put(f, b1, RULE_MAJORITY);
    struct target_id id = target_of(f, b1);
    result(f, id, REASON_CONNECT_TIMEOUT);
    step(f, &(struct engine_event){.kind = ENGINE_ASK, .u.target = id});
    assert_true(f->actions.has_question);
    assert_true(f->actions.question.targets[0].birth == id.birth);

    struct vote_question question = {
        .epoch = 1, .sequence = 1, .n_targets = 2, .targets = {id, {.slot = 99, .birth = 1}}};
    step(f,
         &(struct engine_event){.kind = ENGINE_VOTE_QUESTION, .peer = 2, .u.question = &question});
    assert_int_equal(f->actions.n_replies, 1);
    assert_true(f->actions.replies[0].to == 2);
    assert_int_equal(f->actions.replies[0].change.reason, REASON_CONNECT_TIMEOUT);
    assert_int_equal(f->actions.replies[0].change.opinion, OPINION_NONE);
    step(f,
         &(struct engine_event){.kind = ENGINE_VOTE_QUESTION, .peer = 77, .u.question = &question});
    assert_int_equal(f->actions.n_replies, 0);
    assert_int_equal(engine_view_counters(f->engine)->votes_unknown_node, 1);
}

/* nlb with drain on: close-at from the verdict on (S89), taken back by a recovery. */
static void unhealthy_deadline_begins_with_the_verdict_and_ends_with_recovery(void **state)
{
    struct fixture *f = *state;

    put(f, "10.0.0.1:80 10.0.0.2:80", RULE_LOCAL);
    struct target_id id1 = target_of(f, b1);
    struct target_id id2 = target_of(f, b2);
    for (int i = 0; i < 2; i++) {
        result(f, id1, REASON_OK);
        result(f, id2, REASON_OK);
    }
    result(f, id1, REASON_CONNECT_FAILED);
    f->now_ns += SECOND;
    result(f, id1, REASON_CONNECT_FAILED);
    uint32_t row = view_of(f, b1).row.row;
    const struct row_word *word = word_of(f, row);
    assert_int_equal(word->row_class, ROW_NONE);
    assert_int_equal(word->flow_policy, FLOW_CLOSE_AT);
    assert_int_equal(word->deadline_cause, DEADLINE_VERDICT);
    assert_true(word->deadline_boot_ns == f->now_ns + BOOT + 300 * SECOND);

    result(f, id2, REASON_CONNECT_FAILED);
    result(f, id2, REASON_CONNECT_FAILED); /* all bad: fail-open suspends the policy */
    word = word_of(f, row);
    assert_int_equal(word->row_class, ROW_FAIL_OPEN);
    assert_int_equal(word->flow_policy, FLOW_KEEP);
    assert_true(word->deadline_boot_ns == 0);
    f->now_ns += 100 * SECOND;
    result(f, id2, REASON_OK);
    result(f, id2, REASON_OK); /* b1 is still unhealthy: its deadline starts anew */
    word = word_of(f, row);
    assert_true(word->deadline_boot_ns == f->now_ns + BOOT + 300 * SECOND);
    result(f, id1, REASON_OK);
    result(f, id1, REASON_OK);
    word = word_of(f, row);
    assert_int_equal(word->row_class, ROW_HEALTHY);
    assert_int_equal(word->flow_policy, FLOW_KEEP);
}

static void drain_deadline_is_set_once_and_survives_a_restart(void **state)
{
    struct fixture *f = *state;

    put(f, "10.0.0.1:80 10.0.0.2:80", RULE_LOCAL);
    struct command command = {0};
    build_admin(&command, "web", b1, ADMIN_DRAINING);
    uint64_t drain_revision = build_commit(f->state, &command);
    publish(f);
    struct backend_view view = view_of(f, b1);
    uint64_t deadline_ns = f->now_ns + BOOT + 300 * SECOND;
    assert_int_equal(view.row_class, ROW_NONE);
    assert_int_equal(view.flow_policy, FLOW_CLOSE_AT);
    assert_int_equal(view.deadline_cause, DEADLINE_DRAIN);
    assert_true(word_of(f, view.row.row)->deadline_boot_ns == deadline_ns);

    f->now_ns += 50 * SECOND;
    command = (struct command){0};
    build_weight(&command, "web", b1, 50);
    build_commit(f->state, &command);
    publish(f);
    assert_null(word_of(f, view.row.row)); /* nothing moved */

    struct kept_deadline kept[4];
    assert_int_equal(engine_keep_deadlines(f->engine, kept, 4), 1);
    assert_true(kept[0].drain_revision == drain_revision);
    new_engine(f, 1, 2, 0);
    struct last_known_good good = {.deadlines = kept, .n_deadlines = 1};
    step(f, &(struct engine_event){.kind = ENGINE_LAST_KNOWN_GOOD, .u.kept = &good});
    f->now_ns += 5 * SECOND;
    publish(f);
    assert_true(word_of(f, view.row.row)->deadline_boot_ns == deadline_ns);

    command = (struct command){0};
    build_admin(&command, "web", b1, ADMIN_ENABLED);
    build_commit(f->state, &command);
    publish(f);
    assert_int_equal(word_of(f, view.row.row)->flow_policy, FLOW_KEEP);
    assert_int_equal(engine_keep_deadlines(f->engine, kept, 4), 0);
}

/* spec.md 5: from last-known-good, held with its age, replaced by the first column that holds. */
static void restart_takes_verdicts_up_again_as_held(void **state)
{
    struct fixture *f = *state;

    put(f, "10.0.0.1:80 10.0.0.2:80", RULE_LOCAL);
    struct target_id id = target_of(f, b2);
    for (int i = 0; i < 2; i++) {
        result(f, target_of(f, b1), REASON_OK);
        result(f, id, REASON_CONNECT_FAILED);
    }
    f->now_ns += 10 * SECOND;
    struct kept_verdict kept[4];
    size_t n = engine_keep_verdicts(f->engine, f->now_ns, kept, 4);
    assert_int_equal(n, 2);
    assert_int_equal(engine_n_kept_verdicts(f->engine), 2);

    new_engine(f, 1, 2, 0);
    struct last_known_good good = {.age_ms = 60000, .verdicts = kept, .n_verdicts = n};
    step(f, &(struct engine_event){.kind = ENGINE_LAST_KNOWN_GOOD, .u.kept = &good});
    publish(f);
    struct backend_view view = view_of(f, b2);
    assert_int_equal(view.health_state, HEALTH_UNHEALTHY);
    assert_int_equal(view.held_causes, HELD_LAST_KNOWN_GOOD | HELD_NO_OWN_VOTE);
    assert_true(view.kept_age_ns == 60 * SECOND && view.since_ns == 70 * SECOND);
    assert_int_equal(view.reason, REASON_CONNECT_FAILED);
    assert_int_equal(view_of(f, b1).row_class, ROW_HEALTHY);
    result(f, id, REASON_CONNECT_FAILED);
    result(f, id, REASON_CONNECT_FAILED);
    assert_int_equal(view_of(f, b2).held_causes, 0);
}

static void no_table_before_a_catalog_as_new_as_the_old_tables(void **state)
{
    struct fixture *f = *state;

    put(f, b1, RULE_LOCAL);
    uint64_t revision = catalog_revision(engine_catalog(f->engine));
    new_engine(f, 1, 2, revision + 1);
    publish(f);
    assert_int_equal(f->actions.n_rows, 0);
    assert_false(f->actions.layout_due);
    assert_int_equal(f->actions.n_probes, 1); /* it probes already */
    put(f, b1, RULE_ANY);
    assert_int_equal(f->actions.n_rows, 2);
    assert_true(f->actions.layout_due);
}

static void removed_backend_is_purged_when_every_node_is_done(void **state)
{
    struct fixture *f = *state;

    put(f, "10.0.0.1:80 10.0.0.2:80 10.0.0.3:80", RULE_LOCAL);
    put(f, "10.0.0.1:80 10.0.0.2:80", RULE_LOCAL);
    struct backend_view view = view_of(f, "10.0.0.3:80");
    assert_int_equal(view.life, LIFE_REMOVING);
    struct engine_status counts;
    engine_view_status(f->engine, f->now_ns, &counts);
    assert_int_equal(counts.n_removing, 1); /* status once said 0, always */
    assert_int_equal(view.flow_policy, FLOW_CLOSE_AT);
    assert_int_equal(view.deadline_cause, DEADLINE_REMOVED);
    struct drain_row rows[4];
    assert_int_equal(engine_drain_rows(f->engine, rows, 4), 1);
    assert_int_equal(rows[0].row, view.row.row);

    struct data_plane_row flows = {
        .row = view.row.row, .birth = view.row.birth, .n_flows = 3, .is_adopted = true};
    struct data_plane_status status = {.is_counting = true, .rows = &flows, .n_rows = 1};
    step(f, &(struct engine_event){.kind = ENGINE_DATA_PLANE, .u.data_plane = &status});
    tick(f, SECOND);
    assert_true(f->actions.has_drain_report);
    assert_int_equal(f->actions.drain_report.entries[0].n_flows, 3);
    assert_int_equal(f->actions.n_purges, 0);
    assert_int_equal(view_of(f, "10.0.0.3:80").n_nodes_pending, 3);
    assert_int_equal(view_of(f, "10.0.0.3:80").n_flows, 3);

    struct drain_report report = f->actions.drain_report;
    report.entries[0].is_done = true;
    report.entries[0].n_flows = 0;
    for (uint64_t peer = 2; peer <= 3; peer++) {
        step(f, &(struct engine_event){
                    .kind = ENGINE_DRAIN_REPORT, .peer = peer, .u.report = &report});
    }
    flows.n_flows = 0;
    step(f, &(struct engine_event){.kind = ENGINE_DATA_PLANE, .u.data_plane = &status});
    tick(f, SECOND);
    assert_int_equal(f->actions.n_purges, 1);
    assert_true(f->actions.purges[0].backend_id == view.backend_id);

    struct command command = {0};
    struct catalog *catalog = catalog_state_catalog(f->state);
    build_purge(&command, catalog, "web", "10.0.0.3:80");
    catalog_unref(catalog);
    build_commit(f->state, &command);
    publish(f);
    assert_int_equal(word_of(f, view.row.row)->row_class, ROW_REMOVED);
    tick(f, SECOND);
    assert_int_equal(f->actions.n_purges, 0);
}

/* Neither what the deadline cut nor which node does not count was told. */
static void flows_cut_at_the_deadline_and_nodes_that_do_not_count_are_told(void **state)
{
    struct fixture *f = *state;

    put(f, "10.0.0.1:80 10.0.0.2:80 10.0.0.3:80", RULE_LOCAL);
    put(f, "10.0.0.1:80 10.0.0.2:80", RULE_LOCAL);
    struct backend_view view = view_of(f, "10.0.0.3:80");
    assert_int_equal(view.n_nodes_uncounted, 2); /* the peers were never heard */

    struct data_plane_row flows = {.row = view.row.row,
                                   .birth = view.row.birth,
                                   .n_flows = 3,
                                   .n_closed = 9, /* by an earlier drain */
                                   .is_adopted = true};
    struct data_plane_status status = {.is_counting = true, .rows = &flows, .n_rows = 1};
    step(f, &(struct engine_event){.kind = ENGINE_DATA_PLANE, .u.data_plane = &status});
    tick(f, 301 * SECOND);
    struct drain_report report = f->actions.drain_report;
    assert_int_equal(report.n_entries, 1);
    flows.n_flows = 0;
    flows.n_closed = 12;
    step(f, &(struct engine_event){.kind = ENGINE_DATA_PLANE, .u.data_plane = &status});
    report.entries[0].is_counting = false;
    report.entries[0].n_closed = 0;
    step(f, &(struct engine_event){.kind = ENGINE_DRAIN_REPORT, .peer = 2, .u.report = &report});
    report.entries[0].is_counting = true;
    report.entries[0].n_closed = 2;
    step(f, &(struct engine_event){.kind = ENGINE_DRAIN_REPORT, .peer = 3, .u.report = &report});
    view = view_of(f, "10.0.0.3:80");
    assert_int_equal(view.n_closed, 5);
    assert_int_equal(view.n_nodes_uncounted, 1);
    assert_int_equal(view.uncounted[0], 2);
}

static void nodes_that_do_not_count_or_speak_are_waited_for_until_the_deadline(void **state)
{
    struct fixture *f = *state;

    put(f, "10.0.0.1:80 10.0.0.2:80 10.0.0.3:80", RULE_LOCAL);
    put(f, "10.0.0.1:80 10.0.0.2:80", RULE_LOCAL);
    tick(f, 299 * SECOND);
    assert_int_equal(f->actions.n_purges, 0);
    tick(f, 2 * SECOND);
    assert_int_equal(f->actions.n_purges, 1);
}

static void checks_off_and_maintenance_have_states_of_their_own(void **state)
{
    struct fixture *f = *state;
    struct command command = {0};
    struct server_group group;

    put(f, "10.0.0.1:80 10.0.0.2:80", RULE_LOCAL);
    struct target_id id = target_of(f, b1);
    result(f, id, REASON_CONNECT_FAILED);
    result(f, id, REASON_CONNECT_FAILED);
    build_admin(&command, "web", b1, ADMIN_MAINTENANCE);
    build_commit(f->state, &command);
    publish(f);
    assert_int_equal(view_of(f, b1).health_state, HEALTH_UNUSED);
    assert_int_equal(f->actions.n_probes, 1); /* not probed any more */

    command = (struct command){0};
    build_admin(&command, "web", b1, ADMIN_ENABLED);
    build_commit(f->state, &command);
    publish(f);
    assert_int_equal(view_of(f, b1).health_state, HEALTH_INITIAL);

    command = (struct command){0};
    build_group(&group, "web", "10.0.0.1:80 10.0.0.2:80");
    group.check.is_enabled = false;
    build_put_group(&command, &group);
    build_commit(f->state, &command);
    publish(f);
    assert_int_equal(view_of(f, b1).health_state, HEALTH_UNAVAILABLE);
    assert_int_equal(view_of(f, b1).row_class, ROW_HEALTHY);

    command = (struct command){0};
    group.check.is_enabled = true;
    build_put_group(&command, &group);
    build_commit(f->state, &command);
    server_group_close(&group);
    publish(f);
    struct backend_view view = view_of(f, b1);
    assert_int_equal(view.health_state, HEALTH_HEALTHY);
    assert_int_equal(view.held_causes & HELD_CHECK_CHANGED, HELD_CHECK_CHANGED);
}

static void unknown_names_are_not_found(void **state)
{
    struct fixture *f = *state;
    struct endpoint at = build_endpoint("10.9.9.9:80");
    struct backend_view view;
    struct group_view group;

    assert_int_equal(engine_view_backend(f->engine, "web", &at, f->now_ns, 0, &view),
                     ERR_NOTFOUND); /* no catalog yet */
    put(f, b1, RULE_LOCAL);
    assert_int_equal(engine_view_backend(f->engine, "web", &at, f->now_ns, 0, &view), ERR_NOTFOUND);
    assert_int_equal(engine_view_group(f->engine, "wbe", f->now_ns, &group), ERR_NOTFOUND);
    assert_int_equal(engine_view_group(f->engine, "web", f->now_ns, &group), 0);
    assert_int_equal(group.failure_window_ms, 15000); /* nlb: 5s/5s/2 */
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(first_catalog_gives_probes_rows_and_a_layout),
        TEST(older_equal_and_foreign_catalogs_are_ignored),
        TEST(local_rule_follows_the_own_opinion_at_once),
        TEST(result_of_a_definition_changed_in_flight_is_dropped),
        TEST(majority_needs_two_of_three_and_names_them),
        TEST(an_event_of_a_verdict_names_the_nodes_for_it_and_against_it),
        TEST(a_peers_detail_is_as_old_as_its_probe),
        TEST(own_failing_opinion_beside_a_healthy_verdict_is_the_second_class),
        TEST(vector_goes_out_each_interval_whatever_it_holds),
        TEST(no_votes_without_an_epoch_or_as_a_node_unknown_to_the_catalog),
        TEST(opinion_turns_none_without_conclusive_probes),
        TEST(suspect_own_vote_does_not_count_and_steers_nothing),
        TEST(what_failed_in_doubt_must_fail_again_to_count),
        TEST(what_failed_in_doubt_is_dropped_though_a_pass_came_since),
        TEST(what_failed_before_the_doubt_stands_after_it),
        TEST(questions_are_answered_with_what_is_known_now),
        TEST(unhealthy_deadline_begins_with_the_verdict_and_ends_with_recovery),
        TEST(drain_deadline_is_set_once_and_survives_a_restart),
        TEST(restart_takes_verdicts_up_again_as_held),
        TEST(no_table_before_a_catalog_as_new_as_the_old_tables),
        TEST(removed_backend_is_purged_when_every_node_is_done),
        TEST(flows_cut_at_the_deadline_and_nodes_that_do_not_count_are_told),
        TEST(nodes_that_do_not_count_or_speak_are_waited_for_until_the_deadline),
        TEST(checks_off_and_maintenance_have_states_of_their_own),
        TEST(unknown_names_are_not_found),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
