/* What is probed of a backend, and what its vote is of: one target for each of its checks, and with
 * several local ones a further one that nobody probes, composed of their opinions (N20). */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "agent/core/catalog_codec.h"
#include "agent/core/catalog_parts.h"
#include "common/base/bytes.h"

/* Two lists make one composed target when they ask the same local checks in the same order, and as
 * many of them must pass: dependencies and names are no part of it. The word keeps its hash apart
 * from those of checks. */
static struct hash128 composed_hash(const struct server_group *spec, const struct check_set *set)
{
    uint8_t bytes[9 + LIMIT_CHECKS * 18] = "composed";
    size_t n = 8;

    bytes[n++] = (uint8_t)group_pass_k(spec);
    for (uint32_t i = 0; i < spec->n_checks; i++) {
        if (spec->checks[i].check_class != CHECK_LOCAL) {
            continue;
        }
        for (unsigned b = 0; b < 8; b++) {
            bytes[n++] = (uint8_t)(set->parts[i]->hash.low >> (8 * b));
            bytes[n++] = (uint8_t)(set->parts[i]->hash.high >> (8 * b));
        }
        bytes[n++] = (uint8_t)spec->checks[i].check.port;
        bytes[n++] = (uint8_t)(spec->checks[i].check.port >> 8);
    }
    return catalog_hash(bytes, n);
}

static struct check_part *composed_new(const struct server_group *spec, const struct check_set *set)
{
    struct check_part *part = catalog_alloc(1, sizeof *part);

    atomic_init(&part->refs, 1);
    part->check = spec->check;
    part->hash = composed_hash(spec, set);
    return part;
}

/* Its own, or the equal one of `before`: targets that stay keep the check they have. */
static struct check_part *share(struct check_part *made, struct check_part *before)
{
    if (before == NULL || !hash128_equal(before->hash, made->hash)) {
        return made;
    }
    check_part_unref(made);
    return check_part_ref(before);
}

void check_set_make(const struct server_group *spec, const struct check_set *before,
                    struct check_set *ret_set)
{
    static const struct check_set none;
    struct check_set *set = ret_set;

    *set = none;
    before = before == NULL ? &none : before;
    if (!spec->check.is_enabled) {
        return;
    }
    assert(spec->n_checks <= LIMIT_CHECKS);
    for (uint32_t i = 0; i < spec->n_checks; i++) {
        set->parts[i] = share(check_part_new(&spec->checks[i].check), before->parts[i]);
    }
    set->vote =
        share(group_is_composed(spec) ? composed_new(spec, set) : check_part_new(&spec->check),
              before->vote);
}

void check_set_close(struct check_set *set)
{
    check_part_unref(set->vote);
    for (unsigned i = 0; i < LIMIT_CHECKS; i++) {
        check_part_unref(set->parts[i]);
    }
    *set = (struct check_set){0};
}

uint32_t catalog_n_uses(const struct server_group *spec)
{
    return 1 + spec->n_checks;
}

struct catalog_definition catalog_use_definition(const struct server_group *spec,
                                                 const struct check_set *set,
                                                 const struct endpoint *at, uint32_t use)
{
    uint16_t port = use == 0 ? spec->check.port : spec->checks[use - 1].check.port;
    struct catalog_definition definition = {.to = *at,
                                            .check = use == 0 ? set->vote : set->parts[use - 1]};

    if (port != 0) {
        definition.to.port = port;
    }
    definition.hash = catalog_definition_hash(&definition.to, definition.check);
    return definition;
}

const struct target_id *catalog_parts_of(const struct catalog_group *group,
                                         const struct catalog_backend *backend)
{
    size_t index = (size_t)(backend - group->backends);

    assert(index < group->n_backends);
    return group->parts == NULL ? NULL : &group->parts[index * group->spec.n_checks];
}
