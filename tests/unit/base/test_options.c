#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/counters.h"
#include "common/base/options.h"

static const struct option_spec specs[] = {
    {.section = "General", .name = "help", .type = OPTION_FLAG, .is_command = true, .help = "this"},
    {.section = "General",
     .name = "data-dir",
     .argument = "DIR",
     .type = OPTION_PATH,
     .default_text = "/var/lib/x",
     .help = "where"},
    {.section = "General",
     .name = "level",
     .argument = "LEVEL",
     .type = OPTION_CHOICE,
     .choices = "error|info|debug",
     .default_text = "info",
     .help = "how much"},
    {.section = "Network",
     .name = "listen",
     .argument = "ADDRESS:PORT",
     .type = OPTION_ENDPOINT,
     .is_list = true,
     .default_text = "127.0.0.1:1, [::1]:2",
     .help = "where to listen"},
    {.section = "Network",
     .name = "wait",
     .argument = "TIME",
     .type = OPTION_DURATION,
     .min = 100,
     .max = 5000,
     .default_text = "1s",
     .help = "how long"},
    {.section = "Network",
     .name = "workers",
     .argument = "N",
     .type = OPTION_NUMBER,
     .min = 1,
     .max = 16,
     .unit = "threads",
     .help = "how many"},
    {.section = "Network", .name = "fast", .type = OPTION_FLAG, .help = "hurry"},
};
static const struct option_table table = {"jury-test", "A test.", specs,
                                          sizeof specs / sizeof specs[0]};

static struct options *fresh(void **state)
{
    (void)state;
    return options_new(&table);
}

#define READ(options, err, ...)                                                                   \
    options_read_arguments(options, (int)(sizeof((char *[]){"x", __VA_ARGS__}) / sizeof(char *)), \
                           (char *[]){"x", __VA_ARGS__}, err)

static void a_flag_wins_over_the_environment_and_that_over_the_file(void **state)
{
    struct options *options = fresh(state);
    struct errmsg err = {""};
    char path[] = "/tmp/jury-options-XXXXXX";
    int fd = mkstemp(path);
    static const char text[] = "# a comment\ndata-dir: /from/file  # why\nlevel: 'debug'\n"
                               "wait: 3s\n\nlisten: 10.0.0.1:5 , [2001:db8::1]:6\n";
    char *environment[] = {(char *)"JURY_DATA_DIR=/from/env", (char *)"JURY_LEVEL=error", NULL};

    assert_int_equal(write(fd, text, sizeof text - 1), sizeof text - 1);
    close(fd);
    assert_int_equal(READ(options, &err, "--data-dir", "/from/flag"), 0);
    assert_int_equal(options_read_environment(options, environment, &err), 0);
    assert_int_equal(options_read_file(options, path, &err), 0);
    unlink(path);

    assert_string_equal(options_text(options, "data-dir"), "/from/flag");
    assert_string_equal(options_origin(options, "data-dir"), "flag --data-dir");
    assert_string_equal(options_text(options, "level"), "error");
    assert_int_equal(options_duration_ms(options, "wait"), 3000);
    assert_int_equal(options_n_values(options, "listen"), 2);
    assert_string_equal(options_value_at(options, "listen", 0), "10.0.0.1:5");
    assert_string_equal(options_value_at(options, "listen", 1), "[2001:db8::1]:6");
    assert_false(options_flag(options, "fast"));
    options_free(options);
}

static void lists_start_anew_at_each_rank_and_grow_by_repeated_flags(void **state)
{
    struct options *options = fresh(state);

    assert_int_equal(options_n_values(options, "listen"), 2);
    assert_int_equal(READ(options, NULL, "--listen", "10.0.0.1:7", "--listen=10.0.0.2:8"), 0);
    assert_int_equal(options_n_values(options, "listen"), 2);
    assert_string_equal(options_value_at(options, "listen", 0), "10.0.0.1:7");
    assert_int_equal(READ(options, NULL, "--fast"), 0);
    assert_true(options_flag(options, "fast"));
    options_free(options);
}

