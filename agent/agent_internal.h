/* The agent's state and what its files call of each other; nobody else includes it.
 *
 * agent.c         life: opening, closing, signals, timers
 * agent_store.c   what the store hands over: completions, catalogs, status; who may connect
 * agent_engine.c  events into the engine, its actions out
 * agent_table.c   forwarding table, layouts on the pool, status files
 * agent_lkg.c     last-known-good: read at start, written on the pool
 * agent_rpc.c     calls between mesh, RPC server, store and peers
 * agent_probe.c   where probes come from; probes on demand
 * agent_view.c    what people may ask: node, peers, readiness, counters
 * agent_doubt.c   what this node measures of itself: late loops, sentinels
 * agent_log.c     the engine's events as lines of the log
 * Everything runs on the health loop unless a comment says otherwise. */
#ifndef JURY_AGENT_INTERNAL_H
#define JURY_AGENT_INTERNAL_H

#include <uv.h>

#include "agent/agent.h"
#include "agent/core/catalog.h"
#include "agent/core/cluster_watch.h"
#include "agent/core/engine.h"
#include "agent/core/fwd_layout.h"
#include "agent/lkg_budget.h"
#include "agent/loop/resolver.h"
#include "agent/loop/ring.h"
#include "agent/loop/wake.h"
#include "agent/loop/watchdog.h"
#include "agent/loop/zap.h"
#include "agent/loop/zmq_hub.h"
#include "agent/mesh/mesh.h"
#include "agent/probe/probe_now.h"
#include "agent/probe/probe_plan.h"
#include "agent/probe/probe_thread.h"
#include "agent/probe/route_watch.h"
#include "agent/probe/sentinel_port.h"
#include "agent/rpc/rpc_server.h"
#include "agent/store/fsm_catalog.h"
#include "agent/store/lkg.h"
#include "agent/store/store.h"
#include "agent/table/status_reader.h"
#include "agent/table/table_writer.h"
#include "common/base/counters.h"

#define AGENT_BEAT_MS 100                      /* of the watchdog */
#define AGENT_TICK_MS 200                      /* table heartbeat, status files */
#define AGENT_HOUSEKEEPING_MS 1000             /* forming, expiry of keys, last-known-good */
#define AGENT_FORM_WAIT_NS (3 * NS_PER_SECOND) /* for the store before last-known-good is used */
#define AGENT_RESULTS_PER_TURN 512
#define AGENT_RESULTS_AT_ONCE 16  /* read together: by one look at the clock */
#define AGENT_SOURCES_PER_TICK 64 /* targets a second; each is four system calls */
#define AGENT_SOURCES_MAX_AGE_NS (60 * NS_PER_SECOND)
#define AGENT_REQUESTS 1024 /* under way in the store: RPC's and own */
#define AGENT_REVOKED_KEYS 64
#define AGENT_LANE_EVENTS 256 /* connections to the Raft lane that came to nothing */
#define AGENT_ZAP_KEYS (LIMIT_NODES * 2 + LIMIT_KEYS + AGENT_BOOTSTRAP_KEYS + AGENT_REVOKED_KEYS)

/* A request of the store, by its cookie. */
enum agent_request_owner {
    OWNER_NONE = 0,
    OWNER_RPC,
    OWNER_PURGE,
    OWNER_LEVEL
};
struct agent_request {
    uint8_t owner;       /* enum agent_request_owner */
    uint64_t cookie;     /* in the store */
    uint64_t rpc_cookie; /* OWNER_RPC */
};

/* A layout is nowhere but in its file: the next one is built with what is read from there. */
struct agent_layout_file {
    uint64_t number;
    size_t n_bytes; /* 0 = there is none */
    uint32_t crc;
};

/* One layout at a time is built on the pool; the newest catalog waits for its turn. */
struct agent_layout {
    uv_work_t work;
    uv_timer_t timer; /* when the next may begin */
    bool is_busy;
    bool is_blocked;                    /* less than TABLE_LAYOUT_INTERVAL_MS since the last */
    bool is_late;                       /* the newest could not be published */
    struct catalog *waiting;            /* reference; NULL = none */
    struct catalog *catalog;            /* being built; reference */
    struct agent_layout_file published; /* read by the pool meanwhile */
    struct agent_layout_file built;
    int rc;
    struct errmsg err;
};

