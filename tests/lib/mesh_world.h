/* Meshes on loopback in one loop; a hostile sender is a bare DEALER with a key of its own.
 *
 * Every wait has a deadline and ends as soon as its condition holds. What fails fails the test. */
#ifndef JURY_TESTS_MESH_WORLD_H
#define JURY_TESTS_MESH_WORLD_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "agent/mesh/mesh.h"
#include "common/base/units.h"

#define MESH_WORLD_WAIT_NS (20 * NS_PER_SECOND)
#define MESH_WORLD_NODES 3

/* What has come to one node. */
struct mesh_world_node {
    struct mesh *mesh;
    struct curve_keys keys;
    struct member_node member;
    struct refusals refusals;
    uint32_t n_by_kind[8];
    uint64_t last_peer;
    struct peer_message last;
    uint32_t n_calls;
    enum zap_role last_role;
    char last_name[192];
    bool last_was_local;
    uint32_t n_forwards;
    uint32_t n_responses;
    uint64_t last_forward_id;
    char last_payload[64];
};

struct mesh_world {
    void *context;
    struct zap *zap;
    uv_loop_t loop;
    struct zmq_hub hub;
    struct mesh_world_node nodes[MESH_WORLD_NODES];
    struct curve_keys viewer;
    struct curve_keys stranger;
    struct cluster_id cluster;
    char dir[64];
    char socket_path[128];  /* of the first node */
    char private_path[128]; /* of the second */
    uint32_t n_closed;
};

/* Of a cmocka test. Nodes 1 and 2 are members and know each other; 3 is known to ZAP and a member
 * to nobody. All keys but the stranger's are in the table. */
int mesh_world_setup(void **state);
int mesh_world_teardown(void **state);

void mesh_world_make_keys(struct curve_keys *keys);
/* The keys of the nodes as they are now, to ZAP and to each mesh; the viewer's too, as "eve". */
void mesh_world_set_table(struct mesh_world *f, bool with_viewer);

/* Runs the loop until *counter >= at_least or MESH_WORLD_WAIT_NS have passed; whether it is. */
bool mesh_world_run_until(struct mesh_world *f, const uint32_t *counter, uint32_t at_least);
/* The same, until the node nodes[index] has refused something for that reason. */
bool mesh_world_run_until_refused(struct mesh_world *f, size_t index, enum refusal refusal);
uint64_t mesh_world_n_refused(const struct refusals *refusals, enum refusal refusal);

/* A hello of this cluster. */
struct hello mesh_world_hello(const struct mesh_world *f, uint64_t node_id);
/* A bare client of node 1 with somebody's keys; given: zmq_close. */
void *mesh_world_client(struct mesh_world *f, const struct curve_keys *keys);
void mesh_world_send(void *socket, const struct peer_message *message);
/* With the versions that this program speaks. */
void mesh_world_send_hello(void *socket, const struct hello *hello);

#endif
