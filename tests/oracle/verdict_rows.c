/* Asks the agent's own votes and verdicts for the rows of verdict_rows.py and compares.
 *
 * usage: verdict_rows.py | verdict_rows      exits 1 and tells the first rows that differ, in words
 *
 * Each set of votes is played into a real vote table: messages of peers, at the ages of the rows'
 * stories. What the table counts is compared, then what verdict_decide makes of it. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/core/verdict.h"
#include "agent/core/votes.h"
#include "common/model/names.h"
#include "common/model/profile.h"

#define MS UINT64_C(1000000)
#define WORD 64
#define RULES_MAX 512
#define SITUATIONS_MAX 16
#define STORIES_MAX 16 /* of one kind */
#define KINDS 6
#define STEP_MS 1000000 /* between two sets of votes: everything is forgotten */
#define TOLD_MAX 10

static const char *const kind_words[KINDS] = {"passes",     "fails",  "lost-passes",
                                              "lost-fails", "silent", "suspect"};

/* One peer: heard `age` ago; `then`, later, it took its vote back or doubted itself. */
struct story {
    enum opinion opinion;
    uint64_t age_ms;
    char then; /* 'n' none, 's' suspect, 0 */
    uint64_t then_age_ms;
};

struct situation {
    uint8_t below_quorum;
    uint8_t health_state;
    bool is_gray;
    bool is_overdue;
};

struct judge {
    char rule_words[RULES_MAX][WORD];
    struct verdict_rule rules[RULES_MAX];
    size_t n_rules;
    char situation_words[SITUATIONS_MAX][WORD];
    struct situation situations[SITUATIONS_MAX];
    size_t n_situations;
    struct story stories[KINDS][STORIES_MAX];
    unsigned n_stories[KINDS];
    unsigned next_story[KINDS]; /* they take turns */
    struct votes *votes;
    struct zone_map zones;
    struct id_set changed;
    uint64_t memory_ms;
    uint64_t now_ms;
    uint64_t sequence;
    uint64_t n_rows, n_sets, n_different;
};

static void give_up(const char *what, const char *text)
{
    printf("verdict_rows: cannot read %s: \"%.200s\"\n", what, text);
    exit(2);
}

static unsigned find_kind(const char *word)
{
    for (unsigned kind = 0; kind < KINDS; kind++) {
        if (strcmp(word, kind_words[kind]) == 0) {
            return kind;
        }
    }
    give_up("a kind of vote", word);
    return 0;
}

static enum opinion read_opinion(const char *word)
{
    const char *bare = strncmp(word, "suspect-", 8) == 0 ? word + 8 : word;

    return strcmp(bare, "pass") == 0   ? OPINION_PASS
           : strcmp(bare, "fail") == 0 ? OPINION_FAIL
                                       : OPINION_NONE;
}

/* "at-least:2" */
static struct rule_column read_column(const char *word)
{
    char name[WORD];
    unsigned value;

    if (sscanf(word, "%63[^:]:%u", name, &value) != 2 || names_value(&names_rule, name) == 0) {
        give_up("a rule", word);
    }
    return (struct rule_column){.kind = (uint8_t)names_value(&names_rule, name),
                                .value = (uint8_t)value};
}

static void read_rule(struct judge *judge, const char *word)
{
    const char *slash = strchr(word, '/');
    struct verdict_rule *rule = &judge->rules[judge->n_rules];

    assert(judge->n_rules < RULES_MAX);
    snprintf(judge->rule_words[judge->n_rules++], WORD, "%s", word);
    rule->is_split = slash != NULL;
    rule->up = read_column(slash != NULL ? slash + 1 : word);
    char down[WORD];
    snprintf(down, sizeof down, "%.*s", (int)strcspn(word, "/"), word);
    rule->down = read_column(down);
}

/* "gray-healthy/hold" */
static void read_situation(struct judge *judge, const char *word)
{
    struct situation *situation = &judge->situations[judge->n_situations];

    assert(judge->n_situations < SITUATIONS_MAX);
    snprintf(judge->situation_words[judge->n_situations++], WORD, "%s", word);
    *situation = (struct situation){
        .below_quorum = strstr(word, "/local") != NULL ? BELOW_QUORUM_LOCAL : BELOW_QUORUM_HOLD,
        .health_state = strncmp(word, "initial", 7) == 0    ? HEALTH_INITIAL
                        : strstr(word, "unhealthy") != NULL ? HEALTH_UNHEALTHY
                                                            : HEALTH_HEALTHY,
        .is_gray = strncmp(word, "gray", 4) == 0,
        .is_overdue = strstr(word, "overdue") != NULL,
    };
}

