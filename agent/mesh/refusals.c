#include "agent/mesh/refusals.h"

#include <stdio.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/str.h"
#include "common/base/units.h"

#define LOG_PERIOD_NS (60 * NS_PER_SECOND)
#define KEY_PREFIX_BYTES 4 /* enough to tell keys apart in a log */

static const struct counter_field fields[] = {
#define REFUSAL_COUNTER(name, help) {#name, help, offsetof(struct refusals, counts.name)},
    REFUSALS(REFUSAL_COUNTER)
#undef REFUSAL_COUNTER
};

static uint64_t *counter_of(struct refusals *refusals, enum refusal refusal)
{
    return (uint64_t *)(void *)((uint8_t *)refusals + fields[refusal].offset);
}

void refusals_note(struct refusals *refusals, enum refusal refusal, const char *lane,
                   const char *who, const char *detail)
{
    uint64_t n_dropped;

    (*counter_of(refusals, refusal))++;
    if (!log_allowed(&refusals->limits[refusal], clock_monotonic_ns(), LOG_PERIOD_NS, &n_dropped)) {
        return;
    }
    log_event(LOG_LEVEL_WARNING, "refused",
              "lane=%s reason=%s from=%s%s%s more_since_last=%llu text=\"%s\"", lane,
              fields[refusal].name, who, *detail != '\0' ? " " : "", detail,
              (unsigned long long)n_dropped, fields[refusal].help);
}

void refusals_note_many(struct refusals *refusals, enum refusal refusal, uint64_t n,
                        const char *lane, const char *who)
{
    if (n == 0) {
        return;
    }
    refusals->limits[refusal].n_dropped += n - 1;
    *counter_of(refusals, refusal) += n - 1;
    refusals_note(refusals, refusal, lane, who, "");
}

void refusals_note_zap(struct refusals *refusals, const struct zap_refusal *refusal)
{
    static const enum refusal by_reason[] = {
        [ZAP_REFUSED_NONE] = REFUSAL_malformed_handshake,
        [ZAP_REFUSED_UNKNOWN_KEY] = REFUSAL_unknown_key,
        [ZAP_REFUSED_REVOKED_KEY] = REFUSAL_revoked_key,
        [ZAP_REFUSED_ROLE] = REFUSAL_wrong_role,
        [ZAP_REFUSED_MECHANISM] = REFUSAL_no_key,
        [ZAP_REFUSED_DOMAIN] = REFUSAL_malformed_handshake,
        [ZAP_REFUSED_MALFORMED] = REFUSAL_malformed_handshake,
    };
    char hex[2 * KEY_PREFIX_BYTES + 1], detail[32], lane[2 * sizeof refusal->domain + 4];

    str_hex(refusal->public_key, KEY_PREFIX_BYTES, hex);
    snprintf(detail, sizeof detail, "key=%s...", hex);
    log_quote(lane, sizeof lane, refusal->domain);
    refusals_note(refusals, by_reason[refusal->reason % ZAP_REFUSED_COUNT], lane,
                  refusal->address[0] != '\0' ? refusal->address : "unknown", detail);
}

void refusals_note_event(struct refusals *refusals, const char *lane, const struct zmq_event *event)
{
    enum refusal refusal = REFUSAL_COUNT;
    char who[ENDPOINT_TEXT_BYTES];

    switch (event->seen) {
    case ZMQ_SEEN_NO_KEY:
        refusal = REFUSAL_no_key;
        break;
    case ZMQ_SEEN_WRONG_KEY:
        refusal = REFUSAL_wrong_server_key;
        break;
    case ZMQ_SEEN_GARBAGE:
        refusal = REFUSAL_garbage;
        break;
    case ZMQ_SEEN_SILENT:
        refusal = REFUSAL_silent;
        break;
    case ZMQ_SEEN_GAVE_UP:
        refusal = REFUSAL_gave_up;
        break;
    case ZMQ_SEEN_NONE:
    case ZMQ_SEEN_CONNECTED:
    case ZMQ_SEEN_CONNECT_FAILED:
    case ZMQ_SEEN_DISCONNECTED:
    case ZMQ_SEEN_REFUSED:
    case ZMQ_SEEN_COUNT:
        return;
    }
    if (event->peer.addr.family == ADDR_NONE) {
        snprintf(who, sizeof who, "unknown");
    } else {
        endpoint_format(&event->peer, who);
    }
    refusals_note(refusals, refusal, lane, who, "");
}

struct counter_set refusals_counters(const struct refusals *refusals)
{
    return (struct counter_set){
        .prefix = "refused", .fields = fields, .n_fields = REFUSAL_COUNT, .values = refusals};
}
