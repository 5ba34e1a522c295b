/* Server groups and their backends, as the user declares them, with every default filled in.
 *
 * What the catalog adds (ids, births, slots, rows, life cycle, drains) is in
 * agent/core/catalog.h. */
#ifndef JURY_MODEL_GROUP_H
#define JURY_MODEL_GROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/addr.h"
#include "common/base/limits.h"
#include "common/model/check.h"
#include "common/model/guard.h"
#include "common/model/rule.h"

enum profile {
    PROFILE_NONE = 0,
    PROFILE_GWLB = 1,
    PROFILE_NLB = 2,
    PROFILE_CLB = 3
};
enum group_type {
    GROUP_TYPE_NONE = 0,
    GROUP_TYPE_INSTANCE = 1,
    GROUP_TYPE_IP = 2
};
enum protocol {
    PROTOCOL_NONE = 0,
    PROTOCOL_GENEVE = 1,
    PROTOCOL_TCP = 2,
    PROTOCOL_UDP = 3,
    PROTOCOL_TCP_UDP = 4
};
enum scheduler {
    SCHEDULER_NONE = 0,
    SCHEDULER_5_TUPLE = 1,
    SCHEDULER_4_TUPLE = 2,
    SCHEDULER_3_TUPLE = 3,
    SCHEDULER_2_TUPLE = 4,
    SCHEDULER_SOURCE = 5,
    SCHEDULER_QUIC_ID = 6,
    SCHEDULER_RR = 7,
    SCHEDULER_WRR = 8,
    SCHEDULER_WLC = 9
};
enum admin_state {
    ADMIN_NONE = 0,
    ADMIN_ENABLED = 1,
    ADMIN_DRAINING = 2,
    ADMIN_MAINTENANCE = 3
};
enum all_bad {
    ALL_BAD_NONE = 0,
    ALL_BAD_FAIL_OPEN = 1,
    ALL_BAD_FAIL_CLOSED = 2
};
enum failover {
    FAILOVER_NONE = 0,
    FAILOVER_NO_REBALANCE = 1,
    FAILOVER_REBALANCE = 2
};

/* What makes a part of a healthy backend's weight count (N18); no verdict depends on it. */
enum graded_weight {
    GRADED_OFF = 0,
    GRADED_BY_VOTES = 1,  /* the part of its counted votes that pass */
    GRADED_BY_LATENCY = 2 /* response times of this node's own probes, relative to the group's */
};

struct label {
    char key[LIMIT_LABEL_KEY_BYTES + 1];
    char value[LIMIT_LABEL_VALUE_BYTES + 1];
};

/* Identity inside a group: (address, port). */
struct backend {
    struct endpoint at;
    uint8_t weight; /* 0..100 */
    /* enum admin_state. ADMIN_NONE in a document that is put = the document does not say: a backend
     * that is there keeps its admin state, a new one is enabled. So applying a file again does not
     * undo an operator's drain. Never ADMIN_NONE in a catalog. */
    uint8_t admin_state;
    char zone[LIMIT_ZONE_BYTES + 1];
    char description[LIMIT_DESCRIPTION_BYTES + 1];
};

#define DRAIN_TIMEOUT_MS_MAX 3600000

struct drain_policy {
    bool is_on;
    uint32_t timeout_ms; /* 0..DRAIN_TIMEOUT_MS_MAX; on with 0 = close-now */
};

struct server_group {
    char name[LIMIT_NAME_BYTES + 1]; /* 2..128, letter first, [A-Za-z0-9._-] */
    uint8_t profile;                 /* enum profile */
    uint8_t type;                    /* enum group_type; immutable */
    uint8_t protocol;                /* enum protocol */
    uint8_t address_family;          /* enum addr_family; ADDR_NONE = both */
    uint8_t scheduler;               /* enum scheduler */
    uint8_t all_bad;                 /* enum all_bad */
    uint8_t fail_open_percent;       /* 0..100 */
    uint8_t failover;                /* enum failover; FAILOVER_NONE for nlb and clb */
    uint8_t graded_weight;           /* enum graded_weight */
    char vpc[LIMIT_NAME_BYTES + 1];  /* type instance; else empty */
    /* The check; beside `checks` what the vote on a backend is of (group_settle_checks). */
    struct health_check check;
    struct named_check *checks; /* several; owned (a catalog's: its part's); NULL: `check` alone */
    uint32_t n_checks;
    struct rule_column pass; /* how many local ones: RULE_ALL, RULE_ANY, RULE_AT_LEAST; else zero */
    struct verdict_rule rule;
    struct drain_policy drain;
    uint32_t idle_timeout_ms; /* 1000..6000000 */
    struct guard_policy guard;
    uint8_t hold;               /* enum hold_switch */
    struct hold_origin held_by; /* of the switch as it is; the catalog's, no document has it */
    struct label labels[LIMIT_LABELS];
    uint32_t n_labels;
    struct backend *backends; /* owned; sorted by endpoint, no duplicates */
    uint32_t n_backends;
};

/* New flows take turns by weight, and not by a hash that is the same on all nodes. */
bool scheduler_takes_turns(unsigned scheduler);
/* What hangs on other fields of a group that was read as a whole: a slow start by the preset
 * `standard` is none where the group can have none (validate.h refuses one that was asked for); and
 * of several checks what group_settle_checks makes. */
void server_group_settle(struct server_group *group);

/* Frees what the struct owns and zeroes it; allowed on a zeroed struct. */
void server_group_close(struct server_group *group);
/* Gives `to` a copy of the list of its own. Errors: ERR_NOMEM, `to` has none then. */
int server_group_copy_checks(struct server_group *to, const struct server_group *from);

/* How many checks a backend has, and each of them: without a list the one `check`. */
unsigned group_n_checks(const struct server_group *group);
const struct health_check *group_check_at(const struct server_group *group, unsigned index);
/* Of them, those whose votes may eject. */
unsigned group_n_local(const struct server_group *group);
/* The local one of that index among them; NULL: there are fewer, or there is no list. */
const struct named_check *group_local_check(const struct server_group *group, unsigned index);
/* A backend has two or more local checks: its vote is composed of their opinions. */
bool group_is_composed(const struct server_group *group);
/* k: so many local checks must pass; 1 without a list. */
unsigned group_pass_k(const struct server_group *group);

/* Makes group->check, with a list, what the vote on a backend is of. With one local check it is
 * that one. With more nothing is probed by it: its type is CHECK_TYPE_NONE, its failure window and
 * its T + I beyond U - 1 intervals are those of the slowest local check, whichever decides. */
void group_settle_checks(struct server_group *group);

/* From the start of the first failing (passing) probe of the local check that decides, at most.
 * response_ms: of each probe that passes. */
uint64_t group_failure_window_ms(const struct server_group *group);
uint64_t group_success_window_ms(const struct server_group *group, uint64_t response_ms);
/* T + I of the slowest local check. */
uint32_t group_cycle_ms(const struct server_group *group);

/* By endpoint, as the catalog wants them; duplicates stay side by side and validate_group names
 * them. */
void server_group_sort_backends(struct server_group *group);

#endif
