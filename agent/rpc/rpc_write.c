/* Writes: on the leader a command that is proposed, elsewhere a call that is forwarded. */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/rpc/rpc_internal.h"
#include "common/base/plant.h"
#include "common/base/str.h"
#include "common/base/units.h"
#include "common/model/feature_level.h"
#include "common/wire/unpack.h"
#include "jury/v1/config.pb-c.h"

static uint64_t own_node_id(struct rpc_server *server)
{
    struct rpc_node node = {0};

    server->hooks.node(server->hooks.user, &node);
    return node.node_id;
}

/* Put the call back to wait for a leader; it is tried again soon, and when the leader changes. */
static void wait_leader(struct rpc_server *server, struct call *call, const char *reason)
{
    if (call->stage != CALL_LEADER) {
        call->stage_ns = server->now_ns + RPC_LEADER_WAIT_NS;
    }
    call->stage = CALL_LEADER;
    call->retry_ns = server->now_ns + RPC_RETRY_NS;
    if (reason != NULL) {
        errmsg_set(&call->reason, 0, "%s", reason);
    }
}

/* --- on the leader --- */

/* The changes that a call asks for. ret_command: zero, command_close. */
static int read_command(struct call *call, struct command *ret_command, struct errmsg *err)
{
    struct wire_arena arena;
    ProtobufCMessage *request;
    uint32_t index;

    wire_arena_init(&arena, RPC_ANSWER_BUDGET_BYTES);
    int rc = rpc_call_request(call, &arena, &request, err);
    if (rc == 0) {
        rc = call->handler->command(request, ret_command, &index, err);
    }
    wire_arena_close(&arena);
    return rc;
}

/* The command of a call, encoded. *ret_data: given, free(). */
static int encode_call(struct rpc_server *server, struct call *call, uint8_t **ret_data,
                       size_t *ret_n_bytes, struct errmsg *err)
{
    struct command command = {0};
    int rc = read_command(call, &command, err);

    if (rc == 0) {
        rc = rpc_check_voters(server, &command, err);
    }
    if (rc != 0) {
        command_close(&command);
        return rc;
    }
    command.request_id = call->request_id;
    if (plant_is("rpc-new-id-on-retry")) {
        uint64_t other = rpc_new_cookie(server);

        memcpy(command.request_id.bytes, &other, sizeof other);
    }
    command.wall_ms = server->hooks.wall_ms(server->hooks.user);
    str_copy(command.actor, sizeof command.actor, call->identity.name);
    rc = command_encode(&command, ret_data, ret_n_bytes, err);
    command_close(&command);
    return rc;
}

static void propose(struct rpc_server *server, struct call *call)
{
    struct errmsg err = {{0}};
    uint8_t *data = NULL;
    size_t n_bytes = 0;
    int rc = encode_call(server, call, &data, &n_bytes, &err);

    if (rc != 0) {
        rpc_call_refuse(server, call, rc, &err);
        return;
    }
    call->cookie = rpc_new_cookie(server);
    rc = server->hooks.propose(server->hooks.user, call->cookie, data, n_bytes);
    free(data);
    if (rc == ERR_NOTREADY) {
        wait_leader(server, call, "the store is not ready");
    } else if (rc != 0) {
        errmsg_set(&err, rc, "the store takes no more writes for the moment: %s", err_text(rc));
        rpc_call_refuse(server, call, rc, &err);
    } else {
        call->stage = CALL_PROPOSAL;
        call->stage_ns = 0;
    }
}

/* --- elsewhere --- */

