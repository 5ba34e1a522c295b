#include "common/model/validate.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/base/str.h"
#include "common/model/names.h"
#include "common/model/validate_field.h"

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

int validate_name(const char *what, const char *name, struct errmsg *err)
{
    size_t n = strlen(name);
    bool fits = n >= LIMIT_NAME_BYTES_MIN && n <= LIMIT_NAME_BYTES && is_letter(name[0]);

    for (size_t i = 0; i < n && fits; i++) {
        fits = is_letter(name[i]) || is_digit(name[i]) || strchr("._-", name[i]) != NULL;
    }
    if (!fits) {
        return errmsg_set(err, ERR_INVALID,
                          "%s \"%.40s\": name must be %d..%d letters, digits, \".\", \"_\" or "
                          "\"-\", a letter first",
                          what, str_is_text(name) ? name : "(not text)", LIMIT_NAME_BYTES_MIN,
                          LIMIT_NAME_BYTES);
    }
    return 0;
}

static int check_listener_port(const struct object *object, const struct listener *listener,
                               struct errmsg *err)
{
    if (listener->at.port == 0) {
        return object_refuse(object, err, ERR_INVALID, "port must be 1..65535, got 0");
    }
    if (listener->port_last < listener->at.port) {
        return object_refuse(object, err, ERR_INVALID,
                             "the last port of a range must not be below the first, got %u-%u",
                             listener->at.port, listener->port_last);
    }
    if (listener->port_last != listener->at.port) {
        return object_refuse(object, err, ERR_UNAVAILABLE_YET,
                             "a port range (%u-%u) is not available yet: write one port",
                             listener->at.port, listener->port_last);
    }
    return 0;
}

static int check_listener(const struct object *object, const struct listener *listener,
                          struct errmsg *err)
{
    char address[ADDR_TEXT_BYTES];
    int rc = 0;

    if (!addr_is_valid(&listener->at.addr)) {
        rc = object_refuse(object, err, ERR_INVALID, "address is missing or not an IP address");
    }
    if (rc == 0 && addr_is_multicast(&listener->at.addr)) {
        rc = object_refuse(object, err, ERR_INVALID, "address %s is a multicast address",
                           addr_format(&listener->at.addr, address));
    }
    if (rc == 0) {
        rc = check_listener_port(object, listener, err);
    }
    if (rc == 0) {
        rc = validate_choice(object, "protocol", &names_protocol, listener->protocol, err);
    }
    if (rc == 0 && listener->protocol != PROTOCOL_TCP) {
        rc = object_refuse(object, err, ERR_UNAVAILABLE_YET,
                           "protocol %s is not available yet: listeners serve tcp so far; leave "
                           "this one out, its group is checked without it",
                           names_word(&names_protocol, listener->protocol));
    }
    if (rc == 0 && listener->idle_timeout_ms != 0) {
        rc = validate_range(object, "idleTimeout", listener->idle_timeout_ms,
                            &validate_idle_timeout, err);
    }
    return rc;
}

int validate_listener(const struct listener *listener, struct errmsg *err)
{
    struct object object = {.kind = "listener", .name = listener->name};
    int rc = validate_name("listener", listener->name, err);

    if (rc == 0) {
        rc = check_listener(&object, listener, err);
    }
    return rc != 0 ? rc : validate_name("listener's server group", listener->group, err);
}

/* A fault of a name, which is an object of its own in sentences. */
static void note_name(const char *what, const char *name, struct validate_faults *faults)
{
    if (faults->n < VALIDATE_FAULTS) {
        int code = validate_name(what, name, &faults->messages[faults->n]);

        faults->codes[faults->n] = code;
        faults->n += code != 0;
    }
}

void validate_listener_all(const struct listener *listener, struct validate_faults *ret_faults)
{
    struct object object = {.kind = "listener", .name = listener->name, .faults = ret_faults};

    ret_faults->n = 0;
    note_name("listener", listener->name, ret_faults);
    check_listener(&object, listener, NULL);
    note_name("listener's server group", listener->group, ret_faults);
}

static int check_settings(const struct object *object, const struct cluster_settings *settings,
                          struct errmsg *err)
{
    static const struct range vote_interval = {CLUSTER_VOTE_INTERVAL_MS_MIN,
                                               CLUSTER_VOTE_INTERVAL_MS_MAX, "200ms..5s", "ms"};
    char text[CIDR_TEXT_BYTES];
    int rc =
        validate_range(object, "voteInterval", settings->vote_interval_ms, &vote_interval, err);

    if (rc != 0) {
        return rc;
    }
    if (settings->n_allowed > LIMIT_CIDRS) {
        return object_refuse(object, err, ERR_LIMIT, ERR_SAY_TOO_MANY, "allowedCidrs",
                             (unsigned long)settings->n_allowed, (unsigned long)LIMIT_CIDRS);
    }
    for (uint32_t i = 0; i < settings->n_allowed; i++) {
        if (!cidr_is_valid(&settings->allowed[i])) {
            return object_refuse(object, err, ERR_INVALID,
                                 "allowedCidrs: entry %" PRIu32 " is not a prefix", i + 1);
        }
        for (uint32_t j = 0; j < i; j++) {
            if (settings->allowed[i].prefix_bits == settings->allowed[j].prefix_bits &&
                addr_compare(&settings->allowed[i].addr, &settings->allowed[j].addr) == 0) {
                return object_refuse(object, err, ERR_INVALID, "allowedCidrs holds %s twice",
                                     cidr_format(&settings->allowed[i], text));
            }
        }
    }
    return validate_hold(object, settings->hold, err);
}

