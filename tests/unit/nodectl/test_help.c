/* Every --help, as golden files: what people are told is looked at before it changes. */
#include "golden.h"

#include <ctype.h>
#include <glob.h>
#include <regex.h>
#include <stdio.h>
#include <string.h>

#include "common/model/advice.h"
#include "common/spec/field.h"
#include "nodectl/commands.h"

static bool is_update;

static void expect_help(const char *words, const char *golden)
{
    char line[256];

    snprintf(line, sizeof line, "%s --help", words);
    struct golden_run run = run_nodectl(line);
    assert_int_equal(run.status, 0);
    assert_string_equal(run.err, "");
    golden_expect(golden, run.out, is_update);
    run_close(&run);
}

static void golden_name(const char *command, char name[128])
{
    snprintf(name, 128, "help_%s", command);
    for (char *at = name; *at != '\0'; at++) {
        *at = *at == ' ' ? '_' : *at;
    }
}

static void help_of_every_command_is_as_reviewed(void **state)
{
    (void)state;
    char name[128];

    expect_help("", "help");
    for (size_t i = 0; i < ctl_n_commands; i++) {
        golden_name(ctl_commands[i].name, name);
        expect_help(ctl_commands[i].name, name);
    }
}

static void help_of_every_noun_is_as_reviewed(void **state)
{
    (void)state;
    static const char *const nouns[] = {"group",   "backend", "hold", "listener",
                                        "cluster", "node",    "key"};

    for (size_t i = 0; i < sizeof nouns / sizeof nouns[0]; i++) {
        char name[128];

        golden_name(nouns[i], name);
        expect_help(nouns[i], name);
    }
}

static void no_golden_help_is_left_over(void **state)
{
    (void)state;
    glob_t files;

    assert_int_equal(glob(GOLDEN_FOLDER "help*.txt", 0, NULL, &files), 0);
    assert_int_equal(files.gl_pathc, ctl_n_commands + 1 + 7);
    globfree(&files);
}

static void the_help_command_and_the_flag_say_the_same(void **state)
{
    (void)state;
    struct golden_run flag = run_nodectl("backend drain --help");
    struct golden_run word = run_nodectl("help backend drain");
    struct golden_run early = run_nodectl("-h backend drain");

    assert_string_equal(flag.out, word.out);
    assert_string_equal(flag.out, early.out);
    run_close(&flag);
    run_close(&word);
    run_close(&early);
}

/* One table: each flag of a command is in the flag table behind the global ones, in its help, and
 * no two flags of one command have one name. */
static void the_tables_of_commands_and_flags_fit(void **state)
{
    (void)state;
    for (size_t i = 0; i < ctl_n_commands; i++) {
        const struct ctl_command *command = &ctl_commands[i];

        assert_non_null(command->run);
        assert_true(command->n_args_min <= command->n_args_max);
        assert_true(islower((unsigned char)command->name[0]));
        for (size_t f = 0; f < CTL_COMMAND_FLAGS && command->flags[f] != 0; f++) {
            assert_true(command->flags[f] > FLAG_LAST_GLOBAL && command->flags[f] < CTL_N_FLAGS);
            for (size_t g = 0; g < f; g++) {
                assert_string_not_equal(ctl_flags[command->flags[f]].name,
                                        ctl_flags[command->flags[g]].name);
            }
        }
    }
    for (size_t i = 0; i < CTL_N_FLAGS; i++) {
        assert_non_null(ctl_flags[i].name);
        assert_non_null(ctl_flags[i].help);
        assert_true((ctl_flags[i].type == CTL_FLAG_SWITCH) == (ctl_flags[i].argument == NULL));
    }
}

