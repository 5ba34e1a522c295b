/* What comes in: who says it, whether it is taken, and to whom it goes (mesh.h). */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "agent/mesh/mesh_internal.h"
#include "common/base/clock.h"
#include "common/base/plant.h"
#include "common/base/str.h"

#define WHO_BYTES 96
#define LOCAL_NAME_BYTES 80

/* "node:3", quoted for the log. */
static const char *quoted(const char *user_id, char who[WHO_BYTES])
{
    return log_quote(who, WHO_BYTES, user_id);
}

static void refuse(struct mesh *mesh, enum refusal refusal, const char *user_id, const char *detail)
{
    char who[WHO_BYTES];

    refusals_note(mesh->options.refusals, refusal, "mesh", quoted(user_id, who), detail);
}

static struct mesh_frames frames_at(zmq_msg_t frames[], size_t n_frames, size_t first)
{
    struct mesh_frames out = {.envelope = zmq_msg_data(&frames[first]),
                              .n_envelope_bytes = zmq_msg_size(&frames[first])};

    if (first + 1 < n_frames) {
        out.payload = zmq_msg_data(&frames[first + 1]);
        out.n_payload_bytes = zmq_msg_size(&frames[first + 1]);
    }
    return out;
}

static bool route_from(zmq_msg_t *frame, bool is_local, struct mesh_route *ret_route)
{
    size_t n_bytes = zmq_msg_size(frame);

    if (n_bytes == 0 || n_bytes > MESH_ROUTE_BYTES) {
        return false;
    }
    ret_route->is_local = is_local;
    ret_route->n_bytes = (uint8_t)n_bytes;
    memcpy(ret_route->bytes, zmq_msg_data(frame), n_bytes);
    return true;
}

/* --- messages of nodes --- */

static bool is_own_cluster(const struct mesh *mesh, const struct hello *hello)
{
    static const struct cluster_id none;

    return memcmp(&mesh->cluster_id, &none, sizeof none) != 0 &&
           memcmp(&mesh->cluster_id, &hello->cluster_id, sizeof none) == 0;
}

/* Whether the hello fits; keeps what it says of the peer. */
static bool take_hello(struct mesh *mesh, struct mesh_peer *peer, const struct hello *hello,
                       const char *user_id)
{
    char detail[96];

    if (!is_own_cluster(mesh, hello)) {
        char hex[2 * CLUSTER_ID_BYTES + 1];

        str_hex(hello->cluster_id.bytes, CLUSTER_ID_BYTES, hex);
        snprintf(detail, sizeof detail, "cluster=%s", hex);
        peer->is_welcome = false;
        refuse(mesh, REFUSAL_other_cluster, user_id, detail);
        return false;
    }
    if (hello->version_min > MESH_VERSION_MAX || hello->version_max < MESH_VERSION_MIN) {
        snprintf(detail, sizeof detail, "versions=%u..%u own_versions=%d..%d", hello->version_min,
                 hello->version_max, MESH_VERSION_MIN, MESH_VERSION_MAX);
        peer->is_welcome = false;
        refuse(mesh, REFUSAL_version, user_id, detail);
        return false;
    }
    if (!peer->is_welcome) {
        log_event(LOG_LEVEL_INFO, "peer_welcome",
                  "node=%llu epoch=%llu revision=%llu feature_level=%u",
                  (unsigned long long)peer->node_id, (unsigned long long)hello->epoch,
                  (unsigned long long)hello->revision, hello->feature_level);
    }
    peer->is_welcome = true;
    peer->feature_level = hello->feature_level;
    peer->lacks_shared_space = hello->lacks_shared_space;
    peer->unbuilt = hello->unbuilt;
    peer->store_is_down = hello->store_is_down;
    return true;
}

/* The member id in the text must be that of the key. Returns the peer that the hello is taken for;
 * NULL = refused. */
