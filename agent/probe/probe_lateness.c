#include "agent/probe/probe_lateness.h"

#include <assert.h>

#include "common/base/plant.h"

void probe_lateness_init(struct probe_lateness *lateness, uint64_t monotonic_ns,
                         uint64_t boottime_ns)
{
    *lateness = (struct probe_lateness){
        .due_ns = UINT64_MAX,
        .woke_ns = monotonic_ns,
        .gap_ns = (int64_t)(boottime_ns - monotonic_ns),
    };
}

void probe_lateness_sleep(struct probe_lateness *lateness, uint64_t due_ns)
{
    lateness->due_ns = due_ns;
}

void probe_lateness_wake(struct probe_lateness *lateness, uint64_t monotonic_ns,
                         uint64_t boottime_ns)
{
    int64_t gap_ns = (int64_t)(boottime_ns - monotonic_ns);

    lateness->woke_ns = monotonic_ns;
    if (monotonic_ns > lateness->due_ns) {
        uint64_t late_ns = monotonic_ns - lateness->due_ns;

        if (late_ns > PROBE_WAKE_SLACK_NS) {
            lateness->stalled_ns += late_ns;
        }
        if (late_ns > lateness->late_max_ns) {
            lateness->late_max_ns = late_ns;
        }
    }
    if (gap_ns - lateness->gap_ns > (int64_t)PROBE_SUSPEND_NS) {
        lateness->suspended_ns += (uint64_t)(gap_ns - lateness->gap_ns);
        lateness->gap_ns = gap_ns;
    }
}

struct probe_mark probe_lateness_mark(const struct probe_lateness *lateness)
{
    return (struct probe_mark){
        .stalled_ns = lateness->stalled_ns,
        .suspended_ns = lateness->suspended_ns,
    };
}

/* Outcomes that a slow prober can bring about by itself. */
static bool depends_on_time(enum probe_reason reason)
{
    return reason == REASON_CONNECT_TIMEOUT || reason == REASON_RECV_RESPONSE_TIMEOUT ||
           reason == REASON_CONNECT_INTERRUPT || reason == REASON_NO_ECHO_REPLY;
}

/* Passes that rest on what did not come. */
static bool is_silence(enum probe_reason reason)
{
    return reason == REASON_SILENT || reason == REASON_ECHO;
}

/* Of the probe's time, what the loop did not serve it: late wake-ups, and the present turn beyond
 * the time in which the next wake-up is due. */
static uint64_t unserved_ns(const struct probe_lateness *lateness, const struct probe_life *life)
{
    uint64_t stalled_ns = lateness->stalled_ns - life->mark.stalled_ns;
    uint64_t since_ns = lateness->woke_ns > life->start_ns ? lateness->woke_ns : life->start_ns;

    if (life->end_ns > since_ns + PROBE_WAKE_MAX_NS) {
        stalled_ns += life->end_ns - since_ns - PROBE_WAKE_MAX_NS;
    }
    return stalled_ns;
}

enum probe_reason probe_lateness_judge(const struct probe_lateness *lateness,
                                       const struct probe_life *life, enum probe_reason reason)
{
    uint64_t timeout_ns = life->deadline_ns - life->start_ns;

    assert(life->deadline_ns >= life->start_ns && life->end_ns >= life->start_ns);
    if ((probe_reason_class(reason) != PROBE_FAIL && !is_silence(reason)) ||
        plant_is("probe-late")) {
        return reason;
    }
    if (lateness->suspended_ns != life->mark.suspended_ns) {
        return REASON_LOCAL_LATE;
    }
    if (depends_on_time(reason) && unserved_ns(lateness, life) > timeout_ns / 4) {
        return REASON_LOCAL_LATE;
    }
    if (life->is_answered && life->end_ns > life->deadline_ns + PROBE_WAKE_SLACK_NS) {
        return REASON_LOCAL_LATE;
    }
    return reason;
}
