/* Nodes lost and heard again, leaders, votes: what is told, when, and how often at most.
 * ctest labels: twin */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "agent/core/cluster_watch.h"
#include "agent/core/events.h"
#include "common/base/plant.h"

#define LOST_S 3

/* Three nodes, this one is 1; second by second. */
struct story {
    struct cluster_watch watch;
    struct cluster_look look;
    struct cluster_news news[CLUSTER_NEWS_MAX];
    bool is_away[2]; /* nodes 2 and 3 */
    uint32_t n_told;
};

static void begin(struct story *story)
{
    *story = (struct story){.look = {.now_ns = 1000 * NS_PER_SECOND,
                                     .lost_ns = LOST_S * NS_PER_SECOND,
                                     .n_peers = 2,
                                     .peers = {{.node_id = 2}, {.node_id = 3}},
                                     .has_store = true,
                                     .leader_id = 2,
                                     .n_observers = 3,
                                     .n_trusted = 3,
                                     .quorum = 2}};
}

/* One second on. Returns the number of news. */
static uint32_t pass(struct story *story)
{
    story->look.now_ns += NS_PER_SECOND;
    for (int i = 0; i < 2; i++) {
        if (!story->is_away[i]) {
            story->look.peers[i].heard_ns = story->look.now_ns;
        }
    }
    uint32_t n = cluster_watch_look(&story->watch, &story->look, story->news);
    story->n_told += n;
    return n;
}

/* Pass until something is told; fails if it takes longer than so many seconds. */
static const struct cluster_news *next_news(struct story *story, uint32_t seconds)
{
    while (seconds-- > 0) {
        if (pass(story) > 0) {
            return &story->news[0];
        }
    }
    fail_msg("nothing was told");
    return NULL;
}

static void pass_quietly(struct story *story, uint32_t seconds)
{
    while (seconds-- > 0) {
        assert_int_equal(pass(story), 0);
    }
}

static void node_that_is_away_is_lost_once_and_heard_again_with_the_time(void **state)
{
    struct story story;

    (void)state;
    begin(&story);
    pass_quietly(&story, 5);
    story.is_away[1] = true;
    const struct cluster_news *news = next_news(&story, LOST_S + 1);
    assert_int_equal(news->kind, EVENT_PEER_LOST);
    assert_int_equal(news->to, 1);
    assert_int_equal(news->node_id, 3);
    assert_int_equal(news->span_ns, (LOST_S + 1) * NS_PER_SECOND);
    pass_quietly(&story, 26);
    story.is_away[1] = false;
    news = next_news(&story, 1);
    assert_int_equal(news->kind, EVENT_PEER_LOST);
    assert_int_equal(news->to, 0);
    assert_int_equal(news->span_ns, 31 * NS_PER_SECOND);
    assert_int_equal(news->n_untold, 0);
    pass_quietly(&story, 60);
}

static void start_of_a_node_is_no_news_unless_a_peer_never_comes(void **state)
{
    struct story story;

    (void)state;
    begin(&story);
    story.is_away[0] = story.is_away[1] = true;
    story.look.leader_id = 0;
    story.look.n_trusted = 1;
    pass_quietly(&story, 5);
    story.is_away[0] = false; /* one comes late, and the leader and the votes with it */
    story.look.leader_id = 2;
    story.look.n_trusted = 2;
    pass_quietly(&story, 5);
    const struct cluster_news *news = next_news(&story, 10);
    assert_int_equal(news->kind, EVENT_PEER_LOST);
    assert_int_equal(news->node_id, 3);
    pass_quietly(&story, 60);
}

