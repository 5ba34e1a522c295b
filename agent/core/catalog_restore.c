/* Chunks to a catalog. The hashes come first: nothing of a damaged set is looked at. What follows
 * checks form only, so that no later stricter rule makes an old snapshot unreadable (R-CFG-3). */
#include <stdlib.h>
#include <string.h>

#include "agent/core/catalog_chunks.h"
#include "agent/core/catalog_parts.h"
#include "agent/core/numbers.h"

struct restore {
    const struct catalog_chunk_view *chunks;
    size_t n_chunks;
    struct chunk_header header;
    struct catalog *catalog;
    struct part_edit *groups;
    size_t n_groups;
    struct part_edit *listeners;
    size_t n_listeners;
    struct group_piece *pieces;
    size_t n_pieces;
    struct numbers rows;
    struct errmsg *err;
};

static int damaged(const struct restore *restore, const char *what)
{
    return errmsg_set(restore->err, ERR_CORRUPT, "catalog: %s", what);
}

/* Finds the header and checks that it and the other chunks belong together. */
static int check_hashes(struct restore *restore)
{
    struct hash128 content = {0};
    size_t n_headers = 0;
    size_t n_others = 0;

    for (size_t i = 0; i < restore->n_chunks; i++) {
        struct catalog_chunk_view view = restore->chunks[i];
        struct chunk_in chunk;
        int rc = chunk_open(&view, &chunk, restore->err);

        if (rc != 0) {
            return rc;
        }
        if (chunk.kind == PART_ANSWERS) {
            continue;
        }
        if (chunk.kind != PART_HEADER) {
            content = hash128_add(content, catalog_hash(view.data, view.n_bytes));
            n_others++;
            continue;
        }
        if (n_headers++ > 0 || !chunk_unseal(&view) ||
            chunk_open(&view, &chunk, restore->err) != 0 ||
            !chunk_read_header(&chunk.body, &restore->header)) {
            return damaged(restore, "the header chunk is damaged or there twice");
        }
    }
    if (n_headers == 0) {
        return damaged(restore, "the header chunk is missing");
    }
    if (n_others != restore->header.n_chunks) {
        return errmsg_set(restore->err, ERR_CORRUPT,
                          "catalog: %zu chunks, the header of revision %llu says %u", n_others,
                          (unsigned long long)restore->header.fields.revision,
                          restore->header.n_chunks);
    }
    if (!hash128_equal(content, restore->header.fields.content)) {
        return damaged(restore, "the chunks do not have the hash that the header says");
    }
    if (!hash128_equal(catalog_chain(&restore->header.fields), restore->header.fields.chain)) {
        return damaged(restore, "the state hash of the header is not that of its fields");
    }
    return 0;
}

static void keep_chunk(struct part *part, uint32_t index, const struct catalog_chunk_view *view)
{
    struct part_chunk *chunk = &part->chunks[index];

    chunk->data = catalog_alloc(view->n_bytes, 1);
    memcpy(chunk->data, view->data, view->n_bytes);
    chunk->n_bytes = view->n_bytes;
    part->content = hash128_add(part->content, catalog_hash(view->data, view->n_bytes));
}

/* The received bytes stay the part's bytes, also those that a newer version wrote. */
static struct part *with_chunk(struct part *part, const struct catalog_chunk_view *view)
{
    if (part != NULL) {
        part->chunks = catalog_alloc(1, sizeof *part->chunks);
        part->n_chunks = 1;
        keep_chunk(part, 0, view);
    }
    return part;
}

static int read_single(struct restore *restore, struct part **place, struct part *part)
{
    if (part == NULL || *place != NULL) {
        part_unref(part);
        return damaged(restore, "settings, nodes or keys are damaged or there twice");
    }
    *place = part;
    return 0;
}

