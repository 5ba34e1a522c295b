/* Replays in whole clusters: with another rule or threshold the outcome is that of a cluster that
 * really had it. That an unchanged document gives what happened is judged at the end of every
 * scenario and of every seed of the simulation. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/core/replay.h"
#include "common/base/plant.h"
#include "tests/lib/catalog_builder.h"
#include "tests/lib/replay_judge.h"
#include "tests/lib/world.h"
#include "tests/unit/core/engine_fixture.h"

#define EVENTS 512

struct outcome {
    struct {
        uint64_t at_ns;
        uint8_t from, to;
        struct endpoint at;
    } verdicts[EVENTS];
    size_t n;
};

static struct world world; /* too big for a stack */

static void make_group(struct server_group *group)
{
    build_group(group, "web", "10.0.0.1:80 10.0.0.2:80");
    group->rule = (struct verdict_rule){.down = {.kind = RULE_MAJORITY},
                                        .up = {.kind = RULE_MAJORITY},
                                        .below_quorum = BELOW_QUORUM_HOLD};
    group->check.timeout_ms = 2000;
    group->check.interval_ms = 1000;
    group->check.healthy_threshold = 2;
    group->check.unhealthy_threshold = 3;
}

static void begin(uint32_t n_nodes, const struct server_group *group)
{
    struct command command = {0};
    struct errmsg err;

    world_init(&world, 7, n_nodes);
    build_put_group(&command, group);
    assert_int_equal(world_commit(&world, &command, &err), 0);
    for (uint64_t id = 1; id <= n_nodes; id++) {
        world_start(&world, id, WORLD_KEPT_NONE, 0);
    }
}

/* 10.0.0.1:80 at one node only (0: at all). */
static void answer(uint64_t node_id, uint8_t reason)
{
    struct endpoint at = build_endpoint("10.0.0.1:80");
    struct world_backend *backend = world_backend(&world, &at);

    for (uint64_t id = 1; id <= world.n_nodes; id++) {
        if (node_id == 0 || id == node_id) {
            backend->truth[id] = (struct truth){.reason = reason, .response_ns = WORLD_MS};
        }
    }
}

/* One node, then all, see it fail; it comes back. */
static void live(void)
{
    static const struct {
        uint64_t at_s, node_id;
        uint8_t reason;
    } steps[] = {{20, 1, REASON_CONNECT_FAILED},
                 {30, 1, REASON_OK},
                 {40, 0, REASON_CONNECT_FAILED},
                 {55, 2, REASON_OK},
                 {65, 0, REASON_OK},
                 {80, 0, REASON_OK}};

    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        world_run(&world, steps[i].at_s * WORLD_SECOND);
        answer(steps[i].node_id, steps[i].reason);
    }
}

static void note(void *user, const struct event *event)
{
    struct outcome *outcome = user;

    if (event->kind == EVENT_VERDICT_CHANGED && outcome->n < EVENTS) {
        outcome->verdicts[outcome->n].at_ns = event->at_ns;
        outcome->verdicts[outcome->n].from = event->from;
        outcome->verdicts[outcome->n].to = event->to;
        outcome->verdicts[outcome->n++].at = event->backend;
    }
}

static void simulate(uint64_t node_id, const struct server_group *change, struct outcome *outcome,
                     struct replay_answer *answer)
{
    struct replay_question question = {
        .group = "web", .change = change, .on_event = note, .user = outcome};
    struct errmsg err;

    memset(outcome, 0, sizeof *outcome);
    assert_int_equal(replay_group(world.nodes[node_id].engine, &question, answer, &err), 0);
    assert_true(answer->from_beginning);
}

static void read_log(uint64_t node_id, struct outcome *outcome)
{
    const struct engine *engine = world.nodes[node_id].engine;

    memset(outcome, 0, sizeof *outcome);
    for (uint64_t i = engine_event_first(engine); i < engine_event_next(engine); i++) {
        note(outcome, engine_event_at(engine, i));
    }
}

/* What a cluster with `other` really comes to is what one with `group` simulates. */
static void is_foretold(uint32_t n_nodes, const struct server_group *group,
                        const struct server_group *other)
{
    struct outcome simulated, happened, was;
    struct replay_answer answer;

    begin(n_nodes, group);
    live();
    simulate(1, other, &simulated, &answer);
    read_log(1, &was);
    world_close(&world);

    begin(n_nodes, other);
    live();
    read_log(1, &happened);
    world_close(&world);

    assert_true(happened.n > 2);
    assert_true(memcmp(&was, &happened, sizeof was) != 0); /* it makes a difference */
    assert_int_equal(simulated.n, happened.n);
    assert_memory_equal(&simulated, &happened, sizeof happened);
}

