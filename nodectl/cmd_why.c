/* why: the verdict of the asked node on one backend, or on all of a group. */
#include <stdio.h>
#include <string.h>

#include "common/wire/json.h"
#include "jury/v1/group.pb-c.h"
#include "jury/v1/verdict.pb-c.h"
#include "nodectl/backend_ref.h"
#include "nodectl/commands.h"
#include "nodectl/connect.h"
#include "nodectl/render.h"
#include "nodectl/suggest.h"

static int why_one(struct ctl *ctl, Jury__V1__BackendRef *ref, json_t *list)
{
    Jury__V1__WhyRequest request;
    struct rpc_result result = {0};

    jury__v1__why_request__init(&request);
    request.backend = ref;
    int rc = ctl_call(ctl, "jury.v1.VerdictService/Why", &request.base, &result);
    if (rc == 0 && list != NULL) {
        if (json_array_append_new(list, wire_json_new(result.response)) != 0) {
            rc = ctl_fail(ctl, ERR_NOMEM, "out of memory");
        }
    } else if (rc == 0 && ctl_is_json(ctl)) {
        rc = ctl_print_message(ctl, result.response);
    } else if (rc == 0) {
        render_why(ctl, (const Jury__V1__WhyResponse *)(const void *)result.response,
                   result.header->revision);
    }
    rpc_result_close(&result);
    return rc;
}

/* JSON: an array, one element a backend. */
static int why_all(struct ctl *ctl, const Jury__V1__ListBackendsResponse *backends, char *group)
{
    json_t *list = ctl_is_json(ctl) ? json_array() : NULL;
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < backends->n_backends; i++) {
        Jury__V1__BackendRef ref;
        const Jury__V1__Backend *backend = backends->backends[i]->backend;

        jury__v1__backend_ref__init(&ref);
        if (backend == NULL) {
            continue;
        }
        ref.group = group;
        ref.address = backend->address;
        ref.port = backend->port;
        if (i > 0 && list == NULL) {
            fputc('\n', ctl->out);
        }
        rc = why_one(ctl, &ref, list);
    }
    if (rc == 0 && list != NULL) {
        return ctl_print_json(ctl, list);
    }
    json_decref(list);
    return rc;
}

static int why_group(struct ctl *ctl)
{
    Jury__V1__ListBackendsRequest request;
    struct ctl_list list = {0};

    jury__v1__list_backends_request__init(&request);
    request.group = ctl->args[0];
    int rc = ctl_call_list(ctl, "jury.v1.BackendService/ListBackends", &request.base, &list);
    if (rc == ERR_NOTFOUND) {
        suggest_group(ctl, ctl->args[0]);
    }
    if (rc == 0) {
        const Jury__V1__ListBackendsResponse *backends =
            (const Jury__V1__ListBackendsResponse *)(const void *)list.whole;

        rc = why_all(ctl, backends, ctl->args[0]);
        if (rc == 0 && backends->n_backends == 0) {
            ctl_note(ctl, "group \"%s\" has no backends", ctl->args[0]);
        }
    }
    ctl_list_close(&list);
    return rc;
}

int cmd_why(struct ctl *ctl)
{
    struct backend_ref ref;

    /* The verdict is this node's own, so its own list of backends will do: without a leader people
     * ask why more than ever. */
    ctl->is_stale = true;
    if (strchr(ctl->args[0], '/') == NULL) {
        return why_group(ctl);
    }
    int rc = backend_ref_parse(ctl, ctl->args[0], &ref);
    return rc != 0 ? rc : why_one(ctl, &ref.ref, NULL);
}
