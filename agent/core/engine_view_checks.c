/* Reads of several checks of a backend: what each of them says on this node. */
#include <string.h>

#include "agent/core/engine_sentence.h"
#include "agent/core/engine_state.h"

static uint64_t age_of(uint64_t now_ns, uint64_t then_ns)
{
    return now_ns > then_ns ? now_ns - then_ns : 0;
}

void engine_view_last(const struct engine_target *target, uint64_t now_ns,
                      struct own_result *ret_last)
{
    *ret_last = (struct own_result){.has_result = target->last_ns != 0};
    if (target->last_ns != 0) {
        ret_last->probe_class = target->last_class;
        ret_last->reason = target->last_reason;
        ret_last->http_status = target->last_http_status;
        ret_last->response_us = target->last_us;
        ret_last->age_ns = age_of(now_ns, target->last_ns);
        ret_last->path = target->path;
    }
}

static void view_opinion(const struct engine *engine, uint32_t slot, uint64_t now_ns,
                         struct check_view *view)
{
    const struct engine_target *target = &engine->targets[slot];

    view->opinion = target->health.opinion;
    view->is_suspect = engine_is_suspect(engine, slot);
    view->pass_streak = health_pass_streak(&target->health);
    view->fail_streak = health_fail_streak(&target->health);
    view->cert = target->cert;
    engine_view_last(target, now_ns, &view->last);
    if (target->conclusive_ns != 0) {
        view->has_detail = true;
        view->reason = target->reason;
        view->http_status = target->http_status;
        view->response_us = target->response_us;
        view->streak = health_streak(&target->health);
        view->since_ns = age_of(now_ns, target->opinion_since_ns);
        view->probe_age_ns = age_of(now_ns, target->conclusive_ns);
    }
}

/* By the votes, as the rule of the group has it. */
static void view_dependency(const struct engine *engine, uint32_t row, uint8_t index,
                            struct check_view *view)
{
    const struct row_dependencies *dependencies = &engine->dependencies[row];
    struct tally tally;

    for (unsigned i = 0; i < dependencies->n; i++) {
        if (dependencies->checks[i] == index) {
            view->health_state = dependencies->states[i];
        }
    }
    engine_tally(engine, view->target.slot, &tally);
    view->n_pass = tally.n_pass;
    view->n_fail = tally.n_fail;
}

void engine_view_checks(const struct engine *engine, const struct catalog_group *group,
                        const struct catalog_backend *from, uint64_t now_ns,
                        struct backend_view *view)
{
    const struct target_id *targets = catalog_parts_of(group, from);
    uint32_t own = engine_deciding_slot(engine, from->target.slot);

    view->pass = group->spec.pass;
    view->pass_k = (uint8_t)group_pass_k(&group->spec);
    view->n_local = (uint8_t)group_n_local(&group->spec);
    for (uint32_t i = 0; targets != NULL && i < group->spec.n_checks; i++) {
        const struct named_check *check = &group->spec.checks[i];
        struct check_view *one = &view->checks[view->n_checks++];

        *one = (struct check_view){.check = check, .target = targets[i]};
        if (targets[i].slot == CATALOG_NO_SLOT) {
            continue;
        }
        view_opinion(engine, targets[i].slot, now_ns, one);
        if (check->check_class == CHECK_DEPENDENCY) {
            view_dependency(engine, from->row.row, (uint8_t)i, one);
        } else {
            one->decides = view->n_local > 1 && targets[i].slot == own;
        }
    }
}

/* --- how far the own vote is away --- */

static uint8_t distance_of(const struct check_view *view, bool fails)
{
    uint8_t threshold =
        fails ? view->check->check.unhealthy_threshold : view->check->check.healthy_threshold;
    uint32_t streak = fails ? view->fail_streak : view->pass_streak;

    if (view->opinion == (fails ? OPINION_FAIL : OPINION_PASS)) {
        return 0;
    }
    return (uint8_t)(streak < threshold ? threshold - streak : 1);
}

uint8_t engine_checks_distance(const struct backend_view *view, bool fails, uint8_t *ret_n_parts)
{
    unsigned n_needed = fails ? view->n_local - view->pass_k + 1U : view->pass_k;
    uint8_t sorted[LIMIT_CHECKS];
    unsigned n = 0;

    for (unsigned i = 0; i < view->n_checks; i++) {
        if (view->checks[i].check->check_class != CHECK_LOCAL) {
            continue;
        }
        uint8_t distance = distance_of(&view->checks[i], fails);
        unsigned at = n++;
        for (; at > 0 && sorted[at - 1] > distance; at--) {
            sorted[at] = sorted[at - 1];
        }
        sorted[at] = distance;
    }
    *ret_n_parts = 0;
    for (unsigned i = 0; i < n_needed; i++) {
        *ret_n_parts = (uint8_t)(*ret_n_parts + (sorted[i] > 0));
    }
    return sorted[n_needed - 1];
}
