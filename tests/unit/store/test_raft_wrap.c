/* The wrapper around raft_uv with a real directory and loop: what leaves it, and what it refuses.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/store/files.h"
#include "agent/store/raft_wrap.h"
#include "common/base/plant.h"

struct rig {
    uv_loop_t loop;
    char dir[64];
    struct raft_wrap wrap;
    struct raft raft;
    struct raft_fsm fsm;
    struct raft_message sent; /* the newest */
    int n_sent;
    int n_failed;
    bool is_closed;
};

static void on_send(void *user, const struct raft_message *message)
{
    struct rig *rig = user;

    rig->sent = *message;
    rig->n_sent++;
}

static void on_nothing(void *user)
{
    (void)user;
}

static void on_failed(void *user, const char *what, const char *why)
{
    struct rig *rig = user;

    (void)what;
    (void)why;
    rig->n_failed++;
}

static int fsm_apply(struct raft_fsm *fsm, const struct raft_buffer *buf, void **result)
{
    (void)fsm;
    (void)buf;
    *result = NULL;
    return 0;
}

static void on_closed(struct raft *raft)
{
    ((struct rig *)raft->data)->is_closed = true;
}

/* A directory of node 1, opened as a follower that has seen term 9. */
static int set_up(void **state)
{
    struct rig *rig = calloc(1, sizeof *rig);
    struct raft_wrap_hooks hooks = {.user = rig,
                                    .send = on_send,
                                    .started = on_nothing,
                                    .ticked = on_nothing,
                                    .failed = on_failed};
    struct errmsg err;

    snprintf(rig->dir, sizeof rig->dir, "/tmp/jury-wrap-XXXXXX");
    assert_non_null(mkdtemp(rig->dir));
    assert_int_equal(uv_loop_init(&rig->loop), 0);
    assert_int_equal(raft_wrap_init(&rig->wrap, &rig->loop, rig->dir, &hooks, &err), 0);
    rig->fsm = (struct raft_fsm){.version = 1, .apply = fsm_apply};
    assert_int_equal(raft_init(&rig->raft, &rig->wrap.io, &rig->fsm, 1, "node-1"), 0);
    rig->raft.data = rig;
    rig->raft.tracer = NULL;
    assert_int_equal(raft_start(&rig->raft), 0);
    *state = rig;
    return 0;
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

static void deliver_append(struct rig *rig, uint64_t term, uint64_t prev_index, uint64_t prev_term)
{
    struct raft_message message = {
        .type = RAFT_APPEND_ENTRIES, .server_id = 2, .server_address = "node-2"};

    message.append_entries = (struct raft_append_entries){
        .term = term, .prev_log_index = prev_index, .prev_log_term = prev_term};
    raft_wrap_deliver(&rig->wrap, &message);
}

/* Without the correction its last_log_index is whatever lay on the stack, and with `rejected` 0 a
 * leader of term 9 would count that much as stored. */
static void answer_to_an_older_term_claims_no_entries(void **state)
{
    struct rig *rig = *state;

    deliver_append(rig, 9, 0, 0);
    assert_int_equal(raft_current_term(&rig->raft), 9);
    rig->n_sent = 0;
    deliver_append(rig, 4, 0, 0);
    assert_int_equal(rig->n_sent, 1);
    assert_int_equal(rig->sent.type, RAFT_APPEND_ENTRIES_RESULT);
    assert_int_equal(rig->sent.append_entries_result.term, 9);
    assert_int_equal(rig->sent.append_entries_result.rejected, 0);
    assert_int_equal(rig->sent.append_entries_result.last_log_index, 0);
}

#ifdef JURY_PLANTS
static void without_the_correction_it_claims_entries_that_nobody_has(void **state)
{
    struct rig *rig = *state;

    deliver_append(rig, 9, 0, 0);
    plant_set("stale-answer");
    deliver_append(rig, 4, 0, 0);
    plant_set(NULL);
    assert_int_equal(rig->sent.append_entries_result.rejected, 0);
    assert_true(rig->sent.append_entries_result.last_log_index > 0);
}
#endif

static void rejections_say_less_than_what_was_rejected(void **state)
{
    struct rig *rig = *state;

    deliver_append(rig, 9, 50, 8);
    assert_int_equal(rig->sent.append_entries_result.rejected, 50);
    assert_true(rig->sent.append_entries_result.last_log_index < 50);
    deliver_append(rig, 4, 60, 3); /* of an older term as well */
    assert_int_equal(rig->sent.append_entries_result.rejected, 60);
    assert_int_equal(rig->sent.append_entries_result.last_log_index, 0);
}

static void term_and_vote_are_on_the_disk_and_timed(void **state)
{
    struct rig *rig = *state;

    deliver_append(rig, 9, 0, 0);
    assert_true(raft_wrap_take_max_us(&rig->wrap) > 0);
    assert_int_equal(raft_wrap_take_max_us(&rig->wrap), 0);
    assert_int_equal(rig->n_failed, 0);
}

static void a_failed_write_is_heard_of_through_the_tracer(void **state)
{
    struct rig *rig = *state;
    struct raft_tracer_info info = {.version = 1};

    info.diagnostic.level = 5;
    info.diagnostic.message = "something else";
    rig->wrap.tracer.emit(&rig->wrap.tracer, RAFT_TRACER_DIAGNOSTIC, &info);
    assert_false(rig->wrap.has_failed_write);
    info.diagnostic.message = "retry failed write (write failed: -5)";
    rig->wrap.tracer.emit(&rig->wrap.tracer, RAFT_TRACER_DIAGNOSTIC, &info);
    assert_true(rig->wrap.has_failed_write);
}

static void what_comes_after_the_close_is_dropped(void **state)
{
    struct rig *rig = *state;
    struct raft_message message = {
        .type = RAFT_APPEND_ENTRIES, .server_id = 2, .server_address = "node-2"};

    rig->wrap.is_open = false;
    message.append_entries.n_entries = 1;
    message.append_entries.entries = raft_calloc(1, sizeof(struct raft_entry));
    message.append_entries.entries[0].batch = raft_malloc(8);
    message.append_entries.term = 20;
    raft_wrap_deliver(&rig->wrap, &message); /* and freed: the sanitizer would tell */
    assert_int_equal(raft_current_term(&rig->raft), 0);
    rig->wrap.is_open = true;
}

static void bootstrap_makes_a_log_that_a_second_one_refuses(void **state)
{
    char dir[] = "/tmp/jury-boot-XXXXXX";
    struct errmsg err;

    (void)state;
    assert_non_null(mkdtemp(dir));
    assert_int_equal(raft_wrap_bootstrap(dir, 1, "node-1-0000000000000001", &err), 0);
    assert_int_not_equal(raft_wrap_bootstrap(dir, 1, "node-1-0000000000000001", &err), 0);
    assert_non_null(strstr(err.text, dir));
    assert_int_not_equal(raft_wrap_bootstrap("/nonexistent", 1, "node-1", &err), 0);
    files_remove_tree(dir, NULL);
}

int main(void)
{
#define WITH_RIG(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        WITH_RIG(answer_to_an_older_term_claims_no_entries),
#ifdef JURY_PLANTS
        WITH_RIG(without_the_correction_it_claims_entries_that_nobody_has),
#endif
        WITH_RIG(rejections_say_less_than_what_was_rejected),
        WITH_RIG(term_and_vote_are_on_the_disk_and_timed),
        WITH_RIG(a_failed_write_is_heard_of_through_the_tracer),
        WITH_RIG(what_comes_after_the_close_is_dropped),
        cmocka_unit_test(bootstrap_makes_a_log_that_a_second_one_refuses),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
