/* The whole shim in this process, three workers, while its table changes without pause: every
 * connection is answered by a usable backend, and nothing is shared that should not be.
 * ctest labels: threads */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/shim/shim.h"
#include "agent/shim/sockaddr.h"
#include "agent/table/status_reader.h"
#include "agent/table/table_rescue.h"
#include "common/base/clock.h"
#include "common/base/units.h"
#include "tests/lib/scratch.h"
#include "tests/lib/sketch.h"

#define N_BACKENDS 3
#define N_CLIENTS 4
#define N_CONNECTIONS 300 /* of each client */

struct backend_thread {
    int listener;
    char name;
    char at[ENDPOINT_TEXT_BYTES];
    pthread_t thread;
};

struct rig {
    char tables[SCRATCH_BYTES];
    char status[SCRATCH_BYTES];
    struct shim_config config;
    struct shim *shim;
    pthread_t shim_thread;
    struct sketch *sketch;
    struct table_writer *writer;
    struct backend_thread backends[N_BACKENDS];
    struct endpoint front;
    atomic_uint n_good;
    atomic_uint n_bad;
    atomic_bool is_over;
};

static int listen_anywhere(struct endpoint *ret_at)
{
    struct sockaddr_storage address;
    socklen_t n_bytes = sizeof address;
    struct endpoint at = {.addr = {.family = ADDR_IPV4, .bytes = {127, 0, 0, 1}}};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    socklen_t n = sockaddr_put(&at, &address);

    assert_int_equal(bind(fd, (struct sockaddr *)&address, n), 0);
    assert_int_equal(listen(fd, 512), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &n_bytes), 0);
    sockaddr_get(&address, ret_at);
    return fd;
}

/* Says its name and ends. */
static void *serve(void *user)
{
    struct backend_thread *backend = user;

    for (;;) {
        int fd = accept(backend->listener, NULL, NULL);

        if (fd < 0) {
            return NULL;
        }
        send(fd, &backend->name, 1, MSG_NOSIGNAL);
        close(fd);
    }
}

static void *knock(void *user)
{
    struct rig *rig = user;
    struct sockaddr_storage address;
    socklen_t n_bytes = sockaddr_put(&rig->front, &address);

    for (int i = 0; i < N_CONNECTIONS; i++) {
        char name = '?';
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

        if (connect(fd, (struct sockaddr *)&address, n_bytes) == 0 && recv(fd, &name, 1, 0) == 1 &&
            name >= 'a' && name < 'a' + N_BACKENDS) {
            atomic_fetch_add(&rig->n_good, 1);
        } else {
            atomic_fetch_add(&rig->n_bad, 1);
        }
        close(fd);
    }
    return NULL;
}

static void describe(struct rig *rig, unsigned variant)
{
    char front[ENDPOINT_TEXT_BYTES];

    sketch_clear(rig->sketch);
    sketch_group(rig->sketch, "web", variant % 2 ? JURY_SCHEDULER_WRR : JURY_SCHEDULER_5_TUPLE);
    for (int i = 0; i < N_BACKENDS; i++) {
        sketch_backend(rig->sketch, rig->backends[i].at, 100);
    }
    sketch_listener(rig->sketch, "front", endpoint_format(&rig->front, front), "web");
}

static void publish(struct rig *rig, uint64_t revision)
{
    struct errmsg err;

    assert_int_equal(sketch_publish(rig->sketch, rig->writer, rig->tables, revision, &err), 0);
    table_writer_heartbeat(rig->writer, clock_boottime_ns());
}

/* One backend is always usable; the others come, go and drain. Now and then a new layout, and a new
 * agent. */
static void *change(void *user)
{
    struct rig *rig = user;
    struct errmsg err;

    for (unsigned round = 1; !atomic_load(&rig->is_over); round++) {
        unsigned out = round % N_BACKENDS;

        for (unsigned i = 0; i < N_BACKENDS; i++) {
            struct row_word *word = sketch_word(rig->sketch, "web", rig->backends[i].at);

            word->row_class = i == out ? ROW_NONE : round % 7 == 0 ? ROW_FAIL_OPEN : ROW_HEALTHY;
            word->deadline_boot_ns = i == out ? clock_boottime_ns() + UINT64_C(60000000000) : 0;
            word->flow_policy = i == out ? FLOW_CLOSE_AT : FLOW_KEEP;
            assert_int_equal(table_writer_apply(rig->writer, word, 1, round, &err), 0);
        }
        if (round % 20 == 0) {
            describe(rig, round / 20);
            publish(rig, round);
        }
        if (round % 200 == 0) {
            table_writer_close(rig->writer);
            assert_int_equal(sketch_writer(rig->tables, round, &rig->writer, &err), 0);
            publish(rig, round);
        }
        for (int i = 0; i < 3; i++) {
            sched_yield();
        }
    }
    return NULL;
}

static void *run_shim(void *user)
{
    shim_run(user);
    return NULL;
}

