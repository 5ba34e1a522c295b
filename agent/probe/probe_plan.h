/* What is to be probed, as it passes from the health thread to a probe thread.
 *
 * A plan is immutable and counted: the health thread keeps an editor, applies the engine's changes
 * to it and publishes plans; a probe thread takes the newest and finds the differences. Consecutive
 * plans share the targets that did not change, and targets share their checks with the catalog, so
 * a plan costs a pointer a target, and a target little more than its address. A thread that comes
 * late loses nothing but plans that are out of date. */
#ifndef JURY_PROBE_PLAN_H
#define JURY_PROBE_PLAN_H

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "agent/core/probe.h"
#include "agent/core/probe_budget.h"

/* One target, immutable, shared by plans. There are 100,000 of them, and no larger than this. */
#define PLANNED_TARGET_BYTES 80
struct planned_target {
    struct probe_target target;
    bool is_at_start;    /* which window its first probe has (probe_schedule.h) */
    atomic_uint n_users; /* private */
};
static_assert(sizeof(struct planned_target) <= PLANNED_TARGET_BYTES, "of each target");

struct probe_plan {
    atomic_uint n_users; /* private */
    struct probe_rates rates;
    uint32_t n_targets;
    struct planned_target *targets[]; /* rising by slot, each slot at most once; a reference each */
};

/* Any thread. The plan and the targets that nobody else uses go. NULL is allowed. */
void probe_plan_release(struct probe_plan *plan);

/* The health thread's copy, by slot. */
struct probe_plan_editor {
    struct probe_rates rates;        /* of the plans that are published; 0 = without limits */
    struct planned_target **by_slot; /* a reference each, NULL = free */
    uint32_t n_slots;
    uint32_t n_targets;
};

void probe_plan_editor_init(struct probe_plan_editor *editor);
void probe_plan_editor_close(struct probe_plan_editor *editor);

/* Probe this target from now on, instead of what has its slot. The same target again is no change.
 * target: copied; its check, of a catalog or of catalog_check_new, gets a reference more. Errors:
 * ERR_NOMEM, ERR_LIMIT (slot out of range): nothing changed. */
int probe_plan_editor_set(struct probe_plan_editor *editor, const struct probe_target *target,
                          bool is_at_start);
/* Stop probing it; an id that is not there is ignored. */
void probe_plan_editor_remove(struct probe_plan_editor *editor, struct target_id id);

/* A plan of what there is now, given: one reference. NULL: no memory. */
struct probe_plan *probe_plan_editor_publish(const struct probe_plan_editor *editor);

#endif
