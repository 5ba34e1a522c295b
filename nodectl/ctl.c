#include "nodectl/ctl.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/output.h"
#include "common/base/plant.h"
#include "common/base/str.h"
#include "common/wire/json.h"
#include "nodectl/commands.h"
#include "nodectl/flags.h"

int ctl_fail(struct ctl *ctl, int err, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(ctl->failure.message.text, sizeof ctl->failure.message.text, format, args);
    va_end(args);
    return err;
}

void ctl_hint(struct ctl *ctl, const char *format, ...)
{
    va_list args;

    /* The first hint is the nearest to the fault. */
    if (ctl->failure.hint.text[0] == '\0') {
        va_start(args, format);
        vsnprintf(ctl->failure.hint.text, sizeof ctl->failure.hint.text, format, args);
        va_end(args);
    }
}

void ctl_detail(struct ctl *ctl, const char *key, const char *value)
{
    if (ctl->failure.metadata == NULL) {
        ctl->failure.metadata = json_object();
    }
    /* Text that is no UTF-8 is left out; a detail is not worth a second failure. */
    (void)json_object_set_new(ctl->failure.metadata, key, json_string(value));
}

__attribute__((format(printf, 3, 0))) static void remark(struct ctl *ctl, const char *word,
                                                         const char *format, va_list args)
{
    fputs(word, ctl->process.err);
    vfprintf(ctl->process.err, format, args);
    fputc('\n', ctl->process.err);
}

void ctl_warn(struct ctl *ctl, const char *format, ...)
{
    va_list args;

    if (!ctl_has(ctl, FLAG_QUIET) && !ctl_is_json(ctl)) {
        va_start(args, format);
        remark(ctl, "warning: ", format, args);
        va_end(args);
    }
}

void ctl_note(struct ctl *ctl, const char *format, ...)
{
    va_list args;

    if (!ctl_has(ctl, FLAG_QUIET) && !ctl_is_json(ctl)) {
        va_start(args, format);
        remark(ctl, "", format, args);
        va_end(args);
    }
}

bool ctl_is_json(const struct ctl *ctl)
{
    return strcmp(ctl_text(ctl, FLAG_OUTPUT), "json") == 0;
}

int ctl_print_message(struct ctl *ctl, const ProtobufCMessage *message)
{
    char *text = wire_json_text(message);

    if (text == NULL) {
        return ctl_fail(ctl, ERR_NOMEM, "out of memory");
    }
    fprintf(ctl->out, "%s\n", text);
    free(text);
    return 0;
}

int ctl_print_json(struct ctl *ctl, json_t *json)
{
    char *text = json == NULL ? NULL : json_dumps(json, JSON_INDENT(2));

    json_decref(json);
    if (text == NULL) {
        return ctl_fail(ctl, ERR_NOMEM, "out of memory");
    }
    fprintf(ctl->out, "%s\n", text);
    free(text);
    return 0;
}

static const char *code_word(int code)
{
    static const char *const words[] = {
        "CODE_OK",
        "CODE_CANCELLED",
        "CODE_UNKNOWN",
        "CODE_INVALID_ARGUMENT",
        "CODE_DEADLINE_EXCEEDED",
        "CODE_NOT_FOUND",
        "CODE_ALREADY_EXISTS",
        "CODE_PERMISSION_DENIED",
        "CODE_RESOURCE_EXHAUSTED",
        "CODE_FAILED_PRECONDITION",
        "CODE_ABORTED",
        "CODE_OUT_OF_RANGE",
        "CODE_UNIMPLEMENTED",
        "CODE_INTERNAL",
        "CODE_UNAVAILABLE",
        "CODE_DATA_LOSS",
        "CODE_UNAUTHENTICATED",
    };

    return code >= 0 && code <= 16 ? words[code] : "CODE_UNKNOWN";
}

/* {code, reason, message, metadata, requestId}: one object whatever went wrong. */
static void print_failure_json(struct ctl *ctl, int err)
{
    const struct ctl_failure *failure = &ctl->failure;
    int code = failure->rpc_code != 0 ? failure->rpc_code : err_rpc_code(err);
    const char *reason = failure->reason[0] != '\0' ? failure->reason : err_reason(err);
    json_t *metadata = failure->metadata != NULL ? json_incref(failure->metadata) : json_object();
    json_t *json =
        json_pack("{s:s, s:s, s:s, s:o, s:s}", "code", code_word(code), "reason", reason, "message",
                  failure->message.text, "metadata", metadata, "requestId", failure->request_id);

    if (json == NULL) {
        /* Only text that is no UTF-8 can be at fault. */
        json = json_pack("{s:s, s:s, s:s, s:{}, s:s}", "code", code_word(code), "reason", reason,
                         "message", "the message is not valid UTF-8", "metadata", "requestId", "");
    }
    char *text = json == NULL ? NULL : json_dumps(json, JSON_INDENT(2));
    fprintf(ctl->process.err, "%s\n", text == NULL ? "{}" : text);
    free(text);
    json_decref(json);
}

/* What a file or a peer says may steer the terminal of whoever reads that it is wrong. */
static void print_failure(struct ctl *ctl, int err)
{
    struct ctl_failure *failure = &ctl->failure;
    FILE *out = ctl->process.err;

    if (ctl_is_json(ctl)) {
        print_failure_json(ctl, err);
        return;
    }
    str_make_text(failure->message.text);
    str_make_text(failure->lines);
    str_make_text(failure->hint.text);
    if (!failure->lines_are_whole) {
        fprintf(out, "error: %s\n",
                failure->message.text[0] != '\0' ? failure->message.text : err_text(err));
    }
    if (failure->lines[0] != '\0') {
        fprintf(out, "%s\n", failure->lines);
    }
    if (failure->hint.text[0] != '\0') {
        fprintf(out, "hint: %s\n", failure->hint.text);
    }
}

