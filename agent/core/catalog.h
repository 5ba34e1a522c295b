/* The catalog: the replicated configuration at one revision, immutable once published.
 *
 * A value of counted parts: a new revision shares every group, page and chunk that did not change,
 * so a small write costs a small change. Only catalog_apply.h makes new revisions; everybody else
 * reads. References are counted atomically, so a catalog may pass between threads; its content
 * never changes. */
#ifndef JURY_CORE_CATALOG_H
#define JURY_CORE_CATALOG_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/core/probe.h"
#include "common/base/err.h"
#include "common/base/hash.h"
#include "common/model/cluster.h"
#include "common/model/group.h"
#include "common/model/listener.h"

/* Life cycle of a backend (spec.md 2). ADDING and REPLACING are instance words of a later stage. */
enum backend_life {
    LIFE_NONE = 0,
    LIFE_ADDING = 1,
    LIFE_AVAILABLE = 2,
    LIFE_REMOVING = 3,
    LIFE_REPLACING = 4
};

/* No row or slot. */
#define CATALOG_NO_ROW UINT32_MAX
#define CATALOG_NO_SLOT UINT32_MAX

/* A row numbers a scope or a (scope, backend) in the forwarding table and in the verdicts; lowest
 * free row first, freed at the purge. (row, birth) is its identity. */
struct row_id {
    uint32_t row;
    uint64_t birth;
};

/* struct backend without room for texts that hardly anybody writes: they belong to the group. */
struct catalog_backend_spec {
    struct endpoint at;
    uint8_t weight;      /* 0..100 */
    uint8_t admin_state; /* enum admin_state, never ADMIN_NONE */
    const char *zone;    /* never NULL */
    const char *description;
};

/* There are 100,000 of the next two, and no larger than these bounds. */
#define CATALOG_BACKEND_BYTES 104
#define CATALOG_TARGET_BYTES 64

struct catalog_backend {
    struct catalog_backend_spec spec;
    uint64_t id; /* unique in the cluster's life, rising; order of candidates of a guard */
    struct row_id row;
    struct target_id target;   /* of the vote; slot CATALOG_NO_SLOT: checks off or maintenance */
    uint64_t changed_revision; /* for expected_revision */
    uint64_t drain_revision; /* revision that committed the running drain, else removal; 0 = none */
    uint32_t
        drain_timeout_ms; /* of that drain; of a removal the group's, used if its drain is on */
    uint8_t life;         /* enum backend_life */
};
static_assert(sizeof(struct catalog_backend) <= CATALOG_BACKEND_BYTES, "of each backend");
/* As the model has it. */
struct backend catalog_backend_value(const struct catalog_backend *backend);

/* A group that was deleted stays, with the spec it had, until its last backend is purged: its flows
 * still follow its policies. All its backends are `removing`, no listener leads to it, and putting
 * a group of that name revives it with its id and row. */
struct catalog_group {
    struct server_group
        spec; /* spec.backends is NULL: they are below, with what the catalog adds */
    bool is_deleted;
    uint64_t id;
    struct row_id row;         /* of the scope */
    uint64_t changed_revision; /* of the group or one of its backends; a purge does not count */
    const struct catalog_backend *backends; /* sorted by endpoint; removing ones included */
    uint32_t n_backends;
    /* With a list of checks: spec.n_checks targets of each backend in turn, those of its checks. */
    const struct target_id *parts;
};
/* The backend's targets in there, in the order of spec.checks; slot CATALOG_NO_SLOT: not probed.
 * backend: of the group. NULL: there is no list. */
const struct target_id *catalog_parts_of(const struct catalog_group *group,
                                         const struct catalog_backend *backend);

struct catalog_listener {
    struct listener spec;
    uint64_t id;
    uint64_t group_id;
    uint64_t changed_revision;
};

struct catalog_node {
    struct member_node spec;
    uint64_t changed_revision;
    uint64_t added_revision;
};

struct catalog_key {
    struct access_key spec;
    uint64_t changed_revision;
};

struct catalog;

struct catalog *catalog_ref(struct catalog *catalog);
/* NULL is allowed. */
void catalog_unref(struct catalog *catalog);

/* 0 before the cluster was made. */
uint64_t catalog_revision(const struct catalog *catalog);
struct cluster_id catalog_cluster_id(const struct catalog *catalog);
/* Chained over revisions: equal on all nodes at equal revision (I-4). */
struct hash128 catalog_state_hash(const struct catalog *catalog);
/* Whose command made this revision, for people; "" = not known. Valid as long as the catalog. */
const char *catalog_actor(const struct catalog *catalog);
const struct cluster_settings *catalog_settings(const struct catalog *catalog);
uint64_t catalog_settings_changed_revision(const struct catalog *catalog);
/* The committed level: no object needs more (feature_level.h). */
uint8_t catalog_feature_level(const struct catalog *catalog);
/* What the committed level may rise to now that the members announce these; 0 = it stays. levels:
 * one for each node, in order; 0 = that node was not heard, and nothing is known of it. Of all
 * members, spares too: they follow the log as the others do. */
