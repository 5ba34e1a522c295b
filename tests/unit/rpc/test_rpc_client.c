/* The blocking client against a scripted agent on a real socket: what it sends, which endpoint it
 * goes to next, and which error each failure is. */
#include "common/rpc/rpc_client.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include <zmq.h>

#include "common/base/clock.h"
#include "common/base/units.h"
#include "common/wire/unpack.h"
#include "jury/v1/cluster.pb-c.h"
#include "jury/v1/group.pb-c.h"

#define METHOD "jury.v1.NodeService/GetVersion"
#define REQUESTS_MAX 8

enum behaviour {
    ANSWER = 0,
    NO_LEADER, /* a status that another node may better */
    DENIED,    /* a status that none will better */
    HANG_UP,   /* take the request and close the connection */
    STAY_SILENT,
    ANSWER_ANOTHER_FIRST /* an answer with another request id, then the right one */
};

struct seen {
    uint8_t request_id[REQUEST_ID_BYTES];
    uint64_t min_revision;
    uint32_t deadline_ms;
    bool stale;
};

/* An agent that does what its script says, one entry a request; the last one is repeated. */
struct agent {
    void *context;
    struct key_pair key;
    char address[128];
    bool is_local;
    enum behaviour script[REQUESTS_MAX];
    size_t n_script;
    uint64_t revision;
    struct seen seen[REQUESTS_MAX];
    size_t n_seen;
    pthread_t thread;
    atomic_bool stops;
    void *socket; /* handed to the thread */
};

static void *agent_socket(struct agent *agent)
{
    int one = 1, zero = 0;
    void *socket = zmq_socket(agent->context, ZMQ_ROUTER);
    char address[160];
    size_t n_bytes = sizeof agent->address;

    assert_non_null(socket);
    zmq_setsockopt(socket, ZMQ_LINGER, &zero, sizeof zero);
    if (!agent->is_local) {
        zmq_setsockopt(socket, ZMQ_CURVE_SERVER, &one, sizeof one);
        zmq_setsockopt(socket, ZMQ_CURVE_SECRETKEY, agent->key.secret, SECRET_KEY_BYTES);
    }
    snprintf(address, sizeof address, "%s",
             agent->address[0] != '\0' ? agent->address : "tcp://127.0.0.1:*");
    for (int i = 0; zmq_bind(socket, address) != 0; i++) {
        assert_true(i < 200); /* the port of the socket just closed */
        zmq_poll(NULL, 0, 10);
    }
    zmq_getsockopt(socket, ZMQ_LAST_ENDPOINT, agent->address, &n_bytes);
    return socket;
}

static void send_answer(struct agent *agent, void *socket, zmq_msg_t *route,
                        const uint8_t *request_id, enum behaviour behaviour)
{
    struct wire_arena arena;
    size_t n_envelope, n_payload = 0;
    uint8_t *payload = NULL;
    zmq_msg_t copy;

    wire_arena_init(&arena, 65536);
    Jury__V1__Response *response = WIRE_NEW(&arena, Jury__V1__Response, jury__v1__response);
    response->status = WIRE_NEW(&arena, Jury__V1__Status, jury__v1__status);
    response->request_id.data = wire_alloc(&arena, REQUEST_ID_BYTES);
    response->request_id.len = REQUEST_ID_BYTES;
    memcpy(response->request_id.data, request_id, REQUEST_ID_BYTES);
    response->revision = agent->revision;
    if (behaviour == NO_LEADER || behaviour == DENIED) {
        response->status->code = behaviour == NO_LEADER ? JURY__V1__CODE__CODE_UNAVAILABLE
                                                        : JURY__V1__CODE__CODE_PERMISSION_DENIED;
        response->status->reason =
            wire_text(&arena, behaviour == NO_LEADER ? "NO_LEADER" : "NOT_ALLOWED");
        response->status->message =
            wire_text(&arena, behaviour == NO_LEADER ? "nobody leads" : "not for you");
    } else {
        Jury__V1__GetVersionResponse *version =
            WIRE_NEW(&arena, Jury__V1__GetVersionResponse, jury__v1__get_version_response);
        version->version = wire_text(&arena, "9.9");
        payload = wire_pack(&version->base, &arena, &n_payload);
    }
    uint8_t *envelope = wire_pack(&response->base, &arena, &n_envelope);
    zmq_msg_init(&copy);
    zmq_msg_copy(&copy, route);
    zmq_msg_send(&copy, socket, ZMQ_SNDMORE);
    zmq_send(socket, "", 0, ZMQ_SNDMORE);
    zmq_send(socket, envelope, n_envelope, ZMQ_SNDMORE);
    zmq_send(socket, payload, n_payload, 0);
    wire_arena_close(&arena);
}

