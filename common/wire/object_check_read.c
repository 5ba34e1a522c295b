/* Checks: message -> model. */
#include <string.h>

#include "common/model/names.h"
#include "common/model/profile.h"
#include "common/wire/read_check.h"
#include "common/wire/read_field.h"

/* to: n_max bytes, n_bytes in use. What the message does not say stays. */
struct data_place {
    uint16_t *n_bytes;
    uint8_t *to;
    size_t n_max;
};

static int read_data(const char *field, const ProtobufCBinaryData *data,
                     const struct data_place *place, struct errmsg *err)
{
    if (data->len > place->n_max) {
        return errmsg_set(err, ERR_INVALID, "%s must be at most %zu bytes, got %zu", field,
                          place->n_max, data->len);
    }
    if (data->len > 0) {
        memset(place->to, 0, place->n_max);
        memcpy(place->to, data->data, data->len);
        *place->n_bytes = (uint16_t)data->len;
    }
    return 0;
}

static int read_long(const char *field, const ProtobufCBinaryData *data, struct check_data *to,
                     struct errmsg *err)
{
    const struct data_place place = {&to->n_bytes, to->bytes, sizeof to->bytes};

    return read_data(field, data, &place, err);
}

static int read_line(const char *field, const ProtobufCBinaryData *data, struct check_line *to,
                     struct errmsg *err)
{
    const struct data_place place = {&to->n_bytes, to->bytes, sizeof to->bytes};

    return read_data(field, data, &place, err);
}

static int read_tcp(const Jury__V1__TcpCheck *message, struct tcp_check *tcp, struct errmsg *err)
{
    int rc = read_enum("check.tcp.handshake", &names_tcp_handshake, (int)message->handshake,
                       &tcp->handshake, err);

    if (rc == 0) {
        rc = read_enum("check.tcp.close", &names_tcp_close, (int)message->close, &tcp->close, err);
    }
    if (rc == 0) {
        rc = read_enum("check.tcp.on_timeout", &names_tcp_on_timeout, (int)message->on_timeout,
                       &tcp->on_timeout, err);
    }
    if (rc == 0) {
        rc = read_line("check.tcp.send", &message->send, &tcp->send, err);
    }
    return rc == 0 ? read_line("check.tcp.expect", &message->expect, &tcp->expect, err) : rc;
}

static int read_codes(const Jury__V1__HttpCheck *message, struct http_codes *codes,
                      struct errmsg *err)
{
    if (message->n_expect > 0) {
        *codes = (struct http_codes){0};
    }
    for (size_t i = 0; i < message->n_expect; i++) {
        unsigned first = message->expect[i]->first;
        unsigned last = message->expect[i]->last != 0 ? message->expect[i]->last : first;

        if (first < HTTP_CODE_MIN || last > HTTP_CODE_MAX || first > last) {
            return errmsg_set(err, ERR_INVALID,
                              "check.http.expect must be ranges within %d..%d, got %u..%u",
                              HTTP_CODE_MIN, HTTP_CODE_MAX, first, last);
        }
        http_codes_add(codes, first, last);
    }
    return 0;
}

static int read_http(const Jury__V1__HttpCheck *message, struct http_check *http,
                     struct errmsg *err)
{
    int rc = read_enum("check.http.method", &names_http_method, (int)message->method, &http->method,
                       err);

    if (rc == 0) {
        rc = read_enum("check.http.version", &names_http_version, (int)message->version,
                       &http->version, err);
    }
    if (rc == 0 && message->host == JURY__V1__HTTP_CHECK__HOST__HOST_UNSPECIFIED &&
        message->domain[0] != '\0') {
        http->host = HTTP_HOST_DOMAIN;
    }
    if (rc == 0) {
        rc = read_enum("check.http.host", &names_http_host, (int)message->host, &http->host, err);
    }
    if (rc == 0 && message->path[0] != '\0') {
        rc = read_text("check.http.path", message->path, http->path, sizeof http->path, err);
    }
    if (rc == 0) {
        rc =
            read_text("check.http.domain", message->domain, http->domain, sizeof http->domain, err);
    }
    return rc == 0 ? read_codes(message, &http->expect, err) : rc;
}

static int read_udp(const Jury__V1__UdpCheck *message, struct udp_check *udp, struct errmsg *err)
{
    int rc =
        read_enum("check.udp.method", &names_udp_method, (int)message->method, &udp->method, err);

    if (rc == 0) {
        rc = read_long("check.udp.payload", &message->payload, &udp->payload, err);
    }
    if (rc == 0) {
        rc = read_long("check.udp.expect", &message->expect, &udp->expect, err);
    }
    return rc == 0 ? read_line("check.udp.mask", &message->mask, &udp->mask, err) : rc;
}

static int read_tls(const Jury__V1__TlsCheck *message, struct tls_check *tls, struct errmsg *err)
{
    int rc =
        read_enum("check.tls.verify", &names_tls_verify, (int)message->verify, &tls->verify, err);

    if (rc == 0) {
        rc = read_enum("check.tls.min_version", &names_tls_version, (int)message->min_version,
                       &tls->min_version, err);
    }
    if (rc == 0 && message->warn_choice_case == JURY__V1__TLS_CHECK__WARN_CHOICE_WARN_DAYS) {
        rc = read_u16("check.tls.warn_days", message->warn_days, LIMIT_WARN_DAYS, &tls->warn_days,
                      err);
    }
    if (rc == 0) {
        rc = read_text("check.tls.server_name", message->server_name, tls->server_name,
                       sizeof tls->server_name, err);
    }
    return rc == 0 ? read_text("check.tls.alpn", message->alpn, tls->alpn, sizeof tls->alpn, err)
                   : rc;
}