static void bad_arguments_are_named_with_the_range(void **state)
{
    static const struct {
        char *argument;
        char *value;
        const char *sentence;
    } rows[] = {
        {"--dta-dir", "x", "unknown option --dta-dir; did you mean \"data-dir\"?; see --help"},
        {"--quite-different", NULL, "unknown option --quite-different; see --help"},
        {"data", NULL, "unexpected argument \"data\"; see --help"},
        {"--", NULL, "unexpected argument \"--\"; see --help"},
        {"--level", NULL, "option --level needs a value: LEVEL"},
        {"--level", "loud", "flag --level: level: \"loud\": must be one of error|info|debug"},
        {"--level", "", "flag --level: level: \"\": must be one of error|info|debug"},
        {"--level", "err", "flag --level: level: \"err\": must be one of error|info|debug"},
        {"--wait", "5",
         "flag --wait: wait: \"5\" is not a time: write a number and a unit such as "
         "5s, 250ms or 5m"},
        {"--wait", "10s", "flag --wait: wait: \"10s\": must be a time from 100ms to 5s"},
        {"--workers", "0", "flag --workers: workers: \"0\": must be a number from 1 to 16"},
        {"--workers", "17", "flag --workers: workers: \"17\": must be a number from 1 to 16"},
        {"--workers", "-1", "flag --workers: workers: \"-1\": must be a number from 1 to 16"},
        {"--listen", "10.0.0.1",
         "flag --listen: listen: \"10.0.0.1\" has no port: write "
         "address:port"},
        {"--fast=maybe", NULL, "flag --fast: fast: \"maybe\": must be yes or no"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct options *options = fresh(state);
        struct errmsg err = {""};
        char *argv[] = {(char *)"x", rows[i].argument, rows[i].value};

        assert_int_equal(options_read_arguments(options, rows[i].value == NULL ? 2 : 3, argv, &err),
                         ERR_USAGE);
        assert_string_equal(err.text, rows[i].sentence);
        options_free(options);
    }
}

static void bad_lines_of_a_file_are_named_with_their_number(void **state)
{
    static const struct {
        const char *text;
        const char *sentence;
    } rows[] = {
        {"level: info\nlevel: debug\n", " line 2: level is given twice"},
        {"listen: 1.1.1.1:1\nlisten: 1.1.1.2:1\n",
         " line 2: listen is given twice; separate the values of a list by commas"},
        {"levle: info\n", " line 1: unknown option \"levle\"; did you mean \"level\"?"},
        {"help: yes\n", " line 1: unknown option \"help\"; did you mean \"help\"?"},
        {"level\n", " line 1: \"level\" is not of the form name: value"},
        {"wait: 1h\n", " line 1: wait: \"1h\": must be a time from 100ms to 5s"},
        {"listen: 1.1.1.1:1,,1.1.1.2:2\n", " line 1: listen: \"\" has no port: write address:port"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct options *options = fresh(state);
        struct errmsg err = {""};
        char path[] = "/tmp/jury-options-XXXXXX";
        int fd = mkstemp(path);

        assert_true(write(fd, rows[i].text, strlen(rows[i].text)) > 0);
        close(fd);
        assert_int_equal(options_read_file(options, path, &err), ERR_CONFIG);
        assert_memory_equal(err.text, path, strlen(path));
        if (i != 3) {
            assert_string_equal(err.text + strlen(path), rows[i].sentence);
        }
        unlink(path);
        options_free(options);
    }
    struct options *options = fresh(state);
    struct errmsg err = {""};
    assert_int_equal(options_read_file(options, "/nowhere/at/all", &err), ERR_NOTFOUND);
    assert_string_equal(err.text, "configuration file /nowhere/at/all: No such file or directory");
    options_free(options);
}

static void what_print_config_prints_can_be_read_back(void **state)
{
    struct options *options = fresh(state), *again = fresh(state);
    struct errmsg err = {""};
    char path[] = "/tmp/jury-options-XXXXXX";
    int fd = mkstemp(path);
    FILE *file = fdopen(fd, "w");

    assert_int_equal(
        READ(options, &err, "--listen=10.0.0.1:7", "--listen=10.0.0.2:8", "--wait=2s", "--fast"),
        0);
    options_print_config(options, file);
    fclose(file);
    assert_int_equal(options_read_file(again, path, &err), 0);
    unlink(path);
    assert_string_equal(options_value_at(again, "listen", 1), "10.0.0.2:8");
    assert_int_equal(options_duration_ms(again, "wait"), 2000);
    assert_true(options_flag(again, "fast"));
    options_free(options);
    options_free(again);
}

static void help_and_the_example_name_every_option_with_range_and_default(void **state)
{
    struct options *options = fresh(state);
    char *text = NULL;
    size_t n_bytes = 0;
    FILE *out = open_memstream(&text, &n_bytes);

    options_print_help(options, out);
    options_print_example(options, out);
    fclose(out);
    for (size_t i = 0; i < table.n_specs; i++) {
        assert_non_null(strstr(text, specs[i].name));
    }
    assert_non_null(strstr(text, "how long (100ms to 5s, default 1s)"));
    assert_non_null(strstr(text, "how many (1 to 16 threads)"));
    assert_non_null(strstr(text, "#wait: 1s\n"));
    assert_non_null(strstr(text, "#fast: no\n"));
    assert_null(strstr(text, "#help"));
    free(text);
    options_free(options);
}

#define TEST_COUNTERS(X)             \
    X(seen, "things that were seen") \
    X(lost, "things that were not")
struct test_counters {
#define FIELD(name, help) uint64_t name;
    TEST_COUNTERS(FIELD)
#undef FIELD
};

static void emit(void *to, const struct counter_value *value)
{
    char *text = to;

    sprintf(text + strlen(text), "%s{%s}=%llu %s\n", value->name,
            value->label == NULL ? "" : value->label, (unsigned long long)value->value,
            value->help);
}

static void counters_are_read_from_where_their_modules_keep_them(void **state)
{
    static const struct counter_field fields[] = {
#define FIELD(name, help) COUNTER_FIELD(struct test_counters, name, help)
        TEST_COUNTERS(FIELD)
#undef FIELD
    };
    struct test_counters values = {.seen = 1};
    struct counters counters = {.n_sets = 0};
    char text[512] = "";

    (void)state;
    counters_add(&counters, &(struct counter_set){"mesh", "peer", fields, 2, &values});
    values.lost = UINT64_MAX;
    counters_emit(&counters, emit, text);
    assert_string_equal(text, "mesh_seen{peer}=1 things that were seen\n"
                              "mesh_lost{peer}=18446744073709551615 things that were not\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_flag_wins_over_the_environment_and_that_over_the_file),
        cmocka_unit_test(lists_start_anew_at_each_rank_and_grow_by_repeated_flags),
        cmocka_unit_test(bad_arguments_are_named_with_the_range),
        cmocka_unit_test(bad_lines_of_a_file_are_named_with_their_number),
        cmocka_unit_test(what_print_config_prints_can_be_read_back),
        cmocka_unit_test(help_and_the_example_name_every_option_with_range_and_default),
        cmocka_unit_test(counters_are_read_from_where_their_modules_keep_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
