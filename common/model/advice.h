/* Advice on an object that is valid: what the specification's authors tell their users.
 *
 * `nodectl explain` shows all of it beside the field that it belongs to; a warning is shown where
 * an object departs from the profile's defaults into what the advice is about. It changes and
 * refuses nothing, and by the defaults alone there is none. Pure. */
#ifndef JURY_MODEL_ADVICE_H
#define JURY_MODEL_ADVICE_H

#include <stdbool.h>
#include <stddef.h>

#include "common/model/cluster.h"
#include "common/model/group.h"

struct advice {
    const char *id;      /* for programs: "own-page" */
    const char *path;    /* field of `nodectl explain`: "group.check.http.expect" */
    const char *text;    /* in general: one sentence or two */
    const char *warning; /* when it is due, behind the field's name: what may happen, and the better
                            setting; NULL: no object is at fault, so it is never due */
};

#define N_ADVICE 12
extern const struct advice advice_rows[N_ADVICE];

struct advice_due {
    const struct advice *row;
    const struct named_check *check; /* of a group with several the first one; else NULL */
};

/* What is due, in the order of the rows. ret_due: room for N_ADVICE; rows are static, a check is
 * the group's. Returns their number. */
size_t advice_of_group(const struct server_group *group, struct advice_due ret_due[]);
size_t advice_of_settings(const struct cluster_settings *settings, struct advice_due ret_due[]);
size_t advice_of_node(const struct member_node *node, struct advice_due ret_due[]);

/* "check.http.expect", of several checks "check page: http.expect": the field as documents name it.
 * Returns text. */
#define ADVICE_FIELD_BYTES 96
const char *advice_field(const struct advice_due *due, char text[ADVICE_FIELD_BYTES]);

#endif