/* An older leader has no word for the field, and could only say that it does not understand. */
static int check_leader_level(const struct rpc_server *server, struct call *call,
                              uint64_t leader_id, struct errmsg *err)
{
    struct rpc_peer leader = {.age_ns = RPC_NEVER_NS, .raft_age_ns = RPC_NEVER_NS};
    struct command command = {0};

    server->hooks.peer(server->hooks.user, leader_id, &leader);
    if (leader.feature_level == 0 || leader.feature_level >= feature_level() ||
        plant_is("level-unchecked")) {
        return 0;
    }
    int rc = read_command(call, &command, err);
    for (uint32_t i = 0; rc == 0 && i < command.n_changes; i++) {
        const struct change *change = &command.changes[i];
        const char *field = NULL;

        if (change->kind == CHANGE_PUT_GROUP &&
            feature_level_of_group(change->u.group, &field) > leader.feature_level) {
            rc = errmsg_set(err, ERR_NOTREADY,
                            "server group \"%s\": spec.%s needs feature level %u and node %" PRIu64
                            ", which leads, runs %u: upgrade every node first",
                            change->u.group->name, field,
                            feature_level_of_group(change->u.group, &field), leader_id,
                            leader.feature_level);
        }
    }
    command_close(&command);
    return rc;
}

static void forward(struct rpc_server *server, struct call *call, uint64_t leader_id)
{
    struct rpc_frames frames = {
        .envelope = call->bytes,
        .n_envelope_bytes = call->n_envelope_bytes,
        .payload = call->bytes + call->n_envelope_bytes,
        .n_payload_bytes = call->n_payload_bytes,
    };

    if (call->identity.caller == RPC_CALLER_PEER && !plant_is("rpc-forward-loop")) {
        struct errmsg err;

        errmsg_set(&err, ERR_NOTLEADER, "this node does not lead; node %" PRIu64 " does",
                   leader_id);
        rpc_call_refuse(server, call, ERR_NOTLEADER, &err);
        return;
    }
    if (call->stage != CALL_FORWARD) {
        struct errmsg err = {{0}};
        int refusal = check_leader_level(server, call, leader_id, &err);

        if (refusal != 0) {
            rpc_call_refuse(server, call, refusal, &err);
            return;
        }
    }
    /* Asked again under the same id: a leader may be slow and not deaf, and then its answer to any
     * asking is one. */
    if (call->stage != CALL_FORWARD || call->leader_id != leader_id) {
        call->cookie = rpc_new_cookie(server);
    }
    int rc = server->hooks.forward(server->hooks.user, call->cookie, leader_id, &call->identity,
                                   &frames);
    if (rc != 0) {
        char reason[96];

        snprintf(reason, sizeof reason, "node %" PRIu64 " leads and cannot be reached from here",
                 leader_id);
        wait_leader(server, call, reason);
        return;
    }
    server->counters.forwarded++;
    call->was_given = true;
    call->stage = CALL_FORWARD;
    call->stage_ns = server->now_ns + RPC_FORWARD_AGAIN_NS;
    call->leader_id = leader_id;
}

/* Try: propose here, forward, or wait for a leader. */
static void dispatch(struct rpc_server *server, struct call *call, const struct rpc_store *store)
{
    if (store->role == RPC_ROLE_LEADER && store->is_ready) {
        propose(server, call);
    } else if (store->leader_id != 0 && store->leader_id != own_node_id(server)) {
        forward(server, call, store->leader_id);
    } else if (call->identity.caller == RPC_CALLER_PEER && store->role != RPC_ROLE_LEADER) {
        struct errmsg err;

        errmsg_set(&err, ERR_NOTLEADER, "this node does not lead and knows nobody who does");
        rpc_call_refuse(server, call, ERR_NOTLEADER, &err);
    } else {
        wait_leader(server, call, NULL);
    }
}

/* --- no leader --- */

static size_t add_peer(struct rpc_server *server, uint64_t node_id, size_t used,
                       struct errmsg *message)
{
    struct rpc_peer peer = {.age_ns = RPC_NEVER_NS, .raft_age_ns = RPC_NEVER_NS};
    size_t room = sizeof message->text - used;
    int n;

    server->hooks.peer(server->hooks.user, node_id, &peer);
    uint64_t age_ns = peer.raft_age_ns < peer.age_ns ? peer.raft_age_ns : peer.age_ns;
    if (age_ns == RPC_NEVER_NS) {
        n = snprintf(message->text + used, room, ", node %" PRIu64 " was never heard", node_id);
    } else {
        char age[32];

        n = snprintf(message->text + used, room, ", node %" PRIu64 " was heard %s ago", node_id,
                     units_format_span_us(age_ns / NS_PER_US, age, sizeof age));
    }
    return n < 0 || (size_t)n >= room ? sizeof message->text - 1 : used + (size_t)n;
}

