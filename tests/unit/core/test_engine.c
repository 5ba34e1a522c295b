/* One engine by itself: events in, actions and views out. What several engines do together is in
 * tests/scenario and tests/sim. */
#include "engine_fixture.h"

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

/* A vote for it was told with the failure of its last probe: "by=1:pass:HTTP_CODE_NOT_MATCH". */
static void an_event_tells_no_reason_that_is_not_of_the_vote(void **state)
{
    struct fixture *f = *state;
    const struct event *event = NULL;

    put(f, b1, RULE_MAJORITY);
    struct target_id id = target_of(f, b1);
    result(f, id, REASON_OK);
    result(f, id, REASON_OK);
    peer_says(f, 2, id, OPINION_FAIL, 1);
    peer_says(f, 3, id, OPINION_FAIL, 1);
    result(f, id, REASON_HTTP_CODE_NOT_MATCH); /* one failure of two: it passes as before */
    peer_says(f, 2, id, OPINION_PASS, 2);
    for (uint64_t at = engine_event_first(f->engine); at < engine_event_next(f->engine); at++) {
        if (engine_event_at(f->engine, at)->kind == EVENT_VERDICT_CHANGED) {
            event = engine_event_at(f->engine, at);
        }
    }
    assert_non_null(event);
    assert_int_equal(event->to, HEALTH_HEALTHY);
    assert_int_equal(event->n_votes, 3);
    assert_int_equal(event->votes[0].opinion, OPINION_PASS);
    assert_int_equal(event->votes[0].reason, REASON_NONE);
    assert_int_equal(event->votes[1].reason, REASON_OK);
    assert_int_equal(event->votes[2].reason, REASON_CONNECT_FAILED);
    assert_int_equal(event->reason, REASON_OK);
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

/* Its probes are those of the group before, which do not begin anew for it. */
static void warming_of_a_group_that_came_to_a_probed_target_ends(void **state)
{
    struct fixture *f = *state;
    struct command command = {0};
    struct group_view view;

    put(f, b1, RULE_MAJORITY);
    struct target_id id = target_of(f, b1);
    result(f, id, REASON_OK);
    build_put(&command, "late", b1);
    build_commit(f->state, &command);
    publish(f);
    assert_int_equal(f->actions.n_probes, 0);
    assert_int_equal(engine_view_group(f->engine, "late", f->now_ns, &view), 0);
    assert_int_equal(view.marks, MARK_WARMING);

    result(f, id, REASON_LOCAL_NO_PORT);
    tick(f, 600 * SECOND);
    assert_int_equal(engine_view_group(f->engine, "late", f->now_ns, &view), 0);
    assert_int_equal(view.marks, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(first_catalog_gives_probes_rows_and_a_layout),
        TEST(older_equal_and_foreign_catalogs_are_ignored),
        TEST(local_rule_follows_the_own_opinion_at_once),
        TEST(result_of_a_definition_changed_in_flight_is_dropped),
        TEST(majority_needs_two_of_three_and_names_them),
        TEST(an_event_of_a_verdict_names_the_nodes_for_it_and_against_it),
        TEST(an_event_tells_no_reason_that_is_not_of_the_vote),
        TEST(a_peers_detail_is_as_old_as_its_probe),
        TEST(own_failing_opinion_beside_a_healthy_verdict_is_the_second_class),
        TEST(vector_goes_out_each_interval_whatever_it_holds),
        TEST(no_votes_without_an_epoch_or_as_a_node_unknown_to_the_catalog),
        TEST(opinion_turns_none_without_conclusive_probes),
        TEST(suspect_own_vote_does_not_count_and_steers_nothing),
        TEST(what_failed_in_doubt_must_fail_again_to_count),
        TEST(what_failed_in_doubt_is_dropped_though_a_pass_came_since),
        TEST(what_failed_before_the_doubt_stands_after_it),
        TEST(warming_of_a_group_that_came_to_a_probed_target_ends),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
