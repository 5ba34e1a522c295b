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
    void *bytes = mmap(NULL, (size_t)file.st_size, PROT_READ, MAP_SHARED, fd, 0);
    if (bytes == MAP_FAILED) {
        return errmsg_set(err, err_from_errno(errno), "%s: mmap: %s", path, strerror(errno));
    }
    map->bytes = bytes;
    map->n_bytes = (size_t)file.st_size;
    map->device = file.st_dev;
    map->inode = file.st_ino;
    return 0;
}

int table_map_open(const char *dir, const char *name, size_t n_bytes_max,
                   struct table_map **ret_map, struct errmsg *err)
{
    char path[PATH_MAX];
    struct table_map *map = calloc(1, sizeof *map);

    if (map == NULL) {
        return errmsg_set(err, ERR_NOMEM, "no memory to map %s/%s", dir, name);
    }
    snprintf(path, sizeof path, "%s/%s", dir, name);
    /* O_NONBLOCK: whatever lies there, opening it must not wait. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        int result = errno == ENOENT || errno == ENOTDIR ? ERR_NOTFOUND : err_from_errno(errno);

        errmsg_set(err, result, "%s: %s", path, strerror(errno));
        free(map);
        return result;
    }
    int result = map_file(fd, path, n_bytes_max, map, err);
    close(fd);
    if (result != 0) {
        free(map);
        return result;
    }
    atomic_init(&map->n_refs, 1);
    *ret_map = map;
    return 0;
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
    munmap((void *)(uintptr_t)map->bytes, map->n_bytes);
    free(map);
}

bool table_map_is_current(const struct table_map *map, const char *dir, const char *name)
{
    char path[PATH_MAX];
    struct stat file;

    snprintf(path, sizeof path, "%s/%s", dir, name);
    return stat(path, &file) == 0 && file.st_dev == map->device && file.st_ino == map->inode;
}
