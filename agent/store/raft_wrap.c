#include "agent/store/raft_wrap.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "agent/store/raft_guard.h"
#include "common/base/clock.h"
#include "common/base/plant.h"
#include "common/base/units.h"

/* After a failed write raft_uv's retry timer holds the wrong pointer and kills the process (RN5);
 * the disk watch is through with it long before this (design.md 5, "a slow disk"). */
#define DISK_RETRY_MS 60000

int raft_wrap_error(int raft_code)
{
    switch (raft_code) {
    case 0:
        return 0;
    case RAFT_NOMEM:
        return ERR_NOMEM;
    case RAFT_CORRUPT:
    case RAFT_MALFORMED:
        return ERR_CORRUPT;
    case RAFT_NOSPACE:
        return ERR_FULL;
    case RAFT_NAMETOOLONG:
        return ERR_CONFIG;
    default:
        return ERR_IO;
    }
}

/* --- the transport that raft_uv believes to have --- */

static int null_init(struct raft_uv_transport *transport, raft_id id, const char *address)
{
    (void)transport;
    (void)id;
    (void)address;
    return 0;
}

static int null_listen(struct raft_uv_transport *transport, raft_uv_accept_cb cb)
{
    (void)transport;
    (void)cb;
    return 0;
}

static int null_connect(struct raft_uv_transport *transport, struct raft_uv_connect *req,
                        raft_id id, const char *address, raft_uv_connect_cb cb)
{
    (void)transport;
    (void)req;
    (void)id;
    (void)address;
    (void)cb;
    return RAFT_NOCONNECTION;
}

static void null_close(struct raft_uv_transport *transport, raft_uv_transport_close_cb cb)
{
    cb(transport);
}

static void set_null_transport(struct raft_uv_transport *transport)
{
    *transport = (struct raft_uv_transport){.version = 1,
                                            .init = null_init,
                                            .listen = null_listen,
                                            .connect = null_connect,
                                            .close = null_close};
}

/* --- writes --- */

static struct raft_wrap *wrap_of(struct raft_io *io)
{
    return (struct raft_wrap *)(void *)io; /* it is the first member */
}

static void note_time(struct raft_wrap *wrap, uint64_t begin_ns)
{
    wrap->times.last_us = (clock_monotonic_ns() - begin_ns) / NS_PER_US;
    if (wrap->times.last_us > wrap->times.max_us) {
        wrap->times.max_us = wrap->times.last_us;
    }
}

static void fail(struct raft_wrap *wrap, const char *what, int code)
{
    const char *why = wrap->io.errmsg[0] != '\0' ? wrap->io.errmsg : raft_strerror(code);

    wrap->hooks.failed(wrap->hooks.user, what, why);
    abort(); /* the hook had to end the process: raft must not go on */
}

static int wrap_set_term(struct raft_io *io, raft_term term)
{
    struct raft_wrap *wrap = wrap_of(io);
    uint64_t begin_ns = clock_monotonic_ns();
    int code = wrap->disk.set_term(io, term);

    note_time(wrap, begin_ns);
    if (code != 0) {
        fail(wrap, "write the term", code);
    }
    return 0;
}

static int wrap_set_vote(struct raft_io *io, raft_id voted_for)
{
    struct raft_wrap *wrap = wrap_of(io);
    uint64_t begin_ns = clock_monotonic_ns();
    int code = wrap->disk.set_vote(io, voted_for);

    note_time(wrap, begin_ns);
    if (code != 0) {
        fail(wrap, "write the vote", code);
    }
    return 0;
}

static int wrap_truncate(struct raft_io *io, raft_index index)
{
    struct raft_wrap *wrap = wrap_of(io);
    int code = wrap->disk.truncate(io, index);

    if (code != 0) {
        fail(wrap, "cut the log", code);
    }
    return 0;
}

/* Ours around raft's, to see the status before raft does. */
struct append_request {
    struct raft_io_append own;
    struct raft_io_append *theirs;
    raft_io_append_cb cb;
    struct raft_wrap *wrap;
    uint64_t begin_ns;
};

