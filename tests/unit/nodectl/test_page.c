/* The page of `nodectl explain verdict` says what the core does: its formulas are put to every set
 * of votes, its examples are worked out by the core's own functions. Flows and guards are in
 * test_page_use.c; what only time shows (how long a vote counts, how long a group warms up) is in
 * tests/scenario/page_times. */
#include "page.h"

#include "agent/core/share.h"
#include "agent/core/verdict.h"
#include "common/model/check.h"

#define N_MAX 7

/* --- formulas --- */

/* "T x U + I x (U - 1)", "100f", "n / 2": whole numbers; a letter is looked up in values. */
struct formula {
    const char *at;
    const long *values; /* indexed by character */
};

static long sum(struct formula *f);

static void skip_blanks(struct formula *f)
{
    f->at += strspn(f->at, " ");
}

static long factor(struct formula *f)
{
    long value = 1;

    skip_blanks(f);
    if (*f->at == '(') {
        f->at++;
        value = sum(f);
        skip_blanks(f);
        assert_int_equal(*f->at, ')');
        f->at++;
        return value;
    }
    bool has_number = isdigit((unsigned char)*f->at);
    if (has_number) {
        value = strtol(f->at, (char **)(uintptr_t)&f->at, 10);
    }
    bool is_variable =
        *f->at != 'x' && isalpha((unsigned char)*f->at) && !isalpha((unsigned char)f->at[1]);
    if (!is_variable && !has_number) {
        fail_msg("no number or letter at \"%.20s\"", f->at);
    }
    return is_variable ? value * f->values[(unsigned char)*f->at++] : value;
}

static long product(struct formula *f)
{
    long value = factor(f);

    for (skip_blanks(f); strncmp(f->at, "x ", 2) == 0 || strncmp(f->at, "/ ", 2) == 0;
         skip_blanks(f)) {
        bool is_times = *f->at == 'x';

        f->at += 2;
        long other = factor(f);
        value = is_times ? value * other : value / other;
    }
    return value;
}

static long sum(struct formula *f)
{
    long value = product(f);

    for (skip_blanks(f); *f->at == '+' || *f->at == '-'; skip_blanks(f)) {
        long sign = *f->at++ == '+' ? 1 : -1;

        value += sign * product(f);
    }
    return value;
}

static bool compare(struct formula *f)
{
    long left = sum(f);
    char sign[3] = {0};

    skip_blanks(f);
    for (size_t i = 0; i < 2 && strchr("<>=", *f->at) != NULL; i++) {
        sign[i] = *f->at++;
    }
    long right = sum(f);
    if (strcmp(sign, "=") == 0) {
        return left == right;
    }
    if (strcmp(sign, ">=") == 0) {
        return left >= right;
    }
    assert_true(strcmp(sign, ">") == 0 || strcmp(sign, "<") == 0);
    return sign[0] == '>' ? left > right : left < right;
}

/* "f = c and f >= 1", "100f >= 82c, f >= 1" */
static bool holds(const char *text, const long values[])
{
    struct formula f = {text, values};
    bool all = compare(&f);

    for (skip_blanks(&f); *f.at != '\0'; skip_blanks(&f)) {
        if (*f.at == ',') {
            f.at++;
        } else {
            assert_int_equal(strncmp(f.at, "and ", 4), 0);
            f.at += 4;
        }
        all &= compare(&f);
    }
    return all;
}

/* --- windows --- */

static long right_side(const char *line, const long values[])
{
    char text[128];
    const char *at = strchr(line, '=');

    assert_non_null(at);
    size_t from = (size_t)(at + 1 - line);
    const char *end = strstr(at, "   ");
    cell(line, from, end != NULL && end < next_line(line) ? (size_t)(end - line) : SIZE_MAX, text);
    struct formula f = {text, values};
    return sum(&f);
}

