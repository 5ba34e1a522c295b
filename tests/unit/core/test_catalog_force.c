/* R-CFG-2 and A26: no change takes everything down by accident. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/base/prng.h"
#include "common/model/feature_level.h"
#include "tests/lib/catalog_builder.h"

/* Six backends 10.0.0.1..6 in web. */
static struct catalog_state *make_state(void)
{
    struct catalog_state *state = build_state(3);
    struct command command = {0};

    build_put(&command, "web",
              "10.0.0.1:80 10.0.0.2:80 10.0.0.3:80 10.0.0.4:80 10.0.0.5:80 10.0.0.6:80");
    build_put(&command, "other", "10.0.0.1:80");
    build_commit(state, &command);
    return state;
}

static void expect_force(struct catalog_state *state, struct command *command, uint32_t count,
                         const char *sentence)
{
    struct apply_answer answer;

    catalog_apply(state, command, &answer);
    if (answer.err != ERR_FORCE || strcmp(answer.message.text, sentence) != 0) {
        fail_msg("expected: %s\n     got: %s", sentence, answer.message.text);
    }
    /* A count that was right for another state is none. */
    command->is_forced = true;
    command->forced_count = count + 1;
    catalog_apply(state, command, &answer);
    assert_int_equal(answer.err, ERR_FORCE);
    command->forced_count = count;
    build_commit(state, command);
}

static void half_of_a_group_may_go_more_needs_force(void **unused)
{
    struct catalog_state *state = make_state();
    struct command c = {0};

    (void)unused;
    build_put(&c, "web", "10.0.0.1:80 10.0.0.2:80 10.0.0.3:80"); /* 3 of 6 */
    build_commit(state, &c);
    build_put(&c, "web", "10.0.0.1:80"); /* 2 of 3 */
    expect_force(state, &c, 2,
                 "the change takes 2 of 3 enabled backends of server group \"web\" out of service: "
                 "repeat it with force and the count 2");
    catalog_state_free(state);
}

static void drains_maintenance_and_other_ports_count(void **unused)
{
    struct catalog_state *state = make_state();
    struct command c = {0};

    (void)unused;
    build_admin(&c, "web", "10.0.0.1:80", ADMIN_DRAINING);
    build_admin(&c, "web", "10.0.0.2:80", ADMIN_DRAINING);
    build_admin(&c, "web", "10.0.0.3:80", ADMIN_MAINTENANCE);
    build_admin(&c, "web", "10.0.0.4:80", ADMIN_DRAINING);
    expect_force(state, &c, 4,
                 "the change takes 4 of 6 enabled backends of server group \"web\" out of service: "
                 "repeat it with force and the count 4");
    catalog_state_free(state);
    state = make_state();
    build_put(&c, "web", "10.0.0.1:81 10.0.0.2:81 10.0.0.3:81 10.0.0.4:81 10.0.0.5:80 10.0.0.6:80");
    expect_force(state, &c, 4,
                 "the change takes 4 of 6 enabled backends of server group \"web\" out of service: "
                 "repeat it with force and the count 4");
    catalog_state_free(state);
}

static void what_was_out_of_service_does_not_count(void **unused)
{
    struct catalog_state *state = make_state();
    struct command c = {0};

    (void)unused;
    build_admin(&c, "web", "10.0.0.1:80", ADMIN_DRAINING);
    build_admin(&c, "web", "10.0.0.2:80", ADMIN_DRAINING);
    build_admin(&c, "web", "10.0.0.3:80", ADMIN_DRAINING);
    build_commit(state, &c);
    /* Three are enabled: the drained three and one more may go. */
    build_put(&c, "web", "10.0.0.5:80 10.0.0.6:80");
    build_commit(state, &c);
    build_admin(&c, "web", "10.0.0.5:80", ADMIN_ENABLED);
    build_admin(&c, "web", "10.0.0.6:80", ADMIN_MAINTENANCE);
    build_commit(state, &c); /* a group of two by now: exempt */
    catalog_state_free(state);
}

static void weigh(struct command *c, unsigned first, unsigned last, uint8_t weight)
{
    char at[32];

    for (unsigned i = first; i <= last; i++) {
        sprintf(at, "10.0.0.%u:80", i);
        build_weight(c, "web", at, weight);
    }
}

