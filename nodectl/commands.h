/* The commands of nodectl in one table: dispatch and every --help read it. */
#ifndef JURY_NODECTL_COMMANDS_H
#define JURY_NODECTL_COMMANDS_H

#include "nodectl/ctl.h"
#include "nodectl/flags.h"

#define CTL_COMMAND_FLAGS 8

/* Returns 0, 1 (the answer is "no"), or an ERR_* whose sentence ctl_fail wrote. */
typedef int ctl_run(struct ctl *ctl);

struct ctl_command {
    const char *section;   /* heading in nodectl --help */
    const char *name;      /* "group list" */
    const char *arguments; /* "NAME", "[GROUP]"; "" = none */
    const char *summary;   /* one line, no period */
    const char *help;      /* sentences; may be NULL */
    const char *examples;  /* lines; may be NULL */
    ctl_run *run;
    uint8_t n_args_min;
    uint8_t n_args_max;
    uint8_t flags[CTL_COMMAND_FLAGS]; /* enum ctl_flag_id of its own; 0 ends */
};

extern const struct ctl_command ctl_commands[];
extern const size_t ctl_n_commands;

/* The command that the words begin with and how many words it has. Errors: ERR_USAGE with a
 * sentence and a hint; *ret_noun is then the longest known beginning ("group"), or "". */
int ctl_command_find(struct ctl *ctl, char *const words[], size_t n_words,
                     const struct ctl_command **ret_command, size_t *ret_n_used);

/* Help: of all commands (noun ""), of one noun, of one command. */
void ctl_help_all(FILE *out);
void ctl_help_noun(FILE *out, const char *noun);
void ctl_help_command(FILE *out, const struct ctl_command *command);
bool ctl_is_noun(const char *word);

ctl_run cmd_status, cmd_ready, cmd_apply, cmd_export, cmd_validate, cmd_delete, cmd_group_list,
    cmd_group_describe, cmd_group_delete, cmd_listener_delete, cmd_backend_remove,
    cmd_backend_weight, cmd_backend_maintenance, cmd_backend_list, cmd_backend_drain,
    cmd_backend_ready, cmd_why, cmd_events, cmd_cluster_init, cmd_cluster_members,
    cmd_node_describe, cmd_node_counters, cmd_node_metrics, cmd_key_generate, cmd_key_show,
    cmd_hold_clear, cmd_hold_set, cmd_hold_show, cmd_key_list, cmd_listener_list, cmd_explain,
    cmd_probe, cmd_simulate, cmd_version;

#endif
