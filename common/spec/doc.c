#include "common/spec/doc.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include <yaml.h>

#include "common/base/limits.h"

/* Nodes and texts of one document live in a few blocks that are freed together. */
#define BLOCK_BYTES 16384

struct block {
    struct block *next;
    size_t n_bytes;
    size_t used_bytes;
};

struct doc_reader {
    yaml_parser_t parser;
    const char *text;
    size_t n_bytes;
    struct block *blocks;
    uint32_t n_nodes;
    struct doc_twice twice[SPEC_ERRORS + 1];
    uint32_t n_twice;
    bool has_ended;
};

static void *arena_take(struct doc_reader *reader, size_t n_bytes)
{
    struct block *block = reader->blocks;
    size_t rounded = (n_bytes + 15) & ~(size_t)15;
    const size_t header_bytes = (sizeof *block + 15) & ~(size_t)15;

    if (block == NULL || block->n_bytes - block->used_bytes < rounded) {
        size_t wanted = rounded + header_bytes > BLOCK_BYTES ? rounded + header_bytes : BLOCK_BYTES;

        block = malloc(wanted);
        if (block == NULL) {
            return NULL;
        }
        *block =
            (struct block){.next = reader->blocks, .n_bytes = wanted, .used_bytes = header_bytes};
        reader->blocks = block;
    }
    void *bytes = (char *)block + block->used_bytes;
    block->used_bytes += rounded;
    return bytes;
}

static void arena_empty(struct doc_reader *reader)
{
    while (reader->blocks != NULL) {
        struct block *next = reader->blocks->next;

        free(reader->blocks);
        reader->blocks = next;
    }
    reader->n_nodes = 0;
    reader->n_twice = 0;
}

static struct spec_position position(const yaml_mark_t *mark)
{
    return (struct spec_position){.line = (uint32_t)mark->line + 1,
                                  .column = (uint32_t)mark->column + 1};
}

static int refuse(struct spec_error *err, struct spec_position at, int code, const char *sentence)
{
    err->at = at;
    return errmsg_set(&err->message, code, "%s", sentence);
}

/* libyaml's reader names a byte offset where its scanner names line and column. */
static struct spec_position position_of_offset(const struct doc_reader *reader, size_t offset)
{
    struct spec_position at = {1, 1};

    for (size_t i = 0; i < offset && i < reader->n_bytes; i++) {
        unsigned char byte = (unsigned char)reader->text[i];

        if (byte == '\n') {
            at.line++;
            at.column = 1;
        } else if ((byte & 0xc0) != 0x80) {
            at.column++;
        }
    }
    return at;
}

static bool is_tab_at(const struct doc_reader *reader, struct spec_position at)
{
    const char *line = reader->text;
    const char *end = reader->text + reader->n_bytes;

    for (uint32_t n = 1; n < at.line && line != NULL; n++) {
        line = memchr(line, '\n', (size_t)(end - line));
        line = line == NULL ? NULL : line + 1;
    }
    return line != NULL && (size_t)(end - line) >= at.column && line[at.column - 1] == '\t';
}

static int refuse_yaml(struct doc_reader *reader, struct spec_error *err)
{
    const yaml_parser_t *parser = &reader->parser;

    if (parser->error == YAML_MEMORY_ERROR) {
        return refuse(err, (struct spec_position){0, 0}, ERR_NOMEM, "out of memory");
    }
    if (parser->error == YAML_READER_ERROR) {
        err->at = position_of_offset(reader, parser->problem_offset);
        return errmsg_set(&err->message, ERR_INVALID, "not a text file in UTF-8: %s (0x%x)",
                          parser->problem, (unsigned)parser->problem_value);
    }
    err->at = position(&parser->problem_mark);
    if (is_tab_at(reader, err->at)) {
        return refuse(err, err->at, ERR_INVALID, "not valid YAML: a tab cannot indent; use blanks");
    }
    return errmsg_set(&err->message, ERR_INVALID, "not valid YAML or JSON: %s%s%s",
                      parser->problem == NULL ? "it cannot be read" : parser->problem,
                      parser->context == NULL ? "" : " ",
                      parser->context == NULL ? "" : parser->context);
}