static void on_appended(struct raft_io_append *own, int status)
{
    struct append_request *request = own->data;
    struct raft_wrap *wrap = request->wrap;

    note_time(wrap, request->begin_ns);
    if (status != 0 && !wrap->is_closing) {
        fail(wrap, "write log entries", status);
    }
    request->cb(request->theirs, status);
    free(request);
}

static int wrap_append(struct raft_io *io, struct raft_io_append *theirs,
                       const struct raft_entry entries[], unsigned n, raft_io_append_cb cb)
{
    struct raft_wrap *wrap = wrap_of(io);
    struct append_request *request = malloc(sizeof *request);

    assert(n > 0 && entries != NULL && cb != NULL);
    for (unsigned i = 0; i < n; i++) {
        assert(entries[i].buf.len > 0 && entries[i].buf.len % 8 == 0);
        assert(entries[i].term > 0);
    }
    if (request == NULL) {
        fail(wrap, "write log entries", RAFT_NOMEM);
    }
    *request = (struct append_request){
        .theirs = theirs, .cb = cb, .wrap = wrap, .begin_ns = clock_monotonic_ns()};
    request->own.data = request;
    theirs->cb = cb;
    int code = wrap->disk.append(io, &request->own, entries, n, on_appended);
    if (code != 0) {
        fail(wrap, "write log entries", code);
    }
    return 0;
}

struct put_request {
    struct raft_io_snapshot_put own;
    struct raft_io_snapshot_put *theirs;
    raft_io_snapshot_put_cb cb;
    struct raft_wrap *wrap;
};

static void on_snapshot_put(struct raft_io_snapshot_put *own, int status)
{
    struct put_request *request = own->data;

    if (status != 0 && !request->wrap->is_closing) {
        fail(request->wrap, "write a snapshot", status);
    }
    request->cb(request->theirs, status);
    free(request);
}

static int wrap_snapshot_put(struct raft_io *io, unsigned trailing,
                             struct raft_io_snapshot_put *theirs,
                             const struct raft_snapshot *snapshot, raft_io_snapshot_put_cb cb)
{
    struct raft_wrap *wrap = wrap_of(io);
    struct put_request *request = malloc(sizeof *request);

    assert(snapshot->index > 0 && snapshot->term > 0 && snapshot->n_bufs > 0);
    if (request == NULL) {
        fail(wrap, "write a snapshot", RAFT_NOMEM);
    }
    *request = (struct put_request){.theirs = theirs, .cb = cb, .wrap = wrap};
    request->own.data = request;
    theirs->cb = cb;
    int code = wrap->disk.snapshot_put(io, trailing, &request->own, snapshot, on_snapshot_put);
    if (code == RAFT_CANCELED && wrap->is_closing) {
        free(request);
        return code;
    }
    if (code != 0) {
        fail(wrap, "write a snapshot", code);
    }
    return 0;
}

/* --- snapshots to send --- */

struct get_request {
    struct raft_io_snapshot_get own;
    struct raft_io_snapshot_get *theirs;
    raft_io_snapshot_get_cb cb;
    struct raft_wrap *wrap;
};

/* raft names the snapshot by what it knew when it asked, then corrects the index by what was
 * loaded, but not the term; so the term is remembered here for `send`. And after a failed load it
 * frees memory it never set: then it is not told, and asks again after its timeout. */
static void on_snapshot_got(struct raft_io_snapshot_get *own, struct raft_snapshot *snapshot,
                            int status)
{
    struct get_request *request = own->data;

    if (status == 0) {
        assert(snapshot->n_bufs == 1 && snapshot->index > 0 && snapshot->term > 0);
        request->wrap->sent_snapshot_index = snapshot->index;
        request->wrap->sent_snapshot_term = snapshot->term;
        request->cb(request->theirs, snapshot, 0);
    } else if (plant_is("snapshot-load")) {
        request->cb(request->theirs, snapshot, status);
    } else {
        raft_free(snapshot);
    }
    free(request);
}

