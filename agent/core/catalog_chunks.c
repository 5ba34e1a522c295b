#include "agent/core/catalog_chunks.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/model/feature_level.h"

#define CHUNK_MAGIC UINT32_C(0x5441434a) /* "JCAT" */
#define SEAL_BYTES 16
/* A backend takes at most about 240 bytes, so 500 stay below half of LIMIT_CHUNK_BYTES. */
#define GROUP_PIECE_BACKENDS 500

static void write_hash(struct bytes_writer *writer, const struct hash128 *hash)
{
    bytes_write_u64(writer, hash->low);
    bytes_write_u64(writer, hash->high);
}

static struct hash128 read_hash(struct bytes_reader *reader)
{
    struct hash128 hash;

    hash.low = bytes_read_u64(reader);
    hash.high = bytes_read_u64(reader);
    return hash;
}

void chunk_begin(struct bytes_writer *writer, enum part_kind kind, uint8_t level)
{
    bytes_writer_init(writer, LIMIT_CHUNK_BYTES);
    bytes_write_u32(writer, CHUNK_MAGIC);
    bytes_write_u8(writer, CODEC_MAJOR);
    bytes_write_u8(writer, level);
    bytes_write_u8(writer, (uint8_t)kind);
    bytes_write_u8(writer, 0);
}

struct part_chunk chunk_take(struct bytes_writer *writer)
{
    struct part_chunk chunk;

    /* The limits of objects keep every chunk below its own, so only memory can be short. */
    chunk.data = bytes_writer_take(writer, &chunk.n_bytes);
    if (chunk.data == NULL) {
        abort();
    }
    /* It stays for as long as its object: without the room that the writer still had. */
    chunk.data = catalog_realloc(chunk.data, 1, chunk.n_bytes);
    return chunk;
}

void chunk_seal(struct bytes_writer *writer)
{
    struct hash128 hash = catalog_hash(writer->data, writer->n_bytes);

    write_hash(writer, &hash);
}

bool chunk_unseal(struct catalog_chunk_view *view)
{
    struct bytes_reader seal;

    if (view->n_bytes < SEAL_BYTES) {
        return false;
    }
    view->n_bytes -= SEAL_BYTES;
    bytes_reader_init(&seal, view->data + view->n_bytes, SEAL_BYTES);
    return hash128_equal(read_hash(&seal), catalog_hash(view->data, view->n_bytes));
}

int chunk_open(const struct catalog_chunk_view *view, struct chunk_in *ret_chunk,
               struct errmsg *err)
{
    struct bytes_reader reader;

    bytes_reader_init(&reader, view->data, view->n_bytes);
    uint32_t magic = bytes_read_u32(&reader);
    uint8_t major = bytes_read_u8(&reader);
    uint8_t minor = bytes_read_u8(&reader);
    uint8_t kind = bytes_read_u8(&reader);
    uint8_t zero = bytes_read_u8(&reader);
    if (reader.failed || magic != CHUNK_MAGIC || view->n_bytes > LIMIT_CHUNK_BYTES) {
        return errmsg_set(err, ERR_CORRUPT, "catalog: a chunk of %zu bytes is none of ours",
                          view->n_bytes);
    }
    if (!codec_is_understood(major, minor) || kind < PART_HEADER || kind > PART_ANSWERS) {
        return errmsg_set(err, ERR_VERSION,
                          "catalog: a chunk of version %u.%u and kind %u: this node reads up to "
                          "%d.%u, update it",
                          major, minor, kind, CODEC_MAJOR, feature_level());
    }
    if (zero != 0) {
        return errmsg_set(err, ERR_CORRUPT, "catalog: a chunk with a damaged head");
    }
    *ret_chunk = (struct chunk_in){.kind = kind, .body = {.bytes = reader, .minor = minor}};
    return 0;
}

/* --- the header --- */

