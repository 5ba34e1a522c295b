/* The votes of one peer about ten slots, and looks at them. */
#ifndef JURY_TEST_VOTES_FIXTURE_H
#define JURY_TEST_VOTES_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/core/votes.h"

#define MS UINT64_C(1000000)
#define V (1000 * MS)
#define MEMORY_MS 20000
#define MEMORY (MEMORY_MS * MS)
#define START (100 * V)
#define PEER 3

struct fixture {
    struct votes *votes;
    struct id_set changed;
    struct vote_chunk chunk;
    struct votes_here here;
};

static inline void set_opinion(struct vote_chunk *chunk, uint32_t slot, enum opinion opinion)
{
    uint32_t offset = slot % LIMIT_VOTE_SLOTS_PER_CHUNK;
    uint8_t *byte = &chunk->opinions[offset / 4];

    *byte = (uint8_t)(*byte & ~(3 << (offset % 4 * 2)));
    *byte = (uint8_t)(*byte | (int)opinion << (offset % 4 * 2));
}

/* Slots 0..9 with birth 5 at revision 10, V = 1 s, check type tcp. */
static inline int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    assert_non_null(f);
    f->votes = votes_new();
    assert_non_null(f->votes);
    votes_set_interval(f->votes, V);
    assert_int_equal(votes_reserve(f->votes, 10), 0);
    id_set_init(&f->changed);
    assert_int_equal(id_set_reserve(&f->changed, 10), 0);
    for (uint32_t slot = 0; slot < 10; slot++) {
        votes_set_slot(f->votes, slot, 5, 1U << CHECK_TYPE_TCP, MEMORY_MS);
    }
    f->here = (struct votes_here){.revision = 10, .digest = {.low = 1, .high = 2}};
    f->chunk = (struct vote_chunk){
        .epoch = 1, .sequence = 1, .revision = 10, .n_chunks = 1, .digest = f->here.digest};
    *state = f;
    return 0;
}

static inline int teardown(void **state)
{
    struct fixture *f = *state;

    votes_free(f->votes);
    id_set_close(&f->changed);
    free(f);
    return 0;
}

static inline enum votes_outcome take(struct fixture *f, uint64_t now_ns)
{
    f->here.now_ns = now_ns;
    return votes_take_chunk(f->votes, PEER, &f->chunk, &f->here, &f->changed);
}

static inline struct tally count(struct fixture *f, uint32_t slot, uint64_t now_ns)
{
    struct tally tally = {0};

    votes_count(f->votes, slot, UINT64_C(1) << PEER, now_ns, &tally);
    return tally;
}

static inline void assert_tally(struct tally tally, unsigned fail, unsigned pass,
                                unsigned lost_fail, unsigned lost_pass)
{
    assert_int_equal(tally.n_fail, fail);
    assert_int_equal(tally.n_pass, pass);
    assert_int_equal(tally.n_lost_fail, lost_fail);
    assert_int_equal(tally.n_lost_pass, lost_pass);
}

static inline uint32_t take_changed(struct fixture *f)
{
    uint32_t slot;
    uint32_t n = 0;

    while (id_set_take(&f->changed, &slot)) {
        n++;
    }
    return n;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

#endif
