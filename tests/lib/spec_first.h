/* Documents read for tests that look at one error: the first. */
#ifndef JURY_TESTS_SPEC_FIRST_H
#define JURY_TESTS_SPEC_FIRST_H

#include "common/spec/spec.h"

/* As spec_read. */
static inline int spec_read_first(struct spec_set *set, const char *file, const char *text,
                                  size_t n_bytes, struct spec_error *ret_error)
{
    struct spec_errors errors;
    int rc = spec_read(set, file, text, n_bytes, &errors);

    if (rc != 0) {
        *ret_error = errors.items[0];
    }
    return rc;
}

#endif
