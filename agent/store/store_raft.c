/* One raft instance: settings, state machine, leadership. */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/store/snapshot_blob.h"
#include "agent/store/store_private.h"
#include "common/base/plant.h"

#define ELECTION_MS_DEFAULT 400
#define HEARTBEAT_MS_DEFAULT 50
#define THRESHOLD_DEFAULT 1024
/* Twice: a snapshot that is written late, on a busy machine, is still reached by the log from the
 * one before it, which is used when the newest cannot be read. */
#define TRAILING_DEFAULT (2 * THRESHOLD_DEFAULT)
#define SEGMENT_BYTES_DEFAULT (1u << 20)
#define INSTALL_SNAPSHOT_MS 2000
/* 32 is right up to 64 outstanding commands (raft-022.md rule 18). */
#define INFLIGHT_ENTRIES 32

/* --- state machine --- */

static int fsm_apply(struct raft_fsm *fsm, const struct raft_buffer *buf, void **result)
{
    struct store *store = fsm->data;
    const struct store_fsm *ours = store->options.fsm;
    uint8_t *answer = NULL;
    size_t n_bytes = 0;
    struct errmsg err = {{0}};

    *result = NULL;
    if (ours->apply(ours->user, buf->base, buf->len, &answer, &n_bytes, &err) != 0) {
        errmsg_prefix(&err, "entry %llu of the log cannot be applied",
                      raft_last_applied(&store->raft) + 1);
        store_fail_stop(store, STORE_EXIT_OPERATOR, err.text);
    }
    store->is_state_dirty = true;
    store->log_bytes += buf->len;
    store->n_log_entries++;
    /* Inside apply, last_applied is still one behind (raft-022.md rule 14). */
    store_note_answer(store, raft_last_applied(&store->raft) + 1, answer, n_bytes);
    return 0;
}

static int fsm_snapshot(struct raft_fsm *fsm, struct raft_buffer *bufs[], unsigned *n_bufs)
{
    struct store *store = fsm->data;
    struct raft_buffer *list = raft_malloc(sizeof *list);
    struct errmsg err = {{0}};

    if (list == NULL) {
        return RAFT_NOMEM;
    }
    int result = snapshot_image_make(store->options.fsm, list, &err);
    if (result != 0) {
        raft_free(list);
        log_event(LOG_LEVEL_ERROR, "snapshot_failed", "reason=\"%s\"", err.text);
        return result == ERR_LIMIT ? RAFT_TOOBIG : RAFT_NOMEM;
    }
    *bufs = list;
    *n_bufs = 1;
    return 0;
}

static int fsm_restore(struct raft_fsm *fsm, struct raft_buffer *buf)
{
    struct store *store = fsm->data;
    struct errmsg err = {{0}};
    int result = snapshot_image_restore(store->options.fsm, buf->base, buf->len, &err);

    if (result != 0 && store->is_raft_started) {
        /* Of a leader: raft's log is gone already, so there is nothing to go back to. */
        store_fail_stop(store, STORE_EXIT_OPERATOR, err.text);
    }
    if (result != 0) {
        snprintf(store->raft.errmsg, sizeof store->raft.errmsg, "%.200s", err.text);
        return RAFT_CORRUPT;
    }
    store->is_state_dirty = true;
    raft_free(buf->base);
    return 0;
}

/* --- hooks of the wrapper --- */

static void on_started(void *user)
{
    struct store *store = user;

    store->is_raft_started = true;
    zmq_hub_go_first(&store->hub); /* before raft_uv's own prepare handle */
}

static void on_ticked(void *user)
{
    store_deliver_held(user);
}

static void on_failed(void *user, const char *what, const char *why)
{
    char sentence[ERRMSG_BYTES];

    snprintf(sentence, sizeof sentence, "cannot %s: %s", what, why);
    store_fail_stop(user, STORE_EXIT_RESTART, sentence);
}

/* --- opening --- */

static uint32_t or_default(uint32_t value, uint32_t if_zero)
{
    return value != 0 ? value : if_zero;
}

static void set_snapshots(struct store *store)
{
    uint32_t threshold = or_default(store->options.snapshot_threshold, THRESHOLD_DEFAULT);
    uint32_t trailing = or_default(store->options.snapshot_trailing, TRAILING_DEFAULT);

    raft_set_snapshot_threshold(&store->raft, threshold);
    raft_set_snapshot_trailing(&store->raft, trailing > threshold ? trailing : threshold);
}

