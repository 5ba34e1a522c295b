/* What goes out (mesh.h): encoded once, shared by all peers, replaced by what is newer. */
#include "agent/mesh/mesh_internal.h"
#include "common/base/clock.h"
#include "common/base/units.h"

#define UNREAD_LOG_NS (60 * NS_PER_SECOND)

/* mesh->outgoing, whose `u` the caller has filled in. NULL: no memory. */
static struct frame *encode(struct mesh *mesh, enum peer_kind kind)
{
    uint8_t *data;
    size_t n_bytes;

    mesh->outgoing.kind = (uint8_t)kind;
    if (peer_encode(&mesh->outgoing, &data, &n_bytes) != 0) {
        return NULL;
    }
    return frame_new(data, n_bytes);
}

void mesh_flush(struct mesh *mesh, struct mesh_peer *peer)
{
    struct frame *frame;

    if (peer->dial == NULL || !dial_is_up(peer->dial)) {
        return; /* the outbox is restarted when the connection comes up */
    }
    while ((frame = outbox_next(&peer->outbox)) != NULL) {
        const struct zmq_part part = {frame->data, frame->n_bytes};
        int rc = dial_send(peer->dial, &part, 1);

        if (rc == ERR_BUSY) {
            dial_want_write(peer->dial);
            return;
        }
        outbox_sent(&peer->outbox); /* what libzmq would never take is not tried again */
        mesh->counters.sent += rc == 0;
    }
}

static void note_drops(struct mesh *mesh, struct mesh_peer *peer)
{
    mesh->counters.changes_dropped += peer->outbox.n_dropped;
    mesh->counters.vectors_replaced += peer->outbox.n_replaced_vectors;
    peer->outbox.n_dropped = 0;
    peer->outbox.n_replaced_vectors = 0;
}

void mesh_send_hello(struct mesh *mesh, const struct hello *hello)
{
    mesh->outgoing.u.hello = *hello;
    mesh->outgoing.u.hello.version_min = MESH_VERSION_MIN;
    mesh->outgoing.u.hello.version_max = MESH_VERSION_MAX;
    struct frame *frame = encode(mesh, PEER_HELLO);
    if (frame == NULL) {
        return;
    }
    frame_unref(mesh->hello);
    mesh->hello = frame;
    for (uint32_t i = 0; i < mesh->n_peers; i++) {
        outbox_put_hello(&mesh->peers[i].outbox, frame);
        mesh_flush(mesh, &mesh->peers[i]);
    }
}

void mesh_send_vector(struct mesh *mesh, const struct vote_chunk chunks[], uint16_t n_chunks)
{
    struct frame_set *set = frame_set_new();

    if (set == NULL) {
        return;
    }
    for (uint16_t i = 0; i < n_chunks; i++) {
        mesh->outgoing.u.chunk = chunks[i];
        struct frame *frame = encode(mesh, PEER_VOTE_CHUNK);
        if (frame == NULL) {
            continue; /* this chunk's votes age by one interval */
        }
        set->frames[set->n_frames++] = frame;
    }
    frame_set_unref(mesh->vector);
    mesh->vector = set;
    for (uint32_t i = 0; i < mesh->n_peers; i++) {
        outbox_put_vector(&mesh->peers[i].outbox, set);
        mesh_flush(mesh, &mesh->peers[i]);
        note_drops(mesh, &mesh->peers[i]);
    }
}

void mesh_send_report(struct mesh *mesh, const struct drain_report *report)
{
    mesh->outgoing.u.report = *report;
    struct frame *frame = encode(mesh, PEER_DRAIN_REPORT);
    if (frame == NULL) {
        return;
    }
    frame_unref(mesh->report);
    mesh->report = frame;
    for (uint32_t i = 0; i < mesh->n_peers; i++) {
        outbox_put_report(&mesh->peers[i].outbox, frame);
        mesh_flush(mesh, &mesh->peers[i]);
    }
}

static void send_to(struct mesh *mesh, struct mesh_peer *peer, struct frame *frame)
{
    if (peer->dial == NULL || !dial_is_up(peer->dial)) {
        return; /* the vector tells it all when the connection comes up */
    }
    outbox_put(&peer->outbox, frame);
    mesh_flush(mesh, peer);
    note_drops(mesh, peer);
}