/* By weight 0 a group could be emptied without a word, all at once or one by one. */
static void a_weight_of_0_takes_out_of_service_like_a_drain(void **unused)
{
    struct catalog_state *state = make_state();
    struct command c = {0};

    (void)unused;
    weigh(&c, 1, 4, 0);
    expect_force(state, &c, 4,
                 "the change takes 4 of 6 enabled backends with a weight above 0 of server group "
                 "\"web\" out of service: repeat it with force and the count 4");
    weigh(&c, 5, 5, 0); /* one of the two that are left */
    build_commit(state, &c);
    weigh(&c, 6, 6, 0);
    expect_force(state, &c, 1,
                 "the change takes 1 of 1 enabled backends with a weight above 0 of server group "
                 "\"web\" out of service: repeat it with force and the count 1");
    weigh(&c, 1, 6, 0); /* so they are */
    build_commit(state, &c);
    weigh(&c, 1, 3, 50);
    build_commit(state, &c);
    build_admin(&c, "web", "10.0.0.1:80",
                ADMIN_DRAINING); /* another verb, and those with a weight */
    build_admin(&c, "web", "10.0.0.2:80", ADMIN_DRAINING);
    expect_force(state, &c, 2,
                 "the change takes 2 of 3 enabled backends with a weight above 0 of server group "
                 "\"web\" out of service: repeat it with force and the count 2");
    catalog_state_free(state);
}

static void weights_that_move_to_others_take_nothing_out(void **unused)
{
    struct catalog_state *state = make_state();
    struct command c = {0};

    (void)unused;
    weigh(&c, 4, 6, 0);
    build_commit(state, &c);
    weigh(&c, 1, 3, 0); /* all of those in use, for as many others */
    weigh(&c, 4, 6, 100);
    build_commit(state, &c);
    weigh(&c, 4, 6, 1);
    build_commit(state, &c);
    catalog_state_free(state);
}

/* One that is removed shrinks its group; while it is on its way out the group is as large as it
 * was. */
static void a_group_that_is_removed_one_by_one_keeps_its_last(void **unused)
{
    struct catalog_state *state = make_state();
    struct command c = {0};

    (void)unused;
    build_put(&c, "web", "10.0.0.1:80 10.0.0.2:80 10.0.0.3:80");
    build_commit(state, &c);
    build_put(&c, "web", "10.0.0.1:80 10.0.0.2:80");
    build_commit(state, &c);
    build_put(&c, "web", "10.0.0.1:80");
    build_commit(state, &c);
    build_put(&c, "web", "");
    expect_force(state, &c, 1,
                 "the change takes 1 of 1 enabled backends with a weight above 0 of server group "
                 "\"web\" out of service: repeat it with force and the count 1");
    catalog_state_free(state);
}

/* What one version takes and another refuses would make two catalogs of one. */
static void an_older_version_knows_of_no_weights(void **unused)
{
    struct catalog_state *state = catalog_state_new();
    struct command c = {0};

    (void)unused;
    build_init(&c, 3)->u.init->feature_level = FORCE_COVERS_WEIGHTS_LEVEL - 1;
    build_commit(state, &c);
    build_put(&c, "web", "10.0.0.1:80 10.0.0.2:80 10.0.0.3:80");
    build_commit(state, &c);
    weigh(&c, 1, 3, 0);
    build_commit(state, &c);
    catalog_state_free(state);
}

static void checks_and_additions_never_need_force(void **unused)
{
    struct catalog_state *state = make_state();
    struct command c = {0};
    struct server_group group;

    (void)unused;
    build_group(&group, "web",
                "10.0.0.1:80 10.0.0.2:80 10.0.0.3:80 10.0.0.4:80 10.0.0.5:80 10.0.0.6:80 "
                "10.0.0.7:80 10.0.0.8:80");
    group.check.interval_ms = 1000;
    build_put_group(&c, &group);
    build_commit(state, &c);
    server_group_close(&group);
    catalog_state_free(state);
}

static void groups_of_one_or_two_are_exempt(void **unused)
{
    struct catalog_state *state = make_state();
    struct command c = {0};

    (void)unused;
    build_put(&c, "pair", "10.0.0.1:80 10.0.0.2:80");
    build_commit(state, &c);
    build_put(&c, "pair", "");
    build_admin(&c, "other", "10.0.0.1:80", ADMIN_DRAINING);
    build_commit(state, &c);
    build_delete_group(&c, "other");
    build_commit(state, &c);
    catalog_state_free(state);
}

