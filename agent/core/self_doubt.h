/* How far this node trusts its own probes: a score of 0 to 7 for each kind of probe, and from 4 on
 * the kind is suspect (spec.md 5, R-SELF-1..5). Pure: the shell measures (agent/agent_doubt.c), the
 * engine counts (engine_doubt.c), this decides. All times are monotonic and never go back between
 * calls. Whoever steps the engine, on its thread.
 *
 * What is suspect is published with the votes; a suspect vote counts nowhere, the own one neither.
 * No probe is changed by it. What makes a score, the parts being added:
 *
 *  - loop-late, up to 4: the loops of this node turned late. What was lost is added up and half of
 *    the time that passes is taken off; a second of it gives 4.
 *  - local-faults, 4: the last probe of at least 3 targets of the kind, and of a quarter of them,
 *    was a shortage here (descriptor, port, buffer, time).
 *  - loopback, 4: two probes of this node's own sentinel port got no answer within 3 s, for the
 *    kinds that the sentinel stands for. A refusal is an answer (agent/probe/sentinel_port.h).
 *  - lossy, 2: sentinel probes of at least two peers, and of more than half of them, time out now
 *    and then; 4 if also runs of failures have begun here, at least 3 and one for 16 targets within
 *    the last 10 to 20 s; 3 with fewer of them: doubt that has begun lasts. It is new failures that
 *    tell a lossy way from dead backends, which fail once and for all.
 *  - isolated, 2: with three observers or more, fewer are heard than make a quorum, or all that
 *    sentinel probes reach is silent; 4 if also more than half of all targets, at least 3, fail.
 *  - contradicted, 2: at least 3 targets of the kind, and a quarter of all that fail here, pass at
 *    most peers; 4 if it is half of all targets. A single cut path never adds anything.
 *
 * Losing peers alone is not enough for doubt: a node without them goes on by itself (R-SS-1), and
 * a cut between the nodes says nothing of the way to the backends. Nor are some failing targets
 * that the others reach: that is a cut path, for which `unreachable from here` is made.
 *
 * A kind stays suspect until its score has been seen to be 2 or less for 5 s: time in which nobody
 * looked, since this node stood still, is none of them. */
#ifndef JURY_CORE_SELF_DOUBT_H
#define JURY_CORE_SELF_DOUBT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/model/check.h"
#include "common/model/doubt.h"

#define DOUBT_SCORE_MAX 7
#define DOUBT_SCORE_SUSPECT 4
#define DOUBT_SCORE_CALM 2
#define DOUBT_CALM_NS (UINT64_C(5) * 1000000000)
#define DOUBT_TARGETS 3                            /* fewer say nothing about this node */
#define DOUBT_FRESH_NS (UINT64_C(10) * 1000000000) /* new failures are counted by this time */
#define DOUBT_KINDS (CHECK_TYPE_GRPC + 1)

#define SENTINEL_PEERS 4 /* a node probes itself and so many peers */
#define SENTINEL_WINDOW_NS (UINT64_C(3) * 1000000000)
#define SENTINEL_FAILURES 4 /* that are remembered of each */
#define LOOPS_NOISE_NS (UINT64_C(20) * 1000000)

/* One probe of a sentinel: this node's own port or a peer's. */
struct sentinel_result {
    uint64_t node_id; /* whose */
    uint32_t kinds;   /* bits 1 << enum check_type: kinds of probes that it stands for */
    uint8_t reason;   /* enum probe_reason */
    bool is_refused;  /* by a RST of its very address and port: that is an answer as well */
    uint64_t end_ns;
};

/* A member whose sentinel might be probed. */
struct sentinel_member {
    uint64_t node_id;
    bool is_known; /* where its port is */
};

/* What the loops of the shell say of themselves; the differences count. */
struct loops_sample {
    uint64_t now_ns;           /* of the health loop's tick */
    uint64_t probe_stalled_ns; /* total that the probe thread woke up too late */
    uint64_t n_probe_stalls;   /* total that were seen from outside */
    bool probe_is_stalled;     /* now, seen from outside */
};

struct loops_late {
    uint64_t tick_interval_ns; /* of the health loop */
    uint64_t stall_ns;         /* how long the probe thread stands still before it is a stall */
    struct loops_sample last;  /* now_ns 0 = none yet */
};

/* What the targets of one kind look like from here. */
struct doubt_targets {
    uint32_t n_probed;
    uint32_t n_failing; /* the last conclusive probe failed */
    uint32_t n_faulty;  /* the last probe was a shortage of this node */
    /* Votes on backends: however many checks one has, its path is one. */
    uint32_t n_votes;
    uint32_t n_down;         /* own opinion `fail` */
    uint32_t n_contradicted; /* of those: most peers say `pass`, and have had the time to see it */
};

