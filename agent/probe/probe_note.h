/* How an engine writes down what it does, when somebody looks (agent/core/probe_trace.h). Each call
 * is nothing for an engine without a trace. Such an engine makes one probe at a time. */
#ifndef JURY_PROBE_NOTE_H
#define JURY_PROBE_NOTE_H

#include <stddef.h>
#include <stdint.h>

#include "agent/core/probe_trace.h"
#include "agent/probe/probe_engine.h"

void probe_note(struct probe_engine *engine, enum probe_step_kind kind);
/* at_ns: monotonic, when it was. */
void probe_note_at(struct probe_engine *engine, uint64_t at_ns, enum probe_step_kind kind);
/* text: borrowed. */
void probe_note_text(struct probe_engine *engine, enum probe_step_kind kind, const char *text);
void probe_note_bytes(struct probe_engine *engine, enum probe_step_kind kind, const void *bytes,
                      size_t n_bytes);
/* Bytes of TLS, which say nothing as they are. */
void probe_note_sealed(struct probe_engine *engine, enum probe_step_kind kind, size_t n_bytes);
/* from: who said so; its family is that of the error. */
void probe_note_icmp(struct probe_engine *engine, const struct addr *from, uint8_t type,
                     uint8_t code);
/* The source is that of a socket. */
void probe_note_source(struct probe_engine *engine, int fd);

#endif
