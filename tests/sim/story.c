#include "tests/sim/story.h"

#include <stdio.h>
#include <string.h>

#include "tests/sim/story_catalog.h"

uint64_t story_below(struct sim *sim, uint64_t n)
{
    return prng_below(&sim->prng, n);
}

void story_tell(const struct sim *sim, const char *what, uint64_t a, uint64_t b)
{
    if (sim->trace) {
        printf("%12.6f s  %s %llu %llu\n", (double)sim->world.now_ns / 1e9, what,
               (unsigned long long)a, (unsigned long long)b);
    }
}

static const uint8_t failures[] = {REASON_CONNECT_TIMEOUT, REASON_CONNECT_FAILED,
                                   REASON_CONNECT_INTERRUPT, REASON_RECV_RESPONSE_TIMEOUT};

struct truth story_truth(struct sim *sim)
{
    struct truth truth = {.reason = REASON_OK, .response_ns = 1 + story_below(sim, 200 * WORLD_MS)};

    if (story_below(sim, 2) == 0) {
        truth.reason = failures[story_below(sim, 4)];
    }
    return truth;
}

/* What many backends need is gone, or is there again. */
static void collapse(struct sim *sim)
{
    struct truth truth = story_truth(sim);

    for (uint32_t i = 0; i < sim->world.n_backends; i++) {
        if (story_below(sim, 5) != 0) {
            world_set_truth(&sim->world, &sim->world.backends[i].at, &truth);
        }
    }
    sim->sometimes->collapse += truth.reason != REASON_OK;
    story_tell(sim, "truth of many", sim->world.n_backends, truth.reason);
}

/* Of several checks each is probed at a port of its own; drawn apart, as they are. */
static uint16_t story_port(struct sim *sim)
{
    bool has_list = false;
    struct prng prng;

    for (unsigned i = 0; i < SIM_GROUPS; i++) {
        const struct catalog_group *group = story_find_group(sim, sim->groups[i]);

        has_list |= group != NULL && group->spec.n_checks > 0;
    }
    prng_init(&prng, sim->seed + sim->world.now_ns);
    return has_list && prng_below(&prng, 2) == 0 ? (uint16_t)(81 + prng_below(&prng, 2)) : 80;
}

/* It comes and goes, for a while. */
static void waver(struct sim *sim)
{
    struct endpoint at = story_backend(sim);
    struct world_backend *backend = world_backend(&sim->world, &at);
    uint64_t n = 0;
    bool fails = story_below(sim, 2) == 0;

    while (n < WORLD_SCRIPT - 5) {
        for (uint64_t run = 1 + story_below(sim, 5); run > 0; run--) {
            backend->script[n++] = fails ? 'F' : 'S';
        }
        fails = !fails;
    }
    backend->script[n] = '\0';
    backend->script_failure =
        (struct truth){.reason = REASON_CONNECT_FAILED, .response_ns = WORLD_MS};
    memset(backend->script_at, 0, sizeof backend->script_at);
    sim->sometimes->truth_wavers++;
    story_tell(sim, "waver", at.addr.bytes[3], n);
}

void story_end_wavering(struct sim *sim)
{
    for (uint32_t i = 0; i < sim->world.n_backends; i++) {
        sim->world.backends[i].script[0] = '\0';
    }
}

static void change_truth(struct sim *sim)
{
    if (story_below(sim, 3) == 0) {
        waver(sim);
        return;
    }
    if (story_below(sim, 6) == 0) {
        collapse(sim);
        return;
    }
    struct endpoint at = story_backend(sim);
    struct truth truth = story_truth(sim);

    at.port = story_port(sim);
    if (story_below(sim, 2) == 0) {
        sim->sometimes->truth_changed++;
        world_set_truth(&sim->world, &at, &truth);
        story_tell(sim, "truth everywhere", at.addr.bytes[3], truth.reason);
        return;
    }
    uint64_t node_id = 1 + story_below(sim, sim->world.n_nodes);
    sim->sometimes->truth_changed_for_one++;
    if (story_below(sim, 4) == 0) {
        truth.reason = REASON_LOCAL_NO_PORT;
        sim->sometimes->local_fault++;
    }
    world_backend(&sim->world, &at)->truth[node_id] = truth;
    story_tell(sim, "truth at node", node_id, truth.reason);
}

