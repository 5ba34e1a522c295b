/* The statements of a scenario file (README.md in this folder). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/catalog_builder.h"
#include "tests/scenario/statement.h"

#define WAIT_LIMIT_NS (3600 * WORLD_SECOND)

/* --- what the world tells --- */

static void probe_started(void *user, struct world *world, struct world_node *node,
                          struct target_id id, const struct truth *truth)
{
    struct scenario *scenario = user;
    const struct catalog_target *target = catalog_target_at(engine_catalog(node->engine), id.slot);

    (void)world;
    if (scenario->wait.is_set && !scenario->wait.is_expectation &&
        node->id == scenario->wait.node_id &&
        endpoint_compare(&target->to, &scenario->wait.at) == 0 &&
        probe_reason_class(truth->reason) == scenario->wait.probe_class) {
        scenario->wait.happened = true;
    }
}

static void note_changes(struct scenario *scenario, const struct world_node *node)
{
    const struct engine_actions *actions = &node->actions;

    for (uint32_t i = 0; i < actions->n_events; i++) {
        const struct event *event = engine_event_at(node->engine, actions->first_event + i);

        if (event == NULL || event->kind != EVENT_VERDICT_CHANGED) {
            continue;
        }
        if (scenario->n_changes == sizeof scenario->changes / sizeof scenario->changes[0]) {
            script_fail(scenario, "too many verdict changes");
        }
        scenario->changes[scenario->n_changes].at_ns = scenario->world.now_ns;
        scenario->changes[scenario->n_changes].node_id = node->id;
        scenario->changes[scenario->n_changes].at = event->backend;
        memcpy(scenario->changes[scenario->n_changes].group, event->group, sizeof event->group);
        scenario->n_changes++;
    }
}

static void after_step(void *user, struct world *world, struct world_node *node,
                       const struct engine_event *event)
{
    struct scenario *scenario = user;
    char text[SCRIPT_TEXT_BYTES];

    (void)event;
    note_changes(scenario, node);
    for (uint32_t i = 0; i < scenario->n_always; i++) {
        const struct expectation *e = &scenario->always[i];

        if ((e->node_id != 0 && e->node_id != node->id) || engine_catalog(node->engine) == NULL) {
            continue; /* a node that has not got its catalog yet serves nothing either */
        }
        scenario->n_expectations++;
        if (!expectation_holds(scenario, e, node, text)) {
            scenario->line.number = e->line;
            script_fail(scenario, "not always so: at %.9f s %s", (double)world->now_ns / 1e9, text);
        }
    }
    if (scenario->wait.is_set && scenario->wait.is_expectation &&
        node->id == scenario->wait.node_id &&
        expectation_holds(scenario, &scenario->wait.expectation, node, text)) {
        scenario->wait.happened = true;
    }
}

/* --- nodes --- */

static void run_nodes(struct scenario *scenario)
{
    uint64_t n = script_number(scenario, script_word(scenario, 1), WORLD_NODES);

    if (scenario->has_world || n == 0) {
        script_fail(scenario, "\"nodes\" comes once and first, with 1 to %d", WORLD_NODES);
    }
    world_init(&scenario->world, 1, (uint32_t)n);
    scenario->has_world = true;
    scenario->world.hooks =
        (struct world_hooks){.user = scenario, .after = after_step, .probe_started = probe_started};
    if (script_is(scenario, 2, "vote-interval")) {
        statement_vote_interval(scenario, script_word(scenario, 3));
    }
}

static void start_one(struct scenario *scenario, uint64_t id)
{
    bool with_kept = false;
    uint64_t store_delay_ns = 0;

    for (uint32_t i = 2; i < scenario->line.n; i++) {
        if (script_is(scenario, i, "kept")) {
            with_kept = true;
        } else if (script_is(scenario, i, "store-after")) {
            store_delay_ns = script_time_ns(scenario, script_word(scenario, ++i));
        } else {
            script_fail(scenario, "start: \"%s\"?", script_word(scenario, i));
        }
    }
    world_start(&scenario->world, id, with_kept, store_delay_ns);
}

static void run_start(struct scenario *scenario)
{
    if (!script_is(scenario, 1, "all")) {
        start_one(scenario,
                  script_number(scenario, script_word(scenario, 1), scenario->world.n_nodes));
        return;
    }
    for (uint32_t id = 1; id <= scenario->world.n_nodes; id++) {
        if (!scenario->world.nodes[id].is_up) {
            start_one(scenario, id);
        }
    }
}

