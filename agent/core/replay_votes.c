/* The votes of a replay, in the place of the vote table. */
#include <stdlib.h>

#include "agent/core/replay_state.h"

static uint8_t n_bits(uint64_t bits)
{
    return (uint8_t)__builtin_popcountll(bits);
}

void replay_count(const struct replay_votes *votes, uint32_t slot, uint64_t peers,
                  struct tally *tally)
{
    const struct history_votes *held = &votes->slots[slot].votes;

    tally->fails = held->fails & peers;
    tally->passes = held->passes & peers;
    tally->lost_fails = held->lost_fails & peers;
    tally->lost_passes = held->lost_passes & peers;
    tally->n_fail = n_bits(tally->fails);
    tally->n_pass = n_bits(tally->passes);
    tally->n_lost_fail = n_bits(tally->lost_fails);
    tally->n_lost_pass = n_bits(tally->lost_passes);
}

uint64_t replay_electors(const struct replay_votes *votes, uint32_t slot)
{
    return votes->slots[slot].votes.electors;
}

void replay_look(const struct replay_votes *votes, uint32_t peer, uint32_t slot,
                 struct vote_look *ret_look)
{
    const struct replay_slot *held = &votes->slots[slot];
    uint64_t bit = UINT64_C(1) << peer;

    *ret_look = (struct vote_look){.heard_ns = votes->now_ns};
    if (((held->votes.fails | held->votes.passes) & bit) == 0) {
        return;
    }
    ret_look->hold = VOTE_COUNTS;
    ret_look->opinion = (held->votes.fails & bit) != 0 ? OPINION_FAIL : OPINION_PASS;
    if (held->details != NULL && held->details[peer].heard_ns != 0) {
        ret_look->has_detail = true;
        ret_look->heard_ns = held->details[peer].heard_ns;
        ret_look->reason = held->details[peer].reason;
        ret_look->http_status = held->details[peer].http_status;
    }
}

void replay_note_row(struct replay_votes *votes, uint32_t row)
{
    id_set_add(&votes->changed_rows, row);
}

const struct kept_verdict *replay_kept(const struct replay_votes *votes, uint32_t row)
{
    const struct replay_row *held = &votes->rows[row];

    return held->is_kept && held->kept.birth != 0 ? &held->kept : NULL;
}

void replay_take_vote(struct replay_slot *slot, const struct history_entry *entry)
{
    history_fold(&slot->votes, entry);
    if (entry->kind != HISTORY_VOTE) {
        return;
    }
    if (slot->details == NULL) {
        slot->details = calloc(LIMIT_NODES, sizeof *slot->details);
    }
    if (slot->details != NULL) { /* without memory the reason is not told */
        slot->details[entry->from] =
            (struct replay_detail){.heard_ns = entry->at_ns,
                                   .reason = entry->reason,
                                   .http_status = (uint16_t)entry->http_status};
    }
}
