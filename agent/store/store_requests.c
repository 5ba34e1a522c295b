/* Proposals, barriers and transfers: from the owner's ring into raft and back. */
#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/store/store_private.h"
#include "common/base/limits.h"
#include "common/base/plant.h"

void ask_push(struct ask_list *list, struct ask *ask)
{
    ask->next = NULL;
    if (list->last == NULL) {
        list->first = ask;
    } else {
        list->last->next = ask;
    }
    list->last = ask;
    list->n++;
}

static void push_front(struct ask_list *list, struct ask *ask)
{
    ask->next = list->first;
    list->first = ask;
    if (list->last == NULL) {
        list->last = ask;
    }
    list->n++;
}

struct ask *ask_pop(struct ask_list *list)
{
    struct ask *ask = list->first;

    if (ask != NULL) {
        list->first = ask->next;
        if (list->first == NULL) {
            list->last = NULL;
        }
        list->n--;
        ask->next = NULL;
    }
    return ask;
}

static void remove_from(struct ask_list *list, struct ask *ask)
{
    struct ask_list rest = {0};
    struct ask *each;

    while ((each = ask_pop(list)) != NULL) {
        if (each != ask) {
            ask_push(&rest, each);
        }
    }
    *list = rest;
}

void ask_free(struct ask *ask)
{
    free(ask->command);
    free(ask->answer);
    free(ask);
}

static void answer(struct store *store, struct ask *ask, struct store_completion *completion)
{
    const struct store_fsm *fsm = store->options.fsm;

    if (ask->kind == STORE_REQUEST_NONE || ask->is_completed) {
        store_completion_close(completion);
        return;
    }
    completion->cookie = ask->cookie;
    completion->kind = ask->kind;
    completion->leader_id = store_leader_id(store);
    completion->term = store->is_raft_open ? raft_current_term(&store->raft) : 0;
    completion->revision = fsm->revision(fsm->user);
    /* The state first: who takes this completion finds its effect in the mailbox. */
    store_publish_state(store);
    bool has_room = ring_push(store->completions, completion);
    assert(has_room); /* n_requests bounds it */
    store->is_wake_due = true;
}

void store_complete(struct store *store, struct ask *ask, enum store_outcome outcome,
                    const char *format, ...)
{
    struct store_completion completion = {.outcome = (uint8_t)outcome};

    if (outcome == STORE_DONE) {
        completion.answer = ask->answer;
        completion.n_answer_bytes = ask->n_answer_bytes;
        completion.index = ask->apply.index;
        ask->answer = NULL;
    } else {
        va_list args;

        va_start(args, format);
        vsnprintf(completion.message.text, sizeof completion.message.text, format, args);
        va_end(args);
    }
    answer(store, ask, &completion);
    ask_free(ask);
}

/* --- proposals --- */

void store_note_answer(struct store *store, uint64_t index, uint8_t *bytes, size_t n_bytes)
{
    struct ask *ask = store->applying.first;

    while (ask != NULL && ask->apply.index < index) {
        ask = ask->next;
    }
    if (ask == NULL || ask->apply.index != index) {
        free(bytes);
        return;
    }
    free(ask->answer);
    ask->answer = bytes;
    ask->n_answer_bytes = n_bytes;
}

static void on_applied(struct raft_apply *request, int status, void *result)
{
    struct ask *ask = request->data;
    struct store *store = ask->store;

    (void)result;
    remove_from(&store->applying, ask);
    if (status == 0) {
        store_complete(store, ask, STORE_DONE, "%s", "");
    } else {
        store_complete(store, ask, STORE_UNKNOWN,
                       "leadership was lost while the command was under way (%s): it may be "
                       "applied or not; ask again with the same request id",
                       raft_strerror(status));
    }
    store_pump(store);
}

/* Errors after raft took the entry would leave its memory and its log apart (raft-022.md, "smaller
 * ones"); only the refusals before that are survived. */
static void apply_failed(struct store *store, struct ask *ask, int code)
{
    if (code == RAFT_NOTLEADER) {
        store_complete(store, ask, STORE_NOT_LEADER, "this node is not the leader");
        return;
    }
    if (code == RAFT_NOSPACE) {
        store_complete(store, ask, STORE_DISK_FULL, "the disk is full");
        return;
    }
    store_fail_stop(store, STORE_EXIT_RESTART, raft_strerror(code));
}

