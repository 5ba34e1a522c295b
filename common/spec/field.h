/* The fields of every kind of document, in one table each: the only place that knows them.
 *
 * Feeds the reader (spec.h), the writer (emit.h), the comparison (diff.h), the help texts and the
 * example documents (explain.h). A field that is not here does not exist; a field of a later stage
 * is here with SPEC_LATER, so that it is refused as "not available yet" and not as unknown. */
#ifndef JURY_SPEC_FIELD_H
#define JURY_SPEC_FIELD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/model/names.h"
#include "common/spec/spec.h"

enum spec_type {
    SPEC_TYPE_NONE = 0,   /* SPEC_LATER fields */
    SPEC_TYPE_TEXT,       /* char[bytes]; min, max = bytes without the NUL */
    SPEC_TYPE_BOOL,       /* true, false */
    SPEC_TYPE_UINT,       /* uint8_t to uint64_t by `bytes`; min, max */
    SPEC_TYPE_DURATION,   /* uint32_t milliseconds; min, max; written with a unit */
    SPEC_TYPE_WORD,       /* uint8_t of `names` */
    SPEC_TYPE_ADDRESS,    /* struct addr; max = required family, 0 = any */
    SPEC_TYPE_ENDPOINT,   /* struct endpoint, "192.0.2.1:80" */
    SPEC_TYPE_CIDR,       /* struct cidr */
    SPEC_TYPE_CODES,      /* struct http_codes, "200-299,302" or "2xx" */
    SPEC_TYPE_RULE,       /* the columns of struct verdict_rule: RULE or {down: RULE, up: RULE} */
    SPEC_TYPE_PASS,       /* struct rule_column: all, any or at-least N */
    SPEC_TYPE_PUBLIC_KEY, /* struct public_key */
    SPEC_TYPE_DATA,       /* struct check_data or check_line; text, or hex: and digits; min, max */
    SPEC_TYPE_TIME,       /* int64_t wall milliseconds, RFC 3339 */
    SPEC_TYPE_LABELS,     /* struct label[LIMIT_LABELS] and n_labels of a server group */
    SPEC_TYPE_OBJECT,     /* a nested struct with its own table */
    SPEC_TYPE_LIST        /* elements as `list` says */
};

enum spec_field_flag {
    SPEC_REQUIRED = 1 << 0,
    SPEC_LATER = 1 << 1,      /* of a later stage: refused */
    SPEC_ALTERNATE = 1 << 2,  /* another spelling of a field: read, never written */
    SPEC_OMIT_ZERO = 1 << 3,  /* not written when zero: it then means "not set" */
    SPEC_BY_PROFILE = 1 << 4, /* the default is the profile's */
    SPEC_ZERO_KEEPS = 1 << 5  /* left out, it stays as it is in the cluster */
};

struct spec_table;
struct spec_list;

/* `when_value` != 0: the field exists only if the uint8_t at `when_offset` of the same struct has
 * that value (check.http with type http); `when_text` says so in an error. */
struct spec_field {
    const char *name;
    uint8_t type;  /* enum spec_type */
    uint8_t flags; /* enum spec_field_flag */
    uint8_t when_value;
    uint32_t when_offset;
    bool (*when)(const void *base); /* another condition in the place of the two; or NULL */
    uint32_t unless_offset; /* != 0: the field does not exist beside a list whose uint32_t count is
                               there, and is not 0 */
    uint32_t offset;        /* in the struct of the table */
    uint32_t bytes;
    uint64_t min;
    uint64_t max;
    const struct name_table *names;  /* SPEC_TYPE_WORD; see fill */
    const struct spec_table *fields; /* SPEC_TYPE_OBJECT */
    /* SPEC_TYPE_OBJECT with names: one of them may stand in place of the mapping, and fills the
     * struct. */
    void (*fill)(unsigned word, void *ret);
    const struct spec_list *list; /* SPEC_TYPE_LIST */
    const char *zero_word;        /* the word that stands for zero ("any", "never"), or NULL */
    const char *when_text;
    const char *example; /* of a value; NULL: the default is a good one */
    const char *later;   /* values that are refused as not available yet, for people; or NULL */
    const char *help;    /* full sentences */
};

struct spec_table {
    const char *name; /* "check" */
    const struct spec_field *fields;
    size_t n_fields;
    const char *help;
};

/* A list in a struct: `count_offset` is that of its uint32_t count in the same struct. */
struct spec_list {
    uint32_t element_bytes;
    uint32_t count_offset;
    uint32_t n_min; /* what the model asks for; for people */
    uint32_t n_max;
    bool is_allocated;               /* the field is an owned pointer, else an array in place */
    const char *element_word;        /* "backend" */
    const struct spec_table *fields; /* of elements that are mappings */
    struct spec_field const *scalar; /* of elements that are single values, offset 0 */
};

struct spec_kind_info {
    enum spec_kind kind;
    const char *word;                  /* "Group" */
    const char *object;                /* "server group", for sentences */
    const char *path;                  /* "group", for `nodectl explain` */
    const struct spec_table *metadata; /* NULL: the kind has no metadata */
    const struct spec_table *spec;
    size_t bytes; /* of the struct */
    const char *help;
};

#define SPEC_N_KINDS 5
extern const struct spec_kind_info spec_kinds[SPEC_N_KINDS];

const struct spec_kind_info *spec_kind_info(enum spec_kind kind);
/* NULL: not a kind of ours. */
const struct spec_kind_info *spec_kind_find(const char *word);
/* True for kinds of spec.md that a later stage brings. */
bool spec_kind_is_later(const char *word);

/* NULL: no such field. */
const struct spec_field *spec_field_find(const struct spec_table *table, const char *name);
/* Whether the field exists in this struct (see `when_value`). */
bool spec_field_applies(const struct spec_field *field, const void *base);

/* Fill a zeroed struct with what a document of this kind starts from; groups: of that profile and
 * protocol (PROTOCOL_NONE = the profile's), other kinds ignore the two. */
void spec_defaults(enum spec_kind kind, enum profile profile, enum protocol protocol, void *ret);
/* The same for an element of a list of a group; others stay zeroed. type: of a check,
 * CHECK_TYPE_NONE = what profile and protocol make of it. */
void spec_element_defaults(const struct spec_list *list, enum profile profile,
                           enum protocol protocol, enum check_type type, void *ret);

/* The word nearest to a misspelt one among n words, or NULL if none is near. Case is no distance:
 * HTTP is as near to http as can be. */
const char *spec_nearest(const char *word, const char *const words[], size_t n_words);

#endif
