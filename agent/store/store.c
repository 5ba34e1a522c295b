/* The owner's side of the store: start, stop, requests in, results out. */
#include "agent/store/store.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "agent/loop/sock.h"
#include "agent/loop/thread.h"
#include "agent/store/store_private.h"

#define FREE_SPACE_MIN_BYTES (100u << 20)

static int check_options(const struct store_options *options, struct errmsg *err)
{
    uint32_t election_ms = options->election_timeout_ms;
    uint32_t heartbeat_ms = options->heartbeat_ms;

    assert(options->fsm != NULL && options->keys != NULL && options->zmq_context != NULL);
    assert(options->hooks.wake != NULL && options->hooks.fail_stop != NULL);
    assert((options->watchdog == NULL) == (options->watchdog_loop == NULL));
    if (options->n_bind == 0 || options->n_bind > LIMIT_ENDPOINTS_PER_NODE) {
        return errmsg_set(err, ERR_CONFIG, "raft address: 1..%d addresses to listen on, got %u",
                          LIMIT_ENDPOINTS_PER_NODE, options->n_bind);
    }
    if (election_ms != 0 && (election_ms < 100 || election_ms > 60000)) {
        return errmsg_set(err, ERR_CONFIG, "raft election timeout: must be 100ms..60s, got %ums",
                          election_ms);
    }
    if (heartbeat_ms != 0 &&
        (heartbeat_ms < 10 || heartbeat_ms * 2 > (election_ms != 0 ? election_ms : 400))) {
        return errmsg_set(err, ERR_CONFIG,
                          "raft heartbeat: must be 10ms up to half the election timeout, got %ums",
                          heartbeat_ms);
    }
    return 0;
}

static void free_store(struct store *store)
{
    ring_free(store->requests);
    ring_free(store->completions);
    mailbox_close(&store->states);
    mailbox_close(&store->statuses);
    mailbox_close(&store->members);
    free(store->wanted);
    free(store->introduced);
    wake_close(&store->wake);
    free(store);
}

static void no_drop(void *value)
{
    (void)value;
}

/* Everything but the sockets, the loop and the thread. */
static struct store *new_store(const struct store_options *options)
{
    struct store *store = calloc(1, sizeof *store);

    if (store == NULL) {
        return NULL;
    }
    store->options = *options;
    store->options.data_dir = NULL;
    if (store->options.free_space_min_bytes == 0) {
        store->options.free_space_min_bytes = FREE_SPACE_MIN_BYTES;
    }
    store->owner.node_id = options->node_id;
    store->owner.allow_tmpfs = options->allow_tmpfs;
    memcpy(store->owner.key.bytes, options->keys->public_key, sizeof store->owner.key.bytes);
    store->dir.lock_fd = -1;
    store->wake.fd = -1;
    mailbox_init(&store->states,
                 options->fsm->unpublish != NULL ? options->fsm->unpublish : no_drop);
    mailbox_init(&store->statuses, free);
    mailbox_init(&store->members, free);
    store->requests = ring_new(sizeof(struct ask *), STORE_REQUESTS_MAX);
    store->completions = ring_new(sizeof(struct store_completion), STORE_REQUESTS_MAX);
    store->wanted = calloc(1, sizeof *store->wanted);
    store->introduced = calloc(1, sizeof *store->introduced);
    store->sock = (struct sock_options){.context = options->zmq_context,
                                        .domain = SOCK_DOMAIN_RAFT,
                                        .keys = options->keys,
                                        .message_bytes_max = LIMIT_RAFT_MESSAGE_BYTES,
                                        .queue_messages = LIMIT_SEND_QUEUE_MESSAGES};
    bool is_whole = store->requests != NULL && store->completions != NULL &&
                    store->wanted != NULL && store->introduced != NULL;
    if (!is_whole || wake_init(&store->wake) != 0) {
        free_store(store);
        return NULL;
    }
    return store;
}

int store_start(const struct store_options *options, struct store **ret_store, struct errmsg *err)
{
    int result = check_options(options, err);

    if (result != 0) {
        return result;
    }
    struct store *store = new_store(options);
    if (store == NULL) {
        return errmsg_set(err, ERR_NOMEM, "no memory or descriptors for the store");
    }
    result = data_dir_init(&store->dir, options->data_dir, err);
    if (result == 0) {
        result = raft_lane_listen(&store->sock, options->bind, options->n_bind, &store->listener,
                                  store->ports, err);
    }
    if (result != 0) {
        free_store(store);
        return result;
    }
    uv_loop_init(&store->loop);
    result = thread_start(&store->thread, "store", store_main, store);
    if (result != 0) {
        zmq_close(store->listener);
        uv_loop_close(&store->loop);
        free_store(store);
        return errmsg_set(err, result, "the store's thread cannot be started");
    }
    *ret_store = store;
    return 0;
}

