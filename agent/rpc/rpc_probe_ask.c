/* Who shall probe what: a request for a probe on demand against the catalog. */
#include "agent/rpc/rpc_probe.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/core/catalog.h"
#include "common/wire/object.h"

/* "port, page or db" */
static const char *list_checks(const struct server_group *spec, char *text, size_t text_bytes)
{
    size_t used = 0;

    text[0] = '\0';
    for (uint32_t i = 0; i < spec->n_checks && used < text_bytes; i++) {
        const char *between = i == 0 ? "" : i + 1 == spec->n_checks ? " or " : ", ";

        used +=
            (size_t)snprintf(text + used, text_bytes - used, "%s%s", between, spec->checks[i].name);
    }
    return text;
}

/* The check that is meant, and its target; of several it must be named. */
static int find_check(const char *name, const struct catalog_group *group,
                      const struct catalog_backend *backend, struct probe_call *probe,
                      struct errmsg *err)
{
    const struct server_group *spec = &group->spec;
    const struct target_id *parts = catalog_parts_of(group, backend);
    char list[LIMIT_CHECKS * (LIMIT_CHECK_NAME_BYTES + 4)];

    if (parts == NULL && name[0] == '\0') {
        probe->target.id = backend->target;
        probe->probed = spec->check;
        return 0;
    }
    if (parts == NULL) {
        return errmsg_set(err, ERR_NOTFOUND,
                          "server group \"%s\" has one check, which has no name: leave it out",
                          spec->name);
    }
    for (uint32_t i = 0; i < spec->n_checks; i++) {
        if (strcmp(spec->checks[i].name, name) == 0) {
            memcpy(probe->check, spec->checks[i].name, sizeof probe->check);
            probe->target.id = parts[i];
            probe->probed = spec->checks[i].check;
            return 0;
        }
    }
    list_checks(spec, list, sizeof list);
    return name[0] == '\0' ? errmsg_set(err, ERR_INVALID,
                                        "server group \"%s\" has several checks: name one, %s",
                                        spec->name, list)
                           : errmsg_set(err, ERR_NOTFOUND,
                                        "server group \"%s\" has no check \"%.32s\", it has %s",
                                        spec->name, name, list);
}

static int find_target(struct rpc_server *server, const Jury__V1__ProbeBackendRequest *request,
                       struct probe_call *probe, struct errmsg *err)
{
    const struct catalog *catalog = rpc_server_catalog(server);
    char text[ENDPOINT_TEXT_BYTES];
    int rc = wire_backend_ref_read(request->backend, probe->group, &probe->at, err);

    if (rc != 0) {
        return rc;
    }
    if (catalog == NULL) {
        return errmsg_set(err, ERR_NOTREADY,
                          "this node has no catalog yet: it waits for `nodectl cluster init` or "
                          "for its peers");
    }
    const struct catalog_group *group = catalog_group_find(catalog, probe->group);
    if (group == NULL) {
        return errmsg_set(err, ERR_NOTFOUND, ERR_SAY_MISSING, "server group", probe->group);
    }
    const struct catalog_backend *backend = catalog_backend_find(group, &probe->at);
    if (backend == NULL) {
        return errmsg_set(err, ERR_NOTFOUND, ERR_SAY_NO_BACKEND, endpoint_format(&probe->at, text),
                          probe->group);
    }
    rc = find_check(request->check, group, backend, probe, err);
    if (rc != 0) {
        return rc;
    }
    struct target_definition *definition = &probe->target.definition;
    definition->to = backend->spec.at;
    if (probe->probed.port != 0) {
        definition->to.port = probe->probed.port;
    }
    probe->probed.port = 0;
    definition->check = &probe->probed;
    probe->is_check_off = !group->spec.check.is_enabled;
    probe->is_in_maintenance = backend->spec.admin_state == ADMIN_MAINTENANCE;
    return 0;
}

static int add_part(struct rpc_server *server, struct probe_call *probe, uint64_t node_id,
                    struct errmsg *err)
{
    const struct catalog_node *node = catalog_node_find(rpc_server_catalog(server), node_id);

