#include "agent/table/table_reader.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "agent/table/table_map.h"

/* A file that root names may be gone because a newer one was published meanwhile; more rounds than
 * this only come up when the table is broken. */
#define LOOK_TRIES 5

/* 40 MiB at the planned size; a bound against a file that is none of ours. */
#define LAYOUT_BYTES_MAX (UINT64_C(1) << 30)
#define STATE_BYTES_MAX (UINT64_C(1) << 26)
#define ROOT_BYTES_MAX (UINT64_C(1) << 16)

struct table_snapshot {
    atomic_uint n_refs;
    struct table_map *root;
    struct table_map *layout_map;
    struct table_map *state_map;
    struct table_layout layout;
    uint64_t layout_number;
    uint64_t state_number;
    const uint8_t *rows; /* struct jury_row */
    const uint8_t *sequences;
    uint32_t n_rows;
    uint64_t state_version;
    uint64_t *ids;
    uint8_t *weights;
    uint32_t *scope_of_row; /* of the layout's rows; index + 1, 0 = none */
};

struct table_reader {
    char *dir;
    struct table_map *root;
    struct table_snapshot *snapshot;
    /* What was refused last, so that a bad file is not read again at each look. */
    bool has_refusal;
    uint64_t refused_layout;
    uint64_t refused_state;
    struct errmsg refusal;
};

/* --- snapshots --- */

struct table_snapshot *table_snapshot_ref(struct table_snapshot *snapshot)
{
    atomic_fetch_add_explicit(&snapshot->n_refs, 1, memory_order_relaxed);
    return snapshot;
}

void table_snapshot_unref(struct table_snapshot *snapshot)
{
    if (snapshot == NULL ||
        atomic_fetch_sub_explicit(&snapshot->n_refs, 1, memory_order_acq_rel) != 1) {
        return;
    }
    table_map_unref(snapshot->root);
    table_map_unref(snapshot->layout_map);
    table_map_unref(snapshot->state_map);
    free(snapshot->ids);
    free(snapshot->weights);
    free(snapshot->scope_of_row);
    free(snapshot);
}

const struct table_layout *table_snapshot_layout(const struct table_snapshot *snapshot)
{
    return &snapshot->layout;
}

uint64_t table_snapshot_layout_number(const struct table_snapshot *snapshot)
{
    return snapshot->layout_number;
}

const struct jury_root *table_snapshot_root(const struct table_snapshot *snapshot)
{
    return (const void *)snapshot->root->bytes;
}

const uint64_t *table_snapshot_ids(const struct table_snapshot *snapshot)
{
    return snapshot->ids;
}

const uint8_t *table_snapshot_weights(const struct table_snapshot *snapshot)
{
    return snapshot->weights;
}

uint32_t table_snapshot_n_rows(const struct table_snapshot *snapshot)
{
    return snapshot->n_rows;
}

uint64_t table_snapshot_state_version(const struct table_snapshot *snapshot)
{
    return snapshot->state_version;
}

uint32_t table_snapshot_scope_of_row(const struct table_snapshot *snapshot, uint32_t row,
                                     uint64_t birth)
{
    if (row >= snapshot->layout.header->n_rows || snapshot->scope_of_row[row] == 0) {
        return TABLE_NO_SCOPE;
    }
    uint32_t index = snapshot->scope_of_row[row] - 1;
    return table_layout_scope(&snapshot->layout, index)->birth == birth ? index : TABLE_NO_SCOPE;
}

const uint64_t *table_snapshot_sequence(const struct table_snapshot *snapshot, uint32_t scope_row)
{
    return (const void *)(snapshot->sequences + scope_row * sizeof(uint64_t));
}

static const struct jury_row *row_at(const struct table_snapshot *snapshot, uint32_t row)
{
    return (const void *)(snapshot->rows + row * sizeof(struct jury_row));
}

const uint64_t *table_snapshot_word(const struct table_snapshot *snapshot, uint32_t row)
{
    return &row_at(snapshot, row)->word;
}

uint64_t table_snapshot_generation(const struct table_snapshot *snapshot, bool *ret_is_current)
{
    const struct jury_root *root = table_snapshot_root(snapshot);
    /* The writer stores state, layout, generation in this order; loading them the other way round
     * means: files that are equal to ours were current when that generation was raised. */
    uint64_t generation = jury_load(&root->generation);
    uint64_t layout = jury_load(&root->layout);
    uint64_t state = jury_load(&root->state);

    *ret_is_current = layout == snapshot->layout_number && state == snapshot->state_number;
    return generation;
}

