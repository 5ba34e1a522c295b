/* One lane to one peer: a DEALER that is kept connected for as long as the peer is a member.
 *
 * Resolves names off the loop and again when a connection is lost, takes the peer's endpoints in
 * turn while none answers, and revives libzmq after a refusal, which it would take as final
 * (raft-zmq.md rule 29). It never gives up: a peer leaves the dial list only by dial_close, which
 * the owner calls for a membership change and nothing else (A48).
 *
 * Used by the vote mesh and by the Raft mesh. Everything on the hub's thread. */
#ifndef JURY_LOOP_DIAL_H
#define JURY_LOOP_DIAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/loop/resolver.h"
#include "agent/loop/sock.h"
#include "agent/loop/zmq_hub.h"
#include "agent/loop/zmq_monitor.h"
#include "common/base/err.h"

#define DIAL_PLACES 4

struct dial_place {
    char host[RESOLVER_HOST_BYTES]; /* name or numeric address without brackets */
    uint16_t port;
};

struct dial_peer {
    uint64_t peer_id;
    uint8_t server_key[CURVE_KEY_BYTES];
    struct dial_place places[DIAL_PLACES];
    size_t n_places; /* at least 1 */
};

struct dial;

struct dial_hooks {
    void *user;
    /* A message from the peer (answers; a ROUTER sends back on the same connection). Its User-Id is
     * empty: the peer's key was checked as the server's. */
    void (*message)(void *user, struct dial *dial, zmq_msg_t frames[], size_t n_frames);
    /* The queue has room again after dial_want_write, or the connection is new. */
    void (*writable)(void *user, struct dial *dial);
    /* The connection came up, or went down with the reason. Never inside a call of this header. */
    void (*changed)(void *user, struct dial *dial, bool is_up, const struct zmq_event *event);
};

/* Shared by all dials of one lane; kept by each. */
struct dial_lane {
    struct sock_options sock; /* keys: kept */
    struct zmq_hub *hub;
    struct resolver *resolver;               /* NULL: numeric hosts only */
    struct resolver_client *resolver_client; /* set by dial_lane_start */
    struct dial *first;
    uint64_t next_cookie;
    struct dial_hooks hooks;
};

/* Opens the lane's resolver client. Errors: ERR_NOMEM, ERR_LIMIT. */
int dial_lane_start(struct dial_lane *lane);
/* Closes every dial and then the lane; closed(user) when all memory has been let go. */
void dial_lane_close(struct dial_lane *lane, void (*closed)(void *user), void *user);

/* peer: copied. The first attempt is made at once. Errors: ERR_NOMEM, ERR_LIMIT, ERR_INTERNAL. */
int dial_open(struct dial_lane *lane, const struct dial_peer *peer, struct dial **ret_dial,
              struct errmsg *err);
/* Frees itself; no hook runs after this call. */
void dial_close(struct dial *dial);

/* Other endpoints of the same peer; nothing happens if they are the same. Another key is another
 * dial. */
void dial_set_places(struct dial *dial, const struct dial_peer *peer);

uint64_t dial_peer_id(const struct dial *dial);
const uint8_t *dial_server_key(const struct dial *dial);
bool dial_is_up(const struct dial *dial);
/* Attempts that failed since the connection was last up. */
uint32_t dial_n_failures(const struct dial *dial);
/* A name of the peer has no address at the moment. */
bool dial_is_unresolved(const struct dial *dial);
/* "10.0.0.1:7400" or "" while no address is known. */
const char *dial_address(const struct dial *dial);
void *dial_user(const struct dial *dial);
void dial_set_user(struct dial *dial, void *user);

/* As zmq_watch_send; ERR_BUSY while the connection is down. */
int dial_send(struct dial *dial, const struct zmq_part parts[], size_t n_parts);
void dial_want_write(struct dial *dial);

#endif
