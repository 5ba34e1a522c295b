/* Remarks on a document that is valid, on stderr: advice, warnings, what its probes come to. */
#ifndef JURY_NODECTL_REMARK_H
#define JURY_NODECTL_REMARK_H

#include "common/spec/spec.h"
#include "nodectl/ctl.h"

void remark_advice(struct ctl *ctl, const struct spec_document *document, bool only_warnings);
/* What a shared check comes to, as far as the document tells: of the nodes it says nothing. */
void remark_load(struct ctl *ctl, const struct spec_document *document);

#endif
