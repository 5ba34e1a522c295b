#include "tests/sim/shared.h"

#include <string.h>

#include "agent/core/share.h"
#include "tests/sim/rules.h"
#include "tests/sim/witness.h"

bool shared_is(const struct witness *witness, uint32_t slot)
{
    const struct health_check *check =
        witness->births[slot] == 0 ? NULL : witness_check_at(witness, slot);

    return check != NULL && (check->probers != 0 || check->recheck);
}

static uint64_t grace_ns(const struct witness *witness, uint32_t slot)
{
    const struct health_check *check = witness_check_at(witness, slot);
    uint64_t most = check->unhealthy_threshold > check->healthy_threshold
                        ? check->unhealthy_threshold
                        : check->healthy_threshold;

    /* an interval, and so many probes of T with an interval between them, and the age of a vote */
    return (check->timeout_ms + check->interval_ms) * most * WORLD_MS +
           3 * witness_interval_ns(witness);
}

void shared_begin(struct witness *witness, uint32_t slot, uint64_t now_ns)
{
    witness->sharing[slot] = (struct sharing){.probes = true, .told_on = true};
    if (shared_is(witness, slot)) {
        witness->sharing[slot].few_ns = now_ns + grace_ns(witness, slot);
    }
}

bool shared_probes(struct checker *checker, const struct witness *witness, uint32_t slot)
{
    bool probes = !shared_is(witness, slot) || witness->sharing[slot].probes;

    checker->sometimes->shared_rested_result += !probes;
    return probes;
}

static bool is_healthy(const struct witness *witness, uint32_t slot)
{
    for (uint32_t r = 0; r < CHECK_ROWS; r++) {
        const struct judged *row = &witness->rows[r];

        if (row->birth != 0 && row->target_slot == slot &&
            row->target_birth == witness->births[slot] && row->state == HEALTH_HEALTHY &&
            !row->held_check_changed && !row->held_kept) {
            return true;
        }
    }
    return false;
}

bool shared_adopts(struct checker *checker, struct witness *witness, uint32_t slot, bool passed)
{
    struct sharing *sharing = &witness->sharing[slot];
    bool adopts = sharing->was_called && passed && witness->own[slot].opinion == OPINION_NONE &&
                  is_healthy(witness, slot);

    sharing->was_called = false;
    checker->sometimes->shared_adopted += adopts;
    return adopts;
}

bool shared_wavers(const struct witness *witness, uint32_t slot)
{
    return shared_is(witness, slot) && witness->own[slot].opinion == OPINION_PASS &&
           witness->own[slot].fails > 0;
}

/* --- the chosen --- */

static unsigned n_set(const struct checker *checker, const bool set[WORLD_NODES + 1])
{
    unsigned n = 0;

    for (uint32_t id = 1; id <= checker->n_nodes_max; id++) {
        n += set[id];
    }
    return n;
}

static uint64_t calm_ns(const struct witness *witness, uint32_t slot)
{
    const struct health_check *check = witness_check_at(witness, slot);
    uint64_t h = check->healthy_threshold;

    return (check->timeout_ms * h + check->interval_ms * (h - 1)) * WORLD_MS +
           3 * witness_interval_ns(witness);
}

static void choose(struct checker *checker, struct witness *witness, const struct world_node *node,
                   uint32_t slot, uint64_t now_ns)
{
    struct sharing *sharing = &witness->sharing[slot];
    struct target_id id = {.slot = slot, .birth = witness->births[slot]};
    struct observers observers;
    bool before[WORLD_NODES + 1];

    if (memcmp(sharing->among, witness->entered, sizeof sharing->among) == 0) {
        return;
    }
    memcpy(sharing->among, witness->entered, sizeof sharing->among);
    memcpy(before, sharing->chosen, sizeof before);
    observers_init(&observers, node->id);
    for (uint32_t n = 1; n <= checker->n_nodes_max; n++) {
        observers.members[n - 1].node_id = n;
        observers.counting |= (uint64_t)witness->entered[n] << (n - 1);
    }
    uint64_t bits = share_assigned(&observers, id, witness_check_at(witness, slot)->probers);
    for (uint32_t n = 1; n <= checker->n_nodes_max; n++) {
        sharing->chosen[n] = (bits >> (n - 1) & 1) != 0;
    }
    if (!sharing->is_begun) {
        memcpy(sharing->standing, sharing->chosen, sizeof sharing->standing);
        sharing->is_begun = true;
    } else if (memcmp(before, sharing->chosen, sizeof before) != 0) {
        sharing->enter_ns = now_ns + grace_ns(witness, slot);
        checker->sometimes->shared_chosen_changed++;
    }
}

