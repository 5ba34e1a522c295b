#include "agent/store/lkg.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/store/files.h"
#include "common/base/bytes.h"
#include "common/base/hash.h"
#include "common/base/limits.h"

#define LKG_MAGIC UINT32_C(0x474b4c4a) /* "JLKG" */
#define LKG_MAJOR 1
#define LKG_MINOR 0
#define LKG_BYTES_MAX ((size_t)LIMIT_SNAPSHOT_BYTES * 2)
#define LKG_CHUNKS_MAX 65536
#define LKG_SUM_BYTES 16

/* Fixed: the sum is against damage. Whoever may write the file may write anything into it. */
static const struct hash_key sum_key = {UINT64_C(0x6c6b672d66696c65), UINT64_C(0x6a7572792d766f74)};

void lkg_close(struct lkg *lkg)
{
    free(lkg->chunks);
    free(lkg->data);
    *lkg = (struct lkg){0};
}

int lkg_encode(const struct lkg *lkg, uint8_t **ret_data, size_t *ret_n_bytes, struct errmsg *err)
{
    const struct lkg_head *head = &lkg->head;
    const struct lkg_chunk *chunks = lkg->chunks;
    size_t n_chunks = lkg->n_chunks;
    struct bytes_writer writer;

    bytes_writer_init(&writer, LKG_BYTES_MAX);
    bytes_write_u32(&writer, LKG_MAGIC);
    bytes_write_u16(&writer, LKG_MAJOR);
    bytes_write_u16(&writer, LKG_MINOR);
    bytes_write_copy(&writer, head->cluster_id.bytes, CLUSTER_ID_BYTES);
    bytes_write_u64(&writer, head->node_id);
    bytes_write_u64(&writer, head->revision);
    bytes_write_u64(&writer, (uint64_t)head->wall_ms);
    bytes_write_copy(&writer, head->boot_id, sizeof head->boot_id);
    bytes_write_u32(&writer, (uint32_t)n_chunks);
    for (size_t i = 0; i < n_chunks && n_chunks <= LKG_CHUNKS_MAX; i++) {
        bytes_write_u16(&writer, chunks[i].kind);
        bytes_write_u32(&writer, (uint32_t)chunks[i].n_bytes);
        bytes_write_copy(&writer, chunks[i].data, chunks[i].n_bytes);
    }
    struct hash128 sum = hash_128(&sum_key, writer.data, writer.n_bytes);
    bytes_write_u64(&writer, sum.low);
    bytes_write_u64(&writer, sum.high);
    if (writer.failed || n_chunks > LKG_CHUNKS_MAX) {
        bytes_writer_close(&writer);
        return errmsg_set(err, ERR_LIMIT,
                          "last-known-good file: %zu chunks do not fit in %zu bytes or memory",
                          n_chunks, LKG_BYTES_MAX);
    }
    *ret_data = bytes_writer_take(&writer, ret_n_bytes);
    return 0;
}

static int decode_head(struct bytes_reader *reader, struct lkg_head *head, struct errmsg *err)
{
    if (bytes_read_u32(reader) != LKG_MAGIC) {
        return errmsg_set(err, ERR_CORRUPT, "it is not a last-known-good file");
    }
    uint16_t major = bytes_read_u16(reader);
    bytes_read_u16(reader); /* a later minor adds kinds of chunks only */
    if (major != LKG_MAJOR) {
        return errmsg_set(err, ERR_VERSION, "version %u is not understood, this program reads %d",
                          major, LKG_MAJOR);
    }
    bytes_read_copy(reader, head->cluster_id.bytes, CLUSTER_ID_BYTES);
    head->node_id = bytes_read_u64(reader);
    head->revision = bytes_read_u64(reader);
    head->wall_ms = (int64_t)bytes_read_u64(reader);
    bytes_read_copy(reader, head->boot_id, sizeof head->boot_id);
    return 0;
}

