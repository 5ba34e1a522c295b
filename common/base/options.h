/* Options of a program: one table that feeds the parser of flags, environment and file, --help,
 * --print-config and the example file.
 *
 * A value comes from the flag, else from the environment, else from the file, else it is the
 * table's default. The file has one `name: value` a line (a subset of YAML), values of a list are
 * separated by commas, `#` begins a comment. In the environment the option `data-dir` is
 * JURY_DATA_DIR. Every value is checked when it is read, whoever wins in the end; an unknown option
 * is refused and the nearest known one suggested. */
#ifndef JURY_BASE_OPTIONS_H
#define JURY_BASE_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "common/base/err.h"

#define OPTION_VALUES_MAX 64 /* of one list */
#define OPTION_VALUE_BYTES 1024
#define OPTIONS_FILE_BYTES 65536

enum option_type {
    OPTION_FLAG = 1, /* given or not; yes or no in file and environment */
    OPTION_TEXT,     /* min..max bytes */
    OPTION_PATH,     /* not empty */
    OPTION_NUMBER,   /* min..max */
    OPTION_DURATION, /* "5s", min..max milliseconds */
    OPTION_ADDRESS,  /* numeric */
    OPTION_ENDPOINT, /* "192.0.2.1:7400", "[::1]:7400" */
    OPTION_CIDR,     /* "10.0.0.0/8" */
    OPTION_CHOICE    /* one of `choices` */
};

struct option_spec {
    const char *section;  /* heading in --help; specs of one section stand together */
    const char *name;     /* lower case with hyphens */
    const char *argument; /* word for the value in --help ("DIR"); NULL with OPTION_FLAG */
    uint8_t type;         /* enum option_type */
    bool is_list;         /* the flag may be given again; commas elsewhere */
    bool is_command;      /* of the command line only: --help, --config */
    uint64_t min, max;
    const char *unit;         /* of OPTION_NUMBER, for --help; may be NULL */
    const char *choices;      /* "error|warning|info|debug" */
    const char *default_text; /* NULL = none; lists: with commas */
    const char *help;         /* without a period */
};

struct option_table {
    const char *program;
    const char *summary; /* what the program is, for --help */
    const struct option_spec *specs;
    size_t n_specs;
};

struct options;

/* table: kept. NULL: no memory. */
struct options *options_new(const struct option_table *table);
void options_free(struct options *options);

/* Each may be called in any order and more than once. argv[0] is skipped.
 * Errors: ERR_USAGE for the command line; ERR_CONFIG for environment and file, with the variable or
 * the file and line. */
int options_read_arguments(struct options *options, int argc, char *const argv[],
                           struct errmsg *err);
int options_read_environment(struct options *options, char *const environment[],
                             struct errmsg *err);
/* ERR_NOTFOUND: there is no such file. */
int options_read_file(struct options *options, const char *path, struct errmsg *err);

/* Values; name must be in the table and of that type. Texts are valid until options_free. */
bool options_is_set(const struct options *options,
                    const char *name); /* by somebody, not by default */
bool options_flag(const struct options *options, const char *name);
const char *options_text(const struct options *options, const char *name); /* NULL = no value */
uint64_t options_number(const struct options *options, const char *name);
uint64_t options_duration_ms(const struct options *options, const char *name);
size_t options_n_values(const struct options *options, const char *name);
const char *options_value_at(const struct options *options, const char *name, size_t index);
/* "flag --data-dir", "/etc/jury/agent.conf line 3", for sentences about the value. */
const char *options_origin(const struct options *options, const char *name);

/* What people see. */
void options_print_help(const struct options *options, FILE *out);
/* Every option with its value and where it comes from; can be read back as a file. */
void options_print_config(const struct options *options, FILE *out);
/* A file with every option, its meaning and its default, all commented out. */
void options_print_example(const struct options *options, FILE *out);

#endif
