/* What the engine hears from its peers and what it tells them. */
#include <assert.h>
#include <string.h>

#include "agent/core/engine_state.h"
#include "common/base/plant.h"
#include "common/model/feature_level.h"

#define MESSAGE_VERSION 1

/* A member's index, or OBSERVER_NO_INDEX and a counter. Own messages never come back. */
static uint32_t find_peer(struct engine *engine, uint64_t node_id)
{
    uint32_t index = observers_index(&engine->observers, node_id);

    if (index == OBSERVER_NO_INDEX || node_id == engine->config.node_id) {
        engine->counters.votes_unknown_node++;
        return OBSERVER_NO_INDEX;
    }
    if (plant_is("replay-is-life")) {
        engine->peers[index].heard_ns = engine->now_ns;
    }
    return index;
}

static void tell_epoch(struct engine *engine, uint64_t node_id)
{
    engine_log(engine, EVENT_PEER_EPOCH)->node_id = node_id;
}

void engine_hear_hello(struct engine *engine, uint64_t peer, const struct hello *hello)
{
    if (engine->catalog != NULL) {
        struct cluster_id ours = catalog_cluster_id(engine->catalog);

        if (memcmp(&ours, &hello->cluster_id, sizeof ours) != 0) {
            engine->counters.hellos_other_cluster++;
            return;
        }
    }
    uint32_t index = find_peer(engine, peer);
    if (index == OBSERVER_NO_INDEX) {
        return;
    }
    if (hello->node_id != peer || hello->epoch == 0) {
        engine->counters.messages_malformed++;
        return;
    }
    struct votes_peer_look look;
    votes_look_peer(engine->votes, index, &look);
    if (hello->epoch < look.epoch) {
        engine->counters.votes_old_epoch++;
        return;
    }
    if (votes_note_epoch(engine->votes, index, hello->epoch) && look.epoch != 0) {
        tell_epoch(engine, peer);
    }
    engine_hear_beat(engine, hello->beat_ms);
    engine->peers[index].hello_ns = engine->now_ns;
    engine->peers[index].revision = hello->revision;
    uint8_t before = observers_n(&engine->observers);
    if (hello->is_observer && observers_heard(&engine->observers, peer)) {
        struct event *event = engine_log(engine, EVENT_OBSERVERS_CHANGED);

        event->node_id = peer;
        event->from = before;
        event->to = observers_n(&engine->observers);
        engine_mark_all(engine);
    }
}

static void count_outcome(struct engine *engine, enum votes_outcome outcome)
{
    switch (outcome) {
    case VOTES_TAKEN:
        break;
    case VOTES_STALE:
        engine->counters.votes_stale++;
        break;
    case VOTES_OLD_EPOCH:
        engine->counters.votes_old_epoch++;
        break;
    case VOTES_MALFORMED:
        engine->counters.messages_malformed++;
        break;
    case VOTES_DIFFER:
        engine->counters.chunks_differ++;
        break;
    case VOTES_AHEAD:
        engine->counters.chunks_ahead++;
        break;
    case VOTES_OTHER_TARGET:
        engine->counters.votes_other_target++;
        break;
    case VOTES_NO_ROOM:
        engine->counters.changes_no_room++;
        break;
    }
}

static const struct engine_chunk *own_chunk(struct engine *engine, uint16_t index)
{
    struct engine_chunk *chunk = &engine->chunks[index];

    if ((engine->chunks_known >> index & 1) == 0) {
        chunk->digest = catalog_chunk_digest(engine->catalog, index);
        chunk->n_births =
            catalog_chunk_births(engine->catalog, index, chunk->births, &chunk->floor);
        engine->chunks_known |= UINT32_C(1) << index;
    }
    return chunk;
}

/* Once for each time that a peer's catalog begins to differ. */
static void watch_difference(struct engine *engine, uint32_t index, uint64_t peer,
                             enum votes_outcome outcome)
{
    struct votes_peer_look look;

    if (outcome == VOTES_DIFFER && !engine->peers[index].differs_told) {
        engine_log(engine, EVENT_CATALOGS_DIFFER)->node_id = peer;
        engine->peers[index].differs_told = true;
        return;
    }
    votes_look_peer(engine->votes, index, &look);
    engine->peers[index].differs_told = look.catalog_differs;
}

void engine_hear_chunk(struct engine *engine, uint64_t peer, const struct vote_chunk *chunk)
{
    uint32_t index = find_peer(engine, peer);

    if (index == OBSERVER_NO_INDEX) {
        return;
    }
    if (chunk->chunk >= LIMIT_VOTE_CHUNKS) {
        engine->counters.messages_malformed++;
        return;
    }
    struct votes_peer_look look;
    struct votes_here here = {.revision = catalog_revision(engine->catalog),
                              .now_ns = engine->now_ns};
    if (chunk->revision == here.revision) {
        here.digest = own_chunk(engine, chunk->chunk)->digest;
    }
    votes_look_peer(engine->votes, index, &look);
    enum votes_outcome outcome =
        votes_take_chunk(engine->votes, index, chunk, &here, &engine->dirty_slots);
    count_outcome(engine, outcome);
    if (outcome != VOTES_STALE && outcome != VOTES_OLD_EPOCH && outcome != VOTES_MALFORMED) {
        engine->peers[index].heard_ns = engine->now_ns;
    }
    watch_difference(engine, index, peer, outcome);
    if (look.epoch != 0 && chunk->epoch > look.epoch) {
        tell_epoch(engine, peer);
    }
}

void engine_hear_change(struct engine *engine, uint64_t peer, const struct vote_change *change)
{
    uint32_t index = find_peer(engine, peer);

    if (index != OBSERVER_NO_INDEX) {
        count_outcome(engine, votes_take_change(engine->votes, index, change, engine->now_ns,
                                                &engine->dirty_slots));
    }
}

