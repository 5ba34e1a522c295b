/* A health check: how a backend is probed, with every default filled in (profile.h).
 *
 * All times in milliseconds, 100..300000 (spec.md 3). Zero-initialise, so that two equal checks are
 * equal byte for byte in their encoded form. */
#ifndef JURY_MODEL_CHECK_H
#define JURY_MODEL_CHECK_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/addr.h"
#include "common/base/limits.h"

enum check_type {
    CHECK_TYPE_NONE = 0,
    CHECK_TYPE_TCP = 1,
    CHECK_TYPE_HTTP = 2,
    CHECK_TYPE_UDP = 3,
    CHECK_TYPE_TLS = 4,
    CHECK_TYPE_GRPC = 5
};

enum tcp_handshake {
    TCP_HANDSHAKE_NONE = 0,
    TCP_HALF_OPEN = 1,
    TCP_FULL = 2
};
enum tcp_close {
    TCP_CLOSE_NONE = 0,
    TCP_CLOSE_RST = 1,
    TCP_CLOSE_FIN = 2
};
enum tcp_on_timeout {
    TCP_ON_TIMEOUT_NONE = 0,
    TCP_ON_TIMEOUT_NOTHING = 1,
    TCP_ON_TIMEOUT_RST = 2
};
enum http_method {
    HTTP_METHOD_NONE = 0,
    HTTP_GET = 1,
    HTTP_HEAD = 2
};
enum http_version {
    HTTP_VERSION_NONE = 0,
    HTTP_1_0 = 1,
    HTTP_1_1 = 2
};
enum http_host {
    HTTP_HOST_NONE = 0,
    HTTP_HOST_DOMAIN = 1,
    HTTP_HOST_ADDRESS = 2,
    HTTP_HOST_ADDRESS_PORT = 3,
    HTTP_HOST_OMITTED = 4
};
enum udp_method {
    UDP_METHOD_NONE = 0,
    UDP_PORT = 1,
    UDP_PORT_ECHO = 2,
    UDP_EXCHANGE = 3
};
/* How much of the backend's certificate is looked at. */
enum tls_verify {
    TLS_VERIFY_UNSET = 0, /* the check has no TLS */
    TLS_VERIFY_NONE = 1,  /* when it ends, for a warning; health, not identity */
    TLS_VERIFY_CA = 2     /* its name, its time and who signed it, by the node's own store */
};
enum tls_version {
    TLS_VERSION_NONE = 0,
    TLS_VERSION_1_0 = 1,
    TLS_VERSION_1_1 = 2,
    TLS_VERSION_1_2 = 3,
    TLS_VERSION_1_3 = 4
};
/* Which of the node's addresses probes come from, over IPv4; over IPv6 always as by
 * CHECK_SOURCE_NODE. */
enum check_source {
    CHECK_SOURCE_NONE = 0,
    CHECK_SOURCE_NODE = 1,         /* what the node is told to use, else what its routes choose */
    CHECK_SOURCE_SHARED_SPACE = 2, /* if it is told nothing: its own of 100.64.0.0/10 (S32) */
};
enum check_pacing {
    PACING_NONE = 0,
    PACING_END_TO_START = 1,
    PACING_FIXED = 2
};

/* Expected status codes 200..599, one bit each. */
#define HTTP_CODE_MIN 200
#define HTTP_CODE_MAX 599
struct http_codes {
    uint64_t words[7];
};

/* Bytes that are sent or expected; behind n_bytes all are zero. Both have the same beginning: the
 * tables of common/spec rely on it. */
struct check_data {
    uint16_t n_bytes;
    uint8_t bytes[LIMIT_UDP_PAYLOAD_BYTES];
};
struct check_line {
    uint16_t n_bytes;
    uint8_t bytes[LIMIT_CHECK_LINE_BYTES];
};

struct tcp_check {
    uint8_t handshake;        /* enum tcp_handshake */
    uint8_t close;            /* enum tcp_close */
    uint8_t on_timeout;       /* enum tcp_on_timeout */
    struct check_line send;   /* once connected, with `expect` only; may be empty */
    struct check_line expect; /* TCP_FULL only: what the answer begins with; empty = the handshake
                                 is enough */
};

struct http_check {
    uint8_t method;  /* enum http_method */
    uint8_t version; /* enum http_version */
    uint8_t host;    /* enum http_host */
    char path[LIMIT_PATH_BYTES + 1];
    char domain[LIMIT_DOMAIN_BYTES + 1]; /* with HTTP_HOST_DOMAIN only */
    struct http_codes expect;
};

struct udp_check {
    uint8_t method; /* enum udp_method */
    struct check_data payload;
    struct check_data expect; /* UDP_EXCHANGE only: what the answer begins with */
    struct check_line mask;   /* of the first bytes of `expect`, the bits that count; else all */
};

struct tls_check {
    uint8_t verify;                           /* enum tls_verify */
    uint8_t min_version;                      /* enum tls_version */
    uint16_t warn_days;                       /* 0 = no warning */
    char server_name[LIMIT_DOMAIN_BYTES + 1]; /* sent as SNI, never resolved; empty = none */
    char alpn[LIMIT_ALPN_BYTES + 1];          /* the protocol that must be chosen; empty = none */
};

struct grpc_check {
    char service[LIMIT_GRPC_SERVICE_BYTES + 1]; /* empty = the server as a whole */
};

