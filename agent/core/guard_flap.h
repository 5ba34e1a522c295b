/* Flap damping as a pure value (R-FLAP-1): a backend that went down again within 10 minutes returns
 * later each time.
 *
 * It is the return that waits and never, beyond the one vote interval in which all nodes come to
 * hold the same votes, the way down: a damped backend that is really down must not stay in service,
 * and one that comes and goes does least harm outside. It returns when the votes have said healthy
 * for the hold time without a break, so that one that alternates faster stays where it is.
 *
 * The memory is of ejections, and ends 10 minutes after the last: without a further one nobody is
 * kept out for longer. Times are monotonic. Whoever steps the engine, on its thread. */
#ifndef JURY_CORE_GUARD_FLAP_H
#define JURY_CORE_GUARD_FLAP_H

#include <stdbool.h>
#include <stdint.h>

#define FLAP_MEMORY_MS UINT64_C(600000)

struct flap_memory {
    uint64_t ejected_ns; /* the last time; 0 = never */
    uint8_t n_flaps;     /* ejections within 10 min of the one before, in a row */
};

/* It goes down now. */
void flap_note_ejection(struct flap_memory *memory, uint64_t now_ns);
/* It went down twice or more, each time within 10 min of the one before, and the last time less
 * than 10 min ago. */
bool flap_is_flapping(const struct flap_memory *memory, uint64_t now_ns);
/* How long the votes must have said healthy. hold_ms: of the first flap; doubles with each further
 * one up to 5 min. 0 = it may return at once. */
uint64_t flap_hold_ns(const struct flap_memory *memory, uint32_t hold_ms, uint64_t now_ns);
/* When one may return whose votes have said healthy since then, as far as is known now. Not before
 * since_ns. */
uint64_t flap_return_ns(const struct flap_memory *memory, uint32_t hold_ms, uint64_t since_ns,
                        uint64_t now_ns);

#endif
