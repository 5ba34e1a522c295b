#include "agent/table/table_writer_private.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/table/table_files.h"
#include "agent/table/table_map.h"
#include "agent/table/table_reader.h"
#include "common/base/limits.h"
#include "common/base/plant.h"

#define ROOT_TEMPORARY "root.new"
#define ROWS_MIN 1024

/* --- state files --- */

static uint32_t room_for(uint32_t n_rows)
{
    uint32_t room = ROWS_MIN;

    while (room < n_rows) {
        room *= 2;
    }
    return room;
}

/* A larger state file with the same words, then its number in the root: readers that still have the
 * old one find all they knew there, and the new rows come with a later layout number. */
int writer_grow(struct table_writer *writer, uint32_t n_rows, struct errmsg *err)
{
    struct state_file old = writer->state;
    struct state_file state;
    char name[TABLE_NAME_BYTES];

    if (n_rows > LIMIT_ROWS) {
        return errmsg_set(err, ERR_LIMIT,
                          "the forwarding table has room for %u rows, %u are "
                          "needed",
                          LIMIT_ROWS, n_rows);
    }
    n_rows = room_for(n_rows);
    uint64_t *generations = calloc(n_rows, sizeof *generations);
    if (generations == NULL) {
        return errmsg_set(err, ERR_NOMEM, "no memory for %u rows of the forwarding table", n_rows);
    }
    int result = state_file_make(writer->dir_fd, writer->next_number, n_rows, &state, err);
    if (result != 0) {
        errmsg_prefix(err, "forwarding table in %s", writer->dir);
        free(generations);
        return result;
    }
    writer->next_number++;
    writer_step(writer);
    if (old.bytes != NULL) {
        memcpy(generations, writer->row_generations, old.n_rows * sizeof *generations);
        memcpy(state.rows, old.rows, old.n_rows * sizeof *state.rows);
        memcpy(state.sequences, old.sequences, old.n_rows * sizeof *state.sequences);
        writer_step(writer);
    }
    free(writer->row_generations);
    writer->row_generations = generations;
    writer->state = state;
    if (writer->root != NULL) {
        writer_store(writer, &writer->root->state, state.number);
    }
    if (old.bytes != NULL) {
        unlinkat(writer->dir_fd, table_state_name(old.number, name), 0);
        writer_step(writer);
        state_file_close(&old);
    }
    return 0;
}

/* --- open, close --- */

static bool is_ours(const struct table_writer *writer, const struct jury_root *root)
{
    struct jury_root wanted = {0};

    memcpy(&wanted.cluster_low, writer->identity.cluster_id.bytes, 8);
    memcpy(&wanted.cluster_high, writer->identity.cluster_id.bytes + 8, 8);
    return root->cluster_low == wanted.cluster_low && root->cluster_high == wanted.cluster_high &&
           root->node_id == writer->identity.node_id;
}

/* What an earlier agent left. A table that can not be read is no obstacle: its generation alone
 * matters then, and it can not be known; the epoch is what makes ours greater. */
static int look_at_old(struct table_writer *writer, struct errmsg *err)
{
    struct table_reader *reader = table_reader_new(writer->dir);
    uint64_t old_generation = 0;

    if (reader == NULL) {
        return errmsg_set(err, ERR_NOMEM, "no memory to read the old forwarding table");
    }
    if (table_reader_look(reader, true, &writer->old, NULL) == TABLE_NEW) {
        const struct jury_root *root = table_snapshot_root(writer->old);

        old_generation = jury_load(&root->generation);
        writer->old_is_ours = is_ours(writer, root);
        writer->next_number = table_snapshot_layout_number(writer->old) + 1;
        uint64_t state = jury_load(&root->state);
        writer->next_number = state >= writer->next_number ? state + 1 : writer->next_number;
    }
    table_reader_free(reader);

    uint64_t first = writer->identity.epoch << 32;
    writer->generation = first;
    if (old_generation > first && !plant_is("table-generation-back")) {
        writer->generation = old_generation;
    }
    if (writer->next_number <= first) {
        writer->next_number = first + 1;
    }
    return 0;
}

int table_writer_open(const char *dir, const struct table_identity *identity,
                      struct table_writer **ret_writer, struct errmsg *err)
{
    struct table_writer *writer = calloc(1, sizeof *writer);
    int result = ERR_NOMEM;

