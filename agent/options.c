#include "agent/options.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/str.h"
#include "common/base/units.h"
#include "common/model/check.h"
#include "common/rpc/key_file.h"

/* A number of a header as text: nodectl tells users the same default. */
#define TEXT(number) TEXT_AS_IT_IS(number)
#define TEXT_AS_IT_IS(words) #words

static const struct option_spec specs[] = {
    {"General", "help", NULL, OPTION_FLAG, false, true, 0, 0, NULL, NULL, NULL, "print this text"},
    {"General", "version", NULL, OPTION_FLAG, false, true, 0, 0, NULL, NULL, NULL,
     "print the version"},
    {"General", "config", "FILE", OPTION_PATH, false, true, 0, 0, NULL, NULL, NULL,
     "read this file; without it " AGENT_CONFIG_FILE " if there is one"},
    {"General", "check-config", NULL, OPTION_FLAG, false, true, 0, 0, NULL, NULL, NULL,
     "check options, key, directories and data, and end"},
    {"General", "print-config", NULL, OPTION_FLAG, false, true, 0, 0, NULL, NULL, NULL,
     "print every option with its value and where that comes from"},
    {"General", "print-example", NULL, OPTION_FLAG, false, true, 0, 0, NULL, NULL, NULL,
     "print a file with every option explained"},
    {"General", "log-level", "LEVEL", OPTION_CHOICE, false, false, 0, 0, NULL,
     "error|warning|info|debug", "info", "how much to log, to standard error"},

    {"Node", "data-dir", "DIR", OPTION_PATH, false, false, 0, 0, NULL, NULL, "/var/lib/jury",
     "what must survive a restart; on a disk, never in memory"},
    {"Node", "run-dir", "DIR", OPTION_PATH, false, false, 0, 0, NULL, NULL, "/run/jury",
     "unix socket agent.sock, tables/ for the data planes, status/ from them"},
    {"Node", "socket-access", "WHO", OPTION_CHOICE, false, false, 0, 0, NULL, "owner|group",
     "group",
     "who administers through agent.sock beside root: the agent's own user alone, or its group "
     "too"},
    {"Node", "key-file", "FILE", OPTION_PATH, false, false, 0, 0, NULL, NULL, "/etc/jury/node.key",
     "this node's key pair, made by `nodectl key generate`"},
    {"Node", "node-id", "ID", OPTION_NUMBER, false, false, 0, UINT64_MAX, NULL, NULL, "0",
     "refuse to be any other node; 0: the one that `cluster init` makes of this key"},

    {"Network", "mesh-listen", "ADDRESS:PORT", OPTION_ENDPOINT, true, false, 0, 0, NULL, NULL,
     "0.0.0.0:7400", "where votes, hellos and calls come in"},
    {"Network", "raft-listen", "ADDRESS:PORT", OPTION_ENDPOINT, true, false, 0, 0, NULL, NULL,
     "0.0.0.0:7401", "where Raft comes in"},
    {"Network", "election-timeout", "TIME", OPTION_DURATION, false, false, 100, 60000, NULL, NULL,
     "400ms", "without a leader for this long, a new one is chosen"},
    {"Network", "heartbeat", "TIME", OPTION_DURATION, false, false, 10, 10000, NULL, NULL, "50ms",
     "how often a leader says that it is there; at most a quarter of the election timeout"},

    {"Before the cluster is made", "trust", "ID=KEY", OPTION_TEXT, true, false, 3, 128, NULL, NULL,
     NULL, "a node that may admit this one to a cluster, and its public key"},
    {"Before the cluster is made", "admin-key", "KEY", OPTION_TEXT, true, false, 40, 64, NULL, NULL,
     NULL, "a public key that may call `cluster init` over the network"},

    {"Probes", "allow", "CIDR", OPTION_CIDR, true, false, 0, 0, NULL, NULL, NULL,
     "probe only addresses in these prefixes, stricter than the cluster's list"},
    {"Probes", "probe-source", "ADDRESS", OPTION_ADDRESS, true, false, 0, 0, NULL, NULL, NULL,
     "source address of probes, one a family, instead of the one in the catalog"},
    {"Probes", "half-open-send", "WAY", OPTION_CHOICE, false, false, 0, 0, NULL, "auto|ip|link",
     "auto",
     "how half-open probes leave: by the IP layer, as frames to the link, or the link unless a "
     "packet filter, connection tracking or IPsec is here"},
    {"Probes", "half-open-receive", "WAY", OPTION_CHOICE, false, false, 0, 0, NULL,
     "ring|xdp|xdp-driver", "ring",
     "how answers to half-open probes that the link sends are seen: by a packet socket, or by an "
     "XDP program, xdp-driver: only in the link's driver"},
    {"Probes", "probe-budget", "N", OPTION_NUMBER, false, false, PROBE_BUDGET_NODE_MIN,
     PROBE_BUDGET_NODE_MAX, NULL, NULL, TEXT(PROBE_BUDGET_NODE),
     "probes that this node begins in a second at most; what is more waits its turn"},
    {"Probes", "probe-budget-address", "N", OPTION_NUMBER, false, false, PROBE_BUDGET_ADDRESS_MIN,
     PROBE_BUDGET_ADDRESS_MAX, NULL, NULL, TEXT(PROBE_BUDGET_ADDRESS),
     "the same to one backend address, over all its ports and checks"},

    {"Stopping", "stop-timeout", "TIME", OPTION_DURATION, false, false, 1000, 300000, NULL, NULL,
     "15s", "after this long a stop that waits for the disk is cut short"},
};

