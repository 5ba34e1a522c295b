/* What the engine knows of what keeps verdicts from being reached (findings.h). */
#include <string.h>

#include "agent/core/engine_state.h"
#include "agent/core/engine_view.h"

#define REASONS 64 /* engine_target has 6 bits for them */

/* Backends on which this node has no vote, by the reason that its last probe gave. */
struct blind_tally {
    uint32_t n[REASONS];
    uint32_t first_row[REASONS];
};

/* As long as this after a group became what it is, on this node, votes may rightly be missing:
 * until then the first probes and the votes that follow them are under way. */
static bool is_settling(const struct engine *engine, const struct engine_scope *scope,
                        uint64_t now_ns)
{
    uint64_t window_ns =
        (scope->failure_window_ms + scope->interval_ms) * NS_PER_MS + 3 * engine->vote_interval_ns;

    return now_ns < scope->version.at_ns + window_ns;
}

/* This node probes the target and comes to no opinion, since its probes say nothing. Returns the
 * reason; REASON_NONE = it has an opinion, or is on the way to one. */
static unsigned blind_reason(const struct engine *engine, uint32_t slot)
{
    const struct engine_target *target = &engine->targets[slot];
    const struct engine_target *deciding = &engine->targets[engine_deciding_slot(engine, slot)];

    if (!engine_is_on(engine, slot) || target->health.opinion != OPINION_NONE) {
        return REASON_NONE;
    }
    if (deciding->last_class == PROBE_INCONCLUSIVE) {
        return deciding->last_reason;
    }
    return deciding->reason == REASON_LOCAL_DELAYED ? REASON_LOCAL_DELAYED : REASON_NONE;
}

static void name_backend(const struct engine *engine, uint32_t row, struct finding_backend *ret)
{
    const struct engine_backend *backend = &engine->backends[row];

    memcpy(ret->group, engine->scopes[backend->scope].name, sizeof ret->group);
    ret->at = backend->at;
}

static void name_few_votes(const struct engine *engine, uint32_t row,
                           struct engine_findings *findings)
{
    struct tally tally;

    name_backend(engine, row, &findings->few_votes);
    engine_tally(engine, engine->backends[row].target.slot, &tally);
    findings->n_counted = tally_counted(&tally);
    findings->quorum = tally_quorum(&tally);
}

static void name_blind(const struct engine *engine, const struct blind_tally *blind,
                       struct engine_findings *findings)
{
    unsigned most = REASON_NONE;

    for (unsigned reason = 1; reason < REASONS; reason++) {
        findings->n_blind += blind->n[reason];
        most = blind->n[reason] > blind->n[most] ? reason : most;
    }
    if (findings->n_blind > 0) {
        findings->blind_reason = (uint8_t)most;
        name_backend(engine, blind->first_row[most], &findings->blind);
    }
}

/* Peers that are heard and do not doubt all they do, of those given (bits). */
static uint64_t heard_peers(const struct engine *engine, uint64_t peers, uint64_t now_ns)
{
    uint64_t heard = 0;

    for (uint64_t left = peers; left != 0; left &= left - 1) {
        uint32_t peer = (uint32_t)__builtin_ctzll(left);
        struct votes_peer_look look;

        votes_look_peer(engine->votes, peer, &look);
        if (look.vector_ns != 0 && now_ns <= look.vector_ns + 3 * engine->vote_interval_ns &&
            look.suspect_mask == 0 && !look.catalog_differs) {
            heard |= UINT64_C(1) << peer;
        }
    }
    return heard;
}

static void look_at_backends(const struct engine *engine, uint64_t now_ns,
                             struct engine_findings *findings)
{
    struct blind_tally blind = {.n = {0}};
    uint64_t peers = observers_peers(&engine->observers);
    uint64_t expected = 0, voters = 0;

    for (uint32_t row = 0; row < engine->n_rows; row++) {
        const struct engine_backend *backend = &engine->backends[row];

        if (backend->birth == 0 || !backend->is_linked || backend->life == LIFE_REMOVING) {
            continue;
        }
        uint32_t slot = backend->target.slot;
        unsigned reason = blind_reason(engine, slot);
        findings->n_probed++;
        if (reason != REASON_NONE && observers_self_counts(&engine->observers) &&
            blind.n[reason]++ == 0) {
            blind.first_row[reason] = row;
        }
        if (is_settling(engine, &engine->scopes[backend->scope], now_ns)) {
            continue;
        }
        if ((backend->held_causes & HELD_FEW_VOTES) != 0 && findings->n_few_votes++ == 0) {
            name_few_votes(engine, row, findings);
        }
        struct tally tally = {.n_observers = 0};
        votes_count(engine->votes, slot, peers, now_ns, &tally);
        voters |= tally.fails | tally.passes;
        expected |= engine_is_shared(engine, slot) ? engine->shares[slot].electors : peers;
        if (findings->voted.group[0] == '\0') {
            name_backend(engine, row, &findings->voted);
        }
    }
    name_blind(engine, &blind, findings);
    findings->blind_peers = heard_peers(engine, expected & peers & ~voters, now_ns);
}

/* It stays until the last of its flows is gone. */
static bool is_deleted(const struct engine *engine, const struct engine_scope *scope)
{
    const struct catalog_group *group =
        engine->catalog == NULL ? NULL : catalog_group_find(engine->catalog, scope->name);

    return group == NULL || group->is_deleted;
}

static void look_at_groups(const struct engine *engine, struct engine_findings *findings)
{
    for (uint32_t i = 0; i < engine->n_scopes; i++) {
        const struct engine_scope *scope = &engine->scopes[i];
        struct finding_group *group =
            scope->result.group_state == GROUP_FAIL_OPEN ? &findings->fail_open : &findings->closed;

        if (scope->row.birth == 0 || scope->n_backends == 0 ||
            (scope->result.group_state != GROUP_FAIL_OPEN &&
             scope->result.group_state != GROUP_CLOSED) ||
            is_deleted(engine, scope)) {
            continue;
        }
        if (group->n_groups++ == 0) {
            memcpy(group->name, scope->name, sizeof group->name);
            group->n_eligible = scope->result.n_eligible;
            group->n_healthy = scope->result.n_healthy;
        }
    }
}

void engine_view_findings(const struct engine *engine, uint64_t now_ns,
                          struct engine_findings *ret_findings)
{
    memset(ret_findings, 0, sizeof *ret_findings);
    look_at_groups(engine, ret_findings);
    if (engine->catalog != NULL) {
        look_at_backends(engine, now_ns, ret_findings);
    }
}

uint64_t engine_member_id(const struct engine *engine, unsigned index)
{
    return engine->observers.members[index].node_id;
}
