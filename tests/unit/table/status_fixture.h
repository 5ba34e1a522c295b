/* A data plane's status file and its reader in a scratch folder. */
#ifndef JURY_TEST_STATUS_FIXTURE_H
#define JURY_TEST_STATUS_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "agent/table/boot_id.h"
#include "agent/table/status_file.h"
#include "agent/table/status_reader.h"
#include "common/base/units.h"
#include "tests/lib/scratch.h"

#define NOW (UINT64_C(1000) * NS_PER_SECOND)

struct setup {
    char dir[SCRATCH_BYTES];
    struct boot_id boot_id;
    struct status_file *file;
    struct status_reader *reader;
    struct errmsg err;
};

#define CHECK(setup, call)                                \
    do {                                                  \
        if ((call) != 0) {                                \
            fail_msg("%s: %s", #call, (setup)->err.text); \
        }                                                 \
    } while (0)

static inline int open_plane(struct setup *setup, const char *name, struct status_file **ret_file)
{
    struct status_options options = {
        .dir = setup->dir, .name = name, .n_workers = 2, .boot_ns = NOW};

    return status_file_open(&options, ret_file, &setup->err);
}

static inline void setup_init(struct setup *setup)
{
    memset(setup, 0, sizeof *setup);
    scratch_make(setup->dir);
    CHECK(setup, boot_id_read(&setup->boot_id, &setup->err));
    CHECK(setup, open_plane(setup, "shim", &setup->file));
    CHECK(setup, status_file_reserve(setup->file, 100, &setup->err));
    setup->reader = status_reader_new(setup->dir, &setup->boot_id);
}

static inline void setup_close(struct setup *setup)
{
    status_reader_free(setup->reader);
    status_file_close(setup->file);
    scratch_remove(setup->dir);
}

static inline void adopt(struct setup *setup, uint32_t worker, uint64_t generation)
{
    status_set(&status_file_worker(setup->file, worker)->adopted_layout, 5);
    status_set(&status_file_worker(setup->file, worker)->adopted_generation, generation);
}

#endif