static int wrap_snapshot_get(struct raft_io *io, struct raft_io_snapshot_get *theirs,
                             raft_io_snapshot_get_cb cb)
{
    struct raft_wrap *wrap = wrap_of(io);
    struct get_request *request = malloc(sizeof *request);

    if (request == NULL) {
        return RAFT_NOMEM;
    }
    *request = (struct get_request){.theirs = theirs, .cb = cb, .wrap = wrap};
    request->own.data = request;
    theirs->cb = cb;
    int code = wrap->disk.snapshot_get(io, &request->own, on_snapshot_got);
    if (code != 0) {
        free(request);
    }
    return code;
}

/* --- messages --- */

static void correct(const struct raft_wrap *wrap, struct raft_message *message)
{
    if (message->type == RAFT_APPEND_ENTRIES_RESULT) {
        struct raft_append_entries_result *result = &message->append_entries_result;

        if (wrap->answer_is_blank && !plant_is("stale-answer")) {
            result->last_log_index = 0;
        }
        if (result->rejected > 0 && result->last_log_index >= result->rejected) {
            result->last_log_index = result->rejected - 1;
        }
    } else if (message->type == RAFT_INSTALL_SNAPSHOT &&
               message->install_snapshot.last_index == wrap->sent_snapshot_index &&
               !plant_is("snapshot-term")) {
        message->install_snapshot.last_term = wrap->sent_snapshot_term;
    }
}

static int wrap_send(struct raft_io *io, struct raft_io_send *req,
                     const struct raft_message *message, raft_io_send_cb cb)
{
    struct raft_wrap *wrap = wrap_of(io);

    assert(cb != NULL);
    if (wrap->is_open && message->server_id != 0) {
        struct raft_message copy = *message;

        correct(wrap, &copy);
        wrap->hooks.send(wrap->hooks.user, &copy);
    }
    req->cb = cb;
    cb(req, 0);
    return 0; /* anything else makes raft drop the rest of its step */
}

static void on_tick(struct raft_io *io)
{
    struct raft_wrap *wrap = wrap_of(io);

    wrap->tick(io);
    wrap->hooks.ticked(wrap->hooks.user);
}

static int wrap_start(struct raft_io *io, unsigned msecs, raft_io_tick_cb tick,
                      raft_io_recv_cb recv)
{
    struct raft_wrap *wrap = wrap_of(io);

    wrap->tick = tick;
    wrap->recv = recv;
    int code = wrap->disk.start(io, msecs, on_tick, recv);
    if (code == 0) {
        wrap->is_open = true;
        wrap->hooks.started(wrap->hooks.user);
    }
    return code;
}

static void wrap_close_io(struct raft_io *io, raft_io_close_cb cb)
{
    struct raft_wrap *wrap = wrap_of(io);

    wrap->is_open = false;
    wrap->is_closing = true;
    wrap->disk.close(io, cb);
}

void raft_wrap_drop(struct raft_message *message)
{
    if (message->type == RAFT_APPEND_ENTRIES && message->append_entries.n_entries > 0) {
        raft_free(message->append_entries.entries[0].batch);
        raft_free(message->append_entries.entries);
        message->append_entries.n_entries = 0;
        message->append_entries.entries = NULL;
    } else if (message->type == RAFT_INSTALL_SNAPSHOT) {
        raft_configuration_close(&message->install_snapshot.conf);
        raft_free(message->install_snapshot.data.base);
        message->install_snapshot.data.base = NULL;
    }
}

void raft_wrap_deliver(struct raft_wrap *wrap, struct raft_message *message)
{
    const struct raft *raft = wrap->io.data;

    if (!wrap->is_open) {
        raft_wrap_drop(message);
        return;
    }
    assert(message->server_id != 0 && message->server_address != NULL);
    if (message->type == RAFT_APPEND_ENTRIES && message->append_entries.n_entries > 0) {
        assert(message->append_entries.entries[0].batch != NULL);
    }
    wrap->answer_is_blank = guard_answer_is_blank(raft, message);
    wrap->recv(&wrap->io, message);
    wrap->answer_is_blank = false;
}

uint64_t raft_wrap_take_max_us(struct raft_wrap *wrap)
{
    uint64_t max_us = wrap->times.max_us;

    wrap->times.max_us = 0;
    return max_us;
}