static void propose(struct store *store, struct ask *ask)
{
    struct raft_buffer buffer = {.base = raft_malloc(ask->n_command_bytes),
                                 .len = ask->n_command_bytes};

    if (buffer.base == NULL) {
        store_complete(store, ask, STORE_BUSY, "out of memory");
        return;
    }
    /* Else raft frees the command twice (raft-022.md, "smaller ones"). */
    assert(buffer.len > 0 && buffer.len % 8 == 0 && buffer.len <= LIMIT_COMMAND_BYTES);
    memcpy(buffer.base, ask->command, buffer.len);
    ask->apply.data = ask;
    ask_push(&store->applying, ask);
    int code = raft_apply(&store->raft, &ask->apply, &buffer, 1, on_applied);
    if (code != 0) {
        raft_free(buffer.base);
        remove_from(&store->applying, ask);
        apply_failed(store, ask, code);
        return;
    }
    store->counters.proposals++;
    if (plant_is("ack-before-commit")) {
        struct store_completion early = {.outcome = STORE_DONE, .index = ask->apply.index};

        answer(store, ask, &early);
        ask->is_completed = true;
    }
}

/* True: `check` has the final word and its answer is in the ask. */
static bool is_refused(struct store *store, struct ask *ask)
{
    const struct store_fsm *fsm = store->options.fsm;

    free(ask->answer);
    ask->answer = NULL;
    ask->n_answer_bytes = 0;
    return fsm->check(fsm->user, ask->command, ask->n_command_bytes, &ask->answer,
                      &ask->n_answer_bytes);
}

/* The next proposal. With others under way a check would judge a state that is about to change, so
 * apply judges alone; and a refusal counts only when a barrier has shown that this node still
 * leads, since a deposed leader would refuse by an old state. */
static void propose_next(struct store *store)
{
    struct ask *ask = ask_pop(&store->queue);

    if (store->applying.n == 0 && !ask->was_refused && is_refused(store, ask)) {
        ask->was_refused = true;
        ask_push(&store->barrier_next, ask);
        return;
    }
    propose(store, ask);
}

/* --- barriers --- */

static void barrier_passed(struct store *store, struct ask *ask, uint64_t index)
{
    if (ask->kind == STORE_REQUEST_BARRIER) {
        ask->apply.index = index;
        store_complete(store, ask, STORE_DONE, "%s", "");
        return;
    }
    if (is_refused(store, ask)) {
        store_complete(store, ask, STORE_DONE, "%s", "");
    } else {
        push_front(&store->queue, ask);
    }
}

static void on_barrier(struct raft_barrier *request, int status)
{
    struct store *store = request->data;
    struct ask_list waiting = store->barrier_now;
    struct ask *ask;

    store->barrier_now = (struct ask_list){0};
    store->is_barrier_running = false;
    while ((ask = ask_pop(&waiting)) != NULL) {
        if (status == 0) {
            barrier_passed(store, ask, request->index);
        } else {
            store_complete(store, ask, STORE_NOT_LEADER,
                           "leadership was lost before the question was answered");
        }
    }
    store_pump(store);
}

static void start_barrier(struct store *store)
{
    store->barrier_now = store->barrier_next;
    store->barrier_next = (struct ask_list){0};
    store->is_barrier_running = true;
    store->barrier.data = store;
    int code = raft_barrier(&store->raft, &store->barrier, on_barrier);
    if (code == 0) {
        store->counters.barriers++;
    } else if (code == RAFT_NOTLEADER) {
        on_barrier(&store->barrier, code);
    } else {
        store_fail_stop(store, STORE_EXIT_RESTART, raft_strerror(code));
    }
}

void store_pump(struct store *store)
{
    while (store_is_leader(store) && store->is_ready && !store->is_stopping &&
           store->queue.first != NULL && store->applying.n < LIMIT_PROPOSALS_OUTSTANDING) {
        propose_next(store);
    }
    if (store_is_leader(store) && store->is_ready && !store->is_stopping &&
        store->barrier_next.first != NULL && !store->is_barrier_running) {
        start_barrier(store);
    }
}

