#include "common/base/output.h"

#include <errno.h>
#include <string.h>

#include "common/base/plant.h"

int output_end(FILE *out, struct errmsg *err)
{
    bool is_flushed = fflush(out) == 0;
    bool is_whole = ferror(out) == 0 || plant_is("output-error-forgotten");

    if ((is_flushed && is_whole) || errno == EPIPE) {
        return 0;
    }
    return errmsg_set(err, ERR_IO, "the output cannot be written: %s", strerrordesc_np(errno));
}
