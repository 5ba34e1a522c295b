/* Probes on demand on their own threads: one report each, a bound, the node's own list, and an end
 * that waits for none of them. What they do on the wire is shown by
 * tests/integration/probe_now.py.
 * ctest labels: threads */
#include <arpa/inet.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/probe/probe_now.h"
#include "tests/lib/kept_check.h"

#define PATIENCE_MS 10000

/* A socket of this machine that nobody reads: what is sent to it is neither refused nor answered.
 */
static int silent_socket(uint16_t *ret_port)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n_bytes = sizeof at;
    int fd = socket(AF_INET, SOCK_DGRAM, 0);

    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &n_bytes), 0);
    *ret_port = ntohs(at.sin_port);
    return fd;
}

static struct probe_target target_of(uint16_t port, uint32_t timeout_ms)
{
    const struct health_check check = {.type = CHECK_TYPE_UDP,
                                       .timeout_ms = timeout_ms,
                                       .interval_ms = 1000,
                                       .udp = {.method = UDP_EXCHANGE,
                                               .payload = {.n_bytes = 1, .bytes = "?"},
                                               .expect = {.n_bytes = 1, .bytes = "!"}}};
    struct probe_target target = {.id = {.slot = 7, .birth = 99},
                                  .definition.check = kept_check(&check)};

    assert_int_equal(addr_parse("127.0.0.1", &target.definition.to.addr, NULL), 0);
    target.definition.to.port = port;
    return target;
}

struct fixture {
    struct wake wake;
    struct probe_now *probes;
    int fds[LIMIT_PROBES_NOW + 1];
    uint16_t ports[LIMIT_PROBES_NOW + 1];
};

static void open_fixture(struct fixture *fixture, const char *allowed)
{
    struct probe_loop_options options = {.n_allowed = 1};

    assert_int_equal(wake_init(&fixture->wake), 0);
    assert_int_equal(cidr_parse(allowed, &options.allowed[0], NULL), 0);
    fixture->probes = probe_now_new(&options, &fixture->wake);
    assert_non_null(fixture->probes);
    for (unsigned i = 0; i <= LIMIT_PROBES_NOW; i++) {
        fixture->fds[i] = silent_socket(&fixture->ports[i]);
    }
}

static void close_fixture(struct fixture *fixture)
{
    probe_now_free(fixture->probes);
    for (unsigned i = 0; i <= LIMIT_PROBES_NOW; i++) {
        close(fixture->fds[i]);
    }
    wake_close(&fixture->wake);
}

static struct probe_report wait_report(struct fixture *fixture, uint64_t *ret_cookie)
{
    struct pollfd fd = {.fd = wake_fd(&fixture->wake), .events = POLLIN};
    struct probe_report report;

    while (!probe_now_take(fixture->probes, ret_cookie, &report)) {
        assert_int_equal(poll(&fd, 1, PATIENCE_MS), 1);
        wake_clear(&fixture->wake);
    }
    return report;
}

/* What a backend says to the probe that waits at its socket. */
static void answer_probe(int fd, const char *text)
{
    struct pollfd readable = {.fd = fd, .events = POLLIN};
    struct sockaddr_in from;
    socklen_t n_bytes = sizeof from;
    char byte;

    assert_int_equal(poll(&readable, 1, PATIENCE_MS), 1);
    assert_int_equal(recvfrom(fd, &byte, 1, 0, (struct sockaddr *)&from, &n_bytes), 1);
    assert_int_equal(sendto(fd, text, strlen(text), 0, (const struct sockaddr *)&from, sizeof from),
                     (ssize_t)strlen(text));
}

static void each_gives_one_report_with_its_cookie_and_id(void **state)
{
    struct fixture fixture;
    struct errmsg err;
    uint64_t cookie;

    (void)state;
    open_fixture(&fixture, "127.0.0.0/8");
    struct probe_target target = target_of(fixture.ports[0], 60000);
    assert_int_equal(probe_now_start(fixture.probes, 42, &target, &err), 0);
    answer_probe(fixture.fds[0], "no");
    struct probe_report report = wait_report(&fixture, &cookie);
    assert_int_equal(cookie, 42);
    assert_int_equal(report.result.id.slot, 7);
    assert_int_equal(report.result.id.birth, 99);
    assert_int_equal(report.result.reason, REASON_RESPONSE_MISMATCH);
    assert_string_equal(report.engine, "udp");
    assert_int_equal(report.trace.steps[0].kind, PROBE_STEP_DATAGRAM_SENT);
    assert_true(report.trace.source.port != 0);
    assert_int_equal(report.trace.steps[1].kind, PROBE_STEP_DATAGRAM_RECEIVED);
    assert_string_equal(report.trace.steps[1].text, "no");
    assert_int_equal(report.deadline_ns, report.result.start_ns + 60 * NS_PER_SECOND);
    assert_false(probe_now_take(fixture.probes, &cookie, &report));
    close_fixture(&fixture);
}

static void what_the_own_list_forbids_is_not_sent(void **state)
{
    struct fixture fixture;
    struct errmsg err;
    uint64_t cookie;
    char byte;

    (void)state;
    open_fixture(&fixture, "10.0.0.0/8");
    struct probe_target target = target_of(fixture.ports[0], 100);
    assert_int_equal(probe_now_start(fixture.probes, 1, &target, &err), 0);
    struct probe_report report = wait_report(&fixture, &cookie);
    assert_int_equal(report.result.reason, REASON_LOCAL_FORBIDDEN);
    assert_int_equal(report.trace.n_steps, 0);
    assert_int_equal(recv(fixture.fds[0], &byte, 1, MSG_DONTWAIT), -1);
    close_fixture(&fixture);
}

/* The timeouts of these are far longer than the test may take. */
static void one_too_many_is_busy_and_the_end_waits_for_none(void **state)
{
    struct fixture fixture;
    struct probe_target target;
    struct errmsg err;

    (void)state;
    open_fixture(&fixture, "127.0.0.0/8");
    for (unsigned i = 0; i < LIMIT_PROBES_NOW; i++) {
        target = target_of(fixture.ports[i], 300000);
        assert_int_equal(probe_now_start(fixture.probes, i, &target, &err), 0);
    }
    target = target_of(fixture.ports[LIMIT_PROBES_NOW], 300000);
    assert_int_equal(probe_now_start(fixture.probes, 9, &target, &err), ERR_BUSY);
    assert_non_null(strstr(err.text, "4 probes on demand"));
    close_fixture(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_gives_one_report_with_its_cookie_and_id),
        cmocka_unit_test(what_the_own_list_forbids_is_not_sent),
        cmocka_unit_test(one_too_many_is_busy_and_the_end_waits_for_none),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
