#include "tests/sim/guards.h"

#include <assert.h>

#include "tests/lib/engine_lines.h"
#include "tests/sim/several.h"
#include "tests/sim/witness.h"

#define LATE_NS WORLD_SECOND /* so much lost time at once is doubt, for 5 s at least */
#define DOUBT_LASTS_NS (5 * WORLD_SECOND)
#define APART_NS \
    (3 * WORLD_SECOND) /* until a node that is apart has seen it: the longest V, thrice */

/* --- what was told --- */

bool guards_hold(const struct witness *witness, const struct catalog_group *group)
{
    return catalog_settings(witness->catalog)->hold == HOLD_ON || group->spec.hold == HOLD_ON ||
           witness->node_hold || witness->guarded[group->row.row].node_hold;
}

static void hear_hold(struct checker *checker, struct witness *witness,
                      const struct hold_override *hold)
{
    if (hold->group[0] == '\0') {
        checker->sometimes->hold_by_node += hold->is_on && !witness->node_hold;
        witness->node_hold = hold->is_on;
        return;
    }
    const struct catalog_group *group =
        witness->catalog == NULL ? NULL : catalog_group_find(witness->catalog, hold->group);
    if (group != NULL) {
        struct guarded *guarded = &witness->guarded[group->row.row];

        checker->sometimes->hold_by_node_for_group += hold->is_on && !guarded->node_hold;
        guarded->node_hold = hold->is_on;
    }
}

/* A kind of which nothing was probed then has lost nothing by it: its probes are all of later. */
static void note_late(struct witness *witness, uint64_t now_ns)
{
    for (uint32_t slot = 0; slot < CHECK_SLOTS; slot++) {
        if (witness->births[slot] != 0) {
            witness->late_ns[witness_check_at(witness, slot)->type] = now_ns;
        }
    }
}

void guards_hear(struct checker *checker, struct witness *witness, const struct engine_event *event)
{
    if (witness->begun_ns == 0) {
        witness->begun_ns = event->now_ns;
    }
    if (event->kind == ENGINE_HOLD) {
        hear_hold(checker, witness, event->u.hold);
    } else if (event->kind == ENGINE_LOOP_LATE && event->u.late_ns >= LATE_NS) {
        note_late(witness, event->now_ns);
    } else if (event->kind == ENGINE_VOTE_CHUNK || event->kind == ENGINE_VOTE_CHANGE) {
        witness->peer_ns[event->peer] = event->now_ns;
    }
}

bool guards_is_member(const struct catalog_backend *backend)
{
    return backend->life != LIFE_REMOVING && backend->spec.admin_state == ADMIN_ENABLED;
}

bool guards_has_returned(const struct judged *row)
{
    return row->state_before == HEALTH_UNHEALTHY && row->state == HEALTH_HEALTHY;
}

uint64_t guards_lasts_ns(uint64_t *since_ns, bool is_so, uint64_t now_ns)
{
    if (!is_so) {
        *since_ns = 0;
        return 0;
    }
    *since_ns = *since_ns == 0 ? now_ns : *since_ns;
    return now_ns - *since_ns;
}

/* --- velocity --- */

static uint32_t limit_of(const struct catalog_group *group)
{
    const struct guard_policy *guard = &group->spec.guard;
    unsigned n = 0;

    for (uint32_t i = 0; i < group->n_backends; i++) {
        n += guards_is_member(&group->backends[i]);
    }
    if (guard->velocity_percent == 0 || n < guard->exempt_below) {
        return 0;
    }
    return n * guard->velocity_percent < 100 ? 1 : n * guard->velocity_percent / 100;
}

uint64_t guards_delay_ns(const struct catalog_group *group, uint64_t vote_interval_ns)
{
    uint32_t limit = limit_of(group);

    return limit == 0 ? 0
                      : ((group->n_backends + limit - 1) / limit + 1) *
                            (group->spec.guard.velocity_window_ms * WORLD_MS + vote_interval_ns);
}

/* Within the window that ends now; CHECK_EJECTIONS are more than the members of any group. */
static uint32_t used(const struct guarded *guarded, uint64_t window_ns, uint64_t now_ns)
{
    uint32_t n = 0;

    while (n < guarded->n && n < CHECK_EJECTIONS &&
           guarded->at_ns[(guarded->n - 1 - n) % CHECK_EJECTIONS] + window_ns > now_ns) {
        n++;
    }
    return n;
}

