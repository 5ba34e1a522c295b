#include "agent/shim/view.h"

#include <stdlib.h>
#include <unistd.h>

struct shim_listener *shim_listener_ref(struct shim_listener *listener)
{
    atomic_fetch_add_explicit(&listener->n_refs, 1, memory_order_relaxed);
    return listener;
}

void shim_listener_unref(struct shim_listener *listener)
{
    if (atomic_fetch_sub_explicit(&listener->n_refs, 1, memory_order_acq_rel) != 1) {
        return;
    }
    for (uint32_t i = 0; i < listener->n_fds; i++) {
        close(listener->fds[i]);
    }
    free(listener);
}

struct shim_view *shim_view_new(struct table_snapshot *snapshot, uint32_t n_entries)
{
    struct shim_view *view = calloc(1, sizeof *view + n_entries * sizeof view->entries[0]);

    if (view == NULL) {
        return NULL;
    }
    atomic_init(&view->n_refs, 1);
    view->snapshot = table_snapshot_ref(snapshot);
    return view;
}

struct shim_view *shim_view_ref(struct shim_view *view)
{
    atomic_fetch_add_explicit(&view->n_refs, 1, memory_order_relaxed);
    return view;
}

void shim_view_unref(struct shim_view *view)
{
    if (view == NULL || atomic_fetch_sub_explicit(&view->n_refs, 1, memory_order_acq_rel) != 1) {
        return;
    }
    for (uint32_t i = 0; i < view->n_entries; i++) {
        shim_listener_unref(view->entries[i].listener);
    }
    table_snapshot_unref(view->snapshot);
    free(view);
}

void view_box_init(struct view_box *box)
{
    pthread_mutex_init(&box->mutex, NULL);
    box->view = NULL;
    atomic_init(&box->version, 0);
}

void view_box_close(struct view_box *box)
{
    shim_view_unref(box->view);
    pthread_mutex_destroy(&box->mutex);
}

void view_box_put(struct view_box *box, struct shim_view *view)
{
    pthread_mutex_lock(&box->mutex);
    struct shim_view *last = box->view;
    box->view = view;
    atomic_fetch_add(&box->version, 1);
    pthread_mutex_unlock(&box->mutex);
    shim_view_unref(last);
}

struct shim_view *view_box_take(struct view_box *box, unsigned long *version)
{
    struct shim_view *view = NULL;

    if (atomic_load_explicit(&box->version, memory_order_acquire) == *version) {
        return NULL;
    }
    pthread_mutex_lock(&box->mutex);
    *version = atomic_load(&box->version);
    if (box->view != NULL) {
        view = shim_view_ref(box->view);
    }
    pthread_mutex_unlock(&box->mutex);
    return view;
}
