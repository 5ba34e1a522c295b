#include "agent/lkg_codec.h"

#include <stdlib.h>

#include "common/base/bytes.h"
#include "common/base/limits.h"
#include "common/model/reason.h"

/* major, minor, bytes of one record, number of records; a newer minor may make records longer. */
#define CODEC_MAJOR 1
#define CODEC_MINOR 2 /* of verdicts 1: what guards remember; 2: what the alarm does */
#define HEAD_BYTES 12
#define VERDICT_BYTES_MINOR_0 (4 + 8 + 16 + 1 + 1 + 2 + 8)
#define VERDICT_BYTES_MINOR_1 (VERDICT_BYTES_MINOR_0 + 4 + 1 + 4)
#define VERDICT_BYTES (VERDICT_BYTES_MINOR_1 + 4 + 4)
#define DEADLINE_BYTES (4 + 8 + 8 + 1 + 8)

static void write_head(struct bytes_writer *writer, size_t record_bytes, size_t n_records)
{
    bytes_write_u16(writer, CODEC_MAJOR);
    bytes_write_u16(writer, CODEC_MINOR);
    bytes_write_u32(writer, (uint32_t)record_bytes);
    bytes_write_u32(writer, (uint32_t)n_records);
}

static int finish(struct bytes_writer *writer, uint8_t **ret_data, size_t *ret_n_bytes)
{
    uint8_t *data = bytes_writer_take(writer, ret_n_bytes);

    bytes_writer_close(writer);
    if (data == NULL) {
        return ERR_NOMEM;
    }
    *ret_data = data;
    return 0;
}

int lkg_encode_verdicts(const struct kept_verdict verdicts[], size_t n_verdicts, uint8_t **ret_data,
                        size_t *ret_n_bytes)
{
    struct bytes_writer writer;

    bytes_writer_init(&writer, HEAD_BYTES + n_verdicts * VERDICT_BYTES);
    write_head(&writer, VERDICT_BYTES, n_verdicts);
    for (size_t i = 0; i < n_verdicts; i++) {
        const struct kept_verdict *verdict = &verdicts[i];

        bytes_write_u32(&writer, verdict->row);
        bytes_write_u64(&writer, verdict->birth);
        bytes_write_u64(&writer, verdict->definition_hash.low);
        bytes_write_u64(&writer, verdict->definition_hash.high);
        bytes_write_u8(&writer, verdict->health_state);
        bytes_write_u8(&writer, verdict->reason);
        bytes_write_u16(&writer, verdict->http_status);
        bytes_write_u64(&writer, verdict->since_ms);
        bytes_write_u32(&writer, verdict->ejected_ms);
        bytes_write_u8(&writer, verdict->n_flaps);
        bytes_write_u32(&writer, verdict->shadow_ms);
        bytes_write_u32(&writer, verdict->bad_ms);
        bytes_write_u32(&writer, verdict->alarm_ms);
    }
    return finish(&writer, ret_data, ret_n_bytes);
}

int lkg_encode_deadlines(const struct kept_deadline deadlines[], size_t n_deadlines,
                         uint8_t **ret_data, size_t *ret_n_bytes)
{
    struct bytes_writer writer;

    bytes_writer_init(&writer, HEAD_BYTES + n_deadlines * DEADLINE_BYTES);
    write_head(&writer, DEADLINE_BYTES, n_deadlines);
    for (size_t i = 0; i < n_deadlines; i++) {
        const struct kept_deadline *deadline = &deadlines[i];

        bytes_write_u32(&writer, deadline->row);
        bytes_write_u64(&writer, deadline->birth);
        bytes_write_u64(&writer, deadline->drain_revision);
        bytes_write_u8(&writer, deadline->is_exact);
        bytes_write_u64(&writer, deadline->deadline_boot_ns);
    }
    return finish(&writer, ret_data, ret_n_bytes);
}

