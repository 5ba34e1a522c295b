#include "agent/shim/options.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "common/base/limits.h"
#include "common/base/output.h"

static const struct option_spec specs[] = {
    {.section = "Files",
     .name = "tables",
     .argument = "DIR",
     .type = OPTION_PATH,
     .default_text = "/run/jury/tables",
     .help = "folder where jury-agent keeps the forwarding table; may appear later"},
    {.section = "Files",
     .name = "status",
     .argument = "DIR",
     .type = OPTION_PATH,
     .default_text = "/run/jury/status",
     .help = "folder for this data plane's status file"},
    {.section = "Files",
     .name = "name",
     .argument = "NAME",
     .type = OPTION_TEXT,
     .min = 1,
     .max = 40,
     .default_text = "jury-shim",
     .help = "name of this data plane and of its status file"},
    {.section = "Forwarding",
     .name = "listen-address",
     .argument = "ADDRESS",
     .type = OPTION_ADDRESS,
     .is_list = true,
     .help = "where listeners on 0.0.0.0 or :: listen, one a family; without it on every address"},
    {.section = "Forwarding",
     .name = "workers",
     .argument = "NUMBER",
     .type = OPTION_NUMBER,
     .min = 0,
     .max = LIMIT_SHIM_WORKERS,
     .default_text = "0",
     .help = "threads that forward; 0 = one for each core"},
    {.section = "Forwarding",
     .name = "flows",
     .argument = "NUMBER",
     .type = OPTION_NUMBER,
     .min = 1,
     .max = LIMIT_SHIM_FLOWS,
     .unit = "flows a worker",
     .default_text = "16384",
     .help = "more are refused with RST and counted; each takes two descriptors"},
    {.section = "Forwarding",
     .name = "connect-timeout",
     .argument = "TIME",
     .type = OPTION_DURATION,
     .min = 100,
     .max = 60000,
     .default_text = "6s",
     .help = "for all attempts of one connection to reach a backend, at most three of them"},
    {.section = "Forwarding",
     .name = "stop-timeout",
     .argument = "TIME",
     .type = OPTION_DURATION,
     .min = 0,
     .max = 3600000,
     .default_text = "10s",
     .help = "after SIGTERM flows may end by themselves for this long, then RST; a second signal "
             "ends them at once"},
    {.section = "Other",
     .name = "log-level",
     .argument = "LEVEL",
     .type = OPTION_CHOICE,
     .choices = "error|warning|info|debug",
     .default_text = "info",
     .help = "what is written to standard error"},
    {.section = "Other",
     .name = "config",
     .argument = "FILE",
     .type = OPTION_PATH,
     .is_command = true,
     .help = "read options from this file"},
    {.section = "Other",
     .name = "print-config",
     .type = OPTION_FLAG,
     .is_command = true,
     .help = "print every option with its value and where it comes from"},
    {.section = "Other",
     .name = "print-example",
     .type = OPTION_FLAG,
     .is_command = true,
     .help = "print a file with every option, its meaning and its default"},
    {.section = "Other",
     .name = "version",
     .type = OPTION_FLAG,
     .is_command = true,
     .help = "print the version"},
    {.section = "Other",
     .name = "help",
     .type = OPTION_FLAG,
     .is_command = true,
     .help = "print this"},
};

static const struct option_table table = {
    .program = "jury-shim",
    .summary = "Forwards TCP connections to backends by the forwarding table of jury-agent.",
    .specs = specs,
    .n_specs = sizeof specs / sizeof specs[0],
};

static enum log_level level_of(const char *word)
{
    if (strcmp(word, "error") == 0) {
        return LOG_LEVEL_ERROR;
    }
    if (strcmp(word, "warning") == 0) {
        return LOG_LEVEL_WARNING;
    }
    return strcmp(word, "debug") == 0 ? LOG_LEVEL_DEBUG : LOG_LEVEL_INFO;
}

