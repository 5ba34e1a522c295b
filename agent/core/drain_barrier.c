#include "agent/core/drain_barrier.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/err.h"

#define FREE_ROW UINT32_MAX

void drains_init(struct drains *drains)
{
    *drains = (struct drains){0};
}

void drains_close(struct drains *drains)
{
    free(drains->drains);
    free(drains->place_of_row);
    *drains = (struct drains){0};
}

static void clear_places(uint32_t places[], uint32_t first, uint32_t end)
{
    for (uint32_t row = first; row < end; row++) {
        places[row] = DRAIN_NONE;
    }
}

int drains_reserve(struct drains *drains, uint32_t n_rows)
{
    if (n_rows <= drains->n_rows) {
        return 0;
    }
    if (drains->place_of_row != NULL) {
        uint32_t *place = realloc(drains->place_of_row, n_rows * sizeof *place);

        if (place == NULL) {
            return ERR_NOMEM;
        }
        clear_places(place, drains->n_rows, n_rows);
        drains->place_of_row = place;
    }
    drains->n_rows = n_rows;
    return 0;
}

/* Most clusters drain nothing most of the time: the map is made with the first. */
static bool make_map(struct drains *drains)
{
    if (drains->place_of_row == NULL) {
        drains->place_of_row = malloc(drains->n_rows * sizeof *drains->place_of_row);
        if (drains->place_of_row == NULL) {
            return false;
        }
        clear_places(drains->place_of_row, 0, drains->n_rows);
    }
    return true;
}

/* Places grow with the drains under way, up to the limit. */
static uint32_t find_place(struct drains *drains)
{
    for (uint32_t i = 0; drains->n_used < drains->n_places && i < drains->n_places; i++) {
        if (drains->drains[i].row == FREE_ROW) {
            return i;
        }
    }
    if (drains->n_places == LIMIT_DRAINS) {
        return DRAIN_NONE;
    }
    uint32_t n_places = drains->n_places == 0 ? 16 : drains->n_places * 2;
    struct drain *grown = realloc(drains->drains, n_places * sizeof *grown);
    if (grown == NULL) {
        return DRAIN_NONE;
    }
    for (uint32_t i = drains->n_places; i < n_places; i++) {
        grown[i] = (struct drain){.row = FREE_ROW};
    }
    uint32_t place = drains->n_places;
    drains->drains = grown;
    drains->n_places = n_places;
    return place;
}

struct drain *drains_find(const struct drains *drains, uint32_t row)
{
    if (row >= drains->n_rows || drains->place_of_row == NULL ||
        drains->place_of_row[row] == DRAIN_NONE) {
        return NULL;
    }
    return &drains->drains[drains->place_of_row[row]];
}

bool drains_follow(struct drains *drains, uint32_t row, uint64_t birth, uint64_t drain_revision,
                   uint64_t now_ns)
{
    struct drain *drain = drains_find(drains, row);

    assert(row < drains->n_rows);
    if (drain != NULL && drain->birth == birth && drain->drain_revision == drain_revision) {
        return true;
    }
    if (drain == NULL) {
        uint32_t place = make_map(drains) ? find_place(drains) : DRAIN_NONE;

        if (place == DRAIN_NONE) {
            return false;
        }
        drains->place_of_row[row] = place;
        drains->n_used++;
        drain = &drains->drains[place];
    }
    *drain = (struct drain){
        .row = row, .birth = birth, .drain_revision = drain_revision, .since_ns = now_ns};
    return true;
}

void drains_drop(struct drains *drains, uint32_t row)
{
    struct drain *drain = drains_find(drains, row);

    if (drain != NULL) {
        *drain = (struct drain){.row = FREE_ROW};
        drains->place_of_row[row] = DRAIN_NONE;
        drains->n_used--;
    }
}

void drains_forget_node(struct drains *drains, uint32_t node)
{
    for (uint32_t i = 0; i < drains->n_places; i++) {
        drains->drains[i].done &= ~(UINT64_C(1) << node);
        drains->drains[i].reported &= ~(UINT64_C(1) << node);
        drains->drains[i].counting &= ~(UINT64_C(1) << node);
        drains->drains[i].emptied &= ~(UINT64_C(1) << node);
        drains->drains[i].n_flows[node] = 0;
        drains->drains[i].n_closed[node] = 0;
    }
}

static void set_bit(uint64_t *bits, uint32_t index, bool value)
{
    *bits = (*bits & ~(UINT64_C(1) << index)) | (uint64_t)value << index;
}

void drains_note(struct drains *drains, struct drain_id id, uint32_t node,
                 const struct drain_word *word)
{
    struct drain *drain = drains_find(drains, id.row);

    assert(node < LIMIT_NODES);
    if (drain == NULL || drain->birth != id.birth || drain->drain_revision != id.drain_revision) {
        return;
    }
    set_bit(&drain->reported, node, true);
    set_bit(&drain->counting, node, word->is_counting);
    if (word->is_done) {
        set_bit(&drain->done, node, true);
    }
    if (word->is_done && word->is_counting && word->n_flows == 0) {
        set_bit(&drain->emptied, node, true);
    }
    if (word->n_closed > drain->n_closed[node]) {
        drain->n_closed[node] = word->n_closed;
    }
    drain->n_flows[node] = word->n_flows < UINT32_MAX ? (uint32_t)word->n_flows : UINT32_MAX;
}

uint64_t drain_flows(const struct drain *drain, uint64_t nodes)
{
    uint64_t n_flows = 0;

    for (uint64_t left = nodes & drain->counting; left != 0; left &= left - 1) {
        n_flows += drain->n_flows[__builtin_ctzll(left)];
    }
    return n_flows;
}

uint64_t drain_closed(const struct drain *drain, uint64_t nodes)
{
    uint64_t n_closed = 0;

    for (uint64_t left = nodes; left != 0; left &= left - 1) {
        n_closed += drain->n_closed[__builtin_ctzll(left)];
    }
    return n_closed;
}

uint64_t drain_uncounted(const struct drain *drain, uint64_t nodes, uint64_t silent)
{
    uint64_t unknown = (drain->reported & ~drain->counting) | silent;

    return nodes & unknown & ~drain->emptied;
}

void closed_count_note(struct closed_count *count, uint64_t counter, bool from_zero)
{
    uint64_t before = count->last;

    if (!count->is_begun) {
        before = from_zero ? 0 : counter;
    } else if (counter < before) {
        before = counter;
    }
    uint64_t n_more = counter - before;
    count->is_begun = true;
    count->n_closed =
        n_more < UINT32_MAX - count->n_closed ? count->n_closed + (uint32_t)n_more : UINT32_MAX;
    count->last = counter;
}
