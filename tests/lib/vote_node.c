#include "tests/lib/vote_node.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>
#include <uv.h>
#include <zmq.h>

#include "agent/core/engine.h"
#include "agent/core/engine_view.h"
#include "agent/engine_mesh_link.h"
#include "agent/mesh/mesh.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/units.h"
#include "tests/lib/tcp_bytes.h"

#define FEED_MS 50       /* results come in slices */
#define FEED_FULL_N 5000 /* of a slice in which every target gets a result at once */

struct vote_node {
    struct vote_board *board;
    struct vote_seat *seat;
    uint32_t index;
    void *context;
    struct zap *zap;
    uv_loop_t loop;
    struct zmq_hub hub;
    struct mesh *mesh;
    struct refusals refusals;
    struct engine *engine;
    struct engine_actions *actions;
    uv_timer_t engine_timer, feed_timer;
    uint8_t *outcomes; /* last one, by slot */
    uint32_t next_slot;
    uint64_t feed_ns;        /* when the feed was last at work */
    double owed;             /* results that are due */
    uint32_t n_full_left;    /* slots that still want theirs in this weather */
    uint32_t weather_number; /* followed */
};

static void die(const char *what)
{
    fprintf(stderr, "bench node: %s\n", what);
    exit(1);
}

/* --- the engine --- */

static void step(struct vote_node *node, struct engine_event *event);

static void on_engine_timer(uv_timer_t *timer)
{
    step(timer->data, &(struct engine_event){.kind = ENGINE_TICK});
}

static void carry_out(struct vote_node *node)
{
    const struct engine_actions *actions = node->actions;

    engine_messages_send(node->mesh, actions, &(struct hello_shell){0});
    uint64_t now_ns = clock_monotonic_ns();
    uint64_t delay_ns = actions->wake_ns > now_ns ? actions->wake_ns - now_ns : 0;
    uv_timer_start(&node->engine_timer, on_engine_timer, (delay_ns + NS_PER_MS - 1) / NS_PER_MS, 0);
}

static void step(struct vote_node *node, struct engine_event *event)
{
    event->now_ns = clock_monotonic_ns();
    event->boot_ns = event->now_ns;
    if (engine_step(node->engine, event, node->actions) != 0) {
        die("no memory");
    }
    carry_out(node);
}

static void on_message(void *user, uint64_t peer, const struct peer_message *message)
{
    struct engine_event event;

    if (engine_event_of(peer, message, &event)) {
        step(user, &event);
    }
}

/* --- results of probes --- */

static void feed_one(struct vote_node *node)
{
    const struct catalog *catalog = engine_catalog(node->engine);
    uint32_t slot = node->next_slot;
    uint32_t weather = node->board->weather;
    bool fails = weather == WEATHER_DOWN;

    node->next_slot = (slot + 1) % catalog_n_slots(catalog);
    if (weather == WEATHER_FLAP && slot % 2 == 0) {
        fails = node->outcomes[slot] == PROBE_PASS;
    }
    node->outcomes[slot] = fails ? PROBE_FAIL : PROBE_PASS;
    uint64_t now_ns = clock_monotonic_ns();
    struct probe_result result = {.id = catalog_target_at(catalog, slot)->id,
                                  .probe_class = node->outcomes[slot],
                                  .reason = fails ? REASON_CONNECT_FAILED : REASON_OK,
                                  .start_ns = now_ns - NS_PER_MS,
                                  .end_ns = now_ns};
    step(node, &(struct engine_event){.kind = ENGINE_PROBE_RESULT, .u.result = &result});
}

static void follow_weather(struct vote_node *node)
{
    uint32_t number = node->board->weather_number;

    if (number != node->weather_number) {
        node->weather_number = number;
        node->n_full_left = node->board->size.n_targets;
    }
}

static void take_sample(struct vote_node *node);

static void on_feed_timer(uv_timer_t *timer)
{
    struct vote_node *node = timer->data;
    const struct big_catalog *size = &node->board->size;
    uint64_t now_ns = clock_monotonic_ns();

    follow_weather(node);
    double elapsed_ms = (double)(now_ns - node->feed_ns) / NS_PER_MS;
    node->feed_ns = now_ns;
    node->owed += elapsed_ms * size->n_targets / size->interval_ms;
    if (node->n_full_left > 0) {
        uint32_t slice = FEED_FULL_N < node->n_full_left ? FEED_FULL_N : node->n_full_left;

        node->n_full_left -= slice;
        for (uint32_t i = 0; i < slice; i++) {
            feed_one(node);
        }
        node->owed = 0;
    }
    for (; node->owed >= 1; node->owed -= 1) {
        feed_one(node);
    }
    if (node->n_full_left == 0) {
        node->seat->n_full = node->weather_number;
    }
    if (node->seat->n_sampled != node->board->n_wanted) {
        take_sample(node);
        node->seat->n_sampled = node->board->n_wanted;
    }
    if (node->board->is_over) {
        uv_stop(&node->loop);
    }
}

/* --- what it costs --- */

static uint64_t resident_bytes(void)
{
    unsigned long long n_pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");

    if (file == NULL || fscanf(file, "%*u %llu", &n_pages) != 1) {
        die("cannot read /proc/self/statm");
    }
    fclose(file);
    return n_pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static uint64_t thread_cpu_ns(void)
{
    struct timespec at;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &at);
    return (uint64_t)at.tv_sec * NS_PER_SECOND + (uint64_t)at.tv_nsec;
}

