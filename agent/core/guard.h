/* Guards as pure values: how many ejections or returns a group may have in a window, and whose turn
 * it is (R-EJ-1, R-EJ-6); when many bad at once are too many (R-EJ-5). Damping is in guard_flap.h.
 * Which guard goes to work is decided in engine_guard.c; what the operator declares is in
 * common/model/guard.h. All times are monotonic and never go back between calls. Whoever steps the
 * engine, on its thread. */
#ifndef JURY_CORE_GUARD_H
#define JURY_CORE_GUARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Ejections, or returns, of n members that a window may have: percent (1..100) of them, rounded
 * down, at least one. */
uint32_t guard_velocity_limit(uint32_t n_members, uint8_t percent);
/* At least 3 and over 30 % of n members: one cause for all is more likely than many. */
bool guard_is_correlated(uint32_t n_bad, uint32_t n_members);

/* Ejections, or returns, of the recent past, those of one moment together. When there is no more
 * room the two oldest become one of the later time, so that never more is let through than the
 * limit. */
#define VELOCITY_BATCHES 16

struct velocity {
    struct {
        uint64_t at_ns;
        uint32_t n;              /* of them at that time */
    } batches[VELOCITY_BATCHES]; /* oldest first */
    uint8_t n_batches;
};

/* One was let through now. */
void velocity_note(struct velocity *velocity, uint64_t now_ns);
/* One of before a restart. at_ns: not after the last one noted now, in any order otherwise. */
void velocity_note_past(struct velocity *velocity, uint64_t at_ns);
/* In the sliding window that ends now; older ones are forgotten. */
uint32_t velocity_used(struct velocity *velocity, uint64_t now_ns, uint64_t window_ns);
/* When the oldest leaves the window; 0 = there is none. */
uint64_t velocity_next_ns(const struct velocity *velocity, uint64_t window_ns);

/* A backend whose votes say down, or up, and that waits for its turn. */
struct guard_candidate {
    uint32_t row;
    uint8_t n_votes; /* counted ones that say so: f on the way out, p on the way back */
    uint64_t backend_id;
};

/* The fixed order of admission, equal on all nodes with equal votes: more votes first, then the
 * lower backend id. In place. */
void guard_sort(struct guard_candidate candidates[], size_t n);

#endif
