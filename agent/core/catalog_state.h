/* The state behind catalog_apply.h and the plan of one command. Private to agent/core/catalog*.c.
 *
 * A command is planned first: each change is judged and drafted, then the whole is judged. Planning
 * changes nothing, so catalog_check plans and drops, catalog_apply plans and commits, and both say
 * the same (R-CFG-1). The commit cannot fail. */
#ifndef JURY_CORE_CATALOG_STATE_H
#define JURY_CORE_CATALOG_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/core/catalog_answers.h"
#include "agent/core/catalog_apply.h"
#include "agent/core/catalog_parts.h"
#include "agent/core/numbers.h"
#include "common/base/idmap.h"

struct catalog_state {
    struct catalog *catalog;
    struct numbers slots;
    struct numbers rows;
    struct idmap targets;   /* definition hash -> slot */
    struct idmap listeners; /* hash of address, port, protocol -> struct listener_part * */
    struct answers answers;
};

/* A group that the command names. */
struct group_draft {
    const struct group_part *before;  /* NULL = new */
    struct catalog_group after;       /* after.backends is `backends` */
    struct catalog_backend *backends; /* owned */
    struct check_set checks;          /* owned; set by plan_targets, as the next */
    struct target_id *targets;        /* owned; what after.parts shall show */
    uint32_t change_index;
    bool is_whole;   /* put or deleted; then nothing else may name it */
    bool is_partial; /* one of its backends or its hold switch is named */
    bool is_touched; /* differs by a change that counts for expected_revision */
    bool is_purged;  /* lost backends whose removal was done */
    bool is_gone;    /* leaves the catalog with this command */
};

struct listener_draft {
    const struct listener_part *before; /* NULL = new */
    struct catalog_listener after;
    uint32_t change_index;
    bool is_touched;
    bool is_gone;
};

/* What becomes of the users of one slot; and a pair that needs a slot for a new definition. */
struct slot_delta {
    uint32_t slot;
    int32_t delta;
};
struct fresh_target {
    struct group_draft *draft;
    uint32_t backend_index;
    uint32_t use; /* catalog_n_uses */
    struct hash128 hash;
};

struct bytes_writer;

struct plan {
    const struct catalog_state *state;
    const struct catalog *base;
    const struct command *command;
    struct apply_answer *answer;
    uint64_t revision;                 /* that the command would make */
    uint32_t change_index;             /* of the change that is being judged */
    bool is_effective;                 /* some change changes something */
    struct catalog_refusals *refusals; /* all of them, for people; NULL: the first ends it */
    uint32_t n_undrafted; /* of these, refused before there was a draft: what the object would be is
                             not known */

    struct group_draft **groups; /* sorted by name once all changes are drafted */
    uint32_t n_groups;
    struct listener_draft **listeners;
    uint32_t n_listeners;
    struct idmap drafts;   /* hash of name -> index in groups, while changes are drafted */
    struct hash128 *named; /* every object that was named so far */
    uint32_t n_named;
    struct idmap named_index;

    /* Working copies without chunks; NULL = unchanged. */
    struct settings_part *settings;
    struct nodes_part *nodes;
    struct keys_part *keys;
    const struct cluster_init *init;

    struct slot_delta *deltas; /* by slot, no slot twice, after plan_targets */
    uint32_t n_deltas;
    struct fresh_target *fresh; /* in order of group name and endpoint */
    uint32_t n_fresh;
};

/* Judge the whole command. Returns 0 or the ERR_* that is in the answer then. */
int plan_make(struct plan *plan);
void plan_close(struct plan *plan);
/* Make the plan the newest revision. */
void plan_commit(struct plan *plan, struct catalog_state *state);

/* Write the refusal of the current change into the answer; returns err. Where all are noted the
 * first one stays in the answer. */
int plan_refuse(struct plan *plan, int err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Whether the judging goes on after rc, that of one check. *first: 0 at the beginning; becomes the
 * first that is not, which is to be returned at the end. */
bool plan_goes_on(const struct plan *plan, int rc, int *first);
/* Whether no change of the kind was refused before, of the name if one is given: what that one was
 * to make is not drafted, and what hangs on it is not judged. */
bool plan_none_refused(const struct plan *plan, enum change_kind kind, const char *name);
bool plan_is_refused(const struct plan *plan, uint32_t change_index);
/* Note what the current change does; each that is not refused says so once. */
void plan_note(struct plan *plan, bool was_there, bool is_changed);
/* Are two objects encoded alike? Closes both writers. No memory ends the process (catalog_alloc).
 */
bool plan_same_bytes(struct bytes_writer *a, struct bytes_writer *b);
/* Note that the command names this object; the second time is refused. */
int plan_name_once(struct plan *plan, enum part_kind kind, const char *name,
                   const struct endpoint *at);
/* Compare the change's expected_revision with the object's; revision 0 = it does not exist.
 * what: `server group "web"`. */
int plan_check_expected(struct plan *plan, const struct change *change, const char *what,
                        uint64_t changed_revision);

/* Set an object's hold switch, and who set it, if the command wants another. wanted: enum
 * hold_switch; HOLD_KEEP wants none. */
void plan_set_hold(const struct plan *plan, uint8_t wanted, uint8_t *hold,
                   struct hold_origin *origin);

/* --- one file a kind of object --- */
int plan_put_group(struct plan *plan, const struct change *change);
int plan_delete_group(struct plan *plan, const struct change *change);
int plan_set_backend(struct plan *plan, const struct change *change);
int plan_purge_backend(struct plan *plan, const struct change *change);
int plan_hold_group(struct plan *plan, const struct change *change);
/* A group as it would be after the command; NULL when there is none or it is deleted. Once all
 * changes are drafted and sorted. */
const struct catalog_group *plan_group_after(const struct plan *plan, const char *name);
void group_draft_free(struct group_draft *draft);
/* Backends that are not being removed (catalog_commit.c). */
uint32_t group_n_live(const struct catalog_group *group);

int plan_put_listener(struct plan *plan, const struct change *change);
int plan_delete_listener(struct plan *plan, const struct change *change);
/* References, places and the groups that listeners keep from being deleted. */
int plan_check_listeners(struct plan *plan);
uint64_t listener_place_hash(const struct listener *listener);

int plan_put_settings(struct plan *plan, const struct change *change);
int plan_hold_cluster(struct plan *plan, const struct change *change);
int plan_raise_level(struct plan *plan, const struct change *change);
int plan_put_node(struct plan *plan, const struct change *change);
int plan_delete_node(struct plan *plan, const struct change *change);
int plan_put_key(struct plan *plan, const struct change *change);
int plan_delete_key(struct plan *plan, const struct change *change);
int plan_init_cluster(struct plan *plan, const struct change *change);
int plan_check_members(struct plan *plan);
const struct nodes_part *plan_nodes_after(const struct plan *plan);
const struct keys_part *plan_keys_after(const struct plan *plan);
uint32_t plan_n_observers(const struct plan *plan);

/* Addresses, rules against n, limits: what spans groups (catalog_plan_whole.c). */
int plan_check_groups(struct plan *plan);
/* R-CFG-2 (catalog_force.c). */
int plan_check_force(struct plan *plan);
/* Where a draft keeps the target of one use (catalog_n_uses) of a backend. */
struct target_id *plan_place_of(struct group_draft *draft, uint32_t index, uint32_t use);
/* Slots that lose and gain users; refuses more targets than there are slots. */
int plan_targets(struct plan *plan);

#endif
