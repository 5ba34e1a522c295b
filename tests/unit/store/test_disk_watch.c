/* ctest labels: threads */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/store/disk_watch.h"
#include "agent/store/files.h"

#define MS UINT64_C(1000000)

/* Feeds the watch every 250 ms; returns the first verdict that is not FINE, and when. */
struct story {
    struct disk_watch watch;
    struct disk_view view;
    uint64_t now_ms;
};

static enum disk_verdict step(struct story *story)
{
    struct errmsg why;

    story->now_ms += 250;
    story->view.now_ns = story->now_ms * MS;
    return disk_watch_step(&story->watch, &story->view, &why);
}

static enum disk_verdict until(struct story *story, enum disk_verdict other_than, uint64_t end_ms)
{
    enum disk_verdict verdict = other_than;

    while (story->now_ms < end_ms && verdict == other_than) {
        verdict = step(story);
    }
    return verdict;
}

static void progress_is_never_doubted(void **state)
{
    struct story story = {0};

    (void)state;
    for (uint64_t i = 0; i < 400; i++) {
        story.view.last_index = i + 10;
        story.view.stored_index = i;
        assert_int_equal(step(&story), DISK_FINE);
    }
    story.view.stored_index = story.view.last_index; /* nothing to do is no standstill */
    assert_int_equal(until(&story, DISK_FINE, 1000000), DISK_FINE);
}

static void a_lost_write_is_found_after_a_good_test(void **state)
{
    struct story story = {.view = {.last_index = 5, .stored_index = 4}};

    (void)state;
    assert_int_equal(until(&story, DISK_FINE, 10000), DISK_ASK);
    assert_in_range(story.now_ms, 2500, 3000);
    story.view.test = DISK_TEST_RUNNING;
    assert_int_equal(step(&story), DISK_SLOW);
    story.view.test = DISK_TEST_OK;
    story.view.test_duration_ns = 5 * MS;
    assert_int_equal(until(&story, DISK_FINE, 20000), DISK_FAILED);
    assert_in_range(story.now_ms, 5000, 6500);
}

static void a_failed_test_or_write_ends_at_once(void **state)
{
    struct story story = {.view = {.last_index = 5, .stored_index = 4}};

    (void)state;
    assert_int_equal(until(&story, DISK_FINE, 10000), DISK_ASK);
    story.view.test = DISK_TEST_FAILED;
    assert_int_equal(step(&story), DISK_FAILED);

    story = (struct story){.view = {.has_failed_write = true}};
    assert_int_equal(step(&story), DISK_FAILED);
}

static void a_blocked_disk_is_waited_for_up_to_45_s(void **state)
{
    struct story story = {.view = {.last_index = 5, .stored_index = 4}};

    (void)state;
    assert_int_equal(until(&story, DISK_FINE, 10000), DISK_ASK);
    story.view.test = DISK_TEST_RUNNING;
    assert_int_equal(until(&story, DISK_SLOW, 100000), DISK_FAILED);
    assert_in_range(story.now_ms, 45000, 46000);
}

static void a_stopped_process_is_no_blocked_disk(void **state)
{
    struct story story = {.view = {.last_index = 5, .stored_index = 4}};

    (void)state;
    assert_int_equal(until(&story, DISK_FINE, 1000), DISK_FINE);
    story.now_ms += 100000; /* SIGSTOP, SIGCONT */
    assert_int_equal(until(&story, DISK_FINE, story.now_ms + 10000), DISK_ASK);
    assert_in_range(story.now_ms, 102500, 104500);
    story.view.test = DISK_TEST_RUNNING;
    story.now_ms += 100000;
    assert_int_equal(step(&story), DISK_SLOW);
}

static void a_slow_disk_gets_as_long_as_its_test_took(void **state)
{
    struct story story = {.view = {.last_index = 5, .stored_index = 4}};

    (void)state;
    assert_int_equal(until(&story, DISK_FINE, 10000), DISK_ASK);
    story.view.test = DISK_TEST_RUNNING;
    assert_int_equal(until(&story, DISK_SLOW, 6000), DISK_SLOW);
    story.view.test = DISK_TEST_OK;
    story.view.test_duration_ns = 3000 * MS;
    assert_int_equal(until(&story, DISK_FINE, 20000), DISK_FINE);
    story.view.stored_index = 5; /* it came after all */
    assert_int_equal(until(&story, DISK_FINE, 100000), DISK_FINE);
}

static void a_full_disk_never_ends_it_and_is_opened_anew(void **state)
{
    struct story story = {.view = {.last_index = 5, .stored_index = 4}};

    (void)state;
    assert_int_equal(until(&story, DISK_FINE, 10000), DISK_ASK);
    story.view.test = DISK_TEST_FULL;
    for (int i = 0; i < 4000; i++) { /* 1000 s */
        enum disk_verdict verdict = step(&story);

        assert_true(verdict == DISK_FULL || verdict == DISK_ASK);
    }
    story.view.test = DISK_TEST_OK;
    assert_int_equal(until(&story, DISK_FINE, story.now_ms + 10000), DISK_REOPEN);
}

static void tester_writes_beside_the_log_and_leaves_nothing(void **state)
{
    char dir[] = "/tmp/jury-disk-XXXXXX";
    char path[FILES_PATH_BYTES];
    struct disk_tester *tester = NULL;
    enum disk_test result = DISK_TEST_RUNNING;
    uint64_t duration_ns = 0;
    struct errmsg err;

    (void)state;
    assert_non_null(mkdtemp(dir));
    assert_int_equal(disk_tester_start(dir, 1 << 20, &tester), 0);
    disk_tester_ask(tester);
    while (result == DISK_TEST_RUNNING) {
        sched_yield();
        result = disk_tester_result(tester, &duration_ns, &err);
    }
    assert_int_equal(result, DISK_TEST_OK);
    assert_true(duration_ns > 0);
    files_path(path, dir, "disk-test", NULL);
    assert_false(files_exists(path));

    rmdir(dir); /* a place that cannot be written */
    disk_tester_ask(tester);
    do {
        sched_yield();
        result = disk_tester_result(tester, &duration_ns, &err);
    } while (result == DISK_TEST_RUNNING);
    assert_int_equal(result, DISK_TEST_FAILED);
    assert_non_null(strstr(err.text, "disk-test"));
    disk_tester_stop(tester);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(progress_is_never_doubted),
        cmocka_unit_test(a_lost_write_is_found_after_a_good_test),
        cmocka_unit_test(a_failed_test_or_write_ends_at_once),
        cmocka_unit_test(a_blocked_disk_is_waited_for_up_to_45_s),
        cmocka_unit_test(a_stopped_process_is_no_blocked_disk),
        cmocka_unit_test(a_slow_disk_gets_as_long_as_its_test_took),
        cmocka_unit_test(a_full_disk_never_ends_it_and_is_opened_anew),
        cmocka_unit_test(tester_writes_beside_the_log_and_leaves_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
