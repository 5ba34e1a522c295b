/* Messages between agents: plain values (agent/core/vote_msg.h and below) to frames of
 * proto/jury/internal/peer.proto and back.
 *
 * A frame begins with four bytes: 'J', 'M', major version, kind. The size cap of the kind is
 * checked before anything is unpacked, every number and count after it; what does not fit is
 * refused with a sentence and never half used. Who sent it is not here: that comes from the
 * connection. */
#ifndef JURY_MESH_PEER_CODEC_H
#define JURY_MESH_PEER_CODEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/core/vote_msg.h"
#include "common/base/err.h"
#include "common/model/cluster.h"

#define PEER_VERSION_MAJOR 1
#define PEER_HEADER_BYTES 4

/* Numbers of jury.internal.PeerKind. */
enum peer_kind {
    PEER_NONE = 0,
    PEER_HELLO = 1,
    PEER_VOTE_CHUNK = 2,
    PEER_VOTE_CHANGE = 3,
    PEER_VOTE_QUESTION = 4,
    PEER_DRAIN_REPORT = 5,
    PEER_FORWARD_REQUEST = 6, /* two more frames follow: envelope and payload of the call */
    PEER_FORWARD_RESPONSE = 7 /* the same of its answer */
};

/* Who called, as the sending node authenticated it. */
struct peer_forward_request {
    uint64_t forward_id;
    uint8_t role; /* enum key_role */
    char name[LIMIT_NAME_BYTES + 1];
};

struct peer_forward_response {
    uint64_t forward_id;
};

struct peer_message {
    uint8_t kind; /* enum peer_kind */
    union {
        struct hello hello;
        struct vote_chunk chunk;
        struct vote_change change;
        struct vote_question question;
        struct drain_report report;
        struct peer_forward_request forward_request;
        struct peer_forward_response forward_response;
    } u;
};

/* One frame. ret_data: given, free(). Errors: ERR_NOMEM. */
int peer_encode(const struct peer_message *message, uint8_t **ret_data, size_t *ret_n_bytes);
/* Errors: ERR_LIMIT (size or count), ERR_VERSION (unknown major), ERR_UNAVAILABLE_YET (a kind that
 * a newer node may send: drop it quietly, counted), ERR_INVALID (everything else). *ret_message
 * is undefined on failure. The struct is large (about 12 kB): keep one and use it again. */
int peer_decode(const uint8_t *data, size_t n_bytes, struct peer_message *ret_message,
                struct errmsg *err);

#endif
