/* ctest labels: threads */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "agent/loop/mailbox.h"
#include "agent/loop/ring.h"
#include "agent/loop/wake.h"

struct pair {
    uint64_t number;
    uint64_t check;
};

static void ring_gives_values_in_order_and_refuses_when_full(void **state)
{
    (void)state;
    struct ring *ring = ring_new(sizeof(struct pair), 3); /* rounded up to 4 */
    struct pair out;

    assert_false(ring_pop(ring, &out));
    for (uint64_t i = 0; i < 4; i++) {
        assert_true(ring_push(ring, &(struct pair){.number = i}));
    }
    assert_false(ring_push(ring, &(struct pair){.number = 4}));
    assert_int_equal(ring_n_refused(ring), 1);
    for (uint64_t i = 0; i < 4; i++) {
        assert_true(ring_pop(ring, &out));
        assert_int_equal(out.number, i);
    }
    assert_false(ring_pop(ring, &out));
    assert_true(ring_push(ring, &(struct pair){.number = 5}));
    assert_true(ring_pop(ring, &out));
    assert_int_equal(out.number, 5);
    ring_free(ring);
}

#define RING_ROUNDS 200000

struct ring_case {
    struct ring *ring;
    struct wake wake;
};

static void *push_all(void *arg)
{
    struct ring_case *c = arg;

    for (uint64_t i = 0; i < RING_ROUNDS;) {
        if (ring_push(c->ring, &(struct pair){.number = i, .check = ~i})) {
            i++;
            wake_signal(&c->wake);
        } else {
            sched_yield();
        }
    }
    return NULL;
}

static void ring_passes_all_values_between_two_threads_and_no_wake_is_lost(void **state)
{
    (void)state;
    struct ring_case c = {.ring = ring_new(sizeof(struct pair), 64)};
    pthread_t producer;
    uint64_t expected = 0;

    assert_int_equal(wake_init(&c.wake), 0);
    assert_int_equal(pthread_create(&producer, NULL, push_all, &c), 0);
    while (expected < RING_ROUNDS) {
        struct pollfd fd = {.fd = wake_fd(&c.wake), .events = POLLIN};
        struct pair out;

        /* A lost wake would end in this time-out and fail. */
        assert_int_equal(poll(&fd, 1, 20000), 1);
        wake_clear(&c.wake);
        while (ring_pop(c.ring, &out)) {
            assert_int_equal(out.number, expected);
            assert_int_equal(out.check, ~expected);
            expected++;
        }
    }
    pthread_join(producer, NULL);
    wake_close(&c.wake);
    ring_free(c.ring);
}

struct counted {
    _Atomic int n_refs;
    uint64_t number;
    _Atomic uint64_t *n_alive;
};

static void counted_unref(void *value)
{
    struct counted *counted = value;

    if (atomic_fetch_sub(&counted->n_refs, 1) == 1) {
        atomic_fetch_sub(counted->n_alive, 1);
        free(counted);
    }
}

static struct counted *counted_new(uint64_t number, _Atomic uint64_t *n_alive)
{
    struct counted *counted = malloc(sizeof *counted);

    atomic_init(&counted->n_refs, 1);
    counted->number = number;
    counted->n_alive = n_alive;
    atomic_fetch_add(n_alive, 1);
    return counted;
}

static void mailbox_keeps_only_the_newest_and_frees_what_nobody_took(void **state)
{
    (void)state;
    _Atomic uint64_t n_alive = 0;
    struct mailbox box;

    mailbox_init(&box, counted_unref);
    assert_null(mailbox_take(&box));
    mailbox_put(&box, counted_new(1, &n_alive));
    mailbox_put(&box, counted_new(2, &n_alive));
    assert_int_equal(n_alive, 1);

    struct counted *got = mailbox_take(&box);

    assert_int_equal(got->number, 2);
    assert_null(mailbox_take(&box));
    counted_unref(got);
    mailbox_put(&box, counted_new(3, &n_alive));
    mailbox_close(&box);
    assert_int_equal(n_alive, 0);
}

struct mailbox_case {
    struct mailbox box;
    struct wake wake;
    _Atomic uint64_t n_alive;
};

#define MAIL_ROUNDS 100000

static void *put_all(void *arg)
{
    struct mailbox_case *c = arg;

    for (uint64_t i = 1; i <= MAIL_ROUNDS; i++) {
        mailbox_put(&c->box, counted_new(i, &c->n_alive));
        wake_signal(&c->wake);
    }
    return NULL;
}

static void mailbox_between_two_threads_never_goes_back_and_the_last_arrives(void **state)
{
    (void)state;
    struct mailbox_case c = {.n_alive = 0};
    pthread_t producer;
    uint64_t last = 0;

    mailbox_init(&c.box, counted_unref);
    assert_int_equal(wake_init(&c.wake), 0);
    assert_int_equal(pthread_create(&producer, NULL, put_all, &c), 0);
    while (last < MAIL_ROUNDS) {
        struct pollfd fd = {.fd = wake_fd(&c.wake), .events = POLLIN};

        assert_int_equal(poll(&fd, 1, 20000), 1);
        wake_clear(&c.wake);
        struct counted *got = mailbox_take(&c.box);
        if (got != NULL) {
            assert_true(got->number > last);
            last = got->number;
            counted_unref(got);
        }
    }
    pthread_join(producer, NULL);
    mailbox_close(&c.box);
    assert_int_equal(c.n_alive, 0);
    wake_close(&c.wake);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ring_gives_values_in_order_and_refuses_when_full),
        cmocka_unit_test(ring_passes_all_values_between_two_threads_and_no_wake_is_lost),
        cmocka_unit_test(mailbox_keeps_only_the_newest_and_frees_what_nobody_took),
        cmocka_unit_test(mailbox_between_two_threads_never_goes_back_and_the_last_arrives),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
