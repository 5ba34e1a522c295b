/* One node of a cluster as a process of its own: a real engine and a real mesh with CURVE on
 * loopback, and results of probes that the bench decides. No store, no table, no probe thread.
 *
 * The nodes and the bench that forked them share one struct vote_board; each word in it has one
 * writer. */
#ifndef JURY_TESTS_VOTE_NODE_H
#define JURY_TESTS_VOTE_NODE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "agent/loop/sock.h"
#include "tests/lib/big_catalog.h"

/* What the probes of all nodes say. */
enum vote_weather {
    WEATHER_UP = 0,   /* every target passes */
    WEATHER_DOWN = 1, /* every target fails */
    WEATHER_FLAP = 2, /* every second target changes with each of its results, the others pass */
    WEATHERS
};

struct vote_sample {
    uint64_t cpu_ns;       /* of the process: loop, libzmq's I/O and ZAP */
    uint64_t loop_cpu_ns;  /* of the loop's thread alone */
    uint64_t bytes_sent;   /* by all its TCP sockets */
    uint64_t changes_left; /* engine counter changes_not_sent */
    uint64_t n_opinion_changes;
    uint64_t n_vectors; /* sent */
    uint64_t resident_bytes;
    uint32_t n_healthy, n_unhealthy; /* verdicts */
    uint32_t n_welcome;              /* peers that vote */
    bool is_doubtful;
};

struct vote_seat {
    struct curve_keys keys;  /* the bench's */
    _Atomic uint16_t port;   /* 0 = not bound yet */
    _Atomic uint32_t n_full; /* weather_number that every target has had a result of */
    _Atomic uint32_t n_sampled;
    struct vote_sample sample; /* of n_sampled */
    uint64_t start_bytes;      /* resident before engine, catalog and mesh */
};

struct vote_board {
    struct big_catalog size;
    _Atomic bool may_dial; /* all are bound */
    _Atomic uint32_t weather;
    _Atomic uint32_t weather_number; /* raised with each change: every target gets a result */
    _Atomic uint32_t n_wanted;       /* samples */
    _Atomic bool is_over;
    struct vote_seat seats[LIMIT_NODES];
};

/* Runs node index + 1 until the board says that it is over; the exit status of the process. */
int vote_node_run(struct vote_board *board, uint32_t index);

#endif
