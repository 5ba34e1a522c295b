#include "agent/store/data_dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <linux/magic.h>

#include "common/base/hash.h"
#include "common/base/limits.h"
#include "common/base/plant.h"
#include "common/base/str.h"

#define INIT_BYTES_MAX (LIMIT_COMMAND_BYTES + 64)
#define MEMBERS_HEAD_BYTES 4 /* CRC-32C */

int data_dir_init(struct data_dir *dir, const char *path, struct errmsg *err)
{
    *dir = (struct data_dir){.lock_fd = -1};
    if (strlen(path) > FILES_PATH_BYTES - 64) {
        return errmsg_set(err, ERR_CONFIG, "data directory: its path is longer than %d bytes",
                          FILES_PATH_BYTES - 64);
    }
    if (path[0] == '\0') {
        return errmsg_set(err, ERR_CONFIG, "data directory: no path is given");
    }
    snprintf(dir->path, sizeof dir->path, "%s", path);
    int result = files_path(dir->store, path, "store", err);
    return result != 0 ? result : files_path(dir->raft, path, "store/raft", err);
}

void data_dir_close(struct data_dir *dir)
{
    if (dir->lock_fd >= 0) {
        close(dir->lock_fd);
        dir->lock_fd = -1;
    }
}

static int check_place(const struct data_dir *dir, const struct data_dir_owner *owner,
                       struct errmsg *err)
{
    struct stat info;
    struct statfs fs;

    if (stat(dir->path, &info) != 0) {
        return errmsg_set(err, ERR_CONFIG, "data directory %s: %s", dir->path,
                          strerrordesc_np(errno));
    }
    if (!S_ISDIR(info.st_mode)) {
        return errmsg_set(err, ERR_CONFIG, "data directory %s: it is not a directory", dir->path);
    }
    if (access(dir->path, R_OK | W_OK | X_OK) != 0) {
        int errnum = errno;
        /* A member whose disk went read-only has last-known-good to serve from, and tries again. */
        bool is_used = files_exists(dir->store) && !plant_is("read-only-refused");

        return errmsg_set(err, is_used ? err_from_errno(errnum) : ERR_CONFIG,
                          "data directory %s: this user may not write to it (%s)", dir->path,
                          strerrordesc_np(errnum));
    }
    if (!owner->allow_tmpfs && statfs(dir->path, &fs) == 0 &&
        (fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC)) {
        return errmsg_set(err, ERR_CONFIG,
                          "data directory %s: it is in memory (tmpfs) and would forget its votes "
                          "at a restart; give a directory on a disk",
                          dir->path);
    }
    return 0;
}

static int read_identity(const struct data_dir *dir, struct identity *ret_identity,
                         struct errmsg *err)
{
    char path[FILES_PATH_BYTES];
    uint8_t *data = NULL;
    size_t n_bytes = 0;

    int result = files_path(path, dir->store, "identity", err);
    if (result == 0) {
        result = files_read(path, IDENTITY_TEXT_BYTES, &data, &n_bytes, err);
    }
    if (result == ERR_NOTFOUND) {
        result = errmsg_set(err, ERR_CORRUPT, "it is missing");
    }
    if (result == 0) {
        result = identity_parse((const char *)data, n_bytes, ret_identity, err);
    }
    free(data);
    if (result == ERR_CORRUPT) {
        struct errmsg why = *err;

        /* One file of it may come from a copy, since it never changes; the whole may not. */
        return errmsg_set(err, result,
                          "%s is damaged (%s): restore this file, not the directory, from a copy; "
                          "without one remove the node and join under a new id",
                          path, why.text);
    }
    if (result != 0) {
        errmsg_prefix(err, "data directory %s", dir->path);
    }
    return result;
}

static int check_owner(const struct data_dir *dir, const struct data_dir_owner *owner,
                       const struct identity *identity, struct errmsg *err)
{
    char theirs[17], ours[17];

    if (owner->node_id != 0 && owner->node_id != identity->node_id) {
        return errmsg_set(err, ERR_CONFIG,
                          "data directory %s: it belongs to node %" PRIu64
                          ", this agent is configured as node %" PRIu64,
                          dir->path, identity->node_id, owner->node_id);
    }
    if (memcmp(&owner->key, &identity->key, sizeof owner->key) != 0) {
        str_hex(identity->key.bytes, 8, theirs);
        str_hex(owner->key.bytes, 8, ours);
        return errmsg_set(err, ERR_CONFIG,
                          "data directory %s: it belongs to node %" PRIu64
                          " with the public key %s..., this agent's key is %s...",
                          dir->path, identity->node_id, theirs, ours);
    }
    return 0;
}

static bool is_marked(const struct data_dir *dir)
{
    char path[FILES_PATH_BYTES];

    return files_path(path, dir->store, "complete", NULL) == 0 && files_exists(path);
}

