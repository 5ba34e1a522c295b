/* The flags of nodectl in one table: parser, --help and environment read it.
 *
 * A value comes from the flag, else from the environment, else it is the default. Names are never
 * abbreviated. */
#ifndef JURY_NODECTL_FLAGS_H
#define JURY_NODECTL_FLAGS_H

#include "nodectl/ctl.h"

enum ctl_flag_id {
    FLAG_OUTPUT = 0,
    FLAG_ENDPOINTS,
    FLAG_SOCKET,
    FLAG_KEY_FILE,
    FLAG_SERVER_KEY,
    FLAG_TIMEOUT,
    FLAG_STALE,
    FLAG_YES,
    FLAG_COLOR,
    FLAG_QUIET,
    FLAG_VERBOSE,
    FLAG_HELP,
    FLAG_VERSION,
    FLAG_LAST_GLOBAL = FLAG_VERSION,
    FLAG_FILE,
    FLAG_DRY_RUN,
    FLAG_FORCE,
    FLAG_EXPECTED_REVISION,
    FLAG_WAIT,
    FLAG_CANCEL,
    FLAG_DRAIN_TIMEOUT,
    FLAG_LOCAL,
    FLAG_GROUP,
    FLAG_TYPE,
    FLAG_STATE,
    FLAG_LIMIT,
    FLAG_SINCE,
    FLAG_FOLLOW,
    FLAG_NODE,
    FLAG_ACCESS_KEY,
    FLAG_NODES,
    FLAG_OUT,
    FLAG_PUBLIC,
    FLAG_EXAMPLE,
    FLAG_FROM,
    FLAG_ALL_NODES,
    FLAG_CHECK,
    FLAG_FULL,
    CTL_N_FLAGS
};

enum ctl_flag_type {
    CTL_FLAG_SWITCH = 1,
    CTL_FLAG_TEXT,
    CTL_FLAG_LIST,    /* may be given again */
    CTL_FLAG_CHOICE,  /* one of `choices`, separated by | */
    CTL_FLAG_NUMBER,  /* min..max */
    CTL_FLAG_DURATION /* milliseconds, min..max */
};

struct ctl_flag {
    const char *name;
    const char *argument;     /* word for the value in --help; NULL with a switch */
    const char *environment;  /* NULL: none */
    const char *default_text; /* NULL: none */
    const char *choices;
    const char *help; /* no period */
    uint64_t min, max;
    uint8_t type; /* enum ctl_flag_type */
    char letter;  /* 0: none */
};

extern const struct ctl_flag ctl_flags[CTL_N_FLAGS];

/* Values by flag, and the words that are no flags. NULL: no memory. */
struct ctl_value *ctl_values_new(void);
void ctl_values_free(struct ctl_value *values);

/* Split the command line: flags into ctl->values, the other words into ret_words. Whether a flag
 * belongs to the command is checked later (ctl_flags_check): the command is not known yet.
 * Errors: ERR_USAGE with a sentence. */
int ctl_flags_parse(struct ctl *ctl, char *ret_words[CTL_ARGS_MAX], size_t *ret_n_words);
/* Fill in what the environment says. Errors: ERR_USAGE. */
int ctl_flags_environment(struct ctl *ctl);
/* Refuse flags that the command does not know. Errors: ERR_USAGE. */
int ctl_flags_check(struct ctl *ctl);

bool ctl_has(const struct ctl *ctl, enum ctl_flag_id flag); /* given, by flag or environment */
const char *ctl_text(const struct ctl *ctl, enum ctl_flag_id flag); /* NULL: no value */
uint64_t ctl_number(const struct ctl *ctl, enum ctl_flag_id flag);  /* also milliseconds */
size_t ctl_n_texts(const struct ctl *ctl, enum ctl_flag_id flag);   /* of a list */
const char *ctl_text_at(const struct ctl *ctl, enum ctl_flag_id flag, size_t index);

#endif