void guards_begin(struct witness *witness, const struct world_node *node,
                  const struct catalog_group *group)
{
    assert(group->row.row < CHECK_ROWS);
    struct guarded *guarded = &witness->guarded[group->row.row];

    if (guarded->birth != group->row.birth) {
        *guarded = (struct guarded){.birth = group->row.birth};
    }
    guarded->limit_before = guarded->limit;
    guarded->window_before_ns = guarded->window_ns;
    guarded->had_turns = guarded->has_turns;
    guarded->limit = limit_of(group);
    guarded->has_turns = guarded->limit > 0 || group->spec.guard.flap_hold_ms > 0;
    guarded->window_ns = group->spec.guard.velocity_window_ms * WORLD_MS;
    guarded->n_pending = 0;
    guarded->n_still_pending = 0;
    guarded->has_left = guarded->has_stayed = false;
    guarded->line = engine_view_scope_line(node->engine, group->row);
}

static bool comes_first(const struct turn *a, const struct turn *b)
{
    return a->n_fail > b->n_fail || (a->n_fail == b->n_fail && a->backend_id < b->backend_id);
}

/* I-10. A catalog that comes in the same step finds those on their way whose turn it was. */
static void note_ejection(struct checker *checker, const struct world_node *node,
                          struct guarded *guarded, const struct edge *edge)
{
    bool was_limited = guarded->limit_before > 0;
    uint32_t limit =
        guarded->limit_before > guarded->limit ? guarded->limit_before : guarded->limit;
    uint64_t window_ns = was_limited && guarded->window_before_ns < guarded->window_ns
                             ? guarded->window_before_ns
                             : guarded->window_ns;

    guarded->at_ns[guarded->n++ % CHECK_EJECTIONS] = edge->now_ns;
    checker->sometimes->velocity_admitted++;
    bool is_limited = guarded->limit > 0 && (was_limited || !guarded->had_turns);
    uint64_t n = used(guarded, window_ns, edge->now_ns);
    if (n > guarded->n - guarded->n_forgotten) {
        n = guarded->n - guarded->n_forgotten;
    }
    if (is_limited && n > limit) {
        checker_fail(checker, node, "I-10: %u backends of %s left within %.3f s, the limit is %u",
                     (unsigned)n, edge->group->spec.name, (double)window_ns / 1e9, limit);
    }
}

/* The votes say down, and the group has a limit. */
static void pass_velocity(struct checker *checker, const struct world_node *node,
                          struct guarded *guarded, const struct edge *edge, struct judged *row)
{
    struct turn turn = {.n_fail = edge->count->f, .backend_id = edge->line->backend_id};
    bool had_waited = row->was_frozen == FROZEN_BY_VELOCITY;

    if (edge->line->health_state == HEALTH_UNHEALTHY) {
        note_ejection(checker, node, guarded, edge);
        if (!had_waited) {
            checker_fail(checker, node, "I-10: a backend of %s leaves without waiting for one V",
                         edge->group->spec.name);
        }
        checker->sometimes->damping_let_go_down += guarded->limit == 0;
        if (had_waited && (!guarded->has_left || comes_first(&guarded->left, &turn))) {
            guarded->left = turn;
            guarded->has_left = true;
        }
        return;
    }
    row->frozen = FROZEN_BY_VELOCITY;
    guarded->n_pending++;
    guarded->n_still_pending += had_waited;
    checker->sometimes->velocity_pending += !had_waited;
    if (had_waited && (!guarded->has_stayed || comes_first(&turn, &guarded->stayed))) {
        guarded->stayed = turn;
        guarded->has_stayed = true;
    }
}

/* --- hold --- */

static void judge_hold(struct checker *checker, const struct world_node *node,
                       const struct edge *edge, const struct judged *row)
{
    struct sometimes *sometimes = checker->sometimes;
    bool is_down = edge->line->health_state == HEALTH_UNHEALTHY;
    char at[ENDPOINT_TEXT_BYTES];

    endpoint_format(&edge->line->at, at);
    if (row->state == HEALTH_UNHEALTHY && edge->followed == 'u') {
        sometimes->hold_let_recover++;
        if (is_down && !returns_wait(edge->group)) {
            checker_fail(checker, node, "R-EJ-3: the hold keeps %s/%s from coming back",
                         edge->group->spec.name, at);
        }
    } else if (row->state == HEALTH_INITIAL && edge->followed == 'd') {
        sometimes->hold_let_initial_go_down++; /* it takes nothing out of service */
    } else if (row->state == HEALTH_HEALTHY && is_down) {
        checker_fail(checker, node, "R-EJ-3: %s/%s was ejected under a hold",
                     edge->group->spec.name, at);
    }
}

