/* How often the last-known-good file is written (case A43): it is written whole, and while backends
 * flap its verdicts change all the time, which wears out a disk and says little that is new.
 *
 * A change after a quiet time is in the file within a second, and so are the many of an incident,
 * ten seconds of them at least: what left is remembered over a restart. What goes on changing is
 * written as often as 1 MiB in 10 minutes allows, and once a minute in any case. A new catalog is
 * written at once whatever was spent. Pure: no clock. */
#ifndef JURY_AGENT_LKG_BUDGET_H
#define JURY_AGENT_LKG_BUDGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Zero-initialise: full. */
struct lkg_budget {
    uint64_t spent_bytes;   /* of the burst; comes back with time */
    uint64_t file_bytes;    /* of the last writing */
    uint64_t last_start_ns; /* monotonic, of the last writing; 0 = none */
    uint64_t back_ns;       /* up to when what came back is accounted for */
};

/* Whether to begin a writing now. is_urgent: for a new catalog. */
bool lkg_budget_allows(struct lkg_budget *budget, uint64_t now_ns, bool is_urgent);
/* It was begun. */
void lkg_budget_start(struct lkg_budget *budget, uint64_t now_ns);
/* It wrote so many bytes. */
void lkg_budget_spend(struct lkg_budget *budget, size_t n_bytes);

#endif
