#include "common/model/group.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/err.h"

void server_group_close(struct server_group *group)
{
    free(group->backends);
    *group = (struct server_group){0};
}

int server_group_clone(struct server_group *to, const struct server_group *from)
{
    struct backend *backends = NULL;

    if (from->n_backends > 0) {
        backends = malloc(from->n_backends * sizeof *backends);
        if (backends == NULL) {
            return ERR_NOMEM;
        }
        memcpy(backends, from->backends, from->n_backends * sizeof *backends);
    }
    *to = *from;
    to->backends = backends;
    return 0;
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
