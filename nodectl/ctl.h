/* One run of nodectl: what the commands share. No global state; main.c makes one of these, tests
 * make many.
 *
 * Data goes to `out` and appears only when the command has ended well (status 0, or 1 = the answer
 * is "no"): nothing is ever half printed. Messages go to `err`. */
#ifndef JURY_NODECTL_CTL_H
#define JURY_NODECTL_CTL_H

#include <jansson.h>
#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "common/base/err.h"
#include "common/rpc/rpc_client.h"

#define CTL_ARGS_MAX 16

/* What the process was given; borrowed for the run. */
struct ctl_process {
    int argc;
    char *const *argv;
    char *const *environment;
    FILE *in;
    FILE *out;
    FILE *err;
    bool out_is_terminal;
    bool err_is_terminal;
};

/* Why the command failed; printed once, at the end. */
struct ctl_failure {
    struct errmsg message;
    struct errmsg hint;   /* "" = none */
    char lines[32768];    /* for people: further lines (peers), or all of them (see next) */
    bool lines_are_whole; /* `lines` stands in the place of "error: message" (a place in a file) */
    int rpc_code;         /* canonical code of the server, 0 = the one of the ERR_* */
    char reason[64];      /* of the server, "" = the one of the ERR_* */
    char request_id[33];  /* "" = nothing was asked */
    json_t *metadata;     /* object; NULL = empty */
};

struct ctl_flag;
struct ctl_command;

struct ctl {
    struct ctl_process process;
    FILE *out; /* buffered, see above; process.out in a stream of events */
    const struct ctl_command *command;
    char *args[CTL_ARGS_MAX]; /* behind the command's words; borrowed */
    size_t n_args;
    struct ctl_value *values;  /* by index of the flag table */
    struct rpc_client *client; /* made by the first call */
    bool is_stale;             /* as with --stale; for polling */
    uint32_t patience_ms;      /* of a call, unless --timeout is given; 0 = its default */
    struct ctl_failure failure;
};

/* Run the command line. Returns the exit status. */
int ctl_main(const struct ctl_process *process);

/* Write the sentence of a failure and return `err`. */
int ctl_fail(struct ctl *ctl, int err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* What to do about it. */
void ctl_hint(struct ctl *ctl, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A detail for programs: a pair of the error's metadata. */
void ctl_detail(struct ctl *ctl, const char *key, const char *value);

/* Print "warning: ..." to err, unless --quiet or -o json: a program reads err as one object. */
void ctl_warn(struct ctl *ctl, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Print a remark to err, unless --quiet or -o json. */
void ctl_note(struct ctl *ctl, const char *format, ...) __attribute__((format(printf, 2, 3)));

bool ctl_is_json(const struct ctl *ctl);
/* Print a message as the ProtoJSON that the API promises. Errors: ERR_NOMEM. */
int ctl_print_message(struct ctl *ctl, const ProtobufCMessage *message);
/* Print a JSON value, which is taken. Errors: ERR_NOMEM (also for NULL). */
int ctl_print_json(struct ctl *ctl, json_t *json);

#endif