struct doubt_survey {
    struct doubt_targets kinds[DOUBT_KINDS]; /* by enum check_type */
    uint8_t n_observers;                     /* n */
    uint8_t n_fresh;                         /* heard within 3 V, this node included */
};

struct doubt_sentinel {
    uint64_t node_id; /* 0 = free */
    uint32_t kinds;
    uint32_t n_passes; /* a peer that has never passed is no witness */
    uint64_t heard_ns; /* end of the last result */
    uint64_t passed_ns;
    uint64_t failed_ns[SENTINEL_FAILURES]; /* in turn */
    uint32_t n_failed;
};

struct doubt_kind {
    uint8_t score;
    uint8_t causes; /* bits 1 << enum doubt_cause: what adds to the score now */
    bool is_suspect;
    uint64_t since_ns; /* is_suspect: when it began */
    uint64_t
        calm_ns; /* since when the score was seen to be DOUBT_SCORE_CALM or less; 0 = it is not */
};

struct self_doubt {
    uint64_t self_id;
    uint64_t late_ns; /* lost time, at late_at_ns */
    uint64_t late_at_ns;
    uint32_t n_fresh_failures, n_fresh_before; /* runs that began in this time and the one before */
    uint64_t fresh_ns;                         /* when this time began */
    struct doubt_sentinel sentinels[SENTINEL_PEERS + 1];
    struct doubt_survey survey;
    struct doubt_kind kinds[DOUBT_KINDS];
    uint8_t causes; /* since the doubt began: for views and peers; 0 while nothing is suspect */
};

void self_doubt_init(struct self_doubt *doubt, uint64_t self_id, uint64_t now_ns);

/* Which members' sentinels to probe: of those whose port is known, the SENTINEL_PEERS that follow
 * this node; so each is probed by as many as it probes.
 *
 * members: n of them by node id, this node among them.
 * Returns how many of ret_chosen, indexes of members, are set. */
unsigned self_doubt_choose_peers(const struct sentinel_member members[], size_t n, uint64_t self_id,
                                 size_t ret_chosen[SENTINEL_PEERS]);

/* How late the loops are since the last sample, once a tick of the health loop: the later of the
 * two, since a machine that is busy holds up both at a time. The probe thread by what it says of
 * its wake-ups, and while it says nothing by what was seen from outside: the stall that was found,
 * and each tick that it lasts.
 *
 * Returns nanoseconds for self_doubt_note_late; 0 = at most LOOPS_NOISE_NS, which is any machine.
 */
uint64_t self_doubt_take_loops(struct loops_late *loops, const struct loops_sample *sample);

/* The shell's loops turned late by so much since it last said so. */
void self_doubt_note_late(struct self_doubt *doubt, uint64_t late_ns, uint64_t now_ns);
/* A target failed for the first time after a pass, or at all. */
void self_doubt_note_fresh_failure(struct self_doubt *doubt, uint64_t now_ns);
/* result: node_id and end_ns not 0. Of more than SENTINEL_PEERS + 1 nodes the one heard longest ago
 * is forgotten. */
void self_doubt_note_sentinel(struct self_doubt *doubt, const struct sentinel_result *result);
/* Whether a result of this reason speaks of a shortage here. What is wrong with one address alone
 * (forbidden, no route, no source, no permission) says nothing of the other targets. */
bool self_doubt_is_shortage(unsigned reason);

/* Work out scores and the mask again, after anything that they depend on changed, and each V.
 * Returns the kinds (bits 1 << enum check_type) whose suspicion began or ended. */
uint32_t self_doubt_judge(struct self_doubt *doubt, uint64_t now_ns);

/* The mask of kinds that are suspect now. */
uint32_t self_doubt_mask(const struct self_doubt *doubt);

/* Sentinels that have been answering, this node's own among them; only the silence of these means
 * anything. */
uint8_t self_doubt_n_witnesses(const struct self_doubt *doubt, uint64_t now_ns);

/* For views: the highest score, and since when the longest suspicion that lasts has lasted. */
struct doubt_look {
    uint8_t score;
    uint8_t causes;     /* of that score now, or of the doubt that lasts */
    uint8_t causes_now; /* of the scores now */
    uint32_t mask;
    uint64_t since_ns; /* with a mask */
    uint64_t calm_ns;  /* with a mask and a score that may end it: since when */
};
void self_doubt_look(const struct self_doubt *doubt, struct doubt_look *ret_look);

#endif
