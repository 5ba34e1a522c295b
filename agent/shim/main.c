/* jury-shim: see agent/shim/shim.h. Exit status: 0 stopped by a signal, 2 usage, 3 configuration,
 * 10 internal (design.md 8). */
#include <signal.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "agent/shim/options.h"
#include "agent/shim/shim.h"
#include "agent/table/table_rescue.h"
#include "common/base/log.h"

#define WAIT_MS 200

/* What was asked for can not be had: the operator's to mend, not a fault of the program. */
static int exit_status_of(int err)
{
    switch (err) {
    case ERR_USAGE:
        return 2;
    case ERR_INVALID:
    case ERR_CONFIG:
    case ERR_NOTFOUND:
    case ERR_DENIED:
    case ERR_BUSY:
    case ERR_FULL:
        return 3;
    default:
        return 10;
    }
}

/* The folder for the status file is made by jury-agent, which may start later, on another day even:
 * wait for it. ERR_CANCELED: a signal came first. */
static int new_when_possible(const struct shim_config *config, const sigset_t *signals,
                             struct shim **ret_shim, struct errmsg *err)
{
    static const struct timespec pause = {.tv_nsec = WAIT_MS * 1000000L};
    int result = shim_new(config, ret_shim, err);

    if (result == ERR_NOTFOUND) {
        log_event(LOG_LEVEL_WARNING, "status_folder_absent", "path=%s goes_on=\"when it is there\"",
                  config->status_dir);
    }
    while (result == ERR_NOTFOUND) {
        if (sigtimedwait(signals, NULL, &pause) > 0) {
            return ERR_CANCELED;
        }
        result = shim_new(config, ret_shim, err);
    }
    return result;
}

static int run(const struct shim_config *config)
{
    struct shim *shim;
    struct errmsg err = {{0}};
    sigset_t signals;

    /* Threads inherit this: signals are waited for, never handled. A peer that is gone is an error
     * of send, not a signal. */
    signal(SIGPIPE, SIG_IGN);
    table_rescue_install();
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    sigprocmask(SIG_BLOCK, &signals, NULL);

    int result = new_when_possible(config, &signals, &shim, &err);
    if (result == ERR_CANCELED) {
        return 0;
    }
    if (result != 0) {
        fprintf(stderr, "jury-shim: %s\n", err.text);
        return exit_status_of(result);
    }
    shim_run(shim);
    shim_free(shim);
    return 0;
}

int main(int argc, char *argv[])
{
    struct shim_start start;
    struct errmsg err = {{0}};
    int result = shim_options_read(argc, argv, environ, &start, &err);

    if (result != 0) {
        fprintf(stderr, "jury-shim: %s\n", err.text);
        return exit_status_of(result);
    }
    int status = 0;
    if (start.command == SHIM_RUN) {
        log_init("jury-shim", start.config.log_level);
        status = run(&start.config);
    }
    options_free(start.options);
    return status;
}
