#include "common/model/group.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/err.h"

void server_group_close(struct server_group *group)
{
    free(group->backends);
    free(group->checks);
    *group = (struct server_group){0};
}

bool scheduler_takes_turns(unsigned scheduler)
{
    return scheduler == SCHEDULER_RR || scheduler == SCHEDULER_WRR || scheduler == SCHEDULER_WLC;
}

void server_group_settle(struct server_group *group)
{
    bool has_parts = group->profile != PROFILE_GWLB && scheduler_takes_turns(group->scheduler);

    if (group->guard.slow_start_ms == GUARD_SLOW_START_BY_SCHEDULER) {
        group->guard.slow_start_ms = has_parts ? GUARD_SLOW_START_MS_STANDARD : 0;
    }
    group_settle_checks(group);
}

static int compare_backends(const void *a, const void *b)
{
    const struct backend *backend_a = a;
    const struct backend *backend_b = b;

    return endpoint_compare(&backend_a->at, &backend_b->at);
}

void server_group_sort_backends(struct server_group *group)
{
    if (group->n_backends > 1) {
        qsort(group->backends, group->n_backends, sizeof *group->backends, compare_backends);
    }
}

/* --- checks --- */

int server_group_copy_checks(struct server_group *to, const struct server_group *from)
{
    to->checks = NULL;
    to->n_checks = 0;
    if (from->n_checks == 0) {
        return 0;
    }
    to->checks = calloc(from->n_checks, sizeof *to->checks);
    if (to->checks == NULL) {
        return ERR_NOMEM;
    }
    memcpy(to->checks, from->checks, from->n_checks * sizeof *to->checks);
    to->n_checks = from->n_checks;
    return 0;
}

unsigned group_n_checks(const struct server_group *group)
{
    return group->n_checks == 0 ? 1 : group->n_checks;
}

const struct health_check *group_check_at(const struct server_group *group, unsigned index)
{
    assert(index < group_n_checks(group));
    return group->n_checks == 0 ? &group->check : &group->checks[index].check;
}

static bool is_local(const struct server_group *group, unsigned index)
{
    return group->n_checks == 0 || group->checks[index].check_class == CHECK_LOCAL;
}

unsigned group_n_local(const struct server_group *group)
{
    unsigned n = 0;

    for (unsigned i = 0; i < group_n_checks(group); i++) {
        n += is_local(group, i);
    }
    return n;
}

const struct named_check *group_local_check(const struct server_group *group, unsigned index)
{
    for (uint32_t i = 0; i < group->n_checks; i++) {
        if (group->checks[i].check_class == CHECK_LOCAL && index-- == 0) {
            return &group->checks[i];
        }
    }
    return NULL;
}

bool group_is_composed(const struct server_group *group)
{
    return group_n_local(group) > 1;
}

unsigned group_pass_k(const struct server_group *group)
{
    switch ((enum rule_kind)group->pass.kind) {
    case RULE_ALL:
        return group_n_local(group);
    case RULE_AT_LEAST:
        return group->pass.value;
    case RULE_ANY:
    case RULE_NONE:
    case RULE_LOCAL:
    case RULE_MAJORITY:
    case RULE_PERCENT:
    case RULE_ZONE_MAJORITY:
        break;
    }
    return 1;
}

/* The most of a figure over the local checks. */
static uint64_t most_local(const struct server_group *group,
                           uint64_t (*figure)(const struct health_check *check, uint64_t argument),
                           uint64_t argument)
{
    uint64_t most = 0;

    for (unsigned i = 0; i < group_n_checks(group); i++) {
        uint64_t one = is_local(group, i) ? figure(group_check_at(group, i), argument) : 0;

        most = one > most ? one : most;
    }
    return most;
}

static uint64_t failure_window(const struct health_check *check, uint64_t unused)
{
    (void)unused;
    return check_failure_window_ms(check);
}

static uint64_t cycle_of(const struct health_check *check, uint64_t unused)
{
    (void)unused;
    return (uint64_t)check->timeout_ms + check->interval_ms;
}

static uint64_t memory_of(const struct health_check *check, uint64_t unused)
{
    return cycle_of(check, unused) * check->unhealthy_threshold;
}

uint64_t group_failure_window_ms(const struct server_group *group)
{
    return most_local(group, failure_window, 0);
}

uint64_t group_success_window_ms(const struct server_group *group, uint64_t response_ms)
{
    return most_local(group, check_success_window_ms, response_ms);
}

uint32_t group_cycle_ms(const struct server_group *group)
{
    return (uint32_t)most_local(group, cycle_of, 0);
}

void group_settle_checks(struct server_group *group)
{
    if (group->n_checks == 0) {
        return;
    }
    if (!group_is_composed(group)) {
        for (unsigned i = 0; i < group->n_checks; i++) {
            if (is_local(group, i)) {
                group->check = group->checks[i].check;
            }
        }
        return;
    }
    uint64_t window_ms = group_failure_window_ms(group);
    unsigned kinds = 0;
    for (unsigned i = 0; i < group->n_checks; i++) {
        kinds |= is_local(group, i) ? check_kinds(&group->checks[i].check) : 0U;
    }
    group->check = (struct health_check){
        .is_enabled = true,
        .pacing = PACING_END_TO_START,
        .source = CHECK_SOURCE_NODE,
        .timeout_ms = (uint32_t)window_ms,
        .interval_ms = (uint32_t)(most_local(group, memory_of, 0) - window_ms),
        .healthy_threshold = 1,
        .unhealthy_threshold = 1,
        .part_kinds = (uint8_t)kinds,
    };
}
