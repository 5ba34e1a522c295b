/* Commands as bytes (catalog_apply.h): magic, version, length, body, zeros up to a multiple of 8.
 */
#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "agent/core/catalog_apply.h"
#include "agent/core/catalog_codec.h"
#include "common/base/plant.h"
#include "common/model/feature_level.h"

#define COMMAND_MAGIC UINT32_C(0x444d434a) /* "JCMD" */
#define COMMAND_HEAD_BYTES 12
/* What may be written before its size is judged, so that a refusal can name the true size. */
#define COMMAND_BYTES_MAX ((size_t)1 << 30)

static void write_backend_update(struct bytes_writer *writer, const struct backend_update *update)
{
    bytes_write_string(writer, update->group);
    codec_write_endpoint(writer, &update->at);
    bytes_write_u8(writer, update->admin_state);
    bytes_write_u8(writer, update->has_weight);
    bytes_write_u8(writer, update->weight);
    bytes_write_u8(writer, update->has_drain_timeout);
    bytes_write_u32(writer, update->drain_timeout_ms);
}

static void write_purge(struct bytes_writer *writer, const struct backend_purge *purge)
{
    bytes_write_string(writer, purge->group);
    codec_write_endpoint(writer, &purge->at);
    bytes_write_u64(writer, purge->backend_id);
    bytes_write_u64(writer, purge->drain_revision);
}

static void write_init(struct bytes_writer *writer, const struct cluster_init *init)
{
    assert(init->n_nodes <= LIMIT_VOTERS);
    assert(init->n_keys <= INIT_KEYS_MAX);
    bytes_write_copy(writer, init->cluster_id.bytes, sizeof init->cluster_id.bytes);
    codec_write_settings(writer, &init->settings);
    bytes_write_u32(writer, init->n_nodes);
    for (uint32_t i = 0; i < init->n_nodes; i++) {
        codec_write_node(writer, &init->nodes[i]);
    }
    bytes_write_u32(writer, init->n_keys);
    for (uint32_t i = 0; i < init->n_keys; i++) {
        codec_write_key(writer, &init->keys[i]);
    }
    if (init->feature_level > FEATURE_LEVEL_BASE) {
        bytes_write_u8(writer, init->feature_level);
    }
}

static void write_whole_group(struct bytes_writer *writer, const struct server_group *group)
{
    codec_write_group(writer, group);
    bytes_write_u32(writer, group->n_backends);
    for (uint32_t i = 0; i < group->n_backends; i++) {
        codec_write_backend(writer, &group->backends[i]);
    }
}

static void write_object(struct bytes_writer *writer, const struct change *change)
{
    switch ((enum change_kind)change->kind) {
    case CHANGE_NONE:
        break;
    case CHANGE_PUT_SETTINGS:
        codec_write_settings(writer, change->u.settings);
        break;
    case CHANGE_PUT_GROUP:
        write_whole_group(writer, change->u.group);
        break;
    case CHANGE_PUT_LISTENER:
        codec_write_listener(writer, change->u.listener);
        break;
    case CHANGE_PUT_NODE:
        codec_write_node(writer, change->u.node);
        break;
    case CHANGE_PUT_KEY:
        codec_write_key(writer, change->u.key);
        break;
    case CHANGE_DELETE_GROUP:
    case CHANGE_DELETE_LISTENER:
    case CHANGE_DELETE_KEY:
        bytes_write_string(writer, change->u.name);
        break;
    case CHANGE_DELETE_NODE:
        bytes_write_u64(writer, change->u.node_id);
        break;
    case CHANGE_SET_BACKEND:
        write_backend_update(writer, change->u.backend);
        break;
    case CHANGE_PURGE_BACKEND:
        write_purge(writer, change->u.purge);
        break;
    case CHANGE_INIT:
        write_init(writer, change->u.init);
        break;
    case CHANGE_SET_HOLD:
        bytes_write_string(writer, change->u.hold->group);
        bytes_write_u8(writer, change->u.hold->is_on);
        break;
    case CHANGE_RAISE_LEVEL:
        bytes_write_u8(writer, change->u.feature_level);
        break;
    }
}

