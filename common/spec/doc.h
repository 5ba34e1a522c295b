/* One YAML or JSON document as a tree of values with their places: text only, no meaning.
 *
 * What the rest of common/spec reads. A scalar stays the text that was written (`no` is "no"):
 * types come from the field tables, never from YAML. JSON is read as YAML's flow style. Refused,
 * because they hide what a document says or let a small file grow without bound: anchors, aliases,
 * tags, merge keys, keys that are not plain words. A key that a mapping has again is left out of
 * the tree and told apart (doc_reader_twice), so that the rest can be judged. Depth, size, number
 * of values and keys are bounded (LIMIT_SPEC_*). */
#ifndef JURY_SPEC_DOC_H
#define JURY_SPEC_DOC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/spec/spec.h"

enum doc_kind {
    DOC_NONE = 0,
    DOC_SCALAR = 1,
    DOC_MAP = 2,
    DOC_LIST = 3
};

struct doc_node {
    uint8_t kind;                /* enum doc_kind */
    bool is_quoted;              /* scalar in quotes or as a block: text whatever it looks like */
    uint32_t n_children;         /* of map and list */
    struct spec_position at;     /* where the value begins */
    struct spec_position key_at; /* where its key begins; children of a map only */
    const char *key;             /* children of a map only, else NULL */
    const char *text;            /* scalar only; never with a NUL inside */
    const struct doc_node *first;
    const struct doc_node *next;
};

struct doc_reader;

/* text: kept until doc_reader_free. NULL: no memory. */
struct doc_reader *doc_reader_new(const char *text, size_t n_bytes);
void doc_reader_free(struct doc_reader *reader);

/* The next document that is not empty, or NULL at the end of the file. The tree is valid until the
 * next call. Errors: ERR_INVALID, ERR_LIMIT, ERR_NOMEM, with the place; the reader is of no use
 * afterwards. */
int doc_reader_next(struct doc_reader *reader, const struct doc_node **ret_root,
                    struct spec_error *err);

/* Keys of the document that was read last which their mappings have already, in its order; at most
 * one more than SPEC_ERRORS. Valid as long as the tree. */
struct doc_twice {
    const char *key;
    struct spec_position at;
    uint32_t first_line;
};
const struct doc_twice *doc_reader_twice(const struct doc_reader *reader, uint32_t *ret_n);

/* The value of a key of a map, or NULL. */
const struct doc_node *doc_find(const struct doc_node *map, const char *key);

/* A plain scalar that stands for "nothing": empty, `~`, `null`. */
bool doc_is_null(const struct doc_node *node);

/* "a mapping", "a list", "text" ... for "expected X, got Y". */
const char *doc_kind_word(const struct doc_node *node);

#endif
