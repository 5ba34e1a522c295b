/* Random valid objects of the model, the same for the same seed. For properties: what goes through
 * a codec must come back equal. */
#ifndef JURY_TESTS_RANDOM_OBJECTS_H
#define JURY_TESTS_RANDOM_OBJECTS_H

#include "common/base/prng.h"
#include "common/model/cluster.h"
#include "common/model/group.h"
#include "common/model/listener.h"

/* Given; server_group_close. At most n_backends_max backends, sorted, no duplicates. Every field
 * that the model has is used, also those of later stages. */
void random_group(struct prng *prng, uint32_t n_backends_max, struct server_group *ret_group);
/* Byte for byte, also what they own. */
bool is_same_group(const struct server_group *a, const struct server_group *b);
void random_listener(struct prng *prng, struct listener *ret_listener);
void random_settings(struct prng *prng, struct cluster_settings *ret_settings);
void random_node(struct prng *prng, struct member_node *ret_node);
void random_key(struct prng *prng, struct access_key *ret_key);

void random_endpoint(struct prng *prng, struct endpoint *ret_endpoint);
/* Letter first, then letters, digits and "._-"; min..max characters. */
void random_name(struct prng *prng, size_t min, size_t max, char *to);

#endif
