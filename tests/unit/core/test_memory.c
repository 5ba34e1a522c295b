/* What a target, and a peer of it, take of an agent's memory: catalog, engine, votes and history,
 * as malloc counts them, at two sizes and with few and many peers, so that what is fixed drops out.
 * Resident bytes of whole nodes: tests/bench/bench_votes.c --memory. */
#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/core/engine.h"
#include "common/base/units.h"
#include "tests/lib/big_catalog.h"

#define FEW_TARGETS 20000
#define MANY_TARGETS 40000
#define FEW_NODES 4
#define MANY_NODES 16
#define V_MS 1000
#define HISTORY_ENTRIES 4096 /* a ring that is full at both sizes */
#define CHANGES 256 /* that each peer tells when all targets fail, as engines do in one V */

struct use { /* bytes in use */
    size_t catalog, idle, votes, collapse;
};

struct node {
    struct engine *engine;
    struct engine_actions actions;
    struct big_catalog size;
    uint64_t now_ns;
    uint64_t sequence; /* of all peers */
};

static size_t bytes_in_use(void)
{
    struct mallinfo2 info = mallinfo2();

    return info.uordblks + info.hblkhd;
}

static void step(struct node *node, struct engine_event *event)
{
    event->now_ns = event->boot_ns = node->now_ns;
    assert_int_equal(engine_step(node->engine, event, &node->actions), 0);
}

static void say_hello(struct node *node, uint64_t peer)
{
    struct hello hello = {.cluster_id = catalog_cluster_id(engine_catalog(node->engine)),
                          .node_id = peer,
                          .epoch = 1,
                          .is_observer = true,
                          .version_min = 1,
                          .version_max = 1,
                          .feature_level = 1};

    step(node, &(struct engine_event){.kind = ENGINE_HELLO, .peer = peer, .u.hello = &hello});
}

static void send_vector(struct node *node, uint64_t peer, enum opinion opinion)
{
    static struct vote_chunk chunk;
    const struct catalog *catalog = engine_catalog(node->engine);
    uint32_t n_slots = catalog_n_slots(catalog);
    uint16_t n_chunks =
        (uint16_t)((n_slots + LIMIT_VOTE_SLOTS_PER_CHUNK - 1) / LIMIT_VOTE_SLOTS_PER_CHUNK);

    for (uint16_t i = 0; i < n_chunks; i++) {
        chunk = (struct vote_chunk){.epoch = 1,
                                    .sequence = node->sequence,
                                    .revision = catalog_revision(catalog),
                                    .chunk = i,
                                    .n_chunks = n_chunks,
                                    .digest = catalog_chunk_digest(catalog, i)};
        chunk.n_births = catalog_chunk_births(catalog, i, chunk.births, &chunk.floor);
        for (uint32_t j = 0; j < LIMIT_VOTE_SLOTS_PER_CHUNK; j++) {
            if (i * LIMIT_VOTE_SLOTS_PER_CHUNK + j < n_slots) {
                chunk.opinions[j / 4] |= (uint8_t)((unsigned)opinion << (2 * (j % 4)));
            }
        }
        step(node,
             &(struct engine_event){.kind = ENGINE_VOTE_CHUNK, .peer = peer, .u.chunk = &chunk});
    }
}

static void send_changes(struct node *node, uint64_t peer)
{
    for (uint32_t i = 0; i < CHANGES; i++) {
        uint32_t slot = (uint32_t)((uint64_t)i * node->size.n_targets / CHANGES);
        struct vote_change change = {.epoch = 1,
                                     .sequence = node->sequence + i,
                                     .target =
                                         catalog_target_at(engine_catalog(node->engine), slot)->id,
                                     .opinion = OPINION_FAIL,
                                     .reason = REASON_CONNECT_FAILED,
                                     .streak = 1};

        step(node,
             &(struct engine_event){.kind = ENGINE_VOTE_CHANGE, .peer = peer, .u.change = &change});
    }
}

