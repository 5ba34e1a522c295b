/* RN3: three nodes of raft's pure core on a network that reorders, loses and restarts, through our
 * own frames and guards. After 20 s without faults no follower may lag behind.
 * ctest labels: twin */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <raft.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/store/raft_frame.h"
#include "agent/store/raft_guard.h"
#include "common/base/plant.h"
#include "common/base/prng.h"
#include "tests/lib/heap.h"

#define N_NODES 3
#define LOG_MAX 20000
#define SEEDS 40
#define FAULTY_MS 20000
#define QUIET_MS 20000

struct log_entry {
    uint64_t term;
    uint8_t type;
    size_t n_bytes;
    uint8_t data[128];
};

struct node {
    struct raft raft;
    uint64_t id;
    struct log_entry *log; /* index 1 first */
    uint64_t n_log;
    uint64_t n_stored;
    uint64_t term;
    uint64_t voted_for;
    uint64_t epoch;
    uint64_t sequence;
    struct guard_order order[N_NODES + 1];
};

enum event_kind {
    EVENT_MESSAGE,
    EVENT_STORED
};

struct event {
    enum event_kind kind;
    uint64_t node;
    uint64_t epoch; /* of the node, for what a restart loses */
    uint64_t index; /* stored */
    uint8_t *data;
    size_t n_bytes;
};

struct sim {
    struct node nodes[N_NODES];
    struct prng prng;
    struct heap queue;
    uint64_t now_ms;
    bool is_faulty;
    uint64_t n_elections;
};

static void act(struct sim *sim, struct node *node, struct raft_update *update);

static void push_event(struct sim *sim, uint64_t delay_ms, const struct event *event)
{
    struct event *copy = malloc(sizeof *copy);

    *copy = *event;
    assert_int_equal(heap_push(&sim->queue, sim->now_ms + delay_ms, 0, (uintptr_t)copy), 0);
}

static void step(struct sim *sim, struct node *node, struct raft_event *event)
{
    struct raft_update update;

    event->time = sim->now_ms;
    event->capacity = 0;
    int code = raft_step(&node->raft, event, &update);
    if (code == 0) {
        act(sim, node, &update);
    }
}

static void start_node(struct sim *sim, struct node *node)
{
    char address[16];
    struct raft_event event = {.type = RAFT_START};

    snprintf(address, sizeof address, "node-%d", (int)node->id);
    memset(&node->raft, 0, sizeof node->raft);
    assert_int_equal(raft_init(&node->raft, NULL, NULL, node->id, address), 0);
    raft_seed(&node->raft, (unsigned)prng_next(&sim->prng));
    raft_set_pre_vote(&node->raft, true);
    raft_set_election_timeout(&node->raft, 400);
    raft_set_heartbeat_timeout(&node->raft, 50);
    node->raft.tracer = NULL;
    node->epoch++;
    node->sequence = 0;
    node->n_log = node->n_stored; /* what was not on the disk is gone */
    struct raft_entry *entries = calloc(node->n_log, sizeof *entries);
    for (uint64_t i = 0; i < node->n_log; i++) {
        entries[i].term = node->log[i].term;
        entries[i].type = (enum raft_entry_type)node->log[i].type;
        entries[i].buf.base = node->log[i].data;
        entries[i].buf.len = node->log[i].n_bytes;
    }
    event.start.term = node->term;
    event.start.voted_for = node->voted_for;
    event.start.start_index = 1;
    event.start.entries = entries;
    event.start.n_entries = (unsigned)node->n_log;
    step(sim, node, &event);
    free(entries);
}

static void store_entries(struct sim *sim, struct node *node, const struct raft_update *update)
{
    uint64_t index = update->entries.index;

    for (unsigned i = 0; i < update->entries.n; i++) {
        const struct raft_entry *entry = &update->entries.batch[i];
        struct log_entry *slot = &node->log[index - 1 + i];

        assert_true(index + i < LOG_MAX && entry->buf.len <= sizeof slot->data);
        slot->term = entry->term;
        slot->type = (uint8_t)entry->type;
        slot->n_bytes = entry->buf.len;
        memcpy(slot->data, entry->buf.base, entry->buf.len);
    }
    raft_free(update->entries.batch[0].batch);
    node->n_log = index + update->entries.n - 1;
    if (node->n_stored >= index) {
        node->n_stored = index - 1;
    }
    struct event stored = {
        .kind = EVENT_STORED, .node = node->id, .epoch = node->epoch, .index = node->n_log};
    push_event(sim, prng_below(&sim->prng, 3), &stored);
}

