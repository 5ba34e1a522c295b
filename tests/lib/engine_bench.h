/* A probe engine and the other end of its connections, driven step by step from one thread: what
 * a backend does happens exactly between two runs of the engine. Failed expectations fail the test.
 */
#ifndef JURY_TESTS_ENGINE_BENCH_H
#define JURY_TESTS_ENGINE_BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/probe/connect_engine.h"
#include "agent/probe/packet_engine.h"
#include "agent/probe/udp_engine.h"

/* T where the probe is to time out, and T where it is not, however busy the machine. */
#define BENCH_TIMEOUT_MS 1000
#define BENCH_LONG_TIMEOUT_MS 10000
#define BENCH_PATIENCE_NS (3 * BENCH_LONG_TIMEOUT_MS * NS_PER_MS)

#define BENCH_RESULTS_MAX 16

struct engine_bench {
    struct probe_engine *engine;
    struct probe_lateness lateness;
    struct probe_counters counters; /* the packet and udp engines' */
    uint8_t handshake;              /* of bench_tcp_target */
    struct probe_result results[BENCH_RESULTS_MAX];
    unsigned n_results;
    int listener; /* -1 = none */
    uint16_t port;
};

void bench_init(struct engine_bench *bench, uint32_t capacity);
/* With the packet engine instead, and half-open targets. False: this process has not the rights,
 * and there is nothing to close. */
bool bench_init_packet(struct engine_bench *bench, uint32_t capacity);
/* With the udp engine instead, and targets of method port. */
void bench_init_udp(struct engine_bench *bench, uint32_t capacity);
void bench_close(struct engine_bench *bench);

/* Listen on loopback. family: AF_INET or AF_INET6. backlog < 0: the port is taken, but nobody
 * listens. */
void bench_listen(struct engine_bench *bench, int family, int backlog);
/* Targets at that port of 127.0.0.1, T = BENCH_LONG_TIMEOUT_MS; http expects 200-399. */
struct probe_target bench_tcp_target(const struct engine_bench *bench, uint32_t slot);
struct probe_target bench_udp_target(const struct engine_bench *bench, uint32_t slot);
struct probe_target bench_http_target(const struct engine_bench *bench, uint32_t slot);

void bench_submit(struct engine_bench *bench, const struct probe_target *target);
/* One wait of at most 5 ms and one run. */
void bench_step(struct engine_bench *bench);
void bench_run_until(struct engine_bench *bench, unsigned n_results);

/* The server's side; the engine runs meanwhile. */
/* The next connection, non-blocking. */
int bench_accept(struct engine_bench *bench);
/* The whole request; the connection stays open. */
void bench_read_request(struct engine_bench *bench, int fd, char *text, size_t text_bytes);
/* Until the connection ends: 0 = FIN, else the errno. */
int bench_read_to_end(struct engine_bench *bench, int fd);
void bench_say(int fd, const char *text);

void bench_assert_result(const struct engine_bench *bench, unsigned index,
                         enum probe_reason reason);
uint64_t bench_took_ms(const struct engine_bench *bench, unsigned index);

#endif
