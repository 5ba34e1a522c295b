/* Model structs to YAML documents: what `spec_read` reads back as equal structs.
 *
 * Every field that applies is written, so the text no longer depends on a profile's defaults.
 * Strings that another YAML reader would take for a number, a truth value or a time are quoted. */
#ifndef JURY_SPEC_EMIT_H
#define JURY_SPEC_EMIT_H

#include <stddef.h>

#include "common/spec/spec.h"

/* Write documents, each with its `---`.
 *
 * ret_text: given; free() it. NUL-terminated, ret_n_bytes without the NUL.
 * Errors: ERR_NOMEM, ERR_LIMIT (more than LIMIT_SPEC_FILE_BYTES). */
int spec_emit(const struct spec_document documents[], size_t n_documents, char **ret_text,
              size_t *ret_n_bytes, struct errmsg *err);

/* True if a YAML 1.1 reader may take the plain text for something else than a string. */
bool spec_must_quote(const char *text);

#endif