static void count_verdicts(struct vote_node *node, struct vote_sample *sample)
{
    uint64_t now_ns = clock_monotonic_ns();

    for (uint32_t i = 0; i < big_catalog_n_groups(&node->board->size); i++) {
        struct group_view view;
        char name[24];

        snprintf(name, sizeof name, "group%u", i);
        if (engine_view_group(node->engine, name, now_ns, &view) == 0) {
            sample->n_healthy += view.n_by_state[HEALTH_HEALTHY];
            sample->n_unhealthy += view.n_by_state[HEALTH_UNHEALTHY];
        }
    }
}

static void take_sample(struct vote_node *node)
{
    const struct engine_counters *counters = engine_view_counters(node->engine);
    struct vote_sample sample = {.cpu_ns = clock_process_cpu_ns(),
                                 .loop_cpu_ns = thread_cpu_ns(),
                                 .bytes_sent = tcp_bytes_sent(),
                                 .changes_left = counters->changes_not_sent,
                                 .n_opinion_changes = counters->opinion_changes,
                                 .n_vectors = counters->vectors_sent,
                                 .resident_bytes = resident_bytes(),
                                 .is_doubtful = counters->doubts_begun > counters->doubts_ended};

    for (uint32_t i = 0; i < node->board->size.n_nodes; i++) {
        struct mesh_peer_status status;

        sample.n_welcome += i != node->index && mesh_peer_status(node->mesh, i + 1, &status) &&
                            status.is_welcome && status.is_up;
    }
    count_verdicts(node, &sample);
    node->seat->sample = sample;
}

/* --- life --- */

static void open_mesh(struct vote_node *node)
{
    struct errmsg err = {""};
    struct zap_options zap = {.n_contexts = 1};
    struct mesh_options options = {.hub = &node->hub,
                                   .keys = &node->seat->keys,
                                   .n_bind = 1,
                                   .refusals = &node->refusals,
                                   .hooks = {.user = node, .message = on_message}};

    node->context = zap.contexts[0] = options.context = zmq_ctx_new();
    endpoint_parse("127.0.0.1:1", &options.bind[0], NULL);
    options.bind[0].port = 0;
    if (zap_start(&zap, &node->zap, &err) != 0 || mesh_open(&options, &node->mesh, &err) != 0) {
        die(err.text);
    }
    node->seat->port = mesh_bound_port(node->mesh, 0);
}

static void meet_peers(struct vote_node *node)
{
    uint32_t n = node->board->size.n_nodes;
    struct zap_key *keys = calloc(n, sizeof *keys);
    struct member_node *members = calloc(n, sizeof *members);

    for (uint32_t i = 0; i < n; i++) {
        const struct vote_seat *seat = &node->board->seats[i];

        memcpy(keys[i].public_key, seat->keys.public_key, CURVE_KEY_BYTES);
        zap_node_user_id(i + 1, keys[i].user_id);
        members[i] = (struct member_node){.node_id = i + 1, .n_endpoints = 1};
        memcpy(members[i].key.bytes, seat->keys.public_key, PUBLIC_KEY_BYTES);
        strcpy(members[i].endpoints[0].host, "127.0.0.1");
        members[i].endpoints[0].mesh_port = seat->port;
    }
    struct zap_table *table = zap_table_new(keys, n);
    mesh_set_table(node->mesh, table);
    zap_set_table(node->zap, table);
    mesh_set_peers(node->mesh, members, n);
    free(keys);
    free(members);
}

static void start_engine(struct vote_node *node)
{
    struct engine_config config = {.node_id = node->index + 1, .epoch = 1, .seed = node->index + 1};
    struct catalog *catalog = big_catalog(&node->board->size);
    struct cluster_id cluster = catalog_cluster_id(catalog);

    node->engine = engine_new(&config, clock_monotonic_ns());
    node->actions = malloc(sizeof *node->actions);
    node->outcomes = calloc(LIMIT_TARGETS, 1);
    if (node->engine == NULL || node->actions == NULL || node->outcomes == NULL) {
        die("no memory");
    }
    engine_actions_init(node->actions);
    mesh_set_self(node->mesh, &cluster, node->index + 1);
    step(node, &(struct engine_event){.kind = ENGINE_CATALOG, .u.catalog = catalog});
    catalog_unref(catalog);
    node->feed_ns = clock_monotonic_ns();
    uv_timer_start(&node->feed_timer, on_feed_timer, 0, FEED_MS);
}

static void add_timer(struct vote_node *node, uv_timer_t *timer)
{
    uv_timer_init(&node->loop, timer);
    timer->data = node;
}

int vote_node_run(struct vote_board *board, uint32_t index)
{
    struct vote_node *node = calloc(1, sizeof *node);

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    log_init("bench", LOG_LEVEL_ERROR);
    node->board = board;
    node->seat = &board->seats[index];
    node->index = index;
    node->seat->start_bytes = resident_bytes();
    uv_loop_init(&node->loop);
    zmq_hub_start(&node->hub, &node->loop);
    add_timer(node, &node->engine_timer);
    add_timer(node, &node->feed_timer);
    open_mesh(node);
    while (!board->may_dial) {
        usleep(1000);
    }
    meet_peers(node);
    start_engine(node);
    uv_run(&node->loop, UV_RUN_DEFAULT);
    _exit(0); /* the process ends here: nothing is left to anybody */
}
