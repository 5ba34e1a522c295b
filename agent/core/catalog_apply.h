/* Commands to new catalog revisions: the replicated state machine, pure and deterministic.
 *
 * Reads nothing but the state and the command: no clock, option or locale, so every node comes to
 * the same bytes (R-CFG-1, I-4). The state is the newest catalog, the indexes that make a write
 * cheap and the answers of the last 4096 request ids. One thread owns it. */
#ifndef JURY_CORE_CATALOG_APPLY_H
#define JURY_CORE_CATALOG_APPLY_H

#include <stddef.h>
#include <stdint.h>

#include "agent/core/catalog.h"
#include "common/base/err.h"
#include "common/model/change.h"

struct catalog_state;

struct catalog_state *catalog_state_new(void); /* empty, revision 0; NULL: no memory */
void catalog_state_free(struct catalog_state *state);

/* The newest revision; a reference is given. */
struct catalog *catalog_state_catalog(struct catalog_state *state);

/* What one change came to. */
enum apply_outcome {
    OUTCOME_NONE = 0, /* not known: refused, or beyond KEPT_OUTCOMES */
    OUTCOME_CREATED = 1,
    OUTCOME_CHANGED = 2,
    OUTCOME_UNCHANGED = 3 /* it was so already */
};

/* What a command came to; kept for retries under its request id. */
struct apply_answer {
    int err;               /* 0 or ERR_* */
    uint64_t revision;     /* after the command; of the refusal: the revision it was judged at */
    bool is_repeat;        /* the request id was known: nothing was applied again */
    uint32_t change_index; /* of the refused change */
    struct errmsg message; /* when err != 0 */
    uint8_t outcomes[LIMIT_CHANGES_PER_COMMAND / 4]; /* two bits a change: apply_outcome() */
};
/* An applied command tells the outcomes of its first changes only, since they are kept with the
 * answer for its retries; a check tells all. */
#define KEPT_OUTCOMES 256

enum apply_outcome apply_outcome(const struct apply_answer *answer, uint32_t change_index);

/* The check that runs before proposing: what catalog_apply would answer now, nothing changed. */
void catalog_check(struct catalog_state *state, const struct command *command,
                   struct apply_answer *ret_answer);

/* As many as a person mends in one go, and as a file's own faults are told (SPEC_ERRORS). */
#define CATALOG_REFUSALS 20

struct catalog_refusals {
    struct catalog_refusal {
        int err;               /* ERR_* */
        uint32_t change_index; /* of the refused change */
        struct errmsg message;
    } items[CATALOG_REFUSALS];
    uint32_t n;
};

/* The same for people: goes on behind a refusal and notes all that does not follow from another, in
 * the order of the changes. The answer is that of catalog_check. */
void catalog_check_all(struct catalog_state *state, const struct command *command,
                       struct apply_answer *ret_answer, struct catalog_refusals *ret_refusals);

/* Apply all changes as one new revision, or none. A command that changes nothing makes no revision:
 * its answer is the present one. It goes through the log like any other, since a retry under its
 * request id must not apply it over what others wrote in between. Never fails for memory: that
 * aborts, since a node that skipped a committed command would differ for ever. */
void catalog_apply(struct catalog_state *state, const struct command *command,
                   struct apply_answer *ret_answer);

/* Commands as bytes: a small versioned codec (major.minor; unknown minor fields at the end are
 * skipped, an unknown major is refused). The length is padded to a multiple of 8 and is at most
 * LIMIT_COMMAND_BYTES (ERR_LIMIT names the size and the limit). */
int command_encode(const struct command *command, uint8_t **ret_data, size_t *ret_n_bytes,
                   struct errmsg *err);
int command_decode(const uint8_t *data, size_t n_bytes, struct command *ret_command,
                   struct errmsg *err);

/* A snapshot of the state: the catalog's chunks and those with the answers. A counted value that
 * stays as it is while further commands are applied, so that it can be written meanwhile, also by
 * another thread. Given; free with catalog_snapshot_free. */
struct catalog_snapshot;
struct catalog_snapshot *catalog_state_snapshot(struct catalog_state *state);
void catalog_snapshot_free(struct catalog_snapshot *snapshot); /* NULL is allowed */
size_t catalog_snapshot_n_chunks(const struct catalog_snapshot *snapshot);
const uint8_t *catalog_snapshot_chunk_at(const struct catalog_snapshot *snapshot, size_t index,
                                         size_t *ret_n_bytes);

/* Replace the whole state by a snapshot's. Chunks may be given in any order and are copied. On
 * failure the state is unchanged. Errors as catalog_decode. */
int catalog_state_restore(struct catalog_state *state, const struct catalog_chunk_view chunks[],
                          size_t n_chunks, struct errmsg *err);

#endif
