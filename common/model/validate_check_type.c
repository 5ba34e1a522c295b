/* What the parts of a health check may be: those of its own type, and none of another. */
#include <string.h>

#include "common/model/names.h"
#include "common/model/validate.h"
#include "common/model/validate_field.h"

static bool has_tcp_fields(const struct tcp_check *tcp)
{
    return tcp->handshake != 0 || tcp->close != 0 || tcp->on_timeout != 0 ||
           tcp->send.n_bytes != 0 || tcp->expect.n_bytes != 0;
}

static bool has_http_fields(const struct http_check *http)
{
    static const struct http_codes none;

    return http->method != 0 || http->version != 0 || http->host != 0 || http->path[0] != '\0' ||
           http->domain[0] != '\0' || memcmp(&http->expect, &none, sizeof none) != 0;
}

static bool has_udp_fields(const struct udp_check *udp)
{
    return udp->method != 0 || udp->payload.n_bytes != 0 || udp->expect.n_bytes != 0 ||
           udp->mask.n_bytes != 0;
}

static bool has_tls_fields(const struct tls_check *tls)
{
    return tls->verify != 0 || tls->min_version != 0 || tls->warn_days != 0 ||
           tls->server_name[0] != '\0' || tls->alpn[0] != '\0';
}

/* The types whose checks may have a part of this name. */
struct part_rule {
    const char *part;
    const char *types; /* for a sentence */
    unsigned mask;     /* bits 1 << enum check_type */
};

/* Fields of a check type that is not the check's own must be zero: two checks that probe alike are
 * then equal and share a target (N19). */
static int check_foreign_fields(const struct object *object, const struct health_check *check,
                                struct errmsg *err)
{
    static const struct part_rule rules[] = {
        {"tcp", "tcp", 1U << CHECK_TYPE_TCP},
        {"http", "http or tls", 1U << CHECK_TYPE_HTTP | 1U << CHECK_TYPE_TLS},
        {"udp", "udp", 1U << CHECK_TYPE_UDP},
        {"tls", "tls or grpc", 1U << CHECK_TYPE_TLS | 1U << CHECK_TYPE_GRPC},
        {"grpc", "grpc", 1U << CHECK_TYPE_GRPC},
    };
    const bool is_there[] = {has_tcp_fields(&check->tcp), has_http_fields(&check->http),
                             has_udp_fields(&check->udp), has_tls_fields(&check->tls),
                             check->grpc.service[0] != '\0'};

    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        if (is_there[i] && (rules[i].mask >> check->type & 1U) == 0) {
            return object_refuse(object, err, ERR_INVALID,
                                 "check.%s is allowed only with check.type %s, this check is %s%s",
                                 rules[i].part, rules[i].types,
                                 names_word(&names_check_type, check->type),
                                 strcmp(rules[i].part, "tls") == 0 && check->type == CHECK_TYPE_HTTP
                                     ? "; for https write check.type tls and keep check.http"
                                     : "");
        }
    }
    return 0;
}

/* Two checks that probe alike have equal bytes (N19): behind the data all is zero. */
static bool is_clean(const uint8_t bytes[], size_t n_used, size_t n_bytes)
{
    for (size_t i = n_used; i < n_bytes; i++) {
        if (bytes[i] != 0) {
            return false;
        }
    }
    return n_used <= n_bytes;
}

static int check_lines(const struct object *object, const struct tcp_check *tcp, struct errmsg *err)
{
    if (tcp->expect.n_bytes != 0 && tcp->handshake != TCP_FULL) {
        return object_refuse(object, err, ERR_INVALID,
                             "check.tcp.expect is allowed only with check.tcp.handshake full");
    }
    if (tcp->send.n_bytes != 0 && tcp->expect.n_bytes == 0) {
        return object_refuse(object, err, ERR_INVALID,
                             "check.tcp.send is allowed only with check.tcp.expect");
    }
    if (!is_clean(tcp->send.bytes, tcp->send.n_bytes, sizeof tcp->send.bytes) ||
        !is_clean(tcp->expect.bytes, tcp->expect.n_bytes, sizeof tcp->expect.bytes)) {
        return object_refuse(object, err, ERR_INVALID,
                             "check.tcp.send and check.tcp.expect must have 1..%d bytes",
                             LIMIT_CHECK_LINE_BYTES);
    }
    return 0;
}

