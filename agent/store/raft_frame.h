/* Raft messages as bytes on the wire, and the few messages of our own on the same lane.
 *
 * One message is one frame: a head of fixed size that says who sends to whom, then the body of its
 * kind. Decoding believes nothing: a raft built without assertions takes a bad message as undefined
 * behaviour, so lengths, counts, types and flags are checked here (raft-zmq.md rule 6) and
 * everything that raft will own is copied with its allocator. Pure but for that allocator. */
#ifndef JURY_STORE_RAFT_FRAME_H
#define JURY_STORE_RAFT_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <raft.h>

#include "agent/store/fsm.h"
#include "common/base/err.h"
#include "common/base/hash.h"
#include "common/base/limits.h"
#include "common/model/cluster.h"

#define FRAME_MAGIC UINT16_C(0x524a) /* "JR" */
#define FRAME_HEAD_BYTES 72
#define FRAME_MAJOR 1
#define FRAME_MINOR 0
/* What a snapshot is cut into; with its head it stays below LIMIT_CHUNK_BYTES. */
#define FRAME_PART_BYTES (LIMIT_CHUNK_BYTES - 1024)
#define FRAME_PARTS_MAX (LIMIT_SNAPSHOT_BYTES / FRAME_PART_BYTES + 2)
/* Entries of one AppendEntries, data and heads together. */
#define FRAME_ENTRIES_BYTES_MAX (LIMIT_RAFT_MESSAGE_BYTES - 1024)
#define FRAME_ENTRIES_MAX 1024

enum frame_kind {
    FRAME_NONE = 0,
    FRAME_APPEND_ENTRIES = 1,
    FRAME_APPEND_ENTRIES_RESULT = 2,
    FRAME_REQUEST_VOTE = 3,
    FRAME_REQUEST_VOTE_RESULT = 4,
    FRAME_TIMEOUT_NOW = 5,
    FRAME_SNAPSHOT_PART = 6,
    FRAME_SNAPSHOT_ACK = 7,
    FRAME_HELLO = 8,
    FRAME_ADMIT = 9
};

struct frame_head {
    uint8_t kind;                 /* enum frame_kind */
    struct cluster_id cluster_id; /* zero: the sender has no directory yet */
    uint64_t from;
    uint64_t to;
    uint64_t from_incarnation; /* 0: the sender has no directory yet */
    uint64_t to_incarnation;   /* as the sender knows it; 0: not known */
    uint64_t epoch;            /* the sender's start counter and, in it, the message's number */
    uint64_t sequence;
};

/* One part of an InstallSnapshot; identified by (term, last_index, part). The parts together are
 * snapshot_blob.h. */
struct frame_part {
    uint64_t term;
    uint64_t last_index;
    uint64_t last_term;
    uint64_t conf_index;
    uint64_t total_bytes;
    uint32_t part;
    uint32_t n_parts;
    const uint8_t *data; /* borrowed */
    size_t n_bytes;
};

/* "I hold the parts before next_part of (term, last_index)." */
struct frame_part_ack {
    uint64_t term;
    uint64_t last_index;
    uint32_t next_part;
};

enum frame_standing {
    FRAME_STANDING_UNKNOWN = 0, /* the sender does not know the receiver as a member */
    FRAME_STANDING_MEMBER = 1,  /* bound_incarnation holds */
    FRAME_STANDING_REMOVED = 2
};

/* Sent each second to every peer, and as the answer to the first sign of a new one. */
struct frame_hello {
    uint64_t revision;          /* of the sender's state machine */
    struct hash128 state_hash;  /* at that revision */
    uint64_t members_revision;  /* revision of the newest membership list the sender knows */
    uint64_t bound_incarnation; /* what the sender's Raft has bound to the receiver's id; 0 none */
    uint8_t standing;           /* enum frame_standing: of the receiver, for the sender */
    bool is_restored;           /* the sender's directory was restored from an older copy */
    /* The most that the sender knows of the receiver's directory; 0 = nothing. */
    uint64_t seen_epoch; /* newest message, with seen_sequence */
    uint64_t seen_sequence;
    uint64_t seen_term;  /* highest term that it spoke in */
    uint64_t held_index; /* the leader's: committed, and acknowledged by the receiver */
    struct node_endpoint endpoints[LIMIT_ENDPOINTS_PER_NODE]; /* of the sender */
    uint32_t n_endpoints;
};

/* From the leader to an empty directory: become this node of my cluster. From any member to one
 * that is behind: these are the members. */
struct frame_admit {
    uint64_t node_id; /* of the receiver */
    uint64_t revision;
    struct store_members *members; /* owned by the frame */
};

struct frame {
    struct frame_head head;
    union {
        struct raft_message message; /* APPEND_ENTRIES .. TIMEOUT_NOW; server_* are not set */
        struct frame_part part;
        struct frame_part_ack ack;
        struct frame_hello hello;
        struct frame_admit admit;
    } u;
};

enum frame_outcome {
    FRAME_OK = 0,
    FRAME_MALFORMED,
    FRAME_VERSION, /* unknown major */
    FRAME_NOMEM
};

/* Decode. data: borrowed; a part's data stays a view into it. On success an AppendEntries owns its
 * entries in the form that raft wants to be given (all data in one raft_malloc block, `batch` of
 * each entry): hand them on, or frame_close. */
enum frame_outcome frame_decode(const uint8_t *data, size_t n_bytes, struct frame *ret_frame);
/* Frees what the frame owns. */
void frame_close(struct frame *frame);

/* Encode head and body; ret_data: given, free(). false: no memory or too large.
 * An InstallSnapshot cannot be encoded: it goes as parts. */
bool frame_encode(const struct frame *frame, uint8_t **ret_data, size_t *ret_n_bytes);

/* How many of the entries go into one frame: at least 1 when n > 0. */
unsigned frame_entries_fit(const struct raft_entry entries[], unsigned n);

/* A Raft configuration from foreign bytes; checked before raft's own decoder, which trusts its
 * input. false: malformed or no memory. ret_conf: raft_configuration_close. */
bool frame_decode_configuration(const uint8_t *data, size_t n_bytes,
                                struct raft_configuration *ret_conf);

#endif
