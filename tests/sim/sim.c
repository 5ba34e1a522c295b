/* Random clusters under random faults, judged after every step: sim [--first N] [--seeds N]
 * [--trace].
 *
 * Each seed is a cluster of 1 to 7 nodes with groups of random rules and checks on a network that
 * delays, loses, doubles, overtakes and cuts (also one way), with restarts, frozen stores and
 * catalog changes that reach the nodes at different times; then a calm, at whose end every verdict
 * must be what the backends really are. A seed that fails prints the command that repeats it. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/str.h"
#include "tests/lib/catalog_builder.h"
#include "tests/sim/checker.h"

#define N_GROUPS 3
#define N_BACKENDS 4 /* a group, at most */
#define SETTLE_NS (10 * WORLD_SECOND)
/* Fewer seeds than this need not show everything. */
#define SEEDS_THAT_SHOW_ALL 1000

struct sim {
    uint64_t seed;
    bool trace;
    struct prng prng; /* of the story; the world has its own for the network */
    struct world world;
    struct checker checker;
    struct sometimes *sometimes;
    char groups[N_GROUPS][8];
    uint64_t story_ns;                       /* length of the stormy part */
    uint64_t not_before_ns[WORLD_NODES + 1]; /* a node whose machine is not there yet */
};

static uint64_t below(struct sim *sim, uint64_t n)
{
    return prng_below(&sim->prng, n);
}

static void tell(const struct sim *sim, const char *what, uint64_t a, uint64_t b)
{
    if (sim->trace) {
        printf("%12.6f s  %s %llu %llu\n", (double)sim->world.now_ns / 1e9, what,
               (unsigned long long)a, (unsigned long long)b);
    }
}

/* --- what the catalog holds --- */

static struct endpoint random_backend(struct sim *sim)
{
    char text[ENDPOINT_TEXT_BYTES];

    snprintf(text, sizeof text, "10.0.0.%u:80", 1 + (unsigned)below(sim, 8));
    return build_endpoint(text);
}

static struct rule_column random_column(struct sim *sim)
{
    uint8_t kind = (uint8_t)(RULE_LOCAL + below(sim, 6));
    uint64_t n = sim->world.n_nodes;

    /* The plain majority is what most people run. */
    if (below(sim, 3) == 0) {
        kind = RULE_MAJORITY;
    }
    return (struct rule_column){.kind = kind,
                                .value = (uint8_t)(kind == RULE_AT_LEAST  ? 1 + below(sim, n)
                                                   : kind == RULE_PERCENT ? 1 + below(sim, 100)
                                                                          : 0)};
}

static void random_rule(struct sim *sim, struct verdict_rule *rule)
{
    rule->down = random_column(sim);
    rule->up = rule->down;
    rule->is_split = below(sim, 6) == 0;
    if (rule->is_split) {
        /* One that no vote of all could satisfy would never end as the truth is. */
        rule->up = random_column(sim);
    }
    rule->below_quorum = (uint8_t)(below(sim, 4) == 0 ? BELOW_QUORUM_LOCAL : BELOW_QUORUM_HOLD);
}

/* Few different checks, so that groups often share a target. */
static void random_check(struct sim *sim, struct health_check *check)
{
    check->timeout_ms = 300 + 400 * (uint32_t)below(sim, 3);
    check->interval_ms = 500 + 500 * (uint32_t)below(sim, 3);
    check->healthy_threshold = (uint8_t)(1 + below(sim, 3));
    check->unhealthy_threshold = (uint8_t)(1 + below(sim, 3));
}

static const struct catalog_group *find_group(struct sim *sim, const char *name)
{
    return catalog_group_find(sim->world.history[sim->world.revision], name);
}

static bool commit(struct sim *sim, struct command *command)
{
    struct errmsg err = {{0}};

    if (world_commit(&sim->world, command, &err) != 0) {
        tell(sim, err.text, 0, 0);
        return false;
    }
    tell(sim, "revision", sim->world.revision, 0);
    return true;
}