static void probe_all(struct node *node, enum probe_reason reason)
{
    for (uint32_t slot = 0; slot < node->size.n_targets; slot++) {
        struct probe_result result = {.id =
                                          catalog_target_at(engine_catalog(node->engine), slot)->id,
                                      .probe_class = (uint8_t)probe_reason_class(reason),
                                      .reason = (uint8_t)reason,
                                      .start_ns = node->now_ns - NS_PER_MS,
                                      .end_ns = node->now_ns};

        step(node, &(struct engine_event){.kind = ENGINE_PROBE_RESULT, .u.result = &result});
    }
}

/* All targets are found to be so, by this node and by its peers. */
static void see(struct node *node, enum probe_reason reason)
{
    enum opinion opinion = reason == REASON_OK ? OPINION_PASS : OPINION_FAIL;

    node->now_ns += V_MS * NS_PER_MS;
    probe_all(node, reason);
    for (uint64_t peer = 2; peer <= node->size.n_nodes; peer++) {
        say_hello(node, peer);
        if (opinion == OPINION_FAIL) {
            send_changes(node, peer);
        }
    }
    node->sequence += CHANGES;
    for (uint64_t peer = 2; peer <= node->size.n_nodes; peer++) {
        send_vector(node, peer, opinion);
    }
    node->sequence++;
    step(node, &(struct engine_event){.kind = ENGINE_TICK});
}

static struct use measure(uint32_t n_nodes, uint32_t n_targets)
{
    static struct node node; /* its actions are large, and no part of what is counted */
    struct engine_config config = {.node_id = 1, .epoch = 1, .history_entries = HISTORY_ENTRIES};
    struct use use;

    node = (struct node){.size = {.n_nodes = n_nodes,
                                  .n_targets = n_targets,
                                  .n_each = 100,
                                  .vote_interval_ms = V_MS,
                                  .interval_ms = 10000},
                         .now_ns = 1000 * NS_PER_SECOND,
                         .sequence = 1};
    size_t before = bytes_in_use();
    struct catalog *catalog = big_catalog(&node.size);
    use.catalog = bytes_in_use() - before;
    node.engine = engine_new(&config, node.now_ns);
    engine_actions_init(&node.actions);
    step(&node, &(struct engine_event){.kind = ENGINE_CATALOG, .u.catalog = catalog});
    catalog_unref(catalog);
    step(&node, &(struct engine_event){.kind = ENGINE_TICK});
    use.idle = bytes_in_use() - before;
    see(&node, REASON_OK);
    use.votes = bytes_in_use() - before;
    see(&node, REASON_CONNECT_FAILED);
    use.collapse = bytes_in_use() - before;
    engine_free(node.engine);
    engine_actions_close(&node.actions);
    return use;
}

static double each(size_t many, size_t few, uint32_t n)
{
    return ((double)many - (double)few) / n;
}

static void a_target_and_a_peer_stay_within_their_bounds(void **state)
{
    (void)state;
    struct use few = measure(MANY_NODES, FEW_TARGETS);
    struct use many = measure(MANY_NODES, MANY_TARGETS);
    struct use alone = measure(FEW_NODES, MANY_TARGETS);
    uint32_t n = MANY_TARGETS - FEW_TARGETS;
    double target = each(many.collapse, few.collapse, n);
    double peer = each(many.collapse, alone.collapse, MANY_NODES - FEW_NODES) / MANY_TARGETS;

    printf(
        "bytes a target with %d peers: catalog %.0f, with the engine %.0f, with votes %.0f, after"
        " a collapse %.0f; of it a peer %.1f\n",
        MANY_NODES - 1, each(many.catalog, few.catalog, n), each(many.idle, few.idle, n),
        each(many.votes, few.votes, n), target, peer);
    assert_in_range((uint64_t)target, 200, ENGINE_BYTES_A_TARGET);
    assert_in_range((uint64_t)peer, 10, ENGINE_BYTES_A_TARGET_AND_PEER);
}

/* Of the sanitizers' malloc nobody knows. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define IS_COUNTED 0
#else
#define IS_COUNTED 1
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_target_and_a_peer_stay_within_their_bounds),
    };

    if (!IS_COUNTED) {
        printf("malloc does not say what is in use here: nothing to judge\n");
        return 0;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
