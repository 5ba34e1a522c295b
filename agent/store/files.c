#include "agent/store/files.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/plant.h"

static int fail(struct errmsg *err, const char *what, const char *path)
{
    int errnum = errno;

    return errmsg_set(err, err_from_errno(errnum), "cannot %s %s: %s", what, path,
                      strerrordesc_np(errnum));
}

int files_path(char path[FILES_PATH_BYTES], const char *dir, const char *name, struct errmsg *err)
{
    int n = snprintf(path, FILES_PATH_BYTES, "%s/%s", dir, name);

    if (n < 0 || n >= FILES_PATH_BYTES) {
        return errmsg_set(err, ERR_CONFIG, "data directory: its path is longer than %d bytes",
                          FILES_PATH_BYTES - 64);
    }
    return 0;
}

static int write_all(int fd, const uint8_t *data, size_t n_bytes, off_t offset)
{
    while (n_bytes > 0) {
        ssize_t n = pwrite(fd, data, n_bytes, offset);

        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            errno = n == 0 ? EIO : errno;
            return -errno;
        }
        data += n;
        n_bytes -= (size_t)n;
        offset += n;
    }
    return 0;
}

int files_create(const char *path, const void *data, size_t n_bytes, struct errmsg *err)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

    if (fd < 0) {
        return fail(err, "create", path);
    }
    if (write_all(fd, data, n_bytes, 0) != 0 || fsync(fd) != 0) {
        int result = fail(err, "write", path);
        close(fd);
        unlink(path);
        return result;
    }
    return close(fd) == 0 ? 0 : fail(err, "close", path);
}

int files_open(const char *path, int flags, struct errmsg *err)
{
    struct stat info;
    /* O_NONBLOCK: a FIFO would keep the caller waiting for its other end. */
    int fd = open(path, flags | (plant_is("open-waits") ? 0 : O_NONBLOCK) | O_CLOEXEC, 0600);

    if (fd >= 0 && fstat(fd, &info) == 0 && S_ISREG(info.st_mode)) {
        return fd;
    }
    int errnum = errno;
    bool is_there = stat(path, &info) == 0;
    if (fd >= 0) {
        close(fd);
    }
    if (is_there && !S_ISREG(info.st_mode)) {
        return errmsg_set(err, ERR_CORRUPT, "%s: not a regular file: move it away", path);
    }
    errno = errnum;
    return fail(err, "open", path);
}

int files_overwrite(const char *path, size_t offset, const void *data, size_t n_bytes,
                    struct errmsg *err)
{
    int fd = files_open(path, O_WRONLY, err);

    if (fd < 0) {
        return fd;
    }
    if (write_all(fd, data, n_bytes, (off_t)offset) != 0 || fdatasync(fd) != 0) {
        int result = fail(err, "write", path);
        close(fd);
        return result;
    }
    return close(fd) == 0 ? 0 : fail(err, "close", path);
}

static int read_all(int fd, uint8_t *data, size_t n_bytes)
{
    size_t n_read = 0;

    while (n_read < n_bytes) {
        ssize_t n = read(fd, data + n_read, n_bytes - n_read);

        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            errno = n == 0 ? EIO : errno;
            return -errno;
        }
        n_read += (size_t)n;
    }
    return 0;
}

int files_read(const char *path, size_t limit_bytes, uint8_t **ret_data, size_t *ret_n_bytes,
               struct errmsg *err)
{
    struct stat info;
    uint8_t *data = NULL;
    int result;
    int fd = files_open(path, O_RDONLY, err);

    if (fd < 0) {
        return fd;
    }
    if (fstat(fd, &info) != 0) {
        result = fail(err, "look at", path);
        goto done;
    }
    if (info.st_size < 0 || (uint64_t)info.st_size > limit_bytes) {
        result =
            errmsg_set(err, ERR_CORRUPT, "%s: not a file of at most %zu bytes", path, limit_bytes);
        goto done;
    }
    data = malloc((size_t)info.st_size + 1);
    if (data == NULL) {
        result = errmsg_set(err, ERR_NOMEM, "%s: no memory for %lld bytes", path,
                            (long long)info.st_size);
        goto done;
    }
    if (read_all(fd, data, (size_t)info.st_size) != 0) {
        result = fail(err, "read", path);
        goto done;
    }
    *ret_data = data;
    *ret_n_bytes = (size_t)info.st_size;
    data = NULL;
    result = 0;
done:
    free(data);
    close(fd);
    return result;
}

int files_sync_dir(const char *path, struct errmsg *err)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0) {
        return fail(err, "open", path);
    }
    if (fsync(fd) != 0) {
        int result = fail(err, "sync", path);
        close(fd);
        return result;
    }
    close(fd);
    return 0;
}

int files_rename(const char *from, const char *to, const char *dir, struct errmsg *err)
{
    if (rename(from, to) != 0) {
        return fail(err, "rename", from);
    }
    return files_sync_dir(dir, err);
}

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *place)
{
    (void)info;
    (void)kind;
    (void)place;
    return remove(path);
}

int files_remove_tree(const char *path, struct errmsg *err)
{
    if (nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS) != 0 && errno != ENOENT) {
        return fail(err, "remove", path);
    }
    return 0;
}

bool files_exists(const char *path)
{
    struct stat info;

    return lstat(path, &info) == 0;
}
