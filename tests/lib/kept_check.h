/* Checks for the targets of tests: a target points to its check, and one that is made here lives as
 * long as the program. One thread. */
#ifndef JURY_TESTS_KEPT_CHECK_H
#define JURY_TESTS_KEPT_CHECK_H

#include "common/model/check.h"

/* A copy. Its port is 0. */
const struct health_check *kept_check(const struct health_check *check);
/* The definition gets a check of its own, a copy of what it has, which may be NULL: to be changed,
 * and no other definition changes with it. */
struct health_check *own_check(struct target_definition *definition);

#endif
