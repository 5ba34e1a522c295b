/* The engine: everything this node decides, as one function of events (design.md 4).
 *
 * `engine_step(engine, event, actions)` is called and never calls: no clock, socket, disk, thread
 * or random source; time and messages come in events, what is to be done goes out in actions, which
 * the shell carries out after the step. So N engines, a simulated network and a seed make a
 * deterministic cluster. No verdict needs a leader, a quorum of Raft or a disk.
 *
 * One thread owns an engine. Reads for people are in engine_view.h. */
#ifndef JURY_CORE_ENGINE_H
#define JURY_CORE_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/core/catalog.h"
#include "agent/core/classes.h"
#include "agent/core/last_known_good.h"
#include "agent/core/probe.h"
#include "agent/core/self_doubt.h"
#include "agent/core/timers.h"
#include "agent/core/vote_msg.h"
#include "common/model/change.h"
#include "common/model/guard.h"

/* What catalog and engine take of memory for each target with one backend, in groups of 100, with
 * 15 peers, once everything has happened to it; and of that each peer. Beside it the ring of the
 * past is a fixed size (history.h, 24 MiB), and LIMIT_VOTE_DETAILS a peer (384 KiB). Bounds of
 * tests/unit/core/test_memory.c; those of single structs stand beside them. */
#define ENGINE_BYTES_A_TARGET 1024
#define ENGINE_BYTES_A_TARGET_AND_PEER 16

struct engine;

struct engine_config {
    uint64_t node_id;
    uint64_t epoch; /* this start's number, kept on disk; 0: it could not be kept, so no votes
                       are sent */
    uint64_t seed;  /* phase of the vote interval */
    uint64_t table_revision;  /* of the forwarding table found at start, else 0: no rows or layout
                                 come out before a catalog at least as new is adopted */
    uint32_t history_entries; /* that are kept of the past (history.h), at most and by default (0)
                                 LIMIT_HISTORY_ENTRIES */
};

/* NULL: no memory. now_ns: monotonic. */
struct engine *engine_new(const struct engine_config *config, uint64_t now_ns);
void engine_free(struct engine *engine);

/* The start's number became known after all, when config.epoch was 0, or was raised above one that
 * the peers do not take any more: votes go out under it from the next vector on. epoch: above the
 * one before. */
void engine_set_epoch(struct engine *engine, uint64_t epoch);

/* --- events --- */

enum engine_event_kind {
    ENGINE_TICK = 1,             /* no payload; at actions.wake_ns or whenever the shell likes */
    ENGINE_CATALOG = 2,          /* catalog */
    ENGINE_PROBE_RESULT = 3,     /* result */
    ENGINE_HELLO = 4,            /* peer, hello */
    ENGINE_VOTE_CHUNK = 5,       /* peer, chunk */
    ENGINE_VOTE_CHANGE = 6,      /* peer, change */
    ENGINE_VOTE_QUESTION = 7,    /* peer, question: answered in actions.replies */
    ENGINE_DRAIN_REPORT = 8,     /* peer, report */
    ENGINE_ASK = 9,              /* target: `why` wants to know what the peers know of it */
    ENGINE_LAST_KNOWN_GOOD = 10, /* kept: before the first catalog */
    ENGINE_DATA_PLANE = 11,      /* data_plane: for the rows of engine_drain_rows */
    ENGINE_LOOP_LATE = 12,       /* late_ns: a loop of this node turned so much too late */
    ENGINE_SENTINEL = 13,        /* sentinel */
    ENGINE_HOLD = 14,            /* hold: this node's own override of the hold switch */
    ENGINE_PROBE_BUDGET = 15,    /* pressure: the probe budget begins or ceases to delay probes */
    ENGINE_NEWS = 16             /* news: of the other nodes, for the events alone */
};

struct data_plane_row {
    uint32_t row;
    uint64_t birth;
    uint64_t n_flows;  /* of all data planes of this node */
    uint64_t n_closed; /* by flow policy, since the data planes began */
    bool is_adopted;   /* each has adopted the generation that carried this drain's word */
};

struct data_plane_status {
    bool is_counting; /* a data plane with a living heartbeat reports flows */
    const struct data_plane_row *rows;
    size_t n_rows;
};

/* This node's own hold: needs no leader and no peer, and ends with the agent. */
struct hold_override {
    const char *group; /* "" = every group; one that is not in the catalog changes nothing */
    bool is_on;
    const char *actor; /* who, for people */
    int64_t wall_ms;   /* when, for people */
};

/* Of the probe budget (probe_budget.h). */
struct probe_pressure {
    bool is_on;
    uint64_t delay_ns; /* the longest so far */
};

struct cluster_news;