static int next_event(struct doc_reader *reader, yaml_event_t *ret_event, struct spec_error *err)
{
    if (!yaml_parser_parse(&reader->parser, ret_event)) {
        return refuse_yaml(reader, err);
    }
    return 0;
}

static int refuse_indirection(const yaml_char_t *anchor, const yaml_char_t *tag,
                              struct spec_position at, struct spec_error *err)
{
    err->at = at;
    if (anchor != NULL) {
        return errmsg_set(&err->message, ERR_INVALID,
                          "anchors (&%.40s) are not supported: write each value out",
                          (const char *)anchor);
    }
    if (tag != NULL) {
        return errmsg_set(&err->message, ERR_INVALID,
                          "tags (%.40s) are not supported: the field decides the type",
                          (const char *)tag);
    }
    return 0;
}

static char *copy_text(struct doc_reader *reader, const yaml_char_t *text, size_t n_bytes)
{
    char *copy = arena_take(reader, n_bytes + 1);

    if (copy != NULL) {
        memcpy(copy, text, n_bytes);
        copy[n_bytes] = '\0';
    }
    return copy;
}

static int new_node(struct doc_reader *reader, enum doc_kind kind, struct spec_position at,
                    struct doc_node **ret_node, struct spec_error *err)
{
    if (reader->n_nodes >= LIMIT_SPEC_NODES) {
        err->at = at;
        return errmsg_set(&err->message, ERR_LIMIT,
                          "the document has more than %d values: split it", LIMIT_SPEC_NODES);
    }
    struct doc_node *node = arena_take(reader, sizeof *node);
    if (node == NULL) {
        return refuse(err, at, ERR_NOMEM, "out of memory");
    }
    reader->n_nodes++;
    *node = (struct doc_node){.kind = (uint8_t)kind, .at = at};
    *ret_node = node;
    return 0;
}

static int build_scalar(struct doc_reader *reader, const yaml_event_t *event,
                        struct doc_node **ret_node, struct spec_error *err)
{
    struct spec_position at = position(&event->start_mark);
    struct doc_node *node = NULL;
    int rc = refuse_indirection(event->data.scalar.anchor, event->data.scalar.tag, at, err);

    if (rc != 0) {
        return rc;
    }
    if (memchr(event->data.scalar.value, 0, event->data.scalar.length) != NULL) {
        return refuse(err, at, ERR_INVALID, "a text cannot contain a NUL character");
    }
    rc = new_node(reader, DOC_SCALAR, at, &node, err);
    if (rc != 0) {
        return rc;
    }
    node->is_quoted = event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
    node->text = copy_text(reader, event->data.scalar.value, event->data.scalar.length);
    if (node->text == NULL) {
        return refuse(err, at, ERR_NOMEM, "out of memory");
    }
    *ret_node = node;
    return 0;
}

static int build(struct doc_reader *reader, yaml_event_t *event, unsigned depth,
                 struct doc_node **ret_node, struct spec_error *err);

/* The key whose event was read; refuses what is no plain word. */
static int check_key(const struct doc_node *map, const yaml_event_t *event, struct spec_error *err)
{
    struct spec_position at = position(&event->start_mark);

    if (event->type != YAML_SCALAR_EVENT) {
        return refuse(err, at, ERR_INVALID, "a field name must be a word");
    }
    const char *key = (const char *)event->data.scalar.value;
    int rc = refuse_indirection(event->data.scalar.anchor, event->data.scalar.tag, at, err);
    if (rc != 0) {
        return rc;
    }
    if (strlen(key) != event->data.scalar.length) {
        return refuse(err, at, ERR_INVALID, "a field name cannot contain a NUL character");
    }
    if (strcmp(key, "<<") == 0) {
        return refuse(err, at, ERR_INVALID,
                      "merge keys (<<) are not supported: write each value out");
    }
    if (map->n_children >= LIMIT_SPEC_KEYS) {
        err->at = at;
        return errmsg_set(&err->message, ERR_LIMIT, "more than %d fields in one mapping",
                          LIMIT_SPEC_KEYS);
    }
    return 0;
}

