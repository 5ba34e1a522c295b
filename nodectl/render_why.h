/* What the parts of `why` share. Private to nodectl/render_why*.c. */
#ifndef JURY_NODECTL_RENDER_WHY_H
#define JURY_NODECTL_RENDER_WHY_H

#include "common/model/reason.h"
#include "nodectl/render.h"

/* "HTTP_CODE_NOT_MATCH (404)" */
char *why_reason_text(Jury__V1__ProbeReason reason, uint32_t http_status,
                      char text[RENDER_TEXT_BYTES]);

enum render_color why_opinion_color(Jury__V1__Opinion opinion);

/* "node 3", "nodes 1 and 2", "nodes 1, 2 and 3" whose counted vote is that. Returns their number.
 */
size_t why_list_nodes(const Jury__V1__WhyResponse *why, enum opinion opinion,
                      char text[RENDER_TEXT_BYTES]);

/* Of several checks: the one that a counted vote fails by with that reason; "" = it is not told. */
const char *why_check_of(const Jury__V1__WhyResponse *why, Jury__V1__ProbeReason reason);

/* The table of the nodes' votes. */
void why_put_votes(struct ctl *ctl, const Jury__V1__WhyResponse *why);
/* Who passes it and who does not, if there are both. */
void why_put_disagreement(FILE *out, const Jury__V1__WhyResponse *why);

#endif