/* [route][empty][envelope][payload] */
static void note_request(struct agent *agent, zmq_msg_t *envelope)
{
    static const struct wire_limits limits = {.bytes_max = 4096, .elements_max = 100};
    struct wire_arena arena;
    ProtobufCMessage *message = NULL;

    wire_arena_init(&arena, 65536);
    int rc = wire_unpack(&jury__v1__request__descriptor, &limits, zmq_msg_data(envelope),
                         zmq_msg_size(envelope), &arena, &message, NULL);
    if (rc == 0 && agent->n_seen < REQUESTS_MAX) {
        const Jury__V1__Request *request = (const Jury__V1__Request *)message;
        struct seen *seen = &agent->seen[agent->n_seen++];

        memcpy(seen->request_id, request->request_id.data, REQUEST_ID_BYTES);
        seen->min_revision = request->min_revision;
        seen->deadline_ms = request->deadline_ms;
        seen->stale = request->stale;
    }
    wire_arena_close(&arena);
}

static void serve_one(struct agent *agent, void **socket)
{
    static const uint8_t other_id[REQUEST_ID_BYTES] = {1};
    zmq_msg_t frames[4];

    for (int i = 0; i < 4; i++) {
        zmq_msg_init(&frames[i]);
        zmq_msg_recv(&frames[i], *socket, 0);
    }
    size_t index = agent->n_seen < agent->n_script ? agent->n_seen : agent->n_script - 1;
    enum behaviour behaviour = agent->script[index];
    note_request(agent, &frames[2]);
    const uint8_t *request_id = agent->seen[agent->n_seen - 1].request_id;
    if (behaviour == HANG_UP) {
        zmq_close(*socket);
        *socket = agent_socket(agent);
    } else if (behaviour != STAY_SILENT) {
        if (behaviour == ANSWER_ANOTHER_FIRST) {
            send_answer(agent, *socket, &frames[0], other_id, ANSWER);
        }
        send_answer(agent, *socket, &frames[0], request_id, behaviour);
    }
    for (int i = 0; i < 4; i++) {
        zmq_msg_close(&frames[i]);
    }
}

static void *agent_run(void *user)
{
    struct agent *agent = user;
    void *socket = agent->socket;

    while (!atomic_load(&agent->stops)) {
        zmq_pollitem_t item = {.socket = socket, .events = ZMQ_POLLIN};

        if (zmq_poll(&item, 1, 20) > 0) {
            serve_one(agent, &socket);
        }
    }
    zmq_close(socket);
    return NULL;
}

static void agent_start(struct agent *agent)
{
    struct errmsg err;

    agent->context = zmq_ctx_new();
    assert_int_equal(key_pair_generate(&agent->key, &err), 0);
    if (agent->n_script == 0) {
        agent->n_script = 1;
    }
    agent->socket = agent_socket(agent);
    assert_int_equal(pthread_create(&agent->thread, NULL, agent_run, agent), 0);
}

static void agent_stop(struct agent *agent)
{
    atomic_store(&agent->stops, true);
    pthread_join(agent->thread, NULL);
    zmq_ctx_term(agent->context);
    key_pair_close(&agent->key);
}

static struct rpc_client *client_of(struct agent *agents, size_t n_agents, uint32_t timeout_ms,
                                    const struct key_pair *key)
{
    struct rpc_endpoint endpoints[4];
    struct rpc_client *client = NULL;
    struct errmsg err;

    for (size_t i = 0; i < n_agents; i++) {
        endpoints[i] = (struct rpc_endpoint){.address = agents[i].address,
                                             .server_key = agents[i].key.public_key};
    }
    struct rpc_client_options options = {
        .endpoints = endpoints, .n_endpoints = n_agents, .key = key, .timeout_ms = timeout_ms};
    assert_int_equal(rpc_client_new(&options, &client, &err), 0);
    return client;
}