static void put_new_group(struct sim *sim, const char *name)
{
    struct command command = {0};
    struct server_group group;
    uint64_t n = 1 + below(sim, N_BACKENDS);

    build_group(&group, name, "");
    free(group.backends);
    group.backends = calloc(N_BACKENDS, sizeof *group.backends);
    if (group.backends == NULL) {
        abort();
    }
    for (uint64_t i = 0; i < n; i++) {
        struct endpoint at = random_backend(sim);
        bool is_there = false;

        for (uint32_t j = 0; j < group.n_backends; j++) {
            is_there |= endpoint_compare(&group.backends[j].at, &at) == 0;
        }
        if (!is_there) {
            group.backends[group.n_backends].at = at;
            group.backends[group.n_backends].weight = below(sim, 8) == 0 ? 0 : 100;
            group.backends[group.n_backends++].admin_state = ADMIN_ENABLED;
        }
    }
    server_group_sort_backends(&group);
    random_rule(sim, &group.rule);
    random_check(sim, &group.check);
    group.drain = (struct drain_policy){.is_on = below(sim, 2) == 0, .timeout_ms = 4000};
    group.all_bad = (uint8_t)(below(sim, 4) == 0 ? ALL_BAD_FAIL_CLOSED : ALL_BAD_FAIL_OPEN);
    group.fail_open_percent = (uint8_t)(below(sim, 3) == 0 ? 50 : 0);
    build_put_group(&command, &group);
    server_group_close(&group);
    commit(sim, &command);
}

/* The group as it is, with its backends, to be changed in one place. */
static bool clone_group(struct sim *sim, const char *name, struct server_group *ret_spec)
{
    const struct catalog_group *group = find_group(sim, name);

    if (group == NULL || group->is_deleted) {
        return false;
    }
    if (server_group_clone(ret_spec, &group->spec) != 0) {
        abort();
    }
    ret_spec->backends = calloc(group->n_backends + 1u, sizeof *ret_spec->backends);
    if (ret_spec->backends == NULL) {
        abort();
    }
    ret_spec->n_backends = 0;
    for (uint32_t i = 0; i < group->n_backends; i++) {
        if (group->backends[i].life == LIFE_AVAILABLE) {
            ret_spec->backends[ret_spec->n_backends++] = group->backends[i].spec;
        }
    }
    return true;
}

static void put_changed(struct sim *sim, struct server_group *spec)
{
    struct command command = {0};

    server_group_sort_backends(spec);
    build_put_group(&command, spec);
    server_group_close(spec);
    commit(sim, &command);
}

static void change_backends(struct sim *sim, struct server_group *spec)
{
    struct endpoint at = random_backend(sim);

    for (uint32_t i = 0; i < spec->n_backends; i++) {
        if (endpoint_compare(&spec->backends[i].at, &at) == 0) {
            spec->backends[i] = spec->backends[--spec->n_backends];
            return;
        }
    }
    spec->backends[spec->n_backends++] =
        (struct backend){.at = at, .weight = 100, .admin_state = ADMIN_ENABLED};
}

static void change_group(struct sim *sim, const char *name)
{
    struct server_group spec;

    if (!clone_group(sim, name, &spec)) {
        put_new_group(sim, name);
        return;
    }
    switch (below(sim, 5)) {
    case 0:
        random_check(sim, &spec.check);
        sim->sometimes->check_was_changed++;
        break;
    case 1:
        random_rule(sim, &spec.rule);
        break;
    case 2:
        spec.check.is_enabled = !spec.check.is_enabled;
        break;
    default:
        change_backends(sim, &spec);
        break;
    }
    put_changed(sim, &spec);
}

static void change_admin(struct sim *sim, const char *name, enum admin_state state)
{
    const struct catalog_group *group = find_group(sim, name);
    struct command command = {0};
    char text[ENDPOINT_TEXT_BYTES];

    if (group == NULL || group->n_backends == 0) {
        return;
    }
    const struct catalog_backend *backend = &group->backends[below(sim, group->n_backends)];
    if (backend->life == LIFE_AVAILABLE) {
        build_admin(&command, name, endpoint_format(&backend->spec.at, text), state);
        commit(sim, &command);
    }
}

static void change_interval(struct sim *sim)
{
    struct command command = {0};
    struct cluster_settings settings = *catalog_settings(sim->world.history[sim->world.revision]);

    settings.vote_interval_ms = 250 << below(sim, 3);
    build_settings(&command, &settings);
    commit(sim, &command);
}