/* Those that were chosen before go on until each new one has voted; one that comes in the place of
 * a node that left counts at once. */
static void relieve(struct checker *checker, struct sharing *sharing, const struct count *all,
                    uint64_t now_ns)
{
    bool is_complete = true;
    unsigned n_standing = 0, n_chosen = n_set(checker, sharing->chosen);

    for (uint32_t id = 1; id <= checker->n_nodes_max; id++) {
        bool has_voted = all->votes[id] == 'f' || all->votes[id] == 'p';

        sharing->standing[id] =
            sharing->among[id] && (sharing->standing[id] || (sharing->chosen[id] && has_voted));
        n_standing += sharing->standing[id];
    }
    for (uint32_t id = 1; id <= checker->n_nodes_max; id++) {
        sharing->standing[id] |= n_standing < n_chosen && sharing->chosen[id];
        is_complete &= sharing->standing[id] || !sharing->chosen[id];
    }
    checker->sometimes->shared_came_too_late += !is_complete && now_ns >= sharing->enter_ns;
    if (is_complete || now_ns >= sharing->enter_ns) {
        memcpy(sharing->standing, sharing->chosen, sizeof sharing->standing);
        sharing->enter_ns = 0;
    }
    checker->sometimes->shared_former_goes_on +=
        memcmp(sharing->standing, sharing->chosen, sizeof sharing->standing) != 0;
}

/* --- who probes --- */

struct signs {
    bool any_fails, is_few;
    bool new_failing; /* of a peer that was not seen to */
    bool is_trouble;  /* and some of the observers are chosen */
    uint64_t now_ns;
};

static struct signs look_for_signs(struct checker *checker, struct witness *witness,
                                   const struct world_node *node, uint32_t slot,
                                   const struct count *all)
{
    struct sharing *sharing = &witness->sharing[slot];
    struct signs signs = {0};
    unsigned n_voted = 0;

    for (uint32_t id = 1; id <= checker->n_nodes_max; id++) {
        char vote = all->votes[id];
        bool wavers = vote == 'p' && (id == node->id ? shared_wavers(witness, slot)
                                                     : witness->told[id][slot].wavers);
        bool fails = vote == 'f' || wavers;

        checker->sometimes->wavering_vote += wavers;
        n_voted += sharing->standing[id] && (vote == 'f' || vote == 'p');
        signs.any_fails |= fails;
        if (id != node->id) {
            signs.new_failing |= fails && !sharing->failing[id];
            sharing->failing[id] = fails;
        }
    }
    signs.is_few = 2 * n_voted <= n_set(checker, sharing->standing);
    return signs;
}

static void open_or_close(struct checker *checker, struct witness *witness, uint32_t slot,
                          const struct signs *signs, uint64_t now_ns)
{
    struct sharing *sharing = &witness->sharing[slot];

    if (signs->any_fails || signs->is_few) {
        checker->sometimes->shared_opened += !sharing->is_open;
        checker->sometimes->shared_opened_for_few += !sharing->is_open && !signs->any_fails;
        sharing->is_open = true;
        sharing->calm_ns = 0;
    } else if (sharing->is_open && sharing->calm_ns == 0) {
        sharing->calm_ns = now_ns;
    }
    if (sharing->is_open && sharing->calm_ns != 0 &&
        now_ns >= sharing->calm_ns + calm_ns(witness, slot)) {
        sharing->is_open = false;
        sharing->calm_ns = 0;
        checker->sometimes->shared_calmed++;
    }
}

/* n is of those that stand, of who has voted since the trouble began, and of who might have and
 * cannot be heard. */
static void count_in(struct checker *checker, struct witness *witness,
                     const struct world_node *node, uint32_t slot, const struct count *all,
                     const struct signs *signs)
{
    struct sharing *sharing = &witness->sharing[slot];
    uint64_t fresh_ns = 3 * witness_interval_ns(witness);

    for (uint32_t id = 1; id <= checker->n_nodes_max; id++) {
        bool has_voted = all->votes[id] == 'f' || all->votes[id] == 'p';
        bool is_heard = id == node->id || (witness->vector_ns[id] != 0 &&
                                           signs->now_ns <= witness->vector_ns[id] + fresh_ns);
        bool is_missed = signs->is_trouble && sharing->among[id] && !is_heard;

        sharing->joined[id] =
            has_voted || (signs->is_trouble && sharing->joined[id] && sharing->among[id]);
        sharing->voters[id] = sharing->standing[id] || sharing->joined[id] || is_missed;
        checker->sometimes->shared_joined += has_voted && !sharing->standing[id];
        checker->sometimes->shared_silent_stays +=
            sharing->joined[id] && !has_voted && !sharing->standing[id];
        checker->sometimes->shared_unheard_counts +=
            is_missed && !sharing->standing[id] && !sharing->joined[id];
    }
}

