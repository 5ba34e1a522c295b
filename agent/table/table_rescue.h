/* Mapped files that somebody cuts short while they are in use.
 *
 * The writer never does that, but whoever may write in those folders can, and the first touch of a
 * page that is gone is SIGBUS, which would end the process and its flows. With the handler in
 * place, a page of a watched mapping that is gone becomes a page of zeros of this process alone:
 * the reader sees words that the format knows as invalid (table_scope.h, table_reader.h) and goes
 * on with its last copy. Any other SIGBUS ends the process as before.
 *
 * A handler of a signal can only look at static state, which is why this has some. */
#ifndef JURY_TABLE_RESCUE_H
#define JURY_TABLE_RESCUE_H

#include <stddef.h>

/* Once, before threads start. */
void table_rescue_install(void);

/* start: of a mapping, on a page. Any thread. More than TABLE_RESCUE_MAPS at a time are not
 * watched; a process has two for each snapshot of the table in use, and one of its own file. */
#define TABLE_RESCUE_MAPS 256
void table_rescue_watch(const void *start, size_t n_bytes);
/* Before munmap. */
void table_rescue_forget(const void *start);

#endif
