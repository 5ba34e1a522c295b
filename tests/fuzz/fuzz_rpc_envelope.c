/* Foreign bytes as a call: [role][2 bytes: length of the envelope][envelope][payload] into a server
 * on a virtual clock, with a cluster behind it. Whatever comes, it is answered once or dropped, and
 * no call is left over after its deadline. */
#include <assert.h>
#include <stdlib.h>

#include "tests/lib/rpc_world.h"

#define CALLS_PER_WORLD 200

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    static struct rpc_world world; /* kept for a while: opening one costs more than a call */

    if (n_bytes < 3) {
        return 0;
    }
    size_t n_envelope = (size_t)data[1] << 8 | data[2];
    n_envelope = n_envelope > n_bytes - 3 ? n_bytes - 3 : n_envelope;
    struct rpc_frames frames = {.envelope = data + 3,
                                .n_envelope_bytes = n_envelope,
                                .payload = data + 3 + n_envelope,
                                .n_payload_bytes = n_bytes - 3 - n_envelope};

    if (world.n_nodes == 0) {
        rpc_world_open(&world, 1, 1);
    }
    world.commit_ns_min = world.commit_ns_max = RPC_WORLD_MS;
    uint32_t call = rpc_world_frames(&world, 1, (enum key_role)(data[0] & 3), &frames);
    rpc_world_run(&world, 30);
    assert(world.replies[call].n_times <= 1);
    /* What grows in each run makes libFuzzer look for leaks in each run. */
    free(world.replies[call].envelope);
    free(world.replies[call].payload);
    world.replies[call] = (struct rpc_world_reply){0};
    if (world.n_calls == CALLS_PER_WORLD) {
        rpc_world_close(&world);
        world.n_nodes = 0;
    }
    return 0;
}