static int check_lock(const struct data_dir *dir, struct errmsg *err)
{
    char path[FILES_PATH_BYTES];
    int result = files_path(path, dir->path, "LOCK", err);

    if (result != 0 || dir->lock_fd >= 0) {
        return result;
    }
    int fd = files_open(path, O_RDONLY, err);
    if (fd < 0) {
        return fd == ERR_CORRUPT ? fd : 0;
    }
    if (flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
        result =
            errmsg_set(err, ERR_CONFIG, "data directory %s: another agent is using it", dir->path);
    }
    close(fd);
    return result;
}

int data_dir_check(const struct data_dir *dir, const struct data_dir_owner *owner,
                   struct errmsg *err)
{
    struct identity identity;
    int result = check_place(dir, owner, err);

    if (result == 0) {
        result = check_lock(dir, err);
    }
    if (result == 0 && is_marked(dir)) {
        result = read_identity(dir, &identity, err);
        if (result == 0) {
            result = check_owner(dir, owner, &identity, err);
        }
    }
    return result;
}

static int take_lock(struct data_dir *dir, struct errmsg *err)
{
    char path[FILES_PATH_BYTES];
    int result = files_path(path, dir->path, "LOCK", err);

    if (result != 0 || dir->lock_fd >= 0) {
        return result;
    }
    int fd = files_open(path, O_RDWR | O_CREAT, err);
    if (fd < 0) {
        return fd;
    }
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        close(fd);
        return errmsg_set(err, ERR_CONFIG, "data directory %s: another agent is using it",
                          dir->path);
    }
    dir->lock_fd = fd;
    return 0;
}

static int read_epoch(const struct data_dir *dir, struct epoch_found *ret_found, struct errmsg *err)
{
    char path[FILES_PATH_BYTES];
    uint8_t *data = NULL;
    size_t n_bytes = 0;

    int result = files_path(path, dir->store, "epoch", err);
    if (result == 0) {
        result = files_read(path, EPOCH_FILE_BYTES, &data, &n_bytes, err);
    }
    if (result == ERR_NOTFOUND || (result == 0 && n_bytes != EPOCH_FILE_BYTES)) {
        result = errmsg_set(err, ERR_CORRUPT, "%s: missing or of the wrong size", path);
    }
    if (result == 0) {
        result = epoch_parse(data, ret_found, err);
    }
    free(data);
    return result;
}

/* What an init or admission left that was killed before its marker. */
static int remove_leftovers(const struct data_dir *dir, struct errmsg *err)
{
    char path[FILES_PATH_BYTES];
    struct epoch_found epoch = {0};
    int result = files_path(path, dir->path, "store.new", err);

    if (result == 0 && files_exists(path)) {
        result = files_remove_tree(path, err);
    }
    if (result != 0 || !files_exists(dir->store) || is_marked(dir)) {
        return result;
    }
    result = read_epoch(dir, &epoch, err);
    if (result == 0 && epoch.newest == 0 && !epoch.is_incomplete) {
        result = files_remove_tree(dir->store, err);
        return result == 0 ? files_sync_dir(dir->path, err) : result;
    }
    return errmsg_set(err, ERR_CORRUPT,
                      "%s/complete is missing although the node has run: restore this file, not "
                      "the directory (its content does not matter); if more is gone, move the "
                      "directory away, remove the node and join under a new node id",
                      dir->store);
}

/* raft_uv opens its files by itself and would wait for the other end of a FIFO for ever. */
static int check_raft_files(const struct data_dir *dir, struct errmsg *err)
{
    DIR *raft = opendir(dir->raft);
    const struct dirent *entry;
    int result = 0;

    if (raft == NULL || plant_is("open-waits")) {
        if (raft != NULL) {
            closedir(raft);
        }
        return 0; /* raft_uv says why */
    }
    while (result == 0 && (entry = readdir(raft)) != NULL) {
        struct stat info;

        if (fstatat(dirfd(raft), entry->d_name, &info, 0) == 0 && !S_ISREG(info.st_mode) &&
            !S_ISDIR(info.st_mode)) {
            result = errmsg_set(err, ERR_CORRUPT, "%s/%s: not a regular file: move it away",
                                dir->raft, entry->d_name);
        }
    }
    closedir(raft);
    return result;
}

int data_dir_open(struct data_dir *dir, const struct data_dir_owner *owner,
                  enum data_dir_state *ret_state, struct identity *ret_identity, struct errmsg *err)
{
    struct identity identity;
    int result = check_place(dir, owner, err);