int validate_settings(const struct cluster_settings *settings, struct errmsg *err)
{
    struct object object = {.kind = "cluster settings"};

    return check_settings(&object, settings, err);
}

void validate_settings_all(const struct cluster_settings *settings,
                           struct validate_faults *ret_faults)
{
    struct object object = {.kind = "cluster settings", .faults = ret_faults};

    ret_faults->n = 0;
    check_settings(&object, settings, NULL);
}

/* A DNS name (letters, digits, "-", "_" and dots) or a numeric address. */
static bool is_host(const char *host)
{
    struct addr addr;
    size_t n = strlen(host);

    if (n == 0 || n > HOST_BYTES) {
        return false;
    }
    if (strchr(host, ':') != NULL) {
        return addr_parse(host, &addr, NULL) == 0;
    }
    for (size_t i = 0; i < n; i++) {
        if (!is_letter(host[i]) && !is_digit(host[i]) && strchr("-_.", host[i]) == NULL) {
            return false;
        }
    }
    return host[0] != '.' && host[0] != '-';
}

static int check_node_endpoint(const struct object *object, const struct node_endpoint *endpoint,
                               struct errmsg *err)
{
    if (!is_host(endpoint->host)) {
        return object_refuse(object, err, ERR_INVALID,
                             "endpoint host \"%.60s\" is neither a DNS name nor an IP address "
                             "without brackets",
                             str_is_text(endpoint->host) ? endpoint->host : "(not text)");
    }
    if (endpoint->mesh_port == 0 || endpoint->raft_port == 0) {
        return object_refuse(object, err, ERR_INVALID,
                             "endpoint %s: meshPort and raftPort must be 1..65535", endpoint->host);
    }
    if (endpoint->mesh_port == endpoint->raft_port) {
        return object_refuse(object, err, ERR_INVALID,
                             "endpoint %s: meshPort and raftPort must differ, both are %u",
                             endpoint->host, endpoint->mesh_port);
    }
    return 0;
}

static bool is_zero(const struct public_key *key)
{
    static const struct public_key zero;

    return memcmp(key, &zero, sizeof zero) == 0;
}

static int check_node(const struct object *object, const struct member_node *node,
                      struct errmsg *err)
{
    if (node->node_id == 0) {
        return object_refuse(object, err, ERR_INVALID, "id must be 1 or more");
    }
    int rc = validate_choice(object, "role", &names_raft_role, node->role, err);
    if (rc == 0) {
        rc = validate_text(object, "zone", node->zone, err);
    }
    if (rc == 0 && is_zero(&node->key)) {
        rc = object_refuse(object, err, ERR_INVALID, "public key is missing");
    }
    if (rc == 0 && node->n_endpoints == 0) {
        rc = object_refuse(object, err, ERR_INVALID, "at least one endpoint must be given");
    }
    if (rc == 0 && node->n_endpoints > LIMIT_ENDPOINTS_PER_NODE) {
        rc = object_refuse(object, err, ERR_LIMIT, ERR_SAY_TOO_MANY, "endpoints",
                           (unsigned long)node->n_endpoints,
                           (unsigned long)LIMIT_ENDPOINTS_PER_NODE);
    }
    for (uint32_t i = 0; rc == 0 && i < node->n_endpoints && i < LIMIT_ENDPOINTS_PER_NODE; i++) {
        rc = check_node_endpoint(object, &node->endpoints[i], err);
    }
    for (size_t i = 0; rc == 0 && i < sizeof node->probe_sources / sizeof(struct addr); i++) {
        char text[ADDR_TEXT_BYTES];

        if (node->probe_sources[i].family != ADDR_NONE &&
            addr_is_unspecified(&node->probe_sources[i])) {
            rc = object_refuse(
                object, err, ERR_INVALID, "probeSources.%s must be an address of the node, got %s",
                i == 0 ? "ipv4" : "ipv6", addr_format(&node->probe_sources[i], text));
        }
    }
    return rc;
}

int validate_node(const struct member_node *node, struct errmsg *err)
{
    char id[24];
    struct object object = {.kind = "node", .name = id};

    snprintf(id, sizeof id, "%" PRIu64, node->node_id);
    return check_node(&object, node, err);
}

void validate_node_all(const struct member_node *node, struct validate_faults *ret_faults)
{
    char id[24];
    struct object object = {.kind = "node", .name = id, .faults = ret_faults};

    snprintf(id, sizeof id, "%" PRIu64, node->node_id);
    ret_faults->n = 0;
    check_node(&object, node, NULL);
}

static int check_access_key(const struct object *object, const struct access_key *key,
                            struct errmsg *err)
{
    int rc = 0;

    if (is_zero(&key->key)) {
        rc = object_refuse(object, err, ERR_INVALID, "public key is missing");
    }
    if (rc == 0) {
        rc = validate_choice(object, "role", &names_key_role, key->role, err);
    }
    if (rc == 0 && key->expires_wall_ms < 0) {
        rc = object_refuse(object, err, ERR_INVALID, "expiry must not lie before 1970");
    }
    return rc;
}

int validate_key(const struct access_key *key, struct errmsg *err)
{
    struct object object = {.kind = "key", .name = key->name};
    int rc = validate_name("key", key->name, err);

    return rc != 0 ? rc : check_access_key(&object, key, err);
}

void validate_key_all(const struct access_key *key, struct validate_faults *ret_faults)
{
    struct object object = {.kind = "key", .name = key->name, .faults = ret_faults};

    ret_faults->n = 0;
    note_name("key", key->name, ret_faults);
    check_access_key(&object, key, NULL);
}
