#include "agent/table/table_state.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "agent/table/table_files.h"
#include "agent/table/table_map.h"

int state_file_make(int dir_fd, uint64_t number, uint32_t n_rows, struct state_file *ret_state,
                    struct errmsg *err)
{
    char name[TABLE_NAME_BYTES];
    size_t rows_bytes = n_rows * sizeof(struct jury_row);
    struct state_file state = {
        .number = number,
        .n_bytes = sizeof(struct jury_state) + rows_bytes + n_rows * sizeof(uint64_t),
        .n_rows = n_rows,
    };
    int result =
        table_file_make(dir_fd, table_state_name(number, name), state.n_bytes, &state.bytes, err);

    if (result != 0) {
        return result;
    }
    struct stat info = {.st_ino = 0};
    fstatat(dir_fd, name, &info, AT_SYMLINK_NOFOLLOW);
    state.inode = info.st_ino;
    struct jury_state *header = (void *)state.bytes;
    *header = (struct jury_state){
        .magic = JURY_STATE_MAGIC,
        .version = JURY_VERSION_WORD(JURY_TABLE_MAJOR, JURY_TABLE_MINOR),
        .file_bytes = state.n_bytes,
        .number = number,
        .n_rows = n_rows,
        .rows_at = sizeof *header,
        .sequences_at = sizeof *header + rows_bytes,
    };
    state.rows = (void *)(state.bytes + header->rows_at);
    state.sequences = (void *)(state.bytes + header->sequences_at);
    *ret_state = state;
    return 0;
}

void state_file_close(struct state_file *state)
{
    if (state->bytes != NULL) {
        table_file_unmap(state->bytes, state->n_bytes);
    }
    *state = (struct state_file){0};
}
