/* What the engine writes into its history (history.h). */
#include <string.h>

#include "agent/core/engine_state.h"
#include "common/base/plant.h"

struct history_from engine_history_now(const struct engine *engine)
{
    return (struct history_from){.at_ns = engine->now_ns, .step = engine->step};
}

void engine_keep_surroundings(struct engine *engine)
{
    if (engine->history == NULL) {
        return;
    }
    const struct history_surroundings *last = history_surroundings_now(engine->history);
    const struct observers *observers = &engine->observers;

    if (last != NULL && last->vote_interval_ns == engine->vote_interval_ns &&
        last->hold_sources == engine->hold_sources &&
        memcmp(&last->observers, observers, sizeof *observers) == 0) {
        return;
    }
    history_add_surroundings(engine->history, &(struct history_surroundings){
                                                  .at_ns = engine->now_ns,
                                                  .step = engine->step,
                                                  .observers = *observers,
                                                  .vote_interval_ns = engine->vote_interval_ns,
                                                  .hold_sources = engine->hold_sources,
                                              });
}

static struct history_entry entry_now(const struct engine *engine, enum history_kind kind,
                                      uint32_t index)
{
    uint64_t wrong_ns = plant_is("history-wrong-time") ? engine->vote_interval_ns : 0;

    return (struct history_entry){.at_ns = engine->now_ns - wrong_ns,
                                  .step = engine->step,
                                  .index = index & ((1U << 20) - 1),
                                  .kind = kind & 15U};
}

static void keep_vote(struct engine *engine, uint32_t slot, uint32_t peer)
{
    struct history_entry entry = entry_now(engine, HISTORY_VOTE, slot);
    struct vote_look look;

    votes_look(engine->votes, peer, slot, engine->now_ns, &look);
    if (look.hold == VOTE_REMEMBERED && plant_is("history-forgets-age")) {
        return;
    }
    entry.from = peer & 63U;
    entry.to = look.opinion & 15U;
    entry.hold = look.hold & 3U;
    entry.reason = look.has_detail ? look.reason : REASON_NONE;
    entry.http_status = (look.has_detail ? look.http_status : 0U) & 1023U;
    history_add(engine->history, &entry);
}

static void keep_electors(struct engine *engine, uint32_t slot, uint64_t changed, uint64_t electors)
{
    for (; changed != 0; changed &= changed - 1) {
        struct history_entry entry = entry_now(engine, HISTORY_ELECTOR, slot);

        entry.from = (unsigned)__builtin_ctzll(changed) & 63U;
        entry.to = (unsigned)(electors >> entry.from & 1);
        history_add(engine->history, &entry);
    }
}

void engine_keep_votes(struct engine *engine, uint32_t slot, const struct tally *tally)
{
    if (engine->history == NULL) {
        return;
    }
    const struct engine_target *target = &engine->targets[slot];
    const struct history_votes before = history_votes_now(engine->history, slot);
    uint64_t others = ~tally->own_bit;
    uint64_t changed =
        ((before.fails ^ tally->fails) | (before.passes ^ tally->passes) |
         (before.lost_fails ^ tally->lost_fails) | (before.lost_passes ^ tally->lost_passes)) &
        others;
    bool own_changed =
        before.own_opinion != tally->own_opinion || before.own_is_suspect != tally->own_is_suspect;

    for (; changed != 0; changed &= changed - 1) {
        keep_vote(engine, slot, (uint32_t)__builtin_ctzll(changed));
    }
    keep_electors(engine, slot, before.electors ^ tally->electors, tally->electors);
    if (own_changed) {
        struct history_entry entry = entry_now(engine, HISTORY_OWN, slot);

        entry.to = tally->own_opinion & 15U;
        entry.hold = tally->own_is_suspect;
        entry.reason = target->reason;
        entry.http_status = target->http_status & 1023U;
        history_add(engine->history, &entry);
    }
}

void engine_keep_result(struct engine *engine, uint32_t slot, enum probe_class probe_class)
{
    const struct health *health = &engine->targets[slot].health;
    uint32_t streak =
        probe_class == PROBE_PASS ? health_pass_streak(health) : health_fail_streak(health);

    if (engine->history == NULL || streak > 2) {
        return;
    }
    struct history_entry entry = entry_now(engine, HISTORY_RESULT, slot);
    entry.to = probe_class & 15U;
    entry.hold = streak & 3U;
    history_add(engine->history, &entry);
}

void engine_keep_row(struct engine *engine, uint32_t row, const struct row_note *note)
{
    if (engine->replay != NULL && note->kind == HISTORY_VERDICT) {
        replay_note_row(engine->replay, row);
    }
    if (engine->history == NULL) {
        return;
    }
    struct history_entry entry = entry_now(engine, (enum history_kind)note->kind, row);

    entry.from = note->from & 63U;
    entry.to = note->to & 15U;
    entry.reason = note->reason;
    history_add(engine->history, &entry);
}

void engine_keep_version(struct engine *engine, const struct engine_scope *scope,
                         const struct catalog_group *group)
{
    if (engine->history == NULL) {
        return;
    }
    history_add_version(engine->history, &(struct history_version){
                                             .from_ns = scope->version.at_ns,
                                             .from_step = scope->version.step,
                                             .to_ns = engine->now_ns,
                                             .to_step = engine->step,
                                             .group = group,
                                         });
}
