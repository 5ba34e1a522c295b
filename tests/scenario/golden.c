/* `golden node N COMMAND`: what nodectl says at this moment of the story, to people and to
 * programs. The answers of one scenario make two files, NAME.txt and NAME.json, in tests/golden. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/spec/field.h"
#include "tests/lib/world_ask.h"
#include "tests/scenario/statement.h"

#define PATH_BYTES 512

/* "... node N COMMAND": the node, and the command's words. */
struct question {
    uint64_t node_id;
    char *words[SCRIPT_WORDS];
    size_t n_words;
    char text[SCRIPT_WORDS][PATH_BYTES];
};

/* "group/web": an object, as export names it. */
static bool is_object(const char *word)
{
    size_t n = strcspn(word, "/");

    for (size_t i = 0; i < SPEC_N_KINDS; i++) {
        if (strlen(spec_kinds[i].path) == n && strncmp(spec_kinds[i].path, word, n) == 0) {
            return true;
        }
    }
    return false;
}

/* "web/b1" becomes "web/10.0.0.1:80". */
static char *real_word(struct scenario *scenario, char *word, char text[PATH_BYTES])
{
    char address[ENDPOINT_TEXT_BYTES];
    struct named_backend *backend;

    /* "web/10.0.0.9:80": one that the story does not name, such as one that is not there. */
    if (strchr(word, '/') == NULL || strchr(word, ':') != NULL || is_object(word)) {
        return word;
    }
    struct named_group *group = script_find(scenario, word, &backend);
    snprintf(text, PATH_BYTES, "%s/%s", group->spec.name, endpoint_format(&backend->at, address));
    return text;
}

static void open_files(struct scenario *scenario)
{
    struct golden *golden = &scenario->golden;

    if (golden->text == NULL) {
        golden->text = open_memstream(&golden->text_bytes, &golden->n_text_bytes);
        golden->json = json_array();
    }
    if (golden->text == NULL || golden->json == NULL) {
        script_fail(scenario, "out of memory");
    }
}

static void show_text(struct scenario *scenario, struct question *question)
{
    FILE *out = scenario->golden.text;
    struct world_answer answer = {.status = 0};

    fprintf(out, "%s=== node %u at %.3f s: nodectl", ftell(out) > 0 ? "\n" : "",
            (unsigned)question->node_id, (double)scenario->world.now_ns / 1e9);
    for (size_t i = 0; i < question->n_words; i++) {
        fprintf(out, " %s", question->words[i]);
    }
    world_ask(&scenario->world, question->node_id, question->words, question->n_words, &answer);
    fprintf(out, "\n%s%s", answer.out, answer.err);
    if (answer.status != 0) {
        fprintf(out, "(exit status %d)\n", answer.status);
    }
    world_answer_close(&answer);
}

static void show_json(struct scenario *scenario, struct question *question)
{
    static char flag[] = "-o", value[] = "json";
    char *with_flag[WORLD_ASK_WORDS] = {flag, value};
    double at_s = (double)scenario->world.now_ns / 1e9;
    struct world_answer answer = {.status = 0};
    json_t *command = json_array();
    json_error_t error;

    for (size_t i = 0; i < question->n_words; i++) {
        with_flag[i + 2] = question->words[i];
        json_array_append_new(command, json_string(question->words[i]));
    }
    world_ask(&scenario->world, question->node_id, with_flag, question->n_words + 2, &answer);
    json_t *out = answer.out[0] == '\0' ? json_null() : json_loads(answer.out, 0, &error);
    if (out == NULL) {
        script_fail(scenario, "no JSON, %s: %s", error.text, answer.out);
    }
    json_array_append_new(scenario->golden.json,
                          json_pack("{s:I, s:f, s:o, s:i, s:o}", "node",
                                    (json_int_t)question->node_id, "at", at_s, "command", command,
                                    "status", answer.status, "out", out));
    world_answer_close(&answer);
}

