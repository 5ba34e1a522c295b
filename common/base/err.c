#include "common/base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

struct err_row {
    int err;
    int rpc_code;
    int exit_status;
    const char *text;
    const char *reason;
};

static const struct err_row rows[] = {
#define ERR_ROW(name, number, text, rpc, reason, status) {name, rpc, status, text, reason},
    ERR_CODES(ERR_ROW)
#undef ERR_ROW
};

static const struct err_row *row_of(int err)
{
    const struct err_row *internal = NULL;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (rows[i].err == err) {
            return &rows[i];
        }
        if (rows[i].err == ERR_INTERNAL) {
            internal = &rows[i];
        }
    }
    return internal;
}

const char *err_text(int err)
{
    return row_of(err)->text;
}

const char *err_reason(int err)
{
    return row_of(err)->reason;
}

int err_rpc_code(int err)
{
    return row_of(err)->rpc_code;
}

int err_exit_status(int err)
{
    return row_of(err)->exit_status;
}

int err_from_reason(const char *reason)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (strcmp(rows[i].reason, reason) == 0) {
            return rows[i].err;
        }
    }
    return ERR_INTERNAL;
}

static void mark_cut(char *text)
{
    memcpy(text + ERRMSG_BYTES - 4, "...", 4);
}

int errmsg_set(struct errmsg *msg, int err, const char *format, ...)
{
    if (msg != NULL) {
        va_list args;

        va_start(args, format);
        int n = vsnprintf(msg->text, sizeof msg->text, format, args);
        va_end(args);
        if (n >= (int)sizeof msg->text) {
            mark_cut(msg->text);
        }
    }
    return err;
}

void errmsg_prefix(struct errmsg *msg, const char *format, ...)
{
    char old[ERRMSG_BYTES];
    va_list args;

    if (msg == NULL) {
        return;
    }
    memcpy(old, msg->text, sizeof old);
    va_start(args, format);
    int n = vsnprintf(msg->text, sizeof msg->text, format, args);
    va_end(args);
    if (n < 0 || n >= (int)sizeof msg->text) {
        mark_cut(msg->text);
        return;
    }
    size_t left = sizeof msg->text - (size_t)n;
    int m = snprintf(msg->text + n, left, ": %s", old);
    if (m >= (int)left) {
        mark_cut(msg->text);
    }
}

int err_from_errno(int errnum)
{
    switch (errnum) {
    case ENOENT:
        return ERR_NOTFOUND;
    case EEXIST:
        return ERR_EXISTS;
    case ENOMEM:
        return ERR_NOMEM;
    case ENOSPC:
    case EDQUOT:
        return ERR_FULL;
    case EACCES:
    case EPERM:
        return ERR_DENIED;
    case ETIMEDOUT:
        return ERR_TIMEOUT;
    case EADDRINUSE:
    case EBUSY:
        return ERR_BUSY;
    case EMFILE:
    case ENFILE:
        return ERR_LIMIT;
    default:
        return ERR_IO;
    }
}