/* The only way to hear at once of a write that came back with an error: raft_uv tells nobody but
 * its tracer before it waits for its retry. The disk watch would find it too, later. */
static void on_trace(struct raft_tracer *tracer, int type, const void *info)
{
    const struct raft_tracer_info *trace = info;
    struct raft_wrap *wrap = tracer->impl;

    if (type == RAFT_TRACER_DIAGNOSTIC && trace->version >= 1 &&
        strncmp(trace->diagnostic.message, "retry failed write", 18) == 0) {
        wrap->has_failed_write = true;
    }
}

int raft_wrap_init(struct raft_wrap *wrap, uv_loop_t *loop, const char *dir,
                   const struct raft_wrap_hooks *hooks, struct errmsg *err)
{
    *wrap = (struct raft_wrap){.hooks = *hooks};
    set_null_transport(&wrap->transport);
    int code = raft_uv_init(&wrap->io, loop, dir, &wrap->transport);
    if (code != 0) {
        return errmsg_set(err, raft_wrap_error(code), "raft directory %s: %s", dir,
                          wrap->io.errmsg[0] != '\0' ? wrap->io.errmsg : raft_strerror(code));
    }
    wrap->disk = wrap->io;
    wrap->io.send = wrap_send;
    wrap->io.start = wrap_start;
    wrap->io.close = wrap_close_io;
    wrap->io.set_term = wrap_set_term;
    wrap->io.set_vote = wrap_set_vote;
    wrap->io.append = wrap_append;
    wrap->io.truncate = wrap_truncate;
    wrap->io.snapshot_put = wrap_snapshot_put;
    wrap->io.snapshot_get = wrap_snapshot_get;
    wrap->tracer = (struct raft_tracer){.impl = wrap, .version = 2, .emit = on_trace};
    raft_uv_set_tracer(&wrap->io, &wrap->tracer);
    raft_uv_set_disk_retry(&wrap->io, DISK_RETRY_MS);
    raft_uv_set_auto_recovery(&wrap->io, false); /* on, it drops committed entries in silence */
    return 0;
}

void raft_wrap_close(struct raft_wrap *wrap)
{
    raft_uv_close(&wrap->io);
}

/* --- bootstrap --- */

static int no_apply(struct raft_fsm *fsm, const struct raft_buffer *buf, void **result)
{
    (void)fsm;
    (void)buf;
    *result = NULL;
    return 0;
}

static void on_bootstrap_closed(struct raft *raft)
{
    raft->data = NULL;
}

static int bootstrap_with(struct raft *raft, uint64_t node_id, const char *address)
{
    struct raft_configuration conf;

    raft_configuration_init(&conf);
    int code = raft_configuration_add(&conf, node_id, address, RAFT_VOTER);
    if (code == 0) {
        code = raft_bootstrap(raft, &conf);
    }
    raft_configuration_close(&conf);
    return code;
}

int raft_wrap_bootstrap(const char *dir, uint64_t node_id, const char *address, struct errmsg *err)
{
    struct raft_uv_transport transport;
    struct raft_fsm fsm = {.version = 1, .apply = no_apply};
    struct raft_io io = {0};
    struct raft raft;
    uv_loop_t loop;

    set_null_transport(&transport);
    if (uv_loop_init(&loop) != 0) {
        return errmsg_set(err, ERR_NOMEM, "no memory for a loop");
    }
    int code = raft_uv_init(&io, &loop, dir, &transport);
    if (code == 0) {
        raft_uv_set_auto_recovery(&io, false);
        code = raft_init(&raft, &io, &fsm, node_id, address);
        if (code == 0) {
            code = bootstrap_with(&raft, node_id, address);
            raft_close(&raft, on_bootstrap_closed);
            uv_run(&loop, UV_RUN_DEFAULT);
        }
    }
    int result = raft_wrap_error(code);
    if (code != 0) {
        errmsg_set(err, result, "raft directory %s: %s", dir,
                   io.errmsg[0] != '\0' ? io.errmsg : raft_strerror(code));
    }
    if (io.impl != NULL) {
        raft_uv_close(&io);
    }
    int loop_code = uv_loop_close(&loop);
    assert(loop_code == 0);
    return result;
}