    if (result == 0) {
        result = take_lock(dir, err);
    }
    if (result == 0) {
        result = remove_leftovers(dir, err);
    }
    if (result != 0) {
        return result;
    }
    if (!files_exists(dir->store)) {
        *ret_state = DATA_DIR_EMPTY;
        return 0;
    }
    result = read_identity(dir, &identity, err);
    if (result == 0) {
        result = check_owner(dir, owner, &identity, err);
    }
    if (result == 0) {
        result = check_raft_files(dir, err);
    }
    if (result == 0) {
        *ret_state = DATA_DIR_READY;
        *ret_identity = identity;
    }
    return result;
}

static int create_in(const char *dir, const char *name, const void *data, size_t n_bytes,
                     struct errmsg *err)
{
    char path[FILES_PATH_BYTES];
    int result = files_path(path, dir, name, err);

    return result != 0 ? result : files_create(path, data, n_bytes, err);
}

static int make_dir(const char *path, struct errmsg *err)
{
    if (mkdir(path, 0700) != 0) {
        return errmsg_set(err, err_from_errno(errno), "cannot create %s: %s", path,
                          strerrordesc_np(errno));
    }
    return 0;
}

/* Everything inside store.new, synced. */
static int fill(const char *fresh, const struct identity *identity,
                const struct data_dir_first *first, struct errmsg *err)
{
    char raft[FILES_PATH_BYTES];
    char text[IDENTITY_TEXT_BYTES];
    uint8_t epoch[EPOCH_FILE_BYTES];
    int result = make_dir(fresh, err);

    if (result == 0) {
        result = create_in(fresh, "identity", text, identity_format(identity, text), err);
    }
    epoch_format_new(epoch);
    if (result == 0) {
        result = create_in(fresh, "epoch", epoch, sizeof epoch, err);
    }
    if (result == 0 && first != NULL) {
        result = create_in(fresh, "init", first->command, first->n_command_bytes, err);
    }
    if (result == 0) {
        result = files_path(raft, fresh, "raft", err);
    }
    if (result == 0) {
        result = make_dir(raft, err);
    }
    if (result == 0 && first != NULL) {
        result = first->bootstrap(first->user, raft, identity, err);
    }
    if (result == 0) {
        result = files_sync_dir(raft, err);
    }
    return result != 0 ? result : files_sync_dir(fresh, err);
}

int data_dir_make(struct data_dir *dir, const struct identity *identity,
                  const struct data_dir_first *first, struct errmsg *err)
{
    char fresh[FILES_PATH_BYTES], marker[FILES_PATH_BYTES];
    int result = files_path(fresh, dir->path, "store.new", err);

    if (result == 0) {
        result = files_path(marker, dir->store, "complete", err);
    }
    if (result != 0) {
        return result;
    }
    result = files_remove_tree(fresh, err);
    if (result == 0) {
        result = fill(fresh, identity, first, err);
    }
    if (result == 0) {
        result = files_rename(fresh, dir->store, dir->path, err);
    }
    if (result == 0) {
        result = create_in(dir->store, "complete", "complete\n", 9, err);
    }
    if (result == 0) {
        result = files_sync_dir(dir->store, err);
    }
    if (result != 0) {
        /* The marker goes first, so that a removal that is cut short stays recognisable. */
        unlink(marker);
        files_remove_tree(fresh, NULL);
        files_remove_tree(dir->store, NULL);
    }
    return result;
}

int data_dir_raise_epoch(const struct data_dir *dir, uint64_t above, uint64_t *ret_epoch,
                         bool *ret_was_damaged, struct errmsg *err)
{
    char path[FILES_PATH_BYTES];
    uint8_t slot[EPOCH_SLOT_BYTES];
    struct epoch_found found = {0};
    int result = read_epoch(dir, &found, err);
    uint64_t epoch = epoch_after(&found, above);

    if (result == 0) {
        result = files_path(path, dir->store, "epoch", err);
    }
    if (result == 0) {
        size_t offset = epoch_format_slot(epoch, slot);
        result = files_overwrite(path, offset, slot, sizeof slot, err);
    }
    if (result == 0) {
        *ret_epoch = epoch;
        *ret_was_damaged = found.is_incomplete;
    }
    return result;
}

int data_dir_mark_restored(const struct data_dir *dir, const char *reason, struct errmsg *err)
{
    char path[FILES_PATH_BYTES];
    int result = files_path(path, dir->store, "restored", err);

    if (result == 0 && !files_exists(path)) {
        result = files_create(path, reason, strlen(reason), err);
    }
    return result != 0 ? result : files_sync_dir(dir->store, err);
}