void story_start_node(struct sim *sim, uint64_t id)
{
    struct world_node *node = &sim->world.nodes[id];
    unsigned kept = WORLD_KEPT_NONE;

    if (node->kept_catalog != NULL && story_below(sim, 2) == 0) {
        kept = story_below(sim, 3) == 0 ? WORLD_KEPT_VERDICTS : WORLD_KEPT_ALL;
    }
    story_tell(sim, "start", id, kept);
    sim->sometimes->restart_with_kept += kept == WORLD_KEPT_ALL;
    sim->sometimes->restart_with_kept_verdicts += kept == WORLD_KEPT_VERDICTS;
    sim->sometimes->restart_without += kept == WORLD_KEPT_NONE && node->epoch > 0;
    checker_note_start(&sim->checker, id, kept != WORLD_KEPT_NONE);
    world_start(&sim->world, id, kept, story_below(sim, 2 * WORLD_SECOND));
}

/* Each id is used once in a cluster's life; a node that is added may be started late, or fail to.
 */
static void change_members(struct sim *sim)
{
    uint64_t id = 1 + story_below(sim, sim->world.n_nodes);

    if (story_below(sim, 2) == 0) {
        if (sim->world.n_nodes == sim->checker.n_nodes_max) {
            return;
        }
        id = world_add_node(&sim->world, story_below(sim, 2) == 0 ? ROLE_VOTER : ROLE_STANDBY);
        story_tell(sim, "add node", id, 0);
        if (id != 0) {
            sim->world.nodes[id].store_is_frozen = false;
            if (story_below(sim, 2) == 0) {
                story_start_node(sim, id);
            } else {
                sim->not_before_ns[id] = sim->world.now_ns + story_below(sim, 120 * WORLD_SECOND);
            }
        }
        return;
    }
    if (!sim->world.nodes[id].is_gone) {
        bool is_removed = world_remove_node(&sim->world, id);

        story_tell(sim, "remove node", id, is_removed);
    }
}

static void stop_or_start(struct sim *sim)
{
    uint64_t id = 1 + story_below(sim, sim->world.n_nodes);

    if (sim->world.nodes[id].is_gone || sim->world.now_ns < sim->not_before_ns[id]) {
        return;
    }
    if (!sim->world.nodes[id].is_up) {
        story_start_node(sim, id);
        return;
    }
    if (story_below(sim, 2) == 0) { /* a crash: what was written down last is what there is */
        story_tell(sim, "crash", id, 0);
        sim->sometimes->node_crashed++;
        world_crash(&sim->world, id);
        return;
    }
    story_tell(sim, "stop", id, 0);
    sim->sometimes->node_stopped++;
    checker_note_kept(&sim->checker, id);
    world_stop(&sim->world, id);
}

static void keep(struct sim *sim)
{
    uint64_t id = 1 + story_below(sim, sim->world.n_nodes);

    if (sim->world.nodes[id].is_up) {
        story_tell(sim, "keep", id, 0);
        checker_note_kept(&sim->checker, id);
        world_keep(&sim->world, id);
    }
}

static void freeze_or_thaw(struct sim *sim)
{
    uint64_t id = 1 + story_below(sim, sim->world.n_nodes);

    story_tell(sim, "freeze or thaw", id, 0);
    sim->sometimes->store_was_frozen++;
    world_freeze_store(&sim->world, id, !sim->world.nodes[id].store_is_frozen);
}

static void change_cluster(struct sim *sim)
{
    uint64_t kind = story_below(sim, 6);

    if (kind < 2) {
        story_change_interval(sim);
    } else if (kind == 2) {
        story_change_zone(sim, 1 + story_below(sim, sim->world.n_nodes));
    } else {
        change_members(sim);
    }
}

void story_go_on(struct sim *sim)
{
    const char *group = sim->groups[story_below(sim, SIM_GROUPS)];

    faults_heal_next(sim);
    switch (story_below(sim, 21)) {
    case 0:
    case 1:
    case 2:
    case 3:
        change_truth(sim);
        break;
    case 4:
    case 5:
        faults_cut_something(sim);
        break;
    case 6:
    case 7:
        faults_heal(sim);
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
        story_change_group(sim, group);
        break;
    case 13:
    case 19:
        story_change_admin(sim, group, (enum admin_state)(ADMIN_ENABLED + story_below(sim, 3)));
        break;
    case 14:
        story_purge(sim);
        break;
    case 15:
        faults_hit_machine(sim);
        break;
    case 16:
        keep(sim);
        break;
    case 17:
    case 18:
        story_change_hold(sim);
        break;
    default:
        change_cluster(sim);
        break;
    }
}
