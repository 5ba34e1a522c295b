#include "common/base/idmap.h"

#include <assert.h>
#include <stdlib.h>

#include "common/base/err.h"

#define CAPACITY_MIN 16

void idmap_close(struct idmap *map)
{
    free(map->cells);
    *map = (struct idmap){0};
}

/* Callers' hashes may be weak in their low bits (a counter); a multiplication spreads them. */
static size_t home(const struct idmap *map, uint64_t hash)
{
    uint64_t mixed = hash * UINT64_C(0x9e3779b97f4a7c15);

    return (size_t)(mixed ^ mixed >> 32) & (map->capacity - 1);
}

static void place(struct idmap *map, uint64_t hash, uint64_t id)
{
    size_t i = home(map, hash);

    while (map->cells[i].id != IDMAP_NONE) {
        i = (i + 1) & (map->capacity - 1);
    }
    map->cells[i] = (struct idmap_cell){.hash = hash, .id = id};
}

static int grow(struct idmap *map)
{
    struct idmap next = {.capacity = map->capacity == 0 ? CAPACITY_MIN : map->capacity * 2,
                         .n_ids = map->n_ids};

    next.cells = malloc(next.capacity * sizeof *next.cells);
    if (next.cells == NULL) {
        return ERR_NOMEM;
    }
    for (size_t i = 0; i < next.capacity; i++) {
        next.cells[i].id = IDMAP_NONE;
    }
    for (size_t i = 0; i < map->capacity; i++) {
        if (map->cells[i].id != IDMAP_NONE) {
            place(&next, map->cells[i].hash, map->cells[i].id);
        }
    }
    free(map->cells);
    *map = next;
    return 0;
}

int idmap_add(struct idmap *map, uint64_t hash, uint64_t id)
{
    assert(id != IDMAP_NONE);

    if (map->n_ids + 1 > map->capacity / 4 * 3) {
        int rc = grow(map);

        if (rc != 0) {
            return rc;
        }
    }
    place(map, hash, id);
    map->n_ids++;
    return 0;
}

bool idmap_remove(struct idmap *map, uint64_t hash, uint64_t id)
{
    if (map->capacity == 0) {
        return false;
    }
    size_t mask = map->capacity - 1;
    size_t hole = home(map, hash);
    while (map->cells[hole].id != id || map->cells[hole].hash != hash) {
        if (map->cells[hole].id == IDMAP_NONE) {
            return false;
        }
        hole = (hole + 1) & mask;
    }
    /* Close the hole: whatever stands behind it and could not be found past it moves up. */
    for (size_t i = (hole + 1) & mask; map->cells[i].id != IDMAP_NONE; i = (i + 1) & mask) {
        size_t distance = (i - home(map, map->cells[i].hash)) & mask;

        if (distance >= ((i - hole) & mask)) {
            map->cells[hole] = map->cells[i];
            hole = i;
        }
    }
    map->cells[hole].id = IDMAP_NONE;
    map->n_ids--;
    return true;
}

uint64_t idmap_next(const struct idmap *map, uint64_t hash, size_t *cursor)
{
    if (map->capacity == 0) {
        return IDMAP_NONE;
    }
    size_t start = home(map, hash);
    for (size_t step = *cursor; step < map->capacity; step++) {
        const struct idmap_cell *cell = &map->cells[(start + step) & (map->capacity - 1)];

        if (cell->id == IDMAP_NONE) {
            break;
        }
        if (cell->hash == hash) {
            *cursor = step + 1;
            return cell->id;
        }
    }
    *cursor = map->capacity;
    return IDMAP_NONE;
}
