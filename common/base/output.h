/* The end of what a program prints: was all of it taken? Not the printing itself. Any thread. */
#ifndef JURY_BASE_OUTPUT_H
#define JURY_BASE_OUTPUT_H

#include <stdio.h>

#include "common/base/err.h"

/* Hand over what `out` still holds. A failed write in the middle counts too: stdio drops what it
 * could not write, and flushes nothing without an error afterwards. The caller sets errno to 0
 * before it prints. A reader that has gone (EPIPE) got what it wanted: that is no error, but
 * ferror(out) stays true.
 * Errors: ERR_IO with a sentence. */
int output_end(FILE *out, struct errmsg *err);

#endif
