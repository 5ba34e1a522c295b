/* Remarks on a document that is valid, on stderr: advice, warnings, what its probes come to. */
#ifndef JURY_NODECTL_REMARK_H
#define JURY_NODECTL_REMARK_H

#include "common/spec/spec.h"
#include "nodectl/ctl.h"

/* set: whose document it is, for the name of its file. */
void remark_advice(struct ctl *ctl, const struct spec_set *set,
                   const struct spec_document *document, bool only_warnings);
/* What a shared check comes to, as far as the document tells: of the nodes it says nothing. */
void remark_load(struct ctl *ctl, const struct spec_document *document);

/* How many probes a node begins in a second at most. */
struct remark_budget {
    uint32_t per_node;
    uint32_t per_address;
    uint32_t demand;      /* of what is there already; 0 = not known */
    uint32_t n_observers; /* how many nodes probe; 0 = not known */
    bool is_known;        /* of the node that was asked; else what nodes have by default */
};
/* That of the node, or the default one if it does not say. */
void remark_ask_budget(struct ctl *ctl, struct remark_budget *ret_budget);
void remark_default_budget(struct remark_budget *ret_budget);
/* Warns when the checks of the documents come to more. */
void remark_demand(struct ctl *ctl, const struct spec_set *set, const struct remark_budget *budget);

#endif
