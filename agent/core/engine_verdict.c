/* Results to opinions, votes to verdicts. */
#include <assert.h>
#include <string.h>

#include "agent/core/engine_state.h"
#include "common/base/plant.h"
#include "common/base/str.h"

#define STALE_CYCLES 3 /* an opinion lasts for 3 x (T + I) after its last conclusive probe */

/* --- own opinion --- */

static uint64_t stale_after_ns(const struct engine_target *target)
{
    return STALE_CYCLES * ((uint64_t)target->timeout_ms + target->interval_ms) * NS_PER_MS;
}

/* With a check port of its own the backend's address hides where the cause is (A11). A replay has
 * no catalog, and nobody reads its events. */
static void tell_probed(const struct engine *engine, uint32_t slot, struct event *event)
{
    const struct catalog_target *target =
        engine->replay == NULL
            ? catalog_target_at(engine->catalog, engine_deciding_slot(engine, slot))
            : NULL;

    if (target != NULL && endpoint_compare(&target->to, &event->backend) != 0) {
        event->probed = target->to;
    }
}

void engine_opinion_changed(struct engine *engine, uint32_t slot, enum opinion before,
                            struct engine_actions *actions)
{
    struct engine_target *target = &engine->targets[slot];
    struct event *event = engine_log(engine, EVENT_OPINION_CHANGED);

    target->opinion_since_ns = engine->now_ns;
    engine->counters.opinion_changes++;
    event->from = (uint8_t)before;
    event->to = target->health.opinion;
    event->reason = target->reason;
    event->http_status = target->http_status;
    if (target->health.opinion == OPINION_FAIL) {
        event->since_first_fail_ns = engine->now_ns - target->fail_start_ns;
    }
    const char *check;
    uint32_t row = engine_find_user(engine, slot, &check);
    if (row != NO_ROW) {
        const struct engine_backend *backend = &engine->backends[row];

        event->backend = backend->at;
        memcpy(event->group, engine->scopes[backend->scope].name, sizeof event->group);
        str_copy(event->check, sizeof event->check, check);
        tell_probed(engine, slot, event);
    }
    if (target->health.opinion != OPINION_NONE || !plant_is("part-silence-unseen")) {
        engine_part_changed(engine, slot);
    }
    engine_publish_change(engine, slot, actions);
    id_set_add(&engine->dirty_slots, slot);
}

/* The first probe of a scope since its creation starts the clock of its warming. Of a target that
 * others share it may have begun before that: then the clock starts with the creation. */
void engine_note_first_probe(struct engine *engine, uint32_t slot, uint64_t start_ns)
{
    if (engine->targets[slot].is_noted) {
        return;
    }
    engine->targets[slot].is_noted = true;
    for (uint32_t row = engine->targets[slot].first_row; row != NO_ROW;
         row = engine->backends[row].next_user) {
        const struct engine_backend *backend = &engine->backends[row];
        struct engine_scope *scope = &engine->scopes[backend->scope];
        uint64_t first_ns = start_ns > backend->joined_ns ? start_ns : backend->joined_ns;

        if (scope->first_probe_ns == 0) {
            scope->first_probe_ns = first_ns == 0 ? 1 : first_ns;
            engine_keep_row(engine, scope->row.row, &(struct row_note){.kind = HISTORY_FIRST});
            id_set_add(&engine->dirty_scopes, backend->scope);
        }
    }
}

static void take_conclusive(struct engine *engine, uint32_t slot, const struct probe_result *result,
                            struct engine_actions *actions)
{
    struct engine_target *target = &engine->targets[slot];
    enum opinion before = (enum opinion)target->health.opinion;

    if (result->probe_class == PROBE_FAIL && health_fail_streak(&target->health) == 0) {
        target->fail_start_ns = result->start_ns;
    }
    target->conclusive_ns = result->end_ns;
    target->reason = result->reason & 63U;
    target->http_status = result->http_status & 1023U;
    target->response_us = target->last_us;
    bool was_failing = health_fail_streak(&target->health) > 0;
    bool changed =
        health_record(&target->health, &target->policy, (enum probe_class)result->probe_class);
    if (engine_share_adopts(engine, slot, (enum probe_class)result->probe_class)) {
        health_adopt_pass(&target->health);
        changed = true;
    }
    engine_keep_result(engine, slot, (enum probe_class)result->probe_class);
    engine_part_changed(engine, slot);
    if (result->probe_class == PROBE_PASS) {
        engine_note_latency(engine, slot);
    }
    if (target->health.opinion != OPINION_NONE) {
        timers_set(&engine->opinion_timers, slot, result->end_ns + stale_after_ns(target) + 1);
    }
    if (changed) {
        engine_opinion_changed(engine, slot, before, actions);
    } else if (engine_share_wavers(engine, slot) && !was_failing) {
        engine_publish_change(engine, slot, actions); /* the first failure, told at once */
    }
    if (engine_is_shared(engine, slot) &&
        was_failing != (health_fail_streak(&target->health) > 0)) {
        id_set_add(&engine->dirty_slots, slot);
    }
}