/* A write that a leader had may be in the log of the next one: nobody may be told that nothing
 * happens. */
static const char *what_becomes(const struct call *call)
{
    if (call->method->kind != METHOD_WRITE) {
        return "the newest committed state cannot be known";
    }
    return call->was_given && !plant_is("rpc-given-is-nothing")
               ? "the last leader had this change, and it may still be made: ask again with the "
                 "same "
                 "request id, or look"
               : "nothing was changed";
}

void rpc_refuse_no_leader(struct rpc_server *server, struct call *call)
{
    const struct catalog *catalog = rpc_server_catalog(server);
    struct rpc_store store = {.leader_age_ns = RPC_NEVER_NS};
    uint64_t own_id = own_node_id(server);
    struct errmsg message;

    server->hooks.store(server->hooks.user, &store);
    errmsg_set(&message, ERR_NOLEADER, "no leader: %s; this is node %" PRIu64, what_becomes(call),
               own_id);
    size_t used = strlen(message.text);
    for (size_t i = 0; catalog != NULL && i < catalog_n_nodes(catalog); i++) {
        uint64_t node_id = catalog_node_at(catalog, i)->spec.node_id;

        if (node_id != own_id) {
            used = add_peer(server, node_id, used, &message);
        }
    }
    const char *why = store.message.text[0] != '\0' ? store.message.text : call->reason.text;
    if (why[0] != '\0') {
        snprintf(message.text + used, sizeof message.text - used, "; %s", why);
    }
    rpc_call_refuse(server, call, ERR_NOLEADER, &message);
}

/* --- begin and go on --- */

/* Apply with dry_run changes nothing: it is a read that ends in a check. */
static bool is_dry_run(const struct call *call, const ProtobufCMessage *request)
{
    return strcmp(call->method->name, "jury.v1.ConfigService/Apply") == 0 &&
           ((const Jury__V1__ApplyRequest *)request)->dry_run;
}

void rpc_write_begin(struct rpc_server *server, struct call *call)
{
    struct wire_arena arena;
    struct command command = {0};
    struct rpc_store store = {.leader_age_ns = RPC_NEVER_NS};
    struct errmsg err = {{0}};
    ProtobufCMessage *request;
    uint32_t index = UINT32_MAX;

    /* What is wrong with it is told here, without a leader. */
    wire_arena_init(&arena, RPC_ANSWER_BUDGET_BYTES);
    int rc = rpc_call_request(call, &arena, &request, &err);
    if (rc == 0) {
        rc = call->handler->command(request, &command, &index, &err);
        call->is_dry_run = rc == 0 && is_dry_run(call, request);
    }
    command_close(&command);
    wire_arena_close(&arena);
    if (rc != 0) {
        rpc_call_refuse_at(server, call, rc, index, &err);
        return;
    }
    if (call->is_dry_run) {
        rpc_read_begin(server, call);
        return;
    }
    server->hooks.store(server->hooks.user, &store);
    dispatch(server, call, &store);
}

void rpc_write_poll(struct rpc_server *server, struct call *call, const struct rpc_store *store)
{
    bool has_leader = store->leader_id != 0 || store->role == RPC_ROLE_LEADER;

    if (call->stage == CALL_FORWARD) {
        /* The one that was asked leads no more: its answer may never come. */
        if (store->leader_id != call->leader_id) {
            server->counters.asked_again++;
            wait_leader(server, call, NULL);
        } else if (server->now_ns >= call->stage_ns) {
            server->counters.asked_again++;
            dispatch(server, call, store);
        }
        return;
    }
    assert(call->stage == CALL_LEADER);
    if (server->now_ns >= call->stage_ns && (!has_leader || call->reason.text[0] != '\0')) {
        rpc_refuse_no_leader(server, call);
    } else if (server->now_ns >= call->retry_ns) {
        call->retry_ns = server->now_ns + RPC_RETRY_NS;
        if (has_leader) {
            dispatch(server, call, store);
        }
    }
}

