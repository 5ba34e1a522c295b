#include "tests/lib/world_probe.h"

#include <stdio.h>
#include <string.h>

#include "agent/core/http_request.h"
#include "tests/lib/world_ask.h"

#define SOURCE_PORT 40001

struct probing {
    const struct probe_target *target;
    struct truth truth;
    uint64_t start_ns, end_ns;
    struct probe_report *report;
};

static struct probe_step *put(const struct probing *probing, uint64_t at_ns,
                              enum probe_step_kind kind)
{
    return probe_trace_add(&probing->report->trace, at_ns, kind);
}

static void put_bytes(const struct probing *probing, uint64_t at_ns, enum probe_step_kind kind,
                      const void *bytes, size_t n_bytes)
{
    probe_step_set_bytes(put(probing, at_ns, kind), bytes, n_bytes);
}

static void put_syns(const struct probing *probing)
{
    const uint64_t repeats[] = {WORLD_SECOND, 3 * WORLD_SECOND};

    put(probing, probing->start_ns, PROBE_STEP_SYN_SENT);
    for (size_t i = 0; i < 2 && probing->truth.reason == REASON_CONNECT_TIMEOUT; i++) {
        if (probing->start_ns + repeats[i] < probing->end_ns) {
            put(probing, probing->start_ns + repeats[i], PROBE_STEP_SYN_REPEATED);
        }
    }
}

/* Connected: what is said and answered. */
static void put_talk(const struct probing *probing)
{
    const struct target_definition *definition = &probing->target->definition;
    char request[HTTP_REQUEST_BYTES_MAX], status[40];

    put(probing, probing->start_ns, PROBE_STEP_SYN_ACK_RECEIVED);
    if (definition->check->tcp.handshake == TCP_HALF_OPEN) {
        put(probing, probing->end_ns, PROBE_STEP_RST_SENT);
        return;
    }
    put(probing, probing->start_ns, PROBE_STEP_ACK_SENT);
    if (definition->check->type == CHECK_TYPE_HTTP) {
        size_t n = http_request_build(definition, request);

        put_bytes(probing, probing->start_ns, PROBE_STEP_DATA_SENT, request, n);
    }
    if (probing->truth.http_status != 0) {
        int n = snprintf(status, sizeof status, "HTTP/1.1 %u\r\n", probing->truth.http_status);

        put_bytes(probing, probing->end_ns, PROBE_STEP_DATA_RECEIVED, status, (size_t)n);
    }
    if (probing->truth.reason == REASON_RECV_RESPONSE_TIMEOUT) {
        put(probing, probing->end_ns, PROBE_STEP_DEADLINE);
    }
    put(probing, probing->end_ns, PROBE_STEP_RST_SENT);
}

static void put_tcp(const struct probing *probing)
{
    put_syns(probing);
    switch ((enum probe_reason)probing->truth.reason) {
    case REASON_CONNECT_TIMEOUT:
        put(probing, probing->end_ns, PROBE_STEP_DEADLINE);
        break;
    case REASON_CONNECT_FAILED:
        put(probing, probing->end_ns, PROBE_STEP_RST_RECEIVED);
        break;
    default:
        put_talk(probing);
    }
}

static void put_udp(const struct probing *probing)
{
    const struct target_definition *definition = &probing->target->definition;
    const struct check_data *payload = &definition->check->udp.payload;

    put_bytes(probing, probing->start_ns, PROBE_STEP_DATAGRAM_SENT, payload->bytes,
              payload->n_bytes);
    if (probing->truth.reason == REASON_PORT_UNREACHABLE) {
        struct probe_step *step = put(probing, probing->end_ns, PROBE_STEP_ICMP_ERROR);

        step->from = definition->to.addr;
        probe_step_set_icmp(step, false, 3, 3);
    } else {
        put(probing, probing->end_ns, PROBE_STEP_DEADLINE);
    }
}

static const char *engine_of(const struct health_check *check)
{
    return check->type == CHECK_TYPE_UDP           ? "udp"
           : check->tcp.handshake == TCP_HALF_OPEN ? "packet"
                                                   : "connect";
}

void world_probe(struct world *world, const struct world_node *node,
                 const struct probe_target *target, struct probe_report *ret_report)
{
    struct probing probing = {.target = target,
                              .truth = world_answer_now(world, node, &target->definition),
                              .start_ns = world_local_ns(world, node),
                              .report = ret_report};
    char source[ADDR_TEXT_BYTES];

    probing.end_ns = probing.start_ns + probing.truth.response_ns;
    memset(ret_report, 0, sizeof *ret_report);
    ret_report->deadline_ns = probing.start_ns + target->definition.check->timeout_ms * WORLD_MS;
    ret_report->result = (struct probe_result){
        .id = target->id,
        .probe_class = (uint8_t)probe_reason_class(probing.truth.reason),
        .reason = probing.truth.reason,
        .http_status = probing.truth.http_status,
        .start_ns = probing.start_ns,
        .end_ns = probing.end_ns,
    };
    snprintf(ret_report->engine, sizeof ret_report->engine, "%s",
             engine_of(target->definition.check));
    if (probe_reason_class(probing.truth.reason) == PROBE_INCONCLUSIVE) {
        return; /* a fault of the node: nothing was sent */
    }
    snprintf(source, sizeof source, "10.255.0.%u", (unsigned)node->id);
    (void)addr_parse(source, &ret_report->trace.source.addr, NULL);
    ret_report->trace.source.port = SOURCE_PORT;
    if (target->definition.check->type == CHECK_TYPE_UDP) {
        put_udp(&probing);
    } else {
        put_tcp(&probing);
    }
}