/* The event names the first backend of the target. What ends soon goes on passing. */
static void note_cert(struct engine *engine, uint32_t slot, struct cert_end cert)
{
    struct engine_target *target = &engine->targets[slot];
    bool was_near = target->cert.is_near;

    if (cert.day == 0) {
        return; /* the probe did not come so far */
    }
    target->cert = cert;
    const char *check;
    uint32_t user = engine_find_user(engine, slot, &check);
    if (cert.is_near != was_near && user != NO_ROW) {
        const struct engine_backend *backend = &engine->backends[user];
        struct event *event = engine_log(engine, EVENT_CERTIFICATE);

        event->from = was_near;
        event->to = cert.is_near;
        event->cert_day = cert.day;
        event->backend = backend->at;
        str_copy(event->check, sizeof event->check, check);
        memcpy(event->group, engine->scopes[backend->scope].name, sizeof event->group);
        tell_probed(engine, slot, event);
    }
}

static void note_last(struct engine_target *target, const struct probe_result *result)
{
    uint64_t took_us = (result->end_ns - result->start_ns) / 1000;

    target->last_ns = result->end_ns;
    target->last_us = took_us < UINT32_MAX ? (uint32_t)took_us : UINT32_MAX;
    target->last_class = result->probe_class & 3U;
    target->last_reason = result->reason & 63U;
    target->last_http_status = result->http_status & 1023U;
    target->is_faulty = self_doubt_is_shortage(result->reason);
}

static void note_path(struct engine *engine, uint32_t slot, const struct probe_result *result)
{
    struct engine_target *target = &engine->targets[slot];
    bool is_udp = target_kinds(target) == 1U << CHECK_TYPE_UDP;

    switch (path_stats_note(&target->path, result, is_udp)) {
    case PATH_REPLIED:
        engine->counters.probes_replied++;
        break;
    case PATH_LOST:
        engine->counters.probes_without_reply++;
        break;
    case PATH_TELLS_NOTHING:
        break;
    }
}

void engine_take_result(struct engine *engine, const struct probe_result *result,
                        struct engine_actions *actions)
{
    uint32_t slot = result->id.slot;

    if (slot >= engine->n_slots || engine->targets[slot].birth == 0 ||
        !engine_is_on(engine, slot) || /* one that was in flight when it was put to rest */
        (engine->targets[slot].birth != result->id.birth && !plant_is("result-other-definition"))) {
        engine->counters.results_dropped++;
        return;
    }
    if (result->end_ns < result->start_ns || result->end_ns > engine->now_ns) {
        engine->counters.messages_malformed++;
        return;
    }
    struct engine_target before = engine->targets[slot];
    note_last(&engine->targets[slot], result);
    note_path(engine, slot, result);
    note_cert(engine, slot, result->cert);
    engine_note_first_probe(engine, slot, result->start_ns);
    engine_note_part_probe(engine, slot, result->start_ns);
    switch ((enum probe_class)result->probe_class) {
    case PROBE_PASS:
    case PROBE_FAIL:
        take_conclusive(engine, slot, result, actions);
        break;
    case PROBE_INCONCLUSIVE:
        engine->counters.results_inconclusive++;
        break;
    case PROBE_CLASS_NONE:
        engine->counters.messages_malformed++;
        break;
    }
    engine_note_target(engine, slot, &before);
}

void engine_opinion_stale(struct engine *engine, uint32_t slot, struct engine_actions *actions)
{
    struct engine_target before = engine->targets[slot];

    if (plant_is("opinion-forever") || before.birth == 0) {
        return;
    }
    /* A probe that ended came in time; of one that did not the budget is the likely cause. */
    if (engine->is_pressed && !before.is_faulty && !plant_is("delay-unsaid")) {
        engine->targets[slot].reason = REASON_LOCAL_DELAYED;
    }
    engine_opinion_forget(engine, slot, actions);
    engine_note_target(engine, slot, &before);
}

