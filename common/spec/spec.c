#include "common/spec/spec.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/spec/read.h"

void read_document_close(struct spec_document *document)
{
    if (document->kind == SPEC_GROUP && document->u.group != NULL) {
        server_group_close(document->u.group);
    }
    free(document->u.group);
    free(document->remarks);
    *document = (struct spec_document){0};
}

const char *spec_kind_word(enum spec_kind kind)
{
    return kind >= SPEC_GROUP && kind <= SPEC_KEY ? spec_kind_info(kind)->word : "?";
}

static const char *own_name(const struct spec_document *document)
{
    switch ((enum spec_kind)document->kind) {
    case SPEC_GROUP:
        return document->u.group->name;
    case SPEC_LISTENER:
        return document->u.listener->name;
    case SPEC_KEY:
        return document->u.key->name;
    case SPEC_NODE:
    case SPEC_CLUSTER_SETTINGS:
    case SPEC_KIND_NONE:
        break;
    }
    return "";
}

const char *spec_document_name(const struct spec_document *document, char *text, size_t text_bytes)
{
    if (document->kind == SPEC_NODE) {
        snprintf(text, text_bytes, "%" PRIu64, document->u.node->node_id);
    } else {
        snprintf(text, text_bytes, "%s", own_name(document));
    }
    return text;
}

static bool is_same_object(const struct spec_document *a, const struct spec_document *b)
{
    if (a->kind != b->kind) {
        return false;
    }
    if (a->kind == SPEC_NODE) {
        return a->u.node->node_id == b->u.node->node_id;
    }
    return strcmp(own_name(a), own_name(b)) == 0;
}

static int check_new(const struct spec_set *set, const struct spec_document *document,
                     struct spec_error *err)
{
    char name[LIMIT_NAME_BYTES + 8];

    for (uint32_t i = 0; i < set->n_documents; i++) {
        const struct spec_document *other = &set->documents[i];

        if (!is_same_object(other, document)) {
            continue;
        }
        err->at = document->at;
        spec_document_name(document, name, sizeof name);
        return errmsg_set(
            &err->message, ERR_INVALID, "%s%s%s%s is defined twice: first in %s, line %u",
            spec_kind_info((enum spec_kind)document->kind)->object, name[0] == '\0' ? "" : " \"",
            name, name[0] == '\0' ? "" : "\"", set->files[other->file], (unsigned)other->at.line);
    }
    return 0;
}

static int append(struct spec_set *set, struct spec_document *document, struct spec_error *err)
{
    int rc = check_new(set, document, err);

    if (rc != 0) {
        return rc;
    }
    err->at = document->at;
    if (set->n_documents >= LIMIT_SPEC_DOCUMENTS) {
        return errmsg_set(&err->message, ERR_LIMIT, "more than %d documents at once",
                          LIMIT_SPEC_DOCUMENTS);
    }
    /* Grown by doubling: the capacity is the next power of two. */
    if ((set->n_documents & (set->n_documents - 1)) == 0) {
        uint32_t capacity = set->n_documents == 0 ? 1 : 2 * set->n_documents;
        struct spec_document *grown = realloc(set->documents, capacity * sizeof set->documents[0]);

        if (grown == NULL) {
            return errmsg_set(&err->message, ERR_NOMEM, "out of memory");
        }
        set->documents = grown;
    }
    document->file = set->n_files - 1;
    set->documents[set->n_documents++] = *document;
    return 0;
}

/* One document of the file. *ret_is_last: there is nothing behind it, or nothing that can be read.
 */
static int read_next(struct spec_set *set, struct doc_reader *reader, struct spec_errors *errors,
                     bool *ret_is_last)
{
    struct spec_document document = {0};
    struct spec_error err = {0};
    struct spec_error spare;
    const struct doc_node *root = NULL;
    int rc = doc_reader_next(reader, &root, &err);

    *ret_is_last = rc != 0 || root == NULL;
    if (rc == 0 && root != NULL) {
        rc = read_document(reader, root, &document, errors);
        if (rc != 0) {
            return rc; /* and noted */
        }
        rc = append(set, &document, &err);
        if (rc != 0) {
            read_document_close(&document);
        }
    }
    if (rc != 0) {
        *read_error_new(errors, &spare) = err;
    }
    return rc;
}

static int read_all(struct spec_set *set, const char *text, size_t n_bytes,
                    struct spec_errors *errors)
{
    struct doc_reader *reader = doc_reader_new(text, n_bytes);
    uint32_t n_before = set->n_documents;
    struct spec_error spare;
    bool is_last = false;
    int first = 0;

    if (reader == NULL) {
        return errmsg_set(&read_error_new(errors, &spare)->message, ERR_NOMEM, "out of memory");
    }
    while (!is_last) {
        int rc = read_next(set, reader, errors, &is_last);

        first = first != 0 ? first : rc;
        is_last |= rc == ERR_NOMEM || rc == ERR_LIMIT || errors->has_more;
    }
    doc_reader_free(reader);
    if (first == 0 && set->n_documents == n_before) {
        first = errmsg_set(&read_error_new(errors, &spare)->message, ERR_INVALID,
                           "there is no document in this file; nothing would be applied");
    }
    return first;
}

