/* What agents tell each other about health, as plain values. The bytes on the wire are
 * proto/jury/internal/peer.proto; common/wire converts. No wall clock: ages travel as durations and
 * count by the receiver's monotonic clock. */
#ifndef JURY_CORE_VOTE_MSG_H
#define JURY_CORE_VOTE_MSG_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/core/probe.h"
#include "common/base/hash.h"
#include "common/base/limits.h"
#include "common/model/cluster.h"
#include "common/model/reason.h"

/* One part of a node's whole vector. All chunks of one vector carry the same sequence; a vector is
 * sent each V whatever it holds (R-CW-1). */
struct vote_chunk {
    uint64_t epoch;    /* the sender's start counter */
    uint64_t sequence; /* rises with each vector and each change message of the epoch */
    uint64_t revision; /* R: the sender's catalog */
    uint64_t floor;    /* B: birth of the newest slot that `births` leaves out, else 0 */
    uint16_t chunk;    /* slots chunk * 4096 .. +4095 */
    uint16_t n_chunks; /* of this vector */
    uint16_t n_births;
    uint32_t suspect_mask; /* bit 1 << enum check_type: the sender doubts its own probes */
    uint8_t doubt_causes;  /* bit 1 << enum doubt_cause: why; for people alone */
    struct hash128 digest; /* of (slot, birth, definition hash) of the chunk at R */
    struct target_id births[LIMIT_BIRTHS_PER_CHUNK];
    /* Two bits a slot, lowest slot lowest bits: enum opinion, or VOTE_WAVERS. */
    uint8_t opinions[LIMIT_VOTE_SLOTS_PER_CHUNK / 4];
};

/* OPINION_PASS, though the sender's last probe failed: its first failure, told before there is an
 * opinion of it. Of targets with probers or recheck. */
#define VOTE_WAVERS 3

/* Sent at once when an opinion changes, and as the answer to a question of `why`. */
struct vote_change {
    uint64_t epoch;
    uint64_t sequence;
    struct target_id target;
    uint8_t opinion; /* enum opinion */
    uint8_t reason;  /* enum probe_reason of the last conclusive probe */
    uint16_t http_status;
    uint32_t response_us;
    uint32_t streak;       /* results in a row that agree with the opinion */
    uint64_t since_ms;     /* how long the opinion has held, at sending */
    uint64_t probe_age_ms; /* since the last conclusive probe ended, rounded up; 0 = not told */
    uint32_t suspect_mask;
    uint8_t part; /* of several checks: whose reason it is, from 1; else 0 */
    bool wavers;  /* VOTE_WAVERS; opinion is OPINION_PASS */
};

/* `why` asks a peer for what its change messages did not bring. Each target is answered with one
 * vote_change to the asker (not to the others), which counts like any other. */
struct vote_question {
    uint64_t epoch;
    uint64_t sequence; /* a row of its own: questions and votes are not ordered to each other */
    uint16_t n_targets;
    struct target_id targets[LIMIT_QUESTION_TARGETS];
};

/* What is left of the flows on rows that drain or were removed, sent with each vector while there
 * is such a row; more rows than fit are sent in turn. */
struct drain_entry {
    uint32_t row;
    uint64_t birth;
    uint64_t drain_revision; /* which drain of the row */
    uint64_t n_flows;
    uint64_t n_closed; /* by this drain */
    bool is_counting;  /* a data plane of this node counts flows; else n_flows says nothing */
    bool is_done;      /* no flow is left, by a data plane that has adopted the drain; or the
                          deadline has passed; or nothing counts and there is no deadline */
};
struct drain_report {
    uint64_t epoch;
    uint64_t sequence; /* of the vector it goes with */
    uint16_t n_entries;
    struct drain_entry entries[LIMIT_DRAIN_ENTRIES];
};

/* Optional parts that an agent was built without. */
enum hello_unbuilt {
    HELLO_NO_TLS = 1 << 0,
    HELLO_NO_GRPC = 1 << 1
};

struct hello {
    struct cluster_id cluster_id;
    uint64_t node_id; /* must equal the ZAP User-Id, else the message is dropped */
    uint64_t epoch;
    uint64_t revision;
    uint32_t version_min; /* of this message set */
    uint32_t version_max;
    uint32_t feature_level;  /* a feature is used when all observers have it */
    bool is_observer;        /* has the catalog and probes */
    uint16_t sentinel_port;  /* where peers test their own probes; 0 = nowhere. The shell's */
    bool lacks_shared_space; /* no address in 100.64.0.0/10 for checks that ask. The shell's */
    uint8_t unbuilt;         /* set of enum hello_unbuilt. The shell's */
    bool store_is_down;      /* it failed, and does not run: no part in Raft. The shell's */
    uint64_t beat_ms;        /* the clock of the phases (engine_share.c); 0 = none */
};

#endif
