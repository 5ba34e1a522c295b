#include "common/base/options.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/addr.h"
#include "common/base/options_internal.h"
#include "common/base/str.h"
#include "common/base/units.h"

#define ENVIRONMENT_PREFIX "JURY_"
#define SUGGESTION_DISTANCE_MAX 3

/* Where a value comes from, for sentences. */
struct source {
    enum option_rank rank;
    const char *origin;
};

static int source_error(const struct source *source)
{
    return source->rank == RANK_ARGUMENT ? ERR_USAGE : ERR_CONFIG;
}

static void value_clear(struct option_value *value)
{
    for (size_t i = 0; i < value->n_texts; i++) {
        free(value->texts[i]);
    }
    free(value->texts);
    *value = (struct option_value){.rank = RANK_NONE};
}

const struct option_spec *options_find_spec(const struct option_table *table, const char *name)
{
    for (size_t i = 0; i < table->n_specs; i++) {
        if (strcmp(table->specs[i].name, name) == 0) {
            return &table->specs[i];
        }
    }
    return NULL;
}

/* ": did you mean ...?" or nothing. Returns text. */
static const char *suggestion(const struct option_table *table, const char *name, char *text,
                              size_t text_bytes)
{
    const char *best = NULL;
    unsigned best_distance = SUGGESTION_DISTANCE_MAX + 1;

    for (size_t i = 0; i < table->n_specs; i++) {
        unsigned distance = str_distance(table->specs[i].name, name);

        if (distance < best_distance) {
            best_distance = distance;
            best = table->specs[i].name;
        }
    }
    text[0] = '\0';
    if (best != NULL) {
        snprintf(text, text_bytes, "; did you mean \"%s\"?", best);
    }
    return text;
}

/* --- checking one value --- */

static int check_number(const struct option_spec *spec, const char *text, struct errmsg *err)
{
    uint64_t number;

    if (!str_parse_u64(text, spec->max, &number) || number < spec->min) {
        return errmsg_set(err, ERR_INVALID,
                          "\"%.60s\": must be a number from %" PRIu64 " to %" PRIu64, text,
                          spec->min, spec->max);
    }
    return 0;
}

static int check_duration(const struct option_spec *spec, const char *text, struct errmsg *err)
{
    uint64_t ms;
    int rc = units_parse_duration_ms(text, &ms, err);

    if (rc == 0 && (ms < spec->min || ms > spec->max)) {
        char low[32], high[32];

        rc = errmsg_set(err, ERR_INVALID, "\"%.60s\": must be a time from %s to %s", text,
                        units_format_duration_ms(spec->min, low, sizeof low),
                        units_format_duration_ms(spec->max, high, sizeof high));
    }
    return rc;
}

static bool is_choice(const char *choices, const char *text)
{
    size_t n_bytes = strlen(text);

    for (const char *at = choices; at != NULL; at = strchr(at, '|')) {
        at += *at == '|';
        if (strncmp(at, text, n_bytes) == 0 && (at[n_bytes] == '|' || at[n_bytes] == '\0')) {
            return n_bytes > 0;
        }
    }
    return false;
}

static int check_text(const struct option_spec *spec, const char *text, struct errmsg *err)
{
    size_t n_bytes = strlen(text);

    if (n_bytes < spec->min || n_bytes > spec->max) {
        return errmsg_set(err, ERR_INVALID, "\"%.60s\": must have %" PRIu64 " to %" PRIu64 " bytes",
                          text, spec->min, spec->max);
    }
    return 0;
}

