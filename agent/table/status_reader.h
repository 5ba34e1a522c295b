/* The status files of this node's data planes, as the agent reads them: untrusted, so nothing is
 * mapped (a file cut short would kill the reader), every size and word is checked, and what is out
 * of range makes that data plane `refused` by name and harms nothing else. One thread. */
#ifndef JURY_TABLE_STATUS_READER_H
#define JURY_TABLE_STATUS_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/core/engine.h"
#include "agent/table/jury_table.h"
#include "agent/table/table_writer.h"
#include "common/base/err.h"
#include "common/base/limits.h"

enum plane_state {
    PLANE_NONE = 0,
    PLANE_ALIVE = 1,
    PLANE_ABSENT = 2,  /* no heartbeat for JURY_ABSENT_MS, or of another boot */
    PLANE_REFUSED = 3, /* not understood or out of range; the sentence says what */
    PLANE_GONE = 4     /* its file was removed while it was alive; the sentence says so */
};

struct plane_view {
    char name[JURY_PLANE_NAME_BYTES]; /* of the file, without ".status" */
    uint8_t plane_state;              /* enum plane_state */
    uint64_t pid;
    uint64_t heartbeat_age_ns;
    uint64_t uptime_ns;
    uint64_t adopted_layout;
    uint64_t adopted_generation;
    uint32_t n_workers;
    struct jury_status_worker totals; /* sums over the workers; its first three words are 0 */
    struct jury_status_failure failures[JURY_STATUS_FAILURES]; /* listeners it could not open */
    uint32_t n_failures;                                       /* of them, named here */
    uint32_t n_failures_all; /* with those that have no place here; at most LIMIT_LISTENERS */
    struct errmsg refusal;   /* with PLANE_REFUSED and PLANE_GONE */
};

struct status_reader;

/* dir: copied; need not exist. NULL: no memory. */
struct status_reader *status_reader_new(const char *dir, const struct boot_id *boot_id);
void status_reader_free(struct status_reader *reader);

/* A plane whose file is gone is told for so long, unless it comes back. */
#define PLANE_GONE_MS 600000

/* Look at the directory and every header again; each JURY_HEARTBEAT_MS or when needed. At most
 * LIMIT_DATA_PLANES files, by name; more are counted in *ret_n_ignored. */
void status_reader_scan(struct status_reader *reader, uint64_t boot_ns, uint32_t *ret_n_ignored);
size_t status_reader_n_planes(const struct status_reader *reader);
const struct plane_view *status_reader_plane(const struct status_reader *reader, size_t index);

/* Numbers of one row (and birth), summed over the living planes and their workers. False: a living
 * plane does not count that row, so its flows are not known. */
bool status_reader_row(struct status_reader *reader, uint32_t row, uint64_t birth,
                       struct jury_status_row *ret_row);

/* The engine's question about its draining rows. rows: n of them, row and birth filled in, the rest
 * answered. Returns is_counting: some plane is alive. A row is adopted when every living plane has
 * adopted the generation of its word and counts it. Refused planes are passed over (and named by
 * their view): a damaged file neither ends a drain nor holds one up, except that of a plane that
 * was alive within JURY_ABSENT_MS, which makes its file anew. So does one whose file is gone. A
 * well-formed one that lies can hold a drain up to its deadline, no longer. */
bool status_reader_answer(struct status_reader *reader, const struct table_writer *writer,
                          struct data_plane_row rows[], size_t n_rows);

#endif
