/* Holds the key of one node and names another in its messages: `store_liar KEY_OF NAMES PORT
 * CLUSTER` connects to the Raft lane at 127.0.0.1:PORT and sends a vote request and a hello. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sodium.h>
#include <zmq.h>

#include "agent/loop/sock.h"
#include "agent/store/raft_frame.h"
#include "tests/store/toy_fsm.h"

static void send_frame(void *socket, struct frame *frame)
{
    uint8_t *data = NULL;
    size_t n_bytes = 0;

    if (frame_encode(frame, &data, &n_bytes)) {
        zmq_send(socket, data, n_bytes, 0); /* waits for the connection */
    }
    free(data);
}

int main(int argc, char **argv)
{
    struct curve_keys keys;
    uint8_t server[32], secret[32];
    char endpoint[64];
    void *socket = NULL;
    struct frame frame = {.head = {.epoch = 1000000, .sequence = 1}};
    struct errmsg err;

    if (argc != 5 || sodium_init() < 0) {
        return 2;
    }
    toy_keys(strtoull(argv[1], NULL, 10), keys.public_key, keys.secret_key);
    toy_keys(1, server, secret);
    void *context = zmq_ctx_new();
    struct sock_options options = {.context = context,
                                   .domain = SOCK_DOMAIN_RAFT,
                                   .keys = &keys,
                                   .message_bytes_max = 1 << 20,
                                   .queue_messages = 100};
    if (sock_dealer_open(&options, server, &socket, &err) != 0) {
        return 10;
    }
    int linger_ms = 5000;
    zmq_setsockopt(socket, ZMQ_LINGER, &linger_ms, sizeof linger_ms);
    snprintf(endpoint, sizeof endpoint, "tcp://127.0.0.1:%s", argv[3]);
    zmq_connect(socket, endpoint);
    snprintf((char *)frame.head.cluster_id.bytes, CLUSTER_ID_BYTES, "%s", argv[4]);
    frame.head.from = strtoull(argv[2], NULL, 10);
    frame.head.to = 1;
    frame.head.from_incarnation = 77;
    frame.head.kind = FRAME_REQUEST_VOTE;
    frame.u.message.request_vote = (struct raft_request_vote){
        .version = 2, .term = 1000, .candidate_id = frame.head.from, .disrupt_leader = true};
    send_frame(socket, &frame);
    zmq_close(socket);
    zmq_ctx_term(context);
    return 0;
}
