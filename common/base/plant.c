#include "common/base/plant.h"

#ifdef JURY_PLANTS

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* Hidden state is allowed here only because no release build contains this file's code. */
static const char *planted;
static bool asked;

bool plant_is(const char *name)
{
    if (!asked) {
        planted = getenv("JURY_PLANT");
        asked = true;
    }
    return planted != NULL && strcmp(planted, name) == 0;
}

void plant_set(const char *name)
{
    planted = name;
    asked = true;
}

#else
typedef int plant_not_built;
#endif
