/* Scores and causes of self-doubt, when it begins and when it ends. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/core/self_doubt.h"
#include "common/model/reason.h"

#define MS UINT64_C(1000000)
#define SECOND (1000 * MS)
#define SELF 9
#define TCP_BIT (1U << CHECK_TYPE_TCP)
#define HTTP_BIT (1U << CHECK_TYPE_HTTP)
#define ALL_TCP (TCP_BIT | HTTP_BIT)

struct fixture {
    struct self_doubt doubt;
    uint64_t now_ns;
};

/* Ten tcp targets, all well, all three observers heard. */
static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    assert_non_null(f);
    f->now_ns = 1000 * SECOND;
    self_doubt_init(&f->doubt, SELF, f->now_ns);
    f->doubt.survey.n_observers = 3;
    f->doubt.survey.n_fresh = 3;
    f->doubt.survey.kinds[CHECK_TYPE_TCP].n_probed = 10;
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    free(*state);
    return 0;
}

static struct doubt_targets *tcp(struct fixture *f)
{
    return &f->doubt.survey.kinds[CHECK_TYPE_TCP];
}

static uint32_t judge(struct fixture *f)
{
    self_doubt_judge(&f->doubt, f->now_ns);
    return self_doubt_mask(&f->doubt);
}

static struct doubt_look look(const struct fixture *f)
{
    struct doubt_look look;

    self_doubt_look(&f->doubt, &look);
    return look;
}

static void expect(struct fixture *f, uint8_t score, uint8_t causes, uint32_t mask)
{
    assert_int_equal(judge(f), mask);
    assert_int_equal(f->doubt.kinds[CHECK_TYPE_TCP].score, score);
    assert_int_equal(f->doubt.kinds[CHECK_TYPE_TCP].causes, causes);
}

static void sentinel(struct fixture *f, uint64_t node_id, enum probe_reason reason)
{
    struct sentinel_result result = {
        .node_id = node_id, .kinds = ALL_TCP, .reason = (uint8_t)reason, .end_ns = f->now_ns};

    self_doubt_note_sentinel(&f->doubt, &result);
}

/* Sentinels of this node and of peers 1..n pass three times. */
static void arm(struct fixture *f, uint64_t n_peers)
{
    for (unsigned i = 0; i < 3; i++) {
        sentinel(f, SELF, REASON_OK);
        for (uint64_t peer = 1; peer <= n_peers; peer++) {
            sentinel(f, peer, REASON_OK);
        }
        f->now_ns += 200 * MS;
    }
}

static void without_evidence_everything_is_trusted(void **state)
{
    struct fixture *f = *state;

    expect(f, 0, 0, 0);
    tcp(f)->n_failing = 10; /* the backends are dead, and everybody says so */
    tcp(f)->n_down = 10;
    expect(f, 0, 0, 0);
}

static void a_second_of_standing_still_is_doubt_and_small_delays_are_not(void **state)
{
    static const struct {
        uint64_t late_ms;
        uint8_t score;
    } rows[] = {{200, 0}, {250, 1}, {600, 2}, {999, 3}, {1000, 4}, {60000, 4}};

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct fixture *f = *state;

        self_doubt_init(&f->doubt, SELF, f->now_ns);
        tcp(f)->n_probed = 1;
        self_doubt_note_late(&f->doubt, rows[i].late_ms * MS, f->now_ns);
        judge(f);
        assert_int_equal(f->doubt.kinds[CHECK_TYPE_TCP].score, rows[i].score);
        assert_int_equal(self_doubt_mask(&f->doubt), rows[i].score >= 4 ? TCP_BIT : 0);
    }
}

static void starvation_adds_up_and_a_busy_machine_does_not(void **state)
{
    struct fixture *f = *state;

    /* A tenth of each second is lost: a neighbour compiles. */
    for (unsigned i = 0; i < 300; i++) {
        f->now_ns += 200 * MS;
        self_doubt_note_late(&f->doubt, 20 * MS, f->now_ns);
        expect(f, 0, 0, 0);
    }
    /* 95 of each 100 ms are lost: 5 % of a processor. */
    for (unsigned i = 0; i < 14; i++) {
        f->now_ns += 200 * MS;
        self_doubt_note_late(&f->doubt, 190 * MS, f->now_ns);
    }
    expect(f, 4, 1 << DOUBT_LOOP_LATE, TCP_BIT);
}