struct outcome {
    int rc;
    struct errmsg err;
    struct request_id request_id;
    char version[16];
    char endpoint[128];
};

static struct outcome call(struct rpc_client *client, bool stale)
{
    Jury__V1__GetVersionRequest request = JURY__V1__GET_VERSION_REQUEST__INIT;
    struct rpc_call rpc_call = {.method = METHOD, .request = &request.base, .stale = stale};
    struct rpc_result result;
    struct outcome outcome = {0};

    outcome.rc = rpc_client_call(client, &rpc_call, &result, &outcome.err);
    outcome.request_id = result.request_id;
    if (result.response != NULL) {
        snprintf(outcome.version, sizeof outcome.version, "%s",
                 ((Jury__V1__GetVersionResponse *)result.response)->version);
    }
    snprintf(outcome.endpoint, sizeof outcome.endpoint, "%s",
             result.endpoint != NULL ? result.endpoint : "");
    rpc_result_close(&result);
    return outcome;
}

/* --- tests --- */

static void a_call_over_curve_is_answered_and_the_next_asks_for_its_revision(void **state)
{
    (void)state;
    struct agent agent = {.revision = 42, .script = {ANSWER_ANOTHER_FIRST}};
    struct key_pair key;
    struct errmsg err;

    agent_start(&agent);
    assert_int_equal(key_pair_generate(&key, &err), 0);
    struct rpc_client *client = client_of(&agent, 1, 5000, &key);

    struct outcome first = call(client, false);
    struct outcome second = call(client, false);
    struct outcome third = call(client, true);
    assert_int_equal(first.rc, 0);
    assert_string_equal(first.version, "9.9");
    assert_int_equal(second.rc, 0);
    assert_int_equal(third.rc, 0);
    assert_int_equal(rpc_client_revision(client), 42);
    rpc_client_free(client);
    agent_stop(&agent);

    assert_int_equal(agent.seen[0].min_revision, 0);
    assert_int_equal(agent.seen[1].min_revision, 42);
    assert_int_equal(agent.seen[2].min_revision, 0); /* stale */
    assert_true(agent.seen[2].stale);
    assert_in_range(agent.seen[0].deadline_ms, 1, 5000);
    assert_memory_not_equal(agent.seen[0].request_id, agent.seen[1].request_id, REQUEST_ID_BYTES);
    assert_memory_equal(agent.seen[0].request_id, first.request_id.bytes, REQUEST_ID_BYTES);
    key_pair_close(&key);
}

static void a_node_without_a_leader_sends_the_client_to_the_next_with_the_same_id(void **state)
{
    (void)state;
    struct agent agents[2] = {{.script = {NO_LEADER}}, {.script = {ANSWER}}};
    struct key_pair key;
    struct errmsg err;

    agent_start(&agents[0]);
    agent_start(&agents[1]);
    assert_int_equal(key_pair_generate(&key, &err), 0);
    struct rpc_client *client = client_of(agents, 2, 5000, &key);

    struct outcome outcome = call(client, false);
    assert_int_equal(outcome.rc, 0);
    assert_string_equal(outcome.endpoint, agents[1].address);
    outcome = call(client, false);
    assert_int_equal(outcome.rc, 0); /* straight to the one that answered */
    rpc_client_free(client);
    agent_stop(&agents[0]);
    agent_stop(&agents[1]);
    assert_int_equal(agents[0].n_seen, 1);
    assert_int_equal(agents[1].n_seen, 2);
    assert_memory_equal(agents[0].seen[0].request_id, agents[1].seen[0].request_id,
                        REQUEST_ID_BYTES);
    key_pair_close(&key);
}