void engine_opinion_forget(struct engine *engine, uint32_t slot, struct engine_actions *actions)
{
    struct engine_target *target = &engine->targets[slot];
    enum opinion before = (enum opinion)target->health.opinion;

    /* The old opinion's time is over: it must not end the streak that makes the next one. */
    if (!plant_is("forgotten-opinion-timer")) {
        timers_clear(&engine->opinion_timers, slot);
    }
    if (health_forget(&target->health)) {
        engine_opinion_changed(engine, slot, before, actions);
    }
}

/* --- tally --- */

static void count_votes(const struct engine *engine, uint32_t slot, struct tally *tally)
{
    uint64_t peers = observers_peers(&engine->observers);

    if (engine->replay != NULL) {
        replay_count(engine->replay, slot, peers, tally);
    } else {
        votes_count(engine->votes, slot, peers, engine->now_ns, tally);
    }
}

static void look_at_vote(const struct engine *engine, uint32_t peer, uint32_t slot,
                         struct vote_look *ret_look)
{
    if (engine->replay != NULL) {
        replay_look(engine->replay, peer, slot, ret_look);
    } else {
        votes_look(engine->votes, peer, slot, engine->now_ns, ret_look);
    }
}

void engine_tally_all(const struct engine *engine, uint32_t slot, struct tally *ret_tally)
{
    const struct engine_target *target = &engine->targets[slot];

    *ret_tally = (struct tally){.n_observers = observers_n(&engine->observers),
                                .own_opinion = target->health.opinion,
                                .own_is_suspect = engine_is_suspect(engine, slot),
                                .own_bit = observers_self_bit(&engine->observers),
                                .zones = &engine->observers.zones};
    count_votes(engine, slot, ret_tally);
    if (ret_tally->own_bit == 0 || (ret_tally->own_is_suspect && !plant_is("suspect-own-counts"))) {
        return;
    }
    uint8_t weight = plant_is("vote-own-twice") ? 2 : 1;
    ret_tally->own = target->health.opinion;
    switch ((enum opinion)target->health.opinion) {
    case OPINION_PASS:
        ret_tally->n_pass = (uint8_t)(ret_tally->n_pass + weight);
        ret_tally->passes |= ret_tally->own_bit;
        ret_tally->wavers |= engine_share_wavers(engine, slot) ? ret_tally->own_bit : 0;
        break;
    case OPINION_FAIL:
        ret_tally->n_fail = (uint8_t)(ret_tally->n_fail + weight);
        ret_tally->fails |= ret_tally->own_bit;
        break;
    case OPINION_NONE:
        break;
    }
}

void engine_tally(const struct engine *engine, uint32_t slot, struct tally *ret_tally)
{
    engine_tally_all(engine, slot, ret_tally);
    if (engine_is_shared(engine, slot)) {
        engine_share_cut(engine, slot, ret_tally);
    }
}

void engine_weigh(struct engine *engine, uint32_t slot, struct tally *ret_tally)
{
    engine_tally(engine, slot, ret_tally);
    if (!plant_is("history-guards-see-later")) {
        engine_keep_votes(engine, slot, ret_tally);
    }
}

/* --- verdicts --- */

/* What is known of a vote is its last probe, and one result does not make an opinion: its reason is
 * told with the vote only if it is one for that opinion. */
static void drop_reason_of_other(struct event_vote *vote)
{
    bool is_pass = probe_reason_class((enum probe_reason)vote->reason) == PROBE_PASS;

    if (vote->reason != REASON_NONE && is_pass != (vote->opinion == OPINION_PASS) &&
        !plant_is("event-last-reason")) {
        vote->reason = REASON_NONE;
        vote->part = COMPOSE_NO_PART;
        vote->http_status = 0;
    }
}

static void add_vote(struct event *event, const struct event_vote *vote)
{
    if (event->n_votes < EVENT_VOTES) {
        struct event_vote *added = &event->votes[event->n_votes++];

        *added = *vote;
        drop_reason_of_other(added);
    }
}

static uint8_t own_part(const struct engine *engine, uint32_t slot)
{
    return target_is_composed(&engine->targets[slot]) && slot < engine->n_parts
               ? engine->parts[slot].part
               : COMPOSE_NO_PART;
}

/* The votes of one opinion, own one first; of an event by the own vote no other. */
static void collect_votes(const struct engine *engine, uint32_t slot, enum opinion opinion,
                          struct event *event)
{
    const struct engine_target *target = &engine->targets[slot];
    uint64_t left = event->is_by_own ? 0 : observers_peers(&engine->observers);

