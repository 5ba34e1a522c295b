#include "agent/table/status_file.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/table/boot_id.h"
#include "agent/table/table_files.h"
#include "agent/table/table_rescue.h"
#include "common/base/limits.h"

#define NAME_BYTES_MAX 40
#define FILE_NAME_BYTES (NAME_BYTES_MAX + 16)
/* Rows are made usable in steps of a page and more, so that a growing catalog costs few calls. */
#define RESERVE_STEP 1024

struct status_file {
    int fd;
    int lock_fd;
    uint8_t *bytes;
    size_t n_bytes;
    struct jury_status *header;
    /* As in the header, which somebody may have cut off: no address is made of what stands there.
     */
    uint64_t workers_at;
    uint64_t rows_at;
    uint32_t n_workers;
    uint32_t n_reserved;
    char *dir;
    char name[NAME_BYTES_MAX + 1];
    uint64_t started_ns;
};

static bool good_name(const char *name)
{
    size_t n_bytes = strlen(name);

    if (n_bytes == 0 || n_bytes > NAME_BYTES_MAX || !isalpha((unsigned char)name[0])) {
        return false;
    }
    for (size_t i = 0; i < n_bytes; i++) {
        if (!isalnum((unsigned char)name[i]) && strchr("._-", name[i]) == NULL) {
            return false;
        }
    }
    return true;
}

static void fill_header(const struct status_options *options, uint64_t started_ns,
                        const struct boot_id *boot_id, struct jury_status *header)
{
    uint64_t workers_bytes = options->n_workers * sizeof(struct jury_status_worker);
    uint64_t rows_bytes =
        (uint64_t)options->n_workers * LIMIT_ROWS * sizeof(struct jury_status_row);

    *header = (struct jury_status){
        .magic = JURY_STATUS_MAGIC,
        .version = JURY_VERSION_WORD(JURY_TABLE_MAJOR, JURY_TABLE_MINOR),
        .pid = (uint64_t)getpid(),
        .started_ns = started_ns,
        .heartbeat_ns = options->boot_ns,
        .n_workers = options->n_workers,
        .n_rows = LIMIT_ROWS,
        .workers_at = sizeof *header,
        .worker_bytes = sizeof(struct jury_status_worker),
        .row_bytes = sizeof(struct jury_status_row),
        .failures_at = sizeof *header + workers_bytes,
        .failure_bytes = sizeof(struct jury_status_failure),
    };
    uint64_t failures_bytes = JURY_STATUS_FAILURES * sizeof(struct jury_status_failure);
    header->rows_at = (header->failures_at + failures_bytes + 4095) & ~UINT64_C(4095);
    header->file_bytes = header->rows_at + rows_bytes;
    boot_id_words(boot_id, &header->boot_low, &header->boot_high);
    snprintf(header->name, sizeof header->name, "%s", options->name);
}

static int map_file(struct status_file *file, const struct jury_status *header, const char *name,
                    struct errmsg *err)
{
    int errnum = posix_fallocate(file->fd, 0, (off_t)header->rows_at);

    if (errnum == 0 && ftruncate(file->fd, (off_t)header->file_bytes) != 0) {
        errnum = errno;
    }
    if (errnum != 0) {
        return errmsg_set(err, err_from_errno(errnum), "%s: no room: %s", name, strerror(errnum));
    }
    void *bytes = mmap(NULL, header->file_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file->fd, 0);
    if (bytes == MAP_FAILED) {
        return errmsg_set(err, err_from_errno(errno), "%s: mmap: %s", name, strerror(errno));
    }
    table_rescue_watch(bytes, header->file_bytes);
    file->bytes = bytes;
    file->n_bytes = header->file_bytes;
    file->header = bytes;
    file->workers_at = header->workers_at;
    file->rows_at = header->rows_at;
    *file->header = *header;
    return 0;
}

