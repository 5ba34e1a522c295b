/* A shared target in one engine; who probes, as values, is in test_share.c, clusters are in
 * tests/sim. */
#include "tests/unit/core/engine_fixture.h"

static void put_shared(struct fixture *f, const char *endpoints)
{
    struct command command = {0};
    struct server_group group;

    build_group(&group, "web", endpoints);
    group.rule.down = group.rule.up = (struct rule_column){.kind = RULE_MAJORITY};
    group.check.probers = 1;
    build_put_group(&command, &group);
    build_commit(f->state, &command);
    server_group_close(&group);
    publish(f);
}

/* The own vector, as if it were the peer's. */
static void peer_votes(struct fixture *f, uint64_t peer, uint64_t sequence)
{
    while (f->actions.n_chunks == 0) {
        tick(f, 100 * MS);
    }
    struct vote_chunk chunk = f->actions.chunks[0];

    chunk.sequence = sequence;
    step(f, &(struct engine_event){.kind = ENGINE_VOTE_CHUNK, .peer = peer, .u.chunk = &chunk});
}

static void who_falls_silent_is_counted_in_then_and_not_with_the_next_message(void **state)
{
    struct fixture *f = *state;

    put_shared(f, b1);
    peer_votes(f, 3, 1);
    uint64_t silent_ns = f->now_ns + 3 * SECOND + 1;
    tick(f, 500 * MS);
    peer_says(f, 2, target_of(f, b1), OPINION_FAIL, 1); /* trouble: who is not heard is in n */
    assert_int_equal(view_of(f, b1).n_observers, 2);
    while (view_of(f, b1).n_observers == 2) {
        tick(f, f->actions.wake_ns - f->now_ns);
    }

    assert_true(f->now_ns == silent_ns);
    assert_int_equal(view_of(f, b1).n_observers, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(who_falls_silent_is_counted_in_then_and_not_with_the_next_message),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
