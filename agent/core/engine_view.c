#include "agent/core/engine_view.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "agent/core/engine_sentence.h"
#include "agent/core/engine_state.h"
#include "agent/core/verdict_zones.h"
#include "common/base/err.h"

/* now_ns of a question may be a little before the last step's; ages are never negative. */
static uint64_t age_of(uint64_t now_ns, uint64_t then_ns)
{
    return now_ns > then_ns ? now_ns - then_ns : 0;
}

static uint64_t age_since(uint64_t now_ns, int64_t then_ns)
{
    int64_t age_ns = (int64_t)now_ns - then_ns;

    return age_ns > 0 ? (uint64_t)age_ns : 0;
}

/* --- votes --- */

static void view_own_vote(const struct engine *engine, uint32_t slot, uint64_t now_ns,
                          struct vote_view *vote)
{
    const struct engine_target *target = &engine->targets[slot];
    bool is_suspect = engine_is_suspect(engine, slot);

    vote->is_self = true;
    vote->opinion = target->health.opinion;
    vote->age_ns = target->conclusive_ns == 0 ? AGE_NEVER : age_of(now_ns, target->conclusive_ns);
    vote->standing = is_suspect                      ? STANDING_SUSPECT
                     : vote->opinion != OPINION_NONE ? STANDING_COUNTED
                                                     : STANDING_NONE;
    vote->doubt_causes = is_suspect ? engine->doubt.causes : 0;
    if (target->conclusive_ns != 0) {
        vote->has_detail = true;
        vote->reason = target->reason;
        vote->part = slot < engine->n_parts ? engine->parts[slot].part : COMPOSE_NO_PART;
        vote->http_status = target->http_status;
        vote->response_us = target->response_us;
        vote->streak = health_streak(&target->health);
        vote->since_ns = age_of(now_ns, target->opinion_since_ns);
        vote->probe_age_ns = vote->age_ns;
    }
}

static void view_peer_vote(const struct engine *engine, uint32_t index, uint32_t slot,
                           uint64_t now_ns, struct vote_view *vote)
{
    struct vote_look look;
    struct votes_peer_look peer;
    uint32_t kinds = target_kinds(&engine->targets[slot]);

    votes_look(engine->votes, index, slot, now_ns, &look);
    votes_look_peer(engine->votes, index, &peer);
    vote->opinion = look.opinion;
    vote->age_ns = look.hold != VOTE_NOT_HELD ? age_of(now_ns, look.heard_ns)
                   : peer.vector_ns != 0      ? age_of(now_ns, peer.vector_ns)
                                              : AGE_NEVER;
    vote->standing = look.hold == VOTE_COUNTS       ? STANDING_COUNTED
                     : look.hold == VOTE_REMEMBERED ? STANDING_REMEMBERED
                                                    : STANDING_NONE;
    if (kinds != 0 && (peer.suspect_mask & kinds) == kinds) {
        vote->standing = STANDING_SUSPECT;
        vote->doubt_causes = peer.doubt_causes;
    } else if (!engine->observers.members[index].counts) {
        vote->standing = STANDING_WAITING;
    }
    if (look.has_detail) {
        vote->has_detail = true;
        vote->reason = look.reason;
        vote->part = look.part;
        vote->http_status = look.http_status;
        vote->response_us = look.response_us;
        vote->streak = look.streak;
        vote->since_ns = age_since(now_ns, look.since_ns);
        vote->detail_age_ns = age_of(now_ns, look.detail_heard_ns);
        vote->probe_age_ns = look.probe_age_ms == 0
                                 ? AGE_NEVER
                                 : vote->detail_age_ns + look.probe_age_ms * NS_PER_MS;
    }
}

static void view_votes(const struct engine *engine, uint32_t slot, uint64_t now_ns,
                       struct backend_view *view)
{
    for (size_t i = 0; i < catalog_n_nodes(engine->catalog); i++) {
        uint64_t node_id = catalog_node_at(engine->catalog, i)->spec.node_id;
        uint32_t index = observers_index(&engine->observers, node_id);

        if (index == OBSERVER_NO_INDEX || !engine->observers.members[index].is_observer) {
            continue;
        }
        struct vote_view *vote = &view->votes[view->n_votes++];
        bool is_resting =
            engine_is_shared(engine, slot) && (engine->shares[slot].electors >> index & 1) == 0;
        vote->node_id = node_id;
        vote->index = (uint8_t)index;
        if (node_id == engine->config.node_id) {
            view_own_vote(engine, slot, now_ns, vote);
        } else {
            view_peer_vote(engine, index, slot, now_ns, vote);
        }
        if (is_resting && engine->observers.members[index].counts) {
            vote->standing = STANDING_RESTING;
            vote->opinion = OPINION_NONE;
            vote->has_detail = false; /* of when it probed */
        }
    }
}