static void run_stop(struct scenario *scenario)
{
    uint64_t node_id = script_number(scenario, script_word(scenario, 1), scenario->world.n_nodes);

    if (node_id != 0) {
        script_judge_replays(scenario, node_id); /* its history ends with it */
    }
    world_stop(&scenario->world, node_id);
}

/* late N TIME: a loop of that node turned so much too late. */
static void run_late(struct scenario *scenario)
{
    uint64_t id = script_number(scenario, script_word(scenario, 1), scenario->world.n_nodes);
    struct engine_event event = {.kind = ENGINE_LOOP_LATE,
                                 .u.late_ns = script_time_ns(scenario, script_word(scenario, 2))};

    if (!scenario->world.nodes[id].is_up) {
        script_fail(scenario, "node %u is down", (unsigned)id);
    }
    world_step(&scenario->world, &scenario->world.nodes[id], &event);
}

static void run_store(struct scenario *scenario)
{
    bool frozen = script_is(scenario, 1, "freeze");

    if (!frozen && !script_is(scenario, 1, "thaw")) {
        script_fail(scenario, "store freeze N, or store thaw N");
    }
    world_freeze_store(&scenario->world,
                       script_number(scenario, script_word(scenario, 2), scenario->world.n_nodes),
                       frozen);
}

/* --- backends and network --- */

static uint8_t reason_of(struct scenario *scenario, const char *text)
{
    static const struct {
        const char *word;
        uint8_t reason;
    } rows[] = {{"times-out", REASON_CONNECT_TIMEOUT},
                {"refuses", REASON_CONNECT_FAILED},
                {"resets", REASON_CONNECT_INTERRUPT},
                {"hangs", REASON_RECV_RESPONSE_TIMEOUT},
                {"answers-404", REASON_HTTP_CODE_NOT_MATCH},
                {"local-fault", REASON_LOCAL_NO_PORT},
                {"is-forbidden", REASON_LOCAL_FORBIDDEN},
                {"is-silent", REASON_SILENT},
                {"echoes", REASON_ECHO},
                {"drops-echo", REASON_NO_ECHO_REPLY},
                {"refuses-datagrams", REASON_PORT_UNREACHABLE},
                {"limits-errors", REASON_ICMP_LIMITED},
                {"passes", REASON_OK}};

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (strcmp(rows[i].word, text) == 0) {
            return rows[i].reason;
        }
    }
    script_fail(scenario, "\"%s\" is nothing that a backend does", text);
}

/* Where a backend is probed by that check of its group. */
static struct endpoint check_place(struct scenario *scenario, const struct named_group *group,
                                   const struct named_backend *backend, const char *name)
{
    struct endpoint at = backend->at;

    for (uint32_t i = 0; i < group->spec.n_checks; i++) {
        const struct named_check *check = &group->spec.checks[i];

        if (strcmp(check->name, name) == 0) {
            at.port = check->check.port != 0 ? check->check.port : at.port;
            return at;
        }
    }
    script_fail(scenario, "group \"%s\" has no check \"%s\"", group->spec.name, name);
}

/* backend web/b1 times-out [after TIME] [for node N] [in turn FSF] [check NAME] */
static void run_backend(struct scenario *scenario)
{
    struct named_backend *named;
    struct truth truth = {.response_ns = WORLD_MS};
    uint64_t node_id = 0;
    const char *script = NULL;

    struct named_group *group = script_find(scenario, script_word(scenario, 1), &named);
    if (named == NULL) {
        script_fail(scenario, "which backend?");
    }
    struct endpoint at = named->at;
    truth.reason = reason_of(scenario, script_word(scenario, 2));
    truth.http_status = truth.reason == REASON_HTTP_CODE_NOT_MATCH ? 404 : 0;
    for (uint32_t i = 3; i < scenario->line.n; i += 2) {
        if (script_is(scenario, i, "after")) {
            truth.response_ns = script_time_ns(scenario, script_word(scenario, i + 1));
        } else if (script_is(scenario, i, "node")) {
            node_id =
                script_number(scenario, script_word(scenario, i + 1), scenario->world.n_nodes);
        } else if (script_is(scenario, i, "turn")) {
            script = script_word(scenario, i + 1);
        } else if (script_is(scenario, i, "check")) {
            at = check_place(scenario, group, named, script_word(scenario, i + 1));
        } else {
            script_fail(scenario, "backend: \"%s\"?", script_word(scenario, i));
        }
    }
    struct world_backend *backend = world_backend(&scenario->world, &at);
    if (script != NULL) {
        snprintf(backend->script, sizeof backend->script, "%s", script);
        memset(backend->script_at, 0, sizeof backend->script_at);
        backend->script_failure = truth;
    } else if (node_id != 0) {
        backend->truth[node_id] = truth;
    } else {
        world_set_truth(&scenario->world, &at, &truth);
    }
}