static void the_formulas_of_the_windows_are_those_of_the_core(void **state)
{
    (void)state;
    static const uint32_t times[] = {1, 2, 5, 10, 300};

    for (size_t i = 0; i < 5 * 5 * 10; i++) {
        struct health_check check = {.timeout_ms = times[i % 5],
                                     .interval_ms = times[i / 5 % 5],
                                     .healthy_threshold = (uint8_t)(i / 25 + 1),
                                     .unhealthy_threshold = (uint8_t)(i / 25 + 1)};
        long values[128] = {['T'] = check.timeout_ms,
                            ['I'] = check.interval_ms,
                            ['U'] = check.unhealthy_threshold,
                            ['H'] = check.healthy_threshold,
                            ['r'] = 3};

        assert_int_equal(right_side(line_of("  failure window = "), values),
                         check_failure_window_ms(&check));
        assert_int_equal(right_side(line_of("  success window = "), values),
                         check_success_window_ms(&check, 3));
        struct formula calm = {strstr(page, "for T x H + I"), values};
        assert_non_null(calm.at);
        calm.at += strlen("for ");
        values['V'] = 7;
        assert_int_equal(sum(&calm), share_calm_ms(&check) + 3 * 7);
    }
}

static void the_window_of_fixed_pacing_is_that_of_the_core(void **state)
{
    (void)state;
    static const uint32_t times[] = {1, 2, 5, 10, 300};
    const char *at = strstr(page, "`pacing: fixed` the window is ");

    assert_non_null(at);
    assert_non_null(strstr(at, "R = first multiple of I above T."));
    for (size_t i = 0; i < 5 * 5 * 10; i++) {
        struct health_check check = {.pacing = PACING_FIXED,
                                     .timeout_ms = times[i % 5],
                                     .interval_ms = times[i / 5 % 5],
                                     .unhealthy_threshold = (uint8_t)(i / 25 + 1)};
        long round = check.interval_ms;

        while (round <= (long)check.timeout_ms) {
            round += check.interval_ms;
        }
        long values[128] = {
            ['T'] = check.timeout_ms, ['R'] = round, ['U'] = check.unhealthy_threshold};
        struct formula window = {at + strlen("`pacing: fixed` the window is "), values};

        assert_int_equal(sum(&window), check_failure_window_ms(&check));
    }
}

static void the_examples_of_the_windows_are_right(void **state)
{
    (void)state;
    size_t n = 0;

    for (const char *line = page; *line != '\0'; line = next_line(line)) {
        unsigned long long timeout, interval, threshold, window;
        double verdict;
        struct health_check check = {0};

        if (sscanf(line, "  T=%llus I=%llus U=%llu   failure window %llus   verdict %lfs", &timeout,
                   &interval, &threshold, &window, &verdict) == 5) {
            check.timeout_ms = (uint32_t)timeout * 1000;
            check.interval_ms = (uint32_t)interval * 1000;
            check.unhealthy_threshold = (uint8_t)threshold;
            assert_int_equal(check_failure_window_ms(&check), window * 1000);
        } else if (sscanf(line, "  r=%llus I=%llus H=%llu   success window %llus    verdict %lfs",
                          &timeout, &interval, &threshold, &window, &verdict) == 5) {
            check.interval_ms = (uint32_t)interval * 1000;
            check.healthy_threshold = (uint8_t)threshold;
            assert_int_equal(check_success_window_ms(&check, timeout * 1000), window * 1000);
        } else {
            continue;
        }
        /* 2 V + 100 ms with V = 1 s. */
        assert_int_equal((unsigned long long)(verdict * 1000 + 0.5), window * 1000 + 2100);
        n++;
    }
    assert_int_equal(n, 3);
}

/* --- votes and rules --- */

