/* A set of small numbers (slots, rows) that are waiting for work: adding one twice is free, taking
 * them out goes in rising order, so that simulations repeat. Bounded by its range. */
#ifndef JURY_CORE_ID_SET_H
#define JURY_CORE_ID_SET_H

#include <stdbool.h>
#include <stdint.h>

struct id_set {
    uint64_t *words;
    uint64_t *summary; /* one bit a word that is not zero */
    uint32_t n_ids;
    uint32_t n_set;
};

void id_set_init(struct id_set *set);
void id_set_close(struct id_set *set);
/* Make ids 0..n_ids-1 valid; never shrinks. Errors: ERR_NOMEM, nothing changed. */
int id_set_reserve(struct id_set *set, uint32_t n_ids);
void id_set_add(struct id_set *set, uint32_t id);
void id_set_add_below(struct id_set *set, uint32_t n_ids); /* all of 0..n_ids-1 */
void id_set_remove(struct id_set *set, uint32_t id);
bool id_set_has(const struct id_set *set, uint32_t id);
/* The lowest member that is not below `from`; ID_SET_END when there is none. */
#define ID_SET_END UINT32_MAX
uint32_t id_set_next(const struct id_set *set, uint32_t from);
/* Take the lowest. False: empty. */
bool id_set_take(struct id_set *set, uint32_t *ret_id);

#endif
