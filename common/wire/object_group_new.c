/* Server groups, backends and listeners: model -> message. */
#include <string.h>

#include "common/base/units.h"
#include "common/wire/object.h"

Jury__V1__Backend *wire_backend_new(struct wire_arena *arena, const struct backend *backend)
{
    char text[ADDR_TEXT_BYTES];
    Jury__V1__Backend *message = WIRE_NEW(arena, Jury__V1__Backend, jury__v1__backend);

    if (message != NULL) {
        message->address = wire_text(arena, addr_format(&backend->at.addr, text));
        message->port = backend->at.port;
        message->weight_choice_case = JURY__V1__BACKEND__WEIGHT_CHOICE_WEIGHT;
        message->weight = backend->weight;
        message->zone = wire_text(arena, backend->zone);
        message->description = wire_text(arena, backend->description);
        message->admin_state = (Jury__V1__AdminState)backend->admin_state;
    }
    return message;
}

static ProtobufCBinaryData data_new(struct wire_arena *arena, const uint8_t *data, size_t n_bytes)
{
    ProtobufCBinaryData copy = {.data = wire_alloc(arena, n_bytes)};

    if (copy.data != NULL) {
        memcpy(copy.data, data, n_bytes);
        copy.len = n_bytes;
    }
    return copy;
}

static Jury__V1__TcpCheck *tcp_new(struct wire_arena *arena, const struct tcp_check *tcp)
{
    Jury__V1__TcpCheck *message = WIRE_NEW(arena, Jury__V1__TcpCheck, jury__v1__tcp_check);

    if (message != NULL) {
        message->handshake = (Jury__V1__TcpCheck__Handshake)tcp->handshake;
        message->close = (Jury__V1__TcpCheck__Close)tcp->close;
        message->on_timeout = (Jury__V1__TcpCheck__OnTimeout)tcp->on_timeout;
        message->send = data_new(arena, tcp->send.bytes, tcp->send.n_bytes);
        message->expect = data_new(arena, tcp->expect.bytes, tcp->expect.n_bytes);
    }
    return message;
}

/* The set of codes as ranges, lowest first. */
static void add_ranges(struct wire_arena *arena, const struct http_codes *codes,
                       Jury__V1__HttpCheck *message)
{
    const size_t n_max = (HTTP_CODE_MAX - HTTP_CODE_MIN + 2) / 2;

    message->expect = wire_alloc_array(arena, n_max, sizeof *message->expect);
    for (unsigned code = HTTP_CODE_MIN; message->expect != NULL && code <= HTTP_CODE_MAX; code++) {
        if (!http_codes_has(codes, code)) {
            continue;
        }
        unsigned first = code;
        while (code < HTTP_CODE_MAX && http_codes_has(codes, code + 1)) {
            code++;
        }
        Jury__V1__CodeRange *range = WIRE_NEW(arena, Jury__V1__CodeRange, jury__v1__code_range);
        if (range == NULL) {
            return;
        }
        range->first = first;
        range->last = code;
        message->expect[message->n_expect++] = range;
    }
}

static Jury__V1__HttpCheck *http_new(struct wire_arena *arena, const struct http_check *http)
{
    Jury__V1__HttpCheck *message = WIRE_NEW(arena, Jury__V1__HttpCheck, jury__v1__http_check);

    if (message != NULL) {
        message->method = (Jury__V1__HttpCheck__Method)http->method;
        message->version = (Jury__V1__HttpCheck__Version)http->version;
        message->host = (Jury__V1__HttpCheck__Host)http->host;
        message->path = wire_text(arena, http->path);
        message->domain = wire_text(arena, http->domain);
        add_ranges(arena, &http->expect, message);
    }
    return message;
}

static Jury__V1__UdpCheck *udp_new(struct wire_arena *arena, const struct udp_check *udp)
{
    Jury__V1__UdpCheck *message = WIRE_NEW(arena, Jury__V1__UdpCheck, jury__v1__udp_check);

    if (message != NULL) {
        message->method = (Jury__V1__UdpCheck__Method)udp->method;
        message->payload = data_new(arena, udp->payload.bytes, udp->payload.n_bytes);
        message->expect = data_new(arena, udp->expect.bytes, udp->expect.n_bytes);
        message->mask = data_new(arena, udp->mask.bytes, udp->mask.n_bytes);
    }
    return message;
}

static Jury__V1__TlsCheck *tls_new(struct wire_arena *arena, const struct tls_check *tls)
{
    Jury__V1__TlsCheck *message = WIRE_NEW(arena, Jury__V1__TlsCheck, jury__v1__tls_check);

    if (message != NULL) {
        message->verify = (Jury__V1__TlsCheck__Verify)tls->verify;
        message->min_version = (Jury__V1__TlsCheck__Version)tls->min_version;
        message->warn_choice_case = JURY__V1__TLS_CHECK__WARN_CHOICE_WARN_DAYS;
        message->warn_days = tls->warn_days;
        message->server_name = wire_text(arena, tls->server_name);
        message->alpn = wire_text(arena, tls->alpn);
    }
    return message;
}

