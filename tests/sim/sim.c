/* Random clusters under random faults, judged after every step:
 *
 *     sim [--first N] [--seeds N] [--jobs N] [--trace]    storms, each followed by a calm
 *     sim --noise [...]                                   each seed twice, see below
 *
 * Each seed is a cluster of 1 to 7 nodes, of one in 200 up to 64, with groups of random rules and
 * checks on a network that delays, loses, doubles, overtakes and cuts in every shape, with clocks
 * that run at their own rates, restarts, crashes, standstills, frozen stores, nodes in zones,
 * holds, all guards and catalog changes that reach the nodes at different times: the safety
 * phase. Then all is well, and each verdict has to be what the backend really is within a stated
 * bound (checker.h): the liveness phase. A seed that fails prints the command that repeats it.
 *
 * --noise: once as it is, once with each message that was taken delivered again up to three times,
 * lost ones delivered after newer ones, and all clocks up to a year off. The verdicts and their
 * times must be the same (R-VOTE-2). */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/str.h"
#include "tests/sim/seed.h"

/* Fewer seeds than this need not show everything. */
#define SEEDS_THAT_SHOW_ALL 5000
#define JOBS_MAX 64
/* The engines' rings are large and hardly used: pages of their own need not be cleared. */
#define OWN_PAGES_BYTES (64 * 1024)

struct options {
    uint64_t first, n_seeds, n_jobs;
    bool trace, noise;
};

/* One job's result, in memory that it shares with the others. */
struct job {
    struct seed_sums sums;
    uint64_t failed_seed; /* 0 = none; seeds begin at 1 */
    char failure[SEED_FAILURE_BYTES];
};

/* --- one seed --- */

static void describe(const struct verdict_history *history, size_t at, char *text, size_t capacity)
{
    if (at == history->n) {
        snprintf(text, capacity, "nothing more");
        return;
    }
    const struct verdict_line *line = &history->lines[at];
    snprintf(text, capacity, "at %.9f s node %u row %u is %s, marks %u", (double)line->at_ns / 1e9,
             line->node, line->row, health_state_word((enum health_state)line->state), line->marks);
}

static bool same_line(const struct verdict_line *a, const struct verdict_line *b)
{
    return a->at_ns == b->at_ns && a->node == b->node && a->row == b->row && a->state == b->state &&
           a->marks == b->marks;
}

/* Which of two nodes comes first within one nanosecond means nothing, and noise changes it: by
 * number. What one node said keeps its order. */
static void order_within_instants(struct verdict_history *history)
{
    for (size_t i = 1; i < history->n; i++) {
        struct verdict_line line = history->lines[i];
        size_t at = i;

        while (at > 0 && history->lines[at - 1].at_ns == line.at_ns &&
               history->lines[at - 1].node > line.node) {
            history->lines[at] = history->lines[at - 1];
            at--;
        }
        history->lines[at] = line;
    }
}

static bool compare_histories(const struct verdict_history *clean,
                              const struct verdict_history *noisy, char failure[SEED_FAILURE_BYTES])
{
    char texts[2][128];
    size_t at = 0;

    while (at < clean->n && at < noisy->n && same_line(&clean->lines[at], &noisy->lines[at])) {
        at++;
    }
    if (at == clean->n && at == noisy->n) {
        return true;
    }
    describe(clean, at, texts[0], sizeof texts[0]);
    describe(noisy, at, texts[1], sizeof texts[1]);
    snprintf(failure, SEED_FAILURE_BYTES, "R-VOTE-2: without noise: %s; with it: %s", texts[0],
             texts[1]);
    return false;
}

static bool run_twice(uint64_t seed, const struct options *options, struct job *job)
{
    struct verdict_history histories[2] = {{0}, {0}};
    bool passed = true;

    for (int i = 0; i < 2 && passed; i++) {
        struct seed_options how = {
            .trace = options->trace, .with_noise = i == 1, .history = &histories[i]};

        passed = seed_run(seed, &how, &job->sums, job->failure);
        order_within_instants(&histories[i]);
    }
    passed = passed && compare_histories(&histories[0], &histories[1], job->failure);
    free(histories[0].lines);
    free(histories[1].lines);
    return passed;
}

static bool run_seed(uint64_t seed, const struct options *options, struct job *job)
{
    struct seed_options how = {.trace = options->trace};

    return options->noise ? run_twice(seed, options, job)
                          : seed_run(seed, &how, &job->sums, job->failure);
}

/* --- all seeds --- */

static uint64_t lowest_failed(const struct options *options, const struct job jobs[])
{
    uint64_t lowest = 0;

    for (uint64_t i = 0; i < options->n_jobs; i++) {
        uint64_t seed = __atomic_load_n(&jobs[i].failed_seed, __ATOMIC_RELAXED);

        if (seed != 0 && (lowest == 0 || seed < lowest)) {
            lowest = seed;
        }
    }
    return lowest;
}

/* Every n-th seed; it ends at its first failure, or when a lower seed failed elsewhere. */
static void run_job(const struct options *options, struct job jobs[], uint64_t index)
{
    for (uint64_t i = index; i < options->n_seeds; i += options->n_jobs) {
        uint64_t seed = options->first + i;
        uint64_t failed = lowest_failed(options, jobs);

        if (failed != 0 && failed < seed) {
            return;
        }
        if (!run_seed(seed, options, &jobs[index])) {
            __atomic_store_n(&jobs[index].failed_seed, seed, __ATOMIC_RELAXED);
            return;
        }
    }
}

