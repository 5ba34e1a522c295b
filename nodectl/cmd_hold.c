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

/* --- what is on, as the asked node knows it --- */

static const char *source_word(const Jury__V1__Hold *hold)
{
    static const char *const words[] = {"?", "cluster", "group", "this node", "this node"};
    unsigned source = (unsigned)hold->source;

    return words[source < sizeof words / sizeof words[0] ? source : 0];
}

static bool is_of_node(const Jury__V1__Hold *hold)
{
    return hold->source == JURY__V1__HOLD_SOURCE__HOLD_SOURCE_NODE ||
           hold->source == JURY__V1__HOLD_SOURCE__HOLD_SOURCE_NODE_GROUP;
}

static const Jury__V1__ListHoldsResponse *holds_of(const struct rpc_result *result)
{
    return (const Jury__V1__ListHoldsResponse *)(const void *)result->response;
}

static int list_holds(struct ctl *ctl, struct rpc_result *result)
{
    Jury__V1__ListHoldsRequest request;

    jury__v1__list_holds_request__init(&request);
    return ctl_call(ctl, "jury.v1.HoldService/ListHolds", &request.base, result);
}

/* "the hold of every group by node 2 alone goes on (by ops)": what still holds what was cleared.
 * is_behind: the node knows the switch itself from before, as it does around a leader's death. */
static void put_remaining(struct ctl *ctl, const Jury__V1__ListHoldsResponse *answer,
                          bool is_behind)
{
    const char *group = ctl->n_args > 0 ? ctl->args[0] : "";
    size_t n_groups = 0;

    for (size_t i = 0; i < answer->n_holds; i++) {
        const Jury__V1__Hold *hold = answer->holds[i];
        const char *of = hold->group[0] != '\0' ? hold->group : "every group";

        if (hold->group[0] != '\0' && strcmp(hold->group, group) != 0) {
            n_groups++;
            continue;
        }
        if (is_behind && !is_of_node(hold) && strcmp(hold->group, group) == 0) {
            continue;
        }
        fprintf(ctl->out, "the hold of %s by ", of);
        if (is_of_node(hold)) {
            fprintf(ctl->out, "node %" PRIu64 " alone", answer->node_id);
        } else {
            fprintf(ctl->out, "the %s", source_word(hold));
        }
        fprintf(ctl->out, " goes on%s%s%s: nodectl hold clear%s%s%s\n",
                hold->actor[0] != '\0' ? " (set by " : "", hold->actor,
                hold->actor[0] != '\0' ? ")" : "", hold->group[0] != '\0' ? " " : "", hold->group,
                is_of_node(hold) ? " --local" : "");
    }
    if (group[0] == '\0' && n_groups > 0) {
        fprintf(ctl->out, "%zu %s held by %s own switch: nodectl hold show\n", n_groups,
                n_groups == 1 ? "group is" : "groups are", n_groups == 1 ? "its" : "their");
    }
}

/* Asked on the connection of the switch, so the node answers when it has that revision itself (or
 * after a second): whoever asks it next sees the switch. */
static int follow_switch(struct ctl *ctl, uint64_t revision, bool is_on)
{
    struct rpc_result result = {0};
    int rc = list_holds(ctl, &result);

    bool is_told = rc == 0 && holds_of(&result)->revision != 0; /* not by an older agent */
    bool is_behind = is_told && holds_of(&result)->revision < revision;
    if (is_behind) {
        ctl_warn(ctl,
                 "node %" PRIu64 " has revision %" PRIu64 " and not yet %" PRIu64
                 ": it follows when it has it",
                 holds_of(&result)->node_id, holds_of(&result)->revision, revision);
    }
    if (rc == 0 && !is_on && !ctl_is_json(ctl)) {
        put_remaining(ctl, holds_of(&result), is_behind);
    }
    rpc_result_close(&result);
    return rc;
}

