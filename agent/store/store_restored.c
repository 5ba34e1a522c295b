/* A data directory that was restored from an older copy, or removed under the agent.
 *
 * Such a node has forgotten votes and entries that it had acknowledged: with it, Raft may elect two
 * leaders of one term or lose what was committed. It cannot know by itself, but the others remember
 * what they heard of it since they were started: the newest (epoch, sequence), the highest term,
 * and, the leader, how far its log went. Each hello says it to the node. A node that hears more of
 * itself than its directory holds marks the directory, closes raft for good and waits for the
 * operator, as one with an empty directory does; there is no other way back that is safe.
 *
 * Votes on health need no memory: once the mark is durable the epoch jumps above what the others
 * have heard, so that they take this node's votes again. Without the mark it must not jump: the
 * next start would look like an ordinary one, to everybody.
 *
 * One that is removed while the agent runs is the same thing a start earlier: raft would write on
 * into files without a name, acknowledge what no start will find, and lead on.
 *
 * A slot of the epoch file that is damaged is another thing: nothing else is older, and the epochs
 * that the slot may have held are skipped (identity.h). */
#include <inttypes.h>
#include <string.h>

#include "agent/store/store_private.h"
#include "common/base/plant.h"

int store_raise_epoch(struct store *store, uint64_t above, struct errmsg *err)
{
    bool was_damaged = false;
    int result = data_dir_raise_epoch(&store->dir, above, &store->epoch, &was_damaged, err);

    if (result == 0 && was_damaged) {
        log_event(LOG_LEVEL_WARNING, "epoch_file_damaged",
                  "directory=%s epoch=%" PRIu64 " text=\"a slot of the epoch file was damaged: the "
                  "epochs that it may have held are skipped\"",
                  store->dir.path, store->epoch);
    }
    return result;
}

/* --- what is known of a peer's directory --- */

/* The term is on the sender's disk before it speaks in it, but not the one that it only asks for.
 */
static uint64_t term_of(const struct frame *frame)
{
    const struct raft_message *message = &frame->u.message;

    switch ((enum frame_kind)frame->head.kind) {
    case FRAME_APPEND_ENTRIES:
        return message->append_entries.term;
    case FRAME_APPEND_ENTRIES_RESULT:
        return message->append_entries_result.term;
    case FRAME_REQUEST_VOTE:
        return message->request_vote.pre_vote ? 0 : message->request_vote.term;
    case FRAME_REQUEST_VOTE_RESULT:
        return message->request_vote_result.pre_vote ? 0 : message->request_vote_result.term;
    case FRAME_NONE:
    case FRAME_HELLO:
    case FRAME_ADMIT:
    case FRAME_TIMEOUT_NOW:
    case FRAME_SNAPSHOT_PART:
    case FRAME_SNAPSHOT_ACK:
        break;
    }
    return 0;
}

static bool is_newer(uint64_t epoch, uint64_t sequence, uint64_t than_epoch, uint64_t than_sequence)
{
    return epoch > than_epoch || (epoch == than_epoch && sequence > than_sequence);
}

void store_note_seen(struct store_peer *peer, const struct frame *frame)
{
    const struct frame_head *head = &frame->head;
    uint64_t term = term_of(frame);

    if (is_newer(head->epoch, head->sequence, peer->seen.epoch, peer->seen.sequence)) {
        peer->seen = (struct guard_order){.epoch = head->epoch, .sequence = head->sequence};
    }
    peer->seen_term = term > peer->seen_term ? term : peer->seen_term;
}

void store_judge_age(struct store *store, struct store_peer *peer, const struct frame *frame)
{
    bool was_restored = peer->is_restored;
    bool is_old = frame->head.epoch < peer->seen.epoch;

    store->counters.old_epochs += is_old;
    peer->is_restored = is_old || frame->u.hello.is_restored;
    if (!peer->is_restored || was_restored) {
        return;
    }
    if (is_old) {
        log_event(LOG_LEVEL_WARNING, "peer_restored",
                  "peer=%" PRIu64 " text=\"node %" PRIu64 " runs with epoch %" PRIu64
                  ", but epoch %" PRIu64 " was heard from it: its data directory was restored from "
                  "an older copy; remove the node and let it join with an empty directory under a "
                  "new id\"",
                  peer->node_id, peer->node_id, frame->head.epoch, peer->seen.epoch);
    } else {
        log_event(LOG_LEVEL_WARNING, "peer_restored",
                  "peer=%" PRIu64 " text=\"node %" PRIu64 " takes no part in Raft: its data "
                  "directory was removed or restored from an older copy; remove the node and let "
                  "it join with "
                  "an empty directory under a new id\"",
                  peer->node_id, peer->node_id);
    }
}

