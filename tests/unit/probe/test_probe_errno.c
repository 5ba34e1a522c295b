/* R-PROBE-4, R-SELF-3: which errno of which call counts against a backend. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "agent/probe/probe_errno.h"

struct row {
    enum probe_call call;
    int errnum;
    enum probe_reason reason;
};

static const struct row rows[] = {
    /* nothing that happens before a packet leaves is the backend's fault */
    {PROBE_CALL_SOCKET, EMFILE, REASON_LOCAL_NO_DESCRIPTOR},
    {PROBE_CALL_SOCKET, ENFILE, REASON_LOCAL_NO_DESCRIPTOR},
    {PROBE_CALL_SOCKET, ENOSPC, REASON_LOCAL_NO_DESCRIPTOR},
    {PROBE_CALL_SOCKET, ENOBUFS, REASON_LOCAL_NO_BUFFER},
    {PROBE_CALL_SOCKET, ENOMEM, REASON_LOCAL_NO_BUFFER},
    {PROBE_CALL_SOCKET, EPERM, REASON_LOCAL_NO_PERMISSION},
    {PROBE_CALL_SOCKET, EACCES, REASON_LOCAL_NO_PERMISSION},
    {PROBE_CALL_SOCKET, EAFNOSUPPORT, REASON_LOCAL_UNSUPPORTED},
    {PROBE_CALL_BIND, EADDRNOTAVAIL, REASON_LOCAL_SOURCE_MISSING},
    {PROBE_CALL_BIND, EADDRINUSE, REASON_LOCAL_NO_PORT},
    {PROBE_CALL_BIND, EACCES, REASON_LOCAL_NO_PERMISSION},

    /* returned by connect: this node's routes and ports, but for an explicit "unreachable" */
    {PROBE_CALL_CONNECT, ECONNREFUSED, REASON_CONNECT_FAILED},
    {PROBE_CALL_CONNECT, EHOSTUNREACH, REASON_CONNECT_FAILED}, /* A15 */
    {PROBE_CALL_CONNECT, ENETUNREACH, REASON_LOCAL_NO_ROUTE},
    {PROBE_CALL_CONNECT, ENETDOWN, REASON_LOCAL_NO_ROUTE},
    {PROBE_CALL_CONNECT, EINVAL, REASON_LOCAL_NO_ROUTE},
    {PROBE_CALL_CONNECT, EADDRNOTAVAIL, REASON_LOCAL_NO_PORT},
    {PROBE_CALL_CONNECT, EADDRINUSE, REASON_LOCAL_NO_PORT},
    {PROBE_CALL_CONNECT, EAGAIN, REASON_LOCAL_NO_PORT},
    {PROBE_CALL_CONNECT, ENOBUFS, REASON_LOCAL_NO_BUFFER},
    {PROBE_CALL_CONNECT, EPERM, REASON_LOCAL_NO_PERMISSION},
    {PROBE_CALL_CONNECT, EACCES, REASON_LOCAL_NO_PERMISSION},

    /* of a packet made by hand: nothing of it has left */
    {PROBE_CALL_RAW_SEND, EAGAIN, REASON_LOCAL_NO_BUFFER},
    {PROBE_CALL_RAW_SEND, ENOBUFS, REASON_LOCAL_NO_BUFFER},
    {PROBE_CALL_RAW_SEND, EPERM, REASON_LOCAL_NO_PERMISSION}, /* this node's own firewall */
    {PROBE_CALL_RAW_SEND, ENETUNREACH, REASON_LOCAL_NO_ROUTE},
    {PROBE_CALL_RAW_SEND, EINVAL, REASON_LOCAL_NO_ROUTE},
    {PROBE_CALL_RAW_SEND, EHOSTUNREACH, REASON_CONNECT_FAILED}, /* A15 */

    /* of a connection under way: answers of the backend and of routers */
    {PROBE_CALL_CONNECTING, ECONNREFUSED, REASON_CONNECT_FAILED},
    {PROBE_CALL_CONNECTING, EHOSTUNREACH, REASON_CONNECT_FAILED},
    {PROBE_CALL_CONNECTING, ENETUNREACH, REASON_CONNECT_FAILED}, /* ICMP, not the own routes */
    {PROBE_CALL_CONNECTING, EHOSTDOWN, REASON_CONNECT_FAILED},
    {PROBE_CALL_CONNECTING, ENOPROTOOPT, REASON_CONNECT_FAILED},
    {PROBE_CALL_CONNECTING, EACCES, REASON_CONNECT_FAILED}, /* IPv6 admin-prohibited */
    {PROBE_CALL_CONNECTING, ECONNRESET, REASON_CONNECT_INTERRUPT},
    {PROBE_CALL_CONNECTING, EPIPE, REASON_CONNECT_INTERRUPT},
    {PROBE_CALL_CONNECTING, ETIMEDOUT, REASON_CONNECT_TIMEOUT},
    {PROBE_CALL_CONNECTING, EPERM, REASON_LOCAL_NO_PERMISSION},
    {PROBE_CALL_CONNECTING, ENETDOWN, REASON_LOCAL_NO_ROUTE},
    {PROBE_CALL_CONNECTING, ENOBUFS, REASON_LOCAL_NO_BUFFER},
    {PROBE_CALL_CONNECTING, EADDRNOTAVAIL, REASON_LOCAL_SOURCE_MISSING},

    {PROBE_CALL_TRANSFER, ECONNRESET, REASON_CONNECT_INTERRUPT},
    {PROBE_CALL_TRANSFER, EPIPE, REASON_CONNECT_INTERRUPT},
    {PROBE_CALL_TRANSFER, EHOSTUNREACH, REASON_CONNECT_FAILED},
    {PROBE_CALL_TRANSFER, ETIMEDOUT, REASON_RECV_RESPONSE_TIMEOUT},
    {PROBE_CALL_TRANSFER, ENOBUFS, REASON_LOCAL_NO_BUFFER},
    {PROBE_CALL_TRANSFER, ENOMEM, REASON_LOCAL_NO_BUFFER},
    {PROBE_CALL_TRANSFER, ENETDOWN, REASON_LOCAL_NO_ROUTE},
    {PROBE_CALL_TRANSFER, EPERM, REASON_LOCAL_NO_PERMISSION},
};

