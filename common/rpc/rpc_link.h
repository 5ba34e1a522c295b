/* One connection of the client: a DEALER, its monitor, and the exchange of one call.
 * Private to common/rpc. */
#ifndef JURY_RPC_LINK_H
#define JURY_RPC_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <zmq.h>

#include "common/base/err.h"
#include "common/model/cluster.h"
#include "common/rpc/key_file.h"

/* How far an exchange came. */
enum link_end {
    LINK_ANSWERED = 0,
    LINK_REFUSED,      /* nobody listens there */
    LINK_NO_HANDSHAKE, /* somebody does, and it is no agent or too slow */
    LINK_DENIED, /* the handshake was refused: one of the keys is not right; never without keys */
    LINK_LOST,   /* the connection broke: before the handshake, or with the request sent */
    LINK_SILENT  /* the request was sent and no answer came in time */
};

struct rpc_link {
    void *socket;
    void *monitor;
    bool is_ready; /* the handshake is done */
    bool was_connected;
    bool has_keys; /* a connection that is closed may mean that one of them is not right */
};

struct link_frames {
    const uint8_t *envelope;
    size_t n_envelope_bytes;
    const uint8_t *payload;
    size_t n_payload_bytes;
};

/* The two frames of an answer; close both messages (zmq_msg_close) after LINK_ANSWERED. */
struct link_answer {
    zmq_msg_t envelope;
    zmq_msg_t payload;
};

/* Where to, and as whom. */
struct link_target {
    const char *address;
    const struct public_key *server_key; /* NULL for ipc */
    const struct key_pair *key;
};
/* Begin to connect. Errors: ERR_USAGE (an address that ZeroMQ does not take), ERR_IO (no more
 * sockets). */
int rpc_link_open(struct rpc_link *link, void *context, const struct link_target *to,
                  struct errmsg *err);
/* Allowed on a zeroed one. */
void rpc_link_close(struct rpc_link *link);

/* Wait for the handshake, until the monotonic time. LINK_ANSWERED: ready. */
enum link_end rpc_link_wait_ready(struct rpc_link *link, uint64_t until_ns);
/* Send. False when the queue is full or the connection went. */
bool rpc_link_send(struct rpc_link *link, const struct link_frames *frames);
/* The next answer, until the monotonic time. Messages of another form are dropped. */
enum link_end rpc_link_receive(struct rpc_link *link, uint64_t until_ns,
                               struct link_answer *ret_answer);

#endif
