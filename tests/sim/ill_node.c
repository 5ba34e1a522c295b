/* One node of a healthy cluster falls ill, in five ways: ill_node [--fault NAME] [--first N]
 * [--seeds N] [--trace].
 *
 * Each seed is a cluster of 3 to 7 nodes that probe the same healthy backends in groups of five
 * rules; `any` and `local` among them, for which one wrong vote that counts is enough. Then node 1
 * is isolated (it hears nobody, and all its probes time out), paused, starved, left without
 * descriptors, or loses three of ten packets, and is well again later. No node may ever call a
 * backend unhealthy. Afterwards all must trust themselves, and a backend that really dies must go
 * down everywhere within its window. Sentinels are probed here as the agent does it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/str.h"
#include "tests/lib/catalog_builder.h"
#include "tests/lib/engine_lines.h"
#include "tests/lib/world.h"

#define ILL 1
#define NODES_MAX 7
#define BACKENDS_MAX 10
#define N_RULES 5
#define LOSS_PPM 300000                /* of packets, each way */
#define LOST_PPM (1000000 - 700 * 700) /* of exchanges of two packets: 51 % */
#define TURN_NS (100 * WORLD_MS)
#define SENTINEL_PAUSE_NS (200 * WORLD_MS) /* as agent/agent_doubt.c */
#define SENTINEL_TIMEOUT_NS (300 * WORLD_MS)
#define HEAL_NS (120 * WORLD_SECOND)

enum fault {
    FAULT_ISOLATION,
    FAULT_PAUSE,
    FAULT_STARVATION,
    FAULT_EXHAUSTION,
    FAULT_LOSS,
    N_FAULTS
};
static const char *const fault_words[N_FAULTS] = {"isolation", "pause", "starvation", "exhaustion",
                                                  "loss"};

struct sentinel {
    uint64_t at_ns; /* when it starts, or times out */
    bool is_lost;
};

struct story {
    uint64_t seed;
    enum fault fault;
    bool trace;
    bool is_ill;
    struct prng prng;
    struct world world;
    uint32_t n_backends;
    uint64_t timeout_ms, interval_ms, vote_interval_ms;
    uint32_t healthy_threshold, unhealthy_threshold;
    struct sentinel sentinels[NODES_MAX + 1][NODES_MAX + 1];
    uint64_t n_doubts; /* of node 1 */
    bool may_go_down;  /* at the end, when one backend really dies */
    bool failed;
    char failure[256];
};

static uint64_t below(struct story *story, uint64_t n)
{
    return prng_below(&story->prng, n);
}

static struct endpoint backend_at(unsigned i)
{
    char text[ENDPOINT_TEXT_BYTES];

    snprintf(text, sizeof text, "10.0.0.%u:80", i + 1);
    return build_endpoint(text);
}

/* --- what node 1 meets while it is ill --- */

/* A SYN is repeated after 1 s and 3 s. */
static bool is_probe_lost(struct story *story)
{
    unsigned n_syn = story->timeout_ms > 3000 ? 3 : story->timeout_ms > 1000 ? 2 : 1;

    for (unsigned i = 0; i < n_syn; i++) {
        if (!prng_chance(&story->prng, LOST_PPM)) {
            return false;
        }
    }
    return true;
}

static struct truth next_truth(struct story *story)
{
    struct truth truth = {.reason = REASON_OK, .response_ns = WORLD_MS};

    if (!story->is_ill) {
        return truth;
    }
    if (story->fault == FAULT_ISOLATION || (story->fault == FAULT_LOSS && is_probe_lost(story))) {
        truth.reason = REASON_CONNECT_TIMEOUT;
    } else if (story->fault == FAULT_EXHAUSTION && below(story, 10) != 0) {
        truth.reason = REASON_LOCAL_NO_DESCRIPTOR;
    }
    return truth;
}

