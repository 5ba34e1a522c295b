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

/* Put the place of a wrong document into the failure: for editors, people and programs. */
static int fail_document(struct ctl *ctl, int rc, const char *file, const struct spec_error *error)
{
    char number[16];
    char text[SPEC_ERROR_TEXT_BYTES];

    spec_error_format(error, file, text);
    snprintf(ctl->failure.lines, sizeof ctl->failure.lines, "%s", text);
    ctl->failure.lines_are_whole = true;
    ctl_detail(ctl, "file", file);
    if (error->at.line != 0) {
        snprintf(number, sizeof number, "%u", (unsigned)error->at.line);
        ctl_detail(ctl, "line", number);
        snprintf(number, sizeof number, "%u", (unsigned)error->at.column);
        ctl_detail(ctl, "column", number);
    }
    return ctl_fail(ctl, rc == ERR_LIMIT ? ERR_INVALID : rc, "%s", error->message.text);
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
    struct spec_error error = {0};
    char *text = NULL;
    size_t n_bytes = 0;
    int rc = read_stream(ctl, stream, name, &text, &n_bytes);

    if (rc != 0) {
        return rc;
    }
    rc = spec_read(set, name, text, n_bytes, &error);
    free(text);
    return rc == 0 ? 0 : fail_document(ctl, rc, name, &error);
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

static int load_directory(struct ctl *ctl, struct spec_set *set, const char *path)
{
    struct dirent **entries = NULL;
    int n = scandir(path, &entries, is_document, compare_entries);
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
        if (rc == 0) {
            rc = load_file(ctl, set, file);
        }
        free(entries[i]);
    }
    free(entries);
    return rc;
}

int load_documents(struct ctl *ctl, struct spec_set *set)
{
    size_t n = ctl_n_texts(ctl, FLAG_FILE);
    int rc = 0;

    if (n == 0) {
        ctl_hint(ctl, "nodectl %s -f FILE", ctl->command->name);
        return ctl_fail(ctl, ERR_USAGE, "no documents are named: --file is missing");
    }
    for (size_t i = 0; i < n && rc == 0; i++) {
        const char *path = ctl_text_at(ctl, FLAG_FILE, i);
        struct stat info;

        if (strcmp(path, "-") == 0) {
            rc = load_stream(ctl, set, ctl->process.in, "-");
        } else if (stat(path, &info) == 0 && S_ISDIR(info.st_mode)) {
            rc = load_directory(ctl, set, path);
        } else {
            rc = load_file(ctl, set, path);
        }
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