static void read_story(struct judge *judge, const char *text)
{
    char kind_word[WORD], opinion[WORD], then[WORD] = "";
    unsigned long age_ms, then_age_ms = 0;
    int n = sscanf(text, "%63s %63s %lu %63s %lu", kind_word, opinion, &age_ms, then, &then_age_ms);

    if (n != 3 && n != 5) {
        give_up("a story", text);
    }
    unsigned kind = find_kind(kind_word);
    assert(judge->n_stories[kind] < STORIES_MAX);
    judge->stories[kind][judge->n_stories[kind]++] =
        (struct story){read_opinion(opinion), age_ms, then[0], then_age_ms};
}

static void expect_default(struct judge *judge, const char *text)
{
    char profile[WORD], rule[WORD];
    struct server_group group;

    if (sscanf(text, "%63s %63s", profile, rule) != 2) {
        give_up("a default", text);
    }
    struct rule_column column = read_column(rule);
    profile_group_defaults((enum profile)names_value(&names_profile, profile), PROTOCOL_NONE,
                           &group);
    judge->n_rows++;
    if (group.rule.is_split || group.rule.down.kind != column.kind ||
        group.rule.down.value != column.value) {
        printf("profile %s: the sentences say %s, the agent says %s\n", profile, rule,
               names_word(&names_rule, group.rule.down.kind));
        judge->n_different++;
    }
}

static void expect_preset(struct judge *judge, const char *text)
{
    char word[WORD], rule[WORD];
    struct rule_column is;
    struct errmsg err;

    if (sscanf(text, "%63s %63s", word, rule) != 2) {
        give_up("a preset", text);
    }
    struct rule_column column = read_column(rule);
    judge->n_rows++;
    if (rule_column_parse(word, &is, &err) != 0 || is.kind != column.kind ||
        is.value != column.value) {
        printf("rule %s: the sentences say %s, the agent says otherwise\n", word, rule);
        judge->n_different++;
    }
}

/* --- one set of votes --- */

static void hear(struct judge *judge, uint32_t peer, enum opinion opinion, bool is_suspect,
                 uint64_t at_ms)
{
    struct votes_here here = {.revision = 1, .now_ns = at_ms * MS};
    struct vote_chunk chunk = {.epoch = 1,
                               .sequence = ++judge->sequence,
                               .revision = 1,
                               .n_chunks = 1,
                               .suspect_mask = is_suspect ? UINT32_C(1) << CHECK_TYPE_TCP : 0,
                               .opinions = {(uint8_t)opinion}};

    if (votes_take_chunk(judge->votes, peer, &chunk, &here, &judge->changed) != VOTES_TAKEN) {
        give_up("a vote, as the table refuses it, of", "a peer");
    }
}

static void play(struct judge *judge, uint32_t peer, const struct story *story)
{
    hear(judge, peer, story->opinion, false, judge->now_ms - story->age_ms);
    if (story->then != 0) {
        hear(judge, peer, story->then == 'n' ? OPINION_NONE : story->opinion, story->then == 's',
             judge->now_ms - story->then_age_ms);
    }
}

/* "own vote pass; peers: 1 fails, 2 silent; zone: 1 passes" */
static const char *say_votes(const char *votes, char text[4 * WORD])
{
    const char *zone = strchr(votes, ' ');
    int used = snprintf(text, 4 * WORD, "own vote %.*s; peers:", (int)strcspn(votes, " "), votes);

    while (zone != NULL) {
        unsigned n[KINDS];

        sscanf(zone, "%u,%u,%u,%u,%u,%u", &n[0], &n[1], &n[2], &n[3], &n[4], &n[5]);
        for (unsigned kind = 0; kind < KINDS && used < 3 * WORD; kind++) {
            if (n[kind] != 0) {
                used += snprintf(text + used, WORD, " %u %s", n[kind], kind_words[kind]);
            }
        }
        zone = strchr(zone + 1, ' ');
        used += snprintf(text + used, WORD, "%s", zone != NULL ? "; zone:" : "");
    }
    return text;
}

