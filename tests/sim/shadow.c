/* The shadow of a changed check, judged by the trace (R-CFG-4, N14, `nodectl explain guards`): for
 * guard.shadowCycles x (T + I) after its check was changed a group loses nothing by the votes. With
 * guard.shadowStop it goes on while more would go out, or cannot be judged yet, than velocity lets
 * out in one window. It begins with each change of the check, and with nothing else but a restart
 * with last-known-good that was written in it.
 *
 * Of a check that is changed while no backend of the group has a verdict there is nothing to lose.
 *
 * What it keeps in service is frozen in guards.c; here it is judged that it is on when it must be,
 * and no longer. The node looks one V after the last turn at the latest. */
#include "tests/sim/guards.h"
#include "tests/sim/several.h"
#include "tests/sim/witness.h"

#define LONGEST_V_NS WORLD_SECOND /* of the stories */
#define PERCENT_BY_ITSELF 10      /* without velocity */

bool shadow_is_on(const struct guarded *guarded)
{
    return (guarded->line.guards_on >> GUARD_SHADOW & 1) != 0;
}

/* --- what would go out --- */

struct outlook {
    unsigned n_would; /* are bad, as the alarm counts them, or cannot be judged yet */
    unsigned n_bad, limit;
    uint64_t cycles_ns; /* that it lasts */
    bool stops;
};

static struct outlook look_at(const struct witness *witness, const struct catalog_group *group)
{
    const struct guard_policy *guard = &group->spec.guard;
    unsigned percent = guard->velocity_percent > 0 ? guard->velocity_percent : PERCENT_BY_ITSELF;
    struct outlook outlook = {.stops = guard->shadow_stop,
                              .cycles_ns =
                                  several_cycle_ms(group) * guard->shadow_cycles * WORLD_MS};
    unsigned n_members = 0;

    for (uint32_t i = 0; i < group->n_backends; i++) {
        const struct judged *row = &witness->rows[group->backends[i].row.row];
        bool is_undecided = row->state == HEALTH_HEALTHY && row->has_few_votes &&
                            (row->held_check_changed || row->held_kept);

        if (guards_is_member(&group->backends[i])) {
            n_members++;
            outlook.n_bad += row->bad.is_bad;
            outlook.n_would +=
                row->target_slot != CATALOG_NO_SLOT && (row->bad.is_bad || is_undecided);
        }
    }
    outlook.limit = n_members * percent < 100 ? 1 : n_members * percent / 100;
    return outlook;
}

/* --- its beginning --- */

/* The check of one that had a verdict was changed in this step. */
static bool was_changed(struct witness *witness, const struct catalog_group *group)
{
    bool any = false;

    for (uint32_t i = 0; i < group->n_backends; i++) {
        struct judged *row = &witness->rows[group->backends[i].row.row];

        any |= row->was_changed;
        row->was_changed = false;
    }
    return any;
}

/* As last-known-good has it of the rows that are taken up in this step; NULL = knows of none. */
static const struct kept_row *adopt(struct witness *witness, const struct catalog_group *group)
{
    const struct kept_row *found = NULL;

    for (uint32_t i = 0; i < group->n_backends; i++) {
        uint32_t index = group->backends[i].row.row;
        struct judged *row = &witness->rows[index];

        if (row->is_adopted && !row->shadow_is_adopted) {
            row->shadow_is_adopted = true;
            found = witness->begun[index].shadow_began_ns != 0 ? &witness->begun[index] : found;
        }
    }
    return found;
}

/* Returns true if it must be on after this step. */
static bool begin(struct checker *checker, struct witness *witness,
                  const struct catalog_group *group, uint64_t now_ns)
{
    struct shadow *shadow = &witness->guarded[group->row.row].shadow;
    bool is_anew = was_changed(witness, group); /* in any case: it is not to be seen twice */
    const struct kept_row *kept =
        adopt(witness, group); /* in any case: for a later one is not it */

    if (shadow->is_on) {
        kept = NULL;
    }
    if (group->spec.guard.shadow_cycles == 0) {
        return false;
    }
    if (is_anew) {
        shadow->began_ns = now_ns;
        shadow->error_ns = 0;
        checker->sometimes->shadow_begun += !shadow->is_on;
        checker->sometimes->shadow_begun_anew += shadow->is_on;
    } else if (kept != NULL) {
        shadow->began_ns = kept->shadow_began_ns;
        shadow->error_ns = kept->shadow_error_ns + guards_kept_error_ns(kept, now_ns);
        shadow->has_adopted = true;
        checker->sometimes->shadow_kept++;
    }
    return is_anew || kept != NULL;
}

/* --- its end --- */

static bool is_over(const struct shadow *shadow, uint64_t cycles_ns, uint64_t now_ns)
{
    return now_ns + shadow->error_ns >= shadow->began_ns + cycles_ns;
}