static void two_groups_are_counted_together(void **unused)
{
    struct catalog_state *state = make_state();
    struct command c = {0};

    (void)unused;
    build_put(&c, "api", "10.0.1.1:80 10.0.1.2:80 10.0.1.3:80");
    build_commit(state, &c);
    build_put(&c, "web", "10.0.0.1:80");
    build_put(&c, "api", "");
    expect_force(state, &c, 8,
                 "the change takes 3 of 3 enabled backends of server group \"api\" and more than "
                 "half of 1 other group out of service: repeat it with force and the count 8");
    catalog_state_free(state);
}

static void deleting_a_large_group_needs_force(void **unused)
{
    struct catalog_state *state = make_state();
    struct command c = {0};

    (void)unused;
    build_delete_group(&c, "web");
    expect_force(state, &c, 6,
                 "the change takes 6 of 6 enabled backends of server group \"web\" out of service: "
                 "repeat it with force and the count 6");
    catalog_state_free(state);
}

static void removing_every_group_needs_force(void **unused)
{
    struct catalog_state *state = make_state();
    struct command c = {0};

    (void)unused;
    build_delete_group(&c, "other");
    build_delete_group(&c, "web");
    expect_force(state, &c, 6,
                 "the change removes every server group (2) and takes 6 of 6 enabled backends of "
                 "server group \"web\" out of service: repeat it with force and the count 6");
    catalog_state_free(state);
    state = build_state(1);
    build_put(&c, "only", "");
    build_commit(state, &c);
    build_delete_group(&c, "only");
    expect_force(state, &c, 1,
                 "the change removes every server group (1): repeat it with force and the count 1");
    catalog_state_free(state);
}

static void put_groups(struct command *c, unsigned first, unsigned last, const char *endpoints)
{
    for (unsigned i = first; i <= last; i++) {
        char name[16];

        sprintf(name, "g%03u", i);
        build_put(c, name, endpoints);
    }
}

static void touching_a_quarter_of_the_groups_is_the_limit(void **unused)
{
    struct catalog_state *state = build_state(3);
    struct command c = {0};

    (void)unused;
    put_groups(&c, 1, 16, "10.0.0.1:80"); /* new groups are not touched ones */
    build_commit(state, &c);
    put_groups(&c, 1, 4, "10.0.0.2:80"); /* 4 of 16 */
    build_commit(state, &c);
    put_groups(&c, 1, 5, "10.0.0.3:80"); /* 5 of 16 */
    expect_force(state, &c, 5,
                 "the change touches 5 of 16 server groups: repeat it with force and the count 5");
    /* A document of all groups in which four differ touches four. */
    put_groups(&c, 1, 5, "10.0.0.3:80");
    put_groups(&c, 6, 9, "10.0.0.2:80");
    put_groups(&c, 10, 16, "10.0.0.1:80");
    build_commit(state, &c);
    catalog_state_free(state);
}

/* The count that was given for the groups once took the backends along, unnamed. */
static void many_groups_and_their_backends_need_the_larger_count(void **unused)
{
    struct catalog_state *state = build_state(3);
    struct command c = {0};

    (void)unused;
    put_groups(&c, 1, 5, "10.0.0.1:80 10.0.0.2:80 10.0.0.3:80");
    build_commit(state, &c);
    put_groups(&c, 1, 3, "10.0.0.1:80 10.0.0.2:80");
    put_groups(&c, 4, 5, "10.0.0.1:80"); /* 4 of 6 in two groups: fewer than there are groups */
    expect_force(state, &c, 5,
                 "the change touches 5 of 5 server groups and takes 2 of 3 enabled backends of "
                 "server group \"g004\" and more than half of 1 other group out of service: repeat "
                 "it with force and the count 5");
    put_groups(&c, 1, 5, "10.0.0.4:80 10.0.0.5:80 10.0.0.6:80");
    c.is_forced = true;
    c.forced_count = 5;
    build_commit(state, &c);
    put_groups(&c, 1, 4, "10.0.0.7:80");
    expect_force(
        state, &c, 12,
        "the change touches 4 of 5 server groups and takes 3 of 3 enabled backends of "
        "server group \"g001\" and more than half of 3 other groups out of service: repeat "
        "it with force and the count 12");
    catalog_state_free(state);
}

