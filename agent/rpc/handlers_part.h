/* Parts that several answers about the cluster and its nodes share. Private to agent/rpc. */
#ifndef JURY_RPC_HANDLERS_PART_H
#define JURY_RPC_HANDLERS_PART_H

#include "agent/core/engine_view.h"
#include "agent/rpc/rpc_internal.h"
#include "jury/v1/cluster.pb-c.h"
#include "jury/v1/group.pb-c.h"
#include "jury/v1/hold.pb-c.h"
#include "jury/v1/verdict.pb-c.h"

/* The count by which a caller agrees to a change that takes away much. force: may be NULL. */
void part_force_read(const Jury__V1__Force *force, struct command *command);
struct rpc_store part_store_of(const struct view *view);
struct rpc_node part_node_of(const struct view *view);
char *part_hex(struct wire_arena *arena, const uint8_t *data, size_t n_bytes);
/* Empty for an id that is all zero. */
char *part_cluster_id_text(struct wire_arena *arena, const struct cluster_id *id);
/* NULL for RPC_NEVER_NS. */
Google__Protobuf__Duration *part_age_new(struct wire_arena *arena, uint64_t age_ns);
/* end.day is not 0. NULL: no memory. */
Jury__V1__Certificate *part_certificate_new(const struct view *view, struct cert_end end);
/* What probes of a target told of the way to it; check: which of several, or "". NULL: none ended,
 * or no memory. */
Jury__V1__ProbePath *part_path_new(const struct view *view, const struct own_result *last,
                                   const char *check);
/* The same of each check of a backend that this node still probes. Returns how many there are. */
size_t part_paths_new(const struct view *view, const struct backend_view *backend_view,
                      Jury__V1__ProbePath ***ret_paths);
Jury__V1__StoreStatus *part_store_new(const struct view *view, const struct rpc_store *store);
/* Each returns the number of messages in the array. */
size_t part_data_planes_new(const struct view *view, uint64_t published_generation,
                            Jury__V1__DataPlaneStatus ***ret_planes);
/* causes: bits 1 << enum doubt_cause. */
size_t part_doubt_causes(const struct view *view, uint32_t causes,
                         Jury__V1__DoubtCause **ret_causes);
/* NULL when the arena is used up. */
Jury__V1__SelfDoubt *part_doubt_new(const struct view *view);
/* The cluster's and this node's holds, then by group; the first n_max. Returns how many there are
 * altogether; 0 when the arena is used up. */
size_t part_holds_new(const struct view *view, size_t n_max, Jury__V1__Hold ***ret_holds);
size_t part_members_new(const struct view *view, uint64_t leader_id,
                        Jury__V1__MemberStatus ***ret_members);
/* What is wrong into an answer that has all else already, and the word for it. */
void part_find(const struct view *view, const struct rpc_store *store, const struct rpc_node *node,
               Jury__V1__GetStatusResponse *response);

#endif
