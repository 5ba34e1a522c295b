/* Outcomes of a probe, opinions, verdict words: the vocabulary of spec.md 1, 4 and 5.
 *
 * Numbers travel in votes, files and the API and are never reused. */
#ifndef JURY_MODEL_REASON_H
#define JURY_MODEL_REASON_H

enum probe_class {
    PROBE_CLASS_NONE = 0,
    PROBE_PASS = 1,
    PROBE_FAIL = 2,
    PROBE_INCONCLUSIVE = 3 /* a fault of this node, or no proof: moves no streak */
};

/* X(name, number, class, word of the API, sentence for people) */
#define PROBE_REASONS(X)                                                           \
    X(REASON_NONE, 0, PROBE_CLASS_NONE, "NONE", "no result yet")                   \
    X(REASON_OK, 1, PROBE_PASS, "OK", "the probe passed")                          \
    X(REASON_CONNECT_TIMEOUT, 2, PROBE_FAIL, "CONNECT_TIMEOUT",                    \
      "no answer to the connection attempt within the timeout")                    \
    X(REASON_CONNECT_FAILED, 3, PROBE_FAIL, "CONNECT_FAILED",                      \
      "the connection was refused or the address is unreachable")                  \
    X(REASON_RECV_RESPONSE_TIMEOUT, 4, PROBE_FAIL, "RECV_RESPONSE_TIMEOUT",        \
      "no complete answer within the timeout to what was asked")                   \
    X(REASON_CONNECT_INTERRUPT, 5, PROBE_FAIL, "CONNECT_INTERRUPT",                \
      "the backend closed or reset the connection before it answered")             \
    X(REASON_HTTP_CODE_NOT_MATCH, 6, PROBE_FAIL, "HTTP_CODE_NOT_MATCH",            \
      "the HTTP status is not among the expected ones")                            \
    X(REASON_HTTP_INVALID_HEADER, 7, PROBE_FAIL, "HTTP_INVALID_HEADER",            \
      "the answer is not valid HTTP or its header is too long")                    \
    X(REASON_PORT_UNREACHABLE, 8, PROBE_FAIL, "PORT_UNREACHABLE",                  \
      "the backend said that the UDP port is closed")                              \
    X(REASON_NO_ECHO_REPLY, 9, PROBE_FAIL, "NO_ECHO_REPLY",                        \
      "no ICMP echo reply within the timeout")                                     \
    X(REASON_RESPONSE_MISMATCH, 10, PROBE_FAIL, "RESPONSE_MISMATCH",               \
      "the answer is not the expected one")                                        \
    X(REASON_SILENT, 11, PROBE_PASS, "SILENT",                                     \
      "nothing came within the timeout, also no word that the UDP port is closed") \
    X(REASON_ECHO, 12, PROBE_PASS, "ECHO",                                         \
      "the ICMP echo was answered, and no word came that the UDP port is closed")  \
    X(REASON_TLS_HANDSHAKE_FAILED, 13, PROBE_FAIL, "TLS_HANDSHAKE_FAILED",         \
      "the TLS handshake failed: no TLS, or another version or protocol")          \
    X(REASON_TLS_CERT_EXPIRED, 14, PROBE_FAIL, "TLS_CERT_EXPIRED",                 \
      "the certificate, or one above it, has ended or has not begun")              \
    X(REASON_TLS_CERT_WRONG_NAME, 15, PROBE_FAIL, "TLS_CERT_WRONG_NAME",           \
      "the certificate is not of the server name")                                 \
    X(REASON_TLS_CERT_UNTRUSTED, 16, PROBE_FAIL, "TLS_CERT_UNTRUSTED",             \
      "the certificate is not signed by an authority that this node trusts")       \
    X(REASON_GRPC_NOT_SERVING, 17, PROBE_FAIL, "GRPC_NOT_SERVING",                 \
      "the gRPC health service does not say SERVING")                              \
    X(REASON_GRPC_STATUS, 18, PROBE_FAIL, "GRPC_STATUS",                           \
      "the gRPC call ended with an error: its status")                             \
    X(REASON_GRPC_INVALID, 19, PROBE_FAIL, "GRPC_INVALID",                         \
      "the answer is not valid HTTP/2 or gRPC, or the call was refused")           \
    X(REASON_LOCAL_NO_DESCRIPTOR, 32, PROBE_INCONCLUSIVE, "LOCAL_NO_DESCRIPTOR",   \
      "this node has no free file descriptor")                                     \
    X(REASON_LOCAL_NO_PORT, 33, PROBE_INCONCLUSIVE, "LOCAL_NO_PORT",               \
      "this node has no free local port")                                          \
    X(REASON_LOCAL_NO_BUFFER, 34, PROBE_INCONCLUSIVE, "LOCAL_NO_BUFFER",           \
      "this node has no memory or buffer for the probe")                           \
    X(REASON_LOCAL_NO_PERMISSION, 35, PROBE_INCONCLUSIVE, "LOCAL_NO_PERMISSION",   \
      "this node may not send this kind of probe")                                 \
    X(REASON_LOCAL_SOURCE_MISSING, 36, PROBE_INCONCLUSIVE, "LOCAL_SOURCE_MISSING", \
      "this node does not own the probe source address")                           \
    X(REASON_LOCAL_NO_ROUTE, 37, PROBE_INCONCLUSIVE, "LOCAL_NO_ROUTE",             \
      "this node has no route or its link is down")                                \
    X(REASON_LOCAL_FORBIDDEN, 38, PROBE_INCONCLUSIVE, "LOCAL_FORBIDDEN",           \
      "this node's own list of allowed prefixes forbids the address")              \
    X(REASON_LOCAL_LATE, 39, PROBE_INCONCLUSIVE, "LOCAL_LATE",                     \
      "this node was too slow or was suspended during the probe")                  \
    X(REASON_LOCAL_UNSUPPORTED, 40, PROBE_INCONCLUSIVE, "LOCAL_UNSUPPORTED",       \
      "this node cannot make this kind of probe")                                  \
    X(REASON_LOCAL_NOT_BUILT, 42, PROBE_INCONCLUSIVE, "LOCAL_NOT_BUILT",           \
      "this node's agent was built without this kind of probe")                    \
    X(REASON_LOCAL_NO_TRUST, 43, PROBE_INCONCLUSIVE, "LOCAL_NO_TRUST",             \
      "this node has no certificates of authorities to verify by")                 \
    X(REASON_LOCAL_DELAYED, 44, PROBE_INCONCLUSIVE, "LOCAL_DELAYED",               \
      "this node's probe budget delays the probe: its last result is out of date") \
    X(REASON_ICMP_LIMITED, 41, PROBE_INCONCLUSIVE, "ICMP_LIMITED",                 \
      "silence that proves nothing: the backend's host sends no more ICMP errors for now")

