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
    RULE_PERCENT = 6,  /* value = x, 1..100 */
    /* The majority within each zone of observers, then the majority of the zones (N23). Observers
     * without a zone are one zone together; with one zone in all it is RULE_MAJORITY.
     *   down: more than half of the zones with votes fail; a zone fails when more than half of its
     *         counted votes do and at least half of its observers count;
     *   up:   more than half of the zones with votes pass; a zone passes when more than half of its
     *         counted votes do.
     * Its quorum is q observers and a majority of the zones with a counted vote. Remembered votes
     * only block, each in its zone. */
    RULE_ZONE_MAJORITY = 7
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
/* Reads that spelling and the presets, which stand for a rule: gwlb (majority), nlb (local), clb
 * (any) and r53 (percent 82: Route 53 keeps what more than 18 % of its checkers find healthy).
 * Errors: ERR_INVALID with a sentence that quotes the text and lists what may be written. */
int rule_column_parse(const char *text, struct rule_column *ret_column, struct errmsg *err);

#endif
