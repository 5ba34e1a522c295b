#include "agent/shim/flow.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

int flow_pool_init(struct flow_pool *pool, uint32_t n_flows_max)
{
    memset(pool, 0, sizeof *pool);
    pool->n_flows_max = n_flows_max;
    pool->flows = calloc(n_flows_max, sizeof *pool->flows);
    pool->uses = calloc(n_flows_max, sizeof *pool->uses);
    if (pool->flows == NULL || pool->uses == NULL) {
        flow_pool_close(pool);
        return ERR_NOMEM;
    }
    return 0;
}

void flow_pool_close(struct flow_pool *pool)
{
    free(pool->flows);
    free(pool->uses);
    memset(pool, 0, sizeof *pool);
}

/* Slots that were never used are taken last, so that memory is touched as it is needed. */
struct flow *flow_take(struct flow_pool *pool)
{
    struct flow *flow = pool->free;

    if (flow != NULL) {
        pool->free = flow->next;
    } else if (pool->n_touched < pool->n_flows_max) {
        flow = &pool->flows[pool->n_touched++];
    } else {
        return NULL;
    }
    memset(flow, 0, sizeof *flow);
    flow->relay.ends[RELAY_CLIENT].fd = -1;
    flow->relay.ends[RELAY_BACKEND].fd = -1;
    pool->n_flows++;
    return flow;
}

void flow_give_back(struct flow_pool *pool, struct flow *flow)
{
    assert(flow->use == NULL && flow->timer.before == NULL);
    flow->phase = PHASE_FREE;
    flow->next = pool->free;
    pool->free = flow;
    pool->n_flows--;
}

void flow_count(struct jury_status_row *counts, uint64_t birth, uint64_t *word, uint64_t n)
{
    if (counts != NULL && counts->birth == birth) {
        status_add(word, n);
    }
}

static struct row_use *use_of(struct flow_pool *pool, uint32_t row, uint64_t birth)
{
    struct row_use **bucket = &pool->buckets[row % ROW_BUCKETS];

    for (struct row_use *use = *bucket; use != NULL; use = use->next) {
        if (use->row == row && use->birth == birth) {
            return use;
        }
    }
    struct row_use *use = pool->free_uses;
    if (use != NULL) {
        pool->free_uses = use->next;
    } else {
        /* Each use has a flow, so there are never more than flows. */
        assert(pool->n_touched_uses < pool->n_flows_max);
        use = &pool->uses[pool->n_touched_uses++];
    }
    *use = (struct row_use){.row = row, .birth = birth, .next = *bucket, .next_used = pool->used};
    *bucket = use;
    if (use->next_used != NULL) {
        use->next_used->before_used = &use->next_used;
    }
    use->before_used = &pool->used;
    pool->used = use;
    return use;
}

static void drop_use(struct flow_pool *pool, struct row_use *use)
{
    struct row_use **at = &pool->buckets[use->row % ROW_BUCKETS];

    while (*at != use) {
        at = &(*at)->next;
    }
    *at = use->next;
    *use->before_used = use->next_used;
    if (use->next_used != NULL) {
        use->next_used->before_used = use->before_used;
    }
    use->next = pool->free_uses;
    pool->free_uses = use;
}

void flow_join(struct flow_pool *pool, struct flow *flow, uint32_t row, uint64_t birth,
               struct jury_status_row *counts)
{
    struct row_use *use = use_of(pool, row, birth);

    assert(flow->use == NULL);
    use->counts = counts;
    use->n_flows++;
    flow->use = use;
    flow->next_of_use = use->flows;
    flow->before_of_use = &use->flows;
    if (flow->next_of_use != NULL) {
        flow->next_of_use->before_of_use = &flow->next_of_use;
    }
    use->flows = flow;
    if (counts != NULL) {
        flow_count(counts, birth, &counts->flows, 1);
        flow_count(counts, birth, &counts->new_flows, 1);
    }
}

void flow_leave(struct flow_pool *pool, struct flow *flow)
{
    struct row_use *use = flow->use;

    if (use == NULL) {
        return;
    }
    *flow->before_of_use = flow->next_of_use;
    if (flow->next_of_use != NULL) {
        flow->next_of_use->before_of_use = flow->before_of_use;
    }
    flow->use = NULL;
    if (use->counts != NULL && use->counts->birth == use->birth) {
        status_sub(&use->counts->flows, 1);
    }
    use->n_flows--;
    if (use->n_flows == 0) {
        drop_use(pool, use);
    }
}

uint32_t flow_index(const struct flow_pool *pool, const struct flow *flow)
{
    return (uint32_t)(flow - pool->flows);
}

struct flow *flow_at(struct flow_pool *pool, uint32_t index)
{
    assert(index < pool->n_flows_max);
    return &pool->flows[index];
}
