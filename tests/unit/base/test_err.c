#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/base/err.h"

static void every_code_has_its_words_and_comes_back_by_its_reason(void **unused)
{
    static const int codes[] = {
#define CODE(name, number, text, rpc, reason, status) name,
        ERR_CODES(CODE)
#undef CODE
    };
    size_t n = sizeof codes / sizeof codes[0];

    (void)unused;
    for (size_t i = 0; i < n; i++) {
        assert_true(codes[i] < 0);
        assert_true(strlen(err_text(codes[i])) > 0);
        assert_int_equal(err_from_reason(err_reason(codes[i])), codes[i]);
        assert_in_range(err_rpc_code(codes[i]), 1, 16);
        assert_in_range(err_exit_status(codes[i]), 1, 10);
        for (size_t j = 0; j < i; j++) {
            assert_int_not_equal(codes[i], codes[j]);
        }
    }
    assert_int_equal(err_from_reason("NO_SUCH_REASON"), ERR_INTERNAL);
    assert_string_equal(err_reason(-9999), err_reason(ERR_INTERNAL));
    assert_string_equal(err_text(3), err_text(ERR_INTERNAL));
}

static void a_sentence_is_cut_and_says_so(void **unused)
{
    struct errmsg err;
    char text[2 * ERRMSG_BYTES];

    (void)unused;
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    assert_int_equal(errmsg_set(&err, ERR_INVALID, "%s", text), ERR_INVALID);
    assert_int_equal(strlen(err.text), ERRMSG_BYTES - 1);
    assert_string_equal(err.text + ERRMSG_BYTES - 4, "...");
    assert_int_equal(errmsg_set(NULL, ERR_IO, "nobody listens"), ERR_IO);
}

static void a_prefix_goes_in_front(void **unused)
{
    struct errmsg err;

    (void)unused;
    errmsg_set(&err, ERR_INVALID, "port must be 1..65535");
    errmsg_prefix(&err, "group.yaml:%d:%d", 12, 5);
    assert_string_equal(err.text, "group.yaml:12:5: port must be 1..65535");
    errmsg_prefix(NULL, "nobody");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_code_has_its_words_and_comes_back_by_its_reason),
        cmocka_unit_test(a_sentence_is_cut_and_says_so),
        cmocka_unit_test(a_prefix_goes_in_front),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