static bool knows_reason(const struct backend_view *view, uint8_t reason)
{
    for (unsigned i = 0; i < view->n_reasons; i++) {
        if (view->reasons[i] == reason) {
            return true;
        }
    }
    return false;
}

/* In service against the votes: a guard keeps it there, or nobody's counted vote says pass and too
 * few say fail. */
static bool is_against_votes(const struct backend_view *view)
{
    bool is_kept = (view->held_causes & (HELD_BY_HOLD | HELD_BY_SHADOW)) != 0 ||
                   ((view->marks & MARK_PENDING) != 0 && !view->is_returning);

    if (view->health_state != HEALTH_HEALTHY) {
        return false;
    }
    return is_kept ||
           (view->is_by_own ? view->own == OPINION_FAIL : view->n_fail > 0 && view->n_pass == 0);
}

/* Reasons of the votes that stand for the present state; of one that is kept against the votes,
 * those of the votes. */
static void view_reasons(struct backend_view *view)
{
    bool tells_fails = view->health_state == HEALTH_UNHEALTHY || view->is_against_votes;
    uint8_t wanted = tells_fails ? OPINION_FAIL : OPINION_PASS;

    const struct vote_view *first = NULL;

    for (unsigned i = 0; i < view->n_votes; i++) {
        const struct vote_view *vote = &view->votes[i];

        if ((vote->is_self || !view->is_by_own) && vote->standing == STANDING_COUNTED &&
            vote->opinion == wanted && vote->has_detail && view->n_reasons < sizeof view->reasons &&
            !knows_reason(view, vote->reason)) {
            first = first != NULL ? first : vote;
            view->reasons[view->n_reasons++] = vote->reason;
        }
    }
    if (first != NULL && (view->reason == REASON_NONE || view->is_against_votes)) {
        view->reason = first->reason; /* asked for after the verdict */
        view->http_status = first->http_status;
    }
}

/* --- one backend --- */

static void view_config(const struct engine *engine, const struct catalog_group *group,
                        const struct catalog_backend *from, struct backend_view *view)
{
    memcpy(view->group, group->spec.name, sizeof view->group);
    view->at = from->spec.at;
    view->backend_id = from->id;
    view->row = from->row;
    view->target = from->target;
    view->weight = from->spec.weight;
    view->admin_state = from->spec.admin_state;
    view->life = from->life;
    view->rule = group->spec.rule;
    view->timeout_ms = group->spec.check.timeout_ms;
    view->interval_ms = group->spec.check.interval_ms;
    view->healthy_threshold = group->spec.check.healthy_threshold;
    view->unhealthy_threshold = group->spec.check.unhealthy_threshold;
    view->check_type = group->spec.check.type;
    view->failure_window_ms = check_failure_window_ms(&group->spec.check);
    view->success_window_ms = group_success_window_ms(&group->spec, 0);
    view->passes_by_silence = check_passes_by_silence(&group->spec.check);
    view->revision = catalog_revision(engine->catalog);
}

static void view_damping(const struct engine *engine, const struct engine_backend *backend,
                         uint64_t now_ns, struct backend_view *view)
{
    uint32_t hold_ms = engine->scopes[backend->scope].guard.flap_hold_ms;
    uint64_t at_ns = flap_return_ns(&backend->flaps, hold_ms, backend->return_ns, now_ns);

    view->n_flaps = backend->flaps.n_flaps;
    view->is_returning = backend->is_returning;
    view->is_damped = backend->is_returning && backend->is_damped;
    view->damped_ns = view->is_damped ? age_of(at_ns, now_ns) : 0;
}

static void view_verdict(const struct engine *engine, const struct engine_backend *backend,
                         uint64_t now_ns, struct backend_view *view)
{
    view->health_state = backend->health_state;
    view->marks = engine_marks(engine, backend);
    view->held_causes = backend->held_causes;
    view->since_ns = age_since(now_ns, backend->since_ns);
    view->is_unreachable = backend->is_unreachable;
    view_damping(engine, backend, now_ns, view);
    if (backend->health_state == HEALTH_HEALTHY || backend->health_state == HEALTH_UNHEALTHY) {
        view->reason = backend->reason; /* else it is that of a verdict of before */
        view->http_status = backend->http_status;
    }
    if ((backend->held_causes & HELD_LAST_KNOWN_GOOD) != 0) {
        view->kept_age_ns = engine->kept_age_ms * NS_PER_MS + age_of(now_ns, engine->kept_at_ns);
    }
}

