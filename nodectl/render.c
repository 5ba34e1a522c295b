#include "nodectl/render.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <libsmartcols.h>

#include "common/base/addr.h"
#include "common/base/units.h"
#include "common/model/names.h"
#include "common/model/reason.h"
#include "common/model/rule.h"
#include "common/spec/rfc3339.h"
#include "nodectl/flags.h"

#define TEXT_COLUMNS 96

struct render_table {
    struct libscols_table *table;
    struct libscols_line *line;
    size_t n_cells; /* of the line */
    size_t n_rows;
};

struct render_table *render_table_new(const struct render_column columns[], size_t n_columns)
{
    struct render_table *table = calloc(1, sizeof *table);

    if (table == NULL) {
        return NULL;
    }
    table->table = scols_new_table();
    if (table->table == NULL) {
        free(table);
        return NULL;
    }
    for (size_t i = 0; i < n_columns; i++) {
        scols_table_new_column(table->table, columns[i].title, 0,
                               columns[i].is_right ? SCOLS_FL_RIGHT : 0);
    }
    return table;
}

void render_row(struct render_table *table)
{
    if (table != NULL) {
        table->line = scols_table_new_line(table->table, NULL);
        table->n_cells = 0;
        table->n_rows++;
    }
}

void render_cell(struct render_table *table, const char *format, ...)
{
    char text[512];
    va_list args;

    if (table == NULL || table->line == NULL) {
        return;
    }
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    scols_line_set_data(table->line, table->n_cells++, text[0] == '\0' ? "-" : text);
}

void render_cell_color(struct render_table *table, enum render_color color)
{
    static const char *const names[] = {NULL, "green", "brown", "red", "darkgray"};

    if (table == NULL || table->line == NULL || table->n_cells == 0 || names[color] == NULL) {
        return;
    }
    struct libscols_cell *cell = scols_line_get_cell(table->line, table->n_cells - 1);
    if (cell != NULL) {
        scols_cell_set_color(cell, names[color]);
    }
}

void render_table_print(struct ctl *ctl, struct render_table *table)
{
    if (table == NULL) {
        return;
    }
    if (table->n_rows > 0) {
        scols_table_enable_colors(table->table, render_has_color(ctl));
        scols_table_enable_minout(table->table, 1);
        /* Never cut: what does not fit is for the terminal to wrap. */
        scols_table_set_termforce(table->table, SCOLS_TERMFORCE_NEVER);
        scols_table_set_column_separator(table->table, "  ");
        scols_table_set_stream(table->table, ctl->out);
        scols_print_table(table->table);
    }
    scols_unref_table(table->table);
    free(table);
}

static const char *variable(const struct ctl *ctl, const char *name)
{
    size_t n = strlen(name);

    for (char *const *entry = ctl->process.environment; *entry != NULL; entry++) {
        if (strncmp(*entry, name, n) == 0 && (*entry)[n] == '=' && (*entry)[n + 1] != '\0') {
            return *entry + n + 1;
        }
    }
    return NULL;
}

bool render_has_color(const struct ctl *ctl)
{
    const char *when = ctl_text(ctl, FLAG_COLOR);
    const char *term = variable(ctl, "TERM");
    const char *forced = variable(ctl, "CLICOLOR_FORCE");

    if (strcmp(when, "auto") != 0) {
        return strcmp(when, "always") == 0;
    }
    if (variable(ctl, "NO_COLOR") != NULL) {
        return false;
    }
    if (forced != NULL && strcmp(forced, "0") != 0) {
        return true;
    }
    return ctl->process.out_is_terminal && (term == NULL || strcmp(term, "dumb") != 0);
}

char *render_duration(const Google__Protobuf__Duration *duration, char text[RENDER_TEXT_BYTES])
{
    if (duration == NULL) {
        snprintf(text, RENDER_TEXT_BYTES, "-");
        return text;
    }
    uint64_t seconds = duration->seconds > 0 ? (uint64_t)duration->seconds : 0;
    uint64_t nanos = duration->nanos > 0 ? (uint64_t)duration->nanos : 0;

    return units_format_span_us(seconds * 1000000 + nanos / 1000, text, RENDER_TEXT_BYTES);
}

char *render_time(const Google__Protobuf__Timestamp *time, char text[RENDER_TEXT_BYTES])
{
    if (time == NULL || time->seconds < 0 || time->seconds > INT64_C(253402300799)) {
        snprintf(text, RENDER_TEXT_BYTES, "-");
        return text;
    }
    return rfc3339_format_ms(time->seconds * 1000 + time->nanos / 1000000, text, RENDER_TEXT_BYTES);
}

char *render_endpoint(const char *address, uint32_t port, char text[RENDER_TEXT_BYTES])
{
    bool is_ipv6 = strchr(address, ':') != NULL;

    snprintf(text, RENDER_TEXT_BYTES, is_ipv6 ? "[%.60s]:%" PRIu32 : "%.60s:%" PRIu32, address,
             port);
    return text;
}

static void append(char text[RENDER_TEXT_BYTES], const char *word)
{
    size_t used = strlen(text);

    snprintf(text + used, RENDER_TEXT_BYTES - used, "%s%s", used == 0 ? "" : ", ", word);
}

