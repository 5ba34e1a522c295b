/* The tables of a server group. Ranges are spec.md 3's; help is printed by `nodectl explain`. */
#include "common/spec/fields.h"

#include <stddef.h>

#include "common/base/limits.h"

#define AT(struct_name, member)                               \
    .offset = (uint32_t)offsetof(struct struct_name, member), \
    .bytes = (uint32_t)sizeof(((struct struct_name *)0)->member)
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const struct name_row family_rows[] = {{ADDR_IPV4, "ipv4"}, {ADDR_IPV6, "ipv6"}};
static const struct name_table names_family = {"address family", family_rows, COUNT(family_rows)};

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
static const struct spec_table check_table = {
    "check", check_fields + OWN_CHECK_FIELDS, COUNT(check_fields) - OWN_CHECK_FIELDS,
    "How each node probes the backends. Groups that agree in all of it share one probe."};
static const struct spec_table named_check_table = {
    "checks", check_fields, COUNT(check_fields),
    "Several checks of each backend, in place of check. probers and recheck are not available yet "
    "in a list, and enabled is always true."};
static const struct spec_list check_list = {
    .element_bytes = sizeof(struct named_check),
    .count_offset = (uint32_t)offsetof(struct server_group, n_checks),
    .n_min = 2,
    .n_max = LIMIT_CHECKS,
    .is_allocated = true,
    .element_word = "check",
    .fields = &named_check_table,
};

static const struct spec_field drain_fields[] = {
    {.name = "enabled",
     .type = SPEC_TYPE_BOOL,
     .flags = SPEC_BY_PROFILE,
     AT(drain_policy, is_on),
     .help = "Whether a removed backend's flows are closed when the timeout has passed."},
    {.name = "timeout",
     .type = SPEC_TYPE_DURATION,
     .flags = SPEC_BY_PROFILE,
     AT(drain_policy, timeout_ms),
     .max = 3600000,
     .help = "How long flows may live on; 0s closes them at once."},
};
static const struct spec_table drain_table = {"drain", drain_fields, COUNT(drain_fields),
                                              "What happens to flows of a backend that leaves."};

