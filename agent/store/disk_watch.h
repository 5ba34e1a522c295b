/* Is the disk slow, full or broken? (RN5, design.md 5 "a slow disk is not a failed one")
 *
 * raft_uv may lose a failed write without a word: entries stay in memory, nothing is stored any
 * more, and the node goes on answering. So progress is watched, and when there is none for 2.5 s
 * the disk is asked itself: a file as large as raft's segments is made, written, synced and removed
 * beside them, on a thread of its own since that may block. The decision is pure; the tester is the
 * thread. */
#ifndef JURY_STORE_DISK_WATCH_H
#define JURY_STORE_DISK_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/err.h"

#define DISK_PATIENCE_NS UINT64_C(2500000000)
#define DISK_BLOCKED_MAX_NS UINT64_C(45000000000)
/* A write of raft's may need several syncs where the test needed one. */
#define DISK_TEST_FACTOR 8

enum disk_test {
    DISK_TEST_NONE = 0,
    DISK_TEST_RUNNING,
    DISK_TEST_OK,
    DISK_TEST_FULL,
    DISK_TEST_FAILED
};

enum disk_verdict {
    DISK_FINE = 0,
    DISK_ASK,    /* start a test */
    DISK_SLOW,   /* no progress, the test is blocked as well: wait */
    DISK_FULL,   /* no progress, no space: wait */
    DISK_REOPEN, /* space is back after DISK_FULL, but raft sleeps: open it anew */
    DISK_FAILED  /* fail-stop */
};

/* What is seen now. */
struct disk_view {
    uint64_t now_ns;
    uint64_t last_index;   /* of the log in memory */
    uint64_t stored_index; /* on the disk */
    bool is_installing;    /* a received snapshot is being written */
    bool has_failed_write;
    bool is_full;        /* too little space for a segment */
    enum disk_test test; /* state of the test that DISK_ASK asked for */
    uint64_t test_duration_ns;
};

/* Zeroed at the start and whenever raft is opened anew. */
struct disk_watch {
    uint64_t seen_ns; /* of the step before */
    uint64_t stored_index;
    uint64_t stuck_since_ns; /* 0 = progress, or nothing to do */
    uint64_t asked_ns;
    uint64_t tested_ns; /* end of the newest test; 0 = none in this standstill */
    uint64_t test_duration_ns;
    bool was_full;
    bool is_installing;
};

/* Call at least four times a second; what lies between two calls that are further apart than that
 * (a stopped process, a loop that waits in a sync of its own) is no time of the disk's. why: set
 * for DISK_FAILED. */
enum disk_verdict disk_watch_step(struct disk_watch *watch, const struct disk_view *view,
                                  struct errmsg *why);

/* The tester. */
struct disk_tester;
/* Writes into `dir`, which must exist when a test is started. Errors: ERR_NOMEM, ERR_LIMIT. */
int disk_tester_start(const char *dir, uint32_t file_bytes, struct disk_tester **ret_tester);
/* A test that is blocked in the kernel is left to the end of the process. */
void disk_tester_stop(struct disk_tester *tester);
/* Begin one; ignored while one runs. */
void disk_tester_ask(struct disk_tester *tester);
/* State of the newest test; a finished one is reported until the next begins. */
enum disk_test disk_tester_result(struct disk_tester *tester, uint64_t *ret_duration_ns,
                                  struct errmsg *err);

#endif