    if (node == NULL && node_id != probe_own_node_id(server)) {
        return errmsg_set(err, ERR_NOTFOUND, "node %" PRIu64 " is no member", node_id);
    }
    if (node != NULL && node->spec.role == ROLE_SPARE) {
        return errmsg_set(err, ERR_INVALID, "node %" PRIu64 " is a spare: it does not probe",
                          node_id);
    }
    for (size_t i = 0; i < probe->n_parts; i++) {
        if (probe->parts[i].node_id == node_id) {
            return errmsg_set(err, ERR_INVALID, "node %" PRIu64 " is named twice", node_id);
        }
    }
    if (probe->n_parts == LIMIT_NODES) {
        return errmsg_set(err, ERR_LIMIT, ERR_SAY_TOO_MANY, "nodes",
                          (unsigned long)probe->n_parts + 1, (unsigned long)LIMIT_NODES);
    }
    probe->parts[probe->n_parts++].node_id = node_id;
    return 0;
}

static int compare_parts(const void *a, const void *b)
{
    uint64_t id_a = ((const struct probe_part *)a)->node_id;
    uint64_t id_b = ((const struct probe_part *)b)->node_id;

    return (id_a > id_b) - (id_a < id_b);
}

static int list_parts(struct rpc_server *server, const struct call *call,
                      const Jury__V1__ProbeBackendRequest *request, struct probe_call *probe,
                      struct errmsg *err)
{
    const struct catalog *catalog = rpc_server_catalog(server);
    int rc = 0;

    if (request->all_nodes && request->n_node_ids > 0) {
        return errmsg_set(err, ERR_INVALID, "all_nodes and node_ids exclude each other");
    }
    if (call->identity.caller == RPC_CALLER_PEER &&
        (request->all_nodes || request->n_node_ids > 0)) {
        return errmsg_set(err, ERR_INVALID, "a forwarded probe is not forwarded again");
    }
    for (size_t i = 0; rc == 0 && i < request->n_node_ids; i++) {
        rc = add_part(server, probe, request->node_ids[i], err);
    }
    for (size_t i = 0; rc == 0 && request->all_nodes && i < catalog_n_nodes(catalog); i++) {
        const struct catalog_node *node = catalog_node_at(catalog, i);

        if (node->spec.role != ROLE_SPARE) {
            rc = add_part(server, probe, node->spec.node_id, err);
        }
    }
    if (rc == 0 && probe->n_parts == 0) {
        rc = add_part(server, probe, probe_own_node_id(server), err);
    }
    qsort(probe->parts, probe->n_parts, sizeof probe->parts[0], compare_parts);
    return rc;
}

/* A call that ends before its probe can would tell nothing. */
static int check_time(struct rpc_server *server, const struct call *call,
                      const struct probe_call *probe, struct errmsg *err)
{
    uint64_t timeout_ms = probe->target.definition.check->timeout_ms;
    uint64_t needed_ms = timeout_ms + (PROBE_PART_MARGIN_NS + PROBE_FORWARD_MARGIN_NS) / NS_PER_MS;
    uint64_t given_ms = (call->deadline_ns - server->now_ns) / NS_PER_MS;

    if (call->identity.caller == RPC_CALLER_PEER || given_ms >= needed_ms) {
        return 0;
    }
    if (needed_ms > RPC_DEADLINE_MS_MAX) {
        return errmsg_set(err, ERR_INVALID,
                          "the check's timeout is %" PRIu64
                          " ms, and a call may take %d ms: such a "
                          "check cannot be probed on demand",
                          timeout_ms, RPC_DEADLINE_MS_MAX);
    }
    return errmsg_set(err, ERR_INVALID,
                      "the check's timeout is %" PRIu64
                      " ms, so the call needs a deadline of %" PRIu64 " ms or more, got %" PRIu64,
                      timeout_ms, needed_ms, given_ms);
}

int probe_call_read(struct rpc_server *server, const struct call *call,
                    const Jury__V1__ProbeBackendRequest *request, struct probe_call *probe,
                    struct errmsg *err)
{
    int rc = find_target(server, request, probe, err);

    if (rc == 0) {
        rc = list_parts(server, call, request, probe, err);
    }
    return rc == 0 ? check_time(server, call, probe, err) : rc;
}