static void answer_applied(struct rpc_server *server, struct call *call,
                           const struct apply_answer *answer)
{
    struct wire_arena arena;
    struct errmsg err = {{0}};
    ProtobufCMessage *request;

    if (answer->err != 0) {
        rpc_call_refuse_at(server, call, answer->err, answer->change_index, &answer->message);
        return;
    }
    wire_arena_init(&arena, 2 * RPC_ANSWER_BUDGET_BYTES);
    int rc = rpc_call_request(call, &arena, &request, &err);
    if (rc != 0) {
        rpc_call_refuse(server, call, rc, &err);
    } else {
        rpc_call_answer(server, call, &arena, call->handler->answer_write(&arena, request, answer),
                        answer->revision);
    }
    wire_arena_close(&arena);
}

static void refuse_outcome(struct rpc_server *server, struct call *call, int code,
                           const struct rpc_done *done)
{
    struct errmsg err;

    errmsg_set(&err, code, "%s",
               done->message != NULL && done->message[0] != '\0' ? done->message : err_text(code));
    rpc_call_refuse(server, call, code, &err);
}

void rpc_write_done(struct rpc_server *server, struct call *call, const struct rpc_done *done)
{
    switch ((enum rpc_outcome)done->outcome) {
    case RPC_DONE:
        assert(done->answer != NULL);
        answer_applied(server, call, done->answer);
        break;
    case RPC_UNKNOWN:
        /* It may be in the log of the next leader: asking again under its id tells, and does not
         * apply it twice. */
        server->counters.asked_again++;
        call->was_given = true;
        wait_leader(server, call, NULL);
        break;
    case RPC_NOT_LEADER:
        wait_leader(server, call, NULL);
        break;
    case RPC_NOT_READY:
        wait_leader(server, call, done->message);
        break;
    case RPC_DISK_FULL:
        refuse_outcome(server, call, ERR_FULL, done);
        break;
    case RPC_BUSY:
        refuse_outcome(server, call, ERR_BUSY, done);
        break;
    case RPC_REFUSED:
    case RPC_EXISTS:
    case RPC_OUTCOME_NONE:
        refuse_outcome(server, call, ERR_INTERNAL, done);
        break;
    }
}

/* The status of another node's answer; false when it cannot be read. */
static bool read_status(const struct rpc_frames *frames, int *ret_code, struct errmsg *ret_message)
{
    static const struct wire_limits limits = {.bytes_max = 4 * RPC_ENVELOPE_BYTES_MAX,
                                              .elements_max = 1024};
    struct wire_arena arena;
    ProtobufCMessage *message;

    wire_arena_init(&arena, wire_budget(&limits));
    int rc = wire_unpack(&jury__v1__response__descriptor, &limits, frames->envelope,
                         frames->n_envelope_bytes, &arena, &message, NULL);
    const Jury__V1__Response *response = rc == 0 ? (const Jury__V1__Response *)message : NULL;
    bool is_fine = response != NULL && response->status != NULL;
    if (is_fine) {
        *ret_code = response->status->code == JURY__V1__CODE__CODE_OK
                        ? 0
                        : err_from_reason(response->status->reason);
        errmsg_set(ret_message, 0, "%s", response->status->message);
    }
    wire_arena_close(&arena);
    return is_fine;
}

void rpc_write_answered(struct rpc_server *server, struct call *call,
                        const struct rpc_frames *frames)
{
    struct errmsg message = {{0}};
    int code = 0;

    if (!read_status(frames, &code, &message)) {
        wait_leader(server, call, "the leader's answer cannot be read");
    } else if (code == ERR_NOTLEADER || code == ERR_NOLEADER) {
        wait_leader(server, call, message.text);
    } else {
        rpc_call_relay(server, call, frames);
    }
}
