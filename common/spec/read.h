/* Parts of the document reader, private to common/spec. */
#ifndef JURY_SPEC_READ_H
#define JURY_SPEC_READ_H

#include "common/model/validate.h"
#include "common/spec/doc.h"
#include "common/spec/field.h"

#define READ_SUBJECT_BYTES (LIMIT_NAME_BYTES + 24)
#define READ_PATH_BYTES 128

/* One document under way. */
struct reading {
    struct spec_errors *errors; /* borrowed */
    /* Fields of this document whose values were refused: what hangs on them is not judged. */
    const struct doc_node *unread[SPEC_ERRORS];
    uint32_t n_unread;
    char subject[READ_SUBJECT_BYTES]; /* `server group "web"`: how sentences begin */
    enum profile profile;             /* of a group; for the defaults of its backends and checks */
    enum protocol protocol;           /* likewise */
    const struct spec_table *spec;    /* of the document's kind; NULL before it is known */
};

/* A mapping of the document and the struct that it fills. */
struct read_place {
    const struct spec_table *table;
    const struct doc_node *map;
    const char *prefix; /* of field names in sentences: "", "check.", "backend 10.0.0.1:80: " */
    void *base;
};

/* A place for one more error; where the list is full, `spare`, and has_more is set. */
struct spec_error *read_error_new(struct spec_errors *errors, struct spec_error *spare);

/* Note "SUBJECT: sentence" and the place; returns code. */
int read_refuse(struct reading *reading, struct spec_position at, int code, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* One document of any kind: envelope, fields, checks of the whole object. On failure nothing is
 * left to free. */
int read_document(const struct doc_reader *reader, const struct doc_node *root,
                  struct spec_document *ret_document, struct spec_errors *errors);
void read_document_close(struct spec_document *document);

/* Read all fields of a mapping into the struct and check that none is missing. What a list
 * allocates is owned by the struct, also on failure. */
int read_table(struct reading *reading, const struct read_place *place);

/* The checks of a whole group, also of one that was read in part: what it has twice is refused,
 * and left out of what the model judges. spec: of the document. ret_faults: the model's, which have
 * no place yet. Errors: the first refusal's; ERR_NOMEM. */
int read_finish_group(struct reading *reading, const struct doc_node *spec,
                      struct server_group *group, struct validate_faults *ret_faults);

/* What the defaults of a check hang on; the writer asks for the same ones. */
struct read_check_start {
    enum profile profile;
    enum protocol protocol;
    enum check_type type; /* CHECK_TYPE_NONE: what profile and protocol make of it */
    bool has_http;        /* there is a mapping `http`, be it empty */
    bool has_tls;
    bool has_domain; /* http.domain is not empty */
};
void read_check_defaults(const struct read_check_start *start, struct health_check *ret_check);

/* What a check starts from: the profile's defaults for its type, which is looked up first, and what
 * hangs on it. map: NULL = nothing is written. */
void read_start_check(const struct reading *reading, const struct doc_node *map,
                      struct health_check *ret_check);

/* "backend 10.0.0.1:80" or, without an address, "backend 3": how an element of a list is called.
 * index: from 0. */
void read_element_name(const struct spec_list *list, const struct doc_node *element, uint32_t index,
                       char *text, size_t text_bytes);

/* Where in the document the fault lies that a sentence of common/model/validate.h tells about:
 * the field that it names and the document sets, else `otherwise`. The sentence is
 * rewritten with the field names of documents (on_timeout -> onTimeout). */
struct spec_position read_blame(const struct spec_kind_info *kind, const struct doc_node *root,
                                struct spec_position otherwise, struct errmsg *sentence);

/* What there is to say of a document that is valid. Errors: ERR_NOMEM. */
int read_remarks(const struct spec_kind_info *kind, const struct doc_node *root,
                 struct spec_document *document);

/* Whether the sentence may follow from a field that was not read: it names one that was refused, or
 * that is missing where a field is misspelt or has to be there. */
bool read_names_unread(const struct reading *reading, const struct spec_kind_info *kind,
                       const struct doc_node *root, const char *sentence);

#endif
