/* Model structs to YAML documents: what `spec_read` reads back as equal structs.
 *
 * spec_emit writes every field that applies, so the text no longer depends on a profile's defaults.
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

/* The same, and of groups only what differs from what the document would mean without it: the
 * profile's defaults; of a backend that is enabled no adminState, and of a hold that is off none,
 * which leave both as they are in the cluster. */
int spec_emit_brief(const struct spec_document documents[], size_t n_documents, char **ret_text,
                    size_t *ret_n_bytes, struct errmsg *err);

/* True if a YAML 1.1 reader may take the plain text for something else than a string. */
bool spec_must_quote(const char *text);

#endif
