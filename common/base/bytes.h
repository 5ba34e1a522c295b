/* Reading and writing bytes with a bound: the base of every codec of ours.
 *
 * Integers are little-endian and of fixed width. A reader or writer that has failed stays failed
 * and does nothing more, so a codec checks once, at its end. */
#ifndef JURY_BASE_BYTES_H
#define JURY_BASE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bytes_reader {
    const uint8_t *at;
    size_t left;
    bool failed;
};

/* data: kept until the last read. */
void bytes_reader_init(struct bytes_reader *reader, const void *data, size_t n_bytes);
uint8_t bytes_read_u8(struct bytes_reader *reader);
uint16_t bytes_read_u16(struct bytes_reader *reader);
uint32_t bytes_read_u32(struct bytes_reader *reader);
uint64_t bytes_read_u64(struct bytes_reader *reader);
/* A view of the next n bytes, valid as long as the data; NULL when fewer are left (n = 0 is a
 * non-NULL pointer). */
const uint8_t *bytes_read_view(struct bytes_reader *reader, size_t n_bytes);
void bytes_read_copy(struct bytes_reader *reader, void *to, size_t n_bytes);
/* u16 length and that many bytes, as a C string into `text`. Fails when it does not fit or holds a
 * NUL. */
void bytes_read_string(struct bytes_reader *reader, char *text, size_t text_bytes);
/* Nothing failed and nothing is left. */
bool bytes_reader_done(const struct bytes_reader *reader);

/* A growing buffer. Fails (and stays failed) when memory runs out or the limit is passed. */
struct bytes_writer {
    uint8_t *data; /* owned; NULL when empty */
    size_t n_bytes;
    size_t capacity_bytes;
    size_t limit_bytes;
    bool failed;
};

void bytes_writer_init(struct bytes_writer *writer, size_t limit_bytes);
void bytes_writer_close(struct bytes_writer *writer);
void bytes_write_u8(struct bytes_writer *writer, uint8_t value);
void bytes_write_u16(struct bytes_writer *writer, uint16_t value);
void bytes_write_u32(struct bytes_writer *writer, uint32_t value);
void bytes_write_u64(struct bytes_writer *writer, uint64_t value);
void bytes_write_copy(struct bytes_writer *writer, const void *data, size_t n_bytes);
/* text shorter than 64 KiB. */
void bytes_write_string(struct bytes_writer *writer, const char *text);
/* Give the buffer to the caller, who frees it with free(); the writer is empty afterwards.
 * NULL when it failed. */
uint8_t *bytes_writer_take(struct bytes_writer *writer, size_t *ret_n_bytes);

#endif
