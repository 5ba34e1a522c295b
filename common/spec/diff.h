/* What differs between two objects of one kind, field by field: a pure function. */
#ifndef JURY_SPEC_DIFF_H
#define JURY_SPEC_DIFF_H

#include <stdbool.h>
#include <stdint.h>

#include "common/spec/field.h"

/* One field, or one element of a list. before or after is NULL when it was not, or is no longer,
 * there; then its own fields are not listed. */
struct spec_change {
    const char *path; /* "check.timeout", "labels.tier", "backend 10.0.0.1:80: weight" */
    const char *before;
    const char *after;
};

struct spec_changes {
    struct spec_change *items; /* in the order of the tables */
    uint32_t n_items;
    char *texts; /* what the items point into */
};

/* before, after: structs of the kind, borrowed. before NULL: everything that `after` says is new.
 * A field that a document leaves to the cluster (adminState) is no difference.
 * ret_changes: given; spec_changes_close frees it. Errors: ERR_NOMEM. */
int spec_diff(enum spec_kind kind, const void *before, const void *after,
              struct spec_changes *ret_changes);
void spec_changes_close(struct spec_changes *changes);

#endif