static int read_chunk(struct restore *restore, const struct catalog_chunk_view *view)
{
    struct catalog *catalog = restore->catalog;
    struct chunk_in chunk;
    int rc = chunk_open(view, &chunk, restore->err);

    if (rc != 0) {
        return rc;
    }
    switch ((enum part_kind)chunk.kind) {
    case PART_SETTINGS:
        return read_single(restore, (struct part **)&catalog->settings,
                           with_chunk(chunk_read_settings(&chunk.body), view));
    case PART_NODES:
        return read_single(restore, (struct part **)&catalog->nodes,
                           with_chunk(chunk_read_nodes(&chunk.body), view));
    case PART_KEYS:
        return read_single(restore, (struct part **)&catalog->keys,
                           with_chunk(chunk_read_keys(&chunk.body), view));
    case PART_GROUP: {
        struct group_piece *piece = &restore->pieces[restore->n_pieces++];

        piece->view = *view;
        return chunk_read_piece(&chunk.body, piece) ? 0 : damaged(restore, "a group is damaged");
    }
    case PART_LISTENER: {
        struct part *part = with_chunk(chunk_read_listener(&chunk.body), view);

        if (part == NULL) {
            return damaged(restore, "a listener is damaged");
        }
        restore->listeners[restore->n_listeners++] =
            (struct part_edit){.name = part->name, .part = part};
        return 0;
    }
    case PART_NONE:
    case PART_HEADER:
    case PART_ANSWERS:
        break;
    }
    return 0;
}

static int compare_pieces(const void *a, const void *b)
{
    const struct group_piece *piece_a = a;
    const struct group_piece *piece_b = b;
    int order = strcmp(piece_a->name, piece_b->name);

    return order != 0 ? order
                      : (piece_a->piece > piece_b->piece) - (piece_a->piece < piece_b->piece);
}

static int compare_edits(const void *a, const void *b)
{
    return strcmp(((const struct part_edit *)a)->name, ((const struct part_edit *)b)->name);
}

static int read_groups(struct restore *restore)
{
    qsort(restore->pieces, restore->n_pieces, sizeof *restore->pieces, compare_pieces);
    for (size_t i = 0; i < restore->n_pieces;) {
        struct group_piece *first = &restore->pieces[i];

        if (first->n_pieces > restore->n_pieces - i) {
            return damaged(restore, "a part of a group is missing");
        }
        struct part *part = chunk_read_group(first, first->n_pieces);
        if (part == NULL) {
            return damaged(restore, "a group is damaged");
        }
        part->chunks = catalog_alloc(first->n_pieces, sizeof *part->chunks);
        part->n_chunks = first->n_pieces;
        for (uint32_t j = 0; j < first->n_pieces; j++) {
            keep_chunk(part, j, &first[j].view);
        }
        restore->groups[restore->n_groups++] = (struct part_edit){.name = part->name, .part = part};
        i += part->n_chunks;
    }
    return 0;
}

/* Moves the gathered parts of one kind into a list. */
static int make_list(struct restore *restore, struct part_edit edits[], size_t *n_edits,
                     struct part_list *ret_list)
{
    const struct part_list empty = {0};

    qsort(edits, *n_edits, sizeof *edits, compare_edits);
    for (size_t i = 1; i < *n_edits; i++) {
        if (strcmp(edits[i - 1].name, edits[i].name) == 0) {
            return damaged(restore, "two objects have one name");
        }
    }
    part_list_edit(&empty, edits, *n_edits, ret_list);
    *n_edits = 0;
    return 0;
}

/* --- slots and rows, rebuilt from the backends that hold them --- */

static bool take_row(struct restore *restore, const struct row_id *row)
{
    return numbers_take_this(&restore->rows, row->row);
}

static bool use_target(struct restore *restore, const struct target_id *id,
                       const struct catalog_definition *definition)
{
    if (id->slot >= LIMIT_TARGETS) {
        return false;
    }
    const struct catalog_target *target = catalog_target_at(restore->catalog, id->slot);
    if (target == NULL) {
        catalog_target_put(restore->catalog, id, &definition->to, definition->check);
    } else if (target->id.birth != id->birth ||
               !hash128_equal(target->definition_hash, definition->hash)) {
        return false;
    }
    catalog_target_use(restore->catalog, id->slot, 1);
    if (id->slot >= restore->catalog->n_slots) {
        restore->catalog->n_slots = id->slot + 1;
    }
    return true;
}

