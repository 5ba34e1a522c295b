/* ctest labels: threads */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/loop/thread.h"
#include "agent/loop/watchdog.h"
#include "common/base/clock.h"
#include "common/base/units.h"

#define ROUND_MS 2 /* of the test; the counters still speak of WATCHDOG_ROUND_MS */
#define WAIT_NS (20 * NS_PER_SECOND)

#define ARG_ABORTS "stuck-aborts"
#define ARG_STALLS "stuck-stalls"

static void pause_ms(int ms)
{
    poll(NULL, 0, ms);
}

static void a_silent_loop_is_one_stall_and_ends_with_its_next_beat(void **state)
{
    struct watchdog *watchdog;
    struct watchdog_loop loop;
    uint64_t end_ns = clock_monotonic_ns() + WAIT_NS;

    (void)state;
    assert_int_equal(watchdog_start(ROUND_MS, &watchdog), 0);
    watchdog_add(watchdog, &loop, "test", pthread_self(), false);
    while (!atomic_load(&loop.is_stalled) && clock_monotonic_ns() < end_ns) {
        pause_ms(1);
    }
    assert_true(atomic_load(&loop.is_stalled));
    watchdog_beat(&loop);
    while (atomic_load(&loop.is_stalled) && clock_monotonic_ns() < end_ns) {
        pause_ms(1);
    }
    assert_false(atomic_load(&loop.is_stalled));
    assert_true(atomic_load(&loop.n_stalls) >= 1);
    assert_true(atomic_load(&loop.longest_stall_ms) >= WATCHDOG_STALL_MS);
    watchdog_remove(watchdog, &loop);
    watchdog_stop(watchdog);
}

static void *stand_still(void *arg)
{
    (void)arg;
    for (;;) {
        pause();
    }
    return NULL;
}

/* Runs in a program of its own: ends by SIGABRT when may_abort, else by itself after a second. */
static void stuck_program(bool may_abort)
{
    struct watchdog *watchdog;
    struct watchdog_loop loop;
    pthread_t thread;
    uint64_t end_ns = clock_monotonic_ns() + (may_abort ? WAIT_NS : NS_PER_SECOND);

    watchdog_install_backtrace();
    thread_start(&thread, "stuck", stand_still, NULL);
    watchdog_start(ROUND_MS, &watchdog);
    watchdog_add(watchdog, &loop, "stuck", thread, may_abort);
    while (clock_monotonic_ns() < end_ns) {
        pause_ms(5);
    }
    _exit(7); /* the stuck thread still runs: nothing is to be freed or looked for */
}

/* Not a bare fork: a child that goes on as a copy may have a lock of the sanitizer's that a thread
 * of the parent held, and wait for ever. */
static int run_child(bool may_abort, char *text, size_t text_bytes)
{
    int pipe_fds[2], status = 0;
    size_t n = 0;

    assert_int_equal(pipe2(pipe_fds, O_CLOEXEC), 0);
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        signal(SIGABRT, SIG_DFL);
        dup2(pipe_fds[1], STDERR_FILENO);
        execl("/proc/self/exe", "test_watchdog", may_abort ? ARG_ABORTS : ARG_STALLS, (char *)NULL);
        _exit(127);
    }
    close(pipe_fds[1]);
    for (;;) {
        ssize_t got = read(pipe_fds[0], text + n, text_bytes - 1 - n);

        if (got <= 0 || n + (size_t)got == text_bytes - 1) {
            break;
        }
        n += (size_t)got;
    }
    text[n] = '\0';
    close(pipe_fds[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static void a_loop_that_may_abort_ends_the_process_with_a_backtrace_of_its_own_stack(void **state)
{
    static char text[65536];
    int status = run_child(true, text, sizeof text);

    (void)state;
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGABRT);
    assert_non_null(strstr(text, "event=loop_stuck loop=stuck"));
    assert_non_null(strstr(text, "pause"));
}

static void the_stores_loop_only_ever_stalls(void **state)
{
    static char text[65536];
    int status = run_child(false, text, sizeof text); /* one second = 500 rounds, an abort is 120 */

    (void)state;
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 7);
    assert_non_null(strstr(text, "event=loop_stalled"));
    assert_null(strstr(text, "loop_stuck"));
}

int main(int argc, char **argv)
{
    if (argc > 1) {
        stuck_program(strcmp(argv[1], ARG_ABORTS) == 0);
    }

    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_silent_loop_is_one_stall_and_ends_with_its_next_beat),
        cmocka_unit_test(a_loop_that_may_abort_ends_the_process_with_a_backtrace_of_its_own_stack),
        cmocka_unit_test(the_stores_loop_only_ever_stalls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
