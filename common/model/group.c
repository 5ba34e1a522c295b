#include "common/model/group.h"

#include <stdlib.h>

void server_group_close(struct server_group *group)
{
    free(group->backends);
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
