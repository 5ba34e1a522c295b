/* What must be right before the agent starts: each wrong thing is one sentence that says what to do
 * (row 1.17). Reads only, except preflight_prepare; a bad start leaves the data directory as it
 * was. */
#ifndef JURY_AGENT_PREFLIGHT_H
#define JURY_AGENT_PREFLIGHT_H

#include "agent/loop/sock.h"
#include "agent/options.h"
#include "common/base/err.h"
#include "common/rpc/key_file.h"

/* For `--check-config` and for the start. ret_key: given, key_pair_close.
 * Errors: ERR_CONFIG with a sentence. What the store can wait for (a full disk, damage) is none:
 * the agent starts, serves from last-known-good and says what is wrong. */
int preflight_check(const struct agent_config *config, struct key_pair *ret_key,
                    struct errmsg *err);

/* Directories below run-dir, the lock that keeps a second agent out of run-dir, the limit of open
 * files. ret_lock_fd: held until the process ends. Errors: ERR_CONFIG. */
int preflight_prepare(const struct agent_config *config, int *ret_lock_fd, struct errmsg *err);

/* Logs what is odd and no reason to stop: a clock far off, few open files. */
void preflight_warn(void);

#endif
