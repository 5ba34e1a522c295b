/* The alarm of many failures at once, judged by the trace (R-EJ-5, `nodectl explain guards`): at
 * least 3 backends and over 30 % of a group went bad within one failure window. It is raised then,
 * once; ends when no longer that many are bad; goes on over a restart with last-known-good; and
 * changes no verdict, for which checker.c vouches, whose verdicts know of no alarm.
 *
 * A backend goes bad when the votes say down of one that was healthy, whether a guard lets it out
 * or not, and is well when they say up. What is not certain to the step is judged from both sides:
 * the alarm must be on when the surely bad ones are enough, and may be raised when the possibly bad
 * ones are. The node looks one V after the last turn at the latest. */
#include "tests/lib/engine_lines.h"
#include "tests/sim/guards.h"
#include "tests/sim/witness.h"

#define LONGEST_V_NS WORLD_SECOND /* of the stories */

static bool is_too_many(unsigned n_bad, unsigned n_members)
{
    return n_bad >= 3 && 10 * n_bad > 3 * n_members;
}

/* --- one backend --- */

/* It was bad when last-known-good was written; since when, by a clock that is not exact. */
static void adopt_bad(struct went_bad *bad, const struct kept_row *kept, uint64_t now_ns)
{
    uint64_t error_ns = guards_kept_error_ns(kept, now_ns);

    bad->has_adopted = true;
    if (kept->is_bad) {
        bad->is_bad = true;
        bad->earliest_ns = kept->bad_earliest_ns - error_ns;
        bad->latest_ns = kept->bad_latest_ns + error_ns;
    }
}

/* Another check knows nothing of it yet, and none is nothing. */
static void follow_target(const struct witness *witness, const struct judged *row,
                          uint32_t row_index, uint64_t now_ns, struct went_bad *bad)
{
    if (bad->target_birth != row->target_birth || bad->target_slot != row->target_slot) {
        *bad = (struct went_bad){.target_birth = row->target_birth,
                                 .target_slot = row->target_slot,
                                 .has_adopted = bad->has_adopted};
    }
    if (row->is_adopted && !bad->has_adopted) {
        adopt_bad(bad, &witness->begun[row_index], now_ns);
    }
}

static void turn_bad(struct went_bad *bad, uint64_t now_ns)
{
    /* Well for less than one V is no return: votes of one moment turn once and again. */
    bool is_anew = bad->earliest_ns == 0 || now_ns >= bad->well_ns + 2 * LONGEST_V_NS;

    bad->earliest_ns = is_anew ? now_ns : bad->earliest_ns;
    bad->latest_ns = now_ns;
    bad->is_bad = true;
}

static void follow_votes(const struct judged *row, uint64_t now_ns, struct went_bad *bad)
{
    bool is_down = row->state == HEALTH_UNHEALTHY;
    bool went_before = bad->earliest_ns != 0; /* and is not back */
    bool has_come = row->state_before == HEALTH_UNHEALTHY && row->state == HEALTH_HEALTHY;

    if (row->followed == '-' && row->held_kept) {
        return; /* nobody has voted since the start */
    }
    if (row->followed == 'd' && !bad->is_bad && row->state_before == HEALTH_HEALTHY) {
        turn_bad(bad, now_ns);
    } else if (row->followed == 'd' || (row->followed == '-' && is_down)) {
        bad->is_bad = went_before;
    } else if (bad->is_bad) {
        bad->is_bad = false;
        bad->well_ns = now_ns;
    }
    bad->well_ns = has_come ? now_ns : bad->well_ns;
    bad->last_ns = bad->is_bad ? now_ns : bad->last_ns;
}

/* --- the group --- */

struct look {
    unsigned n_members, n_bad;
    unsigned n_must, n_may; /* that went within one window of the last */
    bool adopts_alarm;      /* of before a restart, by a row that is taken up in this step */
};

static uint64_t window_ns(const struct catalog_group *group)
{
    const struct health_check *check = &group->spec.check;

    return (check->timeout_ms * (uint64_t)check->unhealthy_threshold +
            check->interval_ms * (check->unhealthy_threshold - UINT64_C(1))) *
           WORLD_MS;
}

/* Failures of one moment are seen up to an interval and a vote apart. */
static uint64_t widest_ns(const struct catalog_group *group)
{
    uint64_t two_ns = UINT64_C(2) * group->spec.check.interval_ms * WORLD_MS;

    return (window_ns(group) > two_ns ? window_ns(group) : two_ns) + LONGEST_V_NS;
}

/* Also one that was when the node last looked, before it stood still. */
static bool is_perhaps_bad(const struct went_bad *bad, uint64_t now_ns)
{
    return bad->is_bad || bad->was_bad ||
           (bad->last_ns != 0 && now_ns <= bad->last_ns + LONGEST_V_NS);
}

