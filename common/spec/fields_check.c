/* The tables of a check. Ranges are spec.md 3's; help is printed by `nodectl explain`. */
#include "common/spec/fields.h"

#include "common/base/limits.h"

static const struct spec_field tcp_fields[] = {
    {.name = "handshake",
     .type = SPEC_TYPE_WORD,
     .flags = SPEC_BY_PROFILE,
     AT(tcp_check, handshake),
     .names = &names_tcp_handshake,
     .help = "full completes the connection and closes it at once; half-open answers the backend's "
             "SYN-ACK with a reset, so the application never sees the probe. It needs CAP_NET_RAW "
             "on each node: where that is missing the probe is inconclusive (LOCAL_NO_PERMISSION), "
             "never made in another way."},
    {.name = "close",
     .type = SPEC_TYPE_WORD,
     .flags = SPEC_BY_PROFILE,
     AT(tcp_check, close),
     .names = &names_tcp_close,
     .help = "How a full connection ends. rst leaves nothing behind on either side; fin is the "
             "quiet one for applications that log a reset, and keeps a port of the node for a "
             "minute after each probe. With check.tcp.handshake full only."},
    {.name = "onTimeout",
     .type = SPEC_TYPE_WORD,
     .flags = SPEC_BY_PROFILE,
     AT(tcp_check, on_timeout),
     .names = &names_tcp_on_timeout,
     .help = "What is sent when no SYN-ACK came within the timeout: nothing, or a reset, which "
             "needs CAP_NET_RAW."},
    {.name = "send",
     .type = SPEC_TYPE_DATA,
     .flags = SPEC_OMIT_ZERO,
     AT(tcp_check, send),
     .min = 1,
     .max = LIMIT_CHECK_LINE_BYTES,
     .help = "With expect only: what is said once the connection is there, such as "
             "\"PING\\r\\n\". Text, or hex digits behind \"hex:\"."},
    {.name = "expect",
     .type = SPEC_TYPE_DATA,
     .flags = SPEC_OMIT_ZERO,
     AT(tcp_check, expect),
     .min = 1,
     .max = LIMIT_CHECK_LINE_BYTES,
     .help =
         "With handshake full only: what the backend's first bytes must be, its greeting or its "
         "answer to send. Text, or hex digits behind \"hex:\". Without it the handshake is "
         "enough."},
};
static const struct spec_table tcp_table = {"tcp", tcp_fields, COUNT(tcp_fields),
                                            "How a tcp check connects and closes."};

static const struct spec_field http_fields[] = {
    {.name = "method",
     .type = SPEC_TYPE_WORD,
     .flags = SPEC_BY_PROFILE,
     AT(http_check, method),
     .names = &names_http_method,
     .help = "The request's method. The body is never waited for."},
    {.name = "version",
     .type = SPEC_TYPE_WORD,
     .flags = SPEC_BY_PROFILE,
     AT(http_check, version),
     .names = &names_http_version,
     .help = "The request's HTTP version."},
    {.name = "path",
     .type = SPEC_TYPE_TEXT,
     .flags = SPEC_BY_PROFILE,
     AT(http_check, path),
     .min = 1,
     .max = LIMIT_PATH_BYTES,
     .example = "/health",
     .help =
         "The request's path; begins with \"/\". A page made for the purpose says more than the "
         "front page."},
    {.name = "host",
     .type = SPEC_TYPE_WORD,
     .flags = SPEC_BY_PROFILE,
     AT(http_check, host),
     .names = &names_http_host,
     .help = "The Host header: the domain below, the probed address with or without the port, or "
             "none at all. With a domain set it is \"domain\" unless said otherwise."},
    {.name = "domain",
     .type = SPEC_TYPE_TEXT,
     .flags = SPEC_BY_PROFILE | SPEC_OMIT_ZERO,
     AT(http_check, domain),
     .min = 1,
     .max = LIMIT_DOMAIN_BYTES,
     .example = "www.example.com",
     .help = "The name sent as Host. Set it if the application answers by name."},
    {.name = "expect",
     .type = SPEC_TYPE_CODES,
     .flags = SPEC_BY_PROFILE,
     AT(http_check, expect),
     .example = "200-299,302",
     .help = "The status codes that pass: codes, ranges and classes within 200..599, separated by "
             "commas. Redirects are never followed."},
};
static const struct spec_table http_table = {"http", http_fields, COUNT(http_fields),
                                             "What an http check asks and what answer passes."};

