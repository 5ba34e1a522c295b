/* The server's inside: its calls, their stages, and the table of handlers. Private to agent/rpc. */
#ifndef JURY_RPC_INTERNAL_H
#define JURY_RPC_INTERNAL_H

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/rpc/rpc_server.h"
#include "common/base/prng.h"
#include "common/wire/arena.h"
#include "common/wire/method.h"
#include "jury/v1/envelope.pb-c.h"
#include "jury/v1/event.pb-c.h"
#include "jury/v1/group.pb-c.h"
#include "jury/v1/verdict.pb-c.h"

#define RPC_API_VERSION 1
#define RPC_DEADLINE_MS_MAX 60000
#define RPC_ENVELOPE_BYTES_MAX 4096
#define RPC_KEPT_BYTES_MAX ((size_t)16 * 1024 * 1024) /* frames of all calls under way */
#define RPC_RETRY_NS (20 * NS_PER_MS)           /* between two tries that both could not go on */
#define RPC_FORWARD_AGAIN_NS (3000 * NS_PER_MS) /* an answer that may be lost: ask again */
#define RPC_BARRIER_AGAIN_NS (1000 * NS_PER_MS) /* the same for a barrier */
#define RPC_PEERS_WAIT_NS (1000 * NS_PER_MS)
#define RPC_PAGE_MAX 1000
#define RPC_ANSWER_BUDGET_BYTES ((size_t)32 * 1024 * 1024)

/* What a call waits for. */
enum call_stage {
    CALL_FREE = 0,
    CALL_BARRIER,    /* the server's barrier */
    CALL_REVISION,   /* this node's engine */
    CALL_LEADER,     /* a leader that can be asked; or the next try */
    CALL_PROPOSAL,   /* cookie */
    CALL_FORWARD,    /* cookie = forward id; leader_id */
    CALL_CHECK,      /* cookie: dry run */
    CALL_SIMULATION, /* cookie */
    CALL_INIT,       /* cookie */
    CALL_PROBE,      /* the parts of `probe` */
    CALL_PEERS       /* their answers for `why` */
};

struct call {
    uint8_t stage; /* enum call_stage */
    struct rpc_route route;
    struct rpc_identity identity;
    const struct wire_method *method;
    const struct handler *handler;
    struct request_id request_id;
    uint8_t *bytes; /* owned: envelope, then payload */
    size_t n_envelope_bytes;
    size_t n_payload_bytes;
    uint64_t start_ns;
    uint64_t deadline_ns;
    uint64_t stage_ns; /* when this stage gives up */
    uint64_t retry_ns; /* CALL_LEADER: not before */
    bool is_stale;     /* asked for, or the answer is */
    bool is_dry_run;
    bool was_given; /* a leader had it: whoever leads next may carry it out */
    uint64_t want_revision;
    uint64_t barrier; /* number of the first barrier that is late enough */
    uint64_t cookie;
    uint64_t leader_id;       /* CALL_FORWARD: who was asked */
    uint64_t peers_ns;        /* CALL_PEERS: when they were asked */
    struct probe_call *probe; /* CALL_PROBE; owned */
    struct errmsg reason;     /* CALL_LEADER: why the last try came to nothing */
};

/* The one barrier under way. Reads that come while it runs need the next one. */
enum barrier_state {
    BARRIER_IDLE = 0,
    BARRIER_LOCAL,
    BARRIER_FORWARDED
};

struct barrier {
    uint8_t state;   /* enum barrier_state */
    uint64_t number; /* of the one under way, or of the last */
    uint64_t cookie;
    uint64_t leader_id;
    uint64_t again_ns; /* a forwarded one whose answer may be lost */
    uint64_t retry_ns;
};

struct rpc_server {
    struct rpc_hooks hooks;
    struct prng prng;
    uint64_t now_ns; /* of the entry call */
    bool is_inside;  /* a hook that calls back is told to come later */
    bool wants_poll;
    size_t n_calls;
    size_t kept_bytes;
    struct call calls[LIMIT_RPC_OUTSTANDING];
    struct barrier barrier;
    uint64_t simulated_work; /* of simulations, at simulated_ns; it is forgotten with time */
    uint64_t simulated_ns;
    uint32_t n_simulations; /* under way */
    struct rpc_counters counters;
};

