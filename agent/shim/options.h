/* The options of jury-shim: one table for flags, environment, file, --help and the example. */
#ifndef JURY_SHIM_OPTIONS_H
#define JURY_SHIM_OPTIONS_H

#include "agent/shim/worker.h"
#include "common/base/addr.h"
#include "common/base/log.h"
#include "common/base/options.h"

struct shim_config {
    const char *tables_dir;
    const char *status_dir;
    const char *name;
    uint32_t n_workers;
    struct addr own[2]; /* IPv4, IPv6: where wildcard listeners listen; ADDR_NONE = everywhere */
    uint32_t stop_timeout_ms;
    enum log_level log_level;
    struct worker_config worker;
};

/* What the command line asks for beside running. */
enum shim_command {
    SHIM_RUN = 0,
    SHIM_PRINTED = 1 /* help, version, configuration or example were printed: end with 0 */
};

/* What the shim was started with. */
struct shim_start {
    struct options *options; /* given (options_free); config points into it */
    struct shim_config config;
    enum shim_command command;
};

/* Read command line, environment and file. Errors: ERR_USAGE, ERR_CONFIG, ERR_NOTFOUND, ERR_NOMEM,
 * with a sentence. */
int shim_options_read(int argc, char *const argv[], char *const environment[],
                      struct shim_start *ret_start, struct errmsg *err);

#endif