static const struct spec_field udp_fields[] = {
    {.name = "method",
     .type = SPEC_TYPE_WORD,
     .flags = SPEC_BY_PROFILE,
     AT(udp_check, method),
     .names = &names_udp_method,
     .help =
         "What passes. port: silence until the timeout, or any answer; the word of the "
         "backend's host that the port is closed fails, so a host that is cut off and one whose "
         "filter drops everything pass too. port+echo: that, and an ICMP echo must be answered; "
         "a host that drops echo fails though its service works. It needs CAP_NET_RAW. "
         "exchange: the expected answer, and nothing else; the one that proves most."},
    {.name = "payload",
     .type = SPEC_TYPE_DATA,
     .flags = SPEC_BY_PROFILE,
     AT(udp_check, payload),
     .min = 1,
     .max = LIMIT_UDP_PAYLOAD_BYTES,
     .help = "The datagram that each probe sends, once. Text, or hex digits behind \"hex:\", with "
             "blanks between bytes if you like."},
    {.name = "expect",
     .type = SPEC_TYPE_DATA,
     .flags = SPEC_OMIT_ZERO,
     AT(udp_check, expect),
     .min = 1,
     .max = LIMIT_UDP_PAYLOAD_BYTES,
     .help =
         "With method exchange only: what the first answer must begin with. Text, or hex digits "
         "behind \"hex:\"."},
    {.name = "mask",
     .type = SPEC_TYPE_DATA,
     .flags = SPEC_OMIT_ZERO,
     AT(udp_check, mask),
     .min = 1,
     .max = LIMIT_CHECK_LINE_BYTES,
     .help = "Which bits of the first bytes of expect count, such as \"hex:ffff00\"; of the bytes "
             "behind it all do."},
};
static const struct spec_table udp_table = {"udp", udp_fields, COUNT(udp_fields),
                                            "What a udp check sends and what passes."};

static const struct spec_field tls_fields[] = {
    {.name = "serverName",
     .type = SPEC_TYPE_TEXT,
     .flags = SPEC_OMIT_ZERO,
     AT(tls_check, server_name),
     .min = 1,
     .max = LIMIT_DOMAIN_BYTES,
     .example = "www.example.com",
     .help = "The name that the probe asks for (SNI), and that the certificate must have with "
             "verify ca. It is never resolved: what is probed is the backend's address."},
    {.name = "verify",
     .type = SPEC_TYPE_WORD,
     .flags = SPEC_BY_PROFILE,
     AT(tls_check, verify),
     .names = &names_tls_verify,
     .help = "none: a check is about health, not identity, so any certificate passes and only its "
             "end is looked at. ca: name, time and signatures are verified by the certificates "
             "that each node's system has; a node that has none says so (LOCAL_NO_TRUST) and has "
             "no vote. Clients' certificates are never sent."},
    {.name = "minVersion",
     .type = SPEC_TYPE_WORD,
     .flags = SPEC_BY_PROFILE,
     AT(tls_check, min_version),
     .names = &names_tls_version,
     .help = "The oldest version of TLS that passes. 1.0 and 1.1 also allow the weak keys and "
             "ciphers of their time."},
    {.name = "alpn",
     .type = SPEC_TYPE_TEXT,
     .flags = SPEC_OMIT_ZERO,
     AT(tls_check, alpn),
     .min = 1,
     .max = LIMIT_ALPN_BYTES,
     .help = "The protocol that the backend must choose, such as \"h2\"; without it none is asked "
             "for."},
    {.name = "warnDays",
     .type = SPEC_TYPE_UINT,
     .flags = SPEC_BY_PROFILE,
     AT(tls_check, warn_days),
     .max = LIMIT_WARN_DAYS,
     .help = "So many days before the certificate ends `why` and `events` warn. It never "
             "makes a probe fail: with verify none an ended certificate passes. 0 = no warning."},
};
static const struct spec_table tls_table = {"tls", tls_fields, COUNT(tls_fields),
                                            "What a tls check asks and what passes."};

