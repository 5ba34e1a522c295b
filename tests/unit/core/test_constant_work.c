/* A node works and sends as much whatever the targets do (R-CW-1): what can be said without a
 * clock. Bytes and CPU of real nodes: tests/bench/bench_votes.c.
 * ctest labels: twin */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/core/engine.h"
#include "agent/core/engine_view.h"
#include "agent/mesh/peer_codec.h"
#include "common/base/plant.h"
#include "common/base/units.h"
#include "tests/lib/big_catalog.h"

#define TARGETS 1000
#define V_MS 1000

struct fixture {
    struct engine *engine;
    struct engine_actions actions;
    uint64_t now_ns;
    uint32_t n_changes;  /* sent */
    size_t vector_bytes; /* of the last vector, encoded */
    bool has_vector;
};

static size_t encoded_bytes(const struct vote_chunk *chunk)
{
    static struct peer_message message = {.kind = PEER_VOTE_CHUNK};
    uint8_t *data;
    size_t n_bytes;

    message.u.chunk = *chunk;
    assert_int_equal(peer_encode(&message, &data, &n_bytes), 0);
    free(data);
    return n_bytes;
}

static void step(struct fixture *f, struct engine_event *event)
{
    event->now_ns = event->boot_ns = f->now_ns;
    assert_int_equal(engine_step(f->engine, event, &f->actions), 0);
    f->n_changes += f->actions.n_changes;
    f->has_vector = f->actions.n_chunks > 0;
    for (uint16_t i = 0; i < f->actions.n_chunks; i++) {
        f->vector_bytes = (i == 0 ? 0 : f->vector_bytes) + encoded_bytes(&f->actions.chunks[i]);
    }
}

static int setup(void **state)
{
    const struct big_catalog size = {.n_nodes = 3,
                                     .n_targets = TARGETS,
                                     .n_each = 100,
                                     .vote_interval_ms = V_MS,
                                     .interval_ms = 10000};
    struct engine_config config = {.node_id = 1, .epoch = 1};
    struct catalog *catalog = big_catalog(&size);
    struct fixture *f = calloc(1, sizeof *f);

    f->now_ns = 1000 * NS_PER_SECOND;
    f->engine = engine_new(&config, f->now_ns);
    engine_actions_init(&f->actions);
    step(f, &(struct engine_event){.kind = ENGINE_CATALOG, .u.catalog = catalog});
    catalog_unref(catalog);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    engine_free(f->engine);
    engine_actions_close(&f->actions);
    free(f);
    return 0;
}

/* A result of each target from `first` on, all at one moment. */
static void results(struct fixture *f, uint32_t first, enum probe_reason reason)
{
    for (uint32_t slot = first; slot < TARGETS; slot++) {
        struct probe_result result = {.id = catalog_target_at(engine_catalog(f->engine), slot)->id,
                                      .probe_class = (uint8_t)probe_reason_class(reason),
                                      .reason = (uint8_t)reason,
                                      .start_ns = f->now_ns - NS_PER_MS,
                                      .end_ns = f->now_ns};

        step(f, &(struct engine_event){.kind = ENGINE_PROBE_RESULT, .u.result = &result});
    }
}

static void next_vector(struct fixture *f)
{
    f->now_ns += V_MS * NS_PER_MS;
    step(f, &(struct engine_event){.kind = ENGINE_TICK});
    assert_true(f->has_vector);
}

static void a_vector_has_the_same_bytes_whether_all_pass_or_all_fail(void **state)
{
    struct fixture *f = *state;

    results(f, 0, REASON_OK);
    next_vector(f);
    size_t bytes = f->vector_bytes;
    results(f, 0, REASON_CONNECT_FAILED);
    next_vector(f);
    assert_int_equal(f->vector_bytes, bytes);
    results(f, TARGETS / 2, REASON_OK);
    next_vector(f);
    assert_int_equal(f->vector_bytes, bytes);
}

/* Of each interval. */
static uint32_t changes_of_a_collapse(struct fixture *f)
{
    results(f, 0, REASON_OK);
    next_vector(f);
    f->n_changes = 0;
    results(f, 0, REASON_CONNECT_FAILED);
    return f->n_changes;
}

static void changes_of_one_interval_are_bounded_and_the_vector_brings_the_others(void **state)
{
    struct fixture *f = *state;
    const struct engine_counters *counters = engine_view_counters(f->engine);

    assert_int_equal(changes_of_a_collapse(f), ENGINE_CHANGES);
    assert_int_equal(counters->changes_not_sent, 2 * (TARGETS - ENGINE_CHANGES));
    next_vector(f);
    for (uint32_t slot = 0; slot < TARGETS; slot++) {
        assert_int_equal(f->actions.chunks[0].opinions[slot / 4] >> slot % 4 * 2 & 3, OPINION_FAIL);
    }
    f->n_changes = 0;
    results(f, TARGETS - 10, REASON_OK); /* a new interval, a new bound */
    assert_int_equal(f->n_changes, 10);
}

#ifdef JURY_PLANTS
static void twin_changes_without_bound_are_caught(void **state)
{
    struct fixture *f = *state;

    plant_set("changes-without-bound");
    uint32_t n = changes_of_a_collapse(f);
    plant_set(NULL);
    assert_int_equal(n, TARGETS);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_vector_has_the_same_bytes_whether_all_pass_or_all_fail,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(
            changes_of_one_interval_are_bounded_and_the_vector_brings_the_others, setup, teardown),
#ifdef JURY_PLANTS
        cmocka_unit_test_setup_teardown(twin_changes_without_bound_are_caught, setup, teardown),
#endif
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