struct table_row table_snapshot_row(const struct table_snapshot *snapshot, uint32_t row,
                                    uint64_t birth)
{
    if (row >= snapshot->n_rows) {
        return (struct table_row){.row_class = JURY_CLASS_REMOVED};
    }
    const struct jury_row *at = row_at(snapshot, row);
    uint64_t word;
    uint64_t deadline_ns;
    /* While it changes a deadline the writer shows a word that says keep, and each word counts its
     * changes: an unchanged word around the deadline means that the two belong together. */
    unsigned n_tries = 0;
    do {
        word = jury_load(&at->word);
        deadline_ns = jury_load(&at->deadline_ns);
    } while (jury_load(&at->word) != word && ++n_tries < JURY_SCOPE_TRIES);

    if (!jury_word_is_of(word, birth)) {
        return (struct table_row){.row_class = JURY_CLASS_REMOVED};
    }
    return (struct table_row){
        .row_class = (uint8_t)jury_word_class(word),
        .flow_policy = (uint8_t)jury_word_flow_policy(word),
        .deadline_cause = (uint8_t)jury_word_cause(word),
        .share = (uint8_t)jury_word_share(word, snapshot->state_version),
        .n_changes = jury_word_changes(word),
        .deadline_boot_ns = deadline_ns,
    };
}

/* --- making one --- */

static int snapshot_index(struct table_snapshot *snapshot)
{
    const struct jury_layout *header = snapshot->layout.header;
    uint32_t n_members = header->n_members;

    snapshot->ids = calloc(n_members + 1U, sizeof *snapshot->ids);
    snapshot->weights = calloc(n_members + 1U, sizeof *snapshot->weights);
    snapshot->scope_of_row = calloc(header->n_rows + 1U, sizeof *snapshot->scope_of_row);
    if (snapshot->ids == NULL || snapshot->weights == NULL || snapshot->scope_of_row == NULL) {
        return ERR_NOMEM;
    }
    for (uint32_t i = 0; i < header->n_scopes; i++) {
        snapshot->scope_of_row[table_layout_scope(&snapshot->layout, i)->row] = i + 1;
    }
    for (uint32_t i = 0; i < n_members; i++) {
        const struct jury_member *member = table_layout_member(&snapshot->layout, i);

        snapshot->ids[i] = member->select_id;
        snapshot->weights[i] = member->weight;
    }
    return 0;
}

static int snapshot_map(struct table_reader *reader, struct table_snapshot *snapshot,
                        struct errmsg *err)
{
    char layout_name[TABLE_NAME_BYTES];
    char state_name[TABLE_NAME_BYTES];
    struct table_snapshot *last = reader->snapshot;
    int result;

    table_layout_name(snapshot->layout_number, layout_name);
    table_state_name(snapshot->state_number, state_name);
    if (last != NULL && last->root == reader->root &&
        last->layout_number == snapshot->layout_number) {
        snapshot->layout_map = table_map_ref(last->layout_map);
        snapshot->layout = last->layout;
    } else {
        const struct table_file file = {reader->dir, layout_name, LAYOUT_BYTES_MAX};

        result = table_map_copy(&file, &snapshot->layout_map, err);
        if (result != 0) {
            return result;
        }
        result = table_layout_check(snapshot->layout_map->bytes, snapshot->layout_map->n_bytes,
                                    layout_name, &snapshot->layout, err);
        if (result != 0) {
            return result;
        }
    }
    const struct table_file file = {reader->dir, state_name, STATE_BYTES_MAX};
    result = table_map_open(&file, &snapshot->state_map, err);
    if (result != 0) {
        return result;
    }
    return table_state_check(snapshot->state_map->bytes, snapshot->state_map->n_bytes,
                             snapshot->layout.header->n_rows, state_name, err);
}

static int snapshot_new(struct table_reader *reader, uint64_t layout_number, uint64_t state_number,
                        struct table_snapshot **ret_snapshot, struct errmsg *err)
{
    struct table_snapshot *snapshot = calloc(1, sizeof *snapshot);

    if (snapshot == NULL) {
        return errmsg_set(err, ERR_NOMEM, "no memory for the forwarding table");
    }
    atomic_init(&snapshot->n_refs, 1);
    snapshot->root = table_map_ref(reader->root);
    snapshot->layout_number = layout_number;
    snapshot->state_number = state_number;
    int result = snapshot_map(reader, snapshot, err);
    if (result == 0) {
        const struct jury_state *state = (const void *)snapshot->state_map->bytes;

        snapshot->rows = snapshot->state_map->bytes + state->rows_at;
        snapshot->sequences = snapshot->state_map->bytes + state->sequences_at;
        snapshot->n_rows = (uint32_t)state->n_rows;
        snapshot->state_version = state->version;
        result = snapshot_index(snapshot);
        if (result != 0) {
            errmsg_set(err, result, "no memory for the forwarding table");
        }
    }
    if (result != 0) {
        table_snapshot_unref(snapshot);
        return result;
    }
    *ret_snapshot = snapshot;
    return 0;
}

/* --- the reader --- */

struct table_reader *table_reader_new(const char *dir)
{
    struct table_reader *reader = calloc(1, sizeof *reader);

    if (reader == NULL) {
        return NULL;
    }
    reader->dir = strdup(dir);
    if (reader->dir == NULL) {
        free(reader);
        return NULL;
    }
    return reader;
}

void table_reader_free(struct table_reader *reader)
{
    if (reader == NULL) {
        return;
    }
    table_map_unref(reader->root);
    table_snapshot_unref(reader->snapshot);
    free(reader->dir);
    free(reader);
}