static void note_twice(struct doc_reader *reader, const struct doc_node *child,
                       const struct doc_node *first)
{
    if (reader->n_twice < sizeof reader->twice / sizeof reader->twice[0]) {
        reader->twice[reader->n_twice++] = (struct doc_twice){
            .key = child->key, .at = child->key_at, .first_line = first->key_at.line};
    }
}

/* One `key: value` whose key is in `event`. *ret_child: NULL = the map has that key already. */
static int build_entry(struct doc_reader *reader, const struct doc_node *map, yaml_event_t *event,
                       unsigned depth, struct doc_node **ret_child, struct spec_error *err)
{
    struct spec_position key_at = position(&event->start_mark);
    struct doc_node *child = NULL;
    yaml_event_t value;
    int rc = check_key(map, event, err);

    if (rc != 0) {
        return rc;
    }
    const char *key = copy_text(reader, event->data.scalar.value, event->data.scalar.length);
    if (key == NULL) {
        return refuse(err, key_at, ERR_NOMEM, "out of memory");
    }
    rc = next_event(reader, &value, err);
    if (rc != 0) {
        return rc;
    }
    rc = build(reader, &value, depth, &child, err);
    yaml_event_delete(&value);
    if (rc != 0) {
        return rc;
    }
    child->key = key;
    child->key_at = key_at;
    const struct doc_node *first = doc_find(map, key);
    if (first != NULL) {
        note_twice(reader, child, first);
    } else {
        *ret_child = child;
    }
    return 0;
}

/* The children of a map or list up to its end event. */
static int build_children(struct doc_reader *reader, struct doc_node *node, unsigned depth,
                          struct spec_error *err)
{
    const bool is_map = node->kind == DOC_MAP;
    const yaml_event_type_t end = is_map ? YAML_MAPPING_END_EVENT : YAML_SEQUENCE_END_EVENT;
    struct doc_node *last = NULL;

    for (;;) {
        struct doc_node *child = NULL;
        yaml_event_t event;
        int rc = next_event(reader, &event, err);

        if (rc != 0) {
            return rc;
        }
        if (event.type == end) {
            yaml_event_delete(&event);
            return 0;
        }
        if (is_map) {
            rc = build_entry(reader, node, &event, depth, &child, err);
        } else {
            rc = build(reader, &event, depth, &child, err);
        }
        yaml_event_delete(&event);
        if (rc != 0) {
            return rc;
        }
        if (child == NULL) {
            continue;
        }
        if (last == NULL) {
            node->first = child;
        } else {
            last->next = child;
        }
        last = child;
        node->n_children++;
    }
}

static int build_branch(struct doc_reader *reader, const yaml_event_t *event, unsigned depth,
                        struct doc_node **ret_node, struct spec_error *err)
{
    const bool is_map = event->type == YAML_MAPPING_START_EVENT;
    const yaml_char_t *anchor =
        is_map ? event->data.mapping_start.anchor : event->data.sequence_start.anchor;
    const yaml_char_t *tag =
        is_map ? event->data.mapping_start.tag : event->data.sequence_start.tag;
    struct spec_position at = position(&event->start_mark);
    struct doc_node *node = NULL;
    int rc = refuse_indirection(anchor, tag, at, err);

    if (rc != 0) {
        return rc;
    }
    if (depth >= LIMIT_SPEC_DEPTH) {
        err->at = at;
        return errmsg_set(&err->message, ERR_LIMIT, "nested deeper than %d levels",
                          LIMIT_SPEC_DEPTH);
    }
    rc = new_node(reader, is_map ? DOC_MAP : DOC_LIST, at, &node, err);
    if (rc != 0) {
        return rc;
    }
    rc = build_children(reader, node, depth + 1, err);
    if (rc != 0) {
        return rc;
    }
    *ret_node = node;
    return 0;
}

static int build(struct doc_reader *reader, yaml_event_t *event, unsigned depth,
                 struct doc_node **ret_node, struct spec_error *err)
{
    if (event->type == YAML_ALIAS_EVENT) {
        err->at = position(&event->start_mark);
        return errmsg_set(&err->message, ERR_INVALID,
                          "aliases (*%.40s) are not supported: write each value out",
                          (const char *)event->data.alias.anchor);
    }
    if (event->type == YAML_SCALAR_EVENT) {
        return build_scalar(reader, event, ret_node, err);
    }
    assert(event->type == YAML_MAPPING_START_EVENT || event->type == YAML_SEQUENCE_START_EVENT);
    return build_branch(reader, event, depth, ret_node, err);
}

