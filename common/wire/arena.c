#include "common/wire/arena.h"

#include <assert.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK_BYTES_MIN 4096
#define BLOCK_BYTES_MAX (256 * 1024)

struct wire_block {
    struct wire_block *next;
    size_t capacity_bytes;
    size_t used_bytes;
    max_align_t data[];
};

static void *allocator_alloc(void *arena, size_t n_bytes)
{
    return wire_alloc(arena, n_bytes);
}

/* Everything goes at once in wire_arena_close. */
static void allocator_free(void *arena, void *memory)
{
    (void)arena;
    (void)memory;
}

void wire_arena_init(struct wire_arena *arena, size_t budget_bytes)
{
    *arena = (struct wire_arena){
        .allocator = {.alloc = allocator_alloc, .free = allocator_free, .allocator_data = arena},
        .budget_bytes = budget_bytes,
    };
}

void wire_arena_close(struct wire_arena *arena)
{
    struct wire_block *block = arena->blocks;

    while (block != NULL) {
        struct wire_block *next = block->next;

        free(block);
        block = next;
    }
    *arena = (struct wire_arena){0};
}

/* A block that has room for n_bytes, in front of the list. */
static struct wire_block *add_block(struct wire_arena *arena, size_t n_bytes)
{
    size_t capacity_bytes = BLOCK_BYTES_MIN;

    if (arena->blocks != NULL) {
        capacity_bytes = arena->blocks->capacity_bytes * 2;
    }
    if (capacity_bytes > BLOCK_BYTES_MAX) {
        capacity_bytes = BLOCK_BYTES_MAX;
    }
    if (capacity_bytes < n_bytes) {
        capacity_bytes = n_bytes;
    }
    struct wire_block *block = calloc(1, sizeof *block + capacity_bytes);
    if (block == NULL) {
        return NULL;
    }
    block->capacity_bytes = capacity_bytes;
    block->next = arena->blocks;
    arena->blocks = block;
    return block;
}

void *wire_alloc(struct wire_arena *arena, size_t n_bytes)
{
    const size_t align = sizeof(max_align_t);
    struct wire_block *block = arena->blocks;

    assert(arena->allocator.alloc != NULL); /* initialised */
    if (arena->failed || n_bytes > arena->budget_bytes) {
        arena->failed = true;
        return NULL;
    }
    n_bytes = n_bytes == 0 ? align : (n_bytes + align - 1) / align * align;
    if (n_bytes > arena->budget_bytes - arena->used_bytes) {
        arena->failed = true;
        return NULL;
    }
    if (block == NULL || block->capacity_bytes - block->used_bytes < n_bytes) {
        block = add_block(arena, n_bytes);
        if (block == NULL) {
            arena->failed = true;
            return NULL;
        }
    }
    void *memory = (uint8_t *)block->data + block->used_bytes;
    block->used_bytes += n_bytes;
    arena->used_bytes += n_bytes;
    return memory;
}

void *wire_alloc_array(struct wire_arena *arena, size_t n, size_t size)
{
    assert(size > 0);
    if (n > SIZE_MAX / size) {
        arena->failed = true;
        return NULL;
    }
    return wire_alloc(arena, n * size);
}

char *wire_text(struct wire_arena *arena, const char *text)
{
    size_t n_bytes = strlen(text) + 1;
    char *copy = wire_alloc(arena, n_bytes);

    if (copy != NULL) {
        memcpy(copy, text, n_bytes);
    }
    return copy;
}

char *wire_format(struct wire_arena *arena, const char *format, ...)
{
    char text[1024];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return wire_text(arena, text);
}

void *wire_message_new(struct wire_arena *arena, const ProtobufCMessageDescriptor *descriptor)
{
    void *message = wire_alloc(arena, descriptor->sizeof_message);

    if (message != NULL) {
        protobuf_c_message_init(descriptor, message);
    }
    return message;
}