static int take_lock(struct status_file *file, int dir_fd, struct errmsg *err)
{
    char name[FILE_NAME_BYTES];

    snprintf(name, sizeof name, "%s.lock", file->name);
    return table_lock_take(dir_fd, name, "running under that name", &file->lock_fd, err);
}

/* Aside, and renamed. */
static int make(struct status_file *file, const struct status_options *options, int dir_fd,
                struct errmsg *err)
{
    struct boot_id boot_id;
    struct jury_status header;
    char temporary[FILE_NAME_BYTES];
    char name[FILE_NAME_BYTES];
    int result = boot_id_read(&boot_id, err);

    if (result != 0) {
        return result;
    }
    snprintf(temporary, sizeof temporary, "%s.new", options->name);
    snprintf(name, sizeof name, "%s.status", options->name);
    unlinkat(dir_fd, temporary, 0);
    file->fd = openat(dir_fd, temporary, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0640);
    if (file->fd < 0) {
        return errmsg_set(err, err_from_errno(errno), "%s: %s", temporary, strerror(errno));
    }
    fill_header(options, file->started_ns, &boot_id, &header);
    result = map_file(file, &header, temporary, err);
    if (result == 0 && renameat(dir_fd, temporary, dir_fd, name) != 0) {
        result = errmsg_set(err, err_from_errno(errno), "%s: %s", name, strerror(errno));
    }
    if (result != 0) {
        unlinkat(dir_fd, temporary, 0);
    }
    return result;
}

/* NULL: no memory. */
static struct status_file *file_new(const struct status_options *options)
{
    struct status_file *file = calloc(1, sizeof *file);

    if (file == NULL) {
        return NULL;
    }
    file->fd = -1;
    file->lock_fd = -1;
    file->n_workers = options->n_workers;
    file->started_ns = options->started_ns != 0 ? options->started_ns : options->boot_ns;
    snprintf(file->name, sizeof file->name, "%s", options->name);
    file->dir = strdup(options->dir);
    if (file->dir == NULL) {
        free(file);
        return NULL;
    }
    return file;
}

int status_file_open(const struct status_options *options, struct status_file **ret_file,
                     struct errmsg *err)
{
    int dir_fd;

    if (!good_name(options->name)) {
        return errmsg_set(err, ERR_INVALID,
                          "name \"%.60s\": must be 1 to %d of A-Z a-z 0-9 . _ -, a letter first",
                          options->name, NAME_BYTES_MAX);
    }
    if (options->n_workers == 0 || options->n_workers > LIMIT_SHIM_WORKERS) {
        return errmsg_set(err, ERR_INVALID, "workers must be 1..%d, got %u", LIMIT_SHIM_WORKERS,
                          options->n_workers);
    }
    struct status_file *file = file_new(options);
    if (file == NULL) {
        return errmsg_set(err, ERR_NOMEM, "no memory for the status file");
    }
    int result = table_dir_open(options->dir, &dir_fd, err);
    if (result == 0) {
        result = take_lock(file, dir_fd, err);
        if (result == 0) {
            result = make(file, options, dir_fd, err);
        }
        close(dir_fd);
        if (result != 0) {
            errmsg_prefix(err, "status file in %s", options->dir);
        }
    }
    if (result != 0) {
        status_file_close(file);
        return result;
    }
    *ret_file = file;
    return 0;
}

void status_file_close(struct status_file *file)
{
    if (file == NULL) {
        return;
    }
    if (file->bytes != NULL) {
        table_file_unmap(file->bytes, file->n_bytes);
    }
    if (file->fd >= 0) {
        close(file->fd);
    }
    if (file->lock_fd >= 0) {
        close(file->lock_fd);
    }
    free(file->dir);
    free(file);
}

/* --- made anew --- */

/* Whether the open descriptor is what stands under that name in the folder. */
static bool is_in_place(const struct status_file *file, const char *suffix, int fd,
                        struct stat *ret_stat)
{
    char path[PATH_MAX];
    struct stat there;

