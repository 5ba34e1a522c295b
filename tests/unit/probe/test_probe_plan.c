/* Plans: what is shared between them, and what an edit does. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/core/catalog.h"
#include "agent/probe/probe_plan.h"
#include "common/base/err.h"
#include "common/base/limits.h"
#include "tests/lib/kept_check.h"

static struct probe_target target_of(uint32_t slot, uint64_t birth)
{
    const struct health_check check = {
        .type = CHECK_TYPE_TCP, .timeout_ms = 100, .interval_ms = 100};

    return (struct probe_target){.id = {.slot = slot, .birth = birth},
                                 .definition.check = kept_check(&check)};
}

static void set(struct probe_plan_editor *editor, uint32_t slot, uint64_t birth)
{
    struct probe_target target = target_of(slot, birth);

    assert_int_equal(probe_plan_editor_set(editor, &target, false), 0);
}

static void plans_are_in_slot_order_and_share_what_did_not_change(void **state)
{
    struct probe_plan_editor editor;

    (void)state;
    probe_plan_editor_init(&editor);
    set(&editor, 900, 1);
    set(&editor, 3, 1);
    set(&editor, 70, 1);
    struct probe_plan *first = probe_plan_editor_publish(&editor);
    set(&editor, 70, 2);
    probe_plan_editor_remove(&editor, (struct target_id){.slot = 3, .birth = 1});
    struct probe_plan *second = probe_plan_editor_publish(&editor);

    assert_int_equal(first->n_targets, 3);
    assert_int_equal(first->targets[0]->target.id.slot, 3);
    assert_int_equal(first->targets[1]->target.id.slot, 70);
    assert_int_equal(first->targets[2]->target.id.slot, 900);
    assert_int_equal(second->n_targets, 2);
    assert_ptr_not_equal(second->targets[0], first->targets[1]);
    assert_int_equal(second->targets[0]->target.id.birth, 2);
    assert_ptr_equal(second->targets[1], first->targets[2]);

    probe_plan_editor_close(&editor);
    assert_int_equal(first->targets[0]->target.id.birth, 1); /* plans outlive the editor */
    probe_plan_release(first);
    probe_plan_release(second);
    probe_plan_release(NULL);
}

static void the_same_target_again_changes_nothing_but_another_source_does(void **state)
{
    struct probe_plan_editor editor;
    struct probe_target target = target_of(5, 7);

    (void)state;
    probe_plan_editor_init(&editor);
    set(&editor, 5, 7);
    struct planned_target *before = editor.by_slot[5];
    set(&editor, 5, 7);
    assert_ptr_equal(editor.by_slot[5], before);

    assert_int_equal(addr_parse("10.0.0.1", &target.source, NULL), 0);
    assert_int_equal(probe_plan_editor_set(&editor, &target, false), 0);

    assert_ptr_not_equal(editor.by_slot[5], before);
    assert_int_equal(editor.n_targets, 1);
    probe_plan_editor_close(&editor);
}

static void targets_share_their_check_and_it_outlives_where_they_have_it_from(void **state)
{
    const struct health_check how = {.type = CHECK_TYPE_TCP, .timeout_ms = 1234};
    const struct health_check *check = catalog_check_new(&how);
    struct probe_plan_editor editor;

    (void)state;
    probe_plan_editor_init(&editor);
    for (uint32_t slot = 0; slot < 2; slot++) {
        const struct probe_target target = {.id = {.slot = slot, .birth = 1},
                                            .definition.check = check};

        assert_int_equal(probe_plan_editor_set(&editor, &target, false), 0);
    }
    catalog_check_unref(check); /* as a catalog that goes */
    struct probe_plan *plan = probe_plan_editor_publish(&editor);
    probe_plan_editor_close(&editor);

    assert_ptr_equal(plan->targets[0]->target.definition.check,
                     plan->targets[1]->target.definition.check);
    assert_int_equal(plan->targets[0]->target.definition.check->timeout_ms, 1234);
    probe_plan_release(plan);
}

static void removing_something_else_is_ignored(void **state)
{
    struct probe_plan_editor editor;

    (void)state;
    probe_plan_editor_init(&editor);
    probe_plan_editor_remove(&editor, (struct target_id){.slot = 5, .birth = 1});
    set(&editor, 5, 7);
    probe_plan_editor_remove(&editor, (struct target_id){.slot = 5, .birth = 6});
    probe_plan_editor_remove(&editor, (struct target_id){.slot = 4000000000, .birth = 7});

    assert_int_equal(editor.n_targets, 1);
    probe_plan_editor_close(&editor);
}

static void a_slot_behind_the_limit_is_refused(void **state)
{
    struct probe_plan_editor editor;
    struct probe_target target = target_of(LIMIT_TARGETS, 1);

    (void)state;
    probe_plan_editor_init(&editor);
    assert_int_equal(probe_plan_editor_set(&editor, &target, false), ERR_LIMIT);
    target.id.slot = LIMIT_TARGETS - 1;
    assert_int_equal(probe_plan_editor_set(&editor, &target, false), 0);
    struct probe_plan *plan = probe_plan_editor_publish(&editor);
    assert_int_equal(plan->n_targets, 1);

    probe_plan_release(plan);
    probe_plan_editor_close(&editor);
}

static void an_empty_plan_is_a_plan(void **state)
{
    struct probe_plan_editor editor;

    (void)state;
    probe_plan_editor_init(&editor);
    struct probe_plan *plan = probe_plan_editor_publish(&editor);

    assert_non_null(plan);
    assert_int_equal(plan->n_targets, 0);
    probe_plan_release(plan);
    probe_plan_editor_close(&editor);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plans_are_in_slot_order_and_share_what_did_not_change),
        cmocka_unit_test(the_same_target_again_changes_nothing_but_another_source_does),
        cmocka_unit_test(targets_share_their_check_and_it_outlives_where_they_have_it_from),
        cmocka_unit_test(removing_something_else_is_ignored),
        cmocka_unit_test(a_slot_behind_the_limit_is_refused),
        cmocka_unit_test(an_empty_plan_is_a_plan),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
