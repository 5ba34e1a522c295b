/* The listening sockets that the layout asks for, on the main thread: opened for all workers at
 * once, kept over layouts while their address stays, tried again while they can not be opened. A
 * listener that fails never holds up another.
 *
 * A listener on every address and one on a certain address may have the same port: the kernel gives
 * a connection to the more specific one. */
#ifndef JURY_SHIM_LISTENERS_H
#define JURY_SHIM_LISTENERS_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/shim/view.h"
#include "agent/table/jury_table.h"
#include "common/base/addr.h"
#include "common/base/err.h"

/* Addresses that could not be opened are tried again this often. */
#define LISTENERS_RETRY_MS 1000
/* The first time sooner: the address may be held by a listener that the same layout took away,
 * whose sockets close when every worker has come round. */
#define LISTENERS_SOON_MS 100

struct listeners;

/* own: the IPv4 and the IPv6 address that listeners on 0.0.0.0 or :: are opened on instead, so that
 * a node keeps its other addresses and several shims share a machine; ADDR_NONE = on every address.
 * NULL: no memory. */
struct listeners *listeners_new(uint32_t n_workers, const struct addr own[2]);
void listeners_free(struct listeners *listeners);

/* A view of this snapshot with every listener that is or can be opened. Logs what was opened,
 * closed, and - once a change of the reason - what failed. Errors: ERR_NOMEM. */
int listeners_follow(struct listeners *listeners, struct table_snapshot *snapshot,
                     struct shim_view **ret_view, struct errmsg *err);
/* Those of the last call that could not be opened; borrowed until the next. */
const struct jury_status_failure *listeners_failed(const struct listeners *listeners,
                                                   size_t *ret_n_failed);

#endif
