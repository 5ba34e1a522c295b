/* What votes cost (R-CW-1): N nodes in N processes, real engines, real meshes with CURVE on
 * loopback; bytes and CPU of a node a second while all targets are up, while all are down, and
 * while every second one flaps, in rounds that alternate; and the memory of a target and of a peer.
 *
 * usage: bench_votes [--nodes N] [--targets N] [--each N] [--vote-ms V] [--interval-ms I]
 *                    [--rounds N] [--window-s S] [--memory N]
 *
 * A second is as many vote intervals as it has: a window that happens to hold one more is no
 * dearer. Goal: down and up differ by less than 10 %. It fails when the bytes do, and when the CPU
 * does by more than its bound, in the median of the ratios of one round: CPU time of a shared
 * machine is not exact to 10 % in a short window; and when more changes are told than a vote
 * interval may have.
 * --memory N: also how memory grows from N targets, and from a quarter of the nodes. */
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zmq.h>

#include "agent/core/engine.h"
#include "common/base/clock.h"
#include "common/base/units.h"
#include "tests/lib/vote_node.h"

#define PATIENCE_NS (120 * NS_PER_SECOND)
#define ROUNDS_MAX 64
#define SETTLED_VECTORS 2 /* the first may have been on its way when the last opinion changed */
#define BYTES_BOUND 1.10
#define CPU_BOUND 1.2 /* of windows of LONG_S or more */
#define CPU_BOUND_SHORT 1.5
#define LONG_S 5
/* Resident bytes of a node with 16 peers: what malloc gives a target (ENGINE_BYTES_A_TARGET), the
 * ring of the past as far as it grows from the few to the many, and what waits in libzmq's queues:
 * on a machine with a load of 13, 1618 and 38 were seen. */
#define TARGET_BYTES_BOUND 2000
#define PEER_BYTES_BOUND 50 /* a peer and target */

struct options {
    struct big_catalog size;
    uint32_t n_rounds;
    uint32_t window_s;
    uint32_t memory_targets; /* 0 = not asked for */
};

struct cost { /* of one node, a second */
    double bytes, cpu_us, loop_us, left, opinions;
};

static struct vote_board *board;
static pid_t pids[LIMIT_NODES];

static void end_nodes(void)
{
    for (uint32_t i = 0; i < LIMIT_NODES; i++) {
        if (pids[i] > 0) {
            kill(pids[i], SIGKILL);
            waitpid(pids[i], NULL, 0);
            pids[i] = 0;
        }
    }
}

static void fail(const char *what)
{
    printf("FAILED: %s\n", what);
    fflush(stdout);
    end_nodes();
    _exit(1);
}

/* --- the nodes --- */

static void wait_for(const char *what, bool (*is_so)(const struct vote_seat *seat))
{
    uint64_t end_ns = clock_monotonic_ns() + PATIENCE_NS;

    for (uint32_t i = 0; i < board->size.n_nodes; i++) {
        while (!is_so(&board->seats[i])) {
            if (clock_monotonic_ns() > end_ns || waitpid(pids[i], NULL, WNOHANG) != 0) {
                fail(what);
            }
            usleep(2000);
        }
    }
}

static bool is_bound(const struct vote_seat *seat)
{
    return seat->port != 0;
}

static bool is_full(const struct vote_seat *seat)
{
    return seat->n_full == board->weather_number;
}

static bool is_sampled(const struct vote_seat *seat)
{
    return seat->n_sampled == board->n_wanted;
}

static void sample_all(void)
{
    board->n_wanted++;
    wait_for("a node gave no sample", is_sampled);
}

static bool all_follow(enum vote_weather weather)
{
    for (uint32_t i = 0; i < board->size.n_nodes; i++) {
        const struct vote_sample *sample = &board->seats[i].sample;
        uint32_t n = weather == WEATHER_DOWN ? sample->n_unhealthy : sample->n_healthy;

        if (sample->n_welcome + 1 != board->size.n_nodes ||
            (weather != WEATHER_FLAP && n != board->size.n_targets)) {
            return false;
        }
    }
    return true;
}

static void print_stragglers(void)
{
    for (uint32_t i = 0; i < board->size.n_nodes; i++) {
        const struct vote_sample *sample = &board->seats[i].sample;

        printf("node %u: %u peers, %u healthy, %u unhealthy%s\n", i + 1, sample->n_welcome,
               sample->n_healthy, sample->n_unhealthy,
               sample->is_doubtful ? ", doubts itself" : "");
    }
}