/* The part of the check's own type; parts of another type are refused. */
static int read_check_type(const Jury__V1__HealthCheck *message, struct health_check *check,
                           struct errmsg *err)
{
    const char *foreign = NULL;

    if (message->tcp != NULL && check->type != CHECK_TYPE_TCP) {
        foreign = "tcp";
    } else if (message->http != NULL && check->type != CHECK_TYPE_HTTP &&
               check->type != CHECK_TYPE_TLS) {
        foreign = "http";
    } else if (message->udp != NULL && check->type != CHECK_TYPE_UDP) {
        foreign = "udp";
    } else if (message->tls != NULL && check->type != CHECK_TYPE_TLS &&
               check->type != CHECK_TYPE_GRPC) {
        foreign = "tls";
    } else if (message->grpc != NULL && check->type != CHECK_TYPE_GRPC) {
        foreign = "grpc";
    }
    if (foreign != NULL) {
        return errmsg_set(err, ERR_INVALID,
                          "check.%s is allowed only with check.type %s, this check is %s", foreign,
                          strcmp(foreign, "http") == 0  ? "http or tls"
                          : strcmp(foreign, "tls") == 0 ? "tls or grpc"
                                                        : foreign,
                          names_word(&names_check_type, check->type));
    }
    int rc = message->tcp != NULL ? read_tcp(message->tcp, &check->tcp, err) : 0;
    if (rc == 0 && message->http != NULL) {
        rc = read_http(message->http, &check->http, err);
    }
    if (rc == 0 && message->udp != NULL) {
        rc = read_udp(message->udp, &check->udp, err);
    }
    if (rc == 0 && message->tls != NULL) {
        rc = read_tls(message->tls, &check->tls, err);
    }
    if (rc == 0 && message->grpc != NULL) {
        rc = read_text("check.grpc.service", message->grpc->service, check->grpc.service,
                       sizeof check->grpc.service, err);
    }
    return rc;
}

/* Thresholds: 0 leaves the profile's. */
static int read_thresholds(const Jury__V1__HealthCheck *message, struct health_check *check,
                           struct errmsg *err)
{
    int rc = 0;

    if (message->healthy_threshold != 0) {
        rc = read_u8("check.healthy_threshold", message->healthy_threshold, 1, 10,
                     &check->healthy_threshold, err);
    }
    if (rc == 0 && message->unhealthy_threshold != 0) {
        rc = read_u8("check.unhealthy_threshold", message->unhealthy_threshold, 1, 10,
                     &check->unhealthy_threshold, err);
    }
    return rc;
}

int read_check(const Jury__V1__HealthCheck *message, const struct server_group *group,
               struct health_check *check, struct errmsg *err)
{
    uint8_t type = CHECK_TYPE_NONE;
    int rc = read_enum("check.type", &names_check_type, (int)message->type, &type, err);

    if (rc != 0) {
        return rc;
    }
    profile_check_defaults((enum profile)group->profile, (enum protocol)group->protocol,
                           (enum check_type)type, check);
    if (check->type == CHECK_TYPE_TLS && message->http != NULL) {
        profile_http_defaults((enum profile)group->profile, &check->http);
    }
    if (check->type == CHECK_TYPE_GRPC && message->tls != NULL) {
        profile_tls_defaults(&check->tls);
    }
    if (message->enabled_choice_case == JURY__V1__HEALTH_CHECK__ENABLED_CHOICE_ENABLED) {
        check->is_enabled = message->enabled;
    }
    if (message->port_choice_case == JURY__V1__HEALTH_CHECK__PORT_CHOICE_PORT) {
        rc = read_port("check.port", message->port, 0, &check->port, err);
    }
    if (rc == 0) {
        rc = read_enum("check.pacing", &names_pacing, (int)message->pacing, &check->pacing, err);
    }
    if (rc == 0) {
        rc = read_duration("check.timeout", message->timeout, &check->timeout_ms, err);
    }
    if (rc == 0) {
        rc = read_duration("check.interval", message->interval, &check->interval_ms, err);
    }
    if (rc == 0) {
        rc = read_thresholds(message, check, err);
    }
    if (rc == 0) {
        rc = read_u8("check.probers", message->probers, 0, LIMIT_NODES, &check->probers, err);
    }
    if (rc == 0) {
        rc = read_enum("check.source", &names_check_source, (int)message->source, &check->source,
                       err);
    }
    check->recheck = message->recheck;
    return rc == 0 ? read_check_type(message, check, err) : rc;
}

int read_named_check(const Jury__V1__NamedCheck *message, const struct server_group *group,
                     struct named_check *check, struct errmsg *err)
{
    static const Jury__V1__HealthCheck by_profile = JURY__V1__HEALTH_CHECK__INIT;
    const Jury__V1__HealthCheck *how = message->check != NULL ? message->check : &by_profile;

    check->check_class = CHECK_LOCAL;
    int rc = read_text("name", message->name, check->name, sizeof check->name, err);
    if (rc == 0) {
        rc = read_enum("check_class", &names_check_class, (int)message->check_class,
                       &check->check_class, err);
    }
    if (rc == 0) {
        rc = read_check(how, group, &check->check, err);
    }
    if (rc != 0) {
        errmsg_prefix(err, "check %.40s", message->name);
    }
    return rc;
}