static void configure(struct store *store)
{
    struct raft *raft = &store->raft;

    if (!plant_is("rn4")) {
        raft_set_capacity_threshold(raft, 0); /* RN4: else a start on a full disk never heals */
    }
    raft_set_pre_vote(raft, true);
    raft_set_election_timeout(raft,
                              or_default(store->options.election_timeout_ms, ELECTION_MS_DEFAULT));
    raft_set_heartbeat_timeout(raft, or_default(store->options.heartbeat_ms, HEARTBEAT_MS_DEFAULT));
    raft_set_install_snapshot_timeout(raft, INSTALL_SNAPSHOT_MS);
    raft_set_max_inflight_entries(raft, INFLIGHT_ENTRIES);
    set_snapshots(store);
    raft->data = store;
    raft->tracer = NULL;
}

/* The directory's own incarnation must be the one that its log binds to its id. */
static int check_binding(struct store *store, struct errmsg *err)
{
    uint64_t bound = store_bound_incarnation(store, store->identity.node_id);

    if (bound == 0 || bound == store->identity.incarnation) {
        return 0;
    }
    return errmsg_set(err, ERR_CORRUPT,
                      "data directory %s: its log knows node %" PRIu64 " as incarnation %016" PRIx64
                      ", its identity file as %016" PRIx64
                      ": it was put together from two directories",
                      store->dir.path, store->identity.node_id, bound, store->identity.incarnation);
}

int store_raft_open(struct store *store, struct errmsg *err)
{
    const struct raft_wrap_hooks hooks = {.user = store,
                                          .send = store_send_raft,
                                          .started = on_started,
                                          .ticked = on_ticked,
                                          .failed = on_failed};
    char address[RAFT_ADDRESS_BYTES];

    store->raft_fsm = (struct raft_fsm){.version = 2,
                                        .data = store,
                                        .apply = fsm_apply,
                                        .snapshot = fsm_snapshot,
                                        .restore = fsm_restore};
    int result = raft_wrap_init(&store->wrap, &store->loop, store->dir.raft, &hooks, err);
    if (result != 0) {
        return result;
    }
    raft_uv_set_segment_size(&store->wrap.io,
                             or_default(store->options.segment_bytes, SEGMENT_BYTES_DEFAULT));
    raft_address_format(store->identity.node_id, store->identity.incarnation, address);
    store->options.fsm->reset(store->options.fsm->user);
    memset(&store->raft, 0, sizeof store->raft);
    int code = raft_init(&store->raft, &store->wrap.io, &store->raft_fsm, store->identity.node_id,
                         address);
    if (code != 0) {
        result = errmsg_set(err, raft_wrap_error(code), "the log in %s cannot be opened: %s",
                            store->dir.raft, raft_errmsg(&store->raft));
        raft_wrap_close(&store->wrap);
        return result;
    }
    store->is_raft_open = true;
    configure(store);
    store_look_at_space(store); /* before the first segment is made */
    code = raft_start(&store->raft);
    if (code != 0) {
        return errmsg_set(err, raft_wrap_error(code), "the log in %s cannot be read: %s",
                          store->dir.raft, raft_errmsg(&store->raft));
    }
    store->watch = (struct disk_watch){0};
    store->last_raft_state = 0;
    store->snapshot_index = store->raft.trail.snapshot.index;
    store->is_state_dirty = true;
    return check_binding(store, err);
}

/* --- looking --- */

bool store_is_leader(struct store *store)
{
    return store->is_raft_started && raft_state(&store->raft) == RAFT_LEADER;
}

uint64_t store_leader_id(struct store *store)
{
    raft_id id = 0;
    const char *address = NULL;

    if (store->is_raft_started) {
        raft_leader(&store->raft, &id, &address);
    }
    return id;
}

const struct raft_server *store_server(struct store *store, uint64_t node_id)
{
    const struct raft_configuration *conf = &store->raft.configuration;

    for (unsigned i = 0; store->is_raft_open && i < conf->n; i++) {
        if (conf->servers[i].id == node_id) {
            return &conf->servers[i];
        }
    }
    return NULL;
}

