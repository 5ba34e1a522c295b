/* R-CFG-2: no single change takes everything down unless it says by a count that it means to. */
#include <inttypes.h>
#include <stdio.h>

#include "agent/core/catalog_state.h"
#include "common/base/plant.h"
#include "common/model/feature_level.h"

/* What one draft does to the backends that were enabled before. In use are those of them that have
 * a weight above 0. */
struct loss {
    uint32_t n_backends;   /* before, without those being removed */
    uint32_t n_all;        /* with them: a group that is emptied one by one is as large as it was */
    uint32_t n_enabled;    /* before */
    uint32_t n_lost;       /* of the enabled: removed, drained or in maintenance afterwards */
    uint32_t n_used;       /* before */
    uint32_t n_unused;     /* of those in use: not any more */
    uint32_t n_used_after; /* whichever they are: weights may move from some to others */
};

static bool is_serving(const struct catalog_backend *backend)
{
    return backend != NULL && backend->life != LIFE_REMOVING &&
           backend->spec.admin_state == ADMIN_ENABLED;
}

static bool is_used(const struct catalog_backend *backend)
{
    return is_serving(backend) && backend->spec.weight > 0;
}

static struct loss count_loss(const struct group_draft *draft)
{
    const struct catalog_group *before = &draft->before->group;
    struct loss loss = {0};

    for (uint32_t i = 0; i < before->n_backends; i++) {
        const struct catalog_backend *backend = &before->backends[i];

        const struct catalog_backend *after =
            catalog_backend_find(&draft->after, &backend->spec.at);

        loss.n_all++;
        loss.n_backends += backend->life != LIFE_REMOVING;
        loss.n_enabled += is_serving(backend);
        loss.n_lost += is_serving(backend) && !is_serving(after);
        loss.n_used += is_used(backend);
        loss.n_unused += is_used(backend) && !is_used(after);
    }
    for (uint32_t i = 0; i < draft->after.n_backends; i++) {
        loss.n_used_after += is_used(&draft->after.backends[i]);
    }
    return loss;
}

/* What of a loss is too much; n 0 = nothing. */
struct hit {
    uint32_t n, of;
    bool is_of_used; /* of those with a weight, else of the enabled ones */
};

/* What the whole command does. */
struct damage {
    uint32_t n_groups_before; /* existing, not deleted */
    uint32_t n_groups_after;
    uint32_t n_touched; /* of those that existed */
    uint32_t n_hit;     /* groups that lose more than half */
    uint32_t n_lost;    /* backends of those */
    const char *first_hit;
    struct hit first;
};

/* Groups of one or two are exempt: half of them is one backend. A weight of 0 takes out of service
 * as well; since each command must come to the same everywhere, only once all nodes know of it. */
static struct hit judge_loss(const struct loss *loss, bool is_live, bool with_weights)
{
    struct hit hit = {.n = 0};

    if (loss->n_backends > 2 && 2 * loss->n_lost > loss->n_enabled) {
        hit = (struct hit){.n = loss->n_lost, .of = loss->n_enabled};
    }
    if (with_weights && is_live && loss->n_all > 2 && loss->n_unused > hit.n &&
        loss->n_used > loss->n_used_after &&
        2 * (loss->n_used - loss->n_used_after) > loss->n_used) {
        hit = (struct hit){.n = loss->n_unused, .of = loss->n_used, .is_of_used = true};
    }
    return hit;
}

static void add_draft(struct damage *damage, const struct group_draft *draft, bool with_weights)
{
    bool was_live = draft->before != NULL && !draft->before->group.is_deleted;
    bool is_live = !draft->is_gone && !draft->after.is_deleted;

    damage->n_groups_after += is_live;
    damage->n_groups_after -= was_live;
    if (!was_live || !draft->is_touched) {
        return;
    }
    struct loss loss = count_loss(draft);
    struct hit hit = judge_loss(&loss, is_live, with_weights);
    damage->n_touched++;
    if (hit.n == 0) {
        return;
    }
    if (damage->n_hit++ == 0) {
        damage->first_hit = draft->before->group.spec.name;
        damage->first = hit;
    }
    damage->n_lost += hit.n;
}