/* All nodes see the weather; returns how long that took. */
static uint64_t set_weather(enum vote_weather weather)
{
    uint64_t start_ns = clock_monotonic_ns();

    board->weather = weather;
    board->weather_number++;
    wait_for("a node had no results", is_full);
    for (sample_all(); !all_follow(weather); sample_all()) {
        if (clock_monotonic_ns() > start_ns + PATIENCE_NS) {
            print_stragglers();
            fail("the verdicts did not follow the weather");
        }
        usleep(50000);
    }
    return clock_monotonic_ns() - start_ns;
}

static void start_nodes(const struct big_catalog *size)
{
    memset(board, 0, sizeof *board);
    board->size = *size;
    for (uint32_t i = 0; i < size->n_nodes; i++) {
        char public_text[41], secret_text[41];

        if (zmq_curve_keypair(public_text, secret_text) != 0) {
            fail("libzmq makes no CURVE keys");
        }
        zmq_z85_decode(board->seats[i].keys.public_key, public_text);
        zmq_z85_decode(board->seats[i].keys.secret_key, secret_text);
    }
    fflush(stdout);
    for (uint32_t i = 0; i < size->n_nodes; i++) {
        pids[i] = fork();
        if (pids[i] == 0) {
            _exit(vote_node_run(board, i));
        }
    }
    wait_for("a node did not bind", is_bound);
    board->may_dial = true;
    set_weather(WEATHER_UP);
}

/* --- measuring --- */

/* The mean node between the samples taken before and those of now. */
static struct cost cost_since(const struct vote_sample before[])
{
    struct cost cost = {0};
    uint32_t n = board->size.n_nodes;

    for (uint32_t i = 0; i < n; i++) {
        const struct vote_sample *a = &before[i];
        const struct vote_sample *b = &board->seats[i].sample;
        double vectors = (double)(b->n_vectors - a->n_vectors);
        double seconds = vectors * board->size.vote_interval_ms / 1000 * n;

        cost.bytes += (double)(b->bytes_sent - a->bytes_sent) / seconds;
        cost.cpu_us += (double)(b->cpu_ns - a->cpu_ns) / NS_PER_US / seconds;
        cost.loop_us += (double)(b->loop_cpu_ns - a->loop_cpu_ns) / NS_PER_US / seconds;
        cost.left += (double)(b->changes_left - a->changes_left) / seconds;
        cost.opinions += (double)(b->n_opinion_changes - a->n_opinion_changes) / seconds;
    }
    return cost;
}

static void keep_samples(struct vote_sample to[LIMIT_NODES])
{
    sample_all();
    for (uint32_t i = 0; i < board->size.n_nodes; i++) {
        to[i] = board->seats[i].sample;
    }
}

/* Whether each node has said all of its opinions in vectors since the last of them changed. While
 * targets flap there is no last one: since since[] was taken. */
static bool is_settled(enum vote_weather weather, struct vote_sample since[LIMIT_NODES])
{
    bool all = true;

    for (uint32_t i = 0; i < board->size.n_nodes; i++) {
        const struct vote_sample *sample = &board->seats[i].sample;

        if (weather != WEATHER_FLAP && sample->n_opinion_changes != since[i].n_opinion_changes) {
            since[i] = *sample;
        }
        all = all && sample->n_vectors >= since[i].n_vectors + SETTLED_VECTORS;
    }
    return all;
}

/* The last of a change, after the verdicts have followed: it is no part of what comes after it. */
static void settle(enum vote_weather weather)
{
    struct vote_sample since[LIMIT_NODES];
    uint64_t end_ns = clock_monotonic_ns() + PATIENCE_NS;

    for (keep_samples(since); !is_settled(weather, since); sample_all()) {
        if (clock_monotonic_ns() > end_ns) {
            fail("the opinions did not come to rest");
        }
        usleep((useconds_t)(board->size.vote_interval_ms * 1000 / 4)); /* a sample costs CPU */
    }
}

static struct cost measure(enum vote_weather weather, uint32_t window_s)
{
    static const char *const words[WEATHERS] = {"all up", "all down", "half flapping"};
    struct vote_sample before[LIMIT_NODES];

