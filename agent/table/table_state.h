/* One state file of the forwarding table, as the writer holds it. Internal to agent/table. */
#ifndef JURY_TABLE_STATE_H
#define JURY_TABLE_STATE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "agent/table/jury_table.h"
#include "common/base/err.h"

struct state_file {
    uint64_t number;
    uint8_t *bytes; /* NULL: none */
    size_t n_bytes;
    ino_t inode;
    uint32_t n_rows;
    struct jury_row *rows;
    uint64_t *sequences;
};

/* A fresh file with that number, all words 0. Errors: as table_file_make. */
int state_file_make(int dir_fd, uint64_t number, uint32_t n_rows, struct state_file *ret_state,
                    struct errmsg *err);
/* Unmaps; the file stays. */
void state_file_close(struct state_file *state);

#endif
