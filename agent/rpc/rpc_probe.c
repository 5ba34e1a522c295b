/* Probes on demand: a call that has a part on each node that is to probe, its own or forwarded, and
 * is answered when all have come to their end. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/core/engine_view.h"
#include "agent/core/probe_trace.h"
#include "agent/rpc/handlers_part.h"
#include "agent/rpc/rpc_internal.h"
#include "common/wire/object.h"
#include "common/wire/unpack.h"
#include "jury/v1/probe.pb-c.h"

#define PROBE_METHOD "jury.v1.ProbeService/ProbeBackend"

/* What a part may take beyond the timeout of its probe: two ways through the mesh, and a connection
 * that is closed politely. */
#define PART_MARGIN_NS (1000 * NS_PER_MS)
/* A forwarded call ends so much before this one, to leave time for the answer. */
#define FORWARD_MARGIN_NS (100 * NS_PER_MS)

struct probe_part {
    uint64_t node_id;
    uint64_t cookie;             /* that its end comes with; 0 = it has come */
    int code;                    /* why it did not probe, an ERR_*; 0 = it did */
    struct errmsg message;       /* of code */
    struct probe_report *report; /* this node's own; NULL: another's */
    uint8_t *payload;            /* another's answer */
    size_t n_payload_bytes;
};

struct probe_call {
    char group[LIMIT_NAME_BYTES + 1];
    struct endpoint at;
    char check[LIMIT_CHECK_NAME_BYTES + 1]; /* of several; else "" */
    struct probe_target target;
    bool is_check_off;
    bool is_in_maintenance;
    size_t n_parts;
    struct probe_part parts[LIMIT_NODES];
};

void rpc_probe_free(struct probe_call *probe)
{
    for (size_t i = 0; probe != NULL && i < probe->n_parts; i++) {
        free(probe->parts[i].report);
        free(probe->parts[i].payload);
    }
    free(probe);
}

static uint64_t own_node_id(struct rpc_server *server)
{
    struct rpc_node node = {0};

    server->hooks.node(server->hooks.user, &node);
    return node.node_id;
}

/* --- what is asked for --- */

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
        probe->target.definition.check = spec->check;
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
            probe->target.definition.check = spec->checks[i].check;
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
    if (definition->check.port != 0) {
        definition->to.port = definition->check.port;
    }
    definition->check.port = 0;
    probe->is_check_off = !group->spec.check.is_enabled;
    probe->is_in_maintenance = backend->spec.admin_state == ADMIN_MAINTENANCE;
    return 0;
}

static int add_part(struct rpc_server *server, struct probe_call *probe, uint64_t node_id,
                    struct errmsg *err)
{
    const struct catalog_node *node = catalog_node_find(rpc_server_catalog(server), node_id);

    if (node == NULL && node_id != own_node_id(server)) {
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
        rc = add_part(server, probe, own_node_id(server), err);
    }
    qsort(probe->parts, probe->n_parts, sizeof probe->parts[0], compare_parts);
    return rc;
}

