/* jury-shim's main thread: follows the forwarding table, opens the listeners, publishes views to
 * the workers, writes the status file, and brings the workers to an end. */
#ifndef JURY_SHIM_SHIM_H
#define JURY_SHIM_SHIM_H

#include "agent/shim/options.h"
#include "common/base/err.h"

struct shim;

/* Opens the status file and starts the workers. config: kept. Errors: ERR_BUSY (the name is in
 * use), ERR_INVALID, ERR_NOTFOUND, ERR_DENIED, ERR_FULL, ERR_IO, ERR_NOMEM, with a sentence. */
int shim_new(const struct shim_config *config, struct shim **ret_shim, struct errmsg *err);
/* Only after shim_run, or before it was ever called. */
void shim_free(struct shim *shim);

/* Until SIGTERM or SIGINT, which must be blocked in all threads; then the flows end as stop-timeout
 * says. */
void shim_run(struct shim *shim);

#endif
