/* What jury-agent can be told: the table of its options and the values that come of it.
 *
 * Values only; whether a file, an address or a directory is fit for use is preflight.h's. */
#ifndef JURY_AGENT_OPTIONS_H
#define JURY_AGENT_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/core/probe_budget.h"
#include "agent/probe/packet_way.h"
#include "common/base/addr.h"
#include "common/base/err.h"
#include "common/base/limits.h"
#include "common/base/log.h"
#include "common/base/options.h"
#include "common/model/cluster.h"

#define AGENT_PATH_BYTES                                                   \
    192 /* with what is appended, below the 108 bytes of a unix socket for \
           run-dir, and PATH_MAX for the rest */
#define AGENT_RUN_DIR_BYTES 80
#define AGENT_CONFIG_FILE "/etc/jury/agent.conf" /* read when it exists */
#define AGENT_BOOTSTRAP_KEYS 8

/* A node whose key is trusted before there is a catalog. */
struct agent_trusted {
    uint64_t node_id;
    struct public_key key;
};

struct agent_config {
    char data_dir[AGENT_PATH_BYTES];
    char run_dir[AGENT_RUN_DIR_BYTES];
    char key_file[AGENT_PATH_BYTES];
    bool socket_is_private; /* agent.sock is for the agent's own user and root */
    uint64_t node_id;       /* 0 = whatever `cluster init` makes of this node's key */

    struct endpoint mesh_listen[LIMIT_ENDPOINTS_PER_NODE];
    uint32_t n_mesh_listen;
    struct endpoint raft_listen[LIMIT_ENDPOINTS_PER_NODE];
    uint32_t n_raft_listen;

    struct agent_trusted trusted[LIMIT_NODES];
    uint32_t n_trusted;
    struct public_key admin_keys[AGENT_BOOTSTRAP_KEYS]; /* count until the cluster is made */
    uint32_t n_admin_keys;

    struct cidr allowed[LIMIT_CIDRS]; /* none = no list of this node's own */
    uint32_t n_allowed;
    struct probe_rates probe_rates;
    struct addr probe_sources[2]; /* IPv4, IPv6; ADDR_NONE = as the catalog says */
    enum packet_send half_open_send;
    enum packet_receive half_open_receive;

    uint32_t election_timeout_ms;
    uint32_t heartbeat_ms;
    uint32_t stop_timeout_ms; /* how long a stop may take before it is cut short */
    enum log_level log_level;
};

/* What the command line asks for besides running. */
enum agent_command {
    AGENT_RUN = 0,
    AGENT_HELP,
    AGENT_VERSION,
    AGENT_CHECK_CONFIG,
    AGENT_PRINT_CONFIG,
    AGENT_PRINT_EXAMPLE
};

/* Read flags, environment and file. ret_options: given, options_free; also on failure, when it may
 * be NULL. Errors: ERR_USAGE, ERR_CONFIG, ERR_NOMEM. */
int agent_options_read(int argc, char *const argv[], char *const environment[],
                       struct options **ret_options, struct errmsg *err);
enum agent_command agent_options_command(const struct options *options);
/* Values across options are checked here. Errors: ERR_CONFIG. */
int agent_options_config(const struct options *options, struct agent_config *ret_config,
                         struct errmsg *err);

#endif
