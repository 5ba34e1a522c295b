/* The reader of checks, for that of the groups that have them. Private to common/wire/object*.c. */
#ifndef JURY_WIRE_READ_CHECK_H
#define JURY_WIRE_READ_CHECK_H

#include "common/base/err.h"
#include "common/model/group.h"
#include "jury/v1/group.pb-c.h"

/* What the message leaves out is what the group's profile and protocol say. Errors: ERR_INVALID,
 * the sentence begins with the field; that of a named one with its name. */
int read_check(const Jury__V1__HealthCheck *message, const struct server_group *group,
               struct health_check *check, struct errmsg *err);
int read_named_check(const Jury__V1__NamedCheck *message, const struct server_group *group,
                     struct named_check *check, struct errmsg *err);

#endif
