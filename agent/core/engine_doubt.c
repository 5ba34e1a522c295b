/* What the engine makes of self-doubt: evidence in, the mask of suspect kinds out (self_doubt.h).
 */
#include "agent/core/engine_state.h"
#include "common/base/plant.h"

#define SURVEY_SLACK_NS (100 * NS_PER_MS) /* as in the promise of spec.md 3: 2 V + 100 ms */

/* Until then a peer may rightly not know yet that the target fails: its own run of failures began
 * up to a cycle later than ours, takes its window, and its word takes up to 2 V. */
static uint64_t peers_know_ns(const struct engine *engine, const struct engine_target *target)
{
    uint64_t cycle_ms = (uint64_t)target->timeout_ms + target->interval_ms;
    uint64_t window_ms = cycle_ms * target->policy.unhealthy_threshold - target->interval_ms;

    return target->fail_start_ns + (window_ms + cycle_ms) * NS_PER_MS +
           2 * engine->vote_interval_ns + SURVEY_SLACK_NS;
}

/* Most peers say `pass`, and more than one: of two nodes nobody knows which is right. */
static bool peers_contradict(const struct tally *tally)
{
    unsigned n_peers = tally->n_observers > 0 ? tally->n_observers - 1U : 0;

    if (plant_is("contradiction-single-path")) {
        return tally->n_pass > tally->n_fail;
    }
    return tally->n_pass >= 2 && 2U * tally->n_pass > n_peers;
}

/* What is probed, and how that went. */
static void survey_probes(const struct engine_target *target, struct doubt_targets *to)
{
    to->n_probed++;
    to->n_failing += health_fail_streak(&target->health) > 0;
    to->n_faulty += target->is_faulty;
}

/* What the own vote says, and what those of the peers do. */
static void survey_vote(const struct engine *engine, uint32_t slot, struct doubt_targets *to)
{
    const struct engine_target *target = &engine->targets[slot];
    struct tally tally = {.n_observers = observers_n(&engine->observers)};

    /* The peers' votes are looked at whatever the own one is: constant work (R-CW-1). */
    votes_count(engine->votes, slot, observers_peers(&engine->observers), engine->now_ns, &tally);
    if (engine_is_shared(engine, slot)) {
        tally.n_observers = (uint8_t)__builtin_popcountll(engine->shares[slot].electors);
    }
    bool is_down = target->health.opinion == OPINION_FAIL;
    to->n_votes++;
    to->n_down += is_down;
    to->n_contradicted +=
        is_down && engine->now_ns >= peers_know_ns(engine, target) && peers_contradict(&tally);
}

/* Of one of several kinds, that of the part that decides, or the lowest. */
static uint32_t kind_of(const struct engine *engine, uint32_t slot)
{
    uint32_t kinds = target_kinds(&engine->targets[engine_deciding_slot(engine, slot)]);

    return kinds == 0 ? DOUBT_KINDS : (uint32_t)__builtin_ctz(kinds);
}

void engine_survey(struct engine *engine)
{
    struct doubt_survey survey = {.n_observers = observers_n(&engine->observers),
                                  .n_fresh = engine_n_fresh(engine, engine->now_ns)};

    for (uint32_t slot = 0; slot < engine->n_slots; slot++) {
        const struct engine_target *target = &engine->targets[slot];
        uint32_t kind = kind_of(engine, slot);

        if (target->birth == 0 || kind >= DOUBT_KINDS || !engine_is_on(engine, slot)) {
            continue;
        }
        if (!target_is_composed(target)) {
            survey_probes(target, &survey.kinds[kind]);
        }
        if (target->first_row != NO_ROW || plant_is("doubt-counts-parts")) {
            survey_vote(engine, slot, &survey.kinds[kind]);
        }
    }
    if (engine->now_ns - engine->start_ns <= 3 * engine->vote_interval_ns) {
        survey.n_fresh = survey.n_observers; /* nobody had the time to be heard yet */
    }
    engine->doubt.survey = survey;
    engine->doubt_is_due = true;
}

