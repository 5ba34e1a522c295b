/* Probes that the observers share (share.h): who probes a target now, and whose votes make its n.
 *
 * Each node works it out from the votes that it holds, as it does with verdicts, and waits for
 * nobody. While all is well the assigned probe, and n is theirs. All probe from the first sign of
 * trouble on: a vote that fails or wavers, or fewer votes of the assigned than their quorum.
 * Whoever has voted since then is in n, so that a node that came too late to see anything does not
 * stand in the way, and one that saw the backend well is not forgotten when it falls silent; and
 * whoever cannot be heard is, so that a few nodes that are cut off judge nothing by themselves.
 * When nothing failed for share_calm_ms + 3 V the others stop, and leave n with their votes.
 *
 * When members come or go, former assigned nodes go on until each new one has voted, or has had
 * share_grace_ms + 3 V for it; one that replaces a node that left counts at once, so that n never
 * shrinks. */
#include <assert.h>
#include <string.h>

#include "agent/core/engine_state.h"
#include "agent/core/share.h"
#include "common/base/plant.h"

#define BEAT_SLACK_NS (20 * NS_PER_MS) /* the phases may be off by so much before they are told */
#define VOTE_AGE 3                     /* V: so long a vote counts */

bool engine_is_shared(const struct engine *engine, uint32_t slot)
{
    return slot < engine->n_shares &&
           (engine->shares[slot].n_probers != 0 || engine->shares[slot].rechecks);
}

bool engine_is_on(const struct engine *engine, uint32_t slot)
{
    return !engine_is_shared(engine, slot) || engine->shares[slot].is_on;
}

static unsigned n_bits(uint64_t bits)
{
    return (unsigned)__builtin_popcountll(bits);
}

void engine_share_make(struct engine *engine, struct target_id id, const struct health_check *check)
{
    if (!check_is_shared(check)) {
        return;
    }
    assert(id.slot < engine->n_shares);
    struct target_share *share = &engine->shares[id.slot];
    engine->n_sharded += check->probers != 0;
    *share = (struct target_share){.n_probers = check->probers,
                                   .rechecks = check->recheck,
                                   .is_on = true, /* until somebody is assigned */
                                   .calm_ms = share_calm_ms(check),
                                   .grace_ms = share_grace_ms(check)};
    share->few_ns =
        engine->now_ns + share->grace_ms * NS_PER_MS + VOTE_AGE * engine->vote_interval_ns;
}

void engine_share_free(struct engine *engine, uint32_t slot)
{
    if (!engine_is_shared(engine, slot)) {
        return;
    }
    engine->n_sharded -= engine->shares[slot].n_probers != 0;
    engine->shares[slot] = (struct target_share){0};
    timers_clear(&engine->share_timers, slot);
    id_set_remove(&engine->orders_due, slot);
}

/* --- own probes --- */

/* Only what the votes themselves found healthy: not what is held from before. */
static bool is_healthy(const struct engine *engine, uint32_t slot)
{
    for (uint32_t row = engine->targets[slot].first_row; row != NO_ROW;
         row = engine->backends[row].next_user) {
        const struct engine_backend *backend = &engine->backends[row];

        if (backend->health_state == HEALTH_HEALTHY &&
            (backend->held_causes & (HELD_CHECK_CHANGED | HELD_LAST_KNOWN_GOOD)) == 0) {
            return true;
        }
    }
    return false;
}

bool engine_share_adopts(struct engine *engine, uint32_t slot, enum probe_class probe_class)
{
    bool was_called = engine_is_shared(engine, slot) && engine->shares[slot].is_called;

    if (was_called) {
        engine->shares[slot].is_called = false;
    }
    return was_called && probe_class == PROBE_PASS &&
           engine->targets[slot].health.opinion == OPINION_NONE && is_healthy(engine, slot);
}

