/* Snapshots that leave this node, with raft 0.22.1 itself as their sender: it corrects the index of
 * a snapshot by what was loaded but not the term, and frees what it never set when none could be
 * loaded. A leader by itself with a standby that has nothing; what the disk gives is the test's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/store/files.h"
#include "agent/store/raft_wrap.h"
#include "common/base/plant.h"

#define N_ENTRIES 12

struct rig {
    uv_loop_t loop;
    char dir[64];
    struct raft_wrap wrap;
    struct raft raft;
    struct raft_fsm fsm;
    struct raft_apply apply;
    struct raft_change change;
    unsigned n_done;
    struct raft_message install; /* the newest InstallSnapshot that was sent */
    unsigned n_installs;
    /* snapshot_get of the disk */
    struct raft_io_snapshot_get *get;
    raft_io_snapshot_get_cb got;
    bool is_closed;
};

static struct rig *the_rig; /* for snapshot_get, which has no place for it */

static void on_send(void *user, const struct raft_message *message)
{
    struct rig *rig = user;

    if (message->type == RAFT_INSTALL_SNAPSHOT) {
        rig->install = *message;
        rig->n_installs++;
    }
}

static void on_nothing(void *user)
{
    (void)user;
}

static void on_failed(void *user, const char *what, const char *why)
{
    (void)user;
    fail_msg("%s: %s", what, why);
}

static int fsm_apply(struct raft_fsm *fsm, const struct raft_buffer *buf, void **result)
{
    (void)fsm;
    (void)buf;
    *result = NULL;
    return 0;
}

static struct raft_buffer bytes(size_t n)
{
    struct raft_buffer buffer = {.base = raft_calloc(1, n), .len = n};

    assert_non_null(buffer.base);
    return buffer;
}

static int fsm_snapshot(struct raft_fsm *fsm, struct raft_buffer *bufs[], unsigned *n_bufs)
{
    (void)fsm;
    *bufs = raft_malloc(sizeof **bufs);
    assert_non_null(*bufs);
    (*bufs)[0] = bytes(8);
    *n_bufs = 1;
    return 0;
}

static int keep_get(struct raft_io *io, struct raft_io_snapshot_get *get,
                    raft_io_snapshot_get_cb got)
{
    (void)io;
    the_rig->get = get;
    the_rig->got = got;
    return 0;
}

static void on_applied(struct raft_apply *request, int status, void *result)
{
    (void)result;
    assert_int_equal(status, 0);
    ((struct rig *)request->data)->n_done++;
}

static void on_changed(struct raft_change *request, int status)
{
    assert_int_equal(status, 0);
    ((struct rig *)request->data)->n_done++;
}

static void wait_done(struct rig *rig, unsigned n)
{
    while (rig->n_done < n) {
        uv_run(&rig->loop, UV_RUN_ONCE);
    }
}

static void lead_with_a_standby(struct rig *rig)
{
    rig->change.data = rig->apply.data = rig;
    while (raft_state(&rig->raft) != RAFT_LEADER) {
        uv_run(&rig->loop, UV_RUN_ONCE);
    }
    assert_int_equal(raft_add(&rig->raft, &rig->change, 2, "node-2", on_changed), 0);
    wait_done(rig, 1);
    assert_int_equal(raft_assign(&rig->raft, &rig->change, 2, RAFT_STANDBY, on_changed), 0);
    wait_done(rig, 2);
    for (unsigned i = 0; i < N_ENTRIES; i++) {
        struct raft_buffer entry = bytes(8);

        assert_int_equal(raft_apply(&rig->raft, &rig->apply, &entry, 1, on_applied), 0);
        wait_done(rig, 3 + i);
    }
    while (rig->raft.trail.snapshot.index == 0 || rig->raft.legacy.snapshot_taking) {
        uv_run(&rig->loop, UV_RUN_ONCE);
    }
}

/* The standby has nothing: raft asks the disk for a snapshot, after a failed one when it has waited
 * long enough. */
static void wait_for_the_question(struct rig *rig)
{
    struct raft_message message = {
        .type = RAFT_APPEND_ENTRIES_RESULT, .server_id = 2, .server_address = "node-2"};

    rig->get = NULL;
    for (unsigned i = 0; rig->get == NULL; i++) {
        message.append_entries_result = (struct raft_append_entries_result){
            .term = raft_current_term(&rig->raft),
            .rejected = raft_last_index(&rig->raft) - i % N_ENTRIES};
        raft_wrap_deliver(&rig->wrap, &message);
        uv_run(&rig->loop, UV_RUN_NOWAIT);
    }
}