    keep_samples(before);
    double took_s = (double)set_weather(weather) / NS_PER_SECOND;
    settle(weather);
    struct cost storm = cost_since(before);
    keep_samples(before);
    sleep(window_s); /* waits for nothing: the window is a length of time, its rates are measured */
    sample_all();
    for (uint32_t i = 0; i < board->size.n_nodes; i++) {
        if (board->seats[i].sample.bytes_sent < before[i].bytes_sent) {
            fail("a connection was lost while it was measured: this machine is too busy");
        }
    }
    struct cost cost = cost_since(before);
    printf("%-14s %9.0f bytes/s %8.0f us CPU/s (loop %6.0f) %6.0f opinions/s %6.0f left;"
           "  change: %.1f s, %.0f us CPU/s\n",
           words[weather], cost.bytes, cost.cpu_us, cost.loop_us, cost.opinions, cost.left, took_s,
           storm.cpu_us);
    fflush(stdout);
    return cost;
}

static int compare(const void *a, const void *b)
{
    double value_a = *(const double *)a, value_b = *(const double *)b;

    return (value_a > value_b) - (value_a < value_b);
}

struct spread {
    double least, median, most;
};

static struct spread spread_of(double values[], uint32_t n)
{
    qsort(values, n, sizeof *values, compare);
    double median = n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;

    return (struct spread){values[0], median, values[n - 1]};
}

typedef double (*figure_of)(const struct cost *cost);

static double bytes_of(const struct cost *cost)
{
    return cost->bytes;
}

static double cpu_of(const struct cost *cost)
{
    return cost->cpu_us;
}

/* One line of the table: absolute, and against all up in the same round. Returns the ratio. */
static double print_row(const char *what, figure_of figure, struct cost costs[][WEATHERS],
                        uint32_t n_rounds, enum vote_weather weather)
{
    double values[ROUNDS_MAX], ratios[ROUNDS_MAX];

    for (uint32_t i = 0; i < n_rounds; i++) {
        values[i] = figure(&costs[i][weather]);
        ratios[i] = values[i] / figure(&costs[i][WEATHER_UP]);
    }
    struct spread value = spread_of(values, n_rounds), ratio = spread_of(ratios, n_rounds);
    printf("%-32s %9.0f / %9.0f / %9.0f   / all up: %.3f / %.3f / %.3f\n", what, value.least,
           value.median, value.most, ratio.least, ratio.median, ratio.most);
    return ratio.median;
}

static bool is_within(double ratio, double bound)
{
    return ratio < bound && ratio > 1 / bound;
}

/* Change messages of one node a second, while half of all targets flap. */
static double most_told(struct cost costs[][WEATHERS], uint32_t n_rounds)
{
    double most = 0;

    for (uint32_t i = 0; i < n_rounds; i++) {
        double told = costs[i][WEATHER_FLAP].opinions - costs[i][WEATHER_FLAP].left;

        most = told > most ? told : most;
    }
    return most;
}

static void run_rounds(const struct options *options)
{
    static struct cost costs[ROUNDS_MAX][WEATHERS];
    uint32_t n = options->n_rounds;
    /* Flapping is shown and bounded, not compared: in short windows the last round has to do. */
    uint32_t first_flap = options->window_s < LONG_S ? n - 1 : 0;

    for (uint32_t round = 0; round < n; round++) {
        /* up, down, flap; down, up, flap; so neither is always the first. */
        enum vote_weather first = round % 2 == 0 ? WEATHER_UP : WEATHER_DOWN;
        enum vote_weather second = first == WEATHER_UP ? WEATHER_DOWN : WEATHER_UP;

        costs[round][first] = measure(first, options->window_s);
        costs[round][second] = measure(second, options->window_s);
        if (round >= first_flap) {
            costs[round][WEATHER_FLAP] = measure(WEATHER_FLAP, options->window_s);
        }
    }
    printf("a node, a second: min / median / max of %u rounds\n", n);
    print_row("bytes sent, all up", bytes_of, costs, n, WEATHER_UP);
    double bytes = print_row("bytes sent, all down", bytes_of, costs, n, WEATHER_DOWN);
    print_row("bytes sent, half flapping", bytes_of, costs + first_flap, n - first_flap,
              WEATHER_FLAP);
    print_row("us of CPU, all up", cpu_of, costs, n, WEATHER_UP);
    double cpu = print_row("us of CPU, all down", cpu_of, costs, n, WEATHER_DOWN);
    double flap = print_row("us of CPU, half flapping", cpu_of, costs + first_flap, n - first_flap,
                            WEATHER_FLAP);
    double cpu_bound = options->window_s < LONG_S ? CPU_BOUND_SHORT : CPU_BOUND;
    if (!is_within(bytes, BYTES_BOUND) || !is_within(cpu, cpu_bound)) {
        fail("all down is dearer or cheaper than all up");
    }
    if (most_told(costs + first_flap, n - first_flap) >
        1.05 * ENGINE_CHANGES * 1000 / board->size.vote_interval_ms) {
        fail("more changes are told than a vote interval may have");
    }
    printf("bytes down/up %.3f, CPU down/up %.3f (goal 0.9-1.1), CPU flapping/up %.2f\n", bytes,
           cpu, flap);
}

