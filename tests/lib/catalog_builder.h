/* Commands for tests of the catalog and of what is made from one, in a line each.
 *
 * All of these abort the test on a mistake of the test itself. */
#ifndef JURY_TESTS_CATALOG_BUILDER_H
#define JURY_TESTS_CATALOG_BUILDER_H

#include "agent/core/catalog_apply.h"

/* An `nlb` group of type ip with the backends in `endpoints`: "10.0.0.1:80 10.0.0.2:80" (may be
 * ""). Given; server_group_close. */
void build_group(struct server_group *ret_group, const char *name, const char *endpoints);
struct endpoint build_endpoint(const char *text);

/* Each adds one change to a command that began as {0}, and returns it for further fields. */
struct change *build_put_group(struct command *command, const struct server_group *group);
struct change *build_put(struct command *command, const char *name, const char *endpoints);
struct change *build_delete_group(struct command *command, const char *name);
struct change *build_hold(struct command *command, const char *group, bool is_on);
struct change *build_listener(struct command *command, const char *name, const char *at,
                              const char *group);
/* One check more in the group's list, of the nlb's defaults; all local ones must pass. */
struct named_check *build_check(struct server_group *group, const char *name, enum check_type type,
                                uint16_t port, enum check_class check_class);
struct change *build_delete_listener(struct command *command, const char *name);
/* Key and endpoint follow from the id. */
struct change *build_node(struct command *command, uint64_t node_id, enum raft_role role);
struct change *build_delete_node(struct command *command, uint64_t node_id);
struct change *build_key(struct command *command, const char *name, enum key_role role,
                         uint8_t key_byte);
struct change *build_delete_key(struct command *command, const char *name);
struct change *build_settings(struct command *command, const struct cluster_settings *settings);
struct change *build_admin(struct command *command, const char *group, const char *at,
                           enum admin_state admin_state);
struct change *build_weight(struct command *command, const char *group, const char *at,
                            uint8_t weight);
/* The purge that the leader would commit for this backend as the catalog shows it now. */
struct change *build_purge(struct command *command, const struct catalog *catalog,
                           const char *group, const char *at);
/* Nodes 1..n_voters as voters, default settings, the admin key "root". */
struct change *build_init(struct command *command, uint32_t n_voters);

/* Apply and close. */
struct apply_answer build_apply(struct catalog_state *state, struct command *command);
/* Likewise; the test fails with the sentence when it is refused. Returns the revision. */
uint64_t build_commit(struct catalog_state *state, struct command *command);
/* A state with a cluster of n voters. catalog_state_free. */
struct catalog_state *build_state(uint32_t n_voters);
/* A catalog with a cluster of n voters and one `nlb` group. catalog_unref. */
struct catalog *build_catalog(uint32_t n_voters, const char *group, const char *endpoints);

#endif
