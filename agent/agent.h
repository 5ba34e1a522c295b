/* The agent: the one module that knows both the decisions (agent/core) and the shells.
 *
 * Runs the health loop on the calling thread: events in (catalogs and completions of the store,
 * probe results, messages of peers, timers, status files of data planes), the engine's actions out
 * (votes, probe plan, table words, layouts, last-known-good, proposals). Nothing on this loop waits
 * for a disk, for Raft or for another thread. */
#ifndef JURY_AGENT_AGENT_H
#define JURY_AGENT_AGENT_H

#include "agent/loop/sock.h"
#include "agent/options.h"
#include "common/base/err.h"

/* Exit codes of the process (design.md 8). */
#define AGENT_EXIT_STOPPED 0
#define AGENT_EXIT_USAGE 2
#define AGENT_EXIT_CONFIG 3
#define AGENT_EXIT_INTERNAL 10
#define AGENT_EXIT_OPERATOR 11 /* the store needs one: do not restart */
#define AGENT_EXIT_RESTART 12  /* fail-stop: restart me */

/* Runs until SIGTERM or SIGINT. keys: kept. Returns 0, or an error with its sentence if it could
 * not start: ERR_CONFIG (addresses, directories), anything else is internal. */
int agent_run(const struct agent_config *config, const struct curve_keys *keys, struct errmsg *err);

/* The exit code for what came of options, checks or agent_run. */
int agent_exit_code(int err);

#endif
