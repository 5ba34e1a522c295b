#include "tests/sim/witness.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/guards.h"
#include "tests/sim/several.h"
#include "tests/sim/shared.h"

/* Votes and streaks were in memory. On the heap: a witness is too large for a frame of a function
 * that is called each step. */
static void start_again(const struct checker *checker, struct witness *witness, uint64_t epoch)
{
    struct witness *fresh = calloc(1, sizeof *fresh);

    if (fresh == NULL) {
        abort();
    }
    fresh->epoch = epoch;
    fresh->told = witness->told;
    memset(fresh->told, 0, (checker->n_nodes_max + 1u) * sizeof *fresh->told);
    memcpy(fresh->kept, witness->kept, sizeof fresh->kept);
    memcpy(fresh->begun, witness->begun, sizeof fresh->begun);
    *witness = *fresh;
    free(fresh);
}

struct witness *witness_of(struct checker *checker, const struct world_node *node)
{
    struct witness *witness = checker->nodes[node->id];

    if (witness->epoch != node->epoch) {
        start_again(checker, witness, node->epoch);
    }
    return witness;
}

uint64_t witness_interval_ns(const struct witness *witness)
{
    return catalog_settings(witness->catalog)->vote_interval_ms * WORLD_MS;
}

const struct health_check *witness_check_at(const struct witness *witness, uint32_t slot)
{
    return catalog_target_at(witness->catalog, slot)->check;
}

uint64_t witness_cycles_ns(const struct witness *witness, uint32_t slot, uint64_t n)
{
    const struct health_check *check = witness_check_at(witness, slot);

    return n * (check->timeout_ms + (uint64_t)check->interval_ms) * WORLD_MS;
}

/* --- own opinion --- */

uint8_t witness_own_opinion(struct checker *checker, struct witness *witness, uint32_t slot,
                            uint64_t now_ns)
{
    struct own *own = &witness->own[slot];

    if (several_is_composed(witness, slot)) {
        return several_opinion(checker, witness, slot, now_ns);
    }
    if (own->opinion != OPINION_NONE &&
        now_ns > own->conclusive_ns + witness_cycles_ns(witness, slot, 3)) {
        *own = (struct own){.conclusive_ns = own->conclusive_ns};
        checker->sometimes->opinion_went_stale++;
    }
    return own->opinion;
}

/* A scope begins with the first probe of one of its backends, and not before it exists. */
static void begin_scopes(struct witness *witness, const struct probe_result *result)
{
    for (size_t i = 0; i < catalog_n_groups(witness->catalog); i++) {
        const struct catalog_group *group = catalog_group_at(witness->catalog, i);
        uint64_t *first_ns = &witness->first_probe_ns[group->row.row];

        for (uint32_t j = 0; j < group->n_backends && *first_ns == 0; j++) {
            const struct judged *row = &witness->rows[group->backends[j].row.row];

            if ((row->target_slot == result->id.slot && row->target_birth == result->id.birth) ||
                several_has_part(witness, row->target_slot, result->id.slot)) {
                *first_ns = row->joined_ns > result->start_ns ? row->joined_ns : result->start_ns;
            }
        }
    }
}

static void hear_result(struct checker *checker, struct witness *witness,
                        const struct probe_result *result, uint64_t now_ns)
{
    uint32_t slot = result->id.slot;

    if (slot >= CHECK_SLOTS || witness->births[slot] != result->id.birth) {
        checker->sometimes->result_of_another++;
        return;
    }
    if (!shared_probes(checker, witness, slot)) {
        return;
    }
    const struct health_check *check = witness_check_at(witness, slot);
    struct own *own = &witness->own[slot];
    begin_scopes(witness, result);
    witness_own_opinion(checker, witness, slot, result->end_ns);
    if (result->probe_class == PROBE_PASS) {
        own->passes++;
        own->fails = 0;
        own->conclusive_ns = result->end_ns;
    } else if (result->probe_class == PROBE_FAIL) {
        own->fails++;
        own->passes = 0;
        own->conclusive_ns = result->end_ns;
    } else {
        checker->sometimes->result_inconclusive++;
    }
    uint8_t before = own->opinion;
    bool adopts = result->probe_class != PROBE_INCONCLUSIVE &&
                  shared_adopts(checker, witness, slot, result->probe_class == PROBE_PASS);
    if (own->passes >= check->healthy_threshold || adopts) {
        own->opinion = OPINION_PASS;
    } else if (own->fails >= check->unhealthy_threshold) {
        own->opinion = OPINION_FAIL;
    }
    own->since_ns = own->opinion == before ? own->since_ns : now_ns;
}

