#include "agent/core/udp_evidence.h"

#include <assert.h>
#include <string.h>

#include "common/base/plant.h"

#define BUCKET_NS (UDP_EVIDENCE_BURST * UDP_EVIDENCE_REFILL_NS)

void udp_evidence_init(struct udp_evidence *evidence, const struct hash_key *key)
{
    memset(evidence, 0, sizeof *evidence);
    evidence->key = *key;
}

static uint32_t bucket_of(const struct udp_evidence *evidence, const struct addr *host,
                          uint16_t port)
{
    uint8_t bytes[sizeof host->bytes + 3];

    memcpy(bytes, host->bytes, sizeof host->bytes);
    bytes[sizeof host->bytes] = host->family;
    memcpy(bytes + sizeof host->bytes + 1, &port, sizeof port);
    return (uint32_t)(hash_64(&evidence->key, bytes, sizeof bytes) % UDP_EVIDENCE_BUCKETS);
}

/* --- refusals --- */

static uint32_t find_refusal(const struct udp_refusal ways[], const struct endpoint *at)
{
    uint32_t i = 0;

    while (i < UDP_EVIDENCE_WAYS &&
           (ways[i].heard_ns == 0 || endpoint_compare(&ways[i].at, at) != 0)) {
        i++;
    }
    return i;
}

/* The oldest of them, or a free one. */
static uint32_t oldest_refusal(const struct udp_refusal ways[])
{
    uint32_t oldest = 0;

    for (uint32_t i = 1; i < UDP_EVIDENCE_WAYS; i++) {
        oldest = ways[i].heard_ns < ways[oldest].heard_ns ? i : oldest;
    }
    return oldest;
}

/* --- budgets --- */

static uint32_t find_budget(const struct udp_budget ways[], const struct addr *host)
{
    uint32_t i = 0;

    while (i < UDP_EVIDENCE_WAYS &&
           (ways[i].heard_ns == 0 || addr_compare(&ways[i].host, host) != 0)) {
        i++;
    }
    return i;
}

static uint32_t oldest_budget(const struct udp_budget ways[])
{
    uint32_t oldest = 0;

    for (uint32_t i = 1; i < UDP_EVIDENCE_WAYS; i++) {
        oldest = ways[i].heard_ns < ways[oldest].heard_ns ? i : oldest;
    }
    return oldest;
}

static uint64_t tokens_now(const struct udp_budget *budget, uint64_t now_ns)
{
    uint64_t tokens_ns = budget->tokens_ns + (now_ns - budget->heard_ns);

    return tokens_ns < BUCKET_NS ? tokens_ns : BUCKET_NS;
}

/* One error more was sent. One that comes from an empty bucket empties it anew. */
static void spend(struct udp_budget *budget, uint64_t now_ns)
{
    uint64_t tokens_ns = tokens_now(budget, now_ns);

    tokens_ns = tokens_ns > UDP_EVIDENCE_REFILL_NS ? tokens_ns - UDP_EVIDENCE_REFILL_NS : 0;
    budget->tokens_ns = tokens_ns;
    budget->heard_ns = now_ns;
    if (tokens_ns >= UDP_EVIDENCE_REFILL_NS) {
        return;
    }
    if (budget->empty_end_ns + UDP_EVIDENCE_REFILL_NS < now_ns) {
        budget->empty_ns = now_ns;
    }
    budget->empty_end_ns = now_ns + UDP_EVIDENCE_REFILL_NS - tokens_ns;
}

static void count_error(struct udp_evidence *evidence, const struct addr *host, uint64_t now_ns)
{
    struct udp_budget *ways = evidence->budgets[bucket_of(evidence, host, 0)];
    uint32_t i = find_budget(ways, host);

    if (i == UDP_EVIDENCE_WAYS) {
        i = oldest_budget(ways);
        ways[i] = (struct udp_budget){
            .host = *host, .heard_ns = now_ns, .tokens_ns = UDP_EVIDENCE_REFILL_NS};
    }
    spend(&ways[i], now_ns);
}

/* --- both --- */

void udp_evidence_refused(struct udp_evidence *evidence, const struct endpoint *at, uint64_t now_ns)
{
    struct udp_refusal *ways = evidence->refusals[bucket_of(evidence, &at->addr, at->port)];
    uint32_t i = find_refusal(ways, at);

    assert(now_ns != 0);
    i = i == UDP_EVIDENCE_WAYS ? oldest_refusal(ways) : i;
    ways[i] = (struct udp_refusal){.at = *at, .heard_ns = now_ns};
    count_error(evidence, &at->addr, now_ns);
}

void udp_evidence_presumed(struct udp_evidence *evidence, const struct endpoint *at,
                           uint64_t now_ns)
{
    struct udp_budget *ways = evidence->budgets[bucket_of(evidence, &at->addr, 0)];
    uint32_t i = find_budget(ways, &at->addr);

    if (i < UDP_EVIDENCE_WAYS && tokens_now(&ways[i], now_ns) >= UDP_EVIDENCE_REFILL_NS) {
        spend(&ways[i], now_ns);
    }
}

void udp_evidence_answered(struct udp_evidence *evidence, const struct endpoint *at)
{
    struct udp_refusal *ways = evidence->refusals[bucket_of(evidence, &at->addr, at->port)];
    uint32_t i = find_refusal(ways, at);

    if (i < UDP_EVIDENCE_WAYS) {
        ways[i] = (struct udp_refusal){.heard_ns = 0};
    }
}

static bool is_limited(const struct udp_evidence *evidence, const struct addr *host,
                       uint64_t start_ns)
{
    const struct udp_budget *ways = evidence->budgets[bucket_of(evidence, host, 0)];
    uint32_t i = find_budget(ways, host);

    return i < UDP_EVIDENCE_WAYS && ways[i].empty_end_ns != 0 &&
           ways[i].empty_ns <= start_ns + UDP_EVIDENCE_SLACK_NS &&
           ways[i].empty_end_ns + UDP_EVIDENCE_SLACK_NS >= start_ns;
}

enum udp_silence udp_evidence_judge(const struct udp_evidence *evidence, const struct endpoint *at,
                                    uint64_t start_ns, uint64_t interval_ns)
{
    const struct udp_refusal *ways = evidence->refusals[bucket_of(evidence, &at->addr, at->port)];
    uint32_t i = find_refusal(ways, at);

    if (i < UDP_EVIDENCE_WAYS && ways[i].heard_ns + interval_ns >= start_ns &&
        !plant_is("udp-own-evidence")) {
        return UDP_SILENCE_REFUSED;
    }
    if (is_limited(evidence, &at->addr, start_ns) && !plant_is("udp-silence-limited")) {
        return UDP_SILENCE_LIMITED;
    }
    return UDP_SILENCE_HOLDS;
}