static void another_rule_is_foretold(void **unused)
{
    struct server_group group, other;

    (void)unused;
    make_group(&group);
    make_group(&other);
    other.rule.down.kind = other.rule.up.kind = RULE_ANY;
    is_foretold(3, &group, &other);
    other.rule.down.kind = other.rule.up.kind = RULE_LOCAL;
    is_foretold(3, &group, &other);
    other.rule.down.kind = other.rule.up.kind = RULE_ALL;
    is_foretold(3, &group, &other);
    server_group_close(&group);
    server_group_close(&other);
}

static void another_guard_is_foretold(void **unused)
{
    struct server_group group, other;

    (void)unused;
    make_group(&group);
    make_group(&other);
    other.guard = guard_policy_of(GUARD_PRESET_OFF);
    other.guard.velocity_percent = 50;
    other.guard.exempt_below = 0;
    is_foretold(3, &group, &other);
    other.guard = guard_policy_of(GUARD_PRESET_STANDARD);
    server_group_settle(&other);
    is_foretold(3, &group, &other);
    server_group_close(&group);
    server_group_close(&other);
}

static void commit_group(const struct server_group *group)
{
    struct command command = {0};
    struct errmsg err;

    build_put_group(&command, group);
    assert_int_equal(world_commit(&world, &command, &err), 0);
}

/* A limit that came later than what happened is no part of it because another field is tried. */
static void a_changed_guard_field_leaves_the_others_as_they_were_then(void **unused)
{
    struct server_group group, later, tried;
    struct outcome was, simulated;
    struct replay_answer replayed;

    (void)unused;
    make_group(&group);
    make_group(&later);
    make_group(&tried);
    begin(3, &group);
    live();
    read_log(1, &was);
    assert_true(was.n > 2);
    later.guard.shadow_cycles = 1000;
    later.guard.velocity_percent = 1;
    later.guard.velocity_window_ms = GUARD_WINDOW_MS_MAX;
    later.guard.exempt_below = 0;
    commit_group(&later);
    world_run(&world, 100 * WORLD_SECOND);
    tried.guard = later.guard;
    tried.guard.correlated_alarm = false;
    simulate(1, &tried, &simulated, &replayed);
    world_close(&world);

    assert_int_equal(simulated.n, was.n);
    assert_memory_equal(&simulated, &was, sizeof was);
    server_group_close(&group);
    server_group_close(&later);
    server_group_close(&tried);
}

/* Of a node alone, whose results are all that there is. */
static void other_thresholds_are_foretold(void **unused)
{
    struct server_group group, other;

    (void)unused;
    make_group(&group);
    make_group(&other);
    other.check.unhealthy_threshold = 1;
    is_foretold(1, &group, &other);
    other.check.unhealthy_threshold = 5;
    other.check.healthy_threshold = 4;
    is_foretold(1, &group, &other);
    server_group_close(&group);
    server_group_close(&other);
}

static void totals_are_of_the_time_that_is_asked_for(void **unused)
{
    struct server_group group;
    struct outcome outcome = {0};
    struct replay_answer answer;
    struct errmsg err;

    (void)unused;
    make_group(&group);
    begin(3, &group);
    live();
    simulate(1, NULL, &outcome, &answer);
    assert_true(answer.is_exact);
    assert_false(answer.counts_results);
    assert_int_equal(answer.n_changes, 4);
    assert_int_equal(answer.n_ejections, 1);
    assert_int_equal(answer.n_out_max, 1);
    assert_int_equal(answer.n_fail_opens, 0);
    assert_int_equal(answer.out_longest_ns, outcome.verdicts[3].at_ns - outcome.verdicts[2].at_ns);

    /* In the last 20 s it was out already, and came back. */
    const struct engine *engine = world.nodes[1].engine;
    struct replay_question question = {.group = "web",
                                       .since_ns = answer.to_ns - 20 * WORLD_SECOND};
    assert_int_equal(replay_group(engine, &question, &answer, &err), 0);
    assert_int_equal(answer.n_changes, 1);
    assert_int_equal(answer.n_ejections, 0);
    assert_int_equal(answer.n_out_max, 1);
    assert_int_equal(answer.out_longest_ns, outcome.verdicts[3].at_ns - question.since_ns);
    world_close(&world);
    server_group_close(&group);
}