static int check_tcp(const struct object *object, const struct tcp_check *tcp, struct errmsg *err)
{
    int rc =
        validate_choice(object, "check.tcp.handshake", &names_tcp_handshake, tcp->handshake, err);

    if (rc == 0) {
        rc = validate_choice(object, "check.tcp.close", &names_tcp_close, tcp->close, err);
    }
    if (rc == 0) {
        rc = validate_choice(object, "check.tcp.onTimeout", &names_tcp_on_timeout, tcp->on_timeout,
                             err);
    }
    if (rc == 0 && tcp->close == TCP_CLOSE_FIN && tcp->handshake != TCP_FULL) {
        rc = object_refuse(object, err, ERR_INVALID,
                           "check.tcp.close fin is allowed only with check.tcp.handshake full");
    }
    return rc == 0 ? check_lines(object, tcp, err) : rc;
}

static int check_http_codes(const struct object *object, const struct http_codes *codes,
                            struct errmsg *err)
{
    unsigned n_codes = 0;

    for (unsigned code = HTTP_CODE_MIN; code <= HTTP_CODE_MAX; code++) {
        n_codes += http_codes_has(codes, code);
    }
    /* 400 codes in seven words: the bits behind the last code name none. */
    bool is_whole = codes->words[6] >> ((HTTP_CODE_MAX - HTTP_CODE_MIN + 1) % 64) == 0;
    if (n_codes == 0 || !is_whole) {
        return object_refuse(object, err, ERR_INVALID,
                             "check.http.expect must hold at least one status code within %d..%d",
                             HTTP_CODE_MIN, HTTP_CODE_MAX);
    }
    return 0;
}

static int check_http(const struct object *object, const struct http_check *http,
                      struct errmsg *err)
{
    int rc = validate_choice(object, "check.http.method", &names_http_method, http->method, err);

    if (rc == 0) {
        rc = validate_choice(object, "check.http.version", &names_http_version, http->version, err);
    }
    if (rc == 0) {
        rc = validate_choice(object, "check.http.host", &names_http_host, http->host, err);
    }
    if (rc != 0) {
        return rc;
    }
    if (http->path[0] != '/' || !validate_holds_only(http->path, "", true)) {
        return object_refuse(object, err, ERR_INVALID,
                             "check.http.path must be 1..%d visible ASCII characters beginning "
                             "with \"/\"",
                             LIMIT_PATH_BYTES);
    }
    if ((http->host == HTTP_HOST_DOMAIN) != (http->domain[0] != '\0')) {
        return object_refuse(object, err, ERR_INVALID,
                             "check.http.domain must be set with check.http.host domain and only "
                             "then");
    }
    if (!validate_holds_only(http->domain, ".-_:[]", false)) {
        return object_refuse(object, err, ERR_INVALID,
                             "check.http.domain must be 1..%d letters, digits, \".\", \"-\", "
                             "\"_\", or a port behind \":\"",
                             LIMIT_DOMAIN_BYTES);
    }
    return check_http_codes(object, &http->expect, err);
}

static int check_udp(const struct object *object, const struct udp_check *udp, struct errmsg *err)
{
    int rc = validate_choice(object, "check.udp.method", &names_udp_method, udp->method, err);

    if (rc != 0) {
        return rc;
    }
    if (udp->payload.n_bytes == 0 ||
        !is_clean(udp->payload.bytes, udp->payload.n_bytes, sizeof udp->payload.bytes)) {
        return object_refuse(object, err, ERR_INVALID, "check.udp.payload must be 1..%d bytes",
                             LIMIT_UDP_PAYLOAD_BYTES);
    }
    if ((udp->method == UDP_EXCHANGE) != (udp->expect.n_bytes != 0)) {
        return object_refuse(object, err, ERR_INVALID,
                             "check.udp.expect must be set with check.udp.method exchange and only "
                             "then");
    }
    if (!is_clean(udp->expect.bytes, udp->expect.n_bytes, sizeof udp->expect.bytes)) {
        return object_refuse(object, err, ERR_INVALID, "check.udp.expect must be 1..%d bytes",
                             LIMIT_UDP_PAYLOAD_BYTES);
    }
    if (udp->mask.n_bytes > udp->expect.n_bytes ||
        !is_clean(udp->mask.bytes, udp->mask.n_bytes, sizeof udp->mask.bytes)) {
        return object_refuse(object, err, ERR_INVALID,
                             "check.udp.mask must have 1..%d bytes and no more than "
                             "check.udp.expect, got %u",
                             LIMIT_CHECK_LINE_BYTES, udp->mask.n_bytes);
    }
    return 0;
}