static int check_value(const struct option_spec *spec, const char *text, struct errmsg *err)
{
    struct addr addr;
    struct endpoint endpoint;
    struct cidr cidr;

    switch ((enum option_type)spec->type) {
    case OPTION_FLAG:
        return strcmp(text, "yes") == 0 || strcmp(text, "no") == 0
                   ? 0
                   : errmsg_set(err, ERR_INVALID, "\"%.60s\": must be yes or no", text);
    case OPTION_TEXT:
        return check_text(spec, text, err);
    case OPTION_PATH:
        return text[0] != '\0' ? 0 : errmsg_set(err, ERR_INVALID, "the path is empty");
    case OPTION_NUMBER:
        return check_number(spec, text, err);
    case OPTION_DURATION:
        return check_duration(spec, text, err);
    case OPTION_ADDRESS:
        return addr_parse(text, &addr, err);
    case OPTION_ENDPOINT:
        return endpoint_parse(text, &endpoint, err);
    case OPTION_CIDR:
        return cidr_parse(text, &cidr, err);
    case OPTION_CHOICE:
        return is_choice(spec->choices, text)
                   ? 0
                   : errmsg_set(err, ERR_INVALID, "\"%.60s\": must be one of %s", text,
                                spec->choices);
    }
    return ERR_INTERNAL;
}

/* --- taking values --- */

static int append(struct option_value *value, const char *text)
{
    char **texts = realloc(value->texts, (value->n_texts + 1) * sizeof *texts);

    if (texts == NULL) {
        return ERR_NOMEM;
    }
    value->texts = texts;
    texts[value->n_texts] = strdup(text);
    if (texts[value->n_texts] == NULL) {
        return ERR_NOMEM;
    }
    value->n_texts++;
    return 0;
}

/* Take one checked value; what came from a higher rank stays. */
static int put(struct options *options, const struct option_spec *spec, const char *text,
               const struct source *source, struct errmsg *err)
{
    struct option_value *value = &options->values[spec - options->table->specs];
    struct errmsg why;

    if (check_value(spec, text, &why) != 0) {
        return errmsg_set(err, source_error(source), "%s: %s: %s", source->origin, spec->name,
                          why.text);
    }
    if (source->rank < value->rank) {
        return 0;
    }
    if (source->rank > value->rank || !spec->is_list) {
        value_clear(value);
    }
    if (value->n_texts == OPTION_VALUES_MAX) {
        return errmsg_set(err, source_error(source), "%s: %s: more than %d values", source->origin,
                          spec->name, OPTION_VALUES_MAX);
    }
    value->rank = source->rank;
    snprintf(value->origin, sizeof value->origin, "%s", source->origin);
    if (append(value, text) != 0) {
        return errmsg_set(err, ERR_NOMEM, "no memory for the options");
    }
    return 0;
}

/* A whole value of file, environment or table: a list is cut at its commas. */
static int put_whole(struct options *options, const struct option_spec *spec, const char *text,
                     const struct source *source, struct errmsg *err)
{
    char copy[OPTION_VALUE_BYTES];
    char *rest = copy;
    int rc = 0;

    if (!spec->is_list) {
        return put(options, spec, text, source, err);
    }
    if (!str_copy(copy, sizeof copy, text)) {
        return errmsg_set(err, source_error(source), "%s: %s: longer than %d bytes", source->origin,
                          spec->name, OPTION_VALUE_BYTES - 1);
    }
    while (rc == 0 && rest != NULL) {
        char *item = rest;

        rest = strchr(item, ',');
        if (rest != NULL) {
            *rest++ = '\0';
        }
        item += strspn(item, " \t");
        for (size_t n = strlen(item); n > 0 && (item[n - 1] == ' ' || item[n - 1] == '\t'); n--) {
            item[n - 1] = '\0';
        }
        rc = put(options, spec, item, source, err);
    }
    return rc;
}

struct options *options_new(const struct option_table *table)
{
    struct options *options = calloc(1, sizeof *options);

    if (options == NULL) {
        return NULL;
    }
    options->table = table;
    options->values = calloc(table->n_specs, sizeof *options->values);
    if (options->values == NULL) {
        options_free(options);
        return NULL;
    }
    for (size_t i = 0; i < table->n_specs; i++) {
        const struct source source = {RANK_DEFAULT, "default"};
        const struct option_spec *spec = &table->specs[i];

        if (spec->default_text != NULL &&
            put_whole(options, spec, spec->default_text, &source, NULL) != 0) {
            options_free(options);
            return NULL;
        }
    }
    return options;
}

