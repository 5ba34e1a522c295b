/* A snapshot cut into parts, over a lane that loses some of them, and its two forms. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "agent/store/snapshot_blob.h"
#include "agent/store/snapshot_flow.h"
#include "common/base/prng.h"

#define MS UINT64_C(1000000)
#define SNAPSHOT_BYTES (3 * FRAME_PART_BYTES + 4000)

static struct raft_install_snapshot make_snapshot(uint64_t last_index)
{
    struct raft_install_snapshot args = {
        .term = 7, .last_index = last_index, .last_term = 6, .conf_index = 1};

    raft_configuration_init(&args.conf);
    raft_configuration_add(&args.conf, 1, "node-1-0000000000000001", RAFT_VOTER);
    args.data.len = SNAPSHOT_BYTES / 8 * 8;
    args.data.base = raft_malloc(args.data.len);
    for (size_t i = 0; i < args.data.len; i++) {
        ((uint8_t *)args.data.base)[i] = (uint8_t)(i * 7 + i / 251);
    }
    return args;
}

static void free_snapshot(struct raft_install_snapshot *args)
{
    raft_configuration_close(&args->conf);
    raft_free(args->data.base);
}

/* Moves parts and acknowledgements, each lost with loss_per_million; true when it arrived. */
static bool transfer(struct snapshot_out *out, struct snapshot_in *in, uint32_t loss_per_million,
                     uint64_t *now_ns, struct raft_install_snapshot *ret_args)
{
    struct prng prng;
    bool has_arrived = false;

    prng_init(&prng, loss_per_million + 1);
    for (int round = 0; round < 1000 && !has_arrived; round++) {
        struct frame_part part;

        while (!has_arrived && snapshot_out_next(out, *now_ns, &part)) {
            struct frame_part_ack ack;
            enum snapshot_in_outcome outcome;

            if (prng_chance(&prng, loss_per_million)) {
                continue;
            }
            outcome = snapshot_in_take(in, &part, &ack, ret_args);
            assert_int_not_equal(outcome, SNAPSHOT_IN_DROPPED);
            has_arrived = outcome == SNAPSHOT_IN_WHOLE;
            if (!prng_chance(&prng, loss_per_million)) {
                snapshot_out_ack(out, &ack, *now_ns);
            }
        }
        *now_ns += 100 * MS;
    }
    return has_arrived;
}

static void arrives_whole_whatever_is_lost(void **state)
{
    static const uint32_t losses[] = {0, 100000, 500000};

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct raft_install_snapshot args = make_snapshot(100), got;
        struct snapshot_out out = {0};
        struct snapshot_in in = {0};
        uint64_t now_ns = 1000 * MS;

        assert_true(snapshot_out_start(&out, &args, now_ns));
        assert_true(transfer(&out, &in, losses[i], &now_ns, &got));
        assert_true(got.term == 7 && got.last_index == 100 && got.last_term == 6);
        assert_int_equal(got.conf.n, 1);
        assert_int_equal(got.data.len, args.data.len);
        assert_memory_equal(got.data.base, args.data.base, args.data.len);
        free_snapshot(&got);
        free_snapshot(&args);
        snapshot_out_close(&out);
        snapshot_in_close(&in);
    }
}

static void no_more_than_a_window_is_under_way(void **state)
{
    struct raft_install_snapshot args = make_snapshot(100);
    struct snapshot_out out = {0};
    struct frame_part part;
    int n = 0;

    (void)state;
    args.data.base = raft_realloc(args.data.base, (size_t)20 * FRAME_PART_BYTES);
    args.data.len = (size_t)20 * FRAME_PART_BYTES;
    assert_true(snapshot_out_start(&out, &args, 1));
    while (snapshot_out_next(&out, 1, &part)) {
        n++;
    }
    assert_int_equal(n, SNAPSHOT_WINDOW);
    snapshot_out_ack(&out, &(struct frame_part_ack){7, 100, 3}, 2);
    while (snapshot_out_next(&out, 2, &part)) {
        n++;
    }
    assert_int_equal(n, SNAPSHOT_WINDOW + 3);
    snapshot_out_close(&out);
    free_snapshot(&args);
}

