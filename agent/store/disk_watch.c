#include "agent/store/disk_watch.h"

#include <stddef.h>

#include "common/base/plant.h"

static enum disk_verdict blocked(const struct disk_watch *watch, const struct disk_view *view,
                                 struct errmsg *why)
{
    if (view->now_ns - watch->stuck_since_ns >= DISK_BLOCKED_MAX_NS) {
        errmsg_set(why, ERR_IO, "the disk has been blocked for 45 s");
        return DISK_FAILED;
    }
    return DISK_SLOW;
}

/* The test came back well: give raft as long as the disk needs, then call it lost. */
static enum disk_verdict tested_well(struct disk_watch *watch, const struct disk_view *view,
                                     struct errmsg *why)
{
    if (watch->tested_ns == 0) {
        watch->tested_ns = view->now_ns;
        watch->test_duration_ns = view->test_duration_ns;
    }
    uint64_t grace_ns = DISK_PATIENCE_NS + DISK_TEST_FACTOR * watch->test_duration_ns;
    bool is_over = view->now_ns - watch->tested_ns >= grace_ns;

    if (!is_over && view->now_ns - watch->stuck_since_ns < DISK_BLOCKED_MAX_NS) {
        return DISK_FINE;
    }
    if (watch->was_full) {
        return DISK_REOPEN;
    }
    errmsg_set(why, ERR_IO,
               "the disk can be written, but entry %llu was never stored (the last one is %llu): "
               "a failed write was lost",
               (unsigned long long)view->last_index, (unsigned long long)view->stored_index);
    return DISK_FAILED;
}

static enum disk_verdict judge_test(struct disk_watch *watch, const struct disk_view *view,
                                    struct errmsg *why)
{
    switch (view->test) {
    case DISK_TEST_NONE:
        return DISK_ASK;
    case DISK_TEST_RUNNING:
        return blocked(watch, view, why);
    case DISK_TEST_OK:
        return tested_well(watch, view, why);
    case DISK_TEST_FULL:
        watch->was_full = true;
        watch->tested_ns = 0;
        if (view->now_ns - watch->asked_ns >= DISK_PATIENCE_NS) {
            watch->asked_ns = view->now_ns;
            return DISK_ASK;
        }
        return DISK_FULL;
    case DISK_TEST_FAILED:
        errmsg_set(why, ERR_IO, "a test write beside the log failed");
        return DISK_FAILED;
    }
    return DISK_FINE;
}

#define GAP_NS UINT64_C(1000000000)

/* Move the times of the standstill over a gap in which nobody looked. */
static void skip_gap(struct disk_watch *watch, uint64_t now_ns)
{
    uint64_t gap_ns = watch->seen_ns == 0 ? 0 : now_ns - watch->seen_ns;
    uint64_t *times[] = {&watch->stuck_since_ns, &watch->asked_ns, &watch->tested_ns};

    for (size_t i = 0; i < 3 && gap_ns > GAP_NS; i++) {
        *times[i] += *times[i] != 0 ? gap_ns : 0;
    }
    watch->seen_ns = now_ns;
}

enum disk_verdict disk_watch_step(struct disk_watch *watch, const struct disk_view *view,
                                  struct errmsg *why)
{
    bool has_work = view->last_index > view->stored_index || view->is_installing;

    if (plant_is("rn5")) {
        return DISK_FINE;
    }
    skip_gap(watch, view->now_ns);
    if (view->has_failed_write) {
        errmsg_set(why, ERR_IO, "a write of log entries failed");
        return DISK_FAILED;
    }
    if (!has_work || view->stored_index != watch->stored_index ||
        view->is_installing != watch->is_installing || watch->stuck_since_ns == 0) {
        *watch = (struct disk_watch){.seen_ns = view->now_ns,
                                     .stored_index = view->stored_index,
                                     .is_installing = view->is_installing,
                                     .was_full = view->is_full,
                                     .stuck_since_ns = has_work ? view->now_ns : 0};
        return DISK_FINE;
    }
    watch->was_full = watch->was_full || view->is_full;
    if (view->now_ns - watch->stuck_since_ns < DISK_PATIENCE_NS) {
        return DISK_FINE;
    }
    if (watch->asked_ns == 0) {
        watch->asked_ns = view->now_ns;
        return DISK_ASK;
    }
    return judge_test(watch, view, why);
}
