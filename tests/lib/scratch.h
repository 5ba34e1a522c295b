/* A folder of a test's own, removed with the files in it. */
#ifndef JURY_TESTS_SCRATCH_H
#define JURY_TESTS_SCRATCH_H

#define SCRATCH_BYTES 64

/* Makes it and writes its path. */
void scratch_make(char path[SCRATCH_BYTES]);
/* One level of files only. */
void scratch_remove(const char *path);

#endif