/* What a leader would do with the engines' proposals. */
static void purge(struct sim *sim)
{
    for (uint32_t id = 1; id <= sim->world.n_nodes; id++) {
        const struct world_node *node = &sim->world.nodes[id];

        if (!node->is_up || node->actions.n_purges == 0) {
            continue;
        }
        struct command command = {0};
        struct change *changes = calloc(1, sizeof *changes);
        struct backend_purge *what = calloc(1, sizeof *what);
        if (changes == NULL || what == NULL) {
            abort();
        }
        *what = node->actions.purges[0];
        *changes = (struct change){.kind = CHANGE_PURGE_BACKEND, .u.purge = what};
        command.changes = changes;
        command.n_changes = 1;
        sim->sometimes->backend_purged += commit(sim, &command);
        return;
    }
}

/* --- what the world does --- */

static const uint8_t failures[] = {REASON_CONNECT_TIMEOUT, REASON_CONNECT_FAILED,
                                   REASON_CONNECT_INTERRUPT, REASON_RECV_RESPONSE_TIMEOUT};

static struct truth random_truth(struct sim *sim)
{
    struct truth truth = {.reason = REASON_OK, .response_ns = 1 + below(sim, 200 * WORLD_MS)};

    if (below(sim, 2) == 0) {
        truth.reason = failures[below(sim, 4)];
    }
    return truth;
}

static void change_truth(struct sim *sim)
{
    struct endpoint at = random_backend(sim);
    struct truth truth = random_truth(sim);

    if (below(sim, 2) == 0) {
        world_set_truth(&sim->world, &at, &truth);
        tell(sim, "truth everywhere", at.addr.bytes[3], truth.reason);
        return;
    }
    uint64_t node_id = 1 + below(sim, sim->world.n_nodes);
    if (below(sim, 4) == 0) {
        truth.reason = REASON_LOCAL_NO_PORT;
    }
    world_backend(&sim->world, &at)->truth[node_id] = truth;
    tell(sim, "truth at node", node_id, truth.reason);
}

static void cut_something(struct sim *sim)
{
    uint64_t n = sim->world.n_nodes;
    uint64_t a = 1 + below(sim, n);
    uint64_t b = 1 + below(sim, n);
    uint64_t kind = below(sim, 5);

    sim->sometimes->link_was_cut++;
    tell(sim, "cut", a, b);
    if (kind <= 1) { /* one link, one way or both */
        world_cut(&sim->world, a, b, true);
        world_cut(&sim->world, b, a, kind == 1);
        return;
    }
    for (uint64_t x = 1; x <= n; x++) {
        for (uint64_t y = 1; y <= n; y++) {
            bool apart = kind == 2   ? x == a || y == a              /* alone */
                         : kind == 3 ? x != a && y == a              /* hears nobody, is heard */
                                     : (x <= n / 2) != (y <= n / 2); /* halves */
            if (apart) {
                world_cut(&sim->world, x, y, true);
            }
        }
    }
}

static void heal(struct sim *sim)
{
    tell(sim, "heal", 0, 0);
    for (uint32_t x = 1; x <= WORLD_NODES; x++) {
        for (uint32_t y = 1; y <= WORLD_NODES; y++) {
            world_cut(&sim->world, x, y, false);
        }
    }
}

static void start_node(struct sim *sim, uint64_t id)
{
    struct world_node *node = &sim->world.nodes[id];
    bool with_kept = node->kept_catalog != NULL && below(sim, 2) == 0;

    tell(sim, "start", id, with_kept);
    sim->sometimes->restart_with_kept += with_kept;
    sim->sometimes->restart_without += !with_kept && node->epoch > 0;
    checker_note_start(&sim->checker, id, with_kept);
    world_start(&sim->world, id, with_kept, below(sim, 2 * WORLD_SECOND));
}

/* Each id is used once in a cluster's life; a node that is added may be started late, or fail to.
 */