static void draw_truths(struct story *story)
{
    for (unsigned i = 0; i < story->n_backends; i++) {
        struct endpoint at = backend_at(i);

        world_backend(&story->world, &at)->truth[ILL] = next_truth(story);
    }
}

/* Each probe has an outcome of its own: the next one's is drawn when one starts. */
static void probe_started(void *user, struct world *world, struct world_node *node,
                          struct target_id id, const struct truth *truth)
{
    struct story *story = user;
    const struct catalog_target *target = catalog_target_at(engine_catalog(node->engine), id.slot);

    (void)truth;
    if (node->id == ILL && story->is_ill) {
        world_backend(world, &target->to)->truth[ILL] = next_truth(story);
    }
}

static void set_links(struct story *story)
{
    for (uint32_t peer = 2; peer <= story->world.n_nodes; peer++) {
        struct world_link *links[] = {&story->world.links[ILL][peer],
                                      &story->world.links[peer][ILL]};

        for (unsigned i = 0; i < 2; i++) {
            links[i]->is_cut = story->is_ill && story->fault == FAULT_ISOLATION;
            links[i]->loss_ppm = story->is_ill && story->fault == FAULT_LOSS ? LOSS_PPM : 0;
        }
    }
}

static void set_ill(struct story *story, bool is_ill)
{
    story->is_ill = is_ill;
    set_links(story);
    draw_truths(story);
    if (story->trace) {
        printf("%12.6f s  node 1 is %s\n", (double)story->world.now_ns / 1e9,
               is_ill ? fault_words[story->fault] : "well");
    }
}

/* --- sentinels --- */

static void tell_sentinel(struct story *story, struct world_node *node, uint64_t of,
                          enum probe_reason reason)
{
    const struct sentinel_result result = {.node_id = of,
                                           .kinds = 1 << CHECK_TYPE_TCP | 1 << CHECK_TYPE_HTTP,
                                           .reason = (uint8_t)reason,
                                           .end_ns = world_local_ns(&story->world, node)};
    struct engine_event event = {.kind = ENGINE_SENTINEL, .u.sentinel = &result};

    world_step(&story->world, node, &event);
}

static bool is_lost(struct story *story, uint32_t from, uint32_t to)
{
    const struct world_link *there = &story->world.links[from][to];
    const struct world_link *back = &story->world.links[to][from];

    return from != to && (there->is_cut || back->is_cut ||
                          (there->loss_ppm > 0 && prng_chance(&story->prng, LOST_PPM)));
}

static void turn_sentinel(struct story *story, struct world_node *node, uint32_t of)
{
    struct sentinel *sentinel = &story->sentinels[node->id][of];

    if (story->world.now_ns < sentinel->at_ns) {
        return;
    }
    if (!sentinel->is_lost && is_lost(story, (uint32_t)node->id, of)) {
        sentinel->is_lost = true;
        sentinel->at_ns = story->world.now_ns + SENTINEL_TIMEOUT_NS;
        return;
    }
    bool has_none = story->is_ill && story->fault == FAULT_EXHAUSTION && node->id == ILL;
    tell_sentinel(story, node, of,
                  has_none            ? REASON_LOCAL_NO_DESCRIPTOR
                  : sentinel->is_lost ? REASON_CONNECT_TIMEOUT
                                      : REASON_OK);
    sentinel->is_lost = false;
    sentinel->at_ns = story->world.now_ns + SENTINEL_PAUSE_NS;
}

static void turn_sentinels(struct story *story)
{
    uint32_t n = story->world.n_nodes;

    for (uint32_t id = 1; id <= n; id++) {
        struct world_node *node = &story->world.nodes[id];

        if (node->stalled_until_ns > story->world.now_ns || engine_catalog(node->engine) == NULL) {
            continue;
        }
        turn_sentinel(story, node, id);
        for (uint32_t i = 1; i < n && i <= SENTINEL_PEERS; i++) {
            turn_sentinel(story, node, (id - 1 + i) % n + 1);
        }
    }
}

/* --- the judge --- */