/* What a handler may look at; times are those of the call's turn. */
struct view {
    struct rpc_server *server;
    const struct catalog *catalog; /* never NULL for reads and writes */
    const struct engine *engine;   /* may be NULL */
    uint64_t now_ns;
    uint64_t boot_ns;
    int64_t wall_ms;   /* of the same moment: one answer tells one time of one event */
    const char *actor; /* who asks */
    struct wire_arena *arena;
    const struct rpc_simulation *simulation; /* of the call, once it has run */
};

struct handler {
    const char *method;
    /* Of a call that goes a way of its own; then there is nothing else. */
    void (*begin)(struct rpc_server *server, struct call *call, const ProtobufCMessage *request);
    /* local, read: the answer into the arena; NULL in *ret_response when the arena is used up. */
    int (*answer)(const struct view *view, const ProtobufCMessage *request,
                  ProtobufCMessage **ret_response, struct errmsg *err);
    /* What takes long: prepared here, run elsewhere, then `answer` finds it in the view. Given:
     * rpc_simulation_free. */
    int (*prepare)(const struct view *view, const ProtobufCMessage *request,
                   struct rpc_simulation **ret_job, struct errmsg *err);
    /* write: changes and force of a command; the rest is filled in by the server. Needs no catalog.
     * On failure nothing is given and *ret_index is the bad document, or UINT32_MAX. */
    int (*command)(const ProtobufCMessage *request, struct command *ret_command,
                   uint32_t *ret_index, struct errmsg *err);
    /* The answer to a write that was applied; NULL when the arena is used up. */
    ProtobufCMessage *(*answer_write)(struct wire_arena *arena, const ProtobufCMessage *request,
                                      const struct apply_answer *answer);
};

/* One backend as this node sees it; life, drain and verdict included. */
Jury__V1__BackendStatus *handle_backend_status(const struct view *view,
                                               const struct catalog_group *group,
                                               const struct catalog_backend *backend);
struct event;
/* NULL when the arena is used up. */
Jury__V1__Event *handle_event_new(const struct view *view, const struct event *event);
/* Of EVENT_PEER_LOST, EVENT_LEADER_CHANGED and EVENT_FEW_VOTES. Of the arena; NULL when that is
 * used up. */
char *handle_news_sentence(struct wire_arena *arena, const struct event *event);
/* Numbers beside a mark or held cause: a list of enum values from bits. */
size_t handle_bits(struct wire_arena *arena, unsigned bits, int **ret_values);
/* 0 = as many as allowed; more is refused. */
int handle_page_size(uint32_t asked, size_t *ret_size, struct errmsg *err);

/* NULL: the method is in the .proto files and nobody wrote it (a test looks). */
const struct handler *rpc_handler_find(const char *method);

/* --- rpc_server.c: calls --- */

void rpc_call_free(struct rpc_server *server, struct call *call);

/* --- rpc_answer.c --- */

/* Why something is refused. */
struct rpc_refusal {
    int code;                                /* ERR_* */
    uint32_t document_index;                 /* UINT32_MAX = of none */
    const struct errmsg *message;            /* borrowed */
    const struct catalog_refusals *refusals; /* all of a dry run; borrowed; NULL = none */
};
/* Of a message that became no call. */
void rpc_send_refusal(struct rpc_server *server, const struct rpc_route *route,
                      const struct request_id *request_id, const struct rpc_refusal *refusal);
/* Answer and free the call. */
void rpc_call_refuse(struct rpc_server *server, struct call *call, int code,
                     const struct errmsg *message);
void rpc_call_refuse_at(struct rpc_server *server, struct call *call, int code,
                        uint32_t document_index, const struct errmsg *message);
/* done: of a dry run that is refused. */
void rpc_call_refuse_all(struct rpc_server *server, struct call *call, const struct rpc_done *done);
void rpc_call_answer(struct rpc_server *server, struct call *call, struct wire_arena *arena,
                     const ProtobufCMessage *response, uint64_t revision);
