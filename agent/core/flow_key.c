#include "agent/core/flow_key.h"

#include <string.h>

#include "common/model/group.h"

struct key_bytes {
    uint8_t data[48];
    size_t n_bytes;
};

static void put(struct key_bytes *key, const void *data, size_t n_bytes)
{
    memcpy(key->data + key->n_bytes, data, n_bytes);
    key->n_bytes += n_bytes;
}

static void put_addr(struct key_bytes *key, const struct addr *addr)
{
    put(key, &addr->family, 1);
    put(key, addr->bytes, addr->family == ADDR_IPV4 ? 4 : 16);
}

static void put_port(struct key_bytes *key, uint16_t port)
{
    uint8_t bytes[2] = {(uint8_t)port, (uint8_t)(port >> 8)};

    put(key, bytes, sizeof bytes);
}

bool flow_key_is_hashed(unsigned scheduler)
{
    switch ((enum scheduler)scheduler) {
    case SCHEDULER_RR:
    case SCHEDULER_WRR:
    case SCHEDULER_WLC:
        return false;
    case SCHEDULER_NONE:
    case SCHEDULER_5_TUPLE:
    case SCHEDULER_4_TUPLE:
    case SCHEDULER_3_TUPLE:
    case SCHEDULER_2_TUPLE:
    case SCHEDULER_SOURCE:
    case SCHEDULER_QUIC_ID:
        break;
    }
    return true;
}

uint64_t flow_key_hash(const struct flow_key *key, unsigned scheduler,
                       const struct hash_key *hash_key)
{
    bool with_ports = true;
    bool with_protocol = true;
    bool with_destination = true;
    struct key_bytes bytes = {.n_bytes = 0};

    switch ((enum scheduler)scheduler) {
    case SCHEDULER_4_TUPLE:
        with_protocol = false;
        break;
    case SCHEDULER_3_TUPLE:
        with_ports = false;
        break;
    case SCHEDULER_2_TUPLE:
        with_ports = false;
        with_protocol = false;
        break;
    case SCHEDULER_SOURCE:
        with_ports = false;
        with_protocol = false;
        with_destination = false;
        break;
    case SCHEDULER_NONE:
    case SCHEDULER_5_TUPLE:
    case SCHEDULER_QUIC_ID:
    case SCHEDULER_RR:
    case SCHEDULER_WRR:
    case SCHEDULER_WLC:
        break;
    }
    put_addr(&bytes, &key->source.addr);
    if (with_destination) {
        put_addr(&bytes, &key->destination.addr);
    }
    if (with_ports) {
        put_port(&bytes, key->source.port);
        put_port(&bytes, key->destination.port);
    }
    if (with_protocol) {
        put(&bytes, &key->ip_protocol, 1);
    }
    return hash_64(hash_key, bytes.data, bytes.n_bytes);
}

struct hash_key flow_key_of_cluster(const struct cluster_id *cluster_id)
{
    static const struct hash_key purpose = {UINT64_C(0x6a75727920666c6f),
                                            UINT64_C(0x77206b657920763)};
    struct hash128 hash = hash_128(&purpose, cluster_id->bytes, sizeof cluster_id->bytes);

    return (struct hash_key){.k0 = hash.low, .k1 = hash.high};
}
