/* group and listener: what is configured and how it is. */
#include <stdio.h>
#include <string.h>

#include "common/spec/field.h"
#include "common/wire/object.h"
#include "jury/v1/group.pb-c.h"
#include "jury/v1/listener.pb-c.h"
#include "nodectl/commands.h"
#include "nodectl/connect.h"
#include "nodectl/render.h"
#include "nodectl/suggest.h"

int cmd_group_list(struct ctl *ctl)
{
    Jury__V1__ListGroupsRequest request;
    struct ctl_list list = {0};

    jury__v1__list_groups_request__init(&request);
    int rc = ctl_call_list(ctl, "jury.v1.GroupService/ListGroups", &request.base, &list);

    if (rc == 0 && ctl_is_json(ctl)) {
        rc = ctl_print_message(ctl, list.whole);
    } else if (rc == 0) {
        const Jury__V1__ListGroupsResponse *groups =
            (const Jury__V1__ListGroupsResponse *)(const void *)list.whole;

        render_groups(ctl, groups);
        if (groups->n_groups == 0) {
            ctl_note(ctl, "there are no groups yet: nodectl apply -f FILE makes one, nodectl "
                          "explain group --example shows what a file looks like");
        }
    }
    ctl_list_close(&list);
    return rc;
}

int cmd_group_describe(struct ctl *ctl)
{
    Jury__V1__DescribeGroupRequest request;
    struct rpc_result result = {0};
    struct server_group group = {0};
    struct errmsg err = {{0}};

    jury__v1__describe_group_request__init(&request);
    request.name = ctl->args[0];
    int rc = ctl_call(ctl, "jury.v1.GroupService/DescribeGroup", &request.base, &result);
    if (rc == ERR_NOTFOUND) {
        suggest_group(ctl, ctl->args[0]);
    }
    if (rc == 0 && ctl_is_json(ctl)) {
        rc = ctl_print_message(ctl, result.response);
    } else if (rc == 0) {
        const Jury__V1__DescribeGroupResponse *answer =
            (const Jury__V1__DescribeGroupResponse *)(const void *)result.response;

        if (answer->group == NULL || wire_group_read(answer->group, &group, &err) != 0) {
            rc = ctl_fail(ctl, ERR_INTERNAL, "the answer cannot be understood: %s", err.text);
        } else {
            render_group(ctl, answer, &group);
            server_group_close(&group);
        }
    }
    rpc_result_close(&result);
    return rc;
}

int cmd_listener_list(struct ctl *ctl)
{
    Jury__V1__ListListenersRequest request;
    struct ctl_list list = {0};

    jury__v1__list_listeners_request__init(&request);
    int rc = ctl_call_list(ctl, "jury.v1.ListenerService/ListListeners", &request.base, &list);

    if (rc == 0 && ctl_is_json(ctl)) {
        rc = ctl_print_message(ctl, list.whole);
    } else if (rc == 0) {
        const Jury__V1__ListListenersResponse *listeners =
            (const Jury__V1__ListListenersResponse *)(const void *)list.whole;

        render_listeners(ctl, listeners);
        if (listeners->n_listeners == 0) {
            ctl_note(ctl, "there are no listeners yet: nodectl explain listener --example shows "
                          "what a document looks like");
        }
    }
    ctl_list_close(&list);
    return rc;
}