static void write_fields(struct bytes_writer *writer, const struct catalog *catalog)
{
    bytes_write_u64(writer, catalog->revision);
    bytes_write_copy(writer, catalog->cluster_id.bytes, sizeof catalog->cluster_id.bytes);
    bytes_write_u64(writer, (uint64_t)catalog->wall_ms);
    bytes_write_u64(writer, catalog->counters.next_group_id);
    bytes_write_u64(writer, catalog->counters.next_backend_id);
    bytes_write_u64(writer, catalog->counters.next_listener_id);
    write_hash(writer, &catalog->content);
    write_hash(writer, &catalog->answers);
    write_hash(writer, &catalog->chain_before);
}

struct hash128 catalog_chain(const struct catalog *catalog)
{
    struct bytes_writer writer;

    bytes_writer_init(&writer, LIMIT_CHUNK_BYTES);
    write_fields(&writer, catalog);
    if (writer.failed) {
        abort(); /* no memory */
    }
    struct hash128 chain = catalog_hash(writer.data, writer.n_bytes);
    bytes_writer_close(&writer);
    return chain;
}

void catalog_encode_header(struct catalog *catalog)
{
    struct bytes_writer writer;

    chunk_begin(&writer, PART_HEADER, FEATURE_LEVEL_BASE);
    write_fields(&writer, catalog);
    write_hash(&writer, &catalog->chain);
    bytes_write_u32(&writer, 3 + catalog->groups.n_chunks + catalog->listeners.n_chunks);
    bytes_write_string(&writer, catalog->actor); /* for people, so outside the chain */
    chunk_seal(&writer);
    free(catalog->header.data);
    catalog->header = chunk_take(&writer);
}

bool chunk_read_header(struct codec_in *in, struct chunk_header *ret_header)
{
    struct catalog *fields = &ret_header->fields;
    struct bytes_reader *bytes = &in->bytes;

    *ret_header = (struct chunk_header){0};
    fields->revision = bytes_read_u64(bytes);
    bytes_read_copy(bytes, fields->cluster_id.bytes, sizeof fields->cluster_id.bytes);
    fields->wall_ms = (int64_t)bytes_read_u64(bytes);
    fields->counters.next_group_id = bytes_read_u64(bytes);
    fields->counters.next_backend_id = bytes_read_u64(bytes);
    fields->counters.next_listener_id = bytes_read_u64(bytes);
    fields->content = read_hash(bytes);
    fields->answers = read_hash(bytes);
    fields->chain_before = read_hash(bytes);
    fields->chain = read_hash(bytes);
    ret_header->n_chunks = bytes_read_u32(bytes);
    if (in->minor >= 2) {
        bytes_read_string(bytes, fields->actor, sizeof fields->actor);
    }
    return codec_done(in);
}

/* --- parts to chunks --- */

static void add_chunk(struct part *part, struct bytes_writer *writer)
{
    struct part_chunk chunk = chunk_take(writer);

    part->content = hash128_add(part->content, catalog_hash(chunk.data, chunk.n_bytes));
    part->chunks[part->n_chunks++] = chunk;
}

static void write_row(struct bytes_writer *writer, const struct row_id *row)
{
    bytes_write_u32(writer, row->row);
    bytes_write_u64(writer, row->birth);
}

static void write_backend(struct bytes_writer *writer, const struct catalog_group *group,
                          const struct catalog_backend *backend)
{
    const struct backend spec = catalog_backend_value(backend);
    const struct target_id *parts = catalog_parts_of(group, backend);
    size_t begin = codec_begin(writer);

    codec_write_backend(writer, &spec);
    bytes_write_u64(writer, backend->id);
    write_row(writer, &backend->row);
    bytes_write_u32(writer, backend->target.slot);
    bytes_write_u64(writer, backend->target.birth);
    bytes_write_u64(writer, backend->changed_revision);
    bytes_write_u8(writer, backend->life);
    bytes_write_u64(writer, backend->drain_revision);
    bytes_write_u32(writer, backend->drain_timeout_ms);
    for (uint32_t i = 0; parts != NULL && i < group->spec.n_checks; i++) {
        bytes_write_u32(writer, parts[i].slot);
        bytes_write_u64(writer, parts[i].birth);
    }
    codec_end(writer, begin);
}

