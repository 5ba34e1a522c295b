/* What the workers work from: one snapshot of the forwarding table and the open listeners that
 * belong to it. Immutable and counted; the main thread publishes the newest, each worker adopts it
 * at the top of its loop. */
#ifndef JURY_SHIM_VIEW_H
#define JURY_SHIM_VIEW_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include "agent/table/table_reader.h"
#include "common/base/addr.h"
#include "common/base/limits.h"

/* Listening sockets of one address, one for each worker (SO_REUSEPORT), closed with the last
 * reference. */
struct shim_listener {
    atomic_uint n_refs;
    struct endpoint at;
    uint32_t n_fds;
    int fds[LIMIT_SHIM_WORKERS];
};
struct shim_listener *shim_listener_ref(struct shim_listener *listener);
void shim_listener_unref(struct shim_listener *listener);

struct shim_entry {
    struct shim_listener *listener;
    uint32_t index; /* of the listener in the snapshot's layout */
};

struct shim_view {
    atomic_uint n_refs;
    struct table_snapshot *snapshot;
    uint32_t n_entries;
    struct shim_entry entries[];
};

/* Room for n_entries; the caller fills in entries (whose references the view takes). snapshot: a
 * reference is taken. NULL: no memory. */
struct shim_view *shim_view_new(struct table_snapshot *snapshot, uint32_t n_entries);
struct shim_view *shim_view_ref(struct shim_view *view);
/* NULL is allowed. */
void shim_view_unref(struct shim_view *view);

/* One slot: the newest view. */
struct view_box {
    pthread_mutex_t mutex;
    struct shim_view *view;
    atomic_ulong version; /* rises with each put */
};
void view_box_init(struct view_box *box);
void view_box_close(struct view_box *box);
/* Takes the reference. */
void view_box_put(struct view_box *box, struct shim_view *view);
/* The newest view (a reference is given) if it is newer than *version, which is then moved on; else
 * NULL. Costs one load when there is none. */
struct shim_view *view_box_take(struct view_box *box, unsigned long *version);

#endif
