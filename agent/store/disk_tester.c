/* The thread of disk_watch.h that writes where the store's loop may not wait. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <pthread.h>

#include "agent/loop/thread.h"
#include "agent/store/disk_watch.h"
#include "agent/store/files.h"
#include "common/base/clock.h"

struct disk_tester {
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t asked;
    char path[FILES_PATH_BYTES];
    uint32_t file_bytes;
    enum disk_test state;
    uint64_t duration_ns;
    struct errmsg message;
    bool must_end;
};

static int write_file(int fd, uint32_t file_bytes)
{
    static const char block[4096] = {0};

    int errnum = posix_fallocate(fd, 0, file_bytes);
    if (errnum != 0) {
        return errnum;
    }
    if (pwrite(fd, block, sizeof block, 0) != (ssize_t)sizeof block) {
        return errno != 0 ? errno : EIO;
    }
    return fdatasync(fd) == 0 ? 0 : errno;
}

static enum disk_test run_test(const struct disk_tester *tester, struct errmsg *err)
{
    unlink(tester->path); /* of a killed agent, or what is no file and would make open() wait */
    int fd = open(tester->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    int errnum = fd < 0 ? errno : write_file(fd, tester->file_bytes);

    if (fd >= 0) {
        close(fd);
        unlink(tester->path);
    }
    if (errnum == 0) {
        return DISK_TEST_OK;
    }
    errmsg_set(err, err_from_errno(errnum), "%s: %s", tester->path, strerrordesc_np(errnum));
    if (errnum == EMFILE || errnum == ENFILE || errnum == ENOMEM || errnum == EINTR) {
        return DISK_TEST_NONE; /* says nothing about the disk: ask again */
    }
    return errnum == ENOSPC || errnum == EDQUOT ? DISK_TEST_FULL : DISK_TEST_FAILED;
}

static void *tester_main(void *arg)
{
    struct disk_tester *tester = arg;

    pthread_mutex_lock(&tester->mutex);
    while (!tester->must_end) {
        if (tester->state != DISK_TEST_RUNNING) {
            pthread_cond_wait(&tester->asked, &tester->mutex);
            continue;
        }
        pthread_mutex_unlock(&tester->mutex);
        struct errmsg message = {{0}};
        uint64_t begin_ns = clock_monotonic_ns();
        enum disk_test result = run_test(tester, &message);
        uint64_t duration_ns = clock_monotonic_ns() - begin_ns;
        pthread_mutex_lock(&tester->mutex);
        tester->state = result;
        tester->duration_ns = duration_ns;
        tester->message = message;
    }
    pthread_mutex_unlock(&tester->mutex);
    return NULL;
}

int disk_tester_start(const char *dir, uint32_t file_bytes, struct disk_tester **ret_tester)
{
    struct disk_tester *tester = calloc(1, sizeof *tester);

    if (tester == NULL) {
        return ERR_NOMEM;
    }
    tester->file_bytes = file_bytes;
    pthread_mutex_init(&tester->mutex, NULL);
    pthread_cond_init(&tester->asked, NULL);
    int result = files_path(tester->path, dir, "disk-test", NULL);
    if (result == 0) {
        result = thread_start(&tester->thread, "store-disk", tester_main, tester);
    }
    if (result != 0) {
        free(tester);
        return result;
    }
    *ret_tester = tester;
    return 0;
}

void disk_tester_stop(struct disk_tester *tester)
{
    if (tester == NULL) {
        return;
    }
    pthread_mutex_lock(&tester->mutex);
    bool is_blocked = tester->state == DISK_TEST_RUNNING;
    tester->must_end = true;
    pthread_cond_signal(&tester->asked);
    pthread_mutex_unlock(&tester->mutex);
    if (is_blocked) {
        pthread_detach(tester->thread); /* its memory goes with the process */
        return;
    }
    pthread_join(tester->thread, NULL);
    pthread_cond_destroy(&tester->asked);
    pthread_mutex_destroy(&tester->mutex);
    free(tester);
}

void disk_tester_ask(struct disk_tester *tester)
{
    pthread_mutex_lock(&tester->mutex);
    tester->state = DISK_TEST_RUNNING;
    pthread_cond_signal(&tester->asked);
    pthread_mutex_unlock(&tester->mutex);
}

enum disk_test disk_tester_result(struct disk_tester *tester, uint64_t *ret_duration_ns,
                                  struct errmsg *err)
{
    pthread_mutex_lock(&tester->mutex);
    enum disk_test state = tester->state;
    *ret_duration_ns = tester->duration_ns;
    if (err != NULL) {
        *err = tester->message;
    }
    pthread_mutex_unlock(&tester->mutex);
    return state;
}
