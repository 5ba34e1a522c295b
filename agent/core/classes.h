/* What the verdicts mean for traffic (spec.md 6): the class of each backend for new flows, the
 * policy for its existing flows, the state of its group. Pure functions of plain values; the engine
 * calls them, agent/table encodes `struct row_word` into the mapped state file, the shim acts on
 * it.
 */
#ifndef JURY_CORE_CLASSES_H
#define JURY_CORE_CLASSES_H

#include <stdbool.h>
#include <stdint.h>

#include "common/model/group.h"
#include "common/model/reason.h"

/* The class of a row. Numbers are in the forwarding table and are never reused; 8 bits.
 *
 * A new flow takes the first rank that is not empty (jury_class_rank of the table format). Which
 * members make up a rank is decided here and not by the data plane. */
enum row_class {
    ROW_REMOVED = 0,     /* no such row, or purged: also what a birth mismatch reads as */
    ROW_HEALTHY = 1,     /* rank 1: healthy (or checks off) and reachable from here */
    ROW_UNREACHABLE = 2, /* rank 2: healthy by the rule, but this node's own probes fail */
    ROW_FAIL_OPEN = 3,   /* rank 3: member of a scope in fail-open, whatever its verdict */
    ROW_WARMING = 4,     /* rank 1: usable because its scope is warming up */
    ROW_NONE = 5,        /* never a new flow: unhealthy, initial, weight 0, draining, removing,
                            maintenance, or in a closed scope */
    /* Rows of scopes carry the state of the scope instead. */
    ROW_SCOPE_OK = 16,
    ROW_SCOPE_DEGRADED = 17,
    ROW_SCOPE_FAIL_OPEN = 18,
    ROW_SCOPE_CLOSED = 19, /* TCP: RST; UDP, Geneve: dropped and counted */
    ROW_SCOPE_WARMING = 20
};

/* What happens to the flows that a backend already has. Numbers are in the forwarding table. */
enum flow_policy {
    FLOW_KEEP = 0,      /* until FIN or RST was seen, or idle for the idle timeout */
    FLOW_CLOSE_AT = 1,  /* keep, and closed at the deadline */
    FLOW_CLOSE_NOW = 2, /* RST to both sides for TCP; the entry dropped for UDP and Geneve */
    FLOW_MOVE = 3,      /* the next packet selects anew */
    FLOW_MOVE_AT = 4,   /* keep until the deadline, then move */
    FLOW_HOLD_IDLE = 5  /* no idle eviction before the deadline; from then on a flow idle for longer
                           than the idle timeout ends at once, a busy one lives on (S75) */
};

/* Why a row has a deadline. */
enum deadline_cause {
    DEADLINE_NONE = 0,
    DEADLINE_DRAIN = 1, /* operator drain, or maintenance drained first */
    DEADLINE_REMOVED = 2,
    DEADLINE_VERDICT = 3 /* unhealthy, with drain on (nlb) */
};

/* One row as the data planes shall see it. */
struct row_word {
    uint32_t scope_row; /* the scope it belongs to; equal to row for the scope itself */
    uint32_t row;
    uint64_t birth;
    uint8_t row_class;         /* enum row_class */
    uint8_t flow_policy;       /* enum flow_policy */
    uint8_t deadline_cause;    /* enum deadline_cause */
    uint8_t weight_percent;    /* how much of its weight counts: 1..100; 0 = all of it */
    uint64_t deadline_boot_ns; /* CLOCK_BOOTTIME; 0 = none */
};

/* --- one scope's members to classes --- */

struct class_member {
    uint8_t health_state; /* enum health_state */
    bool is_unreachable;  /* "unreachable from here" */
    bool is_eligible;     /* m: life available, admin enabled, weight > 0 */
    bool was_judged;      /* before this start (last-known-good) or before the scope's creation */
    bool is_late;         /* it came after the scope's first probe: no part of a cold start */
};

struct class_policy {
    uint8_t all_bad;           /* enum all_bad */
    uint8_t fail_open_percent; /* 0..100 */
    bool may_warm; /* failure window + I + 2 V since the scope's first probe has not passed */
};

struct class_result {
    uint8_t group_state; /* enum group_state */
    bool is_warming;
    uint32_t n_eligible; /* m */
    uint32_t n_healthy;  /* h, unreachable ones included */
    uint32_t n_initial;  /* i */
    uint32_t n_late;     /* of these, late ones */
};

/* Classify one scope. ret_classes[i] becomes the enum row_class of members[i].
 *
 * Warming is for a cold start: the members that the scope began with are one class as long as they
 * are not unhealthy, so that the first one judged does not get all flows. A late one in `initial`
 * is a new backend like any other and gets nothing before it passed. */
void classes_decide(const struct class_policy *policy, const struct class_member members[],
                    uint32_t n_members, uint8_t ret_classes[], struct class_result *ret_result);
/* The enum row_class of the scope's own row. */
unsigned classes_scope_class(const struct class_result *result);

/* --- existing flows --- */

struct flow_question {
    uint8_t profile;  /* enum profile */
    uint8_t failover; /* enum failover */
    struct drain_policy drain;
    uint8_t admin_state; /* enum admin_state */
    bool is_removing;
    bool is_unhealthy;
    bool is_fail_open;         /* the scope is: the unhealthy policy is suspended */
    uint32_t drain_timeout_ms; /* of the running operator drain or removal */
};

/* The policy a cause asks for and how long after its beginning the deadline comes. */
struct flow_answer {
    uint8_t flow_policy;
    uint8_t cause; /* enum deadline_cause; DEADLINE_NONE with KEEP and the immediate policies */
    uint32_t timeout_ms;
};

/* What the operator's or the document's will asks for (removal, maintenance, drain), and what the
 * verdict asks for. Where both give a deadline the earlier one counts; the engine joins them, since
 * it knows when each began. */
struct flow_answer flows_by_admin(const struct flow_question *question);
struct flow_answer flows_by_verdict(const struct flow_question *question);

#endif
