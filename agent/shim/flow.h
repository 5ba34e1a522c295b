/* The flows of one worker and the backends they use: fixed pools, no allocation after the start.
 * Nothing here makes a system call; the worker does. */
#ifndef JURY_SHIM_FLOW_H
#define JURY_SHIM_FLOW_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/core/select.h"
#include "agent/shim/relay.h"
#include "agent/shim/wheel.h"
#include "agent/table/status_file.h"
#include "common/base/addr.h"

/* One backend (row and birth) that has flows in this worker. */
struct row_use {
    uint32_t row;
    uint64_t birth;
    uint32_t n_flows;
    struct flow *flows;             /* head of their list */
    struct jury_status_row *counts; /* NULL: the row is not counted */
    struct row_use *next;           /* in its bucket, or in the free list */
    struct row_use *next_used;      /* among all in use */
    struct row_use **before_used;
};

enum flow_phase {
    PHASE_FREE = 0,
    PHASE_CONNECTING = 1, /* to the backend; nothing is read from the client yet */
    PHASE_OPEN = 2,
    PHASE_DEAD = 3 /* closed in this round of events; its slot is free after the round */
};

struct flow {
    uint8_t phase; /* enum flow_phase */
    bool is_ready; /* in the worker's list of flows with work left */
    struct relay relay;
    struct wheel_timer timer; /* connect attempt, then idle */
    uint64_t last_active_ms;
    uint32_t idle_timeout_ms;
    uint64_t connect_deadline_ms; /* of all attempts together */

    /* What the choice was made from, for another attempt. */
    uint32_t scope_row;
    uint64_t scope_birth;
    uint64_t hash;
    uint64_t tried_ids[SELECT_TRIES]; /* select_ids: indexes change with the layout */
    uint32_t n_tried;
    struct jury_status_row *scope_counts; /* NULL: not counted */

    struct row_use *use; /* NULL: no backend yet */
    struct flow *next_of_use;
    struct flow **before_of_use;
    struct flow *next; /* free, ready or dead list */
};

#define ROW_BUCKETS 4096

struct flow_pool {
    struct flow *flows;
    struct row_use *uses;
    uint32_t n_flows_max;
    uint32_t n_flows; /* in use, dead ones included */
    uint32_t n_touched;
    uint32_t n_touched_uses;
    struct flow *free;
    struct row_use *free_uses;
    struct row_use *used;
    struct row_use *buckets[ROW_BUCKETS];
};

/* n_flows_max: 1..LIMIT_SHIM_FLOWS. Errors: ERR_NOMEM. */
int flow_pool_init(struct flow_pool *pool, uint32_t n_flows_max);
void flow_pool_close(struct flow_pool *pool);

/* Zeroed; NULL when all are in use. */
struct flow *flow_take(struct flow_pool *pool);
/* The flow must have left its use and the wheel. */
void flow_give_back(struct flow_pool *pool, struct flow *flow);

/* Count the flow at that row. counts: the row's status words, or NULL. */
void flow_join(struct flow_pool *pool, struct flow *flow, uint32_t row, uint64_t birth,
               struct jury_status_row *counts);
/* Uncount it; allowed without a use. */
void flow_leave(struct flow_pool *pool, struct flow *flow);

/* A row's words may meanwhile count for another birth: then these change nothing. */
void flow_count(struct jury_status_row *counts, uint64_t birth, uint64_t *word, uint64_t n);

/* Number and flow, as epoll's data carries it, and back. */
uint32_t flow_index(const struct flow_pool *pool, const struct flow *flow);
struct flow *flow_at(struct flow_pool *pool, uint32_t index);

#endif
