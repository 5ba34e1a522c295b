/* Who may connect: the ZAP handler (RFC 27 of ZeroMQ) for the sockets of several contexts.
 *
 * One thread answers for all of them. It maps a CURVE public key to "role:id", which libzmq then
 * attaches to each message of that connection as User-Id; that, and nothing in a message, says who
 * a peer is (zmq_hub.h, zmq_frame_user_id). Its table is immutable and comes by mailbox; the thread
 * waits for nothing else. A key that is not known yet is answered with 300, so that the peer keeps
 * trying; only a revoked one with 400, after which libzmq never tries again (raft-zmq.md rule 29).
 *
 * Asked at the handshake only: whoever acts on a message checks zap_table_admits against the newest
 * table as well (rule 30), by the key that the handshake was made with (zmq_frame_key): a name may
 * have got another key meanwhile.
 *
 * Domains: "mesh" lets in nodes and access keys, "raft" nodes only, both with CURVE; "local" (the
 * unix socket, guarded by its file mode) lets everybody in as ZAP_LOCAL_USER. */
#ifndef JURY_LOOP_ZAP_H
#define JURY_LOOP_ZAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/loop/mailbox.h"
#include "agent/loop/ring.h"
#include "agent/loop/sock.h"
#include "agent/loop/wake.h"
#include "common/base/err.h"

#define ZAP_USER_ID_BYTES 192
#define ZAP_LOCAL_USER "admin:local"
#define ZAP_CONTEXTS 4

enum zap_role {
    ZAP_ROLE_NONE = 0,
    ZAP_ROLE_NODE,
    ZAP_ROLE_ADMIN,
    ZAP_ROLE_OPERATOR,
    ZAP_ROLE_VIEWER
};

/* What a User-Id says. */
struct zap_identity {
    enum zap_role role;
    uint64_t node_id;             /* ZAP_ROLE_NODE only; else 0 */
    char name[ZAP_USER_ID_BYTES]; /* of the access key; "3" for node 3 */
};

/* False (and ZAP_ROLE_NONE) for anything that zap_user_id did not write. */
bool zap_identity_parse(const char *user_id, struct zap_identity *ret_identity);
/* "node:3", "admin:alice". name: at most LIMIT_NAME_BYTES. Returns user_id. */
char *zap_user_id(enum zap_role role, const char *name, char user_id[ZAP_USER_ID_BYTES]);
char *zap_node_user_id(uint64_t node_id, char user_id[ZAP_USER_ID_BYTES]);

/* Of the reply's metadata: the public key in hex, and so of each message's (zmq_frame_key). */
#define ZAP_KEY_PROPERTY "Key"

struct zap_key {
    uint8_t public_key[CURVE_KEY_BYTES];
    char user_id[ZAP_USER_ID_BYTES];
    bool is_revoked;
};

/* Immutable and counted; references may be dropped on any thread. */
struct zap_table;
/* keys: copied. The first of two equal public keys wins. NULL: no memory. */
struct zap_table *zap_table_new(const struct zap_key keys[], size_t n_keys);
struct zap_table *zap_table_ref(struct zap_table *table);
void zap_table_unref(void *table);
/* NULL for a key that is not in the table. */
const struct zap_key *zap_table_find(const struct zap_table *table,
                                     const uint8_t public_key[CURVE_KEY_BYTES]);
/* This key is not revoked and still carries that User-Id. */
bool zap_table_admits(const struct zap_table *table, const uint8_t public_key[CURVE_KEY_BYTES],
                      const char *user_id);

/* X(name, word of the counter and the log) */
#define ZAP_REFUSALS(X)                                                               \
    X(ZAP_REFUSED_UNKNOWN_KEY, "unknown_key") /* it belongs to nobody here */         \
    X(ZAP_REFUSED_REVOKED_KEY, "revoked_key") /* revoked, or has expired */           \
    X(ZAP_REFUSED_ROLE, "wrong_role")         /* not a node's key */                  \
    X(ZAP_REFUSED_MECHANISM, "no_key")        /* it did not use CURVE */              \
    X(ZAP_REFUSED_DOMAIN, "unknown_domain")   /* through a socket without a domain */ \
    X(ZAP_REFUSED_MALFORMED, "malformed")

enum zap_refusal_reason {
    ZAP_REFUSED_NONE = 0,
#define ZAP_ENUM(name, word) name,
    ZAP_REFUSALS(ZAP_ENUM)
#undef ZAP_ENUM
    ZAP_REFUSED_COUNT
};
const char *zap_refusal_word(enum zap_refusal_reason reason);

/* One refused attempt, for the counters and the log of the loop that listens. */
struct zap_refusal {
    uint8_t reason; /* enum zap_refusal_reason */
    char domain[16];
    char address[48]; /* numeric, of the peer */
    uint8_t public_key[CURVE_KEY_BYTES];
};

struct zap_options {
    void *contexts[ZAP_CONTEXTS];
    size_t n_contexts;
    struct wake *report_wake; /* kept; signaled after a refusal; NULL = nobody listens */
};

struct zap;
/* Binds in every context, then answers on its own thread with an empty table: everybody gets 300.
 * Call before any socket with a domain is opened. Errors: ERR_INTERNAL with a sentence. */
int zap_start(const struct zap_options *options, struct zap **ret_zap, struct errmsg *err);
/* All other sockets of the contexts must be closed before; the contexts may be terminated after. */
void zap_stop(struct zap *zap);

/* Any thread. table: one reference, taken. */
void zap_set_table(struct zap *zap, struct zap_table *table);
/* The one thread of report_wake: the oldest refusal not seen yet; false = none. */
bool zap_next_refusal(struct zap *zap, struct zap_refusal *ret_refusal);
/* Any thread: all refusals of one reason, also those that the report had no room for. */
uint64_t zap_n_refused(const struct zap *zap, enum zap_refusal_reason reason);
uint64_t zap_n_accepted(const struct zap *zap);

#endif
