/* A server group as a whole, when its fields were read: what its lists have twice, and what the
 * model says of it. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/plant.h"
#include "common/spec/read.h"

struct numbered_backend {
    struct endpoint at;
    const struct doc_node *node;
    uint32_t index;
};

static int compare_numbered(const void *a, const void *b)
{
    const struct numbered_backend *left = a;
    const struct numbered_backend *right = b;
    int order = endpoint_compare(&left->at, &right->at);

    return order != 0 ? order : (left->index > right->index) - (left->index < right->index);
}

/* Whether an element of the list says where the backend is. */
static bool is_read(const struct endpoint *at)
{
    return at->port != 0 && at->addr.family != ADDR_NONE;
}

/* Case A24. The first of a pair that is in the document twice is the one to keep. */
static int check_duplicates(struct reading *reading, const struct server_group *group,
                            const struct doc_node *list)
{
    char text[ENDPOINT_TEXT_BYTES];
    uint32_t n = 0;
    int rc = 0;
    struct numbered_backend *sorted = calloc(group->n_backends + 1, sizeof *sorted);

    if (sorted == NULL) {
        return read_refuse(reading, list->at, ERR_NOMEM, "out of memory");
    }
    uint32_t index = 0;
    for (const struct doc_node *child = list->first; child != NULL; child = child->next, index++) {
        const struct endpoint *at = &group->backends[index].at;

        if (is_read(at)) {
            sorted[n++] = (struct numbered_backend){*at, child, index};
        }
    }
    assert(index == group->n_backends);
    qsort(sorted, n, sizeof *sorted, compare_numbered);
    const struct numbered_backend *worst = NULL;
    const struct numbered_backend *first = NULL;
    for (uint32_t i = 1; i < n; i++) {
        if (endpoint_compare(&sorted[i - 1].at, &sorted[i].at) == 0 &&
            (worst == NULL || sorted[i].index < worst->index)) {
            worst = &sorted[i];
            first = &sorted[i - 1];
        }
    }
    if (worst != NULL) {
        rc = read_refuse(reading, worst->node->at, ERR_INVALID,
                         "backend %s is listed twice: first on line %u",
                         endpoint_format(&worst->at, text), (unsigned)first->node->at.line);
    }
    free(sorted);
    return rc;
}

/* Without those whose address or port was not read, and those that are there already: the others
 * are judged. Sorted. */
static void drop_unfit(struct server_group *group, bool has_duplicates)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < group->n_backends; i++) {
        const struct backend *backend = &group->backends[i];
        bool is_again = has_duplicates && n > 0 &&
                        endpoint_compare(&group->backends[n - 1].at, &backend->at) == 0;

        if (is_read(&backend->at) && !is_again) {
            group->backends[n++] = *backend;
        }
    }
    group->n_backends = n;
}

/* The first of two of one name is the one to keep; the others are dropped, so that what is wrong
 * with them is not told of it. */
static int drop_namesakes(struct reading *reading, const struct doc_node *list,
                          struct server_group *group)
{
    uint32_t n = 0, index = 0;
    int first = 0;

    for (const struct doc_node *child = list->first; child != NULL; child = child->next, index++) {
        const struct named_check *check = &group->checks[index];
        bool is_again = false;

        for (uint32_t i = 0; i < n && check->name[0] != '\0'; i++) {
            is_again = is_again || strcmp(group->checks[i].name, check->name) == 0;
        }
        if (is_again) {
            int rc =
                read_refuse(reading, child->at, ERR_INVALID,
                            "check %s is listed twice: names are the checks' own", check->name);
            first = first != 0 ? first : rc;
        } else {
            group->checks[n++] = *check;
        }
    }
    group->n_checks = n;
    return first;
}

static int check_excluded(struct reading *reading, const struct doc_node *spec)
{
    const struct doc_node *checks = doc_find(spec, "checks");

    return checks == NULL || doc_find(spec, "check") == NULL
               ? 0
               : read_refuse(reading, checks->key_at, ERR_INVALID,
                             "check and checks exclude each other: write one of them");
}

int read_finish_group(struct reading *reading, const struct doc_node *spec,
                      struct server_group *group, struct validate_faults *ret_faults)
{
    const struct doc_node *list = doc_find(spec, "backends");
    int rc = 0;

    ret_faults->has_checks_left_out = false;
    if (list != NULL && list->kind == DOC_LIST && group->n_backends == list->n_children) {
        rc = plant_is("spec-twice") ? 0 : check_duplicates(reading, group, list);
        if (rc == ERR_NOMEM) {
            return rc;
        }
        server_group_sort_backends(group);
        drop_unfit(group, rc != 0);
    }
    int excluded = check_excluded(reading, spec);
    rc = rc != 0 ? rc : excluded;
    const struct doc_node *checks = doc_find(spec, "checks");
    if (checks != NULL && checks->kind == DOC_LIST && group->n_checks == checks->n_children) {
        int twice = drop_namesakes(reading, checks, group);
        rc = rc != 0 ? rc : twice;
        ret_faults->has_checks_left_out = twice != 0;
    }
    if (group->n_checks != 0 && group->pass.kind == RULE_NONE) {
        group->pass.kind = RULE_ALL;
    }
    server_group_settle(group);
    validate_group_all(group, ret_faults);
    return rc;
}