static void fail(struct story *story, const char *what, uint64_t node, uint64_t number)
{
    if (!story->failed) {
        story->failed = true;
        snprintf(story->failure, sizeof story->failure, "at %.3f s node %llu %s %llu",
                 (double)story->world.now_ns / 1e9, (unsigned long long)node, what,
                 (unsigned long long)number);
    }
}

static void after_step(void *user, struct world *world, struct world_node *node,
                       const struct engine_event *cause)
{
    struct story *story = user;

    (void)world;
    (void)cause;
    for (uint32_t i = 0; i < node->actions.n_events; i++) {
        const struct event *event = engine_event_at(node->engine, node->actions.first_event + i);

        if (event->kind == EVENT_VERDICT_CHANGED && event->to == HEALTH_UNHEALTHY &&
            !story->may_go_down) {
            fail(story, "calls a healthy backend unhealthy in a group of rule", node->id,
                 (uint64_t)(event->group[1] - '0'));
        }
        if (event->kind == EVENT_SELF_DOUBT) {
            story->n_doubts += node->id == ILL && event->from == 0;
            if (story->trace) {
                char causes[DOUBT_TEXT_BYTES];

                printf("%12.6f s  node %llu suspects %#x: %s\n", (double)world->now_ns / 1e9,
                       (unsigned long long)node->id, event->to,
                       doubt_causes_format(event->doubt_causes, causes));
            }
        }
    }
}

/* All nodes trust themselves, and hold every backend for what it is. */
static bool is_as(struct story *story, uint8_t health_state)
{
    struct backend_line lines[BACKENDS_MAX];
    struct doubt_view doubt;
    char name[8];

    for (uint32_t id = 1; id <= story->world.n_nodes; id++) {
        const struct world_node *node = &story->world.nodes[id];
        uint64_t now_ns = world_local_ns(&story->world, node);

        engine_view_doubt(node->engine, now_ns, &doubt);
        if (doubt.suspect_mask != 0) {
            return false;
        }
        for (unsigned rule = 0; rule < N_RULES; rule++) {
            snprintf(name, sizeof name, "g%u", rule);
            size_t n = engine_view_lines(node->engine, name, lines, BACKENDS_MAX);

            if (n != story->n_backends || lines[0].health_state != health_state) {
                return false;
            }
            for (size_t i = 1; i < n; i++) {
                if (lines[i].health_state != HEALTH_HEALTHY) {
                    return false;
                }
            }
        }
    }
    return true;
}

/* --- the story --- */

static void run_for(struct story *story, uint64_t ns)
{
    uint64_t until_ns = story->world.now_ns + ns;

    while (story->world.now_ns < until_ns && !story->failed) {
        uint64_t left_ns = until_ns - story->world.now_ns;

        world_run(&story->world, story->world.now_ns + (left_ns < TURN_NS ? left_ns : TURN_NS));
        turn_sentinels(story);
    }
}

static void put_groups(struct story *story)
{
    static const struct rule_column rules[N_RULES] = {{.kind = RULE_MAJORITY},
                                                      {.kind = RULE_ANY},
                                                      {.kind = RULE_LOCAL},
                                                      {.kind = RULE_PERCENT, .value = 30},
                                                      {.kind = RULE_AT_LEAST, .value = 1}};
    char endpoints[BACKENDS_MAX * ENDPOINT_TEXT_BYTES] = "";

    for (unsigned i = 0; i < story->n_backends; i++) {
        size_t n = strlen(endpoints);

        snprintf(endpoints + n, sizeof endpoints - n, "10.0.0.%u:80 ", i + 1);
    }
    for (unsigned i = 0; i < N_RULES; i++) {
        struct command command = {0};
        struct server_group group;
        char name[8];

        snprintf(name, sizeof name, "g%u", i);
        build_group(&group, name, endpoints);
        group.rule.down = group.rule.up = rules[i];
        group.rule.below_quorum = BELOW_QUORUM_HOLD;
        group.check.timeout_ms = (uint32_t)story->timeout_ms;
        group.check.interval_ms = (uint32_t)story->interval_ms;
        group.check.healthy_threshold = (uint8_t)story->healthy_threshold;
        group.check.unhealthy_threshold = (uint8_t)story->unhealthy_threshold;
        build_put_group(&command, &group);
        if (world_commit(&story->world, &command, NULL) != 0) {
            abort();
        }
        server_group_close(&group);
    }
}

