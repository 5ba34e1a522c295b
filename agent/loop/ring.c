#include "agent/loop/ring.h"

#include <assert.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define RING_VALUES_MAX ((size_t)1 << 24)
#define RING_VALUE_BYTES_MAX 65536
#define CACHE_LINE_BYTES 64

/* head counts pops, tail counts pushes; both only ever rise. Each side keeps a copy of the other's
 * counter, so that the shared cache line moves only when the copy says full or empty. */
struct ring {
    alignas(CACHE_LINE_BYTES) _Atomic size_t head;
    size_t tail_seen;
    alignas(CACHE_LINE_BYTES) _Atomic size_t tail;
    size_t head_seen;
    _Atomic uint64_t n_refused;
    alignas(CACHE_LINE_BYTES) size_t mask;
    size_t value_bytes;
    unsigned char *values;
};

struct ring *ring_new(size_t value_bytes, size_t n_values)
{
    assert(value_bytes > 0 && value_bytes <= RING_VALUE_BYTES_MAX);
    assert(n_values > 0 && n_values <= RING_VALUES_MAX);
    size_t capacity = 1;
    while (capacity < n_values) {
        capacity *= 2;
    }
    struct ring *ring = aligned_alloc(CACHE_LINE_BYTES, sizeof *ring);
    if (ring == NULL) {
        return NULL;
    }
    memset(ring, 0, sizeof *ring);
    atomic_init(&ring->head, 0);
    atomic_init(&ring->tail, 0);
    atomic_init(&ring->n_refused, 0);
    ring->mask = capacity - 1;
    ring->value_bytes = value_bytes;
    ring->values = malloc(capacity * value_bytes);
    if (ring->values == NULL) {
        free(ring);
        return NULL;
    }
    return ring;
}

void ring_free(struct ring *ring)
{
    if (ring == NULL) {
        return;
    }
    free(ring->values);
    free(ring);
}

bool ring_push(struct ring *ring, const void *value)
{
    size_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);

    if (tail - ring->head_seen > ring->mask) {
        ring->head_seen = atomic_load_explicit(&ring->head, memory_order_acquire);
        if (tail - ring->head_seen > ring->mask) {
            atomic_fetch_add_explicit(&ring->n_refused, 1, memory_order_relaxed);
            return false;
        }
    }
    memcpy(ring->values + (tail & ring->mask) * ring->value_bytes, value, ring->value_bytes);
    atomic_store_explicit(&ring->tail, tail + 1, memory_order_release);
    return true;
}

bool ring_pop(struct ring *ring, void *ret_value)
{
    size_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);

    if (head == ring->tail_seen) {
        ring->tail_seen = atomic_load_explicit(&ring->tail, memory_order_acquire);
        if (head == ring->tail_seen) {
            return false;
        }
    }
    memcpy(ret_value, ring->values + (head & ring->mask) * ring->value_bytes, ring->value_bytes);
    atomic_store_explicit(&ring->head, head + 1, memory_order_release);
    return true;
}

uint64_t ring_n_refused(const struct ring *ring)
{
    return atomic_load_explicit(&ring->n_refused, memory_order_relaxed);
}
