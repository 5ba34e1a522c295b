/* What the verdicts of this node depended on, kept so that they can be worked out again under
 * another rule (replay.h): a bounded past of counted votes, verdicts, observers, holds and groups.
 *
 * Written when a slot is judged and something is not as it was at the judgement before, so each
 * entry is one difference and a silent cluster writes nothing. Entries of one step of the engine
 * carry its number: a step's differences became known together.
 *
 * Bounded (limits.h): one ring for all, the oldest entry out first; a target or row has no more
 * than LIMIT_HISTORY_ENTRIES_PER_TARGET. What goes out is folded into a base, so the rest can still
 * be read from its own beginning, which is told (history_complete_from). In a calm cluster of n
 * nodes a target writes n + 4 entries when it comes and none afterwards; when a peer falls silent
 * or is heard again, each target writes one. The ring takes memory as it fills, up to 24 MiB; bases
 * and chains are 54 bytes a slot in a cluster of 16 and 56 a row (11 MiB at the planned size), what
 * is put aside 1 MiB, former n, V and holds 300 KiB, former groups what
 * LIMIT_HISTORY_VERSION_BACKENDS says.
 *
 * Pure, no clock. Whoever steps the engine, on its thread. */
#ifndef JURY_CORE_HISTORY_H
#define JURY_CORE_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/core/catalog.h"
#include "agent/core/history_votes.h"
#include "agent/core/observers.h"

#define HISTORY_FORMER LIMIT_ROWS /* more than slots */
#define HISTORY_INDEXES (HISTORY_FORMER + LIMIT_HISTORY_FORMER)
/* A slot takes a chain and two values of history_votes.h, a row takes both of these. */
#define HISTORY_CHAIN_BYTES 32
#define HISTORY_ROW_BYTES 24

enum history_kind {
    HISTORY_NONE = 0,      /* an entry that went out before its turn */
    HISTORY_VOTE = 1,      /* of a slot: observer, hold (enum vote_hold), opinion, reason */
    HISTORY_OWN = 2,       /* of a slot: opinion, is_suspect, reason */
    HISTORY_VERDICT = 3,   /* of a row: from, to (enum health_state); both initial: begun anew */
    HISTORY_KEPT = 4,      /* of a row: to, taken from last-known-good */
    HISTORY_TIMER = 5,     /* of a row: a time of it came (window of `initial`, end of warming) */
    HISTORY_GUARD = 6,     /* of a scope's row: the time of its guards came; they saw what is before
                              it in its step */
    HISTORY_FIRST = 7,     /* of a scope's row: its first probe; seen at that step */
    HISTORY_NODE_HOLD = 8, /* of a scope's row: from, to: this node's own hold of it */
    HISTORY_RESULT = 9,    /* of a slot: own result; to: enum probe_class, hold: 1 the first, 2 the
                              second of its streak; later ones are not kept */
    HISTORY_ELECTOR = 10   /* of a slot whose probes are shared: observer, to: it is in n */
};

struct history_entry {
    uint64_t at_ns;      /* monotonic, of the step */
    uint32_t step;       /* of the engine, modulo 2^32 */
    uint32_t next;       /* of the same owner: index in the ring + 1; 0 = none */
    uint32_t index : 20; /* slot or row; of one that is no more, HISTORY_FORMER or above */
    uint32_t kind : 4;   /* enum history_kind */
    uint32_t from : 6;   /* VOTE: observer's index */
    uint32_t hold : 2;   /* VOTE: enum vote_hold; OWN: is_suspect; RESULT: its number */
    uint32_t http_status : 10;
    uint32_t to : 4; /* VOTE, OWN: enum opinion */
    uint32_t reason : 8;
};

/* What all targets have in common. */
struct history_surroundings {
    uint64_t at_ns;
    uint32_t step;
    struct observers observers;
    uint64_t vote_interval_ns;
    uint8_t hold_sources; /* HOLD_BY_CLUSTER, HOLD_BY_NODE */
};

