#include "common/model/group.h"

#include <stdlib.h>

void server_group_close(struct server_group *group)
{
    free(group->backends);
    *group = (struct server_group){0};
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
