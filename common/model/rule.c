#include "common/model/rule.h"

#include <stdio.h>
#include <string.h>

#include "common/base/limits.h"
#include "common/base/str.h"
#include "common/model/names.h"

char *rule_column_format(const struct rule_column *column, char text[RULE_TEXT_BYTES])
{
    const char *word = names_word(&names_rule, column->kind);

    if (column->kind == RULE_AT_LEAST || column->kind == RULE_PERCENT) {
        snprintf(text, RULE_TEXT_BYTES, "%s %u", word, column->value);
    } else {
        snprintf(text, RULE_TEXT_BYTES, "%s", word);
    }
    return text;
}

/* "at-least 2": the word, blanks, decimal digits. */
static bool parse_figure(const char *text, const char *word, uint64_t max, uint64_t *ret_value)
{
    size_t n = strlen(word);

    if (strncmp(text, word, n) != 0 || text[n] != ' ') {
        return false;
    }
    text += n + strspn(text + n, " ");
    return str_parse_u64(text, max, ret_value) && *ret_value >= 1;
}

static bool parse_preset(const char *text, struct rule_column *ret_column)
{
    static const struct {
        const char *word;
        struct rule_column column;
    } presets[] = {
        {"gwlb", {.kind = RULE_MAJORITY}},
        {"nlb", {.kind = RULE_LOCAL}},
        {"clb", {.kind = RULE_ANY}},
        {"r53", {.kind = RULE_PERCENT, .value = 82}},
    };

    for (size_t i = 0; i < sizeof presets / sizeof presets[0]; i++) {
        if (strcmp(text, presets[i].word) == 0) {
            *ret_column = presets[i].column;
            return true;
        }
    }
    return false;
}

int rule_column_parse(const char *text, struct rule_column *ret_column, struct errmsg *err)
{
    uint64_t value = 0;
    unsigned kind = names_value(&names_rule, text);

    if (kind != RULE_NONE && kind != RULE_AT_LEAST && kind != RULE_PERCENT) {
        *ret_column = (struct rule_column){.kind = (uint8_t)kind};
        return 0;
    }
    if (parse_preset(text, ret_column)) {
        return 0;
    }
    if (parse_figure(text, names_word(&names_rule, RULE_AT_LEAST), LIMIT_NODES, &value)) {
        *ret_column = (struct rule_column){.kind = RULE_AT_LEAST, .value = (uint8_t)value};
        return 0;
    }
    if (parse_figure(text, names_word(&names_rule, RULE_PERCENT), 100, &value)) {
        *ret_column = (struct rule_column){.kind = RULE_PERCENT, .value = (uint8_t)value};
        return 0;
    }
    return errmsg_set(
        err, ERR_INVALID,
        "\"%.40s\" is not a verdict rule: write local, any, majority, zone-majority, "
        "all, \"at-least K\" with K in 1..%d, \"percent X\" with X in 1..100, or what "
        "a product does: gwlb, nlb, clb, r53",
        text, LIMIT_NODES);
}
