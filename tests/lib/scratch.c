#include "tests/lib/scratch.h"

#include <assert.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void scratch_make(char path[SCRATCH_BYTES])
{
    strcpy(path, "/tmp/jury-test-XXXXXX");
    char *made = mkdtemp(path);
    assert(made != NULL);
    (void)made;
}

void scratch_remove(const char *path)
{
    char file[SCRATCH_BYTES + 260];
    DIR *dir = opendir(path);
    const struct dirent *entry;

    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        snprintf(file, sizeof file, "%s/%s", path, entry->d_name);
        unlink(file);
    }
    if (dir != NULL) {
        closedir(dir);
    }
    rmdir(path);
}
