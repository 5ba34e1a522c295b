#include "agent/core/probe_limit.h"

#include "common/base/plant.h"
#include "common/base/units.h"

static int refuse_often(const struct endpoint *to, struct errmsg *err)
{
    char text[ENDPOINT_TEXT_BYTES];

    return errmsg_set(err, ERR_BUSY,
                      "this node probed %s on demand less than %d ms ago: ask again in a moment",
                      endpoint_format(to, text), LIMIT_PROBE_NOW_PAUSE_MS);
}

int probe_limit_admit(struct probe_limit *limit, const struct endpoint *to, uint32_t n_running,
                      uint64_t now_ns, struct errmsg *err)
{
    const uint64_t pause_ns = LIMIT_PROBE_NOW_PAUSE_MS * NS_PER_MS;
    uint32_t place = PROBE_LIMIT_REMEMBERED;

    if (n_running >= LIMIT_PROBES_NOW) {
        return errmsg_set(err, ERR_BUSY,
                          "this node has %u probes on demand under way, and makes no more at a "
                          "time: ask again when they have ended",
                          n_running);
    }
    for (uint32_t i = 0; i < PROBE_LIMIT_REMEMBERED; i++) {
        bool is_over = limit->last[i].start_ns == 0 || now_ns - limit->last[i].start_ns >= pause_ns;

        if (is_over) {
            place = i;
        } else if (endpoint_compare(&limit->last[i].to, to) == 0 && !plant_is("probe-now-often")) {
            return refuse_often(to, err);
        }
    }
    if (place == PROBE_LIMIT_REMEMBERED) {
        return errmsg_set(err, ERR_BUSY,
                          "this node made %d probes on demand within %d ms: ask again in a moment",
                          PROBE_LIMIT_REMEMBERED, LIMIT_PROBE_NOW_PAUSE_MS);
    }
    limit->last[place].to = *to;
    limit->last[place].start_ns = now_ns;
    return 0;
}
