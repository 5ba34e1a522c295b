/* Probes that the observers share, against everyone-probes (N7), and the fast re-check (N24):
 * sharing [--nodes N,N,..] [--seeds N] [--table]. Each row is a cluster of N nodes with 6 backends
 * under the rule majority, seen from the backends:
 *   steady   probes a second, and the nearest two of one backend
 *   death    backends die one by one, by timeouts or refusals, at any moment of the interval: from
 *            then until the last node calls it unhealthy, against the bound of agent/core/share.h
 *   loss     every third probe is lost, whoever makes it: what goes down by that, on any node, may
 *            not be more than when everyone probes; then the path of one assigned node to each
 *            backend: nothing goes down
 * The run fails when a figure is not what it is said to be. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/core/share.h"
#include "common/base/str.h"
#include "tests/lib/catalog_builder.h"
#include "tests/lib/world.h"

#define BACKENDS 6
#define TIMEOUT_MS 1000
#define INTERVAL_MS 2000
#define VOTE_MS 1000
#define HEALTHY 2
#define UNHEALTHY 3
#define LOSS_OF 3
#define DEATHS_MAX 4096

struct mode {
    const char *word;
    uint8_t probers;
    bool recheck;
};
static const struct mode modes[] = {
    {"all", 0, false}, {"all, recheck", 0, true}, {"3", 3, false}, {"3, recheck", 3, true}};
#define N_MODES (sizeof modes / sizeof modes[0])

struct figures {
    uint64_t n_steady, n_seconds; /* probes of all backends; seconds of one */
    uint64_t nearest_ns;          /* two probes of one backend, while all is well */
    uint64_t n_most_second;       /* probes of one backend in any second, whatever happens */
    uint64_t deaths_ns[DEATHS_MAX];
    unsigned n_deaths;
    uint64_t n_down;        /* of backends that are well, on any node */
    uint64_t n_lost_probes; /* while they are */
    uint64_t n_down_by_path;
};

struct run {
    struct world world;
    const struct mode *mode;
    struct figures *figures;
    bool is_lossy, is_steady;
    uint64_t last_ns[BACKENDS];
    uint64_t second[BACKENDS], n_in_second[BACKENDS];
};

static struct run run; /* too large for a stack */

static struct endpoint backend_at(unsigned i)
{
    char text[ENDPOINT_TEXT_BYTES];

    snprintf(text, sizeof text, "10.0.0.%u:80", i + 1);
    return build_endpoint(text);
}

static struct truth draw(bool is_lossy)
{
    struct truth truth = {.reason = REASON_OK,
                          .response_ns = WORLD_MS * (5 + prng_below(&run.world.prng, 40))};

    if (is_lossy && prng_below(&run.world.prng, LOSS_OF) == 0) {
        truth.reason = REASON_CONNECT_TIMEOUT;
        run.figures->n_lost_probes++;
    }
    return truth;
}

static void probe_started(void *user, struct world *world, struct world_node *node,
                          struct target_id id, const struct truth *truth)
{
    const struct catalog_target *target = catalog_target_at(engine_catalog(node->engine), id.slot);
    unsigned i = target->to.addr.bytes[3] - 1U;
    struct world_backend *backend = world_backend(world, &target->to);

    (void)user;
    (void)truth;
    if (backend->truth[node->id].reason == REASON_OK || run.is_lossy) {
        backend->truth[node->id] = draw(run.is_lossy);
    }
    uint64_t gap_ns = world->now_ns - run.last_ns[i];
    run.last_ns[i] = world->now_ns;
    if (run.second[i] != world->now_ns / WORLD_SECOND) {
        run.second[i] = world->now_ns / WORLD_SECOND;
        run.n_in_second[i] = 0;
    }
    if (++run.n_in_second[i] > run.figures->n_most_second) {
        run.figures->n_most_second = run.n_in_second[i];
    }
    if (run.is_steady) {
        run.figures->n_steady++;
        run.figures->nearest_ns =
            gap_ns < run.figures->nearest_ns ? gap_ns : run.figures->nearest_ns;
    }
}

