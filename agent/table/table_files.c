#include "agent/table/table_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/table/table_rescue.h"

/* Owner writes, the group `jury` reads. */
#define FILE_MODE 0640

static int allocate_and_map(int fd, const char *name, size_t n_bytes, uint8_t **ret_bytes,
                            struct errmsg *err)
{
    int errnum = posix_fallocate(fd, 0, (off_t)n_bytes);

    if (errnum != 0) {
        return errmsg_set(err, err_from_errno(errnum), "%s: no room for %zu bytes: %s", name,
                          n_bytes, strerror(errnum));
    }
    void *bytes = mmap(NULL, n_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (bytes == MAP_FAILED) {
        return errmsg_set(err, err_from_errno(errno), "%s: mmap: %s", name, strerror(errno));
    }
    table_rescue_watch(bytes, n_bytes);
    *ret_bytes = bytes;
    return 0;
}

void table_file_unmap(void *bytes, size_t n_bytes)
{
    table_rescue_forget(bytes);
    munmap(bytes, n_bytes);
}

int table_file_make(int dir_fd, const char *name, size_t n_bytes, uint8_t **ret_bytes,
                    struct errmsg *err)
{
    /* Never write over a file that somebody may have mapped: a new inode each time. */
    if (unlinkat(dir_fd, name, 0) != 0 && errno != ENOENT) {
        return errmsg_set(err, err_from_errno(errno), "%s: %s", name, strerror(errno));
    }
    int fd = openat(dir_fd, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, FILE_MODE);
    if (fd < 0) {
        return errmsg_set(err, err_from_errno(errno), "%s: %s", name, strerror(errno));
    }
    int result = allocate_and_map(fd, name, n_bytes, ret_bytes, err);
    close(fd);
    if (result != 0) {
        unlinkat(dir_fd, name, 0);
    }
    return result;
}

int table_dir_open(const char *dir, int *ret_fd, struct errmsg *err)
{
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0) {
        int result = errno == ENOENT ? ERR_NOTFOUND : err_from_errno(errno);

        return errmsg_set(err, result, "%s: %s", dir, strerror(errno));
    }
    *ret_fd = fd;
    return 0;
}

int table_lock_take(int dir_fd, const char *name, const char *what, int *ret_fd, struct errmsg *err)
{
    char holder[24] = "";
    int fd =
        openat(dir_fd, name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, FILE_MODE);

    if (fd < 0) {
        return errmsg_set(err, err_from_errno(errno), "%s: %s", name, strerror(errno));
    }
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        ssize_t n = read(fd, holder, sizeof holder - 1);

        holder[n > 0 ? strcspn(holder, "\n") : 0] = '\0';
        close(fd);
        return errmsg_set(err, ERR_BUSY, "another process (pid %s) is %s", holder, what);
    }
    int n = snprintf(holder, sizeof holder, "%d\n", (int)getpid());
    if (ftruncate(fd, 0) != 0 || pwrite(fd, holder, (size_t)n, 0) != n) {
        /* Only the sentence of a later refusal is poorer for it; the lock holds. */
        errno = 0;
    }
    *ret_fd = fd;
    return 0;
}

void table_dir_sweep(int dir_fd, const char *keep_layout, const char *keep_state)
{
    int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *entry;

    if (dir == NULL) {
        if (fd >= 0) {
            close(fd);
        }
        return;
    }
    while ((entry = readdir(dir)) != NULL) {
        const char *name = entry->d_name;
        bool is_ours = strncmp(name, "layout.", 7) == 0 || strncmp(name, "state.", 6) == 0;

        if (is_ours && strcmp(name, keep_layout) != 0 && strcmp(name, keep_state) != 0) {
            unlinkat(dir_fd, name, 0);
        }
    }
    closedir(dir);
}
