/* Cluster settings, member nodes and keys: model <-> message. */
#include <string.h>

#include "common/base/str.h"
#include "common/base/units.h"
#include "common/model/names.h"
#include "common/wire/object.h"
#include "common/wire/read_field.h"

static char *hex_new(struct wire_arena *arena, const uint8_t *data, size_t n_bytes)
{
    char *text = wire_alloc(arena, 2 * n_bytes + 1);

    if (text != NULL) {
        str_hex(data, n_bytes, text);
    }
    return text;
}

/* --- settings --- */

Jury__V1__ClusterSettings *wire_settings_new(struct wire_arena *arena,
                                             const struct cluster_settings *settings)
{
    char text[CIDR_TEXT_BYTES];
    Jury__V1__ClusterSettings *message =
        WIRE_NEW(arena, Jury__V1__ClusterSettings, jury__v1__cluster_settings);

    if (message == NULL) {
        return NULL;
    }
    message->vote_interval = wire_duration_new(arena, settings->vote_interval_ms * NS_PER_MS);
    message->hold = settings->hold == HOLD_ON;
    message->hold_switch = (Jury__V1__HoldSwitch)settings->hold;
    message->allowed_cidrs =
        wire_alloc_array(arena, settings->n_allowed, sizeof *message->allowed_cidrs);
    for (uint32_t i = 0; message->allowed_cidrs != NULL && i < settings->n_allowed; i++) {
        char *cidr = wire_text(arena, cidr_format(&settings->allowed[i], text));

        if (cidr == NULL) {
            break;
        }
        message->allowed_cidrs[message->n_allowed_cidrs++] = cidr;
    }
    return message;
}

int wire_settings_read(const Jury__V1__ClusterSettings *message,
                       struct cluster_settings *ret_settings, struct errmsg *err)
{
    struct cluster_settings settings;
    int rc;

    cluster_settings_default(&settings);
    rc = read_duration("vote_interval", message->vote_interval, &settings.vote_interval_ms, err);
    if (rc == 0 && message->n_allowed_cidrs > LIMIT_CIDRS) {
        rc = errmsg_set(err, ERR_LIMIT, ERR_SAY_TOO_MANY, "allowedCidrs",
                        (unsigned long)message->n_allowed_cidrs, (unsigned long)LIMIT_CIDRS);
    }
    if (rc == 0 && message->n_allowed_cidrs > 0) {
        memset(settings.allowed, 0, sizeof settings.allowed);
        settings.n_allowed = (uint32_t)message->n_allowed_cidrs;
    }
    for (size_t i = 0; rc == 0 && i < message->n_allowed_cidrs; i++) {
        rc = cidr_parse(message->allowed_cidrs[i], &settings.allowed[i], err);
    }
    if (rc == 0) {
        settings.hold = message->hold ? HOLD_ON : HOLD_KEEP;
        rc = read_enum("hold_switch", &names_hold, (int)message->hold_switch, &settings.hold, err);
    }
    if (rc != 0) {
        errmsg_prefix(err, "cluster settings");
        return rc;
    }
    *ret_settings = settings;
    return 0;
}

/* --- nodes --- */

static Jury__V1__NodeEndpoint *endpoint_new(struct wire_arena *arena,
                                            const struct node_endpoint *endpoint)
{
    Jury__V1__NodeEndpoint *message =
        WIRE_NEW(arena, Jury__V1__NodeEndpoint, jury__v1__node_endpoint);

    if (message != NULL) {
        message->host = wire_text(arena, endpoint->host);
        message->mesh_port = endpoint->mesh_port;
        message->raft_port = endpoint->raft_port;
    }
    return message;
}

static void add_sources(struct wire_arena *arena, const struct member_node *node,
                        Jury__V1__MemberNode *message)
{
    char text[ADDR_TEXT_BYTES];

    message->probe_sources = wire_alloc_array(arena, 2, sizeof *message->probe_sources);
    for (size_t i = 0; message->probe_sources != NULL && i < 2; i++) {
        if (node->probe_sources[i].family == ADDR_NONE) {
            continue;
        }
        char *source = wire_text(arena, addr_format(&node->probe_sources[i], text));
        if (source == NULL) {
            return;
        }
        message->probe_sources[message->n_probe_sources++] = source;
    }
}

Jury__V1__MemberNode *wire_node_new(struct wire_arena *arena, const struct member_node *node)
{
    Jury__V1__MemberNode *message = WIRE_NEW(arena, Jury__V1__MemberNode, jury__v1__member_node);

    if (message == NULL) {
        return NULL;
    }
    message->node_id = node->node_id;
    message->role = (Jury__V1__RaftRole)node->role;
    message->zone = wire_text(arena, node->zone);
    message->public_key = hex_new(arena, node->key.bytes, sizeof node->key.bytes);
    message->endpoints = wire_alloc_array(arena, node->n_endpoints, sizeof *message->endpoints);
    for (uint32_t i = 0; message->endpoints != NULL && i < node->n_endpoints; i++) {
        Jury__V1__NodeEndpoint *endpoint = endpoint_new(arena, &node->endpoints[i]);

        if (endpoint == NULL) {
            break;
        }
        message->endpoints[message->n_endpoints++] = endpoint;
    }
    add_sources(arena, node, message);
    return message;
}

