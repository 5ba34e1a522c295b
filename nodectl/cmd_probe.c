/* probe: one attempt at a backend now, from one node or several, and what it did. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "jury/v1/probe.pb-c.h"
#include "nodectl/backend_ref.h"
#include "nodectl/commands.h"
#include "nodectl/connect.h"
#include "nodectl/render.h"

#define NODES_MAX 64
#define PATIENCE_MS 60000 /* as long as a call may take: the check's timeout is not known here */

static int read_nodes(struct ctl *ctl, uint64_t nodes[NODES_MAX], size_t *ret_n)
{
    size_t n = ctl_n_texts(ctl, FLAG_FROM);

    if (n > 0 && ctl_has(ctl, FLAG_ALL_NODES)) {
        return ctl_fail(ctl, ERR_USAGE, "--from and --all-nodes exclude each other");
    }
    for (size_t i = 0; i < n; i++) {
        const char *text = ctl_text_at(ctl, FLAG_FROM, i);
        char *end;

        if (i == NODES_MAX) {
            return ctl_fail(ctl, ERR_USAGE, "--from names more than %d nodes", NODES_MAX);
        }
        nodes[i] = strtoull(text, &end, 10);
        if (text[0] < '1' || text[0] > '9' || *end != '\0' || nodes[i] == UINT64_MAX) {
            return ctl_fail(ctl, ERR_USAGE, "--from takes the id of a node, got \"%.40s\"", text);
        }
    }
    *ret_n = n;
    return 0;
}

/* Returns 1 unless all of them passed. */
static int verdict_of(const Jury__V1__ProbeBackendResponse *answer)
{
    for (size_t i = 0; i < answer->n_probes; i++) {
        if (answer->probes[i]->outcome != JURY__V1__PROBE_OUTCOME__PROBE_OUTCOME_PASS) {
            return 1;
        }
    }
    return 0;
}

int cmd_probe(struct ctl *ctl)
{
    Jury__V1__ProbeBackendRequest request;
    struct backend_ref ref;
    struct rpc_result result = {0};
    uint64_t nodes[NODES_MAX];
    size_t n_nodes = 0;
    int rc = read_nodes(ctl, nodes, &n_nodes);

    /* Each node probes what its own copy says, so the list of that copy will do for the name. */
    ctl->is_stale = true;
    if (rc == 0) {
        rc = backend_ref_parse(ctl, ctl->args[0], &ref);
    }
    if (rc != 0) {
        return rc;
    }
    jury__v1__probe_backend_request__init(&request);
    request.backend = &ref.ref;
    request.node_ids = nodes;
    request.n_node_ids = n_nodes;
    request.all_nodes = ctl_has(ctl, FLAG_ALL_NODES);
    if (ctl_has(ctl, FLAG_CHECK)) {
        request.check = (char *)(uintptr_t)ctl_text(ctl, FLAG_CHECK);
    }
    ctl->patience_ms = PATIENCE_MS;
    rc = ctl_call(ctl, "jury.v1.ProbeService/ProbeBackend", &request.base, &result);
    if (rc == 0) {
        const Jury__V1__ProbeBackendResponse *answer =
            (const Jury__V1__ProbeBackendResponse *)(const void *)result.response;

        if (ctl_is_json(ctl)) {
            rc = ctl_print_message(ctl, result.response);
        } else {
            render_probes(ctl, answer);
        }
        rc = rc == 0 ? verdict_of(answer) : rc;
    }
    rpc_result_close(&result);
    return rc;
}