/* --- the switches --- */

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

        fprintf(ctl->out, "the hold of %s by node %" PRIu64 " alone is %s%s%s\n", what_of(ctl),
                answer->node_id, is_on ? "on" : "off", answer->is_unchanged ? " already" : "",
                is_on ? ", until it is cleared or its agent ends" : "");
    }
    rpc_result_close(&result);
    return rc == 0 && !is_on ? follow_switch(ctl, 0, false) : rc;
}

/* What came of a replicated switch. */
struct switched {
    uint64_t revision;
    bool is_unchanged;
    bool is_on;
};

static int tell(struct ctl *ctl, int rc, struct rpc_result *result, const struct switched *now)
{
    if (rc == 0 && ctl_is_json(ctl)) {
        rc = ctl_print_message(ctl, result->response);
    } else if (rc == 0) {
        fprintf(ctl->out, "the hold of %s is %s%s revision %" PRIu64 "\n", what_of(ctl),
                now->is_on ? "on" : "off", now->is_unchanged ? " already: unchanged at" : ", at",
                now->revision);
    }
    if (rc == ERR_NOLEADER) {
        ctl_hint(ctl, "each node can be held by itself, without a leader: --local");
    }
    rpc_result_close(result);
    return rc == 0 ? follow_switch(ctl, now->revision, now->is_on) : rc;
}

int cmd_hold_set(struct ctl *ctl)
{
    Jury__V1__SetHoldRequest request;
    struct rpc_result result = {0};
    struct switched now = {.is_on = true};

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
        const Jury__V1__SetHoldResponse *answer =
            (const Jury__V1__SetHoldResponse *)(const void *)result.response;

        now.revision = answer->revision;
        now.is_unchanged = answer->is_unchanged;
    }
    return tell(ctl, rc, &result, &now);
}

int cmd_hold_clear(struct ctl *ctl)
{
    Jury__V1__ClearHoldRequest request;
    struct rpc_result result = {0};
    struct switched now = {.is_on = false};

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
        const Jury__V1__ClearHoldResponse *answer =
            (const Jury__V1__ClearHoldResponse *)(const void *)result.response;

        now.revision = answer->revision;
        now.is_unchanged = answer->is_unchanged;
    }
    return tell(ctl, rc, &result, &now);
}

static void render_holds(struct ctl *ctl, const Jury__V1__ListHoldsResponse *answer)
{
    static const struct render_column columns[] = {
        {"GROUP", false}, {"BY", false}, {"WHO", false}, {"SINCE", false}};
    char text[RENDER_TEXT_BYTES];

    if (answer->n_holds == 0) {
        fprintf(ctl->out, "no hold is on, at revision %" PRIu64 "\n", answer->revision);
        return;
    }
    struct render_table *table = render_table_new(columns, 4);
    for (size_t i = 0; i < answer->n_holds; i++) {
        const Jury__V1__Hold *hold = answer->holds[i];

        render_row(table);
        render_cell(table, "%s", hold->group[0] != '\0' ? hold->group : "(all)");
        render_cell(table, "%s", source_word(hold));
        render_cell(table, "%s", hold->actor[0] != '\0' ? hold->actor : "-");
        render_cell(table, "%s", hold->time == NULL ? "-" : render_time(hold->time, text));
    }
    render_table_print(ctl, table);
    fprintf(ctl->out,
            "%" PRIu32 " %s in service on node %" PRIu64 " against the votes, at revision %" PRIu64
            "\n",
            answer->n_backends, answer->n_backends == 1 ? "backend stays" : "backends stay",
            answer->node_id, answer->revision);
}

int cmd_hold_show(struct ctl *ctl)
{
    struct rpc_result result = {0};

    int rc = list_holds(ctl, &result);
    if (rc == 0 && ctl_is_json(ctl)) {
        rc = ctl_print_message(ctl, result.response);
    } else if (rc == 0) {
        render_holds(ctl, holds_of(&result));
    }
    rpc_result_close(&result);
    return rc;
}