static Jury__V1__GrpcCheck *grpc_new(struct wire_arena *arena, const struct grpc_check *grpc)
{
    Jury__V1__GrpcCheck *message = WIRE_NEW(arena, Jury__V1__GrpcCheck, jury__v1__grpc_check);

    if (message != NULL) {
        message->service = wire_text(arena, grpc->service);
    }
    return message;
}

static Jury__V1__HealthCheck *check_new(struct wire_arena *arena, const struct health_check *check)
{
    Jury__V1__HealthCheck *message = WIRE_NEW(arena, Jury__V1__HealthCheck, jury__v1__health_check);

    if (message == NULL) {
        return NULL;
    }
    message->enabled_choice_case = JURY__V1__HEALTH_CHECK__ENABLED_CHOICE_ENABLED;
    message->enabled = check->is_enabled;
    message->type = (Jury__V1__CheckType)check->type;
    message->pacing = (Jury__V1__Pacing)check->pacing;
    message->port_choice_case = JURY__V1__HEALTH_CHECK__PORT_CHOICE_PORT;
    message->port = check->port;
    message->timeout = wire_duration_new(arena, check->timeout_ms * NS_PER_MS);
    message->interval = wire_duration_new(arena, check->interval_ms * NS_PER_MS);
    message->healthy_threshold = check->healthy_threshold;
    message->unhealthy_threshold = check->unhealthy_threshold;
    message->probers = check->probers;
    message->recheck = check->recheck;
    message->source = (Jury__V1__CheckSource)check->source;
    switch ((enum check_type)check->type) {
    case CHECK_TYPE_TCP:
        message->tcp = tcp_new(arena, &check->tcp);
        break;
    case CHECK_TYPE_HTTP:
        message->http = http_new(arena, &check->http);
        break;
    case CHECK_TYPE_UDP:
        message->udp = udp_new(arena, &check->udp);
        break;
    case CHECK_TYPE_TLS:
        message->tls = tls_new(arena, &check->tls);
        message->http = check_asks_http(check) ? http_new(arena, &check->http) : NULL;
        break;
    case CHECK_TYPE_GRPC:
        message->grpc = grpc_new(arena, &check->grpc);
        message->tls = check_is_secured(check) ? tls_new(arena, &check->tls) : NULL;
        break;
    case CHECK_TYPE_NONE:
        break;
    }
    return message;
}

static void add_checks(struct wire_arena *arena, const struct server_group *group,
                       Jury__V1__ServerGroup *message)
{
    message->pass = wire_rule_new(arena, &group->pass);
    message->checks = wire_alloc_array(arena, group->n_checks, sizeof *message->checks);
    for (uint32_t i = 0; message->checks != NULL && i < group->n_checks; i++) {
        Jury__V1__NamedCheck *check = WIRE_NEW(arena, Jury__V1__NamedCheck, jury__v1__named_check);

        if (check == NULL) {
            return;
        }
        check->name = wire_text(arena, group->checks[i].name);
        check->check_class = (Jury__V1__CheckClass)group->checks[i].check_class;
        check->check = check_new(arena, &group->checks[i].check);
        message->checks[message->n_checks++] = check;
    }
}

static Jury__V1__Drain *drain_new(struct wire_arena *arena, const struct drain_policy *drain)
{
    Jury__V1__Drain *message = WIRE_NEW(arena, Jury__V1__Drain, jury__v1__drain);

    if (message != NULL) {
        message->enabled_choice_case = JURY__V1__DRAIN__ENABLED_CHOICE_ENABLED;
        message->enabled = drain->is_on;
        message->timeout = wire_duration_new(arena, drain->timeout_ms * NS_PER_MS);
    }
    return message;
}

static void add_labels(struct wire_arena *arena, const struct server_group *group,
                       Jury__V1__ServerGroup *message)
{
    message->labels = wire_alloc_array(arena, group->n_labels, sizeof *message->labels);
    for (uint32_t i = 0; message->labels != NULL && i < group->n_labels; i++) {
        Jury__V1__Label *label = WIRE_NEW(arena, Jury__V1__Label, jury__v1__label);

        if (label == NULL) {
            return;
        }
        label->key = wire_text(arena, group->labels[i].key);
        label->value = wire_text(arena, group->labels[i].value);
        message->labels[message->n_labels++] = label;
    }
}

