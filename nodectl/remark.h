/* Remarks on a document that is valid, on stderr: advice, warnings, what its probes come to. */
#ifndef JURY_NODECTL_REMARK_H
#define JURY_NODECTL_REMARK_H

#include "common/base/limits.h"
#include "common/spec/spec.h"
#include "nodectl/ctl.h"

/* set: whose document it is, for the name of its file. */
void remark_advice(struct ctl *ctl, const struct spec_set *set,
                   const struct spec_document *document);
/* Which checks are made on which port: "http on port 81". Returns text. */
#define REMARK_CHECKED_BYTES 1024
char *remark_checked_by(const struct server_group *group, char text[REMARK_CHECKED_BYTES]);
/* That, of a group that does not forward TCP: its check may be another one than it seems. */
void remark_checks(struct ctl *ctl, const struct spec_document *document);
/* What a shared check comes to, as far as the document tells: of the nodes it says nothing. */
void remark_load(struct ctl *ctl, const struct spec_document *document);

struct remark_nodes {
    uint64_t ids[LIMIT_NODES];
    unsigned n;
};

/* What the node that was asked says of probing, of itself and of its peers. */
struct remark_probing {
    uint32_t per_node;
    uint32_t per_address;
    uint32_t demand;               /* of what is there already; 0 = not known */
    uint32_t n_observers;          /* how many nodes probe; 0 = not known */
    bool is_known;                 /* else these are what nodes have by default */
    uint64_t lacking[LIMIT_NODES]; /* have no address in 100.64.0.0/10, and are told no other */
    unsigned n_lacking;
    struct remark_nodes without_tls, without_grpc; /* whose agents were built without */
};
/* By default if it does not say. */
void remark_ask_probing(struct ctl *ctl, struct remark_probing *ret_probing);
void remark_default_probing(struct remark_probing *ret_probing);
/* Warns when the checks of the documents come to more. */
void remark_demand(struct ctl *ctl, const struct spec_set *set,
                   const struct remark_probing *probing);
/* Warns when they ask for an address in 100.64.0.0/10 and nodes have none; where nothing is known
 * of the nodes, says that they ask. */
void remark_sources(struct ctl *ctl, const struct spec_set *set,
                    const struct remark_probing *probing);

/* Warns once of each part when the documents have checks that nodes were built without. */
void remark_parts(struct ctl *ctl, const struct spec_set *set,
                  const struct remark_probing *probing);

#endif
