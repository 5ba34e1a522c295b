/* The counted parts that catalogs share. Private to agent/core/catalog*.c.
 *
 * A part is one object of the catalog with its encoded chunks; a list holds parts of one kind by
 * name in pages; an edit makes a new list that shares every page it did not touch. Parts and pages
 * never change once a published catalog holds them, so only the counts are atomic. */
#ifndef JURY_CORE_CATALOG_PARTS_H
#define JURY_CORE_CATALOG_PARTS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/core/catalog.h"
#include "common/base/hash.h"

/* Memory or the end of the process: a node that skipped half of a committed command would differ
 * from the others for ever (catalog_apply.h). Zeroed. */
void *catalog_alloc(size_t n, size_t size);
void *catalog_realloc(void *old, size_t n, size_t size);

/* Hashes of the catalog are keyed with a constant: they compare states, they hide nothing. */
struct hash128 catalog_hash(const void *data, size_t n_bytes);
struct hash128 hash128_add(struct hash128 a, struct hash128 b);      /* mod 2^128 */
struct hash128 hash128_subtract(struct hash128 a, struct hash128 b); /* mod 2^128 */
bool hash128_equal(struct hash128 a, struct hash128 b);

/* Numbers are part of the chunk format. */
enum part_kind {
    PART_NONE = 0,
    PART_HEADER = 1, /* not a part: the chunk that holds a catalog together */
    PART_SETTINGS = 2,
    PART_NODES = 3,
    PART_KEYS = 4,
    PART_GROUP = 5,
    PART_LISTENER = 6,
    PART_ANSWERS = 7 /* not a part: answers of the state in a snapshot */
};

struct part_chunk {
    uint8_t *data; /* owned by the part */
    size_t n_bytes;
};

/* The head of each part; the object follows it. */
struct part {
    _Atomic uint32_t refs;
    uint8_t kind;     /* enum part_kind */
    const char *name; /* of a group or listener, inside the object; else "" */
    struct part_chunk *chunks;
    uint32_t n_chunks;
    struct hash128 content; /* sum of the chunks' hashes */
};

/* A check as targets share it: port 0. First member, so that catalog_target.check leads here. */
struct check_part {
    struct health_check check;
    struct hash128 hash; /* of its encoded form */
    _Atomic uint32_t refs;
};

/* What is probed of each backend of a group: `vote` is what the vote on it is of, NULL: checks are
 * off; `parts`, with a list of checks, each of them. */
struct check_set {
    struct check_part *vote;
    struct check_part *parts[LIMIT_CHECKS];
};

struct group_part {
    struct part head;
    struct catalog_group group;       /* group.spec.checks is owned */
    struct catalog_backend *backends; /* owned; what group.backends shows */
    struct target_id *targets;        /* owned; what group.parts shows */
    char *texts;                      /* owned; what they say; NULL: nothing */
    struct check_set checks;
};
struct listener_part {
    struct part head;
    struct catalog_listener listener;
};
struct settings_part {
    struct part head;
    struct cluster_settings settings;
    uint64_t changed_revision;
    uint8_t feature_level; /* committed: what writes may need */
};
struct nodes_part {
    struct part head;
    struct catalog_node *nodes; /* owned; sorted by id */
    uint32_t n_nodes;
    uint64_t *retired_ids; /* owned; sorted; never used again */
    uint32_t n_retired;
};
struct keys_part {
    struct part head;
    struct catalog_key *keys; /* owned; sorted by name */
    uint32_t n_keys;
};

/* Copy the texts of the backends, which may be anybody's, into the part. */
void group_part_keep_texts(struct group_part *part);

struct part *part_ref(struct part *part);
void part_unref(struct part *part); /* NULL is allowed */
struct check_part *check_part_ref(struct check_part *check);
void check_part_unref(struct check_part *check); /* NULL is allowed */

/* A check as targets see it: its port is theirs, so it is 0 here. Given. */
struct check_part *check_part_new(const struct health_check *check);

/* --- the checks of a group (catalog_checks.c) --- */

/* What the group's checks come to; what is as in `before`, which may be NULL, is shared. Given. */
void check_set_make(const struct server_group *spec, const struct check_set *before,
                    struct check_set *ret_set);
void check_set_close(struct check_set *set);