/* --- isolation --- */

static bool hears_too_few(const struct checker *checker, const struct witness *witness,
                          const struct world_node *node, uint64_t now_ns)
{
    unsigned n = 0;
    unsigned n_heard = 0;

    for (uint32_t id = 1; id <= checker->n_nodes_max; id++) {
        bool is_heard =
            id == node->id || (witness->peer_ns[id] != 0 &&
                               now_ns - witness->peer_ns[id] <= 3 * witness_interval_ns(witness));

        n += witness->entered[id];
        n_heard += witness->entered[id] && is_heard;
    }
    return n_heard < n / 2 + 1;
}

/* The rule lets the own vote alone take a backend down. */
static bool own_may_decide(const struct verdict_rule *rule)
{
    return rule->down.kind == RULE_LOCAL || rule->below_quorum == BELOW_QUORUM_LOCAL;
}

/* Its kind of probes lost time just now; of one of several checks, each of theirs. */
static bool was_late(const struct witness *witness, uint32_t slot, uint64_t now_ns)
{
    uint32_t mask = 0;

    for (unsigned kind = 0; kind < DOUBT_KINDS; kind++) {
        uint64_t late_ns = witness->late_ns[kind];

        mask |= (uint32_t)(late_ns != 0 && now_ns <= late_ns + DOUBT_LASTS_NS) << kind;
    }
    return several_is_composed(witness, slot)
               ? several_is_doubted(witness, slot, mask)
               : (mask >> witness_check_at(witness, slot)->type & 1) != 0;
}

/* I-9: a node that hears too few takes nothing down; one that goes by its own votes alone does not
 * while it must doubt them: it stood still just now, or it hears too few and most targets fail. */
static void judge_isolation(struct checker *checker, const struct witness *witness,
                            const struct world_node *node, const struct edge *edge,
                            const struct judged *row)
{
    struct sometimes *sometimes = checker->sometimes;
    bool goes_down = edge->line->health_state == HEALTH_UNHEALTHY && row->state != HEALTH_UNHEALTHY;
    bool is_alone = hears_too_few(checker, witness, node, edge->now_ns);
    bool is_late = was_late(witness, row->target_slot, edge->now_ns);
    bool is_apart = witness->apart_ns != 0 && witness->looked_ns > witness->apart_ns + APART_NS;
    bool own_fails = witness->own[row->target_slot].opinion == OPINION_FAIL;

    sometimes->isolated += is_alone;
    if (row->state == HEALTH_UNHEALTHY) {
        return;
    }
    if (!own_may_decide(&edge->group->spec.rule)) {
        sometimes->isolated_would_go_down += is_alone && own_fails;
        if (is_alone && goes_down) {
            checker_fail(checker, node, "I-9: %s goes down on a node that hears too few",
                         edge->group->spec.name);
        }
        return;
    }
    sometimes->isolated_and_blind += is_apart && own_fails;
    sometimes->stalled_would_go_down += is_late && own_fails;
    /* With a quorum, others' votes may take it down; where some of the observers share the probes,
     * n is not all of them, and who hears too few of all may hear enough of those. */
    bool is_by_others =
        edge->count->own == 0 && edge->count->f + edge->count->p >= edge->count->n / 2 + 1;
    if (goes_down && own_fails &&
        ((is_apart && !is_by_others) ||
         (is_late && edge->group->spec.rule.down.kind == RULE_LOCAL))) {
        checker_fail(checker, node, "I-9: %s goes down by the votes of a node that %s",
                     edge->group->spec.name,
                     is_apart ? "is cut off from everything" : "stood still just now");
    }
}

/* Heard too few for 3 V since it began, three observers or more, and the last probe of more than
 * half of at least three targets failed. */