static int find_command(struct ctl *ctl, char *const words[], size_t n_words)
{
    size_t n_used = 0;
    int rc = ctl_command_find(ctl, words, n_words, &ctl->command, &n_used);

    if (rc != 0) {
        return rc;
    }
    ctl->n_args = n_words - n_used;
    memcpy(ctl->args, words + n_used, ctl->n_args * sizeof words[0]);
    return 0;
}

/* --help, also without a whole command, and `nodectl help ...`. True: it was printed. */
static bool help_asked(struct ctl *ctl, char *const words[], size_t n_words)
{
    const struct ctl_command *command = NULL;
    size_t n_used = 0;
    bool is_word = n_words > 0 && strcmp(words[0], "help") == 0;

    if (!is_word && !ctl_has(ctl, FLAG_HELP)) {
        return false;
    }
    if (is_word) {
        words++;
        n_words--;
    }
    if (n_words == 0) {
        ctl_help_all(ctl->out);
        return true;
    }
    if (ctl_command_find(ctl, words, n_words, &command, &n_used) == 0) {
        ctl_help_command(ctl->out, command);
        return true;
    }
    if (n_words == 1 && ctl_is_noun(words[0])) {
        ctl_help_noun(ctl->out, words[0]);
        return true;
    }
    return false; /* the sentence about the unknown command is there */
}

static bool takes_file(const struct ctl_command *command)
{
    for (size_t i = 0; i < sizeof command->flags / sizeof command->flags[0]; i++) {
        if (command->flags[i] == FLAG_FILE) {
            return true;
        }
    }
    return false;
}

static int check_args(struct ctl *ctl)
{
    const struct ctl_command *command = ctl->command;

    if (ctl->n_args >= command->n_args_min && ctl->n_args <= command->n_args_max) {
        return 0;
    }
    if (ctl->n_args > command->n_args_max && command->n_args_max == 0 && takes_file(command)) {
        ctl_hint(ctl, "a file is given with -f: nodectl %s -f %s", command->name, ctl->args[0]);
    } else {
        ctl_hint(ctl, "usage: nodectl %s%s%s", command->name,
                 command->arguments[0] == '\0' ? "" : " ", command->arguments);
    }
    if (ctl->n_args > command->n_args_max) {
        return ctl_fail(ctl, ERR_USAGE, "nodectl %s does not take \"%.60s\"", command->name,
                        ctl->args[command->n_args_max]);
    }
    return ctl_fail(ctl, ERR_USAGE, "nodectl %s needs %s", command->name, command->arguments);
}

/* Returns the command's result: 0, 1, or an ERR_*. */
static int run(struct ctl *ctl)
{
    char *words[CTL_ARGS_MAX];
    size_t n_words = 0;
    int rc = ctl_flags_parse(ctl, words, &n_words);
    int rc_environment = ctl_flags_environment(ctl);

    if (rc == 0) {
        rc = rc_environment;
    }
    if (rc != 0) {
        return rc;
    }
    if (help_asked(ctl, words, n_words)) {
        return 0;
    }
    if (ctl_has(ctl, FLAG_VERSION)) {
        fprintf(ctl->out, "nodectl %s\n", JURY_VERSION);
        return 0;
    }
    if (ctl->failure.message.text[0] != '\0') {
        return ERR_USAGE; /* help on what is not there */
    }
    rc = find_command(ctl, words, n_words);
    if (rc == 0) {
        rc = ctl_flags_check(ctl);
    }
    if (rc == 0) {
        rc = check_args(ctl);
    }
    return rc != 0 ? rc : ctl->command->run(ctl);
}

/* The whole answer at once. What a command printed by itself it has looked at. */
static int print_out(struct ctl *ctl, const char *text, size_t n_bytes)
{
    if (n_bytes == 0) {
        return 0;
    }
    errno = 0;
    fwrite(text, 1, n_bytes, ctl->process.out);
    return output_end(ctl->process.out, &ctl->failure.message);
}

int ctl_main(const struct ctl_process *process)
{
    struct ctl ctl = {.process = *process};
    char *text = NULL;
    size_t n_bytes = 0;
    int status = err_exit_status(ERR_NOMEM);

    ctl.values = ctl_values_new();
    ctl.out = open_memstream(&text, &n_bytes);
    if (ctl.values != NULL && ctl.out != NULL) {
        int rc = run(&ctl);

        if ((fflush(ctl.out) != 0 || ferror(ctl.out) != 0) && rc >= 0) {
            rc = ctl_fail(&ctl, ERR_NOMEM, "out of memory");
        }
        if (rc >= 0 || plant_is("ctl-half-printed")) {
            int rc_write = print_out(&ctl, text, n_bytes);

            rc = rc_write != 0 ? rc_write : rc;
        }
        if (rc < 0) {
            print_failure(&ctl, rc);
        }
        status = rc >= 0 ? rc : err_exit_status(rc);
    }
    if (ctl.out != NULL) {
        fclose(ctl.out);
    }
    free(text);
    json_decref(ctl.failure.metadata);
    rpc_client_free(ctl.client);
    ctl_values_free(ctl.values);
    return status;
}