static int check_tls(const struct object *object, const struct tls_check *tls, struct errmsg *err)
{
    static const struct range warn_days = {0, LIMIT_WARN_DAYS, "0..365", ""};
    int rc = validate_choice(object, "check.tls.verify", &names_tls_verify, tls->verify, err);

    if (rc == 0) {
        rc = validate_choice(object, "check.tls.minVersion", &names_tls_version, tls->min_version,
                             err);
    }
    if (rc == 0) {
        rc = validate_range(object, "check.tls.warnDays", tls->warn_days, &warn_days, err);
    }
    if (rc != 0) {
        return rc;
    }
    if (!validate_holds_only(tls->server_name, ".-_", false)) {
        return object_refuse(object, err, ERR_INVALID,
                             "check.tls.serverName must be 1..%d letters, digits, \".\", \"-\" or "
                             "\"_\"",
                             LIMIT_DOMAIN_BYTES);
    }
    if (tls->verify == TLS_VERIFY_CA && tls->server_name[0] == '\0') {
        return object_refuse(object, err, ERR_INVALID,
                             "check.tls.serverName must be set with check.tls.verify ca: it is "
                             "the name that the certificate must have");
    }
    if (!validate_holds_only(tls->alpn, "", true)) {
        return object_refuse(object, err, ERR_INVALID,
                             "check.tls.alpn must be 1..%d visible ASCII characters, such as "
                             "\"h2\" or \"imap\"",
                             LIMIT_ALPN_BYTES);
    }
    return 0;
}

static int check_grpc(const struct object *object, const struct health_check *check,
                      struct errmsg *err)
{
    if (!validate_holds_only(check->grpc.service, "", true)) {
        return object_refuse(object, err, ERR_INVALID,
                             "check.grpc.service must be 1..%d visible ASCII characters",
                             LIMIT_GRPC_SERVICE_BYTES);
    }
    if (!check_is_secured(check)) {
        return 0;
    }
    if (check->tls.alpn[0] != '\0') {
        return object_refuse(object, err, ERR_INVALID,
                             "check.tls.alpn must be left out with check.type grpc: it is h2");
    }
    return check_tls(object, &check->tls, err);
}

int validate_check_type(const struct object *object, const struct server_group *group,
                        const struct health_check *check, struct errmsg *err)
{
    const char *word = names_word(&names_check_type, check->type);
    int rc = 0;

    if (group->profile == PROFILE_GWLB && check->type != CHECK_TYPE_TCP &&
        check->type != CHECK_TYPE_HTTP) {
        return object_refuse(object, err, ERR_INVALID,
                             "check.type must be tcp or http with profile gwlb, got %s", word);
    }
    switch ((enum check_type)check->type) {
    case CHECK_TYPE_TCP:
        rc = check_foreign_fields(object, check, err);
        return rc != 0 ? rc : check_tcp(object, &check->tcp, err);
    case CHECK_TYPE_HTTP:
        rc = check_foreign_fields(object, check, err);
        return rc != 0 ? rc : check_http(object, &check->http, err);
    case CHECK_TYPE_UDP:
        rc = check_foreign_fields(object, check, err);
        return rc != 0 ? rc : check_udp(object, &check->udp, err);
    case CHECK_TYPE_TLS:
        rc = check_foreign_fields(object, check, err);
        rc = rc != 0 ? rc : check_tls(object, &check->tls, err);
        return rc != 0 || !check_asks_http(check) ? rc : check_http(object, &check->http, err);
    case CHECK_TYPE_GRPC:
        rc = check_foreign_fields(object, check, err);
        return rc != 0 ? rc : check_grpc(object, check, err);
    case CHECK_TYPE_NONE:
        break;
    }
    return rc; /* no type: refused before */
}
