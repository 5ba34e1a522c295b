#include "agent/probe/probe_buckets.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "agent/probe/probe_places.h"
#include "common/base/err.h"

int probe_buckets_init(struct probe_buckets *buckets, uint32_t capacity,
                       const struct hash_key *secret)
{
    buckets->secret = secret;
    buckets->links = calloc(capacity, sizeof *buckets->links);
    for (uint32_t i = 0; i < PROBE_BUCKETS; i++) {
        buckets->heads[i] = NO_PLACE;
    }
    return buckets->links == NULL ? ERR_NOMEM : 0;
}

void probe_buckets_close(struct probe_buckets *buckets)
{
    free(buckets->links);
}

uint32_t probe_buckets_find(const struct probe_buckets *buckets, const struct endpoint *to,
                            uint16_t own_port)
{
    uint8_t bytes[sizeof to->addr.bytes + 5];
    uint8_t *ports = bytes + sizeof to->addr.bytes + 1;

    memcpy(bytes, to->addr.bytes, sizeof to->addr.bytes);
    bytes[sizeof to->addr.bytes] = to->addr.family;
    memcpy(ports, &to->port, sizeof to->port);
    memcpy(ports + sizeof to->port, &own_port, sizeof own_port);
    return (uint32_t)(hash_64(buckets->secret, bytes, sizeof bytes) % PROBE_BUCKETS);
}

void probe_buckets_enter(struct probe_buckets *buckets, uint32_t bucket, uint32_t place)
{
    buckets->links[place] =
        (struct probe_bucket_link){.bucket = bucket, .next = buckets->heads[bucket]};
    buckets->heads[bucket] = place;
}

void probe_buckets_leave(struct probe_buckets *buckets, uint32_t place)
{
    uint32_t *link = &buckets->heads[buckets->links[place].bucket];

    while (*link != place) {
        assert(*link != NO_PLACE);
        link = &buckets->links[*link].next;
    }
    *link = buckets->links[place].next;
}

uint32_t probe_buckets_first(const struct probe_buckets *buckets, uint32_t bucket)
{
    return buckets->heads[bucket];
}

uint32_t probe_buckets_next(const struct probe_buckets *buckets, uint32_t place)
{
    return buckets->links[place].next;
}