struct health_check {
    bool is_enabled;
    uint8_t type;   /* enum check_type */
    uint8_t pacing; /* enum check_pacing */
    uint8_t source; /* enum check_source */
    uint16_t port;  /* 0 = the backend's port */
    uint32_t timeout_ms;
    uint32_t interval_ms;
    uint8_t healthy_threshold;   /* H, "rise", 1..10 */
    uint8_t unhealthy_threshold; /* U, "fall", 1..10 */
    struct tcp_check tcp;        /* CHECK_TYPE_TCP only; else zero */
    struct http_check http;      /* CHECK_TYPE_HTTP, and of CHECK_TYPE_TLS if one is sent inside;
                                    else zero */
    struct udp_check udp;        /* CHECK_TYPE_UDP only; else zero */
    struct tls_check tls;        /* CHECK_TYPE_TLS, and of CHECK_TYPE_GRPC if it is within TLS; else
                                    zero */
    struct grpc_check grpc;      /* CHECK_TYPE_GRPC only; else zero */
    /* N7: how many observers probe each target while all is well (agent/core/share.h); 0 = all.
     * 1..LIMIT_NODES; as many as there are observers, or more, is all. */
    uint8_t probers;
    bool recheck; /* N24: another node's first failure makes this one probe at once */
    /* CHECK_TYPE_NONE only, what group_settle_checks makes: kinds of the checks it stands for. */
    uint8_t part_kinds;
};

/* Kinds of probes as bits, 1 << enum check_type: of the check, or of those that it stands for. */
uint8_t check_kinds(const struct health_check *check);

/* One of several checks of a group. A `local` one asks what the backend itself can do; a
 * `dependency` asks what the backend needs and others may need too: its failure degrades, and
 * ejects nobody (N20). */
enum check_class {
    CHECK_CLASS_NONE = 0,
    CHECK_LOCAL = 1,
    CHECK_DEPENDENCY = 2
};
struct named_check {
    struct health_check check; /* first: the tables of common/spec rely on it */
    uint8_t check_class;       /* enum check_class */
    char name[LIMIT_CHECK_NAME_BYTES + 1];
};

/* Whether it has a request of its fields `http`, in the clear or inside TLS. */
bool check_asks_http(const struct health_check *check);
/* Whether it is made within TLS. */
bool check_is_secured(const struct health_check *check);
/* Whether a UDP check waits for T before it passes, since silence is what it wants (S48, S98). */
bool check_passes_by_silence(const struct health_check *check);
/* Targets of the check that differ from node to node in who probes them, or when. */
bool check_is_shared(const struct health_check *check);

/* Whether it wants its probes of an address to come from 100.64.0.0/10. */
bool check_is_from_shared_space(const struct health_check *check, const struct addr *to);
/* Whether the address is in 100.64.0.0/10 (RFC 6598; S32). */
bool addr_is_shared_space(const struct addr *addr);

bool http_codes_has(const struct http_codes *codes, unsigned code);
/* first..last within 200..599. */
void http_codes_add(struct http_codes *codes, unsigned first, unsigned last);

/* From the start of one probe to the start of the next, of probes that take probe_ms: P + I; with
 * PACING_FIXED the first multiple of I above P, since a beat that falls into a probe is skipped. */
uint64_t check_round_ms(const struct health_check *check, uint64_t probe_ms);

/* T x U + I x (U - 1), with PACING_FIXED T + the round of T x (U - 1): from the start of the first
 * failing probe, when every probe times out (S14, S21: 5s/2s/3 gives 19 s). */
uint64_t check_failure_window_ms(const struct health_check *check);
/* r x H + I x (H - 1) for a response time r (S15, S22); r = T where silence is what passes. */
uint64_t check_success_window_ms(const struct health_check *check, uint64_t response_ms);

/* Probes that a node begins in a second at most, in all and to one address, where its own options
 * say nothing else (agent/core/probe_budget.h). No profile comes to that: a node has as many
 * targets as LIMIT_BACKENDS, the shortest interval of a profile is 2 s. */
#define PROBE_BUDGET_NODE 100000
#define PROBE_BUDGET_NODE_MIN 10
#define PROBE_BUDGET_NODE_MAX 10000000
#define PROBE_BUDGET_ADDRESS 5000
#define PROBE_BUDGET_ADDRESS_MIN 10 /* one target at the shortest interval */
#define PROBE_BUDGET_ADDRESS_MAX 10000000

/* What one target sees of n_observers, in probes per 1000 s, when probes take no time. */
struct check_load {
    unsigned n_probers;        /* while all is well: `probers`, or all there are */
    uint64_t steady_per_1000s; /* then */
    /* While probes fail, over a longer time: with probers or recheck each observer begins two an
     * interval at most, one of them at once when another's probe failed; all begin together. */
    uint64_t worst_per_1000s;
};
struct check_load check_load_of(const struct health_check *check, unsigned n_observers);

/* What one of n_observers begins of that in a second, on average over many targets. n_observers:
 * 0 = not known: as if each probed all. */
struct check_demand {
    double steady;
    double worst;
};
struct check_demand check_demand_of(const struct health_check *check, unsigned n_observers);

/* The definition of a target: all that is probed (spec.md 1). Two scopes with equal definitions
 * share one target and one probe. `check.port` is 0 here: it is resolved into `to.port`. */
struct target_definition {
    struct endpoint to;
    const struct health_check *check; /* whoever makes a definition says how long it lives */
};

#endif
