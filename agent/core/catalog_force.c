/* R-CFG-2: no single change takes everything down unless it says by a count that it means to. */
#include <inttypes.h>
#include <stdio.h>

#include "agent/core/catalog_state.h"
#include "common/base/plant.h"

/* What one draft does to the backends that were enabled before. */
struct loss {
    uint32_t n_backends; /* before, without those being removed */
    uint32_t n_enabled;  /* before */
    uint32_t n_lost;     /* of the enabled: removed, drained or in maintenance afterwards */
};

static bool is_serving(const struct catalog_backend *backend)
{
    return backend != NULL && backend->life != LIFE_REMOVING &&
           backend->spec.admin_state == ADMIN_ENABLED;
}

static struct loss count_loss(const struct group_draft *draft)
{
    const struct catalog_group *before = &draft->before->group;
    struct loss loss = {0};

    for (uint32_t i = 0; i < before->n_backends; i++) {
        const struct catalog_backend *backend = &before->backends[i];

        loss.n_backends += backend->life != LIFE_REMOVING;
        if (is_serving(backend)) {
            loss.n_enabled++;
            loss.n_lost += !is_serving(catalog_backend_find(&draft->after, &backend->spec.at));
        }
    }
    return loss;
}

/* What the whole command does. */
struct damage {
    uint32_t n_groups_before; /* existing, not deleted */
    uint32_t n_groups_after;
    uint32_t n_touched; /* of those that existed */
    uint32_t n_hit;     /* groups that lose more than half */
    uint32_t n_lost;    /* backends of those */
    const char *first_hit;
    struct loss first_loss;
};

static void add_draft(struct damage *damage, const struct group_draft *draft)
{
    bool was_live = draft->before != NULL && !draft->before->group.is_deleted;
    bool is_live = !draft->is_gone && !draft->after.is_deleted;

    damage->n_groups_after += is_live;
    damage->n_groups_after -= was_live;
    if (!was_live || !draft->is_touched) {
        return;
    }
    struct loss loss = count_loss(draft);
    damage->n_touched++;
    /* Groups of one or two are exempt: half of them is one backend. */
    if (loss.n_backends > 2 && 2 * loss.n_lost > loss.n_enabled) {
        if (damage->n_hit++ == 0) {
            damage->first_hit = draft->before->group.spec.name;
            damage->first_loss = loss;
        }
        damage->n_lost += loss.n_lost;
    }
}

static struct damage count_damage(const struct plan *plan)
{
    struct damage damage = {.n_groups_before = plan->base->n_live_groups,
                            .n_groups_after = plan->base->n_live_groups};

    for (uint32_t i = 0; i < plan->n_groups; i++) {
        add_draft(&damage, plan->groups[i]);
    }
    return damage;
}

static bool is_forced(const struct plan *plan, uint32_t count)
{
    return plan->command->is_forced && plan->command->forced_count == count;
}

static int refuse_groups(struct plan *plan, const struct damage *damage)
{
    if (damage->n_groups_after == 0) {
        return plan_refuse(plan, ERR_FORCE,
                           "the change removes every server group (%" PRIu32
                           "): repeat it with force and the count %" PRIu32,
                           damage->n_groups_before, damage->n_touched);
    }
    return plan_refuse(plan, ERR_FORCE,
                       "the change touches %" PRIu32 " of %" PRIu32
                       " server groups: repeat it with force and the count %" PRIu32,
                       damage->n_touched, damage->n_groups_before, damage->n_touched);
}

static int refuse_backends(struct plan *plan, const struct damage *damage)
{
    char others[64] = "";

    if (damage->n_hit > 1) {
        snprintf(others, sizeof others, " and more than half of %" PRIu32 " other group%s",
                 damage->n_hit - 1, damage->n_hit == 2 ? "" : "s");
    }
    return plan_refuse(plan, ERR_FORCE,
                       "the change takes %" PRIu32 " of %" PRIu32
                       " enabled backends of server group \"%s\"%s out of service: repeat it with "
                       "force and the count %" PRIu32,
                       damage->first_loss.n_lost, damage->first_loss.n_enabled, damage->first_hit,
                       others, damage->n_lost);
}

int plan_check_force(struct plan *plan)
{
    struct damage damage = count_damage(plan);
    bool removes_all = damage.n_groups_before > 0 && damage.n_groups_after == 0;
    bool touches_many =
        damage.n_touched >= 4 && 4 * (uint64_t)damage.n_touched > damage.n_groups_before;

    plan->change_index = 0;
    if (plant_is("catalog-force")) {
        return 0;
    }
    if (removes_all || touches_many) {
        return is_forced(plan, damage.n_touched) ? 0 : refuse_groups(plan, &damage);
    }
    if (damage.n_hit > 0) {
        return is_forced(plan, damage.n_lost) ? 0 : refuse_backends(plan, &damage);
    }
    return 0;
}