/* One last-known-good file at a time is written on the pool. */
struct agent_lkg {
    uv_work_t work;
    bool is_busy;
    bool is_dirty; /* what is in use is not in the file */
    struct lkg_budget budget;
    struct catalog *catalog; /* reference */
    struct kept_verdict *verdicts;
    size_t n_verdicts;
    struct kept_deadline *deadlines;
    size_t n_deadlines;
    struct lkg_head head; /* of the last writing */
    size_t n_bytes;       /* of the file, by the pool */
    int rc;
    struct errmsg err;
    uint64_t n_written;
    uint64_t n_failed;
};

/* What was read from last-known-good at start. */
struct agent_kept {
    bool is_there;
    struct lkg_head head;
    struct catalog *catalog; /* reference */
    struct kept_verdict *verdicts;
    size_t n_verdicts;
    struct kept_deadline *deadlines;
    size_t n_deadlines;
};

/* One sentinel that is probed: slot 0 is this node's own. */
struct agent_sentinel {
    uint64_t node_id; /* 0 = none */
    uint64_t birth;   /* of the plan's target: rises with each change */
    struct endpoint at;
};

struct agent_peer_port {
    uint64_t node_id;
    uint16_t port; /* 0 = it has none */
};

/* What this node measures of itself. */
struct agent_doubt {
    struct sentinel_port port;
    /* As peers' hellos said; by place in the catalog. */
    struct agent_peer_port peer_ports[LIMIT_NODES];
    struct agent_sentinel sentinels[SENTINEL_PEERS + 1];
    uint64_t next_birth;
    struct probe_plan_editor plan;
    struct probe_thread *probes; /* NULL: there was no thread or descriptor for it */
    struct loops_late loops;
};

/* X(name, help) */
#define AGENT_COUNTERS(X)                                                        \
    X(steps, "steps of the engine")                                              \
    X(steps_failed, "steps that failed for lack of memory and were given again") \
    X(results, "probe results taken")                                            \
    X(layouts, "table layouts published")                                        \
    X(layouts_failed, "table layouts that could not be built or written")        \
    X(table_writes_failed, "table words that could not be written at once")      \
    X(tables_made_anew, "times that removed table files were made anew")         \
    X(lkg_written, "last-known-good files written")                              \
    X(lkg_failed, "last-known-good files that could not be written")             \
    X(purges_proposed, "removed backends that this leader proposed to purge")

struct agent_counters {
#define AGENT_COUNTER_FIELD(name, help) uint64_t name;
    AGENT_COUNTERS(AGENT_COUNTER_FIELD)
#undef AGENT_COUNTER_FIELD
};

/* Where probes come from: a few targets are looked at each second, until all were; then anew as
 * soon as something of it may be otherwise, and after AGENT_SOURCES_MAX_AGE_NS. */
struct agent_sources {
    struct route_watch routes;
    uint32_t next_slot;               /* of agent.plan */
    bool is_whole;                    /* a round has come to its end */
    bool is_resting;                  /* and no other was begun */
    bool has_changed;                 /* what is probed, since this round began */
    struct addr shared_space;         /* this node's in 100.64.0.0/10; ADDR_NONE = it has none */
    bool is_unfollowed;               /* that could not be found out, or carried out: once more */
    uint64_t begun_ns;                /* this round */
    struct rpc_probe_sources running; /* of this round so far */
    struct rpc_probe_sources last;    /* of the last whole one */
};

struct agent {
    const struct agent_config *config;
    const struct curve_keys *keys;
    char data_dir[AGENT_PATH_BYTES];
    char table_dir[AGENT_RUN_DIR_BYTES + 16];
    char status_dir[AGENT_RUN_DIR_BYTES + 16];
    char socket_path[AGENT_RUN_DIR_BYTES + 16];
    uint64_t start_ns;

    /* plumbing */
    uv_loop_t loop;
    bool has_loop;
    struct zmq_hub hub;
    void *context;       /* mesh */
    void *store_context; /* Raft */
    uv_signal_t signals[2];
    uv_timer_t beat;
    uv_check_t beat_check;
    uv_timer_t tick;
    uv_timer_t housekeeping;
    uv_timer_t engine_timer;
    uint64_t engine_wake_ns; /* what it was set for */
    bool heap_has_gaps;      /* a catalog was adopted since they were given back */
    uv_timer_t rpc_timer;
    struct wake zap_wake, store_wake, probe_wake;
    struct wake_watch zap_watch, store_watch, probe_watch;
    uint32_t n_wakes; /* that are open */
    struct zap *zap;
    struct resolver *resolver;
    struct watchdog *watchdog;
    struct watchdog_loop health_loop, probe_loop, store_loop;
    struct refusals refusals;
    struct counters counters;
    struct agent_counters counts;
    bool is_stopping;
    bool has_handles; /* timers and the like are initialised */

