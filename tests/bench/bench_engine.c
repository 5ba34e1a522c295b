/* What a step costs at the planned size: 100,000 backends in 100 groups, three nodes.
 *
 * usage: bench_engine */
#include <stdio.h>
#include <stdlib.h>

#include "agent/core/engine.h"
#include "agent/core/engine_view.h"
#include "common/base/clock.h"
#include "tests/lib/catalog_builder.h"

#define GROUPS 100
#define BACKENDS 1000
#define MS 1e6

static uint64_t now_ns = UINT64_C(1000000000000);

static struct catalog *make_catalog(struct catalog_state *state)
{
    for (unsigned g = 0; g < GROUPS; g++) {
        struct command command = {0};
        struct server_group group;
        char name[16];

        snprintf(name, sizeof name, "group%u", g);
        build_group(&group, name, "");
        free(group.backends);
        group.backends = calloc(BACKENDS, sizeof *group.backends);
        group.n_backends = BACKENDS;
        for (unsigned b = 0; group.backends != NULL && b < BACKENDS; b++) {
            struct backend *backend = &group.backends[b];

            backend->weight = 100;
            backend->admin_state = ADMIN_ENABLED;
            backend->at.addr.family = ADDR_IPV4;
            backend->at.addr.bytes[0] = 10;
            backend->at.addr.bytes[1] = (uint8_t)g;
            backend->at.addr.bytes[2] = (uint8_t)(b / 250);
            backend->at.addr.bytes[3] = (uint8_t)(b % 250 + 1);
            backend->at.port = 80;
        }
        group.rule.down = group.rule.up = (struct rule_column){.kind = RULE_MAJORITY};
        server_group_sort_backends(&group);
        build_put_group(&command, &group);
        server_group_close(&group);
        build_commit(state, &command);
    }
    return catalog_state_catalog(state);
}

static void step(struct engine *engine, struct engine_event *event, struct engine_actions *actions)
{
    event->now_ns = now_ns;
    event->boot_ns = now_ns;
    if (engine_step(engine, event, actions) != 0) {
        abort();
    }
}

static void say(const char *what, uint64_t began_ns, unsigned n)
{
    printf("%-44s %10.3f ms\n", what, (double)(clock_monotonic_ns() - began_ns) / MS / n);
}

static void results(struct engine *engine, struct engine_actions *actions, enum probe_reason reason,
                    const char *what)
{
    uint32_t n = catalog_n_slots(engine_catalog(engine));
    uint64_t began_ns = clock_monotonic_ns();

    for (uint32_t slot = 0; slot < n; slot++) {
        struct probe_result result = {.id = catalog_target_at(engine_catalog(engine), slot)->id,
                                      .probe_class = (uint8_t)probe_reason_class(reason),
                                      .reason = (uint8_t)reason,
                                      .start_ns = now_ns - 1000,
                                      .end_ns = now_ns};
        step(engine, &(struct engine_event){.kind = ENGINE_PROBE_RESULT, .u.result = &result},
             actions);
    }
    say(what, began_ns, n);
}

/* One vector of `from` into `to`, and what it makes of it. */
static void exchange(const struct engine_actions *from, struct engine *to, uint64_t peer,
                     struct engine_actions *actions, const char *what)
{
    uint64_t began_ns = clock_monotonic_ns();

    for (uint16_t i = 0; i < from->n_chunks; i++) {
        step(to,
             &(struct engine_event){
                 .kind = ENGINE_VOTE_CHUNK, .peer = peer, .u.chunk = &from->chunks[i]},
             actions);
    }
    say(what, began_ns, 1);
}

static void run(struct engine *engines[3], struct engine_actions *actions[3],
                struct catalog_state *state)
{
    struct engine_event tick = {.kind = ENGINE_TICK};
    struct catalog *catalog = make_catalog(state);
    uint64_t began_ns = clock_monotonic_ns();

    for (unsigned i = 0; i < 3; i++) {
        step(engines[i], &(struct engine_event){.kind = ENGINE_CATALOG, .u.catalog = catalog},
             actions[i]);
    }
    say("first catalog", began_ns, 3);
    catalog_unref(catalog);
    for (unsigned round = 0; round < 2; round++) {
        for (unsigned i = 1; i < 3; i++) {
            results(engines[i], actions[i], REASON_OK, "one result that passes");
        }
    }
    now_ns += UINT64_C(1000000000);
    began_ns = clock_monotonic_ns();
    for (unsigned i = 1; i < 3; i++) {
        step(engines[i], &tick, actions[i]);
    }
    say("making a vector", began_ns, 2);
    exchange(actions[1], engines[0], 2, actions[0], "a first vector of a peer");
    exchange(actions[2], engines[0], 3, actions[0], "a second one: all verdicts come");
    now_ns += UINT64_C(1000000000);
    step(engines[1], &tick, actions[1]);
    exchange(actions[1], engines[0], 2, actions[0], "a vector without news");
    step(engines[0], &tick, actions[0]);
    began_ns = clock_monotonic_ns();
    for (unsigned i = 0; i < 1000; i++) {
        step(engines[0], &tick, actions[0]);
    }
    say("a tick with nothing to do", began_ns, 1000);

    struct command command = {0};
    build_weight(&command, "group7", "10.7.0.1:80", 50);
    build_commit(state, &command);
    catalog = catalog_state_catalog(state);
    began_ns = clock_monotonic_ns();
    step(engines[0], &(struct engine_event){.kind = ENGINE_CATALOG, .u.catalog = catalog},
         actions[0]);
    say("a catalog with one weight changed", began_ns, 1);
    catalog_unref(catalog);

    now_ns += UINT64_C(4000000000);
    began_ns = clock_monotonic_ns();
    step(engines[0], &tick, actions[0]);
    say("all votes of both peers expire", began_ns, 1);
}

int main(void)
{
    struct engine *engines[3];
    struct engine_actions *actions[3];
    struct catalog_state *state = build_state(3);

    for (unsigned i = 0; i < 3; i++) {
        struct engine_config config = {.node_id = i + 1, .epoch = 1, .seed = i};

        engines[i] = engine_new(&config, now_ns);
        actions[i] = malloc(sizeof *actions[i]);
        if (engines[i] == NULL || actions[i] == NULL) {
            abort();
        }
        engine_actions_init(actions[i]);
    }
    run(engines, actions, state);
    for (unsigned i = 0; i < 3; i++) {
        engine_free(engines[i]);
        engine_actions_close(actions[i]);
        free(actions[i]);
    }
    catalog_state_free(state);
    return 0;
}