static void the_quorum_of_each_size_is_right(void **state)
{
    (void)state;
    char sizes[WORDS][32], quorums[WORDS][32], text[128];
    const char *line = line_of("  n 1 ");
    size_t n = split(cell(line, 3, SIZE_MAX, text), sizes);

    assert_int_equal(split(cell(next_line(line), 3, SIZE_MAX, text), quorums), n);
    for (size_t i = 0; i < n; i++) {
        struct tally tally = {.n_observers = (uint8_t)atoi(sizes[i])};

        assert_int_equal(tally_quorum(&tally), atoi(quorums[i]));
    }
    assert_int_equal(n, N_MAX);
}

static struct verdict_rule rule_of(const char *text)
{
    struct verdict_rule rule = {.below_quorum = BELOW_QUORUM_HOLD};
    struct errmsg err;

    if (rule_column_parse(text, &rule.down, &err) != 0) {
        fail_msg("%s", err.text);
    }
    rule.up = rule.down;
    return rule;
}

/* All votes that are possible, with every number of lost ones. */
static void expect_columns(const char *name, const char *down, const char *up)
{
    struct verdict_rule rule = rule_of(name);

    for (uint8_t f = 0; f <= N_MAX; f++) {
        for (uint8_t p = 0; f + p <= N_MAX; p++) {
            for (uint8_t lost = 0; lost <= 3; lost++) {
                struct tally tally = {.n_observers = N_MAX, .n_fail = f, .n_pass = p};
                long for_down[128] = {['f'] = f, ['p'] = p + lost, ['c'] = f + p + lost};
                long for_up[128] = {['f'] = f + lost, ['p'] = p, ['c'] = f + p + lost};

                tally.n_lost_pass = lost;
                bool is_down = holds(down, for_down);
                if (verdict_down_holds(&rule, &tally) != is_down) {
                    fail_msg("%s: \"%s\" with f=%u p=%u lost pass=%u", name, down, f, p, lost);
                }
                tally.n_lost_pass = 0;
                tally.n_lost_fail = lost;
                bool is_up = !verdict_down_holds(&rule, &tally) && holds(up, for_up);
                if (verdict_up_holds(&rule, &tally) != is_up) {
                    fail_msg("%s: \"%s\" with f=%u p=%u lost fail=%u", name, up, f, p, lost);
                }
            }
        }
    }
}

/* "2 of 3, 3 of 5": so many fails take a healthy backend out, and one less does not. */
static void expect_figures(const char *name, const char *figures)
{
    struct verdict_rule rule = rule_of(name);
    unsigned f, c;
    int used;

    while (sscanf(figures, "%u of %u%n", &f, &c, &used) == 2) {
        for (unsigned less = 0; less <= 1; less++) {
            struct tally tally = {.n_observers = (uint8_t)c,
                                  .n_fail = (uint8_t)(f - less),
                                  .n_pass = (uint8_t)(c - f + less)};

            if ((verdict_follow(&rule, &tally) == HEALTH_UNHEALTHY) != (less == 0)) {
                fail_msg("%s: %u of %u", name, f - less, c);
            }
        }
        figures += used;
        figures += strspn(figures, ", ");
    }
    assert_int_equal(*figures, '\0');
}

static void each_rule_goes_down_and_comes_up_as_its_formulas_say(void **state)
{
    (void)state;
    const char *head = line_of("  RULE           DOWN WHEN");
    size_t at_down = column_of(head, "DOWN WHEN");
    size_t at_up = column_of(head, "UP WHEN");
    size_t at_figures = column_of(head, "HEALTHY");
    bool has_rule[RULE_ZONE_MAJORITY + 1] = {false};

    for (const char *line = next_line(head); is_row(line); line = next_line(line)) {
        char name[128], down[128], up[128], figures[128];

        cell(line, 0, at_down, name);
        cell(line, at_down, at_up, down);
        cell(line, at_up, at_figures, up);
        cell(line, at_figures, SIZE_MAX, figures);
        struct verdict_rule rule = rule_of(name);
        has_rule[rule.down.kind] = true;
        if (rule.down.kind != RULE_LOCAL && rule.down.kind != RULE_ZONE_MAJORITY) {
            expect_columns(name, down, up);
            expect_figures(name, figures);
        }
    }
    for (unsigned kind = RULE_LOCAL; kind <= RULE_ZONE_MAJORITY; kind++) {
        assert_true(has_rule[kind]);
    }
}

