/* Advice on a document that is valid: what the specification's authors tell their users.
 *
 * `nodectl validate` prints what applies to a document, `nodectl explain` all of it beside the
 * field that it belongs to. */
#ifndef JURY_SPEC_ADVICE_H
#define JURY_SPEC_ADVICE_H

#include <stdbool.h>
#include <stddef.h>

#include "common/spec/spec.h"

struct spec_advice {
    const char *id;   /* for programs: "own-page" */
    const char *path; /* field of `nodectl explain`: "group.check.http.expect" */
    bool is_warning;  /* probably a mistake: also printed by apply; else good to know */
    const char *text; /* one sentence or two */
};

#define SPEC_N_ADVICE 13
extern const struct spec_advice spec_advice[SPEC_N_ADVICE];

/* Which rows apply to the document. ret_rows: room for SPEC_N_ADVICE. Returns their number. */
size_t spec_advise(const struct spec_document *document, const struct spec_advice *ret_rows[]);

#endif
