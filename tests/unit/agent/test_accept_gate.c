/* Connections beyond the bar are closed and counted; no errno gets through that libzmq dies of. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "agent/accept_gate.h"

#define FILES 64
#define PAST_FDS 256

struct gate {
    struct rlimit before;
    int listener;
    int client;
};

/* A listener with one connection that waits. family: AF_INET or AF_UNIX. */
static void gate_init(struct gate *gate, sa_family_t family)
{
    struct sockaddr_storage name = {.ss_family = family};
    /* A unix socket with the family alone gets a name of the kernel's choice. */
    socklen_t n_bytes = family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(sa_family_t);

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &gate->before), 0);
    gate->listener = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    gate->client = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(gate->listener, (struct sockaddr *)&name, n_bytes), 0);
    assert_int_equal(listen(gate->listener, 4), 0);
    n_bytes = sizeof name;
    assert_int_equal(getsockname(gate->listener, (struct sockaddr *)&name, &n_bytes), 0);
    assert_int_equal(connect(gate->client, (struct sockaddr *)&name, n_bytes), 0);
    accept_gate_take_refused(ACCEPT_NETWORK);
    accept_gate_take_refused(ACCEPT_LOCAL);
}

/* Every descriptor below `fd` is taken. */
static void fill_up_to(int fd)
{
    struct rlimit files;

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
    files.rlim_cur = FILES;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &files), 0);
    int next = open("/dev/null", O_RDONLY | O_CLOEXEC);
    while (next >= 0 && next < fd - 1) {
        next = open("/dev/null", O_RDONLY | O_CLOEXEC);
    }
}

static void gate_close(struct gate *gate)
{
    setrlimit(RLIMIT_NOFILE, &gate->before);
    for (int fd = 3; fd < PAST_FDS; fd++) {
        close(fd);
    }
}

static void the_bars_leave_room_and_stay_below_a_great_limit(void **state)
{
    (void)state;
    static const struct {
        uint64_t limit;
        int network, local;
    } rows[] = {{0, 0, 0},
                {256, 160, 224},
                {1024, 640, 896},
                {16384, 10240, 14336},
                {65536, 10240, 14336},
                {RLIM_INFINITY, 10240, 14336}};

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_int_equal(accept_gate_bar(ACCEPT_NETWORK, rows[i].limit), rows[i].network);
        assert_int_equal(accept_gate_bar(ACCEPT_LOCAL, rows[i].limit), rows[i].local);
    }
}

static void a_connection_below_the_bar_is_taken(void **state)
{
    (void)state;
    struct gate gate;
    gate_init(&gate, AF_INET);
    fill_up_to(accept_gate_bar(ACCEPT_NETWORK, FILES) - 1);

    assert_true(accept4(gate.listener, NULL, NULL, SOCK_CLOEXEC) >= 0);

    assert_int_equal(accept_gate_take_refused(ACCEPT_NETWORK).n, 0);
    gate_close(&gate);
}

static void a_connection_at_the_bar_is_reset_and_counted_with_its_address(void **state)
{
    (void)state;
    struct gate gate;
    char byte;
    gate_init(&gate, AF_INET);
    fill_up_to(accept_gate_bar(ACCEPT_NETWORK, FILES));

    assert_int_equal(accept4(gate.listener, NULL, NULL, SOCK_CLOEXEC), -1);

    assert_int_equal(errno, ECONNABORTED);
    assert_int_equal(read(gate.client, &byte, 1), -1);
    assert_int_equal(errno, ECONNRESET);
    struct accept_refused refused = accept_gate_take_refused(ACCEPT_NETWORK);
    assert_int_equal(refused.n, 1);
    assert_int_equal(refused.last.addr.family, ADDR_IPV4);
    assert_int_equal(accept_gate_take_refused(ACCEPT_NETWORK).n, 0);
    gate_close(&gate);
}

static void a_member_has_room_above_the_network(void **state)
{
    (void)state;
    struct gate gate;
    struct addr members[2];
    assert_int_equal(addr_parse("192.0.2.1", &members[0], NULL), 0);
    assert_int_equal(addr_parse("127.0.0.1", &members[1], NULL), 0);
    accept_gate_know(members, 2);
    gate_init(&gate, AF_INET);
    fill_up_to(accept_gate_bar(ACCEPT_NETWORK, FILES));
    assert_true(accept4(gate.listener, NULL, NULL, SOCK_CLOEXEC) >= 0);
    gate_close(&gate);

    gate_init(&gate, AF_INET);
    fill_up_to(accept_gate_bar(ACCEPT_MEMBER, FILES));
    assert_int_equal(accept4(gate.listener, NULL, NULL, SOCK_CLOEXEC), -1);
    assert_int_equal(accept_gate_take_refused(ACCEPT_MEMBER).n, 1);
    accept_gate_know(members, 0);
    gate_close(&gate);
}

static void the_unix_socket_has_room_above_the_network_and_a_bar_of_its_own(void **state)
{
    (void)state;
    struct gate gate;
    gate_init(&gate, AF_UNIX);
    fill_up_to(accept_gate_bar(ACCEPT_NETWORK, FILES));
    assert_true(accept4(gate.listener, NULL, NULL, SOCK_CLOEXEC) >= 0);
    gate_close(&gate);

    gate_init(&gate, AF_UNIX);
    fill_up_to(accept_gate_bar(ACCEPT_LOCAL, FILES));
    assert_int_equal(accept4(gate.listener, NULL, NULL, SOCK_CLOEXEC), -1);
    assert_int_equal(errno, ECONNABORTED);
    assert_int_equal(accept_gate_take_refused(ACCEPT_LOCAL).n, 1);
    gate_close(&gate);
}

/* libzmq 4.3.4 ends the process when its listener of a unix socket sees EMFILE. */
static void a_full_table_is_never_told_as_such(void **state)
{
    (void)state;
    static const struct {
        sa_family_t family;
        enum accept_side side;
    } rows[] = {{AF_INET, ACCEPT_NETWORK}, {AF_UNIX, ACCEPT_LOCAL}};

    for (size_t i = 0; i < 2; i++) {
        struct gate gate;
        gate_init(&gate, rows[i].family);
        fill_up_to(FILES + 1);

        assert_int_equal(accept4(gate.listener, NULL, NULL, SOCK_CLOEXEC), -1);

        assert_int_equal(errno, ECONNABORTED);
        assert_int_equal(accept_gate_take_refused(rows[i].side).n, 1);
        gate_close(&gate);
    }
}

static void an_empty_queue_is_told_as_it_is(void **state)
{
    (void)state;
    struct gate gate;
    gate_init(&gate, AF_INET);
    assert_true(accept(gate.listener, NULL, NULL) >= 0);

    assert_int_equal(accept(gate.listener, NULL, NULL), -1);

    assert_int_equal(errno, EAGAIN);
    gate_close(&gate);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_bars_leave_room_and_stay_below_a_great_limit),
        cmocka_unit_test(a_connection_below_the_bar_is_taken),
        cmocka_unit_test(a_connection_at_the_bar_is_reset_and_counted_with_its_address),
        cmocka_unit_test(a_member_has_room_above_the_network),
        cmocka_unit_test(the_unix_socket_has_room_above_the_network_and_a_bar_of_its_own),
        cmocka_unit_test(a_full_table_is_never_told_as_such),
        cmocka_unit_test(an_empty_queue_is_told_as_it_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