static void doubt_ends_when_the_score_was_low_for_five_seconds(void **state)
{
    struct fixture *f = *state;

    tcp(f)->n_faulty = 3;
    expect(f, 4, 1 << DOUBT_LOCAL_FAULTS, TCP_BIT);
    uint64_t begun_ns = f->now_ns;
    f->now_ns += 60 * SECOND; /* as long as it lasts */
    expect(f, 4, 1 << DOUBT_LOCAL_FAULTS, TCP_BIT);
    tcp(f)->n_faulty = 0;
    expect(f, 0, 0, TCP_BIT);
    f->now_ns += DOUBT_CALM_NS - 1;
    expect(f, 0, 0, TCP_BIT);
    assert_int_equal(look(f).since_ns, begun_ns);
    assert_int_equal(look(f).causes, 1 << DOUBT_LOCAL_FAULTS); /* why it began is still said */
    f->now_ns += 1;
    expect(f, 0, 0, 0);
    assert_int_equal(look(f).causes, 0);
}

static void a_relapse_begins_the_five_seconds_again(void **state)
{
    struct fixture *f = *state;

    tcp(f)->n_faulty = 3;
    expect(f, 4, 1 << DOUBT_LOCAL_FAULTS, TCP_BIT);
    tcp(f)->n_faulty = 0;
    f->now_ns += 4 * SECOND;
    judge(f);
    self_doubt_note_late(&f->doubt, 800 * MS,
                         f->now_ns); /* 3: no doubt by itself, no calm either */
    expect(f, 3, 1 << DOUBT_LOOP_LATE, TCP_BIT);
    f->now_ns += 4 * SECOND;
    expect(f, 0, 0, TCP_BIT); /* from here on */
    f->now_ns += 4 * SECOND;
    expect(f, 0, 0, TCP_BIT);
    f->now_ns += SECOND;
    expect(f, 0, 0, 0);
}

static void time_that_a_node_stood_still_is_no_calm(void **state)
{
    struct fixture *f = *state;

    tcp(f)->n_faulty = 3;
    expect(f, 4, 1 << DOUBT_LOCAL_FAULTS, TCP_BIT);
    tcp(f)->n_faulty = 0;
    f->now_ns += 60 * SECOND; /* nobody looked */
    expect(f, 0, 0, TCP_BIT);
    f->now_ns += 5 * SECOND;
    expect(f, 0, 0, 0);
}

static void shortages_count_from_three_targets_and_a_quarter_on(void **state)
{
    static const struct {
        uint32_t n_faulty, n_probed;
        uint8_t score;
    } rows[] = {{2, 2, 0}, {3, 3, 4}, {3, 12, 4}, {3, 13, 0}, {25000, 100000, 4}};

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct fixture *f = *state;

        self_doubt_init(&f->doubt, SELF, f->now_ns);
        *tcp(f) =
            (struct doubt_targets){.n_probed = rows[i].n_probed, .n_faulty = rows[i].n_faulty};
        judge(f);
        assert_int_equal(f->doubt.kinds[CHECK_TYPE_TCP].score, rows[i].score);
    }
    assert_true(self_doubt_is_shortage(REASON_LOCAL_NO_DESCRIPTOR));
    assert_true(self_doubt_is_shortage(REASON_LOCAL_NO_PORT));
    assert_true(self_doubt_is_shortage(REASON_LOCAL_NO_BUFFER));
    assert_true(self_doubt_is_shortage(REASON_LOCAL_LATE));
    assert_false(self_doubt_is_shortage(REASON_LOCAL_FORBIDDEN));
    assert_false(self_doubt_is_shortage(REASON_LOCAL_NO_ROUTE));
    assert_false(self_doubt_is_shortage(REASON_CONNECT_TIMEOUT));
}

/* Without CAP_NET_RAW a node has no vote on what is checked half-open, and goes on with the rest.
 */