bool engine_share_wavers(const struct engine *engine, uint32_t slot)
{
    const struct health *health = &engine->targets[slot].health;

    return engine_is_shared(engine, slot) && health->opinion == OPINION_PASS &&
           health_fail_streak(health) > 0;
}

/* What this node thought of it leaves with its probes: nobody else has to be told. */
static void rest(struct engine *engine, uint32_t slot)
{
    struct engine_target *target = &engine->targets[slot];
    struct engine_target before = *target;

    timers_clear(&engine->opinion_timers, slot);
    if (health_forget(&target->health)) {
        target->opinion_since_ns = engine->now_ns;
    }
    target->is_faulty = false;
    engine_note_target(engine, slot, &before);
}

static void set_on(struct engine *engine, uint32_t slot, bool is_on)
{
    struct target_share *share = &engine->shares[slot];

    if (share->is_on == is_on) {
        return;
    }
    share->is_on = is_on;
    share->is_called = is_on;
    share->is_now = is_on && share->all_probe;
    if (!is_on) {
        rest(engine, slot);
    }
    id_set_add(&engine->orders_due, slot);
}

/* A run of failures that this node knows of already needs no further probe. */
static void probe_now(struct engine *engine, uint32_t slot)
{
    struct target_share *share = &engine->shares[slot];
    const struct engine_target *target = &engine->targets[slot];
    uint64_t interval_ns = target->interval_ms * NS_PER_MS;
    bool is_too_soon = share->recheck_ns != 0 && engine->now_ns < share->recheck_ns + interval_ns;

    if ((is_too_soon && !plant_is("recheck-often")) || health_fail_streak(&target->health) > 0 ||
        target->health.opinion == OPINION_FAIL) {
        return;
    }
    share->recheck_ns = engine->now_ns;
    share->is_now = true;
    engine->counters.rechecks++;
    id_set_add(&engine->orders_due, slot);
}

/* --- who probes --- */

static void wait_until(struct engine *engine, uint32_t slot, uint64_t at_ns)
{
    uint64_t set_ns = timers_get(&engine->share_timers, slot);

    timers_set(&engine->share_timers, slot, at_ns < set_ns ? at_ns : set_ns);
}

static void assign(struct engine *engine, uint32_t slot)
{
    struct target_share *share = &engine->shares[slot];
    struct target_id id = {.slot = slot, .birth = engine->targets[slot].birth};
    uint64_t before = share->assigned;
    bool is_first = share->counting == 0;

    share->counting = engine->observers.counting;
    share->assigned = share_assigned(&engine->observers, id, share->n_probers);
    share->rank = share_rank(&engine->observers, id);
    id_set_add(&engine->orders_due, slot);
    if (is_first || plant_is("share-drops-former")) {
        share->standing = share->assigned;
    } else if (before != share->assigned) {
        engine->counters.shares_moved++;
        share->enter_ns =
            engine->now_ns + share->grace_ms * NS_PER_MS + VOTE_AGE * engine->vote_interval_ns;
    }
}

/* Former assigned nodes go on until the new ones have voted. */
static void hand_over(struct engine *engine, uint32_t slot, uint64_t voted)
{
    struct target_share *share = &engine->shares[slot];
    uint64_t standing = share->standing & share->counting;

    standing |= share->assigned & voted;
    if (n_bits(standing) < n_bits(share->assigned)) {
        standing |= share->assigned; /* somebody left */
    }
    if ((share->assigned & ~standing) == 0 || engine->now_ns >= share->enter_ns) {
        standing = share->assigned;
        share->enter_ns = 0;
    } else {
        wait_until(engine, slot, share->enter_ns);
    }
    share->standing = standing;
}

/* Fewer of those that stand have voted than their quorum, though they had the time. */
static bool is_few(struct engine *engine, uint32_t slot, uint64_t voted)
{
    const struct target_share *share = &engine->shares[slot];

    if (n_bits(share->standing & voted) >= n_bits(share->standing) / 2 + 1) {
        return false;
    }
    if (engine->now_ns < share->few_ns) {
        wait_until(engine, slot, share->few_ns);
        return false;
    }
    return true;
}