static void run_cut(struct scenario *scenario, bool cut)
{
    uint64_t n = scenario->world.n_nodes;

    if (script_is(scenario, 1, "all")) {
        for (uint64_t a = 1; a <= n; a++) {
            for (uint64_t b = 1; b <= n; b++) {
                world_cut(&scenario->world, a, b, cut);
            }
        }
        return;
    }
    uint64_t from = script_number(scenario, script_word(scenario, 1), n);
    uint64_t to = script_number(scenario, script_word(scenario, 3), n);
    world_cut(&scenario->world, from, to, cut);
    if (script_is(scenario, 2, "and")) {
        world_cut(&scenario->world, to, from, cut);
    } else if (!script_is(scenario, 2, "to")) {
        script_fail(scenario, "cut A to B (one way), cut A and B, cut all");
    }
}

static void run_network(struct scenario *scenario)
{
    for (uint32_t i = 1; i < scenario->line.n; i += 2) {
        uint64_t delay_ns = 0;
        uint32_t ppm = 0;

        if (script_is(scenario, i, "store-delay")) {
            scenario->world.store_delay_max_ns =
                script_time_ns(scenario, script_word(scenario, i + 1));
            continue;
        }
        if (script_is(scenario, i, "delay")) {
            delay_ns = script_time_ns(scenario, script_word(scenario, i + 1));
        } else {
            ppm = (uint32_t)script_number(scenario, script_word(scenario, i + 1), 100) * 10000;
        }
        for (uint32_t a = 1; a <= WORLD_NODES; a++) {
            for (uint32_t b = 1; b <= WORLD_NODES; b++) {
                struct world_link *link = &scenario->world.links[a][b];

                if (script_is(scenario, i, "delay")) {
                    link->delay_max_ns = delay_ns;
                } else if (script_is(scenario, i, "loss-percent")) {
                    link->loss_ppm = ppm;
                } else if (script_is(scenario, i, "duplicate-percent")) {
                    link->duplicate_ppm = ppm;
                } else {
                    script_fail(scenario, "network: \"%s\"?", script_word(scenario, i));
                }
            }
        }
    }
}

/* --- time --- */

static uint64_t time_of(struct scenario *scenario, const char *text)
{
    char name[16] = "";
    const char *plus = strchr(text, '+');

    if (plus == NULL) {
        return script_time_ns(scenario, text);
    }
    snprintf(name, sizeof name, "%.*s", (int)(plus - text), text);
    for (uint32_t i = 0; i < scenario->n_marks; i++) {
        if (strcmp(scenario->marks[i].name, name) == 0) {
            return scenario->marks[i].at_ns + script_time_ns(scenario, plus + 1);
        }
    }
    script_fail(scenario, "there is no mark \"%s\"", name);
}

static void run_at(struct scenario *scenario)
{
    uint64_t at_ns = time_of(scenario, script_word(scenario, 1));

    if (at_ns < scenario->world.now_ns) {
        script_fail(scenario, "%s is over: it is %.3f s", script_word(scenario, 1),
                    (double)scenario->world.now_ns / 1e9);
    }
    world_run(&scenario->world, at_ns);
}

static void run_wait(struct scenario *scenario)
{
    world_run(&scenario->world,
              scenario->world.now_ns + script_time_ns(scenario, script_word(scenario, 1)));
}

static void set_mark(struct scenario *scenario, const char *name)
{
    for (uint32_t i = 0; i < scenario->n_marks; i++) {
        if (strcmp(scenario->marks[i].name, name) == 0) {
            scenario->marks[i].at_ns = scenario->world.now_ns;
            return;
        }
    }
    if (scenario->n_marks == SCRIPT_MARKS) {
        script_fail(scenario, "more than %d marks", SCRIPT_MARKS);
    }
    struct mark *mark = &scenario->marks[scenario->n_marks++];
    snprintf(mark->name, sizeof mark->name, "%s", name);
    mark->at_ns = scenario->world.now_ns;
}

/* Event by event, so that the mark is the very moment. */
static void run_until_it_happens(struct scenario *scenario)
{
    uint64_t limit_ns = scenario->world.now_ns + WAIT_LIMIT_NS;
    struct heap_item item;

    while (!scenario->wait.happened) {
        if (!heap_peek(&scenario->world.queue, &item) || item.key > limit_ns) {
            script_fail(scenario, "it did not happen within an hour");
        }
        world_run(&scenario->world, item.key);
    }
    scenario->wait.is_set = false;
}

