#include "agent/core/self_doubt.h"

#include <string.h>

#include "common/base/plant.h"
#include "common/base/units.h"
#include "common/model/reason.h"

/* Lost time for each point; more than the most is not remembered: a long pause is over some time.
 */
#define LATE_POINT_NS (250 * NS_PER_MS)
#define LATE_MAX_NS (3 * NS_PER_SECOND)
#define LATE_POINTS_MAX 4
/* Passes in all before a sentinel's silence means anything; and the time without a pass after which
 * its machine is gone, not the way. */
#define WITNESS_PASSES 3
#define WITNESS_LOST_NS (60 * NS_PER_SECOND)
#define LOSSES 3 /* of all peers together, within SENTINEL_WINDOW_NS */

void self_doubt_init(struct self_doubt *doubt, uint64_t self_id, uint64_t now_ns)
{
    *doubt = (struct self_doubt){.self_id = self_id, .late_at_ns = now_ns, .fresh_ns = now_ns};
}

/* --- what the shell measures --- */

unsigned self_doubt_choose_peers(const struct sentinel_member members[], size_t n, uint64_t self_id,
                                 size_t ret_chosen[SENTINEL_PEERS])
{
    unsigned n_chosen = 0;
    size_t own = 0;

    while (own < n && members[own].node_id < self_id) {
        own++;
    }
    for (size_t i = 0; i < n && n_chosen < SENTINEL_PEERS; i++) {
        size_t index = (own + i) % n;

        if (members[index].is_known && members[index].node_id != self_id) {
            ret_chosen[n_chosen++] = index;
        }
    }
    return n_chosen;
}

uint64_t self_doubt_take_loops(struct loops_late *loops, const struct loops_sample *sample)
{
    uint64_t due_ns = loops->last.now_ns + loops->tick_interval_ns;
    bool is_first = loops->last.now_ns == 0;
    uint64_t health_ns = !is_first && sample->now_ns > due_ns ? sample->now_ns - due_ns : 0;
    uint64_t probe_ns = sample->probe_stalled_ns - loops->last.probe_stalled_ns;

    if (sample->n_probe_stalls != loops->last.n_probe_stalls) {
        probe_ns += loops->stall_ns;
    } else if (sample->probe_is_stalled) {
        probe_ns += loops->tick_interval_ns;
    }
    loops->last = *sample;
    uint64_t late_ns = probe_ns > health_ns ? probe_ns : health_ns;
    return late_ns > LOOPS_NOISE_NS ? late_ns : 0;
}

/* --- evidence --- */

/* Half of the time that has passed is taken off what was lost. */
static void drain_late(struct self_doubt *doubt, uint64_t now_ns)
{
    uint64_t off_ns = (now_ns - doubt->late_at_ns) / 2;

    doubt->late_ns = doubt->late_ns > off_ns ? doubt->late_ns - off_ns : 0;
    doubt->late_at_ns = now_ns;
}

void self_doubt_note_late(struct self_doubt *doubt, uint64_t late_ns, uint64_t now_ns)
{
    drain_late(doubt, now_ns);
    if (plant_is("doubt-not-late")) {
        return;
    }
    if (late_ns > LATE_MAX_NS || doubt->late_ns + late_ns > LATE_MAX_NS) {
        doubt->late_ns = LATE_MAX_NS;
    } else {
        doubt->late_ns += late_ns;
    }
}

static void turn_fresh(struct self_doubt *doubt, uint64_t now_ns)
{
    uint64_t n_turns = (now_ns - doubt->fresh_ns) / DOUBT_FRESH_NS;

    if (n_turns > 0) {
        doubt->n_fresh_before = n_turns == 1 ? doubt->n_fresh_failures : 0;
        doubt->n_fresh_failures = 0;
        doubt->fresh_ns += n_turns * DOUBT_FRESH_NS;
    }
}