    snprintf(path, sizeof path, "%s/%s%s", file->dir, file->name, suffix);
    return fstat(fd, ret_stat) == 0 && lstat(path, &there) == 0 &&
           there.st_dev == ret_stat->st_dev && there.st_ino == ret_stat->st_ino;
}

bool status_file_is_damaged(const struct status_file *file)
{
    struct stat own;

    return !is_in_place(file, ".status", file->fd, &own) ||
           (uint64_t)own.st_size != file->n_bytes ||
           jury_load(&file->header->magic) != JURY_STATUS_MAGIC;
}

int status_file_renew(struct status_file *old, uint64_t boot_ns, struct status_file **ret_file,
                      struct errmsg *err)
{
    const struct status_options options = {.dir = old->dir,
                                           .name = old->name,
                                           .n_workers = old->n_workers,
                                           .boot_ns = boot_ns,
                                           .started_ns = old->started_ns};
    struct status_file *file = file_new(&options);
    struct stat lock;
    int dir_fd;

    if (file == NULL) {
        return errmsg_set(err, ERR_NOMEM, "no memory for the status file");
    }
    int result = table_dir_open(old->dir, &dir_fd, err);
    if (result == 0) {
        bool has_lock = old->lock_fd >= 0 && is_in_place(old, ".lock", old->lock_fd, &lock);

        result = has_lock ? 0 : take_lock(file, dir_fd, err);
        result = result != 0 ? result : make(file, &options, dir_fd, err);
        close(dir_fd);
        if (result == 0 && has_lock) {
            file->lock_fd = old->lock_fd;
            old->lock_fd = -1;
        }
    }
    if (result == 0) {
        result = status_file_reserve(file, status_file_n_rows(old), err);
    }
    if (result != 0) {
        errmsg_prefix(err, "status file in %s", old->dir);
        if (old->lock_fd < 0) {
            old->lock_fd = file->lock_fd;
            file->lock_fd = -1;
        }
        status_file_close(file);
        return result;
    }
    *ret_file = file;
    return 0;
}

static uint64_t row_offset(const struct status_file *file, uint32_t worker, uint32_t row)
{
    return file->rows_at + ((uint64_t)worker * LIMIT_ROWS + row) * sizeof(struct jury_status_row);
}

int status_file_reserve(struct status_file *file, uint32_t n_rows, struct errmsg *err)
{
    if (n_rows <= file->n_reserved) {
        return 0;
    }
    if (n_rows > LIMIT_ROWS) {
        return errmsg_set(err, ERR_LIMIT, "%u rows: the status file has room for %u", n_rows,
                          LIMIT_ROWS);
    }
    n_rows = (n_rows + RESERVE_STEP - 1) / RESERVE_STEP * RESERVE_STEP;
    uint64_t n_new = (uint64_t)(n_rows - file->n_reserved) * sizeof(struct jury_status_row);
    for (uint32_t worker = 0; worker < file->n_workers; worker++) {
        off_t at = (off_t)row_offset(file, worker, file->n_reserved);
        int errnum = posix_fallocate(file->fd, at, (off_t)n_new);

        if (errnum != 0) {
            return errmsg_set(err, err_from_errno(errnum),
                              "status file: no room for %u rows: %s; flows of rows from %u on are "
                              "not counted",
                              n_rows, strerror(errnum), file->n_reserved);
        }
    }
    __atomic_store_n(&file->n_reserved, n_rows, __ATOMIC_RELEASE);
    status_set(&file->header->n_counted_rows, n_rows);
    return 0;
}

uint32_t status_file_n_rows(const struct status_file *file)
{
    return __atomic_load_n(&file->n_reserved, __ATOMIC_ACQUIRE);
}