static void view_own_results(const struct engine_target *target, const struct health_check *check,
                             uint64_t now_ns, struct backend_view *view)
{
    view->pass_streak = health_pass_streak(&target->health);
    view->fail_streak = health_fail_streak(&target->health);
    view->cert = target->cert;
    if (target->last_ns == 0) {
        return;
    }
    engine_view_last(target, now_ns, &view->last);
    if (target->last_class == PROBE_PASS) {
        view->success_window_ms = check_success_window_ms(check, target->last_us / 1000);
    }
}

static void view_zones(const struct tally *tally, struct backend_view *view)
{
    view->n_zones = tally->zones->n_zones;
    view->n_zones_heard = zones_heard(tally);
    view->n_zones_fail = zones_count(tally, OPINION_FAIL).n_agree;
    view->n_zones_pass = zones_count(tally, OPINION_PASS).n_agree;
}

static void view_tally(const struct tally *tally, struct backend_view *view)
{
    view->is_by_own = verdict_is_by_own(&view->rule, tally, (enum health_state)view->health_state);
    view->own = tally->own;
    view->n_observers = tally->n_observers;
    view->quorum = tally_quorum(tally);
    view->n_counted = tally_counted(tally);
    view->n_fail = tally->n_fail;
    view->n_pass = tally->n_pass;
    view->n_remembered_fail = tally->n_lost_fail;
    view->n_remembered_pass = tally->n_lost_pass;
    if (verdict_asks_zones(&view->rule)) {
        view_zones(tally, view);
    }
}

/* Bits of members to their ids. */
static uint8_t list_nodes(const struct engine *engine, uint64_t bits, uint64_t ids[LIMIT_NODES])
{
    uint8_t n = 0;

    for (uint64_t left = bits; left != 0; left &= left - 1) {
        ids[n++] = engine->observers.members[__builtin_ctzll(left)].node_id;
    }
    return n;
}

static void view_flows(const struct engine *engine, uint32_t row, uint64_t boot_ns,
                       struct backend_view *view)
{
    const struct engine_row *word = &engine->rows[row];
    const struct drain *drain = drains_find(&engine->drains, row);

    if (word->has_word) {
        view->row_class = word->row_class;
        view->flow_policy = word->flow_policy;
        view->deadline_cause = word->deadline_cause;
        view->deadline_in_ns =
            word->deadline_boot_ns > boot_ns ? word->deadline_boot_ns - boot_ns : 0;
    }
    if (drain == NULL) {
        uint64_t waiting = engine_drain_waiting(engine, row);

        view->n_nodes_pending = list_nodes(engine, waiting, view->pending);
        view->n_nodes_unreported = list_nodes(engine, waiting, view->unreported);
        return;
    }
    uint64_t uncounted = engine_drain_uncounted(engine, drain);
    view->n_flows = drain_flows(drain, ~uncounted);
    view->n_closed = drain_closed(drain, UINT64_MAX);
    view->n_nodes_uncounted = list_nodes(engine, uncounted, view->uncounted);
    view->n_nodes_unreported =
        list_nodes(engine, engine_drain_unreported(engine, drain), view->unreported);
    view->n_nodes_pending = list_nodes(engine, engine_drain_pending(engine, drain), view->pending);
}

static const struct catalog_group *find_group(const struct engine *engine, const char *group)
{
    return engine->catalog == NULL ? NULL : catalog_group_find(engine->catalog, group);
}

int engine_view_backend(const struct engine *engine, const char *group_name,
                        const struct endpoint *at, uint64_t now_ns, uint64_t boot_ns,
                        struct backend_view *ret_view)
{
    const struct catalog_group *group = find_group(engine, group_name);
    const struct catalog_backend *from = group == NULL ? NULL : catalog_backend_find(group, at);

    if (from == NULL) {
        return ERR_NOTFOUND;
    }
    const struct engine_backend *backend = &engine->backends[from->row.row];
    struct tally tally = {.n_observers = observers_n(&engine->observers),
                          .zones = &engine->observers.zones};