static void a_hold_would_have_ejected_nothing(void **unused)
{
    struct server_group group;
    struct outcome outcome;
    struct replay_answer answer;

    (void)unused;
    make_group(&group);
    begin(3, &group);
    live();
    group.hold = HOLD_ON;
    simulate(1, &group, &outcome, &answer);
    assert_int_equal(answer.n_ejections, 0);
    assert_int_equal(answer.n_out_max, 0);
    world_close(&world);
    server_group_close(&group);
}

/* More votes on one backend than are kept of it: the replay begins in between, and from there on it
 * is what happened. */
static void put_one_ejection_at_a_time(struct fixture *f)
{
    struct command command = {0};
    struct server_group group;

    build_group(&group, "web",
                "10.0.0.1:80 10.0.0.2:80 10.0.0.3:80 10.0.0.4:80 10.0.0.5:80 "
                "10.0.0.6:80 10.0.0.7:80 10.0.0.8:80");
    group.rule.down = group.rule.up = (struct rule_column){.kind = RULE_LOCAL};
    group.check.timeout_ms = group.check.interval_ms = 1000; /* an opinion lasts for 6 s */
    group.check.healthy_threshold = group.check.unhealthy_threshold = 1;
    group.guard = guard_policy_of(GUARD_PRESET_STANDARD);
    server_group_settle(&group);
    group.guard.velocity_percent = 10;
    group.guard.velocity_window_ms = 7000;
    group.guard.exempt_below = 0;
    build_put_group(&command, &group);
    build_commit(f->state, &command);
    server_group_close(&group);
    publish(f);
}

/* Three fail; while the node stands still, the window of the first ejection ends, and what it knows
 * of the second backend gets too old. When it wakes up it is the third one that leaves. */
static void stand_still_while_two_wait(struct fixture *f, struct replay_judgement *judgement)
{
    static const char *const all[] = {"10.0.0.1:80", "10.0.0.2:80", "10.0.0.3:80", "10.0.0.4:80",
                                      "10.0.0.5:80", "10.0.0.6:80", "10.0.0.7:80", "10.0.0.8:80"};

    put_one_ejection_at_a_time(f);
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        result(f, target_of(f, all[i]), REASON_OK);
    }
    tick(f, SECOND);
    result(f, target_of(f, all[0]), REASON_CONNECT_FAILED);
    tick(f, SECOND);
    assert_int_equal(view_of(f, all[0]).health_state, HEALTH_UNHEALTHY);
    result(f, target_of(f, all[1]), REASON_CONNECT_FAILED);
    for (unsigned i = 0; i < 20; i++) {
        tick(f, 100 * MS);
    }
    result(f, target_of(f, all[2]), REASON_CONNECT_FAILED);
    for (size_t i = 3; i < sizeof all / sizeof all[0]; i++) {
        result(f, target_of(f, all[i]), REASON_OK);
    }
    tick(f, 100 * MS);
    tick(f, 5500 * MS); /* it stood still */
    assert_int_equal(view_of(f, all[1]).health_state, HEALTH_HEALTHY);
    assert_int_equal(view_of(f, all[2]).health_state, HEALTH_UNHEALTHY);
    replay_judge(f->engine, judgement);
}

static void guards_that_come_late_see_the_votes_of_then(void **state)
{
    struct replay_judgement judgement;

    stand_still_while_two_wait(*state, &judgement);
    assert_string_equal(judgement.difference, "");
    assert_int_equal(judgement.n_whole, 1);
}

static void a_replay_may_begin_in_between(void **unused)
{
    struct server_group group;
    struct replay_judgement judgement;

    (void)unused;
    make_group(&group);
    group.check.interval_ms = group.check.timeout_ms = 100;
    group.check.healthy_threshold = group.check.unhealthy_threshold = 1;
    begin(3, &group);
    for (uint64_t s = 1; s < 1400; s++) {
        world_run(&world, s * WORLD_SECOND);
        answer(0, s % 2 == 0 ? REASON_OK : REASON_CONNECT_FAILED);
    }
    for (uint64_t id = 1; id <= 3; id++) {
        replay_judge(world.nodes[id].engine, &judgement);
        assert_string_equal(judgement.difference, "");
        assert_int_equal(judgement.n_groups, 1);
        assert_int_equal(judgement.n_whole, 0);
        assert_true(judgement.n_verdicts > 500);
    }
    world_close(&world);
    server_group_close(&group);
}

