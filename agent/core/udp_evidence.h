/* What ICMP errors said of UDP ports, shared by all checks that look at them (N13, S49). Pure.
 *
 * "Port unreachable" is said of an address and a port, whichever check asked. It counts for every
 * check on them whose probe is under way, and for one that begins within an interval of that check
 * afterwards and hears nothing: Linux limits the ICMP errors that it sends to one address, to six
 * at once and then one a second (icmp_ratelimit, icmp(7)), so of eight checks on a closed port some
 * get no answer. A datagram from the port takes it back.
 *
 * For the same reason silence proves nothing while a host may send no more of them. Each address
 * has here such a bucket as it has there, and a probe that began while it was empty and heard
 * nothing is neither passed nor failed. It is a smaller one that fills more slowly, since others
 * make the host send errors too: what comes at the pace of the limit is taken for the limit soon,
 * and the first error of a host, which may have sent many before, at once.
 *
 * Bounded: a table of each, four places a bucket, the oldest gives way. What is lost so is evidence
 * only: each check then goes by its own. */
#ifndef JURY_CORE_UDP_EVIDENCE_H
#define JURY_CORE_UDP_EVIDENCE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/addr.h"
#include "common/base/hash.h"

#define UDP_EVIDENCE_BUCKETS 2048 /* a power of two */
#define UDP_EVIDENCE_WAYS 4
#define UDP_EVIDENCE_BURST 3 /* errors at once; XRLIM_BURST_FACTOR of Linux is 6 */
/* One more after; icmp_ratelimit of Linux is 1 s. */
#define UDP_EVIDENCE_REFILL_NS UINT64_C(1500000000)
/* Between a probe's start and the moment at which the backend's host handles it. */
#define UDP_EVIDENCE_SLACK_NS UINT64_C(250000000)

struct udp_refusal {
    struct endpoint at;
    uint64_t heard_ns; /* 0 = free */
};

struct udp_budget {
    struct addr host;
    uint64_t heard_ns;     /* of the last error; 0 = free */
    uint64_t tokens_ns;    /* left then, as time of refill */
    uint64_t empty_ns;     /* since when it has been empty, with gaps of no more than a refill */
    uint64_t empty_end_ns; /* until when */
};

struct udp_evidence {
    struct hash_key key;
    struct udp_refusal refusals[UDP_EVIDENCE_BUCKETS][UDP_EVIDENCE_WAYS];
    struct udp_budget budgets[UDP_EVIDENCE_BUCKETS][UDP_EVIDENCE_WAYS];
};

/* key: secret, so that nobody chooses addresses that push each other out. */
void udp_evidence_init(struct udp_evidence *evidence, const struct hash_key *key);

/* "Port unreachable" came from the host itself. Times are monotonic and never 0. */
void udp_evidence_refused(struct udp_evidence *evidence, const struct endpoint *at,
                          uint64_t now_ns);
/* A datagram went to a port that is known to be closed, and nobody waits for what the host says: it
 * spends what it has for that all the same. */
void udp_evidence_presumed(struct udp_evidence *evidence, const struct endpoint *at,
                           uint64_t now_ns);
/* Something came from that very port. */
void udp_evidence_answered(struct udp_evidence *evidence, const struct endpoint *at);

/* What the silence of a probe means. */
enum udp_silence {
    UDP_SILENCE_HOLDS,   /* nothing is known that speaks against it */
    UDP_SILENCE_REFUSED, /* another check was told that the port is closed */
    UDP_SILENCE_LIMITED  /* the host could not have said it */
};
enum udp_silence udp_evidence_judge(const struct udp_evidence *evidence, const struct endpoint *at,
                                    uint64_t start_ns, uint64_t interval_ns);

#endif
