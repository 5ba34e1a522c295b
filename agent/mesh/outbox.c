#include "agent/mesh/outbox.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct frame *frame_new(uint8_t *data, size_t n_bytes)
{
    struct frame *frame = malloc(sizeof *frame);

    if (frame == NULL) {
        free(data);
        return NULL;
    }
    *frame = (struct frame){.n_refs = 1, .n_bytes = n_bytes, .data = data};
    return frame;
}

struct frame *frame_ref(struct frame *frame)
{
    frame->n_refs++;
    return frame;
}

void frame_unref(struct frame *frame)
{
    if (frame != NULL && --frame->n_refs == 0) {
        free(frame->data);
        free(frame);
    }
}

struct frame_set *frame_set_new(void)
{
    struct frame_set *set = calloc(1, sizeof *set);

    if (set != NULL) {
        set->n_refs = 1;
    }
    return set;
}

struct frame_set *frame_set_ref(struct frame_set *set)
{
    set->n_refs++;
    return set;
}

void frame_set_unref(struct frame_set *set)
{
    if (set == NULL || --set->n_refs > 0) {
        return;
    }
    for (uint16_t i = 0; i < set->n_frames; i++) {
        frame_unref(set->frames[i]);
    }
    free(set);
}

static void drop_entries(struct outbox *outbox)
{
    for (uint32_t i = 0; i < outbox->n_entries; i++) {
        frame_unref(outbox->entries[i]);
    }
    outbox->n_entries = 0;
    outbox->vector_place = 0;
}

void outbox_close(struct outbox *outbox)
{
    drop_entries(outbox);
    frame_unref(outbox->hello);
    frame_set_unref(outbox->vector);
    frame_unref(outbox->report);
    *outbox = (struct outbox){.n_entries = 0};
}

void outbox_put_hello(struct outbox *outbox, struct frame *hello)
{
    frame_unref(outbox->hello);
    outbox->hello = frame_ref(hello);
    outbox->hello_due = true;
}

void outbox_put_vector(struct outbox *outbox, struct frame_set *vector)
{
    if (outbox->vector_due) {
        outbox->n_replaced_vectors++;
    }
    frame_set_unref(outbox->vector);
    outbox->vector = frame_set_ref(vector);
    outbox->vector_due = vector->n_frames > 0;
    outbox->vector_place = outbox->n_entries;
    outbox->next_chunk = 0;
}

void outbox_put_report(struct outbox *outbox, struct frame *report)
{
    frame_unref(outbox->report);
    outbox->report = frame_ref(report);
    outbox->report_due = true;
}

static void remove_first(struct outbox *outbox)
{
    frame_unref(outbox->entries[0]);
    outbox->n_entries--;
    memmove(&outbox->entries[0], &outbox->entries[1],
            outbox->n_entries * sizeof outbox->entries[0]);
    if (outbox->vector_place > 0) {
        outbox->vector_place--;
    }
}

void outbox_put(struct outbox *outbox, struct frame *frame)
{
    if (outbox->n_entries == OUTBOX_ENTRIES) {
        remove_first(outbox);
        outbox->n_dropped++;
    }
    outbox->entries[outbox->n_entries++] = frame_ref(frame);
}

void outbox_restart(struct outbox *outbox)
{
    outbox->n_dropped += outbox->n_entries;
    drop_entries(outbox);
    outbox->hello_due = outbox->hello != NULL;
    outbox->vector_due = outbox->vector != NULL && outbox->vector->n_frames > 0;
    outbox->next_chunk = 0;
    outbox->report_due = outbox->report != NULL;
}

/* hello, entries before the vector, the vector, the other entries, the report */
enum next {
    NEXT_NOTHING,
    NEXT_HELLO,
    NEXT_ENTRY,
    NEXT_CHUNK,
    NEXT_REPORT
};

static enum next what_is_next(const struct outbox *outbox)
{
    if (outbox->hello_due) {
        return NEXT_HELLO;
    }
    if (outbox->vector_due && outbox->vector_place == 0) {
        return NEXT_CHUNK;
    }
    if (outbox->n_entries > 0) {
        return NEXT_ENTRY;
    }
    return outbox->report_due ? NEXT_REPORT : NEXT_NOTHING;
}

struct frame *outbox_next(const struct outbox *outbox)
{
    switch (what_is_next(outbox)) {
    case NEXT_HELLO:
        return outbox->hello;
    case NEXT_CHUNK:
        return outbox->vector->frames[outbox->next_chunk];
    case NEXT_ENTRY:
        return outbox->entries[0];
    case NEXT_REPORT:
        return outbox->report;
    case NEXT_NOTHING:
        break;
    }
    return NULL;
}

void outbox_sent(struct outbox *outbox)
{
    switch (what_is_next(outbox)) {
    case NEXT_HELLO:
        outbox->hello_due = false;
        return;
    case NEXT_CHUNK:
        outbox->next_chunk++;
        outbox->vector_due = outbox->next_chunk < outbox->vector->n_frames;
        return;
    case NEXT_ENTRY:
        remove_first(outbox);
        return;
    case NEXT_REPORT:
        outbox->report_due = false;
        return;
    case NEXT_NOTHING:
        assert(outbox->n_entries > 0); /* only after outbox_next gave something */
    }
}