    assert(identity->epoch < UINT64_C(1) << 32);
    if (writer == NULL) {
        return errmsg_set(err, ERR_NOMEM, "no memory for the forwarding table");
    }
    writer->identity = *identity;
    writer->dir_fd = -1;
    writer->lock_fd = -1;
    writer->dir = strdup(dir);
    if (writer->dir == NULL) {
        errmsg_set(err, ERR_NOMEM, "no memory for the forwarding table");
        goto fail;
    }
    result = table_dir_open(dir, &writer->dir_fd, err);
    if (result != 0) {
        goto fail;
    }
    result = table_lock_take(writer->dir_fd, TABLE_LOCK_NAME, "writing the forwarding table there",
                             &writer->lock_fd, err);
    if (result != 0) {
        errmsg_prefix(err, "%s", dir);
        goto fail;
    }
    result = look_at_old(writer, err);
    if (result == 0) {
        result = writer_grow(writer, ROWS_MIN, err);
    }
    if (result != 0) {
        goto fail;
    }
    *ret_writer = writer;
    return 0;
fail:
    table_writer_close(writer);
    return result;
}

void table_writer_close(struct table_writer *writer)
{
    if (writer == NULL) {
        return;
    }
    state_file_close(&writer->state);
    if (writer->root != NULL) {
        table_file_unmap(writer->root, sizeof *writer->root);
    }
    table_snapshot_unref(writer->old);
    if (writer->lock_fd >= 0) {
        close(writer->lock_fd);
    }
    if (writer->dir_fd >= 0) {
        close(writer->dir_fd);
    }
    free(writer->row_generations);
    free(writer->dir);
    free(writer);
}

uint64_t table_writer_old_revision(const struct table_writer *writer)
{
    if (writer->old == NULL || !writer->old_is_ours) {
        return 0;
    }
    return jury_load(&table_snapshot_root(writer->old)->revision);
}

size_t table_writer_old_deadlines(const struct table_writer *writer,
                                  struct kept_deadline deadlines[], size_t capacity)
{
    uint64_t boot_low;
    uint64_t boot_high;
    size_t n_deadlines = 0;

    if (writer->old == NULL || !writer->old_is_ours) {
        return 0;
    }
    const struct jury_root *root = table_snapshot_root(writer->old);
    const struct table_layout *layout = table_snapshot_layout(writer->old);
    boot_id_words(&writer->identity.boot_id, &boot_low, &boot_high);
    if (root->boot_low != boot_low || root->boot_high != boot_high) {
        return 0;
    }
    for (uint32_t i = 0; i < layout->header->n_members; i++) {
        const struct jury_member *member = table_layout_member(layout, i);
        struct table_row row = table_snapshot_row(writer->old, member->row, member->birth);

        if (row.deadline_boot_ns == 0) {
            continue;
        }
        if (n_deadlines < capacity) {
            deadlines[n_deadlines] = (struct kept_deadline){
                .row = member->row,
                .birth = member->birth,
                .drain_revision =
                    row.deadline_cause == DEADLINE_VERDICT ? 0 : jury_load(&root->revision),
                .is_exact = false,
                .deadline_boot_ns = row.deadline_boot_ns,
            };
        }
        n_deadlines++;
    }
    return n_deadlines;
}

/* --- layouts --- */

uint64_t table_writer_next_layout(struct table_writer *writer)
{
    return writer->next_number++;
}

static int write_all(int fd, const uint8_t *bytes, size_t n_bytes)
{
    while (n_bytes > 0) {
        ssize_t n = write(fd, bytes, n_bytes);

        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return n < 0 ? errno : ENOSPC;
        }
        bytes += n;
        n_bytes -= (size_t)n;
    }
    return 0;
}

int table_layout_store(const char *dir, uint64_t number, const uint8_t *bytes, size_t n_bytes,
                       struct errmsg *err)
{
    char name[TABLE_NAME_BYTES];
    int dir_fd;
    int result = table_dir_open(dir, &dir_fd, err);

    if (result != 0) {
        return result;
    }
    /* A left-over of that number may be mapped somewhere: never write over it. */
    unlinkat(dir_fd, table_layout_name(number, name), 0);
    int fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0640);
    int errnum = fd < 0 ? errno : write_all(fd, bytes, n_bytes);
    if (fd >= 0 && close(fd) != 0 && errnum == 0) {
        errnum = errno;
    }
    if (errnum != 0) {
        if (fd >= 0) {
            unlinkat(dir_fd, name, 0);
        }
        result = errmsg_set(err, err_from_errno(errnum), "%s/%s: %s", dir, name, strerror(errnum));
    }
    close(dir_fd);
    return result;
}