static void change_members(struct sim *sim)
{
    uint64_t id = 1 + below(sim, sim->world.n_nodes);

    if (below(sim, 2) == 0) {
        id = world_add_node(&sim->world, below(sim, 2) == 0 ? ROLE_VOTER : ROLE_STANDBY);
        tell(sim, "add node", id, 0);
        if (id != 0) {
            sim->world.nodes[id].store_is_frozen = false;
            if (below(sim, 2) == 0) {
                start_node(sim, id);
            } else {
                sim->not_before_ns[id] = sim->world.now_ns + below(sim, 120 * WORLD_SECOND);
            }
        }
        return;
    }
    if (!sim->world.nodes[id].is_gone) {
        tell(sim, "remove node", id, world_remove_node(&sim->world, id));
    }
}

static void stop_or_start(struct sim *sim)
{
    uint64_t id = 1 + below(sim, sim->world.n_nodes);

    if (sim->world.nodes[id].is_gone || sim->world.now_ns < sim->not_before_ns[id]) {
        return;
    }
    if (!sim->world.nodes[id].is_up) {
        start_node(sim, id);
        return;
    }
    tell(sim, "stop", id, 0);
    checker_note_stop(&sim->checker, id);
    world_stop(&sim->world, id);
}

static void freeze_or_thaw(struct sim *sim)
{
    uint64_t id = 1 + below(sim, sim->world.n_nodes);

    tell(sim, "freeze or thaw", id, 0);
    sim->sometimes->store_was_frozen++;
    world_freeze_store(&sim->world, id, !sim->world.nodes[id].store_is_frozen);
}

static void something_happens(struct sim *sim)
{
    const char *group = sim->groups[below(sim, N_GROUPS)];

    switch (below(sim, 16)) {
    case 0:
    case 1:
    case 2:
    case 3:
        change_truth(sim);
        break;
    case 4:
    case 5:
        cut_something(sim);
        break;
    case 6:
    case 7:
        heal(sim);
        break;
    case 8:
    case 9:
        stop_or_start(sim);
        break;
    case 10:
        freeze_or_thaw(sim);
        break;
    case 11:
    case 12:
        change_group(sim, group);
        break;
    case 13:
        change_admin(sim, group, (enum admin_state)(ADMIN_ENABLED + below(sim, 3)));
        break;
    case 14:
        purge(sim);
        break;
    default:
        if (below(sim, 3) == 0) {
            change_interval(sim);
        } else {
            change_members(sim);
        }
        break;
    }
}

/* --- one seed --- */

static void set_network(struct sim *sim, bool is_calm)
{
    static const uint64_t delays_ms[] = {0, 20, 300, 1500};
    static const uint32_t losses[] = {0, 20000, 200000};
    struct world_link link = {.delay_max_ns = 10 * WORLD_MS};

    if (!is_calm) {
        link.delay_max_ns = delays_ms[below(sim, 4)] * WORLD_MS;
        link.loss_ppm = losses[below(sim, 3)];
        link.duplicate_ppm = below(sim, 2) == 0 ? 0 : 100000;
        link.late_ppm = below(sim, 3) == 0 ? 20000 : 0;
    }
    for (uint32_t x = 1; x <= WORLD_NODES; x++) {
        for (uint32_t y = 1; y <= WORLD_NODES; y++) {
            sim->world.links[x][y] = link;
        }
    }
    sim->world.store_delay_max_ns = is_calm ? 0 : below(sim, 5 * WORLD_SECOND);
}

/* Half of the nodes see some backend otherwise from the start: votes can be tied in `initial`. */
static void disagree(struct sim *sim)
{
    for (unsigned i = 0; i < 4; i++) {
        struct endpoint at = random_backend(sim);
        struct world_backend *backend = world_backend(&sim->world, &at);

        for (uint32_t id = 2; id <= WORLD_NODES; id += 2) {
            backend->truth[id] =
                (struct truth){.reason = REASON_CONNECT_FAILED, .response_ns = WORLD_MS};
        }
    }
}

