#include "agent/table/table_scope.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/plant.h"

struct scope_copy {
    uint64_t sequence;   /* of the copy; odd: it was not taken under one */
    uint64_t generation; /* adopted when it was taken */
    uint64_t stuck_at;   /* an odd sequence that did not move for all tries; 0 = none */
    uint32_t version;
    bool is_taken;
};

struct table_scopes {
    struct table_snapshot *snapshot;
    struct scope_copy *copies; /* one a scope */
    uint8_t *ranks;            /* one a member */
    uint8_t *shares;           /* likewise */
    uint8_t *fresh;            /* room to take one scope: ranks, */
    uint8_t *fresh_shares;     /* and shares */
    uint64_t generation;
    uint64_t n_stale;
    uint64_t n_unguarded;
};

static uint32_t largest_scope(const struct table_layout *layout)
{
    uint32_t n_members = 0;

    for (uint32_t i = 0; i < layout->header->n_scopes; i++) {
        uint32_t n = table_layout_scope(layout, i)->n_members;

        n_members = n > n_members ? n : n_members;
    }
    return n_members;
}

struct table_scopes *table_scopes_new(struct table_snapshot *snapshot)
{
    const struct table_layout *layout = table_snapshot_layout(snapshot);
    struct table_scopes *scopes = calloc(1, sizeof *scopes);

    if (scopes == NULL) {
        return NULL;
    }
    scopes->copies = calloc(layout->header->n_scopes + 1U, sizeof *scopes->copies);
    scopes->ranks = calloc(layout->header->n_members + 1U, 1);
    scopes->shares = calloc(layout->header->n_members + 1U, 1);
    scopes->fresh = calloc(largest_scope(layout) + 1U, 1);
    scopes->fresh_shares = calloc(largest_scope(layout) + 1U, 1);
    scopes->snapshot = table_snapshot_ref(snapshot);
    if (scopes->copies == NULL || scopes->ranks == NULL || scopes->shares == NULL ||
        scopes->fresh == NULL || scopes->fresh_shares == NULL) {
        table_scopes_free(scopes);
        return NULL;
    }
    return scopes;
}

void table_scopes_free(struct table_scopes *scopes)
{
    if (scopes == NULL) {
        return;
    }
    table_snapshot_unref(scopes->snapshot);
    free(scopes->copies);
    free(scopes->ranks);
    free(scopes->shares);
    free(scopes->fresh);
    free(scopes->fresh_shares);
    free(scopes);
}

static void load_words(struct table_scopes *scopes, const struct jury_scope *scope)
{
    const struct table_layout *layout = table_snapshot_layout(scopes->snapshot);
    uint64_t version = table_snapshot_state_version(scopes->snapshot);

    for (uint32_t i = 0; i < scope->n_members; i++) {
        const struct jury_member *member = table_layout_member(layout, scope->first_member + i);
        uint64_t word = jury_load(table_snapshot_word(scopes->snapshot, member->row));
        bool is_ours = jury_word_is_of(word, member->birth);

        scopes->fresh[i] = is_ours ? (uint8_t)jury_class_rank(jury_word_class(word)) : 0;
        scopes->fresh_shares[i] =
            plant_is("shim-ignore-share") ? 100 : (uint8_t)jury_word_share(word, version);
    }
}

/* Load the scope's words while its sequence stands still. False: it never did. */
static bool load_guarded(struct table_scopes *scopes, const struct jury_scope *scope,
                         struct scope_copy *copy, uint64_t *ret_sequence)
{
    const uint64_t *sequence = table_snapshot_sequence(scopes->snapshot, scope->row);
    uint64_t before = jury_load(sequence);

    if (copy->stuck_at != 0 && before == copy->stuck_at) {
        return false;
    }
    for (unsigned i = 0; i < JURY_SCOPE_TRIES; i++) {
        before = jury_load(sequence);
        if (before % 2 == 1 && !plant_is("table-torn-scope")) {
            continue;
        }
        load_words(scopes, scope);
        if (jury_load(sequence) == before || plant_is("table-torn-scope")) {
            *ret_sequence = before;
            copy->stuck_at = 0;
            return true;
        }
    }
    copy->stuck_at = before % 2 == 1 ? before : 0;
    return false;
}

static void keep(struct table_scopes *scopes, const struct jury_scope *scope,
                 struct scope_copy *copy, uint64_t sequence)
{
    uint8_t *ranks = scopes->ranks + scope->first_member;
    uint8_t *shares = scopes->shares + scope->first_member;

    if (!copy->is_taken || memcmp(ranks, scopes->fresh, scope->n_members) != 0 ||
        memcmp(shares, scopes->fresh_shares, scope->n_members) != 0) {
        memcpy(ranks, scopes->fresh, scope->n_members);
        memcpy(shares, scopes->fresh_shares, scope->n_members);
        copy->version++;
    }
    copy->sequence = sequence;
    copy->generation = scopes->generation;
    copy->is_taken = true;
}

/* A sequence only rises: one that went back stands in a file that was cut. */
static bool is_cut(const struct scope_copy *copy, uint64_t sequence)
{
    return copy->is_taken && sequence < (copy->sequence & ~UINT64_C(1)) &&
           !plant_is("table-cut-believed");
}

static void take_scope(struct table_scopes *scopes, uint32_t scope_index)
{
    const struct table_layout *layout = table_snapshot_layout(scopes->snapshot);
    const struct jury_scope *scope = table_layout_scope(layout, scope_index);
    struct scope_copy *copy = &scopes->copies[scope_index];
    uint64_t sequence = jury_load(table_snapshot_sequence(scopes->snapshot, scope->row));

    if (copy->is_taken && copy->sequence == sequence && sequence % 2 == 0) {
        return;
    }
    bool is_whole = load_guarded(scopes, scope, copy, &sequence);
    if (is_cut(copy, sequence)) {
        scopes->n_stale++;
    } else if (is_whole) {
        keep(scopes, scope, copy, sequence);
    } else if (copy->is_taken && copy->generation == scopes->generation) {
        scopes->n_stale++;
    } else {
        load_words(scopes, scope);
        keep(scopes, scope, copy, sequence | 1);
        scopes->n_unguarded++;
    }
}

struct select_set table_scopes_take(struct table_scopes *scopes, uint32_t scope_index)
{
    const struct table_layout *layout = table_snapshot_layout(scopes->snapshot);
    const struct jury_scope *scope = table_layout_scope(layout, scope_index);

    take_scope(scopes, scope_index);
    return (struct select_set){
        .ids = table_snapshot_ids(scopes->snapshot) + scope->first_member,
        .weights = table_snapshot_weights(scopes->snapshot) + scope->first_member,
        .shares = scopes->shares + scope->first_member,
        .ranks = scopes->ranks + scope->first_member,
        .n_members = scope->n_members,
    };
}

/* Every scope is taken, not only those in use: if the words are gone one day, there is a copy. */
void table_scopes_adopt(struct table_scopes *scopes, uint64_t generation)
{
    uint32_t n_scopes = table_snapshot_layout(scopes->snapshot)->header->n_scopes;

    scopes->generation = generation;
    for (uint32_t i = 0; i < n_scopes; i++) {
        take_scope(scopes, i);
    }
}

uint32_t table_scopes_version(const struct table_scopes *scopes, uint32_t scope_index)
{
    return scopes->copies[scope_index].version;
}

uint64_t table_scopes_n_stale(const struct table_scopes *scopes)
{
    return scopes->n_stale;
}

uint64_t table_scopes_n_unguarded(const struct table_scopes *scopes)
{
    return scopes->n_unguarded;
}
