/* A small forwarding table made by hand, for tests of the table and of jury-shim without an agent:
 * groups, backends and listeners in, layout and row words out. Rows are remembered by (group,
 * address), so a table that is described again keeps them, as the catalog would. */
#ifndef JURY_TESTS_SKETCH_H
#define JURY_TESTS_SKETCH_H

#include <stddef.h>
#include <stdint.h>

#include "agent/core/classes.h"
#include "agent/core/fwd_layout.h"
#include "agent/table/table_writer.h"

#define SKETCH_SCOPES 64
#define SKETCH_MEMBERS 2048
#define SKETCH_LISTENERS 64
#define SKETCH_ROWS (SKETCH_SCOPES + SKETCH_MEMBERS)

struct sketch {
    struct jury_scope scopes[SKETCH_SCOPES];
    struct jury_member members[SKETCH_MEMBERS];
    struct jury_listener listeners[SKETCH_LISTENERS];
    uint32_t n_scopes, n_members, n_listeners;
    /* Of all rows ever given out, by row. */
    struct {
        char group[JURY_NAME_BYTES];
        struct endpoint at; /* family 0: the group's own row */
        struct row_word word;
    } rows[SKETCH_ROWS];
    uint32_t n_rows;
    uint64_t next_birth;
};

struct sketch *sketch_new(void);
void sketch_free(struct sketch *sketch);
/* Forget groups, backends and listeners; rows and their words stay. */
void sketch_clear(struct sketch *sketch);

/* The newest group gets the backends that follow. Words begin as healthy, keep. */
struct jury_scope *sketch_group(struct sketch *sketch, const char *name, unsigned scheduler);
struct jury_member *sketch_backend(struct sketch *sketch, const char *at, uint8_t weight);
/* NULL: no such group. */
struct jury_listener *sketch_listener(struct sketch *sketch, const char *name, const char *at,
                                      const char *group);

/* The word of a backend (at "": of the group); NULL: there is none. */
struct row_word *sketch_word(struct sketch *sketch, const char *group, const char *at);
/* All words, those of one scope together. words: room for SKETCH_ROWS. Returns their number. */
size_t sketch_words(const struct sketch *sketch, struct row_word words[]);

int sketch_build(const struct sketch *sketch, uint64_t revision, struct fwd_layout *ret_layout,
                 struct errmsg *err);
/* Words, layout, publish. */
int sketch_publish(const struct sketch *sketch, struct table_writer *writer, const char *dir,
                   uint64_t revision, struct errmsg *err);

/* A writer for tests: cluster id all 1, node 1, this boot. */
int sketch_writer(const char *dir, uint64_t epoch, struct table_writer **ret_writer,
                  struct errmsg *err);

#endif