void self_doubt_note_fresh_failure(struct self_doubt *doubt, uint64_t now_ns)
{
    turn_fresh(doubt, now_ns);
    doubt->n_fresh_failures += doubt->n_fresh_failures < UINT32_MAX / 2;
}

static struct doubt_sentinel *find_sentinel(struct self_doubt *doubt, uint64_t node_id)
{
    struct doubt_sentinel *oldest = &doubt->sentinels[0];

    for (unsigned i = 0; i <= SENTINEL_PEERS; i++) {
        struct doubt_sentinel *sentinel = &doubt->sentinels[i];

        if (sentinel->node_id == node_id) {
            return sentinel;
        }
        if (sentinel->heard_ns < oldest->heard_ns) {
            oldest = sentinel;
        }
    }
    *oldest = (struct doubt_sentinel){.node_id = node_id}; /* the shell probes others now */
    return oldest;
}

void self_doubt_note_sentinel(struct self_doubt *doubt, const struct sentinel_result *result)
{
    struct doubt_sentinel *sentinel = find_sentinel(doubt, result->node_id);
    bool is_self = result->node_id == doubt->self_id;

    sentinel->kinds = result->kinds;
    sentinel->heard_ns = result->end_ns;
    if (probe_reason_class(result->reason) == PROBE_PASS || result->is_refused) {
        sentinel->passed_ns = result->end_ns;
        sentinel->n_passes++;
        return;
    }
    /* That a peer's host is unreachable says that it is gone, not that packets are lost here. */
    if (result->reason == REASON_CONNECT_TIMEOUT ||
        (is_self && probe_reason_class(result->reason) == PROBE_FAIL)) {
        sentinel->failed_ns[sentinel->n_failed++ % SENTINEL_FAILURES] = result->end_ns;
    }
}

bool self_doubt_is_shortage(unsigned reason)
{
    return reason == REASON_LOCAL_NO_DESCRIPTOR || reason == REASON_LOCAL_NO_PORT ||
           reason == REASON_LOCAL_NO_BUFFER || reason == REASON_LOCAL_LATE;
}

/* --- parts of the score --- */

static bool is_recent(uint64_t then_ns, uint64_t now_ns)
{
    return then_ns != 0 && then_ns + SENTINEL_WINDOW_NS > now_ns;
}

static unsigned recent_failures(const struct doubt_sentinel *sentinel, uint64_t now_ns)
{
    unsigned n = 0;

    for (unsigned i = 0; i < SENTINEL_FAILURES; i++) {
        n += is_recent(sentinel->failed_ns[i], now_ns);
    }
    return n;
}

/* Whether its silence means anything. */
static bool is_witness(const struct doubt_sentinel *sentinel, uint64_t now_ns)
{
    return sentinel->n_passes >= WITNESS_PASSES && is_recent(sentinel->heard_ns, now_ns) &&
           now_ns - sentinel->passed_ns <= WITNESS_LOST_NS;
}

uint8_t self_doubt_n_witnesses(const struct self_doubt *doubt, uint64_t now_ns)
{
    uint8_t n = 0;

    for (unsigned i = 0; i <= SENTINEL_PEERS; i++) {
        n = (uint8_t)(n + is_witness(&doubt->sentinels[i], now_ns));
    }
    return n;
}

/* Kinds whose loopback fails. */
static uint32_t broken_kinds(const struct self_doubt *doubt, uint64_t now_ns)
{
    for (unsigned i = 0; i <= SENTINEL_PEERS; i++) {
        const struct doubt_sentinel *sentinel = &doubt->sentinels[i];

        if (sentinel->node_id == doubt->self_id && is_witness(sentinel, now_ns) &&
            recent_failures(sentinel, now_ns) >= 2) {
            return sentinel->kinds;
        }
    }
    return 0;
}

enum peers_look {
    PEERS_FINE,
    PEERS_LOSSY, /* most are lost now and then */
    PEERS_CUT    /* nothing comes through at all */
};

