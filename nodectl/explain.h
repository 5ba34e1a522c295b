/* Parts of `nodectl explain`, private to it. */
#ifndef JURY_NODECTL_EXPLAIN_H
#define JURY_NODECTL_EXPLAIN_H

#include <stdbool.h>

#include "common/spec/field.h"
#include "nodectl/ctl.h"

#define EXPLAIN_N_PROFILES 3
extern const enum profile explain_profiles[EXPLAIN_N_PROFILES];

/* What a document of the kind starts from, into a zeroed struct; of a group with an http check if
 * asked for, since the http fields exist with it only. */
void explain_defaults(const struct spec_kind_info *kind, enum profile profile, enum check_type type,
                      void *base);
/* The default's text, or "" if there is none. base: of the table's struct. Returns text. */
char *explain_default_text(const struct spec_field *field, const void *base, char *text,
                           size_t text_bytes);

/* What a path such as "group.check.http" names: a table, and within it perhaps one field. */
struct explain_subject {
    const struct spec_kind_info *kind;
    const struct spec_table *table;
    const struct spec_field *field; /* NULL: the table as a whole */
    size_t offset; /* of the table's struct in the kind's, or in an element of the list */
    const struct spec_list *list; /* the table is that of its elements, or within; NULL: of none */
};

/* What the field is when nothing is written, "" where there is no such thing: "5s", "gwlb 10s, nlb
 * 5s, clb 2s; clb with type udp: 5s". Returns text. */
char *explain_default(const struct explain_subject *subject, const struct spec_field *field,
                      char *text, size_t text_bytes);
/* Range or words, and what is not available yet. Returns text. */
char *explain_allowed(const struct explain_subject *subject, const struct spec_field *field,
                      char *text, size_t text_bytes);

/* NULL: no kind is called so. */
const struct spec_kind_info *explain_kind(const char *word);
/* Errors: ERR_NOTFOUND, with the whole path that may be meant as a hint. */
int explain_find(struct ctl *ctl, const char *path, struct explain_subject *ret_subject);
int explain_refuse(struct ctl *ctl, const char *path);
/* The topic that a word of an answer belongs to ("guards" of "pending"), or NULL. */
const char *explain_topic(const char *word);
/* A word that answers show, in any case: "EPOCH", "held". False: it is none, nothing was told. */
bool explain_shown_word(struct ctl *ctl, const char *word);
/* Step into the field that is named so far. False: it has no fields. */
bool explain_descend(struct explain_subject *subject);

/* word: NULL = all. Results as of a command. */
int explain_profile(struct ctl *ctl, const char *word);
int explain_reason(struct ctl *ctl, const char *word);
int explain_rules(struct ctl *ctl, const char *word);
int explain_flows(struct ctl *ctl);
int explain_guards(struct ctl *ctl);
int explain_self_doubt(struct ctl *ctl);
int explain_probers(struct ctl *ctl);
int explain_checks(struct ctl *ctl);
int explain_loss(struct ctl *ctl);
int explain_budget(struct ctl *ctl);

/* The lines of nodectl/verdict.txt, without their ends; NULL behind the last. Made at build. */
extern const char *const verdict_page[];

#endif
