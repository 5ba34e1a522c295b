/* What a check tells of a command with several faults: all that stand for themselves, in the order
 * of its changes, and none that may follow from another; the answer is that of a check of the
 * first.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "common/model/profile.h"
#include "tests/lib/catalog_builder.h"

#define OUTSIDE " is outside the prefixes that the cluster settings allow (allowedCidrs): "
#define PREFIXES "10.0.0.0/8, 100.64.0.0/10, 172.16.0.0/12, 192.168.0.0/16, fc00::/7\n"

/* Three voters, group web with two backends, listener front on it. */
static struct catalog_state *make_state(void)
{
    struct catalog_state *state = build_state(3);
    struct command command = {0};

    build_put(&command, "web", "10.0.0.1:80 10.0.0.2:80");
    build_listener(&command, "front", "192.0.2.1:80", "web");
    build_commit(state, &command);
    return state;
}

/* lines: "INDEX SENTENCE\n" each. The command is closed. */
static void expect_all(struct command *command, const char *lines)
{
    struct catalog_state *state = make_state();
    struct catalog_refusals refusals;
    struct apply_answer first, all;
    char told[8192] = "";

    catalog_check(state, command, &first);
    catalog_check_all(state, command, &all, &refusals);
    for (uint32_t i = 0; i < refusals.n; i++) {
        size_t used = strlen(told);

        assert_int_not_equal(refusals.items[i].err, 0);
        snprintf(told + used, sizeof told - used, "%u %s\n", refusals.items[i].change_index,
                 refusals.items[i].message.text);
    }
    if (strcmp(told, lines) != 0) {
        fail_msg("expected\n%s\ngot\n%s", lines, told);
    }
    assert_int_equal(all.err, first.err);
    assert_int_equal(all.change_index, first.change_index);
    assert_int_equal(all.revision, first.revision);
    if (first.err != 0) {
        assert_string_equal(all.message.text, first.message.text);
        assert_non_null(strstr(told, first.message.text));
    }
    catalog_state_free(state);
    command_close(command);
}

static void put_at_least(struct command *command, const char *name, unsigned k,
                         const char *endpoints)
{
    struct server_group group;

    build_group(&group, name, endpoints);
    group.rule.down = (struct rule_column){.kind = RULE_AT_LEAST, .value = (uint8_t)k};
    group.rule.up = group.rule.down;
    build_put_group(command, &group);
    server_group_close(&group);
}

static void what_is_refused_for_itself_is_told_with_the_rest(void **unused)
{
    struct command c = {0};

    (void)unused;
    build_put(&c, "one", "8.8.8.8:80 10.0.1.1:80 9.9.9.9:80");
    put_at_least(&c, "two", 9, "10.0.1.2:80 7.7.7.7:80");
    build_listener(&c, "lost", "192.0.2.2:80", "nowhere");
    build_listener(&c, "taken", "192.0.2.1:80", "web");
    build_delete_key(&c, "nobody");
    build_put(&c, "three", "10.0.1.3:80");
    expect_all(&c, "0 server group \"one\": backend 8.8.8.8:80" OUTSIDE PREFIXES
                   "0 server group \"one\": backend 9.9.9.9:80" OUTSIDE PREFIXES
                   "1 server group \"two\": backend 7.7.7.7:80" OUTSIDE PREFIXES
                   "1 server group \"two\": rule at-least 9 needs 9 observers, the cluster would "
                   "have 3\n"
                   "2 listener \"lost\": server group \"nowhere\" does not exist\n"
                   "3 listener \"taken\": at 192.0.2.1:80 (tcp) is taken by listener \"front\" of "
                   "server group \"web\"\n"
                   "4 key \"nobody\" does not exist\n");
}