static enum peers_look look_at_peers(const struct self_doubt *doubt, uint64_t now_ns)
{
    unsigned n_witnesses = 0;
    unsigned n_shaky = 0;
    unsigned n_failures = 0;
    bool any_passed = false;

    for (unsigned i = 0; i <= SENTINEL_PEERS; i++) {
        const struct doubt_sentinel *sentinel = &doubt->sentinels[i];
        unsigned n = recent_failures(sentinel, now_ns);

        if (sentinel->node_id == doubt->self_id || !is_witness(sentinel, now_ns)) {
            continue;
        }
        n_witnesses++;
        n_shaky += n > 0;
        n_failures += n;
        any_passed = any_passed || is_recent(sentinel->passed_ns, now_ns);
    }
    if (n_failures < LOSSES || n_shaky < 2 || 2 * n_shaky <= n_witnesses) {
        return PEERS_FINE;
    }
    return any_passed ? PEERS_LOSSY : PEERS_CUT;
}

static bool is_quarter(uint32_t n, uint32_t of)
{
    return n >= DOUBT_TARGETS && UINT64_C(4) * n >= of;
}

static bool is_most(uint32_t n, uint32_t of)
{
    return n >= DOUBT_TARGETS && UINT64_C(2) * n > of;
}

static struct doubt_targets sum_up(const struct doubt_survey *survey)
{
    struct doubt_targets all = {0};

    for (unsigned kind = 0; kind < DOUBT_KINDS; kind++) {
        all.n_probed += survey->kinds[kind].n_probed;
        all.n_failing += survey->kinds[kind].n_failing;
        all.n_votes += survey->kinds[kind].n_votes;
        all.n_down += survey->kinds[kind].n_down;
        all.n_contradicted += survey->kinds[kind].n_contradicted;
    }
    return all;
}

static bool is_isolated(const struct doubt_survey *survey)
{
    return survey->n_observers >= 3 && survey->n_fresh < survey->n_observers / 2 + 1 &&
           !plant_is("doubt-not-isolated");
}

/* Parts that are the same for all kinds. */
struct common_parts {
    struct doubt_targets all;
    uint8_t late, lossy, isolated;
    uint32_t broken_kinds;
};

static uint8_t lossy_part(const struct self_doubt *doubt, uint32_t n_probed)
{
    uint64_t n_fresh = (uint64_t)doubt->n_fresh_failures + doubt->n_fresh_before;

    if (n_fresh >= DOUBT_TARGETS && 16 * n_fresh >= n_probed) {
        return 4;
    }
    return n_fresh > 0 ? 3 : 2;
}

static struct common_parts find_common(const struct self_doubt *doubt, uint64_t now_ns)
{
    struct common_parts parts = {.all = sum_up(&doubt->survey),
                                 .broken_kinds = broken_kinds(doubt, now_ns)};
    enum peers_look peers = look_at_peers(doubt, now_ns);
    uint64_t late_points = doubt->late_ns / LATE_POINT_NS;

    parts.late = (uint8_t)(late_points < LATE_POINTS_MAX ? late_points : LATE_POINTS_MAX);
    if (peers == PEERS_LOSSY) {
        parts.lossy = lossy_part(doubt, parts.all.n_probed);
    }
    if (peers == PEERS_CUT || is_isolated(&doubt->survey)) {
        parts.isolated = is_most(parts.all.n_failing, parts.all.n_probed) ? 4 : 2;
    }
    return parts;
}

static uint8_t contradicted_part(const struct doubt_targets *targets,
                                 const struct doubt_targets *all)
{
    uint32_t n = targets->n_contradicted;

    if (plant_is("contradiction-single-path") && n > 0) {
        return 4;
    }
    if (!is_quarter(n, all->n_down)) {
        return 0;
    }
    return UINT64_C(2) * all->n_contradicted >= all->n_votes ? 4 : 2;
}