enum probe_reason {
#define REASON_ENUM(name, number, class, word, sentence) name = number,
    PROBE_REASONS(REASON_ENUM)
#undef REASON_ENUM
};

/* Unknown numbers (a newer peer's) answer as "UNKNOWN_REASON". */
const char *probe_reason_word(unsigned reason);
/* One that holds for every kind of check. */
const char *probe_reason_sentence(unsigned reason);
/* Of a check of that type (enum check_type; CHECK_TYPE_NONE: not known): with a connection or a
 * datagram where there was one. */
const char *probe_reason_sentence_of(unsigned reason, unsigned check_type);
/* By its word, in any case. REASON_NONE: no reason is called so. */
unsigned probe_reason_find(const char *word);
enum probe_class probe_reason_class(unsigned reason);

/* What one node thinks of a target after its thresholds; two bits in a vote chunk. */
enum opinion {
    OPINION_NONE = 0,
    OPINION_PASS = 1,
    OPINION_FAIL = 2
};
const char *opinion_word(enum opinion opinion); /* none, pass, fail */

/* The state of a backend in a scope (spec.md 5). */
enum health_state {
    HEALTH_NONE = 0,
    HEALTH_INITIAL = 1,
    HEALTH_HEALTHY = 2,
    HEALTH_UNHEALTHY = 3,
    HEALTH_UNAVAILABLE = 4, /* checks off; used as healthy */
    HEALTH_UNUSED = 5       /* maintenance; not probed */
};
const char *health_state_word(enum health_state state);

/* Marks beside the state: a set of bits. */
enum health_mark {
    MARK_HELD = 1 << 0,
    MARK_PENDING = 1 << 1,
    MARK_SUSPECT = 1 << 2,
    MARK_GRAY = 1 << 3,
    MARK_FLAPPING = 1 << 4,
    MARK_WARMING = 1 << 5,
    MARK_DEGRADED = 1 << 6 /* a check of class dependency is down by the votes; it steers nothing */
};

enum group_state {
    GROUP_NONE = 0,
    GROUP_OK = 1,
    GROUP_DEGRADED = 2,
    GROUP_FAIL_OPEN = 3,
    GROUP_CLOSED = 4
};
const char *group_state_word(enum group_state state);

#endif