/* "1,0,0,2,0,0": peers of each kind, from the index *peer on. Returns their bits. */
static uint64_t play_zone(struct judge *judge, const char *text, uint32_t *peer,
                          unsigned n_of_kind[KINDS])
{
    unsigned n[KINDS];
    uint64_t bits = 0;

    if (sscanf(text, "%u,%u,%u,%u,%u,%u", &n[0], &n[1], &n[2], &n[3], &n[4], &n[5]) != KINDS) {
        give_up("the votes of a zone", text);
    }
    for (unsigned kind = 0; kind < KINDS; kind++) {
        n_of_kind[kind] += n[kind];
        for (unsigned i = 0; i < n[kind]; i++) {
            unsigned turn = judge->next_story[kind]++ % judge->n_stories[kind];

            bits |= UINT64_C(1) << *peer;
            play(judge, (*peer)++, &judge->stories[kind][turn]);
        }
    }
    return bits;
}

static void add_own(struct tally *tally, const char *word)
{
    tally->own_opinion = (uint8_t)read_opinion(word);
    tally->own_is_suspect = strncmp(word, "suspect", 7) == 0;
    if (tally->own_is_suspect) {
        return;
    }
    tally->own = tally->own_opinion;
    tally->n_pass = (uint8_t)(tally->n_pass + (tally->own == OPINION_PASS));
    tally->n_fail = (uint8_t)(tally->n_fail + (tally->own == OPINION_FAIL));
    tally->passes |= tally->own == OPINION_PASS ? tally->own_bit : 0;
    tally->fails |= tally->own == OPINION_FAIL ? tally->own_bit : 0;
}

/* "fail 1,0,0,2,0,0 0,1,0,0,0,0": the own vote, and peers of each kind by zone, its own first. The
 * node's own index is 0. */
static void read_votes(struct judge *judge, const char *text, struct tally *ret_tally)
{
    const char *zone = strchr(text, ' ');
    unsigned n[KINDS] = {0};
    uint32_t peer = 1;

    judge->n_sets++;
    judge->now_ms += STEP_MS;
    judge->zones = (struct zone_map){0};
    for (; zone != NULL; zone = strchr(zone + 1, ' ')) {
        uint64_t bits = play_zone(judge, zone + 1, &peer, n);

        judge->zones.members[judge->zones.n_zones++] = bits;
    }
    judge->zones.members[0] |= 1;
    *ret_tally = (struct tally){.n_observers = (uint8_t)peer, .own_bit = 1, .zones = &judge->zones};
    votes_count(judge->votes, 0, (UINT64_C(1) << peer) - 2, judge->now_ms * MS, ret_tally);
    if ((ret_tally->n_pass != n[0] || ret_tally->n_fail != n[1] || ret_tally->n_lost_pass != n[2] ||
         ret_tally->n_lost_fail != n[3]) &&
        judge->n_different++ < TOLD_MAX) {
        char words[4 * WORD];
        printf("%s: the agent counts %u passes, %u fails, %u lost passes, %u lost fails\n",
               say_votes(text, words), ret_tally->n_pass, ret_tally->n_fail, ret_tally->n_lost_pass,
               ret_tally->n_lost_fail);
    }
    char own[WORD];
    snprintf(own, sizeof own, "%.*s", (int)strcspn(text, " "), text);
    add_own(ret_tally, own);
}

/* --- the verdicts on it --- */

static char letter_of(const struct verdict_answer *answer)
{
    unsigned state = answer->health_state == HEALTH_INITIAL   ? 0
                     : answer->health_state == HEALTH_HEALTHY ? 1
                                                              : 2;

    return (char)('A' + state * 8 + answer->is_gray * 4U + (answer->held_causes != 0) * 2U +
                  answer->is_unreachable);
}

static const char *words_of(char letter, char text[WORD])
{
    static const char *const states[] = {"initial", "healthy", "unhealthy"};
    unsigned code = (unsigned)(letter - 'A');

    snprintf(text, WORD, "%s%s%s%s", code / 8 < 3 ? states[code / 8] : "nothing",
             (code & 4) != 0 ? ", gray" : "", (code & 2) != 0 ? ", held" : "",
             (code & 1) != 0 ? ", unreachable from here" : "");
    return text;
}

