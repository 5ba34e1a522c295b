/* Guards between the wire and raft 0.22.1: what a received message must pass before raft sees it.
 *
 * The library's own defects RN1..RN3 (raft-022.md section 2) and three more that were read in its
 * source are kept out here, without a patch. The library is built without assertions, so a message
 * that breaks one of its contracts is silent damage; each guard says which. Pure: looks at raft's
 * public fields, calls only its read functions. */
#ifndef JURY_STORE_RAFT_GUARD_H
#define JURY_STORE_RAFT_GUARD_H

#include <stdbool.h>
#include <stdint.h>

#include <raft.h>

#if RAFT_VERSION_NUMBER != 2201
#error \
    "the guards were made for raft 0.22.1: another version needs the review of its ownership rules"
#endif

/* RN3, first half: the newest (epoch, sequence) delivered of one sender. Messages that come late
 * (libzmq may mix two connections of one peer around a reconnect) are dropped: a reordered
 * rejection stalls a follower for good. */
struct guard_order {
    uint64_t epoch;
    uint64_t sequence;
};
/* True: newer than all before; it is remembered. */
bool guard_order_accept(struct guard_order *order, uint64_t epoch, uint64_t sequence);

/* RN3, second half: a rejection that is older than what the follower has acknowledged. true:
 * deliver; its last_log_index may have been raised to the matched index. */
bool guard_result(const struct raft *raft, raft_id from, struct raft_append_entries_result *result);

/* A vote result that comes when this node is no candidate makes raft read the wrong union member
 * and perhaps bump its term. true: deliver. */
bool guard_vote_result(struct raft *raft);

/* RN1: an InstallSnapshot while this node writes its own snapshot is a crash; while one is being
 * installed it leaks. true: deliver now; false: keep it and ask again. */
bool guard_snapshot_now(const struct raft *raft);

/* RN2: raft registers a membership entry under the index of the first entry of its AppendEntries.
 * The number of entries, from `first` on, that may go together: up to the next membership entry. */
unsigned guard_piece(const struct raft_append_entries *args, unsigned first);

/* The entries say something else about an index that is committed here. raft would free the batch
 * twice; and no message may ever make a node forget what it has applied. true: conflict at
 * *ret_index. */
bool guard_conflict(const struct raft *raft, const struct raft_append_entries *args,
                    raft_index *ret_index);

/* The term of an index in raft's trail; 0 = not known there. */
raft_term guard_term_of(const struct raft *raft, raft_index index);

/* A message of an older term is answered with an uninitialised last_log_index. With `rejected` 0
 * (an AppendEntries from index 0, any InstallSnapshot) a leader of the newer term would take it for
 * a success and count entries as stored that are not. true: the answer that is about to be sent
 * must say 0. */
bool guard_answer_is_blank(const struct raft *raft, const struct raft_message *message);

#endif