static const struct spec_field guard_fields[] = {
    {.name = "velocityPercent",
     .type = SPEC_TYPE_UINT,
     .flags = SPEC_BY_PROFILE,
     AT(guard_policy, velocity_percent),
     .max = 100,
     .help =
         "At most this share of the group, rounded down, and at least one backend, may leave by "
         "the votes in any velocityWindow; more of them are pending and stay in service. The "
         "limit makes an ejection wait for up to one vote interval, so that all nodes choose "
         "the same. 0 = no limit."},
    {.name = "velocityWindow",
     .type = SPEC_TYPE_DURATION,
     .flags = SPEC_BY_PROFILE,
     AT(guard_policy, velocity_window_ms),
     .min = GUARD_WINDOW_MS_MIN,
     .max = GUARD_WINDOW_MS_MAX,
     .help = "The time that velocityPercent is for; it slides."},
    {.name = "exemptBelow",
     .type = SPEC_TYPE_UINT,
     .flags = SPEC_BY_PROFILE,
     AT(guard_policy, exempt_below),
     .max = LIMIT_BACKENDS_PER_GROUP,
     .help = "Groups of fewer enabled backends have no such limit."},
    {.name = "flapHold",
     .type = SPEC_TYPE_DURATION,
     .flags = SPEC_BY_PROFILE,
     AT(guard_policy, flap_hold_ms),
     .min = GUARD_FLAP_HOLD_MS_MIN,
     .max = GUARD_FLAP_HOLD_MS_MAX,
     .zero_word = "off",
     .help = "A backend that went down again within 10 minutes returns when the votes have said "
             "healthy for this long without a break; each further time within 10 minutes doubles "
             "it, up to 5 minutes. Going down is not delayed by it, but waits for one vote "
             "interval."},
    {.name = "returnPercent",
     .type = SPEC_TYPE_UINT,
     .flags = SPEC_BY_PROFILE,
     AT(guard_policy, return_percent),
     .max = 100,
     .help = "At most this share of the group, rounded down, and at least one backend, may return "
             "by the votes in any returnWindow. A group in fail-open or closed waits for nothing. "
             "0 = no limit."},
    {.name = "returnWindow",
     .type = SPEC_TYPE_DURATION,
     .flags = SPEC_BY_PROFILE,
     AT(guard_policy, return_window_ms),
     .min = GUARD_WINDOW_MS_MIN,
     .max = GUARD_WINDOW_MS_MAX,
     .help = "The time that returnPercent is for; it slides."},
    {.name = "slowStart",
     .type = SPEC_TYPE_DURATION,
     .flags = SPEC_BY_PROFILE,
     AT(guard_policy, slow_start_ms),
     .min = GUARD_SLOW_START_MS_MIN,
     .max = GUARD_SLOW_START_MS_MAX,
     .zero_word = "off",
     .help = "For so long the weight of a backend that takes new flows again, or for the first "
             "time, rises in ten steps from a tenth to all of it, on each node by itself. None "
             "while no other backend has all of its weight, and none in fail-open and at a cold "
             "start. Only with schedulers that take turns (wrr), not with profile gwlb."},
    {.name = "shadowCycles",
     .type = SPEC_TYPE_UINT,
     .flags = SPEC_BY_PROFILE,
     AT(guard_policy, shadow_cycles),
     .max = GUARD_SHADOW_CYCLES_MAX,
     .help = "After a change of the check its votes are shown for so many cycles (timeout + "
             "interval) and take nothing out. 0 = they may at once."},
    {.name = "shadowStop",
     .type = SPEC_TYPE_BOOL,
     .flags = SPEC_BY_PROFILE,
     AT(guard_policy, shadow_stop),
     .help = "The shadow does not end while the changed check would take out more than "
             "velocityPercent of the group (10 % when that is 0; at least one backend): it is kept "
             "until fewer would go out, the check is changed again, or shadowCycles or shadowStop "
             "are switched off."},
    {.name = "correlatedAlarm",
     .type = SPEC_TYPE_BOOL,
     .flags = SPEC_BY_PROFILE,
     AT(guard_policy, correlated_alarm),
     .help = "An alarm, and nothing else, when at least 3 backends and over 30 % of the group go "
             "bad within one failure window."},
};
static const struct spec_table guard_table = {
    "guard", guard_fields, COUNT(guard_fields),
    "Limits on how fast backends are taken out and return."};

static void fill_guard(unsigned preset, void *ret)
{
    *(struct guard_policy *)ret = guard_policy_of((enum guard_preset)preset);
}

static const struct spec_field backend_fields[] = {
    {.name = "at",
     .type = SPEC_TYPE_ENDPOINT,
     AT(backend, at),
     .example = "10.0.0.11:8080",
     .help = "Address and port in one, IPv6 in brackets: \"[2001:db8::10]:80\". Or write address "
             "and port apart."},
    {.name = "address",
     .type = SPEC_TYPE_ADDRESS,
     .flags = SPEC_ALTERNATE,
     AT(backend, at.addr),
     .help = "The address alone, without brackets; with port."},
    {.name = "port",
     .type = SPEC_TYPE_UINT,
     .flags = SPEC_ALTERNATE,
     AT(backend, at.port),
     .min = 1,
     .max = 65535,
     .help = "The port alone; with address."},
    {.name = "instance",
     .flags = SPEC_LATER,
     .help = "Id of an instance (groups of type instance)."},
    {.name = "weight",
     .type = SPEC_TYPE_UINT,
     .flags = SPEC_BY_PROFILE,
     AT(backend, weight),
     .max = 100,
     .help = "Share of new flows; 0 = none, but still probed, and its open flows live on. With "
             "profile gwlb 0 or 100 only."},
    {.name = "adminState",
     .type = SPEC_TYPE_WORD,
     .flags = SPEC_OMIT_ZERO | SPEC_ZERO_KEEPS,
     AT(backend, admin_state),
     .names = &names_admin_state,
     .help =
         "What the operator wants. Left out, a backend that is there keeps the state that it has "
         "and a new one is enabled. draining takes no new flows; maintenance is not probed."},
    {.name = "zone",
     .type = SPEC_TYPE_TEXT,
     .flags = SPEC_OMIT_ZERO,
     AT(backend, zone),
     .min = 1,
     .max = LIMIT_ZONE_BYTES,
     .example = "zone-a",
     .help = "Where the backend is; for people."},
    {.name = "description",
     .type = SPEC_TYPE_TEXT,
     .flags = SPEC_OMIT_ZERO,
     AT(backend, description),
     .min = 1,
     .max = LIMIT_DESCRIPTION_BYTES,
     .example = "rack 4",
     .help = "Free text for people."},
};
static const struct spec_table backend_table = {
    "backends", backend_fields, COUNT(backend_fields),
    "The backends; each address and port once, in any spelling."};