static void what_the_past_cannot_tell_is_refused_by_its_field(void **unused)
{
    static const struct {
        size_t offset, n_bytes;
        const char *field;
    } rows[] = {
#define ROW(member, field) \
    {offsetof(struct health_check, member), sizeof((struct health_check *)0)->member, field}
        ROW(type, "check.type"),
        ROW(port, "check.port"),
        ROW(timeout_ms, "check.timeout"),
        ROW(interval_ms, "check.interval"),
        ROW(pacing, "check.pacing"),
        ROW(source, "check.source"),
        ROW(tcp.handshake, "check.tcp.handshake"),
        ROW(tcp.close, "check.tcp.close"),
        ROW(tcp.on_timeout, "check.tcp.onTimeout"),
        ROW(http.method, "check.http.method"),
        ROW(http.version, "check.http.version"),
        ROW(http.host, "check.http.host"),
        ROW(http.path[0], "check.http.path"),
        ROW(http.domain[0], "check.http.domain"),
        ROW(http.expect, "check.http.expect"),
        ROW(udp.method, "check.udp.method"),
        ROW(udp.payload.n_bytes, "check.udp.payload"),
        ROW(udp.mask.n_bytes, "check.udp.mask"),
        ROW(tcp.send.n_bytes, "check.tcp.send"),
        ROW(tcp.expect.n_bytes, "check.tcp.expect"),
        ROW(udp.expect.n_bytes, "check.udp.expect"),
#undef ROW
    };
    struct server_group group;
    struct errmsg err;

    (void)unused;
    make_group(&group);
    struct catalog *catalog = build_catalog(3, "web", "10.0.0.1:80 10.0.0.2:80");
    struct catalog_group present = *catalog_group_find(catalog, "web");
    present.spec.check = group.check;
    assert_int_equal(replay_check(&present, &group, &err), 0);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct server_group other = group;
        uint8_t *field = (uint8_t *)&other.check + rows[i].offset;

        memset(field, 1 + *field, rows[i].n_bytes);
        assert_int_equal(replay_check(&present, &other, &err), ERR_INVALID);
        assert_non_null(strstr(err.text, rows[i].field));
        assert_non_null(strstr(err.text, "server group \"web\""));
    }
    struct server_group fewer = group;
    fewer.n_backends = 1;
    assert_int_equal(replay_check(&present, &fewer, &err), ERR_INVALID);
    assert_non_null(strstr(err.text, "backend 10.0.0.2:80 cannot be replayed: it is missing"));
    group.backends[0].weight = 0;
    assert_int_equal(replay_check(&present, &group, &err), ERR_INVALID);
    assert_non_null(strstr(err.text, "weight"));
    catalog_unref(catalog);
    server_group_close(&group);
}

static void several(struct server_group *group)
{
    build_check(group, "port", CHECK_TYPE_TCP, 0, CHECK_LOCAL);
    build_check(group, "page", CHECK_TYPE_HTTP, 81, CHECK_LOCAL);
    build_check(group, "db", CHECK_TYPE_TCP, 5432, CHECK_DEPENDENCY);
}

