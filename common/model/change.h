/* A command: what is proposed to Raft and applied by every node (agent/core/catalog_apply.h).
 *
 * One command carries one or more changes that become one revision or nothing. */
#ifndef JURY_MODEL_CHANGE_H
#define JURY_MODEL_CHANGE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/model/cluster.h"
#include "common/model/group.h"
#include "common/model/listener.h"

enum change_kind {
    CHANGE_NONE = 0,
    CHANGE_PUT_SETTINGS = 1,
    CHANGE_PUT_GROUP = 2, /* create, or replace the whole group with its backends */
    CHANGE_DELETE_GROUP = 3,
    CHANGE_PUT_LISTENER = 4,
    CHANGE_DELETE_LISTENER = 5,
    CHANGE_PUT_NODE = 6, /* with CHANGE_DELETE_NODE: the store's membership follows */
    CHANGE_DELETE_NODE = 7,
    CHANGE_PUT_KEY = 8,
    CHANGE_DELETE_KEY = 9,
    CHANGE_SET_BACKEND = 10,   /* admin state, drain, weight of one backend */
    CHANGE_PURGE_BACKEND = 11, /* the leader's, when a removed backend is done */
    CHANGE_INIT = 12,          /* first entry: cluster id, settings, members, first keys */
    CHANGE_SET_HOLD = 13,      /* the hold switch of a group or of the cluster */
    CHANGE_RAISE_LEVEL = 14 /* the leader's, when every member announces more (feature_level.h) */
};

/* Drain, ready, maintenance, weight: fields that are not set are left as they are. */
struct backend_update {
    char group[LIMIT_NAME_BYTES + 1];
    struct endpoint at;
    uint8_t admin_state; /* enum admin_state; ADMIN_NONE = leave */
    bool has_weight;
    uint8_t weight;
    bool has_drain_timeout; /* with ADMIN_DRAINING; else the group's drain timeout */
    uint32_t drain_timeout_ms;
};

/* Quietly does nothing when the backend is gone, was added again or was removed once more: then id
 * or removal differ. */
struct backend_purge {
    char group[LIMIT_NAME_BYTES + 1];
    struct endpoint at;
    uint64_t backend_id;
    uint64_t drain_revision; /* of the removal that is done (struct catalog_backend) */
};

/* The hold switch on or off. */
struct hold_update {
    char group[LIMIT_NAME_BYTES + 1]; /* empty = the cluster's */
    bool is_on;
};

#define INIT_KEYS_MAX 8

struct cluster_init {
    struct cluster_id cluster_id;
    struct cluster_settings settings;
    struct member_node nodes[LIMIT_VOTERS];
    uint32_t n_nodes;
    struct access_key keys[INIT_KEYS_MAX];
    uint32_t n_keys;
    uint8_t feature_level; /* of the cluster from the start: that of the node that makes it */
};

struct change {
    uint8_t kind; /* enum change_kind */
    bool has_expected_revision;
    uint64_t expected_revision; /* compared with the object's last change; 0 = must not exist */
    union {
        struct cluster_settings *settings; /* each pointer owned by the change */
        struct server_group *group;
        struct listener *listener;
        struct member_node *node;
        struct access_key *key;
        struct backend_update *backend;
        struct backend_purge *purge;
        struct cluster_init *init;
        struct hold_update *hold;
        char *name;            /* delete group, listener, key */
        uint64_t node_id;      /* delete node */
        uint8_t feature_level; /* raise level */
    } u;
};

struct command {
    struct request_id request_id; /* all zero = none */
    int64_t wall_ms;              /* proposer's wall clock, for people; apply makes it monotonic */
    char actor[LIMIT_NAME_BYTES + 1]; /* who, for people: name of the key, or words */
    bool is_forced;
    uint32_t forced_count;  /* must equal the number of affected backends or groups (R-CFG-2) */
    struct change *changes; /* owned */
    uint32_t n_changes;
};

void command_close(struct command *command);

#endif