void options_free(struct options *options)
{
    if (options == NULL) {
        return;
    }
    for (size_t i = 0; options->values != NULL && i < options->table->n_specs; i++) {
        value_clear(&options->values[i]);
    }
    free(options->values);
    free(options);
}

int options_read_arguments(struct options *options, int argc, char *const argv[],
                           struct errmsg *err)
{
    for (int i = 1; i < argc; i++) {
        char name[64], hint[128], origin[80];
        const char *text = argv[i];
        const char *equals = strchr(text, '=');
        size_t n_bytes = equals != NULL ? (size_t)(equals - text) : strlen(text);

        if (strcmp(text, "-h") == 0) {
            text = "--help";
            n_bytes = 6;
        }
        if (strncmp(text, "--", 2) != 0 || n_bytes <= 2) {
            return errmsg_set(err, ERR_USAGE, "unexpected argument \"%.60s\"; see --help", argv[i]);
        }
        snprintf(name, sizeof name, "%.*s", (int)(n_bytes - 2 > 63 ? 63 : n_bytes - 2), text + 2);
        const struct option_spec *spec = options_find_spec(options->table, name);
        if (spec == NULL) {
            return errmsg_set(err, ERR_USAGE, "unknown option --%s%s; see --help", name,
                              suggestion(options->table, name, hint, sizeof hint));
        }
        snprintf(origin, sizeof origin, "flag --%s", name);
        const struct source source = {RANK_ARGUMENT, origin};
        const char *value = equals != NULL ? equals + 1 : NULL;
        if (spec->type == OPTION_FLAG && value == NULL) {
            value = "yes";
        } else if (value == NULL) {
            if (++i >= argc) {
                return errmsg_set(err, ERR_USAGE, "option --%s needs a value: %s", name,
                                  spec->argument);
            }
            value = argv[i];
        }
        int rc = put(options, spec, value, &source, err);
        if (rc != 0) {
            return rc;
        }
    }
    return 0;
}

static void environment_name(const struct option_spec *spec, char *name, size_t name_bytes)
{
    snprintf(name, name_bytes, ENVIRONMENT_PREFIX "%s", spec->name);
    for (char *at = name; *at != '\0'; at++) {
        *at = *at == '-' ? '_' : (char)toupper((unsigned char)*at);
    }
}

int options_read_environment(struct options *options, char *const environment[], struct errmsg *err)
{
    for (size_t i = 0; i < options->table->n_specs; i++) {
        const struct option_spec *spec = &options->table->specs[i];
        char name[80], origin[OPTION_ORIGIN_BYTES];

        if (spec->is_command) {
            continue;
        }
        environment_name(spec, name, sizeof name);
        size_t n_bytes = strlen(name);
        for (size_t j = 0; environment[j] != NULL; j++) {
            if (strncmp(environment[j], name, n_bytes) != 0 || environment[j][n_bytes] != '=') {
                continue;
            }
            snprintf(origin, sizeof origin, "environment %s", name);
            const struct source source = {RANK_ENVIRONMENT, origin};
            int rc = put_whole(options, spec, environment[j] + n_bytes + 1, &source, err);
            if (rc != 0) {
                return rc;
            }
        }
    }
    return 0;
}

/* Cut comment, blanks and quotes in place. Returns the first byte. A `#` is a comment at the
 * beginning or after a blank, as in YAML. */
static char *trim(char *line)
{
    for (char *at = line; *at != '\0'; at++) {
        if (*at == '#' && (at == line || at[-1] == ' ' || at[-1] == '\t')) {
            *at = '\0';
            break;
        }
    }
    line += strspn(line, " \t\r\n");
    size_t n_bytes = strlen(line);
    while (n_bytes > 0 && strchr(" \t\r\n", line[n_bytes - 1]) != NULL) {
        line[--n_bytes] = '\0';
    }
    return line;
}

