/* An index from hashes to ids: open addressing, several ids a hash allowed.
 *
 * It knows neither keys nor objects: the caller hashes the key, walks the ids found under that hash
 * and compares the objects themselves, so a collision costs time and never a wrong answer. */
#ifndef JURY_BASE_IDMAP_H
#define JURY_BASE_IDMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define IDMAP_NONE UINT64_MAX /* never an id */

struct idmap_cell {
    uint64_t hash;
    uint64_t id; /* IDMAP_NONE = empty */
};

/* Zero-initialised is empty. */
struct idmap {
    struct idmap_cell *cells;
    size_t capacity; /* a power of two, at most three quarters full; 0 = nothing allocated */
    size_t n_ids;
};

void idmap_close(struct idmap *map);
/* The same (hash, id) twice is the caller's mistake. Errors: ERR_NOMEM, nothing changed. */
int idmap_add(struct idmap *map, uint64_t hash, uint64_t id);
/* False when it was not there. */
bool idmap_remove(struct idmap *map, uint64_t hash, uint64_t id);
/* The ids under a hash one by one: *cursor is 0 at the start; IDMAP_NONE when there are no more. No
 * add or remove in between. */
uint64_t idmap_next(const struct idmap *map, uint64_t hash, size_t *cursor);

#endif
