/* What the page of `nodectl explain verdict` says of flows, guards and words is what the core does.
 */
#include "page.h"

#include "agent/core/classes.h"
#include "agent/core/guard.h"
#include "agent/core/guard_flap.h"
#include "agent/core/self_doubt.h"
#include "agent/table/jury_table.h"
#include "common/model/profile.h"

/* --- flows --- */

static struct class_member member_of(const char *word)
{
    struct class_member member = {.is_eligible = true, .health_state = HEALTH_HEALTHY};

    member.is_unreachable = strcmp(word, "unreachable") == 0;
    if (strcmp(word, "unhealthy") == 0) {
        member.health_state = HEALTH_UNHEALTHY;
    } else if (strcmp(word, "initial") == 0) {
        member.health_state = HEALTH_INITIAL;
    }
    return member;
}

/* Numbers of the members in the first rank that is not empty. */
static void chosen(const uint8_t classes[], size_t n, char text[128])
{
    text[0] = '\0';
    for (unsigned rank = 1; rank <= 3 && text[0] == '\0'; rank++) {
        for (size_t i = 0; i < n; i++) {
            if (jury_class_rank(classes[i]) == rank) {
                snprintf(text + strlen(text), 128 - strlen(text), "%s%zu",
                         text[0] == '\0' ? "" : " ", i + 1);
            }
        }
    }
}

static void new_flows_go_where_the_ladder_says(void **state)
{
    (void)state;
    const char *head = line_of("  BACKENDS");
    size_t at_percent = column_of(head, "failOpenPercent");
    size_t at_group = column_of(head, "GROUP");
    size_t at_flows = column_of(head, "NEW FLOWS TO");
    size_t n_rows = 0;

    for (const char *line = next_line(head); is_row(line); line = next_line(line), n_rows++) {
        char words[WORDS][32], text[128], wanted[128], got[128];
        struct class_member members[WORDS];
        uint8_t classes[WORDS];
        struct class_result result;
        size_t n = split(cell(line, 0, at_percent, text), words);

        for (size_t i = 0; i < n; i++) {
            members[i] = member_of(words[i]);
        }
        struct class_policy policy = {.all_bad = ALL_BAD_FAIL_OPEN,
                                      .fail_open_percent =
                                          (uint8_t)atoi(cell(line, at_percent, at_group, text))};
        classes_decide(&policy, members, (uint32_t)n, classes, &result);
        assert_string_equal(cell(line, at_group, at_flows, text),
                            group_state_word(result.group_state));
        chosen(classes, n, got);
        assert_string_equal(got, cell(line, at_flows, SIZE_MAX, wanted));
    }
    assert_true(n_rows >= 7);
}

static void open_flows_are_closed_as_the_page_says(void **state)
{
    (void)state;
    static const struct {
        enum profile profile;
        bool is_unhealthy, is_removing, closes;
    } rows[] = {{PROFILE_NLB, true, false, true},   {PROFILE_CLB, true, false, false},
                {PROFILE_GWLB, true, false, false}, {PROFILE_NLB, false, true, true},
                {PROFILE_CLB, false, true, true},   {PROFILE_GWLB, false, true, false}};

    assert_non_null(
        strstr(flat, "for nlb when it is unhealthy, for nlb and clb when it is removed"));
    for (size_t i = 0; i < 2 * sizeof rows / sizeof rows[0]; i++) {
        size_t row = i / 2;
        bool is_on = i % 2 == 1;
        struct flow_question question = {.profile = (uint8_t)rows[row].profile,
                                         .failover = FAILOVER_NO_REBALANCE,
                                         .drain = {.is_on = is_on, .timeout_ms = 300000},
                                         .admin_state = ADMIN_ENABLED,
                                         .is_removing = rows[row].is_removing,
                                         .is_unhealthy = rows[row].is_unhealthy,
                                         .drain_timeout_ms = 300000};
        struct flow_answer answer =
            rows[row].is_removing ? flows_by_admin(&question) : flows_by_verdict(&question);

        assert_int_equal(answer.flow_policy == FLOW_CLOSE_AT, is_on && rows[row].closes);
        question.is_fail_open = true;
        if (rows[row].is_unhealthy) {
            assert_int_equal(flows_by_verdict(&question).flow_policy, FLOW_KEEP);
        }
    }
}

/* --- guards --- */

