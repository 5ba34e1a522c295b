/* Calls through the mesh: with whose role, over which socket, and forwarded to a peer.
 * ctest labels: threads */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zmq.h>

#include "common/base/clock.h"
#include "common/base/limits.h"
#include "tests/lib/mesh_world.h"

static void call(void *socket, const char *payload)
{
    assert_true(zmq_send(socket, "", 0, ZMQ_SNDMORE) >= 0);
    assert_true(zmq_send(socket, "envelope", 8, ZMQ_SNDMORE) >= 0);
    assert_true(zmq_send(socket, payload, strlen(payload), 0) >= 0);
}

static void expect_answer(struct mesh_world *f, void *socket, const char *payload)
{
    char text[64];
    uint64_t end_ns = clock_monotonic_ns() + MESH_WORLD_WAIT_NS;
    int n = -1;

    while ((n = zmq_recv(socket, text, sizeof text, ZMQ_DONTWAIT)) < 0 &&
           clock_monotonic_ns() < end_ns) {
        uv_run(&f->loop, UV_RUN_NOWAIT);
    }
    assert_int_equal(n, 0); /* as a REQ socket wants it */
    n = zmq_recv(socket, text, sizeof text, 0);
    assert_int_equal(n, 8);
    assert_memory_equal(text, "envelope", 8);
    n = zmq_recv(socket, text, sizeof text, 0);
    assert_int_equal(n, strlen(payload));
    assert_memory_equal(text, payload, strlen(payload));
}

static void a_key_calls_with_its_role_and_with_none_once_it_is_removed(void **state)
{
    struct mesh_world *f = *state;
    void *socket = mesh_world_client(f, &f->viewer);

    call(socket, "one");
    expect_answer(f, socket, "one");
    assert_int_equal(f->nodes[0].last_role, ZAP_ROLE_VIEWER);
    assert_string_equal(f->nodes[0].last_name, "eve");
    assert_false(f->nodes[0].last_was_local);

    mesh_world_set_table(f, false); /* the connection lives on: ZAP is asked at its start only */

    call(socket, "two");
    expect_answer(f, socket, "two");
    assert_int_equal(f->nodes[0].last_role, ZAP_ROLE_NONE);
    assert_int_equal(mesh_world_n_refused(&f->nodes[0].refusals, REFUSAL_key_gone), 1);
    zmq_close(socket);
}

/* The name and the role are the same, so only the key of the handshake tells. */
static void a_key_that_was_replaced_under_its_name_has_no_role_at_its_next_message(void **state)
{
    struct mesh_world *f = *state;
    void *socket = mesh_world_client(f, &f->viewer);

    call(socket, "one");
    expect_answer(f, socket, "one");
    assert_int_equal(f->nodes[0].last_role, ZAP_ROLE_VIEWER);

    mesh_world_make_keys(&f->viewer);
    mesh_world_set_table(f, true);

    call(socket, "two");
    expect_answer(f, socket, "two");
    assert_int_equal(f->nodes[0].last_role, ZAP_ROLE_NONE);
    zmq_close(socket);
    socket = mesh_world_client(f, &f->viewer);
    call(socket, "three");
    expect_answer(f, socket, "three");
    assert_int_equal(f->nodes[0].last_role, ZAP_ROLE_VIEWER);
    zmq_close(socket);
}

static void the_unix_socket_is_guarded_by_its_mode_and_calls_as_admin(void **state)
{
    struct mesh_world *f = *state;
    struct stat info;
    char endpoint[160];
    int linger_ms = 0;
    void *socket = zmq_socket(f->context, ZMQ_DEALER);

    assert_int_equal(stat(f->socket_path, &info), 0);
    assert_true(S_ISSOCK(info.st_mode));
    assert_int_equal(info.st_mode & 07777, 0660);
    zmq_setsockopt(socket, ZMQ_LINGER, &linger_ms, sizeof linger_ms);
    snprintf(endpoint, sizeof endpoint, "ipc://%s", f->socket_path);
    assert_int_equal(zmq_connect(socket, endpoint), 0);
    call(socket, "hi");
    expect_answer(f, socket, "hi");
    assert_int_equal(f->nodes[0].last_role, ZAP_ROLE_ADMIN);
    char who[80];
    snprintf(who, sizeof who, "local socket of node 1, uid %u", (unsigned)getuid());
    assert_string_equal(f->nodes[0].last_name, who);
    assert_true(f->nodes[0].last_was_local);
    zmq_close(socket);
}

/* A shim that ran in the agent's group could administer. */
static void a_private_socket_is_not_for_the_group(void **state)
{
    struct mesh_world *f = *state;
    struct stat info;

    assert_int_equal(stat(f->private_path, &info), 0);
    assert_true(S_ISSOCK(info.st_mode));
    assert_int_equal(info.st_mode & 07777, 0600);
}

