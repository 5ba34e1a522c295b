#include "tests/lib/heap.h"

#include <stdlib.h>

#include "common/base/err.h"

void heap_init(struct heap *heap)
{
    *heap = (struct heap){0};
}

void heap_close(struct heap *heap)
{
    free(heap->items);
    *heap = (struct heap){0};
}

static bool comes_before(const struct heap_item *a, const struct heap_item *b)
{
    if (a->key != b->key) {
        return a->key < b->key;
    }
    return a->rank != b->rank ? a->rank < b->rank : a->order < b->order;
}

static void swap(struct heap *heap, size_t i, size_t j)
{
    struct heap_item item = heap->items[i];

    heap->items[i] = heap->items[j];
    heap->items[j] = item;
}

int heap_push(struct heap *heap, uint64_t key, uint8_t rank, uint64_t value)
{
    if (heap->n_items == heap->capacity) {
        size_t capacity = heap->capacity == 0 ? 64 : heap->capacity * 2;
        struct heap_item *items = realloc(heap->items, capacity * sizeof *items);

        if (items == NULL) {
            return ERR_NOMEM;
        }
        heap->items = items;
        heap->capacity = capacity;
    }
    size_t i = heap->n_items++;
    heap->items[i] =
        (struct heap_item){.key = key, .order = heap->next_order++, .value = value, .rank = rank};
    while (i > 0 && comes_before(&heap->items[i], &heap->items[(i - 1) / 2])) {
        swap(heap, i, (i - 1) / 2);
        i = (i - 1) / 2;
    }
    return 0;
}

bool heap_peek(const struct heap *heap, struct heap_item *ret_item)
{
    if (heap->n_items == 0) {
        return false;
    }
    *ret_item = heap->items[0];
    return true;
}

bool heap_pop(struct heap *heap, struct heap_item *ret_item)
{
    if (!heap_peek(heap, ret_item)) {
        return false;
    }
    heap->items[0] = heap->items[--heap->n_items];
    for (size_t i = 0;;) {
        size_t least = i;

        for (size_t child = 2 * i + 1; child <= 2 * i + 2 && child < heap->n_items; child++) {
            if (comes_before(&heap->items[child], &heap->items[least])) {
                least = child;
            }
        }
        if (least == i) {
            return true;
        }
        swap(heap, i, least);
        i = least;
    }
}
