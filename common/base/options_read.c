/* What is read out of an option table: values for the program, help and examples for people
 * (options.h). */
#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "common/base/options_internal.h"
#include "common/base/str.h"
#include "common/base/units.h"

/* --- values --- */

static const struct option_value *find_value(const struct options *options, const char *name)
{
    const struct option_spec *spec = options_find_spec(options->table, name);

    assert(spec != NULL);
    return &options->values[spec - options->table->specs];
}

bool options_is_set(const struct options *options, const char *name)
{
    return find_value(options, name)->rank > RANK_DEFAULT;
}

const char *options_text(const struct options *options, const char *name)
{
    const struct option_value *value = find_value(options, name);

    return value->n_texts > 0 ? value->texts[0] : NULL;
}

bool options_flag(const struct options *options, const char *name)
{
    const char *text = options_text(options, name);

    return text != NULL && strcmp(text, "yes") == 0;
}

uint64_t options_number(const struct options *options, const char *name)
{
    uint64_t number = 0;
    const char *text = options_text(options, name);

    if (text != NULL) {
        str_parse_u64(text, UINT64_MAX, &number);
    }
    return number;
}

uint64_t options_duration_ms(const struct options *options, const char *name)
{
    uint64_t ms = 0;
    const char *text = options_text(options, name);

    if (text != NULL) {
        units_parse_duration_ms(text, &ms, NULL);
    }
    return ms;
}

size_t options_n_values(const struct options *options, const char *name)
{
    return find_value(options, name)->n_texts;
}

const char *options_value_at(const struct options *options, const char *name, size_t index)
{
    const struct option_value *value = find_value(options, name);

    assert(index < value->n_texts);
    return value->texts[index];
}

const char *options_origin(const struct options *options, const char *name)
{
    return find_value(options, name)->origin;
}

/* --- what people see --- */

/* " (100ms to 5m, default 1s)", or nothing. */
static void print_range(const struct option_spec *spec, FILE *out)
{
    char low[32], high[32], range[128] = "";
    const char *unit = spec->unit != NULL ? spec->unit : "";

    if (spec->type == OPTION_NUMBER) {
        snprintf(range, sizeof range, "%" PRIu64 " to %" PRIu64 "%s%s", spec->min, spec->max,
                 *unit != '\0' ? " " : "", unit);
    } else if (spec->type == OPTION_DURATION) {
        snprintf(range, sizeof range, "%s to %s",
                 units_format_duration_ms(spec->min, low, sizeof low),
                 units_format_duration_ms(spec->max, high, sizeof high));
    } else if (spec->type == OPTION_CHOICE) {
        snprintf(range, sizeof range, "%s", spec->choices);
    }
    if (range[0] == '\0' && spec->default_text == NULL) {
        return;
    }
    fprintf(out, " (%s%s%s%s)", range, range[0] != '\0' && spec->default_text != NULL ? ", " : "",
            spec->default_text != NULL ? "default " : "",
            spec->default_text != NULL ? spec->default_text : "");
}

void options_print_help(const struct options *options, FILE *out)
{
    const struct option_table *table = options->table;
    const char *section = "";

    fprintf(out, "usage: %s [options]\n\n%s\n", table->program, table->summary);
    for (size_t i = 0; i < table->n_specs; i++) {
        const struct option_spec *spec = &table->specs[i];
        char head[96];

        if (strcmp(section, spec->section) != 0) {
            section = spec->section;
            fprintf(out, "\n%s\n", section);
        }
        snprintf(head, sizeof head, "--%s%s%s%s", spec->name, spec->argument != NULL ? " " : "",
                 spec->argument != NULL ? spec->argument : "", spec->is_list ? " ..." : "");
        fprintf(out, "  %-30s ", head);
        if (strlen(head) > 30) {
            fprintf(out, "\n%33s", "");
        }
        fprintf(out, "%s", spec->help);
        print_range(spec, out);
        fprintf(out, "\n");
    }
    fprintf(out, "\nEach option can stand in the file as `name: value` and in the environment as "
                 "JURY_NAME\n(data-dir: JURY_DATA_DIR); a flag wins over the environment, that "
                 "over the file.\nTimes need a unit: 250ms, 5s, 5m. Lists: repeat the flag, or "
                 "separate by commas.\n");
}

static void print_values(const struct option_value *value, FILE *out)
{
    for (size_t i = 0; i < value->n_texts; i++) {
        fprintf(out, "%s%s", i > 0 ? ", " : "", value->texts[i]);
    }
}

void options_print_config(const struct options *options, FILE *out)
{
    for (size_t i = 0; i < options->table->n_specs; i++) {
        const struct option_spec *spec = &options->table->specs[i];
        const struct option_value *value = &options->values[i];

        if (spec->is_command) {
            continue;
        }
        if (value->n_texts == 0) {
            fprintf(out, "#%s:  # not set\n", spec->name);
            continue;
        }
        fprintf(out, "%s: ", spec->name);
        print_values(value, out);
        fprintf(out, "  # %s\n", value->origin);
    }
}

void options_print_example(const struct options *options, FILE *out)
{
    const char *section = "";

    for (size_t i = 0; i < options->table->n_specs; i++) {
        const struct option_spec *spec = &options->table->specs[i];

        if (spec->is_command) {
            continue;
        }
        if (strcmp(section, spec->section) != 0) {
            fprintf(out, "%s# --- %s ---\n", *section != '\0' ? "\n" : "", spec->section);
            section = spec->section;
        }
        fprintf(out, "\n# %s", spec->help);
        print_range(spec, out);
        fprintf(out, ".\n#%s: %s\n", spec->name,
                spec->default_text != NULL  ? spec->default_text
                : spec->type == OPTION_FLAG ? "no"
                                            : spec->argument);
    }
}
