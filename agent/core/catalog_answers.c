#include "agent/core/catalog_answers.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/model/feature_level.h"

/* An answer takes at most about 620 bytes, so a chunk of this many fits. */
#define ANSWERS_PER_CHUNK 256

void answers_close(struct answers *answers)
{
    for (uint32_t i = 0; i < answers->n_answers; i++) {
        free(answers->ring[i].message);
    }
    free(answers->ring);
    idmap_close(&answers->index);
    *answers = (struct answers){0};
}

static bool is_none(const struct request_id *id)
{
    static const struct request_id none;

    return memcmp(id, &none, sizeof none) == 0;
}

static uint64_t id_hash(const struct request_id *id)
{
    return catalog_hash(id->bytes, sizeof id->bytes).low;
}

static const struct answer *find(const struct answers *answers, const struct request_id *id)
{
    size_t cursor = 0;
    uint64_t hash = id_hash(id);
    uint64_t at;

    while ((at = idmap_next(&answers->index, hash, &cursor)) != IDMAP_NONE) {
        if (memcmp(&answers->ring[at].id, id, sizeof *id) == 0) {
            return &answers->ring[at];
        }
    }
    return NULL;
}

bool answers_find(const struct answers *answers, const struct request_id *id,
                  struct apply_answer *ret_answer)
{
    const struct answer *answer = is_none(id) ? NULL : find(answers, id);

    if (answer == NULL) {
        return false;
    }
    *ret_answer = (struct apply_answer){.err = answer->err,
                                        .revision = answer->revision,
                                        .is_repeat = true,
                                        .change_index = answer->change_index};
    if (answer->message != NULL) {
        strcpy(ret_answer->message.text, answer->message);
    }
    memcpy(ret_answer->outcomes, answer->outcomes, sizeof answer->outcomes);
    return true;
}

static void write_answer(struct bytes_writer *writer, const struct answer *answer)
{
    size_t begin = codec_begin(writer);

    bytes_write_copy(writer, answer->id.bytes, sizeof answer->id.bytes);
    bytes_write_u32(writer, (uint32_t)answer->err);
    bytes_write_u64(writer, answer->revision);
    bytes_write_u32(writer, answer->change_index);
    bytes_write_string(writer, answer->message != NULL ? answer->message : "");
    bytes_write_copy(writer, answer->outcomes, sizeof answer->outcomes);
    codec_end(writer, begin);
}

static struct hash128 run_on(struct hash128 running, const struct answer *answer)
{
    struct bytes_writer writer;

    bytes_writer_init(&writer, LIMIT_CHUNK_BYTES);
    bytes_write_u64(&writer, running.low);
    bytes_write_u64(&writer, running.high);
    write_answer(&writer, answer);
    if (writer.failed) {
        abort(); /* no memory */
    }
    running = catalog_hash(writer.data, writer.n_bytes);
    bytes_writer_close(&writer);
    return running;
}

/* answer: its message is taken. */
static void store(struct answers *answers, const struct answer *answer)
{
    struct answer *place;

    if (answers->ring == NULL) {
        answers->ring = catalog_alloc(LIMIT_REQUEST_IDS, sizeof *answers->ring);
    }
    place = &answers->ring[answers->next];
    if (answers->n_answers == LIMIT_REQUEST_IDS) {
        bool was_there = idmap_remove(&answers->index, id_hash(&place->id), answers->next);

        assert(was_there);
        free(place->message);
    } else {
        answers->n_answers++;
    }
    *place = *answer;
    if (idmap_add(&answers->index, id_hash(&answer->id), answers->next) != 0) {
        abort();
    }
    answers->next = (answers->next + 1) % LIMIT_REQUEST_IDS;
}

void answers_remember(struct answers *answers, const struct request_id *id,
                      const struct apply_answer *answer)
{
    struct answer entry = {.id = *id,
                           .err = answer->err,
                           .revision = answer->revision,
                           .change_index = answer->change_index};

    if (is_none(id)) {
        return;
    }
    if (answer->err != 0) {
        entry.message = catalog_alloc(strlen(answer->message.text) + 1, 1);
        strcpy(entry.message, answer->message.text);
    }
    memcpy(entry.outcomes, answer->outcomes, sizeof entry.outcomes);
    answers->running = run_on(answers->running, &entry);
    store(answers, &entry);
}

/* --- chunks --- */

uint32_t answers_n_chunks(const struct answers *answers)
{
    uint32_t n = (answers->n_answers + ANSWERS_PER_CHUNK - 1) / ANSWERS_PER_CHUNK;

    return n == 0 ? 1 : n;
}