static void send_to_all(struct mesh *mesh, enum peer_kind kind)
{
    struct frame *frame = encode(mesh, kind);

    if (frame == NULL) {
        return;
    }
    for (uint32_t i = 0; i < mesh->n_peers; i++) {
        send_to(mesh, &mesh->peers[i], frame);
    }
    frame_unref(frame);
}

void mesh_send_change(struct mesh *mesh, const struct vote_change *change)
{
    mesh->outgoing.u.change = *change;
    send_to_all(mesh, PEER_VOTE_CHANGE);
}

void mesh_send_question(struct mesh *mesh, const struct vote_question *question)
{
    mesh->outgoing.u.question = *question;
    send_to_all(mesh, PEER_VOTE_QUESTION);
}

void mesh_reply_change(struct mesh *mesh, uint64_t node_id, const struct vote_change *change)
{
    struct mesh_peer *peer = mesh_find_peer(mesh, node_id);

    mesh->outgoing.u.change = *change;
    struct frame *frame = peer != NULL ? encode(mesh, PEER_VOTE_CHANGE) : NULL;
    if (frame != NULL) {
        send_to(mesh, peer, frame);
        frame_unref(frame);
    }
}

int mesh_forward(struct mesh *mesh, uint64_t node_id, const struct peer_forward_request *request,
                 const struct mesh_frames *frames)
{
    struct mesh_peer *peer = mesh_find_peer(mesh, node_id);

    if (peer == NULL || peer->dial == NULL || !dial_is_up(peer->dial)) {
        return ERR_UNREACHABLE;
    }
    mesh->outgoing.u.forward_request = *request;
    struct frame *frame = encode(mesh, PEER_FORWARD_REQUEST);
    if (frame == NULL) {
        return ERR_NOMEM;
    }
    const struct zmq_part parts[] = {{frame->data, frame->n_bytes},
                                     {frames->envelope, frames->n_envelope_bytes},
                                     {frames->payload, frames->n_payload_bytes}};
    int rc = dial_send(peer->dial, parts, 3);
    frame_unref(frame);
    mesh->counters.sent += rc == 0;
    return rc;
}

static void log_unread(struct mesh *mesh, const struct mesh_route *route)
{
    uint64_t n_dropped;

    if (log_allowed(&mesh->unread_log, clock_monotonic_ns(), UNREAD_LOG_NS, &n_dropped)) {
        log_event(LOG_LEVEL_WARNING, "answers_unread",
                  "socket=%s unsent_bytes=%zu dropped=%llu text=\"a caller does not read its "
                  "answers: one was dropped\"",
                  route->is_local ? "local" : "mesh", unsent_bytes(mesh->unsent),
                  (unsigned long long)n_dropped);
    }
}

static void answer(struct mesh *mesh, const struct mesh_route *route, const struct zmq_part parts[],
                   size_t n_parts)
{
    if (route->is_local && !mesh->has_local) {
        return;
    }
    int rc =
        unsent_send(mesh->unsent, route->is_local ? &mesh->local : &mesh->router, parts, n_parts);

    mesh->counters.answers_dropped += rc != 0;
    if (rc == ERR_LIMIT) {
        mesh->counters.answers_unread++;
        log_unread(mesh, route);
    }
}

void mesh_answer(struct mesh *mesh, const struct mesh_route *route,
                 const struct mesh_frames *frames)
{
    const struct zmq_part parts[] = {{route->bytes, route->n_bytes},
                                     {"", 0},
                                     {frames->envelope, frames->n_envelope_bytes},
                                     {frames->payload, frames->n_payload_bytes}};

    answer(mesh, route, parts, 4);
}

void mesh_answer_forward(struct mesh *mesh, const struct mesh_route *route, uint64_t forward_id,
                         const struct mesh_frames *frames)
{
    mesh->outgoing.u.forward_response.forward_id = forward_id;
    struct frame *frame = encode(mesh, PEER_FORWARD_RESPONSE);

    if (frame == NULL) {
        mesh->counters.answers_dropped++;
        return;
    }
    const struct zmq_part parts[] = {{route->bytes, route->n_bytes},
                                     {frame->data, frame->n_bytes},
                                     {frames->envelope, frames->n_envelope_bytes},
                                     {frames->payload, frames->n_payload_bytes}};
    answer(mesh, route, parts, 4);
    frame_unref(frame);
}
