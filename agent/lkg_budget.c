#include "agent/lkg_budget.h"

#include "common/base/plant.h"
#include "common/base/units.h"

#define PAUSE_NS NS_PER_SECOND            /* between two writings, at least */
#define PAUSE_MAX_NS (60 * NS_PER_SECOND) /* so old is what it says at most */
#define BURST_BYTES (512u << 10)          /* at once, after a quiet time, ... */
#define BURST_WRITINGS 10                 /* or so many, if that is more, */
#define BACK_SECONDS 600                  /* and as much again in this time */

static uint64_t burst_bytes(const struct lkg_budget *budget)
{
    uint64_t writings = BURST_WRITINGS * budget->file_bytes;

    return writings > BURST_BYTES ? writings : BURST_BYTES;
}

static void come_back(struct lkg_budget *budget, uint64_t now_ns)
{
    uint64_t seconds = (now_ns - budget->back_ns) / NS_PER_SECOND;
    uint64_t back = seconds * burst_bytes(budget) / BACK_SECONDS;

    budget->back_ns += seconds * NS_PER_SECOND;
    budget->spent_bytes = budget->spent_bytes > back ? budget->spent_bytes - back : 0;
}

bool lkg_budget_allows(struct lkg_budget *budget, uint64_t now_ns, bool is_urgent)
{
    uint64_t pause_ns = now_ns - budget->last_start_ns;

    if (budget->last_start_ns == 0) {
        return true;
    }
    come_back(budget, now_ns);
    if (pause_ns < PAUSE_NS) {
        return false;
    }
    return is_urgent || budget->spent_bytes < burst_bytes(budget) || pause_ns >= PAUSE_MAX_NS ||
           plant_is("lkg-unbounded");
}

void lkg_budget_start(struct lkg_budget *budget, uint64_t now_ns)
{
    if (budget->last_start_ns == 0) {
        budget->back_ns = now_ns;
    }
    budget->last_start_ns = now_ns;
}

void lkg_budget_spend(struct lkg_budget *budget, size_t n_bytes)
{
    budget->file_bytes = n_bytes;
    budget->spent_bytes += n_bytes;
    /* What was written once a minute, or for new catalogs, is no debt for the next hour. */
    if (budget->spent_bytes > burst_bytes(budget) + n_bytes) {
        budget->spent_bytes = burst_bytes(budget) + n_bytes;
    }
}