/* --- memory --- */

/* Resident bytes of the mean node beyond what it had before it began, after a change of all. */
static double resident(const struct big_catalog *size)
{
    double sum = 0;

    start_nodes(size);
    set_weather(WEATHER_DOWN);
    for (uint32_t i = 0; i < size->n_nodes; i++) {
        sum += (double)(board->seats[i].sample.resident_bytes - board->seats[i].start_bytes);
    }
    end_nodes();
    printf("%u nodes, %u targets: %.1f MB resident a node\n", size->n_nodes, size->n_targets,
           sum / size->n_nodes / 1e6);
    return sum / size->n_nodes;
}

static void run_memory(const struct options *options)
{
    struct big_catalog few_targets = options->size, few_nodes = options->size;

    few_targets.n_targets = options->memory_targets;
    few_nodes.n_nodes = options->size.n_nodes / 4 + 1;
    double all = resident(&options->size);
    double target =
        (all - resident(&few_targets)) / (options->size.n_targets - few_targets.n_targets);
    double peer = (all - resident(&few_nodes)) / (options->size.n_nodes - few_nodes.n_nodes);
    double peer_target = peer / options->size.n_targets;

    printf("memory: %.0f bytes a target (bound %d), %.2f MB a peer = %.1f bytes a peer and target "
           "(bound %d)\n",
           target, TARGET_BYTES_BOUND, peer / 1e6, peer_target, PEER_BYTES_BOUND);
    if (target > TARGET_BYTES_BOUND || peer_target > PEER_BYTES_BOUND) {
        fail("a target or a peer takes too much memory");
    }
}

static uint32_t number(const char *text)
{
    return (uint32_t)strtoul(text, NULL, 10);
}

static void read_options(int argc, char **argv, struct options *options)
{
    static const struct option names[] = {
        {"nodes", 1, NULL, 'n'},       {"targets", 1, NULL, 't'}, {"each", 1, NULL, 'e'},
        {"vote-ms", 1, NULL, 'v'},     {"rounds", 1, NULL, 'r'},  {"window-s", 1, NULL, 'w'},
        {"interval-ms", 1, NULL, 'i'}, {"memory", 1, NULL, 'm'},  {NULL, 0, NULL, 0}};
    int name;

    while ((name = getopt_long(argc, argv, "", names, NULL)) != -1) {
        uint32_t *const to = name == 'n'   ? &options->size.n_nodes
                             : name == 't' ? &options->size.n_targets
                             : name == 'e' ? &options->size.n_each
                             : name == 'v' ? &options->size.vote_interval_ms
                             : name == 'r' ? &options->n_rounds
                             : name == 'w' ? &options->window_s
                             : name == 'i' ? &options->size.interval_ms
                             : name == 'm' ? &options->memory_targets
                                           : NULL;

        if (to == NULL) {
            exit(2);
        }
        *to = number(optarg);
    }
}

int main(int argc, char **argv)
{
    struct options options = {.size = {.n_nodes = 16,
                                       .n_targets = 100000,
                                       .n_each = 100,
                                       .vote_interval_ms = 1000,
                                       .interval_ms = 10000},
                              .n_rounds = 4,
                              .window_s = 10};

    read_options(argc, argv, &options);
    if (options.size.n_nodes < 2 || options.size.n_nodes > LIMIT_NODES ||
        options.n_rounds > ROUNDS_MAX) {
        return 2;
    }
    board = mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (board == MAP_FAILED) {
        return 1;
    }
    printf("%u nodes, %u targets in groups of %u, V %u ms, I %u ms\n", options.size.n_nodes,
           options.size.n_targets, options.size.n_each, options.size.vote_interval_ms,
           options.size.interval_ms);
    if (options.memory_targets > 0) {
        run_memory(&options);
    }
    if (options.n_rounds > 0) {
        start_nodes(&options.size);
        run_rounds(&options);
        end_nodes();
    }
    return 0;
}