/* Leaves the reader at the first record. */
static int read_head(struct bytes_reader *reader, size_t record_bytes_min, size_t *ret_record_bytes,
                     size_t *ret_n_records)
{
    uint16_t major = bytes_read_u16(reader);

    bytes_read_u16(reader);
    *ret_record_bytes = bytes_read_u32(reader);
    *ret_n_records = bytes_read_u32(reader);
    if (reader->failed) {
        return ERR_CORRUPT;
    }
    if (major != CODEC_MAJOR) {
        return ERR_VERSION;
    }
    if (*ret_record_bytes < record_bytes_min || *ret_record_bytes > 4096 ||
        *ret_n_records > LIMIT_ROWS || reader->left != *ret_record_bytes * *ret_n_records) {
        return ERR_CORRUPT;
    }
    return 0;
}

int lkg_decode_verdicts(const uint8_t *data, size_t n_bytes, struct kept_verdict **ret_verdicts,
                        size_t *ret_n_verdicts)
{
    struct bytes_reader reader;
    size_t record_bytes, n_records;

    bytes_reader_init(&reader, data, n_bytes);
    int rc = read_head(&reader, VERDICT_BYTES_MINOR_0, &record_bytes, &n_records);
    if (rc != 0) {
        return rc;
    }
    struct kept_verdict *verdicts = calloc(n_records + 1, sizeof *verdicts);
    if (verdicts == NULL) {
        return ERR_NOMEM;
    }
    for (size_t i = 0; i < n_records; i++) {
        struct kept_verdict *verdict = &verdicts[i];

        verdict->row = bytes_read_u32(&reader);
        verdict->birth = bytes_read_u64(&reader);
        verdict->definition_hash.low = bytes_read_u64(&reader);
        verdict->definition_hash.high = bytes_read_u64(&reader);
        verdict->health_state = bytes_read_u8(&reader);
        verdict->reason = bytes_read_u8(&reader);
        verdict->http_status = bytes_read_u16(&reader);
        verdict->since_ms = bytes_read_u64(&reader);
        size_t n_read = VERDICT_BYTES_MINOR_0;
        if (record_bytes >= VERDICT_BYTES_MINOR_1) {
            verdict->ejected_ms = bytes_read_u32(&reader);
            verdict->n_flaps = bytes_read_u8(&reader);
            verdict->shadow_ms = bytes_read_u32(&reader);
            n_read = VERDICT_BYTES_MINOR_1;
        }
        if (record_bytes >= VERDICT_BYTES) {
            verdict->bad_ms = bytes_read_u32(&reader);
            verdict->alarm_ms = bytes_read_u32(&reader);
            n_read = VERDICT_BYTES;
        }
        bytes_read_view(&reader, record_bytes - n_read);
        if (verdict->row >= LIMIT_ROWS || (verdict->health_state != HEALTH_HEALTHY &&
                                           verdict->health_state != HEALTH_UNHEALTHY)) {
            free(verdicts);
            return ERR_CORRUPT;
        }
    }
    *ret_verdicts = verdicts;
    *ret_n_verdicts = n_records;
    return 0;
}

int lkg_decode_deadlines(const uint8_t *data, size_t n_bytes, struct kept_deadline **ret_deadlines,
                         size_t *ret_n_deadlines)
{
    struct bytes_reader reader;
    size_t record_bytes, n_records;

    bytes_reader_init(&reader, data, n_bytes);
    int rc = read_head(&reader, DEADLINE_BYTES, &record_bytes, &n_records);
    if (rc != 0) {
        return rc;
    }
    struct kept_deadline *deadlines = calloc(n_records + 1, sizeof *deadlines);
    if (deadlines == NULL) {
        return ERR_NOMEM;
    }
    for (size_t i = 0; i < n_records; i++) {
        struct kept_deadline *deadline = &deadlines[i];

        deadline->row = bytes_read_u32(&reader);
        deadline->birth = bytes_read_u64(&reader);
        deadline->drain_revision = bytes_read_u64(&reader);
        deadline->is_exact = bytes_read_u8(&reader) != 0;
        deadline->deadline_boot_ns = bytes_read_u64(&reader);
        bytes_read_view(&reader, record_bytes - DEADLINE_BYTES);
        if (deadline->row >= LIMIT_ROWS) {
            free(deadlines);
            return ERR_CORRUPT;
        }
    }
    *ret_deadlines = deadlines;
    *ret_n_deadlines = n_records;
    return 0;
}