/* Targets that each probed backend uses: use 0 is that of its vote, then those of its parts. */
uint32_t catalog_n_uses(const struct server_group *spec);
struct catalog_definition {
    struct endpoint to;       /* the backend's address and the check's port, or its own */
    struct check_part *check; /* borrowed */
    struct hash128 hash;
};
struct catalog_definition catalog_use_definition(const struct server_group *spec,
                                                 const struct check_set *set,
                                                 const struct endpoint *at, uint32_t use);

#define PART_PAGE_ITEMS 64

struct part_page {
    _Atomic uint32_t refs;
    uint32_t n_items;
    uint32_t n_chunks; /* of all its items */
    struct part *items[PART_PAGE_ITEMS];
};

struct part_place {
    struct part_page *page;
    uint32_t first_item; /* index of its first item in the list */
    uint32_t first_chunk;
};

/* Immutable once made; belongs to one catalog or state at a time. */
struct part_list {
    struct part_place *pages;
    uint32_t n_pages;
    uint32_t n_items;
    uint32_t n_chunks;
};

/* What becomes of one name: part NULL = it goes. */
struct part_edit {
    const char *name;
    struct part *part; /* taken */
};

void part_list_close(struct part_list *list);
/* Another list with the same pages. */
void part_list_share(const struct part_list *from, struct part_list *ret_list);
struct part *part_list_at(const struct part_list *list, size_t index);
struct part *part_list_find(const struct part_list *list, const char *name);
const struct part_chunk *part_list_chunk(const struct part_list *list, size_t index);
/* edits: sorted by name, no name twice; a name that goes must be there. */
void part_list_edit(const struct part_list *from, const struct part_edit edits[], size_t n_edits,
                    struct part_list *ret_list);

#define TARGET_PAGE_SLOTS 256
#define TARGET_PAGES (LIMIT_TARGETS / TARGET_PAGE_SLOTS)

struct target_page {
    _Atomic uint32_t refs;
    uint32_t n_targets;
    uint64_t birth_max;    /* newest birth of a slot in use; 0 = page is empty */
    struct hash128 digest; /* sum over the slots in use of H(slot, birth, definition hash) */
    struct catalog_target targets[TARGET_PAGE_SLOTS]; /* n_users 0 = free */
};

/* The counters of a catalog, part of its header chunk. */
struct catalog_counters {
    uint64_t next_group_id;
    uint64_t next_backend_id;
    uint64_t next_listener_id;
};

struct catalog {
    _Atomic uint32_t refs;
    uint64_t revision;
    struct cluster_id cluster_id;
    int64_t wall_ms;
    char actor[LIMIT_NAME_BYTES + 1]; /* of this revision's command */
    struct catalog_counters counters;
    struct hash128 content;      /* sum of the hashes of all parts' chunks */
    struct hash128 chain_before; /* chain of revision - 1 */
    struct hash128 answers;      /* running hash of the answers when this revision was made */
    struct hash128 chain;        /* catalog_state_hash */
    struct part_chunk header;
    struct settings_part *settings;
    struct nodes_part *nodes;
    struct keys_part *keys;
    struct part_list groups;
    struct part_list listeners;
    struct target_page *target_pages[TARGET_PAGES]; /* NULL = all free */
    uint32_t n_slots;
    uint32_t n_rows;
    uint32_t n_targets;       /* slots in use */
    uint32_t n_rows_used;     /* rows in use */
    uint32_t n_live_groups;   /* not deleted */
    uint32_t n_live_backends; /* not removing */
};

/* A catalog that shares every part of `from`, with one reference, for its owner to change. */
struct catalog *catalog_copy(const struct catalog *from);
/* Revision 0. */
struct catalog *catalog_new_empty(void);

/* --- targets of a catalog that is being made (catalog_targets.c) --- */

/* Whether a backend of this group is probed: checks on and no maintenance (spec.md 5). */
bool catalog_wants_target(const struct catalog_group *group, const struct catalog_backend *backend);
struct hash128 catalog_definition_hash(const struct endpoint *to, const struct check_part *check);
/* Put a definition into a free slot, with no user yet. The slot holds a reference of its own to
 * `check`. */
void catalog_target_put(struct catalog *catalog, const struct target_id *id,
                        const struct endpoint *to, struct check_part *check);
/* Change the number of users; at 0 the slot is free. Returns the users left. */
uint32_t catalog_target_use(struct catalog *catalog, uint32_t slot, int32_t delta);
void catalog_target_page_unref(struct target_page *page); /* NULL is allowed */

#endif