static const struct option_table table = {
    .program = "jury-agent",
    .summary = "Probes backends, shares votes with its peers, keeps the cluster's configuration "
               "and writes\nthe forwarding table of this node.",
    .specs = specs,
    .n_specs = sizeof specs / sizeof specs[0],
};

static int read_file(struct options *options, struct errmsg *err)
{
    const char *path = options_text(options, "config");
    int rc;

    if (path != NULL) {
        rc = options_read_file(options, path, err);
        return rc == ERR_NOTFOUND ? ERR_CONFIG : rc;
    }
    rc = options_read_file(options, AGENT_CONFIG_FILE, err);
    return rc == ERR_NOTFOUND ? 0 : rc;
}

int agent_options_read(int argc, char *const argv[], char *const environment[],
                       struct options **ret_options, struct errmsg *err)
{
    struct options *options = options_new(&table);

    *ret_options = options;
    if (options == NULL) {
        return errmsg_set(err, ERR_NOMEM, "no memory for the options");
    }
    int rc = options_read_arguments(options, argc, argv, err);
    if (rc == 0 && (options_flag(options, "help") || options_flag(options, "version"))) {
        return 0; /* whatever the file says */
    }
    if (rc == 0) {
        rc = options_read_environment(options, environment, err);
    }
    if (rc == 0) {
        rc = read_file(options, err);
    }
    return rc;
}

enum agent_command agent_options_command(const struct options *options)
{
    static const struct {
        const char *name;
        enum agent_command command;
    } commands[] = {{"help", AGENT_HELP},
                    {"version", AGENT_VERSION},
                    {"print-example", AGENT_PRINT_EXAMPLE},
                    {"print-config", AGENT_PRINT_CONFIG},
                    {"check-config", AGENT_CHECK_CONFIG}};

    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        if (options_flag(options, commands[i].name)) {
            return commands[i].command;
        }
    }
    return AGENT_RUN;
}

static int take_path(const struct options *options, const char *name, char *path, size_t path_bytes,
                     struct errmsg *err)
{
    const char *text = options_text(options, name);

    if (text[0] != '/') {
        return errmsg_set(err, ERR_CONFIG, "%s: %s \"%.100s\" must be an absolute path",
                          options_origin(options, name), name, text);
    }
    if (!str_copy(path, path_bytes, text)) {
        return errmsg_set(err, ERR_CONFIG, "%s: %s \"%.100s\" is longer than %zu bytes",
                          options_origin(options, name), name, text, path_bytes - 1);
    }
    return 0;
}

static int take_endpoints(const struct options *options, const char *name,
                          struct endpoint endpoints[LIMIT_ENDPOINTS_PER_NODE], uint32_t *ret_n,
                          struct errmsg *err)
{
    size_t n = options_n_values(options, name);

    if (n > LIMIT_ENDPOINTS_PER_NODE) {
        return errmsg_set(err, ERR_CONFIG, "%s: %s: at most %d addresses, got %zu",
                          options_origin(options, name), name, LIMIT_ENDPOINTS_PER_NODE, n);
    }
    for (size_t i = 0; i < n; i++) {
        endpoint_parse(options_value_at(options, name, i), &endpoints[i], NULL);
    }
    *ret_n = (uint32_t)n;
    return 0;
}

/* "3=<key>" */
static int take_trusted(const struct options *options, struct agent_config *config,
                        struct errmsg *err)
{
    for (size_t i = 0; i < options_n_values(options, "trust"); i++) {
        const char *text = options_value_at(options, "trust", i);
        const char *equals = strchr(text, '=');
        struct agent_trusted *trusted = &config->trusted[config->n_trusted];
        char id[24] = "";
        char what[160];

        if (equals != NULL && (size_t)(equals - text) < sizeof id) {
            memcpy(id, text, (size_t)(equals - text));
        }
        if (!str_parse_u64(id, UINT64_MAX, &trusted->node_id) || trusted->node_id == 0) {
            return errmsg_set(err, ERR_CONFIG,
                              "%s: trust \"%.100s\" must be ID=KEY, as in 2=0a1b...",
                              options_origin(options, "trust"), text);
        }
        snprintf(what, sizeof what, "%s: trust %s", options_origin(options, "trust"), id);
        if (public_key_parse(equals + 1, what, &trusted->key, err) != 0) {
            return ERR_CONFIG;
        }
        config->n_trusted++;
    }
    return 0;
}

static int take_admin_keys(const struct options *options, struct agent_config *config,
                           struct errmsg *err)
{
    size_t n = options_n_values(options, "admin-key");
    char what[160];