/* --- self-doubt --- */

static bool is_doubted(const struct witness *witness, uint32_t slot, uint32_t suspect_mask)
{
    return several_is_composed(witness, slot)
               ? several_is_doubted(witness, slot, suspect_mask)
               : (suspect_mask >> witness_check_at(witness, slot)->type & 1) != 0;
}

bool witness_doubts(const struct witness *witness, uint32_t slot)
{
    return is_doubted(witness, slot, witness->suspect_mask);
}

void witness_follow_doubt(struct checker *checker, struct witness *witness, uint32_t mask,
                          uint64_t now_ns)
{
    uint32_t ended = witness->suspect_mask & ~mask;

    for (uint32_t slot = 0; ended != 0 && slot < CHECK_SLOTS; slot++) {
        struct own *own = &witness->own[slot];
        unsigned kind = witness->births[slot] == 0 ? 0 : witness_check_at(witness, slot)->type;

        if (several_is_composed(witness, slot) || (ended >> kind & 1) == 0 ||
            (own->fails == 0 && own->opinion != OPINION_FAIL)) {
            continue;
        }
        if (own->opinion != OPINION_FAIL) {
            own->fails = 0;
            checker->sometimes->doubt_dropped++;
        } else if (own->since_ns >= witness->suspect_ns[kind]) {
            *own = (struct own){.conclusive_ns = own->conclusive_ns};
            checker->sometimes->doubt_dropped++;
        }
    }
    for (unsigned kind = 0; kind < CHECK_KINDS; kind++) {
        if ((mask & ~witness->suspect_mask) >> kind & 1) {
            witness->suspect_ns[kind] = now_ns;
        }
    }
    witness->suspect_mask = mask;
}

/* --- votes of others --- */

/* The target that a slot meant at a revision. */
static uint64_t birth_at(const struct checker *checker, uint64_t revision, uint32_t slot)
{
    const struct catalog *catalog =
        revision < WORLD_REVISIONS ? checker->world->history[revision] : NULL;
    const struct catalog_target *target = catalog == NULL || slot >= catalog_n_slots(catalog)
                                              ? NULL
                                              : catalog_target_at(catalog, slot);

    return target == NULL ? 0 : target->id.birth;
}

/* What a message says of one slot. */
struct heard {
    uint64_t epoch, sequence;
    uint8_t opinion;
    bool is_doubted; /* by its sender: nothing of it is used, at once */
    uint64_t now_ns, fresh_ns;
};

static void hear_opinion(struct checker *checker, struct told *told, const struct heard *heard)
{
    uint64_t epoch = heard->epoch;

    if (epoch < told->epoch || (epoch == told->epoch && heard->sequence <= told->sequence)) {
        if (epoch == told->epoch && heard->sequence == told->sequence) {
            checker->sometimes->message_repeated++;
        } else {
            checker->sometimes->message_overtaken++;
        }
        return;
    }
    told->epoch = epoch;
    told->sequence = heard->sequence;
    if (heard->is_doubted) {
        checker->sometimes->suspect_vote += told->opinion != OPINION_NONE;
        told->opinion = OPINION_NONE;
    } else if (heard->opinion != OPINION_NONE) {
        told->wavers = heard->opinion == VOTE_WAVERS;
        told->opinion = told->wavers ? OPINION_PASS : heard->opinion;
        told->heard_ns = heard->now_ns;
        told->withdrawn = false;
    } else if (told->opinion != OPINION_NONE && !told->withdrawn &&
               heard->now_ns - told->heard_ns <= heard->fresh_ns) {
        told->withdrawn = true;
        told->withdrawn_ns = heard->now_ns;
        checker->sometimes->vote_withdrawn++;
    }
}

