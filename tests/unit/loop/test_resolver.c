/* ctest labels: threads */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>
#include <uv.h>

#include "agent/loop/resolver.h"
#include "common/base/clock.h"
#include "common/base/units.h"

#define WAIT_NS (30 * NS_PER_SECOND)

struct answers {
    uint32_t n;
    struct resolver_answer last[4];
};

static void on_answer(void *user, const struct resolver_answer *answer)
{
    struct answers *answers = user;

    answers->last[answers->n++ % 4] = *answer;
}

static void on_tick(uv_timer_t *timer)
{
    (void)timer;
}

static void a_name_gives_addresses_and_an_impossible_one_an_error(void **state)
{
    struct answers answers = {.n = 0};
    struct resolver *resolver;
    struct resolver_client *client;
    uv_loop_t loop;
    uv_timer_t timer;
    uint64_t end_ns = clock_monotonic_ns() + WAIT_NS;
    char long_host[400];

    (void)state;
    uv_loop_init(&loop);
    uv_timer_init(&loop, &timer);
    uv_timer_start(&timer, on_tick, 500, 500);
    assert_int_equal(resolver_start(&resolver), 0);
    assert_int_equal(resolver_client_open(resolver, &loop, on_answer, &answers, &client), 0);

    memset(long_host, 'a', sizeof long_host - 1);
    long_host[sizeof long_host - 1] = '\0';
    assert_int_equal(resolver_ask(client, 1, long_host), ERR_INVALID);
    assert_int_equal(resolver_ask(client, 2, "localhost"), 0);
    assert_int_equal(resolver_ask(client, 3, "bad name with blanks"), 0);
    assert_int_equal(answers.n, 0); /* never inside the call */
    while (answers.n < 2 && clock_monotonic_ns() < end_ns) {
        uv_run(&loop, UV_RUN_ONCE);
    }

    assert_int_equal(answers.n, 2);
    assert_int_equal(answers.last[0].cookie, 2);
    assert_int_equal(answers.last[0].err, 0);
    assert_true(answers.last[0].n_addresses >= 1);
    assert_true(addr_is_loopback(&answers.last[0].addresses[0]));
    assert_string_equal(answers.last[0].host, "localhost");
    assert_int_equal(answers.last[1].cookie, 3);
    assert_true(answers.last[1].err < 0);
    resolver_client_close(client);
    uv_close((uv_handle_t *)&timer, NULL);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&loop), 0);
    resolver_stop(resolver);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_name_gives_addresses_and_an_impossible_one_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
