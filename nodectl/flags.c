#include "nodectl/flags.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/str.h"
#include "common/base/units.h"
#include "common/spec/field.h"
#include "nodectl/commands.h"

#define LIST_MAX 64

const struct ctl_flag ctl_flags[CTL_N_FLAGS] = {
    [FLAG_OUTPUT] = {.name = "output",
                     .letter = 'o',
                     .argument = "FORMAT",
                     .type = CTL_FLAG_CHOICE,
                     .choices = "table|json",
                     .environment = "NODECTL_OUTPUT",
                     .default_text = "table",
                     .help = "table for people, json for programs"},
    [FLAG_ENDPOINTS] = {.name = "endpoints",
                        .argument = "HOST:PORT,...",
                        .type = CTL_FLAG_TEXT,
                        .environment = "NODECTL_ENDPOINTS",
                        .help = "nodes to ask over the network, tried in turn; without it the "
                                "unix socket of the node on this machine is used"},
    [FLAG_SOCKET] = {.name = "socket",
                     .argument = "PATH",
                     .type = CTL_FLAG_TEXT,
                     .environment = "NODECTL_SOCKET",
                     .default_text = "/run/jury/agent.sock",
                     .help = "unix socket of the node on this machine"},
    [FLAG_KEY_FILE] = {.name = "key-file",
                       .argument = "FILE",
                       .type = CTL_FLAG_TEXT,
                       .environment = "NODECTL_KEY_FILE",
                       .help = "your key pair, for --endpoints"},
    [FLAG_SERVER_KEY] = {.name = "server-key",
                         .argument = "KEY,...",
                         .type = CTL_FLAG_TEXT,
                         .environment = "NODECTL_SERVER_KEY",
                         .help = "public keys of the nodes, or files that hold them, in the order "
                                 "of --endpoints"},
    [FLAG_TIMEOUT] = {.name = "timeout",
                      .argument = "TIME",
                      .type = CTL_FLAG_DURATION,
                      .environment = "NODECTL_TIMEOUT",
                      .default_text = "5s",
                      .min = 1,
                      .max = 60000,
                      .help = "how long one question may take"},
    [FLAG_STALE] = {.name = "stale",
                    .type = CTL_FLAG_SWITCH,
                    .help = "answer from the asked node's own copy; works without a leader"},
    [FLAG_YES] = {.name = "yes",
                  .letter = 'y',
                  .type = CTL_FLAG_SWITCH,
                  .help = "never ask back (no command of this version does)"},
    [FLAG_COLOR] = {.name = "color",
                    .argument = "WHEN",
                    .type = CTL_FLAG_CHOICE,
                    .choices = "auto|always|never",
                    .environment = "NODECTL_COLOR",
                    .default_text = "auto",
                    .help = "colour beside the words; auto follows NO_COLOR, CLICOLOR_FORCE, TERM "
                            "and whether the output is a terminal"},
    [FLAG_QUIET] = {.name = "quiet",
                    .letter = 'q',
                    .type = CTL_FLAG_SWITCH,
                    .help = "no remarks and warnings, errors only"},
    [FLAG_VERBOSE] = {.name = "verbose",
                      .letter = 'v',
                      .type = CTL_FLAG_SWITCH,
                      .help = "say which node answered, and for which revision"},
    [FLAG_HELP] = {.name = "help",
                   .letter = 'h',
                   .type = CTL_FLAG_SWITCH,
                   .help = "help on the command, or on all"},
    [FLAG_VERSION] = {.name = "version",
                      .type = CTL_FLAG_SWITCH,
                      .help = "the version of nodectl; the command of that name asks the node too"},
    [FLAG_FILE] = {.name = "file",
                   .letter = 'f',
                   .argument = "FILE|DIR|-",
                   .type = CTL_FLAG_LIST,
                   .help = "documents in YAML or JSON: a file, all .yaml, .yml and .json files of "
                           "a directory, or standard input; may be given again"},
    [FLAG_DRY_RUN] = {.name = "dry-run",
                      .type = CTL_FLAG_SWITCH,
                      .help = "only check, and say what each document would do"},
    [FLAG_FORCE] = {.name = "force",
                    .argument = "COUNT",
                    .type = CTL_FLAG_NUMBER,
                    .min = 1,
                    .max = UINT32_MAX,
                    .help = "agree to taking away much at once; COUNT is how many backends or "
                            "groups, as the refusal says"},
    [FLAG_EXPECTED_REVISION] = {.name = "expected-revision",
                                .argument = "N",
                                .type = CTL_FLAG_NUMBER,
                                .max = INT64_MAX,
                                .help = "refuse if the object changed after revision N; 0: it must "
                                        "not exist"},
    [FLAG_WAIT] = {.name = "wait",
                   .type = CTL_FLAG_SWITCH,
                   .help = "return when every node is done or its deadline has passed"},
    [FLAG_CANCEL] = {.name = "cancel", .type = CTL_FLAG_SWITCH, .help = "take the drain back"},
    [FLAG_DRAIN_TIMEOUT] = {.name = "timeout",
                            .argument = "TIME",
                            .type = CTL_FLAG_DURATION,
                            .max = 3600000,
                            .help = "how long open flows may live on, 0s-3600s; without it the "
                                    "group's drain timeout"},
    [FLAG_LOCAL] = {.name = "local",
                    .type = CTL_FLAG_SWITCH,
                    .help = "of the asked node alone: needs no leader, ends with its agent"},
    [FLAG_GROUP] = {.name = "group",
                    .argument = "NAME",
                    .type = CTL_FLAG_TEXT,
                    .help = "only of this group"},
    [FLAG_TYPE] =
        {.name = "type",
         .argument = "TYPE",
         .type = CTL_FLAG_CHOICE,
         .choices =
             "verdict|reachable|opinion|group|observers|catalog|catalogs-differ|peer|drain|"
             "doubt|guard|held|admin|certificate|degraded|probe-budget|node|leader|few-votes",
         .help = "only of this type"},
    [FLAG_STATE] =
        {.name = "state",
         .argument = "WORD",
         .type = CTL_FLAG_CHOICE,
         .choices = "initial|healthy|unhealthy|unavailable|unused|unreachable|held|pending|suspect|"
                    "gray|flapping|warming|degraded|enabled|draining|maintenance|removing",
         .help = "only those with this word as their state, mark or admin state"},
    [FLAG_LIMIT] = {.name = "limit",
                    .argument = "N",
                    .type = CTL_FLAG_NUMBER,
                    .default_text = "50",
                    .min = 1,
                    .max = 1000,
                    .help = "at most the newest N"},
    [FLAG_SINCE] = {.name = "since",
                    .argument = "TIME",
                    .type = CTL_FLAG_DURATION,
                    .min = 1,
                    .max = UINT64_C(31536000000),
                    .help = "only what happened in the last TIME, such as 1h"},
    [FLAG_FOLLOW] = {.name = "follow",
                     .type = CTL_FLAG_SWITCH,
                     .help = "go on printing new ones; with -o json one object a line"},
    [FLAG_NODE] = {.name = "node",
                   .argument = "SPEC",
                   .type = CTL_FLAG_LIST,
                   .help = "id=N,key=KEY|FILE,endpoint=HOST:MESHPORT:RAFTPORT[,role=voter]"
                           "[,zone=ZONE]; once for each member"},
    [FLAG_ACCESS_KEY] = {.name = "access-key",
                         .argument = "SPEC",
                         .type = CTL_FLAG_LIST,
                         .help = "name=NAME,role=viewer|operator|admin,key=KEY|FILE; who may call "
                                 "over the network"},
    [FLAG_NODES] = {.name = "nodes",
                    .argument = "N",
                    .type = CTL_FLAG_NUMBER,
                    .min = 1,
                    .max = 64,
                    .help = "make a set: node-1.key to node-N.key and admin.key"},
    [FLAG_OUT] = {.name = "out",
                  .argument = "DIR",
                  .type = CTL_FLAG_TEXT,
                  .help = "directory of the set; made if it is not there"},
    [FLAG_PUBLIC] = {.name = "public",
                     .type = CTL_FLAG_SWITCH,
                     .help = "print the 64 digits and nothing else"},
    [FLAG_EXAMPLE] = {.name = "example",
                      .type = CTL_FLAG_SWITCH,
                      .help = "print a complete document of the kind, ready to edit"},
    [FLAG_FROM] = {.name = "from",
                   .argument = "NODE",
                   .type = CTL_FLAG_LIST,
                   .help = "id of the node that probes, instead of the asked one; may be given "
                           "again"},
    [FLAG_ALL_NODES] = {.name = "all-nodes",
                        .type = CTL_FLAG_SWITCH,
                        .help = "from every node that has a vote"},
    [FLAG_CHECK] = {.name = "check",
                    .argument = "NAME",
                    .type = CTL_FLAG_TEXT,
                    .help = "by this one of several checks of the group"},
    [FLAG_FULL] = {.name = "full",
                   .type = CTL_FLAG_SWITCH,
                   .help = "with every field, also those that are the profile's defaults"},
};

