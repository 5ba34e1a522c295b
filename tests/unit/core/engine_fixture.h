/* One engine with a catalog of its own, for tests that step it by hand. */
#ifndef JURY_TEST_ENGINE_FIXTURE_H
#define JURY_TEST_ENGINE_FIXTURE_H

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

static inline void new_engine(struct fixture *f, uint64_t node_id, uint64_t epoch,
                              uint64_t table_revision)
{
    struct engine_config config = {
        .node_id = node_id, .epoch = epoch, .seed = 1, .table_revision = table_revision};

    engine_free(f->engine);
    f->engine = engine_new(&config, f->now_ns);
    assert_non_null(f->engine);
}

static inline int setup(void **state)
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

static inline int teardown(void **state)
{
    struct fixture *f = *state;

    engine_free(f->engine);
    engine_actions_close(&f->actions);
    catalog_state_free(f->state);
    free(f);
    return 0;
}

static inline void step(struct fixture *f, struct engine_event *event)
{
    event->now_ns = f->now_ns;
    event->boot_ns = f->now_ns + BOOT;
    assert_int_equal(engine_step(f->engine, event, &f->actions), 0);
}

static inline void tick(struct fixture *f, uint64_t after_ns)
{
    f->now_ns += after_ns;
    step(f, &(struct engine_event){.kind = ENGINE_TICK});
}

static inline void publish(struct fixture *f)
{
    struct catalog *catalog = catalog_state_catalog(f->state);

    step(f, &(struct engine_event){.kind = ENGINE_CATALOG, .u.catalog = catalog});
    catalog_unref(catalog);
}

/* A group "web" of the given backends; nlb with drain on, rule as given. */
static inline void put(struct fixture *f, const char *endpoints, enum rule_kind rule)
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

static inline struct backend_view view_of(struct fixture *f, const char *at)
{
    struct endpoint endpoint = build_endpoint(at);
    struct backend_view view;

    assert_int_equal(
        engine_view_backend(f->engine, "web", &endpoint, f->now_ns, f->now_ns + BOOT, &view), 0);
    return view;
}

static inline struct target_id target_of(struct fixture *f, const char *at)
{
    return view_of(f, at).target;
}

static inline void result(struct fixture *f, struct target_id id, enum probe_reason reason)
{
    struct probe_result result = {.id = id,
                                  .probe_class = (uint8_t)probe_reason_class(reason),
                                  .reason = (uint8_t)reason,
                                  .start_ns = f->now_ns - 10 * MS,
                                  .end_ns = f->now_ns};

    step(f, &(struct engine_event){.kind = ENGINE_PROBE_RESULT, .u.result = &result});
}

/* A peer's change message for one target. */
static inline void peer_says(struct fixture *f, uint64_t peer, struct target_id id,
                             enum opinion opinion, uint64_t sequence)
{
    struct vote_change change = {.epoch = 1,
                                 .sequence = sequence,
                                 .target = id,
                                 .opinion = (uint8_t)opinion,
                                 .reason =
                                     opinion == OPINION_FAIL ? REASON_CONNECT_FAILED : REASON_OK};

    step(f, &(struct engine_event){.kind = ENGINE_VOTE_CHANGE, .peer = peer, .u.change = &change});
}

static inline const struct row_word *word_of(const struct fixture *f, uint32_t row)
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

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

#endif
