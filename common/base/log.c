#include "common/base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LOG_LINE_BYTES 2048

/* The log sink is the one place besides main.c that may hold state (style guide, "Memory"). */
static const char *sink_name = "jury";
static enum log_level sink_level = LOG_LEVEL_INFO;
static int sink_priorities;

void log_init(const char *name, enum log_level level)
{
    sink_name = name;
    sink_level = level;
    sink_priorities = getenv("JOURNAL_STREAM") != NULL;
}

static const char *level_name(enum log_level level)
{
    switch (level) {
    case LOG_LEVEL_ERROR:
        return "error";
    case LOG_LEVEL_WARNING:
        return "warning";
    case LOG_LEVEL_INFO:
        return "info";
    case LOG_LEVEL_DEBUG:
        return "debug";
    }
    return "unknown";
}

static int syslog_priority(enum log_level level)
{
    static const int priorities[] = {3, 3, 4, 6, 7};

    return priorities[level];
}

static size_t write_prefix(char *line, size_t line_bytes, enum log_level level, const char *event)
{
    int n;

    if (sink_priorities) {
        n = snprintf(line, line_bytes, "<%d>event=%s", syslog_priority(level), event);
    } else {
        struct timespec now;
        struct tm parts;
        char stamp[32];

        clock_gettime(CLOCK_REALTIME, &now);
        gmtime_r(&now.tv_sec, &parts);
        strftime(stamp, sizeof stamp, "%Y-%m-%dT%H:%M:%S", &parts);
        n = snprintf(line, line_bytes, "%s.%03ldZ %s %s event=%s", stamp, now.tv_nsec / 1000000,
                     sink_name, level_name(level), event);
    }
    return n < 0 || (size_t)n >= line_bytes ? line_bytes - 1 : (size_t)n;
}

void log_event(enum log_level level, const char *event, const char *format, ...)
{
    char line[LOG_LINE_BYTES];
    va_list args;

    if (level > sink_level) {
        return;
    }
    size_t n = write_prefix(line, sizeof line - 2, level, event);
    if (format[0] != '\0' && n < sizeof line - 2) {
        line[n++] = ' ';
        va_start(args, format);
        int m = vsnprintf(line + n, sizeof line - 1 - n, format, args);
        va_end(args);
        n += m < 0 ? 0 : (size_t)m;
        if (n > sizeof line - 2) {
            n = sizeof line - 2;
        }
    }
    line[n++] = '\n';
    /* One write a line, so that lines of threads and processes do not mix. */
    ssize_t written = write(STDERR_FILENO, line, n);
    (void)written;
}

char *log_quote(char *to, uint32_t to_bytes, const char *from)
{
    uint32_t n = 0;

    if (to_bytes < 8) {
        if (to_bytes > 0) {
            to[0] = '\0';
        }
        return to;
    }
    to[n++] = '"';
    for (; *from != '\0'; from++) {
        unsigned char byte = (unsigned char)*from;

        if (n + 8 > to_bytes) {
            memcpy(to + n, "...", 3);
            n += 3;
            break;
        }
        if (byte == '"' || byte == '\\') {
            to[n++] = '\\';
            to[n++] = (char)byte;
        } else if (byte < 0x20 || byte == 0x7f) {
            n += (uint32_t)snprintf(to + n, 5, "\\x%02x", byte);
        } else {
            to[n++] = (char)byte;
        }
    }
    to[n++] = '"';
    to[n] = '\0';
    return to;
}

int log_allowed(struct log_limit *limit, uint64_t now_ns, uint64_t period_ns,
                uint64_t *ret_n_dropped)
{
    if (limit->printed && now_ns - limit->last_ns < period_ns) {
        limit->n_dropped++;
        return 0;
    }
    *ret_n_dropped = limit->n_dropped;
    *limit = (struct log_limit){.last_ns = now_ns, .printed = 1};
    return 1;
}
