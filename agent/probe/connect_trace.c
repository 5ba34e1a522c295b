#include "agent/probe/connect_trace.h"

#include <linux/tcp.h> /* its struct tcp_info is whole, that of libc is not */
#include <netinet/in.h>
#include <sys/socket.h>

#include "agent/probe/connect_socket.h"
#include "agent/probe/icmp_told.h"
#include "agent/probe/probe_note.h"

/* RFC 9293 3.3.2, as the kernel numbers them. */
#define STATE_SYN_SENT 2
#define STATE_CLOSED 7
#define STATE_CLOSE_WAIT 8

static bool ask(int fd, struct tcp_info *ret_info)
{
    socklen_t n_bytes = sizeof *ret_info;

    return fd >= 0 && getsockopt(fd, IPPROTO_TCP, TCP_INFO, ret_info, &n_bytes) == 0;
}

void connect_trace_opened(struct connect_engine *engine, const struct attempt *attempt)
{
    if (engine->base.trace == NULL || attempt->fd < 0) {
        return;
    }
    /* Without it the error that ends a connection attempt is known, and not who sent it. */
    (void)icmp_told_ask(attempt->fd, attempt->probe.target->definition.to.addr.family);
    probe_note_source(&engine->base, attempt->fd);
    probe_note_at(&engine->base, attempt->probe.start_ns, PROBE_STEP_SYN_SENT);
}

static uint32_t count_syns(const struct probe_trace *trace)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < trace->n_steps; i++) {
        n += trace->steps[i].kind == PROBE_STEP_SYN_SENT ||
             trace->steps[i].kind == PROBE_STEP_SYN_REPEATED;
    }
    return n;
}

void connect_trace_look(struct connect_engine *engine)
{
    struct tcp_info info = {0};

    for (uint32_t i = 0; engine->base.trace != NULL && i < engine->base.capacity; i++) {
        const struct attempt *attempt = &engine->attempts[i];

        if (attempt->step != STEP_CONNECTING || !ask(attempt->fd, &info) ||
            info.tcpi_state != STATE_SYN_SENT) {
            continue;
        }
        for (uint32_t n = count_syns(engine->base.trace);
             n < 1 + (uint32_t)info.tcpi_retransmits && n < PROBE_TRACE_STEPS; n++) {
            probe_note(&engine->base, PROBE_STEP_SYN_REPEATED);
        }
    }
}

void connect_trace_connecting(struct connect_engine *engine, const struct attempt *attempt,
                              enum probe_reason reason)
{
    struct probe_engine *base = &engine->base;
    struct tcp_info info = {0};
    struct icmp_told told;

    if (base->trace == NULL) {
        return;
    }
    if (reason == REASON_NONE || reason == REASON_CONNECT_INTERRUPT) {
        const int no = 0;

        /* From here on such a message would end what the kernel keeps alive without it. */
        (void)setsockopt(attempt->fd, SOL_IP, IP_RECVERR, &no, sizeof no);
        (void)setsockopt(attempt->fd, SOL_IPV6, IPV6_RECVERR, &no, sizeof no);
        probe_note(base, PROBE_STEP_SYN_ACK_RECEIVED);
        if (!connect_socket_saves_ack(attempt->probe.target->definition.check)) {
            probe_note(base, PROBE_STEP_ACK_SENT);
        }
        if (reason == REASON_CONNECT_INTERRUPT) {
            probe_note(base, PROBE_STEP_RST_RECEIVED);
        }
    } else if (icmp_told_next(attempt->fd, &told) == ICMP_READ_ERROR &&
               told.sender.family != ADDR_NONE) {
        probe_note_icmp(base, &told.sender, told.type, told.code);
    } else if (reason == REASON_CONNECT_FAILED && ask(attempt->fd, &info)) {
        if (info.tcpi_segs_in > 0) {
            probe_note(base, PROBE_STEP_RST_RECEIVED);
        } else {
            probe_note_text(base, PROBE_STEP_ICMP_ERROR,
                            "unreachable, by an ICMP error or by this node's own lookup");
        }
    }
}

void connect_trace_closing(struct connect_engine *engine, const struct attempt *attempt,
                           enum ending ending)
{
    struct tcp_info info = {0};

    if (engine->base.trace == NULL || !ask(attempt->fd, &info) ||
        info.tcpi_state == STATE_SYN_SENT || info.tcpi_state == STATE_CLOSED) {
        return; /* closing sends nothing then */
    }
    if (info.tcpi_state == STATE_CLOSE_WAIT) {
        probe_note(&engine->base, PROBE_STEP_FIN_RECEIVED);
    }
    probe_note(&engine->base, ending == END_BY_RST ? PROBE_STEP_RST_SENT : PROBE_STEP_FIN_SENT);
}