/* Only messages of the newest start of a peer are taken. */
static bool epoch_is_newest(struct checker *checker, struct witness *witness, uint64_t peer,
                            uint64_t epoch)
{
    if (epoch < witness->newest_epoch[peer]) {
        checker->sometimes->message_old_epoch++;
        return false;
    }
    if (epoch > witness->newest_epoch[peer]) {
        witness->newest_epoch[peer] = epoch;
        witness->newest_vector[peer] = 0;
    }
    return true;
}

static void hear_chunk(struct checker *checker, struct witness *witness, uint64_t peer,
                       const struct vote_chunk *chunk, uint64_t now_ns)
{
    uint64_t here = catalog_revision(witness->catalog);

    if (!epoch_is_newest(checker, witness, peer, chunk->epoch)) {
        return;
    }
    if (chunk->sequence <= witness->newest_vector[peer]) {
        checker->sometimes->message_repeated += chunk->sequence == witness->newest_vector[peer];
        checker->sometimes->vector_overtaken += chunk->sequence < witness->newest_vector[peer];
        return;
    }
    witness->newest_vector[peer] = chunk->sequence;
    witness->vector_ns[peer] = now_ns;
    checker->sometimes->sender_behind += chunk->revision < here;
    checker->sometimes->sender_ahead += chunk->revision > here;
    for (uint32_t slot = 0; slot < CHECK_SLOTS; slot++) {
        uint64_t theirs = birth_at(checker, chunk->revision, slot);
        uint8_t opinion = chunk->opinions[slot / 4] >> (slot % 4 * 2) & 3;

        if (witness->births[slot] == 0) {
            continue;
        }
        if (theirs != witness->births[slot]) {
            checker->sometimes->slot_of_another += theirs != 0;
            /* Its sender does not have the target (any more): nothing is said of it, but if it was
             * freed there, `none` is what it says. */
            if (theirs != 0 || chunk->revision < witness->births[slot]) {
                continue;
            }
        }
        hear_opinion(checker, &witness->told[peer][slot],
                     &(struct heard){.epoch = chunk->epoch,
                                     .sequence = chunk->sequence,
                                     .opinion = opinion,
                                     .is_doubted = is_doubted(witness, slot, chunk->suspect_mask),
                                     .now_ns = now_ns,
                                     .fresh_ns = 3 * witness_interval_ns(witness)});
    }
}

static void hear_change(struct checker *checker, struct witness *witness, uint64_t peer,
                        const struct vote_change *change, uint64_t now_ns)
{
    uint32_t slot = change->target.slot;

    if (!epoch_is_newest(checker, witness, peer, change->epoch) || slot >= CHECK_SLOTS ||
        witness->births[slot] != change->target.birth ||
        change->sequence <= witness->newest_vector[peer]) {
        return;
    }
    hear_opinion(checker, &witness->told[peer][slot],
                 &(struct heard){.epoch = change->epoch,
                                 .sequence = change->sequence,
                                 .opinion = change->wavers ? VOTE_WAVERS : change->opinion,
                                 .is_doubted = is_doubted(witness, slot, change->suspect_mask),
                                 .now_ns = now_ns,
                                 .fresh_ns = 3 * witness_interval_ns(witness)});
}

/* --- catalogs --- */

/* Observers of its first catalog count at once, later ones from their first hello as observer, or
 * 60 s after their commit. */
