/* The words of the forwarding table: what an update is to a reader, step by step. */
#include "agent/table/table_writer_private.h"

#include <assert.h>

#include "common/base/limits.h"
#include "common/base/plant.h"

/* The public numbers are those of core. */
static_assert((int)JURY_CLASS_NONE == (int)ROW_NONE, "row class");
static_assert((int)JURY_CLASS_WARMING == (int)ROW_WARMING, "row class");
static_assert((int)JURY_CLASS_FAIL_OPEN == (int)ROW_FAIL_OPEN, "row class");
static_assert((int)JURY_CLASS_SCOPE_WARMING == (int)ROW_SCOPE_WARMING, "row class");
static_assert((int)JURY_FLOW_HOLD_IDLE == (int)FLOW_HOLD_IDLE, "flow policy");
static_assert((int)JURY_FLOW_CLOSE_NOW == (int)FLOW_CLOSE_NOW, "flow policy");

void writer_step(struct table_writer *writer)
{
    if (writer->step != NULL) {
        writer->step(writer->step_user);
    }
}

void writer_store(struct table_writer *writer, uint64_t *word, uint64_t value)
{
    __atomic_store_n(word, value, __ATOMIC_RELEASE);
    writer_step(writer);
}

static uint64_t word_of(const struct row_word *row, unsigned flow_policy, uint32_t n_changes)
{
    uint64_t share = row->weight_percent == 0 ? 100 : row->weight_percent;

    assert(flow_policy < 16 && row->deadline_cause < 16 && share <= 100);
    return (uint64_t)row->row_class | (uint64_t)flow_policy << 8 |
           (uint64_t)row->deadline_cause << 12 | (uint64_t)(n_changes & 0xffffff) << 16 |
           share << 40 | row->birth << 48;
}

static void write_row(struct table_writer *writer, const struct row_word *row)
{
    struct jury_row *at = &writer->state.rows[row->row];
    uint32_t n_changes = jury_word_changes(at->word);

    if (at->deadline_ns != row->deadline_boot_ns) {
        /* A reader must never join the old policy with the new deadline: in between, keep. */
        writer_store(writer, &at->word, word_of(row, FLOW_KEEP, ++n_changes));
        writer_store(writer, &at->deadline_ns, row->deadline_boot_ns);
    }
    if (at->word != word_of(row, row->flow_policy, n_changes)) {
        writer_store(writer, &at->word, word_of(row, row->flow_policy, n_changes + 1));
    }
    writer->row_generations[row->row] = writer->generation + 1;
}

static bool is_unchanged(const struct table_writer *writer, const struct row_word *row)
{
    const struct jury_row *at = &writer->state.rows[row->row];

    return at->word == word_of(row, row->flow_policy, jury_word_changes(at->word)) &&
           at->deadline_ns == row->deadline_boot_ns;
}

/* Rows of one scope, all under its sequence. Returns how many of `rows` they were. */
static size_t write_scope(struct table_writer *writer, const struct row_word rows[], size_t n_rows)
{
    uint64_t *sequence = &writer->state.sequences[rows[0].scope_row];
    size_t n_done = 0;

    if (!plant_is("table-no-sequence")) {
        writer_store(writer, sequence, *sequence + 1);
    }
    while (n_done < n_rows && rows[n_done].scope_row == rows[0].scope_row) {
        if (!is_unchanged(writer, &rows[n_done])) {
            write_row(writer, &rows[n_done]);
        }
        n_done++;
    }
    if (!plant_is("table-no-sequence")) {
        writer_store(writer, sequence, *sequence + 1);
    }
    return n_done;
}

void writer_raise(struct table_writer *writer, uint64_t revision)
{
    writer->generation++;
    writer_store(writer, &writer->root->revision, revision);
    writer_store(writer, &writer->root->generation, writer->generation);
}

int table_writer_apply(struct table_writer *writer, const struct row_word rows[], size_t n_rows,
                       uint64_t revision, struct errmsg *err)
{
    uint32_t n_needed = 0;

    for (size_t i = 0; i < n_rows; i++) {
        uint32_t row = rows[i].row > rows[i].scope_row ? rows[i].row : rows[i].scope_row;

        if (row >= LIMIT_ROWS) {
            return errmsg_set(err, ERR_LIMIT, "row %u: the forwarding table has room for %u rows",
                              row, LIMIT_ROWS);
        }
        n_needed = row + 1 > n_needed ? row + 1 : n_needed;
    }
    if (n_needed > writer->state.n_rows) {
        int result = writer_grow(writer, n_needed, err);
        if (result != 0) {
            return result;
        }
    }
    for (size_t i = 0; i < n_rows;) {
        i += write_scope(writer, rows + i, n_rows - i);
    }
    if (writer->root != NULL) {
        writer_raise(writer, revision);
    }
    return 0;
}

void table_writer_heartbeat(struct table_writer *writer, uint64_t boot_ns)
{
    if (writer->root != NULL) {
        __atomic_store_n(&writer->root->heartbeat_ns, boot_ns, __ATOMIC_RELEASE);
    }
}

bool table_writer_is_published(const struct table_writer *writer)
{
    return writer->root != NULL;
}

uint64_t table_writer_generation(const struct table_writer *writer)
{
    return writer->root != NULL ? writer->generation : 0;
}

uint64_t table_writer_row_generation(const struct table_writer *writer, uint32_t row)
{
    return row < writer->state.n_rows ? writer->row_generations[row] : 0;
}

void table_writer_set_step_hook(struct table_writer *writer, void (*hook)(void *user), void *user)
{
    writer->step = hook;
    writer->step_user = user;
}