    memset(ret_view, 0, sizeof *ret_view);
    view_config(engine, group, from, ret_view);
    view_verdict(engine, backend, now_ns, ret_view);
    if (backend->is_linked) {
        const struct engine_target *target = &engine->targets[backend->target.slot];

        engine_tally(engine, backend->target.slot, &tally);
        view_votes(engine, backend->target.slot, now_ns, ret_view);
        view_own_results(target, &group->spec.check, now_ns, ret_view);
        engine_view_checks(engine, group, from, now_ns, ret_view);
    }
    view_tally(&tally, ret_view);
    ret_view->is_against_votes = is_against_votes(ret_view);
    view_reasons(ret_view);
    engine_view_weight(engine, from->row.row, now_ns, ret_view);
    view_flows(engine, from->row.row, boot_ns, ret_view);
    engine_sentence_state(ret_view);
    engine_sentence_next(ret_view, &tally);
    return 0;
}

/* --- groups --- */

static const struct engine_scope *scope_of(const struct engine *engine,
                                           const struct catalog_group *group)
{
    return &engine->scopes[engine->rows[group->row.row].scope];
}

static bool is_draining(const struct engine_backend *backend)
{
    return backend->admin_state == ADMIN_DRAINING && backend->life != LIFE_REMOVING;
}

int engine_view_group(const struct engine *engine, const char *name, uint64_t now_ns,
                      struct group_view *ret_view)
{
    const struct catalog_group *group = find_group(engine, name);

    if (group == NULL) {
        return ERR_NOTFOUND;
    }
    const struct engine_scope *scope = scope_of(engine, group);
    *ret_view = (struct group_view){
        .group_id = group->id,
        .row = group->row,
        .group_state = scope->result.group_state,
        .marks = scope->result.is_warming ? MARK_WARMING : 0,
        .since_ns = age_of(now_ns, scope->since_ns),
        .n_backends = group->n_backends,
        .n_eligible = scope->result.n_eligible,
        .n_healthy = scope->result.n_healthy,
        .n_initial = scope->result.n_initial,
        .failure_window_ms = check_failure_window_ms(&group->spec.check),
        .success_window_ms = group_success_window_ms(&group->spec, 1000),
        .revision = catalog_revision(engine->catalog),
    };
    memcpy(ret_view->name, group->spec.name, sizeof ret_view->name);
    for (uint32_t row = scope->first_row; row != NO_ROW;
         row = engine->backends[row].next_in_scope) {
        const struct engine_backend *backend = &engine->backends[row];

        ret_view->n_by_state[backend->health_state]++;
        ret_view->n_unreachable += backend->is_unreachable;
        ret_view->n_held += backend->held_causes != 0;
        ret_view->n_removing += backend->life == LIFE_REMOVING;
        ret_view->n_draining += is_draining(backend);
        ret_view->n_degraded += engine_is_degraded(engine, row);
    }
    engine_view_guards(engine, scope, now_ns, ret_view);
    return 0;
}

/* --- the node --- */

const struct engine_counters *engine_view_counters(const struct engine *engine)
{
    return &engine->counters;
}

static void count_rows(const struct engine *engine, struct engine_status *status)
{
    for (uint32_t row = 0; row < engine->n_rows; row++) {
        const struct engine_backend *backend = &engine->backends[row];

        if (engine->rows[row].scope != NO_SCOPE) {
            const struct class_result *result = &engine->scopes[engine->rows[row].scope].result;

            status->n_groups++;
            status->n_groups_by_state[result->group_state]++;
            status->n_warming += result->is_warming;
        }
        if (backend->birth != 0) {
            status->n_backends++;
            status->n_by_state[backend->health_state]++;
            status->n_held += backend->held_causes != 0;
            status->n_unreachable += backend->is_unreachable;
            status->n_removing += backend->life == LIFE_REMOVING;
            status->n_draining += is_draining(backend);
        }
    }
    for (uint32_t slot = 0; slot < engine->n_slots; slot++) {
        status->n_targets +=
            engine->targets[slot].birth != 0 && !target_is_composed(&engine->targets[slot]);
    }
}

/* with_suspects: those as well that doubt some of their own probes. */
static uint8_t count_fresh(const struct engine *engine, uint64_t now_ns, bool with_suspects)
{
    bool is_trusted = with_suspects || engine->suspect_mask == 0;
    uint8_t n = observers_self_counts(&engine->observers) && is_trusted;

    for (uint64_t left = observers_peers(&engine->observers); left != 0; left &= left - 1) {
        struct votes_peer_look look;

        votes_look_peer(engine->votes, (uint32_t)__builtin_ctzll(left), &look);
        n = (uint8_t)(n + (look.vector_ns != 0 &&
                           age_of(now_ns, look.vector_ns) <= 3 * engine->vote_interval_ns &&
                           (with_suspects || look.suspect_mask == 0)));
    }
    return n;
}

