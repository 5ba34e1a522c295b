#include "agent/table/table_map.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/table/table_rescue.h"

char *table_layout_name(uint64_t number, char text[TABLE_NAME_BYTES])
{
    snprintf(text, TABLE_NAME_BYTES, "layout.%016" PRIx64, number);
    return text;
}

char *table_state_name(uint64_t number, char text[TABLE_NAME_BYTES])
{
    snprintf(text, TABLE_NAME_BYTES, "state.%" PRIu64, number);
    return text;
}

static int map_bytes(int fd, const char *path, struct table_map *map, struct errmsg *err)
{
    void *bytes = mmap(NULL, map->n_bytes, PROT_READ, MAP_SHARED, fd, 0);

    if (bytes == MAP_FAILED) {
        return errmsg_set(err, err_from_errno(errno), "%s: mmap: %s", path, strerror(errno));
    }
    map->bytes = bytes;
    table_rescue_watch(bytes, map->n_bytes);
    return 0;
}

static int copy_bytes(int fd, const char *path, struct table_map *map, struct errmsg *err)
{
    uint8_t *bytes =
        mmap(NULL, map->n_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    size_t n_read = 0;

    if (bytes == MAP_FAILED) {
        return errmsg_set(err, err_from_errno(errno), "%s: mmap: %s", path, strerror(errno));
    }
    while (n_read < map->n_bytes) {
        ssize_t n = read(fd, bytes + n_read, map->n_bytes - n_read);

        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            int result =
                n == 0 ? errmsg_set(err, ERR_CORRUPT, "%s: it was cut short", path)
                       : errmsg_set(err, err_from_errno(errno), "%s: %s", path, strerror(errno));

            munmap(bytes, map->n_bytes);
            return result;
        }
        n_read += (size_t)n;
    }
    map->bytes = bytes;
    return 0;
}

static int map_file(int fd, const char *path, size_t n_bytes_max, struct table_map *map,
                    struct errmsg *err)
{
    struct stat file;

    if (fstat(fd, &file) != 0) {
        return errmsg_set(err, err_from_errno(errno), "%s: %s", path, strerror(errno));
    }
    if (!S_ISREG(file.st_mode) || file.st_size <= 0 || (uint64_t)file.st_size > n_bytes_max) {
        return errmsg_set(err, ERR_CORRUPT, "%s: not a file of 1 to %zu bytes", path, n_bytes_max);
    }
    map->n_bytes = (size_t)file.st_size;
    int result = map->is_copy ? copy_bytes(fd, path, map, err) : map_bytes(fd, path, map, err);
    if (result != 0) {
        return result;
    }
    map->device = file.st_dev;
    map->inode = file.st_ino;
    return 0;
}

static int open_file(struct table_map *map, const char *dir, const char *name, size_t n_bytes_max,
                     struct errmsg *err)
{
    char path[PATH_MAX];

    snprintf(path, sizeof path, "%s/%s", dir, name);
    /* O_NONBLOCK: whatever lies there, opening it must not wait. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        int result = errno == ENOENT || errno == ENOTDIR ? ERR_NOTFOUND : err_from_errno(errno);

        return errmsg_set(err, result, "%s: %s", path, strerror(errno));
    }
    int result = map_file(fd, path, n_bytes_max, map, err);
    close(fd);
    return result;
}

static int map_new(const struct table_file *file, bool is_copy, struct table_map **ret_map,
                   struct errmsg *err)
{
    struct table_map *map = calloc(1, sizeof *map);

    if (map == NULL) {
        return errmsg_set(err, ERR_NOMEM, "no memory to map %s/%s", file->dir, file->name);
    }
    map->is_copy = is_copy;
    int result = open_file(map, file->dir, file->name, file->n_bytes_max, err);
    if (result != 0) {
        free(map);
        return result;
    }
    atomic_init(&map->n_refs, 1);
    *ret_map = map;
    return 0;
}

int table_map_open(const struct table_file *file, struct table_map **ret_map, struct errmsg *err)
{
    return map_new(file, false, ret_map, err);
}

int table_map_copy(const struct table_file *file, struct table_map **ret_map, struct errmsg *err)
{
    return map_new(file, true, ret_map, err);
}

struct table_map *table_map_ref(struct table_map *map)
{
    atomic_fetch_add_explicit(&map->n_refs, 1, memory_order_relaxed);
    return map;
}

void table_map_unref(struct table_map *map)
{
    if (map == NULL || atomic_fetch_sub_explicit(&map->n_refs, 1, memory_order_acq_rel) != 1) {
        return;
    }
    if (!map->is_copy) {
        table_rescue_forget(map->bytes);
    }
    munmap((void *)(uintptr_t)map->bytes, map->n_bytes);
    free(map);
}

bool table_map_is_cut(const struct table_map *map, const char *dir, const char *name)
{
    char path[PATH_MAX];
    struct stat file;

    snprintf(path, sizeof path, "%s/%s", dir, name);
    return stat(path, &file) == 0 && file.st_dev == map->device && file.st_ino == map->inode &&
           (uint64_t)file.st_size < map->n_bytes;
}

bool table_map_is_current(const struct table_map *map, const char *dir, const char *name)
{
    char path[PATH_MAX];
    struct stat file;

    snprintf(path, sizeof path, "%s/%s", dir, name);
    return stat(path, &file) == 0 && file.st_dev == map->device && file.st_ino == map->inode;
}