static void begin(struct sim *sim)
{
    prng_init(&sim->prng, sim->seed * UINT64_C(0x9e3779b97f4a7c15) + 1);
    world_init(&sim->world, sim->seed, 1 + (uint32_t)below(sim, WORLD_NODES));
    checker_init(&sim->checker, &sim->world, sim->sometimes);
    set_network(sim, false);
    if (below(sim, 2) == 0) {
        change_interval(sim);
    }
    for (unsigned i = 0; i < N_GROUPS; i++) {
        snprintf(sim->groups[i], sizeof sim->groups[i], "group%u", i);
        if (i == 0 || below(sim, 2) == 0) {
            put_new_group(sim, sim->groups[i]);
        }
    }
    if (below(sim, 3) == 0) {
        disagree(sim);
    }
    for (uint32_t id = 1; id <= sim->world.n_nodes; id++) {
        if (below(sim, 10) != 0) {
            start_node(sim, id);
        }
    }
    sim->story_ns = (20 + below(sim, below(sim, 4) == 0 ? 150 : 40)) * WORLD_SECOND;
}

static void storm(struct sim *sim)
{
    while (sim->world.now_ns < sim->story_ns && !sim->checker.failed) {
        world_run(&sim->world, sim->world.now_ns + below(sim, 3 * WORLD_SECOND));
        something_happens(sim);
    }
}

/* Everything is well again and stays so: time enough for the longest window and memory. */
static void calm(struct sim *sim)
{
    set_network(sim, true);
    for (uint32_t id = 1; id <= sim->world.n_nodes; id++) {
        world_freeze_store(&sim->world, id, false);
        if (!sim->world.nodes[id].is_up && !sim->world.nodes[id].is_gone) {
            start_node(sim, id);
        }
    }
    for (uint32_t i = 0; i < sim->world.n_backends; i++) {
        struct truth truth = random_truth(sim);

        world_set_truth(&sim->world, &sim->world.backends[i].at, &truth);
    }
    for (unsigned i = 0; i < 60 && !sim->checker.failed; i++) {
        world_run(&sim->world, sim->world.now_ns + WORLD_SECOND);
    }
}

static bool run_seed(uint64_t seed, bool trace, struct sometimes *sometimes, uint64_t *n_steps)
{
    static struct sim sim; /* too big for a stack */
    bool failed;

    memset(&sim, 0, sizeof sim);
    sim.seed = seed;
    sim.trace = trace;
    sim.sometimes = sometimes;
    begin(&sim);
    storm(&sim);
    if (!sim.checker.failed) {
        calm(&sim);
    }
    if (!sim.checker.failed) {
        checker_check_truth(&sim.checker);
    }
    failed = sim.checker.failed;
    if (failed) {
        printf("seed %llu: %s\nrepeat with: sim --first %llu --seeds 1 --trace\n",
               (unsigned long long)seed, sim.checker.failure, (unsigned long long)seed);
    }
    *n_steps += sim.world.n_steps;
    world_close(&sim.world);
    return !failed;
}

static bool report_sometimes(const struct sometimes *sometimes, bool all_required)
{
    bool complete = true;

#define REPORT(name)                                                                \
    printf("  sometimes %-20s %llu\n", #name, (unsigned long long)sometimes->name); \
    complete = complete && sometimes->name > 0;
    SOMETIMES(REPORT)
#undef REPORT
    if (!complete && all_required) {
        printf("something never happened: the run proves less than it seems to\n");
    }
    return complete || !all_required;
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
    struct sometimes sometimes = {0};
    uint64_t first = 1;
    uint64_t n_seeds = 1000;
    uint64_t n_steps = 0;
    bool trace = false;

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--trace") == 0) {
            trace = true;
        } else if (!read_number(argc, argv, &i, "--first", &first) &&
                   !read_number(argc, argv, &i, "--seeds", &n_seeds)) {
            fprintf(stderr, "usage: sim [--first N] [--seeds N] [--trace]\n");
            return 2;
        }
    }
    for (uint64_t seed = first; seed < first + n_seeds; seed++) {
        if (!run_seed(seed, trace, &sometimes, &n_steps)) {
            printf("failed at the %lluth seed\n", (unsigned long long)(seed - first + 1));
            return 1;
        }
    }
    printf("sim: %llu seeds from %llu, %llu steps, none failed\n", (unsigned long long)n_seeds,
           (unsigned long long)first, (unsigned long long)n_steps);
    return report_sometimes(&sometimes, n_seeds >= SEEDS_THAT_SHOW_ALL) ? 0 : 1;
}
