#include "agent/store/raft_guard.h"

#include <assert.h>

#include "common/base/plant.h"

bool guard_order_accept(struct guard_order *order, uint64_t epoch, uint64_t sequence)
{
    bool is_newer = epoch > order->epoch || (epoch == order->epoch && sequence > order->sequence);

    if (!is_newer && !plant_is("rn3")) {
        return false;
    }
    *order = (struct guard_order){.epoch = epoch, .sequence = sequence};
    return true;
}

bool guard_result(const struct raft *raft, raft_id from, struct raft_append_entries_result *result)
{
    raft_index match = 0;

    if (result->rejected == 0 || plant_is("rn3") || raft_match_index(raft, from, &match) != 0) {
        return true;
    }
    if (result->rejected <= match) {
        return false;
    }
    if (result->last_log_index < match) {
        result->last_log_index = match;
    }
    return true;
}

bool guard_vote_result(struct raft *raft)
{
    return raft_state(raft) == RAFT_CANDIDATE;
}

bool guard_snapshot_now(const struct raft *raft)
{
    if (plant_is("rn1")) {
        return true;
    }
    return !raft->legacy.snapshot_taking && !raft->snapshot.installing;
}

unsigned guard_piece(const struct raft_append_entries *args, unsigned first)
{
    unsigned n = 1;

    assert(first < args->n_entries);
    if (plant_is("rn2")) {
        return args->n_entries - first;
    }
    while (first + n < args->n_entries && args->entries[first + n].type != RAFT_CHANGE) {
        n++;
    }
    return n;
}

raft_term guard_term_of(const struct raft *raft, raft_index index)
{
    const struct raft_trail *trail = &raft->trail;

    if (index != 0 && index == trail->snapshot.index) {
        return trail->snapshot.term;
    }
    if (index <= trail->offset || trail->size == 0) {
        return 0;
    }
    for (unsigned at = trail->front; at != trail->back; at = (at + 1) % trail->size) {
        if (index <= trail->records[at].index) {
            return trail->records[at].term;
        }
    }
    return 0;
}

static bool differs(const struct raft *raft, raft_index index, raft_term term)
{
    raft_term local = index <= raft->commit_index ? guard_term_of(raft, index) : 0;

    return local != 0 && local != term;
}

bool guard_conflict(const struct raft *raft, const struct raft_append_entries *args,
                    raft_index *ret_index)
{
    if (args->term < raft->current_term) {
        return false; /* raft refuses it before it looks */
    }
    if (differs(raft, args->prev_log_index, args->prev_log_term)) {
        *ret_index = args->prev_log_index;
        return true;
    }
    for (unsigned i = 0; i < args->n_entries; i++) {
        raft_index index = args->prev_log_index + 1 + i;

        if (differs(raft, index, args->entries[i].term)) {
            *ret_index = index;
            return true;
        }
    }
    return false;
}

bool guard_answer_is_blank(const struct raft *raft, const struct raft_message *message)
{
    return (message->type == RAFT_APPEND_ENTRIES &&
            message->append_entries.term < raft->current_term) ||
           (message->type == RAFT_INSTALL_SNAPSHOT &&
            message->install_snapshot.term < raft->current_term);
}