static void add_backends(struct wire_arena *arena, const struct server_group *group,
                         Jury__V1__ServerGroup *message)
{
    message->backends = wire_alloc_array(arena, group->n_backends, sizeof *message->backends);
    for (uint32_t i = 0; message->backends != NULL && i < group->n_backends; i++) {
        Jury__V1__Backend *backend = wire_backend_new(arena, &group->backends[i]);

        if (backend == NULL) {
            return;
        }
        message->backends[message->n_backends++] = backend;
    }
}

static Jury__V1__GuardPolicy *guard_new(struct wire_arena *arena, const struct guard_policy *guard)
{
    Jury__V1__GuardPolicy *message = WIRE_NEW(arena, Jury__V1__GuardPolicy, jury__v1__guard_policy);

    if (message != NULL) {
        message->velocity_choice_case = JURY__V1__GUARD_POLICY__VELOCITY_CHOICE_VELOCITY_PERCENT;
        message->velocity_percent = guard->velocity_percent;
        message->velocity_window = wire_duration_new(arena, guard->velocity_window_ms * NS_PER_MS);
        message->exempt_choice_case = JURY__V1__GUARD_POLICY__EXEMPT_CHOICE_EXEMPT_BELOW;
        message->exempt_below = guard->exempt_below;
        message->flap_hold = wire_duration_new(arena, guard->flap_hold_ms * NS_PER_MS);
        message->return_choice_case = JURY__V1__GUARD_POLICY__RETURN_CHOICE_RETURN_PERCENT;
        message->return_percent = guard->return_percent;
        message->return_window = wire_duration_new(arena, guard->return_window_ms * NS_PER_MS);
        message->slow_start = wire_duration_new(arena, guard->slow_start_ms * NS_PER_MS);
        message->shadow_choice_case = JURY__V1__GUARD_POLICY__SHADOW_CHOICE_SHADOW_CYCLES;
        message->shadow_cycles = guard->shadow_cycles;
        message->shadow_stop_choice_case = JURY__V1__GUARD_POLICY__SHADOW_STOP_CHOICE_SHADOW_STOP;
        message->shadow_stop = guard->shadow_stop;
        message->alarm_choice_case = JURY__V1__GUARD_POLICY__ALARM_CHOICE_CORRELATED_ALARM;
        message->correlated_alarm = guard->correlated_alarm;
    }
    return message;
}

Jury__V1__ServerGroup *wire_group_new(struct wire_arena *arena, const struct server_group *group)
{
    Jury__V1__ServerGroup *message = WIRE_NEW(arena, Jury__V1__ServerGroup, jury__v1__server_group);

    if (message == NULL) {
        return NULL;
    }
    message->name = wire_text(arena, group->name);
    message->profile = (Jury__V1__Profile)group->profile;
    message->type = (Jury__V1__GroupType)group->type;
    message->protocol = (Jury__V1__Protocol)group->protocol;
    message->vpc = wire_text(arena, group->vpc);
    message->address_family = (Jury__V1__AddressFamily)group->address_family;
    message->scheduler = (Jury__V1__Scheduler)group->scheduler;
    message->graded_weight = (Jury__V1__GradedWeight)group->graded_weight;
    if (group->n_checks == 0) {
        message->check = check_new(arena, &group->check);
    } else {
        add_checks(arena, group, message);
    }
    message->verdict = wire_verdict_rule_new(arena, &group->rule);
    message->all_bad = (Jury__V1__AllBad)group->all_bad;
    message->fail_open_threshold_case =
        JURY__V1__SERVER_GROUP__FAIL_OPEN_THRESHOLD_FAIL_OPEN_PERCENT;
    message->fail_open_percent = group->fail_open_percent;
    message->failover = (Jury__V1__Failover)group->failover;
    message->hold = (Jury__V1__HoldSwitch)group->hold;
    message->guard = guard_new(arena, &group->guard);
    message->drain = drain_new(arena, &group->drain);
    message->idle_timeout = wire_duration_new(arena, group->idle_timeout_ms * NS_PER_MS);
    add_labels(arena, group, message);
    add_backends(arena, group, message);
    return message;
}

Jury__V1__Listener *wire_listener_new(struct wire_arena *arena, const struct listener *listener)
{
    char text[ADDR_TEXT_BYTES];
    Jury__V1__Listener *message = WIRE_NEW(arena, Jury__V1__Listener, jury__v1__listener);

    if (message != NULL) {
        message->name = wire_text(arena, listener->name);
        message->address = wire_text(arena, addr_format(&listener->at.addr, text));
        message->port = listener->at.port;
        message->port_last = listener->port_last;
        message->protocol = (Jury__V1__Protocol)listener->protocol;
        message->group = wire_text(arena, listener->group);
        if (listener->idle_timeout_ms != 0) {
            message->idle_timeout = wire_duration_new(arena, listener->idle_timeout_ms * NS_PER_MS);
        }
    }
    return message;
}