static int add_file(struct spec_set *set, const char *file, const char *text, size_t n_bytes)
{
    char **files = realloc(set->files, (set->n_files + 1) * sizeof set->files[0]);

    set->files = files != NULL ? files : set->files;
    struct spec_text *texts = realloc(set->texts, (set->n_files + 1) * sizeof set->texts[0]);
    set->texts = texts != NULL ? texts : set->texts;
    char *name = strdup(file);
    char *bytes = malloc(n_bytes + 1);
    if (files == NULL || texts == NULL || name == NULL || bytes == NULL) {
        free(name);
        free(bytes);
        return ERR_NOMEM;
    }
    memcpy(bytes, text, n_bytes);
    files[set->n_files] = name;
    texts[set->n_files++] = (struct spec_text){bytes, n_bytes};
    return 0;
}

static void drop_file(struct spec_set *set)
{
    free(set->files[--set->n_files]);
    free(set->texts[set->n_files].bytes);
}

/* The line that an error is on: libyaml counts \n, \r and \r\n, and the wide line ends of Unicode,
 * which are left alone here: they only make the quoted line longer. */
static void quote_source(const char *text, size_t n_bytes, struct spec_error *err)
{
    size_t at = 0;
    size_t used = 0;

    for (uint32_t line = 1; line < err->at.line && at < n_bytes; at++) {
        bool is_end =
            text[at] == '\n' || (text[at] == '\r' && (at + 1 >= n_bytes || text[at + 1] != '\n'));

        line += is_end;
    }
    for (; at < n_bytes && text[at] != '\n' && text[at] != '\r'; at++) {
        unsigned char byte = (unsigned char)text[at];

        if (used + 5 >= sizeof err->source) {
            /* Not in the middle of a character. */
            while (used > 0 && ((unsigned char)err->source[used - 1] & 0xc0) == 0x80) {
                used--;
            }
            used -= used > 0 && ((unsigned char)err->source[used - 1] & 0x80) != 0;
            memcpy(err->source + used, "...", 3);
            used += 3;
            break;
        }
        err->source[used++] = byte < 0x20 || byte == 0x7f ? ' ' : text[at];
    }
    err->source[used] = '\0';
}

int spec_read(struct spec_set *set, const char *file, const char *text, size_t n_bytes,
              struct spec_errors *ret_errors)
{
    uint32_t n_before = set->n_documents;
    struct spec_error spare;
    bool is_large = n_bytes > LIMIT_SPEC_FILE_BYTES;
    int rc = add_file(set, file, text, is_large ? 0 : n_bytes);

    memset(ret_errors, 0, sizeof *ret_errors);
    if (rc != 0) {
        return errmsg_set(&read_error_new(ret_errors, &spare)->message, rc, "out of memory");
    }
    if (is_large) {
        rc = errmsg_set(&read_error_new(ret_errors, &spare)->message, ERR_LIMIT,
                        "the file has %zu bytes, the limit is %d", n_bytes, LIMIT_SPEC_FILE_BYTES);
    } else {
        rc = read_all(set, text, n_bytes, ret_errors);
    }
    if (rc == 0) {
        return 0;
    }
    while (set->n_documents > n_before) {
        read_document_close(&set->documents[--set->n_documents]);
    }
    drop_file(set);
    if (set->n_files == 0) {
        spec_set_close(set); /* nothing is left that the caller would have to close */
    }
    for (uint32_t i = 0; i < ret_errors->n; i++) {
        if (ret_errors->items[i].at.line != 0) {
            quote_source(text, n_bytes, &ret_errors->items[i]);
        }
    }
    return rc;
}

void spec_set_close(struct spec_set *set)
{
    for (uint32_t i = 0; i < set->n_documents; i++) {
        read_document_close(&set->documents[i]);
    }
    while (set->n_files > 0) {
        drop_file(set);
    }
    free(set->documents);
    free(set->files);
    free(set->texts);
    *set = (struct spec_set){0};
}

void spec_locate(const struct spec_set *set, uint32_t document, struct spec_error *error)
{
    const struct spec_document *of = &set->documents[document];
    const struct spec_text *text = &set->texts[of->file];
    struct doc_reader *reader = doc_reader_new(text->bytes, text->n_bytes);
    const struct doc_node *root = NULL;
    struct spec_error ignored = {0};
    int rc = reader == NULL ? ERR_NOMEM : 0;

    error->at = of->at;
    /* It was read before, so only memory can be short. */
    while (rc == 0 && (root == NULL || root->at.line != of->at.line)) {
        rc = doc_reader_next(reader, &root, &ignored);
        rc = rc == 0 && root == NULL ? ERR_NOTFOUND : rc;
    }
    if (rc == 0) {
        error->at =
            read_blame(spec_kind_info((enum spec_kind)of->kind), root, of->at, &error->message);
    }
    doc_reader_free(reader);
    quote_source(text->bytes, text->n_bytes, error);
}

char *spec_error_format(const struct spec_error *error, const char *file,
                        char text[SPEC_ERROR_TEXT_BYTES])
{
    if (error->at.line == 0) {
        snprintf(text, SPEC_ERROR_TEXT_BYTES, "%.512s: %s", file, error->message.text);
        return text;
    }
    int n = snprintf(text, SPEC_ERROR_TEXT_BYTES, "%.512s:%u:%u: %s", file,
                     (unsigned)error->at.line, (unsigned)error->at.column, error->message.text);
    if (error->source[0] != '\0' && error->at.column <= strlen(error->source) + 1) {
        snprintf(text + n, SPEC_ERROR_TEXT_BYTES - (size_t)n, "\n%6u | %s\n       | %*s",
                 (unsigned)error->at.line, error->source, (int)error->at.column, "^");
    }
    return text;
}
