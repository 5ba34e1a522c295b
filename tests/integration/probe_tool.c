/* The probe thread on the command line, for the scripts of this folder: real sockets, no cluster.
 *
 * usage: probe_tool [--in-flight N] [--allow PREFIX]... [--send auto|ip|link]
 *   [--receive ring|xdp|xdp-driver]
 * Reads commands from standard input, a line each, until it ends:
 *   set SLOT type=http to=127.0.0.1:80 T=500 I=100 path=/x expect=200-299+302 source=ADDRESS ...
 *   set SLOT type=tls to=... sni=NAME verify=ca minVersion=1.0 alpn=h2 warnDays=14 inside=http ...
 *   set SLOT type=grpc to=... service=NAME within=tls ...
 *   remove SLOT
 *   publish                the changes since the last publish become the plan
 *   counts                 prints a line with them
 * Prints a JSON line for each result and for each `counts`. */
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/core/catalog.h"
#include "agent/probe/probe_thread.h"
#include "common/base/err.h"
#include "common/base/log.h"
#include "common/base/str.h"
#include "common/model/names.h"

#define LINE_BYTES 1024

struct tool {
    struct probe_thread *thread;
    struct probe_plan_editor editor;
    struct wake wake;
    uint64_t next_birth;
    char line[LINE_BYTES];
    size_t n_line_bytes;
};

__attribute__((format(printf, 1, 2), noreturn)) static void die(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    fprintf(stderr, "probe_tool: ");
    vfprintf(stderr, format, args);
    fprintf(stderr, "\n");
    va_end(args);
    exit(2);
}

static uint32_t number(const char *text)
{
    uint64_t value;

    if (!str_parse_u64(text, UINT32_MAX, &value)) {
        die("\"%s\" is not a number", text);
    }
    return (uint32_t)value;
}

static uint8_t word(const struct name_table *table, const char *text)
{
    unsigned value = names_value(table, text);

    if (value == 0) {
        die("\"%s\" is no %s", text, table->what);
    }
    return (uint8_t)value;
}

/* "200-299+302" */
static void parse_codes(char *text, struct http_codes *codes)
{
    char *save = NULL;

    memset(codes, 0, sizeof *codes);
    for (char *part = strtok_r(text, "+", &save); part != NULL; part = strtok_r(NULL, "+", &save)) {
        char *dash = strchr(part, '-');
        if (dash != NULL) {
            *dash = '\0';
        }
        http_codes_add(codes, number(part), number(dash != NULL ? dash + 1 : part));
    }
}

/* Text without blanks, or "hex:" and digits. */
static uint16_t parse_data(const char *text, uint8_t *to, size_t n_max)
{
    size_t n_bytes = strlen(text);
    bool is_hex = strncmp(text, "hex:", 4) == 0;

    n_bytes = is_hex ? (n_bytes - 4) / 2 : n_bytes;
    if (n_bytes > n_max || (is_hex && !str_unhex(text + 4, to, n_bytes))) {
        die("\"%s\" is too long, or no hex", text);
    }
    if (!is_hex) {
        memcpy(to, text, n_bytes);
    }
    return (uint16_t)n_bytes;
}

/* False: no field of udp. */
static bool parse_udp_field(struct udp_check *udp, const char *field, const char *value)
{
    if (strcmp(field, "udp") == 0) {
        udp->method = word(&names_udp_method, value);
    } else if (strcmp(field, "payload") == 0) {
        udp->payload.n_bytes = parse_data(value, udp->payload.bytes, sizeof udp->payload.bytes);
    } else if (strcmp(field, "answer") == 0) {
        udp->expect.n_bytes = parse_data(value, udp->expect.bytes, sizeof udp->expect.bytes);
    } else if (strcmp(field, "mask") == 0) {
        udp->mask.n_bytes = parse_data(value, udp->mask.bytes, sizeof udp->mask.bytes);
    } else {
        return false;
    }
    return true;
}

/* False: no field of tls or grpc. */
static bool parse_tls_field(struct health_check *check, const char *field, const char *value)
{
    if (strcmp(field, "sni") == 0) {
        str_copy(check->tls.server_name, sizeof check->tls.server_name, value);
    } else if (strcmp(field, "verify") == 0) {
        check->tls.verify = word(&names_tls_verify, value);
    } else if (strcmp(field, "minVersion") == 0) {
        check->tls.min_version = word(&names_tls_version, value);
    } else if (strcmp(field, "alpn") == 0) {
        str_copy(check->tls.alpn, sizeof check->tls.alpn, value);
    } else if (strcmp(field, "service") == 0) {
        str_copy(check->grpc.service, sizeof check->grpc.service, value);
    } else if (strcmp(field, "warnDays") == 0) {
        check->tls.warn_days = (uint16_t)number(value);
    } else {
        return false;
    }
    return true;
}