static void write_change(struct bytes_writer *writer, const struct change *change)
{
    size_t begin = codec_begin(writer);

    bytes_write_u8(writer, change->kind);
    bytes_write_u8(writer, change->has_expected_revision);
    bytes_write_u64(writer, change->has_expected_revision ? change->expected_revision : 0);
    write_object(writer, change);
    codec_end(writer, begin);
}

static void write_body(struct bytes_writer *writer, const struct command *command)
{
    bytes_write_copy(writer, command->request_id.bytes, sizeof command->request_id.bytes);
    bytes_write_u64(writer, (uint64_t)command->wall_ms);
    bytes_write_string(writer, command->actor);
    bytes_write_u8(writer, command->is_forced);
    bytes_write_u32(writer, command->forced_count);
    bytes_write_u32(writer, command->n_changes);
    for (uint32_t i = 0; i < command->n_changes; i++) {
        write_change(writer, &command->changes[i]);
    }
}

int command_encode(const struct command *command, uint8_t **ret_data, size_t *ret_n_bytes,
                   struct errmsg *err)
{
    struct bytes_writer writer;

    if (command->n_changes > LIMIT_CHANGES_PER_COMMAND) {
        return errmsg_set(err, ERR_LIMIT,
                          "the change set holds %" PRIu32
                          " changes, the limit of one command is %d: split it",
                          command->n_changes, LIMIT_CHANGES_PER_COMMAND);
    }
    bytes_writer_init(&writer, COMMAND_BYTES_MAX);
    bytes_write_u32(&writer, COMMAND_MAGIC);
    bytes_write_u8(&writer, CODEC_MAJOR);
    bytes_write_u8(&writer, feature_level_of_command(command));
    bytes_write_u16(&writer, 0);
    size_t begin = codec_begin(&writer);
    write_body(&writer, command);
    codec_end(&writer, begin);
    while (writer.n_bytes % 8 != 0 && !writer.failed) {
        bytes_write_u8(&writer, 0);
    }
    if (writer.n_bytes > LIMIT_COMMAND_BYTES) {
        size_t n_bytes = writer.n_bytes;

        bytes_writer_close(&writer);
        return errmsg_set(err, ERR_LIMIT,
                          "the change set is %zu bytes long, the limit of one command is %d: "
                          "split it",
                          n_bytes, LIMIT_COMMAND_BYTES);
    }
    uint8_t *data = bytes_writer_take(&writer, ret_n_bytes);
    if (data == NULL) {
        return errmsg_set(err, ERR_NOMEM, "no memory to encode a command");
    }
    *ret_data = data;
    return 0;
}

/* --- decoding --- */

/* Zeroed memory for an object of a change; a failed allocation fails the reader and is told from
 * damage by `is_out_of_memory`. */
struct command_reader {
    struct codec_in in;
    bool is_out_of_memory;
    uint8_t unknown_kind; /* a change that this version does not know */
};

static void *new_object(struct command_reader *reader, size_t n, size_t size)
{
    void *object = calloc(n, size);

    if (object == NULL) {
        reader->is_out_of_memory = true;
        reader->in.bytes.failed = true;
    }
    return object;
}

static void read_backend_update(struct codec_in *in, struct backend_update *update)
{
    bytes_read_string(&in->bytes, update->group, sizeof update->group);
    codec_read_endpoint(in, &update->at);
    update->admin_state = bytes_read_u8(&in->bytes);
    update->has_weight = codec_read_bool(in);
    update->weight = bytes_read_u8(&in->bytes);
    update->has_drain_timeout = codec_read_bool(in);
    update->drain_timeout_ms = bytes_read_u32(&in->bytes);
}

static void read_hold_update(struct codec_in *in, struct hold_update *update)
{
    bytes_read_string(&in->bytes, update->group, sizeof update->group);
    update->is_on = codec_read_bool(in);
}

static void read_purge(struct codec_in *in, struct backend_purge *purge)
{
    bytes_read_string(&in->bytes, purge->group, sizeof purge->group);
    codec_read_endpoint(in, &purge->at);
    purge->backend_id = bytes_read_u64(&in->bytes);
    purge->drain_revision = bytes_read_u64(&in->bytes);
}

