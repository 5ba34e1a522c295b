#include "agent/probe/order_batch.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/limits.h"

/* Keep the last order of each target; a probe that was wanted at once still is, if it may run. */
static bool make_short(struct order_batch *batch)
{
    uint32_t *kept = calloc(LIMIT_TARGETS, sizeof *kept); /* by slot: place + 1 */
    uint32_t n = 0;

    if (kept == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < batch->n_orders; i++) {
        struct probe_order order = batch->orders[i];
        uint32_t *place = &kept[order.id.slot];
        const struct probe_order *last = *place == 0 ? NULL : &batch->orders[*place - 1];

        if (last != NULL && last->id.birth == order.id.birth) {
            order.is_now = order.is_on && (order.is_now || last->is_now);
        }
        if (last == NULL) {
            *place = ++n;
        }
        batch->orders[*place - 1] = order;
    }
    batch->n_orders = n;
    free(kept);
    return true;
}

struct order_batch *order_batch_join(struct order_batch *before, const struct probe_order orders[],
                                     uint32_t n_orders)
{
    uint32_t n_before = before == NULL ? 0 : before->n_orders;
    struct order_batch *batch =
        realloc(before, sizeof *batch + ((size_t)n_before + n_orders) * sizeof batch->orders[0]);

    if (batch == NULL) {
        free(before);
        return NULL;
    }
    memcpy(&batch->orders[n_before], orders, n_orders * sizeof orders[0]);
    batch->n_orders = n_before + n_orders;
    if (batch->n_orders > LIMIT_TARGETS && !make_short(batch)) {
        free(batch);
        return NULL;
    }
    return batch;
}
