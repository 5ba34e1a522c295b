/* A deterministic cluster: N engines with their probe schedules on a virtual clock and a simulated
 * network, backends with a truth, one replicated store that reaches each node when it likes. Driven
 * by tests/scenario and tests/sim; the same seed gives the same run.
 *
 * World time begins at 0. Each node's own monotonic clock is ahead of it by an offset of its own,
 * so that an age computed by another's clock shows, and may run faster or slower. Memory shortage
 * aborts: this is a test. */
#ifndef JURY_TESTS_WORLD_H
#define JURY_TESTS_WORLD_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/core/catalog_apply.h"
#include "agent/core/engine.h"
#include "agent/core/engine_view.h"
#include "agent/core/probe_schedule.h"
#include "common/base/prng.h"
#include "tests/lib/heap.h"

#define WORLD_NODES 64
#define WORLD_BACKENDS 128
#define WORLD_REVISIONS 512
#define WORLD_SCRIPT 64
#define WORLD_MS UINT64_C(1000000)
#define WORLD_SECOND (1000 * WORLD_MS)

/* How a backend answers one node's probes. */
struct truth {
    uint8_t reason; /* enum probe_reason; the timeouts take T, the others response_ns */
    uint16_t http_status;
    uint64_t response_ns;
};

struct world_backend {
    struct endpoint at;
    struct truth truth[WORLD_NODES + 1]; /* by node id; [0] unused */
    /* Answers in turn, one letter a probe ('S' as truth says of a pass, else the failure), then the
     * truth again. Counted for each node. */
    char script[WORLD_SCRIPT];
    struct truth script_failure;
    uint32_t script_at[WORLD_NODES + 1];
};

struct world_message;

struct world_link {
    bool is_cut;
    uint32_t loss_ppm;
    uint32_t duplicate_ppm;
    uint32_t late_ppm; /* delivered after up to a minute: a replay when it was duplicated too */
    uint64_t delay_min_ns;
    uint64_t delay_max_ns;
};

struct world_node {
    uint64_t id;
    bool is_up;
    bool is_gone; /* removed from the cluster: never started again */
    uint64_t epoch;
    uint64_t clock_offset_ns;
    int64_t clock_ppm;         /* how much faster than world time its clocks run; above -1000000 */
    uint64_t boot_ahead_ns;    /* of CLOCK_BOOTTIME: grows when the machine sleeps */
    uint64_t stalled_until_ns; /* world time; before it nothing of the node runs */
    struct engine *engine;     /* NULL while down */
    struct engine_actions actions;
    struct probe_schedule schedule;
    bool is_pressed; /* its budget delays probes, as its engine was told */
    uint64_t wake_token;
    uint64_t probe_token;
    bool store_is_frozen;
    uint64_t store_revision; /* newest that its store has given out */
    /* Last-known-good, as last written. */
    struct catalog *kept_catalog;
    struct kept_verdict *kept_verdicts;
    size_t n_kept_verdicts;
    struct kept_deadline *kept_deadlines;
    size_t n_kept_deadlines;
    uint64_t kept_ns;
    struct backend_purge purge; /* the last that its engine proposed */
    uint64_t purge_ns;          /* when; 0 = never */
    uint64_t n_probes;          /* started */
    uint64_t started_ns;        /* world time */
    /* The data plane, as far as a scenario has one (world_set_flows). */
    bool is_counting;
    uint64_t n_flows;
    uint64_t flows_token;
};

/* What a node has at its start beside its store. */
enum world_kept {
    WORLD_KEPT_NONE = 0,
    WORLD_KEPT_ALL,     /* last-known-good */
    WORLD_KEPT_VERDICTS /* of it only the verdicts and deadlines: its store is faster, or newer */
};

struct world;

/* Called around each step of an engine; event times are the node's own. */
struct world_hooks {
    void *user;
    void (*before)(void *user, struct world *world, struct world_node *node,
                   const struct engine_event *event);
    void (*after)(void *user, struct world *world, struct world_node *node,
                  const struct engine_event *event);
    void (*probe_started)(void *user, struct world *world, struct world_node *node,
                          struct target_id id, const struct truth *truth);
};

