#include "tests/lib/sketch.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct sketch *sketch_new(void)
{
    struct sketch *sketch = calloc(1, sizeof *sketch);

    sketch->next_birth = 1;
    return sketch;
}

void sketch_free(struct sketch *sketch)
{
    free(sketch);
}

void sketch_clear(struct sketch *sketch)
{
    sketch->n_scopes = 0;
    sketch->n_members = 0;
    sketch->n_listeners = 0;
}

static uint32_t row_for(struct sketch *sketch, const char *group, const struct endpoint *at)
{
    for (uint32_t i = 0; i < sketch->n_rows; i++) {
        if (strcmp(sketch->rows[i].group, group) == 0 &&
            endpoint_compare(&sketch->rows[i].at, at) == 0) {
            return i;
        }
    }
    assert(sketch->n_rows < SKETCH_ROWS);
    uint32_t row = sketch->n_rows++;
    strcpy(sketch->rows[row].group, group);
    sketch->rows[row].at = *at;
    sketch->rows[row].word =
        (struct row_word){.row = row, .birth = sketch->next_birth++, .row_class = ROW_HEALTHY};
    return row;
}

struct jury_scope *sketch_group(struct sketch *sketch, const char *name, unsigned scheduler)
{
    struct endpoint none = {.port = 0};
    uint32_t row = row_for(sketch, name, &none);

    assert(sketch->n_scopes < SKETCH_SCOPES);
    struct jury_scope *scope = &sketch->scopes[sketch->n_scopes++];
    *scope = (struct jury_scope){
        .id = row + 1,
        .birth = sketch->rows[row].word.birth,
        .row = row,
        .first_member = sketch->n_members,
        .idle_timeout_ms = 900000,
        .kind = 1,
        .profile = 2,
        .protocol = JURY_PROTOCOL_TCP,
        .scheduler = (uint8_t)scheduler,
        .all_bad = 1,
    };
    strcpy(scope->name, name);
    sketch->rows[row].word.scope_row = row;
    sketch->rows[row].word.row_class = ROW_SCOPE_OK;
    return scope;
}

struct jury_member *sketch_backend(struct sketch *sketch, const char *at, uint8_t weight)
{
    struct endpoint endpoint;

    assert(sketch->n_scopes > 0 && sketch->n_members < SKETCH_MEMBERS);
    if (endpoint_parse(at, &endpoint, NULL) != 0) {
        return NULL;
    }
    struct jury_scope *scope = &sketch->scopes[sketch->n_scopes - 1];
    uint32_t row = row_for(sketch, scope->name, &endpoint);
    struct jury_member *member = &sketch->members[sketch->n_members++];
    *member = (struct jury_member){
        .birth = sketch->rows[row].word.birth,
        .id = row + 1,
        .row = row,
        .scope = sketch->n_scopes - 1,
        .weight = weight,
    };
    fwd_endpoint_put(&endpoint, &member->at);
    sketch->rows[row].word.scope_row = scope->row;
    scope->n_members++;
    return member;
}

struct jury_listener *sketch_listener(struct sketch *sketch, const char *name, const char *at,
                                      const char *group)
{
    struct endpoint endpoint;

    assert(sketch->n_listeners < SKETCH_LISTENERS);
    if (endpoint_parse(at, &endpoint, NULL) != 0) {
        return NULL;
    }
    for (uint32_t i = 0; i < sketch->n_scopes; i++) {
        if (strcmp(sketch->scopes[i].name, group) != 0) {
            continue;
        }
        struct jury_listener *listener = &sketch->listeners[sketch->n_listeners++];
        *listener = (struct jury_listener){
            .id = sketch->n_listeners,
            .port_last = endpoint.port,
            .protocol = JURY_PROTOCOL_TCP,
            .scope = i,
        };
        strcpy(listener->name, name);
        fwd_endpoint_put(&endpoint, &listener->at);
        return listener;
    }
    return NULL;
}

struct row_word *sketch_word(struct sketch *sketch, const char *group, const char *at)
{
    struct endpoint endpoint = {.port = 0};

    if (at[0] != '\0' && endpoint_parse(at, &endpoint, NULL) != 0) {
        return NULL;
    }
    for (uint32_t i = 0; i < sketch->n_rows; i++) {
        if (strcmp(sketch->rows[i].group, group) == 0 &&
            endpoint_compare(&sketch->rows[i].at, &endpoint) == 0) {
            return &sketch->rows[i].word;
        }
    }
    return NULL;
}

size_t sketch_words(const struct sketch *sketch, struct row_word words[])
{
    size_t n_words = 0;

    for (uint32_t i = 0; i < sketch->n_scopes; i++) {
        uint32_t scope_row = sketch->scopes[i].row;

        for (uint32_t row = 0; row < sketch->n_rows; row++) {
            if (sketch->rows[row].word.scope_row == scope_row && row != scope_row) {
                words[n_words++] = sketch->rows[row].word;
            }
        }
        words[n_words++] = sketch->rows[scope_row].word;
    }
    return n_words;
}

int sketch_build(const struct sketch *sketch, uint64_t revision, struct fwd_layout *ret_layout,
                 struct errmsg *err)
{
    struct fwd_source source = {
        .revision = revision,
        .n_rows = sketch->n_rows,
        .listeners = sketch->listeners,
        .n_listeners = sketch->n_listeners,
        .scopes = sketch->scopes,
        .n_scopes = sketch->n_scopes,
        .members = sketch->members,
        .n_members = sketch->n_members,
    };

    memset(source.cluster_id.bytes, 1, sizeof source.cluster_id.bytes);
    return fwd_layout_build(&source, NULL, ret_layout, err);
}

int sketch_publish(const struct sketch *sketch, struct table_writer *writer, const char *dir,
                   uint64_t revision, struct errmsg *err)
{
    static struct row_word words[SKETCH_ROWS];
    struct fwd_layout layout;
    int result = table_writer_apply(writer, words, sketch_words(sketch, words), revision, err);

    if (result == 0) {
        result = sketch_build(sketch, revision, &layout, err);
    }
    if (result != 0) {
        return result;
    }
    uint64_t number = table_writer_next_layout(writer);
    result = table_layout_store(dir, number, layout.bytes, layout.n_bytes, err);
    fwd_layout_close(&layout);
    if (result != 0) {
        return result;
    }
    return table_writer_publish(writer, number, sketch->n_rows, revision, err);
}

int sketch_writer(const char *dir, uint64_t epoch, struct table_writer **ret_writer,
                  struct errmsg *err)
{
    struct table_identity identity = {.node_id = 1, .epoch = epoch};
    int result = boot_id_read(&identity.boot_id, err);

    memset(identity.cluster_id.bytes, 1, sizeof identity.cluster_id.bytes);
    return result != 0 ? result : table_writer_open(dir, &identity, ret_writer, err);
}