/* A fresh root, complete before it takes the name. */
static int root_make(struct table_writer *writer, uint64_t layout_number, uint64_t revision,
                     struct errmsg *err)
{
    char layout_name[TABLE_NAME_BYTES];
    char state_name[TABLE_NAME_BYTES];
    uint8_t *bytes;
    int result =
        table_file_make(writer->dir_fd, ROOT_TEMPORARY, sizeof(struct jury_root), &bytes, err);

    if (result != 0) {
        errmsg_prefix(err, "forwarding table in %s", writer->dir);
        return result;
    }
    struct jury_root *root = (void *)bytes;
    *root = (struct jury_root){
        .magic = JURY_ROOT_MAGIC,
        .version = JURY_VERSION_WORD(JURY_TABLE_MAJOR, JURY_TABLE_MINOR),
        .node_id = writer->identity.node_id,
        .layout = layout_number,
        .state = writer->state.number,
        .generation = writer->generation + 1,
        .revision = revision,
        .heartbeat_ns = writer->root != NULL ? writer->root->heartbeat_ns : 0,
    };
    memcpy(&root->cluster_low, writer->identity.cluster_id.bytes, 8);
    memcpy(&root->cluster_high, writer->identity.cluster_id.bytes + 8, 8);
    boot_id_words(&writer->identity.boot_id, &root->boot_low, &root->boot_high);
    writer_step(writer);
    if (renameat(writer->dir_fd, ROOT_TEMPORARY, writer->dir_fd, TABLE_ROOT_NAME) != 0) {
        result = errmsg_set(err, err_from_errno(errno), "%s/%s: %s", writer->dir, TABLE_ROOT_NAME,
                            strerror(errno));
        table_file_unmap(root, sizeof *root);
        unlinkat(writer->dir_fd, ROOT_TEMPORARY, 0);
        return result;
    }
    struct stat info = {0};
    fstatat(writer->dir_fd, TABLE_ROOT_NAME, &info, 0);
    writer->root_inode = info.st_ino;
    writer->root = root;
    writer->generation++;
    writer_step(writer);
    table_dir_sweep(writer->dir_fd, table_layout_name(layout_number, layout_name),
                    table_state_name(writer->state.number, state_name));
    writer_step(writer);
    return 0;
}

/* All files anew. Readers go on with what they have mapped until they see the root's new inode; the
 * old root is told of the new state file, so that no word is lost on them if the root fails. */
static int make_anew(struct table_writer *writer, uint64_t number, uint64_t revision,
                     struct errmsg *err)
{
    struct jury_root *before = writer->root;
    int result = before != NULL ? writer_grow(writer, writer->state.n_rows, err) : 0;

    if (result == 0) {
        result = root_make(writer, number, revision, err);
    }
    if (result == 0) {
        writer->layout_number = number;
        if (before != NULL) {
            table_file_unmap(before, sizeof *before);
        }
    }
    return result;
}

int table_writer_publish(struct table_writer *writer, uint64_t number, uint32_t n_rows,
                         uint64_t revision, struct errmsg *err)
{
    char name[TABLE_NAME_BYTES];
    int result = n_rows > writer->state.n_rows ? writer_grow(writer, n_rows, err) : 0;

    if (result == 0 && (writer->root == NULL ||
                        (!table_writer_is_in_place(writer) && !plant_is("table-stays-gone")))) {
        result = make_anew(writer, number, revision, err);
        if (result == 0) {
            return 0;
        }
    }
    if (result != 0) {
        /* What made it fail is want of room, most likely. */
        unlinkat(writer->dir_fd, table_layout_name(number, name), 0);
        return result;
    }
    uint64_t last = writer->layout_number;
    if (plant_is("table-unlink-early")) {
        unlinkat(writer->dir_fd, table_layout_name(last, name), 0);
        writer_step(writer);
    }
    writer->layout_number = number;
    writer_store(writer, &writer->root->layout, number);
    writer_raise(writer, revision);
    unlinkat(writer->dir_fd, table_layout_name(last, name), 0);
    writer_step(writer);
    return 0;
}
