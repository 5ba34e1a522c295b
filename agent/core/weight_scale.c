#include "agent/core/weight_scale.h"

#include <assert.h>
#include <stdlib.h>

#include "common/base/plant.h"

#define LATENCY_GAIN 8 /* a power of two, whose inverse is the part of a new answer */
#define LATENCY_US_MAX (UINT32_MAX / LATENCY_GAIN)
#define LATENCY_US_MIN 1000 /* less is no difference */
#define LATENCY_WHOLE 90    /* percent from which on all of the weight counts */

uint8_t weight_join(uint8_t a_percent, uint8_t b_percent)
{
    unsigned percent = (unsigned)a_percent * b_percent / 100;

    return percent == 0 ? 1 : (uint8_t)percent;
}

static uint64_t step_of(uint64_t elapsed_ns, uint64_t duration_ns)
{
    assert(duration_ns > 0);
    return elapsed_ns >= duration_ns ? WEIGHT_SLOW_STEPS
                                     : elapsed_ns * WEIGHT_SLOW_STEPS / duration_ns;
}

uint8_t weight_slow_percent(uint64_t elapsed_ns, uint64_t duration_ns)
{
    uint64_t rise = (WEIGHT_WHOLE - WEIGHT_FLOOR) * step_of(elapsed_ns, duration_ns);

    return (uint8_t)(WEIGHT_FLOOR + rise / WEIGHT_SLOW_STEPS);
}

uint64_t weight_slow_next_ns(uint64_t elapsed_ns, uint64_t duration_ns)
{
    uint64_t next = step_of(elapsed_ns, duration_ns) + 1;

    /* Rounded up: at that time the step has been made. */
    return (next * duration_ns + WEIGHT_SLOW_STEPS - 1) / WEIGHT_SLOW_STEPS;
}

static uint8_t at_least_floor(uint64_t percent)
{
    return percent < WEIGHT_FLOOR && !plant_is("graded-no-floor") ? WEIGHT_FLOOR : (uint8_t)percent;
}

uint8_t weight_votes_percent(unsigned n_pass, unsigned n_fail)
{
    unsigned n = n_pass + n_fail;

    return n == 0 ? WEIGHT_WHOLE : at_least_floor((100 * n_pass + n / 2) / n);
}

void weight_latency_note(struct weight_latency *latency, uint32_t response_us)
{
    uint32_t us = response_us > LATENCY_US_MAX ? LATENCY_US_MAX : response_us;

    if (latency->n == 0) {
        latency->eighths_us = us * LATENCY_GAIN;
    } else {
        latency->eighths_us += us - latency->eighths_us / LATENCY_GAIN;
    }
    latency->n = (uint8_t)(latency->n + (latency->n < WEIGHT_LATENCY_SAMPLES));
}

bool weight_latency_is_known(const struct weight_latency *latency)
{
    return latency->n >= WEIGHT_LATENCY_SAMPLES;
}

uint32_t weight_latency_us(const struct weight_latency *latency)
{
    return latency->eighths_us / LATENCY_GAIN;
}

static int compare_us(const void *a, const void *b)
{
    uint32_t a_us = *(const uint32_t *)a;
    uint32_t b_us = *(const uint32_t *)b;

    return (a_us > b_us) - (a_us < b_us);
}

uint32_t weight_median_us(uint32_t values_us[], size_t n)
{
    assert(n > 0);
    qsort(values_us, n, sizeof *values_us, compare_us);
    return values_us[n / 2];
}

static uint32_t at_least_noise(uint32_t us)
{
    return us < LATENCY_US_MIN ? LATENCY_US_MIN : us;
}

uint8_t weight_latency_percent(uint32_t own_us, uint32_t median_us, uint8_t before)
{
    uint64_t percent = UINT64_C(100) * at_least_noise(median_us) / at_least_noise(own_us);

    assert(before >= 1 && before <= WEIGHT_WHOLE);
    if (percent >= LATENCY_WHOLE) {
        return WEIGHT_WHOLE;
    }
    uint8_t wanted = at_least_floor(percent);
    unsigned off = wanted > before ? (unsigned)(wanted - before) : (unsigned)(before - wanted);
    return 4 * off < before ? before : wanted;
}