static void leader_that_is_missing_or_another_one_is_told(void **state)
{
    struct story story;

    (void)state;
    begin(&story);
    pass_quietly(&story, 5);
    story.look.leader_id = 0; /* an election */
    pass_quietly(&story, 1);
    story.look.leader_id = 3;
    const struct cluster_news *news = next_news(&story, 1);
    assert_int_equal(news->kind, EVENT_LEADER_CHANGED);
    assert_int_equal(news->to, 0);
    assert_int_equal(news->node_id, 3);
    assert_int_equal(news->before_id, 2);

    story.look.leader_id = 0;
    news = next_news(&story, 3);
    assert_int_equal(news->to, 1);
    assert_int_equal(news->span_ns, 2 * NS_PER_SECOND);
    assert_int_equal(news->n_have, 3);
    assert_int_equal(news->n_of, 3);
    pass_quietly(&story, 10);
    story.look.leader_id = 3;
    news = next_news(&story, 1);
    assert_int_equal(news->to, 0);
    assert_int_equal(news->before_id, 0);
    assert_int_equal(news->span_ns, 13 * NS_PER_SECOND);
}

static void votes_below_the_quorum_and_back_are_told(void **state)
{
    struct story story;

    (void)state;
    begin(&story);
    pass_quietly(&story, 5);
    story.look.n_trusted = 1;
    const struct cluster_news *news = next_news(&story, 3);
    assert_int_equal(news->kind, EVENT_FEW_VOTES);
    assert_int_equal(news->to, 1);
    assert_int_equal(news->n_have, 1);
    assert_int_equal(news->n_of, 3);
    assert_int_equal(news->n_needed, 2);
    story.look.n_trusted = 2;
    news = next_news(&story, 1);
    assert_int_equal(news->to, 0);
    assert_int_equal(news->span_ns, 3 * NS_PER_SECOND);
}

/* The others were not silent when this node did not listen. */
static void own_standstill_loses_nobody_and_brings_nobody_back(void **state)
{
    struct story story;

    (void)state;
    begin(&story);
    pass_quietly(&story, 5);
    story.is_away[1] = true;
    next_news(&story, LOST_S + 1);
    story.look.now_ns += 60 * NS_PER_SECOND;
    story.is_away[0] = true; /* its first message comes after the first look */
    pass_quietly(&story, 1);
    story.is_away[0] = false;
    pass_quietly(&story, 30);
}

static void member_that_was_removed_is_forgotten(void **state)
{
    struct story story;

    (void)state;
    begin(&story);
    pass_quietly(&story, 5);
    story.is_away[1] = true;
    story.look.n_peers = 1;
    pass_quietly(&story, 30);
    assert_int_equal(story.watch.n_peers, 1);
}

/* Away for 5 seconds of 10, for an hour. */
static uint32_t tell_flapping(struct story *story)
{
    begin(story);
    pass_quietly(story, 5);
    for (uint32_t i = 0; i < 3600; i++) {
        story->is_away[1] = i % 10 < 5;
        pass(story);
    }
    return story->n_told;
}

static void link_that_flaps_does_not_flood_and_what_lasts_is_told(void **state)
{
    struct story story;

    (void)state;
    assert_in_range(tell_flapping(&story), CLUSTER_WATCH_TOLD, CLUSTER_WATCH_TOLD + 3600 / 120 + 1);
    story.is_away[1] = story.watch.peers[1].item.told == UINT64_MAX ? false : true;
    const struct cluster_news *news = next_news(&story, 130);
    assert_int_equal(news->node_id, 3);
    assert_int_equal(news->to, story.is_away[1]);
    assert_true(news->n_untold > 0);
}

#ifdef JURY_PLANTS
static void twin_flood_of_a_flapping_link_is_caught(void **state)
{
    struct story story;

    (void)state;
    plant_set("flapping-link-floods");
    uint32_t n = tell_flapping(&story);
    plant_set(NULL);
    assert_true(n > 500);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(node_that_is_away_is_lost_once_and_heard_again_with_the_time),
        cmocka_unit_test(start_of_a_node_is_no_news_unless_a_peer_never_comes),
        cmocka_unit_test(leader_that_is_missing_or_another_one_is_told),
        cmocka_unit_test(votes_below_the_quorum_and_back_are_told),
        cmocka_unit_test(own_standstill_loses_nobody_and_brings_nobody_back),
        cmocka_unit_test(member_that_was_removed_is_forgotten),
        cmocka_unit_test(link_that_flaps_does_not_flood_and_what_lasts_is_told),
#ifdef JURY_PLANTS
        cmocka_unit_test(twin_flood_of_a_flapping_link_is_caught),
#endif
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