struct part_chunk answers_chunk(const struct answers *answers, uint32_t index)
{
    uint32_t first = index * ANSWERS_PER_CHUNK;
    uint32_t left = answers->n_answers - first;
    uint32_t n = left < ANSWERS_PER_CHUNK ? left : ANSWERS_PER_CHUNK;
    uint32_t oldest = answers->n_answers == LIMIT_REQUEST_IDS ? answers->next : 0;
    struct bytes_writer writer;

    assert(index < answers_n_chunks(answers));
    chunk_begin(&writer, PART_ANSWERS, FEATURE_LEVEL_BASE);
    bytes_write_u32(&writer, index);
    bytes_write_u32(&writer, answers_n_chunks(answers));
    bytes_write_u64(&writer, answers->running.low);
    bytes_write_u64(&writer, answers->running.high);
    bytes_write_u32(&writer, n);
    for (uint32_t i = 0; i < n; i++) {
        write_answer(&writer, &answers->ring[(oldest + first + i) % LIMIT_REQUEST_IDS]);
    }
    chunk_seal(&writer);
    return chunk_take(&writer);
}

static int damaged(struct errmsg *err)
{
    return errmsg_set(err, ERR_CORRUPT, "catalog: the answers to earlier requests are damaged");
}

static bool read_answer(struct codec_in *in, struct answers *answers)
{
    struct codec_in block = codec_open(in);
    struct answer answer = {0};
    struct errmsg message = {0};

    bytes_read_copy(&block.bytes, answer.id.bytes, sizeof answer.id.bytes);
    answer.err = (int32_t)bytes_read_u32(&block.bytes);
    answer.revision = bytes_read_u64(&block.bytes);
    answer.change_index = bytes_read_u32(&block.bytes);
    bytes_read_string(&block.bytes, message.text, sizeof message.text);
    if (block.bytes.left > 0) { /* an older writer kept none */
        bytes_read_copy(&block.bytes, answer.outcomes, sizeof answer.outcomes);
    }
    codec_shut(in, &block);
    if (in->bytes.failed || is_none(&answer.id) || answers->n_answers == LIMIT_REQUEST_IDS) {
        return false;
    }
    if (answer.err != 0) {
        answer.message = catalog_alloc(strlen(message.text) + 1, 1);
        strcpy(answer.message, message.text);
    }
    store(answers, &answer);
    return true;
}

/* Reads the chunk of number `wanted`, when `view` is that one. Returns 1, 0 = another, or ERR_*. */
static int read_chunk(struct answers *answers, struct catalog_chunk_view view, uint32_t wanted,
                      uint32_t *ret_n_chunks)
{
    struct chunk_in chunk;

    if (!chunk_unseal(&view) || chunk_open(&view, &chunk, NULL) != 0) {
        return ERR_CORRUPT;
    }
    struct bytes_reader *bytes = &chunk.body.bytes;
    if (bytes_read_u32(bytes) != wanted) {
        return bytes->failed ? ERR_CORRUPT : 0;
    }
    *ret_n_chunks = bytes_read_u32(bytes);
    answers->running.low = bytes_read_u64(bytes);
    answers->running.high = bytes_read_u64(bytes);
    uint32_t n = codec_read_count(&chunk.body, ANSWERS_PER_CHUNK);
    for (uint32_t i = 0; i < n; i++) {
        if (!read_answer(&chunk.body, answers)) {
            return ERR_CORRUPT;
        }
    }
    return codec_done(&chunk.body) ? 1 : ERR_CORRUPT;
}

static int read_number(struct answers *answers, const struct catalog_chunk_view chunks[],
                       size_t n_chunks, uint32_t wanted, uint32_t *ret_n_chunks)
{
    for (size_t i = 0; i < n_chunks; i++) {
        struct chunk_in chunk;

        if (chunk_open(&chunks[i], &chunk, NULL) != 0 || chunk.kind != PART_ANSWERS) {
            continue;
        }
        int rc = read_chunk(answers, chunks[i], wanted, ret_n_chunks);
        if (rc != 0) {
            return rc;
        }
    }
    return 0;
}

int answers_restore(struct answers *answers, const struct catalog_chunk_view chunks[],
                    size_t n_chunks, struct errmsg *err)
{
    uint32_t n_answer_chunks = 1;

    for (uint32_t wanted = 0; wanted < n_answer_chunks; wanted++) {
        int rc = read_number(answers, chunks, n_chunks, wanted, &n_answer_chunks);

        if (rc < 0 || (rc == 0 && wanted > 0)) {
            return damaged(err);
        }
        if (rc == 0) {
            return 0;
        }
        if (n_answer_chunks > LIMIT_REQUEST_IDS / ANSWERS_PER_CHUNK) {
            return damaged(err);
        }
    }
    return 0;
}