static void tell(struct judge *judge, const char *votes, size_t rule, size_t situation,
                 const char letters[2])
{
    char text[4 * WORD], says[WORD], is[WORD];

    if (judge->n_different++ < TOLD_MAX) {
        printf("%s; rule %s; from %s: the sentences say \"%s\", the agent says \"%s\"\n",
               say_votes(votes, text), judge->rule_words[rule], judge->situation_words[situation],
               words_of(letters[0], says), words_of(letters[1], is));
    }
}

/* One line: the letters of all rules in one situation. */
static void compare(struct judge *judge, const char *votes, const struct tally *tally,
                    size_t situation_index, const char *line)
{
    const struct situation *situation = &judge->situations[situation_index];

    if (strlen(line) != judge->n_rules) {
        give_up("a line of letters", line);
    }
    for (size_t i = 0; i < judge->n_rules; i++) {
        judge->rules[i].below_quorum = situation->below_quorum;
        struct verdict_question question = {.rule = &judge->rules[i],
                                            .tally = tally,
                                            .health_state = situation->health_state,
                                            .is_gray = situation->is_gray,
                                            .past_initial_window = situation->is_overdue};
        struct verdict_answer answer = verdict_decide(&question);
        char letter = letter_of(&answer);

        if (letter != line[i]) {
            tell(judge, votes, i, situation_index, (char[]){line[i], letter});
        }
    }
    judge->n_rows += judge->n_rules;
}

/* --- reading --- */

static char *next_line(char **line, size_t *line_bytes)
{
    ssize_t n = getline(line, line_bytes, stdin);

    if (n <= 0) {
        give_up("on", "the rows end before their last line");
    }
    (*line)[n - 1] = '\0';
    return *line;
}

static void read_words(struct judge *judge, char *text, void (*read)(struct judge *, const char *))
{
    char *rest = NULL;

    for (char *word = strtok_r(text, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
        read(judge, word);
    }
}

static void read_interval(struct judge *judge, const char *text)
{
    unsigned long vote_interval_ms, memory_ms;

    if (sscanf(text, "%lu %lu", &vote_interval_ms, &memory_ms) != 2) {
        give_up("the intervals", text);
    }
    votes_set_interval(judge->votes, vote_interval_ms * MS);
    votes_set_slot(judge->votes, 0, 1, 1U << CHECK_TYPE_TCP, memory_ms);
}

/* False: that was the last line. */
static bool read_line(struct judge *judge, char **line, size_t *line_bytes)
{
    char *text = next_line(line, line_bytes);
    char *rest = text + strcspn(text, " ");

    rest += *rest == ' ';
    if (strncmp(text, "votes ", 6) == 0) {
        char votes[4 * WORD];
        struct tally tally;

        snprintf(votes, sizeof votes, "%s", rest);
        read_votes(judge, votes, &tally);
        for (size_t i = 0; i < judge->n_situations; i++) {
            compare(judge, votes, &tally, i, next_line(line, line_bytes));
        }
    } else if (strncmp(text, "rules ", 6) == 0) {
        judge->n_rules = 0;
        read_words(judge, rest, read_rule);
    } else if (strncmp(text, "situations ", 11) == 0) {
        read_words(judge, rest, read_situation);
    } else if (strncmp(text, "story ", 6) == 0) {
        read_story(judge, rest);
    } else if (strncmp(text, "interval ", 9) == 0) {
        read_interval(judge, rest);
    } else if (strncmp(text, "default ", 8) == 0) {
        expect_default(judge, rest);
    } else if (strncmp(text, "preset ", 7) == 0) {
        expect_preset(judge, rest);
    } else if (strcmp(text, "end") == 0) {
        return false;
    } else {
        give_up("a line", text);
    }
    return true;
}

int main(void)
{
    static struct judge judge;
    char *line = NULL;
    size_t line_bytes = 0;

    judge.votes = votes_new();
    id_set_init(&judge.changed);
    if (judge.votes == NULL || votes_reserve(judge.votes, 1) != 0 ||
        id_set_reserve(&judge.changed, 1) != 0) {
        give_up("anything", "no memory");
    }
    while (read_line(&judge, &line, &line_bytes)) {
    }
    printf("verdict_rows: %llu rows, %llu sets of votes, %llu differ\n",
           (unsigned long long)judge.n_rows, (unsigned long long)judge.n_sets,
           (unsigned long long)judge.n_different);
    free(line);
    votes_free(judge.votes);
    id_set_close(&judge.changed);
    return judge.n_different == 0 && judge.n_rows > 0 ? 0 : 1;
}
