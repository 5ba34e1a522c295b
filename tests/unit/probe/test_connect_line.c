/* Lines of tcp checks on loopback, step by step: a greeting, a question and its answer. spec.md 4,
 * S103.
 */
#include <errno.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/lib/engine_bench.h"
#include "tests/lib/kept_check.h"

static void set_line(struct check_line *line, const char *text)
{
    line->n_bytes = (uint16_t)strlen(text);
    memcpy(line->bytes, text, line->n_bytes);
}

static struct probe_target line_target(const struct engine_bench *bench, const char *send,
                                       const char *expect)
{
    struct probe_target target = bench_tcp_target(bench, 0);

    set_line(&own_check(&target.definition)->tcp.send, send);
    set_line(&own_check(&target.definition)->tcp.expect, expect);
    return target;
}

static void a_greeting_decides_however_it_is_cut(void **state)
{
    static const struct {
        const char *first;
        const char *second; /* NULL = the server closes instead */
        enum probe_reason reason;
    } rows[] = {{"220 ready\r\n", "", REASON_OK},
                {"2", "20", REASON_OK},
                {"421 busy\r\n", "", REASON_RESPONSE_MISMATCH},
                {"2", "3", REASON_RESPONSE_MISMATCH},
                {"22", NULL, REASON_CONNECT_INTERRUPT},
                {"", NULL, REASON_CONNECT_INTERRUPT}};
    struct engine_bench bench;

    (void)state;
    bench_init(&bench, 1);
    bench_listen(&bench, AF_INET, 8);
    struct probe_target target = line_target(&bench, "", "220");
    for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        bench_submit(&bench, &target);
        int fd = bench_accept(&bench);
        bench_say(fd, rows[i].first);
        bench_step(&bench);
        if (rows[i].second == NULL) {
            shutdown(fd, SHUT_WR);
        } else if (bench.n_results == i) {
            bench_say(fd, rows[i].second);
        }
        bench_run_until(&bench, i + 1);
        bench_assert_result(&bench, i, rows[i].reason);
        close(fd);
    }
    bench_close(&bench);
}

static void a_question_is_asked_and_its_answer_ends_with_a_reset(void **state)
{
    struct engine_bench bench;
    char text[16] = "";

    (void)state;
    bench_init(&bench, 1);
    bench_listen(&bench, AF_INET, 8);
    struct probe_target target = line_target(&bench, "PING\r\n", "+PONG");
    bench_submit(&bench, &target);
    int fd = bench_accept(&bench);
    for (size_t n = 0; n < 6;) {
        bench_step(&bench);
        ssize_t more = recv(fd, text + n, 6 - n, MSG_DONTWAIT);
        n += more > 0 ? (size_t)more : 0;
    }
    assert_string_equal(text, "PING\r\n");
    assert_int_equal(bench.n_results, 0);
    bench_say(fd, "+PONG\r\n");
    bench_run_until(&bench, 1);

    bench_assert_result(&bench, 0, REASON_OK);
    assert_int_equal(bench_read_to_end(&bench, fd), ECONNRESET);
    close(fd);
    bench_close(&bench);
}

static void a_server_that_says_nothing_is_a_response_timeout(void **state)
{
    struct engine_bench bench;

    (void)state;
    bench_init(&bench, 1);
    bench_listen(&bench, AF_INET, 8);
    struct probe_target target = line_target(&bench, "", "220");
    own_check(&target.definition)->timeout_ms = BENCH_TIMEOUT_MS;
    bench_submit(&bench, &target);
    int fd = bench_accept(&bench);
    bench_run_until(&bench, 1);

    bench_assert_result(&bench, 0, REASON_RECV_RESPONSE_TIMEOUT);
    assert_in_range(bench_took_ms(&bench, 0), BENCH_TIMEOUT_MS, 10 * BENCH_TIMEOUT_MS);
    close(fd);
    bench_close(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_greeting_decides_however_it_is_cut),
        cmocka_unit_test(a_question_is_asked_and_its_answer_ends_with_a_reset),
        cmocka_unit_test(a_server_that_says_nothing_is_a_response_timeout),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
