/* The faults of a simulated cluster's network and machines. */
#include "tests/sim/story.h"

/* --- the network --- */

void faults_set_network(struct sim *sim, bool is_calm)
{
    static const uint64_t delays_ms[] = {0, 20, 300, 1500};
    static const uint32_t losses[] = {0, 20000, 200000};
    struct world_link link = {.delay_max_ns = 10 * WORLD_MS};

    if (!is_calm) {
        link.delay_max_ns = delays_ms[story_below(sim, 4)] * WORLD_MS;
        link.loss_ppm = losses[story_below(sim, 3)];
        link.duplicate_ppm = story_below(sim, 2) == 0 ? 0 : 100000;
        link.late_ppm = story_below(sim, 3) == 0 ? 20000 : 0;
        sim->sometimes->network_delays += link.delay_max_ns > 100 * WORLD_MS;
        sim->sometimes->network_loses += link.loss_ppm > 0;
        sim->sometimes->network_doubles += link.duplicate_ppm > 0;
        sim->sometimes->network_is_late += link.late_ppm > 0;
    }
    sim->link = link;
    for (uint32_t x = 1; x <= sim->checker.n_nodes_max; x++) {
        for (uint32_t y = 1; y <= sim->checker.n_nodes_max; y++) {
            sim->world.links[x][y] = link;
        }
    }
    sim->world.store_delay_max_ns = is_calm ? 0 : story_below(sim, 5 * WORLD_SECOND);
}

/* Who cannot hear whom. a and b: two nodes; n: nodes in all. */
enum shape {
    SHAPE_ONE_WAY,
    SHAPE_BOTH_WAYS,
    SHAPE_ALONE,
    SHAPE_DEAF, /* hears nobody, is heard */
    SHAPE_MUTE, /* hears, is heard by nobody */
    SHAPE_HALVES,
    SHAPE_BRIDGE, /* two halves, and one node that hears both */
    SHAPE_RING,   /* each hears its two neighbours alone */
    SHAPE_ALL,
    SHAPE_AT_RANDOM, /* each direction for itself */
    N_SHAPES
};

struct cut {
    enum shape shape;
    uint64_t a, b, n;
};

static bool is_apart(struct sim *sim, const struct cut *cut, uint64_t from, uint64_t to)
{
    bool is_across = (from <= cut->n / 2) != (to <= cut->n / 2);
    uint64_t distance = from > to ? from - to : to - from;

    switch (cut->shape) {
    case SHAPE_ONE_WAY:
        return from == cut->a && to == cut->b;
    case SHAPE_BOTH_WAYS:
        return (from == cut->a && to == cut->b) || (from == cut->b && to == cut->a);
    case SHAPE_ALONE:
        return from == cut->a || to == cut->a;
    case SHAPE_DEAF:
        return to == cut->a;
    case SHAPE_MUTE:
        return from == cut->a;
    case SHAPE_HALVES:
        return is_across;
    case SHAPE_BRIDGE:
        return is_across && from != cut->a && to != cut->a;
    case SHAPE_RING:
        return distance != 1 && distance != cut->n - 1;
    case SHAPE_ALL:
        return true;
    case SHAPE_AT_RANDOM:
        return story_below(sim, 3) == 0;
    case N_SHAPES:
        break;
    }
    return false;
}

static void note_shape(struct sometimes *sometimes, enum shape shape)
{
    sometimes->cut_one_way += shape == SHAPE_ONE_WAY;
    sometimes->cut_both_ways += shape == SHAPE_BOTH_WAYS;
    sometimes->cut_alone += shape == SHAPE_ALONE;
    sometimes->cut_deaf += shape == SHAPE_DEAF;
    sometimes->cut_mute += shape == SHAPE_MUTE;
    sometimes->cut_halves += shape == SHAPE_HALVES;
    sometimes->cut_bridge += shape == SHAPE_BRIDGE;
    sometimes->cut_ring += shape == SHAPE_RING;
    sometimes->cut_all += shape == SHAPE_ALL;
    sometimes->cut_at_random += shape == SHAPE_AT_RANDOM;
}

