#include "agent/store/fsm_catalog.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/limits.h"

/* Memory that runs out while a committed command is applied ends the process: a node that skipped
 * one would differ for ever. */
static void *must(void *memory)
{
    if (memory == NULL) {
        abort();
    }
    return memory;
}

static void drop_snapshot(struct fsm_catalog *catalog)
{
    catalog_snapshot_free(catalog->snapshot);
    catalog->snapshot = NULL;
}

static void give_answer(const struct apply_answer *answer, uint8_t **ret_answer,
                        size_t *ret_n_bytes)
{
    *ret_answer = must(malloc(sizeof *answer));
    memcpy(*ret_answer, answer, sizeof *answer);
    *ret_n_bytes = sizeof *answer;
}

static int fsm_understands(void *user, const uint8_t *data, size_t n_bytes, struct errmsg *err)
{
    struct command command;
    int result = command_decode(data, n_bytes, &command, err);

    (void)user;
    if (result == 0) {
        command_close(&command);
    }
    return result;
}

static bool fsm_check(void *user, const uint8_t *data, size_t n_bytes, uint8_t **ret_answer,
                      size_t *ret_n_bytes)
{
    struct fsm_catalog *catalog = user;
    struct apply_answer answer = {0};
    struct command command;

    if (command_decode(data, n_bytes, &command, NULL) != 0) {
        return false; /* `understands` has let it pass, so memory is short: apply decides */
    }
    catalog_check(catalog->state, &command, &answer);
    command_close(&command);
    if (answer.err == 0 && !answer.is_repeat) {
        return false;
    }
    give_answer(&answer, ret_answer, ret_n_bytes);
    return true;
}

static int fsm_apply(void *user, const uint8_t *data, size_t n_bytes, uint8_t **ret_answer,
                     size_t *ret_n_bytes, struct errmsg *err)
{
    struct fsm_catalog *catalog = user;
    struct apply_answer answer = {0};
    struct command command;
    int result = command_decode(data, n_bytes, &command, err);

    if (result != 0) {
        return result;
    }
    drop_snapshot(catalog);
    catalog_apply(catalog->state, &command, &answer);
    command_close(&command);
    give_answer(&answer, ret_answer, ret_n_bytes);
    return 0;
}

static void fsm_reset(void *user)
{
    struct fsm_catalog *catalog = user;

    drop_snapshot(catalog);
    catalog_state_free(catalog->state);
    catalog->state = must(catalog_state_new());
}

static size_t fsm_n_chunks(void *user)
{
    struct fsm_catalog *catalog = user;

    drop_snapshot(catalog);
    catalog->snapshot = must(catalog_state_snapshot(catalog->state));
    return catalog_snapshot_n_chunks(catalog->snapshot);
}

static struct store_chunk fsm_chunk_at(void *user, size_t index)
{
    struct fsm_catalog *catalog = user;
    struct store_chunk chunk;

    assert(catalog->snapshot != NULL);
    chunk.data = catalog_snapshot_chunk_at(catalog->snapshot, index, &chunk.n_bytes);
    return chunk;
}

static int fsm_restore(void *user, const struct store_chunk chunks[], size_t n_chunks,
                       struct errmsg *err)
{
    struct fsm_catalog *catalog = user;
    struct catalog_chunk_view *views = calloc(n_chunks + 1, sizeof *views);

    if (views == NULL) {
        return errmsg_set(err, ERR_NOMEM, "no memory for a catalog of %zu chunks", n_chunks);
    }
    for (size_t i = 0; i < n_chunks; i++) {
        views[i] =
            (struct catalog_chunk_view){.data = chunks[i].data, .n_bytes = chunks[i].n_bytes};
    }
    drop_snapshot(catalog);
    int result = catalog_state_restore(catalog->state, views, n_chunks, err);
    free(views);
    return result;
}

static uint64_t fsm_revision(void *user)
{
    struct fsm_catalog *catalog = user;
    struct catalog *newest = catalog_state_catalog(catalog->state);
    uint64_t revision = catalog_revision(newest);

    catalog_unref(newest);
    return revision;
}

static struct hash128 fsm_state_hash(void *user)
{
    struct fsm_catalog *catalog = user;
    struct catalog *newest = catalog_state_catalog(catalog->state);
    struct hash128 hash = catalog_state_hash(newest);

    catalog_unref(newest);
    return hash;
}

static void fsm_members(void *user, struct store_members *ret_members)
{
    struct fsm_catalog *catalog = user;
    struct catalog *newest = catalog_state_catalog(catalog->state);
    size_t n_nodes = catalog_n_nodes(newest);

    assert(n_nodes <= LIMIT_NODES);
    ret_members->n_nodes = (uint32_t)n_nodes;
    for (size_t i = 0; i < n_nodes; i++) {
        ret_members->nodes[i] = catalog_node_at(newest, i)->spec;
    }
    catalog_unref(newest);
}

static void *fsm_publish(void *user)
{
    struct fsm_catalog *catalog = user;

    return catalog_state_catalog(catalog->state);
}

static void fsm_unpublish(void *value)
{
    catalog_unref(value);
}

int fsm_catalog_init(struct fsm_catalog *catalog)
{
    *catalog = (struct fsm_catalog){.state = catalog_state_new()};
    if (catalog->state == NULL) {
        return ERR_NOMEM;
    }
    catalog->fsm = (struct store_fsm){.user = catalog,
                                      .understands = fsm_understands,
                                      .check = fsm_check,
                                      .apply = fsm_apply,
                                      .reset = fsm_reset,
                                      .n_chunks = fsm_n_chunks,
                                      .chunk_at = fsm_chunk_at,
                                      .restore = fsm_restore,
                                      .revision = fsm_revision,
                                      .state_hash = fsm_state_hash,
                                      .members = fsm_members,
                                      .publish = fsm_publish,
                                      .unpublish = fsm_unpublish};
    return 0;
}

void fsm_catalog_close(struct fsm_catalog *catalog)
{
    drop_snapshot(catalog);
    catalog_state_free(catalog->state);
    catalog->state = NULL;
}

bool fsm_catalog_answer(const struct store_completion *completion, struct apply_answer *ret_answer)
{
    if (completion->outcome != STORE_DONE || completion->n_answer_bytes != sizeof *ret_answer) {
        return false;
    }
    memcpy(ret_answer, completion->answer, sizeof *ret_answer);
    return true;
}
