/* The log: one line an event, `event=name key=value ...`, to standard error.
 *
 * Shells log, once, where they give up or a state changes; core never does (tests/lint refuses it).
 * Under systemd (JOURNAL_STREAM set) each line begins with its priority, "<4>". Thread-safe. */
#ifndef JURY_BASE_LOG_H
#define JURY_BASE_LOG_H

#include <stdint.h>

enum log_level {
    LOG_LEVEL_ERROR = 1,
    LOG_LEVEL_WARNING,
    LOG_LEVEL_INFO,
    LOG_LEVEL_DEBUG
};

/* Call once before threads start. name: kept; printed on each line (`jury-agent`). */
void log_init(const char *name, enum log_level level);

/* event: lower_snake; format: `key=value` pairs, or empty. Values with blanks are the caller's to
 * quote with %s and log_quote. */
void log_event(enum log_level level, const char *event, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Copy a foreign string so that it is one quoted value: quotes, backslashes and control bytes are
 * escaped, long text is cut. Returns `to`. */
char *log_quote(char *to, uint32_t to_bytes, const char *from);

/* Repeats of one event: true when it may be printed now, at most once a period; *n_dropped then
 * holds how many were dropped since. One struct an event and source, zeroed at the start. */
struct log_limit {
    uint64_t last_ns;
    uint64_t n_dropped;
    int printed;
};
int log_allowed(struct log_limit *limit, uint64_t now_ns, uint64_t period_ns,
                uint64_t *ret_n_dropped);

#endif