static struct mesh_peer *speaker_of_hello(struct mesh *mesh, struct mesh_peer *peer,
                                          const struct hello *hello, const char *user_id)
{
    char detail[64];

    if (hello->node_id == peer->node_id) {
        return peer;
    }
    if (plant_is("mesh-trust-text")) {
        return mesh_find_peer(mesh, hello->node_id);
    }
    snprintf(detail, sizeof detail, "says_node=%llu", (unsigned long long)hello->node_id);
    refuse(mesh, REFUSAL_identity_differs, user_id, detail);
    return NULL;
}

static bool decode(struct mesh *mesh, zmq_msg_t *frame, const char *user_id)
{
    struct errmsg err = {""};
    char detail[ERRMSG_BYTES + 16], text[ERRMSG_BYTES];
    int rc = peer_decode(zmq_msg_data(frame), zmq_msg_size(frame), &mesh->incoming, &err);

    if (rc == 0) {
        return true;
    }
    snprintf(detail, sizeof detail, "error=%s", log_quote(text, sizeof text, err.text));
    refuse(mesh,
           rc == ERR_VERSION           ? REFUSAL_version
           : rc == ERR_UNAVAILABLE_YET ? REFUSAL_unknown_kind
                                       : REFUSAL_malformed,
           user_id, detail);
    return false;
}

/* Whether a decoded message is taken; *peer is the one it is taken for. */
static bool admit(struct mesh *mesh, struct mesh_peer **peer, const char *user_id, size_t n_frames)
{
    switch ((enum peer_kind)mesh->incoming.kind) {
    case PEER_HELLO: {
        struct mesh_peer *speaker = speaker_of_hello(mesh, *peer, &mesh->incoming.u.hello, user_id);

        if (speaker == NULL) {
            return false;
        }
        *peer = speaker;
        return take_hello(mesh, speaker, &mesh->incoming.u.hello, user_id);
    }
    case PEER_VOTE_CHUNK:
    case PEER_VOTE_CHANGE:
    case PEER_VOTE_QUESTION:
    case PEER_DRAIN_REPORT:
    case PEER_FORWARD_REQUEST:
        if (!(*peer)->is_welcome) {
            refuse(mesh, REFUSAL_before_hello, user_id, "");
            return false;
        }
        if (mesh->incoming.kind == PEER_FORWARD_REQUEST && n_frames != 4) {
            refuse(mesh, REFUSAL_malformed, user_id, "error=\"a forwarded call has two frames\"");
            return false;
        }
        return true;
    case PEER_FORWARD_RESPONSE: /* comes back on our own connection */
    case PEER_NONE:
        break;
    }
    refuse(mesh, REFUSAL_not_for_nodes, user_id, "");
    return false;
}

static void on_node_message(struct mesh *mesh, uint64_t node_id, const char *user_id,
                            zmq_msg_t frames[], size_t n_frames)
{
    struct mesh_peer *peer = mesh_find_peer(mesh, node_id);

    if (mesh->node_id == 0) {
        mesh->counters.before_cluster++; /* it is being admitted, and they speak already */
        return;
    }
    if (peer == NULL) {
        refuse(mesh, REFUSAL_not_member, user_id, "");
        return;
    }
    peer->n_received++;
    if (!decode(mesh, &frames[1], user_id) || !admit(mesh, &peer, user_id, n_frames)) {
        peer->n_dropped++;
        return;
    }
    peer->last_heard_ns = clock_monotonic_ns();
    mesh->counters.received++;
    if (mesh->incoming.kind == PEER_FORWARD_REQUEST) {
        struct mesh_route route;
        struct mesh_frames call = frames_at(frames, n_frames, 2);

        if (route_from(&frames[0], false, &route)) {
            mesh->counters.forwards++;
            mesh->options.hooks.forward_request(mesh->options.hooks.user,
                                                &mesh->incoming.u.forward_request, &route, &call);
        }
        return;
    }
    mesh->options.hooks.message(mesh->options.hooks.user, peer->node_id, &mesh->incoming);
}

/* --- calls --- */