    /* store */
    struct store *store;
    struct fsm_catalog fsm;
    bool has_fsm;
    struct ring *lane_events; /* struct zmq_event, from the store's thread */
    struct store_status status;
    struct store_counters store_counts; /* of status, where the registry looks */
    bool has_status;
    struct store_members members;
    bool has_members;
    struct agent_request requests[AGENT_REQUESTS];
    uint64_t next_cookie;
    bool purge_is_under_way;
    bool level_is_under_way;

    /* who may connect */
    struct zap_key zap_keys[AGENT_ZAP_KEYS]; /* as last given to the ZAP thread */
    size_t n_zap_keys;
    struct zap_table *zap_table; /* reference */

    /* health; from agent_form on */
    bool table_is_gone;        /* its files were removed */
    struct errmsg table_error; /* the last; means something while the table has a problem */
    bool is_formed;
    struct cluster_id cluster_id;
    uint64_t node_id;
    uint64_t epoch;
    struct engine *engine;
    struct engine_actions actions;
    struct catalog *newest;  /* of the store, not taken by the engine yet; reference */
    bool is_last_known_good; /* the catalog in use is from the file */
    struct agent_kept kept;
    struct probe_plan_editor plan;
    struct probe_thread *probes;
    struct probe_now *probes_now;
    struct agent_sources sources;
    struct agent_doubt doubt;
    struct cluster_watch watch;
    struct data_plane_row *plane_rows;
    struct drain_row *drain_rows;
    size_t plane_rows_capacity;
    bool was_counting;

    /* table */
    struct boot_id boot_id;
    struct table_writer *table;
    struct status_reader *status_reader;
    struct row_word *late_rows; /* could not be written; given again before any other */
    size_t n_late_rows;
    struct agent_layout layout;
    struct agent_lkg lkg;

    /* calls */
    struct mesh *mesh;
    struct rpc_server *rpc;
};

/* --- agent.c --- */
/* For uv_timer_start: rounded up, and at least one millisecond. libuv of Debian 12 runs a timer
 * that is set to "now" from its own callback again and again before it looks at any descriptor. */
uint64_t agent_delay_ms(uint64_t until_ns);

/* --- agent_store.c --- */
int agent_store_open(struct agent *agent, struct errmsg *err);
void agent_store_woken(void *agent);
/* Ask the store; the completion goes to `owner`. */
int agent_store_propose(struct agent *agent, enum agent_request_owner owner, uint64_t rpc_cookie,
                        const uint8_t *command, size_t n_bytes);
int agent_store_barrier(struct agent *agent, uint64_t rpc_cookie);
int agent_store_init(struct agent *agent, uint64_t rpc_cookie, const struct cluster_init *init,
                     struct errmsg *err);
/* Who may connect and who is dialled, after a change of catalog, members or time. */
void agent_refresh_access(struct agent *agent);
bool agent_is_leader(const struct agent *agent);

/* --- agent_engine.c --- */
/* Bring up engine, table and probes once cluster and node are known. */
void agent_form_if_possible(struct agent *agent);
/* One step with the present time and its actions carried out. kind and the union are the caller's;
 * times are filled in. */
void agent_step(struct agent *agent, struct engine_event *event);
/* Give the newest catalog of the store to the engine, if there is one. */
void agent_take_catalog(struct agent *agent);
void agent_probe_woken(void *agent);
void agent_on_peer_message(void *agent, uint64_t peer, const struct peer_message *message);
void agent_on_engine_timer(uv_timer_t *timer);

/* --- agent_probe.c --- */
/* Where this node's probes of a target come from: the agent's own option, else what the catalog
 * says, else what the check asks for; ADDR_NONE = the kernel's choice. */
struct addr agent_probe_source(const struct agent *agent,
                               const struct target_definition *definition,
                               const struct addr *catalog_source);
/* To the probe threads, after a change of the plan. */
void agent_publish_plan(struct agent *agent);
/* Look for this node's address in 100.64.0.0/10, and carry it out where it is another one. */
void agent_probe_sources_follow(struct agent *agent);
/* Whether this node probes, and checks that ask for that address get the ordinary one: there is
 * none, and the operator has named no source. */
