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

int cmd_simulate(struct ctl *ctl)
{
    struct spec_set set = {0};
    int rc = load_documents(ctl, &set);

    if (rc == 0 && (set.n_documents != 1 || set.documents[0].kind != SPEC_GROUP)) {
        rc = ctl_fail(ctl, ERR_USAGE, "simulate takes one document, of kind Group");
    }
    if (rc == 0) {
        rc = ask(ctl, set.documents[0].u.group);
    }
    spec_set_close(&set);
    return rc;
}