/* What a pointer leads to is borrowed for the step (a catalog is referenced by the engine). */
struct engine_event {
    uint8_t kind;     /* enum engine_event_kind */
    uint64_t now_ns;  /* monotonic, never going back between steps */
    uint64_t boot_ns; /* CLOCK_BOOTTIME at the same moment */
    uint64_t peer;    /* node id of the sender, by its key and not by the text of its message */
    union {
        struct catalog *catalog;
        const struct probe_result *result;
        const struct hello *hello;
        const struct vote_chunk *chunk;
        const struct vote_change *change;
        const struct vote_question *question;
        const struct drain_report *report;
        struct target_id target;
        const struct last_known_good *kept;
        const struct data_plane_status *data_plane;
        uint64_t late_ns;
        struct probe_pressure pressure;
        const struct sentinel_result *sentinel;
        const struct hold_override *hold;
        const struct cluster_news *news;
    } u;
};

/* --- actions --- */

/* Change messages of one vote interval: what a node sends when everything changes at once has a
 * bound (R-CW-1). More are not lost: the next vector carries every opinion (counter
 * changes_not_sent). */
#define ENGINE_CHANGES 256
#define ENGINE_PURGES 256
/* Orders of one step; what is more comes with the next step, which is due at once. */
#define ENGINE_ORDERS 1024

struct probe_change {
    struct target_id id;
    const struct catalog_target *target; /* NULL = stop probing it; valid as long as the catalog of
                                            engine_catalog() is held */
    struct addr source;                  /* ADDR_NONE = the kernel's choice */
    bool is_at_start;                    /* which window its first probe has (probe_schedule.h) */
};

struct vote_reply {
    uint64_t to; /* node id */
    struct vote_change change;
};

/* One for all steps of an engine: it grows with the catalog. Filled by each step from empty.
 * Bounds: probes thrice the slots, rows the catalog's rows (each at most once), the others as
 * declared. */
struct engine_actions {
    /* To all peers; each V the whole vector, whatever it holds. */
    uint16_t n_chunks; /* 0 = no vector now */
    struct vote_chunk chunks[LIMIT_VOTE_CHUNKS];
    bool has_hello; /* with each vector */
    struct hello hello;
    bool has_drain_report;
    struct drain_report drain_report;
    uint16_t n_changes; /* at once */
    struct vote_change changes[ENGINE_CHANGES];
    bool has_question;
    struct vote_question question;
    /* To one peer. */
    uint16_t n_replies;
    struct vote_reply replies[LIMIT_QUESTION_TARGETS];

    /* Applied in this order: a slot that goes to another target is removed first. */
    struct probe_change *probes;
    uint32_t n_probes;
    uint32_t probes_capacity;

    /* After `probes`: of targets that share their probes (share.h). */
    uint32_t n_orders;
    struct probe_order orders[ENGINE_ORDERS];

    /* Words that changed, those of one scope together and its own row last: write the words of a
     * scope under its sequence, then a layout if one is due, then the generation. */
    struct row_word *rows;
    uint32_t n_rows;
    uint32_t rows_capacity;
    bool layout_due;         /* the adopted revision needs a layout; its words are in `rows` */
    struct catalog *catalog; /* with layout_due: borrowed, take a reference to keep it */

    /* The leader's to propose; every node names them, each V again until the row is gone. */
    struct backend_purge purges[ENGINE_PURGES];
    uint16_t n_purges;

    uint64_t first_event; /* new entries of the event log: engine_event_at; alarms are among them */
    uint32_t n_events;
    bool verdicts_changed; /* last-known-good is out of date */
    uint64_t wake_ns;      /* step again at this time at the latest; TIMER_NEVER = no need */
};

void engine_actions_init(struct engine_actions *actions);
void engine_actions_close(struct engine_actions *actions);

/* One step. What it refuses (another cluster's catalog, a stale vote) is a counter and not an
 * error. Errors: ERR_NOMEM while taking a catalog or last-known-good: the event had no effect and
 * may be given again. */
int engine_step(struct engine *engine, const struct engine_event *event,
                struct engine_actions *actions);

/* This result will be given soon: what it is about is fetched into the processor's cache meanwhile.
 * A hint, which changes nothing. result: borrowed. */
void engine_expect(const struct engine *engine, const struct probe_result *result);

/* --- for the shell --- */

/* What the last-known-good file shall keep. Returns the number written; the number there is, when
 * capacity is too small, is engine_n_kept_*. */
size_t engine_n_kept_verdicts(const struct engine *engine);
size_t engine_keep_verdicts(const struct engine *engine, uint64_t now_ns,
                            struct kept_verdict verdicts[], size_t capacity);
size_t engine_keep_deadlines(const struct engine *engine, struct kept_deadline deadlines[],
                             size_t capacity);

/* Rows that drain or were removed: those the data plane status is wanted for. */
struct drain_row {
    uint32_t row;
    uint64_t birth;
    uint64_t drain_revision;
};
size_t engine_drain_rows(const struct engine *engine, struct drain_row rows[], size_t capacity);

/* The adopted catalog, borrowed until the next step; NULL before the first. */
struct catalog *engine_catalog(const struct engine *engine);

#endif