static bool is_down(unsigned node_id, unsigned i)
{
    struct world_node *node = &run.world.nodes[node_id];
    struct endpoint at = backend_at(i);
    struct backend_view view;

    return engine_view_backend(node->engine, "web", &at, world_local_ns(&run.world, node), 0,
                               &view) == 0 &&
           view.health_state == HEALTH_UNHEALTHY;
}

static unsigned n_down(unsigned i)
{
    unsigned n = 0;

    for (unsigned id = 1; id <= run.world.n_nodes; id++) {
        n += is_down(id, i);
    }
    return n;
}

static void note_down(void *user, struct world *world, struct world_node *node,
                      const struct engine_event *event)
{
    (void)user;
    (void)world;
    (void)event;
    for (uint64_t i = node->actions.first_event;
         i < node->actions.first_event + node->actions.n_events; i++) {
        const struct event *logged = engine_event_at(node->engine, i);

        run.figures->n_down +=
            logged->kind == EVENT_VERDICT_CHANGED && logged->to == HEALTH_UNHEALTHY && run.is_lossy;
    }
}

static void begin(unsigned n_nodes, uint64_t seed)
{
    struct command command = {0};
    struct cluster_settings settings;
    struct server_group group;
    char endpoints[BACKENDS * ENDPOINT_TEXT_BYTES] = "";

    world_init(&run.world, seed, n_nodes);
    run.world.history_entries = 20000;
    run.world.hooks.probe_started = probe_started;
    run.world.hooks.after = note_down;
    run.world.store_delay_max_ns = 50 * WORLD_MS;
    for (unsigned a = 1; a <= n_nodes; a++) {
        run.world.nodes[a].clock_ppm = (int64_t)prng_below(&run.world.prng, 201) - 100;
        for (unsigned b = 1; b <= n_nodes; b++) {
            run.world.links[a][b] = (struct world_link){
                .delay_min_ns = WORLD_MS / 5, .delay_max_ns = 10 * WORLD_MS, .loss_ppm = 10000};
        }
    }
    for (unsigned i = 0; i < BACKENDS; i++) {
        char text[ENDPOINT_TEXT_BYTES];
        struct endpoint at = backend_at(i);

        world_backend(&run.world, &at);
        snprintf(endpoints + strlen(endpoints), sizeof endpoints - strlen(endpoints), "%s ",
                 endpoint_format(&at, text));
    }
    settings = *catalog_settings(run.world.history[run.world.revision]);
    settings.vote_interval_ms = VOTE_MS;
    build_settings(&command, &settings);
    world_commit(&run.world, &command, NULL);
    command = (struct command){0};
    build_group(&group, "web", endpoints);
    group.rule = (struct verdict_rule){.down = {.kind = RULE_MAJORITY},
                                       .up = {.kind = RULE_MAJORITY},
                                       .below_quorum = BELOW_QUORUM_HOLD};
    group.check.timeout_ms = TIMEOUT_MS;
    group.check.interval_ms = INTERVAL_MS;
    group.check.healthy_threshold = HEALTHY;
    group.check.unhealthy_threshold = UNHEALTHY;
    group.check.probers = run.mode->probers;
    group.check.recheck = run.mode->recheck;
    build_put_group(&command, &group);
    server_group_close(&group);
    if (world_commit(&run.world, &command, NULL) != 0) {
        abort();
    }
    for (unsigned id = 1; id <= n_nodes; id++) {
        world_start(&run.world, id, WORLD_KEPT_NONE, prng_below(&run.world.prng, WORLD_SECOND));
    }
    world_run(&run.world, 40 * WORLD_SECOND); /* all have opinions, and keep to their beats */
}

static void pass_time(uint64_t ns)
{
    world_run(&run.world, run.world.now_ns + ns);
}

static void look_at_steady(void)
{
    run.is_steady = true;
    pass_time(30 * WORLD_SECOND);
    run.is_steady = false;
    run.figures->n_seconds += 30 * BACKENDS;
}

