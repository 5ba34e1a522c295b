/* A bounded ring of fixed-size values between exactly two threads: one pushes, one pops.
 *
 * Never waits and never allocates after ring_new. A full ring refuses the value and counts it; the
 * producer decides what a refusal means (a probe result: dropped, the next one follows). The ring
 * wakes nobody: see wake.h. */
#ifndef JURY_LOOP_RING_H
#define JURY_LOOP_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ring;

/* n_values: rounded up to a power of two, 1..2^24. value_bytes: 1..65536. NULL: no memory. */
struct ring *ring_new(size_t value_bytes, size_t n_values);
/* Only when neither thread uses it any more; values left inside are dropped. NULL is allowed. */
void ring_free(struct ring *ring);

/* Producer thread. Copies value_bytes; false and counted when the ring is full. */
bool ring_push(struct ring *ring, const void *value);
/* Consumer thread. Copies the oldest value out; false when the ring is empty. */
bool ring_pop(struct ring *ring, void *ret_value);

/* Any thread: values refused so far. */
uint64_t ring_n_refused(const struct ring *ring);

#endif