/* until NAME = node N starts a failing|passing probe of web/b1
 * until NAME = node N starts a failing|passing probe of web/b1 check NAME
 * until NAME = node N web/b1 unhealthy ... */
static void run_until(struct scenario *scenario)
{
    char name[16];
    struct named_backend *backend;

    snprintf(name, sizeof name, "%s", script_word(scenario, 1));
    memset(&scenario->wait, 0, sizeof scenario->wait);
    scenario->wait.node_id =
        script_number(scenario, script_word(scenario, 4), scenario->world.n_nodes);
    if (script_is(scenario, 5, "starts")) {
        struct named_group *group = script_find(scenario, script_word(scenario, 10), &backend);
        scenario->wait.at = script_is(scenario, 11, "check")
                                ? check_place(scenario, group, backend, script_word(scenario, 12))
                                : backend->at;
        scenario->wait.probe_class = script_is(scenario, 7, "failing") ? PROBE_FAIL : PROBE_PASS;
    } else {
        scenario->wait.is_expectation = true;
        expectation_parse(scenario, 3, &scenario->wait.expectation);
        scenario->n_expectations++;
    }
    scenario->wait.is_set = true;
    run_until_it_happens(scenario);
    set_mark(scenario, name);
}

/* --- expectations --- */

/* expect no verdict change since MARK [on web/b1] */
static void expect_no_change(struct scenario *scenario)
{
    char text[32];
    struct named_backend *backend = NULL;

    snprintf(text, sizeof text, "%s+0s", script_word(scenario, 5));
    uint64_t since_ns = time_of(scenario, text);
    if (script_is(scenario, 6, "on")) {
        script_find(scenario, script_word(scenario, 7), &backend);
    }
    scenario->n_expectations++;
    for (uint32_t i = 0; i < scenario->n_changes; i++) {
        if (scenario->changes[i].at_ns >= since_ns &&
            (backend == NULL || endpoint_compare(&backend->at, &scenario->changes[i].at) == 0) &&
            strcmp(scenario->changes[i].group, "churn") != 0) {
            script_fail(scenario, "node %u changed its verdict at %.9f s",
                        (unsigned)scenario->changes[i].node_id,
                        (double)scenario->changes[i].at_ns / 1e9);
        }
    }
}

/* expect at most N verdict changes since MARK of web/b1: on each node */
static void expect_few_changes(struct scenario *scenario)
{
    char text[32];
    struct named_backend *backend = NULL;
    uint64_t n_max = script_number(scenario, script_word(scenario, 3), 1000);
    uint32_t n[WORLD_NODES + 1] = {0};

    snprintf(text, sizeof text, "%s+0s", script_word(scenario, 7));
    uint64_t since_ns = time_of(scenario, text);
    script_find(scenario, script_word(scenario, 9), &backend);
    scenario->n_expectations++;
    for (uint32_t i = 0; backend != NULL && i < scenario->n_changes; i++) {
        uint64_t node_id = scenario->changes[i].node_id;

        if (scenario->changes[i].at_ns >= since_ns &&
            endpoint_compare(&backend->at, &scenario->changes[i].at) == 0 && ++n[node_id] > n_max) {
            script_fail(scenario, "node %u changed its verdict more often: not as expected",
                        (unsigned)node_id);
        }
    }
}