/* A call that ends before its probe can would tell nothing. */
static int check_time(struct rpc_server *server, const struct call *call,
                      const struct probe_call *probe, struct errmsg *err)
{
    uint64_t timeout_ms = probe->target.definition.check.timeout_ms;
    uint64_t needed_ms = timeout_ms + (PART_MARGIN_NS + FORWARD_MARGIN_NS) / NS_PER_MS;
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

/* --- the parts --- */

static void settle(struct probe_part *part, int code, const char *message)
{
    part->cookie = 0;
    part->code = code;
    errmsg_set(&part->message, code, "%s", message);
}

static int forward(struct rpc_server *server, const struct call *call,
                   const struct probe_call *probe, const struct probe_part *part)
{
    struct wire_arena arena;
    struct rpc_frames frames = {0};
    int rc = ERR_NOMEM;

    wire_arena_init(&arena, 65536);
    Jury__V1__Request *envelope = WIRE_NEW(&arena, Jury__V1__Request, jury__v1__request);
    Jury__V1__ProbeBackendRequest *request =
        WIRE_NEW(&arena, Jury__V1__ProbeBackendRequest, jury__v1__probe_backend_request);
    if (envelope != NULL && request != NULL) {
        uint64_t left_ms = (call->deadline_ns - server->now_ns - FORWARD_MARGIN_NS) / NS_PER_MS;

        envelope->api_version = RPC_API_VERSION;
        envelope->method = wire_text(&arena, PROBE_METHOD);
        envelope->deadline_ms = (uint32_t)left_ms;
        envelope->request_id.data = wire_alloc(&arena, REQUEST_ID_BYTES);
        envelope->request_id.len = REQUEST_ID_BYTES;
        request->backend = wire_backend_ref_new(&arena, probe->group, &probe->at);
        request->check = wire_text(&arena, probe->check);
    }
    if (!arena.failed) {
        memcpy(envelope->request_id.data, call->request_id.bytes, REQUEST_ID_BYTES);
        frames.envelope = wire_pack(&envelope->base, &arena, &frames.n_envelope_bytes);
        frames.payload = wire_pack(&request->base, &arena, &frames.n_payload_bytes);
    }
    if (frames.envelope != NULL && frames.payload != NULL) {
        rc = server->hooks.forward(server->hooks.user, part->cookie, part->node_id, &call->identity,
                                   &frames);
    }
    wire_arena_close(&arena);
    return rc;
}

static void begin_part(struct rpc_server *server, struct call *call, struct probe_part *part)
{
    struct errmsg err = {{0}};
    int rc;

    part->cookie = rpc_new_cookie(server);
    if (part->node_id == own_node_id(server)) {
        rc = server->hooks.probe(server->hooks.user, part->cookie, &call->probe->target, &err);
    } else {
        rc = forward(server, call, call->probe, part);
        if (rc == 0) {
            server->counters.forwarded++;
        } else {
            errmsg_set(&err, rc,
                       rc == ERR_UNREACHABLE ? "it cannot be reached from the asked node"
                                             : "the call cannot be forwarded to it");
        }
    }
    if (rc != 0) {
        settle(part, rc, err.text);
    }
}

/* --- the answer --- */

static const char *kind_word(const struct health_check *check)
{
    switch ((enum check_type)check->type) {
    case CHECK_TYPE_TCP:
        return check->tcp.handshake == TCP_HALF_OPEN ? "tcp-half-open" : "tcp-full";
    case CHECK_TYPE_HTTP:
        return "http";
    case CHECK_TYPE_UDP:
        return check->udp.method == UDP_PORT_ECHO  ? "udp-port-echo"
               : check->udp.method == UDP_EXCHANGE ? "udp-exchange"
                                                   : "udp-port";
    case CHECK_TYPE_TLS:
        return "tls";
    case CHECK_TYPE_GRPC:
        return check_is_secured(check) ? "grpc-tls" : "grpc";
    case CHECK_TYPE_NONE:
        break;
    }
    return "";
}

static char *addr_new(struct wire_arena *arena, const struct addr *addr)
{
    char text[ADDR_TEXT_BYTES];

    return wire_text(arena, addr->family == ADDR_NONE ? "" : addr_format(addr, text));
}

static void add_steps(struct wire_arena *arena, const struct probe_report *report,
                      Jury__V1__NodeProbe *message)
{
    message->steps = wire_alloc_array(arena, PROBE_TRACE_STEPS, sizeof *message->steps);
    message->n_steps_left_out = report->trace.n_left_out;
    for (uint32_t i = 0; message->steps != NULL && i < report->trace.n_steps; i++) {
        const struct probe_step *step = &report->trace.steps[i];
        uint64_t start_ns = report->result.start_ns;
        Jury__V1__ProbeStep *one = WIRE_NEW(arena, Jury__V1__ProbeStep, jury__v1__probe_step);

        if (one == NULL) {
            return;
        }
        one->kind = (Jury__V1__ProbeStepKind)step->kind;
        one->at = wire_duration_new(arena, step->at_ns > start_ns ? step->at_ns - start_ns : 0);
        one->text = wire_text(arena, step->text);
        one->from = addr_new(arena, &step->from);
        one->n_bytes = step->n_bytes;
        message->steps[message->n_steps++] = one;
    }
}

/* A node that doubts its probes of this type says so beside what came of this one. */
static void add_doubt(const struct view *view, const struct probe_call *probe,
                      Jury__V1__NodeProbe *message)
{
    struct doubt_view doubt = {0};

    if (view->engine == NULL) {
        return;
    }
    engine_view_doubt(view->engine, view->now_ns, &doubt);
    message->is_suspect = (doubt.suspect_mask >> probe->target.definition.check.type & 1) != 0;
    if (message->is_suspect) {
        message->n_doubt_causes = part_doubt_causes(view, doubt.causes, &message->doubt_causes);
    }
}

static Jury__V1__NodeProbe *own_new(const struct view *view, const struct probe_call *probe,
                                    const struct probe_report *report)
{
    const struct target_definition *definition = &probe->target.definition;
    const struct probe_result *result = &report->result;
    uint64_t age_ns = view->now_ns > result->start_ns ? view->now_ns - result->start_ns : 0;
    Jury__V1__NodeProbe *message = WIRE_NEW(view->arena, Jury__V1__NodeProbe, jury__v1__node_probe);

    if (message == NULL) {
        return NULL;
    }
    message->address = addr_new(view->arena, &definition->to.addr);
    message->port = definition->to.port;
    message->type = (Jury__V1__CheckType)definition->check.type;
    message->kind = wire_text(view->arena, kind_word(&definition->check));
    message->source_address = addr_new(view->arena, &report->trace.source.addr);
    message->source_port = report->trace.source.port;
    message->engine = wire_text(view->arena, report->engine);
    message->outcome = (Jury__V1__ProbeOutcome)result->probe_class;
    message->reason = (Jury__V1__ProbeReason)result->reason;
    message->http_status = result->http_status;
    message->start = wire_timestamp_new(view->arena, view->wall_ms - (int64_t)(age_ns / NS_PER_MS));
    message->duration = wire_duration_new(view->arena, result->end_ns - result->start_ns);
    message->timeout = wire_duration_new(view->arena, definition->check.timeout_ms * NS_PER_MS);
    add_steps(view->arena, report, message);
    add_doubt(view, probe, message);
    message->is_check_off = probe->is_check_off;
    message->is_in_maintenance = probe->is_in_maintenance;
    return message;
}

/* The one probe in another node's answer. NULL: there is none, and the part says why. */
static Jury__V1__NodeProbe *other_new(const struct view *view, struct probe_part *part)
{
    static const struct wire_limits limits = {.bytes_max = LIMIT_RPC_MESSAGE_BYTES,
                                              .elements_max = 1024};
    ProtobufCMessage *message = NULL;
    struct errmsg err = {{0}};
    int rc = wire_unpack(&jury__v1__probe_backend_response__descriptor, &limits, part->payload,
                         part->n_payload_bytes, view->arena, &message, &err);
    const Jury__V1__ProbeBackendResponse *response =
        rc == 0 ? (const Jury__V1__ProbeBackendResponse *)message : NULL;

    if (response == NULL || response->n_probes != 1) {
        settle(part, ERR_INTERNAL, "its answer cannot be read");
        return NULL;
    }
    return response->probes[0];
}

static Jury__V1__NodeProbe *error_new(const struct view *view, const struct probe_part *part)
{
    Jury__V1__NodeProbe *message = WIRE_NEW(view->arena, Jury__V1__NodeProbe, jury__v1__node_probe);
    Jury__V1__Status *status = WIRE_NEW(view->arena, Jury__V1__Status, jury__v1__status);

    if (message == NULL || status == NULL) {
        return NULL;
    }
    status->code = (Jury__V1__Code)err_rpc_code(part->code);
    status->reason = wire_text(view->arena, err_reason(part->code));
    status->message = wire_text(view->arena, part->message.text);
    message->error = status;
    return message;
}

static Jury__V1__NodeProbe *part_new(const struct view *view, const struct probe_call *probe,
                                     struct probe_part *part)
{
    Jury__V1__NodeProbe *message = NULL;

    if (part->code == 0) {
        message = part->report != NULL ? own_new(view, probe, part->report) : other_new(view, part);
    }
    if (message == NULL && part->code != 0) {
        message = error_new(view, part);
    }
    if (message != NULL) {
        message->node_id = part->node_id;
    }
    return message;
}

static void answer(struct rpc_server *server, struct call *call)
{
    struct probe_call *probe = call->probe;
    struct wire_arena arena;

    wire_arena_init(&arena, RPC_ANSWER_BUDGET_BYTES);
    const struct view view = {.server = server,
                              .engine = server->hooks.engine(server->hooks.user),
                              .now_ns = server->now_ns,
                              .wall_ms = server->hooks.wall_ms(server->hooks.user),
                              .arena = &arena};
    Jury__V1__ProbeBackendResponse *response =
        WIRE_NEW(&arena, Jury__V1__ProbeBackendResponse, jury__v1__probe_backend_response);
    if (response != NULL) {
        response->backend = wire_backend_ref_new(&arena, probe->group, &probe->at);
        response->probes = wire_alloc_array(&arena, probe->n_parts, sizeof *response->probes);
    }
    for (size_t i = 0; !arena.failed && i < probe->n_parts; i++) {
        response->probes[response->n_probes++] = part_new(&view, probe, &probe->parts[i]);
    }
    const struct catalog *catalog = rpc_server_catalog(server);
    rpc_call_answer(server, call, &arena, arena.failed ? NULL : &response->base,
                    catalog != NULL ? catalog_revision(catalog) : 0);
    wire_arena_close(&arena);
}

/* A single node's error is the call's. */
static void refuse(struct rpc_server *server, struct call *call, const struct probe_part *part)
{
    struct errmsg err = part->message;

    if (part->node_id != own_node_id(server)) {
        errmsg_set(&err, part->code, "node %" PRIu64 ": %s", part->node_id, part->message.text);
    }
    rpc_call_refuse(server, call, part->code, &err);
}

static void finish_if_done(struct rpc_server *server, struct call *call)
{
    struct probe_call *probe = call->probe;

    for (size_t i = 0; i < probe->n_parts; i++) {
        if (probe->parts[i].cookie != 0) {
            return;
        }
    }
    if (probe->n_parts == 1 && probe->parts[0].code != 0) {
        refuse(server, call, &probe->parts[0]);
    } else {
        answer(server, call);
    }
}

/* --- begin and go on --- */

void rpc_probe_begin(struct rpc_server *server, struct call *call, const ProtobufCMessage *message)
{
    const Jury__V1__ProbeBackendRequest *request = (const Jury__V1__ProbeBackendRequest *)message;
    struct errmsg err = {{0}};
    struct probe_call *probe = calloc(1, sizeof *probe);
    int rc = probe == NULL ? errmsg_set(&err, ERR_NOMEM, "out of memory") : 0;

    if (rc == 0) {
        rc = find_target(server, request, probe, &err);
    }
    if (rc == 0) {
        rc = list_parts(server, call, request, probe, &err);
    }
    if (rc == 0) {
        rc = check_time(server, call, probe, &err);
    }
    if (rc != 0) {
        rpc_probe_free(probe);
        rpc_call_refuse(server, call, rc, &err);
        return;
    }
    uint64_t timeout_ns = probe->target.definition.check.timeout_ms * NS_PER_MS;
    call->probe = probe;
    call->stage = CALL_PROBE;
    call->stage_ns = server->now_ns + timeout_ns + PART_MARGIN_NS;
    for (size_t i = 0; i < probe->n_parts; i++) {
        begin_part(server, call, &probe->parts[i]);
    }
    finish_if_done(server, call);
}

void rpc_probe_poll(struct rpc_server *server, struct call *call)
{
    if (server->now_ns < call->stage_ns && server->now_ns < call->deadline_ns) {
        return;
    }
    for (size_t i = 0; i < call->probe->n_parts; i++) {
        struct probe_part *part = &call->probe->parts[i];

        if (part->cookie != 0) {
            settle(part, ERR_TIMEOUT, "no answer within the check's timeout and a second");
        }
    }
    finish_if_done(server, call);
}

/* The part that waits for a cookie, and its call. */
static struct probe_part *find_part(struct rpc_server *server, uint64_t cookie,
                                    struct call **ret_call)
{
    for (size_t i = 0; i < LIMIT_RPC_OUTSTANDING; i++) {
        struct call *call = &server->calls[i];

        for (size_t j = 0; call->stage == CALL_PROBE && j < call->probe->n_parts; j++) {
            if (call->probe->parts[j].cookie == cookie) {
                *ret_call = call;
                return &call->probe->parts[j];
            }
        }
    }
    return NULL;
}

void rpc_probe_done(struct rpc_server *server, uint64_t cookie, const struct probe_report *report)
{
    struct call *call;
    struct probe_part *part = find_part(server, cookie, &call);

    if (part == NULL) {
        return; /* the call has ended meanwhile */
    }
    part->report = malloc(sizeof *part->report);
    if (part->report == NULL) {
        settle(part, ERR_NOMEM, "out of memory");
    } else {
        *part->report = *report;
        part->cookie = 0;
    }
    finish_if_done(server, call);
}

static void take_answer(struct probe_part *part, const struct rpc_frames *frames,
                        const Jury__V1__Response *response)
{
    const Jury__V1__Status *status = response == NULL ? NULL : response->status;

    if (status == NULL) {
        settle(part, ERR_INTERNAL, "its answer cannot be read");
        return;
    }
    if (status->code != JURY__V1__CODE__CODE_OK) {
        int code = err_from_reason(status->reason);

        settle(part, code != 0 ? code : ERR_INTERNAL, status->message);
        return;
    }
    part->payload = malloc(frames->n_payload_bytes + 1);
    if (part->payload == NULL) {
        settle(part, ERR_NOMEM, "out of memory");
        return;
    }
    if (frames->n_payload_bytes > 0) {
        memcpy(part->payload, frames->payload, frames->n_payload_bytes);
    }
    part->n_payload_bytes = frames->n_payload_bytes;
    part->cookie = 0;
}

bool rpc_probe_answered(struct rpc_server *server, uint64_t node_id, uint64_t forward_id,
                        const struct rpc_frames *frames)
{
    static const struct wire_limits limits = {.bytes_max = RPC_ENVELOPE_BYTES_MAX,
                                              .elements_max = 256};
    struct call *call;
    struct probe_part *part = find_part(server, forward_id, &call);
    struct wire_arena arena;
    ProtobufCMessage *message = NULL;

    /* Only the node that was asked may answer. */
    if (part == NULL || part->node_id != node_id || part->node_id == own_node_id(server)) {
        return false;
    }
    wire_arena_init(&arena, wire_budget(&limits));
    int rc = wire_unpack(&jury__v1__response__descriptor, &limits, frames->envelope,
                         frames->n_envelope_bytes, &arena, &message, NULL);
    take_answer(part, frames, rc == 0 ? (const Jury__V1__Response *)message : NULL);
    wire_arena_close(&arena);
    finish_if_done(server, call);
    return true;
}