static void follow_members(struct checker *checker, struct witness *witness, uint64_t self,
                           bool is_first, uint64_t now_ns)
{
    for (uint64_t id = 1; id <= checker->n_nodes_max; id++) {
        const struct catalog_node *node = catalog_node_find(witness->catalog, id);
        bool observes =
            node != NULL && (node->spec.role == ROLE_VOTER || node->spec.role == ROLE_STANDBY);

        if (observes && !witness->observes[id]) {
            witness->entered[id] = is_first || id == self;
            witness->enters_ns[id] = now_ns + 60 * WORLD_SECOND;
            checker->sometimes->node_added += !is_first;
        } else if (!observes && witness->observes[id]) {
            checker->sometimes->node_removed++;
            witness->entered[id] = false;
            memset(witness->told[id], 0, sizeof witness->told[id]);
            witness->newest_epoch[id] = 0;
            witness->newest_vector[id] = 0;
            witness->vector_ns[id] = 0;
        }
        witness->observes[id] = observes;
    }
}

bool witness_enter_by_time(struct checker *checker, struct witness *witness, uint64_t now_ns)
{
    bool changed = false;

    for (uint64_t id = 1; id <= checker->n_nodes_max; id++) {
        if (witness->observes[id] && !witness->entered[id] && now_ns >= witness->enters_ns[id]) {
            witness->entered[id] = changed = true;
            checker->sometimes->entered_by_time++;
        }
    }
    return changed;
}

static void hear_hello(struct checker *checker, struct witness *witness, uint64_t peer,
                       const struct hello *hello)
{
    if (epoch_is_newest(checker, witness, peer, hello->epoch) && hello->is_observer &&
        witness->observes[peer] && !witness->entered[peer]) {
        witness->entered[peer] = true;
        checker->sometimes->entered_by_hello++;
    }
}

static bool has_row(const struct catalog *catalog, struct row_id id)
{
    for (size_t i = 0; catalog != NULL && i < catalog_n_groups(catalog); i++) {
        const struct catalog_group *group = catalog_group_at(catalog, i);

        for (uint32_t j = 0; j < group->n_backends; j++) {
            if (group->backends[j].row.row == id.row && group->backends[j].row.birth == id.birth) {
                return true;
            }
        }
    }
    return false;
}

static void begin_row(struct checker *checker, struct witness *witness,
                      const struct catalog_backend *backend, uint64_t now_ns)
{
    struct judged *row = &witness->rows[backend->row.row];
    const struct kept_row *kept = &witness->begun[backend->row.row];
    struct hash128 definition =
        catalog_target_at(witness->catalog, backend->target.slot)->definition_hash;

    if (row->birth == 0 && kept->birth == backend->row.birth && kept->state != HEALTH_NONE &&
        memcmp(&kept->definition, &definition, sizeof definition) == 0) {
        row->state = kept->state;
        row->held_kept = row->is_adopted = true;
        checker->sometimes->held_kept++;
        return;
    }
    row->state = HEALTH_INITIAL;
    row->initial_ns = now_ns;
}

static void note_switch(struct sometimes *sometimes, uint8_t before,
                        const struct catalog_backend *backend)
{
    bool is_probed = backend->target.slot != CATALOG_NO_SLOT;
    bool is_unused = !is_probed && backend->spec.admin_state == ADMIN_MAINTENANCE;
    bool was_probed =
        before == HEALTH_INITIAL || before == HEALTH_HEALTHY || before == HEALTH_UNHEALTHY;

    sometimes->probed_to_unused += was_probed && is_unused;
    sometimes->probed_to_unavailable += was_probed && !is_probed && !is_unused;
    sometimes->unused_to_probed += before == HEALTH_UNUSED && is_probed;
    sometimes->unavailable_to_probed += before == HEALTH_UNAVAILABLE && is_probed;
}