static void parse_field(struct probe_target *target, struct health_check *check, char *field)
{
    struct errmsg err = {.text = ""};
    char *value = strchr(field, '=');
    int rc = 0;

    if (value == NULL) {
        die("\"%s\" is not KEY=VALUE", field);
    }
    *value++ = '\0';
    if (strcmp(field, "type") == 0) {
        check->type = word(&names_check_type, value);
    } else if (strcmp(field, "to") == 0) {
        rc = endpoint_parse(value, &target->definition.to, &err);
    } else if (strcmp(field, "source") == 0) {
        rc = addr_parse(value, &target->source, &err);
    } else if (strcmp(field, "T") == 0) {
        check->timeout_ms = number(value);
    } else if (strcmp(field, "I") == 0) {
        check->interval_ms = number(value);
    } else if (strcmp(field, "pacing") == 0) {
        check->pacing = word(&names_pacing, value);
    } else if (strcmp(field, "close") == 0) {
        check->tcp.close = word(&names_tcp_close, value);
    } else if (strcmp(field, "handshake") == 0) {
        check->tcp.handshake = word(&names_tcp_handshake, value);
    } else if (strcmp(field, "onTimeout") == 0) {
        check->tcp.on_timeout = word(&names_tcp_on_timeout, value);
    } else if (strcmp(field, "send") == 0) {
        check->tcp.send.n_bytes =
            parse_data(value, check->tcp.send.bytes, sizeof check->tcp.send.bytes);
    } else if (strcmp(field, "line") == 0) {
        check->tcp.expect.n_bytes =
            parse_data(value, check->tcp.expect.bytes, sizeof check->tcp.expect.bytes);
    } else if (strcmp(field, "method") == 0) {
        check->http.method = word(&names_http_method, value);
    } else if (strcmp(field, "host") == 0) {
        check->http.host = word(&names_http_host, value);
    } else if (strcmp(field, "path") == 0) {
        str_copy(check->http.path, sizeof check->http.path, value);
    } else if (strcmp(field, "expect") == 0) {
        parse_codes(value, &check->http.expect);
    } else if (!parse_udp_field(&check->udp, field, value) &&
               !parse_tls_field(check, field, value)) {
        die("\"%s\" is no field", field);
    }
    if (rc != 0) {
        die("%s", err.text);
    }
}

static void set(struct tool *tool, char *arguments)
{
    char *save = NULL;
    char *slot = strtok_r(arguments, " ", &save);
    bool has_http = false; /* inside tls */
    bool has_tls = false;  /* around grpc */
    struct probe_target target = {.id.slot = 0};
    struct health_check check = {
        .type = CHECK_TYPE_TCP,
        .pacing = PACING_END_TO_START,
        .timeout_ms = 500,
        .interval_ms = 100,
        .tcp = {.handshake = TCP_FULL, .close = TCP_CLOSE_RST},
        .http = {.method = HTTP_GET,
                 .version = HTTP_1_1,
                 .host = HTTP_HOST_ADDRESS_PORT,
                 .path = "/"},
        .tls = {.verify = TLS_VERIFY_NONE, .min_version = TLS_VERSION_1_2, .warn_days = 14},
        .udp = {.method = UDP_PORT, .payload = {.n_bytes = 4, .bytes = "ping"}}};

    http_codes_add(&check.http.expect, 200, 399);
    target.id.slot = number(slot != NULL ? slot : "");
    target.id.birth = ++tool->next_birth;
    for (char *field = strtok_r(NULL, " ", &save); field != NULL;
         field = strtok_r(NULL, " ", &save)) {
        if (strcmp(field, "inside=http") == 0) {
            has_http = true;
        } else if (strcmp(field, "within=tls") == 0) {
            has_tls = true;
        } else {
            parse_field(&target, &check, field);
        }
    }
    if (check.type != CHECK_TYPE_HTTP && !has_http) {
        check.http = (struct http_check){0};
    }
    if (check.type != CHECK_TYPE_TLS && !has_tls) {
        check.tls = (struct tls_check){0};
    }
    target.definition.check = catalog_check_new(&check);
    if (probe_plan_editor_set(&tool->editor, &target, false) != 0) {
        die("cannot set slot %u", target.id.slot);
    }
    catalog_check_unref(target.definition.check);
}

static void remove_slot(struct tool *tool, const char *argument)
{
    uint32_t slot = number(argument);

    if (slot < tool->editor.n_slots && tool->editor.by_slot[slot] != NULL) {
        probe_plan_editor_remove(&tool->editor, tool->editor.by_slot[slot]->target.id);
    }
}

static void publish(struct tool *tool)
{
    struct probe_plan *plan = probe_plan_editor_publish(&tool->editor);

    if (plan == NULL) {
        die("no memory for a plan");
    }
    probe_thread_plan(tool->thread, plan);
}

static void print_count(void *to, const struct counter_value *value)
{
    (void)to;
    printf(", \"%s%s%s\": %llu", value->name, value->label != NULL ? "_" : "",
           value->label != NULL ? value->label : "", (unsigned long long)value->value);
}