static int set_up(void **state)
{
    struct rig *rig = calloc(1, sizeof *rig);
    struct raft_wrap_hooks hooks = {.user = rig,
                                    .send = on_send,
                                    .started = on_nothing,
                                    .ticked = on_nothing,
                                    .failed = on_failed};
    struct errmsg err;

    the_rig = rig;
    snprintf(rig->dir, sizeof rig->dir, "/tmp/jury-wrap-XXXXXX");
    assert_non_null(mkdtemp(rig->dir));
    assert_int_equal(raft_wrap_bootstrap(rig->dir, 1, "node-1", &err), 0);
    assert_int_equal(uv_loop_init(&rig->loop), 0);
    assert_int_equal(raft_wrap_init(&rig->wrap, &rig->loop, rig->dir, &hooks, &err), 0);
    rig->wrap.disk.snapshot_get = keep_get;
    rig->fsm = (struct raft_fsm){.version = 1, .apply = fsm_apply, .snapshot = fsm_snapshot};
    assert_int_equal(raft_init(&rig->raft, &rig->wrap.io, &rig->fsm, 1, "node-1"), 0);
    rig->raft.data = rig;
    raft_set_snapshot_threshold(&rig->raft, 4);
    raft_set_snapshot_trailing(&rig->raft, 1);
    raft_set_install_snapshot_timeout(&rig->raft, 50);
    assert_int_equal(raft_start(&rig->raft), 0);
    lead_with_a_standby(rig);
    wait_for_the_question(rig);
    *state = rig;
    return 0;
}

static void on_closed(struct raft *raft)
{
    ((struct rig *)raft->data)->is_closed = true;
}

static int tear_down(void **state)
{
    struct rig *rig = *state;

    raft_close(&rig->raft, on_closed);
    while (!rig->is_closed) {
        uv_run(&rig->loop, UV_RUN_ONCE);
    }
    raft_wrap_close(&rig->wrap);
    assert_int_equal(uv_loop_close(&rig->loop), 0);
    files_remove_tree(rig->dir, NULL);
    free(rig);
    return 0;
}

/* What raft_uv gives: memory of its own, filled in only when it could be loaded. */
static struct raft_snapshot *new_snapshot(void)
{
    struct raft_snapshot *snapshot = raft_malloc(sizeof *snapshot);

    assert_non_null(snapshot);
    memset(snapshot, 0xa5, sizeof *snapshot);
    return snapshot;
}

/* A newer one was written between the question and the load. */
static void give_a_newer_snapshot(struct rig *rig)
{
    struct raft_snapshot *snapshot = new_snapshot();

    *snapshot = (struct raft_snapshot){.index = raft_last_index(&rig->raft),
                                       .term = raft_current_term(&rig->raft) + 3,
                                       .configuration_index = 2,
                                       .n_bufs = 1};
    raft_configuration_init(&snapshot->configuration);
    assert_int_equal(raft_configuration_add(&snapshot->configuration, 1, "node-1", RAFT_VOTER), 0);
    snapshot->bufs = raft_malloc(sizeof *snapshot->bufs);
    assert_non_null(snapshot->bufs);
    snapshot->bufs[0] = bytes(8);
    rig->got(rig->get, snapshot, 0);
    assert_int_equal(rig->n_installs, 1);
    assert_int_equal(rig->install.install_snapshot.last_index, raft_last_index(&rig->raft));
}

static void a_snapshot_is_sent_with_its_own_term(void **state)
{
    struct rig *rig = *state;

    give_a_newer_snapshot(rig);
    assert_int_equal(rig->install.install_snapshot.last_term, raft_current_term(&rig->raft) + 3);
}

static void a_snapshot_that_cannot_be_loaded_is_asked_for_again(void **state)
{
    struct rig *rig = *state;

    rig->got(rig->get, new_snapshot(), RAFT_IOERR);
    assert_int_equal(rig->n_installs, 0);
    wait_for_the_question(rig);
    give_a_newer_snapshot(rig);
}

#ifdef JURY_PLANTS
static void without_the_correction_it_has_the_term_that_raft_knew(void **state)
{
    struct rig *rig = *state;

    plant_set("snapshot-term");
    give_a_newer_snapshot(rig);
    plant_set(NULL);
    assert_int_equal(rig->install.install_snapshot.last_term, raft_current_term(&rig->raft));
}

static void without_the_guard_a_failed_load_kills(void **state)
{
    struct rig *rig = *state;
    int status = 0;
    pid_t child = fork();

    if (child == 0) {
        plant_set("snapshot-load");
        rig->got(rig->get, new_snapshot(), RAFT_IOERR);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_false(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}
#endif

/* Under ASan: raft 0.22.1 itself forgets its request when the load of a snapshot fails. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
    return "leak:libraft.so";
}

int main(void)
{
#define WITH_RIG(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        WITH_RIG(a_snapshot_is_sent_with_its_own_term),
        WITH_RIG(a_snapshot_that_cannot_be_loaded_is_asked_for_again),
#ifdef JURY_PLANTS
        WITH_RIG(without_the_correction_it_has_the_term_that_raft_knew),
        WITH_RIG(without_the_guard_a_failed_load_kills),
#endif
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