struct world {
    uint64_t now_ns;
    struct prng prng;
    uint32_t n_nodes;
    struct world_node nodes[WORLD_NODES + 1];                  /* by id; [0] unused */
    struct world_link links[WORLD_NODES + 1][WORLD_NODES + 1]; /* from, to */
    struct world_backend backends[WORLD_BACKENDS];
    uint32_t n_backends;
    struct catalog_state *state;
    struct catalog *history[WORLD_REVISIONS]; /* by revision; NULL where none */
    uint64_t revision;
    struct probe_rates probe_rates; /* of each node; 0 = without a budget */
    uint32_t history_entries;       /* of an engine that is started: see engine_config */
    uint64_t store_delay_max_ns;    /* until a node's store has a new revision */
    /* Noise that must change nothing: what a node has taken is delivered again, up to so many times
     * and up to a minute later, and what was lost comes after something newer of its sender. It has
     * a generator of its own, so that the world is the same with and without it. */
    uint32_t n_replays_max; /* 0 = no noise */
    struct prng noise;
    struct world_message *lost[WORLD_NODES + 1][WORLD_NODES + 1]; /* newest, from, to */
    struct heap queue;
    struct world_hooks hooks;
    uint64_t n_steps;
    uint64_t n_messages, n_lost, n_duplicates;
    uint64_t n_replayed, n_overtaken; /* noise */
    uint64_t n_stalled;               /* happenings that a standing node was late for */
};

/* n_nodes voters (those beyond LIMIT_VOTERS standbys), all down, links without delay or loss. */
void world_init(struct world *world, uint64_t seed, uint32_t n_nodes);
void world_close(struct world *world);

/* Run up to and including this world time. */
void world_run(struct world *world, uint64_t until_ns);

/* The backend's record; made, answering at once, when it is new. */
struct world_backend *world_backend(struct world *world, const struct endpoint *at);
/* All nodes see this from now on. */
/* What a probe of that definition from the node would come to now, but for turns. */
struct truth world_answer_now(struct world *world, const struct world_node *node,
                              const struct target_definition *definition);
void world_set_truth(struct world *world, const struct endpoint *at, const struct truth *truth);

/* Commit a command: its revision reaches each node's store within store_delay_max_ns. The command
 * is closed. Returns the answer's err. */
int world_commit(struct world *world, struct command *command, struct errmsg *err);
/* The same, with the whole answer. */
struct apply_answer world_apply(struct world *world, struct command *command);
/* The store of this node gives out nothing new until it is thawed. */
void world_freeze_store(struct world *world, uint64_t node_id, bool frozen);

/* Members that come and go. Add: the next id, down; 0 when refused. Remove: it is stopped first,
 * since its own store tells it to; false when refused. */
uint64_t world_add_node(struct world *world, enum raft_role role);
bool world_remove_node(struct world *world, uint64_t node_id);
/* Start with the next epoch, from what was last written down (enum world_kept). store_delay_ns:
 * when its store gives out its catalog. */
void world_start(struct world *world, uint64_t node_id, unsigned kept, uint64_t store_delay_ns);
/* Write last-known-good down. */
void world_keep(struct world *world, uint64_t node_id);
/* Stop: writes last-known-good. Crash: what was written before stays. */
void world_stop(struct world *world, uint64_t node_id);
void world_crash(struct world *world, uint64_t node_id);
/* The process stands still: what happens to it meanwhile happens at the end of it, when the engine
 * is told how late its loop is, and a probe that should have ended meanwhile is a local fault. */
void world_stall(struct world *world, uint64_t node_id, uint64_t duration_ns);

void world_cut(struct world *world, uint64_t from, uint64_t to, bool cut);
uint64_t world_local_ns(const struct world *world, const struct world_node *node);
uint64_t world_boot_ns(const struct world *world, const struct world_node *node);
/* From now on a data plane of this node takes everything over at once, and counts so many flows of
 * each backend that drains or is removed. */
void world_set_flows(struct world *world, struct world_node *node, uint64_t n_flows);
/* The first moment of the world, from now on, at which the node's clock shows local_ns or more. */
uint64_t world_time_ns(const struct world *world, const struct world_node *node, uint64_t local_ns);
/* One step of a node with an event of the caller's (time and boot time are filled in). */
void world_step(struct world *world, struct world_node *node, struct engine_event *event);

#endif
