/* Helpers of the tests of nodectl: one run in this process, and golden files.
 *
 * A test with `--update` as its argument writes the golden files instead of comparing. */
#ifndef JURY_TEST_NODECTL_GOLDEN_H
#define JURY_TEST_NODECTL_GOLDEN_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "nodectl/ctl.h"
#include "nodectl/flags.h"

#define GOLDEN_FOLDER "tests/unit/nodectl/golden/"

struct golden_run {
    int status;
    char *out; /* given by run_nodectl; run_close */
    char *err;
};

/* line: words separated by blanks, '...' keeps blanks together. environment: "A=1 B=2" or "". */
static inline struct golden_run run_nodectl_in(const char *line, const char *input,
                                               const char *environment_line)
{
    struct golden_run run = {0};
    char words[2048];
    char variables[512];
    char *argv[64] = {(char *)(uintptr_t) "nodectl"};
    char *environment[16] = {NULL};
    int argc = 1;
    size_t n_out = 0;
    size_t n_err = 0;

    snprintf(words, sizeof words, "%s", line);
    for (char *at = words; *at != '\0';) {
        at += strspn(at, " ");
        char end = *at == '\'' ? '\'' : ' ';
        at += end == '\'';
        if (*at == '\0') {
            break;
        }
        argv[argc++] = at;
        at = strchr(at, end);
        if (at == NULL) {
            break;
        }
        *at++ = '\0';
    }
    snprintf(variables, sizeof variables, "%s", environment_line);
    size_t n_variables = 0;
    for (char *at = strtok(variables, " "); at != NULL; at = strtok(NULL, " ")) {
        environment[n_variables++] = at;
    }
    FILE *out = open_memstream(&run.out, &n_out);
    FILE *err = open_memstream(&run.err, &n_err);
    FILE *in = input[0] == '\0' ? fopen("/dev/null", "r")
                                : fmemopen((void *)(uintptr_t)input, strlen(input), "r");
    struct ctl_process process = {
        .argc = argc, .argv = argv, .environment = environment, .in = in, .out = out, .err = err};
    run.status = ctl_main(&process);
    fclose(in);
    fclose(out);
    fclose(err);
    return run;
}

static inline struct golden_run run_nodectl(const char *line)
{
    return run_nodectl_in(line, "", "");
}

static inline void run_close(struct golden_run *run)
{
    free(run->out);
    free(run->err);
}

/* Compare with golden/NAME.txt, or write it. */
static inline void golden_expect(const char *name, const char *text, bool is_update)
{
    char path[512];
    char *expected = NULL;
    size_t n_expected = 0;

    snprintf(path, sizeof path, GOLDEN_FOLDER "%s.txt", name);
    if (is_update) {
        FILE *file = fopen(path, "w");
        assert_non_null(file);
        fputs(text, file);
        fclose(file);
        return;
    }
    FILE *file = fopen(path, "r");
    if (file == NULL) {
        fail_msg("%s is missing; made by --update, it would be:\n%s", path, text);
    }
    expected = calloc(1, 1 << 20);
    n_expected = fread(expected, 1, (1 << 20) - 1, file);
    fclose(file);
    if (strlen(text) != n_expected || strcmp(expected, text) != 0) {
        fail_msg(
            "%s differs (if that is right: run the test with --update)\nexpected:\n%s\ngot:\n%s",
            path, expected, text);
    }
    free(expected);
}

#endif
