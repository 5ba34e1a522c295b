/* What is wrong with this node's data planes, in words: the same for `status`, which finds it, and
 * for `ready`, by which a VIP is kept or given away. Pure; says nothing of their listeners. */
#ifndef JURY_RPC_PLANE_TROUBLE_H
#define JURY_RPC_PLANE_TROUBLE_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/rpc/rpc_view.h"
#include "common/base/err.h"

/* What is known of one. Strings are borrowed. */
struct plane_look {
    const char *name;
    uint8_t state;       /* enum rpc_plane_state */
    uint64_t age_ns;     /* of its heartbeat; RPC_NEVER_NS: none since this machine was started */
    const char *problem; /* why it is refused or gone; else empty */
};

/* A data plane that is there, or was, and is not known to work. ret_text: one sentence; empty when
 * there is no trouble. */
bool plane_trouble(const struct plane_look *look, struct errmsg *ret_text);

/* Whether a node forwards, of all its data planes; begins zeroed. */
struct plane_tally {
    uint32_t n_planes;
    uint32_t n_bad;
    struct errmsg first; /* what is wrong with the first of them */
};

void plane_tally_add(struct plane_tally *tally, const struct plane_look *look);

/* Not ok while any is missed. A node that never had one is all right: it is an agent alone, and the
 * message says so. */
void plane_tally_check(const struct plane_tally *tally, struct rpc_ready_check *ret_check);

#endif
