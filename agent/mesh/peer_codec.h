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
#define PEER_DRAIN_ROWS_MAX 4096

/* Numbers of jury.internal.PeerKind. */
enum peer_kind {
    PEER_NONE = 0,
    PEER_HELLO = 1,
    PEER_VOTE_CHUNK = 2,
    PEER_VOTE_CHANGE = 3,
    PEER_WHY_QUESTION = 4,
    PEER_WHY_ANSWER = 5,
    PEER_FORWARD_REQUEST = 6,  /* two more frames follow: envelope and payload of the call */
    PEER_FORWARD_RESPONSE = 7, /* the same of its answer */
    PEER_INIT_MEMBER = 8,
    PEER_INIT_MEMBER_ANSWER = 9,
    PEER_DRAIN_REPORT = 10
};

struct peer_why_question {
    uint64_t question_id;
    struct target_id target;
};

struct peer_why_answer {
    uint64_t question_id;
    bool is_known; /* the peer has the target: `change` is set */
    struct vote_change change;
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

struct peer_init_member {
    struct cluster_id cluster_id;
    uint64_t node_id; /* of the receiver */
    uint32_t n_members;
    struct member_node members[LIMIT_VOTERS];
};

struct peer_init_member_answer {
    struct cluster_id cluster_id;
    uint64_t node_id; /* of the sender */
    int err;          /* 0 or ERR_* */
    struct errmsg message;
};

struct peer_drain_row {
    uint64_t backend_id;
    uint64_t drain_revision;
    uint64_t flows;
    bool is_done;
};

struct peer_drain_report {
    uint64_t epoch;
    uint64_t sequence;
    uint64_t revision;
    uint32_t n_rows;
    struct peer_drain_row *rows; /* encode: borrowed; decode: given, free() */
};

struct peer_message {
    uint8_t kind; /* enum peer_kind */
    union {
        struct hello hello;
        struct vote_chunk chunk;
        struct vote_change change;
        struct peer_why_question question;
        struct peer_why_answer answer;
        struct peer_forward_request forward_request;
        struct peer_forward_response forward_response;
        struct peer_init_member init_member;
        struct peer_init_member_answer init_member_answer;
        struct peer_drain_report drain_report;
    } u;
};

/* Frees what a decoded message owns. */
void peer_message_close(struct peer_message *message);

/* One frame. ret_data: given, free(). Errors: ERR_NOMEM, ERR_LIMIT (more rows than allowed). */
int peer_encode(const struct peer_message *message, uint8_t **ret_data, size_t *ret_n_bytes);
/* Errors: ERR_LIMIT (size or count), ERR_VERSION (unknown major), ERR_UNAVAILABLE_YET (a kind that
 * a newer node may send: drop it quietly, counted), ERR_INVALID (everything else). *ret_message
 * must not be closed on failure. The struct is large (about 10 kB): keep one and use it again. */
int peer_decode(const uint8_t *data, size_t n_bytes, struct peer_message *ret_message,
                struct errmsg *err);

#endif
