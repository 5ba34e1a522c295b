/* A data plane's status file, writing side: single-writer words that the agent reads at any time.
 *
 * The file has room for LIMIT_ROWS rows a worker but takes memory only for the rows in use:
 * status_file_reserve allocates before anybody writes there, so a full tmpfs is an error and not a
 * signal. One thread makes and beats; each worker writes its own block. */
#ifndef JURY_TABLE_STATUS_FILE_H
#define JURY_TABLE_STATUS_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/table/jury_table.h"
#include "common/base/err.h"

struct status_file;

struct status_options {
    const char *dir;
    const char *name; /* the file is <dir>/<name>.status; 1-40 of [A-Za-z0-9._-], letter first */
    uint32_t n_workers;
    uint64_t boot_ns;    /* now */
    uint64_t started_ns; /* of the data plane; 0 = now */
};

/* A fresh file, made aside and renamed over an old one. Holds a lock until close, so that two data
 * planes never share a name (ERR_BUSY names the other's pid). Errors: ERR_INVALID (name), ERR_IO,
 * ERR_DENIED, ERR_FULL, ERR_NOMEM. */
int status_file_open(const struct status_options *options, struct status_file **ret_file,
                     struct errmsg *err);
/* Leaves the file: its heartbeat grows old. NULL is allowed. */
void status_file_close(struct status_file *file);

/* Whether somebody removed, replaced, cut or overwrote it: nobody can read then what is written.
 * Two system calls. */
bool status_file_is_damaged(const struct status_file *file);
/* A fresh file in the place of a damaged one, with the same room and start; its numbers are carried
 * over by the workers (status_file_carry). The lock goes over; if its file was removed, too, it is
 * taken anew. `old` stays, and is to be closed when no worker uses it any more; errors as above. */
int status_file_renew(struct status_file *old, uint64_t boot_ns, struct status_file **ret_file,
                      struct errmsg *err);
/* What a worker has counted so far, but not its open flows: those are counted anew, since words of
 * a file that was cut are lost. That worker's thread. */
void status_file_carry(const struct status_file *from, struct status_file *to, uint32_t worker);
/* Count open flows of a row and birth in a file that was made anew. Of several births the newest
 * has the row. Returns the row's words, or NULL when it is not reserved. */
struct jury_status_row *status_file_recount(struct status_file *file, uint32_t worker, uint32_t row,
                                            uint64_t birth, uint64_t n_flows);

/* Make rows below n_rows usable by all workers. Cheap when they are already. Errors: ERR_FULL,
 * ERR_IO: flows of the rows beyond are not counted, and the file says so. */
int status_file_reserve(struct status_file *file, uint32_t n_rows, struct errmsg *err);
uint32_t status_file_n_rows(const struct status_file *file);

/* Writes what all workers have adopted: the minima over them. Cheap, so often. */
void status_file_sum(struct status_file *file);
/* Writes the heartbeat, and the sums before it. */
void status_file_beat(struct status_file *file, uint64_t boot_ns);

/* Listeners that could not be opened; all of them, each time they change. Of more than
 * JURY_STATUS_FAILURES the first are named. One thread. */
void status_file_set_failures(struct status_file *file, const struct jury_status_failure failures[],
                              size_t n_failures);

struct jury_status_worker *status_file_worker(struct status_file *file, uint32_t worker);
/* The row's block of that worker for that birth: zeroed first when it held another's numbers. NULL
 * when the row is not reserved. */
struct jury_status_row *status_file_row(struct status_file *file, uint32_t worker, uint32_t row,
                                        uint64_t birth);

/* For the one writer of a word. */
static inline void status_add(uint64_t *word, uint64_t n)
{
    __atomic_store_n(word, __atomic_load_n(word, __ATOMIC_RELAXED) + n, __ATOMIC_RELEASE);
}
static inline void status_sub(uint64_t *word, uint64_t n)
{
    __atomic_store_n(word, __atomic_load_n(word, __ATOMIC_RELAXED) - n, __ATOMIC_RELEASE);
}
static inline void status_set(uint64_t *word, uint64_t value)
{
    __atomic_store_n(word, value, __ATOMIC_RELEASE);
}

#endif