int data_dir_read_restored(const struct data_dir *dir, struct errmsg *ret_reason)
{
    char path[FILES_PATH_BYTES];
    uint8_t *data = NULL;
    size_t n_bytes = 0;
    int result = files_path(path, dir->store, "restored", NULL);

    if (result != 0 || !files_exists(path)) {
        return ERR_NOTFOUND;
    }
    /* A file that a kill left empty, or that cannot be read, still says that it is there. */
    if (files_read(path, ERRMSG_BYTES, &data, &n_bytes, NULL) != 0) {
        n_bytes = 0;
    }
    errmsg_set(ret_reason, 0, "%.*s", (int)n_bytes, n_bytes > 0 ? (const char *)data : "");
    free(data);
    return 0;
}

int data_dir_read_init(const struct data_dir *dir, uint8_t **ret_command, size_t *ret_n_bytes,
                       struct errmsg *err)
{
    char path[FILES_PATH_BYTES];
    int result = files_path(path, dir->store, "init", err);

    return result != 0 ? result : files_read(path, INIT_BYTES_MAX, ret_command, ret_n_bytes, err);
}

int data_dir_drop_init(const struct data_dir *dir, struct errmsg *err)
{
    char path[FILES_PATH_BYTES];
    int result = files_path(path, dir->store, "init", err);

    if (result == 0 && unlink(path) != 0 && errno != ENOENT) {
        result = errmsg_set(err, err_from_errno(errno), "cannot remove %s: %s", path,
                            strerrordesc_np(errno));
    }
    return result != 0 ? result : files_sync_dir(dir->store, err);
}

int data_dir_write_members(const struct data_dir *dir, const uint8_t *data, size_t n_bytes,
                           struct errmsg *err)
{
    char path[FILES_PATH_BYTES], fresh[FILES_PATH_BYTES];
    uint8_t *whole = malloc(MEMBERS_HEAD_BYTES + n_bytes);
    uint32_t crc = hash_crc32c(0, data, n_bytes);
    int result = files_path(path, dir->store, "members", err);

    if (whole == NULL) {
        return errmsg_set(err, ERR_NOMEM, "no memory for the list of members");
    }
    for (size_t i = 0; i < MEMBERS_HEAD_BYTES; i++) {
        whole[i] = (uint8_t)(crc >> (8 * i));
    }
    memcpy(whole + MEMBERS_HEAD_BYTES, data, n_bytes);
    if (result == 0) {
        result = files_path(fresh, dir->store, "members.new", err);
    }
    if (result == 0) {
        unlink(fresh); /* of a start that was killed */
        result = files_create(fresh, whole, MEMBERS_HEAD_BYTES + n_bytes, err);
    }
    if (result == 0) {
        result = files_rename(fresh, path, dir->store, err);
    }
    free(whole);
    return result;
}

int data_dir_read_members(const struct data_dir *dir, uint8_t **ret_data, size_t *ret_n_bytes,
                          struct errmsg *err)
{
    char path[FILES_PATH_BYTES];
    uint8_t *data = NULL;
    size_t n_bytes = 0;
    uint32_t crc = 0;
    int result = files_path(path, dir->store, "members", err);

    if (result == 0) {
        result = files_read(path, LIMIT_RAFT_MESSAGE_BYTES, &data, &n_bytes, err);
    }
    if (result != 0) {
        return result;
    }
    for (size_t i = MEMBERS_HEAD_BYTES; i > 0 && n_bytes >= MEMBERS_HEAD_BYTES; i--) {
        crc = crc << 8 | data[i - 1];
    }
    if (n_bytes < MEMBERS_HEAD_BYTES ||
        crc != hash_crc32c(0, data + MEMBERS_HEAD_BYTES, n_bytes - MEMBERS_HEAD_BYTES)) {
        free(data);
        return errmsg_set(err, ERR_CORRUPT, "%s: its checksum is wrong", path);
    }
    memmove(data, data + MEMBERS_HEAD_BYTES, n_bytes - MEMBERS_HEAD_BYTES);
    *ret_data = data;
    *ret_n_bytes = n_bytes - MEMBERS_HEAD_BYTES;
    return 0;
}

bool data_dir_is_gone(const struct data_dir *dir)
{
    char path[FILES_PATH_BYTES];
    struct stat held, found;

    if (dir->lock_fd < 0 || fstat(dir->lock_fd, &held) != 0 ||
        files_path(path, dir->path, "LOCK", NULL) != 0) {
        return false;
    }
    if (stat(path, &found) != 0) {
        return errno == ENOENT || errno == ENOTDIR;
    }
    return found.st_dev != held.st_dev || found.st_ino != held.st_ino ||
           (stat(dir->raft, &found) != 0 && (errno == ENOENT || errno == ENOTDIR));
}

int data_dir_free_bytes(const struct data_dir *dir, uint64_t *ret_bytes)
{
    struct statvfs fs;

    if (statvfs(dir->path, &fs) != 0) {
        return err_from_errno(errno);
    }
    *ret_bytes = (uint64_t)fs.f_bavail * fs.f_frsize;
    return 0;
}
