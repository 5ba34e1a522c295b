#include "agent/loop/unsent.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/limits.h"
#include "common/base/plant.h"

#define ROUTE_BYTES 255 /* longest routing id of ZeroMQ */

/* One connection, as long as something of it is unsent. */
struct connection {
    atomic_size_t n_bytes; /* 0: the place is free */
    const struct zmq_watch *watch;
    size_t n_route;
    uint8_t route[ROUTE_BYTES];
};

struct unsent {
    struct unsent_limits limits;
    atomic_size_t n_users; /* the owner, and each block */
    atomic_size_t n_bytes;
    size_t n_connections; /* places ever used; sender only */
    struct connection connections[LIMIT_RPC_UNSENT_CONNECTIONS];
};

/* One frame on its way. */
struct block {
    struct unsent *unsent;
    struct connection *connection;
    size_t n_bytes;
    uint8_t data[];
};

struct unsent *unsent_new(const struct unsent_limits *limits)
{
    struct unsent *unsent = calloc(1, sizeof *unsent);

    if (unsent != NULL) {
        unsent->limits = *limits;
        atomic_init(&unsent->n_users, 1);
    }
    return unsent;
}

void unsent_close(struct unsent *unsent)
{
    if (unsent != NULL && atomic_fetch_sub(&unsent->n_users, 1) == 1) {
        free(unsent);
    }
}

size_t unsent_bytes(const struct unsent *unsent)
{
    return atomic_load(&unsent->n_bytes);
}

/* libzmq's thread, or the sender's for a frame that was not taken. */
static void give_back(void *data, void *hint)
{
    struct block *block = hint;
    struct unsent *unsent = block->unsent;

    (void)data;
    atomic_fetch_sub(&unsent->n_bytes, block->n_bytes);
    atomic_fetch_sub(&block->connection->n_bytes, block->n_bytes);
    free(block);
    unsent_close(unsent);
}

static bool is_of(const struct connection *connection, const struct zmq_watch *watch,
                  const struct zmq_part *route)
{
    return connection->watch == watch && connection->n_route == route->n_bytes &&
           memcmp(connection->route, route->data, route->n_bytes) == 0;
}

/* Its place, or a free one made its own. NULL: all are taken. */
static struct connection *find(struct unsent *unsent, const struct zmq_watch *watch,
                               const struct zmq_part *route)
{
    struct connection *empty = NULL;

    for (size_t i = 0; i < unsent->n_connections; i++) {
        struct connection *connection = &unsent->connections[i];

        if (atomic_load(&connection->n_bytes) == 0) {
            empty = empty == NULL ? connection : empty;
        } else if (is_of(connection, watch, route)) {
            return connection;
        }
    }
    if (empty == NULL && unsent->n_connections < LIMIT_RPC_UNSENT_CONNECTIONS) {
        empty = &unsent->connections[unsent->n_connections++];
    }
    if (empty != NULL) {
        assert(route->n_bytes <= ROUTE_BYTES);
        empty->watch = watch;
        empty->n_route = route->n_bytes;
        memcpy(empty->route, route->data, route->n_bytes);
    }
    return empty;
}

static bool has_room(const struct unsent *unsent, const struct connection *connection,
                     size_t n_bytes)
{
    size_t held = atomic_load(&connection->n_bytes);

    return held == 0 || plant_is("unread-unbounded") ||
           (held + n_bytes <= unsent->limits.connection_bytes &&
            unsent_bytes(unsent) + n_bytes <= unsent->limits.bytes);
}

static int make_frame(struct unsent *unsent, struct connection *connection,
                      const struct zmq_part *part, zmq_msg_t *ret_frame)
{
    struct block *block = malloc(sizeof *block + part->n_bytes);

    if (block == NULL) {
        return ERR_NOMEM;
    }
    *block = (struct block){unsent, connection, sizeof *block + part->n_bytes};
    if (part->n_bytes > 0) {
        memcpy(block->data, part->data, part->n_bytes);
    }
    if (zmq_msg_init_data(ret_frame, block->data, part->n_bytes, give_back, block) != 0) {
        free(block);
        return ERR_NOMEM;
    }
    atomic_fetch_add(&unsent->n_users, 1);
    atomic_fetch_add(&unsent->n_bytes, block->n_bytes);
    atomic_fetch_add(&connection->n_bytes, block->n_bytes);
    return 0;
}

int unsent_send(struct unsent *unsent, struct zmq_watch *watch, const struct zmq_part parts[],
                size_t n_parts)
{
    zmq_msg_t frames[ZMQ_HUB_FRAMES];
    size_t n_bytes = 0;
    size_t n = 0;
    int rc = 0;

    assert(n_parts > 0 && n_parts <= ZMQ_HUB_FRAMES);
    for (size_t i = 1; i < n_parts; i++) {
        n_bytes += sizeof(struct block) + parts[i].n_bytes;
    }
    struct connection *connection = find(unsent, watch, &parts[0]);
    if (connection == NULL || !has_room(unsent, connection, n_bytes)) {
        return ERR_LIMIT;
    }
    if (zmq_msg_init_size(&frames[n], parts[0].n_bytes) != 0) {
        return ERR_NOMEM;
    }
    memcpy(zmq_msg_data(&frames[n++]), parts[0].data, parts[0].n_bytes);
    while (rc == 0 && n < n_parts) {
        rc = make_frame(unsent, connection, &parts[n], &frames[n]);
        n += rc == 0;
    }
    if (rc == 0) {
        rc = zmq_watch_send_frames(watch, frames, n);
    }
    for (size_t i = 0; i < n; i++) {
        zmq_msg_close(&frames[i]); /* empty when it was taken */
    }
    return rc;
}
