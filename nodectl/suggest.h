/* "did you mean": the names that the cluster has are worth a second question. */
#ifndef JURY_NODECTL_SUGGEST_H
#define JURY_NODECTL_SUGGEST_H

#include "nodectl/ctl.h"

/* After "not found": a hint with the group that may be meant, or with where all are listed. */
void suggest_group(struct ctl *ctl, const char *name);

#endif
