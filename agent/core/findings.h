/* What is wrong in the eyes of `nodectl status`, and the one word that follows from it.
 *
 * The word may never be better than what is found: nothing that keeps Jury from taking a bad
 * backend out, or a flow from finding one, is called healthy. A backend that is bad and out is no
 * finding: that is what Jury is for. Pure functions; who finds is agent/rpc/handlers_findings.c. */
#ifndef JURY_CORE_FINDINGS_H
#define JURY_CORE_FINDINGS_H

#include <stddef.h>
#include <stdint.h>

/* The words, and numbers of jury.v1.ClusterHealth. */
enum cluster_word {
    CLUSTER_UNKNOWN = 0,
    CLUSTER_HEALTHY = 1,
    CLUSTER_DEGRADED = 2,   /* it works, and not as it should */
    CLUSTER_UNAVAILABLE = 3 /* the catalog cannot be changed: no store, leader or quorum */
};

/* X(name behind FINDING_, number, word): in the order in which they are told - what flows suffer
 * from, what keeps verdicts from being reached, what may come to that. The number is that of
 * jury.v1.FindingKind; 255 of them at most. */
#define FINDING_KINDS(X)                                                                     \
    X(NOT_FORMED, 1, CLUSTER_UNKNOWN)     /* this node belongs to no cluster */              \
    X(STORE_DOWN, 2, CLUSTER_UNAVAILABLE) /* its store does not run */                       \
    X(NO_LEADER, 3, CLUSTER_UNAVAILABLE)                                                     \
    X(GROUP_CLOSED, 4, CLUSTER_DEGRADED)                                                     \
    X(GROUP_EMPTY, 5, CLUSTER_DEGRADED) /* a listener's group has no backends */             \
    X(GROUP_FAIL_OPEN, 6, CLUSTER_DEGRADED)                                                  \
    X(FEW_VOTES, 7, CLUSTER_DEGRADED)   /* backends below the quorum of votes */             \
    X(NODE_BLIND, 8, CLUSTER_DEGRADED)  /* this node has no vote on backends */              \
    X(NODE_DOUBTS, 9, CLUSTER_DEGRADED) /* this node doubts its own probes */                \
    X(PEER_BLIND, 10, CLUSTER_DEGRADED) /* a peer is heard and has no vote at all */         \
    X(PEER_DOUBTS, 11, CLUSTER_DEGRADED)                                                     \
    X(HOLD, 12, CLUSTER_DEGRADED)                                                            \
    X(ALARM, 13, CLUSTER_DEGRADED)  /* many went bad at once */                              \
    X(SHADOW, 14, CLUSTER_DEGRADED) /* that of a changed check is kept */                    \
    X(LAST_KNOWN_GOOD, 15, CLUSTER_DEGRADED)                                                 \
    X(MEMBER_SILENT, 16, CLUSTER_DEGRADED)                                                   \
    X(MEMBER_RESTORED, 17, CLUSTER_DEGRADED)                                                 \
    X(CATALOG_DIFFERS, 18, CLUSTER_DEGRADED)                                                 \
    X(STORE_TROUBLE, 19, CLUSTER_DEGRADED) /* it runs, and says something */                 \
    X(DISK, 20, CLUSTER_DEGRADED)          /* full or slow */                                \
    X(TABLE, 21, CLUSTER_DEGRADED)         /* the forwarding table */                        \
    X(DATA_PLANE, 22, CLUSTER_DEGRADED)                                                      \
    X(LISTENER, 23, CLUSTER_DEGRADED)          /* a data plane cannot open it */             \
    X(VERSION, 24, CLUSTER_DEGRADED)           /* keeps a feature from being used */         \
    X(MEMBER_STORE_DOWN, 25, CLUSTER_DEGRADED) /* it is heard, and its store does not run */ \
    X(MORE, 26, CLUSTER_DEGRADED)              /* what found no room in the answer */

enum finding_kind {
    FINDING_NONE = 0,
#define FINDING_ENUM(name, number, word) FINDING_##name = number,
    FINDING_KINDS(FINDING_ENUM)
#undef FINDING_ENUM
};

struct finding {
    uint8_t kind;         /* enum finding_kind */
    uint64_t node_id;     /* a peer that it is about; 0 = none */
    const char *sentence; /* for people. Kept */
    const char *next;     /* what to run next, "nodectl group describe web"; "" = nothing. Kept */
};

/* Healthy only without any finding; else the worst of their words. That it is not known is the
 * worst: then the others say little. */
enum cluster_word findings_word(const struct finding findings[], size_t n_findings);

/* Into the order of FINDING_KINDS; those of one kind keep theirs. */
void findings_sort(struct finding findings[], size_t n_findings);

#endif
