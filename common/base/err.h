/* Error codes shared by all modules, and the sentence that goes with one.
 *
 * A function that can fail returns 0 or a negative ERR_*. A function whose failure a person will
 * read also takes a `struct errmsg *` and writes one sentence: what, which object, what to do.
 * Expected outcomes of one module (a stale vote, a full quota) are an enum in its own header and
 * never travel as ERR_*. */
#ifndef JURY_BASE_ERR_H
#define JURY_BASE_ERR_H

/* X(name, number, text, canonical RPC code, UPPER_SNAKE reason, exit status of nodectl).
 * Numbers are part of the wire format and are never reused. RPC codes are the 17 canonical ones. */
#define ERR_CODES(X)                                                              \
    X(ERR_INVALID, 1, "invalid value", 3, "INVALID_VALUE", 3)                     \
    X(ERR_UNAVAILABLE_YET, 2, "not available yet", 12, "NOT_AVAILABLE_YET", 3)    \
    X(ERR_NOTFOUND, 3, "not found", 5, "NOT_FOUND", 7)                            \
    X(ERR_EXISTS, 4, "exists already", 6, "ALREADY_EXISTS", 8)                    \
    X(ERR_CONFLICT, 5, "changed since it was read", 10, "REVISION_CONFLICT", 8)   \
    X(ERR_FORCE, 6, "needs an explicit force", 9, "FORCE_NEEDED", 8)              \
    X(ERR_LIMIT, 7, "limit reached", 8, "LIMIT_REACHED", 10)                      \
    X(ERR_DENIED, 8, "not allowed", 7, "NOT_ALLOWED", 6)                          \
    X(ERR_UNAUTHENTICATED, 9, "not authenticated", 16, "NOT_AUTHENTICATED", 6)    \
    X(ERR_NOLEADER, 10, "no leader", 14, "NO_LEADER", 9)                          \
    X(ERR_NOTLEADER, 11, "not the leader", 14, "NOT_LEADER", 9)                   \
    X(ERR_TIMEOUT, 12, "deadline passed", 4, "DEADLINE_PASSED", 5)                \
    X(ERR_UNREACHABLE, 13, "cannot be reached", 14, "UNREACHABLE", 4)             \
    X(ERR_UNKNOWN_METHOD, 14, "unknown method", 12, "UNKNOWN_METHOD", 10)         \
    X(ERR_VERSION, 15, "version not understood", 9, "VERSION_NOT_UNDERSTOOD", 10) \
    X(ERR_CORRUPT, 16, "damaged", 15, "DAMAGED", 10)                              \
    X(ERR_IO, 17, "input or output failed", 13, "IO_FAILED", 10)                  \
    X(ERR_FULL, 18, "disk full", 8, "DISK_FULL", 10)                              \
    X(ERR_NOMEM, 19, "out of memory", 8, "OUT_OF_MEMORY", 10)                     \
    X(ERR_BUSY, 20, "busy", 14, "BUSY", 10)                                       \
    X(ERR_CANCELED, 21, "canceled", 1, "CANCELED", 10)                            \
    X(ERR_USAGE, 22, "wrong usage", 3, "USAGE", 2)                                \
    X(ERR_CONFIG, 23, "wrong configuration", 9, "CONFIGURATION", 3)               \
    X(ERR_INTERNAL, 24, "internal error", 13, "INTERNAL", 10)                     \
    X(ERR_NOTREADY, 25, "not ready", 9, "NOT_READY", 9)

enum err_code {
#define ERR_ENUM(name, number, text, rpc, reason, status) name = -(number),
    ERR_CODES(ERR_ENUM)
#undef ERR_ENUM
};

#define ERRMSG_BYTES 512

/* One sentence for a person, NUL-terminated, no newline. Longer text is cut and ends in "...". */
struct errmsg {
    char text[ERRMSG_BYTES];
};

/* Each of these takes any int; what is no ERR_* answers as ERR_INTERNAL does. */
const char *err_text(int err);
const char *err_reason(int err);
int err_rpc_code(int err);
int err_exit_status(int err);

/* What documents, calls and the catalog refuse alike reads alike: formats of such sentences. */
/* Of a list (its name in documents); unsigned long: how many, and the limit. ERR_LIMIT. */
#define ERR_SAY_TOO_MANY "%s: %lu entries, the limit is %lu"
/* What it is and its name. ERR_NOTFOUND. */
#define ERR_SAY_MISSING "%s \"%.128s\" does not exist"
/* Address and port, and the group's name. ERR_NOTFOUND. */
#define ERR_SAY_NO_BACKEND "backend %s of server group \"%.128s\" does not exist"

/* The ERR_* whose reason is `reason`, or ERR_INTERNAL. */
int err_from_reason(const char *reason);

/* Write the sentence and return `err`, so that a failure is one statement:
 * `return errmsg_set(msg, ERR_INVALID, "server group \"%s\": ...", name);`
 * msg may be NULL. */
int errmsg_set(struct errmsg *msg, int err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Put "prefix: " before the sentence that is there. */
void errmsg_prefix(struct errmsg *msg, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Map an errno to ERR_*; called where the system call was made. */
int err_from_errno(int errnum);

#endif