static void read_init(struct codec_in *in, struct cluster_init *init)
{
    bytes_read_copy(&in->bytes, init->cluster_id.bytes, sizeof init->cluster_id.bytes);
    codec_read_settings(in, &init->settings);
    init->n_nodes = codec_read_count(in, LIMIT_VOTERS);
    for (uint32_t i = 0; i < init->n_nodes; i++) {
        codec_read_node(in, &init->nodes[i]);
    }
    init->n_keys = codec_read_count(in, INIT_KEYS_MAX);
    for (uint32_t i = 0; i < init->n_keys; i++) {
        codec_read_key(in, &init->keys[i]);
    }
    codec_read_level(in, &init->feature_level);
}

/* The smallest encoded backend: no count can ask for more memory than its bytes justify. */
#define BACKEND_BYTES_MIN 13

static void read_whole_group(struct command_reader *reader, struct codec_in *in,
                             struct server_group *group)
{
    codec_read_group(in, group);
    uint32_t n_backends = codec_read_count(in, (uint32_t)(in->bytes.left / BACKEND_BYTES_MIN));
    if (n_backends == 0) {
        return;
    }
    group->backends = new_object(reader, n_backends, sizeof *group->backends);
    if (group->backends == NULL) {
        in->bytes.failed = true;
        return;
    }
    group->n_backends = n_backends;
    for (uint32_t i = 0; i < n_backends; i++) {
        codec_read_backend(in, &group->backends[i]);
    }
}

static char *read_name(struct command_reader *reader, struct codec_in *in)
{
    char *name = new_object(reader, 1, LIMIT_NAME_BYTES + 1);

    if (name != NULL) {
        bytes_read_string(&in->bytes, name, LIMIT_NAME_BYTES + 1);
    }
    return name;
}

/* READ_AS(field, reader function): allocate the object of one change and read it. */
#define READ_AS(field, read)                                              \
    do {                                                                  \
        change->u.field = new_object(reader, 1, sizeof *change->u.field); \
        if (change->u.field != NULL) {                                    \
            read(in, change->u.field);                                    \
        }                                                                 \
    } while (0)

static void read_object(struct command_reader *reader, struct codec_in *in, struct change *change)
{
    switch ((enum change_kind)change->kind) {
    case CHANGE_PUT_SETTINGS:
        READ_AS(settings, codec_read_settings);
        return;
    case CHANGE_PUT_GROUP:
        change->u.group = new_object(reader, 1, sizeof *change->u.group);
        if (change->u.group != NULL) {
            read_whole_group(reader, in, change->u.group);
        }
        return;
    case CHANGE_PUT_LISTENER:
        READ_AS(listener, codec_read_listener);
        return;
    case CHANGE_PUT_NODE:
        READ_AS(node, codec_read_node);
        return;
    case CHANGE_PUT_KEY:
        READ_AS(key, codec_read_key);
        return;
    case CHANGE_DELETE_GROUP:
    case CHANGE_DELETE_LISTENER:
    case CHANGE_DELETE_KEY:
        change->u.name = read_name(reader, in);
        return;
    case CHANGE_DELETE_NODE:
        change->u.node_id = bytes_read_u64(&in->bytes);
        return;
    case CHANGE_SET_BACKEND:
        READ_AS(backend, read_backend_update);
        return;
    case CHANGE_PURGE_BACKEND:
        READ_AS(purge, read_purge);
        return;
    case CHANGE_INIT:
        READ_AS(init, read_init);
        return;
    case CHANGE_SET_HOLD:
        READ_AS(hold, read_hold_update);
        return;
    case CHANGE_RAISE_LEVEL:
        codec_read_level(in, &change->u.feature_level);
        return;
    case CHANGE_NONE:
        break;
    }
    reader->unknown_kind = change->kind;
    in->bytes.failed = true;
    change->kind = CHANGE_NONE;
}

static void read_change(struct command_reader *reader, struct change *change)
{
    struct codec_in block = codec_open(&reader->in);

    change->kind = bytes_read_u8(&block.bytes);
    change->has_expected_revision = codec_read_bool(&block);
    change->expected_revision = bytes_read_u64(&block.bytes);
    if (!change->has_expected_revision && change->expected_revision != 0) {
        block.bytes.failed = true;
    }
    if (block.bytes.failed) {
        change->kind = CHANGE_NONE;
    } else {
        read_object(reader, &block, change);
    }
    codec_shut(&reader->in, &block);
}