/* expect counter NAME N: on each node that is up */
static void expect_counter(struct scenario *scenario)
{
    const char *name = script_word(scenario, 2);
    uint64_t wanted = script_number(scenario, script_word(scenario, 3), 1000000);

    scenario->n_expectations++;
    for (uint32_t id = 1; id <= scenario->world.n_nodes; id++) {
        const struct engine *engine = scenario->world.nodes[id].engine;
        uint64_t is = UINT64_MAX;

        if (engine == NULL) {
            continue;
        }
#define COUNTER_ROW(field, help)                  \
    if (strcmp(name, #field) == 0) {              \
        is = engine_view_counters(engine)->field; \
    }
        ENGINE_COUNTERS(COUNTER_ROW)
#undef COUNTER_ROW
        if (is != wanted) {
            script_fail(scenario, "counter %s of node %u is %lld: not as expected", name, id,
                        (long long)is);
        }
    }
}

/* expect one probe at a time: as many probes of node N since the start as MIN..MAX */
static void expect_probes(struct scenario *scenario)
{
    uint64_t node_id = script_number(scenario, script_word(scenario, 3), scenario->world.n_nodes);
    uint64_t min = script_number(scenario, script_word(scenario, 4), 1000000);
    uint64_t max = script_number(scenario, script_word(scenario, 5), 1000000);
    uint64_t n = scenario->world.nodes[node_id].n_probes;

    scenario->n_expectations++;
    if (n < min || n > max) {
        script_fail(scenario, "node %u made %u probes: not as expected", (unsigned)node_id,
                    (unsigned)n);
    }
}

static void run_expect(struct scenario *scenario)
{
    struct expectation expectation;

    if (script_is(scenario, 1, "no")) {
        expect_no_change(scenario);
    } else if (script_is(scenario, 1, "at")) {
        expect_few_changes(scenario);
    } else if (script_is(scenario, 1, "counter")) {
        expect_counter(scenario);
    } else if (script_is(scenario, 1, "probes")) {
        expect_probes(scenario);
    } else {
        expectation_parse(scenario, 1, &expectation);
        expectation_check(scenario, &expectation);
    }
}

static void run_always(struct scenario *scenario)
{
    if (script_is(scenario, 1, "end")) {
        scenario->n_always = 0;
        return;
    }
    if (scenario->n_always == SCRIPT_ALWAYS) {
        script_fail(scenario, "more than %d at a time", SCRIPT_ALWAYS);
    }
    expectation_parse(scenario, 1, &scenario->always[scenario->n_always++]);
}

/* flows node N COUNT: its data plane has them open to each backend that comes to its end */
static void run_flows(struct scenario *scenario)
{
    struct world *world = &scenario->world;
    uint64_t node_id = script_number(scenario, script_word(scenario, 2), world->n_nodes);
    uint64_t n_flows = script_number(scenario, script_word(scenario, 3), 1000000);

    if (node_id == 0 || !world->nodes[node_id].is_up) {
        script_fail(scenario, "flows: which node?");
    }
    world_set_flows(world, &world->nodes[node_id], n_flows);
}

static void run_vote_interval(struct scenario *scenario)
{
    statement_vote_interval(scenario, script_word(scenario, 1));
}

/* probe-budget N address N: of each node, from now on; 0 = without */
static void run_probe_budget(struct scenario *scenario)
{
    struct world *world = &scenario->world;

    if (!script_is(scenario, 2, "address")) {
        script_fail(scenario, "probe-budget: N address N");
    }
    world->probe_rates = (struct probe_rates){
        .per_node =
            (uint32_t)script_number(scenario, script_word(scenario, 1), PROBE_BUDGET_NODE_MAX),
        .per_address =
            (uint32_t)script_number(scenario, script_word(scenario, 3), PROBE_BUDGET_ADDRESS_MAX)};
    for (uint32_t id = 1; id <= world->n_nodes; id++) {
        if (world->nodes[id].is_up) {
            probe_budget_set(&world->nodes[id].schedule.budget, world->probe_rates);
        }
    }
}

static void run_mark(struct scenario *scenario)
{
    set_mark(scenario, script_word(scenario, 1));
}

static void run_cut_off(struct scenario *scenario)
{
    run_cut(scenario, true);
}

static void run_join(struct scenario *scenario)
{
    run_cut(scenario, false);
}

void statement_run(struct scenario *scenario)
{
    static const struct {
        const char *word;
        void (*run)(struct scenario *scenario);
    } rows[] = {
        {"nodes", run_nodes},
        {"start", run_start},
        {"stop", run_stop},
        {"late", run_late},
        {"store", run_store},
        {"group", statement_group},
        {"weight", statement_weight},
        {"admin", statement_admin},
        {"hold", statement_hold},
        {"churn", statement_churn},
        {"backend", run_backend},
        {"cut", run_cut_off},
        {"join", run_join},
        {"network", run_network},
        {"at", run_at},
        {"wait", run_wait},
        {"until", run_until},
        {"vote-interval", run_vote_interval},
        {"probe-budget", run_probe_budget},
        {"zones", statement_zones},
        {"mark", run_mark},
        {"expect", run_expect},
        {"always", run_always},
        {"flows", run_flows},
        {"golden", statement_golden},
        {"ask", statement_ask},
    };

    if (!scenario->has_world && strcmp(script_word(scenario, 0), "nodes") != 0) {
        script_fail(scenario, "a scenario begins with \"nodes N\"");
    }
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (strcmp(rows[i].word, script_word(scenario, 0)) == 0) {
            rows[i].run(scenario);
            return;
        }
    }
    script_fail(scenario, "\"%s\" is no statement", script_word(scenario, 0));
}
