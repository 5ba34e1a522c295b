#include "nodectl/load.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/limits.h"
#include "common/spec/field.h"
#include "nodectl/commands.h"

static void list_error(struct ctl *ctl, const char *file, const struct spec_error *error)
{
    json_t *list = json_object_get(ctl->failure.metadata, "errors");

    if (list == NULL) {
        list = json_array();
        json_object_set_new(ctl->failure.metadata, "errors", list);
    }
    json_array_append_new(list, json_pack("{s:s, s:i, s:i, s:s}", "file", file, "line",
                                          (int)error->at.line, "column", (int)error->at.column,
                                          "message", error->message.text));
}

/* The first error is the failure's; its place stands beside the list, too. */
static void begin_failure(struct ctl *ctl, int rc, const char *file, const struct spec_error *error)
{
    char number[16];

    ctl->failure.lines_are_whole = true;
    ctl_detail(ctl, "file", file);
    if (error->at.line != 0) {
        snprintf(number, sizeof number, "%u", (unsigned)error->at.line);
        ctl_detail(ctl, "line", number);
        snprintf(number, sizeof number, "%u", (unsigned)error->at.column);
        ctl_detail(ctl, "column", number);
    }
    ctl_fail(ctl, rc == ERR_LIMIT ? ERR_INVALID : rc, "%s", error->message.text);
}

bool load_put_error(struct ctl *ctl, int rc, const char *file, const struct spec_error *error)
{
    struct ctl_failure *failure = &ctl->failure;
    char text[SPEC_ERROR_TEXT_BYTES];
    size_t used = failure->lines_are_whole ? strlen(failure->lines) : 0;

    if (!failure->lines_are_whole) {
        begin_failure(ctl, rc, file, error);
    }
    if (json_array_size(json_object_get(failure->metadata, "errors")) == SPEC_ERRORS) {
        return false;
    }
    list_error(ctl, file, error);
    snprintf(failure->lines + used, sizeof failure->lines - used, "%s%s", used > 0 ? "\n" : "",
             spec_error_format(error, file, text));
    return true;
}

/* Put the places of what is wrong into the failure: for editors, people and programs. */
static int fail_documents(struct ctl *ctl, int rc, const char *file,
                          const struct spec_errors *errors)
{
    bool has_more = errors->has_more;

    for (uint32_t i = 0; i < errors->n; i++) {
        if (!load_put_error(ctl, rc, file, &errors->items[i])) {
            has_more = true;
            break;
        }
    }
    json_object_set_new(ctl->failure.metadata, "hasMoreErrors", json_boolean(has_more));
    if (has_more) {
        ctl_hint(ctl, "there are more than %d errors; these are the first", SPEC_ERRORS);
    }
    return rc == ERR_LIMIT ? ERR_INVALID : rc;
}

/* All that a stream has, up to one byte more than a file may have. */
static int read_stream(struct ctl *ctl, FILE *stream, const char *name, char **ret_text,
                       size_t *ret_n_bytes)
{
    size_t capacity = 65536;
    size_t n_bytes = 0;
    char *text = malloc(capacity);

    while (text != NULL) {
        n_bytes += fread(text + n_bytes, 1, capacity - n_bytes, stream);
        if (n_bytes < capacity || n_bytes > LIMIT_SPEC_FILE_BYTES) {
            break;
        }
        char *grown = realloc(text, capacity * 2);
        if (grown == NULL) {
            free(text);
            text = NULL;
            break;
        }
        text = grown;
        capacity *= 2;
    }
    if (text == NULL) {
        return ctl_fail(ctl, ERR_NOMEM, "out of memory");
    }
    if (ferror(stream)) {
        free(text);
        return ctl_fail(ctl, ERR_USAGE, "%s cannot be read: %s", name, strerror(errno));
    }
    *ret_text = text;
    *ret_n_bytes = n_bytes;
    return 0;
}

static int load_stream(struct ctl *ctl, struct spec_set *set, FILE *stream, const char *name)
{
    struct spec_errors errors;
    char *text = NULL;
    size_t n_bytes = 0;
    int rc = read_stream(ctl, stream, name, &text, &n_bytes);

    if (rc != 0) {
        return rc;
    }
    rc = spec_read(set, name, text, n_bytes, &errors);
    free(text);
    return rc == 0 ? 0 : fail_documents(ctl, rc, name, &errors);
}

