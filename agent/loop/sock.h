/* Opening ZeroMQ sockets the one way this product uses them: CURVE with ZAP, bounded queues and
 * messages, heartbeats (not on the unix socket), no lingering, IPv6 (figures: raft-zmq.md
 * section 1).
 *
 * Before any of these is called, the ZAP thread must have bound in the same context (zap.h). */
#ifndef JURY_LOOP_SOCK_H
#define JURY_LOOP_SOCK_H

#include <stdint.h>

#include "common/base/err.h"

#define CURVE_KEY_BYTES 32

struct curve_keys {
    uint8_t public_key[CURVE_KEY_BYTES];
    uint8_t secret_key[CURVE_KEY_BYTES];
};

/* ZAP domains; see zap.h for who may come in through each. */
#define SOCK_DOMAIN_MESH "mesh"
#define SOCK_DOMAIN_RAFT "raft"
#define SOCK_DOMAIN_LOCAL "local"

struct sock_options {
    void *context;
    const char *domain;
    const struct curve_keys *keys; /* borrowed; own pair. NULL with SOCK_DOMAIN_LOCAL only */
    int64_t message_bytes_max;     /* of one frame; a larger one ends the connection */
    int queue_messages;            /* send and receive high-water mark */
};

/* A ROUTER that answers only to whom it knows (ROUTER_MANDATORY, no handover).
 * Errors: ERR_LIMIT (descriptors, sockets), ERR_INTERNAL. */
int sock_router_open(const struct sock_options *options, void **ret_socket, struct errmsg *err);

/* A DEALER to the owner of `server_key`. Queues nothing while it is not connected. */
int sock_dealer_open(const struct sock_options *options, const uint8_t server_key[CURVE_KEY_BYTES],
                     void **ret_socket, struct errmsg *err);

/* endpoint: "tcp://192.0.2.1:7400", "tcp://[::1]:*", "ipc:///run/jury/agent.sock"; numeric only.
 * what: for the sentence ("mesh address").
 * Errors: ERR_CONFIG with a sentence (port in use, address not here, not permitted). */
int sock_bind(void *socket, const char *what, const char *endpoint, struct errmsg *err);

#endif
