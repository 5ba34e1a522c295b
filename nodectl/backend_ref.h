/* GROUP/BACKEND as people write it. */
#ifndef JURY_NODECTL_BACKEND_REF_H
#define JURY_NODECTL_BACKEND_REF_H

#include "common/model/group.h"
#include "jury/v1/types.pb-c.h"
#include "nodectl/ctl.h"

/* A reference with room for its texts; `ref` points into the struct, which must not move. */
struct backend_ref {
    Jury__V1__BackendRef ref;
    char group[LIMIT_NAME_BYTES + 1];
    char address[ADDR_TEXT_BYTES];
};

/* Fill in group, address and port. text: "GROUP/ADDRESS:PORT"; else ADDRESS or a description that
 * only one backend of the group has, for which the cluster is asked.
 * Errors: ERR_USAGE (not of this form, or several backends), ERR_NOTFOUND, those of ctl_call. */
int backend_ref_parse(struct ctl *ctl, const char *text, struct backend_ref *ref);

#endif