/* What one version takes and another refuses would make two catalogs of one. */
static void an_older_version_is_asked_for_the_groups_alone(void **unused)
{
    struct catalog_state *state = catalog_state_new();
    struct command c = {0};

    (void)unused;
    build_init(&c, 3)->u.init->feature_level = FEATURE_LEVEL_BASE;
    build_commit(state, &c);
    build_put(&c, "web", "10.0.0.1:80 10.0.0.2:80 10.0.0.3:80");
    build_commit(state, &c);
    build_delete_group(&c, "web");
    expect_force(state, &c, 1,
                 "the change removes every server group (1): repeat it with force and the count 1");
    catalog_state_free(state);
}

static void three_groups_are_never_too_many(void **unused)
{
    struct catalog_state *state = build_state(3);
    struct command c = {0};

    (void)unused;
    put_groups(&c, 1, 3, "10.0.0.1:80");
    build_commit(state, &c);
    put_groups(&c, 1, 3, "10.0.0.2:80");
    build_commit(state, &c);
    put_groups(&c, 4, 4, "10.0.0.1:80");
    build_commit(state, &c);
    put_groups(&c, 1, 4, "10.0.0.3:80");
    expect_force(state, &c, 4,
                 "the change touches 4 of 4 server groups: repeat it with force and the count 4");
    catalog_state_free(state);
}

/* Random pairs of documents for one group, judged by hand. */
static void random_changes_are_judged_as_by_hand(void **unused)
{
    struct prng prng;
    unsigned n_forced = 0;

    (void)unused;
    prng_init(&prng, 5);
    for (unsigned round = 0; round < 400; round++) {
        struct catalog_state *state = build_state(1);
        struct command c = {0};
        char before[300] = "";
        char after[300] = "";
        unsigned n_before = 0;
        unsigned n_lost = 0;

        for (unsigned i = 1; i <= 10; i++) {
            bool was = prng_below(&prng, 2) == 0;
            bool is = prng_below(&prng, 2) == 0;

            if (was) {
                sprintf(before + strlen(before), "10.0.0.%u:80 ", i);
            }
            if (is) {
                sprintf(after + strlen(after), "10.0.0.%u:80 ", i);
            }
            n_before += was;
            n_lost += was && !is;
        }
        build_put(&c, "web", before);
        build_put(&c, "other", "");
        build_commit(state, &c);
        build_put(&c, "web", after);
        struct apply_answer answer = build_apply(state, &c);
        bool needs_force = n_before > 2 && 2 * n_lost > n_before;
        assert_int_equal(answer.err, needs_force ? ERR_FORCE : 0);
        n_forced += needs_force;
        catalog_state_free(state);
    }
    assert_in_range(n_forced, 50, 350);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(half_of_a_group_may_go_more_needs_force),
        cmocka_unit_test(drains_maintenance_and_other_ports_count),
        cmocka_unit_test(what_was_out_of_service_does_not_count),
        cmocka_unit_test(a_weight_of_0_takes_out_of_service_like_a_drain),
        cmocka_unit_test(weights_that_move_to_others_take_nothing_out),
        cmocka_unit_test(a_group_that_is_removed_one_by_one_keeps_its_last),
        cmocka_unit_test(an_older_version_knows_of_no_weights),
        cmocka_unit_test(checks_and_additions_never_need_force),
        cmocka_unit_test(groups_of_one_or_two_are_exempt),
        cmocka_unit_test(two_groups_are_counted_together),
        cmocka_unit_test(deleting_a_large_group_needs_force),
        cmocka_unit_test(removing_every_group_needs_force),
        cmocka_unit_test(touching_a_quarter_of_the_groups_is_the_limit),
        cmocka_unit_test(many_groups_and_their_backends_need_the_larger_count),
        cmocka_unit_test(an_older_version_is_asked_for_the_groups_alone),
        cmocka_unit_test(three_groups_are_never_too_many),
        cmocka_unit_test(random_changes_are_judged_as_by_hand),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
