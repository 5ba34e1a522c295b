/* Verdict rules (spec.md 5). */
#ifndef JURY_MODEL_RULE_H
#define JURY_MODEL_RULE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/err.h"

enum rule_kind {
    RULE_NONE = 0,
    RULE_LOCAL = 1,
    RULE_ANY = 2,
    RULE_MAJORITY = 3,
    RULE_ALL = 4,
    RULE_AT_LEAST = 5, /* value = k, 1..n observers */
    RULE_PERCENT = 6   /* value = x, 1..100 */
};

struct rule_column {
    uint8_t kind;  /* enum rule_kind */
    uint8_t value; /* k or x; else 0 */
};

enum below_quorum {
    BELOW_QUORUM_NONE = 0,
    BELOW_QUORUM_HOLD = 1,
    BELOW_QUORUM_LOCAL = 2
};

/* is_split: `down: RULE` and `up: RULE` were set apart, so `up` is its rule's first column with p
 * in the place of f. Otherwise up == down and the rule's own "comes up" column holds. */
struct verdict_rule {
    struct rule_column down;
    struct rule_column up;
    bool is_split;
    uint8_t below_quorum; /* enum below_quorum */
};

#define RULE_TEXT_BYTES 16 /* "at-least 64" and NUL */

/* "majority", "at-least 2", "percent 82": the one spelling of documents and output. */
char *rule_column_format(const struct rule_column *column, char text[RULE_TEXT_BYTES]);
/* Errors: ERR_INVALID with a sentence that quotes the text and lists what may be written. */
int rule_column_parse(const char *text, struct rule_column *ret_column, struct errmsg *err);

#endif