static bool is_cut_off(const struct checker *checker, const struct witness *witness,
                       const struct world_node *node, uint64_t now_ns)
{
    unsigned n_observers = 0;
    unsigned n_targets = 0;
    unsigned n_fail = 0;

    for (uint32_t id = 1; id <= checker->n_nodes_max; id++) {
        n_observers += witness->entered[id];
    }
    for (uint32_t slot = 0; slot < CHECK_SLOTS; slot++) {
        n_targets += witness->births[slot] != 0 && !several_is_composed(witness, slot);
        n_fail += witness->births[slot] != 0 && witness->own[slot].fails > 0;
    }
    return n_observers >= 3 && n_fail >= 3 && 2 * n_fail > n_targets &&
           now_ns > witness->begun_ns + 3 * witness_interval_ns(witness) &&
           hears_too_few(checker, witness, node, now_ns);
}

static void follow_apart(struct checker *checker, struct witness *witness,
                         const struct world_node *node, const struct engine_event *event)
{
    if (!is_cut_off(checker, witness, node, event->now_ns)) {
        witness->apart_ns = 0;
    } else if (witness->apart_ns == 0) {
        witness->apart_ns = event->now_ns;
    }
    witness->looked_ns = event->now_ns; /* a node that stands still sees nothing */
}

const struct checker_part checker_apart = {.name = "apart", .judge = follow_apart};

/* --- last-known-good --- */

void guards_keep(const struct checker *checker, struct witness *witness,
                 const struct world_node *node)
{
    uint64_t now_ns = world_local_ns(checker->world, node);

    for (size_t i = 0; witness->catalog != NULL && i < catalog_n_groups(witness->catalog); i++) {
        const struct catalog_group *group = catalog_group_at(witness->catalog, i);

        for (uint32_t j = 0; j < group->n_backends; j++) {
            uint32_t row = group->backends[j].row.row;

            witness->kept[row].at_ns = now_ns;
            alarm_keep(witness, group, &witness->rows[row], &witness->kept[row]);
            shadow_keep(witness, group, &witness->kept[row]);
            returns_keep(&witness->rows[row], &witness->kept[row]);
        }
    }
}

uint64_t guards_kept_error_ns(const struct kept_row *kept, uint64_t now_ns)
{
    return (now_ns - kept->at_ns) / (1000000 / CHECK_CLOCK_PPM_MAX - 1) + 10 * WORLD_MS;
}

/* --- one backend, one group --- */

static void freeze_in_shadow(struct checker *checker, const struct world_node *node,
                             const struct edge *edge, struct judged *row)
{
    char at[ENDPOINT_TEXT_BYTES];

    row->frozen = FROZEN_BY_SHADOW;
    checker->sometimes->shadow_froze += row->was_frozen != FROZEN_BY_SHADOW;
    if (edge->line->health_state == HEALTH_UNHEALTHY) {
        checker_fail(checker, node, "R-CFG-4: %s/%s was ejected in the shadow of a changed check",
                     edge->group->spec.name, endpoint_format(&edge->line->at, at));
    }
}

void guards_freeze(struct checker *checker, const struct witness *witness,
                   const struct world_node *node, const struct edge *edge, struct judged *row)
{
    struct guarded *guarded = &checker->nodes[node->id]->guarded[edge->group->row.row];
    bool is_held = guards_hold(witness, edge->group);
    bool is_ejection = row->state == HEALTH_HEALTHY && edge->followed == 'd';

    bool is_in_shadow = shadow_is_on(guarded);

    row->was_frozen = row->frozen;
    row->frozen = FROZEN_NOT;
    judge_isolation(checker, witness, node, edge, row);
    if (is_held) {
        judge_hold(checker, node, edge, row);
    }
    checker->sometimes->shadow_let_recover +=
        is_in_shadow && row->state == HEALTH_UNHEALTHY && edge->followed == 'u';
    if (row->state == HEALTH_UNHEALTHY && edge->followed == 'u' && returns_wait(edge->group) &&
        edge->line->health_state == HEALTH_UNHEALTHY) {
        row->frozen = FROZEN_BY_RETURN; /* returns.c judges whether it may */
    }
    if (!is_ejection) {
        checker->sometimes->velocity_taken_back += row->was_frozen == FROZEN_BY_VELOCITY;
        return;
    }
    if (is_held) {
        checker->sometimes->hold_froze += row->was_frozen != FROZEN_BY_HOLD;
        row->frozen = FROZEN_BY_HOLD;
    } else if (is_in_shadow) {
        freeze_in_shadow(checker, node, edge, row);
    } else if (guarded->has_turns) {
        pass_velocity(checker, node, guarded, edge, row);
    }
    checker->sometimes->velocity_exempt +=
        guarded->limit == 0 && edge->group->spec.guard.velocity_percent > 0;
}