uint8_t catalog_level_due(const struct catalog *catalog, const uint8_t levels[]);

/* All lists are sorted by name (nodes: by id); what they return is valid as long as the caller
 * holds the catalog. Groups include deleted ones that wait for their last purge. Access by
 * index or name costs a binary search. */
size_t catalog_n_groups(const struct catalog *catalog);
const struct catalog_group *catalog_group_at(const struct catalog *catalog, size_t index);
const struct catalog_group *catalog_group_find(const struct catalog *catalog, const char *name);
/* A group may outlive its catalog: a reference of its own, to be given back. */
const struct catalog_group *catalog_group_ref(const struct catalog_group *group);
void catalog_group_unref(const struct catalog_group *group); /* NULL is allowed */
size_t catalog_n_listeners(const struct catalog *catalog);
const struct catalog_listener *catalog_listener_at(const struct catalog *catalog, size_t index);
size_t catalog_n_nodes(const struct catalog *catalog);
const struct catalog_node *catalog_node_at(const struct catalog *catalog, size_t index);
const struct catalog_node *catalog_node_find(const struct catalog *catalog, uint64_t node_id);
size_t catalog_n_keys(const struct catalog *catalog);
const struct catalog_key *catalog_key_at(const struct catalog *catalog, size_t index);
const struct catalog_key *catalog_key_find(const struct catalog *catalog, const char *name);
/* What a rule needs of a cluster of so many observers. Errors: ERR_INVALID. */
int catalog_check_rule(const struct server_group *group, uint32_t n_observers, struct errmsg *err);
/* Voters and standbys: the electorate of votes (n in spec.md 5). */
uint32_t catalog_n_observers(const struct catalog *catalog);

const struct catalog_backend *catalog_backend_find(const struct catalog_group *group,
                                                   const struct endpoint *at);

/* Targets by slot. A free slot answers NULL; slots are below catalog_n_slots. */
uint32_t catalog_n_slots(const struct catalog *catalog);
struct catalog_target {
    struct target_id id;
    /* Shared between targets; its port is 0. Of type CHECK_TYPE_NONE: nobody probes this one, the
     * opinion of it is composed of those of other targets. */
    const struct health_check *check;
    struct hash128 definition_hash;
    struct endpoint to; /* what is probed: the check's port, or the backend's */
    uint32_t n_users;   /* (scope, backend) pairs that use it */
};
static_assert(sizeof(struct catalog_target) <= CATALOG_TARGET_BYTES, "of each target");
/* Such a check may outlive its catalog: a reference of its own, to be given back. Any thread. */
const struct health_check *catalog_check_ref(const struct health_check *check);
void catalog_check_unref(const struct health_check *check); /* NULL is allowed */
/* One of its own, with one reference, for targets that are in no catalog. */
const struct health_check *catalog_check_new(const struct health_check *check);

const struct catalog_target *catalog_target_at(const struct catalog *catalog, uint32_t slot);
/* Its definition; the check is the target's. */
void catalog_target_definition(const struct catalog_target *target,
                               struct target_definition *ret_definition);

/* Rows are below catalog_n_rows. */
uint32_t catalog_n_rows(const struct catalog *catalog);

/* For the vote chunk `chunk` at this revision (design.md 4, target slots): the digest over
 * (slot, birth, definition hash) of its slots. */
struct hash128 catalog_chunk_digest(const struct catalog *catalog, uint16_t chunk);
/* The newest births of the chunk, newest first, at most LIMIT_BIRTHS_PER_CHUNK; *ret_floor is the
 * birth of the newest one left out, else 0. Returns their number. */
uint16_t catalog_chunk_births(const struct catalog *catalog, uint16_t chunk,
                              struct target_id births[LIMIT_BIRTHS_PER_CHUNK], uint64_t *ret_floor);

/* The encoded chunks of this revision, for a snapshot or the last-known-good file: opaque bytes
 * with their own version, each at most LIMIT_CHUNK_BYTES, valid as long as the catalog is held. */
size_t catalog_n_chunks(const struct catalog *catalog);
const uint8_t *catalog_chunk_at(const struct catalog *catalog, size_t index, size_t *ret_n_bytes);

/* A catalog equal to the one that the chunks came from; they may be in any order, are copied, and
 * chunks of a state (catalog_apply.h) among them are passed over. The catalog is given.
 * Errors: ERR_CORRUPT, ERR_VERSION, each with a sentence; shortage of memory aborts. */
struct catalog_chunk_view {
    const uint8_t *data;
    size_t n_bytes;
};
int catalog_decode(const struct catalog_chunk_view chunks[], size_t n_chunks,
                   struct catalog **ret_catalog, struct errmsg *err);

#endif
