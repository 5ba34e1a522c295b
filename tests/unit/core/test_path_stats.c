/* Round-trip time and loss of a target's probes: S104, row 3.11. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/core/path_stats.h"
#include "common/base/units.h"

static enum path_outcome note(struct path_stats *path, enum probe_reason reason, bool is_refused,
                              bool is_udp, uint64_t took_us)
{
    struct probe_result result = {.probe_class = (uint8_t)probe_reason_class(reason),
                                  .reason = (uint8_t)reason,
                                  .is_refused = is_refused,
                                  .start_ns = (1000 * NS_PER_MS),
                                  .end_ns = (1000 * NS_PER_MS) + took_us * NS_PER_US};

    return path_stats_note(path, &result, is_udp);
}

static void each_outcome_is_a_reply_or_a_loss_or_tells_nothing(void **state)
{
    static const struct {
        enum probe_reason reason;
        bool is_refused, is_udp;
        enum path_outcome outcome;
    } rows[] = {
        {REASON_OK, false, false, PATH_REPLIED},
        {REASON_OK, false, true, PATH_REPLIED},
        {REASON_CONNECT_TIMEOUT, false, false, PATH_LOST},
        {REASON_CONNECT_FAILED, true, false, PATH_REPLIED}, /* RST */
        {REASON_CONNECT_FAILED, false, false, PATH_LOST},   /* nobody at that address */
        {REASON_CONNECT_FAILED, false, true, PATH_LOST},
        {REASON_RECV_RESPONSE_TIMEOUT, false, false, PATH_REPLIED}, /* SYN-ACK came */
        {REASON_RECV_RESPONSE_TIMEOUT, false, true, PATH_LOST},
        {REASON_CONNECT_INTERRUPT, false, false, PATH_REPLIED},
        {REASON_HTTP_CODE_NOT_MATCH, false, false, PATH_REPLIED},
        {REASON_HTTP_INVALID_HEADER, false, false, PATH_REPLIED},
        {REASON_TLS_HANDSHAKE_FAILED, false, false, PATH_REPLIED},
        {REASON_TLS_CERT_EXPIRED, false, false, PATH_REPLIED},
        {REASON_GRPC_STATUS, false, false, PATH_REPLIED},
        {REASON_RESPONSE_MISMATCH, false, true, PATH_REPLIED},
        {REASON_PORT_UNREACHABLE, true, true, PATH_REPLIED},
        {REASON_ECHO, false, true, PATH_REPLIED},
        {REASON_NO_ECHO_REPLY, false, true, PATH_LOST},
        {REASON_SILENT, false, true, PATH_TELLS_NOTHING},
        {REASON_ICMP_LIMITED, false, true, PATH_TELLS_NOTHING},
        {REASON_LOCAL_NO_PORT, false, false, PATH_TELLS_NOTHING},
        {REASON_LOCAL_LATE, false, false, PATH_TELLS_NOTHING},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct path_stats path = {0};

        assert_int_equal(note(&path, rows[i].reason, rows[i].is_refused, rows[i].is_udp, 5),
                         rows[i].outcome);
        assert_int_equal(path_stats_n_probes(&path), rows[i].outcome != PATH_TELLS_NOTHING);
        assert_int_equal(path_stats_n_lost(&path), rows[i].outcome == PATH_LOST);
    }
}

static void nothing_is_known_before_the_first_probe(void **state)
{
    struct path_stats path = {0};
    uint32_t us = 17;

    (void)state;
    assert_false(path_stats_time(&path, &us));
    assert_int_equal(us, 17);
    assert_int_equal(path_stats_n_probes(&path), 0);
    assert_int_equal(path_stats_n_lost(&path), 0);
}

static void loss_is_of_the_last_thirty_probes(void **state)
{
    struct path_stats path = {0};

    (void)state;
    for (unsigned i = 1; i <= 100; i++) {
        note(&path, i % 10 == 0 ? REASON_CONNECT_TIMEOUT : REASON_OK, false, false, 1000);
        assert_int_equal(path_stats_n_probes(&path), i < 30 ? i : 30);
        assert_int_equal(path_stats_n_lost(&path), i < 30 ? i / 10 : 3);
    }
    for (unsigned i = 1; i <= 40; i++) {
        note(&path, REASON_CONNECT_TIMEOUT, false, false, 1000);
    }
    assert_int_equal(path_stats_n_lost(&path), 30);
    for (unsigned i = 1; i <= 30; i++) {
        note(&path, REASON_OK, false, false, 1000);
        assert_int_equal(path_stats_n_lost(&path), 30 - i);
        assert_int_equal(path_stats_n_probes(&path), 30);
    }
}

/* RFC 6298, 2.2 and 2.3, by hand: 8000, then 7/8 * 8000 + 1/8 * 16000, and so on. */
static void response_time_is_smoothed_by_an_eighth(void **state)
{
    static const struct {
        uint64_t took_us;
        uint32_t smoothed_us;
    } rows[] = {{8000, 8000}, {16000, 9000}, {1000, 8000}, {0, 7000}, {15000, 8000}};
    struct path_stats path = {0};
    uint32_t us;

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        note(&path, REASON_OK, false, false, rows[i].took_us);
        assert_true(path_stats_time(&path, &us));
        assert_int_equal(us, rows[i].smoothed_us);
    }
}

/* A failure ends when it ends, and port+echo waits for the timeout: neither is a round trip. */
static void only_a_pass_by_an_answer_has_a_time(void **state)
{
    struct path_stats path = {0};
    uint32_t us;

    (void)state;
    note(&path, REASON_HTTP_CODE_NOT_MATCH, false, false, 1000);
    note(&path, REASON_CONNECT_TIMEOUT, false, false, 5000000);
    note(&path, REASON_ECHO, false, true, 5000000);
    note(&path, REASON_SILENT, false, true, 5000000);
    assert_false(path_stats_time(&path, &us));
    note(&path, REASON_OK, false, false, 0); /* in less than a microsecond */
    assert_true(path_stats_time(&path, &us));
    assert_int_equal(us, 0);
    note(&path, REASON_CONNECT_TIMEOUT, false, false, 5000000);
    assert_true(path_stats_time(&path, &us));
    assert_int_equal(us, 0);
}

/* 300 s is the longest timeout there is; what is longer still does not wrap. */
static void long_times_do_not_wrap(void **state)
{
    struct path_stats path = {0};
    uint32_t us;

    (void)state;
    for (unsigned i = 0; i < 50; i++) {
        note(&path, REASON_OK, false, false, 300 * UINT64_C(1000000));
        assert_true(path_stats_time(&path, &us));
        assert_int_equal(us, 300000000);
    }
    for (unsigned i = 0; i < 200; i++) {
        note(&path, REASON_OK, false, false, UINT64_C(86400) * 1000000);
    }
    assert_true(path_stats_time(&path, &us));
    assert_in_range(us, 500000000, UINT32_MAX / 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_outcome_is_a_reply_or_a_loss_or_tells_nothing),
        cmocka_unit_test(nothing_is_known_before_the_first_probe),
        cmocka_unit_test(loss_is_of_the_last_thirty_probes),
        cmocka_unit_test(response_time_is_smoothed_by_an_eighth),
        cmocka_unit_test(only_a_pass_by_an_answer_has_a_time),
        cmocka_unit_test(long_times_do_not_wrap),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