/* The target of the vote, and those of its parts. */
static bool use_targets(struct restore *restore, const struct group_part *part,
                        const struct catalog_backend *backend)
{
    const struct target_id *parts = catalog_parts_of(&part->group, backend);
    bool is_probed = catalog_wants_target(&part->group, backend);

    for (uint32_t use = 0; use < catalog_n_uses(&part->group.spec); use++) {
        const struct target_id *id = use == 0 ? &backend->target : &parts[use - 1];
        bool is_sane = id->slot == CATALOG_NO_SLOT;

        if (is_probed) {
            struct catalog_definition definition =
                catalog_use_definition(&part->group.spec, &part->checks, &backend->spec.at, use);

            is_sane = use_target(restore, id, &definition);
        }
        if (!is_sane) {
            return false;
        }
    }
    return true;
}

static int number_group(struct restore *restore, const struct group_part *part)
{
    bool is_sane = take_row(restore, &part->group.row);

    for (uint32_t i = 0; i < part->group.n_backends && is_sane; i++) {
        const struct catalog_backend *backend = &part->group.backends[i];

        is_sane = take_row(restore, &backend->row) && use_targets(restore, part, backend);
        restore->catalog->n_live_backends += backend->life != LIFE_REMOVING;
    }
    restore->catalog->n_live_groups += !part->group.is_deleted;
    return is_sane ? 0 : damaged(restore, "rows or target slots contradict each other");
}

static int number_all(struct restore *restore)
{
    struct catalog *catalog = restore->catalog;

    for (uint32_t i = 0; i < catalog->groups.n_items; i++) {
        int rc = number_group(restore, (struct group_part *)part_list_at(&catalog->groups, i));

        if (rc != 0) {
            return rc;
        }
    }
    catalog->n_rows = numbers_end(&restore->rows);
    catalog->n_rows_used = restore->rows.n_taken;
    return 0;
}

static int read_all(struct restore *restore)
{
    int rc = check_hashes(restore);

    if (rc != 0) {
        return rc;
    }
    for (size_t i = 0; i < restore->n_chunks; i++) {
        rc = read_chunk(restore, &restore->chunks[i]);
        if (rc != 0) {
            return rc;
        }
    }
    struct catalog *catalog = restore->catalog;
    if (catalog->settings == NULL || catalog->nodes == NULL || catalog->keys == NULL) {
        return damaged(restore, "settings, nodes or keys are missing");
    }
    rc = read_groups(restore);
    if (rc == 0) {
        rc = make_list(restore, restore->groups, &restore->n_groups, &catalog->groups);
    }
    if (rc == 0) {
        rc = make_list(restore, restore->listeners, &restore->n_listeners, &catalog->listeners);
    }
    return rc != 0 ? rc : number_all(restore);
}

static void take_fields(struct catalog *catalog, const struct catalog *fields)
{
    catalog->revision = fields->revision;
    catalog->cluster_id = fields->cluster_id;
    catalog->wall_ms = fields->wall_ms;
    memcpy(catalog->actor, fields->actor, sizeof catalog->actor);
    catalog->counters = fields->counters;
    catalog->content = fields->content;
    catalog->chain_before = fields->chain_before;
    catalog->answers = fields->answers;
    catalog->chain = fields->chain;
}

int catalog_decode(const struct catalog_chunk_view chunks[], size_t n_chunks,
                   struct catalog **ret_catalog, struct errmsg *err)
{
    struct restore restore = {.chunks = chunks, .n_chunks = n_chunks, .err = err};

    restore.catalog = catalog_alloc(1, sizeof *restore.catalog);
    atomic_init(&restore.catalog->refs, 1);
    restore.groups = catalog_alloc(n_chunks, sizeof *restore.groups);
    restore.listeners = catalog_alloc(n_chunks, sizeof *restore.listeners);
    restore.pieces = catalog_alloc(n_chunks, sizeof *restore.pieces);
    if (numbers_init(&restore.rows, LIMIT_ROWS) != 0) {
        abort();
    }
    int rc = read_all(&restore);
    if (rc == 0) {
        take_fields(restore.catalog, &restore.header.fields);
        catalog_encode_header(restore.catalog);
        *ret_catalog = restore.catalog;
    } else {
        catalog_unref(restore.catalog);
    }
    for (size_t i = 0; i < restore.n_groups; i++) {
        part_unref(restore.groups[i].part);
    }
    for (size_t i = 0; i < restore.n_listeners; i++) {
        part_unref(restore.listeners[i].part);
    }
    numbers_close(&restore.rows);
    free(restore.pieces);
    free(restore.listeners);
    free(restore.groups);
    return rc;
}