struct ctl_value {
    const char *texts[LIST_MAX]; /* borrowed from command line and environment */
    size_t n_texts;
    uint64_t number;
    bool from_environment;
};

struct ctl_value *ctl_values_new(void)
{
    return calloc(CTL_N_FLAGS, sizeof(struct ctl_value));
}

void ctl_values_free(struct ctl_value *values)
{
    free(values);
}

/* How a sentence calls it: "--timeout", or the variable that it came from. */
static const char *flag_title(const struct ctl_flag *flag, bool from_environment, char text[48])
{
    snprintf(text, 48, "%s%s", from_environment ? "" : "--",
             from_environment ? flag->environment : flag->name);
    return text;
}

static bool is_choice(const char *choices, const char *text)
{
    size_t n = strlen(text);

    while (*choices != '\0') {
        size_t n_choice = strcspn(choices, "|");

        if (n == n_choice && strncmp(choices, text, n) == 0) {
            return true;
        }
        choices += n_choice + (choices[n_choice] == '|');
    }
    return false;
}

static void suggest_choice(struct ctl *ctl, const char *choices, const char *text)
{
    char copy[256];
    const char *words[32];
    char *rest = NULL;
    size_t n = 0;

    snprintf(copy, sizeof copy, "%s", choices);
    for (char *word = strtok_r(copy, "|", &rest); word != NULL && n < 32;
         word = strtok_r(NULL, "|", &rest)) {
        words[n++] = word;
    }
    const char *near = spec_nearest(text, words, n);
    if (near != NULL) {
        ctl_hint(ctl, "did you mean \"%s\"?", near);
    }
}