static void open_or_calm(struct engine *engine, uint32_t slot, bool is_troubled)
{
    struct target_share *share = &engine->shares[slot];

    if (is_troubled) {
        engine->counters.shares_opened += !share->all_probe;
        share->all_probe = !plant_is("share-never-opens");
        share->calm_since_ns = 0;
        return;
    }
    if (!share->all_probe) {
        return;
    }
    if (share->calm_since_ns == 0) {
        share->calm_since_ns = engine->now_ns;
    }
    uint64_t over_ns =
        share->calm_since_ns + share->calm_ms * NS_PER_MS + VOTE_AGE * engine->vote_interval_ns;
    if (engine->now_ns >= over_ns) {
        share->all_probe = false;
        engine->counters.shares_calmed++;
    } else {
        wait_until(engine, slot, over_ns);
    }
}

void engine_share_hear(struct engine *engine)
{
    uint64_t fresh_ns = VOTE_AGE * engine->vote_interval_ns;
    uint64_t heard = observers_self_bit(&engine->observers);

    engine->silent_ns = TIMER_NEVER;
    if (engine->n_sharded == 0) {
        return;
    }
    for (uint64_t left = observers_peers(&engine->observers); left != 0; left &= left - 1) {
        struct votes_peer_look look;

        votes_look_peer(engine->votes, (uint32_t)__builtin_ctzll(left), &look);
        if (look.vector_ns != 0 && engine->now_ns <= look.vector_ns + fresh_ns) {
            heard |= left & (~left + 1);
            if (look.vector_ns + fresh_ns < engine->silent_ns &&
                !plant_is("share-silence-unseen")) {
                engine->silent_ns = look.vector_ns + fresh_ns + 1;
            }
        }
    }
    if (heard == engine->heard) {
        return;
    }
    engine->heard = heard;
    for (uint32_t slot = 0; slot < engine->n_shares; slot++) {
        if (engine->shares[slot].all_probe) {
            id_set_add(&engine->dirty_slots, slot);
        }
    }
}

/* While there is trouble, who cannot be heard might have voted otherwise: a few nodes that are cut
 * off from the others throw nobody out (I-9). */
static void count_in(struct engine *engine, uint32_t slot, uint64_t voted, bool is_troubled)
{
    struct target_share *share = &engine->shares[slot];
    uint64_t unheard = share->counting & ~engine->heard;

    bool stays = is_troubled && !plant_is("share-forgets-joined");

    share->joined = voted | (stays ? share->joined & share->counting : 0);
    share->electors = share->standing | share->joined;
    if (is_troubled && !plant_is("share-forgets-unheard")) {
        share->electors |= unheard;
    }
    if (plant_is("share-counts-unassigned")) {
        share->electors = share->counting;
    }
}

void engine_share_follow(struct engine *engine, uint32_t slot)
{
    struct tally tally;

    if (engine->replay != NULL || !engine_is_shared(engine, slot)) {
        return;
    }
    struct target_share *share = &engine->shares[slot];
    bool was_open = share->all_probe;
    engine_tally_all(engine, slot, &tally);
    if (share->counting != engine->observers.counting) {
        assign(engine, slot);
    }
    uint64_t voted = tally.fails | tally.passes;
    uint64_t failing = tally.fails | tally.wavers;
    uint64_t others = failing & ~tally.own_bit;
    uint64_t new_failing = others & ~share->failing;
    share->failing = others;
    timers_clear(&engine->share_timers, slot);
    hand_over(engine, slot, voted);
    bool is_limited = share->assigned != share->counting;
    bool is_troubled = is_limited && (failing != 0 || is_few(engine, slot, voted));
    if (is_limited) {
        open_or_calm(engine, slot, is_troubled);
    } else {
        share->all_probe = false;
        share->calm_since_ns = 0;
        share->standing = share->assigned;
        share->enter_ns = 0;
    }
    bool is_called = ((share->assigned | share->standing) & tally.own_bit) != 0 ||
                     (share->all_probe && tally.own_bit != 0);
    bool was_on = share->is_on;
    set_on(engine, slot, is_called);
    if (!is_called) {
        voted &= ~tally.own_bit;
    }
    if (was_on && is_called &&
        ((share->rechecks && new_failing != 0) || (share->all_probe && !was_open))) {
        probe_now(engine, slot);
    }
    count_in(engine, slot, voted, is_troubled);
}

