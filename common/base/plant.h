/* Planted faults: the proof that a test can fail.
 *
 * In the `plant` build, `plant_is("name")` is true when the environment has JURY_PLANT=name; each
 * twin test runs once without and once with it and must go red. In every other build it is the
 * constant false and the compiler drops the branch together with the name: `nm` on a release build
 * shows neither this function nor its strings. */
#ifndef JURY_BASE_PLANT_H
#define JURY_BASE_PLANT_H

#include <stdbool.h>

#ifdef JURY_PLANTS
bool plant_is(const char *name);
/* Tests in one process set the plant by hand; NULL = none. Not thread-safe: before threads start.
 */
void plant_set(const char *name);
#else
#define plant_is(name) false
#endif

#endif
