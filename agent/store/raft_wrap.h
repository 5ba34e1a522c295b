/* raft_uv's disk under our own transport and our own suspicion.
 *
 * The raft_io that raft_uv fills is used in place: send, start and close are ours, and every call
 * that writes is watched. A write that fails ends the process before the library goes on with a
 * state that is not on the disk (raft-022.md rules 1, 2, 9, 22). Loop thread. */
#ifndef JURY_STORE_RAFT_WRAP_H
#define JURY_STORE_RAFT_WRAP_H

#include <stdbool.h>
#include <stdint.h>

#include <raft.h>
#include <raft/uv.h>
#include <uv.h>

#include "common/base/err.h"

/* Durations of writes with sync: what fsync costs here. */
struct raft_wrap_times {
    uint64_t last_us;
    uint64_t max_us; /* since raft_wrap_take_max */
};

struct raft_wrap_hooks {
    void *user;
    /* A message that raft wants sent; borrowed. Copy it or lose it, raft does not care. */
    void (*send)(void *user, const struct raft_message *message);
    /* raft_start has got as far as the I/O: messages may be delivered from now on. */
    void (*started)(void *user);
    void (*ticked)(void *user);
    /* A write failed: must not return. */
    void (*failed)(void *user, const char *what, const char *why);
};

struct raft_wrap {
    struct raft_io io; /* must stay first: raft_uv and we find our state by it */
    struct raft_uv_transport transport;
    struct raft_io disk; /* raft_uv's own functions */
    struct raft_tracer tracer;
    struct raft_wrap_hooks hooks;
    raft_io_tick_cb tick;
    raft_io_recv_cb recv;
    raft_io_close_cb close_cb;
    struct raft_wrap_times times;
    raft_index sent_snapshot_index; /* of the snapshot that was loaded for sending */
    raft_term sent_snapshot_term;
    bool is_open; /* between start and close */
    bool is_closing;
    bool answer_is_blank;  /* guard_answer_is_blank of the message being delivered */
    bool has_failed_write; /* raft_uv will retry a failed write: it must not get there */
};

/* dir: exists. Errors: ERR_NOMEM, ERR_CONFIG (path too long), ERR_IO. */
int raft_wrap_init(struct raft_wrap *wrap, uv_loop_t *loop, const char *dir,
                   const struct raft_wrap_hooks *hooks, struct errmsg *err);
/* After raft's close callback, or when raft_init failed. */
void raft_wrap_close(struct raft_wrap *wrap);

/* Give a message to raft; dropped (and freed) unless open. What it owns is taken. */
void raft_wrap_deliver(struct raft_wrap *wrap, struct raft_message *message);
/* Frees what a received message owns. */
void raft_wrap_drop(struct raft_message *message);

/* The longest sync since the last call. */
uint64_t raft_wrap_take_max_us(struct raft_wrap *wrap);

/* Make `dir` the raft directory of a cluster with one voter, on a loop of its own. Errors: ERR_IO,
 * ERR_FULL, ERR_NOMEM with raft's sentence. */
int raft_wrap_bootstrap(const char *dir, uint64_t node_id, const char *address, struct errmsg *err);

/* raft's code as ours. */
int raft_wrap_error(int raft_code);

#endif