static void repeats_are_not_sent_while_it_moves_or_has_just_arrived(void **state)
{
    struct raft_install_snapshot args = make_snapshot(100), newer = make_snapshot(200), got;
    struct snapshot_out out = {0};
    struct snapshot_in in = {0};
    uint64_t now_ns = 1000 * MS;

    (void)state;
    assert_true(snapshot_out_start(&out, &args, now_ns));
    assert_false(snapshot_out_start(&out, &args, now_ns + 50 * MS));
    assert_true(snapshot_out_start(&out, &newer, now_ns)); /* a newer one takes its place */
    assert_true(transfer(&out, &in, 0, &now_ns, &got));
    free_snapshot(&got);
    assert_false(snapshot_out_start(&out, &newer, now_ns + 500 * MS));
    assert_true(snapshot_out_start(&out, &newer, now_ns + 3000 * MS));  /* it came to nothing */
    assert_true(snapshot_out_start(&out, &newer, now_ns + 20000 * MS)); /* nobody answers */
    snapshot_out_close(&out);
    snapshot_in_close(&in);
    free_snapshot(&args);
    free_snapshot(&newer);
}

static void parts_of_an_older_snapshot_do_not_disturb_a_newer_one(void **state)
{
    struct raft_install_snapshot old = make_snapshot(100), new = make_snapshot(200), got;
    struct snapshot_out out_old = {0}, out_new = {0};
    struct snapshot_in in = {0};
    struct frame_part part;
    struct frame_part_ack ack;

    (void)state;
    assert_true(snapshot_out_start(&out_old, &old, 1));
    assert_true(snapshot_out_start(&out_new, &new, 1));
    assert_true(snapshot_out_next(&out_new, 1, &part));
    assert_int_equal(snapshot_in_take(&in, &part, &ack, &got), SNAPSHOT_IN_PART);
    assert_int_equal(ack.next_part, 1);
    assert_true(snapshot_out_next(&out_old, 1, &part));
    assert_int_equal(snapshot_in_take(&in, &part, &ack, &got), SNAPSHOT_IN_DROPPED);
    assert_int_equal(in.last_index, 200);
    snapshot_out_close(&out_old);
    snapshot_out_close(&out_new);
    snapshot_in_close(&in);
    free_snapshot(&old);
    free_snapshot(&new);
}

/* A state machine of two chunks. */
struct two {
    struct store_fsm fsm;
    size_t n_restored;
    uint8_t restored[64];
};

static size_t two_n_chunks(void *user)
{
    (void)user;
    return 2;
}

static struct store_chunk two_chunk_at(void *user, size_t index)
{
    (void)user;
    return index == 0 ? (struct store_chunk){(const uint8_t *)"hello", 5}
                      : (struct store_chunk){(const uint8_t *)"world!", 6};
}

static int two_restore(void *user, const struct store_chunk chunks[], size_t n_chunks,
                       struct errmsg *err)
{
    struct two *two = user;

    (void)err;
    two->n_restored = 0;
    for (size_t i = 0; i < n_chunks; i++) {
        memcpy(two->restored + two->n_restored, chunks[i].data, chunks[i].n_bytes);
        two->n_restored += chunks[i].n_bytes;
    }
    return 0;
}

static void image_is_restored_or_refused_whole(void **state)
{
    struct two two = {
        .fsm = {.n_chunks = two_n_chunks, .chunk_at = two_chunk_at, .restore = two_restore}};
    struct raft_buffer image;
    struct errmsg err;

    (void)state;
    two.fsm.user = &two;
    assert_int_equal(snapshot_image_make(&two.fsm, &image, &err), 0);
    assert_int_equal(image.len % 8, 0);
    assert_int_equal(snapshot_image_restore(&two.fsm, image.base, image.len, &err), 0);
    assert_int_equal(two.n_restored, 11);
    assert_memory_equal(two.restored, "helloworld!", 11);

    two.n_restored = 99;
    uint8_t *bytes = image.base;
    for (size_t i = 0; i < 16 + 2 * 12 + 11; i++) {
        if (i == 6 || i == 7) {
            continue; /* the minor version may be another */
        }
        bytes[i] ^= 4;
        assert_int_not_equal(snapshot_image_restore(&two.fsm, bytes, image.len, &err), 0);
        bytes[i] ^= 4;
        assert_int_not_equal(snapshot_image_restore(&two.fsm, bytes, i, &err), 0);
    }
    assert_int_equal(two.n_restored, 99);
    raft_free(image.base);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arrives_whole_whatever_is_lost),
        cmocka_unit_test(no_more_than_a_window_is_under_way),
        cmocka_unit_test(repeats_are_not_sent_while_it_moves_or_has_just_arrived),
        cmocka_unit_test(parts_of_an_older_snapshot_do_not_disturb_a_newer_one),
        cmocka_unit_test(image_is_restored_or_refused_whole),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
