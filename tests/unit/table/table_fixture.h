/* A writer and a reader of a table in a scratch folder. */
#ifndef JURY_TEST_TABLE_FIXTURE_H
#define JURY_TEST_TABLE_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/table/table_map.h"
#include "agent/table/table_reader.h"
#include "agent/table/table_scope.h"
#include "common/base/limits.h"
#include "common/base/plant.h"
#include "tests/lib/scratch.h"
#include "tests/lib/sketch.h"

struct setup {
    char dir[SCRATCH_BYTES];
    struct sketch *sketch;
    struct table_writer *writer;
    struct table_reader *reader;
    struct errmsg err;
};

#define CHECK(setup, call)                                \
    do {                                                  \
        if ((call) != 0) {                                \
            fail_msg("%s: %s", #call, (setup)->err.text); \
        }                                                 \
    } while (0)

static inline void setup_init(struct setup *setup)
{
    memset(setup, 0, sizeof *setup);
    scratch_make(setup->dir);
    setup->sketch = sketch_new();
    sketch_group(setup->sketch, "api", JURY_SCHEDULER_5_TUPLE);
    sketch_backend(setup->sketch, "10.0.0.1:80", 100);
    sketch_backend(setup->sketch, "10.0.0.2:80", 50);
    sketch_group(setup->sketch, "web", JURY_SCHEDULER_WRR);
    sketch_backend(setup->sketch, "10.0.1.1:80", 100);
    sketch_listener(setup->sketch, "front", "10.9.9.9:443", "web");
    CHECK(setup, sketch_writer(setup->dir, 1, &setup->writer, &setup->err));
    setup->reader = table_reader_new(setup->dir);
}

static inline void setup_close(struct setup *setup)
{
    table_reader_free(setup->reader);
    table_writer_close(setup->writer);
    sketch_free(setup->sketch);
    scratch_remove(setup->dir);
}

static inline struct table_snapshot *look_new(struct setup *setup)
{
    struct table_snapshot *snapshot = NULL;

    if (table_reader_look(setup->reader, true, &snapshot, &setup->err) != TABLE_NEW) {
        fail_msg("no new table: %s", setup->err.text);
    }
    return snapshot;
}

static inline unsigned n_files(const struct setup *setup)
{
    DIR *dir = opendir(setup->dir);
    unsigned n = 0;

    while (readdir(dir) != NULL) {
        n++;
    }
    closedir(dir);
    return n - 2;
}

#endif