/* A group as it was for a time. */
struct history_version {
    uint64_t from_ns;
    uint64_t to_ns; /* when the next one was adopted, or the group left */
    uint32_t from_step;
    uint32_t to_step;
    const struct catalog_group *group; /* a reference */
};

struct history;

/* n_entries: how many are kept at most; 0, or more than there may be, LIMIT_HISTORY_ENTRIES.
 * NULL: no memory. */
struct history *history_new(uint64_t now_ns, uint32_t n_entries);
void history_free(struct history *history); /* NULL is allowed */
/* Room for slots and rows; never shrinks. Errors: ERR_NOMEM, nothing changed. */
int history_reserve(struct history *history, uint32_t n_slots, uint32_t n_rows);
/* Observers' indexes will be below n_nodes, 1..64; before a slot is reserved, too. Likewise. */
int history_reserve_nodes(struct history *history, uint32_t n_nodes);

/* A slot or row has a new owner: what is kept of the one before is put aside, for the group that
 * had it. */
void history_reset_slot(struct history *history, uint32_t slot, uint64_t birth);
void history_reset_row(struct history *history, struct row_id row, uint64_t now_ns);

/* Append. The entry's `next` is set here; without memory for it the oldest goes out. Its kind says
 * whether its index is a slot or a row. */
void history_add(struct history *history, const struct history_entry *entry);
/* The votes on a slot as the entries so far tell them. */
struct history_votes history_votes_now(const struct history *history, uint32_t slot);
/* An entry is of a slot, not of a row. */
bool history_is_of_slot(const struct history_entry *entry);
/* Fold an entry of a slot into votes. */
void history_fold(struct history_votes *votes, const struct history_entry *entry);

/* The newest; NULL before the first. */
const struct history_surroundings *history_surroundings_now(const struct history *history);
void history_add_surroundings(struct history *history,
                              const struct history_surroundings *surroundings);
/* A group was replaced or left; takes a reference of its own. */
void history_add_version(struct history *history, const struct history_version *version);

/* --- reading --- */

/* Everything is known after this step of this time. step 0: since the engine was made. */
struct history_from {
    uint64_t at_ns;
    uint32_t step;
};
struct history_from history_complete_from(const struct history *history);
/* The first lies after the second. */
bool history_is_after(const struct history_from *a, const struct history_from *b);

/* A row as the history told it. */
struct history_row {
    uint64_t joined_ns;  /* when it was made, or came back from maintenance */
    uint64_t initial_ns; /* when its last `initial` began */
    uint8_t state;       /* enum health_state; HEALTH_NONE = not told */
    bool was_kept;       /* it began with a verdict of last-known-good */
};
/* Fold an entry of a row. */
void history_fold_row(struct history_row *row, const struct history_entry *entry);

/* What is kept of one slot or row. */
struct history_chain {
    bool birth_matches;        /* else nothing is kept of this owner */
    struct history_from from;  /* everything of it is known after this */
    uint32_t index;            /* that its entries have */
    struct history_row before; /* of a row: before its first entry */
    uint32_t first;            /* index in the ring + 1; 0 = none */
};
struct history_chain history_slot(const struct history *history, uint32_t slot, uint64_t birth);
struct history_chain history_row(const struct history *history, uint32_t row, uint64_t birth);
/* The votes before the first kept entry; index: of history_slot. */
struct history_votes history_slot_base(const struct history *history, uint32_t index);
/* By `first` or `next` of another, above 0. */
const struct history_entry *history_at(const struct history *history, uint32_t place);
/* All of them in the order of time: numbers from first up to, not including, next. */
uint64_t history_first(const struct history *history);
uint64_t history_next(const struct history *history);
const struct history_entry *history_by_number(const struct history *history, uint64_t number);

/* Oldest first. */
size_t history_n_surroundings(const struct history *history);
const struct history_surroundings *history_surroundings_at(const struct history *history,
                                                           size_t index);
size_t history_n_versions(const struct history *history);
const struct history_version *history_version_at(const struct history *history, size_t index);

#endif