static void a_refusal_is_final_and_carries_its_sentence(void **state)
{
    (void)state;
    struct agent agents[2] = {{.script = {DENIED}}, {.script = {ANSWER}}};
    struct key_pair key;
    struct errmsg err;

    agent_start(&agents[0]);
    agent_start(&agents[1]);
    assert_int_equal(key_pair_generate(&key, &err), 0);
    struct rpc_client *client = client_of(agents, 2, 5000, &key);

    struct outcome outcome = call(client, false);
    assert_int_equal(outcome.rc, ERR_DENIED);
    assert_string_equal(outcome.err.text, "not for you");
    rpc_client_free(client);
    agent_stop(&agents[0]);
    agent_stop(&agents[1]);
    assert_int_equal(agents[1].n_seen, 0);
    key_pair_close(&key);
}

static void a_broken_connection_is_tried_again_with_the_same_id(void **state)
{
    (void)state;
    struct agent agent = {.script = {HANG_UP, HANG_UP, ANSWER}, .n_script = 3};
    struct key_pair key;
    struct errmsg err;

    agent_start(&agent);
    assert_int_equal(key_pair_generate(&key, &err), 0);
    struct rpc_client *client = client_of(&agent, 1, 10000, &key);

    struct outcome outcome = call(client, false);
    assert_int_equal(outcome.rc, 0);
    rpc_client_free(client);
    agent_stop(&agent);
    assert_int_equal(agent.n_seen, 3);
    assert_memory_equal(agent.seen[0].request_id, agent.seen[2].request_id, REQUEST_ID_BYTES);
    key_pair_close(&key);
}

static struct outcome drain(struct rpc_client *client)
{
    Jury__V1__DrainBackendRequest request = JURY__V1__DRAIN_BACKEND_REQUEST__INIT;
    struct rpc_call rpc_call = {.method = "jury.v1.BackendService/DrainBackend",
                                .request = &request.base};
    struct rpc_result result;
    struct outcome outcome = {0};

    outcome.rc = rpc_client_call(client, &rpc_call, &result, &outcome.err);
    rpc_result_close(&result);
    return outcome;
}

/* It said "no agent answers", with the exit status of one that was never reached. */
static void a_write_that_was_sent_is_not_told_as_one_that_nobody_had(void **state)
{
    (void)state;
    struct agent agent = {.script = {HANG_UP}};
    struct agent agents[2] = {{.script = {HANG_UP}}, {.script = {NO_LEADER}}};
    struct key_pair key;
    struct errmsg err;

    agent_start(&agent);
    assert_int_equal(key_pair_generate(&key, &err), 0);
    struct rpc_client *client = client_of(&agent, 1, 300, &key);
    struct outcome outcome = drain(client);
    assert_int_equal(outcome.rc, ERR_TIMEOUT);
    assert_non_null(strstr(outcome.err.text, "the change was sent and may have been made, look "
                                             "before you repeat it: "));
    outcome = call(client, false); /* a read has changed nothing */
    assert_int_equal(outcome.rc, ERR_UNREACHABLE);
    rpc_client_free(client);
    agent_stop(&agent);

    agent_start(&agents[0]);
    agent_start(&agents[1]);
    client = client_of(agents, 2, 5000, &key);
    outcome = drain(client);
    assert_int_equal(outcome.rc, ERR_NOLEADER);
    assert_string_equal(outcome.err.text, "the change was sent and may have been made, look before "
                                          "you repeat it: nobody leads");
    rpc_client_free(client);
    agent_stop(&agents[0]);
    agent_stop(&agents[1]);
    key_pair_close(&key);
}

/* A probe on demand has a minute, and was asked for until then, of an agent that had ended. */
static void a_question_is_not_asked_for_a_minute_of_an_agent_that_has_gone(void **state)
{
    (void)state;
    struct agent agent = {.script = {HANG_UP}};
    struct key_pair key;
    struct errmsg err;

    agent_start(&agent);
    assert_int_equal(key_pair_generate(&key, &err), 0);
    struct rpc_client *client = client_of(&agent, 1, 60000, &key);
    uint64_t start_ns = clock_monotonic_ns();
    struct outcome outcome = call(client, false);
    assert_int_equal(outcome.rc, ERR_UNREACHABLE);
    assert_true(clock_monotonic_ns() - start_ns < 30 * NS_PER_SECOND);
    rpc_client_free(client);
    agent_stop(&agent);
    key_pair_close(&key);
}

