/* What a playing costs, and how long its copy keeps the thread that counts votes: a group of 1000
 * backends that went down and came back ten times, which is more than one replay plays; then one
 * whose check was changed so often that most of its targets are not kept any more.
 *
 * usage: bench_replay     exits 1 when the replay is not what happened, or takes ten times what it
 *                         should */
#include <stdio.h>
#include <stdlib.h>

#include "agent/core/engine.h"
#include "agent/core/replay.h"
#include "common/base/clock.h"
#include "common/base/units.h"
#include "tests/lib/big_catalog.h"
#include "tests/lib/catalog_builder.h"

#define ROUNDS 20
#define CHECK_CHANGES 60
#define REPLAY_MS 200
#define COPY_MS 15 /* on the thread that counts votes */
#define V_MS 1000

static uint64_t now_ns = UINT64_C(1000000000000);

static void step(struct engine *engine, struct engine_event *event, struct engine_actions *actions)
{
    event->now_ns = now_ns;
    event->boot_ns = now_ns;
    if (engine_step(engine, event, actions) != 0) {
        abort();
    }
}

/* Both peers change their minds about each backend, one after the other. */
static void flap(struct engine *engine, struct engine_actions *actions)
{
    const struct catalog_group *group = catalog_group_find(engine_catalog(engine), "group0");
    uint64_t sequence = 1;

    for (unsigned round = 0; round < ROUNDS; round++) {
        bool fails = round % 2 == 0;

        now_ns += 100 * NS_PER_MS;
        for (uint32_t i = 0; i < 2 * group->n_backends; i++) {
            struct vote_change change = {
                .epoch = 1,
                .sequence = sequence++,
                .target = group->backends[i / 2].target,
                .opinion = fails ? OPINION_FAIL : OPINION_PASS,
                .reason = fails ? REASON_CONNECT_TIMEOUT : REASON_OK,
            };
            step(engine,
                 &(struct engine_event){
                     .kind = ENGINE_VOTE_CHANGE, .peer = 2 + i % 2, .u.change = &change},
                 actions);
        }
    }
}

static bool measure(const struct engine *engine)
{
    struct replay_question question = {.group = "group0"};
    struct replay_answer answer;
    struct errmsg err;
    struct replay *replay;
    uint64_t began_ns = clock_process_cpu_ns();

    if (replay_open(engine, &question, &replay, &err) != 0) {
        abort();
    }
    double copy_ms = (double)(clock_process_cpu_ns() - began_ns) / 1e6;
    if (replay_play(replay, &answer, &err) != 0) {
        abort();
    }
    double ms = (double)(clock_process_cpu_ns() - began_ns) / 1e6;
    replay_close(replay);
    printf("a replay of a group of 1000: %.1f ms, of them %.1f ms on the loop; %u changes of "
           "verdicts, work %llu, %s\n",
           ms, copy_ms, answer.n_changes, (unsigned long long)answer.work,
           answer.is_exact ? "as it happened" : "not as it happened");
    return answer.is_exact && ms < 10 * REPLAY_MS && copy_ms < 10 * COPY_MS;
}

static void adopt(struct engine *engine, struct engine_actions *actions,
                  struct catalog_state *state)
{
    struct catalog *catalog = catalog_state_catalog(state);

    now_ns += NS_PER_SECOND;
    step(engine, &(struct engine_event){.kind = ENGINE_CATALOG, .u.catalog = catalog}, actions);
    catalog_unref(catalog);
}

/* The group as it is, with another timeout. */
static void change_check(struct catalog_state *state, uint32_t timeout_ms)
{
    struct catalog *catalog = catalog_state_catalog(state);
    const struct catalog_group *from = catalog_group_find(catalog, "group0");
    struct server_group group = from->spec;
    struct command command = {0};

    group.n_backends = from->n_backends;
    group.backends = calloc(from->n_backends, sizeof *group.backends);
    if (group.backends == NULL) {
        abort();
    }
    for (uint32_t i = 0; i < from->n_backends; i++) {
        group.backends[i] = catalog_backend_value(&from->backends[i]);
    }
    group.check.timeout_ms = timeout_ms;
    build_put_group(&command, &group);
    build_commit(state, &command);
    server_group_close(&group);
    catalog_unref(catalog);
}

int main(void)
{
    const struct big_catalog size = {.n_nodes = 3,
                                     .n_targets = 10000,
                                     .n_each = 1000,
                                     .vote_interval_ms = V_MS,
                                     .interval_ms = 10000};
    const struct engine_config config = {.node_id = 1, .epoch = 1, .seed = 1};
    struct engine *engine = engine_new(&config, now_ns);
    struct engine_actions *actions = malloc(sizeof *actions);
    struct catalog_state *state = big_catalog_state(&size);

    if (engine == NULL || actions == NULL) {
        abort();
    }
    engine_actions_init(actions);
    adopt(engine, actions, state);
    flap(engine, actions);
    bool is_good = measure(engine);
    for (uint32_t i = 0; i < CHECK_CHANGES; i++) {
        change_check(state, 2000 + i);
        adopt(engine, actions, state);
    }
    is_good = measure(engine) && is_good;
    catalog_state_free(state);
    engine_free(engine);
    engine_actions_close(actions);
    free(actions);
    return is_good ? 0 : 1;
}