static void encode_piece(struct group_part *part, uint32_t piece, uint32_t n_pieces)
{
    const struct catalog_group *group = &part->group;
    uint32_t first = piece * GROUP_PIECE_BACKENDS;
    uint32_t left = group->n_backends - first;
    uint32_t n = left < GROUP_PIECE_BACKENDS ? left : GROUP_PIECE_BACKENDS;
    const char *field;
    uint8_t level = feature_level_of_group(&group->spec, &field);
    struct bytes_writer writer;

    chunk_begin(&writer, PART_GROUP, level);
    bytes_write_string(&writer, group->spec.name);
    bytes_write_u32(&writer, piece);
    bytes_write_u32(&writer, n_pieces);
    if (piece == 0) {
        codec_write_group(&writer, &group->spec);
        bytes_write_u8(&writer, group->is_deleted);
        bytes_write_u64(&writer, group->id);
        write_row(&writer, &group->row);
        bytes_write_u64(&writer, group->changed_revision);
        bytes_write_u32(&writer, group->n_backends);
    }
    bytes_write_u32(&writer, n);
    for (uint32_t i = 0; i < n; i++) {
        write_backend(&writer, group, &group->backends[first + i]);
    }
    add_chunk(&part->head, &writer);
}

static void encode_group(struct group_part *part)
{
    uint32_t n = (part->group.n_backends + GROUP_PIECE_BACKENDS - 1) / GROUP_PIECE_BACKENDS;

    n = n == 0 ? 1 : n;
    part->head.chunks = catalog_alloc(n, sizeof *part->head.chunks);
    for (uint32_t i = 0; i < n; i++) {
        encode_piece(part, i, n);
    }
}

static void write_nodes(struct bytes_writer *writer, const struct nodes_part *part)
{
    bytes_write_u32(writer, part->n_nodes);
    for (uint32_t i = 0; i < part->n_nodes; i++) {
        codec_write_node(writer, &part->nodes[i].spec);
        bytes_write_u64(writer, part->nodes[i].changed_revision);
        bytes_write_u64(writer, part->nodes[i].added_revision);
    }
    bytes_write_u32(writer, part->n_retired);
    for (uint32_t i = 0; i < part->n_retired; i++) {
        bytes_write_u64(writer, part->retired_ids[i]);
    }
}

static void write_part(struct bytes_writer *writer, const struct part *part)
{
    switch ((enum part_kind)part->kind) {
    case PART_SETTINGS: {
        const struct settings_part *settings = (const struct settings_part *)part;

        codec_write_settings(writer, &settings->settings);
        bytes_write_u64(writer, settings->changed_revision);
        if (settings->feature_level > FEATURE_LEVEL_BASE) {
            bytes_write_u8(writer, settings->feature_level);
        }
        return;
    }
    case PART_NODES:
        write_nodes(writer, (const struct nodes_part *)part);
        return;
    case PART_KEYS: {
        const struct keys_part *keys = (const struct keys_part *)part;

        bytes_write_u32(writer, keys->n_keys);
        for (uint32_t i = 0; i < keys->n_keys; i++) {
            codec_write_key(writer, &keys->keys[i].spec);
            bytes_write_u64(writer, keys->keys[i].changed_revision);
        }
        return;
    }
    case PART_LISTENER: {
        const struct catalog_listener *listener = &((const struct listener_part *)part)->listener;

        codec_write_listener(writer, &listener->spec);
        bytes_write_u64(writer, listener->id);
        bytes_write_u64(writer, listener->group_id);
        bytes_write_u64(writer, listener->changed_revision);
        return;
    }
    case PART_NONE:
    case PART_HEADER:
    case PART_GROUP:
    case PART_ANSWERS:
        break;
    }
    abort(); /* not a part of one chunk */
}

static uint8_t level_of_part(const struct part *part)
{
    return part->kind == PART_SETTINGS ? ((const struct settings_part *)part)->feature_level
                                       : FEATURE_LEVEL_BASE;
}