/* The frames of another node's answer, as they are. */
void rpc_call_relay(struct rpc_server *server, struct call *call, const struct rpc_frames *frames);
struct call *rpc_call_by_cookie(struct rpc_server *server, enum call_stage stage, uint64_t cookie);
uint64_t rpc_new_cookie(struct rpc_server *server);
/* The payload as message; the sentence of what is wrong with it. */
int rpc_call_request(const struct call *call, struct wire_arena *arena,
                     ProtobufCMessage **ret_request, struct errmsg *err);

/* --- rpc_read.c --- */

void rpc_read_begin(struct rpc_server *server, struct call *call);
void rpc_read_poll(struct rpc_server *server, struct call *call);
void rpc_barrier_poll(struct rpc_server *server);
void rpc_read_simulated(struct rpc_server *server, struct call *call,
                        const struct rpc_simulation *job);
/* True when the cookie was the barrier's. */
bool rpc_barrier_done(struct rpc_server *server, uint64_t cookie, const struct rpc_done *done);
bool rpc_barrier_answered(struct rpc_server *server, uint64_t node_id, uint64_t forward_id,
                          const struct rpc_frames *frames);
/* The catalog in use; NULL before there is one. */
const struct catalog *rpc_server_catalog(struct rpc_server *server);

/* --- rpc_write.c --- */

void rpc_write_begin(struct rpc_server *server, struct call *call);
/* Go on with a call that waits for a leader, or whose leader is gone. */
void rpc_write_poll(struct rpc_server *server, struct call *call, const struct rpc_store *store);
void rpc_write_done(struct rpc_server *server, struct call *call, const struct rpc_done *done);
void rpc_write_answered(struct rpc_server *server, struct call *call,
                        const struct rpc_frames *frames);
void rpc_check_done(struct rpc_server *server, struct call *call, const struct rpc_done *done);
/* NO_LEADER with the peers and their last contact. */
void rpc_refuse_no_leader(struct rpc_server *server, struct call *call);

/* --- rpc_probe.c --- */

void rpc_probe_begin(struct rpc_server *server, struct call *call, const ProtobufCMessage *request);
void rpc_probe_poll(struct rpc_server *server, struct call *call);
void rpc_probe_done(struct rpc_server *server, uint64_t cookie, const struct probe_report *report);
/* True when the id was that of a part of a probe. */
bool rpc_probe_answered(struct rpc_server *server, uint64_t node_id, uint64_t forward_id,
                        const struct rpc_frames *frames);
void rpc_probe_free(struct probe_call *probe); /* NULL is allowed */

/* --- rpc_init.c --- */

void rpc_init_begin(struct rpc_server *server, struct call *call, const ProtobufCMessage *request);
void rpc_init_done(struct rpc_server *server, struct call *call, const struct rpc_done *done);

/* --- handlers --- */

int handle_list_groups(const struct view *view, const ProtobufCMessage *request,
                       ProtobufCMessage **ret_response, struct errmsg *err);
int handle_get_group(const struct view *view, const ProtobufCMessage *request,
                     ProtobufCMessage **ret_response, struct errmsg *err);
int handle_describe_group(const struct view *view, const ProtobufCMessage *request,
                          ProtobufCMessage **ret_response, struct errmsg *err);
int handle_list_backends(const struct view *view, const ProtobufCMessage *request,
                         ProtobufCMessage **ret_response, struct errmsg *err);
int handle_list_listeners(const struct view *view, const ProtobufCMessage *request,
                          ProtobufCMessage **ret_response, struct errmsg *err);
int handle_list_keys(const struct view *view, const ProtobufCMessage *request,
                     ProtobufCMessage **ret_response, struct errmsg *err);
int handle_get_settings(const struct view *view, const ProtobufCMessage *request,
                        ProtobufCMessage **ret_response, struct errmsg *err);
int handle_list_verdicts(const struct view *view, const ProtobufCMessage *request,
                         ProtobufCMessage **ret_response, struct errmsg *err);
int handle_why(const struct view *view, const ProtobufCMessage *request,
               ProtobufCMessage **ret_response, struct errmsg *err);
int handle_list_events(const struct view *view, const ProtobufCMessage *request,
                       ProtobufCMessage **ret_response, struct errmsg *err);