static struct damage count_damage(const struct plan *plan)
{
    struct damage damage = {.n_groups_before = plan->base->n_live_groups,
                            .n_groups_after = plan->base->n_live_groups};
    bool with_weights = plan->base->settings->feature_level >= FORCE_COVERS_WEIGHTS_LEVEL &&
                        !plant_is("force-without-weights");

    for (uint32_t i = 0; i < plan->n_groups; i++) {
        add_draft(&damage, plan->groups[i], with_weights);
    }
    return damage;
}

/* What is refused, and the count that says it is meant. */
struct refusal {
    bool removes_all;
    bool touches_many;
    bool takes_most; /* of some group's backends */
    uint32_t count;
};

static uint32_t larger(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

/* A program of level 2 asks for the number of groups alone: as long as one is there all do, since a
 * command must come to the same everywhere. */
static struct refusal judge(const struct plan *plan, const struct damage *damage)
{
    struct refusal refusal = {
        .removes_all = damage->n_groups_before > 0 && damage->n_groups_after == 0,
        .touches_many =
            damage->n_touched >= 4 && 4 * (uint64_t)damage->n_touched > damage->n_groups_before,
        .takes_most = damage->n_hit > 0};
    bool is_of_groups = refusal.removes_all || refusal.touches_many;

    if (is_of_groups && (plan->base->settings->feature_level < FORCE_COVERS_BOTH_LEVEL ||
                         plant_is("force-of-groups-alone"))) {
        refusal.takes_most = false;
    }
    refusal.count =
        larger(is_of_groups ? damage->n_touched : 0, refusal.takes_most ? damage->n_lost : 0);
    return refusal;
}

static void format_groups(const struct damage *damage, bool removes_all, char *text, size_t size)
{
    if (removes_all) {
        snprintf(text, size, "removes every server group (%" PRIu32 ")", damage->n_groups_before);
    } else {
        snprintf(text, size, "touches %" PRIu32 " of %" PRIu32 " server groups", damage->n_touched,
                 damage->n_groups_before);
    }
}

static void format_backends(const struct damage *damage, char *text, size_t size)
{
    char others[64] = "";

    if (damage->n_hit > 1) {
        snprintf(others, sizeof others, " and more than half of %" PRIu32 " other group%s",
                 damage->n_hit - 1, damage->n_hit == 2 ? "" : "s");
    }
    snprintf(text, size,
             "takes %" PRIu32 " of %" PRIu32
             " enabled backends%s of server group \"%s\"%s out of service",
             damage->first.n, damage->first.of,
             damage->first.is_of_used ? " with a weight above 0" : "", damage->first_hit, others);
}

static int refuse(struct plan *plan, const struct damage *damage, const struct refusal *refusal)
{
    char groups[96] = "";
    char backends[LIMIT_NAME_BYTES + 192] = "";

    if (refusal->removes_all || refusal->touches_many) {
        format_groups(damage, refusal->removes_all, groups, sizeof groups);
    }
    if (refusal->takes_most) {
        format_backends(damage, backends, sizeof backends);
    }
    return plan_refuse(
        plan, ERR_FORCE, "the change %s%s%s: repeat it with force and the count %" PRIu32, groups,
        groups[0] != '\0' && backends[0] != '\0' ? " and " : "", backends, refusal->count);
}

int plan_check_force(struct plan *plan)
{
    struct damage damage = count_damage(plan);
    struct refusal refusal = judge(plan, &damage);
    bool is_forced = plan->command->is_forced && plan->command->forced_count == refusal.count;

    plan->change_index = 0;
    if (refusal.count == 0 || is_forced || plant_is("catalog-force")) {
        return 0;
    }
    return refuse(plan, &damage, &refusal);
}
