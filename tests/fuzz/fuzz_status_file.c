/* Any bytes as a data plane's status file: refused by name, or read within the file. */
#include <assert.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/table/status_reader.h"
#include "tests/lib/scratch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    static char dir[SCRATCH_BYTES]; /* one for the whole run */
    char path[SCRATCH_BYTES + 16];
    struct boot_id boot_id = {{0}}; /* seeds have a boot id of zeros */
    struct jury_status_row sum;

    if (dir[0] == '\0') {
        scratch_make(dir);
    }
    snprintf(path, sizeof path, "%s/x.status", dir);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert(fd >= 0 && write(fd, data, n_bytes) == (ssize_t)n_bytes);
    close(fd);
    struct status_reader *reader = status_reader_new(dir, &boot_id);
    status_reader_scan(reader, UINT64_C(1000000000000), NULL);
    const struct plane_view *view = status_reader_plane(reader, 0);
    assert((view->plane_state == PLANE_REFUSED) == (view->refusal.text[0] != '\0'));
    for (uint32_t row = 0; row < 8; row++) {
        status_reader_row(reader, row, row, &sum);
    }
    status_reader_free(reader);
    return 0;
}
