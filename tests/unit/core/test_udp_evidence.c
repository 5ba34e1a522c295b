/* What ICMP errors of UDP ports are worth to other checks: S49, N13. Times as of udp_evidence.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "agent/core/udp_evidence.h"
#include "common/base/units.h"

#define S NS_PER_SECOND
#define MS NS_PER_MS

static struct udp_evidence *make(void)
{
    struct udp_evidence *evidence = calloc(1, sizeof *evidence);
    const struct hash_key key = {1, 2};

    assert_non_null(evidence);
    udp_evidence_init(evidence, &key);
    return evidence;
}

static struct endpoint at(const char *text)
{
    struct endpoint endpoint = {.port = 0};

    assert_int_equal(endpoint_parse(text, &endpoint, NULL), 0);
    return endpoint;
}

static void silence_holds_where_nothing_is_known(void **state)
{
    struct udp_evidence *evidence = make();
    struct endpoint port = at("10.0.0.1:53");

    (void)state;
    assert_int_equal(udp_evidence_judge(evidence, &port, 100 * S, 5 * S), UDP_SILENCE_HOLDS);
    free(evidence);
}

static void a_refusal_counts_for_one_interval_and_for_its_port_alone(void **state)
{
    static const char *const others[] = {"10.0.0.2:53", "[fc00::1]:53"};
    struct udp_evidence *evidence = make();
    struct endpoint port = at("10.0.0.1:53");

    (void)state;
    udp_evidence_refused(evidence, &port, 100 * S);
    assert_int_equal(udp_evidence_judge(evidence, &port, 99 * S, 5 * S), UDP_SILENCE_REFUSED);
    assert_int_equal(udp_evidence_judge(evidence, &port, 105 * S, 5 * S), UDP_SILENCE_REFUSED);
    assert_int_equal(udp_evidence_judge(evidence, &port, 105 * S + 1, 5 * S), UDP_SILENCE_HOLDS);
    for (size_t i = 0; i < 2; i++) {
        struct endpoint other = at(others[i]);

        assert_int_equal(udp_evidence_judge(evidence, &other, 100 * S, 5 * S), UDP_SILENCE_HOLDS);
    }
    free(evidence);
}

static void an_answer_takes_a_refusal_back(void **state)
{
    struct udp_evidence *evidence = make();
    struct endpoint port = at("10.0.0.1:53");

    (void)state;
    udp_evidence_refused(evidence, &port, 100 * S);
    udp_evidence_answered(evidence, &port);
    assert_int_equal(udp_evidence_judge(evidence, &port, 103 * S, 5 * S), UDP_SILENCE_HOLDS);
    free(evidence);
}

/* A host that this node heard of for the first time may have sent all its errors to others. */
static void
after_the_first_error_of_a_host_silence_of_its_ports_proves_nothing_for_a_while(void **state)
{
    struct udp_evidence *evidence = make();
    struct endpoint closed = at("10.0.0.1:53");
    struct endpoint silent = at("10.0.0.1:54");
    struct endpoint elsewhere = at("10.0.0.2:54");
    uint64_t end_ns = 100 * S + UDP_EVIDENCE_REFILL_NS + UDP_EVIDENCE_SLACK_NS;

    (void)state;
    udp_evidence_refused(evidence, &closed, 100 * S);
    assert_int_equal(udp_evidence_judge(evidence, &silent, 101 * S, 5 * S), UDP_SILENCE_LIMITED);
    assert_int_equal(udp_evidence_judge(evidence, &silent, end_ns, 5 * S), UDP_SILENCE_LIMITED);
    assert_int_equal(udp_evidence_judge(evidence, &silent, end_ns + 1, 5 * S), UDP_SILENCE_HOLDS);
    /* A probe that began well before was answered, if it was, before the bucket was empty. */
    assert_int_equal(udp_evidence_judge(evidence, &silent, 99 * S, 5 * S), UDP_SILENCE_HOLDS);
    assert_int_equal(udp_evidence_judge(evidence, &elsewhere, 101 * S, 5 * S), UDP_SILENCE_HOLDS);
    free(evidence);
}

