/* What one peer shall still be told, in order and with a bound: the newest hello, the newest vector
 * and the newest drain report, and between them the change messages, questions and answers since.
 *
 * A vector that was not sent yet is replaced by the next one (the newest wins), so a slow peer gets
 * what holds now and never a backlog. Order among the rest is kept, because the receiver drops what
 * is older than the last it took. Knows frames and nothing of sockets. Loop thread. */
#ifndef JURY_MESH_OUTBOX_H
#define JURY_MESH_OUTBOX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/limits.h"

#define OUTBOX_ENTRIES                                                           \
    512 /* change messages to a peer that does not read; older ones are dropped, \
           the next vector carries their opinions */

/* One encoded message, shared by all peers it goes to. */
struct frame {
    uint32_t n_refs;
    size_t n_bytes;
    uint8_t *data; /* owned */
};
/* data: taken (free()), also on failure. NULL: no memory. */
struct frame *frame_new(uint8_t *data, size_t n_bytes);
struct frame *frame_ref(struct frame *frame);
void frame_unref(struct frame *frame); /* NULL is allowed */

/* All chunks of one vector. */
struct frame_set {
    uint32_t n_refs;
    uint16_t n_frames;
    struct frame *frames[LIMIT_VOTE_CHUNKS]; /* owned references */
};
struct frame_set *frame_set_new(void); /* empty; NULL: no memory */
struct frame_set *frame_set_ref(struct frame_set *set);
void frame_set_unref(struct frame_set *set); /* NULL is allowed */

struct outbox {
    struct frame *hello; /* the newest; owned references all */
    bool hello_due;
    struct frame_set *vector;
    struct frame *report;
    bool report_due;
    /* In order; the vector's place is an entry without a frame. */
    struct frame *entries[OUTBOX_ENTRIES];
    uint32_t n_entries;
    bool vector_due;
    uint32_t vector_place; /* entries before it */
    uint16_t next_chunk;
    uint64_t n_dropped; /* change messages */
    uint64_t n_replaced_vectors;
};

/* A zeroed outbox is empty. */
void outbox_close(struct outbox *outbox);

/* Each takes a reference of its own. */
void outbox_put_hello(struct outbox *outbox, struct frame *hello);
void outbox_put_vector(struct outbox *outbox, struct frame_set *vector);
void outbox_put_report(struct outbox *outbox, struct frame *report);
void outbox_put(struct outbox *outbox, struct frame *frame);

/* A new connection: hello, vector and report from the beginning, everything else is dropped. */
void outbox_restart(struct outbox *outbox);

/* What is next, borrowed; NULL = nothing. */
struct frame *outbox_next(const struct outbox *outbox);
/* It was sent. */
void outbox_sent(struct outbox *outbox);

#endif