static void send_message(struct sim *sim, struct node *node, const struct raft_message *message)
{
    struct frame frame = {.head = {.from = node->id, .to = message->server_id}};
    struct raft_entry entries[64];
    struct event event = {.kind = EVENT_MESSAGE, .node = message->server_id};

    frame.u.message = *message;
    frame.head.epoch = node->epoch;
    frame.head.sequence = ++node->sequence;
    switch (message->type) {
    case RAFT_APPEND_ENTRIES:
        frame.head.kind = FRAME_APPEND_ENTRIES;
        assert_true(message->append_entries.n_entries <= 64);
        for (unsigned i = 0; i < message->append_entries.n_entries; i++) {
            struct log_entry *slot = &node->log[message->append_entries.prev_log_index + i];

            entries[i] =
                (struct raft_entry){.term = slot->term, .type = (enum raft_entry_type)slot->type};
            entries[i].buf.base = slot->data;
            entries[i].buf.len = slot->n_bytes;
        }
        frame.u.message.append_entries.entries = entries;
        break;
    case RAFT_APPEND_ENTRIES_RESULT:
        frame.head.kind = FRAME_APPEND_ENTRIES_RESULT;
        break;
    case RAFT_REQUEST_VOTE:
        frame.head.kind = FRAME_REQUEST_VOTE;
        break;
    case RAFT_REQUEST_VOTE_RESULT:
        frame.head.kind = FRAME_REQUEST_VOTE_RESULT;
        break;
    case RAFT_INSTALL_SNAPSHOT:
    case RAFT_TIMEOUT_NOW:
        return;
    }
    bool is_lost = sim->is_faulty && prng_chance(&sim->prng, 50000);
    assert_true(frame_encode(&frame, &event.data, &event.n_bytes));
    if (is_lost) {
        free(event.data);
        return;
    }
    push_event(sim, sim->is_faulty ? 1 + prng_below(&sim->prng, 20) : 1, &event);
}

static void act(struct sim *sim, struct node *node, struct raft_update *update)
{
    if (update->flags & RAFT_UPDATE_CURRENT_TERM) {
        node->term = raft_current_term(&node->raft);
        sim->n_elections++;
    }
    if (update->flags & RAFT_UPDATE_VOTED_FOR) {
        node->voted_for = raft_voted_for(&node->raft);
    }
    if (update->flags & RAFT_UPDATE_ENTRIES) {
        store_entries(sim, node, update);
    }
    if (update->flags & RAFT_UPDATE_MESSAGES) {
        for (unsigned i = 0; i < update->messages.n; i++) {
            send_message(sim, node, &update->messages.batch[i]);
        }
    }
}

/* As store_peers.c does it. */
static void receive(struct sim *sim, struct node *node, struct event *event)
{
    struct frame frame;
    char address[16];

    assert_int_equal(frame_decode(event->data, event->n_bytes, &frame), FRAME_OK);
    bool may_pass =
        guard_order_accept(&node->order[frame.head.from], frame.head.epoch, frame.head.sequence);
    if (may_pass && frame.head.kind == FRAME_APPEND_ENTRIES_RESULT) {
        may_pass =
            guard_result(&node->raft, frame.head.from, &frame.u.message.append_entries_result);
    } else if (may_pass && frame.head.kind == FRAME_REQUEST_VOTE_RESULT) {
        may_pass = guard_vote_result(&node->raft);
    }
    if (!may_pass) {
        frame_close(&frame);
        return;
    }
    struct raft_message *message = &frame.u.message;
    struct raft_event received = {.type = RAFT_RECEIVE};
    snprintf(address, sizeof address, "node-%d", (int)frame.head.from);
    message->server_id = frame.head.from;
    message->server_address = address;
    received.receive.message = message;
    step(sim, node, &received);
    if (message->type == RAFT_APPEND_ENTRIES && message->append_entries.n_entries > 0) {
        raft_free(message->append_entries.entries);
    }
}

static void stored(struct sim *sim, struct node *node, const struct event *event)
{
    struct raft_event persisted = {.type = RAFT_PERSISTED_ENTRIES};

    if (event->epoch != node->epoch || event->index > node->n_log ||
        event->index <= node->n_stored) {
        return;
    }
    node->n_stored = event->index;
    persisted.persisted_entries.index = event->index;
    step(sim, node, &persisted);
}

static void submit(struct sim *sim, struct node *node)
{
    struct raft_event event = {.type = RAFT_SUBMIT};
    struct raft_entry entry = {.term = raft_current_term(&node->raft), .type = RAFT_COMMAND};

    entry.buf.len = 8;
    entry.buf.base = raft_calloc(1, 8);
    entry.batch = entry.buf.base;
    event.submit.entries = &entry;
    event.submit.n = 1;
    event.time = sim->now_ms;
    struct raft_update update;
    if (raft_step(&node->raft, &event, &update) == 0) {
        act(sim, node, &update);
    } else {
        raft_free(entry.buf.base);
    }
}