char *render_weight(uint32_t weight, const Jury__V1__WeightShare *share,
                    char text[RENDER_TEXT_BYTES])
{
    uint32_t hundredths = share == NULL ? 100 * weight : weight * share->percent;

    if (hundredths == 100 * weight) {
        snprintf(text, RENDER_TEXT_BYTES, "%" PRIu32, weight);
    } else if (hundredths >= 1000 || hundredths % 100 == 0) {
        snprintf(text, RENDER_TEXT_BYTES, "%" PRIu32 " -> %" PRIu32, weight,
                 (hundredths + 50) / 100);
    } else { /* of a small weight the part counts, too */
        snprintf(text, RENDER_TEXT_BYTES, "%" PRIu32 " -> %" PRIu32 ".%02" PRIu32, weight,
                 hundredths / 100, hundredths % 100);
    }
    return text;
}

static void put_grade(const Jury__V1__WeightShare *share, bool with_details,
                      char text[RENDER_TEXT_BYTES])
{
    char own[RENDER_TEXT_BYTES];
    char median[RENDER_TEXT_BYTES];
    int n = snprintf(text, RENDER_TEXT_BYTES, "%s %" PRIu32 " %%",
                     names_word(&names_graded_weight, (unsigned)share->graded_by),
                     share->graded_percent);

    if (with_details && share->response_time != NULL) {
        snprintf(text + n, RENDER_TEXT_BYTES - (size_t)n, ": %.40s here, the group's median %.40s",
                 render_duration(share->response_time, own),
                 render_duration(share->group_response_time, median));
    }
}

char *render_weight_cause(const Jury__V1__WeightShare *share, bool with_details,
                          char text[RENDER_TEXT_BYTES])
{
    char left[RENDER_TEXT_BYTES];
    char slow[RENDER_TEXT_BYTES] = "";
    char grade[RENDER_TEXT_BYTES] = "";

    text[0] = '\0';
    if (share == NULL) {
        return text;
    }
    if (share->slow_start_left != NULL) {
        snprintf(slow, sizeof slow, "slow start, %.40s left",
                 render_duration(share->slow_start_left, left));
    }
    if (share->graded_percent != 0) {
        put_grade(share, with_details, grade);
    }
    if (slow[0] != '\0' || grade[0] != '\0') {
        snprintf(text, RENDER_TEXT_BYTES, " (%.40s%s%.100s)", slow,
                 slow[0] != '\0' && grade[0] != '\0' ? "; " : "", grade);
    }
    return text;
}

char *render_marks(const Jury__V1__Verdict *verdict, char text[RENDER_TEXT_BYTES])
{
    static const char *const words[] = {"?",    "held",     "pending", "suspect",
                                        "gray", "flapping", "warming", "degraded"};

    text[0] = '\0';
    for (size_t i = 0; i < verdict->n_marks; i++) {
        int mark = (int)verdict->marks[i];

        append(text, mark > 0 && mark <= 7 ? words[mark] : words[0]);
    }
    return text;
}

const char *render_row_class(Jury__V1__RowClass row_class)
{
    switch (row_class) {
    case JURY__V1__ROW_CLASS__ROW_CLASS_HEALTHY:
        return "first choice";
    case JURY__V1__ROW_CLASS__ROW_CLASS_UNREACHABLE:
        return "second choice";
    case JURY__V1__ROW_CLASS__ROW_CLASS_FAIL_OPEN:
        return "fail-open";
    case JURY__V1__ROW_CLASS__ROW_CLASS_WARMING:
        return "warming";
    case JURY__V1__ROW_CLASS__ROW_CLASS_NONE:
        return "none";
    case JURY__V1__ROW_CLASS__ROW_CLASS_UNSPECIFIED:
    case _JURY__V1__ROW_CLASS_IS_INT_SIZE:
        break;
    }
    return "";
}

char *render_rule(const Jury__V1__Rule *rule, char text[RENDER_TEXT_BYTES])
{
    if (rule == NULL) {
        snprintf(text, RENDER_TEXT_BYTES, "-");
        return text;
    }
    struct rule_column column = {.kind = (uint8_t)rule->kind, .value = (uint8_t)rule->value};
    return rule_column_format(&column, text);
}

enum render_color render_health_color(Jury__V1__HealthState state)
{
    switch ((int)state) {
    case HEALTH_HEALTHY:
        return RENDER_GOOD;
    case HEALTH_UNHEALTHY:
        return RENDER_BAD;
    case HEALTH_INITIAL:
        return RENDER_WARN;
    default:
        return RENDER_DIM;
    }
}

void render_sentence(FILE *out, const char *indent, const char *sentence)
{
    fputs(indent, out);
    for (; *sentence != '\0'; sentence++) {
        unsigned char byte = (unsigned char)*sentence;

        fputc(byte < 0x20 || byte == 0x7f ? ' ' : *sentence, out);
    }
    fputc('\n', out);
}

void render_wrapped(FILE *out, unsigned column, unsigned at, const char *text)
{
    while (*text != '\0') {
        size_t n = strcspn(text, " ");

        if (at > column && at + 1 + n > TEXT_COLUMNS) {
            fprintf(out, "\n%*s", (int)column, "");
            at = column;
        } else if (at > column) {
            fputc(' ', out);
            at++;
        } else if (at < column) {
            fprintf(out, "%*s", (int)(column - at), "");
            at = column;
        }
        fwrite(text, 1, n, out);
        at += (unsigned)n;
        text += n;
        text += strspn(text, " ");
    }
    fputc('\n', out);
}