/* --- whose votes count --- */

void engine_share_cut(const struct engine *engine, uint32_t slot, struct tally *tally)
{
    uint64_t electors = engine->replay != NULL ? replay_electors(engine->replay, slot)
                                               : engine->shares[slot].electors;

    tally->electors = electors;
    tally->n_observers = (uint8_t)n_bits(electors);
    tally->lost_fails &= electors;
    tally->lost_passes &= electors;
    tally->n_lost_fail = (uint8_t)n_bits(tally->lost_fails);
    tally->n_lost_pass = (uint8_t)n_bits(tally->lost_passes);
    for (uint8_t zone = 0; zone < tally->zones->n_zones; zone++) {
        uint64_t members = tally->zones->members[zone] & electors;

        if (members != 0) {
            tally->elector_zones.members[tally->elector_zones.n_zones++] = members;
        }
    }
    tally->zones = &tally->elector_zones;
}

/* --- orders --- */

/* A clock that the nodes have in common for the phases, and for nothing else: each takes over the
 * highest that it hears. It needs no wall clock, and a wrong one only moves probes within their
 * interval. */
uint64_t engine_beat_ns(const struct engine *engine)
{
    return engine->now_ns - engine->start_ns + engine->beat_ahead_ns;
}

void engine_hear_beat(struct engine *engine, uint64_t beat_ms)
{
    uint64_t own_ns = engine_beat_ns(engine);

    if (beat_ms > INT64_MAX / (2 * NS_PER_MS) || beat_ms * NS_PER_MS <= own_ns) {
        return;
    }
    engine->beat_ahead_ns += beat_ms * NS_PER_MS - own_ns;
    if (engine->beat_ahead_ns - engine->beat_told_ns < BEAT_SLACK_NS) {
        return;
    }
    engine->beat_told_ns = engine->beat_ahead_ns;
    for (uint32_t slot = 0; slot < engine->n_shares; slot++) {
        if (engine->shares[slot].n_probers != 0 && engine->shares[slot].counting != 0) {
            id_set_add(&engine->orders_due, slot);
        }
    }
}

/* The first of this node's beats after the engine's start, by its own clock. */
static uint64_t beat_of(const struct engine *engine, uint32_t slot)
{
    const struct target_share *share = &engine->shares[slot];
    uint64_t interval_ns = engine->targets[slot].interval_ms * NS_PER_MS;
    struct target_id id = {.slot = slot, .birth = engine->targets[slot].birth};

    if (share->n_probers == 0 || interval_ns == 0) {
        return 0;
    }
    uint64_t phase_ns =
        share_phase_ns(id, share->rank, share->n_probers, n_bits(share->counting), interval_ns);
    uint64_t ahead_ns = engine->beat_told_ns % interval_ns;
    return engine->start_ns + interval_ns + phase_ns - ahead_ns;
}

void engine_give_orders(struct engine *engine, struct engine_actions *actions)
{
    uint32_t slot;

    while (actions->n_orders < ENGINE_ORDERS && id_set_take(&engine->orders_due, &slot)) {
        struct target_share *share = &engine->shares[slot];

        actions->orders[actions->n_orders++] = (struct probe_order){
            .id = {.slot = slot, .birth = engine->targets[slot].birth},
            .is_on = share->is_on,
            .is_now = share->is_now,
            .beat_ns = beat_of(engine, slot),
        };
        share->is_now = false;
    }
}