static void run_until(struct sim *sim, uint64_t end_ms)
{
    for (; sim->now_ms < end_ms; sim->now_ms++) {
        struct heap_item item;

        while (heap_peek(&sim->queue, &item) && item.key <= sim->now_ms) {
            heap_pop(&sim->queue, &item);
            struct event *event = (struct event *)(uintptr_t)item.value;
            struct node *node = &sim->nodes[event->node - 1];
            if (event->kind == EVENT_MESSAGE) {
                receive(sim, node, event);
            } else {
                stored(sim, node, event);
            }
            free(event->data);
            free(event);
        }
        for (int i = 0; i < N_NODES; i++) {
            struct node *node = &sim->nodes[i];
            struct raft_event timeout = {.type = RAFT_TIMEOUT};

            if (sim->now_ms >= raft_timeout(&node->raft)) {
                step(sim, node, &timeout);
            }
            if (raft_state(&node->raft) == RAFT_LEADER && sim->now_ms % 10 == 0) {
                submit(sim, node);
            }
            if (sim->is_faulty && prng_chance(&sim->prng, 200)) {
                raft_close(&node->raft, NULL);
                start_node(sim, node);
            }
        }
    }
}

static void sim_init(struct sim *sim, uint64_t seed)
{
    struct raft_configuration conf;
    struct raft_buffer buffer;
    char address[24];

    memset(sim, 0, sizeof *sim);
    prng_init(&sim->prng, seed);
    heap_init(&sim->queue);
    sim->is_faulty = true;
    raft_configuration_init(&conf);
    for (int i = 1; i <= N_NODES; i++) {
        snprintf(address, sizeof address, "node-%d", i);
        raft_configuration_add(&conf, (raft_id)i, address, RAFT_VOTER);
    }
    raft_configuration_encode(&conf, &buffer);
    raft_configuration_close(&conf);
    for (int i = 0; i < N_NODES; i++) {
        struct node *node = &sim->nodes[i];

        node->id = (uint64_t)i + 1;
        node->log = calloc(LOG_MAX, sizeof *node->log);
        node->log[0] = (struct log_entry){.term = 1, .type = RAFT_CHANGE, .n_bytes = buffer.len};
        memcpy(node->log[0].data, buffer.base, buffer.len);
        node->n_stored = 1;
        node->term = 1;
        start_node(sim, node);
    }
    raft_free(buffer.base);
}

static void sim_close(struct sim *sim)
{
    struct heap_item item;

    while (heap_pop(&sim->queue, &item)) {
        struct event *event = (struct event *)(uintptr_t)item.value;

        free(event->data);
        free(event);
    }
    heap_close(&sim->queue);
    for (int i = 0; i < N_NODES; i++) {
        raft_close(&sim->nodes[i].raft, NULL);
        free(sim->nodes[i].log);
    }
}

/* True when a follower is behind after the quiet time. */
static bool ends_stalled(uint64_t seed)
{
    struct sim *sim = malloc(sizeof *sim);
    uint64_t least = UINT64_MAX, most = 0;

    sim_init(sim, seed);
    run_until(sim, FAULTY_MS);
    sim->is_faulty = false;
    run_until(sim, FAULTY_MS + QUIET_MS);
    for (int i = 0; i < N_NODES; i++) {
        uint64_t commit = raft_commit_index(&sim->nodes[i].raft);

        least = commit < least ? commit : least;
        most = commit > most ? commit : most;
    }
    for (uint64_t i = 0; i < least; i++) { /* and what is committed is the same everywhere */
        assert_int_equal(sim->nodes[0].log[i].term, sim->nodes[1].log[i].term);
        assert_int_equal(sim->nodes[0].log[i].term, sim->nodes[2].log[i].term);
    }
    sim_close(sim);
    free(sim);
    assert_true(most > 100); /* something was committed at all */
    return most - least > 100;
}

static int count_stalls(void)
{
    int n = 0;

    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        n += ends_stalled(seed) ? 1 : 0;
    }
    print_message("%d of %d seeds ended with a stalled follower\n", n, SEEDS);
    return n;
}

static void no_follower_stalls_when_messages_are_reordered(void **state)
{
    (void)state;
    assert_int_equal(count_stalls(), 0);
}

#ifdef JURY_PLANTS
static void without_the_guard_a_follower_stalls(void **state)
{
    (void)state;
    plant_set("rn3");
    int n = count_stalls();
    plant_set(NULL);
    assert_true(n > 0);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_follower_stalls_when_messages_are_reordered),
#ifdef JURY_PLANTS
        cmocka_unit_test(without_the_guard_a_follower_stalls),
#endif
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