static const struct spec_field grpc_fields[] = {
    {.name = "service",
     .type = SPEC_TYPE_TEXT,
     .flags = SPEC_OMIT_ZERO,
     AT(grpc_check, service),
     .min = 1,
     .max = LIMIT_GRPC_SERVICE_BYTES,
     .example = "shop.Orders",
     .help = "The service whose health is asked for; without it that of the server as a whole."},
};
static const struct spec_table grpc_table = {
    "grpc", grpc_fields, COUNT(grpc_fields),
    "What a grpc check asks: grpc.health.v1.Health/Check, and only SERVING passes."};

/* The http part of a tls check, and the tls part of a grpc check, are there or not. */
static bool has_http(const void *check)
{
    const struct health_check *of = check;

    return of->type == CHECK_TYPE_HTTP || check_asks_http(of);
}

static bool has_tls(const void *check)
{
    const struct health_check *of = check;

    return of->type == CHECK_TYPE_TLS || check_is_secured(of);
}

/* The first two are of a check in a list. */
#define OWN_CHECK_FIELDS 2
static const struct spec_field check_fields[] = {
    {.name = "name",
     .type = SPEC_TYPE_TEXT,
     .flags = SPEC_REQUIRED,
     AT(named_check, name),
     .min = 1,
     .max = LIMIT_CHECK_NAME_BYTES,
     .example = "ready",
     .help = "How people call the check: a letter first, then letters, digits, \".\", \"_\" and "
             "\"-\"; no two of a group have one name."},
    {.name = "class",
     .type = SPEC_TYPE_WORD,
     AT(named_check, check_class),
     .names = &names_check_class,
     .help =
         "local: it asks what the backend itself can do, and its failure counts against it. "
         "dependency: it asks what the backend needs and others may need too; its failure marks "
         "the backend degraded, ejects nobody and moves no flow by itself."},
    {.name = "enabled",
     .type = SPEC_TYPE_BOOL,
     .flags = SPEC_BY_PROFILE,
     AT(health_check, is_enabled),
     .help = "false stops all probes of the group; its backends are then used as if healthy."},
    {.name = "type",
     .type = SPEC_TYPE_WORD,
     .flags = SPEC_BY_PROFILE,
     AT(health_check, type),
     .names = &names_check_type,
     .help = "The kind of probe. tls passes when the handshake is done, or with http beside it "
             "when that request is answered inside (https); grpc when the health service of the "
             "backend says SERVING, in the clear or with tls beside it."},
    {.name = "port",
     .type = SPEC_TYPE_UINT,
     .flags = SPEC_BY_PROFILE,
     AT(health_check, port),
     .max = 65535,
     .help = "The probed port; 0 = the backend's own port."},
    {.name = "timeout",
     .type = SPEC_TYPE_DURATION,
     .flags = SPEC_BY_PROFILE,
     AT(health_check, timeout_ms),
     .min = 100,
     .max = 300000,
     .help = "T: one deadline for connecting, sending and reading; progress never moves it."},
    {.name = "interval",
     .type = SPEC_TYPE_DURATION,
     .flags = SPEC_BY_PROFILE,
     AT(health_check, interval_ms),
     .min = 100,
     .max = 300000,
     .help = "I: from the end of one probe to the start of the next."},
    {.name = "pacing",
     .type = SPEC_TYPE_WORD,
     .flags = SPEC_BY_PROFILE,
     AT(health_check, pacing),
     .names = &names_pacing,
     .help =
         "What the interval measures: from the end of a probe to the start of the next, or from "
         "start to start without overlap."},
    {.name = "healthyThreshold",
     .type = SPEC_TYPE_UINT,
     .flags = SPEC_BY_PROFILE,
     AT(health_check, healthy_threshold),
     .min = 1,
     .max = 10,
     .help = "H, also called rise: passes in a row that make a node's opinion pass."},
    {.name = "unhealthyThreshold",
     .type = SPEC_TYPE_UINT,
     .flags = SPEC_BY_PROFILE,
     AT(health_check, unhealthy_threshold),
     .min = 1,
     .max = 10,
     .help = "U, also called fall: failures in a row that make a node's opinion fail. The failure "
             "window is T x U + I x (U - 1); with pacing fixed T + R x (U - 1), R = the first "
             "multiple of I above T."},
    {.name = "probers",
     .type = SPEC_TYPE_UINT,
     .flags = SPEC_BY_PROFILE,
     AT(health_check, probers),
     .min = 1,
     .max = LIMIT_NODES,
     .zero_word = "all",
     .example = "3",
     .help = "How many nodes probe each backend while all is well. Each node works out by itself "
             "which ones those are, their probes are interval / probers apart, and n and q of the "
             "rule are theirs. The first probe that fails makes all nodes probe at once, and "
             "whoever has voted since then counts; after a success window in which nothing failed "
             "the others stop. Not with rule local, which is the default of profile nlb, nor with "
             "at-least K of more than probers; more probers than nodes are all of them; fewer than "
             "3 is a warning. See `nodectl explain probers`."},
    {.name = "recheck",
     .type = SPEC_TYPE_BOOL,
     .flags = SPEC_BY_PROFILE,
     AT(health_check, recheck),
     .help = "true: when a probe of another node fails for the first time, this node does not wait "
             "for its interval to end but probes at once, at most once an interval. The "
             "thresholds stay as they are: one more result, not a vote."},
    {.name = "source",
     .type = SPEC_TYPE_WORD,
     .flags = SPEC_BY_PROFILE,
     AT(health_check, source),
     .names = &names_check_source,
     .help = "Which address of each node probes come from. node: what its probeSources say, else "
             "what its routes choose. 100.64.0.0/10: where probeSources.ipv4 says nothing, the "
             "node's own address in that range, the lowest if it has several; a node without one "
             "probes as by node, and apply and `nodectl node describe` warn of it. Over IPv6 both "
             "are the same. Groups whose checks differ in it share no probe. It is of probes only: "
             "a data plane's own connections to backends have to be let through as well."},
    {.name = "tcp",
     .type = SPEC_TYPE_OBJECT,
     .when_value = CHECK_TYPE_TCP,
     .when_offset = (uint32_t)offsetof(struct health_check, type),
     .when_text = "check.type tcp",
     AT(health_check, tcp),
     .fields = &tcp_table,
     .help = "Fields of a tcp check."},
    {.name = "http",
     .type = SPEC_TYPE_OBJECT,
     .when = has_http,
     .when_text = "check.type http or tls",
     AT(health_check, http),
     .fields = &http_table,
     .help = "Fields of an http check. Beside a tls check: the request that is made inside; "
             "\"http: {}\" is the profile's."},
    {.name = "udp",
     .type = SPEC_TYPE_OBJECT,
     .when_value = CHECK_TYPE_UDP,
     .when_offset = (uint32_t)offsetof(struct health_check, type),
     .when_text = "check.type udp",
     AT(health_check, udp),
     .fields = &udp_table,
     .help = "Fields of a udp check."},
    {.name = "tls",
     .type = SPEC_TYPE_OBJECT,
     .when = has_tls,
     .when_text = "check.type tls or grpc",
     AT(health_check, tls),
     .fields = &tls_table,
     .help = "Fields of a tls check. Beside a grpc check: it is made within TLS, by \"tls: {}\" "
             "with the defaults. It needs a part of the agent that can be left out when it is "
             "built: where that is so the probe is inconclusive (LOCAL_NOT_BUILT)."},
    {.name = "grpc",
     .type = SPEC_TYPE_OBJECT,
     .when_value = CHECK_TYPE_GRPC,
     .when_offset = (uint32_t)offsetof(struct health_check, type),
     .when_text = "check.type grpc",
     AT(health_check, grpc),
     .fields = &grpc_table,
     .help = "Fields of a grpc check, which an agent may be built without as well."},
};
const struct spec_table spec_check_table = {
    "check", check_fields + OWN_CHECK_FIELDS, COUNT(check_fields) - OWN_CHECK_FIELDS,
    "How each node probes the backends. Groups that agree in all of it share one probe."};
static const struct spec_table named_check_table = {
    "checks", check_fields, COUNT(check_fields),
    "Several checks of each backend, in place of check. probers and recheck are not available yet "
    "in a list, and enabled is always true."};
const struct spec_list spec_check_list = {
    .element_bytes = sizeof(struct named_check),
    .count_offset = (uint32_t)offsetof(struct server_group, n_checks),
    .n_min = 2,
    .n_max = LIMIT_CHECKS,
    .is_allocated = true,
    .element_word = "check",
    .fields = &named_check_table,
};