static void add(struct doubt_kind *kind, unsigned *score, enum doubt_cause cause, unsigned part)
{
    *score += part;
    if (part > 0) {
        kind->causes |= (uint8_t)(1U << cause);
    }
}

static void score_kind(struct self_doubt *doubt, unsigned index, const struct common_parts *parts)
{
    const struct doubt_targets *targets = &doubt->survey.kinds[index];
    struct doubt_kind *kind = &doubt->kinds[index];
    unsigned score = 0;

    kind->causes = 0;
    if (targets->n_probed > 0 && !plant_is("doubt-never")) {
        add(kind, &score, DOUBT_LOOP_LATE, parts->late);
        add(kind, &score, DOUBT_LOCAL_FAULTS,
            is_quarter(targets->n_faulty, targets->n_probed) ? 4 : 0);
        add(kind, &score, DOUBT_LOOPBACK, (parts->broken_kinds >> index & 1) != 0 ? 4 : 0);
        add(kind, &score, DOUBT_LOSSY, parts->lossy);
        add(kind, &score, DOUBT_ISOLATED, parts->isolated);
        add(kind, &score, DOUBT_CONTRADICTED, contradicted_part(targets, &parts->all));
    }
    kind->score = (uint8_t)(score < DOUBT_SCORE_MAX ? score : DOUBT_SCORE_MAX);
}

/* Returns whether its suspicion began or ended. */
static bool follow_score(struct doubt_kind *kind, uint64_t now_ns)
{
    if (kind->score > DOUBT_SCORE_CALM) {
        kind->calm_ns = 0;
    } else if (kind->calm_ns == 0) {
        kind->calm_ns = now_ns;
    }
    if (!kind->is_suspect && kind->score >= DOUBT_SCORE_SUSPECT) {
        kind->is_suspect = true;
        kind->since_ns = now_ns;
        return true;
    }
    if (kind->is_suspect && kind->calm_ns != 0 && now_ns - kind->calm_ns >= DOUBT_CALM_NS) {
        kind->is_suspect = false;
        return true;
    }
    return false;
}

uint32_t self_doubt_judge(struct self_doubt *doubt, uint64_t now_ns)
{
    uint32_t changed = 0;
    uint8_t causes = 0;

    drain_late(doubt, now_ns);
    turn_fresh(doubt, now_ns);
    const struct common_parts parts = find_common(doubt, now_ns);
    for (unsigned i = 0; i < DOUBT_KINDS; i++) {
        struct doubt_kind *kind = &doubt->kinds[i];

        score_kind(doubt, i, &parts);
        changed |= (uint32_t)follow_score(kind, now_ns) << i;
        causes |= kind->is_suspect ? kind->causes : 0;
    }
    doubt->causes = self_doubt_mask(doubt) == 0 ? 0 : doubt->causes | causes;
    return changed;
}

uint32_t self_doubt_mask(const struct self_doubt *doubt)
{
    uint32_t mask = 0;

    for (unsigned i = 0; i < DOUBT_KINDS; i++) {
        mask |= (uint32_t)doubt->kinds[i].is_suspect << i;
    }
    return mask;
}

void self_doubt_look(const struct self_doubt *doubt, struct doubt_look *ret_look)
{
    *ret_look = (struct doubt_look){.mask = self_doubt_mask(doubt), .causes = doubt->causes};
    for (unsigned i = 0; i < DOUBT_KINDS; i++) {
        const struct doubt_kind *kind = &doubt->kinds[i];

        if (kind->score > ret_look->score) {
            ret_look->score = kind->score;
        }
        if (kind->is_suspect && (ret_look->since_ns == 0 || kind->since_ns < ret_look->since_ns)) {
            ret_look->since_ns = kind->since_ns;
        }
        if (kind->is_suspect && kind->calm_ns > ret_look->calm_ns) {
            ret_look->calm_ns = kind->calm_ns;
        }
        ret_look->causes |= ret_look->mask == 0 ? kind->causes : 0;
        ret_look->causes_now |= kind->causes;
    }
}