uint64_t store_bound_incarnation(struct store *store, uint64_t node_id)
{
    const struct raft_server *server = store_server(store, node_id);
    uint64_t id = 0, incarnation = 0;

    if (server == NULL || !raft_address_parse(server->address, &id, &incarnation) ||
        id != node_id) {
        return 0;
    }
    return incarnation;
}

static void on_ready(struct raft_barrier *request, int status)
{
    struct own_request *own = request->data;
    struct store *store = own->store;

    store->is_ready_asked = false;
    if (status == 0 && store_is_leader(store) && raft_current_term(&store->raft) == own->term) {
        store->is_ready = true;
        log_event(LOG_LEVEL_INFO, "store_leader_ready", "term=%" PRIu64 " revision=%" PRIu64,
                  own->term, store->options.fsm->revision(store->options.fsm->user));
        store_pump(store);
    }
}

/* A barrier of the own term: when it has passed, everything that was acknowledged before is applied
 * here, so checks and reads may begin (raft-022.md rule 12). */
static void ask_ready(struct store *store)
{
    if (store->is_ready || store->is_ready_asked || store->now_ns < store->ready_retry_ns) {
        return;
    }
    store->ready = (struct own_request){.store = store, .term = raft_current_term(&store->raft)};
    store->ready_barrier.data = &store->ready;
    int code = raft_barrier(&store->raft, &store->ready_barrier, on_ready);
    if (code == 0) {
        store->is_ready_asked = true;
    } else if (code == RAFT_NOTLEADER || code == RAFT_NOSPACE) {
        store->ready_retry_ns = store->now_ns + STORE_MEMBERS_NS;
    } else {
        store_fail_stop(store, STORE_EXIT_RESTART, raft_strerror(code));
    }
}

static void leadership_turn(struct store *store)
{
    uint16_t state = (uint16_t)raft_state(&store->raft);
    uint64_t term = raft_current_term(&store->raft);
    uint64_t leader_id = store_leader_id(store);
    bool is_new = state != store->last_raft_state || term != store->last_term;

    if (leader_id != 0) {
        store->last_leader_ns = store->now_ns;
    }
    if (leader_id != store->last_leader_id) {
        log_event(LOG_LEVEL_INFO, "store_leader", "leader=%" PRIu64 " term=%" PRIu64, leader_id,
                  term);
    }
    if (leader_id != 0 && store->state == STORE_RUNNING && store->init_command == NULL) {
        store_set_state(store, STORE_RUNNING, 0, "%s", ""); /* what it waited for has come */
    }
    if (is_new || leader_id != store->last_leader_id) {
        store->status_ns = 0; /* publish at the end of the turn */
    }
    store->last_raft_state = state;
    store->last_term = term;
    store->last_leader_id = leader_id;
    if (is_new) {
        store->is_ready = false;
        store->counters.elections_won += state == RAFT_LEADER ? 1 : 0;
    }
    if (state == RAFT_LEADER) {
        ask_ready(store);
    } else {
        store_drop_queue(store);
    }
}

/* raft counts entries, a disk bytes: with large commands a snapshot comes earlier and keeps less
 * behind it (A41). */
static void snapshot_turn(struct store *store)
{
    uint64_t index = store->raft.trail.snapshot.index;

    if (index != store->snapshot_index) {
        store->snapshot_index = index;
        store->counters.snapshots++;
        store->log_bytes = 0;
        store->n_log_entries = 0;
        set_snapshots(store);
        log_event(LOG_LEVEL_INFO, "store_snapshot", "index=%" PRIu64, index);
    } else if (store->log_bytes > STORE_SNAPSHOT_BYTES && store->n_log_entries > 0) {
        uint64_t entry_bytes = store->log_bytes / store->n_log_entries + 1;
        uint64_t trailing = STORE_TRAILING_BYTES / entry_bytes;
        uint32_t usual = or_default(store->options.snapshot_trailing, TRAILING_DEFAULT);

        raft_set_snapshot_threshold(&store->raft, 1);
        raft_set_snapshot_trailing(&store->raft, trailing < usual ? (unsigned)trailing : usual);
    }
}

void store_raft_turn(struct store *store)
{
    if (!store->is_raft_started || store->is_stopping) {
        return;
    }
    /* raft may have no more applied than committed, nor more committed than it holds. */
    assert(raft_last_applied(&store->raft) <= raft_commit_index(&store->raft));
    leadership_turn(store);
    snapshot_turn(store);
}