bool agent_lacks_shared_space(const struct agent *agent);
/* Set of enum hello_unbuilt; none before it probes. */
uint8_t agent_unbuilt(const struct agent *agent);
/* Its store could not be opened, or gave up. */
bool agent_store_is_down(const struct agent *agent);
/* For probe threads: which node, and what it may probe. */
struct probe_loop_options agent_probe_options(const struct agent *agent);
/* Hook of the RPC server: a probe on demand. */
int agent_probe_now(void *agent, uint64_t cookie, const struct probe_target *target,
                    struct errmsg *err);
/* Look at some more targets; each second. */
void agent_probe_sources_tick(struct agent *agent);
const struct rpc_probe_sources *agent_probe_sources(const struct agent *agent);
/* Tell the engine when the probe budget begins or ceases to delay probes; each second. */
void agent_probe_budget_tick(struct agent *agent);
/* The other nodes, for the events. */
void agent_watch_tick(struct agent *agent);
void agent_probe_budget_view(const struct agent *agent, const struct probe_counts *counts,
                             struct rpc_probe_budget *ret_budget);
/* Those that have ended. */
void agent_probe_now_results(struct agent *agent);

/* --- agent_table.c --- */
int agent_table_open(struct agent *agent, struct errmsg *err);
void agent_table_write(struct agent *agent, const struct row_word rows[], size_t n_rows,
                       uint64_t revision);
void agent_layout_due(struct agent *agent, struct catalog *catalog);
/* Heartbeat, status files, drain rows; makes the table anew if its files were removed. */
void agent_table_tick(struct agent *agent);
/* True: the table is not there, not in its place or not up to date; why, in a sentence. */
bool agent_table_problem(const struct agent *agent, struct errmsg *ret_problem);
void agent_table_close(struct agent *agent);

/* --- agent_lkg.c --- */
void agent_lkg_read(struct agent *agent);
/* Write if something changed, at most once a second. */
void agent_lkg_tick(struct agent *agent);
void agent_kept_close(struct agent_kept *kept);

/* --- agent_rpc.c --- */
int agent_rpc_open(struct agent *agent, struct errmsg *err);
void agent_rpc_completion(struct agent *agent, uint64_t rpc_cookie,
                          const struct store_completion *completion);
/* Look at what waits and set the timer. */
void agent_rpc_poll(struct agent *agent);
void agent_on_rpc_timer(uv_timer_t *timer);
void agent_on_call(void *agent, const struct mesh_caller *caller, const struct mesh_route *route,
                   const struct mesh_frames *frames);
void agent_on_forward_request(void *agent, const struct peer_forward_request *request,
                              const struct mesh_route *route, const struct mesh_frames *frames);
void agent_on_forward_response(void *agent, uint64_t peer, uint64_t forward_id,
                               const struct mesh_frames *frames);

/* --- agent_view.c: hooks of the RPC server --- */
void agent_view_store(void *agent, struct rpc_store *ret_store);
void agent_view_node(void *agent, struct rpc_node *ret_node);
void agent_view_peer(void *agent, uint64_t node_id, struct rpc_peer *ret_peer);
bool agent_view_data_plane(void *agent, size_t index, struct rpc_data_plane *ret_plane);
bool agent_view_ready(void *agent, size_t index, struct rpc_ready_check *ret_check);
void agent_view_counters(void *agent, counter_emit emit, void *to);
/* Register what is there from the start, and what comes with the engine. */
void agent_counters_open(struct agent *agent);
void agent_counters_formed(struct agent *agent);

/* --- agent_doubt.c --- */
void agent_doubt_open(struct agent *agent);
/* With the cluster: begin to probe sentinels. Without descriptors there are none. */
void agent_doubt_start(struct agent *agent);
void agent_doubt_close(struct agent *agent);
/* Each AGENT_TICK_MS. */
void agent_doubt_tick(struct agent *agent);
/* Whose sentinels are probed, after a change of members, addresses or ports; each second. */
void agent_doubt_choose(struct agent *agent);
void agent_doubt_hello(struct agent *agent, uint64_t peer, const struct hello *hello);
void agent_doubt_results(struct agent *agent);

/* --- agent_log.c --- */
void agent_log_events(struct agent *agent, uint64_t first, uint32_t n);

#endif