void store_drop_queue(struct store *store)
{
    struct ask *ask;

    while ((ask = ask_pop(&store->queue)) != NULL ||
           (ask = ask_pop(&store->barrier_next)) != NULL) {
        store_complete(store, ask, STORE_NOT_LEADER, "this node is not the leader");
    }
}

/* --- transfers --- */

static void on_transferred(struct raft_transfer *request)
{
    struct store *store = request->data;
    struct ask *ask = store->transfer_ask;

    store->is_transfer_running = false;
    store->transfer_ask = NULL;
    if (ask != NULL && !store_is_leader(store)) {
        store_complete(store, ask, STORE_DONE, "%s", "");
    } else if (ask != NULL) {
        store_complete(store, ask, STORE_REFUSED,
                       "node %llu did not take over within an election timeout",
                       (unsigned long long)request->id);
    }
    if (store->is_stopping) {
        store_close_raft(store, false);
    }
}

bool store_start_transfer(struct store *store, uint64_t node_id, struct ask *ask)
{
    if (store->is_transfer_running) {
        return false;
    }
    store->transfer_ask = ask;
    store->transfer.data = store;
    store->is_transfer_running = true;
    int code = raft_transfer(&store->raft, &store->transfer, node_id, on_transferred);
    if (code != 0) {
        store->is_transfer_running = false;
        store->transfer_ask = NULL;
    }
    return code == 0;
}

static void begin_transfer(struct store *store, struct ask *ask)
{
    if (!store_is_leader(store)) {
        store_complete(store, ask, STORE_NOT_LEADER, "this node is not the leader");
    } else if (!store_start_transfer(store, ask->node_id, ask)) {
        store_complete(store, ask, STORE_REFUSED,
                       ask->node_id == 0 ? "no other voter can take over"
                                         : "node %llu is no other voter, or a transfer is running",
                       (unsigned long long)ask->node_id);
    }
}

/* --- the way in --- */

static void begin_proposal(struct store *store, struct ask *ask)
{
    const struct store_fsm *fsm = store->options.fsm;
    struct errmsg err = {{0}};

    if (!store_is_leader(store)) {
        store_complete(store, ask, STORE_NOT_LEADER, "this node is not the leader");
    } else if (store->init_command != NULL) {
        store_complete(store, ask, STORE_NOT_READY,
                       "the cluster is still being made: fewer than half of its first members "
                       "have joined");
    } else if (store->is_disk_full) {
        store_complete(store, ask, STORE_DISK_FULL,
                       "data directory %s: %llu MB are left, writes need %llu MB", store->dir.path,
                       (unsigned long long)(store->free_bytes >> 20),
                       (unsigned long long)(store->options.free_space_min_bytes >> 20));
    } else if (fsm->understands(fsm->user, ask->command, ask->n_command_bytes, &err) != 0) {
        store_complete(store, ask, STORE_REFUSED, "%s", err.text);
    } else if (store->queue.n >= LIMIT_PROPOSALS_QUEUED) {
        store_complete(store, ask, STORE_BUSY, "%d writes are waiting already",
                       LIMIT_PROPOSALS_QUEUED);
    } else {
        ask_push(&store->queue, ask);
    }
}

static void begin(struct store *store, struct ask *ask)
{
    if (ask->kind == STORE_REQUEST_INIT) {
        store_begin_init(store, ask);
        return;
    }
    if (!store->is_raft_started || store->is_stopping) {
        store_complete(store, ask, STORE_NOT_READY, "%s",
                       store->message.text[0] != '\0' ? store->message.text
                                                      : "the store is not running yet");
        return;
    }
    switch ((enum store_request_kind)ask->kind) {
    case STORE_REQUEST_PROPOSE:
        begin_proposal(store, ask);
        break;
    case STORE_REQUEST_BARRIER:
        if (store_is_leader(store)) {
            ask_push(&store->barrier_next, ask);
        } else {
            store_complete(store, ask, STORE_NOT_LEADER, "this node is not the leader");
        }
        break;
    case STORE_REQUEST_TRANSFER:
        begin_transfer(store, ask);
        break;
    case STORE_REQUEST_INIT:
    case STORE_REQUEST_NONE:
        assert(false);
        break;
    }
}

void store_take_requests(struct store *store)
{
    struct ask *ask;

    while (ring_pop(store->requests, &ask)) {
        ask->store = store;
        begin(store, ask);
    }
    store_pump(store);
}