static void what_nodes_say_counts_more_than_that_others_are_away(void **state)
{
    (void)state;
    struct agent agents[2] = {{.script = {NO_LEADER}}, {.script = {ANSWER}}};
    struct key_pair key;
    struct errmsg err;

    agent_start(&agents[0]);
    agent_start(&agents[1]);
    agent_stop(&agents[1]);
    assert_int_equal(key_pair_generate(&key, &err), 0);
    assert_int_equal(key_pair_generate(&agents[1].key, &err), 0);
    struct rpc_client *client = client_of(agents, 2, 5000, &key);

    struct outcome outcome = call(client, false);
    assert_int_equal(outcome.rc, ERR_NOLEADER);
    assert_string_equal(outcome.err.text, "nobody leads");
    rpc_client_free(client);
    agent_stop(&agents[0]);
    key_pair_close(&agents[1].key);
    key_pair_close(&key);
}

static void each_way_of_having_no_answer_is_its_own_error(void **state)
{
    (void)state;
    struct agent agent = {.script = {STAY_SILENT}};
    struct key_pair key, other;
    struct errmsg err;
    struct outcome outcome;

    agent_start(&agent);
    assert_int_equal(key_pair_generate(&key, &err), 0);
    assert_int_equal(key_pair_generate(&other, &err), 0);
    struct rpc_client *client = client_of(&agent, 1, 400, &key);
    outcome = call(client, false);
    assert_int_equal(outcome.rc, ERR_TIMEOUT);
    assert_non_null(strstr(outcome.err.text, "no answer from tcp://127.0.0.1:"));
    rpc_client_free(client);

    /* The node has another key than the one that the client expects. */
    struct agent wrong = agent;
    wrong.key.public_key = other.public_key;
    client = client_of(&wrong, 1, 3000, &key);
    outcome = call(client, false);
    assert_int_equal(outcome.rc, ERR_UNAUTHENTICATED);
    assert_non_null(strstr(outcome.err.text, "does not know this key"));
    rpc_client_free(client);

    agent_stop(&agent);
    assert_int_equal(key_pair_generate(&agent.key, &err), 0);
    client = client_of(&agent, 1, 3000, &key);
    outcome = call(client, false);
    assert_int_equal(outcome.rc, ERR_UNREACHABLE);
    assert_non_null(strstr(outcome.err.text, "no agent answers at tcp://127.0.0.1:"));
    rpc_client_free(client);
    key_pair_close(&agent.key);
    key_pair_close(&key);
    key_pair_close(&other);
}

static void the_unix_socket_needs_no_key_and_says_what_is_wrong_with_it(void **state)
{
    (void)state;
    char folder[] = "/tmp/jury-rpc-XXXXXX";
    struct agent agent = {.is_local = true, .revision = 7};

    assert_non_null(mkdtemp(folder));
    snprintf(agent.address, sizeof agent.address, "ipc://%s/agent.sock", folder);
    agent_start(&agent);
    struct rpc_client *client = client_of(&agent, 1, 5000, NULL);
    struct outcome outcome = call(client, false);
    assert_int_equal(outcome.rc, 0);
    rpc_client_free(client);
    agent_stop(&agent);

    unlink(agent.address + 6);
    client = client_of(&agent, 1, 5000, NULL);
    outcome = call(client, false);
    assert_int_equal(outcome.rc, ERR_UNREACHABLE);
    assert_non_null(strstr(outcome.err.text, "no agent listens at /tmp/jury-rpc-"));
    rpc_client_free(client);
    rmdir(folder);
}

