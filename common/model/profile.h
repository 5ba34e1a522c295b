/* Defaults by profile (spec.md 3): what the document leaves out.
 *
 * `profile_group_defaults` fills a whole group before the document is read over it, so a field is
 * either the profile's or the user's and nothing is changed afterwards. Two defaults depend on what
 * the document says: the check's type fields (on the check type) and the CLB times (udp); therefore
 * `profile_check_defaults` is called again when the type is known. */
#ifndef JURY_MODEL_PROFILE_H
#define JURY_MODEL_PROFILE_H

#include "common/model/check.h"
#include "common/model/group.h"

/* Everything but name and backends. profile: not PROFILE_NONE. protocol: PROTOCOL_NONE = geneve for
 * gwlb, tcp for the others. The type is ip. below_quorum is `hold` for nlb too: its rule `local`
 * does not ask, another rule that is set by hand does. */
void profile_group_defaults(enum profile profile, enum protocol protocol,
                            struct server_group *ret_group);
/* The check of a profile for a group's protocol and a check type; type CHECK_TYPE_NONE = the
 * profile's own default type. */
void profile_check_defaults(enum profile profile, enum protocol protocol, enum check_type type,
                            struct health_check *ret_check);
/* The rule of groups that say none. */
enum rule_kind profile_rule(enum profile profile);
/* The fields of a request that a tls check makes inside: it has none of its own by default. */
void profile_http_defaults(enum profile profile, struct http_check *ret_http);
/* The fields of TLS, of every profile; a grpc check is in the clear by default. */
void profile_tls_defaults(struct tls_check *ret_tls);
/* Weight 100; admin state not said (see struct backend). */
void profile_backend_defaults(enum profile profile, struct backend *ret_backend);

#endif
