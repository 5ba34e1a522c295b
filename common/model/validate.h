/* One validation for propose and apply (R-CFG-1): pure, no clock, no option, no locale.
 *
 * Each function checks one whole object and writes one sentence that names the object, the field,
 * the value and the allowed range. Rules across objects (references, duplicates between groups,
 * limits of the catalog, CIDR list, force) are agent/core/catalog_apply.h's. Errors: ERR_INVALID,
 * ERR_LIMIT, and ERR_UNAVAILABLE_YET for what a later stage brings. */
#ifndef JURY_MODEL_VALIDATE_H
#define JURY_MODEL_VALIDATE_H

#include "common/base/err.h"
#include "common/model/cluster.h"
#include "common/model/group.h"
#include "common/model/listener.h"

int validate_name(const char *what, const char *name, struct errmsg *err);
/* group->backends sorted by endpoint (server_group_sort_backends). */
int validate_group(const struct server_group *group, struct errmsg *err);

/* As many as a person mends in one go. */
#define VALIDATE_FAULTS 20

struct validate_faults {
    int codes[VALIDATE_FAULTS]; /* ERR_* */
    struct errmsg messages[VALIDATE_FAULTS];
    uint32_t n;
    /* Set by the caller: checks were refused and left out before, so how many there are says
     * nothing. */
    bool has_checks_left_out;
};

/* All that validate_group finds, in its order, instead of the first. A fault may follow from one
 * before it: of those that name one field only the first counts. */
void validate_group_all(const struct server_group *group, struct validate_faults *ret_faults);
/* One backend's weight by the group's profile: 0..100, gwlb 0 or 100. */
int validate_backend_weight(const struct server_group *group, const struct endpoint *at,
                            unsigned weight, struct errmsg *err);
int validate_listener(const struct listener *listener, struct errmsg *err);
int validate_settings(const struct cluster_settings *settings, struct errmsg *err);
int validate_node(const struct member_node *node, struct errmsg *err);
int validate_key(const struct access_key *key, struct errmsg *err);

/* All that each of these finds, as validate_group_all. */
void validate_listener_all(const struct listener *listener, struct validate_faults *ret_faults);
void validate_settings_all(const struct cluster_settings *settings,
                           struct validate_faults *ret_faults);
void validate_node_all(const struct member_node *node, struct validate_faults *ret_faults);
void validate_key_all(const struct access_key *key, struct validate_faults *ret_faults);

#endif
