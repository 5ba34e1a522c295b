/* Bytes of the Raft lane: decoding never reads beyond them, and what decodes is encoded to the same
 * bytes again. A part of a snapshot goes on into the building of one. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "agent/store/raft_frame.h"
#include "agent/store/raft_guard.h"
#include "agent/store/raft_wrap.h"
#include "agent/store/snapshot_flow.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

static void take_part(const struct frame_part *part)
{
    struct snapshot_in in = {0};
    struct frame_part_ack ack;
    struct raft_message message = {.type = RAFT_INSTALL_SNAPSHOT};

    if (snapshot_in_take(&in, part, &ack, &message.install_snapshot) == SNAPSHOT_IN_WHOLE) {
        raft_wrap_drop(&message);
    }
    snapshot_in_close(&in);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    struct frame frame;
    uint8_t *again = NULL;
    size_t n_again = 0;

    if (frame_decode(data, n_bytes, &frame) != FRAME_OK) {
        return 0;
    }
    if (data[3] == FRAME_MINOR && frame_encode(&frame, &again, &n_again)) {
        assert(n_again == n_bytes && memcmp(again, data, n_bytes) == 0);
    }
    if (frame.head.kind == FRAME_SNAPSHOT_PART) {
        take_part(&frame.u.part);
    }
    free(again);
    frame_close(&frame);
    return 0;
}