static void what_is_wrong_with_one_address_or_one_way_to_probe_is_no_shortage(void **state)
{
    (void)state;
    assert_false(self_doubt_is_shortage(REASON_LOCAL_NO_PERMISSION));
    assert_false(self_doubt_is_shortage(REASON_LOCAL_SOURCE_MISSING));
    assert_false(self_doubt_is_shortage(REASON_LOCAL_NO_ROUTE));
    assert_false(self_doubt_is_shortage(REASON_LOCAL_FORBIDDEN));
    assert_false(self_doubt_is_shortage(REASON_LOCAL_UNSUPPORTED));
    assert_true(self_doubt_is_shortage(REASON_LOCAL_NO_DESCRIPTOR));
    assert_true(self_doubt_is_shortage(REASON_LOCAL_NO_PORT));
    assert_true(self_doubt_is_shortage(REASON_LOCAL_NO_BUFFER));
    assert_true(self_doubt_is_shortage(REASON_LOCAL_LATE));
}

static void one_kind_of_probe_is_suspect_without_the_others(void **state)
{
    struct fixture *f = *state;

    f->doubt.survey.kinds[CHECK_TYPE_HTTP] = (struct doubt_targets){.n_probed = 4, .n_faulty = 3};
    assert_int_equal(judge(f), HTTP_BIT);
    assert_int_equal(f->doubt.kinds[CHECK_TYPE_TCP].score, 0);
    /* What is not probed is never suspect. */
    self_doubt_note_late(&f->doubt, 2 * SECOND, f->now_ns);
    assert_int_equal(judge(f), TCP_BIT | HTTP_BIT);
}

static void contradiction_counts_from_three_targets_and_a_quarter_of_the_failing_on(void **state)
{
    static const struct {
        uint32_t n_probed, n_down, n_contradicted;
        uint8_t score;
    } rows[] = {
        {1, 1, 1, 0},     /* a single cut path, all there is */
        {4, 1, 1, 0},     /* a single cut path */
        {2, 2, 2, 0},     /* two */
        {10, 3, 3, 2},    /* a cut rack: told, not suspect, the paths are steered round */
        {10, 12, 3, 2},   /* a quarter of what fails */
        {100, 13, 3, 0},  /* less: the others confirm most failures */
        {10, 5, 5, 4},    /* half of all that it probes */
        {10, 10, 10, 4},  /* all */
        {100, 49, 49, 2}, /* less than half */
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct fixture *f = *state;

        self_doubt_init(&f->doubt, SELF, f->now_ns);
        f->doubt.survey.n_observers = f->doubt.survey.n_fresh = 3;
        *tcp(f) = (struct doubt_targets){.n_probed = rows[i].n_probed,
                                         .n_failing = rows[i].n_down,
                                         .n_votes = rows[i].n_probed,
                                         .n_down = rows[i].n_down,
                                         .n_contradicted = rows[i].n_contradicted};
        judge(f);
        assert_int_equal(f->doubt.kinds[CHECK_TYPE_TCP].score, rows[i].score);
        assert_int_equal(self_doubt_mask(&f->doubt), rows[i].score >= 4 ? TCP_BIT : 0);
    }
}

static void isolation_is_doubt_only_when_most_probes_fail_too(void **state)
{
    struct fixture *f = *state;

    f->doubt.survey.n_fresh = 1;
    expect(f, 2, 1 << DOUBT_ISOLATED, 0);
    tcp(f)->n_failing = 5; /* half of them */
    expect(f, 2, 1 << DOUBT_ISOLATED, 0);
    tcp(f)->n_failing = 6;
    expect(f, 4, 1 << DOUBT_ISOLATED, TCP_BIT);
}

static void the_quorum_that_is_left_isolates_nobody_nor_does_the_end_of_a_pair(void **state)
{
    struct fixture *f = *state;

    tcp(f)->n_failing = 10;
    f->doubt.survey.n_fresh = 2; /* of three */
    expect(f, 0, 0, 0);
    f->doubt.survey.n_observers = 2;
    f->doubt.survey.n_fresh = 1;
    expect(f, 0, 0, 0);
}