struct doc_reader *doc_reader_new(const char *text, size_t n_bytes)
{
    static const char mark[] = "\xef\xbb\xbf"; /* the byte order mark of some editors */
    struct doc_reader *reader = calloc(1, sizeof *reader);

    /* A parser that is told its encoding takes the mark for a part of the first word. */
    if (n_bytes >= strlen(mark) && memcmp(text, mark, strlen(mark)) == 0) {
        text += strlen(mark);
        n_bytes -= strlen(mark);
    }

    if (reader == NULL) {
        return NULL;
    }
    if (!yaml_parser_initialize(&reader->parser)) {
        free(reader);
        return NULL;
    }
    reader->text = text;
    reader->n_bytes = n_bytes;
    yaml_parser_set_encoding(&reader->parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&reader->parser, (const unsigned char *)text, n_bytes);
    return reader;
}

void doc_reader_free(struct doc_reader *reader)
{
    if (reader == NULL) {
        return;
    }
    arena_empty(reader);
    yaml_parser_delete(&reader->parser);
    free(reader);
}

/* The root of the document whose start event was read, up to and with its end event. */
static int read_root(struct doc_reader *reader, struct doc_node **ret_root, struct spec_error *err)
{
    yaml_event_t event;
    struct doc_node *root = NULL;
    int rc = next_event(reader, &event, err);

    if (rc != 0) {
        return rc;
    }
    rc = build(reader, &event, 0, &root, err);
    yaml_event_delete(&event);
    if (rc != 0) {
        return rc;
    }
    rc = next_event(reader, &event, err);
    if (rc != 0) {
        return rc;
    }
    assert(event.type == YAML_DOCUMENT_END_EVENT);
    yaml_event_delete(&event);
    *ret_root = root;
    return 0;
}

int doc_reader_next(struct doc_reader *reader, const struct doc_node **ret_root,
                    struct spec_error *err)
{
    while (!reader->has_ended) {
        struct doc_node *root = NULL;
        yaml_event_t event;
        int rc = next_event(reader, &event, err);

        if (rc != 0) {
            return rc;
        }
        yaml_event_type_t type = event.type;
        yaml_event_delete(&event);
        if (type == YAML_STREAM_END_EVENT) {
            break;
        }
        if (type != YAML_DOCUMENT_START_EVENT) {
            continue; /* the start of the stream */
        }
        arena_empty(reader);
        rc = read_root(reader, &root, err);
        if (rc != 0) {
            return rc;
        }
        if (!doc_is_null(root)) {
            *ret_root = root;
            return 0;
        }
    }
    reader->has_ended = true;
    *ret_root = NULL;
    return 0;
}

const struct doc_twice *doc_reader_twice(const struct doc_reader *reader, uint32_t *ret_n)
{
    *ret_n = reader->n_twice;
    return reader->twice;
}

const struct doc_node *doc_find(const struct doc_node *map, const char *key)
{
    for (const struct doc_node *child = map->first; child != NULL; child = child->next) {
        if (child->key != NULL && strcmp(child->key, key) == 0) {
            return child;
        }
    }
    return NULL;
}

bool doc_is_null(const struct doc_node *node)
{
    static const char *const words[] = {"", "~", "null", "Null", "NULL"};

    if (node->kind != DOC_SCALAR || node->is_quoted) {
        return false;
    }
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strcmp(node->text, words[i]) == 0) {
            return true;
        }
    }
    return false;
}

const char *doc_kind_word(const struct doc_node *node)
{
    switch ((enum doc_kind)node->kind) {
    case DOC_MAP:
        return "a mapping";
    case DOC_LIST:
        return "a list";
    case DOC_SCALAR:
        return doc_is_null(node) ? "nothing" : "a single value";
    case DOC_NONE:
        break;
    }
    return "nothing";
}