static void read_body(struct command_reader *reader, struct command *command)
{
    struct codec_in *in = &reader->in;

    bytes_read_copy(&in->bytes, command->request_id.bytes, sizeof command->request_id.bytes);
    command->wall_ms = (int64_t)bytes_read_u64(&in->bytes);
    bytes_read_string(&in->bytes, command->actor, sizeof command->actor);
    command->is_forced = codec_read_bool(in);
    command->forced_count = bytes_read_u32(&in->bytes);
    uint32_t n_changes = codec_read_count(in, LIMIT_CHANGES_PER_COMMAND);
    if (n_changes == 0 || n_changes > in->bytes.left / 4) {
        in->bytes.failed |= n_changes != 0;
        return;
    }
    command->changes = new_object(reader, n_changes, sizeof *command->changes);
    if (command->changes == NULL) {
        return;
    }
    command->n_changes = n_changes;
    for (uint32_t i = 0; i < n_changes && !in->bytes.failed; i++) {
        read_change(reader, &command->changes[i]);
    }
}

/* The head and the padding; leaves the body in `ret_in`. */
static int open_command(const uint8_t *data, size_t n_bytes, struct codec_in *ret_in,
                        struct errmsg *err)
{
    struct bytes_reader head;

    bytes_reader_init(&head, data, n_bytes);
    uint32_t magic = bytes_read_u32(&head);
    uint8_t major = bytes_read_u8(&head);
    uint8_t minor = bytes_read_u8(&head);
    uint16_t zero = bytes_read_u16(&head);
    uint32_t body_bytes = bytes_read_u32(&head);
    if (!head.failed && magic == COMMAND_MAGIC && !codec_is_understood(major, minor)) {
        return errmsg_set(err, ERR_VERSION,
                          "a command of version %u.%u: this node reads up to %d.%u, update it",
                          major, minor, CODEC_MAJOR, feature_level());
    }
    bool is_sane = !head.failed && magic == COMMAND_MAGIC && zero == 0 &&
                   n_bytes <= LIMIT_COMMAND_BYTES && n_bytes % 8 == 0 && body_bytes <= head.left &&
                   head.left - body_bytes < 8;
    const uint8_t *body = is_sane ? bytes_read_view(&head, body_bytes) : NULL;
    while (is_sane && head.left > 0) {
        is_sane = bytes_read_u8(&head) == 0;
    }
    if (!is_sane) {
        return errmsg_set(err, ERR_CORRUPT, "a damaged command of %zu bytes", n_bytes);
    }
    *ret_in = (struct codec_in){.minor = minor};
    bytes_reader_init(&ret_in->bytes, body, body_bytes);
    return 0;
}

/* Two encodings of one command would be two entries of the log that say the same. */
static bool has_lowest_level(const struct command *command, uint8_t minor)
{
    return minor <= FEATURE_LEVEL_BASE || minor == feature_level_of_command(command) ||
           plant_is("level-old-drops");
}

int command_decode(const uint8_t *data, size_t n_bytes, struct command *ret_command,
                   struct errmsg *err)
{
    struct command_reader reader = {0};
    struct command command = {0};
    int rc = open_command(data, n_bytes, &reader.in, err);

    if (rc != 0) {
        return rc;
    }
    read_body(&reader, &command);
    if (codec_done(&reader.in) && has_lowest_level(&command, reader.in.minor)) {
        *ret_command = command;
        return 0;
    }
    command_close(&command);
    if (reader.is_out_of_memory) {
        return errmsg_set(err, ERR_NOMEM, "no memory to decode a command");
    }
    if (reader.unknown_kind != CHANGE_NONE) {
        return errmsg_set(err, ERR_VERSION,
                          "a command with a change of kind %u, which this version does not know: "
                          "update this node",
                          reader.unknown_kind);
    }
    return errmsg_set(err, ERR_CORRUPT, "a damaged command of %zu bytes", n_bytes);
}