static struct vote_change make_change(struct engine *engine, uint32_t slot)
{
    const struct engine_target *target = &engine->targets[slot];

    return (struct vote_change){
        .epoch = engine->config.epoch,
        .sequence = ++engine->sequence,
        .target = {.slot = slot, .birth = target->birth},
        .opinion = target->health.opinion,
        .reason = target->reason,
        .http_status = target->http_status,
        .response_us = target->response_us,
        .streak = health_streak(&target->health),
        .since_ms = (engine->now_ns - target->opinion_since_ns) / NS_PER_MS,
        .probe_age_ms = target->conclusive_ns == 0
                            ? 0
                            : (engine->now_ns - target->conclusive_ns) / NS_PER_MS + 1,
        .suspect_mask = engine->suspect_mask,
        .part = slot < engine->n_parts ? engine->parts[slot].part : COMPOSE_NO_PART,
        .wavers = engine_share_wavers(engine, slot),
    };
}

/* Votes go out only under an epoch that was kept, and only from an observer. */
static bool may_vote(const struct engine *engine)
{
    return engine->config.epoch != 0 && engine->catalog != NULL &&
           observers_self_counts(&engine->observers);
}

void engine_publish_change(struct engine *engine, uint32_t slot, struct engine_actions *actions)
{
    if (!may_vote(engine)) {
        return;
    }
    bool is_enough = engine->n_changes_told >= ENGINE_CHANGES && !plant_is("changes-without-bound");
    if (is_enough || actions->n_changes == ENGINE_CHANGES) {
        engine->counters.changes_not_sent++;
        return;
    }
    engine->n_changes_told++;
    actions->changes[actions->n_changes++] = make_change(engine, slot);
}

void engine_answer(struct engine *engine, uint64_t peer, const struct vote_question *question,
                   struct engine_actions *actions)
{
    if (find_peer(engine, peer) == OBSERVER_NO_INDEX || !may_vote(engine)) {
        return;
    }
    if (question->n_targets > LIMIT_QUESTION_TARGETS) {
        engine->counters.messages_malformed++;
        return;
    }
    for (uint16_t i = 0; i < question->n_targets; i++) {
        struct target_id id = question->targets[i];

        if (id.slot < engine->n_slots && id.birth != 0 &&
            engine->targets[id.slot].birth == id.birth) {
            actions->replies[actions->n_replies++] =
                (struct vote_reply){.to = peer, .change = make_change(engine, id.slot)};
        }
    }
}

void engine_ask(struct engine *engine, struct target_id target, struct engine_actions *actions)
{
    actions->has_question = true;
    actions->question = (struct vote_question){.epoch = engine->config.epoch,
                                               .sequence = ++engine->question_sequence,
                                               .n_targets = 1,
                                               .targets = {target}};
}

static void fill_opinions(const struct engine *engine, uint32_t first, struct vote_chunk *chunk)
{
    for (uint32_t i = 0; i < LIMIT_VOTE_SLOTS_PER_CHUNK && first + i < engine->n_slots; i++) {
        const struct engine_target *target = &engine->targets[first + i];

        if (target->birth != 0) {
            unsigned said =
                engine_share_wavers(engine, first + i) ? VOTE_WAVERS : target->health.opinion;

            chunk->opinions[i / 4] = (uint8_t)(chunk->opinions[i / 4] | said << (i % 4 * 2));
        }
    }
}

static void publish_chunks(struct engine *engine, struct engine_actions *actions)
{
    uint32_t n_slots = catalog_n_slots(engine->catalog);
    uint16_t n_chunks =
        (uint16_t)((n_slots + LIMIT_VOTE_SLOTS_PER_CHUNK - 1) / LIMIT_VOTE_SLOTS_PER_CHUNK);

    n_chunks = n_chunks == 0 ? 1 : n_chunks; /* also with nothing to say: it says who is alive */
    engine->sequence++;
    for (uint16_t i = 0; i < n_chunks; i++) {
        struct vote_chunk *chunk = &actions->chunks[i];
        const struct engine_chunk *own = own_chunk(engine, i);

        *chunk = (struct vote_chunk){
            .epoch = engine->config.epoch,
            .sequence = engine->sequence,
            .revision = catalog_revision(engine->catalog),
            .chunk = i,
            .n_chunks = n_chunks,
            .suspect_mask = engine->suspect_mask,
            .doubt_causes = engine->doubt.causes,
            .digest = own->digest,
            .floor = own->floor,
            .n_births = own->n_births,
        };
        memcpy(chunk->births, own->births, own->n_births * sizeof own->births[0]);
        fill_opinions(engine, i * (uint32_t)LIMIT_VOTE_SLOTS_PER_CHUNK, chunk);
    }
    actions->n_chunks = n_chunks;
}

void engine_publish_vector(struct engine *engine, struct engine_actions *actions)
{
    if (engine->catalog == NULL || engine->config.epoch == 0) {
        return;
    }
    actions->has_hello = true;
    actions->hello = (struct hello){
        .cluster_id = catalog_cluster_id(engine->catalog),
        .node_id = engine->config.node_id,
        .epoch = engine->config.epoch,
        .revision = catalog_revision(engine->catalog),
        .version_min = MESSAGE_VERSION,
        .version_max = MESSAGE_VERSION,
        .feature_level = feature_level(),
        .is_observer = observers_self_counts(&engine->observers),
        .beat_ms = engine_beat_ns(engine) / NS_PER_MS,
    };
    if (may_vote(engine)) {
        publish_chunks(engine, actions);
        engine->counters.vectors_sent++;
    }
}
