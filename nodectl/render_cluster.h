/* What `status` and `node describe` have in common. Private to nodectl/render_cluster.c and
 * render_node.c. */
#ifndef JURY_NODECTL_RENDER_CLUSTER_H
#define JURY_NODECTL_RENDER_CLUSTER_H

#include "nodectl/render.h"

/* doubt: NULL = nothing is put. trusted_too: also when nothing is suspect and nothing speaks for
 * it. */
void cluster_put_doubt(FILE *out, const Jury__V1__SelfDoubt *doubt, bool trusted_too);
/* with_message: unless it stands among the problems already. */
void cluster_put_store(FILE *out, const Jury__V1__StoreStatus *store, bool with_message);
void cluster_put_data_planes(struct ctl *ctl, Jury__V1__DataPlaneStatus *const planes[], size_t n);

#endif