static int check_duration(struct ctl *ctl, const struct ctl_flag *flag, const char *title,
                          const char *text, uint64_t *ret_ms)
{
    struct errmsg why = {{0}};
    char low[32];
    char high[32];

    if (units_parse_duration_ms(text, ret_ms, &why) != 0) {
        return ctl_fail(ctl, ERR_USAGE, "%s: %s", title, why.text);
    }
    if (*ret_ms < flag->min || *ret_ms > flag->max) {
        return ctl_fail(ctl, ERR_USAGE, "%s must be %s..%s, got %s", title,
                        units_format_duration_ms(flag->min, low, sizeof low),
                        units_format_duration_ms(flag->max, high, sizeof high), text);
    }
    return 0;
}

/* Keep a value; what it says is checked when the command is known. */
static int set_value(struct ctl *ctl, enum ctl_flag_id id, const char *text, bool from_environment)
{
    const struct ctl_flag *flag = &ctl_flags[id];
    struct ctl_value *value = &ctl->values[id];

    if (flag->type == CTL_FLAG_SWITCH) {
        value->n_texts = 0;
    }
    if (value->n_texts > 0 && flag->type != CTL_FLAG_LIST) {
        return ctl_fail(ctl, ERR_USAGE, "--%s is given twice", flag->name);
    }
    if (value->n_texts == LIST_MAX) {
        return ctl_fail(ctl, ERR_USAGE, "--%s is given more than %d times", flag->name, LIST_MAX);
    }
    value->texts[value->n_texts++] = text;
    value->from_environment = from_environment;
    return 0;
}

static int check_value(struct ctl *ctl, enum ctl_flag_id id, const char *text)
{
    const struct ctl_flag *flag = &ctl_flags[id];
    struct ctl_value *value = &ctl->values[id];
    char title[48];

    flag_title(flag, value->from_environment, title);
    switch ((enum ctl_flag_type)flag->type) {
    case CTL_FLAG_SWITCH:
        return 0;
    case CTL_FLAG_CHOICE:
        if (!is_choice(flag->choices, text)) {
            suggest_choice(ctl, flag->choices, text);
            return ctl_fail(ctl, ERR_USAGE, "%s must be one of %s, got \"%.60s\"", title,
                            flag->choices, text);
        }
        return 0;
    case CTL_FLAG_NUMBER:
        if (!str_parse_u64(text, flag->max, &value->number) || value->number < flag->min) {
            return ctl_fail(ctl, ERR_USAGE, "%s must be %" PRIu64 "..%" PRIu64 ", got \"%.60s\"",
                            title, flag->min, flag->max, text);
        }
        return 0;
    case CTL_FLAG_DURATION:
        return check_duration(ctl, flag, title, text, &value->number);
    case CTL_FLAG_TEXT:
    case CTL_FLAG_LIST:
        break;
    }
    if (text[0] == '\0') {
        return ctl_fail(ctl, ERR_USAGE, "%s needs a value: %s", title, flag->argument);
    }
    return 0;
}

