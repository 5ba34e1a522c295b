/* What came of a probe on demand, on this node and on others. */
#include "agent/rpc/rpc_probe.h"

#include "agent/core/engine_view.h"
#include "agent/rpc/handlers_part.h"
#include "common/wire/object.h"
#include "common/wire/unpack.h"

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
    message->is_suspect = (doubt.suspect_mask >> probe->target.definition.check->type & 1) != 0;
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
    message->type = (Jury__V1__CheckType)definition->check->type;
    message->kind = wire_text(view->arena, kind_word(definition->check));
    message->source_address = addr_new(view->arena, &report->trace.source.addr);
    message->source_port = report->trace.source.port;
    message->engine = wire_text(view->arena, report->engine);
    message->outcome = (Jury__V1__ProbeOutcome)result->probe_class;
    message->reason = (Jury__V1__ProbeReason)result->reason;
    message->http_status = result->http_status;
    message->start = wire_timestamp_new(view->arena, view->wall_ms - (int64_t)(age_ns / NS_PER_MS));
    message->duration = wire_duration_new(view->arena, result->end_ns - result->start_ns);
    message->timeout = wire_duration_new(view->arena, definition->check->timeout_ms * NS_PER_MS);
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
        probe_part_settle(part, ERR_INTERNAL, "its answer cannot be read");
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

void probe_call_answer(struct rpc_server *server, struct call *call)
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
