/* status, ready, version: how things are, in one word and an exit status. */
#include <stdio.h>

#include "common/wire/json.h"
#include "jury/v1/cluster.pb-c.h"
#include "nodectl/commands.h"
#include "nodectl/connect.h"
#include "nodectl/render.h"

int cmd_status(struct ctl *ctl)
{
    Jury__V1__GetStatusRequest request;
    struct rpc_result result = {0};

    jury__v1__get_status_request__init(&request);
    int rc = ctl_call(ctl, "jury.v1.ClusterService/GetStatus", &request.base, &result);

    if (rc == 0) {
        const Jury__V1__GetStatusResponse *status =
            (const Jury__V1__GetStatusResponse *)(const void *)result.response;

        if (ctl_is_json(ctl)) {
            rc = ctl_print_message(ctl, result.response);
        } else {
            render_status(ctl, status);
        }
        if (rc == 0 && status->health != JURY__V1__CLUSTER_HEALTH__CLUSTER_HEALTH_HEALTHY) {
            rc = 1;
        }
    }
    rpc_result_close(&result);
    return rc;
}

int cmd_ready(struct ctl *ctl)
{
    Jury__V1__CheckReadyRequest request;
    struct rpc_result result = {0};

    jury__v1__check_ready_request__init(&request);
    int rc = ctl_call(ctl, "jury.v1.NodeService/CheckReady", &request.base, &result);

    if (rc == 0) {
        const Jury__V1__CheckReadyResponse *ready =
            (const Jury__V1__CheckReadyResponse *)(const void *)result.response;

        if (ctl_is_json(ctl)) {
            rc = ctl_print_message(ctl, result.response);
        } else {
            render_ready(ctl, ready);
        }
        if (rc == 0 && !ready->is_ready) {
            rc = 1;
        }
    }
    rpc_result_close(&result);
    return rc;
}

static void put_version(FILE *out, const Jury__V1__GetVersionResponse *version)
{
    fprintf(out, "node    %s (api %u-%u, feature level %u)\n", version->version,
            version->api_version_min, version->api_version_max, version->feature_level);
    for (size_t i = 0; i < version->n_libraries; i++) {
        fprintf(out, "        %s\n", version->libraries[i]);
    }
}

int cmd_version(struct ctl *ctl)
{
    Jury__V1__GetVersionRequest request;
    struct rpc_result result = {0};
    const Jury__V1__GetVersionResponse *version = NULL;

    jury__v1__get_version_request__init(&request);
    int rc = ctl_call(ctl, "jury.v1.NodeService/GetVersion", &request.base, &result);

    if (rc == ERR_USAGE || rc == ERR_CONFIG) {
        rpc_result_close(&result);
        return rc;
    }
    if (rc == 0) {
        version = (const Jury__V1__GetVersionResponse *)(const void *)result.response;
    } else {
        ctl_warn(ctl, "no node answered: %s", ctl->failure.message.text);
    }
    rc = 0;
    if (ctl_is_json(ctl)) {
        json_t *node = version == NULL ? json_null() : wire_json_new(result.response);

        rc = ctl_print_json(ctl, json_pack("{s:s, s:o}", "nodectl", JURY_VERSION, "node", node));
    } else {
        fprintf(ctl->out, "nodectl %s (api 1)\n", JURY_VERSION);
        if (version != NULL) {
            put_version(ctl->out, version);
        }
    }
    rpc_result_close(&result);
    return rc;
}