static void add_vote(struct tally *tally, const char *word, bool is_own)
{
    tally->n_observers++;
    tally->n_fail += strcmp(word, "fail") == 0;
    tally->n_pass += strcmp(word, "pass") == 0;
    tally->n_lost_fail += strcmp(word, "lost-fail") == 0;
    tally->n_lost_pass += strcmp(word, "lost-pass") == 0;
    if (is_own) {
        tally->own_is_suspect = strcmp(word, "suspect") == 0;
        tally->own = strcmp(word, "fail") == 0   ? OPINION_FAIL
                     : strcmp(word, "pass") == 0 ? OPINION_PASS
                                                 : OPINION_NONE;
        tally->own_opinion = tally->own_is_suspect ? OPINION_FAIL : tally->own;
    }
}

static void each_worked_example_has_the_verdict_that_it_says(void **state)
{
    (void)state;
    const char *head = line_of("  RULE         VOTES");
    size_t at_votes = column_of(head, "VOTES");
    size_t at_before = column_of(head, "BEFORE");
    size_t at_verdict = column_of(head, "VERDICT");
    size_t n_rows = 0;

    for (const char *line = next_line(head); is_row(line); line = next_line(line), n_rows++) {
        char text[128], wanted[128], got[128], words[WORDS][32];
        struct tally tally = {0};
        struct verdict_rule rule = rule_of(cell(line, 0, at_votes, text));
        size_t n = split(cell(line, at_votes, at_before, text), words);

        for (size_t i = 0; i < n; i++) {
            add_vote(&tally, words[i], i == 0);
        }
        cell(line, at_before, at_verdict, text);
        struct verdict_answer answer = verdict_decide(&(struct verdict_question){
            .rule = &rule,
            .tally = &tally,
            .health_state = strcmp(text, "healthy") == 0 ? HEALTH_HEALTHY : HEALTH_UNHEALTHY});
        snprintf(got, sizeof got, "%s%s%s", health_state_word(answer.health_state),
                 answer.held_causes != 0 ? " held" : "",
                 answer.is_unreachable ? " unreachable" : "");
        cell(line, at_verdict, SIZE_MAX, wanted);
        if (strcmp(got, wanted) != 0) {
            fail_msg("%.*s: it is %s", (int)strcspn(line, "\n"), line, got);
        }
    }
    assert_true(n_rows >= 14);
}

static void the_page_is_the_file_and_fits_a_screen(void **state)
{
    (void)state;
    FILE *file = fopen("nodectl/verdict.txt", "r");
    char line[256];
    const char *at = page;
    size_t n = 0;

    assert_non_null(file);
    while (fgets(line, sizeof line, file) != NULL) {
        assert_true(strlen(line) <= 101);
        assert_int_equal(strncmp(line, at, strlen(line)), 0);
        at += strlen(line);
        n++;
    }
    fclose(file);
    assert_int_equal(*at, '\0');
    assert_true(n <= 140);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_page_is_the_file_and_fits_a_screen),
        cmocka_unit_test(the_formulas_of_the_windows_are_those_of_the_core),
        cmocka_unit_test(the_window_of_fixed_pacing_is_that_of_the_core),
        cmocka_unit_test(the_examples_of_the_windows_are_right),
        cmocka_unit_test(the_quorum_of_each_size_is_right),
        cmocka_unit_test(each_rule_goes_down_and_comes_up_as_its_formulas_say),
        cmocka_unit_test(each_worked_example_has_the_verdict_that_it_says),
    };

    return cmocka_run_group_tests(tests, read_page, free_page);
}
