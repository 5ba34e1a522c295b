/* Peers: who is heard, what is refused and by which name it is counted.
 * ctest labels: threads twin */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <zmq.h>

#include "common/base/clock.h"
#include "common/base/plant.h"
#include "tests/lib/mesh_world.h"

static void peers_hear_hello_and_vector_even_if_they_were_sent_before_the_connection(void **state)
{
    struct mesh_world *f = *state;
    struct hello hello = mesh_world_hello(f, 1);
    struct vote_chunk *chunk = calloc(1, sizeof *chunk);

    chunk->epoch = 1;
    chunk->n_chunks = 1;
    chunk->revision = 9;
    for (uint64_t sequence = 1; sequence <= 3; sequence++) {
        chunk->sequence = sequence;
        mesh_send_hello(f->nodes[0].mesh, &hello);
        mesh_send_vector(f->nodes[0].mesh, chunk, 1);
    }
    assert_true(mesh_world_run_until(f, &f->nodes[1].n_by_kind[PEER_VOTE_CHUNK], 1));
    assert_int_equal(f->nodes[1].n_by_kind[PEER_HELLO], 1);
    assert_int_equal(f->nodes[1].n_by_kind[PEER_VOTE_CHUNK], 1); /* the newest and no backlog */
    assert_int_equal(f->nodes[1].last_peer, 1);
    assert_int_equal(f->nodes[1].last.u.chunk.sequence, 3);
    free(chunk);
}

static void an_id_in_the_text_that_is_not_the_keys_is_dropped(void **state)
{
    struct mesh_world *f = *state;
    void *socket = mesh_world_client(f, &f->nodes[1].keys); /* member 2, by its key */
    struct hello lie = mesh_world_hello(f, 1);
    struct hello truth = mesh_world_hello(f, 2);

    mesh_world_send_hello(socket, &lie);
    mesh_world_send_hello(socket, &truth);
    assert_true(mesh_world_run_until(f, &f->nodes[0].n_by_kind[PEER_HELLO], 1));
    assert_int_equal(f->nodes[0].last_peer, 2);
    assert_int_equal(f->nodes[0].n_by_kind[PEER_HELLO], 1);
    assert_int_equal(mesh_world_n_refused(&f->nodes[0].refusals, REFUSAL_identity_differs), 1);
    zmq_close(socket);
}

#ifdef JURY_PLANTS
/* Node 2 says that it is node 3, which is a member as well: with the guard off it is believed. */
static void twin_a_mesh_that_trusts_the_text_is_caught(void **state)
{
    struct mesh_world *f = *state;
    struct member_node members[3] = {f->nodes[0].member, f->nodes[1].member, f->nodes[2].member};
    struct hello lie = mesh_world_hello(f, 3);
    void *socket;

    mesh_set_peers(f->nodes[0].mesh, members, 3);
    plant_set("mesh-trust-text");
    socket = mesh_world_client(f, &f->nodes[1].keys);
    mesh_world_send_hello(socket, &lie);
    assert_true(mesh_world_run_until(f, &f->nodes[0].n_by_kind[PEER_HELLO], 1));
    plant_set(NULL);
    assert_int_equal(f->nodes[0].last_peer, 3); /* what the guarded mesh never says */
    zmq_close(socket);
}
#endif

static void a_hello_of_another_cluster_is_refused_and_so_is_what_follows(void **state)
{
    struct mesh_world *f = *state;
    void *socket = mesh_world_client(f, &f->nodes[1].keys);
    struct hello hello = mesh_world_hello(f, 2);
    struct peer_message change = {.kind = PEER_VOTE_CHANGE,
                                  .u.change = {.epoch = 1,
                                               .sequence = 1,
                                               .target = {.slot = 0, .birth = 1},
                                               .opinion = OPINION_FAIL,
                                               .reason = REASON_CONNECT_FAILED}};

    hello.cluster_id.bytes[0] ^= 1;
    mesh_world_send(socket, &change);
    mesh_world_send_hello(socket, &hello);
    assert_true(mesh_world_run_until_refused(f, 0, REFUSAL_other_cluster));
    assert_int_equal(mesh_world_n_refused(&f->nodes[0].refusals, REFUSAL_before_hello), 1);
    mesh_world_send(socket, &change);
    hello.cluster_id = f->cluster;
    mesh_world_send_hello(socket, &hello);
    mesh_world_send(socket, &change);
    assert_true(mesh_world_run_until(f, &f->nodes[0].n_by_kind[PEER_VOTE_CHANGE], 1));
    assert_int_equal(mesh_world_n_refused(&f->nodes[0].refusals, REFUSAL_before_hello), 2);
    assert_int_equal(f->nodes[0].n_by_kind[PEER_VOTE_CHANGE], 1);
    zmq_close(socket);
}

static void a_hello_without_a_common_version_is_refused(void **state)
{
    struct mesh_world *f = *state;
    void *socket = mesh_world_client(f, &f->nodes[1].keys);
    struct peer_message message = {.kind = PEER_HELLO, .u.hello = mesh_world_hello(f, 2)};

    message.u.hello.version_min = MESH_VERSION_MAX + 1;
    message.u.hello.version_max = MESH_VERSION_MAX + 4;
    mesh_world_send(socket, &message);
    assert_true(mesh_world_run_until_refused(f, 0, REFUSAL_version));
    assert_int_equal(f->nodes[0].n_by_kind[PEER_HELLO], 0);
    zmq_close(socket);
}