void part_encode(struct part *part)
{
    struct bytes_writer writer;

    assert(part->n_chunks == 0);
    part->content = (struct hash128){0};
    if (part->kind == PART_GROUP) {
        encode_group((struct group_part *)part);
        return;
    }
    part->chunks = catalog_alloc(1, sizeof *part->chunks);
    chunk_begin(&writer, (enum part_kind)part->kind, level_of_part(part));
    write_part(&writer, part);
    add_chunk(part, &writer);
}

/* --- chunks to parts --- */

static void *new_part(enum part_kind kind, size_t size)
{
    struct part *part = catalog_alloc(1, size);

    atomic_init(&part->refs, 1);
    part->kind = (uint8_t)kind;
    part->name = "";
    return part;
}

/* The part when `in` was read to its end; else it goes. */
static struct part *finish(struct part *part, const struct codec_in *in)
{
    if (!codec_done(in)) {
        part_unref(part);
        return NULL;
    }
    return part;
}

struct part *chunk_read_settings(struct codec_in *in)
{
    struct settings_part *part = new_part(PART_SETTINGS, sizeof *part);

    codec_read_settings(in, &part->settings);
    part->changed_revision = bytes_read_u64(&in->bytes);
    codec_read_level(in, &part->feature_level);
    return finish(&part->head, in);
}

struct part *chunk_read_nodes(struct codec_in *in)
{
    struct nodes_part *part = new_part(PART_NODES, sizeof *part);

    part->n_nodes = codec_read_count(in, LIMIT_NODES);
    part->nodes = catalog_alloc(part->n_nodes, sizeof *part->nodes);
    for (uint32_t i = 0; i < part->n_nodes; i++) {
        codec_read_node(in, &part->nodes[i].spec);
        part->nodes[i].changed_revision = bytes_read_u64(&in->bytes);
        part->nodes[i].added_revision = bytes_read_u64(&in->bytes);
        if (i > 0 && part->nodes[i - 1].spec.node_id >= part->nodes[i].spec.node_id) {
            in->bytes.failed = true;
        }
    }
    part->n_retired = codec_read_count(in, LIMIT_RETIRED_NODES);
    part->retired_ids = catalog_alloc(part->n_retired, sizeof *part->retired_ids);
    for (uint32_t i = 0; i < part->n_retired; i++) {
        part->retired_ids[i] = bytes_read_u64(&in->bytes);
        if (i > 0 && part->retired_ids[i - 1] >= part->retired_ids[i]) {
            in->bytes.failed = true;
        }
    }
    return finish(&part->head, in);
}

struct part *chunk_read_keys(struct codec_in *in)
{
    struct keys_part *part = new_part(PART_KEYS, sizeof *part);

    part->n_keys = codec_read_count(in, LIMIT_KEYS);
    part->keys = catalog_alloc(part->n_keys, sizeof *part->keys);
    for (uint32_t i = 0; i < part->n_keys; i++) {
        codec_read_key(in, &part->keys[i].spec);
        part->keys[i].changed_revision = bytes_read_u64(&in->bytes);
        if (i > 0 && strcmp(part->keys[i - 1].spec.name, part->keys[i].spec.name) >= 0) {
            in->bytes.failed = true;
        }
    }
    return finish(&part->head, in);
}

struct part *chunk_read_listener(struct codec_in *in)
{
    struct listener_part *part = new_part(PART_LISTENER, sizeof *part);

    codec_read_listener(in, &part->listener.spec);
    part->listener.id = bytes_read_u64(&in->bytes);
    part->listener.group_id = bytes_read_u64(&in->bytes);
    part->listener.changed_revision = bytes_read_u64(&in->bytes);
    part->head.name = part->listener.spec.name;
    return finish(&part->head, in);
}

bool chunk_read_piece(struct codec_in *in, struct group_piece *ret_piece)
{
    bytes_read_string(&in->bytes, ret_piece->name, sizeof ret_piece->name);
    ret_piece->piece = bytes_read_u32(&in->bytes);
    ret_piece->n_pieces = bytes_read_u32(&in->bytes);
    ret_piece->body = *in;
    return !in->bytes.failed && ret_piece->piece < ret_piece->n_pieces;
}

