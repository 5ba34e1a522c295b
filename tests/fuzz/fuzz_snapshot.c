/* A snapshot of any bytes: first as it is, then under a header that fits, so that what lies behind
 * the hashes is reached too. What is taken must give back the same snapshot.
 *
 * Input: chunks, each a 16-bit length and its bytes. */
#include <stdlib.h>
#include <string.h>

#include "agent/core/catalog_chunks.h"
#include "tests/lib/catalog_builder.h"

#define CHUNKS_MAX 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t split(const uint8_t *data, size_t size, struct catalog_chunk_view chunks[CHUNKS_MAX])
{
    struct bytes_reader reader;
    size_t n = 0;

    bytes_reader_init(&reader, data, size);
    while (n < CHUNKS_MAX && reader.left > 2) {
        size_t n_bytes = bytes_read_u16(&reader);

        n_bytes = n_bytes < reader.left ? n_bytes : reader.left;
        chunks[n++] = (struct catalog_chunk_view){bytes_read_view(&reader, n_bytes), n_bytes};
    }
    return n;
}

/* A header for these chunks in the place of the first. */
static struct catalog *make_header(struct catalog_chunk_view chunks[], size_t n)
{
    struct catalog *fields = catalog_alloc(1, sizeof *fields);

    fields->revision = 5;
    for (size_t i = 1; i < n; i++) {
        fields->content =
            hash128_add(fields->content, catalog_hash(chunks[i].data, chunks[i].n_bytes));
    }
    fields->groups.n_chunks = (uint32_t)n - 1 - 3;
    fields->chain = catalog_chain(fields);
    catalog_encode_header(fields);
    chunks[0] = (struct catalog_chunk_view){fields->header.data, fields->header.n_bytes};
    return fields;
}

static void use(struct catalog_state *state)
{
    struct catalog_snapshot *snapshot = catalog_state_snapshot(state);
    size_t n = catalog_snapshot_n_chunks(snapshot);
    struct catalog_chunk_view *views = catalog_alloc(n, sizeof *views);
    struct catalog_state *copy = catalog_state_new();
    struct command command = {0};

    for (size_t i = 0; i < n; i++) {
        views[i].data = catalog_snapshot_chunk_at(snapshot, i, &views[i].n_bytes);
    }
    if (catalog_state_restore(copy, views, n, NULL) != 0) {
        abort();
    }
    build_put(&command, "web", "10.0.0.1:80 10.0.0.2:80");
    build_apply(copy, &command);
    build_delete_group(&command, "web");
    build_apply(copy, &command);
    catalog_state_free(copy);
    free(views);
    catalog_snapshot_free(snapshot);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct catalog_chunk_view chunks[CHUNKS_MAX];
    size_t n = split(data, size, chunks);
    struct catalog_state *state = catalog_state_new();

    if (catalog_state_restore(state, chunks, n, NULL) == 0) {
        use(state);
    }
    if (n >= 4) {
        struct catalog *fields = make_header(chunks, n);

        if (catalog_state_restore(state, chunks, n, NULL) == 0) {
            use(state);
        }
        free(fields->header.data);
        free(fields);
    }
    catalog_state_free(state);
    return 0;
}