static void rig_init(struct rig *rig)
{
    struct errmsg err = {{0}};
    struct endpoint at;
    sigset_t signals;

    memset(rig, 0, sizeof *rig);
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
    log_init("test", LOG_LEVEL_ERROR);
    scratch_make(rig->tables);
    scratch_make(rig->status);
    rig->sketch = sketch_new();
    for (int i = 0; i < N_BACKENDS; i++) {
        rig->backends[i].listener = listen_anywhere(&at);
        rig->backends[i].name = (char)('a' + i);
        endpoint_format(&at, rig->backends[i].at);
        pthread_create(&rig->backends[i].thread, NULL, serve, &rig->backends[i]);
    }
    close(listen_anywhere(&rig->front)); /* a port that was free a moment ago */
    describe(rig, 0);
    assert_int_equal(sketch_writer(rig->tables, 1, &rig->writer, &err), 0);
    publish(rig, 1);
    rig->config = (struct shim_config){
        .tables_dir = rig->tables,
        .status_dir = rig->status,
        .name = "shim",
        .n_workers = 3,
        .stop_timeout_ms = 1000,
        .worker = {.n_flows_max = 1024, .n_buffers = 64, .connect_timeout_ms = 20000},
    };
    if (shim_new(&rig->config, &rig->shim, &err) != 0) {
        fail_msg("%s", err.text);
    }
    pthread_create(&rig->shim_thread, NULL, run_shim, rig->shim);
}

static void wait_until_served(struct rig *rig)
{
    struct sockaddr_storage address;
    socklen_t n_bytes = sockaddr_put(&rig->front, &address);

    for (;;) {
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        int rc = connect(fd, (struct sockaddr *)&address, n_bytes);

        close(fd);
        if (rc == 0) {
            return;
        }
        sched_yield();
    }
}

static void rig_close(struct rig *rig)
{
    pthread_kill(rig->shim_thread, SIGTERM);
    pthread_join(rig->shim_thread, NULL);
    shim_free(rig->shim);
    for (int i = 0; i < N_BACKENDS; i++) {
        shutdown(rig->backends[i].listener, SHUT_RDWR);
        pthread_join(rig->backends[i].thread, NULL);
        close(rig->backends[i].listener);
    }
    table_writer_close(rig->writer);
    sketch_free(rig->sketch);
    scratch_remove(rig->tables);
    scratch_remove(rig->status);
}

static void connections_are_served_while_the_table_changes_without_pause(void **state)
{
    (void)state;
    static struct rig rig;
    pthread_t clients[N_CLIENTS];
    pthread_t changer;
    struct boot_id boot_id;
    rig_init(&rig);
    wait_until_served(&rig);

    pthread_create(&changer, NULL, change, &rig);
    for (int i = 0; i < N_CLIENTS; i++) {
        pthread_create(&clients[i], NULL, knock, &rig);
    }
    for (int i = 0; i < N_CLIENTS; i++) {
        pthread_join(clients[i], NULL);
    }
    atomic_store(&rig.is_over, true);
    pthread_join(changer, NULL);

    print_message("%u connections answered, %u not; generation %llx\n", rig.n_good, rig.n_bad,
                  (unsigned long long)table_writer_generation(rig.writer));
    assert_int_equal(rig.n_good, N_CLIENTS * N_CONNECTIONS);
    assert_int_equal(boot_id_read(&boot_id, NULL), 0);
    struct status_reader *reader = status_reader_new(rig.status, &boot_id);
    status_reader_scan(reader, clock_boottime_ns(), NULL);
    assert_int_equal(status_reader_n_planes(reader), 1);
    assert_true(status_reader_plane(reader, 0)->totals.accepted >= N_CLIENTS * N_CONNECTIONS);
    status_reader_free(reader);
    rig_close(&rig);
}

/* --- the status file --- */

static void cut_to(const char *path, off_t n_bytes)
{
    assert_int_equal(truncate(path, n_bytes), 0);
}

static void remove_file(const char *path)
{
    assert_int_equal(unlink(path), 0);
}

/* Until the agent would see one living data plane with so many flows, all of the newest table. */
static void wait_until_seen(struct rig *rig, uint64_t n_flows)
{
    struct boot_id boot_id;
    uint64_t end_ns = clock_monotonic_ns() + 30 * NS_PER_SECOND;
    bool is_seen = false;

    assert_int_equal(boot_id_read(&boot_id, NULL), 0);
    struct status_reader *reader = status_reader_new(rig->status, &boot_id);
    while (!is_seen) {
        status_reader_scan(reader, clock_boottime_ns(), NULL);
        if (status_reader_n_planes(reader) == 1) {
            const struct plane_view *plane = status_reader_plane(reader, 0);

            is_seen = plane->plane_state == PLANE_ALIVE && plane->totals.flows == n_flows &&
                      plane->adopted_generation == table_writer_generation(rig->writer);
        }
        if (clock_monotonic_ns() > end_ns) {
            fail_msg("no living data plane with %llu flows", (unsigned long long)n_flows);
        }
        sched_yield();
    }
    status_reader_free(reader);
}

static void a_status_file_that_was_removed_or_cut_is_made_anew_with_its_flows(void **state)
{
    (void)state;
    static struct rig rig;
    char path[SCRATCH_BYTES + 32];
    struct sockaddr_storage address;
    table_rescue_install();
    rig_init(&rig);
    wait_until_served(&rig);
    snprintf(path, sizeof path, "%s/shim.status", rig.status);

    /* The backend ends its side; the flow lasts until this one does, too. */
    char name;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    socklen_t n_bytes = sockaddr_put(&rig.front, &address);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, n_bytes), 0);
    assert_int_equal(recv(fd, &name, 1, 0), 1);
    wait_until_seen(&rig, 1);
    remove_file(path);
    wait_until_seen(&rig, 1);
    cut_to(path, 0);
    wait_until_seen(&rig, 1);
    cut_to(path, 4096);
    wait_until_seen(&rig, 1);
    close(fd);
    wait_until_seen(&rig, 0);
    rig_close(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(connections_are_served_while_the_table_changes_without_pause),
        cmocka_unit_test(a_status_file_that_was_removed_or_cut_is_made_anew_with_its_flows),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