/* Map the root's path if another file lies there. A file that is refused leaves the old mapping. */
static int follow_root(struct table_reader *reader, struct errmsg *err)
{
    struct table_map *map;

    if (reader->root != NULL && table_map_is_current(reader->root, reader->dir, TABLE_ROOT_NAME)) {
        return 0;
    }
    const struct table_file file = {reader->dir, TABLE_ROOT_NAME, ROOT_BYTES_MAX};
    int result = table_map_open(&file, &map, err);
    if (result != 0) {
        return result;
    }
    result = table_root_check(map->bytes, map->n_bytes, err);
    if (result != 0) {
        table_map_unref(map);
        return result;
    }
    table_map_unref(reader->root);
    reader->root = map;
    reader->has_refusal = false;
    return 0;
}

static enum table_look look_of(int err)
{
    return err == ERR_NOTFOUND ? TABLE_ABSENT : TABLE_REFUSED;
}

static enum table_look refuse(struct table_reader *reader, uint64_t layout, uint64_t state,
                              const struct errmsg *err)
{
    reader->has_refusal = true;
    reader->refused_layout = layout;
    reader->refused_state = state;
    reader->refusal = *err;
    return TABLE_REFUSED;
}

/* One round over the words of the mapped root. ERR_NOTFOUND: a file is missing, look again. */
static int follow_words(struct table_reader *reader, enum table_look *ret_look, struct errmsg *err)
{
    const struct jury_root *root = (const void *)reader->root->bytes;
    struct table_snapshot *snapshot = NULL;
    /* Layout before state: the state file of a newer layout has all rows of an older one. */
    uint64_t layout = jury_load(&root->layout);
    uint64_t state = jury_load(&root->state);

    if (layout == 0 || state == 0) { /* no file has that number: the root was cut */
        *ret_look = TABLE_REFUSED;
        return errmsg_set(err, 0, "%s/" TABLE_ROOT_NAME ": it was cut short", reader->dir);
    }
    if (reader->snapshot != NULL && reader->snapshot->root == reader->root &&
        reader->snapshot->layout_number == layout && reader->snapshot->state_number == state) {
        *ret_look = TABLE_SAME;
        return 0;
    }
    if (reader->has_refusal && reader->refused_layout == layout && reader->refused_state == state) {
        *err = reader->refusal;
        *ret_look = TABLE_REFUSED;
        return 0;
    }
    int result = snapshot_new(reader, layout, state, &snapshot, err);
    if (result == ERR_NOTFOUND) {
        return result;
    }
    if (result == ERR_CORRUPT || result == ERR_VERSION || result == ERR_LIMIT) {
        *ret_look = refuse(reader, layout, state, err);
        return 0;
    }
    if (result != 0) {
        *ret_look = TABLE_REFUSED; /* memory, permission: worth another try */
        return 0;
    }
    table_snapshot_unref(reader->snapshot);
    reader->snapshot = snapshot;
    *ret_look = TABLE_NEW;
    return 0;
}

/* Whether a file in use was cut short: its words are gone, and workers go on with their copies. */
static bool is_cut(const struct table_reader *reader, struct errmsg *err)
{
    const struct table_snapshot *snapshot = reader->snapshot;
    char state_name[TABLE_NAME_BYTES];
    const char *name = NULL;

    if (table_map_is_cut(reader->root, reader->dir, TABLE_ROOT_NAME)) {
        name = TABLE_ROOT_NAME;
    } else if (snapshot != NULL &&
               table_map_is_cut(snapshot->state_map, reader->dir,
                                table_state_name(snapshot->state_number, state_name))) {
        name = state_name;
    }
    if (name != NULL) {
        errmsg_set(err, ERR_CORRUPT, "%s/%s: it was cut short", reader->dir, name);
    }
    return name != NULL;
}

enum table_look table_reader_look(struct table_reader *reader, bool look_at_path,
                                  struct table_snapshot **ret_snapshot, struct errmsg *err)
{
    struct errmsg message = {{0}};
    enum table_look look = TABLE_ABSENT;
    enum table_look path_look = TABLE_SAME;

    for (int i = 0; i < LOOK_TRIES; i++) {
        if (look_at_path || reader->root == NULL || i > 0) {
            int result = follow_root(reader, &message);

            /* A root that is refused or gone: its sentence counts, but the old one is followed. */
            path_look = result == 0 ? TABLE_SAME : look_of(result);
            if (path_look != TABLE_SAME && err != NULL) {
                *err = message;
            }
        }
        if (reader->root == NULL) {
            return path_look;
        }
        if (follow_words(reader, &look, &message) == 0) {
            break;
        }
        look = TABLE_ABSENT;
    }
    if (look == TABLE_SAME && look_at_path && is_cut(reader, &message)) {
        look = TABLE_REFUSED;
    }
    if (look == TABLE_NEW) {
        *ret_snapshot = table_snapshot_ref(reader->snapshot);
        return TABLE_NEW;
    }
    if (look != TABLE_SAME && err != NULL) {
        *err = message;
    }
    return look != TABLE_SAME ? look : path_look;
}