static int refuse_unknown(struct ctl *ctl, const char *name)
{
    const char *words[CTL_N_FLAGS];

    for (size_t i = 0; i < CTL_N_FLAGS; i++) {
        words[i] = ctl_flags[i].name;
    }
    const char *near = spec_nearest(name, words, CTL_N_FLAGS);
    if (near != NULL) {
        ctl_hint(ctl, "did you mean --%s?", near);
    }
    return ctl_fail(ctl, ERR_USAGE, "unknown flag --%.60s", name);
}

/* `--name value` or `--name=value`; *index moves over what was used. */
static int parse_long(struct ctl *ctl, int *index)
{
    const char *word = ctl->process.argv[*index] + 2;
    const char *equals = strchr(word, '=');
    size_t n = equals == NULL ? strlen(word) : (size_t)(equals - word);
    char name[64];

    snprintf(name, sizeof name, "%.*s", (int)(n < 60 ? n : 60), word);
    for (size_t i = 0; i < CTL_N_FLAGS; i++) {
        if (strcmp(ctl_flags[i].name, name) != 0) {
            continue;
        }
        enum ctl_flag_id id = (enum ctl_flag_id)i;
        if (ctl_flags[i].type == CTL_FLAG_SWITCH) {
            return equals == NULL ? set_value(ctl, id, "", false)
                                  : ctl_fail(ctl, ERR_USAGE, "--%s takes no value", name);
        }
        if (equals != NULL) {
            return set_value(ctl, id, equals + 1, false);
        }
        if (*index + 1 >= ctl->process.argc) {
            return ctl_fail(ctl, ERR_USAGE, "--%s needs a value: %s", name, ctl_flags[i].argument);
        }
        return set_value(ctl, id, ctl->process.argv[++*index], false);
    }
    return refuse_unknown(ctl, name);
}

static const struct ctl_flag *flag_of_letter(char letter, enum ctl_flag_id *ret_id)
{
    for (size_t i = 0; i < CTL_N_FLAGS; i++) {
        if (ctl_flags[i].letter == letter) {
            *ret_id = (enum ctl_flag_id)i;
            return &ctl_flags[i];
        }
    }
    return NULL;
}

/* `-o json`, `-ojson`, `-o=json`, `-qv`. */
static int parse_short(struct ctl *ctl, int *index)
{
    const char *at = ctl->process.argv[*index] + 1;

    for (; *at != '\0'; at++) {
        enum ctl_flag_id id = FLAG_OUTPUT;
        const struct ctl_flag *flag = flag_of_letter(*at, &id);

        if (flag == NULL) {
            return ctl_fail(ctl, ERR_USAGE, "unknown flag -%c", *at);
        }
        if (flag->type == CTL_FLAG_SWITCH) {
            int rc = set_value(ctl, id, "", false);

            if (rc != 0) {
                return rc;
            }
            continue;
        }
        if (at[1] != '\0') {
            return set_value(ctl, id, at + 1 + (at[1] == '='), false);
        }
        if (*index + 1 >= ctl->process.argc) {
            return ctl_fail(ctl, ERR_USAGE, "-%c needs a value: %s", *at, flag->argument);
        }
        return set_value(ctl, id, ctl->process.argv[++*index], false);
    }
    return 0;
}

static int parse_word(struct ctl *ctl, int *index, bool *only_words, char *ret_words[CTL_ARGS_MAX],
                      size_t *ret_n_words)
{
    char *word = ctl->process.argv[*index];

    if (!*only_words && strcmp(word, "--") == 0) {
        *only_words = true;
        return 0;
    }
    if (!*only_words && strncmp(word, "--", 2) == 0) {
        return parse_long(ctl, index);
    }
    if (!*only_words && word[0] == '-' && word[1] != '\0') {
        return parse_short(ctl, index);
    }
    if (*ret_n_words == CTL_ARGS_MAX) {
        return ctl_fail(ctl, ERR_USAGE, "more than %d arguments", CTL_ARGS_MAX);
    }
    ret_words[(*ret_n_words)++] = word;
    return 0;
}

