/* Tables of refusals of the document reader: input, place and the exact sentence. */
#ifndef JURY_TEST_REFUSALS_FIXTURE_H
#define JURY_TEST_REFUSALS_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/spec/spec.h"
#include "tests/lib/spec_first.h"

struct refusal {
    const char *text;
    uint32_t line;
    uint32_t column;
    int err;
    const char *sentence;
};

/* A group up to its spec's fields, and with the fields of a spec. */
#define HEAD "apiVersion: jury/v1\nkind: Group\nmetadata: {name: web}\nspec:\n"
#define GROUP(fields) HEAD "  profile: nlb\n" fields /* fields begin on line 6, column 3 */
#define LISTENER(fields) \
    "apiVersion: jury/v1\nkind: Listener\nmetadata: {name: front}\nspec:\n" fields
#define NODE(fields) "apiVersion: jury/v1\nkind: Node\nspec:\n" fields
#define KEY64 "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

static inline void check(const struct refusal rows[], size_t n_rows)
{
    for (size_t i = 0; i < n_rows; i++) {
        struct spec_set set = {0};
        struct spec_error error = {0};
        int rc = spec_read_first(&set, "f.yaml", rows[i].text, strlen(rows[i].text), &error);

        if (rc != rows[i].err || error.at.line != rows[i].line ||
            error.at.column != rows[i].column ||
            strcmp(error.message.text, rows[i].sentence) != 0) {
            fail_msg("row %zu:\n%s\nexpected %d at %u:%u: %s\ngot      %d at %u:%u: %s", i,
                     rows[i].text, rows[i].err, rows[i].line, rows[i].column, rows[i].sentence, rc,
                     error.at.line, error.at.column, error.message.text);
        }
        assert_int_equal(set.n_documents, 0);
        assert_int_equal(set.n_files, 0);
        spec_set_close(&set);
    }
}

#define CHECK(rows) check(rows, sizeof(rows) / sizeof((rows)[0]))

#endif
