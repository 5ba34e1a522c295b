/* Feature levels: what a program of this version understands of the catalog and its commands, and
 * what an object asks for. Declared here alone.
 *
 * A field that the catalog's codec gained later has a level, and whoever adds one raises
 * FEATURE_LEVEL once a release and writes the field into the table of feature_level.c. Bytes carry
 * the level of what they hold and no more (agent/core/catalog_codec.h), so that programs of
 * different versions encode the same object alike. The cluster has a committed level: a node may
 * use what is at or below it. It rises, and never falls, when every member announces more
 * (catalog_level_due); until then a write that needs more is refused by every node alike. A program
 * that meets bytes of a higher level than its own stops taking part in the store and says so: to
 * drop the field it does not know would make two catalogs of one. */
#ifndef JURY_MODEL_FEATURE_LEVEL_H
#define JURY_MODEL_FEATURE_LEVEL_H

#include <stdint.h>

#include "common/model/change.h"

#define FEATURE_LEVEL_BASE 2 /* everything without a level of its own */
/* 3: the committed level itself; udp, tls and grpc checks, lines of tcp checks, groups of protocol
 * udp and tcp_udp; probers and recheck of a check, and votes that waver; several checks */
#define FEATURE_LEVEL 3
/* From here on a removal leaves a drain that runs as it is: what a command does must be the same on
 * every node. */
#define DRAIN_OUTLIVES_REMOVAL_LEVEL 3
/* From here on the force of a change to many groups must cover the backends that go with them. */
#define FORCE_COVERS_BOTH_LEVEL 3
/* From here on a weight that becomes 0 takes a backend out of service, and needs force like the
 * rest. */
#define FORCE_COVERS_WEIGHTS_LEVEL 3

/* Of this program: FEATURE_LEVEL. */
uint8_t feature_level(void);

/* What the group needs, FEATURE_LEVEL_BASE..FEATURE_LEVEL. ret_field: the field that needs most,
 * as documents name it, static; NULL when nothing needs more than the base. */
uint8_t feature_level_of_group(const struct server_group *group, const char **ret_field);
/* What is needed to read the command. */
uint8_t feature_level_of_command(const struct command *command);

#endif