static void a_call_is_forwarded_and_its_answer_comes_back(void **state)
{
    struct mesh_world *f = *state;
    struct hello hello = mesh_world_hello(f, 1);
    struct peer_forward_request request = {.forward_id = 42, .role = KEY_ROLE_ADMIN, .name = "ann"};
    const struct mesh_frames frames = {(const uint8_t *)"env", 3, (const uint8_t *)"pay", 3};

    assert_int_equal(mesh_forward(f->nodes[0].mesh, 2, &request, &frames), ERR_UNREACHABLE);
    assert_int_equal(mesh_forward(f->nodes[0].mesh, 9, &request, &frames), ERR_UNREACHABLE);
    mesh_send_hello(f->nodes[0].mesh, &hello);
    assert_true(mesh_world_run_until(f, &f->nodes[1].n_by_kind[PEER_HELLO], 1));
    assert_int_equal(mesh_forward(f->nodes[0].mesh, 2, &request, &frames), 0);
    assert_true(mesh_world_run_until(f, &f->nodes[0].n_responses, 1));
    assert_int_equal(f->nodes[1].n_forwards, 1);
    assert_string_equal(f->nodes[1].last_name, "ann");
    assert_string_equal(f->nodes[1].last_payload, "pay");
    assert_int_equal(f->nodes[0].last_forward_id, 42);
    assert_int_equal(f->nodes[0].last_peer, 2);
    assert_string_equal(f->nodes[0].last_payload, "pay");
}

static uint64_t counter(struct mesh_world *f, const char *name)
{
    struct counter_set set = mesh_counter_set(f->nodes[0].mesh);

    for (size_t i = 0; i < set.n_fields; i++) {
        if (strcmp(set.fields[i].name, name) == 0) {
            return *(const uint64_t *)((const char *)set.values + set.fields[i].offset);
        }
    }
    fail_msg("no counter %s", name);
    return 0;
}

#define LARGE_BYTES ((size_t)512 * 1024)
#define N_LARGE 80 /* 40 MiB */
/* What the sockets' own buffers take in besides. */
#define N_BUFFERED 8

static void *local_client(struct mesh_world *f)
{
    int zero = 0, one = 1;
    char endpoint[160];
    void *socket = zmq_socket(f->context, ZMQ_DEALER);

    zmq_setsockopt(socket, ZMQ_LINGER, &zero, sizeof zero);
    zmq_setsockopt(socket, ZMQ_RCVHWM, &one, sizeof one);
    snprintf(endpoint, sizeof endpoint, "ipc://%s", f->socket_path);
    assert_int_equal(zmq_connect(socket, endpoint), 0);
    return socket;
}

/* Answers that have come by then. */
static uint32_t read_all(void *socket)
{
    static char data[LARGE_BYTES];
    int wait_ms = 500;
    int more = 0;
    size_t n_bytes = sizeof more;
    uint32_t n = 0;

    zmq_setsockopt(socket, ZMQ_RCVTIMEO, &wait_ms, sizeof wait_ms);
    while (zmq_recv(socket, data, sizeof data, 0) >= 0) {
        zmq_getsockopt(socket, ZMQ_RCVMORE, &more, &n_bytes);
        n += !more;
    }
    return n;
}

static void who_does_not_read_loses_answers_and_nobody_else_does(void **state)
{
    static char large[LARGE_BYTES];
    struct mesh_world *f = *state;
    void *deaf = local_client(f);
    void *socket = local_client(f);
    uint32_t n_most = (uint32_t)(LIMIT_RPC_UNSENT_BYTES / LARGE_BYTES) + N_BUFFERED;

    for (uint32_t i = 0; i < N_LARGE; i++) {
        assert_true(zmq_send(deaf, "", 0, ZMQ_SNDMORE) >= 0);
        assert_true(zmq_send(deaf, "envelope", 8, ZMQ_SNDMORE) >= 0);
        assert_true(zmq_send(deaf, large, sizeof large, 0) >= 0);
    }
    assert_true(mesh_world_run_until(f, &f->nodes[0].n_calls, N_LARGE));
    assert_in_range(counter(f, "answers_unread"), N_LARGE - n_most, N_LARGE - 1);

    call(socket, "hi");
    expect_answer(f, socket, "hi");
    assert_in_range(read_all(deaf), 1, n_most);
    call(deaf, "again"); /* the connection was kept */
    expect_answer(f, deaf, "again");
    zmq_close(socket);
    zmq_close(deaf);
}

int main(void)
{
#define WITH_MESHES(test) \
    cmocka_unit_test_setup_teardown(test, mesh_world_setup, mesh_world_teardown)
    const struct CMUnitTest tests[] = {
        WITH_MESHES(a_key_calls_with_its_role_and_with_none_once_it_is_removed),
        WITH_MESHES(a_key_that_was_replaced_under_its_name_has_no_role_at_its_next_message),
        WITH_MESHES(the_unix_socket_is_guarded_by_its_mode_and_calls_as_admin),
        WITH_MESHES(a_private_socket_is_not_for_the_group),
        WITH_MESHES(a_call_is_forwarded_and_its_answer_comes_back),
        WITH_MESHES(who_does_not_read_loses_answers_and_nobody_else_does),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
