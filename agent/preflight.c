#include "agent/preflight.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/store/store.h"
#include "common/base/clock.h"
#include "common/base/log.h"

#define RUN_DIR_MODE 0750
#define STATUS_DIR_MODE 0770 /* data planes of the group write there */
#define OPEN_FILES_WANTED 65536
#define OPEN_FILES_FEW 4096
/* 2025-01-01: nobody runs this agent before it was written. */
#define WALL_MS_MIN INT64_C(1735689600000)
#define WALL_MS_MAX INT64_C(4102444800000) /* 2100-01-01 */

static int check_run_dir(const struct agent_config *config, struct errmsg *err)
{
    struct stat info;

    if (stat(config->run_dir, &info) != 0) {
        if (errno == ENOENT) {
            return 0; /* preflight_prepare makes it, or says why not */
        }
        return errmsg_set(err, ERR_CONFIG, "run-dir %s: %s", config->run_dir, strerror(errno));
    }
    if (!S_ISDIR(info.st_mode)) {
        return errmsg_set(err, ERR_CONFIG, "run-dir %s is not a directory", config->run_dir);
    }
    if (access(config->run_dir, W_OK | X_OK) != 0) {
        return errmsg_set(err, ERR_CONFIG,
                          "run-dir %s: this user may not write there; give it to the agent's user",
                          config->run_dir);
    }
    if ((info.st_mode & S_IWOTH) != 0) {
        return errmsg_set(err, ERR_CONFIG,
                          "run-dir %s is writable by everybody; chmod o-w it: whoever writes there "
                          "can take the traffic",
                          config->run_dir);
    }
    return 0;
}

static int check_data_dir(const struct agent_config *config, const struct key_pair *key,
                          struct errmsg *err)
{
    struct errmsg why = {""};
    int rc = store_check(config->data_dir, config->node_id, key->public_key.bytes, &why);

    if (rc == ERR_CONFIG) {
        return errmsg_set(err, rc, "%s", why.text);
    }
    return 0; /* damage: the store says it and tries again; the agent serves meanwhile */
}

int preflight_check(const struct agent_config *config, struct key_pair *ret_key, struct errmsg *err)
{
    struct key_pair key = {.secret = NULL};
    int rc = key_file_read(config->key_file, &key, err);

    if (rc == 0) {
        rc = check_run_dir(config, err);
    }
    if (rc == 0) {
        rc = check_data_dir(config, &key, err);
    }
    if (rc != 0) {
        key_pair_close(&key);
        return rc;
    }
    *ret_key = key;
    return 0;
}

static int make_dir(const char *path, mode_t mode, struct errmsg *err)
{
    if (mkdir(path, mode) == 0) {
        /* Not by umask: the group must get in. */
        if (chmod(path, mode) == 0) {
            return 0;
        }
    } else if (errno == EEXIST) {
        return 0;
    }
    return errmsg_set(err, ERR_CONFIG, "cannot make the directory %s: %s", path, strerror(errno));
}

static int lock_run_dir(const struct agent_config *config, int *ret_lock_fd, struct errmsg *err)
{
    char path[AGENT_RUN_DIR_BYTES + 16];

    snprintf(path, sizeof path, "%s/agent.lock", config->run_dir);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0640);
    if (fd < 0) {
        return errmsg_set(err, ERR_CONFIG, "cannot open %s: %s", path, strerror(errno));
    }
    struct stat info;
    if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
        close(fd);
        return errmsg_set(err, ERR_CONFIG, "%s: not a regular file: move it away", path);
    }
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        char pid[24] = "?";
        ssize_t n = read(fd, pid, sizeof pid - 1);

        pid[n > 0 ? n : 1] = '\0';
        pid[strcspn(pid, "\n")] = '\0';
        close(fd);
        return errmsg_set(err, ERR_CONFIG,
                          "run-dir %s is in use by another agent (process %s): stop it or choose "
                          "another run-dir",
                          config->run_dir, pid);
    }
    if (ftruncate(fd, 0) == 0) {
        dprintf(fd, "%d\n", (int)getpid());
    }
    *ret_lock_fd = fd;
    return 0;
}

int preflight_prepare(const struct agent_config *config, int *ret_lock_fd, struct errmsg *err)
{
    char path[AGENT_RUN_DIR_BYTES + 16];
    struct rlimit files;
    int rc = make_dir(config->run_dir, RUN_DIR_MODE, err);

    if (rc == 0) {
        snprintf(path, sizeof path, "%s/tables", config->run_dir);
        rc = make_dir(path, RUN_DIR_MODE, err);
    }
    if (rc == 0) {
        snprintf(path, sizeof path, "%s/status", config->run_dir);
        rc = make_dir(path, STATUS_DIR_MODE, err);
    }
    if (rc == 0) {
        rc = lock_run_dir(config, ret_lock_fd, err);
    }
    if (rc == 0 && getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < OPEN_FILES_WANTED) {
        files.rlim_cur = files.rlim_max < OPEN_FILES_WANTED ? files.rlim_max : OPEN_FILES_WANTED;
        setrlimit(RLIMIT_NOFILE, &files); /* preflight_warn looks at what came of it */
    }
    /* The secret key shall not end up in a core file. */
    prctl(PR_SET_DUMPABLE, 0);
    return rc;
}

void preflight_warn(void)
{
    struct rlimit files;
    int64_t wall_ms = clock_wall_ms();

    if (wall_ms < WALL_MS_MIN || wall_ms > WALL_MS_MAX) {
        log_event(LOG_LEVEL_WARNING, "clock_far_off",
                  "text=\"this machine's clock is far off; votes and verdicts do not use it, "
                  "times of changes and the expiry of keys do: set it\"");
    }
    if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < OPEN_FILES_FEW) {
        log_event(LOG_LEVEL_WARNING, "few_open_files",
                  "limit=%llu text=\"probes beyond it fail locally; raise it (ulimit -n, "
                  "LimitNOFILE)\"",
                  (unsigned long long)files.rlim_cur);
    }
}
