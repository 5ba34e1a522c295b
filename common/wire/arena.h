/* Memory for one message: everything that belongs to it comes from one arena, is zeroed, counts
 * against a budget, and is freed at once with it.
 *
 * protobuf-c turns a megabyte of empty sub-messages into 71 MB in half a million allocations
 * (S-PB-2), and version 1.4.1 leaves a pointer unset on an error path; so foreign bytes are only
 * ever unpacked into an arena: a message that is too much fails, and nothing else does. */
#ifndef JURY_WIRE_ARENA_H
#define JURY_WIRE_ARENA_H

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stddef.h>

struct wire_block;

struct wire_arena {
    ProtobufCAllocator allocator; /* for protobuf-c: free does nothing */
    struct wire_block *blocks;
    size_t used_bytes;
    size_t budget_bytes;
    bool failed; /* budget or memory ran out; stays so until the close */
};

/* budget_bytes: of everything that is taken, with some overhead. The arena must not move. */
void wire_arena_init(struct wire_arena *arena, size_t budget_bytes);
/* Frees all; the arena can be used again after an init. Allowed on a zeroed one. */
void wire_arena_close(struct wire_arena *arena);

/* Zeroed, aligned for everything; NULL once it has failed. */
void *wire_alloc(struct wire_arena *arena, size_t n_bytes);
/* n x size, guarded against overflow. */
void *wire_alloc_array(struct wire_arena *arena, size_t n, size_t size);
char *wire_text(struct wire_arena *arena, const char *text);
char *wire_format(struct wire_arena *arena, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* An initialised message of the type: `Jury__V1__Backend *backend = WIRE_NEW(arena,
 * Jury__V1__Backend, jury__v1__backend);`. NULL once it has failed. */
#define WIRE_NEW(arena, type, prefix) ((type *)wire_message_new((arena), &prefix##__descriptor))
void *wire_message_new(struct wire_arena *arena, const ProtobufCMessageDescriptor *descriptor);

#endif
