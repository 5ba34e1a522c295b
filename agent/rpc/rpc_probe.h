/* What the files of a probe on demand share: the call with its parts. rpc_probe_ask.c makes it of a
 * request, rpc_probe.c has the parts probed, here or on other nodes, and rpc_probe_answer.c tells
 * what came of them. Health thread. */
#ifndef JURY_AGENT_RPC_RPC_PROBE_H
#define JURY_AGENT_RPC_RPC_PROBE_H

#include "agent/core/probe_trace.h"
#include "agent/rpc/rpc_internal.h"
#include "jury/v1/probe.pb-c.h"

/* What a part may take beyond the timeout of its probe: two ways through the mesh, and a connection
 * that is closed politely. */
#define PROBE_PART_MARGIN_NS (1000 * NS_PER_MS)
/* A forwarded call ends so much before this one, to leave time for the answer. */
#define PROBE_FORWARD_MARGIN_NS (100 * NS_PER_MS)

struct probe_part {
    uint64_t node_id;
    uint64_t cookie;             /* that its end comes with; 0 = it has come */
    int code;                    /* why it did not probe, an ERR_*; 0 = it did */
    struct errmsg message;       /* of code */
    struct probe_report *report; /* this node's own; NULL: another's */
    uint8_t *payload;            /* another's answer */
    size_t n_payload_bytes;
};

struct probe_call {
    char group[LIMIT_NAME_BYTES + 1];
    struct endpoint at;
    char check[LIMIT_CHECK_NAME_BYTES + 1]; /* of several; else "" */
    struct probe_target target;
    struct health_check probed; /* what the target points to */
    bool is_check_off;
    bool is_in_maintenance;
    size_t n_parts;
    struct probe_part parts[LIMIT_NODES];
};

/* The part ends without a probe. message: borrowed. */
void probe_part_settle(struct probe_part *part, int code, const char *message);

uint64_t probe_own_node_id(struct rpc_server *server);

/* Fill in a zeroed `probe` with what is asked for: the target, and the parts by rising node id.
 * Errors: ERR_INVALID, ERR_NOTFOUND, ERR_NOTREADY, ERR_LIMIT. */
int probe_call_read(struct rpc_server *server, const struct call *call,
                    const Jury__V1__ProbeBackendRequest *request, struct probe_call *probe,
                    struct errmsg *err);

/* Answer a call all parts of which have come to their end. */
void probe_call_answer(struct rpc_server *server, struct call *call);

#endif
