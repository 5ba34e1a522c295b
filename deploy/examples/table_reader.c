/* Reads a node's forwarding table with nothing but its public header: prints each server group and
 * what its backends may do.   cc -I SOURCE table_reader.c && ./a.out /run/jury/tables */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/table/jury_table.h"

static const char *map(const char *dir, const char *name)
{
    char path[4096];
    struct stat file;
    snprintf(path, sizeof path, "%s/%s", dir, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &file) != 0) {
        return NULL;
    }
    void *at = mmap(NULL, (size_t)file.st_size, PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
    return at == MAP_FAILED ? NULL : at;
}

int main(int argc, char **argv)
{
    const char *dir = argc > 1 ? argv[1] : "/run/jury/tables", *layout_at = NULL, *state_at = NULL;
    char name[64];
    for (int i = 0; i < 5 && (layout_at == NULL || state_at == NULL); i++) {
        const struct jury_root *root = (const void *)map(dir, "root"); /* again: they may be gone */
        if (root == NULL || root->magic != JURY_ROOT_MAGIC || root->version >> 32 != 1) {
            fprintf(stderr, "%s: no forwarding table of version 1 here\n", dir);
            return 1;
        }
        uint64_t layout_number = jury_load(&root->layout), state_number = jury_load(&root->state);
        snprintf(name, sizeof name, "layout.%016" PRIx64, layout_number);
        layout_at = map(dir, name);
        snprintf(name, sizeof name, "state.%" PRIu64, state_number);
        state_at = map(dir, name);
    }
    const struct jury_layout *layout = (const void *)layout_at;
    const struct jury_state *state = (const void *)state_at;
    for (uint32_t i = 0; state_at != NULL && layout_at != NULL && i < layout->n_members; i++) {
        const struct jury_member *member =
            (const void *)(layout_at + layout->members_at + i * (size_t)layout->member_bytes);
        const struct jury_scope *scope =
            (const void *)(layout_at + layout->scopes_at +
                           member->scope * (size_t)layout->scope_bytes);
        const struct jury_row *rows = (const void *)(state_at + state->rows_at);
        uint64_t word = jury_load(&rows[member->row].word); /* to choose by it: see sequences */
        unsigned rank = jury_word_is_of(word, member->birth) ? jury_class_rank(word & 0xff) : 0;
        unsigned share = jury_word_share(word, state->version); /* weigh by weight x share */
        printf("%s backend %u port %u weight %u share %u rank %u policy %u\n", scope->name,
               member->row, member->at.port, member->weight, share, rank,
               jury_word_flow_policy(word));
    }
    return layout_at == NULL || state_at == NULL;
}
