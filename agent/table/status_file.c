#include "agent/table/status_file.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
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

static void fill_header(const struct status_options *options, const struct boot_id *boot_id,
                        struct jury_status *header)
{
    uint64_t workers_bytes = options->n_workers * sizeof(struct jury_status_worker);
    uint64_t rows_bytes =
        (uint64_t)options->n_workers * LIMIT_ROWS * sizeof(struct jury_status_row);

    *header = (struct jury_status){
        .magic = JURY_STATUS_MAGIC,
        .version = JURY_VERSION_WORD(JURY_TABLE_MAJOR, JURY_TABLE_MINOR),
        .pid = (uint64_t)getpid(),
        .started_ns = options->boot_ns,
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

/* Lock, make aside, rename. */
static int make(struct status_file *file, const struct status_options *options, int dir_fd,
                struct errmsg *err)
{
    struct boot_id boot_id;
    struct jury_status header;
    char lock_name[FILE_NAME_BYTES];
    char temporary[FILE_NAME_BYTES];
    char name[FILE_NAME_BYTES];
    int result = boot_id_read(&boot_id, err);

    if (result != 0) {
        return result;
    }
    snprintf(lock_name, sizeof lock_name, "%s.lock", options->name);
    snprintf(temporary, sizeof temporary, "%s.new", options->name);
    snprintf(name, sizeof name, "%s.status", options->name);
    result = table_lock_take(dir_fd, lock_name, "running under that name", &file->lock_fd, err);
    if (result != 0) {
        return result;
    }
    unlinkat(dir_fd, temporary, 0);
    file->fd = openat(dir_fd, temporary, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0640);
    if (file->fd < 0) {
        return errmsg_set(err, err_from_errno(errno), "%s: %s", temporary, strerror(errno));
    }
    fill_header(options, &boot_id, &header);
    result = map_file(file, &header, temporary, err);
    if (result == 0 && renameat(dir_fd, temporary, dir_fd, name) != 0) {
        result = errmsg_set(err, err_from_errno(errno), "%s: %s", name, strerror(errno));
    }
    if (result != 0) {
        unlinkat(dir_fd, temporary, 0);
    }
    return result;
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
    struct status_file *file = calloc(1, sizeof *file);
    if (file == NULL) {
        return errmsg_set(err, ERR_NOMEM, "no memory for the status file");
    }
    file->fd = -1;
    file->lock_fd = -1;
    file->n_workers = options->n_workers;
    int result = table_dir_open(options->dir, &dir_fd, err);
    if (result == 0) {
        result = make(file, options, dir_fd, err);
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
    free(file);
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
