/* Help texts, made from the tables of commands and flags. */
#include <stdio.h>
#include <string.h>

#include "nodectl/commands.h"
#include "nodectl/render.h"

#define COMMAND_COLUMN 22
#define FLAG_COLUMN 30

static void put_flag(FILE *out, const struct ctl_flag *flag)
{
    char left[64];
    char right[512];
    char letter[8] = "    ";

    if (flag->letter != '\0') {
        snprintf(letter, sizeof letter, "-%c, ", flag->letter);
    }
    snprintf(left, sizeof left, "  %s--%s%s%s", letter, flag->name,
             flag->argument == NULL ? "" : " ", flag->argument == NULL ? "" : flag->argument);
    snprintf(right, sizeof right, "%s%s%s%s%s%s%s%s", flag->help,
             flag->choices == NULL ? "" : "; one of ", flag->choices == NULL ? "" : flag->choices,
             flag->default_text == NULL ? "" : " (default ",
             flag->default_text == NULL ? "" : flag->default_text,
             flag->default_text == NULL ? "" : ")", flag->environment == NULL ? "" : " $",
             flag->environment == NULL ? "" : flag->environment);
    fputs(left, out);
    if (strlen(left) >= FLAG_COLUMN) {
        fputc('\n', out);
        left[0] = '\0';
    }
    render_wrapped(out, FLAG_COLUMN, (unsigned)strlen(left), right);
}

static bool is_hidden(const struct ctl_command *command, const struct ctl_flag *global)
{
    for (size_t i = 0; command != NULL && i < CTL_COMMAND_FLAGS && command->flags[i] != 0; i++) {
        if (strcmp(ctl_flags[command->flags[i]].name, global->name) == 0) {
            return true; /* the command's own flag has that name */
        }
    }
    return false;
}

/* command: NULL for all of them. */
static void put_global_flags(FILE *out, const struct ctl_command *command)
{
    fputs("\nGlobal flags\n", out);
    for (size_t i = 0; i <= FLAG_LAST_GLOBAL; i++) {
        if (!is_hidden(command, &ctl_flags[i])) {
            put_flag(out, &ctl_flags[i]);
        }
    }
}

static void put_command_line(FILE *out, const struct ctl_command *command)
{
    fprintf(out, "  %s", command->name);
    render_wrapped(out, COMMAND_COLUMN, (unsigned)strlen(command->name) + 2, command->summary);
}

void ctl_help_all(FILE *out)
{
    const char *section = "";

    fputs("nodectl - look after a Jury cluster\n\n"
          "Usage: nodectl [FLAGS] COMMAND [ARGUMENTS]\n",
          out);
    for (size_t i = 0; i < ctl_n_commands; i++) {
        if (strcmp(section, ctl_commands[i].section) != 0) {
            section = ctl_commands[i].section;
            fprintf(out, "\n%s\n", section);
        }
        put_command_line(out, &ctl_commands[i]);
    }
    put_global_flags(out, NULL);
    fputs("\nA flag wins over its environment variable, that over the default. Flags may stand\n"
          "anywhere; names are never abbreviated. Help on a command: nodectl COMMAND --help\n"
          "\nExit status\n"
          "  0   done, healthy, no difference\n"
          "  1   the answer is \"no\": not healthy, not ready, not drained\n"
          "  2   wrong usage\n"
          "  3   invalid document or configuration\n"
          "  4   no endpoint can be reached\n"
          "  5   deadline passed\n"
          "  6   not allowed, or the key is not known\n"
          "  7   not found\n"
          "  8   conflict: changed meanwhile, exists already, or needs --force\n"
          "  9   no leader or no quorum\n"
          "  10  error of the server\n"
          "  130 interrupted\n",
          out);
}

void ctl_help_noun(FILE *out, const char *noun)
{
    size_t n = strlen(noun);

    fprintf(out, "Usage: nodectl %s VERB [ARGUMENTS]\n\n", noun);
    for (size_t i = 0; i < ctl_n_commands; i++) {
        const char *name = ctl_commands[i].name;

        if (strncmp(name, noun, n) == 0 && name[n] == ' ') {
            put_command_line(out, &ctl_commands[i]);
        }
    }
    fprintf(out, "\nHelp on one: nodectl %s VERB --help\n", noun);
}

static void put_examples(FILE *out, const char *examples)
{
    fputs("\nExamples\n", out);
    while (*examples != '\0') {
        size_t n = strcspn(examples, "\n");

        fprintf(out, "  %.*s\n", (int)n, examples);
        examples += n + (examples[n] == '\n');
    }
}

void ctl_help_command(FILE *out, const struct ctl_command *command)
{
    fprintf(out, "nodectl %s - %s\n\nUsage: nodectl %s%s%s%s\n", command->name, command->summary,
            command->name, command->flags[0] == 0 ? "" : " [FLAGS]",
            command->arguments[0] == '\0' ? "" : " ", command->arguments);
    if (command->help != NULL) {
        fputc('\n', out);
        render_wrapped(out, 0, 0, command->help);
    }
    if (command->examples != NULL) {
        put_examples(out, command->examples);
    }
    if (command->flags[0] != 0) {
        fputs("\nFlags\n", out);
    }
    for (size_t i = 0; i < CTL_COMMAND_FLAGS && command->flags[i] != 0; i++) {
        put_flag(out, &ctl_flags[command->flags[i]]);
    }
    put_global_flags(out, command);
}
