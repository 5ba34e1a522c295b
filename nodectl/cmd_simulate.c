/* simulate: the kept history of a group with a changed document. */
#include <stdio.h>

#include "common/base/units.h"
#include "common/wire/object.h"
#include "jury/v1/simulation.pb-c.h"
#include "nodectl/commands.h"
#include "nodectl/connect.h"
#include "nodectl/load.h"
#include "nodectl/render.h"

#define REQUEST_ARENA_BYTES ((size_t)32 * 1024 * 1024)

static int ask(struct ctl *ctl, const struct server_group *group)
{
    Jury__V1__SimulateGroupRequest request;
    struct wire_arena arena;
    struct rpc_result result = {0};
    int rc = 0;

    jury__v1__simulate_group_request__init(&request);
    wire_arena_init(&arena, REQUEST_ARENA_BYTES);
    request.group = wire_group_new(&arena, group);
    if (ctl_has(ctl, FLAG_SINCE)) {
        request.since = wire_duration_new(&arena, ctl_number(ctl, FLAG_SINCE) * NS_PER_MS);
    }
    if (arena.failed) {
        rc = ctl_fail(ctl, ERR_LIMIT, "the document is too large for a request");
    } else {
        rc = ctl_call(ctl, "jury.v1.SimulationService/SimulateGroup", &request.base, &result);
    }
    if (rc == 0 && ctl_is_json(ctl)) {
        rc = ctl_print_message(ctl, result.response);
    } else if (rc == 0) {
        render_simulation(ctl,
                          (const Jury__V1__SimulateGroupResponse *)(const void *)result.response);
    }
    rpc_result_close(&result);
    wire_arena_close(&arena);
    return rc;
}

/* A file for apply may hold a listener beside its group: a replay is of the group alone, and says
 * so. NULL: refused. */
static const struct server_group *only_group(struct ctl *ctl, const struct spec_set *set)
{
    const struct server_group *group = NULL;
    size_t n_groups = 0;

    for (size_t i = 0; i < set->n_documents; i++) {
        if (set->documents[i].kind == SPEC_GROUP) {
            group = set->documents[i].u.group;
            n_groups++;
        }
    }
    if (n_groups != 1) {
        (void)ctl_fail(ctl, ERR_USAGE,
                       "simulate takes exactly one document of kind Group; there are %zu",
                       n_groups);
        return NULL;
    }
    if (set->n_documents > 1) {
        ctl_warn(ctl, "only Group %s is replayed; the other documents are left out", group->name);
    }
    return group;
}

int cmd_simulate(struct ctl *ctl)
{
    struct spec_set set = {0};
    int rc = load_documents(ctl, &set);

    if (rc == 0) {
        const struct server_group *group = only_group(ctl, &set);

        rc = group == NULL ? ERR_USAGE : ask(ctl, group);
    }
    spec_set_close(&set);
    return rc;
}