static int read_endpoints(const Jury__V1__MemberNode *message, struct member_node *node,
                          struct errmsg *err)
{
    int rc = 0;

    if (message->n_endpoints > LIMIT_ENDPOINTS_PER_NODE) {
        return errmsg_set(err, ERR_LIMIT, ERR_SAY_TOO_MANY, "endpoints",
                          (unsigned long)message->n_endpoints,
                          (unsigned long)LIMIT_ENDPOINTS_PER_NODE);
    }
    for (size_t i = 0; rc == 0 && i < message->n_endpoints; i++) {
        struct node_endpoint *endpoint = &node->endpoints[i];

        rc = read_text("endpoints.host", message->endpoints[i]->host, endpoint->host,
                       sizeof endpoint->host, err);
        if (rc == 0) {
            rc = read_port("endpoints.mesh_port", message->endpoints[i]->mesh_port, 1,
                           &endpoint->mesh_port, err);
        }
        if (rc == 0) {
            rc = read_port("endpoints.raft_port", message->endpoints[i]->raft_port, 1,
                           &endpoint->raft_port, err);
        }
    }
    node->n_endpoints = (uint32_t)message->n_endpoints;
    return rc;
}

/* IPv4 first, IPv6 second, as the model has them. */
static int read_sources(const Jury__V1__MemberNode *message, struct member_node *node,
                        struct errmsg *err)
{
    for (size_t i = 0; i < message->n_probe_sources; i++) {
        struct addr addr;
        int rc = read_addr("probe_sources", message->probe_sources[i], &addr, err);

        if (rc != 0) {
            return rc;
        }
        size_t at = addr.family == ADDR_IPV4 ? 0 : 1;
        if (node->probe_sources[at].family != ADDR_NONE) {
            return errmsg_set(err, ERR_INVALID,
                              "probe_sources must be at most one address of each family");
        }
        node->probe_sources[at] = addr;
    }
    return 0;
}

int wire_node_read(const Jury__V1__MemberNode *message, struct member_node *ret_node,
                   struct errmsg *err)
{
    struct member_node node = {.node_id = message->node_id};
    int rc = read_enum("role", &names_raft_role, (int)message->role, &node.role, err);

    if (rc == 0) {
        rc = read_text("zone", message->zone, node.zone, sizeof node.zone, err);
    }
    if (rc == 0) {
        rc =
            read_hex("public_key", message->public_key, node.key.bytes, sizeof node.key.bytes, err);
    }
    if (rc == 0) {
        rc = read_endpoints(message, &node, err);
    }
    if (rc == 0) {
        rc = read_sources(message, &node, err);
    }
    if (rc != 0) {
        errmsg_prefix(err, "node %llu", (unsigned long long)message->node_id);
        return rc;
    }
    *ret_node = node;
    return 0;
}

/* --- keys --- */

Jury__V1__AccessKey *wire_key_new(struct wire_arena *arena, const struct access_key *key)
{
    Jury__V1__AccessKey *message = WIRE_NEW(arena, Jury__V1__AccessKey, jury__v1__access_key);

    if (message != NULL) {
        message->name = wire_text(arena, key->name);
        message->public_key = hex_new(arena, key->key.bytes, sizeof key->key.bytes);
        message->role = (Jury__V1__Role)key->role;
        message->expires =
            key->expires_wall_ms != 0 ? wire_timestamp_new(arena, key->expires_wall_ms) : NULL;
    }
    return message;
}

static int read_expiry(const Google__Protobuf__Timestamp *timestamp, int64_t *ret_wall_ms,
                       struct errmsg *err)
{
    const int64_t seconds_max = INT64_C(253402300799); /* end of the year 9999 */

    if (timestamp == NULL) {
        return 0;
    }
    if (timestamp->seconds <= 0 || timestamp->seconds > seconds_max || timestamp->nanos < 0 ||
        timestamp->nanos >= 1000000000 || timestamp->nanos % 1000000 != 0) {
        return errmsg_set(err, ERR_INVALID,
                          "expires must be a time after 1970 in whole milliseconds");
    }
    *ret_wall_ms = timestamp->seconds * 1000 + timestamp->nanos / 1000000;
    return 0;
}

int wire_key_read(const Jury__V1__AccessKey *message, struct access_key *ret_key,
                  struct errmsg *err)
{
    struct access_key key = {0};
    int rc = read_text("name", message->name, key.name, sizeof key.name, err);

    if (rc == 0) {
        rc = read_hex("public_key", message->public_key, key.key.bytes, sizeof key.key.bytes, err);
    }
    if (rc == 0) {
        rc = read_enum("role", &names_key_role, (int)message->role, &key.role, err);
    }
    if (rc == 0) {
        rc = read_expiry(message->expires, &key.expires_wall_ms, err);
    }
    if (rc != 0) {
        errmsg_prefix(err, "key \"%.128s\"", message->name);
        return rc;
    }
    *ret_key = key;
    return 0;
}