void store_tell_seen(struct store *store, const struct store_peer *peer, struct frame_hello *hello)
{
    raft_index match = 0;

    hello->seen_epoch = peer->seen.epoch;
    hello->seen_sequence = peer->seen.sequence;
    hello->seen_term = peer->seen_term;
    if (store_is_leader(store) && raft_match_index(&store->raft, peer->node_id, &match) == 0) {
        raft_index commit = raft_commit_index(&store->raft);

        hello->held_index = match < commit ? match : commit;
    }
}

/* --- this node's own directory --- */

static void refuse(struct store *store, const char *reason)
{
    store->is_restored = true;
    store_set_state(store, STORE_NEEDS_OPERATOR, ERR_CORRUPT,
                    "data directory %s was restored from an older copy: %s. Its votes and entries "
                    "since then are lost, so node %" PRIu64 " takes no part in Raft; remove it and "
                    "join with an empty directory under a new id",
                    store->dir.path, reason[0] != '\0' ? reason : "a peer knew more of it",
                    store->identity.node_id);
}

bool store_is_marked_restored(struct store *store)
{
    struct errmsg reason = {{0}};

    if (data_dir_read_restored(&store->dir, &reason) != 0) {
        return false;
    }
    refuse(store, reason.text);
    return true;
}

/* False: the member knows nothing that this directory does not hold. */
static bool is_behind(struct store *store, const struct frame *frame, struct errmsg *reason)
{
    const struct frame_hello *hello = &frame->u.hello;

    if (is_newer(hello->seen_epoch, hello->seen_sequence, store->epoch, store->sequence)) {
        errmsg_set(reason, 0,
                   "it runs with epoch %" PRIu64 ", but node %" PRIu64 " has heard epoch %" PRIu64
                   " of it",
                   store->epoch, frame->head.from, hello->seen_epoch);
        return true;
    }
    if (!store->is_raft_started || store->raft.snapshot.installing) {
        return false;
    }
    if (hello->seen_term > raft_current_term(&store->raft)) {
        errmsg_set(reason, 0,
                   "it is in term %llu, but node %" PRIu64 " has heard it in term "
                   "%" PRIu64,
                   raft_current_term(&store->raft), frame->head.from, hello->seen_term);
        return true;
    }
    if (hello->held_index > raft_last_index(&store->raft)) {
        errmsg_set(reason, 0,
                   "its log ends at entry %llu, but to node %" PRIu64
                   " it acknowledged entry %" PRIu64,
                   raft_last_index(&store->raft), frame->head.from, hello->held_index);
        return true;
    }
    return false;
}

void store_hear_seen(struct store *store, const struct frame *frame)
{
    const struct frame_hello *hello = &frame->u.hello;
    struct errmsg reason = {{0}}, err = {{0}};

    if (!store->has_identity || store->epoch == 0 ||
        memcmp(&frame->head.cluster_id, &store->identity.cluster_id,
               sizeof frame->head.cluster_id) != 0 ||
        hello->bound_incarnation != store->identity.incarnation || plant_is("restored-unseen") ||
        !is_behind(store, frame, &reason)) {
        return;
    }
    if (!store->is_restored) {
        refuse(store, reason.text);
        store_close_raft(store, false);
    }
    int result = data_dir_mark_restored(&store->dir, reason.text, &err);
    if (result == 0 && hello->seen_epoch >= store->epoch) {
        result = store_raise_epoch(store, hello->seen_epoch, &err);
    }
    if (result != 0) { /* the next hello tries again */
        log_event(LOG_LEVEL_ERROR, "store_restored", "directory=%s reason=\"%s\"", store->dir.path,
                  err.text);
        return;
    }
    store->status_ns = 0; /* the owner votes under the new epoch at once */
}

void store_look_at_directory(struct store *store)
{
    if (!store->is_raft_open || store->is_raft_closing || plant_is("directory-unseen") ||
        !data_dir_is_gone(&store->dir)) {
        return;
    }
    store->is_restored = true;
    store_set_state(
        store, STORE_NEEDS_OPERATOR, ERR_CORRUPT,
        "data directory %s was removed or replaced while the agent ran: what Raft wrote "
        "there is lost, so node %" PRIu64 " takes no part in it; remove the node and "
        "let it join with an empty directory under a new id",
        store->dir.path, store->identity.node_id);
    store_close_raft(store, false);
}