static void follow_row(struct checker *checker, struct witness *witness,
                       const struct catalog_backend *backend, uint64_t now_ns)
{
    assert(backend->row.row < CHECK_ROWS);
    struct judged *row = &witness->rows[backend->row.row];
    bool is_other =
        row->target_birth != backend->target.birth || row->target_slot != backend->target.slot;

    if (row->birth != backend->row.birth) {
        *row = (struct judged){0};
    }
    note_switch(checker->sometimes, row->state, backend);
    if (backend->target.slot == CATALOG_NO_SLOT) {
        row->state =
            backend->spec.admin_state == ADMIN_MAINTENANCE ? HEALTH_UNUSED : HEALTH_UNAVAILABLE;
        row->gray = row->unreachable = row->held_check_changed = row->held_kept = false;
        row->frozen = FROZEN_NOT;
    } else if (row->state == HEALTH_NONE || row->state == HEALTH_UNUSED) {
        row->joined_ns = now_ns;
        begin_row(checker, witness, backend, now_ns);
    } else if (row->state == HEALTH_UNAVAILABLE) {
        row->state = HEALTH_HEALTHY;
        row->held_check_changed = row->was_changed = true;
    } else if (is_other && row->state == HEALTH_INITIAL) {
        row->initial_ns = now_ns;
    } else if (is_other) {
        row->held_check_changed = row->was_changed = true;
        row->gray = row->unreachable = false;
        checker->sometimes->held_check_changed++;
    }
    row->birth = backend->row.birth;
    row->target_birth = backend->target.birth;
    row->target_slot = backend->target.slot;
}

static void hear_catalog(struct checker *checker, struct witness *witness, uint64_t self,
                         const struct catalog *catalog, uint64_t now_ns)
{
    bool is_first = witness->catalog == NULL;

    if (!is_first && catalog_revision(catalog) <= catalog_revision(witness->catalog)) {
        return;
    }
    if (!is_first) {
        checker->sometimes->catalog_changed++;
        checker->sometimes->interval_changed +=
            catalog_settings(catalog)->vote_interval_ms !=
            catalog_settings(witness->catalog)->vote_interval_ms;
    }
    witness->catalog = catalog;
    follow_members(checker, witness, self, is_first, now_ns);
    for (uint32_t slot = 0; slot < CHECK_SLOTS; slot++) {
        uint64_t birth = birth_at(checker, catalog_revision(catalog), slot);

        if (birth != witness->births[slot]) {
            witness->births[slot] = birth;
            witness->own[slot] = (struct own){0};
            shared_begin(witness, slot, now_ns);
            for (uint32_t peer = 0; peer <= checker->n_nodes_max; peer++) {
                witness->told[peer][slot] = (struct told){0};
            }
        }
    }
    for (uint32_t r = 0; r < CHECK_ROWS; r++) {
        struct row_id id = {.row = r, .birth = witness->rows[r].birth};

        if (id.birth != 0 && !has_row(catalog, id)) {
            witness->rows[r] = (struct judged){0};
        }
    }
    for (size_t i = 0; i < catalog_n_groups(catalog); i++) {
        const struct catalog_group *group = catalog_group_at(catalog, i);

        assert(group->row.row < CHECK_ROWS);
        if (witness->scope_births[group->row.row] != group->row.birth) {
            witness->scope_births[group->row.row] = group->row.birth;
            witness->first_probe_ns[group->row.row] = 0;
        }
        for (uint32_t j = 0; j < group->n_backends; j++) {
            follow_row(checker, witness, &group->backends[j], now_ns);
        }
    }
    several_follow(witness);
}

void witness_hear(void *user, struct world *world, struct world_node *node,
                  const struct engine_event *event)
{
    struct checker *checker = user;
    struct witness *witness = witness_of(checker, node);

    (void)world;
    if (event->kind == ENGINE_CATALOG) {
        hear_catalog(checker, witness, node->id, event->u.catalog, event->now_ns);
    }
    guards_hear(checker, witness, event);
    if (witness->catalog == NULL) {
        return; /* it knows nobody yet */
    }
    if (event->kind == ENGINE_PROBE_RESULT) {
        hear_result(checker, witness, event->u.result, event->now_ns);
    }
    if (event->peer == 0 || catalog_node_find(witness->catalog, event->peer) == NULL) {
        return; /* strangers are not heard */
    }
    if (event->kind == ENGINE_HELLO) {
        hear_hello(checker, witness, event->peer, event->u.hello);
    } else if (event->kind == ENGINE_VOTE_CHUNK) {
        hear_chunk(checker, witness, event->peer, event->u.chunk, event->now_ns);
    } else if (event->kind == ENGINE_VOTE_CHANGE) {
        hear_change(checker, witness, event->peer, event->u.change, event->now_ns);
    }
}