static void what_follows_from_another_refusal_is_not_told(void **unused)
{
    struct cluster_settings settings;
    struct server_group group;
    struct command c = {0};

    (void)unused;
    /* The group is not there since it was refused: its listener has nothing to be told. */
    build_group(&group, "dns", "10.0.1.1:53");
    group.check.timeout_ms = 1;
    build_put_group(&c, &group);
    server_group_close(&group);
    build_listener(&c, "dns", "192.0.2.2:53", "dns");
    expect_all(&c, "0 server group \"dns\": check.timeout must be 0.1s..300s, got 1ms\n");

    /* Nobody knows which addresses the settings would have allowed. */
    c = (struct command){0};
    cluster_settings_default(&settings);
    settings.vote_interval_ms = 1;
    build_settings(&c, &settings);
    build_put(&c, "one", "8.8.8.8:80");
    expect_all(&c, "0 cluster settings: voteInterval must be 200ms..5s, got 1ms\n");

    /* Of a change that is refused as a whole nothing else is said, nor is what it takes away. */
    c = (struct command){0};
    build_delete_group(&c, "web");
    build_delete_group(&c, "web");
    build_delete_listener(&c, "front");
    expect_all(&c, "1 server group \"web\" is named twice in one command\n");
}

static void a_listener_of_a_group_that_is_not_tcp_is_told_what_to_do(void **unused)
{
    struct server_group group;
    struct command c = {0};

    (void)unused;
    build_group(&group, "dns", "10.0.1.1:53");
    group.protocol = PROTOCOL_UDP;
    build_put_group(&c, &group);
    server_group_close(&group);
    build_listener(&c, "dns", "192.0.2.2:53", "dns");
    /* What its backends are refused for is another matter. */
    c.changes[0].u.group->backends[0].at = build_endpoint("8.8.8.8:53");
    expect_all(&c,
               "0 server group \"dns\": backend 8.8.8.8:53" OUTSIDE PREFIXES
               "1 listener \"dns\": group \"dns\" is of protocol udp, and listeners serve tcp so "
               "far: leave this listener out, its group is checked without it\n");
}

static void groups_that_new_settings_shut_out_are_told_at_the_settings(void **unused)
{
    struct cluster_settings settings;
    struct command c = {0};

    (void)unused;
    cluster_settings_default(&settings);
    settings.n_allowed = 1;
    cidr_parse("192.168.0.0/16", &settings.allowed[0], NULL);
    build_put(&c, "three", "192.168.0.1:80");
    build_settings(&c, &settings);
    build_put(&c, "four", "192.168.0.2:80");
    expect_all(&c, "1 server group \"web\": backend 10.0.0.1:80" OUTSIDE "192.168.0.0/16\n"
                   "1 server group \"web\": backend 10.0.0.2:80" OUTSIDE "192.168.0.0/16\n");
}

static void no_more_are_told_than_a_person_mends_in_one_go(void **unused)
{
    struct catalog_state *state = make_state();
    struct catalog_refusals refusals;
    struct apply_answer answer;
    struct command c = {0};

    (void)unused;
    for (int i = 0; i < 3 * CATALOG_REFUSALS; i++) {
        char name[32];

        snprintf(name, sizeof name, "group-%02d", i);
        build_put(&c, name, "8.8.8.8:80");
    }
    catalog_check_all(state, &c, &answer, &refusals);
    assert_int_equal(refusals.n, CATALOG_REFUSALS);
    assert_int_equal(refusals.items[CATALOG_REFUSALS - 1].change_index, CATALOG_REFUSALS - 1);
    catalog_state_free(state);
    command_close(&c);
}

static void a_command_that_fits_has_no_refusals(void **unused)
{
    struct command c = {0};

    (void)unused;
    build_put(&c, "three", "10.0.1.3:80");
    expect_all(&c, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_refused_for_itself_is_told_with_the_rest),
        cmocka_unit_test(what_follows_from_another_refusal_is_not_told),
        cmocka_unit_test(a_listener_of_a_group_that_is_not_tcp_is_told_what_to_do),
        cmocka_unit_test(groups_that_new_settings_shut_out_are_told_at_the_settings),
        cmocka_unit_test(no_more_are_told_than_a_person_mends_in_one_go),
        cmocka_unit_test(a_command_that_fits_has_no_refusals),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
