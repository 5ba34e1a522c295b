/* The model's objects as messages of the API, and back.
 *
 * x_new: model -> message, in the arena; every field is set. NULL only when the arena is used up,
 * so a caller may build a whole tree and look at arena->failed once. Text is copied.
 *
 * x_read: message -> model. What a document may leave out is filled in by the profile
 * (common/model/profile.h); what cannot be held by the model is refused with one sentence (object,
 * field, value, range). It is not a validation: that is common/model/validate.h and the catalog's.
 * On failure *ret is untouched. Errors: ERR_INVALID, ERR_LIMIT, ERR_NOMEM.
 *
 * x_read(x_new(value)) is the same value for every valid one. */
#ifndef JURY_WIRE_OBJECT_H
#define JURY_WIRE_OBJECT_H

#include <stdint.h>

#include "common/base/err.h"
#include "common/model/change.h"
#include "common/model/cluster.h"
#include "common/model/group.h"
#include "common/model/listener.h"
#include "common/wire/arena.h"
#include "jury/v1/cluster.pb-c.h"
#include "jury/v1/group.pb-c.h"
#include "jury/v1/listener.pb-c.h"

/* --- values --- */

Google__Protobuf__Duration *wire_duration_new(struct wire_arena *arena, uint64_t ns);
/* what: begins the sentence, such as `group "web": check.timeout`. Negative, over ms_max or finer
 * than a millisecond is refused. */
int wire_duration_read(const Google__Protobuf__Duration *duration, const char *what,
                       uint64_t ms_max, uint32_t *ret_ms, struct errmsg *err);
Google__Protobuf__Timestamp *wire_timestamp_new(struct wire_arena *arena, int64_t wall_ms);
Jury__V1__BackendRef *wire_backend_ref_new(struct wire_arena *arena, const char *group,
                                           const struct endpoint *at);
int wire_backend_ref_read(const Jury__V1__BackendRef *ref, char ret_group[LIMIT_NAME_BYTES + 1],
                          struct endpoint *ret_at, struct errmsg *err);
/* Group, address, weight and admin state of what is asked for, into a zeroed update. */
int wire_backend_set_read(const Jury__V1__SetBackendRequest *message, struct backend_update *update,
                          struct errmsg *err);
Jury__V1__Rule *wire_rule_new(struct wire_arena *arena, const struct rule_column *column);
/* `up` is set only where it was set apart. */
Jury__V1__VerdictRule *wire_verdict_rule_new(struct wire_arena *arena,
                                             const struct verdict_rule *rule);

/* --- objects --- */

Jury__V1__ServerGroup *wire_group_new(struct wire_arena *arena, const struct server_group *group);
Jury__V1__Backend *wire_backend_new(struct wire_arena *arena, const struct backend *backend);
Jury__V1__Listener *wire_listener_new(struct wire_arena *arena, const struct listener *listener);
Jury__V1__ClusterSettings *wire_settings_new(struct wire_arena *arena,
                                             const struct cluster_settings *settings);
Jury__V1__MemberNode *wire_node_new(struct wire_arena *arena, const struct member_node *node);
Jury__V1__AccessKey *wire_key_new(struct wire_arena *arena, const struct access_key *key);

/* *ret_group: given, server_group_close. Backends come out sorted; a duplicate is refused. */
int wire_group_read(const Jury__V1__ServerGroup *message, struct server_group *ret_group,
                    struct errmsg *err);
int wire_listener_read(const Jury__V1__Listener *message, struct listener *ret_listener,
                       struct errmsg *err);
int wire_settings_read(const Jury__V1__ClusterSettings *message,
                       struct cluster_settings *ret_settings, struct errmsg *err);
int wire_node_read(const Jury__V1__MemberNode *message, struct member_node *ret_node,
                   struct errmsg *err);
int wire_key_read(const Jury__V1__AccessKey *message, struct access_key *ret_key,
                  struct errmsg *err);

#endif