    if (n > AGENT_BOOTSTRAP_KEYS) {
        return errmsg_set(err, ERR_CONFIG, "%s: admin-key: at most %d keys, got %zu",
                          options_origin(options, "admin-key"), AGENT_BOOTSTRAP_KEYS, n);
    }
    for (size_t i = 0; i < n; i++) {
        snprintf(what, sizeof what, "%s: admin-key", options_origin(options, "admin-key"));
        if (public_key_parse(options_value_at(options, "admin-key", i), what,
                             &config->admin_keys[i], err) != 0) {
            return ERR_CONFIG;
        }
    }
    config->n_admin_keys = (uint32_t)n;
    return 0;
}

static int take_probing(const struct options *options, struct agent_config *config,
                        struct errmsg *err)
{
    config->half_open_receive = packet_receive_of(options_text(options, "half-open-receive"));
    config->half_open_send = packet_send_of(options_text(options, "half-open-send"));
    if (config->half_open_send == PACKET_SEND_IP &&
        config->half_open_receive != PACKET_RECEIVE_RING) {
        return errmsg_set(
            err, ERR_CONFIG,
            "%s: half-open-receive: \"%s\" is for probes that are sent by the link, and "
            "half-open-send is \"ip\": use ring, or send by auto or link",
            options_origin(options, "half-open-receive"),
            options_text(options, "half-open-receive"));
    }
    for (size_t i = 0; i < options_n_values(options, "allow"); i++) {
        cidr_parse(options_value_at(options, "allow", i), &config->allowed[config->n_allowed++],
                   NULL);
    }
    config->probe_rates.per_node = (uint32_t)options_number(options, "probe-budget");
    config->probe_rates.per_address = (uint32_t)options_number(options, "probe-budget-address");
    if (config->probe_rates.per_address > config->probe_rates.per_node &&
        options_is_set(options, "probe-budget-address")) {
        return errmsg_set(err, ERR_CONFIG,
                          "%s: probe-budget-address: %u is more than the whole probe-budget, %u",
                          options_origin(options, "probe-budget-address"),
                          config->probe_rates.per_address, config->probe_rates.per_node);
    }
    for (size_t i = 0; i < options_n_values(options, "probe-source"); i++) {
        const char *text = options_value_at(options, "probe-source", i);
        struct addr addr;

        addr_parse(text, &addr, NULL);
        struct addr *place = &config->probe_sources[addr.family == ADDR_IPV4 ? 0 : 1];
        if (place->family != ADDR_NONE) {
            return errmsg_set(err, ERR_CONFIG,
                              "%s: probe-source: more than one address of one family (\"%s\")",
                              options_origin(options, "probe-source"), text);
        }
        *place = addr;
    }
    return 0;
}

static int take_times(const struct options *options, struct agent_config *config,
                      struct errmsg *err)
{
    char heartbeat[32], election[32];

    config->election_timeout_ms = (uint32_t)options_duration_ms(options, "election-timeout");
    config->heartbeat_ms = (uint32_t)options_duration_ms(options, "heartbeat");
    config->stop_timeout_ms = (uint32_t)options_duration_ms(options, "stop-timeout");
    if (config->heartbeat_ms * 4 > config->election_timeout_ms) {
        return errmsg_set(
            err, ERR_CONFIG,
            "heartbeat %s (%s) must be at most a quarter of election-timeout %s (%s)",
            units_format_duration_ms(config->heartbeat_ms, heartbeat, sizeof heartbeat),
            options_origin(options, "heartbeat"),
            units_format_duration_ms(config->election_timeout_ms, election, sizeof election),
            options_origin(options, "election-timeout"));
    }
    return 0;
}

static enum log_level take_level(const struct options *options)
{
    static const char *const words[] = {"", "error", "warning", "info", "debug"};

    for (int level = LOG_LEVEL_ERROR; level < LOG_LEVEL_DEBUG; level++) {
        if (strcmp(options_text(options, "log-level"), words[level]) == 0) {
            return (enum log_level)level;
        }
    }
    return LOG_LEVEL_DEBUG;
}

int agent_options_config(const struct options *options, struct agent_config *ret_config,
                         struct errmsg *err)
{
    struct agent_config *config = ret_config;
    int rc;

    *config = (struct agent_config){
        .node_id = options_number(options, "node-id"),
        .log_level = take_level(options),
        .socket_is_private = strcmp(options_text(options, "socket-access"), "owner") == 0};
    if ((rc = take_path(options, "data-dir", config->data_dir, sizeof config->data_dir, err)) !=
            0 ||
        (rc = take_path(options, "run-dir", config->run_dir, sizeof config->run_dir, err)) != 0 ||
        (rc = take_path(options, "key-file", config->key_file, sizeof config->key_file, err)) !=
            0 ||
        (rc = take_endpoints(options, "mesh-listen", config->mesh_listen, &config->n_mesh_listen,
                             err)) != 0 ||
        (rc = take_endpoints(options, "raft-listen", config->raft_listen, &config->n_raft_listen,
                             err)) != 0 ||
        (rc = take_times(options, config, err)) != 0 ||
        (rc = take_trusted(options, config, err)) != 0 ||
        (rc = take_admin_keys(options, config, err)) != 0) {
        return rc;
    }
    return take_probing(options, config, err);
}