static void let_one_die(unsigned i)
{
    struct endpoint at = backend_at(i);
    bool by_timeout = prng_below(&run.world.prng, 2) == 0;
    struct truth dead = {.reason = by_timeout ? REASON_CONNECT_TIMEOUT : REASON_CONNECT_FAILED,
                         .response_ns = WORLD_MS};
    struct truth well = {.reason = REASON_OK, .response_ns = WORLD_MS};

    pass_time(prng_below(&run.world.prng, INTERVAL_MS * WORLD_MS));
    uint64_t died_ns = run.world.now_ns;
    world_set_truth(&run.world, &at, &dead);
    while (n_down(i) < run.world.n_nodes && run.world.now_ns < died_ns + 60 * WORLD_SECOND) {
        pass_time(10 * WORLD_MS);
    }
    if (run.figures->n_deaths < DEATHS_MAX) {
        run.figures->deaths_ns[run.figures->n_deaths++] = run.world.now_ns - died_ns;
    }
    world_set_truth(&run.world, &at, &well);
    pass_time(25 * WORLD_SECOND); /* it is well again, and the others have stopped */
}

/* The path of the node with the lowest id that probes it. */
static void cut_a_path(unsigned i, bool is_cut)
{
    struct endpoint at = backend_at(i);
    struct world_backend *backend = world_backend(&run.world, &at);
    const struct catalog_target *target = NULL;
    const struct catalog *catalog = engine_catalog(run.world.nodes[1].engine);
    struct observers observers;
    uint64_t removed;

    for (uint32_t slot = 0; slot < catalog_n_slots(catalog); slot++) {
        const struct catalog_target *each = catalog_target_at(catalog, slot);

        target = each != NULL && endpoint_compare(&each->to, &at) == 0 ? each : target;
    }
    observers_init(&observers, 1);
    observers_follow(&observers, catalog, 0, &removed);
    uint64_t assigned = share_assigned(&observers, target->id, run.mode->probers);
    uint64_t id = observers.members[__builtin_ctzll(assigned)].node_id;
    backend->truth[id] = (struct truth){.reason = is_cut ? REASON_CONNECT_TIMEOUT : REASON_OK,
                                        .response_ns = WORLD_MS};
}

static void lose_probes(void)
{
    run.is_lossy = true;
    pass_time(120 * WORLD_SECOND);
    run.is_lossy = false;
    for (unsigned i = 0; i < BACKENDS; i++) {
        struct endpoint at = backend_at(i);
        struct truth well = {.reason = REASON_OK, .response_ns = WORLD_MS};

        world_set_truth(&run.world, &at, &well);
    }
    pass_time(30 * WORLD_SECOND);
    for (unsigned i = 0; i < BACKENDS; i++) {
        cut_a_path(i, true);
    }
    for (unsigned n = 0; n < 40; n++) {
        pass_time(WORLD_SECOND / 2);
        for (unsigned i = 0; i < BACKENDS; i++) {
            run.figures->n_down_by_path += n_down(i);
        }
    }
}