static void begin(struct story *story)
{
    static const uint64_t timeouts_ms[] = {1000, 2000, 5000};
    static const uint64_t intervals_ms[] = {200, 500, 2000};
    static const uint32_t vote_intervals_ms[] = {200, 500, 1000};
    struct command command = {0};
    bool is_loss = story->fault == FAULT_LOSS;

    prng_init(&story->prng, story->seed * UINT64_C(0x9e3779b97f4a7c15) + story->fault);
    world_init(&story->world, story->seed, 3 + (uint32_t)below(story, NODES_MAX - 2));
    story->world.hooks =
        (struct world_hooks){.user = story, .after = after_step, .probe_started = probe_started};
    story->n_backends = 4 + (uint32_t)below(story, BACKENDS_MAX - 3);
    story->timeout_ms = timeouts_ms[below(story, 3)];
    story->interval_ms = intervals_ms[below(story, 3)];
    story->vote_interval_ms = vote_intervals_ms[below(story, 3)];
    story->healthy_threshold = 1 + (uint32_t)below(story, 3);
    story->unhealthy_threshold = (is_loss ? 3 : 2) + (uint32_t)below(story, 2);

    struct cluster_settings settings =
        *catalog_settings(story->world.history[story->world.revision]);
    settings.vote_interval_ms = (uint32_t)story->vote_interval_ms;
    build_settings(&command, &settings);
    if (world_commit(&story->world, &command, NULL) != 0) {
        abort();
    }
    put_groups(story);
    for (uint32_t id = 1; id <= story->world.n_nodes; id++) {
        world_start(&story->world, id, false, 0);
    }
}

/* 5 % of a processor: 5 ms of each 100 ms. */
static void starve(struct story *story, uint64_t ns)
{
    uint64_t until_ns = story->world.now_ns + ns;

    while (story->world.now_ns < until_ns && !story->failed) {
        world_stall(&story->world, ILL, 95 * WORLD_MS);
        run_for(story, 100 * WORLD_MS);
    }
}

static void fall_ill(struct story *story)
{
    uint64_t ns = (5 + below(story, 56)) * WORLD_SECOND;

    run_for(story, below(story, WORLD_SECOND)); /* at any moment of a probe */
    set_ill(story, true);
    switch (story->fault) {
    case FAULT_ISOLATION:
    case FAULT_EXHAUSTION:
    case FAULT_LOSS:
        run_for(story, ns);
        break;
    case FAULT_PAUSE:
        world_stall(&story->world, ILL, (1 + below(story, 60)) * WORLD_SECOND);
        run_for(story, 61 * WORLD_SECOND);
        break;
    case FAULT_STARVATION:
        starve(story, ns);
        break;
    case N_FAULTS:
        abort();
    }
    set_ill(story, false);
}

static void wait_as(struct story *story, uint8_t health_state, uint64_t limit_ns, const char *what)
{
    uint64_t until_ns = story->world.now_ns + limit_ns;

    while (!story->failed && !is_as(story, health_state)) {
        if (story->world.now_ns >= until_ns) {
            fail(story, what, 0, limit_ns / WORLD_MS);
        }
        run_for(story, TURN_NS);
    }
}

/* The first backend dies for all: within its window, a cycle until the first failing probe begins,
 * and 2 V + 100 ms, it is down on every node. */
