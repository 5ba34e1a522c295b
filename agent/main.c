/* jury-agent: options, checks, and then agent_run. */
#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "agent/agent.h"
#include "agent/loop/watchdog.h"
#include "agent/options.h"
#include "agent/preflight.h"
#include "agent/table/table_rescue.h"
#include "common/base/log.h"
#include "common/base/output.h"

#define HEAP_BLOCK_BYTES (64 * 1024)
#define HEAPS 2

static int fail(int rc, const struct errmsg *err)
{
    fprintf(stderr, "jury-agent: %s\n", err->text[0] != '\0' ? err->text : err_text(rc));
    return agent_exit_code(rc);
}

/* What a command printed has to be with whoever asked. */
static int printed(void)
{
    struct errmsg err = {""};
    int rc = output_end(stdout, &err);

    return rc == 0 ? AGENT_EXIT_STOPPED : fail(rc, &err);
}

static int run(const struct agent_config *config, struct key_pair *key)
{
    struct errmsg err = {""};
    struct curve_keys *keys = sodium_malloc(sizeof *keys);
    int lock_fd = -1;

    if (keys == NULL) {
        return fail(errmsg_set(&err, ERR_NOMEM, "no locked memory for the node's key"), &err);
    }
    memcpy(keys->public_key, key->public_key.bytes, CURVE_KEY_BYTES);
    memcpy(keys->secret_key, key->secret, CURVE_KEY_BYTES);
    int rc = preflight_prepare(config, &lock_fd, &err);
    if (rc == 0) {
        preflight_warn();
        rc = agent_run(config, keys, &err);
    }
    sodium_free(keys);
    return rc == 0 ? AGENT_EXIT_STOPPED : fail(rc, &err);
}

/* What a change of the catalog or a snapshot takes for a moment goes back to the system: blocks of
 * this size are mapped by themselves, always, and few threads allocate so much that they need a
 * heap of their own. Before the first thread. */
static void tune_heap(void)
{
    (void)mallopt(M_MMAP_THRESHOLD, HEAP_BLOCK_BYTES);
    (void)mallopt(M_TRIM_THRESHOLD, HEAP_BLOCK_BYTES);
    (void)mallopt(M_ARENA_MAX, HEAPS);
}

static int check_and_run(const struct options *options, enum agent_command command)
{
    struct agent_config *config = calloc(1, sizeof *config);
    struct key_pair key = {.secret = NULL};
    struct errmsg err = {""};
    int rc = config == NULL ? errmsg_set(&err, ERR_NOMEM, "no memory for the configuration")
                            : agent_options_config(options, config, &err);

    if (rc == 0) {
        log_init("jury-agent", config->log_level);
        rc = preflight_check(config, &key, &err);
    }
    int status = AGENT_EXIT_STOPPED;
    if (rc != 0) {
        status = fail(rc, &err);
    } else if (command == AGENT_CHECK_CONFIG) {
        errno = 0;
        printf("jury-agent: the configuration is valid\n");
        status = printed();
    } else {
        status = run(config, &key);
    }
    key_pair_close(&key);
    free(config);
    return status;
}

static int dispatch(const struct options *options)
{
    enum agent_command command = agent_options_command(options);

    errno = 0;
    switch (command) {
    case AGENT_HELP:
        options_print_help(options, stdout);
        return printed();
    case AGENT_VERSION:
        printf("jury-agent " JURY_VERSION "\n");
        return printed();
    case AGENT_PRINT_CONFIG:
        options_print_config(options, stdout);
        return printed();
    case AGENT_PRINT_EXAMPLE:
        options_print_example(options, stdout);
        return printed();
    case AGENT_CHECK_CONFIG:
    case AGENT_RUN:
        return check_and_run(options, command);
    }
    return AGENT_EXIT_INTERNAL;
}

int main(int argc, char *argv[])
{
    struct options *options = NULL;
    struct errmsg err = {""};

    signal(SIGPIPE, SIG_IGN);
    tune_heap();
    watchdog_install_backtrace();
    table_rescue_install();
    /* Raft's segment work, layouts and last-known-good share libuv's pool. */
    setenv("UV_THREADPOOL_SIZE", "8", 0);
    if (sodium_init() < 0) {
        fprintf(stderr, "jury-agent: libsodium cannot start: no source of randomness\n");
        return AGENT_EXIT_INTERNAL;
    }
    int rc = agent_options_read(argc, argv, environ, &options, &err);
    int status = rc == 0 ? dispatch(options) : fail(rc, &err);
    options_free(options);
    return status;
}
