#include "agent/store/snapshot_blob.h"

#include <stdlib.h>
#include <string.h>

#include "agent/store/raft_frame.h"
#include "common/base/bytes.h"
#include "common/base/hash.h"
#include "common/base/limits.h"

#define IMAGE_MAGIC UINT32_C(0x504e534a) /* "JSNP" */
#define IMAGE_MAJOR 1
#define IMAGE_MINOR 0
#define IMAGE_HEAD_BYTES 16
#define IMAGE_CHUNK_HEAD_BYTES 12
#define CHUNKS_MAX 65536

/* Fixed: the sums are against damage; who may write the directory may write anything. */
static const struct hash_key sum_key = {UINT64_C(0x736e617073686f74), UINT64_C(0x6a7572792d696d67)};

static void put_little(uint8_t **at, uint64_t value, size_t n_bytes)
{
    for (size_t i = 0; i < n_bytes; i++) {
        *(*at)++ = (uint8_t)(value >> (8 * i));
    }
}

int snapshot_image_make(const struct store_fsm *fsm, struct raft_buffer *ret_image,
                        struct errmsg *err)
{
    size_t n_chunks = fsm->n_chunks(fsm->user);
    size_t n_bytes = IMAGE_HEAD_BYTES;

    for (size_t i = 0; i < n_chunks; i++) {
        n_bytes += IMAGE_CHUNK_HEAD_BYTES + fsm->chunk_at(fsm->user, i).n_bytes;
    }
    n_bytes = (n_bytes + 7) / 8 * 8;
    if (n_bytes > LIMIT_SNAPSHOT_BYTES || n_chunks > CHUNKS_MAX) {
        return errmsg_set(err, ERR_LIMIT, "snapshot: %zu bytes in %zu chunks, the limit is %d",
                          n_bytes, n_chunks, LIMIT_SNAPSHOT_BYTES);
    }
    uint8_t *image = raft_malloc(n_bytes);
    if (image == NULL) {
        return errmsg_set(err, ERR_NOMEM, "snapshot: no memory for %zu bytes", n_bytes);
    }
    uint8_t *at = image;
    put_little(&at, IMAGE_MAGIC, 4);
    put_little(&at, IMAGE_MAJOR, 2);
    put_little(&at, IMAGE_MINOR, 2);
    put_little(&at, n_chunks, 4);
    put_little(&at, hash_64(&sum_key, image, 12) & UINT32_MAX, 4);
    for (size_t i = 0; i < n_chunks; i++) {
        struct store_chunk chunk = fsm->chunk_at(fsm->user, i);

        put_little(&at, chunk.n_bytes, 4);
        put_little(&at, hash_64(&sum_key, chunk.data, chunk.n_bytes), 8);
        memcpy(at, chunk.data, chunk.n_bytes);
        at += chunk.n_bytes;
    }
    memset(at, 0, n_bytes - (size_t)(at - image));
    *ret_image = (struct raft_buffer){.base = image, .len = n_bytes};
    return 0;
}

static int read_image_head(struct bytes_reader *reader, const void *image, uint32_t *ret_n_chunks,
                           struct errmsg *err)
{
    if (reader->left < IMAGE_HEAD_BYTES || bytes_read_u32(reader) != IMAGE_MAGIC) {
        return errmsg_set(err, ERR_CORRUPT, "snapshot: it is not one of this program's");
    }
    uint16_t major = bytes_read_u16(reader);
    bytes_read_u16(reader); /* a later minor is for the chunks to tell */
    if (major != IMAGE_MAJOR) {
        return errmsg_set(err, ERR_VERSION,
                          "snapshot: version %u is not understood, this program reads %d", major,
                          IMAGE_MAJOR);
    }
    *ret_n_chunks = bytes_read_u32(reader);
    uint32_t sum = bytes_read_u32(reader);
    if (sum != (uint32_t)hash_64(&sum_key, image, 12) || *ret_n_chunks > CHUNKS_MAX ||
        *ret_n_chunks > reader->left / IMAGE_CHUNK_HEAD_BYTES) {
        return errmsg_set(err, ERR_CORRUPT, "snapshot: its head is damaged");
    }
    return 0;
}

int snapshot_image_restore(const struct store_fsm *fsm, const void *image, size_t n_bytes,
                           struct errmsg *err)
{
    struct bytes_reader reader;
    uint32_t n_chunks = 0;

    bytes_reader_init(&reader, image, n_bytes);
    int result = read_image_head(&reader, image, &n_chunks, err);
    if (result != 0) {
        return result;
    }
    struct store_chunk *chunks = calloc((size_t)n_chunks + 1, sizeof *chunks);
    if (chunks == NULL) {
        return errmsg_set(err, ERR_NOMEM, "snapshot: no memory for %u chunks", n_chunks);
    }
    for (uint32_t i = 0; i < n_chunks && result == 0; i++) {
        uint32_t chunk_bytes = bytes_read_u32(&reader);
        uint64_t sum = bytes_read_u64(&reader);

        chunks[i].data = bytes_read_view(&reader, chunk_bytes);
        chunks[i].n_bytes = chunk_bytes;
        if (chunks[i].data == NULL || hash_64(&sum_key, chunks[i].data, chunk_bytes) != sum) {
            result = errmsg_set(err, ERR_CORRUPT, "snapshot: chunk %u of %u is damaged", i + 1,
                                n_chunks);
        }
    }
    if (result == 0 && reader.left >= 8) {
        result = errmsg_set(err, ERR_CORRUPT, "snapshot: %zu bytes too many", reader.left);
    }
    if (result == 0) {
        result = fsm->restore(fsm->user, chunks, n_chunks, err);
    }
    free(chunks);
    return result;
}

int snapshot_blob_make(const struct raft_install_snapshot *args, uint8_t **ret_blob,
                       size_t *ret_n_bytes)
{
    struct raft_buffer conf;
    struct bytes_writer writer;

    if (raft_configuration_encode(&args->conf, &conf) != 0) {
        return ERR_NOMEM;
    }
    bytes_writer_init(&writer, LIMIT_SNAPSHOT_BYTES + LIMIT_CHUNK_BYTES);
    bytes_write_u32(&writer, (uint32_t)conf.len);
    bytes_write_copy(&writer, conf.base, conf.len);
    bytes_write_copy(&writer, args->data.base, args->data.len);
    raft_free(conf.base);
    *ret_blob = bytes_writer_take(&writer, ret_n_bytes);
    return *ret_blob == NULL ? ERR_NOMEM : 0;
}

int snapshot_blob_parse(const uint8_t *blob, size_t n_bytes, struct raft_install_snapshot *args)
{
    struct bytes_reader reader;

    bytes_reader_init(&reader, blob, n_bytes);
    uint32_t conf_bytes = bytes_read_u32(&reader);
    const uint8_t *conf = bytes_read_view(&reader, conf_bytes);
    if (conf == NULL || reader.left == 0 || reader.left % 8 != 0) {
        return ERR_CORRUPT;
    }
    if (!frame_decode_configuration(conf, conf_bytes, &args->conf)) {
        return ERR_CORRUPT;
    }
    args->data.len = reader.left;
    args->data.base = raft_malloc(reader.left);
    if (args->data.base == NULL) {
        raft_configuration_close(&args->conf);
        return ERR_NOMEM;
    }
    memcpy(args->data.base, reader.at, reader.left);
    return 0;
}