static const struct spec_list backend_list = {
    .element_bytes = sizeof(struct backend),
    .count_offset = (uint32_t)offsetof(struct server_group, n_backends),
    .n_max = LIMIT_BACKENDS_PER_GROUP,
    .is_allocated = true,
    .element_word = "backend",
    .fields = &backend_table,
};

static const struct spec_field group_fields[] = {
    {.name = "profile",
     .type = SPEC_TYPE_WORD,
     .flags = SPEC_REQUIRED,
     AT(server_group, profile),
     .names = &names_profile,
     .example = "nlb",
     .help = "Whose defaults fill what the document leaves out: see nodectl explain profile NAME."},
    {.name = "type",
     .type = SPEC_TYPE_WORD,
     .flags = SPEC_BY_PROFILE,
     AT(server_group, type),
     .names = &names_group_type,
     .later = "instance",
     .help = "Backends by address (ip) or by instance; cannot be changed later."},
    {.name = "protocol",
     .type = SPEC_TYPE_WORD,
     .flags = SPEC_BY_PROFILE,
     AT(server_group, protocol),
     .names = &names_protocol,
     .help = "What is forwarded. Groups of geneve, udp and tcp_udp are checked, and shown in the "
             "table; listeners for them come later."},
    {.name = "addressFamily",
     .type = SPEC_TYPE_WORD,
     AT(server_group, address_family),
     .names = &names_family,
     .zero_word = "any",
     .help = "Which addresses the backends may have."},
    {.name = "vpc", .flags = SPEC_LATER, .help = "The network of a group of instances."},
    {.name = "scheduler",
     .type = SPEC_TYPE_WORD,
     .flags = SPEC_BY_PROFILE,
     AT(server_group, scheduler),
     .names = &names_scheduler,
     .later = "all but 5-tuple and wrr",
     .help = "How a new flow finds its backend."},
    {.name = "gradedWeight",
     .type = SPEC_TYPE_WORD,
     AT(server_group, graded_weight),
     .names = &names_graded_weight,
     .zero_word = "off",
     .help =
         "A healthy backend gets a part of its weight, never less than a tenth, and no verdict "
         "changes: votes = as many percent as of its counted votes pass; latency = the less, "
         "the slower this node's own probes are answered than in the middle of the group. "
         "Latency needs 3 healthy backends, and differs from node to node. Only with "
         "schedulers that take turns (wrr), not with profile gwlb. See: nodectl explain flows."},
    {.name = "check",
     .type = SPEC_TYPE_OBJECT,
     AT(server_group, check),
     .unless_offset = (uint32_t)offsetof(struct server_group, n_checks),
     .fields = &check_table,
     .help = "The health check."},
    {.name = "checks",
     .type = SPEC_TYPE_LIST,
     .flags = SPEC_OMIT_ZERO,
     AT(server_group, checks),
     .list = &check_list,
     .help = "In place of check: 2 to 8 checks of each backend, each a probe of its own. A node's "
             "vote is what pass makes of its opinions of the local ones. See: nodectl explain "
             "checks."},
    {.name = "pass",
     .type = SPEC_TYPE_PASS,
     .flags = SPEC_OMIT_ZERO,
     AT(server_group, pass),
     .help = "With checks only: how many of the local ones must pass for a node to vote pass: all "
             "(when it is left out), any, or at-least N."},
    {.name = "rule",
     .type = SPEC_TYPE_RULE,
     .flags = SPEC_BY_PROFILE,
     AT(server_group, rule),
     .example = "majority",
     .help = "How the votes of all nodes become this node's verdict: local, any, majority, "
             "zone-majority, all, \"at-least N\", \"percent N\", or {down: RULE, up: RULE} set "
             "apart. See: nodectl explain rules."},
    {.name = "belowQuorum",
     .type = SPEC_TYPE_WORD,
     .flags = SPEC_BY_PROFILE,
     AT(server_group, rule.below_quorum),
     .names = &names_below_quorum,
     .help = "What decides while fewer than a majority of nodes can be heard: hold takes nothing "
             "new out; local lets the node's own vote decide (for clusters of two)."},
    {.name = "allBad",
     .type = SPEC_TYPE_WORD,
     .flags = SPEC_BY_PROFILE,
     AT(server_group, all_bad),
     .names = &names_all_bad,
     .help = "What happens to new flows when no backend is healthy: fail-open uses all of them, "
             "fail-closed none."},
    {.name = "failOpenPercent",
     .type = SPEC_TYPE_UINT,
     .flags = SPEC_BY_PROFILE,
     AT(server_group, fail_open_percent),
     .max = 100,
     .help = "Fail-open begins when fewer than this share of the backends is healthy; 0 = when "
             "none is."},
    {.name = "guard",
     .type = SPEC_TYPE_OBJECT,
     AT(server_group, guard),
     .fields = &guard_table,
     .names = &names_guard_preset,
     .fill = fill_guard,
     .help = "Limits on how fast backends are taken out and return: each by hand, or one word. "
             "standard is velocityPercent 10, flapHold 30s, returnPercent 25, and slowStart 30s "
             "where the scheduler takes turns; off is none of them. See: nodectl explain guards."},
    {.name = "hold",
     .type = SPEC_TYPE_WORD,
     .flags = SPEC_OMIT_ZERO | SPEC_ZERO_KEEPS,
     AT(server_group, hold),
     .names = &names_hold,
     .example = "off",
     .help = SPEC_HOLD_HELP("this group")},
    {.name = "drain",
     .type = SPEC_TYPE_OBJECT,
     AT(server_group, drain),
     .fields = &drain_table,
     .help = "What happens to flows of a backend that leaves."},
    {.name = "existingFlows",
     .flags = SPEC_LATER,
     .help = "Policy for open flows of a backend that turned unhealthy or left."},
    {.name = "failover",
     .type = SPEC_TYPE_WORD,
     .flags = SPEC_BY_PROFILE | SPEC_OMIT_ZERO,
     AT(server_group, failover),
     .names = &names_failover,
     .later = "rebalance",
     .help = "Profile gwlb only: whether open flows move when their backend fails."},
    {.name = "idleTimeout",
     .type = SPEC_TYPE_DURATION,
     .flags = SPEC_BY_PROFILE,
     AT(server_group, idle_timeout_ms),
     .min = 1000,
     .max = 6000000,
     .help = "A flow without a packet for this long has ended."},
    {.name = "backends",
     .type = SPEC_TYPE_LIST,
     AT(server_group, backends),
     .list = &backend_list,
     .help = "The backends; each address and port once, in any spelling."},
};
const struct spec_table spec_group_table = {
    "spec", group_fields, COUNT(group_fields),
    "Backends behind one service, how they are checked and what follows from it."};

static const struct spec_field group_metadata_fields[] = {
    {.name = "name",
     .type = SPEC_TYPE_TEXT,
     .flags = SPEC_REQUIRED,
     AT(server_group, name),
     .min = 2,
     .max = LIMIT_NAME_BYTES,
     .example = "web",
     .help = "Name of the group: a letter first, then letters, digits, \".\", \"_\" and \"-\"."},
    {.name = "labels",
     .type = SPEC_TYPE_LABELS,
     .flags = SPEC_OMIT_ZERO,
     AT(server_group, labels),
     .example = "{tier: front}",
     .help = "Up to 20 pairs of words for people and scripts."},
};
const struct spec_table spec_group_metadata_table = {
    "metadata", group_metadata_fields, COUNT(group_metadata_fields), "What the group is called."};