void engine_hear_sentinel(struct engine *engine, const struct sentinel_result *result)
{
    if (result->node_id == 0 || result->end_ns == 0 || result->end_ns > engine->now_ns) {
        engine->counters.messages_malformed++;
        return;
    }
    self_doubt_note_sentinel(&engine->doubt, result);
    engine->doubt_is_due = true;
}

static void step_count(uint32_t *n, bool before, bool after)
{
    *n += (uint32_t)(!before && after);
    *n -= (uint32_t)(before && !after && *n > 0);
}

void engine_note_target(struct engine *engine, uint32_t slot, const struct engine_target *before)
{
    const struct engine_target *after = &engine->targets[slot];
    bool was_failing = health_fail_streak(&before->health) > 0;
    bool is_failing = health_fail_streak(&after->health) > 0;

    if (kind_of(engine, slot) >= DOUBT_KINDS ||
        (was_failing == is_failing && before->is_faulty == after->is_faulty)) {
        return;
    }
    struct doubt_targets *targets = &engine->doubt.survey.kinds[kind_of(engine, slot)];
    step_count(&targets->n_failing, was_failing, is_failing);
    if (!was_failing && is_failing) {
        self_doubt_note_fresh_failure(&engine->doubt, engine->now_ns);
    }
    step_count(&targets->n_faulty, before->is_faulty, after->is_faulty);
    engine->doubt_is_due = true;
}

/* --- when the mask changes --- */

static void tell(struct engine *engine, uint32_t before)
{
    uint32_t mask = self_doubt_mask(&engine->doubt);
    struct event *event = engine_log(engine, EVENT_SELF_DOUBT);
    struct doubt_look look;

    self_doubt_look(&engine->doubt, &look);
    event->from = (uint8_t)before;
    event->to = (uint8_t)mask;
    event->doubt_causes = look.causes;
    event->doubt_score = look.score;
    engine->counters.doubts_begun += before == 0;
    engine->counters.doubts_ended += mask == 0;
}

/* What failed while this node doubted itself proves nothing afterwards: those failures are counted
 * anew. An opinion from before stands. */
static void forget_evidence(struct engine *engine, uint32_t slot, uint64_t begun_ns,
                            struct engine_actions *actions)
{
    struct engine_target *target = &engine->targets[slot];
    struct engine_target before = *target;

    bool is_down = target->health.opinion == OPINION_FAIL; /* passes may have begun already */
    if (plant_is("doubt-evidence-kept") || (!is_down && health_fail_streak(&target->health) == 0) ||
        (is_down && target->opinion_since_ns < begun_ns)) {
        return;
    }
    engine->counters.doubt_failures_dropped++;
    if (is_down) {
        engine_opinion_forget(engine, slot, actions);
    } else {
        health_restart_failures(&target->health);
    }
    engine_note_target(engine, slot, &before);
}

void engine_run_doubt(struct engine *engine, struct engine_actions *actions)
{
    uint32_t before = engine->suspect_mask;

    if (!engine->doubt_is_due) {
        return;
    }
    engine->doubt_is_due = false;
    uint32_t changed = self_doubt_judge(&engine->doubt, engine->now_ns);
    if (changed == 0) {
        return;
    }
    engine->suspect_mask = self_doubt_mask(&engine->doubt);
    tell(engine, before);
    for (uint32_t slot = 0; slot < engine->n_slots; slot++) {
        const struct engine_target *target = &engine->targets[slot];

        if (target->birth == 0 || (changed & target_kinds(target)) == 0) {
            continue;
        }
        id_set_add(&engine->dirty_slots, slot);
        engine_part_changed(engine, slot);
        if (!target_is_composed(target) && !engine_is_suspect(engine, slot)) {
            forget_evidence(engine, slot, engine->doubt.kinds[kind_of(engine, slot)].since_ns,
                            actions);
        }
    }
    engine->next_vector_ns = engine->now_ns; /* the peers shall know at once */
}