static void peers_that_time_out_now_and_then_are_lossy(void **state)
{
    struct fixture *f = *state;

    arm(f, 2);
    sentinel(f, 1, REASON_CONNECT_TIMEOUT);
    sentinel(f, 1, REASON_CONNECT_TIMEOUT);
    sentinel(f, 1, REASON_CONNECT_TIMEOUT);
    expect(f, 0, 0, 0); /* that peer's doing */
    sentinel(f, 2, REASON_CONNECT_TIMEOUT);
    expect(f, 2, 1 << DOUBT_LOSSY, 0); /* its own targets are well: nothing to doubt */
    tcp(f)->n_failing = 10;            /* dead for long */
    expect(f, 2, 1 << DOUBT_LOSSY, 0);
    self_doubt_note_fresh_failure(&f->doubt, f->now_ns);
    self_doubt_note_fresh_failure(&f->doubt, f->now_ns);
    expect(f, 3, 1 << DOUBT_LOSSY, 0);
    self_doubt_note_fresh_failure(&f->doubt, f->now_ns);
    expect(f, 4, 1 << DOUBT_LOSSY, TCP_BIT);
    f->now_ns += SENTINEL_WINDOW_NS;
    expect(f, 0, 0, TCP_BIT);
}

/* The score while the way to the peers is lossy. */
static uint8_t lossy_score(struct fixture *f)
{
    arm(f, 2);
    sentinel(f, 1, REASON_CONNECT_TIMEOUT);
    sentinel(f, 1, REASON_CONNECT_TIMEOUT);
    sentinel(f, 2, REASON_CONNECT_TIMEOUT);
    judge(f);
    return f->doubt.kinds[CHECK_TYPE_TCP].score;
}

static void new_failures_count_for_ten_to_twenty_seconds(void **state)
{
    static const struct {
        uint64_t after_ms;
        uint8_t score;
    } rows[] = {{0, 4}, {10000, 4}, {18000, 4}, {20000, 2}, {60000, 2}};

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct fixture *f = *state;

        self_doubt_init(&f->doubt, SELF, f->now_ns);
        f->doubt.survey.n_observers = f->doubt.survey.n_fresh = 3;
        tcp(f)->n_probed = 48;
        for (unsigned n = 0; n < 3; n++) {
            self_doubt_note_fresh_failure(&f->doubt, f->now_ns);
        }
        f->now_ns += rows[i].after_ms * MS;
        assert_int_equal(lossy_score(f), rows[i].score);
    }
}

static void few_new_failures_among_many_targets_begin_no_doubt(void **state)
{
    struct fixture *f = *state;

    tcp(f)->n_probed = 49; /* one for sixteen would be four */
    for (unsigned n = 0; n < 3; n++) {
        self_doubt_note_fresh_failure(&f->doubt, f->now_ns);
    }
    assert_int_equal(lossy_score(f), 3);
}

static void peers_that_say_nothing_at_all_are_a_cut(void **state)
{
    struct fixture *f = *state;

    arm(f, 2);
    f->now_ns += SENTINEL_WINDOW_NS - 600 * MS;
    for (unsigned i = 0; i < 2; i++) {
        sentinel(f, 1, REASON_CONNECT_TIMEOUT);
        sentinel(f, 2, REASON_CONNECT_TIMEOUT);
        f->now_ns += 500 * MS;
    }
    tcp(f)->n_failing = 5;
    expect(f, 2, 1 << DOUBT_ISOLATED, 0);
    tcp(f)->n_failing = 6;
    expect(f, 4, 1 << DOUBT_ISOLATED, TCP_BIT);
}

static void sentinels_that_never_answered_say_nothing(void **state)
{
    struct fixture *f = *state;

    tcp(f)->n_failing = 10;
    for (unsigned i = 0; i < 10; i++) {
        sentinel(f, 1, REASON_CONNECT_TIMEOUT); /* a firewall between the nodes */
        sentinel(f, 2, REASON_CONNECT_TIMEOUT);
        sentinel(f, SELF, REASON_CONNECT_TIMEOUT);
    }
    expect(f, 0, 0, 0);
    arm(f, 2);
    f->now_ns += SENTINEL_WINDOW_NS;
    arm(f, 2);
    for (unsigned i = 0; i < 10; i++) {
        sentinel(f, 1, REASON_CONNECT_FAILED); /* both machines are gone, the routers say */
        sentinel(f, 2, REASON_CONNECT_FAILED);
    }
    expect(f, 0, 0, 0);
}