static bool run_jobs(const struct options *options, struct job jobs[])
{
    pid_t children[JOBS_MAX];
    bool all_ended = true;

    fflush(stdout);
    for (uint64_t i = 0; i < options->n_jobs; i++) {
        children[i] = fork();
        if (children[i] == 0) {
            run_job(options, jobs, i);
            fflush(stdout);
            _exit(0);
        }
    }
    for (uint64_t i = 0; i < options->n_jobs; i++) {
        int status = 0;

        if (waitpid(children[i], &status, 0) < 0 || status != 0) {
            printf("job %llu ended by itself: status %d\n", (unsigned long long)i, status);
            all_ended = false;
        }
    }
    return all_ended;
}

static void add_sums(struct seed_sums *sums, const struct seed_sums *more)
{
    sums->n_steps += more->n_steps;
    sums->simulated_ns += more->simulated_ns;
    sums->node_ns += more->node_ns;
    sums->n_messages += more->n_messages;
    sums->n_lost += more->n_lost;
    sums->n_replayed += more->n_replayed;
    sums->n_overtaken += more->n_overtaken;
    sums->slowest_pm = more->slowest_pm > sums->slowest_pm ? more->slowest_pm : sums->slowest_pm;
#define ADD(name) sums->sometimes.name += more->sometimes.name;
    SOMETIMES(ADD)
#undef ADD
}

/* --- reports --- */

static void report_failure(const struct options *options, const struct job jobs[], uint64_t seed)
{
    for (uint64_t i = 0; i < options->n_jobs; i++) {
        if (jobs[i].failed_seed == seed) {
            printf("seed %llu: %s\n", (unsigned long long)seed, jobs[i].failure);
        }
    }
    printf("repeat with: sim%s --first %llu --seeds 1 --trace\n", options->noise ? " --noise" : "",
           (unsigned long long)seed);
    printf("failed at the %lluth seed\n", (unsigned long long)(seed - options->first + 1));
}

static bool report_sometimes(const struct sometimes *sometimes, bool all_required)
{
    bool complete = true;

#define REPORT(name)                                                                 \
    printf("  sometimes %-26s %llu%s\n", #name, (unsigned long long)sometimes->name, \
           sometimes->name == 0 ? "  NEVER" : "");                                   \
    complete = complete && sometimes->name > 0;
    SOMETIMES(REPORT)
#undef REPORT
    if (!complete && all_required) {
        printf("something never happened: the run proves less than it seems to\n");
    }
    return complete || !all_required;
}

static void report_sums(const struct options *options, const struct seed_sums *sums)
{
    printf("sim: %llu seeds from %llu%s, none failed: %.1f simulated hours of clusters, %.1f of "
           "nodes; %.1f million steps, %.1f million messages, %.1f million of them lost; the truth "
           "after at most %llu %% of its bound\n",
           (unsigned long long)options->n_seeds, (unsigned long long)options->first,
           options->noise ? ", each without and with noise" : "",
           (double)sums->simulated_ns / 3600e9, (double)sums->node_ns / 3600e9,
           (double)sums->n_steps / 1e6, (double)sums->n_messages / 1e6, (double)sums->n_lost / 1e6,
           (unsigned long long)(sums->slowest_pm + 9) / 10);
    if (options->noise) {
        printf("noise: %llu replays, %llu lost ones after newer ones, no verdict differs\n",
               (unsigned long long)sums->n_replayed, (unsigned long long)sums->n_overtaken);
    }
}

static int run(const struct options *options)
{
    struct job *jobs = mmap(NULL, options->n_jobs * sizeof *jobs, PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct seed_sums sums = {0};

    if (jobs == MAP_FAILED) {
        perror("sim: mmap");
        return 1;
    }
    if (options->n_jobs == 1) {
        run_job(options, jobs, 0);
    } else if (!run_jobs(options, jobs)) {
        return 1;
    }
    uint64_t failed = lowest_failed(options, jobs);
    if (failed != 0) {
        report_failure(options, jobs, failed);
        return 1;
    }
    for (uint64_t i = 0; i < options->n_jobs; i++) {
        add_sums(&sums, &jobs[i].sums);
    }
    bool complete = report_sometimes(&sums.sometimes, options->n_seeds >= SEEDS_THAT_SHOW_ALL);
    report_sums(options, &sums);
    return complete && (!options->noise || sums.n_replayed > 0) ? 0 : 1;
}

static bool read_number(int argc, char **argv, int *i, const char *name, uint64_t *value)
{
    if (strcmp(argv[*i], name) != 0) {
        return false;
    }
    if (*i + 1 == argc || !str_parse_u64(argv[++*i], UINT64_MAX, value)) {
        fprintf(stderr, "sim: %s needs a number\n", name);
        exit(2);
    }
    return true;
}

int main(int argc, char **argv)
{
    struct options options = {.first = 1, .n_seeds = 1000, .n_jobs = 1};

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--trace") == 0) {
            options.trace = true;
        } else if (strcmp(argv[i], "--noise") == 0) {
            options.noise = true;
        } else if (!read_number(argc, argv, &i, "--first", &options.first) &&
                   !read_number(argc, argv, &i, "--seeds", &options.n_seeds) &&
                   !read_number(argc, argv, &i, "--jobs", &options.n_jobs)) {
            fprintf(stderr, "usage: sim [--noise] [--first N] [--seeds N] [--jobs N] [--trace]\n");
            return 2;
        }
    }
    if (options.first == 0 || options.n_jobs == 0 || options.n_jobs > JOBS_MAX) {
        fprintf(stderr, "sim: --first is at least 1, --jobs 1 to %d\n", JOBS_MAX);
        return 2;
    }
    mallopt(M_MMAP_THRESHOLD, OWN_PAGES_BYTES);
    return run(&options);
}