static void explanations_are_as_reviewed(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"explain", "explain"},
        {"explain group", "explain_group"},
        {"explain group.check", "explain_group_check"},
        {"explain group.checks", "explain_group_checks"},
        {"explain group.check.http.expect", "explain_expect"},
        {"explain group.backends", "explain_backends"},
        {"explain group.existingFlows", "explain_later"},
        {"explain group.metadata.name", "explain_metadata_name"},
        {"explain listener", "explain_listener"},
        {"explain clustersettings", "explain_settings"},
        {"explain node", "explain_node"},
        {"explain key", "explain_key"},
        {"explain profile", "explain_profiles"},
        {"explain profile gwlb", "explain_profile_gwlb"},
        {"explain reason", "explain_reasons"},
        {"explain rules", "explain_rules"},
        {"explain flows", "explain_flows"},
        {"explain guards", "explain_guards"},
        {"explain self-doubt", "explain_self_doubt"},
        {"explain probers", "explain_probers"},
        {"explain loss", "explain_loss"},
        {"explain budget", "explain_budget"},
        {"explain rule majority", "explain_rule_majority"},
        {"explain group --example", "explain_group_example"},
        {"explain group.check.tcp -o json", "explain_json"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct golden_run run = run_nodectl(rows[i][0]);

        assert_int_equal(run.status, 0);
        assert_string_equal(run.err, "");
        golden_expect(rows[i][1], run.out, is_update);
        run_close(&run);
    }
}

/* --- all that explain says --- */

/* A row of the specification ("S38", "R-EJ-1", "A19"), or NULL. */
static const char *find_row_id(const char *text)
{
    static const char *const pattern = "(^|[^A-Za-z0-9_])(S[0-9]{1,3}|[RFIGS]-([A-Z]+-)?[0-9]+|A[0-"
                                       "9]{2}|N[0-9]{1,2})([^A-Za-z0-9_]|$)";
    regex_t regex;
    regmatch_t match;

    assert_int_equal(regcomp(&regex, pattern, REG_EXTENDED), 0);
    int rc = regexec(&regex, text, 1, &match, 0);
    regfree(&regex);
    return rc == 0 ? text + match.rm_so : NULL;
}

static void expect_plain_words(const char *line)
{
    struct golden_run run = run_nodectl(line);
    const char *found = find_row_id(run.out);

    assert_int_equal(run.status, 0);
    if (found != NULL) {
        fail_msg("nodectl %s shows a row of the specification: %.40s", line, found);
    }
    run_close(&run);
}

static void explain_below(const struct spec_table *table, const char *path)
{
    char line[256];

    snprintf(line, sizeof line, "explain %s", path);
    expect_plain_words(line);
    for (size_t i = 0; i < table->n_fields; i++) {
        const struct spec_field *field = &table->fields[i];
        const struct spec_table *inner =
            field->type == SPEC_TYPE_LIST ? field->list->fields : field->fields;

        snprintf(line, sizeof line, "%s.%s", path, field->name);
        if (inner != NULL) {
            explain_below(inner, line);
        } else {
            char whole[300];

            snprintf(whole, sizeof whole, "explain %s", line);
            expect_plain_words(whole);
        }
    }
}

static void no_explanation_shows_a_row_of_the_specification(void **state)
{
    (void)state;
    static const char *const topics[] = {
        "explain",       "explain profile", "explain reason",     "explain rules",
        "explain flows", "explain guards",  "explain self-doubt", "explain verdict"};

    assert_non_null(find_row_id("none (S97: avoid it)"));
    assert_null(find_row_id("IPv6, H2 and SHA256"));
    for (size_t i = 0; i < sizeof topics / sizeof topics[0]; i++) {
        expect_plain_words(topics[i]);
    }
    for (size_t i = 0; i < SPEC_N_KINDS; i++) {
        explain_below(spec_kinds[i].spec, spec_kinds[i].path);
    }
    for (size_t i = 0; i < N_ADVICE; i++) { /* what validate and apply say */
        assert_null(find_row_id(advice_rows[i].text));
        assert_null(find_row_id(advice_rows[i].id));
        if (advice_rows[i].warning != NULL) {
            assert_null(find_row_id(advice_rows[i].warning));
        }
    }
}

/* One space for each white place: where lines are broken says nothing. */
static void one_line(const char *text, char *ret_line, size_t n_bytes)
{
    size_t n = 0;

    for (; *text != '\0' && n + 1 < n_bytes; text++) {
        bool is_space = isspace((unsigned char)*text) != 0;

        if (!is_space || (n > 0 && ret_line[n - 1] != ' ')) {
            ret_line[n++] = is_space ? ' ' : *text;
        }
    }
    ret_line[n] = '\0';
}

