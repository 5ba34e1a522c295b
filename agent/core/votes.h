/* The votes this node holds: peers x target slots, as heard, with age, memory and detail.
 *
 * Matching is by slot and birth (design.md 4): a chunk of a sender at revision R counts, at this
 * node's revision Q, for each slot whose birth b here is not above R, if Q >= R, or if Q is not
 * below the sender's floor B and the slot is not listed with a birth above Q. At Q = R the digests
 * must agree. Order is by (epoch, sequence); what is not newer is dropped. Age is by this node's
 * monotonic clock and from arrival: no time of the sender is ever used.
 *
 * A vote counts for 3 V after it was heard. One that aged out or was withdrawn is remembered for
 * its target's memory + 3 V and only blocks (verdict.h). A suspect one is dropped at once. Each
 * slot ages on its own: a lost chunk of a vector costs its own slots one interval and nothing else.
 *
 * Own votes are not in here. Indexes of peers are those of observers.h. */
#ifndef JURY_CORE_VOTES_H
#define JURY_CORE_VOTES_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/core/id_set.h"
#include "agent/core/verdict.h"
#include "agent/core/vote_msg.h"

struct votes;

enum votes_outcome {
    VOTES_TAKEN = 0,
    VOTES_STALE,        /* not newer than what was taken */
    VOTES_OLD_EPOCH,    /* of an earlier start of the peer */
    VOTES_MALFORMED,    /* values out of range */
    VOTES_DIFFER,       /* equal revision, another digest: the catalogs differ */
    VOTES_AHEAD,        /* the sender is too far ahead to be matched: the chunk ages */
    VOTES_OTHER_TARGET, /* a change for a target that this catalog does not have */
    VOTES_NO_ROOM       /* no memory for the detail of a change */
};

/* NULL: no memory. */
struct votes *votes_new(void);
void votes_free(struct votes *votes);
/* Room for slots 0..n_slots-1; never shrinks. Errors: ERR_NOMEM, nothing changed. */
int votes_reserve(struct votes *votes, uint32_t n_slots);
/* V, 200 ms..5 s. */
void votes_set_interval(struct votes *votes, uint64_t vote_interval_ns);

/* What is in a slot: birth 0 = free. Another birth clears all that is kept of the slot.
 * kinds: bits 1 << enum check_type; a vote is suspect when its sender doubts all of them.
 * memory_ms: U x (T + I). */
void votes_set_slot(struct votes *votes, uint32_t slot, uint64_t birth, uint8_t kinds,
                    uint32_t memory_ms);
/* The peer left the cluster or observes no more: all its votes are gone, at once. */
void votes_drop_peer(struct votes *votes, uint32_t peer);
/* The peer was heard to be in this epoch (hello). Returns true if it is a newer one. */
bool votes_note_epoch(struct votes *votes, uint32_t peer, uint64_t epoch);

/* This node's side of the match: its revision Q, the digest of the chunk at it, and its time. */
struct votes_here {
    uint64_t revision;
    struct hash128 digest;
    uint64_t now_ns;
};

/* Slots whose counted or remembered vote changed are added to `changed`, which has room for all
 * slots. */
enum votes_outcome votes_take_chunk(struct votes *votes, uint32_t peer,
                                    const struct vote_chunk *chunk, const struct votes_here *here,
                                    struct id_set *changed);
enum votes_outcome votes_take_change(struct votes *votes, uint32_t peer,
                                     const struct vote_change *change, uint64_t now_ns,
                                     struct id_set *changed);

/* When votes_age has something to do; UINT64_MAX = never. */
uint64_t votes_next_ns(const struct votes *votes);
/* Add the slots to `changed` where a vote stopped counting, or its memory lapsed, up to now_ns. */
void votes_age(struct votes *votes, uint64_t now_ns, struct id_set *changed);

/* Count the votes of the given peers (bits) on a slot: the counted and the remembered ones, as
 * figures and as bits.
 * Exact at now_ns, whether votes_age ran or not. */
void votes_count(const struct votes *votes, uint32_t slot, uint64_t peers, uint64_t now_ns,
                 struct tally *tally);

/* One peer's vote, for views. */
enum vote_hold {
    VOTE_NOT_HELD = 0,
    VOTE_COUNTS,
    VOTE_REMEMBERED
};
struct vote_look {
    uint8_t hold;    /* enum vote_hold */
    uint8_t opinion; /* enum opinion */
    uint64_t heard_ns;
    bool has_detail; /* of this opinion */
    uint8_t reason;
    uint8_t part; /* of several checks: whose reason it is, from 1; 0 = not told */
    uint16_t http_status;
    uint32_t response_us;
    uint32_t streak;
    int64_t since_ns; /* may lie before this machine's start */
    uint64_t detail_heard_ns;
    uint32_t probe_age_ms; /* of its last conclusive probe, when that was said; 0 = not told */
};
void votes_look(const struct votes *votes, uint32_t peer, uint32_t slot, uint64_t now_ns,
                struct vote_look *ret_look);

struct votes_peer_look {
    uint64_t epoch;        /* 0 = never heard */
    uint64_t vector_ns;    /* when a chunk was last taken; 0 = never */
    uint64_t revision;     /* of that chunk */
    uint32_t suspect_mask; /* of that chunk */
    uint8_t doubt_causes;  /* with it */
    bool catalog_differs;  /* the last chunk was refused for its digest */
    uint64_t n_stale;      /* messages dropped as stale or of an old epoch */
    uint64_t n_refused;    /* chunks that differ or are ahead, malformed messages */
};
void votes_look_peer(const struct votes *votes, uint32_t peer, struct votes_peer_look *ret_look);

#endif
