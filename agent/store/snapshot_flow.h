/* Moving one snapshot to one peer in parts, and building it up again on the other side.
 *
 * At most SNAPSHOT_WINDOW parts are under way to a peer, so heartbeats and entries on the same lane
 * never wait behind more than that, and neither side holds more than one snapshot a peer. raft
 * repeats an InstallSnapshot that is not answered; a repeat of one that is still moving is not sent
 * again (raft-022.md rule 16). Pure: times come in, bytes go out through the caller. */
#ifndef JURY_STORE_SNAPSHOT_FLOW_H
#define JURY_STORE_SNAPSHOT_FLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <raft.h>

#include "agent/store/raft_frame.h"

#define SNAPSHOT_WINDOW 8
#define SNAPSHOT_RETRY_NS UINT64_C(500000000)    /* unacknowledged parts are sent again */
#define SNAPSHOT_REST_NS UINT64_C(2000000000)    /* one that arrived is not sent again before */
#define SNAPSHOT_GIVE_UP_NS UINT64_C(5000000000) /* no acknowledgement at all: forget it */

/* The sending half; zeroed = idle. */
struct snapshot_out {
    uint8_t *blob; /* owned; NULL = idle */
    size_t n_bytes;
    uint64_t term;
    uint64_t last_index;
    uint64_t last_term;
    uint64_t conf_index;
    uint32_t n_parts;
    uint32_t n_acknowledged; /* parts the peer holds, from the first on */
    uint32_t next_part;      /* to be sent */
    uint64_t progress_ns;    /* of the start or the newest acknowledgement */
    uint64_t sent_ns;
    uint64_t done_term; /* of the newest that arrived whole, and when */
    uint64_t done_index;
    uint64_t done_ns;
};

void snapshot_out_close(struct snapshot_out *out);

/* raft wants this snapshot sent. false: it is a repeat of what is under way (nothing to do), or
 * memory ran out (raft will ask again). A newer one replaces an older one. */
bool snapshot_out_start(struct snapshot_out *out, const struct raft_install_snapshot *args,
                        uint64_t now_ns);
/* The next part to send now, a view into the blob; false = nothing now. */
bool snapshot_out_next(struct snapshot_out *out, uint64_t now_ns, struct frame_part *ret_part);
/* An acknowledgement came. The flow ends with the last one. */
void snapshot_out_ack(struct snapshot_out *out, const struct frame_part_ack *ack, uint64_t now_ns);

/* The receiving half; zeroed = idle. */
struct snapshot_in {
    uint8_t *blob; /* owned */
    uint64_t total_bytes;
    uint64_t term;
    uint64_t last_index;
    uint64_t last_term;
    uint64_t conf_index;
    uint32_t n_parts;
    uint32_t next_part;
};

void snapshot_in_close(struct snapshot_in *in);

enum snapshot_in_outcome {
    SNAPSHOT_IN_PART = 0, /* held, or not wanted: acknowledge ret_ack either way */
    SNAPSHOT_IN_WHOLE,    /* ret_args is complete and the caller's; acknowledge as well */
    SNAPSHOT_IN_DROPPED   /* damaged or no memory: say nothing */
};
/* Parts are taken in order; one that is not the next is answered with where we are. */
enum snapshot_in_outcome snapshot_in_take(struct snapshot_in *in, const struct frame_part *part,
                                          struct frame_part_ack *ret_ack,
                                          struct raft_install_snapshot *ret_args);

#endif
