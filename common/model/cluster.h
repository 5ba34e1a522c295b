/* Cluster settings, member nodes and keys. */
#ifndef JURY_MODEL_CLUSTER_H
#define JURY_MODEL_CLUSTER_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/addr.h"
#include "common/base/limits.h"
#include "common/model/guard.h"

#define CLUSTER_ID_BYTES 16
#define PUBLIC_KEY_BYTES 32 /* CURVE */
#define REQUEST_ID_BYTES 16
#define HOST_BYTES 255 /* longest DNS name */

#define CLUSTER_VOTE_INTERVAL_MS 1000
#define CLUSTER_VOTE_INTERVAL_MS_MIN 200
#define CLUSTER_VOTE_INTERVAL_MS_MAX 5000

struct cluster_id {
    uint8_t bytes[CLUSTER_ID_BYTES];
};
struct public_key {
    uint8_t bytes[PUBLIC_KEY_BYTES];
};
struct request_id {
    uint8_t bytes[REQUEST_ID_BYTES];
};

struct cluster_settings {
    uint32_t vote_interval_ms;        /* V, 200..5000, default 1000 */
    struct cidr allowed[LIMIT_CIDRS]; /* where backends may be; see cluster_settings_default */
    uint32_t n_allowed;
    uint8_t hold;               /* enum hold_switch, of every group */
    struct hold_origin held_by; /* of the switch as it is; the catalog's, no document has it */
};

/* V = 1s and 10.0.0.0/8, 100.64.0.0/10, 172.16.0.0/12, 192.168.0.0/16, fc00::/7 (S66, b3). */
void cluster_settings_default(struct cluster_settings *settings);

enum raft_role {
    ROLE_NONE = 0,
    ROLE_VOTER = 1,
    ROLE_STANDBY = 2,
    ROLE_SPARE = 3
};

/* host: a DNS name or a numeric address, without brackets. */
struct node_endpoint {
    char host[HOST_BYTES + 1];
    uint16_t mesh_port; /* votes, hellos, RPC */
    uint16_t raft_port;
};

struct member_node {
    uint64_t node_id; /* > 0; never used again after removal */
    uint8_t role;     /* enum raft_role */
    char zone[LIMIT_ZONE_BYTES + 1];
    struct public_key key;
    struct node_endpoint endpoints[LIMIT_ENDPOINTS_PER_NODE];
    uint32_t n_endpoints;
    struct addr probe_sources[2]; /* IPv4 and IPv6; ADDR_NONE = the kernel's choice */
};

enum key_role {
    KEY_ROLE_NONE = 0,
    KEY_ROLE_VIEWER = 1,
    KEY_ROLE_OPERATOR = 2,
    KEY_ROLE_ADMIN = 3
};

struct access_key {
    char name[LIMIT_NAME_BYTES + 1];
    struct public_key key;
    uint8_t role;            /* enum key_role */
    int64_t expires_wall_ms; /* 0 = never */
};

#endif
