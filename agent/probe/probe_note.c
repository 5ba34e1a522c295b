#include "agent/probe/probe_note.h"

#include <stdio.h>

#include "agent/probe/connect_socket.h"
#include "common/base/clock.h"

static struct probe_step *add(struct probe_engine *engine, enum probe_step_kind kind)
{
    return engine->trace == NULL ? NULL
                                 : probe_trace_add(engine->trace, clock_monotonic_ns(), kind);
}

void probe_note(struct probe_engine *engine, enum probe_step_kind kind)
{
    (void)add(engine, kind);
}

void probe_note_at(struct probe_engine *engine, uint64_t at_ns, enum probe_step_kind kind)
{
    (void)probe_trace_add(engine->trace, at_ns, kind);
}

void probe_note_text(struct probe_engine *engine, enum probe_step_kind kind, const char *text)
{
    struct probe_step *step = add(engine, kind);

    if (step != NULL) {
        snprintf(step->text, sizeof step->text, "%s", text);
    }
}

void probe_note_bytes(struct probe_engine *engine, enum probe_step_kind kind, const void *bytes,
                      size_t n_bytes)
{
    probe_step_set_bytes(add(engine, kind), bytes, n_bytes);
}

void probe_note_sealed(struct probe_engine *engine, enum probe_step_kind kind, size_t n_bytes)
{
    struct probe_step *step = add(engine, kind);

    if (step != NULL) {
        step->n_bytes = (uint32_t)n_bytes;
        snprintf(step->text, sizeof step->text, "of TLS");
    }
}

void probe_note_icmp(struct probe_engine *engine, const struct addr *from, uint8_t type,
                     uint8_t code)
{
    struct probe_step *step = add(engine, PROBE_STEP_ICMP_ERROR);

    if (step != NULL) {
        step->from = *from;
        probe_step_set_icmp(step, from->family == ADDR_IPV6, type, code);
    }
}

void probe_note_source(struct probe_engine *engine, int fd)
{
    if (engine->trace != NULL) {
        (void)connect_socket_source(fd, &engine->trace->source);
    }
}