void status_file_sum(struct status_file *file)
{
    uint64_t layout = UINT64_MAX;
    uint64_t generation = UINT64_MAX;

    for (uint32_t i = 0; i < file->n_workers; i++) {
        const struct jury_status_worker *worker = status_file_worker(file, i);
        uint64_t own_layout = jury_load(&worker->adopted_layout);
        uint64_t own_generation = jury_load(&worker->adopted_generation);

        layout = own_layout < layout ? own_layout : layout;
        generation = own_generation < generation ? own_generation : generation;
    }
    status_set(&file->header->adopted_layout, layout);
    status_set(&file->header->adopted_generation, generation);
}

void status_file_beat(struct status_file *file, uint64_t boot_ns)
{
    status_file_sum(file);
    status_set(&file->header->heartbeat_ns, boot_ns);
}

void status_file_set_failures(struct status_file *file, const struct jury_status_failure failures[],
                              size_t n_failures)
{
    struct jury_status *header = file->header;
    struct jury_status_failure *at = (void *)(file->bytes + header->failures_at);

    status_add(&header->failures_sequence, 1);
    for (size_t i = 0; i < n_failures && i < JURY_STATUS_FAILURES; i++) {
        status_set(&at[i].listener_id, failures[i].listener_id);
        status_set(&at[i].errnum, failures[i].errnum);
    }
    status_set(&header->n_failures, n_failures);
    status_add(&header->failures_sequence, 1);
}

struct jury_status_worker *status_file_worker(struct status_file *file, uint32_t worker)
{
    return (void *)(file->bytes + file->workers_at + worker * sizeof(struct jury_status_worker));
}

struct jury_status_row *status_file_row(struct status_file *file, uint32_t worker, uint32_t row,
                                        uint64_t birth)
{
    if (row >= status_file_n_rows(file)) {
        return NULL;
    }
    struct jury_status_row *at = (void *)(file->bytes + row_offset(file, worker, row));
    if (at->birth != birth) {
        /* In between it is nobody's, so that no reader gives these numbers to the wrong one. */
        status_set(&at->birth, 0);
        status_set(&at->flows, 0);
        status_set(&at->new_flows, 0);
        status_set(&at->refused, 0);
        status_set(&at->connect_failures, 0);
        status_set(&at->closed, 0);
        status_set(&at->bytes_to_backend, 0);
        status_set(&at->bytes_to_client, 0);
        status_set(&at->birth, birth);
    }
    return at;
}

/* --- what a worker carries over --- */

static void copy_words(const uint64_t *from, uint64_t *to, size_t n_words)
{
    for (size_t i = 0; i < n_words; i++) {
        status_set(&to[i], jury_load(&from[i]));
    }
}

void status_file_carry(const struct status_file *from, struct status_file *to, uint32_t worker)
{
    uint32_t n_from = status_file_n_rows(from), n_to = status_file_n_rows(to);
    const struct jury_status_worker *old =
        (const void *)(from->bytes + from->workers_at + worker * sizeof *old);
    struct jury_status_worker *totals = status_file_worker(to, worker);

    copy_words(&old->heartbeat_ns, &totals->heartbeat_ns, sizeof *old / sizeof(uint64_t));
    status_set(&totals->flows, 0);
    for (uint32_t row = 0; row < n_from && row < n_to; row++) {
        const struct jury_status_row *old_row =
            (const void *)(from->bytes + row_offset(from, worker, row));
        struct jury_status_row *new_row = (void *)(to->bytes + row_offset(to, worker, row));

        if (old_row->birth != 0) {
            copy_words(&old_row->birth, &new_row->birth, sizeof *old_row / sizeof(uint64_t));
            status_set(&new_row->flows, 0);
        }
    }
}

struct jury_status_row *status_file_recount(struct status_file *file, uint32_t worker, uint32_t row,
                                            uint64_t birth, uint64_t n_flows)
{
    if (row >= status_file_n_rows(file)) {
        return NULL;
    }
    struct jury_status_row *at = (void *)(file->bytes + row_offset(file, worker, row));
    if (at->birth < birth) {
        at = status_file_row(file, worker, row, birth);
    }
    if (at->birth == birth) {
        status_add(&at->flows, n_flows);
    }
    return at;
}