static void a_node_that_is_no_member_is_not_heard_whatever_it_says(void **state)
{
    struct mesh_world *f = *state;
    void *socket = mesh_world_client(f, &f->nodes[2].keys);
    struct hello hello = mesh_world_hello(f, 3);

    mesh_world_send_hello(socket, &hello);
    assert_true(mesh_world_run_until_refused(f, 0, REFUSAL_not_member));
    assert_int_equal(f->nodes[0].n_by_kind[PEER_HELLO], 0);
    zmq_close(socket);
}

static void bytes_that_do_not_decode_are_counted_and_harm_nothing(void **state)
{
    struct mesh_world *f = *state;
    void *socket = mesh_world_client(f, &f->nodes[1].keys);
    struct hello hello = mesh_world_hello(f, 2);
    static const uint8_t rows[][8] = {
        "", "x", "JM", {'J', 'M', 9, 1}, {'J', 'M', 1, 99}, {'J', 'M', 1, 2, 0xff, 0xff, 0xff}};

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        size_t n_bytes = i < 3 ? strlen((const char *)rows[i]) : i < 5 ? 4 : 7;

        assert_true(zmq_send(socket, rows[i], n_bytes, 0) >= 0);
    }
    mesh_world_send_hello(socket, &hello);
    assert_true(mesh_world_run_until(f, &f->nodes[0].n_by_kind[PEER_HELLO], 1));
    assert_int_equal(mesh_world_n_refused(&f->nodes[0].refusals, REFUSAL_malformed), 4);
    assert_int_equal(mesh_world_n_refused(&f->nodes[0].refusals, REFUSAL_version), 1);
    assert_int_equal(mesh_world_n_refused(&f->nodes[0].refusals, REFUSAL_unknown_kind), 1);
    zmq_close(socket);
}

static void a_stranger_never_gets_in(void **state)
{
    struct mesh_world *f = *state;
    void *socket = mesh_world_client(f, &f->stranger);
    struct hello hello = mesh_world_hello(f, 2);
    uint64_t end_ns = clock_monotonic_ns() + MESH_WORLD_WAIT_NS;

    mesh_world_send_hello(socket, &hello);
    while (zap_n_refused(f->zap, ZAP_REFUSED_UNKNOWN_KEY) == 0 && clock_monotonic_ns() < end_ns) {
        uv_run(&f->loop, UV_RUN_NOWAIT);
    }
    assert_true(zap_n_refused(f->zap, ZAP_REFUSED_UNKNOWN_KEY) > 0);
    assert_int_equal(f->nodes[0].n_by_kind[PEER_HELLO], 0);
    zmq_close(socket);
}

/* A member whose key was replaced: what its old connection says counts nowhere. */
static void a_node_with_a_replaced_key_is_not_heard_any_more(void **state)
{
    struct mesh_world *f = *state;
    struct hello hello = mesh_world_hello(f, 2);
    struct curve_keys old = f->nodes[1].keys;
    void *socket = mesh_world_client(f, &old);

    mesh_world_send_hello(socket, &hello);
    assert_true(mesh_world_run_until(f, &f->nodes[0].n_by_kind[PEER_HELLO], 1));
    mesh_world_make_keys(&f->nodes[1].keys);
    mesh_world_set_table(f, true);
    f->nodes[1].keys = old; /* the mesh of node 2 lives on with it */

    mesh_world_send_hello(socket, &hello);
    assert_true(mesh_world_run_until_refused(f, 0, REFUSAL_key_gone));
    assert_int_equal(f->nodes[0].n_by_kind[PEER_HELLO], 1);
    zmq_close(socket);
}

static void a_removed_peer_is_not_heard_and_one_that_stays_is_kept(void **state)
{
    struct mesh_world *f = *state;
    struct hello hello = mesh_world_hello(f, 2);
    struct mesh_peer_status status;

    mesh_send_hello(f->nodes[1].mesh, &hello);
    assert_true(mesh_world_run_until(f, &f->nodes[0].n_by_kind[PEER_HELLO], 1));
    assert_true(mesh_peer_status(f->nodes[0].mesh, 2, &status));
    assert_true(status.is_welcome);
    assert_true(status.last_heard_ns > 0);

    mesh_set_peers(f->nodes[0].mesh, &f->nodes[0].member, 1);

    assert_false(mesh_peer_status(f->nodes[0].mesh, 2, &status));
    mesh_send_hello(f->nodes[1].mesh, &hello);
    assert_true(mesh_world_run_until_refused(f, 0, REFUSAL_not_member));
    assert_int_equal(f->nodes[0].n_by_kind[PEER_HELLO], 1);
}

int main(void)
{
#define WITH_MESHES(test) \
    cmocka_unit_test_setup_teardown(test, mesh_world_setup, mesh_world_teardown)
    const struct CMUnitTest tests[] = {
        WITH_MESHES(peers_hear_hello_and_vector_even_if_they_were_sent_before_the_connection),
        WITH_MESHES(an_id_in_the_text_that_is_not_the_keys_is_dropped),
#ifdef JURY_PLANTS
        WITH_MESHES(twin_a_mesh_that_trusts_the_text_is_caught),
#endif
        WITH_MESHES(a_hello_of_another_cluster_is_refused_and_so_is_what_follows),
        WITH_MESHES(a_hello_without_a_common_version_is_refused),
        WITH_MESHES(a_node_that_is_no_member_is_not_heard_whatever_it_says),
        WITH_MESHES(bytes_that_do_not_decode_are_counted_and_harm_nothing),
        WITH_MESHES(a_stranger_never_gets_in),
        WITH_MESHES(a_node_with_a_replaced_key_is_not_heard_any_more),
        WITH_MESHES(a_removed_peer_is_not_heard_and_one_that_stays_is_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