/* What an agent under SIGSTOP looks like. */
static void a_listener_that_says_nothing_is_a_deadline_that_passed(void **state)
{
    (void)state;
    char folder[] = "/tmp/jury-rpc-XXXXXX";
    struct agent agent = {.is_local = true};
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    int listener = socket(AF_UNIX, SOCK_STREAM, 0);

    assert_non_null(mkdtemp(folder));
    snprintf(at.sun_path, sizeof at.sun_path, "%s/agent.sock", folder);
    snprintf(agent.address, sizeof agent.address, "ipc://%s/agent.sock", folder);
    assert_int_equal(bind(listener, (const struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(listener, 8), 0);
    struct rpc_client *client = client_of(&agent, 1, 300, NULL);

    struct outcome outcome = call(client, false);

    assert_int_equal(outcome.rc, ERR_TIMEOUT);
    assert_non_null(strstr(outcome.err.text, "it said nothing in time"));
    rpc_client_free(client);
    close(listener);
    unlink(at.sun_path);
    rmdir(folder);
}

static void *hang_up_on_all(void *user)
{
    int listener = *(const int *)user, fd;

    while ((fd = accept(listener, NULL, NULL)) >= 0) {
        close(fd);
    }
    return NULL;
}

/* It took the connection and died before it said anything. */
static void an_agent_that_dies_on_the_unix_socket_is_unreachable_and_denies_nothing(void **state)
{
    (void)state;
    char folder[] = "/tmp/jury-rpc-XXXXXX";
    struct agent agent = {.is_local = true};
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    int listener = socket(AF_UNIX, SOCK_STREAM, 0);
    pthread_t thread;

    assert_non_null(mkdtemp(folder));
    snprintf(at.sun_path, sizeof at.sun_path, "%s/agent.sock", folder);
    snprintf(agent.address, sizeof agent.address, "ipc://%s/agent.sock", folder);
    assert_int_equal(bind(listener, (const struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(listener, 8), 0);
    assert_int_equal(pthread_create(&thread, NULL, hang_up_on_all, &listener), 0);
    struct rpc_client *client = client_of(&agent, 1, 5000, NULL);

    struct outcome outcome = call(client, false);

    assert_int_equal(outcome.rc, ERR_UNREACHABLE);
    assert_int_equal(err_exit_status(outcome.rc), 4);
    assert_non_null(strstr(outcome.err.text, "broke before the answer"));
    rpc_client_free(client);
    shutdown(listener, SHUT_RDWR); /* wakes the thread */
    assert_int_equal(pthread_join(thread, NULL), 0);
    close(listener);
    unlink(at.sun_path);
    rmdir(folder);
}

static void endpoints_and_methods_that_cannot_work_are_refused_at_once(void **state)
{
    (void)state;
    struct rpc_endpoint endpoint = {.address = "127.0.0.1:7000"};
    struct rpc_client_options options = {.endpoints = &endpoint, .n_endpoints = 1};
    struct rpc_client *client;
    struct rpc_result result;
    struct errmsg err;

    assert_int_equal(rpc_client_new(&options, &client, &err), ERR_USAGE);
    assert_string_equal(err.text,
                        "endpoint \"127.0.0.1:7000\" must be tcp://HOST:PORT or ipc:///PATH");
    endpoint.address = "tcp://127.0.0.1:7000";
    assert_int_equal(rpc_client_new(&options, &client, &err), ERR_USAGE);
    assert_non_null(strstr(err.text, "needs a key file"));
    endpoint.address = "ipc:///nowhere";
    assert_int_equal(rpc_client_new(&options, &client, &err), 0);
    assert_int_equal(
        rpc_client_call(client, &(struct rpc_call){.method = "jury.v1.No/Such"}, &result, &err),
        ERR_UNKNOWN_METHOD);
    rpc_client_free(client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_over_curve_is_answered_and_the_next_asks_for_its_revision),
        cmocka_unit_test(a_node_without_a_leader_sends_the_client_to_the_next_with_the_same_id),
        cmocka_unit_test(a_refusal_is_final_and_carries_its_sentence),
        cmocka_unit_test(a_broken_connection_is_tried_again_with_the_same_id),
        cmocka_unit_test(a_write_that_was_sent_is_not_told_as_one_that_nobody_had),
        cmocka_unit_test(a_question_is_not_asked_for_a_minute_of_an_agent_that_has_gone),
        cmocka_unit_test(what_nodes_say_counts_more_than_that_others_are_away),
        cmocka_unit_test(each_way_of_having_no_answer_is_its_own_error),
        cmocka_unit_test(the_unix_socket_needs_no_key_and_says_what_is_wrong_with_it),
        cmocka_unit_test(a_listener_that_says_nothing_is_a_deadline_that_passed),
        cmocka_unit_test(an_agent_that_dies_on_the_unix_socket_is_unreachable_and_denies_nothing),
        cmocka_unit_test(endpoints_and_methods_that_cannot_work_are_refused_at_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
