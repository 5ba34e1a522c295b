/* hold: freeze ejections, and see who did. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "jury/v1/hold.pb-c.h"
#include "nodectl/commands.h"
#include "nodectl/connect.h"
#include "nodectl/render.h"

static const char *what_of(const struct ctl *ctl)
{
    return ctl->n_args > 0 ? ctl->args[0] : "every group";
}

/* An empty word, as of a variable that is not set, must not mean every group. */
static int check_words(struct ctl *ctl)
{
    if (ctl->n_args > 0 && ctl->args[0][0] == '\0') {
        return ctl_fail(ctl, ERR_USAGE,
                        "GROUP is empty: name a server group, or leave it out for every group");
    }
    return 0;
}

/* This node's own, without a leader. */
static int override_hold(struct ctl *ctl, bool is_on)
{
    Jury__V1__OverrideHoldRequest request;
    struct rpc_result result = {0};

    jury__v1__override_hold_request__init(&request);
    request.on = is_on;
    if (ctl->n_args > 0) {
        request.group = ctl->args[0];
    }
    int rc = ctl_call(ctl, "jury.v1.HoldService/OverrideHold", &request.base, &result);
    if (rc == 0 && ctl_is_json(ctl)) {
        rc = ctl_print_message(ctl, result.response);
    } else if (rc == 0) {
        const Jury__V1__OverrideHoldResponse *answer =
            (const Jury__V1__OverrideHoldResponse *)(const void *)result.response;

        fprintf(ctl->out, "the hold of %s by node %" PRIu64 " alone is %s\n", what_of(ctl),
                answer->node_id, is_on ? "on, until it is cleared or its agent ends" : "off");
    }
    rpc_result_close(&result);
    return rc;
}

static int tell(struct ctl *ctl, int rc, const struct rpc_result *result, uint64_t revision,
                const char *word)
{
    if (rc == 0 && ctl_is_json(ctl)) {
        return ctl_print_message(ctl, result->response);
    }
    if (rc == 0) {
        fprintf(ctl->out, "the hold of %s is %s, at revision %" PRIu64 "\n", what_of(ctl), word,
                revision);
    }
    if (rc == ERR_NOLEADER) {
        ctl_hint(ctl, "each node can be held by itself, without a leader: --local");
    }
    return rc;
}

int cmd_hold_set(struct ctl *ctl)
{
    Jury__V1__SetHoldRequest request;
    struct rpc_result result = {0};
    uint64_t revision = 0;

    int rc = check_words(ctl);
    if (rc != 0) {
        return rc;
    }
    if (ctl_has(ctl, FLAG_LOCAL)) {
        return override_hold(ctl, true);
    }
    jury__v1__set_hold_request__init(&request);
    if (ctl->n_args > 0) {
        request.group = ctl->args[0];
    }
    rc = ctl_call(ctl, "jury.v1.HoldService/SetHold", &request.base, &result);
    if (rc == 0) {
        revision = ((const Jury__V1__SetHoldResponse *)(const void *)result.response)->revision;
    }
    rc = tell(ctl, rc, &result, revision, "on");
    rpc_result_close(&result);
    return rc;
}

int cmd_hold_clear(struct ctl *ctl)
{
    Jury__V1__ClearHoldRequest request;
    struct rpc_result result = {0};
    uint64_t revision = 0;

    int rc = check_words(ctl);
    if (rc != 0) {
        return rc;
    }
    if (ctl_has(ctl, FLAG_LOCAL)) {
        return override_hold(ctl, false);
    }
    jury__v1__clear_hold_request__init(&request);
    if (ctl->n_args > 0) {
        request.group = ctl->args[0];
    }
    rc = ctl_call(ctl, "jury.v1.HoldService/ClearHold", &request.base, &result);
    if (rc == 0) {
        revision = ((const Jury__V1__ClearHoldResponse *)(const void *)result.response)->revision;
    }
    rc = tell(ctl, rc, &result, revision, "off");
    rpc_result_close(&result);
    return rc;
}

static void render_holds(struct ctl *ctl, const Jury__V1__ListHoldsResponse *answer)
{
    static const struct render_column columns[] = {
        {"GROUP", false}, {"BY", false}, {"WHO", false}, {"SINCE", false}};
    static const char *const words[] = {"?", "cluster", "group", "this node", "this node"};
    char text[RENDER_TEXT_BYTES];

    if (answer->n_holds == 0) {
        fprintf(ctl->out, "no hold is on\n");
        return;
    }
    struct render_table *table = render_table_new(columns, 4);
    for (size_t i = 0; i < answer->n_holds; i++) {
        const Jury__V1__Hold *hold = answer->holds[i];
        unsigned source = (unsigned)hold->source;

        render_row(table);
        render_cell(table, "%s", hold->group[0] != '\0' ? hold->group : "(all)");
        render_cell(table, "%s", words[source < sizeof words / sizeof words[0] ? source : 0]);
        render_cell(table, "%s", hold->actor[0] != '\0' ? hold->actor : "-");
        render_cell(table, "%s", hold->time == NULL ? "-" : render_time(hold->time, text));
    }
    render_table_print(ctl, table);
    fprintf(ctl->out, "%" PRIu32 " %s in service on node %" PRIu64 " against the votes\n",
            answer->n_backends, answer->n_backends == 1 ? "backend stays" : "backends stay",
            answer->node_id);
}

int cmd_hold_show(struct ctl *ctl)
{
    Jury__V1__ListHoldsRequest request;
    struct rpc_result result = {0};

    jury__v1__list_holds_request__init(&request);
    int rc = ctl_call(ctl, "jury.v1.HoldService/ListHolds", &request.base, &result);
    if (rc == 0 && ctl_is_json(ctl)) {
        rc = ctl_print_message(ctl, result.response);
    } else if (rc == 0) {
        render_holds(ctl, (const Jury__V1__ListHoldsResponse *)(const void *)result.response);
    }
    rpc_result_close(&result);
    return rc;
}
