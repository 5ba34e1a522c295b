/* Orders on their way from the health thread to a probe thread (probe_schedule.h), in the order in
 * which they were given. Through a mailbox: what was not taken yet goes on with the next batch, so
 * that no order is lost, and of each target no more than one needs to wait. */
#ifndef JURY_PROBE_ORDER_BATCH_H
#define JURY_PROBE_ORDER_BATCH_H

#include "agent/core/probe.h"

struct order_batch {
    uint32_t n_orders;
    struct probe_order orders[];
};

/* More orders behind those of `before` (taken; NULL = none). At most LIMIT_TARGETS orders wait:
 * then those of one target become one, as if they had been followed. NULL: no memory, `before` is
 * gone. */
struct order_batch *order_batch_join(struct order_batch *before, const struct probe_order orders[],
                                     uint32_t n_orders);

#endif
