#include "agent/shim/chooser.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "agent/core/flow_key.h"
#include "common/base/err.h"
#include "common/base/plant.h"

/* A cycle begins up to this many turns in: enough to set workers apart, and cheap for big scopes.
 */
#define TURNS_AHEAD_MAX 64

void chooser_init(struct chooser *chooser, uint64_t seed)
{
    memset(chooser, 0, sizeof *chooser);
    prng_init(&chooser->prng, seed);
}

static void free_turns(struct scope_turn *turns, uint32_t n_scopes)
{
    for (uint32_t i = 0; turns != NULL && i < n_scopes; i++) {
        free(turns[i].credits);
    }
    free(turns);
}

static uint32_t n_scopes_of(const struct table_snapshot *snapshot)
{
    return snapshot == NULL ? 0 : table_snapshot_layout(snapshot)->header->n_scopes;
}

void chooser_close(struct chooser *chooser)
{
    free_turns(chooser->turns, n_scopes_of(chooser->snapshot));
    table_scopes_free(chooser->scopes);
    table_snapshot_unref(chooser->snapshot);
    memset(chooser, 0, sizeof *chooser);
}

/* The scope is known by row and birth; whether its members changed, its signature will tell. */
static void move_turns(struct chooser *chooser, struct table_snapshot *snapshot,
                       struct scope_turn turns[])
{
    for (uint32_t i = 0; i < n_scopes_of(chooser->snapshot); i++) {
        const struct jury_scope *scope =
            table_layout_scope(table_snapshot_layout(chooser->snapshot), i);
        uint32_t index = table_snapshot_scope_of_row(snapshot, scope->row, scope->birth);

        if (index != TABLE_NO_SCOPE) {
            turns[index] = chooser->turns[i];
            turns[index].version = 0;
            chooser->turns[i].credits = NULL;
        }
    }
}

int chooser_follow(struct chooser *chooser, struct table_snapshot *snapshot)
{
    struct table_scopes *scopes = table_scopes_new(snapshot);
    struct scope_turn *turns = calloc(n_scopes_of(snapshot) + 1U, sizeof *turns);

    if (scopes == NULL || turns == NULL) {
        table_scopes_free(scopes);
        free(turns);
        return ERR_NOMEM;
    }
    move_turns(chooser, snapshot, turns);
    free_turns(chooser->turns, n_scopes_of(chooser->snapshot));
    table_scopes_free(chooser->scopes);
    table_snapshot_unref(chooser->snapshot);
    chooser->snapshot = table_snapshot_ref(snapshot);
    chooser->scopes = scopes;
    chooser->turns = turns;
    return 0;
}

void chooser_adopt(struct chooser *chooser, uint64_t generation)
{
    table_scopes_adopt(chooser->scopes, generation);
}

/* A new cycle when the usable members or their weights changed. False: no memory. */
static bool prepare_turn(struct chooser *chooser, uint32_t scope_index,
                         const struct select_set *set, uint8_t rank, bool is_equal)
{
    struct scope_turn *turn = &chooser->turns[scope_index];
    uint32_t version = table_scopes_version(chooser->scopes, scope_index);

    if (turn->credits != NULL && turn->version == version) {
        return true;
    }
    uint64_t signature = select_signature(set, rank);
    if (turn->credits == NULL || turn->signature != signature ||
        turn->n_members != set->n_members) {
        int32_t *credits = calloc(set->n_members, sizeof *credits);

        if (credits == NULL) {
            return false;
        }
        free(turn->credits);
        *turn = (struct scope_turn){
            .credits = credits, .n_members = set->n_members, .signature = signature};
        struct select_turn ahead = {.credits = credits, .n_members = set->n_members};
        for (uint64_t n = prng_below(&chooser->prng, TURNS_AHEAD_MAX); n > 0; n--) {
            select_by_turn(set, rank, is_equal, &ahead);
        }
    }
    turn->version = version;
    return true;
}

static struct select_tried tried_members(const struct select_set *set, const uint64_t tried_ids[],
                                         uint32_t n_tried)
{
    struct select_tried tried = {.n_members = 0};

    for (uint32_t i = 0; i < set->n_members && n_tried > 0; i++) {
        for (uint32_t k = 0; k < n_tried && tried.n_members < SELECT_TRIES; k++) {
            if (set->ids[i] == tried_ids[k]) {
                tried.members[tried.n_members++] = i;
                break;
            }
        }
    }
    return tried;
}

uint32_t chooser_pick(struct chooser *chooser, uint32_t scope_index, uint64_t flow_hash,
                      const uint64_t tried_ids[], uint32_t n_tried)
{
    const struct jury_scope *scope =
        table_layout_scope(table_snapshot_layout(chooser->snapshot), scope_index);
    struct select_set set = table_scopes_take(chooser->scopes, scope_index);
    struct select_tried tried = tried_members(&set, tried_ids, n_tried);
    uint8_t rank = select_rank(&set, &tried);
    uint32_t member = SELECT_NONE;
    bool is_equal = scope->scheduler == JURY_SCHEDULER_RR;

    assert(n_tried <= SELECT_TRIES);
    if (rank == 0) {
        return plant_is("shim-ignore-classes") && scope->n_members > 0 ? scope->first_member
                                                                       : SELECT_NONE;
    }
    if (flow_key_is_hashed(scope->scheduler) || n_tried > 0 ||
        !prepare_turn(chooser, scope_index, &set, rank, is_equal)) {
        member = select_by_hash(&set, rank, flow_hash, &tried);
    } else {
        struct scope_turn *state = &chooser->turns[scope_index];
        struct select_turn turn = {.credits = state->credits, .n_members = state->n_members};

        member = select_by_turn(&set, rank, is_equal, &turn);
    }
    return member == SELECT_NONE ? SELECT_NONE : scope->first_member + member;
}
