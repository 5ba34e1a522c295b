/* Numbers that are given out lowest free first and come back: target slots and table rows.
 *
 * What comes out depends only on which numbers are taken, never on the order of earlier calls, so a
 * node that was restored from a snapshot numbers as the others do. */
#ifndef JURY_CORE_NUMBERS_H
#define JURY_CORE_NUMBERS_H

#include <stdbool.h>
#include <stdint.h>

struct numbers {
    uint64_t *words; /* bit set = taken */
    uint32_t n_words;
    uint32_t limit; /* numbers are below it */
    uint32_t n_taken;
    uint32_t first_word; /* no free number below this word */
};

/* limit: above 0. Errors: ERR_NOMEM. */
int numbers_init(struct numbers *numbers, uint32_t limit);
void numbers_close(struct numbers *numbers);
/* The lowest free number, taken now. The caller has made sure that there is one. */
uint32_t numbers_take(struct numbers *numbers);
/* False when it is taken already or not below the limit. */
bool numbers_take_this(struct numbers *numbers, uint32_t number);
/* It must be taken. */
void numbers_give_back(struct numbers *numbers, uint32_t number);
/* One more than the highest taken number; 0 when none is. */
uint32_t numbers_end(const struct numbers *numbers);

#endif
