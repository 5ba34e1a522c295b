#include "common/base/bytes.h"

#include <stdlib.h>
#include <string.h>

void bytes_reader_init(struct bytes_reader *reader, const void *data, size_t n_bytes)
{
    static const uint8_t nothing[1];

    *reader = (struct bytes_reader){.at = data != NULL ? data : nothing, .left = n_bytes};
}

const uint8_t *bytes_read_view(struct bytes_reader *reader, size_t n_bytes)
{
    const uint8_t *at = reader->at;

    if (reader->failed || n_bytes > reader->left) {
        reader->failed = true;
        return NULL;
    }
    reader->at += n_bytes;
    reader->left -= n_bytes;
    return at;
}

static uint64_t read_little(struct bytes_reader *reader, size_t n_bytes)
{
    const uint8_t *at = bytes_read_view(reader, n_bytes);
    uint64_t value = 0;

    if (at == NULL) {
        return 0;
    }
    for (size_t i = n_bytes; i > 0; i--) {
        value = value << 8 | at[i - 1];
    }
    return value;
}

uint8_t bytes_read_u8(struct bytes_reader *reader)
{
    return (uint8_t)read_little(reader, 1);
}

uint16_t bytes_read_u16(struct bytes_reader *reader)
{
    return (uint16_t)read_little(reader, 2);
}

uint32_t bytes_read_u32(struct bytes_reader *reader)
{
    return (uint32_t)read_little(reader, 4);
}

uint64_t bytes_read_u64(struct bytes_reader *reader)
{
    return read_little(reader, 8);
}

void bytes_read_copy(struct bytes_reader *reader, void *to, size_t n_bytes)
{
    const uint8_t *at = bytes_read_view(reader, n_bytes);

    if (at != NULL) {
        memcpy(to, at, n_bytes);
    }
}

void bytes_read_string(struct bytes_reader *reader, char *text, size_t text_bytes)
{
    size_t n_bytes = bytes_read_u16(reader);
    const uint8_t *at = bytes_read_view(reader, n_bytes);

    if (at == NULL || n_bytes >= text_bytes || memchr(at, 0, n_bytes) != NULL) {
        reader->failed = true;
        return;
    }
    memcpy(text, at, n_bytes);
    text[n_bytes] = '\0';
}

bool bytes_reader_done(const struct bytes_reader *reader)
{
    return !reader->failed && reader->left == 0;
}

void bytes_writer_init(struct bytes_writer *writer, size_t limit_bytes)
{
    *writer = (struct bytes_writer){.limit_bytes = limit_bytes};
}

void bytes_writer_close(struct bytes_writer *writer)
{
    free(writer->data);
    *writer = (struct bytes_writer){.limit_bytes = writer->limit_bytes};
}

static uint8_t *reserve(struct bytes_writer *writer, size_t n_bytes)
{
    if (writer->failed || n_bytes > writer->limit_bytes - writer->n_bytes) {
        writer->failed = true;
        return NULL;
    }
    if (n_bytes > writer->capacity_bytes - writer->n_bytes) {
        size_t capacity = writer->capacity_bytes < 64 ? 64 : writer->capacity_bytes;

        while (capacity < writer->n_bytes + n_bytes) {
            capacity *= 2;
        }
        uint8_t *data = realloc(writer->data, capacity);
        if (data == NULL) {
            writer->failed = true;
            return NULL;
        }
        writer->data = data;
        writer->capacity_bytes = capacity;
    }
    uint8_t *at = writer->data + writer->n_bytes;
    writer->n_bytes += n_bytes;
    return at;
}

static void write_little(struct bytes_writer *writer, uint64_t value, size_t n_bytes)
{
    uint8_t *at = reserve(writer, n_bytes);

    if (at == NULL) {
        return;
    }
    for (size_t i = 0; i < n_bytes; i++) {
        at[i] = (uint8_t)(value >> (8 * i));
    }
}

void bytes_write_u8(struct bytes_writer *writer, uint8_t value)
{
    write_little(writer, value, 1);
}

void bytes_write_u16(struct bytes_writer *writer, uint16_t value)
{
    write_little(writer, value, 2);
}

void bytes_write_u32(struct bytes_writer *writer, uint32_t value)
{
    write_little(writer, value, 4);
}

void bytes_write_u64(struct bytes_writer *writer, uint64_t value)
{
    write_little(writer, value, 8);
}

void bytes_write_copy(struct bytes_writer *writer, const void *data, size_t n_bytes)
{
    uint8_t *at = reserve(writer, n_bytes);

    if (at != NULL && n_bytes > 0) {
        memcpy(at, data, n_bytes);
    }
}

void bytes_write_string(struct bytes_writer *writer, const char *text)
{
    size_t n_bytes = strlen(text);

    if (n_bytes > UINT16_MAX) {
        writer->failed = true;
        return;
    }
    bytes_write_u16(writer, (uint16_t)n_bytes);
    bytes_write_copy(writer, text, n_bytes);
}

uint8_t *bytes_writer_take(struct bytes_writer *writer, size_t *ret_n_bytes)
{
    uint8_t *data = writer->data;

    if (writer->failed) {
        bytes_writer_close(writer);
        return NULL;
    }
    if (data == NULL) {
        data = malloc(1);
        if (data == NULL) {
            return NULL;
        }
    }
    *ret_n_bytes = writer->n_bytes;
    *writer = (struct bytes_writer){.limit_bytes = writer->limit_bytes};
    return data;
}