static int compare_ns(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

static bool judge(unsigned n_nodes, const struct mode *mode, struct figures *f, bool with_table)
{
    static uint64_t n_down_of_all; /* of the same nodes, the mode before */
    unsigned k = mode->probers == 0 || mode->probers > n_nodes ? n_nodes : mode->probers;
    double steady = (double)f->n_steady / (double)f->n_seconds;
    double said = 1000.0 * k / INTERVAL_MS;
    uint64_t window_ms = TIMEOUT_MS * UNHEALTHY + INTERVAL_MS * (UNHEALTHY - 1);
    uint64_t bound_ms = INTERVAL_MS + window_ms + 2 * VOTE_MS + 100 + 10; /* looked at each 10 ms */
    bool is_right = true;

    if (mode->probers == 0 && !mode->recheck) {
        n_down_of_all = f->n_down;
    }
    qsort(f->deaths_ns, f->n_deaths, sizeof f->deaths_ns[0], compare_ns);
    uint64_t p50_ms = f->deaths_ns[f->n_deaths / 2] / WORLD_MS;
    uint64_t max_ms = f->deaths_ns[f->n_deaths - 1] / WORLD_MS;
    if (with_table) {
        printf("| %2u | %-12s | %5.2f | %4llu | %4llu | %5.2f | %5.2f | %5.2f | %llu of %llu |\n",
               n_nodes, mode->word, steady, (unsigned long long)(f->nearest_ns / WORLD_MS),
               (unsigned long long)f->n_most_second, (double)p50_ms / 1e3, (double)max_ms / 1e3,
               (double)bound_ms / 1e3, (unsigned long long)f->n_down,
               (unsigned long long)f->n_lost_probes);
        fflush(stdout);
    }
    /* A probe that takes 45 ms makes the interval of everyone-probes 2.2 % longer. */
    if (steady > said * 1.02 || steady < said * 0.95) {
        printf("sharing: %u nodes, probers %s: a backend sees %.2f probes a second, not %.2f\n",
               n_nodes, mode->word, steady, said);
        is_right = false;
    }
    if (mode->probers != 0 && f->nearest_ns < INTERVAL_MS * WORLD_MS / k / 2) {
        printf("sharing: %u nodes, probers %s: two probes of one backend came within %llu ms\n",
               n_nodes, mode->word, (unsigned long long)(f->nearest_ns / WORLD_MS));
        is_right = false;
    }
    /* All begin at once, and each once more within the second at most. */
    if (f->n_most_second > 2ULL * n_nodes + k) {
        printf("sharing: %u nodes, probers %s: a backend saw %llu probes in a second\n", n_nodes,
               mode->word, (unsigned long long)f->n_most_second);
        is_right = false;
    }
    if (max_ms > bound_ms) {
        printf("sharing: %u nodes, probers %s: a dead backend was seen after %llu ms, not %llu\n",
               n_nodes, mode->word, (unsigned long long)max_ms, (unsigned long long)bound_ms);
        is_right = false;
    }
    /* Chance is on neither side; a rule that heard fewer nodes would have ten times as many. */
    if (f->n_down > 2 * n_down_of_all + 3 || f->n_down_by_path > 0) {
        printf("sharing: %u nodes, probers %s: calls a healthy backend unhealthy\n", n_nodes,
               mode->word);
        is_right = false;
    }
    return is_right;
}

static bool run_row(unsigned n_nodes, const struct mode *mode, unsigned n_seeds, bool with_table)
{
    struct figures *figures = calloc(1, sizeof *figures);

    if (figures == NULL) {
        abort();
    }
    figures->nearest_ns = UINT64_MAX;
    for (unsigned seed = 1; seed <= n_seeds; seed++) {
        memset(&run, 0, sizeof run);
        run.mode = mode;
        run.figures = figures;
        begin(n_nodes, seed);
        look_at_steady();
        for (unsigned i = 0; i < BACKENDS / 2; i++) {
            let_one_die(i);
        }
        lose_probes();
        world_close(&run.world);
    }
    bool is_right = judge(n_nodes, mode, figures, with_table);
    free(figures);
    return is_right;
}

int main(int argc, char **argv)
{
    const char *nodes = "3,5,7,16,32,64";
    unsigned n_seeds = 1;
    bool with_table = false;
    bool is_right = true;

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--nodes") == 0 && i + 1 < argc) {
            nodes = argv[++i];
        } else if (strcmp(argv[i], "--seeds") == 0 && i + 1 < argc) {
            n_seeds = (unsigned)strtoul(argv[++i], NULL, 10);
        } else if (strcmp(argv[i], "--table") == 0) {
            with_table = true;
        } else {
            fprintf(stderr, "usage: sharing [--nodes N,N,..] [--seeds N] [--table]\n");
            return 2;
        }
    }
    if (with_table) {
        printf("| nodes | probers | probes/s of a backend | nearest two, ms | most in a second | "
               "detection p50, s | max | bound | false ejections of probes lost |\n"
               "| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n");
    }
    for (const char *at = nodes; *at != '\0'; at += strcspn(at, ",") + (strchr(at, ',') != NULL)) {
        for (size_t m = 0; m < N_MODES; m++) {
            is_right &= run_row((unsigned)strtoul(at, NULL, 10), &modes[m], n_seeds, with_table);
        }
    }
    printf("sharing: %s\n", is_right ? "all figures are as they are said to be" : "failed");
    return is_right ? 0 : 1;
}