uint8_t engine_n_fresh(const struct engine *engine, uint64_t now_ns)
{
    return count_fresh(engine, now_ns, true);
}

/* What is left of the five seconds; 0 while the score is too high, and without doubt. */
static uint64_t calm_left_ns(const struct doubt_look *look, uint64_t now_ns)
{
    uint64_t calm_ns = age_of(now_ns, look->calm_ns);

    if (look->mask == 0 || look->score > DOUBT_SCORE_CALM) {
        return 0;
    }
    return calm_ns < DOUBT_CALM_NS ? DOUBT_CALM_NS - calm_ns : 1;
}

void engine_view_doubt(const struct engine *engine, uint64_t now_ns, struct doubt_view *ret_view)
{
    struct doubt_look look;

    self_doubt_look(&engine->doubt, &look);
    *ret_view = (struct doubt_view){
        .score = look.score,
        .causes = look.causes,
        .suspect_mask = engine->suspect_mask,
        .causes_now = look.causes_now,
        .since_ns = look.mask != 0 ? age_of(now_ns, look.since_ns) : 0,
        .calm_left_ns = calm_left_ns(&look, now_ns),
        .n_sentinels = self_doubt_n_witnesses(&engine->doubt, now_ns),
    };
}

void engine_view_status(const struct engine *engine, uint64_t now_ns,
                        struct engine_status *ret_status)
{
    struct tally tally = {.n_observers = observers_n(&engine->observers)};

    *ret_status = (struct engine_status){
        .node_id = engine->config.node_id,
        .epoch = engine->config.epoch,
        .revision = engine->catalog == NULL ? 0 : catalog_revision(engine->catalog),
        .vote_interval_ms = (uint32_t)(engine->vote_interval_ns / NS_PER_MS),
        .is_observer = observers_self_counts(&engine->observers),
        .n_observers = tally.n_observers,
        .quorum = tally_quorum(&tally),
        .n_fresh = engine_n_fresh(engine, now_ns),
        .n_trusted = count_fresh(engine, now_ns, false),
        .next_event = engine->events.next_sequence,
    };
    count_rows(engine, ret_status);
}

static void view_peer(const struct engine *engine, uint32_t index, uint64_t now_ns,
                      struct peer_view *peer)
{
    const struct engine_peer *known = &engine->peers[index];
    struct votes_peer_look look;

    votes_look_peer(engine->votes, index, &look);
    peer->is_observer = engine->observers.members[index].is_observer;
    peer->counts = engine->observers.members[index].counts;
    peer->epoch = look.epoch;
    peer->revision = known->revision > look.revision ? known->revision : look.revision;
    peer->hello_age_ns = known->hello_ns == 0 ? AGE_NEVER : age_of(now_ns, known->hello_ns);
    peer->vector_age_ns = look.vector_ns == 0 ? AGE_NEVER : age_of(now_ns, look.vector_ns);
    peer->suspect_mask = look.suspect_mask;
    peer->catalog_differs = look.catalog_differs;
    peer->n_stale = look.n_stale;
    peer->n_refused = look.n_refused;
    if (peer->is_self) {
        peer->epoch = engine->config.epoch;
        peer->revision = catalog_revision(engine->catalog);
        peer->suspect_mask = engine->suspect_mask;
        peer->hello_age_ns = 0;
        peer->vector_age_ns = 0;
    }
}

size_t engine_view_peers(const struct engine *engine, uint64_t now_ns,
                         struct peer_view peers[LIMIT_NODES])
{
    size_t n = 0;

    if (engine->catalog == NULL) {
        return 0;
    }
    for (size_t i = 0; i < catalog_n_nodes(engine->catalog) && n < LIMIT_NODES; i++) {
        uint64_t node_id = catalog_node_at(engine->catalog, i)->spec.node_id;
        uint32_t index = observers_index(&engine->observers, node_id);

        if (index != OBSERVER_NO_INDEX) {
            peers[n] = (struct peer_view){.node_id = node_id,
                                          .is_self = node_id == engine->config.node_id};
            view_peer(engine, index, now_ns, &peers[n++]);
        }
    }
    return n;
}

uint64_t engine_event_first(const struct engine *engine)
{
    return event_ring_first(&engine->events);
}

uint64_t engine_event_next(const struct engine *engine)
{
    return engine->events.next_sequence;
}

const struct event *engine_event_at(const struct engine *engine, uint64_t sequence)
{
    return event_ring_get(&engine->events, sequence);
}
