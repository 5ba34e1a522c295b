/* A complete example document of each kind, made from the field tables: every field with its help,
 * what is allowed and its default. It is valid as it is. */
#ifndef JURY_SPEC_EXAMPLE_H
#define JURY_SPEC_EXAMPLE_H

#include "common/spec/field.h"

/* ret_text: given; free() it. Errors: ERR_NOMEM. */
int spec_example(const struct spec_kind_info *kind, char **ret_text);

#endif
