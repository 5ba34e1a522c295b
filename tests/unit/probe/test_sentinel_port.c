/* The port by which nodes test their own probes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/probe/connect_socket.h"
#include "agent/probe/sentinel_port.h"

static int connect_to(const struct addr *addr, uint16_t port)
{
    struct sockaddr_storage address;
    socklen_t n_bytes = connect_socket_address(addr, port, &address);
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, n_bytes), 0);
    return fd;
}

static struct addr loopback(void)
{
    struct addr addr;

    assert_int_equal(addr_parse("127.0.0.1", &addr, NULL), 0);
    return addr;
}

static void connections_are_taken_by_the_kernel_and_reset_by_the_next_drain(void **state)
{
    struct sentinel_port port;
    struct addr addr = loopback();
    char byte;

    (void)state;
    assert_int_equal(sentinel_port_open(&port, &addr, NULL), 0);
    assert_int_not_equal(port.port, 0);
    int first = connect_to(&addr, port.port);
    int second = connect_to(&addr, port.port);
    sentinel_port_drain(&port);
    assert_int_equal(recv(first, &byte, 1, 0), -1); /* reset: nothing is left in TIME_WAIT */
    assert_int_equal(recv(second, &byte, 1, 0), -1);
    close(first);
    close(second);
    sentinel_port_close(&port);
    assert_int_equal(port.fd, -1);
    sentinel_port_drain(&port); /* closed: nothing to do */
}

static void without_descriptors_connections_wait_in_the_queue(void **state)
{
    struct rlimit limit;
    struct sentinel_port port;
    struct addr addr = loopback();
    char byte;

    (void)state;
    assert_int_equal(sentinel_port_open(&port, &addr, NULL), 0);
    int fd = connect_to(&addr, port.port);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    struct rlimit none = {.rlim_cur = 3, .rlim_max = limit.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    sentinel_port_drain(&port);
    assert_int_equal(recv(fd, &byte, 1, MSG_DONTWAIT), -1);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    sentinel_port_drain(&port);
    assert_int_equal(recv(fd, &byte, 1, 0), -1);
    close(fd);
    sentinel_port_close(&port);
}

static void an_address_that_is_not_ours_is_refused_with_a_sentence(void **state)
{
    struct sentinel_port port;
    struct addr addr;
    struct errmsg err = {""};

    (void)state;
    assert_int_equal(addr_parse("192.0.2.1", &addr, NULL), 0);
    assert_int_equal(sentinel_port_open(&port, &addr, &err), ERR_IO);
    assert_non_null(strstr(err.text, "sentinel port"));
    assert_int_equal(port.fd, -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(connections_are_taken_by_the_kernel_and_reset_by_the_next_drain),
        cmocka_unit_test(without_descriptors_connections_wait_in_the_queue),
        cmocka_unit_test(an_address_that_is_not_ours_is_refused_with_a_sentence),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
