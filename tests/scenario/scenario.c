/* Runs one scenario file: scenario [--bless] [--golden FOLDER] FILE. Exit 0 when all that it
 * expects came true and its golden files are as committed; --bless writes those. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/str.h"
#include "common/base/units.h"
#include "tests/lib/replay_judge.h"
#include "tests/scenario/script.h"

void script_fail(const struct scenario *scenario, const char *format, ...)
{
    va_list arguments;

    fprintf(stderr, "%s:%u: ", scenario->file, scenario->line.number);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    exit(1);
}

uint64_t script_time_ns(const struct scenario *scenario, const char *text)
{
    struct errmsg err;
    uint64_t ms = 0;

    if (units_parse_duration_ms(text, &ms, &err) != 0) {
        script_fail(scenario, "%s", err.text);
    }
    return ms * NS_PER_MS;
}

uint64_t script_number(const struct scenario *scenario, const char *text, uint64_t max)
{
    uint64_t value;

    if (!str_parse_u64(text, max, &value)) {
        script_fail(scenario, "\"%s\" is no number up to %llu", text, (unsigned long long)max);
    }
    return value;
}

struct named_group *script_find(struct scenario *scenario, const char *text,
                                struct named_backend **ret_backend)
{
    const char *slash = strchr(text, '/');
    size_t n = slash == NULL ? strlen(text) : (size_t)(slash - text);

    *ret_backend = NULL;
    for (uint32_t i = 0; i < scenario->n_groups; i++) {
        struct named_group *group = &scenario->groups[i];

        if (strlen(group->spec.name) != n || strncmp(group->spec.name, text, n) != 0) {
            continue;
        }
        for (uint32_t j = 0; slash != NULL && j < group->n_backends; j++) {
            if (strcmp(group->backends[j].name, slash + 1) == 0) {
                *ret_backend = &group->backends[j];
                return group;
            }
        }
        if (slash == NULL) {
            return group;
        }
    }
    script_fail(scenario, "there is no \"%s\"", text);
}

const char *script_word(const struct scenario *scenario, uint32_t index)
{
    if (index >= scenario->line.n) {
        script_fail(scenario, "\"%s\" needs more words", scenario->line.words[0]);
    }
    return scenario->line.words[index];
}

bool script_is(const struct scenario *scenario, uint32_t index, const char *text)
{
    return index < scenario->line.n && strcmp(scenario->line.words[index], text) == 0;
}

/* Cut a line into words, in place. */
static void split(struct scenario *scenario, char *text)
{
    char *comment = strchr(text, '#');

    if (comment != NULL) {
        *comment = '\0';
    }
    scenario->line.n = 0;
    for (char *word = strtok(text, " \t\r\n"); word != NULL; word = strtok(NULL, " \t\r\n")) {
        if (scenario->line.n == SCRIPT_WORDS) {
            script_fail(scenario, "more than %d words", SCRIPT_WORDS);
        }
        scenario->line.words[scenario->line.n++] = word;
    }
}

/* Whatever the story is about, the kept history of each node must tell it again. */
void script_judge_replays(struct scenario *scenario, uint64_t node_id)
{
    struct replay_judgement judgement;

    for (uint64_t id = 1; id <= scenario->world.n_nodes; id++) {
        if (!scenario->world.nodes[id].is_up || (node_id != 0 && id != node_id)) {
            continue;
        }
        replay_judge(scenario->world.nodes[id].engine, &judgement);
        if (judgement.difference[0] != '\0') {
            script_fail(scenario, "node %u: the replay is not as it happened: %s", (unsigned)id,
                        judgement.difference);
        }
        scenario->n_replayed_groups += judgement.n_groups;
        scenario->n_replayed_whole += judgement.n_whole;
        scenario->n_replayed_events += judgement.n_events;
        scenario->n_replayed_verdicts += judgement.n_verdicts;
    }
}

static void run_lines(struct scenario *scenario, FILE *file)
{
    char text[512];

    while (fgets(text, sizeof text, file) != NULL) {
        scenario->line.number++;
        split(scenario, text);
        if (scenario->line.n > 0) {
            scenario->n_statements++;
            statement_run(scenario);
        }
    }
    if (scenario->n_expectations == 0) {
        script_fail(scenario, "nothing was expected");
    }
}

static bool read_options(struct scenario *scenario, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--bless") == 0) {
            scenario->golden.is_blessing = true;
        } else if (strcmp(argv[i], "--golden") == 0 && i + 1 < argc) {
            scenario->golden.folder = argv[++i];
        } else if (scenario->file == NULL && argv[i][0] != '-') {
            scenario->file = argv[i];
        } else {
            return false;
        }
    }
    return scenario->file != NULL;
}

int main(int argc, char **argv)
{
    static struct scenario scenario; /* too big for a stack */

    if (!read_options(&scenario, argc, argv)) {
        fprintf(stderr, "usage: scenario [--bless] [--golden FOLDER] FILE\n");
        return 2;
    }
    FILE *file = fopen(scenario.file, "r");
    if (file == NULL) {
        fprintf(stderr, "%s: %s\n", scenario.file, strerror(errno));
        return 2;
    }
    run_lines(&scenario, file);
    fclose(file);
    script_judge_replays(&scenario, 0);
    bool is_equal = golden_finish(&scenario);
    printf("%s: %u statements, %u expectations held, %.3f s of world time, %llu steps\n",
           scenario.file, scenario.n_statements, scenario.n_expectations,
           (double)scenario.world.now_ns / 1e9, (unsigned long long)scenario.world.n_steps);
    printf("replayed as they happened: %u events, %u of them verdicts, of %u groups of nodes, %u "
           "from their beginning\n",
           scenario.n_replayed_events, scenario.n_replayed_verdicts, scenario.n_replayed_groups,
           scenario.n_replayed_whole);
    for (uint32_t i = 0; i < scenario.n_groups; i++) {
        free(scenario.groups[i].spec.checks);
    }
    world_close(&scenario.world);
    return is_equal ? 0 : 1;
}
