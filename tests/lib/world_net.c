/* The simulated network: delay, loss, duplicates, late messages, cut directions. */
#include <stdlib.h>
#include <string.h>

#include "tests/lib/world_queue.h"

#define LATE_MAX_NS (60 * WORLD_SECOND)

void world_message_unref(struct world_message *message)
{
    if (--message->n_users == 0) {
        free(message);
    }
}

static void plan_copy(struct world *world, uint64_t to, const struct world_link *link,
                      struct world_message *message)
{
    uint64_t spread_ns = link->delay_max_ns - link->delay_min_ns;
    uint64_t delay_ns = link->delay_min_ns;
    struct happening happening = {.kind = HAPPENS_MESSAGE, .node_id = to, .u.message = message};

    if (spread_ns > 0) {
        delay_ns += prng_below(&world->prng, spread_ns + 1);
    }
    if (link->late_ppm > 0 && prng_chance(&world->prng, link->late_ppm)) {
        delay_ns += prng_below(&world->prng, LATE_MAX_NS);
    }
    message->n_users++;
    world_plan(world, world->now_ns + delay_ns, &happening);
}

/* --- noise --- */

static void plan_replay(struct world *world, const struct world_node *node,
                        struct world_message *message)
{
    struct happening happening = {
        .kind = HAPPENS_REPLAY, .node_id = node->id, .epoch = node->epoch, .u.message = message};
    uint64_t most_ns = prng_below(&world->noise, 2) == 0 ? LATE_MAX_NS : 2 * WORLD_SECOND;

    message->n_users++;
    world_plan(world, world->now_ns + prng_below(&world->noise, most_ns), &happening);
}

/* Whether the receiver knows what the message is about: one that it can not use yet does not count
 * as delivered. */
static bool is_known(const struct world_node *node, const struct world_message *message)
{
    const struct catalog *catalog = engine_catalog(node->engine);

    if (catalog == NULL || catalog_node_find(catalog, message->from) == NULL) {
        return false;
    }
    if (message->kind != ENGINE_VOTE_CHANGE) {
        return true;
    }
    struct target_id id = message->u.change.target;
    const struct catalog_target *target =
        id.slot < catalog_n_slots(catalog) ? catalog_target_at(catalog, id.slot) : NULL;
    return target != NULL && target->id.birth == id.birth;
}

static bool is_older(const struct world_message *message, const struct vote_chunk *than)
{
    if (message->kind == ENGINE_VOTE_CHUNK) {
        return message->u.chunk.epoch == than->epoch && message->u.chunk.sequence < than->sequence;
    }
    return message->kind == ENGINE_VOTE_CHANGE && message->u.change.epoch == than->epoch &&
           message->u.change.sequence < than->sequence;
}

void world_make_noise(struct world *world, const struct world_node *node,
                      struct world_message *message)
{
    struct world_message **lost = &world->lost[message->from][node->id];

    if (!is_known(node, message)) {
        return;
    }
    for (uint64_t i = prng_below(&world->noise, world->n_replays_max + 1u); i > 0; i--) {
        world->n_replayed++;
        plan_replay(world, node, message);
    }
    if (*lost != NULL && message->kind == ENGINE_VOTE_CHUNK && is_older(*lost, &message->u.chunk)) {
        world->n_overtaken++;
        plan_replay(world, node, *lost);
        world_message_unref(*lost);
        *lost = NULL;
    }
}

static void keep_lost(struct world *world, uint64_t from, uint64_t to,
                      struct world_message *message)
{
    if (message->kind != ENGINE_VOTE_CHUNK && message->kind != ENGINE_VOTE_CHANGE) {
        return;
    }
    if (world->lost[from][to] != NULL) {
        world_message_unref(world->lost[from][to]);
    }
    message->n_users++;
    world->lost[from][to] = message;
}

void world_noise_close(struct world *world)
{
    for (uint32_t from = 1; from <= world->n_nodes; from++) {
        for (uint32_t to = 1; to <= world->n_nodes; to++) {
            if (world->lost[from][to] != NULL) {
                world_message_unref(world->lost[from][to]);
            }
        }
    }
}

