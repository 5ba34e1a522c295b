/* Whether the files of the table are still where the writer put them, and its way back. */
#include "agent/table/table_writer_private.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/table/table_files.h"
#include "agent/table/table_map.h"

#define DIR_MODE 0750

static bool is_same_file(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* The path still leads to the folder that is open. */
static bool dir_is_in_place(const struct table_writer *writer)
{
    struct stat ours, there;

    return fstat(writer->dir_fd, &ours) == 0 && stat(writer->dir, &there) == 0 &&
           is_same_file(&ours, &there);
}

static int dir_make(const char *dir, struct errmsg *err)
{
    if (mkdir(dir, DIR_MODE) != 0) {
        return errno == EEXIST ? 0
                               : errmsg_set(err, err_from_errno(errno), "cannot make %s: %s", dir,
                                            strerror(errno));
    }
    /* Not by umask: the group must get in. */
    return chmod(dir, DIR_MODE) == 0
               ? 0
               : errmsg_set(err, err_from_errno(errno), "%s: %s", dir, strerror(errno));
}

int table_writer_reopen(struct table_writer *writer, struct errmsg *err)
{
    struct stat ours, there;
    int dir_fd = -1, lock_fd = -1;
    int result = dir_make(writer->dir, err);

    if (result == 0) {
        result = table_dir_open(writer->dir, &dir_fd, err);
    }
    bool is_locked = result == 0 && fstat(writer->lock_fd, &ours) == 0 &&
                     fstatat(dir_fd, TABLE_LOCK_NAME, &there, 0) == 0 &&
                     is_same_file(&ours, &there);
    if (result == 0 && !is_locked) {
        result = table_lock_take(dir_fd, TABLE_LOCK_NAME, "writing the forwarding table there",
                                 &lock_fd, err);
    }
    if (result != 0) {
        if (dir_fd >= 0) {
            close(dir_fd);
        }
        return result;
    }
    if (!is_locked) {
        close(writer->lock_fd);
        writer->lock_fd = lock_fd;
    }
    close(writer->dir_fd);
    writer->dir_fd = dir_fd;
    return 0;
}

/* The inode of a file that is none but itself; 0: nothing is there, or something else, such as a
 * link to another file. */
static ino_t file_at(const struct table_writer *writer, const char *name, struct stat *ret_info)
{
    bool is_file = fstatat(writer->dir_fd, name, ret_info, AT_SYMLINK_NOFOLLOW) == 0 &&
                   S_ISREG(ret_info->st_mode);

    return is_file ? ret_info->st_ino : 0;
}

bool table_writer_is_in_place(const struct table_writer *writer)
{
    char name[TABLE_NAME_BYTES];
    struct stat info;

    return writer->root == NULL ||
           (dir_is_in_place(writer) &&
            file_at(writer, TABLE_ROOT_NAME, &info) == writer->root_inode &&
            file_at(writer, table_layout_name(writer->layout_number, name), &info) != 0 &&
            file_at(writer, table_state_name(writer->state.number, name), &info) ==
                writer->state.inode);
}

/* The file itself: another one in its place is as good as none, and the words are not lost. */
static bool is_shorter(const struct table_writer *writer, const char *name, ino_t inode,
                       size_t n_bytes)
{
    struct stat info;

    return file_at(writer, name, &info) == inode && (uint64_t)info.st_size < n_bytes;
}

bool table_writer_is_cut(const struct table_writer *writer, struct errmsg *err)
{
    char state_name[TABLE_NAME_BYTES];
    const char *name = NULL;

    table_state_name(writer->state.number, state_name);
    if (is_shorter(writer, state_name, writer->state.inode, writer->state.n_bytes)) {
        name = state_name;
    } else if (writer->root != NULL &&
               is_shorter(writer, TABLE_ROOT_NAME, writer->root_inode, sizeof *writer->root)) {
        name = TABLE_ROOT_NAME;
    }
    if (name == NULL) {
        return false;
    }
    errmsg_set(err, ERR_CORRUPT, "%s/%s: somebody cut it short, its words are lost", writer->dir,
               name);
    return true;
}
