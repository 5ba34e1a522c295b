/* k of n opinions: a row for each that matters, and all of up to five parts against the sentence of
 * compose.h, counted another way. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "agent/core/compose.h"

static uint8_t letter(char c)
{
    return (uint8_t)(c == 'P' ? OPINION_PASS : c == 'F' ? OPINION_FAIL : OPINION_NONE);
}

static struct composed of(const char *parts, unsigned k, struct composed before)
{
    uint8_t opinions[LIMIT_CHECKS];
    unsigned n = (unsigned)strlen(parts);

    for (unsigned i = 0; i < n; i++) {
        opinions[i] = letter(parts[i]);
    }
    return compose(opinions, n, k, &before);
}

static void k_of_n_parts_must_pass(void **unused)
{
    static const struct {
        const char *parts; /* P pass, F fail, - none */
        unsigned k;
        char opinion;
        uint8_t part;
    } rows[] = {
        {"PP", 2, 'P', 1},       {"PF", 2, 'F', 2},       {"FP", 2, 'F', 1},
        {"FF", 2, 'F', 1},       {"P-", 2, '-', 0},       {"-P", 2, '-', 0},
        {"F-", 2, 'F', 1},       {"-F", 2, 'F', 2},       {"--", 2, '-', 0},
        {"PF", 1, 'P', 1},       {"FP", 1, 'P', 2},       {"FF", 1, 'F', 1},
        {"P-", 1, 'P', 1},       {"F-", 1, '-', 0},       {"--", 1, '-', 0},
        {"PPF", 2, 'P', 1},      {"FPP", 2, 'P', 2},      {"PFF", 2, 'F', 2},
        {"P-F", 2, '-', 0},      {"PP-", 2, 'P', 1},      {"F-F", 2, 'F', 1},
        {"P-F", 3, 'F', 3},      {"PFF", 1, 'P', 1},      {"FF-", 1, '-', 0},
        {"P", 1, 'P', 1},        {"F", 1, 'F', 1},        {"-", 1, '-', 0},
        {"FFFFFFFP", 1, 'P', 8}, {"FFFFFFFF", 1, 'F', 1}, {"PPPPPPP-", 8, '-', 0},
        {"PPPPPPPF", 8, 'F', 8},
    };
    const struct composed nothing = {.opinion = OPINION_NONE};

    (void)unused;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct composed composed = of(rows[i].parts, rows[i].k, nothing);

        assert_int_equal(composed.opinion, letter(rows[i].opinion));
        assert_int_equal(composed.part, rows[i].part);
    }
}

/* Fail: no way to fill in what is not known reaches k. Pass: every way does. */
static void it_is_what_no_unknown_part_could_change_or_k_that_pass(void **unused)
{
    (void)unused;
    for (unsigned n = 1; n <= 5; n++) {
        for (unsigned k = 1; k <= n; k++) {
            unsigned n_cases = 1;

            for (unsigned i = 0; i < n; i++) {
                n_cases *= 3;
            }
            for (unsigned c = 0; c < n_cases; c++) {
                uint8_t opinions[LIMIT_CHECKS];
                unsigned least = 0, most = 0, left = c;

                for (unsigned i = 0; i < n; i++, left /= 3) {
                    opinions[i] = (uint8_t)(left % 3);
                    least += opinions[i] == OPINION_PASS;
                    most += opinions[i] != OPINION_FAIL;
                }
                struct composed composed = compose(opinions, n, k, &(struct composed){0});
                assert_int_equal(composed.opinion, least >= k ? OPINION_PASS
                                                   : most < k ? OPINION_FAIL
                                                              : OPINION_NONE);
                assert_int_equal(composed.part == COMPOSE_NO_PART,
                                 composed.opinion == OPINION_NONE);
                if (composed.part != COMPOSE_NO_PART) {
                    assert_int_equal(opinions[composed.part - 1], composed.opinion);
                }
            }
        }
    }
}

static void the_part_that_is_named_stays_as_long_as_it_says_so(void **unused)
{
    (void)unused;
    struct composed composed = of("PF", 2, (struct composed){.opinion = OPINION_PASS, .part = 1});
    assert_int_equal(composed.part, 2);
    composed = of("FF", 2, composed); /* the first one, too, now */
    assert_int_equal(composed.part, 2);
    composed = of("FP", 2, composed);
    assert_int_equal(composed.part, 1);
    composed = of("PP", 2, composed);
    assert_int_equal(composed.part, 1);
    composed = of("-P", 2, composed);
    assert_int_equal(composed.opinion, OPINION_NONE);
    assert_int_equal(composed.part, COMPOSE_NO_PART);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(k_of_n_parts_must_pass),
        cmocka_unit_test(it_is_what_no_unknown_part_could_change_or_k_that_pass),
        cmocka_unit_test(the_part_that_is_named_stays_as_long_as_it_says_so),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
