/* Who was turned away and why: one counter a reason, and one line in the log, repeated at most once
 * a minute a reason with the number of those left out. A scanner that knocks a thousand times is a
 * thousand in the counter and one line. */
#ifndef JURY_MESH_REFUSALS_H
#define JURY_MESH_REFUSALS_H

#include <stdint.h>

#include "agent/loop/zap.h"
#include "agent/loop/zmq_monitor.h"
#include "common/base/counters.h"
#include "common/base/log.h"

/* X(name, help) */
#define REFUSALS(X)                                                                               \
    X(unknown_key, "connections refused: the public key belongs to nobody here")                  \
    X(revoked_key, "connections refused: the key has been revoked, or has expired")               \
    X(wrong_role, "connections refused: an access key on the nodes' own lane")                    \
    X(no_key, "connections refused: the client did not use CURVE")                                \
    X(wrong_server_key, "connections refused: the client holds another public key for this node") \
    X(garbage, "connections refused: the client did not speak ZMTP")                              \
    X(silent, "connections closed: nothing was said in time")                                     \
    X(gave_up, "connections that ended during the handshake")                                     \
    X(no_descriptor,                                                                              \
      "connections closed at once: the last descriptors are kept for the node itself")            \
    X(malformed_handshake, "connections refused: malformed request to the handler of keys")       \
    X(identity_differs, "messages dropped: the member id in the text is not that of the key")     \
    X(other_cluster, "messages dropped: the sender is of another cluster")                        \
    X(not_member, "messages dropped: the sender's node is not a member")                          \
    X(before_hello, "messages dropped: the sender has not said a valid hello")                    \
    X(version, "messages dropped: no common version of the message set")                          \
    X(unknown_kind, "messages dropped: a kind that a newer version may have")                     \
    X(malformed, "messages dropped: bytes that do not decode")                                    \
    X(not_for_nodes, "messages dropped: of a kind that does not belong on that connection")       \
    X(key_gone, "calls answered as not allowed: the key was removed or has expired since")

enum refusal {
#define REFUSAL_ENUM(name, help) REFUSAL_##name,
    REFUSALS(REFUSAL_ENUM)
#undef REFUSAL_ENUM
    REFUSAL_COUNT
};

struct refusals {
    struct {
#define REFUSAL_FIELD(name, help) uint64_t name;
        REFUSALS(REFUSAL_FIELD)
#undef REFUSAL_FIELD
    } counts;
    struct log_limit limits[REFUSAL_COUNT];
};

/* lane: "mesh", "raft", "local", or "network" for the first two together; who: address or node,
 * quoted already or plain; detail: may be empty. Loop thread. */
void refusals_note(struct refusals *refusals, enum refusal refusal, const char *lane,
                   const char *who, const char *detail);
/* n at once, the last of which came from `who`; nothing if n is 0. Loop thread. */
void refusals_note_many(struct refusals *refusals, enum refusal refusal, uint64_t n,
                        const char *lane, const char *who);
/* What the ZAP thread reported, with its domain as the lane. */
void refusals_note_zap(struct refusals *refusals, const struct zap_refusal *refusal);
/* What a listening socket's monitor saw; what is no refusal, or was refused by ZAP and is reported
 * from there, is ignored. */
void refusals_note_event(struct refusals *refusals, const char *lane,
                         const struct zmq_event *event);

/* As a set for the registry; points into refusals. prefix: "refused". */
struct counter_set refusals_counters(const struct refusals *refusals);

#endif