static int load_file(struct ctl *ctl, struct spec_set *set, const char *path)
{
    FILE *file = fopen(path, "re");

    if (file == NULL) {
        return ctl_fail(ctl, ERR_USAGE, "%s cannot be read: %s", path, strerror(errno));
    }
    int rc = load_stream(ctl, set, file, path);
    fclose(file);
    return rc;
}

static int is_document(const struct dirent *entry)
{
    const char *dot = strrchr(entry->d_name, '.');

    return entry->d_name[0] != '.' && dot != NULL &&
           (strcmp(dot, ".yaml") == 0 || strcmp(dot, ".yml") == 0 || strcmp(dot, ".json") == 0);
}

/* By bytes, so that the order is the same everywhere. */
static int compare_entries(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

/* A file with faults does not hide those of the next. *first: the code to return at the end. */
static bool goes_on(int rc, int *first)
{
    if (*first == 0) {
        *first = rc;
    }
    return rc == 0 || rc == ERR_INVALID || rc == ERR_UNAVAILABLE_YET;
}

static int load_directory(struct ctl *ctl, struct spec_set *set, const char *path)
{
    struct dirent **entries = NULL;
    int n = scandir(path, &entries, is_document, compare_entries);
    bool is_open = true;
    int rc = 0;

    if (n < 0) {
        return ctl_fail(ctl, ERR_USAGE, "%s cannot be read: %s", path, strerror(errno));
    }
    if (n == 0) {
        rc = ctl_fail(ctl, ERR_USAGE, "%s holds no .yaml, .yml or .json file", path);
    }
    for (int i = 0; i < n; i++) {
        char file[4096];

        snprintf(file, sizeof file, "%s/%s", path, entries[i]->d_name);
        if (is_open) {
            is_open = goes_on(load_file(ctl, set, file), &rc);
        }
        free(entries[i]);
    }
    free(entries);
    return rc;
}

static int load_path(struct ctl *ctl, struct spec_set *set, const char *path)
{
    struct stat info;

    if (strcmp(path, "-") == 0) {
        return load_stream(ctl, set, ctl->process.in, "-");
    }
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode) ? load_directory(ctl, set, path)
                                                           : load_file(ctl, set, path);
}

int load_documents(struct ctl *ctl, struct spec_set *set)
{
    size_t n = ctl_n_texts(ctl, FLAG_FILE);
    int rc = 0;

    if (n == 0) {
        ctl_hint(ctl, "nodectl %s -f FILE", ctl->command->name);
        return ctl_fail(ctl, ERR_USAGE, "no documents are named: --file is missing");
    }
    bool is_open = true;
    for (size_t i = 0; i < n && is_open; i++) {
        is_open = goes_on(load_path(ctl, set, ctl_text_at(ctl, FLAG_FILE, i)), &rc);
    }
    return rc;
}

int load_public_key(struct ctl *ctl, const char *what, const char *text, struct public_key *ret_key)
{
    struct errmsg err = {{0}};
    size_t n = strlen(text);

    /* 64 hex digits, or 40 characters in ZeroMQ's own spelling; all else is a file. A file that is
     * there wins: that spelling has "/", "." and "-", so a path of 40 characters is one as well. */
    if ((n == 64 || n == 40) && access(text, F_OK) != 0 &&
        public_key_parse(text, what, ret_key, &err) == 0) {
        return 0;
    }
    int rc = key_file_read_public(text, ret_key, &err);
    return rc == 0 ? 0 : ctl_fail(ctl, rc, "%s: %s", what, err.text);
}

const char *load_object(const struct spec_document *document, char text[LOAD_OBJECT_BYTES])
{
    char name[LIMIT_NAME_BYTES + 8];
    const char *object = spec_kind_info((enum spec_kind)document->kind)->object;

    spec_document_name(document, name, sizeof name);
    if (name[0] == '\0') {
        snprintf(text, LOAD_OBJECT_BYTES, "%s", object);
    } else {
        snprintf(text, LOAD_OBJECT_BYTES, "%s \"%s\"", object, name);
    }
    return text;
}

void load_put_name(FILE *out, const struct spec_document *document)
{
    char name[LIMIT_NAME_BYTES + 8];

    spec_document_name(document, name, sizeof name);
    fprintf(out, "%s%s%s", spec_kind_info((enum spec_kind)document->kind)->path,
            name[0] == '\0' ? "" : "/", name);
}
