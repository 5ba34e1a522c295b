/* The words of a scenario file. One statement a line, '#' begins a comment; README.md in this
 * folder lists the statements. A mistake in a file ends the run with file and line. */
#ifndef JURY_TESTS_SCENARIO_SCRIPT_H
#define JURY_TESTS_SCENARIO_SCRIPT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "common/model/group.h"
#include "tests/lib/world.h"

#define SCRIPT_WORDS 24
#define SCRIPT_MARKS 16
#define SCRIPT_GROUPS 8
#define SCRIPT_BACKENDS 16 /* a group */
#define SCRIPT_ALWAYS 8
#define SCRIPT_TEXT_BYTES 320 /* what a node is, in a sentence */

struct line {
    uint32_t number;
    uint32_t n;
    char *words[SCRIPT_WORDS];
};

struct named_backend {
    char name[16]; /* "b1" */
    struct endpoint at;
    uint8_t weight;
};

struct named_group {
    struct server_group spec; /* without backends */
    struct named_backend backends[SCRIPT_BACKENDS];
    uint32_t n_backends;
};

struct mark {
    char name[16];
    uint64_t at_ns;
};

/* What a backend or a group is expected to be; empty fields are not looked at. */
struct expectation {
    uint32_t line;
    uint64_t node_id; /* 0 = all that are up */
    char group[LIMIT_NAME_BYTES + 1];
    char backend[16];       /* empty: the group */
    uint8_t state;          /* enum health_state or group_state; 0 = any */
    uint8_t class_wanted;   /* enum row_class + 1 */
    uint8_t opinion_wanted; /* own opinion + 1 */
    uint8_t marks_set;
    uint8_t marks_clear;
    int8_t unreachable;          /* -1 any, 0, 1 */
    int16_t n, q, c, f, p, lost; /* -1 = any */
    int16_t share;               /* percent of its weight; likewise */
    char reason[32];             /* empty: any */
    uint8_t held;                /* bits of enum held_cause that must be set */
    uint16_t guards;             /* of the group: bits 1 << enum guard_kind, all of them; +1 */
};

/* What `golden` statements have shown so far: the two files of the scenario, as they would be. */
struct golden {
    const char *folder; /* NULL: golden beside the scenario's folder */
    bool is_blessing;   /* write them instead of comparing */
    FILE *text;         /* NULL before the first statement; one for people, one for programs */
    char *text_bytes;
    size_t n_text_bytes;
    json_t *json;
};

struct scenario {
    const char *file;
    struct golden golden;
    struct line line; /* the one that runs */
    struct world world;
    bool has_world;
    struct named_group groups[SCRIPT_GROUPS];
    uint32_t n_groups;
    struct mark marks[SCRIPT_MARKS];
    uint32_t n_marks;
    struct expectation always[SCRIPT_ALWAYS];
    uint32_t n_always;
    /* What `until` waits for. */
    struct {
        bool is_set, happened;
        uint64_t node_id;
        struct endpoint at; /* a failing or passing probe of this backend starts */
        uint8_t probe_class;
        bool is_expectation;
        struct expectation expectation;
    } wait;
    /* Verdict changes of all nodes, for `expect no verdict change`. */
    struct {
        uint64_t at_ns;
        uint64_t node_id;
        char group[LIMIT_NAME_BYTES + 1];
        struct endpoint at;
    } changes[4096];
    uint32_t n_changes;
    uint32_t n_statements;
    uint32_t n_expectations;
    /* What was replayed (tests/lib/replay_judge.h). */
    uint32_t n_replayed_groups, n_replayed_whole, n_replayed_events, n_replayed_verdicts;
};

/* Print file, line and the sentence, and end the process with status 1. */
void script_fail(const struct scenario *scenario, const char *format, ...)
    __attribute__((format(printf, 2, 3), noreturn));

/* The replays of all nodes that are up (node_id 0), or of one, must be what happened. */
void script_judge_replays(struct scenario *scenario, uint64_t node_id);

/* Words of the statement that runs; a missing one fails. */
const char *script_word(const struct scenario *scenario, uint32_t index);
bool script_is(const struct scenario *scenario, uint32_t index, const char *text);
uint64_t script_time_ns(const struct scenario *scenario, const char *text);
uint64_t script_number(const struct scenario *scenario, const char *text, uint64_t max);
/* "web/b1"; backend is NULL for "web". Fails on an unknown name. */
struct named_group *script_find(struct scenario *scenario, const char *text,
                                struct named_backend **ret_backend);

/* Words from `first` on: "[node N|all] web/b1 healthy held f=1 ...". */
void expectation_parse(struct scenario *scenario, uint32_t first, struct expectation *ret);
/* Whether a node is as expected now; else what it is. text: SCRIPT_TEXT_BYTES. */
bool expectation_holds(struct scenario *scenario, const struct expectation *expectation,
                       const struct world_node *node, char *text);
/* On each node it is for. Fails the scenario when it does not hold. */
void expectation_check(struct scenario *scenario, const struct expectation *expectation);

/* At the end of the scenario: compare what was shown with its files in the folder, or write them.
 * Returns whether they are equal; prints the difference. */
bool golden_finish(struct scenario *scenario);

/* Run one statement. */
void statement_run(struct scenario *scenario);

#endif
