#include "agent/table/status_reader.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/table/table_files.h"
#include "common/base/plant.h"
#include "common/base/units.h"

#define SUFFIX ".status"
#define RECORD_BYTES_MAX 4096
/* No data plane has more flows in one thread; a word above this is none of an honest writer's. */
#define FLOWS_MAX (UINT64_C(1) << 32)
#define NAMES_MAX 64

struct plane {
    struct plane_view view;
    int fd; /* -1: none */
    struct jury_status header;
};

/* A plane that was seen alive. */
struct known_plane {
    char name[JURY_PLANE_NAME_BYTES];
    uint64_t pid;
    uint64_t alive_ns; /* boot time of the last scan that found it so; 0 = free place */
};

struct status_reader {
    char *dir;
    uint64_t scan_ns; /* boot time of the last scan */
    struct known_plane known[LIMIT_DATA_PLANES];
    uint64_t boot_low;
    uint64_t boot_high;
    struct plane planes[LIMIT_DATA_PLANES];
    uint32_t n_planes;
};

struct status_reader *status_reader_new(const char *dir, const struct boot_id *boot_id)
{
    struct status_reader *reader = calloc(1, sizeof *reader);

    if (reader == NULL) {
        return NULL;
    }
    reader->dir = strdup(dir);
    if (reader->dir == NULL) {
        free(reader);
        return NULL;
    }
    boot_id_words(boot_id, &reader->boot_low, &reader->boot_high);
    return reader;
}

static void forget_planes(struct status_reader *reader)
{
    for (uint32_t i = 0; i < reader->n_planes; i++) {
        if (reader->planes[i].fd >= 0) {
            close(reader->planes[i].fd);
        }
    }
    reader->n_planes = 0;
}

void status_reader_free(struct status_reader *reader)
{
    if (reader == NULL) {
        return;
    }
    forget_planes(reader);
    free(reader->dir);
    free(reader);
}

/* --- one file --- */

static bool read_at(int fd, uint64_t offset, void *to, size_t n_bytes)
{
    return pread(fd, to, n_bytes, (off_t)offset) == (ssize_t)n_bytes;
}

static bool fits(uint64_t file_bytes, uint64_t at, uint64_t n_records, uint64_t record_bytes)
{
    return at % 8 == 0 && at >= sizeof(struct jury_status) && at <= file_bytes &&
           n_records <= (file_bytes - at) / record_bytes;
}

static bool good_record(uint64_t bytes, size_t wanted)
{
    return bytes >= wanted && bytes <= RECORD_BYTES_MAX && bytes % 8 == 0;
}

static int check_header(const struct jury_status *header, uint64_t file_bytes, struct errmsg *err)
{
    if (header->magic != JURY_STATUS_MAGIC) {
        return errmsg_set(err, ERR_CORRUPT, "not a status file");
    }
    if (header->version >> 32 != JURY_TABLE_MAJOR) {
        return errmsg_set(err, ERR_VERSION, "format version %u.%u, this program reads %u.x",
                          (unsigned)(header->version >> 32), (unsigned)header->version,
                          JURY_TABLE_MAJOR);
    }
    if (plant_is("status-unchecked")) {
        return 0;
    }
    if (header->n_workers == 0 || header->n_workers > LIMIT_SHIM_WORKERS) {
        return errmsg_set(err, ERR_LIMIT, "%llu workers, must be 1..%d",
                          (unsigned long long)header->n_workers, LIMIT_SHIM_WORKERS);
    }
    if (header->n_rows > LIMIT_ROWS || header->n_counted_rows > header->n_rows) {
        return errmsg_set(err, ERR_LIMIT,
                          "room for %llu rows of which %llu are counted, must be at "
                          "most %d",
                          (unsigned long long)header->n_rows,
                          (unsigned long long)header->n_counted_rows, LIMIT_ROWS);
    }
    if (!good_record(header->worker_bytes, sizeof(struct jury_status_worker)) ||
        !good_record(header->row_bytes, sizeof(struct jury_status_row)) ||
        !fits(file_bytes, header->workers_at, header->n_workers, header->worker_bytes) ||
        (header->failures_at != 0 &&
         (!good_record(header->failure_bytes, sizeof(struct jury_status_failure)) ||
          !fits(file_bytes, header->failures_at, JURY_STATUS_FAILURES, header->failure_bytes))) ||
        !fits(file_bytes, header->rows_at, header->n_workers * header->n_rows, header->row_bytes)) {
        return errmsg_set(err, ERR_CORRUPT, "a section lies outside the file");
    }
    if (header->pid > INT_MAX) {
        return errmsg_set(err, ERR_CORRUPT, "process id %llu", (unsigned long long)header->pid);
    }
    return 0;
}