int ctl_flags_parse(struct ctl *ctl, char *ret_words[CTL_ARGS_MAX], size_t *ret_n_words)
{
    struct ctl_failure first_failure = {0};
    bool only_words = false;
    int first = 0;

    /* Goes on behind a mistake: an `-o json` that comes later decides how it is told. */
    *ret_n_words = 0;
    for (int i = 1; i < ctl->process.argc; i++) {
        int rc = parse_word(ctl, &i, &only_words, ret_words, ret_n_words);

        if (rc != 0 && first == 0) {
            first = rc;
            first_failure = ctl->failure;
        }
    }
    if (first != 0) {
        ctl->failure = first_failure;
    }
    return first;
}

int ctl_flags_environment(struct ctl *ctl)
{
    for (size_t i = 0; i < CTL_N_FLAGS; i++) {
        const char *name = ctl_flags[i].environment;
        size_t n = name == NULL ? 0 : strlen(name);

        if (name == NULL || ctl->values[i].n_texts > 0) {
            continue;
        }
        for (char *const *entry = ctl->process.environment; *entry != NULL; entry++) {
            /* An empty variable counts as not set, as everywhere in a shell. */
            if (strncmp(*entry, name, n) == 0 && (*entry)[n] == '=' && (*entry)[n + 1] != '\0') {
                int rc = set_value(ctl, (enum ctl_flag_id)i, *entry + n + 1, true);

                if (rc != 0) {
                    return rc;
                }
            }
        }
    }
    return 0;
}

static bool command_has(const struct ctl_command *command, size_t id)
{
    for (size_t i = 0; i < CTL_COMMAND_FLAGS && command->flags[i] != 0; i++) {
        if (command->flags[i] == id) {
            return true;
        }
    }
    return false;
}

int ctl_flags_check(struct ctl *ctl)
{
    /* A command may have a flag with the name of a global one; then it is the command's. */
    if (command_has(ctl->command, FLAG_DRAIN_TIMEOUT) &&
        !ctl->values[FLAG_TIMEOUT].from_environment) {
        ctl->values[FLAG_DRAIN_TIMEOUT] = ctl->values[FLAG_TIMEOUT];
        ctl->values[FLAG_TIMEOUT] = (struct ctl_value){0};
    }
    for (size_t i = 0; i < CTL_N_FLAGS; i++) {
        if (i > FLAG_LAST_GLOBAL && ctl->values[i].n_texts > 0 && !command_has(ctl->command, i)) {
            ctl_hint(ctl, "see: nodectl %s --help", ctl->command->name);
            return ctl_fail(ctl, ERR_USAGE, "nodectl %s has no flag --%s", ctl->command->name,
                            ctl_flags[i].name);
        }
        for (size_t n = 0; n < ctl->values[i].n_texts; n++) {
            int rc = check_value(ctl, (enum ctl_flag_id)i, ctl->values[i].texts[n]);

            if (rc != 0) {
                return rc;
            }
        }
    }
    return 0;
}

bool ctl_has(const struct ctl *ctl, enum ctl_flag_id flag)
{
    return ctl->values[flag].n_texts > 0;
}

const char *ctl_text(const struct ctl *ctl, enum ctl_flag_id flag)
{
    return ctl_has(ctl, flag) ? ctl->values[flag].texts[0] : ctl_flags[flag].default_text;
}

uint64_t ctl_number(const struct ctl *ctl, enum ctl_flag_id flag)
{
    uint64_t number = ctl->values[flag].number;

    if (ctl_has(ctl, flag) || ctl_flags[flag].default_text == NULL) {
        return number;
    }
    if (ctl_flags[flag].type == CTL_FLAG_DURATION) {
        (void)units_parse_duration_ms(ctl_flags[flag].default_text, &number, NULL);
    } else {
        (void)str_parse_u64(ctl_flags[flag].default_text, UINT64_MAX, &number);
    }
    return number;
}

size_t ctl_n_texts(const struct ctl *ctl, enum ctl_flag_id flag)
{
    return ctl->values[flag].n_texts;
}

const char *ctl_text_at(const struct ctl *ctl, enum ctl_flag_id flag, size_t index)
{
    return ctl->values[flag].texts[index];
}