static bool is_surely_over(const struct shadow *shadow, uint64_t cycles_ns, uint64_t now_ns)
{
    return now_ns >= shadow->began_ns + cycles_ns + shadow->error_ns;
}

/* It ended in this step, by what the node knew at the end of the one before. */
static void judge_end(struct checker *checker, const struct world_node *node,
                      const struct catalog_group *group, const struct shadow *shadow,
                      uint64_t now_ns)
{
    if (shadow->cycles_ns == 0) {
        checker->sometimes->shadow_accepted++;
        return;
    }
    checker->sometimes->shadow_ended += !shadow->was_stopped;
    checker->sometimes->shadow_ended_after_stop += shadow->was_stopped;
    if (!is_over(shadow, shadow->cycles_ns, now_ns)) {
        checker_fail(checker, node, "R-CFG-4: the shadow of %s ends %.3f s before its cycles",
                     group->spec.name,
                     (double)(shadow->began_ns + shadow->cycles_ns - now_ns) / 1e9);
    } else if (shadow->stops && shadow->n_would > shadow->limit) {
        checker_fail(checker, node,
                     "R-CFG-4: the shadow of %s ends, though %u would go out and %u may",
                     group->spec.name, shadow->n_would, shadow->limit);
    }
}

static void judge_lasting(struct checker *checker, const struct world_node *node,
                          const struct catalog_group *group, struct shadow *shadow,
                          const struct outlook *outlook, uint64_t now_ns)
{
    bool is_stopped = shadow->was_stopped;
    bool is_late = outlook->cycles_ns == 0 || is_surely_over(shadow, outlook->cycles_ns, now_ns);
    bool has_reason =
        outlook->cycles_ns != 0 && outlook->stops && outlook->n_would > outlook->limit;
    bool must_stop = has_reason && outlook->n_bad > outlook->limit;

    if (guards_lasts_ns(&shadow->late_ns, shadow->is_on && is_late && !has_reason, now_ns) >
        2 * LONGEST_V_NS) {
        checker_fail(checker, node, "R-CFG-4: the shadow of %s goes on, and %u would go out of %u",
                     group->spec.name, outlook->n_would, outlook->limit);
    }
    if (guards_lasts_ns(&shadow->unstopped_ns, shadow->is_on && is_late && must_stop && !is_stopped,
                        now_ns) > 2 * LONGEST_V_NS) {
        checker_fail(checker, node, "N14: the shadow of %s is over its time and not `stopped`",
                     group->spec.name);
    }
}

static void judge_group(struct checker *checker, struct witness *witness,
                        const struct world_node *node, const struct catalog_group *group,
                        uint64_t now_ns)
{
    struct guarded *guarded = &witness->guarded[group->row.row];
    struct shadow *shadow = &guarded->shadow;
    struct outlook outlook = look_at(witness, group);
    bool was_on = shadow->is_on;
    bool must_be_on = begin(checker, witness, group, now_ns);

    shadow->is_on = shadow_is_on(guarded);
    if (must_be_on && !shadow->is_on) {
        checker_fail(checker, node, "R-CFG-4: %s has no shadow after its check was changed%s",
                     group->spec.name, shadow->has_adopted ? ", after a restart" : "");
    } else if (shadow->is_on && !was_on && !must_be_on) {
        checker_fail(checker, node, "R-CFG-4: %s has a shadow, and no change of its check",
                     group->spec.name);
    } else if (was_on && !shadow->is_on) {
        judge_end(checker, node, group, shadow, now_ns);
    }
    checker->sometimes->shadow_stopped += guarded->line.shadow_is_kept && !shadow->was_stopped;
    shadow->was_stopped = guarded->line.shadow_is_kept;
    judge_lasting(checker, node, group, shadow, &outlook, now_ns);
    shadow->n_would = outlook.n_would;
    shadow->limit = outlook.limit;
    shadow->cycles_ns = outlook.cycles_ns;
    shadow->stops = outlook.stops;
}

static void judge_shadows(struct checker *checker, struct witness *witness,
                          const struct world_node *node, const struct engine_event *event)
{
    for (size_t i = 0; i < catalog_n_groups(witness->catalog); i++) {
        judge_group(checker, witness, node, catalog_group_at(witness->catalog, i), event->now_ns);
    }
}

void shadow_keep(const struct witness *witness, const struct catalog_group *group,
                 struct kept_row *kept)
{
    const struct shadow *shadow = &witness->guarded[group->row.row].shadow;

    kept->shadow_began_ns = shadow->is_on ? shadow->began_ns : 0;
    kept->shadow_error_ns = shadow->error_ns;
}

const struct checker_part checker_shadow = {.name = "shadow", .judge = judge_shadows};
