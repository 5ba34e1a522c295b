/* Documents from files, directories and standard input. */
#ifndef JURY_NODECTL_LOAD_H
#define JURY_NODECTL_LOAD_H

#include "common/spec/spec.h"
#include "nodectl/ctl.h"

/* Read everything that --file names into a zeroed set; the caller closes it, also on failure.
 * Errors: ERR_USAGE (no --file, a file that cannot be read, a directory without documents), and
 * those of spec_read, with the place. */
int load_documents(struct ctl *ctl, struct spec_set *set);

/* Put one more thing that is wrong with a document into the failure, whose message is that of the
 * first. rc: ERR_* of it. False: the list is full. */
bool load_put_error(struct ctl *ctl, int rc, const char *file, const struct spec_error *error);

/* A public key as 64 hex digits or as a file that holds one. what: begins the sentence.
 * Errors: ERR_USAGE, ERR_CONFIG. */
int load_public_key(struct ctl *ctl, const char *what, const char *text,
                    struct public_key *ret_key);

/* "group \"web\"" for sentences. Returns text. */
#define LOAD_OBJECT_BYTES (LIMIT_NAME_BYTES + 32)
const char *load_object(const struct spec_document *document, char text[LOAD_OBJECT_BYTES]);

/* "group/web", as apply names what it did. */
void load_put_name(FILE *out, const struct spec_document *document);

#endif
