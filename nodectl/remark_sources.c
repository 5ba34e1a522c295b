/* Nodes that have no address in 100.64.0.0/10 where the checks of documents ask for one. */
#include <inttypes.h>
#include <stdio.h>

#include "common/model/check.h"
#include "nodectl/remark.h"

#define NODES_NAMED 8

static bool asks(const struct server_group *group)
{
    for (unsigned i = 0; i < group_n_checks(group); i++) {
        const struct health_check *check = group_check_at(group, i);

        for (uint32_t b = 0; check->is_enabled && b < group->n_backends; b++) {
            if (check_is_from_shared_space(check, &group->backends[b].at.addr)) {
                return true;
            }
        }
    }
    return false;
}

/* By one of the documents: it knows better than the node's last word. */
static bool is_told(const struct spec_set *set, uint64_t node_id)
{
    for (uint32_t i = 0; i < set->n_documents; i++) {
        const struct spec_document *document = &set->documents[i];

        if (document->kind == SPEC_NODE && document->u.node->node_id == node_id &&
            document->u.node->probe_sources[0].family != ADDR_NONE) {
            return true;
        }
    }
    return false;
}

/* "node 2", "nodes 2, 3 and 9 more" */
static unsigned name_nodes(const struct spec_set *set, const struct remark_probing *probing,
                           char *text, size_t text_bytes)
{
    unsigned n = 0;
    size_t at = 0;

    for (unsigned i = 0; i < probing->n_lacking && at < text_bytes; i++) {
        if (is_told(set, probing->lacking[i])) {
            continue;
        }
        if (n < NODES_NAMED) {
            at += (size_t)snprintf(text + at, text_bytes - at, "%s%" PRIu64, n == 0 ? "" : ", ",
                                   probing->lacking[i]);
        }
        n++;
    }
    if (n > NODES_NAMED && at < text_bytes) {
        snprintf(text + at, text_bytes - at, " and %u more", n - NODES_NAMED);
    }
    return n;
}

void remark_sources(struct ctl *ctl, const struct spec_set *set,
                    const struct remark_probing *probing)
{
    const struct server_group *first = NULL;
    unsigned n_groups = 0;
    char nodes[256];

    for (uint32_t i = 0; i < set->n_documents; i++) {
        const struct spec_document *document = &set->documents[i];

        if (document->kind == SPEC_GROUP && asks(document->u.group)) {
            first = n_groups++ == 0 ? document->u.group : first;
        }
    }
    if (n_groups > 0 && !probing->is_known) {
        ctl_note(
            ctl,
            "advice: server group \"%s\"%s probed from each node's own address in 100.64.0.0/10, "
            "as far as it has one: apply and nodectl node describe say which has none",
            first->name, n_groups > 1 ? " and others are" : " is");
    }
    unsigned n_nodes = n_groups == 0 ? 0 : name_nodes(set, probing, nodes, sizeof nodes);
    if (n_nodes > 0) {
        ctl_warn(ctl,
                 "node%s %s %s no address in 100.64.0.0/10, which server group \"%s\"%s ask%s for "
                 "(check.source, the default of profile clb), and probe%s from the ordinary one: "
                 "packet filters made for a classic load balancer drop that; better: give %s one "
                 "of that range, or name the right one in probeSources (shared-space)",
                 n_nodes == 1 ? "" : "s", nodes, n_nodes == 1 ? "has" : "have", first->name,
                 n_groups > 1 ? " and others" : "", n_groups > 1 ? "" : "s",
                 n_nodes == 1 ? "s" : "", n_nodes == 1 ? "it" : "each");
    }
}