int handle_simulate_group(const struct view *view, const ProtobufCMessage *request,
                          ProtobufCMessage **ret_response, struct errmsg *err);
int handle_simulate_prepare(const struct view *view, const ProtobufCMessage *request,
                            struct rpc_simulation **ret_job, struct errmsg *err);
/* What it cost, in units of LIMIT_SIMULATION_WORK. */
uint64_t rpc_simulation_work(const struct rpc_simulation *job);
int handle_list_members(const struct view *view, const ProtobufCMessage *request,
                        ProtobufCMessage **ret_response, struct errmsg *err);
int handle_get_status(const struct view *view, const ProtobufCMessage *request,
                      ProtobufCMessage **ret_response, struct errmsg *err);
int handle_read_barrier(const struct view *view, const ProtobufCMessage *request,
                        ProtobufCMessage **ret_response, struct errmsg *err);
int handle_check_ready(const struct view *view, const ProtobufCMessage *request,
                       ProtobufCMessage **ret_response, struct errmsg *err);
int handle_describe_node(const struct view *view, const ProtobufCMessage *request,
                         ProtobufCMessage **ret_response, struct errmsg *err);
int handle_list_counters(const struct view *view, const ProtobufCMessage *request,
                         ProtobufCMessage **ret_response, struct errmsg *err);
int handle_override_hold(const struct view *view, const ProtobufCMessage *request,
                         ProtobufCMessage **ret_response, struct errmsg *err);
int handle_list_holds(const struct view *view, const ProtobufCMessage *request,
                      ProtobufCMessage **ret_response, struct errmsg *err);
int handle_get_version(const struct view *view, const ProtobufCMessage *request,
                       ProtobufCMessage **ret_response, struct errmsg *err);

/* rpc_voters.c: on the leader, whether the command leaves a majority of voters that are heard.
 * Errors: ERR_FORCE, with the count of those that are not. */
int rpc_check_voters(struct rpc_server *server, const struct command *command, struct errmsg *err);

int handle_apply_command(const ProtobufCMessage *request, struct command *ret_command,
                         uint32_t *ret_index, struct errmsg *err);
int handle_drain_command(const ProtobufCMessage *request, struct command *ret_command,
                         uint32_t *ret_index, struct errmsg *err);
int handle_set_backend_command(const ProtobufCMessage *request, struct command *ret_command,
                               uint32_t *ret_index, struct errmsg *err);
int handle_ready_command(const ProtobufCMessage *request, struct command *ret_command,
                         uint32_t *ret_index, struct errmsg *err);
int handle_set_hold_command(const ProtobufCMessage *request, struct command *ret_command,
                            uint32_t *ret_index, struct errmsg *err);
int handle_clear_hold_command(const ProtobufCMessage *request, struct command *ret_command,
                              uint32_t *ret_index, struct errmsg *err);
ProtobufCMessage *handle_set_hold_answer_new(struct wire_arena *arena,
                                             const ProtobufCMessage *request,
                                             const struct apply_answer *answer);
ProtobufCMessage *handle_clear_hold_answer_new(struct wire_arena *arena,
                                               const ProtobufCMessage *request,
                                               const struct apply_answer *answer);
ProtobufCMessage *handle_apply_answer_new(struct wire_arena *arena, const ProtobufCMessage *request,
                                          const struct apply_answer *answer);
ProtobufCMessage *handle_drain_answer_new(struct wire_arena *arena, const ProtobufCMessage *request,
                                          const struct apply_answer *answer);
ProtobufCMessage *handle_set_backend_answer_new(struct wire_arena *arena,
                                                const ProtobufCMessage *request,
                                                const struct apply_answer *answer);
ProtobufCMessage *handle_ready_answer_new(struct wire_arena *arena, const ProtobufCMessage *request,
                                          const struct apply_answer *answer);

/* `why`: true while an answer of a peer that is heard is still to come (asked_ns: when). */
bool handle_why_waits(const struct view *view, const ProtobufCMessage *request, uint64_t asked_ns);
/* The target that the request is about; slot CATALOG_NO_SLOT: none. */
struct target_id handle_why_target(const struct view *view, const ProtobufCMessage *request);

#endif