/* Routing id, an empty frame (which a REQ socket puts there by itself), envelope, payload. */
static void on_call(struct mesh *mesh, const struct mesh_caller *caller, const char *user_id,
                    zmq_msg_t frames[], size_t n_frames)
{
    struct mesh_route route;

    if (n_frames < 3 || n_frames > 4 || zmq_msg_size(&frames[1]) != 0 ||
        !route_from(&frames[0], caller->is_local, &route)) {
        refuse(mesh, REFUSAL_malformed, user_id,
               "error=\"a call is an empty frame, the envelope and the payload\"");
        return;
    }
    struct mesh_frames call = frames_at(frames, n_frames, 2);
    mesh->counters.calls++;
    mesh->options.hooks.call(mesh->options.hooks.user, caller, &route, &call);
}

void mesh_on_router_message(void *user, zmq_msg_t frames[], size_t n_frames)
{
    struct mesh *mesh = user;
    struct zap_identity identity;
    zmq_msg_t *frame = &frames[n_frames > 1 ? 1 : 0];
    const char *user_id = zmq_frame_user_id(frame);
    uint8_t key[CURVE_KEY_BYTES];

    if (n_frames < 2 || !zap_identity_parse(user_id, &identity)) {
        refuse(mesh, REFUSAL_malformed, user_id, "error=\"a message needs a frame\"");
        return;
    }
    /* ZAP was asked at the handshake only, which may be long ago. */
    bool is_admitted = zmq_frame_key(frame, key) && zap_table_admits(mesh->table, key, user_id);
    if (!is_admitted) {
        refuse(mesh, REFUSAL_key_gone, user_id, "");
    }
    if (identity.role == ZAP_ROLE_NODE && !is_admitted) {
        return;
    }
    if (identity.role == ZAP_ROLE_NODE) {
        on_node_message(mesh, identity.node_id, user_id, frames, n_frames);
        return;
    }
    const struct mesh_caller caller = {.role = is_admitted ? identity.role : ZAP_ROLE_NONE,
                                       .name = identity.name};
    on_call(mesh, &caller, user_id, frames, n_frames);
}

void mesh_on_local_message(void *user, zmq_msg_t frames[], size_t n_frames)
{
    const struct mesh *mesh = user;
    int64_t uid = zmq_frame_uid(&frames[n_frames > 1 ? 1 : 0]);
    char name[LOCAL_NAME_BYTES];
    const struct mesh_caller caller = {.is_local = true, .role = ZAP_ROLE_ADMIN, .name = name};

    /* No key can have such a name. */
    int n = snprintf(name, sizeof name, "local socket of node %" PRIu64, mesh->node_id);
    if (uid >= 0) {
        snprintf(name + n, sizeof name - (size_t)n, ", uid %" PRId64, uid);
    }
    on_call(user, &caller, ZAP_LOCAL_USER, frames, n_frames);
}

/* Answers to what this node forwarded: on the connection that it was sent on. */
void mesh_on_dial_message(void *user, struct dial *dial, zmq_msg_t frames[], size_t n_frames)
{
    struct mesh *mesh = user;
    struct mesh_peer *peer = mesh_find_peer(mesh, dial_peer_id(dial));
    char user_id[ZAP_USER_ID_BYTES];

    if (peer == NULL) {
        return;
    }
    zap_node_user_id(peer->node_id, user_id);
    peer->n_received++;
    if (!decode(mesh, &frames[0], user_id)) {
        peer->n_dropped++;
        return;
    }
    if (mesh->incoming.kind != PEER_FORWARD_RESPONSE || n_frames != 3) {
        peer->n_dropped++;
        refuse(mesh, REFUSAL_not_for_nodes, user_id, "");
        return;
    }
    struct mesh_frames answer = frames_at(frames, n_frames, 1);
    peer->last_heard_ns = clock_monotonic_ns();
    mesh->counters.received++;
    mesh->options.hooks.forward_response(mesh->options.hooks.user, peer->node_id,
                                         mesh->incoming.u.forward_response.forward_id, &answer);
}