/* How the others' probes of each check went is not known: a list is taken as it was. */
static void of_several_checks_all_but_names_and_dependencies_is_refused(void **unused)
{
    static const char *const sentences[] = {
        "",
        "checks.page.timeout cannot be replayed: other probes would have had other results",
        "checks.page.http.path cannot be replayed: other probes would have had other results",
        ("checks.port: healthyThreshold or unhealthyThreshold cannot be replayed: of the other "
         "nodes' probes only the votes"),
        "pass cannot be replayed: of the other nodes' probes only the votes",
        "checks cannot be replayed: other probes would have had other results",
        "check cannot be replayed: other probes would have had other results",
        "",
        "",
    };

    (void)unused;
    for (size_t i = 0; i < sizeof sentences / sizeof sentences[0]; i++) {
        struct catalog *catalog = build_catalog(3, "web", "10.0.0.1:80");
        struct catalog_group present = *catalog_group_find(catalog, "web");
        struct server_group from, to;
        struct errmsg err = {{0}};

        build_group(&from, "web", "10.0.0.1:80");
        build_group(&to, "web", "10.0.0.1:80");
        several(&from);
        if (i != 6) {
            several(&to);
        }
        switch (i) {
        case 1:
            to.checks[1].check.timeout_ms++;
            break;
        case 2:
            to.checks[1].check.http.path[1] = 'x';
            break;
        case 3:
            to.checks[0].check.unhealthy_threshold++;
            break;
        case 4:
            to.pass.kind = RULE_ANY;
            break;
        case 5:
            build_check(&to, "more", CHECK_TYPE_TCP, 82, CHECK_LOCAL);
            break;
        case 7:
            to.checks[2].check.interval_ms++;
            memcpy(to.checks[0].name, "tcp", 4);
            break;
        case 8:
            to.n_checks = 2; /* without the dependency */
            break;
        }
        group_settle_checks(&to);
        present.spec = from;
        int rc = replay_check(&present, &to, &err);
        assert_int_equal(rc, sentences[i][0] == '\0' ? 0 : ERR_INVALID);
        if (rc != 0 && strstr(err.text, sentences[i]) == NULL) {
            fail_msg("row %zu: %s", i, err.text);
        }
        server_group_close(&from);
        server_group_close(&to);
        catalog_unref(catalog);
    }
}

static void a_group_that_is_not_there_is_not_found(void **unused)
{
    struct server_group group;
    struct replay_question question = {.group = "shop"};
    struct replay_answer answer;
    struct errmsg err;

    (void)unused;
    make_group(&group);
    begin(1, &group);
    assert_int_equal(replay_group(world.nodes[1].engine, &question, &answer, &err), ERR_NOTFOUND);
    assert_non_null(strstr(err.text, "shop"));
    world_close(&world);
    server_group_close(&group);
}

#ifdef JURY_PLANTS
/* Each thing that may be forgotten or kept wrong is seen by the judge of all scenarios. */
static void twin_a_history_that_is_wrong_is_caught(void **unused)
{
    static const char *const plants[] = {"history-forgets-age", "history-wrong-time"};
    struct server_group group;
    struct replay_judgement judgement;

    (void)unused;
    make_group(&group);
    for (size_t i = 0; i < sizeof plants / sizeof plants[0]; i++) {
        plant_set(plants[i]);
        begin(3, &group);
        live();
        answer(1, REASON_CONNECT_FAILED);
        answer(2, REASON_CONNECT_FAILED);
        world_run(&world, 100 * WORLD_SECOND);
        world_stop(&world, 3); /* its pass ages out: then 1 : 1 is no majority */
        world_run(&world, 104 * WORLD_SECOND);
        answer(2, REASON_OK);
        world_run(&world, 135 * WORLD_SECOND);
        replay_judge(world.nodes[1].engine, &judgement);
        plant_set(NULL);
        assert_string_not_equal(judgement.difference, "");
        world_close(&world);
    }
    server_group_close(&group);
}

static void twin_what_guards_saw_must_be_kept(void **state)
{
    struct replay_judgement judgement;

    plant_set("history-guards-see-later");
    stand_still_while_two_wait(*state, &judgement);
    plant_set(NULL);
    assert_non_null(strstr(judgement.difference, "replayed it is"));
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(another_rule_is_foretold),
        cmocka_unit_test(another_guard_is_foretold),
        cmocka_unit_test(a_changed_guard_field_leaves_the_others_as_they_were_then),
        cmocka_unit_test(other_thresholds_are_foretold),
        cmocka_unit_test(totals_are_of_the_time_that_is_asked_for),
        cmocka_unit_test(a_hold_would_have_ejected_nothing),
        TEST(guards_that_come_late_see_the_votes_of_then),
        cmocka_unit_test(a_replay_may_begin_in_between),
        cmocka_unit_test(what_the_past_cannot_tell_is_refused_by_its_field),
        cmocka_unit_test(of_several_checks_all_but_names_and_dependencies_is_refused),
        cmocka_unit_test(a_group_that_is_not_there_is_not_found),
#ifdef JURY_PLANTS
        cmocka_unit_test(twin_a_history_that_is_wrong_is_caught),
        TEST(twin_what_guards_saw_must_be_kept),
#endif
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