static uint32_t n_workers_of(uint64_t wanted)
{
    long n_cores = sysconf(_SC_NPROCESSORS_ONLN);

    if (wanted != 0) {
        return (uint32_t)wanted;
    }
    if (n_cores < 1) {
        return 1;
    }
    return n_cores > LIMIT_SHIM_WORKERS ? LIMIT_SHIM_WORKERS : (uint32_t)n_cores;
}

/* Only a flow whose reader is slow holds one: a quarter of the flows may at once (256 MiB a worker
 * at the default), more wait for a buffer. */
static uint32_t n_buffers_of(uint32_t n_flows)
{
    return n_flows / 4 > 64 ? n_flows / 4 : 64;
}

/* One address a family: two of one would make one listener into two. */
static int take_own_addresses(const struct options *options, struct shim_config *config,
                              struct errmsg *err)
{
    size_t n = options_n_values(options, "listen-address");

    for (size_t i = 0; i < n; i++) {
        struct addr addr;
        struct addr *own;

        int rc = addr_parse(options_value_at(options, "listen-address", i), &addr, err);
        if (rc != 0) {
            return rc;
        }
        own = &config->own[addr.family == ADDR_IPV6];
        if (own->family != ADDR_NONE) {
            return errmsg_set(err, ERR_CONFIG, "%s: listen-address: at most one IPv%u address",
                              options_origin(options, "listen-address"), (unsigned)addr.family);
        }
        *own = addr;
    }
    return 0;
}

static void fill_config(const struct options *options, struct shim_config *config)
{
    uint32_t n_flows = (uint32_t)options_number(options, "flows");

    *config = (struct shim_config){
        .tables_dir = options_text(options, "tables"),
        .status_dir = options_text(options, "status"),
        .name = options_text(options, "name"),
        .n_workers = n_workers_of(options_number(options, "workers")),
        .stop_timeout_ms = (uint32_t)options_duration_ms(options, "stop-timeout"),
        .log_level = level_of(options_text(options, "log-level")),
        .worker =
            {
                .n_flows_max = n_flows,
                .n_buffers = n_buffers_of(n_flows),
                .connect_timeout_ms = (uint32_t)options_duration_ms(options, "connect-timeout"),
            },
    };
}

/* ret_command: SHIM_PRINTED if there was something to print. Errors: ERR_IO. */
static int print_what_was_asked(const struct options *options, enum shim_command *ret_command,
                                struct errmsg *err)
{
    errno = 0;
    if (options_flag(options, "help")) {
        options_print_help(options, stdout);
    } else if (options_flag(options, "version")) {
        printf("jury-shim %s\n", JURY_VERSION);
    } else if (options_flag(options, "print-example")) {
        options_print_example(options, stdout);
    } else if (options_flag(options, "print-config")) {
        options_print_config(options, stdout);
    } else {
        *ret_command = SHIM_RUN;
        return 0;
    }
    *ret_command = SHIM_PRINTED;
    return output_end(stdout, err);
}

int shim_options_read(int argc, char *const argv[], char *const environment[],
                      struct shim_start *ret_start, struct errmsg *err)
{
    struct options *options = options_new(&table);

    if (options == NULL) {
        return errmsg_set(err, ERR_NOMEM, "no memory for the options");
    }
    int result = options_read_arguments(options, argc, argv, err);
    if (result == 0) {
        result = options_read_environment(options, environment, err);
    }
    if (result == 0 && options_text(options, "config") != NULL) {
        result = options_read_file(options, options_text(options, "config"), err);
    }
    struct shim_config config = {0};
    if (result == 0) {
        fill_config(options, &config);
        result = take_own_addresses(options, &config, err);
    }
    enum shim_command command = SHIM_RUN;
    if (result == 0) {
        result = print_what_was_asked(options, &command, err);
    }
    if (result != 0) {
        options_free(options);
        return result;
    }
    *ret_start = (struct shim_start){
        .options = options,
        .config = config,
        .command = command,
    };
    return 0;
}
