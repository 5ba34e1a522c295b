#include "agent/loop/sock.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include <zmq.h>

#include "common/base/plant.h"

/* In the header only with the draft API, in the library always. */
#ifndef ZMQ_ZAP_ENFORCE_DOMAIN
#define ZMQ_ZAP_ENFORCE_DOMAIN 93
#endif

#define HEARTBEAT_MS 500
#define HEARTBEAT_TIMEOUT_MS 1500 /* finds half-open connections; a TTL above 65 s misbehaves */
#define HANDSHAKE_MS 1000         /* the library's 30 s would hold descriptors for scanners */
#define CONNECT_MS 1000
#define RECONNECT_MS 100
#define RECONNECT_MAX_MS 2000
#define BACKLOG_CONNECTIONS 128

static int set_int(void *socket, int option, int value)
{
    return zmq_setsockopt(socket, option, &value, sizeof value);
}

static int open_error(struct errmsg *err)
{
    int errnum = errno;

    if (errnum == EMFILE || errnum == ENFILE) {
        return errmsg_set(err, ERR_LIMIT,
                          "no more sockets: raise the limit of open files (ulimit -n)");
    }
    return errmsg_set(err, ERR_INTERNAL, "cannot set up a ZeroMQ socket: %s", zmq_strerror(errnum));
}

/* The kernel says of a unix socket when its other end is gone, and only this machine's users can
 * open one: there a limit finds nobody but a caller or an agent that waits for a processor, and
 * takes the answer that is on its way. */
static bool has_time_limits(const struct sock_options *options)
{
    return strcmp(options->domain, SOCK_DOMAIN_LOCAL) != 0 || plant_is("local-impatient");
}

static int set_common(void *socket, const struct sock_options *options)
{
    int rc = 0;

    rc |= set_int(socket, ZMQ_LINGER, 0); /* else the context's end would hang */
    rc |= set_int(socket, ZMQ_SNDHWM, options->queue_messages);
    rc |= set_int(socket, ZMQ_RCVHWM, options->queue_messages);
    rc |= zmq_setsockopt(socket, ZMQ_MAXMSGSIZE, &options->message_bytes_max,
                         sizeof options->message_bytes_max);
    rc |= set_int(socket, ZMQ_IPV6, 1);
    if (has_time_limits(options)) {
        rc |= set_int(socket, ZMQ_HANDSHAKE_IVL, HANDSHAKE_MS);
        rc |= set_int(socket, ZMQ_HEARTBEAT_IVL, HEARTBEAT_MS);
        rc |= set_int(socket, ZMQ_HEARTBEAT_TIMEOUT, HEARTBEAT_TIMEOUT_MS);
        rc |= set_int(socket, ZMQ_HEARTBEAT_TTL, HEARTBEAT_TIMEOUT_MS);
    }
    return rc;
}

int sock_router_open(const struct sock_options *options, void **ret_socket, struct errmsg *err)
{
    bool is_local = strcmp(options->domain, SOCK_DOMAIN_LOCAL) == 0;
    assert(is_local == (options->keys == NULL));
    void *socket = zmq_socket(options->context, ZMQ_ROUTER);

    if (socket == NULL) {
        return open_error(err);
    }
    int rc = set_common(socket, options);
    rc |= set_int(socket, ZMQ_ROUTER_MANDATORY, 1);
    rc |= set_int(socket, ZMQ_BACKLOG, BACKLOG_CONNECTIONS);
    rc |= zmq_setsockopt(socket, ZMQ_ZAP_DOMAIN, options->domain, strlen(options->domain));
    /* With it, a missing ZAP handler refuses everybody; without it, it lets everybody in. */
    rc |= set_int(socket, ZMQ_ZAP_ENFORCE_DOMAIN, 1);
    if (!is_local) {
        rc |= set_int(socket, ZMQ_CURVE_SERVER, 1);
        rc |=
            zmq_setsockopt(socket, ZMQ_CURVE_SECRETKEY, options->keys->secret_key, CURVE_KEY_BYTES);
    }
    if (rc != 0) {
        rc = open_error(err);
        zmq_close(socket);
        return rc;
    }
    *ret_socket = socket;
    return 0;
}

int sock_dealer_open(const struct sock_options *options, const uint8_t server_key[CURVE_KEY_BYTES],
                     void **ret_socket, struct errmsg *err)
{
    assert(options->keys != NULL);
    void *socket = zmq_socket(options->context, ZMQ_DEALER);

    if (socket == NULL) {
        return open_error(err);
    }
    int rc = set_common(socket, options);
    rc |= set_int(socket, ZMQ_IMMEDIATE, 1);
    rc |= set_int(socket, ZMQ_CONNECT_TIMEOUT, CONNECT_MS);
    rc |= set_int(socket, ZMQ_RECONNECT_IVL, RECONNECT_MS);
    rc |= set_int(socket, ZMQ_RECONNECT_IVL_MAX, RECONNECT_MAX_MS);
    rc |= zmq_setsockopt(socket, ZMQ_CURVE_SERVERKEY, server_key, CURVE_KEY_BYTES);
    rc |= zmq_setsockopt(socket, ZMQ_CURVE_PUBLICKEY, options->keys->public_key, CURVE_KEY_BYTES);
    rc |= zmq_setsockopt(socket, ZMQ_CURVE_SECRETKEY, options->keys->secret_key, CURVE_KEY_BYTES);
    if (rc != 0) {
        rc = open_error(err);
        zmq_close(socket);
        return rc;
    }
    *ret_socket = socket;
    return 0;
}

int sock_bind(void *socket, const char *what, const char *endpoint, struct errmsg *err)
{
    if (zmq_bind(socket, endpoint) == 0) {
        return 0;
    }
    int errnum = errno;
    switch (errnum) {
    case EADDRINUSE:
        return errmsg_set(err, ERR_CONFIG,
                          "%s %s is in use by another process: stop it or choose another port",
                          what, endpoint);
    case EADDRNOTAVAIL:
    case ENODEV:
        return errmsg_set(err, ERR_CONFIG, "%s %s: this machine does not have that address", what,
                          endpoint);
    case EACCES:
    case EPERM:
        return errmsg_set(err, ERR_CONFIG, "%s %s: not permitted to listen there", what, endpoint);
    default:
        return errmsg_set(err, ERR_CONFIG, "%s %s: cannot listen: %s", what, endpoint,
                          zmq_strerror(errnum));
    }
}