/* --- sending --- */

static void send_one(struct world *world, uint64_t from, uint64_t to, struct world_message *message)
{
    const struct world_link *link = &world->links[from][to];

    world->n_messages++;
    if (link->is_cut || (link->loss_ppm > 0 && prng_chance(&world->prng, link->loss_ppm))) {
        world->n_lost++;
        if (world->n_replays_max > 0) {
            keep_lost(world, from, to, message);
        }
        return;
    }
    plan_copy(world, to, link, message);
    if (link->duplicate_ppm > 0 && prng_chance(&world->prng, link->duplicate_ppm)) {
        world->n_duplicates++;
        plan_copy(world, to, link, message);
    }
}

static struct world_message *make(const struct world_node *node, enum engine_event_kind kind)
{
    struct world_message *message = malloc(sizeof *message);

    if (message == NULL) {
        abort();
    }
    message->n_users = 1;
    message->kind = (uint8_t)kind;
    message->from = node->id;
    return message;
}

static void send_all(struct world *world, const struct world_node *node,
                     struct world_message *message)
{
    for (uint32_t to = 1; to <= world->n_nodes; to++) {
        if (to != node->id) {
            send_one(world, node->id, to, message);
        }
    }
    world_message_unref(message);
}

void world_send_actions(struct world *world, struct world_node *node)
{
    const struct engine_actions *actions = &node->actions;
    struct world_message *message;

    if (actions->has_hello) {
        message = make(node, ENGINE_HELLO);
        message->u.hello = actions->hello;
        send_all(world, node, message);
    }
    for (uint16_t i = 0; i < actions->n_changes; i++) {
        message = make(node, ENGINE_VOTE_CHANGE);
        message->u.change = actions->changes[i];
        send_all(world, node, message);
    }
    for (uint16_t i = 0; i < actions->n_chunks; i++) {
        message = make(node, ENGINE_VOTE_CHUNK);
        message->u.chunk = actions->chunks[i];
        send_all(world, node, message);
    }
    if (actions->has_question) {
        message = make(node, ENGINE_VOTE_QUESTION);
        message->u.question = actions->question;
        send_all(world, node, message);
    }
    if (actions->has_drain_report) {
        message = make(node, ENGINE_DRAIN_REPORT);
        message->u.report = actions->drain_report;
        send_all(world, node, message);
    }
    for (uint16_t i = 0; i < actions->n_replies; i++) {
        message = make(node, ENGINE_VOTE_CHANGE);
        message->u.change = actions->replies[i].change;
        send_one(world, node->id, actions->replies[i].to, message);
        world_message_unref(message);
    }
}

void world_deliver(struct world *world, struct world_node *node, struct world_message *message)
{
    struct engine_event event = {.kind = message->kind, .peer = message->from};

    switch ((enum engine_event_kind)message->kind) {
    case ENGINE_HELLO:
        event.u.hello = &message->u.hello;
        break;
    case ENGINE_VOTE_CHUNK:
        event.u.chunk = &message->u.chunk;
        break;
    case ENGINE_VOTE_CHANGE:
        event.u.change = &message->u.change;
        break;
    case ENGINE_VOTE_QUESTION:
        event.u.question = &message->u.question;
        break;
    case ENGINE_DRAIN_REPORT:
        event.u.report = &message->u.report;
        break;
    case ENGINE_TICK:
    case ENGINE_CATALOG:
    case ENGINE_PROBE_RESULT:
    case ENGINE_ASK:
    case ENGINE_LAST_KNOWN_GOOD:
    case ENGINE_DATA_PLANE:
    case ENGINE_LOOP_LATE:
    case ENGINE_SENTINEL:
    case ENGINE_HOLD:
    case ENGINE_PROBE_BUDGET:
    case ENGINE_NEWS:
        abort(); /* no message */
    }
    world_step(world, node, &event);
}