static void read_question(struct scenario *scenario, struct question *question)
{
    *question = (struct question){
        .node_id = script_number(scenario, script_word(scenario, 2), scenario->world.n_nodes)};
    if (!script_is(scenario, 1, "node") || question->node_id == 0 ||
        !scenario->world.nodes[question->node_id].is_up) {
        script_fail(scenario, "%s node N COMMAND, of a node that is up", script_word(scenario, 0));
    }
    (void)script_word(scenario, 3);
    for (uint32_t i = 3; i < scenario->line.n; i++) {
        size_t n = question->n_words++;

        question->words[n] = real_word(scenario, scenario->line.words[i], question->text[n]);
    }
}

void statement_golden(struct scenario *scenario)
{
    struct question question;

    read_question(scenario, &question);
    open_files(scenario);
    show_text(scenario, &question);
    show_json(scenario, &question);
    scenario->n_expectations++;
}

void statement_ask(struct scenario *scenario)
{
    struct world_answer answer = {.status = 0};
    struct question question;

    read_question(scenario, &question);
    world_ask(&scenario->world, question.node_id, question.words, question.n_words, &answer);
    if (answer.status != 0) {
        script_fail(scenario, "exit status %d: %s%s", answer.status, answer.out, answer.err);
    }
    world_answer_close(&answer);
}

/* --- the files --- */

static void path_of(const struct scenario *scenario, const char *suffix, char path[PATH_BYTES])
{
    const char *slash = strrchr(scenario->file, '/');
    const char *name = slash == NULL ? scenario->file : slash + 1;
    int n_name = (int)strcspn(name, ".");
    int n_folder = (int)(name - scenario->file);

    if (scenario->golden.folder != NULL) {
        snprintf(path, PATH_BYTES, "%s/%.*s.%s", scenario->golden.folder, n_name, name, suffix);
    } else {
        snprintf(path, PATH_BYTES, "%.*s../golden/%.*s.%s", n_folder, scenario->file, n_name, name,
                 suffix);
    }
}

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");

    if (file == NULL || fputs(text, file) < 0 || fclose(file) != 0) {
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
        exit(2);
    }
}

/* The difference as `diff` shows it; what is there now comes through its standard input. */
static bool is_as_committed(const char *path, const char *text)
{
    char command[PATH_BYTES + 64];

    fflush(stdout);
    signal(SIGPIPE, SIG_IGN); /* diff ends at once where nothing is committed */
    snprintf(command, sizeof command, "diff -u --label committed --label now '%s' - 1>&2", path);
    FILE *diff = popen(command, "w");
    if (diff == NULL) {
        fprintf(stderr, "diff: %s\n", strerror(errno));
        exit(2);
    }
    fputs(text, diff);
    if (pclose(diff) == 0) {
        return true;
    }
    fprintf(stderr, "%s is not as committed; if that is right: scenario --bless\n", path);
    return false;
}

static bool finish_file(const struct scenario *scenario, const char *suffix, const char *text)
{
    char path[PATH_BYTES];

    path_of(scenario, suffix, path);
    if (text == NULL) {
        if (access(path, F_OK) == 0) {
            fprintf(stderr, "%s is there, but nothing of the scenario is golden\n", path);
            return false;
        }
        return true;
    }
    if (scenario->golden.is_blessing) {
        write_file(path, text);
        return true;
    }
    return is_as_committed(path, text);
}

bool golden_finish(struct scenario *scenario)
{
    struct golden *golden = &scenario->golden;
    char *json = NULL;

    if (golden->text != NULL) {
        fclose(golden->text);
        char *compact = json_dumps(golden->json, JSON_INDENT(2) | JSON_REAL_PRECISION(12));
        size_t n_bytes = compact == NULL ? 0 : strlen(compact) + 2;
        json = malloc(n_bytes + 1);
        if (compact == NULL || json == NULL) {
            script_fail(scenario, "out of memory");
        }
        snprintf(json, n_bytes, "%s\n", compact);
        free(compact);
    }
    bool is_equal = finish_file(scenario, "txt", golden->text_bytes);
    is_equal = finish_file(scenario, "json", json) && is_equal;
    free(golden->text_bytes);
    free(json);
    json_decref(golden->json);
    return is_equal;
}