/* shows: S28 S32 S33 S38 S43 S44 S49 S96 S97 S107 S108 */
static void all_advice_stands_beside_its_field(void **state)
{
    (void)state;
    static char told[65536];

    for (size_t i = 0; i < N_ADVICE; i++) {
        char line[256];

        snprintf(line, sizeof line, "explain %s", advice_rows[i].path);
        struct golden_run run = run_nodectl(line);
        assert_int_equal(run.status, 0);
        one_line(run.out, told, sizeof told);
        if (strstr(told, advice_rows[i].text) == NULL) {
            fail_msg("nodectl %s does not advise: %s", line, advice_rows[i].text);
        }
        run_close(&run);
    }
}

static bool has_line_of(const char *text, const char *field)
{
    size_t n = strlen(field);

    for (const char *at = text; at != NULL && *at != '\0'; at = strchr(at, '\n')) {
        at += *at == '\n';
        if (strncmp(at, field, n) == 0 && at[n] == ' ') {
            return true;
        }
    }
    return false;
}

/* Every field of the table, nested ones too, but what is each group's own. */
static void expect_fields(const char *text, const struct spec_table *table, const char *prefix)
{
    char path[256];

    for (size_t i = 0; i < table->n_fields; i++) {
        const struct spec_field *field = &table->fields[i];

        snprintf(path, sizeof path, "%s%s", prefix, field->name);
        if (strcmp(path, "profile") == 0 || field->type == SPEC_TYPE_LIST ||
            field->type == SPEC_TYPE_PASS) {
            continue;
        }
        if (field->type == SPEC_TYPE_OBJECT) {
            strncat(path, ".", sizeof path - strlen(path) - 1);
            expect_fields(text, field->fields, path);
        } else if (!has_line_of(text, path)) {
            fail_msg("explain profile says nothing of %s", path);
        }
    }
}

static void a_profile_is_explained_in_all_its_fields(void **state)
{
    (void)state;
    /* The rows of the specification's table of profiles, as documents spell them. */
    static const char *const rows[] = {"check.enabled",
                                       "check.type",
                                       "check.port",
                                       "check.timeout",
                                       "check.interval",
                                       "check.healthyThreshold",
                                       "check.unhealthyThreshold",
                                       "check.tcp.handshake",
                                       "check.tcp.close",
                                       "check.tcp.onTimeout",
                                       "check.http.method",
                                       "check.http.version",
                                       "check.http.path",
                                       "check.http.domain",
                                       "check.http.host",
                                       "check.http.expect",
                                       "check.udp.method",
                                       "check.udp.payload",
                                       "check.udp.expect",
                                       "check.udp.mask",
                                       "check.source",
                                       "scheduler",
                                       "backends.weight",
                                       "drain.enabled",
                                       "drain.timeout",
                                       "idleTimeout",
                                       "existingFlows",
                                       "failover",
                                       "rule",
                                       "belowQuorum",
                                       "allBad",
                                       "failOpenPercent",
                                       "guard.velocityPercent",
                                       "hold",
                                       "addressFamily"};
    static const char *const lines[] = {"explain profile", "explain profile gwlb",
                                        "explain profile nlb", "explain profile clb"};

    for (size_t l = 0; l < sizeof lines / sizeof lines[0]; l++) {
        struct golden_run run = run_nodectl(lines[l]);

        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
            if (!has_line_of(run.out, rows[i])) {
                fail_msg("%s says nothing of %s", lines[l], rows[i]);
            }
        }
        expect_fields(run.out, spec_kind_info(SPEC_GROUP)->spec, "");
        assert_non_null(strstr(run.out, "Self-doubt and the"));
        run_close(&run);
    }
}

int main(int argc, char *argv[])
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(help_of_every_command_is_as_reviewed),
        cmocka_unit_test(help_of_every_noun_is_as_reviewed),
        cmocka_unit_test(no_golden_help_is_left_over),
        cmocka_unit_test(the_help_command_and_the_flag_say_the_same),
        cmocka_unit_test(the_tables_of_commands_and_flags_fit),
        cmocka_unit_test(explanations_are_as_reviewed),
        cmocka_unit_test(no_explanation_shows_a_row_of_the_specification),
        cmocka_unit_test(all_advice_stands_beside_its_field),
        cmocka_unit_test(a_profile_is_explained_in_all_its_fields),
    };

    is_update = argc > 1 && strcmp(argv[1], "--update") == 0;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