static char *unquote(char *text)
{
    size_t n_bytes = strlen(text);

    if (n_bytes >= 2 && (text[0] == '"' || text[0] == '\'') && text[n_bytes - 1] == text[0]) {
        text[n_bytes - 1] = '\0';
        return text + 1;
    }
    return text;
}

static int read_line(struct options *options, char *line, const struct source *source, bool seen[],
                     struct errmsg *err)
{
    char hint[128];
    char *name = trim(line);
    char *colon = strchr(name, ':');

    if (*name == '\0') {
        return 0;
    }
    if (colon == NULL || (colon[1] != '\0' && colon[1] != ' ' && colon[1] != '\t')) {
        return errmsg_set(err, ERR_CONFIG, "%s: \"%.60s\" is not of the form name: value",
                          source->origin, name);
    }
    *colon = '\0';
    char *value = unquote(trim(colon + 1));
    name = trim(name);
    const struct option_spec *spec = options_find_spec(options->table, name);
    if (spec == NULL || spec->is_command) {
        return errmsg_set(err, ERR_CONFIG, "%s: unknown option \"%.60s\"%s", source->origin, name,
                          suggestion(options->table, name, hint, sizeof hint));
    }
    if (seen[spec - options->table->specs]) {
        return errmsg_set(err, ERR_CONFIG, "%s: %s is given twice%s", source->origin, name,
                          spec->is_list ? "; separate the values of a list by commas" : "");
    }
    seen[spec - options->table->specs] = true;
    return put_whole(options, spec, value, source, err);
}

/* NULL with errno 0: there is something else, which may have no end or never begin. */
static FILE *open_regular(const char *path)
{
    struct stat info;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    FILE *file = NULL;

    if (fd < 0) {
        return NULL;
    }
    if (fstat(fd, &info) == 0 && S_ISREG(info.st_mode)) {
        file = fdopen(fd, "r");
    } else {
        errno = 0;
    }
    if (file == NULL) {
        int errnum = errno;

        close(fd);
        errno = errnum;
    }
    return file;
}

int options_read_file(struct options *options, const char *path, struct errmsg *err)
{
    char line[OPTION_VALUE_BYTES + 128];
    char origin[OPTION_ORIGIN_BYTES];
    size_t n_bytes = 0;
    unsigned number = 0;
    int rc = 0;
    FILE *file = open_regular(path);

    if (file == NULL) {
        int errnum = errno;

        if (errnum == 0) {
            return errmsg_set(err, ERR_CONFIG, "configuration file %s: not a regular file", path);
        }

        return errmsg_set(err, errnum == ENOENT ? ERR_NOTFOUND : ERR_CONFIG,
                          "configuration file %s: %s", path, strerror(errnum));
    }
    bool *seen = calloc(options->table->n_specs, sizeof *seen);
    if (seen == NULL) {
        rc = errmsg_set(err, ERR_NOMEM, "no memory for the options");
    }
    while (rc == 0 && fgets(line, sizeof line, file) != NULL) {
        snprintf(origin, sizeof origin, "%s line %u", path, ++number);
        const struct source source = {RANK_FILE, origin};

        n_bytes += strlen(line);
        if (strchr(line, '\n') == NULL && !feof(file)) {
            rc = errmsg_set(err, ERR_CONFIG, "%s: the line is too long", origin);
        } else if (n_bytes > OPTIONS_FILE_BYTES) {
            rc = errmsg_set(err, ERR_CONFIG, "%s: the file is larger than %d bytes", path,
                            OPTIONS_FILE_BYTES);
        } else {
            rc = read_line(options, line, &source, seen, err);
        }
    }
    if (rc == 0 && ferror(file)) {
        rc = errmsg_set(err, ERR_CONFIG, "configuration file %s: %s", path, strerror(errno));
    }
    free(seen);
    fclose(file);
    return rc;
}