static struct look look_at(struct witness *witness, const struct catalog_group *group,
                           uint64_t now_ns)
{
    struct look look = {0};
    uint64_t newest_latest_ns = 0;
    uint64_t newest_earliest_ns = 0;

    for (uint32_t i = 0; i < group->n_backends; i++) {
        uint32_t index = group->backends[i].row.row;
        struct judged *row = &witness->rows[index];
        struct went_bad *bad = &row->bad;

        bad->was_bad = bad->is_bad;
        look.adopts_alarm |=
            row->is_adopted && !bad->has_adopted && witness->begun[index].has_alarm;
        follow_target(witness, row, index, now_ns, bad);
        if (row->target_slot != CATALOG_NO_SLOT) {
            follow_votes(row, now_ns, bad);
        }
        if (!guards_is_member(&group->backends[i])) {
            continue;
        }
        look.n_members++;
        look.n_bad += bad->is_bad;
        if (is_perhaps_bad(bad, now_ns) && bad->latest_ns > newest_latest_ns) {
            newest_latest_ns = bad->latest_ns;
        }
        if (bad->is_bad && bad->was_bad && bad->earliest_ns > newest_earliest_ns) {
            newest_earliest_ns = bad->earliest_ns;
        }
    }
    for (uint32_t i = 0; i < group->n_backends; i++) {
        const struct went_bad *bad = &witness->rows[group->backends[i].row.row].bad;

        if (guards_is_member(&group->backends[i])) {
            look.n_must += bad->is_bad && bad->earliest_ns + window_ns(group) >= newest_latest_ns;
            look.n_may += is_perhaps_bad(bad, now_ns) &&
                          bad->latest_ns + widest_ns(group) >= newest_earliest_ns;
        }
    }
    return look;
}

/* --- the alarm --- */

static void judge_change(struct checker *checker, struct witness *witness,
                         const struct world_node *node, const struct catalog_group *group,
                         const struct look *look)
{
    struct alarm *alarm = &witness->guarded[group->row.row].alarm;
    struct sometimes *sometimes = checker->sometimes;
    unsigned n = look->n_members < alarm->n_members ? look->n_members : alarm->n_members;

    if (alarm->is_on) {
        witness->n_alarms++;
        sometimes->alarm_raised++;
        sometimes->alarm_under_hold += guards_hold(witness, group);
        if (!alarm->is_wanted || !is_too_many(look->n_may, n)) {
            checker_fail(checker, node,
                         "R-EJ-5: the alarm of %s is raised, but %u of %u went bad at once",
                         group->spec.name, look->n_may, n);
        }
        return;
    }
    sometimes->alarm_ended += alarm->is_wanted;
    sometimes->alarm_switched_off += !alarm->is_wanted;
    if (alarm->is_wanted && is_too_many(alarm->n_bad, alarm->n_members)) {
        checker_fail(checker, node, "R-EJ-5: the alarm of %s ended, but %u of %u are bad",
                     group->spec.name, alarm->n_bad, alarm->n_members);
    }
}

static void judge_group(struct checker *checker, struct witness *witness,
                        const struct world_node *node, const struct catalog_group *group,
                        uint64_t now_ns)
{
    struct alarm *alarm = &witness->guarded[group->row.row].alarm;
    struct look look = look_at(witness, group, now_ns);
    bool wants = group->spec.guard.correlated_alarm;
    bool was_on = alarm->is_on;

    alarm->is_on = (witness->guarded[group->row.row].line.guards_on >> GUARD_CORRELATED & 1) != 0;
    if (look.adopts_alarm && wants) { /* switched on later, it begins anew */
        was_on = true;
        checker->sometimes->alarm_kept++;
        if (!alarm->is_on) {
            checker_fail(checker, node, "R-EJ-5: the alarm of %s is lost by a restart",
                         group->spec.name);
        }
    }
    if (alarm->is_on != was_on) {
        judge_change(checker, witness, node, group, &look);
    }
    bool must = wants && is_too_many(look.n_must, look.n_members);
    bool must_not = !wants || !is_too_many(look.n_bad, look.n_members);
    if (guards_lasts_ns(&alarm->must_ns, must && !alarm->is_on, now_ns) >= LONGEST_V_NS) {
        checker_fail(checker, node,
                     "R-EJ-5: %u of %u of %s went bad at once, and there is no alarm", look.n_must,
                     look.n_members, group->spec.name);
    }
    if (guards_lasts_ns(&alarm->must_not_ns, must_not && alarm->is_on, now_ns) >= LONGEST_V_NS) {
        checker_fail(checker, node, "R-EJ-5: the alarm of %s goes on, and %u of %u are bad",
                     group->spec.name, look.n_bad, look.n_members);
    }
    alarm->is_wanted = wants;
    alarm->n_bad = look.n_bad;
    alarm->n_members = look.n_members;
}

static void judge_alarms(struct checker *checker, struct witness *witness,
                         const struct world_node *node, const struct engine_event *event)
{
    for (size_t i = 0; i < catalog_n_groups(witness->catalog); i++) {
        judge_group(checker, witness, node, catalog_group_at(witness->catalog, i), event->now_ns);
    }
    uint64_t n_told = engine_view_n_alarms(node->engine);
    if (n_told != witness->n_alarms) {
        checker_fail(checker, node, "R-EJ-5: %u alarms are counted, and %u were raised",
                     (unsigned)n_told, (unsigned)witness->n_alarms);
    }
}

void alarm_keep(const struct witness *witness, const struct catalog_group *group,
                const struct judged *row, struct kept_row *kept)
{
    kept->is_bad = row->bad.is_bad;
    kept->bad_earliest_ns = row->bad.earliest_ns;
    kept->bad_latest_ns = row->bad.latest_ns;
    kept->has_alarm = witness->guarded[group->row.row].alarm.is_on;
}

const struct checker_part checker_alarm = {.name = "alarm", .judge = judge_alarms};
