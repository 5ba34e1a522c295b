/* What the engine makes of the end of a backend's certificate: it is told, and ejects nobody. */
#include "tests/unit/core/engine_fixture.h"

static void seen(struct fixture *f, enum probe_reason reason, struct cert_end cert)
{
    struct probe_result result = {.id = target_of(f, b1),
                                  .probe_class = (uint8_t)probe_reason_class(reason),
                                  .reason = (uint8_t)reason,
                                  .cert = cert,
                                  .start_ns = f->now_ns,
                                  .end_ns = f->now_ns};

    step(f, &(struct engine_event){.kind = ENGINE_PROBE_RESULT, .u.result = &result});
}

/* How many events of certificates there were; ret_last: the newest of them, or NULL. */
static unsigned told(const struct fixture *f, const struct event **ret_last)
{
    unsigned n = 0;

    *ret_last = NULL;
    for (uint64_t at = engine_event_first(f->engine); at < engine_event_next(f->engine); at++) {
        const struct event *event = engine_event_at(f->engine, at);

        if (event->kind == EVENT_CERTIFICATE) {
            *ret_last = event;
            n++;
        }
    }
    return n;
}

static void a_certificate_that_ends_soon_is_told_once_and_its_renewal(void **state)
{
    struct fixture *f = *state;
    const struct event *event;

    put(f, b1, RULE_LOCAL);
    seen(f, REASON_OK, (struct cert_end){.day = 9900});
    assert_int_equal(told(f, &event), 0);
    seen(f, REASON_OK, (struct cert_end){.day = 9900, .is_near = 1});
    seen(f, REASON_OK, (struct cert_end){.day = 9900, .is_near = 1});
    seen(f, REASON_RECV_RESPONSE_TIMEOUT, (struct cert_end){0}); /* none was seen */

    assert_int_equal(told(f, &event), 1);
    assert_int_equal(event->to, 1);
    assert_int_equal(event->cert_day, 9900);
    assert_string_equal(event->group, "web");
    assert_int_equal(view_of(f, b1).cert.day, 9900);
    assert_true(view_of(f, b1).cert.is_near);
    assert_int_equal(view_of(f, b1).health_state, HEALTH_HEALTHY);

    seen(f, REASON_OK, (struct cert_end){.day = 10265});
    assert_int_equal(told(f, &event), 2);
    assert_int_equal(event->to, 0);
    assert_false(view_of(f, b1).cert.is_near);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_certificate_that_ends_soon_is_told_once_and_its_renewal,
                                        setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