static void kill_one(struct story *story)
{
    struct endpoint at = backend_at(0);
    struct truth truth = {.reason = REASON_CONNECT_TIMEOUT};
    uint64_t cycle_ms = story->timeout_ms + story->interval_ms;
    uint64_t limit_ms =
        cycle_ms * (story->unhealthy_threshold + 1) + 2 * story->vote_interval_ms + 100;

    story->may_go_down = true;
    world_set_truth(&story->world, &at, &truth);
    wait_as(story, HEALTH_UNHEALTHY, limit_ms * WORLD_MS + TURN_NS,
            "of the cluster does not see a dead backend within ms");
}

static bool run_seed(uint64_t seed, enum fault fault, bool trace, uint64_t *n_doubted)
{
    static struct story story; /* too big for a stack */

    memset(&story, 0, sizeof story);
    story.seed = seed;
    story.fault = fault;
    story.trace = trace;
    begin(&story);
    wait_as(&story, HEALTH_HEALTHY, HEAL_NS, "of the cluster is not well at the start after ms");
    run_for(&story, 5 * WORLD_SECOND);
    if (!story.failed) {
        fall_ill(&story);
        wait_as(&story, HEALTH_HEALTHY, HEAL_NS, "of the cluster is not well again after ms");
    }
    run_for(&story, 15 * WORLD_SECOND); /* what its sentinels said of the fault is forgotten */
    wait_as(&story, HEALTH_HEALTHY, HEAL_NS, "of the cluster does not stay well after ms");
    if (!story.failed) {
        kill_one(&story);
    }
    *n_doubted += story.n_doubts > 0;
    world_close(&story.world);
    if (story.failed) {
        printf(
            "%s, seed %llu: %s\nrepeat with: ill_node --fault %s --first %llu --seeds 1 --trace\n",
            fault_words[fault], (unsigned long long)seed, story.failure, fault_words[fault],
            (unsigned long long)seed);
    }
    return !story.failed;
}

static bool run_fault(enum fault fault, uint64_t first, uint64_t n_seeds, bool trace)
{
    uint64_t n_doubted = 0;
    uint64_t n_failed = 0;

    for (uint64_t seed = first; seed < first + n_seeds; seed++) {
        n_failed += !run_seed(seed, fault, trace, &n_doubted);
    }
    printf("ill_node %-10s %llu seeds from %llu: it doubted itself in %llu, %llu failed\n",
           fault_words[fault], (unsigned long long)n_seeds, (unsigned long long)first,
           (unsigned long long)n_doubted, (unsigned long long)n_failed);
    if (n_failed == 0 && n_seeds >= 10 && 2 * n_doubted < n_seeds) {
        printf("it hardly ever doubted itself: the run proves less than it seems to\n");
        return false;
    }
    return n_failed == 0;
}

int main(int argc, char **argv)
{
    uint64_t first = 1;
    uint64_t n_seeds = 100;
    const char *fault = "all";
    bool trace = false;
    bool ok = true;

    for (int i = 1; i < argc; i++) {
        bool has_value = i + 1 < argc;

        if (strcmp(argv[i], "--trace") == 0) {
            trace = true;
        } else if (has_value && strcmp(argv[i], "--fault") == 0) {
            fault = argv[++i];
        } else if (!(has_value && strcmp(argv[i], "--first") == 0 &&
                     str_parse_u64(argv[++i], UINT64_MAX, &first)) &&
                   !(has_value && strcmp(argv[i], "--seeds") == 0 &&
                     str_parse_u64(argv[++i], UINT64_MAX, &n_seeds))) {
            fprintf(stderr, "usage: ill_node [--fault NAME] [--first N] [--seeds N] [--trace]\n");
            return 2;
        }
    }
    for (unsigned i = 0; i < N_FAULTS; i++) {
        if (strcmp(fault, "all") == 0 || strcmp(fault, fault_words[i]) == 0) {
            ok = run_fault((enum fault)i, first, n_seeds, trace) && ok;
        }
    }
    return ok ? 0 : 1;
}