/* What the engine ordered in this step, and whether at once. */
static bool was_ordered_now(struct sharing *sharing, const struct world_node *node, uint32_t slot)
{
    bool is_now = false;

    for (uint32_t i = 0; i < node->actions.n_orders; i++) {
        const struct probe_order *order = &node->actions.orders[i];

        if (order->id.slot == slot) {
            sharing->told_on = order->is_on;
            is_now |= order->is_now;
        }
    }
    return is_now;
}

static bool must_probe_now(struct checker *checker, struct witness *witness, uint32_t slot,
                           uint64_t now_ns)
{
    struct sharing *sharing = &witness->sharing[slot];
    const struct own *own = &witness->own[slot];
    uint64_t interval_ns = witness_check_at(witness, slot)->interval_ms * WORLD_MS;

    if (own->fails > 0 || own->opinion == OPINION_FAIL) {
        return false; /* it knows */
    }
    if (sharing->recheck_ns != 0 && now_ns < sharing->recheck_ns + interval_ns) {
        checker->sometimes->recheck_too_soon++;
        return false;
    }
    sharing->recheck_ns = now_ns;
    checker->sometimes->rechecked++;
    return true;
}

static void follow_slot(struct checker *checker, struct witness *witness,
                        const struct world_node *node, uint32_t slot, uint64_t now_ns)
{
    struct sharing *sharing = &witness->sharing[slot];
    const struct health_check *check = witness_check_at(witness, slot);
    struct count all = rules_count_all(checker, witness, node, slot, now_ns);
    bool was_open = sharing->is_open;
    bool probed = sharing->probes;

    choose(checker, witness, node, slot, now_ns);
    relieve(checker, sharing, &all, now_ns);
    struct signs signs = look_for_signs(checker, witness, node, slot, &all);
    bool is_among_some = n_set(checker, sharing->chosen) < n_set(checker, sharing->among);
    signs.is_few &= now_ns >= sharing->few_ns;
    checker->sometimes->shared_among_some += is_among_some;
    if (is_among_some) {
        open_or_close(checker, witness, slot, &signs, now_ns);
    } else {
        sharing->is_open = false;
        sharing->calm_ns = 0;
        sharing->enter_ns = 0;
        memcpy(sharing->standing, sharing->chosen, sizeof sharing->standing);
    }
    sharing->probes = sharing->among[node->id] && (sharing->is_open || sharing->chosen[node->id] ||
                                                   sharing->standing[node->id]);
    bool must_now = false;
    if (sharing->probes != probed) {
        sharing->was_called = sharing->probes;
        must_now = sharing->probes && sharing->is_open;
        if (!sharing->probes) {
            witness->own[slot] =
                (struct own){.conclusive_ns = witness->own[slot].conclusive_ns, .since_ns = now_ns};
            all.votes[node->id] = 0;
        }
    } else if (probed &&
               ((check->recheck && signs.new_failing) || (sharing->is_open && !was_open))) {
        must_now = must_probe_now(checker, witness, slot, now_ns);
    }
    signs.is_trouble = is_among_some && (signs.any_fails || signs.is_few);
    signs.now_ns = now_ns;
    count_in(checker, witness, node, slot, &all, &signs);

    bool is_now = was_ordered_now(sharing, node, slot);
    if (sharing->told_on != sharing->probes) {
        checker_fail(checker, node, "N7: it %s slot %u, which is %s%s",
                     sharing->told_on ? "probes" : "does not probe", slot,
                     sharing->chosen[node->id] ? "its own" : "another's",
                     sharing->is_open ? ", while all probe" : "");
    } else if (is_now != must_now) {
        checker_fail(checker, node, "N24: it %s slot %u at once",
                     is_now ? "probes" : "does not probe", slot);
    }
}

void shared_follow(struct checker *checker, struct witness *witness, const struct world_node *node,
                   uint64_t now_ns)
{
    for (uint32_t slot = 0; slot < CHECK_SLOTS; slot++) {
        if (shared_is(witness, slot)) {
            follow_slot(checker, witness, node, slot, now_ns);
        }
    }
}