/* Nobody listens there, so that strangers find no queue to fill. */
static void a_refusal_by_the_sentinel_itself_is_its_answer(void **state)
{
    struct fixture *f = *state;
    struct sentinel_result refusal = {
        .kinds = ALL_TCP, .reason = REASON_CONNECT_FAILED, .is_refused = true};

    tcp(f)->n_failing = 10;
    for (unsigned i = 0; i < 3; i++) {
        f->now_ns += 200 * MS;
        refusal.end_ns = f->now_ns;
        for (uint64_t node = 1; node <= SELF; node += SELF - 1) {
            refusal.node_id = node;
            self_doubt_note_sentinel(&f->doubt, &refusal);
        }
    }
    expect(f, 0, 0, 0);
    assert_int_equal(self_doubt_n_witnesses(&f->doubt, f->now_ns), 2);
}

static void sentinels_are_the_members_that_follow_by_id(void **state)
{
    static const struct {
        uint64_t self_id;
        unsigned n, unknown, n_chosen; /* unknown: bits 1 << index */
        uint64_t chosen[SENTINEL_PEERS];
    } rows[] = {
        {1, 1, 0, 0, {0}},          {1, 3, 0, 2, {2, 3}},
        {2, 3, 0, 2, {3, 1}},       {3, 3, 1 << 0, 1, {2}},
        {2, 7, 0, 4, {3, 4, 5, 6}}, {6, 7, 1 << 0 | 1 << 1, 4, {7, 3, 4, 5}},
        {9, 3, 0, 3, {1, 2, 3}}, /* it is not a member yet */
    };

    (void)state;
    for (size_t row = 0; row < sizeof rows / sizeof rows[0]; row++) {
        struct sentinel_member members[7];
        size_t chosen[SENTINEL_PEERS];

        for (unsigned i = 0; i < rows[row].n; i++) {
            members[i] = (struct sentinel_member){.node_id = i + 1,
                                                  .is_known = (rows[row].unknown >> i & 1) == 0};
        }
        unsigned n = self_doubt_choose_peers(members, rows[row].n, rows[row].self_id, chosen);
        assert_int_equal(n, rows[row].n_chosen);
        for (unsigned i = 0; i < n; i++) {
            assert_int_equal(members[chosen[i]].node_id, rows[row].chosen[i]);
        }
    }
}

static void loops_are_as_late_as_the_later_of_them(void **state)
{
    /* Each row is one tick; times in ms. */
    static const struct {
        uint64_t now, probe_stalled, n_stalls;
        bool is_stalled;
        uint64_t late;
    } rows[] = {
        {5000, 0, 0, false, 0},       /* the first says nothing */
        {5200, 0, 0, false, 0},       /* in time */
        {5420, 0, 0, false, 0},       /* 20 ms is any machine */
        {5641, 0, 0, false, 21},      /* the health loop */
        {5841, 300, 0, false, 300},   /* the probe thread */
        {6541, 700, 0, false, 500},   /* both: the health loop was later */
        {6741, 700, 1, true, 1000},   /* a stall is found, of a second until then */
        {6941, 700, 1, true, 200},    /* and lasts */
        {7141, 700, 1, false, 0},     /* it is over */
        {7341, 2200, 1, false, 1500}, /* and then the thread says so by itself */
    };
    struct loops_late loops = {.tick_interval_ns = 200 * MS, .stall_ns = SECOND};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct loops_sample sample = {.now_ns = rows[i].now * MS,
                                            .probe_stalled_ns = rows[i].probe_stalled * MS,
                                            .n_probe_stalls = rows[i].n_stalls,
                                            .probe_is_stalled = rows[i].is_stalled};

        assert_int_equal(self_doubt_take_loops(&loops, &sample), rows[i].late * MS);
    }
}