static uint64_t add(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static void sum_worker(const struct jury_status_worker *from, struct jury_status_worker *to)
{
    to->flows = add(to->flows, from->flows);
    to->accepted = add(to->accepted, from->accepted);
    to->refused_closed = add(to->refused_closed, from->refused_closed);
    to->refused_limit = add(to->refused_limit, from->refused_limit);
    to->connect_failures = add(to->connect_failures, from->connect_failures);
    to->retried = add(to->retried, from->retried);
    to->unreached = add(to->unreached, from->unreached);
    to->ended = add(to->ended, from->ended);
    to->reset = add(to->reset, from->reset);
    to->idled = add(to->idled, from->idled);
    to->closed = add(to->closed, from->closed);
    to->bytes_to_backend = add(to->bytes_to_backend, from->bytes_to_backend);
    to->bytes_to_client = add(to->bytes_to_client, from->bytes_to_client);
}

static int read_workers(struct plane *plane, struct errmsg *err)
{
    for (uint64_t i = 0; i < plane->header.n_workers; i++) {
        struct jury_status_worker worker;

        if (!read_at(plane->fd, plane->header.workers_at + i * plane->header.worker_bytes, &worker,
                     sizeof worker)) {
            return errmsg_set(err, ERR_IO, "cut short");
        }
        if (worker.flows > FLOWS_MAX) {
            return errmsg_set(err, ERR_CORRUPT, "worker %llu: %llu flows", (unsigned long long)i,
                              (unsigned long long)worker.flows);
        }
        sum_worker(&worker, &plane->view.totals);
    }
    return 0;
}

/* What is being written just now is read with the next scan: the view keeps no half list. */
static void read_failures(struct plane *plane)
{
    const struct jury_status *header = &plane->header;
    uint64_t n =
        header->n_failures < JURY_STATUS_FAILURES ? header->n_failures : JURY_STATUS_FAILURES;
    uint64_t sequence = 0;

    if (header->failures_at == 0) {
        return;
    }
    for (uint64_t i = 0; i < n; i++) {
        if (!read_at(plane->fd, header->failures_at + i * header->failure_bytes,
                     &plane->view.failures[i], sizeof plane->view.failures[i])) {
            return;
        }
    }
    if (header->failures_sequence % 2 == 0 &&
        read_at(plane->fd, offsetof(struct jury_status, failures_sequence), &sequence,
                sizeof sequence) &&
        sequence == header->failures_sequence) {
        plane->view.n_failures = (uint32_t)n;
        plane->view.n_failures_all =
            header->n_failures < LIMIT_LISTENERS ? (uint32_t)header->n_failures : LIMIT_LISTENERS;
    }
}

static int read_plane(const struct status_reader *reader, struct plane *plane, uint64_t boot_ns,
                      struct errmsg *err)
{
    struct jury_status *header = &plane->header;
    struct stat file;

    if (fstat(plane->fd, &file) != 0 || !S_ISREG(file.st_mode)) {
        return errmsg_set(err, ERR_CORRUPT, "not a regular file");
    }
    if (!read_at(plane->fd, 0, header, sizeof *header)) {
        return errmsg_set(err, ERR_CORRUPT, "%lld bytes long, a status file has more",
                          (long long)file.st_size);
    }
    int result = check_header(header, (uint64_t)file.st_size, err);
    if (result != 0) {
        return result;
    }
    plane->view.plane_state = PLANE_ABSENT;
    plane->view.pid = header->pid;
    plane->view.n_workers = (uint32_t)header->n_workers;
    if (header->boot_low != reader->boot_low || header->boot_high != reader->boot_high) {
        plane->view.heartbeat_age_ns = UINT64_MAX;
        return 0;
    }
    if (header->heartbeat_ns > boot_ns + JURY_ABSENT_MS * NS_PER_MS ||
        header->started_ns > header->heartbeat_ns) {
        return errmsg_set(err, ERR_CORRUPT, "its times lie in the future");
    }
    plane->view.heartbeat_age_ns =
        boot_ns > header->heartbeat_ns ? boot_ns - header->heartbeat_ns : 0;
    plane->view.uptime_ns = header->heartbeat_ns - header->started_ns;
    plane->view.adopted_layout = header->adopted_layout;
    plane->view.adopted_generation = header->adopted_generation;
    if (plane->view.heartbeat_age_ns <= JURY_ABSENT_MS * NS_PER_MS) {
        plane->view.plane_state = PLANE_ALIVE;
        read_failures(plane);
    }
    return read_workers(plane, err);
}

static void refuse(struct plane *plane, const struct errmsg *err)
{
    char name[JURY_PLANE_NAME_BYTES];

    memcpy(name, plane->view.name, sizeof name);
    memset(&plane->view, 0, sizeof plane->view);
    memcpy(plane->view.name, name, sizeof name);
    plane->view.plane_state = PLANE_REFUSED;
    errmsg_set(&plane->view.refusal, ERR_CORRUPT, "status file of data plane \"%s\": %s", name,
               err->text);
}

/* --- the directory --- */

static int compare_names(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* File names of data planes without the suffix, sorted; what is longer than a name may be, or
 * beyond NAMES_MAX, is only counted. */
static uint32_t list_names(const char *path, char names[NAMES_MAX][JURY_PLANE_NAME_BYTES],
                           uint32_t *ret_n_ignored)
{
    DIR *dir = opendir(path);
    const struct dirent *entry;
    uint32_t n_names = 0;

    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        size_t n_bytes = strlen(entry->d_name);

        if (n_bytes <= strlen(SUFFIX) ||
            strcmp(entry->d_name + n_bytes - strlen(SUFFIX), SUFFIX) != 0) {
            continue;
        }
        n_bytes -= strlen(SUFFIX);
        if (n_names == NAMES_MAX || n_bytes >= JURY_PLANE_NAME_BYTES) {
            (*ret_n_ignored)++;
            continue;
        }
        memset(names[n_names], 0, JURY_PLANE_NAME_BYTES);
        memcpy(names[n_names], entry->d_name, n_bytes);
        n_names++;
    }
    if (dir != NULL) {
        closedir(dir);
    }
    qsort(names, n_names, JURY_PLANE_NAME_BYTES, compare_names);
    return n_names;
}

static void scan_plane(struct status_reader *reader, int dir_fd, const char *name, uint64_t boot_ns)
{
    struct plane *plane = &reader->planes[reader->n_planes];
    char file_name[JURY_PLANE_NAME_BYTES + sizeof SUFFIX];
    struct errmsg err = {{0}};

    memset(plane, 0, sizeof *plane);
    memcpy(plane->view.name, name, JURY_PLANE_NAME_BYTES);
    strcpy(file_name, name);
    strcat(file_name, SUFFIX);
    plane->fd = openat(dir_fd, file_name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (plane->fd < 0 && errno == ENOENT) {
        return; /* gone since it was listed */
    }
    reader->n_planes++;
    if (plane->fd < 0) {
        errmsg_set(&err, ERR_IO, "%s", strerror(errno));
        refuse(plane, &err);
    } else if (read_plane(reader, plane, boot_ns, &err) != 0) {
        refuse(plane, &err);
    }
}

static struct known_plane *find_known(struct status_reader *reader, const char *name)
{
    for (uint32_t i = 0; i < LIMIT_DATA_PLANES; i++) {
        if (reader->known[i].alive_ns != 0 && strcmp(reader->known[i].name, name) == 0) {
            return &reader->known[i];
        }
    }
    return NULL;
}

/* Those that live are known; one that ended by itself left its file, and is forgotten. */
static void note_known(struct status_reader *reader, const struct plane_view *view)
{
    struct known_plane *known = find_known(reader, view->name);

    if (view->plane_state == PLANE_ABSENT && known != NULL) {
        known->alive_ns = 0;
    }
    if (view->plane_state != PLANE_ALIVE) {
        return;
    }
    for (uint32_t i = 0; known == NULL && i < LIMIT_DATA_PLANES; i++) {
        known = reader->known[i].alive_ns == 0 ? &reader->known[i] : NULL;
    }
    if (known != NULL) {
        *known = (struct known_plane){.pid = view->pid, .alive_ns = reader->scan_ns};
        memcpy(known->name, view->name, sizeof known->name);
    }
}

static bool is_listed(const struct status_reader *reader, const char *name)
{
    for (uint32_t i = 0; i < reader->n_planes; i++) {
        if (strcmp(reader->planes[i].view.name, name) == 0) {
            return true;
        }
    }
    return false;
}

/* Whoever removes the file of a living plane makes it invisible, and that must be seen. */
static void add_gone(struct status_reader *reader)
{
    for (uint32_t i = 0; i < LIMIT_DATA_PLANES && reader->n_planes < LIMIT_DATA_PLANES; i++) {
        struct known_plane *known = &reader->known[i];

        if (known->alive_ns == 0 || is_listed(reader, known->name)) {
            continue;
        }
        if (reader->scan_ns - known->alive_ns > PLANE_GONE_MS * NS_PER_MS) {
            known->alive_ns = 0;
            continue;
        }
        struct plane *plane = &reader->planes[reader->n_planes++];
        memset(plane, 0, sizeof *plane);
        plane->fd = -1;
        memcpy(plane->view.name, known->name, sizeof plane->view.name);
        plane->view.plane_state = PLANE_GONE;
        plane->view.pid = known->pid;
        plane->view.heartbeat_age_ns = reader->scan_ns - known->alive_ns;
        errmsg_set(&plane->view.refusal, ERR_NOTFOUND,
                   "the status file of data plane \"%s\" was removed: nobody knows whether it runs",
                   known->name);
    }
}

void status_reader_scan(struct status_reader *reader, uint64_t boot_ns, uint32_t *ret_n_ignored)
{
    char names[NAMES_MAX][JURY_PLANE_NAME_BYTES];
    uint32_t n_ignored = 0;
    int dir_fd;

    forget_planes(reader);
    reader->scan_ns = boot_ns;
    if (table_dir_open(reader->dir, &dir_fd, NULL) == 0) {
        uint32_t n_names = list_names(reader->dir, names, &n_ignored);

        for (uint32_t i = 0; i < n_names; i++) {
            if (reader->n_planes == LIMIT_DATA_PLANES) {
                n_ignored += n_names - i;
                break;
            }
            scan_plane(reader, dir_fd, names[i], boot_ns);
        }
        close(dir_fd);
    }
    for (uint32_t i = 0; i < reader->n_planes; i++) {
        note_known(reader, &reader->planes[i].view);
    }
    add_gone(reader);
    if (ret_n_ignored != NULL) {
        *ret_n_ignored = n_ignored;
    }
}

size_t status_reader_n_planes(const struct status_reader *reader)
{
    return reader->n_planes;
}

const struct plane_view *status_reader_plane(const struct status_reader *reader, size_t index)
{
    assert(index < reader->n_planes);
    return &reader->planes[index].view;
}

/* --- rows --- */

/* False: this plane does not count the row. A word out of range refuses the plane. */
static bool add_plane_row(struct plane *plane, uint32_t row, uint64_t birth,
                          struct jury_status_row *sum)
{
    const struct jury_status *header = &plane->header;
    struct errmsg err = {{0}};

    if (row >= header->n_counted_rows) {
        return false;
    }
    for (uint64_t worker = 0; worker < header->n_workers; worker++) {
        struct jury_status_row own;
        uint64_t at = header->rows_at + (worker * header->n_rows + row) * header->row_bytes;

        if (!read_at(plane->fd, at, &own, sizeof own)) {
            errmsg_set(&err, ERR_IO, "cut short");
            refuse(plane, &err);
            return true;
        }
        if (own.birth != birth) {
            continue;
        }
        if (own.flows > FLOWS_MAX) {
            errmsg_set(&err, ERR_CORRUPT, "row %u: %llu flows", row, (unsigned long long)own.flows);
            refuse(plane, &err);
            return true;
        }
        sum->flows = add(sum->flows, own.flows);
        sum->new_flows = add(sum->new_flows, own.new_flows);
        sum->refused = add(sum->refused, own.refused);
        sum->connect_failures = add(sum->connect_failures, own.connect_failures);
        sum->closed = add(sum->closed, own.closed);
        sum->bytes_to_backend = add(sum->bytes_to_backend, own.bytes_to_backend);
        sum->bytes_to_client = add(sum->bytes_to_client, own.bytes_to_client);
    }
    return true;
}

bool status_reader_row(struct status_reader *reader, uint32_t row, uint64_t birth,
                       struct jury_status_row *ret_row)
{
    struct jury_status_row sum = {.birth = birth};
    bool is_known = true;

    for (uint32_t i = 0; i < reader->n_planes; i++) {
        struct plane *plane = &reader->planes[i];
        struct jury_status_row with_plane = sum;

        if (plane->view.plane_state != PLANE_ALIVE) {
            continue;
        }
        is_known &= add_plane_row(plane, row, birth, &with_plane);
        if (plane->view.plane_state == PLANE_ALIVE) {
            sum = with_plane;
        }
    }
    *ret_row = sum;
    return is_known;
}

/* It was alive a moment ago, or nothing says that it ended: its flows are not known. */
static bool may_have_flows(struct status_reader *reader, const struct plane_view *view)
{
    const struct known_plane *known = find_known(reader, view->name);

    if (plant_is("status-lost-is-done")) {
        return false;
    }
    return view->plane_state == PLANE_GONE ||
           (view->plane_state == PLANE_REFUSED && known != NULL &&
            reader->scan_ns - known->alive_ns <= JURY_ABSENT_MS * NS_PER_MS);
}

bool status_reader_answer(struct status_reader *reader, const struct table_writer *writer,
                          struct data_plane_row rows[], size_t n_rows)
{
    uint64_t newest = table_writer_generation(writer);
    uint64_t adopted = UINT64_MAX;
    bool is_counting = false;

    for (uint32_t i = 0; i < reader->n_planes; i++) {
        const struct plane_view *view = &reader->planes[i].view;

        if (view->plane_state == PLANE_ALIVE) {
            /* A generation that was never raised is not adopted. */
            uint64_t own = view->adopted_generation <= newest ? view->adopted_generation : 0;

            adopted = own < adopted ? own : adopted;
            is_counting = true;
        } else if (may_have_flows(reader, view)) {
            adopted = 0;
            is_counting = true;
        }
    }
    for (size_t i = 0; i < n_rows; i++) {
        uint64_t generation = table_writer_row_generation(writer, rows[i].row);
        struct jury_status_row sum;
        bool is_known = status_reader_row(reader, rows[i].row, rows[i].birth, &sum);

        rows[i].n_flows = sum.flows;
        rows[i].n_closed = sum.closed;
        rows[i].is_adopted = is_counting && is_known && generation != 0 && adopted >= generation;
    }
    return is_counting;
}