/* One closed port in an interval of 5 s uses up nothing: the others are judged by their silence. */
static void rare_errors_limit_nothing(void **state)
{
    struct udp_evidence *evidence = make();
    struct endpoint closed = at("10.0.0.1:53");
    struct endpoint silent = at("10.0.0.1:54");

    (void)state;
    for (unsigned i = 0; i < 20; i++) {
        uint64_t now_ns = (100 + 5 * i) * S;

        udp_evidence_refused(evidence, &closed, now_ns);
        if (i > 0) {
            assert_int_equal(udp_evidence_judge(evidence, &silent, now_ns, S), UDP_SILENCE_HOLDS);
        }
    }
    free(evidence);
}

/* What comes once a second, for ever, is what a limit lets through. */
static void errors_at_the_pace_of_the_limit_are_taken_for_it(void **state)
{
    struct udp_evidence *evidence = make();
    struct endpoint silent = at("10.0.0.1:54");
    unsigned n_until = 0;

    (void)state;
    for (unsigned i = 0; i < 60; i++) {
        struct endpoint closed = at("10.0.0.1:1000");

        closed.port = (uint16_t)(closed.port + i);
        udp_evidence_refused(evidence, &closed, (100 + i) * S);
        bool is_limited = udp_evidence_judge(evidence, &silent, (100 + i) * S + 500 * MS, S) ==
                          UDP_SILENCE_LIMITED;
        n_until = is_limited ? n_until : i + 1;
    }
    assert_in_range(n_until, 0, 10);
    free(evidence);
}

/* Datagrams whose answer nobody waits for spend the host's errors as well. */
static void presumed_errors_spend_the_same_bucket(void **state)
{
    struct udp_evidence *evidence = make();
    struct endpoint closed = at("10.0.0.1:53");
    struct endpoint silent = at("10.0.0.1:54");

    (void)state;
    udp_evidence_presumed(evidence, &closed, 50 * S); /* of a host that never said anything */
    udp_evidence_refused(evidence, &closed, 60 * S);
    udp_evidence_refused(evidence, &closed, 100 * S); /* by now the bucket is full again */
    assert_int_equal(udp_evidence_judge(evidence, &silent, 100 * S, 1), UDP_SILENCE_HOLDS);
    udp_evidence_presumed(evidence, &closed, 100 * S);
    udp_evidence_presumed(evidence, &closed, 100 * S);
    assert_int_equal(udp_evidence_judge(evidence, &silent, 100 * S, 1), UDP_SILENCE_LIMITED);
    free(evidence);
}

/* Far more ports than there is room for: nothing grows, and the newest are known. */
static void the_tables_are_bounded_and_keep_the_newest(void **state)
{
    struct udp_evidence *evidence = make();
    struct endpoint port = at("10.0.0.1:1");

    (void)state;
    for (uint32_t i = 0; i < 100000; i++) {
        port.addr.bytes[2] = (uint8_t)(i >> 16);
        port.addr.bytes[3] = (uint8_t)(i >> 8);
        port.port = (uint16_t)(1 + (i & 0xff));
        udp_evidence_refused(evidence, &port, (100 + i) * MS);
        assert_int_equal(udp_evidence_judge(evidence, &port, (100 + i) * MS, S),
                         UDP_SILENCE_REFUSED);
    }
    free(evidence);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(silence_holds_where_nothing_is_known),
        cmocka_unit_test(a_refusal_counts_for_one_interval_and_for_its_port_alone),
        cmocka_unit_test(an_answer_takes_a_refusal_back),
        cmocka_unit_test(
            after_the_first_error_of_a_host_silence_of_its_ports_proves_nothing_for_a_while),
        cmocka_unit_test(rare_errors_limit_nothing),
        cmocka_unit_test(errors_at_the_pace_of_the_limit_are_taken_for_it),
        cmocka_unit_test(presumed_errors_spend_the_same_bucket),
        cmocka_unit_test(the_tables_are_bounded_and_keep_the_newest),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