static void print_counts(const struct tool *tool)
{
    struct probe_counts counts;

    probe_thread_counts(tool->thread, &counts);
    const struct packet_way_words way = packet_way_words(probe_thread_way(tool->thread));

    printf("{\"counts\": true, \"send\": \"%s\", \"send_why\": \"%s\", "
           "\"receive\": \"%s\", \"receive_why\": \"%s\"",
           way.send, way.send_why, way.receive, way.receive_why);
    probe_counts_emit(&counts, print_count, NULL);
    printf("}\n");
}

static void print_results(struct tool *tool)
{
    static const char *const classes[] = {"none", "pass", "fail", "inconclusive"};
    struct probe_result result;

    while (probe_thread_pop(tool->thread, &result)) {
        printf("{\"slot\": %u, \"birth\": %llu, \"class\": \"%s\", \"reason\": \"%s\", "
               "\"status\": %u, \"cert_day\": %u, \"cert_near\": %u, \"start\": %.6f, "
               "\"end\": %.6f}\n",
               result.id.slot, (unsigned long long)result.id.birth, classes[result.probe_class],
               probe_reason_word(result.reason), result.http_status, result.cert.day,
               result.cert.is_near, (double)result.start_ns / 1e9, (double)result.end_ns / 1e9);
    }
}

static void obey(struct tool *tool, char *line)
{
    if (strncmp(line, "set ", 4) == 0) {
        set(tool, line + 4);
    } else if (strncmp(line, "remove ", 7) == 0) {
        remove_slot(tool, line + 7);
    } else if (strcmp(line, "publish") == 0) {
        publish(tool);
    } else if (strcmp(line, "counts") == 0) {
        print_counts(tool);
    } else {
        die("\"%s\" is no command", line);
    }
}

/* False at the end of the input. */
static bool read_commands(struct tool *tool)
{
    ssize_t n = read(STDIN_FILENO, tool->line + tool->n_line_bytes,
                     sizeof tool->line - tool->n_line_bytes - 1);

    if (n <= 0) {
        return n < 0 && errno == EINTR;
    }
    tool->n_line_bytes += (size_t)n;
    tool->line[tool->n_line_bytes] = '\0';
    char *begin = tool->line;
    for (char *end = strchr(begin, '\n'); end != NULL; end = strchr(begin, '\n')) {
        *end = '\0';
        obey(tool, begin);
        begin = end + 1;
    }
    tool->n_line_bytes = strlen(begin);
    if (tool->n_line_bytes == sizeof tool->line - 1) {
        die("a command of more than %d bytes", LINE_BYTES - 2);
    }
    memmove(tool->line, begin, tool->n_line_bytes + 1);
    return true;
}

static void parse_options(int argc, char **argv, struct probe_thread_options *options)
{
    struct errmsg err;

    for (int i = 1; i < argc; i += 2) {
        if (i + 1 == argc) {
            die("%s needs a value", argv[i]);
        }
        if (strcmp(argv[i], "--send") == 0) {
            options->loop.half_open_send = packet_send_of(argv[i + 1]);
        } else if (strcmp(argv[i], "--receive") == 0) {
            options->loop.half_open_receive = packet_receive_of(argv[i + 1]);
        } else if (strcmp(argv[i], "--in-flight") == 0) {
            options->loop.in_flight_max = number(argv[i + 1]);
        } else if (strcmp(argv[i], "--allow") == 0) {
            if (options->loop.n_allowed == LIMIT_CIDRS ||
                cidr_parse(argv[i + 1], &options->loop.allowed[options->loop.n_allowed++], &err) !=
                    0) {
                die("\"%s\" cannot be allowed", argv[i + 1]);
            }
        } else {
            die("there is no option %s", argv[i]);
        }
    }
}

int main(int argc, char **argv)
{
    struct probe_thread_options options = {.loop.node_id = 1, .makes_packets = true};
    struct tool tool = {.next_birth = 0};
    struct errmsg err = {.text = ""};

    log_init("probe_tool", LOG_LEVEL_WARNING);
    parse_options(argc, argv, &options);
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (wake_init(&tool.wake) != 0) {
        die("no wake-up");
    }
    options.results_wake = &tool.wake;
    probe_plan_editor_init(&tool.editor);
    if (probe_thread_start(&options, &tool.thread, &err) != 0) {
        die("%s", err.text);
    }
    struct pollfd fds[2] = {
        {.fd = STDIN_FILENO, .events = POLLIN},
        {.fd = wake_fd(&tool.wake), .events = POLLIN},
    };
    bool is_open = true;
    while (is_open && poll(fds, 2, -1) >= 0) {
        if (fds[1].revents != 0) {
            wake_clear(&tool.wake);
            print_results(&tool);
        }
        if (fds[0].revents != 0) {
            is_open = read_commands(&tool);
        }
    }
    probe_thread_stop(tool.thread);
    probe_plan_editor_close(&tool.editor);
    wake_close(&tool.wake);
    return 0;
}