static void read_row(struct codec_in *in, struct row_id *row)
{
    row->row = bytes_read_u32(&in->bytes);
    row->birth = bytes_read_u64(&in->bytes);
}

/* spec: holds the texts until the part keeps them. */
static void read_backend(struct group_part *part, uint32_t index, struct codec_in *in,
                         struct backend *spec)
{
    struct catalog_backend *backend = &part->backends[index];
    uint32_t n_checks = part->group.spec.n_checks;
    struct codec_in block = codec_open(in);

    codec_read_backend(&block, spec);
    backend->spec = (struct catalog_backend_spec){.at = spec->at,
                                                  .weight = spec->weight,
                                                  .admin_state = spec->admin_state,
                                                  .zone = spec->zone,
                                                  .description = spec->description};
    backend->id = bytes_read_u64(&block.bytes);
    read_row(&block, &backend->row);
    backend->target.slot = bytes_read_u32(&block.bytes);
    backend->target.birth = bytes_read_u64(&block.bytes);
    backend->changed_revision = bytes_read_u64(&block.bytes);
    backend->life = bytes_read_u8(&block.bytes);
    if (backend->life != LIFE_AVAILABLE && backend->life != LIFE_REMOVING) {
        block.bytes.failed = true;
    }
    backend->drain_revision = bytes_read_u64(&block.bytes);
    backend->drain_timeout_ms = bytes_read_u32(&block.bytes);
    for (uint32_t i = 0; i < n_checks; i++) {
        struct target_id *target = &part->targets[index * n_checks + i];

        target->slot = bytes_read_u32(&block.bytes);
        target->birth = bytes_read_u64(&block.bytes);
    }
    codec_shut(in, &block);
}

/* Reads one piece's backends behind `*n_read` others; false = damaged. */
static bool read_backends(struct group_part *part, struct backend specs[], struct codec_in *in,
                          uint32_t *n_read)
{
    uint32_t n = codec_read_count(in, part->group.n_backends - *n_read);

    for (uint32_t i = 0; i < n; i++) {
        uint32_t at = (*n_read)++;

        read_backend(part, at, in, &specs[at]);
        if (at > 0 &&
            endpoint_compare(&part->backends[at - 1].spec.at, &part->backends[at].spec.at) >= 0) {
            return false;
        }
    }
    return codec_done(in);
}

struct part *chunk_read_group(struct group_piece pieces[], uint32_t n_pieces)
{
    struct group_part *part = new_part(PART_GROUP, sizeof *part);
    struct catalog_group *group = &part->group;
    struct codec_in *first = &pieces[0].body;
    uint32_t n_read = 0;

    codec_read_group(first, &group->spec);
    group->is_deleted = codec_read_bool(first);
    group->id = bytes_read_u64(&first->bytes);
    read_row(first, &group->row);
    group->changed_revision = bytes_read_u64(&first->bytes);
    group->n_backends = codec_read_count(first, LIMIT_GROUP_ROWS);
    part->backends = catalog_alloc(group->n_backends, sizeof *part->backends);
    group->backends = part->backends;
    if (group->spec.n_checks > 0) {
        part->targets =
            catalog_alloc((size_t)group->n_backends * group->spec.n_checks, sizeof *part->targets);
        group->parts = part->targets;
    }
    part->head.name = group->spec.name;
    struct backend *specs = catalog_alloc(group->n_backends, sizeof *specs);
    bool is_whole = strcmp(group->spec.name, pieces[0].name) == 0;
    for (uint32_t i = 0; i < n_pieces && is_whole; i++) {
        is_whole = pieces[i].piece == i && pieces[i].n_pieces == n_pieces &&
                   strcmp(pieces[i].name, pieces[0].name) == 0 &&
                   read_backends(part, specs, &pieces[i].body, &n_read);
    }
    is_whole = is_whole && n_read == group->n_backends;
    if (is_whole) {
        group_part_keep_texts(part);
    }
    free(specs);
    if (!is_whole) {
        part_unref(&part->head);
        return NULL;
    }
    check_set_make(&group->spec, NULL, &part->checks);
    return &part->head;
}