    if (target->health.opinion == opinion && !engine_is_suspect(engine, slot) &&
        observers_self_counts(&engine->observers)) {
        add_vote(event, &(struct event_vote){.node_id = engine->config.node_id,
                                             .opinion = (uint8_t)opinion,
                                             .reason = target->reason,
                                             .part = own_part(engine, slot),
                                             .http_status = target->http_status,
                                             .age_ns = engine->now_ns - target->conclusive_ns});
    }
    for (; left != 0; left &= left - 1) {
        uint32_t peer = (uint32_t)__builtin_ctzll(left);
        struct vote_look look;

        look_at_vote(engine, peer, slot, &look);
        if (look.hold == VOTE_COUNTS && look.opinion == opinion) {
            add_vote(event,
                     &(struct event_vote){.node_id = engine->observers.members[peer].node_id,
                                          .opinion = look.opinion,
                                          .reason = look.has_detail ? look.reason : REASON_NONE,
                                          .part = look.has_detail ? look.part : COMPOSE_NO_PART,
                                          .http_status = look.has_detail ? look.http_status : 0,
                                          .age_ns = engine->now_ns - look.heard_ns});
        }
    }
}

static void find_top_reason(struct event *event)
{
    unsigned best = 0;

    for (unsigned i = 0; i < event->n_votes; i++) {
        unsigned n = 0;

        for (unsigned j = 0; j < event->n_votes; j++) {
            n += event->votes[j].reason == event->votes[i].reason;
        }
        if (event->votes[i].reason != REASON_NONE && n > best) {
            best = n;
            event->reason = event->votes[i].reason;
            event->http_status = event->votes[i].http_status;
        }
    }
}

struct event *engine_log_backend(struct engine *engine, const struct engine_backend *backend,
                                 enum event_kind kind, const struct tally *tally)
{
    struct event *event = engine_log(engine, kind);

    event->backend = backend->at;
    memcpy(event->group, engine->scopes[backend->scope].name, sizeof event->group);
    tell_probed(engine, backend->target.slot, event);
    event->n_observers = tally->n_observers;
    event->n_counted = tally_counted(tally);
    event->n_fail = tally->n_fail;
    event->n_pass = tally->n_pass;
    event->marks = engine_marks(engine, backend);
    return event;
}

void engine_tell_votes(const struct engine *engine, uint32_t slot, bool is_down,
                       struct event *event)
{
    collect_votes(engine, slot, is_down ? OPINION_FAIL : OPINION_PASS, event);
    find_top_reason(event);
    collect_votes(engine, slot, is_down ? OPINION_PASS : OPINION_FAIL, event);
}

/* Of the part that the told reason is of. One that fails is enough for that; one that passes has
 * others beside it. */
static void name_check(const struct engine *engine, uint32_t row, struct event *event)
{
    for (unsigned i = 0; i < event->n_votes && event->to == HEALTH_UNHEALTHY; i++) {
        if (event->votes[i].reason == event->reason && event->votes[i].part != 0) {
            str_copy(event->check, sizeof event->check,
                     engine_part_name(engine, row, event->votes[i].part));
            return;
        }
    }
}

static void tell_verdict(struct engine *engine, uint32_t row, uint8_t before,
                         const struct tally *tally)
{
    struct engine_backend *backend = &engine->backends[row];
    const struct engine_target *target = &engine->targets[backend->target.slot];
    bool is_down = backend->health_state == HEALTH_UNHEALTHY;
    struct event *event = engine_log_backend(engine, backend, EVENT_VERDICT_CHANGED, tally);

    event->from = before;
    event->to = backend->health_state;
    event->is_by_own = verdict_is_by_own(&engine->scopes[backend->scope].rule, tally,
                                         (enum health_state)backend->health_state);
    engine_tell_votes(engine, backend->target.slot, is_down, event);
    name_check(engine, row, event);
    if (is_down && target->health.opinion == OPINION_FAIL) {
        event->since_first_fail_ns = engine->now_ns - target->fail_start_ns;
    }
    backend->reason = event->reason;
    backend->http_status = event->http_status;
    engine_keep_row(engine, row,
                    &(struct row_note){.kind = HISTORY_VERDICT,
                                       .from = before,
                                       .to = backend->health_state,
                                       .reason = backend->reason});
}

