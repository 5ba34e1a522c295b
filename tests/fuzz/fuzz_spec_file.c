/* Any bytes as a document: refused with a place inside the text, or read, written and read again,
 * with a place for what a cluster says of it. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/spec/diff.h"
#include "common/spec/emit.h"
#include "common/spec/spec.h"
#include "tests/lib/spec_first.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

/* What is left out as a default is what the reader puts in. */
static void same_without_defaults(const struct spec_set *set)
{
    struct spec_set again = {0};
    struct spec_error error = {0};
    char *text = NULL;
    size_t n_text = 0;

    assert(spec_emit_brief(set->documents, set->n_documents, &text, &n_text, NULL) == 0);
    assert(spec_read_first(&again, "brief", text, n_text, &error) == 0);
    assert(again.n_documents == set->n_documents);
    for (uint32_t i = 0; i < set->n_documents; i++) {
        struct spec_changes changes = {0};

        assert(spec_diff((enum spec_kind)set->documents[i].kind, set->documents[i].u.group,
                         again.documents[i].u.group, &changes) == 0);
        assert(changes.n_items == 0);
        spec_changes_close(&changes);
    }
    free(text);
    spec_set_close(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    struct spec_set set = {0};
    struct spec_set again = {0};
    struct spec_error error = {0};
    char printed[SPEC_ERROR_TEXT_BYTES];
    char *text = NULL;
    size_t n_text = 0;

    if (spec_read_first(&set, "fuzz", (const char *)data, n_bytes, &error) != 0) {
        assert(error.message.text[0] != '\0' && error.at.line <= n_bytes + 1);
        spec_error_format(&error, "fuzz", printed);
        return 0;
    }
    for (uint32_t i = 0; i < set.n_documents; i++) {
        strcpy(error.message.text,
               "key \"a\": backend 10.0.0.1:80: weight, rule, at, checks, host");
        spec_locate(&set, i, &error);
        assert(error.at.line >= set.documents[i].at.line && error.at.line <= n_bytes + 1);
    }
    assert(spec_emit(set.documents, set.n_documents, &text, &n_text, NULL) == 0);
    assert(spec_read_first(&again, "again", text, n_text, &error) == 0);
    assert(again.n_documents == set.n_documents);
    free(text);
    spec_set_close(&again);
    same_without_defaults(&set);
    spec_set_close(&set);
    return 0;
}
