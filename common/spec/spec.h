/* Documents (`apiVersion: jury/v1`) to model structs, with the line and column of what is wrong.
 *
 * The library never prints: a refusal is a sentence, a place and the source line. Nothing in a
 * document is changed silently and nothing is guessed: unknown fields, wrong types, missing units,
 * values out of range, and fields of a later stage are refused. What a document leaves out comes
 * from the group's profile (common/model/profile.h). Everything is checked that can be checked
 * without a cluster; the cluster runs the same validation and the rules across objects again.
 *
 *     apiVersion: jury/v1
 *     kind: Group                  # Group, Listener, ClusterSettings, Node, Key
 *     metadata: {name: web, labels: {tier: front}}
 *     spec: {...}                  # common/spec/field.h, `nodectl explain group`
 *
 * Thread-safe: no state but the caller's. */
#ifndef JURY_SPEC_SPEC_H
#define JURY_SPEC_SPEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"
#include "common/model/advice.h"
#include "common/model/cluster.h"
#include "common/model/group.h"
#include "common/model/listener.h"

#define SPEC_API_VERSION "jury/v1"

/* Counted from 1, columns in characters; line 0 = the file as a whole. */
struct spec_position {
    uint32_t line;
    uint32_t column;
};

#define SPEC_SOURCE_BYTES 200

struct spec_error {
    struct spec_position at;
    struct errmsg message;          /* one sentence, no place in it */
    char source[SPEC_SOURCE_BYTES]; /* the line of `at`, cut and without control characters */
};

/* More than a person mends in one go are not listed. */
#define SPEC_ERRORS 20

/* What is wrong, in the order of the text. */
struct spec_errors {
    struct spec_error items[SPEC_ERRORS];
    uint32_t n;
    bool has_more; /* there was more than that */
};

enum spec_kind {
    SPEC_KIND_NONE = 0,
    SPEC_GROUP = 1,
    SPEC_LISTENER = 2,
    SPEC_CLUSTER_SETTINGS = 3,
    SPEC_NODE = 4,
    SPEC_KEY = 5
};

/* Advice on a document, and where the field of it stands, or what the field would stand in. */
struct spec_remark {
    struct advice_due due; /* a check is the document's */
    struct spec_position at;
};

struct spec_document {
    uint8_t kind;            /* enum spec_kind; says which pointer */
    uint32_t file;           /* index of its file in the set */
    struct spec_position at; /* of the document */
    union {
        struct server_group *group; /* each owned by the document */
        struct listener *listener;
        struct cluster_settings *settings;
        struct member_node *node;
        struct access_key *key;
    } u;
    struct spec_remark *remarks; /* owned; NULL: none */
    uint32_t n_remarks;
};

struct spec_text {
    char *bytes; /* owned */
    size_t n_bytes;
};

/* All documents of one or more files, in the order in which they were read. Zero-initialise. */
struct spec_set {
    struct spec_document *documents; /* owned */
    uint32_t n_documents;
    char **files;            /* owned names, for messages */
    struct spec_text *texts; /* owned, one a file: for places that are asked for later */
    uint32_t n_files;
};

/* Read a file's documents into the set.
 *
 * file: its name for messages ("-" = standard input); copied.
 * On failure the set is as it was (an empty one needs no close), and ret_errors, which is set in
 * any case, says all that is wrong and where: what each field, each object as a whole and each
 * document says for itself, without what may follow from a field that was not read. Text that is no
 * YAML ends it. Errors, of one of them: ERR_INVALID (also: no document in the file, an object that
 * the set has already), ERR_UNAVAILABLE_YET, ERR_LIMIT, ERR_NOMEM. */
int spec_read(struct spec_set *set, const char *file, const char *text, size_t n_bytes,
              struct spec_errors *ret_errors);
void spec_set_close(struct spec_set *set);

/* Where in a document of the set the fault lies that a sentence of the cluster tells about: sets
 * place and source line of the error, and spells the fields of its message as documents do. Where
 * the sentence names nothing that the document sets, it is the document. */
void spec_locate(const struct spec_set *set, uint32_t document, struct spec_error *error);

/* "Group", "Listener" ...; "?" for others. */
const char *spec_kind_word(enum spec_kind kind);
/* The object's name ("web"; of a node its id in digits; of cluster settings ""). text: at least
 * LIMIT_NAME_BYTES + 1 bytes. Returns text. */
const char *spec_document_name(const struct spec_document *document, char *text, size_t text_bytes);

/* The error as people and editors read it: "FILE:LINE:COLUMN: sentence", and below it the source
 * line with a mark. No newline at the end. Returns text. */
#define SPEC_ERROR_TEXT_BYTES 1536
char *spec_error_format(const struct spec_error *error, const char *file,
                        char text[SPEC_ERROR_TEXT_BYTES]);

#endif
