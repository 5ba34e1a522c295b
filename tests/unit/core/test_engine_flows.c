/* Drains, deadlines, restarts and questions of one engine. */
#include "engine_fixture.h"

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

static uint64_t drain(struct fixture *f, const char *at, uint32_t timeout_ms)
{
    struct command command = {0};
    struct change *change = build_admin(&command, "web", at, ADMIN_DRAINING);

    change->u.backend->has_drain_timeout = true;
    change->u.backend->drain_timeout_ms = timeout_ms;
    uint64_t revision = build_commit(f->state, &command);
    publish(f);
    return revision;
}

static void put_draining(struct fixture *f, const char *endpoints, struct drain_policy policy)
{
    struct command command = {0};
    struct server_group group;

    build_group(&group, "web", endpoints);
    group.rule.down = group.rule.up = (struct rule_column){.kind = RULE_LOCAL};
    group.drain = policy;
    build_put_group(&command, &group);
    build_commit(f->state, &command);
    server_group_close(&group);
    publish(f);
}

static uint64_t deadline_of(struct fixture *f, uint32_t row)
{
    struct kept_deadline kept[8];
    size_t n = engine_keep_deadlines(f->engine, kept, 8);

    for (size_t i = 0; i < n; i++) {
        if (kept[i].row == row) {
            return kept[i].deadline_boot_ns;
        }
    }
    return 0;
}

#define FOUR "10.0.0.2:80 10.0.0.3:80 10.0.0.4:80 10.0.0.5:80"

static void a_removal_leaves_the_operators_drain_its_deadline(void **state)
{
    struct fixture *f = *state;
    static const struct drain_policy off = {.timeout_ms = 300000};

    put_draining(f, "10.0.0.1:80 " FOUR, off);
    uint64_t revision = drain(f, b1, 8000);
    uint64_t deadline_ns = f->now_ns + BOOT + 8 * SECOND;
    struct backend_view view = view_of(f, b1);
    f->now_ns += SECOND;
    put_draining(f, FOUR, off);
    view = view_of(f, b1);
    assert_int_equal(view.life, LIFE_REMOVING);
    assert_int_equal(view.flow_policy, FLOW_CLOSE_AT);
    assert_int_equal(view.deadline_cause, DEADLINE_DRAIN);
    assert_true(deadline_of(f, view.row.row) == deadline_ns);

    struct kept_deadline kept[4];
    assert_int_equal(engine_keep_deadlines(f->engine, kept, 4), 1);
    assert_true(kept[0].drain_revision == revision);
    new_engine(f, 1, 2, 0);
    struct last_known_good good = {.deadlines = kept, .n_deadlines = 1};
    step(f, &(struct engine_event){.kind = ENGINE_LAST_KNOWN_GOOD, .u.kept = &good});
    f->now_ns += SECOND;
    publish(f);
    assert_true(word_of(f, view.row.row)->deadline_boot_ns == deadline_ns);
}

static void of_a_drain_and_a_removal_with_drain_on_the_earlier_deadline_counts(void **state)
{
    struct fixture *f = *state;
    static const struct drain_policy five = {.is_on = true, .timeout_ms = 5000};

    put_draining(f, "10.0.0.1:80 " FOUR, five);
    drain(f, b1, 8000);
    drain(f, b2, 8000);
    drain(f, "10.0.0.3:80", 2000);
    uint64_t begin_ns = f->now_ns + BOOT;
    uint32_t rows[3] = {view_of(f, b1).row.row, view_of(f, b2).row.row,
                        view_of(f, "10.0.0.3:80").row.row};
    f->now_ns += SECOND;
    put_draining(f, "10.0.0.2:80 10.0.0.4:80 10.0.0.5:80", five); /* b1 and the third go */
    assert_true(deadline_of(f, rows[0]) == begin_ns + 6 * SECOND);
    assert_true(deadline_of(f, rows[2]) == begin_ns + 2 * SECOND);
    f->now_ns += 6 * SECOND;
    put_draining(f, "10.0.0.4:80 10.0.0.5:80", five);
    assert_true(deadline_of(f, rows[1]) == begin_ns + 8 * SECOND);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(questions_are_answered_with_what_is_known_now),
        TEST(unhealthy_deadline_begins_with_the_verdict_and_ends_with_recovery),
        TEST(drain_deadline_is_set_once_and_survives_a_restart),
        TEST(a_removal_leaves_the_operators_drain_its_deadline),
        TEST(of_a_drain_and_a_removal_with_drain_on_the_earlier_deadline_counts),
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
