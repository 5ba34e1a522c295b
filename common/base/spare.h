/* How long an array is made that grows with what is configured. */
#ifndef JURY_BASE_SPARE_H
#define JURY_BASE_SPARE_H

#include <stdint.h>

/* n rounded up by 1/32 at most, above 2048: what grows by one at a time is not copied each time,
 * and little of what there is of each target stays unused. n: below 2^31. */
static inline uint32_t spare_round_up(uint32_t n)
{
    uint32_t step = 64;

    while (step * 32 < n) {
        step *= 2;
    }
    return (n + step - 1) / step * step;
}

#endif
