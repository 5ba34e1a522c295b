#include "agent/core/cluster_watch.h"

#include <assert.h>

#include "agent/core/events.h"
#include "common/base/plant.h"

/* Values of an item; of the leader also its id. None is 0: that was never told. */
#define IS_WELL 1
#define IS_BAD UINT64_MAX

struct watch_value {
    uint64_t value;
    uint64_t since_ns;  /* IS_BAD: when it began */
    uint64_t settle_ns; /* it has to last so long */
};

static bool has_room(struct watch_item *item, uint64_t now_ns)
{
    while (item->n_used > 0 && now_ns >= item->refill_ns) {
        item->n_used--;
        item->refill_ns += CLUSTER_WATCH_REFILL_NS;
    }
    return item->n_used < CLUSTER_WATCH_TOLD || plant_is("flapping-link-floods");
}

/* True: it is to be told (note_told). */
static bool look_at(struct watch_item *item, const struct watch_value *value, uint64_t now_ns)
{
    bool is_first = item->settled == 0;
    bool is_bad = value->value == IS_BAD;

    if (item->seen != value->value) {
        item->seen = value->value;
        item->seen_ns = now_ns;
    }
    if (now_ns - item->seen_ns < (is_first && is_bad ? CLUSTER_WATCH_BEGIN_NS : value->settle_ns)) {
        return false;
    }
    if (item->settled != value->value) {
        item->settled = value->value;
        item->n_settled++;
        item->bad_ns = is_bad ? value->since_ns : item->bad_ns;
    }
    if (is_first && !is_bad) { /* as it should be at the start: no news */
        item->told = item->settled;
        item->n_settled = 0;
    }
    return item->settled != item->told && has_room(item, now_ns);
}

static void note_told(struct watch_item *item, uint64_t now_ns, struct cluster_news *news)
{
    assert(item->n_settled > 0);
    if (item->n_used++ == 0) {
        item->refill_ns = now_ns + CLUSTER_WATCH_REFILL_NS;
    }
    news->to = item->settled == IS_BAD;
    /* A leader that follows another one ends no time without one. */
    news->span_ns = news->to != 0 || item->told == IS_BAD ? now_ns - item->bad_ns : 0;
    news->n_untold = item->n_settled - 1;
    item->n_settled = 0;
    item->told = item->settled;
}

/* --- peers --- */

static uint32_t find_or_add(struct cluster_watch *watch, uint64_t node_id, uint64_t now_ns)
{
    for (uint32_t i = 0; i < watch->n_peers; i++) {
        if (watch->peers[i].node_id == node_id) {
            return i;
        }
    }
    assert(watch->n_peers < LIMIT_NODES);
    watch->peers[watch->n_peers] = (struct watch_peer){.node_id = node_id, .first_ns = now_ns};
    return watch->n_peers++;
}

static bool is_there(const struct cluster_look *look, uint64_t node_id)
{
    for (uint32_t i = 0; i < look->n_peers; i++) {
        if (look->peers[i].node_id == node_id) {
            return true;
        }
    }
    return false;
}

static void forget_peers(struct cluster_watch *watch, const struct cluster_look *look)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < watch->n_peers; i++) {
        if (is_there(look, watch->peers[i].node_id)) {
            watch->peers[n++] = watch->peers[i];
        }
    }
    watch->n_peers = n;
}

static uint64_t latest(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Returns whether it is heard. */
static bool look_at_peer(struct cluster_watch *watch, const struct cluster_look *look,
                         const struct cluster_look_peer *peer, struct cluster_news *ret_news)
{
    struct watch_peer *watched = &watch->peers[find_or_add(watch, peer->node_id, look->now_ns)];
    uint64_t heard_ns = peer->heard_ns;
    if (watched->item.seen != IS_BAD) { /* who is lost is heard by a message alone */
        heard_ns = latest(heard_ns, latest(watched->first_ns, watch->floor_ns));
    }
    bool is_lost = look->now_ns > heard_ns && look->now_ns - heard_ns > look->lost_ns;
    bool was_never = peer->heard_ns == 0 && watched->item.settled == 0;
    struct watch_value value = {.value = is_lost ? IS_BAD : IS_WELL,
                                .since_ns = latest(peer->heard_ns, watched->first_ns)};

    if (was_never && !is_lost) {
        return false; /* it is given its time */
    }
    if (look_at(&watched->item, &value, look->now_ns)) {
        *ret_news = (struct cluster_news){.kind = EVENT_PEER_LOST, .node_id = peer->node_id};
        note_told(&watched->item, look->now_ns, ret_news);
    }
    return !is_lost;
}

/* --- all --- */

static bool look_at_leader(struct cluster_watch *watch, const struct cluster_look *look,
                           struct cluster_news *ret_news)
{
    struct watch_item *item = &watch->leader;
    bool is_none = look->leader_id == 0;
    struct watch_value value = {.value = is_none ? IS_BAD : look->leader_id,
                                .since_ns = item->seen == IS_BAD ? item->seen_ns : look->now_ns,
                                .settle_ns = is_none ? CLUSTER_WATCH_SETTLE_NS : 0};

    if (!look->has_store || !look_at(item, &value, look->now_ns)) {
        return false;
    }
    *ret_news = (struct cluster_news){.kind = EVENT_LEADER_CHANGED,
                                      .node_id = look->leader_id,
                                      .before_id = item->told == IS_BAD ? 0 : item->told};
    note_told(item, look->now_ns, ret_news);
    return true;
}

static bool look_at_votes(struct cluster_watch *watch, const struct cluster_look *look,
                          struct cluster_news *ret_news)
{
    struct watch_item *item = &watch->votes;
    bool is_few = look->n_trusted < look->quorum;
    struct watch_value value = {.value = is_few ? IS_BAD : IS_WELL,
                                .since_ns = item->seen == IS_BAD ? item->seen_ns : look->now_ns,
                                .settle_ns = is_few ? CLUSTER_WATCH_SETTLE_NS : 0};

    if (look->n_observers == 0 || !look_at(item, &value, look->now_ns)) {
        return false;
    }
    *ret_news = (struct cluster_news){.kind = EVENT_FEW_VOTES,
                                      .n_have = look->n_trusted,
                                      .n_of = look->n_observers,
                                      .n_needed = look->quorum};
    note_told(item, look->now_ns, ret_news);
    return true;
}

uint32_t cluster_watch_look(struct cluster_watch *watch, const struct cluster_look *look,
                            struct cluster_news ret_news[CLUSTER_NEWS_MAX])
{
    uint32_t n = 0;
    uint32_t n_heard = 1; /* this node */

    /* Who was asleep itself heard nobody, and nobody was silent. */
    if (look->now_ns - watch->looked_ns > CLUSTER_WATCH_STANDSTILL_NS) {
        watch->floor_ns = look->now_ns;
    }
    watch->looked_ns = look->now_ns;
    forget_peers(watch, look);
    for (uint32_t i = 0; i < look->n_peers; i++) {
        ret_news[n].kind = EVENT_NONE;
        n_heard += look_at_peer(watch, look, &look->peers[i], &ret_news[n]);
        n += ret_news[n].kind != EVENT_NONE;
    }
    uint32_t n_of_peers = n;
    n += look_at_leader(watch, look, &ret_news[n]);
    if (n > n_of_peers) {
        ret_news[n_of_peers].n_have = (uint8_t)n_heard;
        ret_news[n_of_peers].n_of = (uint8_t)(look->n_peers + 1);
    }
    n += look_at_votes(watch, look, &ret_news[n]);
    return n;
}