uint64_t engine_initial_end_ns(const struct engine *engine, const struct engine_backend *backend)
{
    const struct engine_target *target = &engine->targets[backend->target.slot];
    uint64_t window_ms = (uint64_t)target->timeout_ms * target->policy.unhealthy_threshold +
                         (uint64_t)target->interval_ms * (target->policy.unhealthy_threshold - 1U);

    return backend->initial_ns + window_ms * NS_PER_MS + 3 * engine->vote_interval_ns;
}

/* Still `initial` before its window's end: look again then. V may have changed since. */
static bool past_initial(struct engine *engine, uint32_t row)
{
    const struct engine_backend *backend = &engine->backends[row];

    if (backend->health_state != HEALTH_INITIAL) {
        return false;
    }
    uint64_t end_ns = engine_initial_end_ns(engine, backend);
    if (engine->now_ns >= end_ns) {
        return true;
    }
    if (!plant_is("initial-without-timer")) {
        timers_set(&engine->row_timers, row, end_ns);
    }
    return false;
}

static bool is_held(const struct engine_backend *backend)
{
    return (backend->held_causes & HELD_BY_HOLD) != 0;
}

/* A verdict that goes down, or that a guard freezes, ends what `unreachable` steers, and that is no
 * news of the backend: while the own probes fail nobody is told that it is reachable. Nothing is
 * remembered for it, so that a replay of the votes tells the same. */
static void follow_reachable(struct engine *engine, struct engine_backend *backend,
                             bool is_unreachable, const struct tally *tally)
{
    bool still_fails = tally->own_opinion == OPINION_FAIL && !tally->own_is_suspect;

    if (is_unreachable == backend->is_unreachable) {
        return;
    }
    backend->is_unreachable = is_unreachable;
    id_set_add(&engine->dirty_scopes, backend->scope);
    if (is_unreachable || !still_fails) {
        engine_log_backend(engine, backend, EVENT_REACHABLE_CHANGED, tally)->to = is_unreachable;
    }
}

static void judge_row(struct engine *engine, uint32_t row, const struct tally *tally,
                      struct engine_actions *actions)
{
    struct engine_backend *backend = &engine->backends[row];
    uint8_t before = backend->health_state;
    struct verdict_question question = {
        .rule = &engine->scopes[backend->scope].rule,
        .tally = tally,
        .health_state = before,
        .is_gray = backend->is_gray,
        .past_initial_window = past_initial(engine, row),
    };
    struct verdict_answer answer = verdict_decide(&question);
    engine_guard_answer(engine, row, &answer);
    uint8_t kept =
        answer.is_decided
            ? 0
            : (uint8_t)(backend->held_causes & (HELD_CHECK_CHANGED | HELD_LAST_KNOWN_GOOD));

    bool was_held = is_held(backend);
    backend->held_causes = answer.held_causes | kept;
    backend->is_gray = answer.is_gray;
    if (answer.health_state != before) {
        backend->health_state = answer.health_state;
        backend->since_ns = (int64_t)engine->now_ns;
        timers_clear(&engine->row_timers, row);
        engine->counters.verdict_changes++;
        actions->verdicts_changed = true;
        tell_verdict(engine, row, before, tally);
        id_set_add(&engine->dirty_scopes, backend->scope);
    }
    if (was_held != is_held(backend) && engine_held_is_news(engine, row)) {
        struct event *event = engine_log_backend(engine, backend, EVENT_HELD_CHANGED, tally);

        event->is_by_own = verdict_is_by_own(question.rule, tally, HEALTH_UNHEALTHY);
        engine_tell_held(engine, &engine->scopes[backend->scope], is_held(backend), event);
    }
    follow_reachable(engine, backend, answer.is_unreachable, tally);
}

void engine_judge_slot(struct engine *engine, uint32_t slot, struct engine_actions *actions)
{
    const struct engine_target *target = &engine->targets[slot];
    struct tally tally;

    if (target->birth == 0) {
        return;
    }
    engine_share_follow(engine, slot);
    engine_tally(engine, slot, &tally);
    engine_judge_dependents(engine, slot, &tally);
    if (target->first_row == NO_ROW) {
        return; /* a part: what is composed of it is judged, and kept for replays */
    }
    engine_keep_votes(engine, slot, &tally);
    for (uint32_t row = target->first_row; row != NO_ROW; row = engine->backends[row].next_user) {
        judge_row(engine, row, &tally, actions);
        engine_grade_votes(engine, row, &tally);
        if (plant_is("judge-first-user")) {
            break;
        }
    }
}