/* One direction of one link is bad in its own way. */
static void spoil_link(struct sim *sim, uint64_t a, uint64_t b)
{
    struct world_link *link = &sim->world.links[a][b];

    link->loss_ppm = 100000 * (uint32_t)story_below(sim, 10);
    link->delay_max_ns = story_below(sim, 3 * WORLD_SECOND);
    sim->sometimes->link_turned_bad++;
    story_tell(sim, "bad link", a, b);
}

/* Cut off from everything: it does not reach the backends either, until somebody says what they
 * are. */
static void blind_node(struct sim *sim, uint64_t id)
{
    for (uint32_t i = 0; i < sim->world.n_backends; i++) {
        sim->world.backends[i].truth[id].reason = REASON_CONNECT_TIMEOUT;
    }
    story_tell(sim, "blind", id, 0);
}

void faults_cut_something(struct sim *sim)
{
    struct cut cut = {.n = sim->world.n_nodes};

    cut.a = 1 + story_below(sim, cut.n);
    cut.b = 1 + story_below(sim, cut.n);
    if (story_below(sim, 5) == 0) {
        spoil_link(sim, cut.a, cut.b);
        return;
    }
    cut.shape = (enum shape)story_below(sim, N_SHAPES);
    if (cut.shape == SHAPE_ALONE || cut.shape == SHAPE_DEAF) {
        blind_node(sim, cut.a);
    }
    note_shape(sim->sometimes, cut.shape);
    story_tell(sim, "cut", cut.shape, cut.a);
    for (uint64_t from = 1; from <= cut.n; from++) {
        for (uint64_t to = 1; to <= cut.n; to++) {
            if (from != to && is_apart(sim, &cut, from, to)) {
                world_cut(&sim->world, from, to, true);
            }
        }
    }
}

void faults_heal(struct sim *sim)
{
    sim->heals_in_turn = story_below(sim, 2) == 0;
    story_tell(sim, "heal", sim->heals_in_turn, 0);
    if (sim->heals_in_turn) {
        sim->sometimes->healed_in_turn++;
        return;
    }
    sim->sometimes->healed_at_once++;
    for (uint32_t x = 1; x <= sim->world.n_nodes; x++) {
        for (uint32_t y = 1; y <= sim->world.n_nodes; y++) {
            sim->world.links[x][y] = sim->link;
        }
    }
}

void faults_heal_next(struct sim *sim)
{
    uint64_t n = sim->world.n_nodes;
    uint64_t first = sim->heals_in_turn ? story_below(sim, n * n) : 0;

    for (uint64_t i = 0; sim->heals_in_turn && i < n * n; i++) {
        uint64_t at = (first + i) % (n * n);
        struct world_link *link = &sim->world.links[1 + at / n][1 + at % n];

        if (link->is_cut) {
            *link = sim->link;
            return;
        }
    }
    sim->heals_in_turn = false;
}

/* --- machines --- */

/* Some crystals are poor, and some machines are virtual. */
void faults_set_clocks(struct sim *sim)
{
    static const uint64_t errors_ppm[] = {0, 50, 500, CHECK_CLOCK_PPM_MAX};

    for (uint32_t id = 1; id <= sim->checker.n_nodes_max; id++) {
        uint64_t most = errors_ppm[story_below(sim, 4)];
        int64_t ppm = (int64_t)story_below(sim, 2 * most + 1) - (int64_t)most;

        sim->world.nodes[id].clock_ppm = ppm;
        sim->sometimes->clock_fast += ppm > 100;
        sim->sometimes->clock_slow += ppm < -100;
    }
}

void faults_hit_machine(struct sim *sim)
{
    uint64_t id = 1 + story_below(sim, sim->world.n_nodes);
    struct world_node *node = &sim->world.nodes[id];

    if (!node->is_up) {
        return;
    }
    if (story_below(sim, 3) == 0) { /* its monotonic clock does not see that */
        node->boot_ahead_ns += story_below(sim, 20 * WORLD_SECOND);
        sim->sometimes->machine_slept++;
        story_tell(sim, "sleep", id, 0);
        return;
    }
    sim->sometimes->node_stalled++;
    story_tell(sim, "stall", id, 0);
    world_stall(&sim->world, id, story_below(sim, 10 * WORLD_SECOND));
}