static void one_half_of_a_partition_of_five_is_not_at_fault(void **state)
{
    struct fixture *f = *state;

    arm(f, 4);
    f->doubt.survey.n_observers = 5;
    f->doubt.survey.n_fresh = 3;
    tcp(f)->n_failing = 10;
    for (unsigned i = 0; i < 4; i++) {
        sentinel(f, 1, REASON_CONNECT_TIMEOUT);
        sentinel(f, 2, REASON_CONNECT_TIMEOUT);
        sentinel(f, 3, REASON_OK);
        sentinel(f, 4, REASON_OK);
    }
    expect(f, 0, 0, 0);
}

static void a_broken_loopback_makes_its_kinds_suspect(void **state)
{
    struct fixture *f = *state;

    arm(f, 2);
    f->doubt.survey.kinds[CHECK_TYPE_UDP].n_probed = 5;
    sentinel(f, SELF, REASON_CONNECT_FAILED);
    expect(f, 0, 0, 0);
    sentinel(f, SELF, REASON_CONNECT_TIMEOUT);
    expect(f, 4, 1 << DOUBT_LOOPBACK, TCP_BIT); /* udp is probed in another way */
}

static void the_score_is_a_sum_and_ends_at_seven(void **state)
{
    struct fixture *f = *state;

    self_doubt_note_late(&f->doubt, 2 * SECOND, f->now_ns);
    tcp(f)->n_faulty = 5;
    f->doubt.survey.n_fresh = 1;
    expect(f, 7, 1 << DOUBT_LOOP_LATE | 1 << DOUBT_LOCAL_FAULTS | 1 << DOUBT_ISOLATED, TCP_BIT);
}

static void causes_have_words_and_unknown_ones_too(void **state)
{
    char text[DOUBT_TEXT_BYTES];

    (void)state;
    assert_string_equal(doubt_causes_format(0, text), "none");
    assert_string_equal(doubt_causes_format(1 << DOUBT_LOOP_LATE | 1 << DOUBT_ISOLATED, text),
                        "loop-late,isolated");
    assert_string_equal(doubt_cause_word(31), "other");
    assert_non_null(strstr(doubt_cause_sentence(31), "does not know"));
    doubt_causes_format(UINT32_MAX, text);
    assert_true(strlen(text) < DOUBT_TEXT_BYTES);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(without_evidence_everything_is_trusted),
        TEST(a_second_of_standing_still_is_doubt_and_small_delays_are_not),
        TEST(starvation_adds_up_and_a_busy_machine_does_not),
        TEST(doubt_ends_when_the_score_was_low_for_five_seconds),
        TEST(a_relapse_begins_the_five_seconds_again),
        TEST(time_that_a_node_stood_still_is_no_calm),
        TEST(shortages_count_from_three_targets_and_a_quarter_on),
        TEST(what_is_wrong_with_one_address_or_one_way_to_probe_is_no_shortage),
        TEST(one_kind_of_probe_is_suspect_without_the_others),
        TEST(contradiction_counts_from_three_targets_and_a_quarter_of_the_failing_on),
        TEST(isolation_is_doubt_only_when_most_probes_fail_too),
        TEST(the_quorum_that_is_left_isolates_nobody_nor_does_the_end_of_a_pair),
        TEST(peers_that_time_out_now_and_then_are_lossy),
        TEST(new_failures_count_for_ten_to_twenty_seconds),
        TEST(few_new_failures_among_many_targets_begin_no_doubt),
        TEST(peers_that_say_nothing_at_all_are_a_cut),
        TEST(sentinels_that_never_answered_say_nothing),
        TEST(a_refusal_by_the_sentinel_itself_is_its_answer),
        TEST(sentinels_are_the_members_that_follow_by_id),
        TEST(loops_are_as_late_as_the_later_of_them),
        TEST(one_half_of_a_partition_of_five_is_not_at_fault),
        TEST(a_broken_loopback_makes_its_kinds_suspect),
        TEST(the_score_is_a_sum_and_ends_at_seven),
        TEST(causes_have_words_and_unknown_ones_too),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
