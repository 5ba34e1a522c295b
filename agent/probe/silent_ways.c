#include "agent/probe/silent_ways.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "agent/probe/packet_local.h"
#include "common/base/plant.h"
#include "common/base/units.h"

void silent_ways_close(struct silent_ways *ways)
{
    if (ways->kept != NULL) {
        route_watch_close(&ways->watch);
        free(ways->kept);
    }
    *ways = (struct silent_ways){.kept = NULL};
}

/* False: there is no memory, and so nothing is kept. */
static bool open_once(struct silent_ways *ways)
{
    if (ways->kept != NULL) {
        return true;
    }
    ways->kept = calloc(SILENT_WAYS, sizeof *ways->kept);
    if (ways->kept == NULL) {
        return false;
    }
    ways->generation = 1;
    randombytes_buf(&ways->key, sizeof ways->key);
    route_watch_open(&ways->watch);
    return true;
}

static uint64_t tag_of(const struct silent_ways *ways, const struct probe_target *target)
{
    const struct addr *both[] = {&target->definition.to.addr, &target->source};
    uint8_t bytes[2 * (1 + sizeof both[0]->bytes)];
    size_t n = 0;

    for (size_t i = 0; i < sizeof both / sizeof both[0]; i++) {
        bytes[n++] = both[i]->family;
        memcpy(bytes + n, both[i]->bytes, sizeof both[i]->bytes);
        n += sizeof both[i]->bytes;
    }
    return hash_64(&ways->key, bytes, n);
}

static enum probe_reason ask_kernel(const struct probe_target *target, bool *ret_is_way)
{
    struct addr source;
    enum probe_reason reason = packet_source_find(target, &source);

    *ret_is_way = reason == REASON_NONE;
    return reason == REASON_LOCAL_NO_ROUTE || reason == REASON_LOCAL_SOURCE_MISSING ? reason
                                                                                    : REASON_NONE;
}

/* The watch is looked at before the kernel is asked: what changes in between is seen next time. */
enum probe_reason silent_ways_ask(struct silent_ways *ways, const struct probe_target *target,
                                  uint64_t now_ns)
{
    uint32_t now_s = (uint32_t)(now_ns / NS_PER_SECOND);
    bool is_way;

    if (!open_once(ways)) {
        return ask_kernel(target, &is_way);
    }
    if (route_watch_changed(&ways->watch) && !plant_is("stale-way")) {
        ways->generation = ways->generation == UINT32_MAX ? 1 : ways->generation + 1;
    }
    uint64_t tag = tag_of(ways, target);
    struct silent_way *kept = &ways->kept[tag % SILENT_WAYS];
    if (kept->tag == tag && kept->generation == ways->generation &&
        now_s - kept->found_s < SILENT_WAY_MAX_AGE_S) {
        return REASON_NONE;
    }
    enum probe_reason reason = ask_kernel(target, &is_way);
    if (is_way) {
        *kept = (struct silent_way){.tag = tag, .generation = ways->generation, .found_s = now_s};
    }
    return reason;
}
