/* What one probe did, step by step, for people who asked for it (`nodectl probe`). Nobody decides
 * anything by it, and a probe that nobody looks at has none. Plain values; one writer. */
#ifndef JURY_CORE_PROBE_TRACE_H
#define JURY_CORE_PROBE_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/core/probe.h"
#include "common/base/addr.h"

#define PROBE_TRACE_STEPS 32 /* more are counted and left out */
#define PROBE_TRACE_TEXT_BYTES 96

/* The numbers are those of jury.v1.ProbeStepKind. */
enum probe_step_kind {
    PROBE_STEP_NONE = 0,
    PROBE_STEP_SYN_SENT = 1,
    PROBE_STEP_SYN_REPEATED = 2,
    PROBE_STEP_SYN_ACK_RECEIVED = 3,
    PROBE_STEP_ACK_SENT = 4,
    PROBE_STEP_RST_RECEIVED = 5,
    PROBE_STEP_RST_SENT = 6,
    PROBE_STEP_FIN_RECEIVED = 7,
    PROBE_STEP_FIN_SENT = 8,
    PROBE_STEP_DATA_SENT = 9,
    PROBE_STEP_DATA_RECEIVED = 10,
    PROBE_STEP_DATAGRAM_SENT = 11,
    PROBE_STEP_DATAGRAM_RECEIVED = 12,
    PROBE_STEP_ECHO_SENT = 13,
    PROBE_STEP_ECHO_RECEIVED = 14,
    PROBE_STEP_ICMP_ERROR = 15,
    PROBE_STEP_IGNORED = 16,  /* a packet that is no answer to this probe */
    PROBE_STEP_DEADLINE = 17, /* T is over */
    PROBE_STEP_TLS_ESTABLISHED = 18,
    PROBE_STEP_N
};

struct probe_step {
    uint64_t at_ns; /* monotonic */
    uint8_t kind;   /* enum probe_step_kind */
    uint32_t n_bytes;
    struct addr from; /* ICMP_ERROR: who said so, ADDR_NONE = not known */
    char text[PROBE_TRACE_TEXT_BYTES];
};

struct probe_trace {
    struct endpoint source; /* as soon as it is known; ADDR_NONE: nothing was sent */
    uint32_t n_steps;
    uint32_t n_left_out;
    struct probe_step steps[PROBE_TRACE_STEPS];
};

/* A probe that somebody asked for, and all that there is to say about it. */
struct probe_report {
    struct probe_result result;
    uint64_t deadline_ns;
    char engine[16]; /* "": none made it */
    struct probe_trace trace;
};

/* The next step, its text empty. NULL: no trace, or no room. */
struct probe_step *probe_trace_add(struct probe_trace *trace, uint64_t at_ns,
                                   enum probe_step_kind kind);

/* What was sent or received, its first line alone, as printable text: others are \r, \n, \xNN and
 * the backslash \\. Cut with "..." where it does not fit. */
void probe_step_set_bytes(struct probe_step *step, const void *bytes, size_t n_bytes);

/* What an ICMP error of this type and code says: "port unreachable". */
void probe_step_set_icmp(struct probe_step *step, bool is_ipv6, uint8_t type, uint8_t code);

#endif
