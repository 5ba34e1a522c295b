/* A binary heap of (key, value) pairs, smallest key first; of equal keys the lowest rank first, and
 * of equal ranks in the order in which they went in, so that simulations repeat. */
#ifndef JURY_TESTS_HEAP_H
#define JURY_TESTS_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct heap_item {
    uint64_t key;
    uint64_t order; /* set by heap_push */
    uint64_t value;
    uint8_t rank;
};

struct heap {
    struct heap_item *items;
    size_t n_items;
    size_t capacity;
    uint64_t next_order;
};

void heap_init(struct heap *heap);
void heap_close(struct heap *heap);
/* Errors: ERR_NOMEM. */
int heap_push(struct heap *heap, uint64_t key, uint8_t rank, uint64_t value);
/* False when empty. */
bool heap_peek(const struct heap *heap, struct heap_item *ret_item);
bool heap_pop(struct heap *heap, struct heap_item *ret_item);

#endif