static void the_figures_of_the_guards_are_those_of_the_core(void **state)
{
    (void)state;
    struct server_group group = {0};
    char text[128];
    unsigned n, percent, limit;
    size_t n_figures = 0;

    profile_group_defaults(PROFILE_NLB, PROTOCOL_NONE, &group);
    const char *line = line_of("  12 backends");
    for (const char *at = strchr(line, ' '); at != NULL && at < next_line(line);
         at = strstr(at + 3, "   ")) {
        char tail[16] = "";
        int n_read = sscanf(at, " %u backends, %u %%: %u %15s", &n, &percent, &limit, tail);

        if (n_read == 4) {
            assert_int_equal(guard_velocity_limit(n, (uint8_t)percent), limit);
            assert_true(n >= group.guard.exempt_below);
        } else {
            assert_int_equal(sscanf(at, " %u backends, %u %%: no %15s", &n, &percent, tail), 3);
            assert_true(n < group.guard.exempt_below);
        }
        n_figures++;
    }
    assert_int_equal(n_figures, 3);
    snprintf(text, sizeof text, "velocityWindow (%us)", group.guard.velocity_window_ms / 1000);
    assert_non_null(strstr(flat, text));
    snprintf(text, sizeof text, "exemptBelow (%u)", group.guard.exempt_below);
    assert_non_null(strstr(flat, text));
    snprintf(text, sizeof text, "returnWindow (%us)", group.guard.return_window_ms / 1000);
    assert_non_null(strstr(flat, text));
    snprintf(text, sizeof text, "goes down again within %u minutes",
             (unsigned)(FLAP_MEMORY_MS / 60000));
    assert_non_null(strstr(flat, text));
    snprintf(text, sizeof text, "2 x flapHold, ... up to %u minutes",
             GUARD_FLAP_HOLD_MS_MAX / 60000);
    assert_non_null(strstr(flat, text));
    assert_non_null(strstr(flat, "at least 3 backends and over 30 % of n went down"));
    assert_true(guard_is_correlated(3, 9) && !guard_is_correlated(2, 2));
    assert_true(guard_is_correlated(31, 100) && !guard_is_correlated(30, 100));
    snprintf(text, sizeof text, "a node with %u points", DOUBT_SCORE_SUSPECT);
    assert_non_null(strstr(flat, text));
    snprintf(text, sizeof text, "until %us after they are %u or fewer",
             (unsigned)(DOUBT_CALM_NS / 1000000000), DOUBT_SCORE_CALM);
    assert_non_null(strstr(flat, text));
}

/* Whether a node that starts with this survey, and these lost seconds, doubts its tcp probes. */
static bool doubts(const struct doubt_targets *targets, uint8_t n_fresh, uint64_t late_ms)
{
    struct self_doubt doubt;
    uint64_t now_ns = UINT64_C(1000000000000);

    self_doubt_init(&doubt, 1, now_ns);
    doubt.survey = (struct doubt_survey){.n_observers = 3, .n_fresh = n_fresh};
    doubt.survey.kinds[CHECK_TYPE_TCP] = *targets;
    if (late_ms > 0) {
        self_doubt_note_late(&doubt, late_ms * 1000000, now_ns);
    }
    self_doubt_judge(&doubt, now_ns);
    return self_doubt_mask(&doubt) >> CHECK_TYPE_TCP & 1;
}

static void a_node_doubts_itself_from_the_points_on_that_the_page_names(void **state)
{
    (void)state;
    static const struct {
        const char *words; /* of the page, blanks and line ends alike */
        struct doubt_targets most, least;
        uint8_t n_fresh;
    } rows[] = {
        {"3 targets or more, and a quarter of all, out of descriptors or ports",
         {.n_probed = 13, .n_faulty = 3},
         {.n_probed = 12, .n_faulty = 3},
         3},
        {"fewer than q nodes heard, with 3 targets or more, and more than half of all, failing",
         {.n_probed = 6, .n_failing = 3, .n_down = 3},
         {.n_probed = 5, .n_failing = 3, .n_down = 3},
         1},
        {"3 targets or more, and half of all, that fail here and pass at most peers",
         {.n_probed = 7, .n_failing = 3, .n_votes = 7, .n_down = 3, .n_contradicted = 3},
         {.n_probed = 6, .n_failing = 3, .n_votes = 6, .n_down = 3, .n_contradicted = 3},
         3},
        {"3 targets or more, and half of all, that fail here",
         {.n_probed = 2, .n_failing = 2, .n_votes = 2, .n_down = 2, .n_contradicted = 2},
         {.n_probed = 3, .n_failing = 3, .n_votes = 3, .n_down = 3, .n_contradicted = 3},
         3},
    };
    static const struct doubt_targets calm = {.n_probed = 10};

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_non_null(strstr(flat, rows[i].words));
        assert_false(doubts(&rows[i].most, rows[i].n_fresh, 0));
        assert_true(doubts(&rows[i].least, rows[i].n_fresh, 0));
    }
    assert_non_null(strstr(flat, "loops that lost 1s;"));
    assert_true(doubts(&calm, 3, 1000));
    assert_false(doubts(&calm, 3, 700));
}

/* --- words --- */

static void expect_word(const char *word)
{
    if (strcmp(word, "?") != 0 && strstr(page, word) == NULL) {
        fail_msg("the page does not say what \"%s\" is", word);
    }
}

static void every_state_mark_and_guard_is_on_the_page(void **state)
{
    (void)state;
    static const char *const marks[] = {"held",    "pending", "gray",
                                        "suspect", "warming", "flapping"};

    for (unsigned i = HEALTH_INITIAL; i <= HEALTH_UNUSED; i++) {
        expect_word(health_state_word((enum health_state)i));
    }
    for (unsigned i = GUARD_NONE + 1; i < GUARD_KINDS; i++) {
        expect_word(guard_word(i));
    }
    for (size_t i = 0; i < sizeof marks / sizeof marks[0]; i++) {
        expect_word(marks[i]);
    }
    expect_word(group_state_word(GROUP_DEGRADED));
    expect_word(group_state_word(GROUP_FAIL_OPEN));
    expect_word(group_state_word(GROUP_CLOSED));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(new_flows_go_where_the_ladder_says),
        cmocka_unit_test(open_flows_are_closed_as_the_page_says),
        cmocka_unit_test(the_figures_of_the_guards_are_those_of_the_core),
        cmocka_unit_test(a_node_doubts_itself_from_the_points_on_that_the_page_names),
        cmocka_unit_test(every_state_mark_and_guard_is_on_the_page),
    };

    return cmocka_run_group_tests(tests, read_page, free_page);
}