static void follow_hold(struct checker *checker, const struct witness *witness,
                        const struct catalog_group *group, struct guarded *guarded)
{
    bool is_held = guards_hold(witness, group);

    checker->sometimes->hold_entered += is_held && !guarded->is_held;
    checker->sometimes->hold_left += !is_held && guarded->is_held;
    checker->sometimes->hold_by_cluster += catalog_settings(witness->catalog)->hold == HOLD_ON;
    checker->sometimes->hold_by_group += group->spec.hold == HOLD_ON;
    guarded->is_held = is_held;
}

/* With last-known-good the ejections of the life before count, too, by a clock that is not exact.
 */
static bool may_remember(const struct witness *witness, const struct guarded *guarded,
                         uint64_t now_ns)
{
    bool was_kept = false;

    for (uint32_t row = 0; row < CHECK_ROWS; row++) {
        was_kept |= witness->begun[row].birth != 0;
    }
    return was_kept && now_ns <= witness->begun_ns + guarded->window_ns * 11 / 10;
}

/* Whoever waits does so because the window is full, or the nodes come to hold the same votes: for
 * one V after the first of them, after some have left, and after the limit changed. */
static void judge_waiting(struct checker *checker, const struct witness *witness,
                          const struct world_node *node, const struct engine_event *event,
                          const struct catalog_group *group)
{
    struct guarded *guarded = &checker->nodes[node->id]->guarded[group->row.row];
    struct sometimes *sometimes = checker->sometimes;
    uint32_t n = used(guarded, guarded->window_ns, event->now_ns);
    bool has_just_left =
        guarded->n > 0 && guarded->at_ns[(guarded->n - 1) % CHECK_EJECTIONS] == event->now_ns;
    bool has_changed = guarded->has_turns != guarded->had_turns ||
                       guarded->limit != guarded->limit_before ||
                       guarded->window_ns != guarded->window_before_ns;
    bool has_room = guarded->limit == 0 || n < guarded->limit; /* with damping alone */
    bool is_full = guarded->n_pending > 0 && !has_room;

    uint64_t turn_ns = event->now_ns + witness_interval_ns(witness);
    if (guarded->n_still_pending == 0 || /* of them who waited before none waits now */
        ((has_just_left || has_changed) && turn_ns > guarded->turn_ns)) {
        guarded->turn_ns = turn_ns; /* a shorter V does not shorten a wait that has begun */
    }
    sometimes->velocity_entered += is_full && !guarded->is_full;
    sometimes->velocity_left += guarded->is_full && guarded->n_pending == 0;
    guarded->is_full = is_full || (guarded->is_full && guarded->n_pending > 0);
    if (guarded->n_pending > 0 && has_room && event->now_ns >= guarded->turn_ns &&
        (guarded->limit == 0 || !may_remember(witness, guarded, event->now_ns))) {
        checker_fail(checker, node, "I-10: %u of %s wait, but %u of %u left in the window",
                     guarded->n_pending, group->spec.name, n, guarded->limit);
    }
}

void guards_end(struct checker *checker, const struct witness *witness,
                const struct world_node *node, const struct engine_event *event,
                const struct catalog_group *group)
{
    struct guarded *guarded = &checker->nodes[node->id]->guarded[group->row.row];

    follow_hold(checker, witness, group, guarded);
    /* What no limit counted, or a shorter window left behind, is not counted by what comes then. */
    if ((guarded->limit_before == 0 && guarded->limit > 0) ||
        guarded->window_ns > guarded->window_before_ns) {
        guarded->n_forgotten = guarded->n;
    }
    judge_waiting(checker, witness, node, event, group);
    if (!witness->is_quiet || !guarded->has_left || !guarded->has_stayed) {
        return;
    }
    checker->sometimes->velocity_in_order++;
    if (comes_first(&guarded->stayed, &guarded->left)) {
        checker_fail(checker, node,
                     "I-10: of %s one with %u fail votes left before one with %u, or of a lower id",
                     group->spec.name, guarded->left.n_fail, guarded->stayed.n_fail);
    }
}
