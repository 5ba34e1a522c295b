/* The unix socket and a slow caller: a peer that speaks ZMTP by hand, so that it can be slow.
 * A slow machine looks the same: an agent that was held up dropped callers and answers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <zmq.h>

#include "agent/loop/zap.h"
#include "common/base/clock.h"
#include "common/base/plant.h"
#include "common/base/units.h"
#include "tests/lib/scratch.h"

#define WAIT_MS 20000
/* Longer than what the network sockets allow for a handshake (1 s) and between a ping and its
 * answer (0.5 s + 1.5 s). */
#define SLOW_MS 2600

struct fixture {
    char folder[SCRATCH_BYTES];
    char path[SCRATCH_BYTES + 16];
    void *context;
    struct zap *zap;
    void *router;
};

static void open_router(struct fixture *f)
{
    struct sock_options options = {
        .domain = SOCK_DOMAIN_LOCAL, .message_bytes_max = 65536, .queue_messages = 16};
    struct zap_options zap = {.n_contexts = 1};
    char endpoint[SCRATCH_BYTES + 32];
    struct errmsg err = {{0}};

    scratch_make(f->folder);
    snprintf(f->path, sizeof f->path, "%s/agent.sock", f->folder);
    snprintf(endpoint, sizeof endpoint, "ipc://%s", f->path);
    f->context = zmq_ctx_new();
    options.context = zap.contexts[0] = f->context;
    assert_int_equal(zap_start(&zap, &f->zap, &err), 0);
    assert_int_equal(sock_router_open(&options, &f->router, &err), 0);
    assert_int_equal(sock_bind(f->router, "unix socket", endpoint, &err), 0);
}

static void close_router(struct fixture *f)
{
    zmq_close(f->router);
    zap_stop(f->zap);
    zmq_ctx_term(f->context);
    scratch_remove(f->folder);
}

static int connect_raw(const struct fixture *f)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    snprintf(address.sun_path, sizeof address.sun_path, "%s", f->path);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

/* ZMTP 3.0 (RFC 23): greeting with mechanism NULL, then READY of a DEALER. */
static void send_handshake(int fd)
{
    uint8_t greeting[64] = {0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0x7f, 3, 0, 'N', 'U', 'L', 'L'};
    static const uint8_t ready[] = "\x04\x1c\x05READY\x0bSocket-Type\x00\x00\x00\x06"
                                   "DEALER";

    assert_int_equal(write(fd, greeting, sizeof greeting), sizeof greeting);
    assert_int_equal(write(fd, ready, sizeof ready - 1), sizeof ready - 1);
}

/* Whether the other side hangs up within the time. Takes in what comes; `until`: ends sooner when
 * these bytes have come, NULL = never. */
static bool hangs_up(int fd, const char *until, int timeout_ms)
{
    uint64_t end_ns = clock_monotonic_ns() + (uint64_t)timeout_ms * NS_PER_MS;
    uint8_t data[1024];
    size_t n = 0;

    for (;;) {
        uint64_t now_ns = clock_monotonic_ns();
        struct pollfd item = {.fd = fd, .events = POLLIN};

        if (now_ns >= end_ns ||
            poll(&item, 1, (int)((end_ns - now_ns + NS_PER_MS - 1) / NS_PER_MS)) == 0) {
            return false;
        }
        ssize_t n_read = read(fd, data + n, sizeof data - n);
        if (n_read <= 0) {
            return true;
        }
        n += (size_t)n_read;
        if (until != NULL && memmem(data, n, until, strlen(until)) != NULL) {
            return false;
        }
        n = n < sizeof data / 2 ? n : 0;
    }
}

static void a_caller_that_is_slow_keeps_its_connection(void **state)
{
    struct fixture f;

    (void)state;
    open_router(&f);
    int silent = connect_raw(&f);
    int deaf = connect_raw(&f);
    send_handshake(deaf);
    assert_false(hangs_up(deaf, "READY", WAIT_MS));

    assert_false(hangs_up(deaf, NULL, SLOW_MS)); /* answers no ping */
    assert_false(hangs_up(silent, NULL, 1));     /* has not even begun */

    send_handshake(silent);
    assert_false(hangs_up(silent, "READY", WAIT_MS));
    static const uint8_t message[] = "\x00\x02hi";
    assert_int_equal(write(deaf, message, sizeof message - 1), sizeof message - 1);
    zmq_pollitem_t item = {.socket = f.router, .events = ZMQ_POLLIN};
    assert_int_equal(zmq_poll(&item, 1, WAIT_MS), 1);
    close(silent);
    close(deaf);
    close_router(&f);
}

#ifdef JURY_PLANTS
static void with_the_limits_of_the_network_it_is_hung_up_on(void **state)
{
    struct fixture f;

    (void)state;
    plant_set("local-impatient");
    open_router(&f);
    plant_set(NULL);
    int silent = connect_raw(&f);
    int deaf = connect_raw(&f);
    send_handshake(deaf);
    assert_false(hangs_up(deaf, "READY", WAIT_MS));
    assert_true(hangs_up(deaf, NULL, WAIT_MS));
    assert_true(hangs_up(silent, NULL, WAIT_MS));
    close(silent);
    close(deaf);
    close_router(&f);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_caller_that_is_slow_keeps_its_connection),
#ifdef JURY_PLANTS
        cmocka_unit_test(with_the_limits_of_the_network_it_is_hung_up_on),
#endif
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