void store_stop(struct store *store)
{
    struct store_completion completion;

    atomic_store(&store->must_stop, true);
    wake_signal(&store->wake);
    pthread_join(store->thread, NULL);
    int code = uv_loop_close(&store->loop);
    assert(code == 0);
    while (ring_pop(store->completions, &completion)) {
        store_completion_close(&completion);
    }
    free_store(store);
}

uint16_t store_bound_port(const struct store *store, uint32_t index)
{
    assert(index < store->options.n_bind);
    return store->ports[index];
}

int store_check(const char *data_dir, uint64_t node_id, const uint8_t *public_key,
                struct errmsg *err)
{
    struct data_dir_owner owner = {.node_id = node_id};
    struct data_dir dir;
    int result = data_dir_init(&dir, data_dir, err);

    memcpy(owner.key.bytes, public_key, sizeof owner.key.bytes);
    return result != 0 ? result : data_dir_check(&dir, &owner, err);
}

/* --- requests --- */

static int send_ask(struct store *store, struct ask *ask, const uint8_t *command, size_t n_bytes)
{
    if (ask == NULL) {
        return ERR_NOMEM;
    }
    if (n_bytes > 0) {
        ask->command = malloc(n_bytes);
        if (ask->command == NULL) {
            ask_free(ask);
            return ERR_NOMEM;
        }
        memcpy(ask->command, command, n_bytes);
        ask->n_command_bytes = n_bytes;
    }
    if (store->n_requests == STORE_REQUESTS_MAX || !ring_push(store->requests, &ask)) {
        ask_free(ask);
        return ERR_BUSY;
    }
    store->n_requests++;
    wake_signal(&store->wake);
    return 0;
}

static struct ask *new_ask(enum store_request_kind kind, uint64_t cookie)
{
    struct ask *ask = calloc(1, sizeof *ask);

    if (ask != NULL) {
        ask->kind = (uint8_t)kind;
        ask->cookie = cookie;
    }
    return ask;
}

static bool is_command_size(size_t n_bytes)
{
    return n_bytes > 0 && n_bytes <= LIMIT_COMMAND_BYTES && n_bytes % 8 == 0;
}

int store_propose(struct store *store, uint64_t cookie, const uint8_t *command, size_t n_bytes)
{
    if (!is_command_size(n_bytes)) {
        return ERR_LIMIT;
    }
    return send_ask(store, new_ask(STORE_REQUEST_PROPOSE, cookie), command, n_bytes);
}

int store_barrier(struct store *store, uint64_t cookie)
{
    return send_ask(store, new_ask(STORE_REQUEST_BARRIER, cookie), NULL, 0);
}

int store_transfer(struct store *store, uint64_t cookie, uint64_t node_id)
{
    struct ask *ask = new_ask(STORE_REQUEST_TRANSFER, cookie);

    if (ask != NULL) {
        ask->node_id = node_id;
    }
    return send_ask(store, ask, NULL, 0);
}

int store_init(struct store *store, uint64_t cookie, const struct store_init *init)
{
    struct ask *ask;

    if (!is_command_size(init->n_command_bytes)) {
        return ERR_LIMIT;
    }
    ask = new_ask(STORE_REQUEST_INIT, cookie);
    if (ask != NULL) {
        ask->cluster_id = init->cluster_id;
        ask->node_id = init->node_id;
    }
    return send_ask(store, ask, init->command, init->n_command_bytes);
}

/* --- results --- */

bool store_next_completion(struct store *store, struct store_completion *ret_completion)
{
    if (!ring_pop(store->completions, ret_completion)) {
        return false;
    }
    store->n_requests--;
    return true;
}

void store_completion_close(struct store_completion *completion)
{
    free(completion->answer);
    completion->answer = NULL;
    completion->n_answer_bytes = 0;
}

void *store_take_state(struct store *store)
{
    return mailbox_take(&store->states);
}

bool store_take_members(struct store *store, struct store_members *ret_members)
{
    struct store_members *members = mailbox_take(&store->members);

    if (members == NULL) {
        return false;
    }
    *ret_members = *members;
    free(members);
    return true;
}

bool store_take_status(struct store *store, struct store_status *ret_status)
{
    struct store_status *status = mailbox_take(&store->statuses);

    if (status == NULL) {
        return false;
    }
    *ret_status = *status;
    free(status);
    return true;
}