static void each_errno_has_its_reason(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        enum probe_reason reason = probe_reason_of_errno(rows[i].call, rows[i].errnum);

        if (reason != rows[i].reason) {
            fail_msg("row %zu: call %d errno %d gave %s, expected %s", i, (int)rows[i].call,
                     rows[i].errnum, probe_reason_word(reason), probe_reason_word(rows[i].reason));
        }
    }
}

static void an_unknown_errno_never_counts_against_a_backend(void **state)
{
    unsigned n_failures = 0;

    (void)state;
    for (int call = PROBE_CALL_SOCKET; call <= PROBE_CALL_TRANSFER; call++) {
        for (int errnum = 1; errnum < 4096; errnum++) {
            enum probe_reason reason = probe_reason_of_errno((enum probe_call)call, errnum);
            enum probe_class class = probe_reason_class(reason);

            assert_true(class == PROBE_FAIL || class == PROBE_INCONCLUSIVE);
            n_failures += class == PROBE_FAIL;
            if (errnum > 133) { /* beyond the last errno of Linux */
                assert_int_equal(reason, REASON_LOCAL_UNSUPPORTED);
            }
            if (call <= PROBE_CALL_BIND) {
                assert_int_equal(class, PROBE_INCONCLUSIVE);
            }
        }
    }
    print_message("%u pairs of call and errno count as failures\n", n_failures);
    assert_true(n_failures < 40);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_errno_has_its_reason),
        cmocka_unit_test(an_unknown_errno_never_counts_against_a_backend),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