int lkg_decode(uint8_t *data, size_t n_bytes, struct lkg *ret_lkg, struct errmsg *err)
{
    struct lkg lkg = {.data = data, .n_bytes = n_bytes};
    struct bytes_reader reader;

    if (n_bytes < LKG_SUM_BYTES) {
        return errmsg_set(err, ERR_CORRUPT, "it is cut off");
    }
    bytes_reader_init(&reader, data, n_bytes - LKG_SUM_BYTES);
    int result = decode_head(&reader, &lkg.head, err);
    if (result != 0) {
        return result;
    }
    struct hash128 sum = hash_128(&sum_key, data, n_bytes - LKG_SUM_BYTES);
    struct bytes_reader tail;
    bytes_reader_init(&tail, data + n_bytes - LKG_SUM_BYTES, LKG_SUM_BYTES);
    if (bytes_read_u64(&tail) != sum.low || bytes_read_u64(&tail) != sum.high) {
        return errmsg_set(err, ERR_CORRUPT, "its checksum is wrong");
    }
    uint32_t n_chunks = bytes_read_u32(&reader);
    if (reader.failed || n_chunks > LKG_CHUNKS_MAX || n_chunks > reader.left / 6) {
        return errmsg_set(err, ERR_CORRUPT, "it counts more chunks than it can hold");
    }
    lkg.chunks = calloc(n_chunks + 1, sizeof *lkg.chunks);
    if (lkg.chunks == NULL) {
        return errmsg_set(err, ERR_NOMEM, "no memory for %u chunks", n_chunks);
    }
    for (lkg.n_chunks = 0; lkg.n_chunks < n_chunks; lkg.n_chunks++) {
        struct lkg_chunk *chunk = &lkg.chunks[lkg.n_chunks];

        chunk->kind = bytes_read_u16(&reader);
        chunk->n_bytes = bytes_read_u32(&reader);
        chunk->data = bytes_read_view(&reader, chunk->n_bytes);
    }
    if (!bytes_reader_done(&reader)) {
        free(lkg.chunks);
        return errmsg_set(err, ERR_CORRUPT, "its chunks do not fill it");
    }
    *ret_lkg = lkg;
    return 0;
}

struct paths {
    char newest[FILES_PATH_BYTES];
    char older[FILES_PATH_BYTES];
    char fresh[FILES_PATH_BYTES];
};

static int make_paths(const char *data_dir, struct paths *paths, struct errmsg *err)
{
    int result = files_path(paths->newest, data_dir, "lkg", err);

    if (result == 0) {
        result = files_path(paths->older, data_dir, "lkg.old", err);
    }
    return result != 0 ? result : files_path(paths->fresh, data_dir, "lkg.new", err);
}

int lkg_write(const char *data_dir, const uint8_t *data, size_t n_bytes, struct errmsg *err)
{
    struct paths paths;
    int result = make_paths(data_dir, &paths, err);

    if (result != 0) {
        return result;
    }
    unlink(paths.fresh); /* of a writer that was killed */
    result = files_create(paths.fresh, data, n_bytes, err);
    if (result != 0) {
        return result;
    }
    /* Between the two renames only lkg.old and lkg.new are there: lkg_read knows that. */
    if (rename(paths.newest, paths.older) != 0 && errno != ENOENT) {
        return errmsg_set(err, err_from_errno(errno), "cannot rename %s: %s", paths.newest,
                          strerrordesc_np(errno));
    }
    return files_rename(paths.fresh, paths.newest, data_dir, err);
}

int lkg_read(const char *data_dir, struct lkg *ret_lkg, struct errmsg *err)
{
    struct paths paths;
    int result = make_paths(data_dir, &paths, err);
    const char *order[] = {paths.newest, paths.fresh, paths.older};
    int worst = ERR_NOTFOUND;

    if (result != 0) {
        return result;
    }
    for (size_t i = 0; i < 3; i++) {
        struct errmsg why = {{0}};
        uint8_t *data = NULL;
        size_t n_bytes = 0;

        if (i == 1 && files_exists(paths.newest)) {
            continue; /* an unfinished lkg.new beside a whole or damaged lkg says nothing */
        }
        result = files_read(order[i], LKG_BYTES_MAX, &data, &n_bytes, &why);
        if (result == 0) {
            result = lkg_decode(data, n_bytes, ret_lkg, &why);
        }
        if (result == 0) {
            return 0;
        }
        free(data);
        if (result != ERR_NOTFOUND && worst == ERR_NOTFOUND) {
            worst = errmsg_set(err, result, "%s: %s", order[i], why.text);
        }
    }
    if (worst == ERR_NOTFOUND) {
        errmsg_set(err, worst, "data directory %s: no last-known-good file was ever written",
                   data_dir);
    }
    return worst;
}
