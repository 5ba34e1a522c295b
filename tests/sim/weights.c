/* How much of each weight counts, judged by the words that the node has shown and by its clock
 * (R-EJ-6). Percent of 1 to 100, never 0, so that no class is changed by it.
 *
 * Slow start: who takes new flows after the word said that it takes none begins with 10 and has 9
 * more after each tenth of guard.slowStart; only while another one of the group has all of its
 * weight, and for those alone that take flows by being healthy.
 *
 * Graded by votes: of those that take flows by being healthy, the part of the trace's counted votes
 * that pass, at least a tenth; all of it while the verdict is held or pending. By latency (N18):
 * between a tenth and all of it, at most one change an interval, and none while fewer than 3 take
 * flows of first choice. */
#include "tests/lib/row_words.h"
#include "tests/sim/rules.h"
#include "tests/sim/witness.h"

#define STEPS 10
#define FIRST 10
#define RISE 9

static bool is_used(unsigned row_class)
{
    return row_class == ROW_HEALTHY || row_class == ROW_UNREACHABLE;
}

static uint64_t duration_ns(const struct catalog_group *group)
{
    return group->spec.guard.slow_start_ms * WORLD_MS;
}

/* Returns true if it takes flows with all of its weight. */
static bool follow_row(struct weighed *weighed, unsigned row_class,
                       const struct catalog_group *group, uint64_t now_ns)
{
    uint64_t slow_ns = duration_ns(group);
    bool was_out = weighed->is_out;

    /* Known of a group that weighs in any way: a slow start may be written as it comes back. */
    weighed->is_out =
        row_class == ROW_NONE && (slow_ns != 0 || group->spec.graded_weight != GRADED_OFF);
    if (!is_used(row_class) || slow_ns == 0) {
        weighed->begun_ns = 0;
    } else if (was_out) {
        weighed->begun_ns = now_ns;
    } else if (weighed->begun_ns != 0 && now_ns >= weighed->begun_ns + slow_ns) {
        weighed->begun_ns = 0;
        weighed->is_through = true;
    }
    return is_used(row_class) && weighed->begun_ns == 0;
}

static unsigned slow_percent(const struct weighed *weighed, uint64_t slow_ns, uint64_t now_ns)
{
    return weighed->begun_ns == 0
               ? 100
               : (unsigned)(FIRST + RISE * ((now_ns - weighed->begun_ns) * STEPS / slow_ns));
}

static bool follow_group(struct checker *checker, struct witness *witness,
                         const struct catalog_group *group, uint64_t now_ns)
{
    bool any_whole = false;

    for (uint32_t i = 0; i < group->n_backends; i++) {
        const struct row_id *row = &group->backends[i].row;
        struct weighed *weighed = &witness->weighed[row->row];

        if (weighed->birth != row->birth) {
            *weighed = (struct weighed){.birth = row->birth};
        }
        weighed->was_slow = weighed->begun_ns != 0;
        weighed->is_through = false;
        any_whole |= follow_row(weighed, witness->shown[row->row].word.row_class, group, now_ns);
        checker->sometimes->slow_start_through += weighed->is_through;
    }
    return any_whole;
}

struct scene {
    struct checker *checker;
    struct witness *witness;
    const struct world_node *node;
    const struct catalog_group *group;
    uint64_t now_ns;
    unsigned n_first; /* members of first choice */
};

/* The part of the counted votes that pass; of a verdict that is held or pending all of the weight.
 */
static unsigned votes_percent(const struct scene *scene, const struct judged *row)
{
    struct count v =
        rules_count(scene->checker, scene->witness, scene->node, row->target_slot, scene->now_ns);
    unsigned n = v.p + v.f;
    unsigned percent = n == 0 ? 100 : (200 * v.p + n) / (2 * n);

    if (row->frozen != FROZEN_NOT || row->held_check_changed || row->held_kept ||
        rules_hold_back(scene->witness, &scene->group->spec.rule, &v)) {
        scene->checker->sometimes->held_is_not_graded += percent < 100;
        return 100;
    }
    return percent < FIRST ? FIRST : percent;
}

static void judge_exactly(const struct scene *scene, uint32_t i, unsigned slow)
{
    const struct row_id *row = &scene->group->backends[i].row;
    const struct row_word *word = &scene->witness->shown[row->row].word;
    const struct judged *judged = &scene->witness->rows[row->row];
    unsigned graded = 100;

    if (scene->group->spec.graded_weight == GRADED_BY_VOTES && is_used(word->row_class) &&
        judged->target_slot != CATALOG_NO_SLOT) {
        graded = votes_percent(scene, judged);
    }
    scene->checker->sometimes->graded_by_votes += graded < 100;
    scene->checker->sometimes->graded_in_slow_start += graded < 100 && slow < 100;
    unsigned wanted = slow * graded / 100;
    wanted = wanted == 0 ? 1 : wanted;
    if (word->weight_percent != wanted) {
        checker_fail(scene->checker, scene->node,
                     "%s: %s backend %u, %s, has %u %% of its weight, not %u",
                     graded < 100 ? "N18" : "R-EJ-6", scene->group->spec.name, i,
                     row_class_word(word->row_class), word->weight_percent, wanted);
    }
}

/* What each answer took is not traced: judged by what may not be. */
static void judge_latency(const struct scene *scene, uint32_t i, unsigned slow)
{
    const struct row_id *row = &scene->group->backends[i].row;
    const struct row_word *word = &scene->witness->shown[row->row].word;
    struct weighed *weighed = &scene->witness->weighed[row->row];
    uint64_t interval_ns = scene->group->spec.check.interval_ms * WORLD_MS;
    unsigned least = slow * FIRST / 100;

    if (word->weight_percent > slow || word->weight_percent < (least == 0 ? 1 : least) ||
        (!is_used(word->row_class) && word->weight_percent != 100)) {
        checker_fail(scene->checker, scene->node,
                     "N18: %s backend %u, %s, has %u %% of its weight, with %u %% by a slow start",
                     scene->group->spec.name, i, row_class_word(word->row_class),
                     word->weight_percent, slow);
    }
    if (slow < 100 || weighed->was_slow || !is_used(word->row_class) || weighed->percent == 0) {
        /* Its steps are the slow start's, too; and who comes back has the grade that he had. */
        weighed->percent = is_used(word->row_class) ? word->weight_percent : 0;
        return;
    }
    if (word->weight_percent == weighed->percent) {
        return;
    }
    scene->checker->sometimes->graded_by_latency += word->weight_percent < 100;
    scene->checker->sometimes->latency_let_go += word->weight_percent == 100;
    if (scene->now_ns < weighed->next_ns || (word->weight_percent < 100 && scene->n_first < 3)) {
        checker_fail(scene->checker, scene->node,
                     "N18: %s backend %u has %u %% of its weight after %u %% %.3f s before, one of "
                     "%u of first choice",
                     scene->group->spec.name, i, word->weight_percent, weighed->percent,
                     (double)(scene->now_ns - weighed->changed_ns) / 1e9, scene->n_first);
    }
    weighed->percent = word->weight_percent;
    weighed->changed_ns = scene->now_ns;
    weighed->next_ns = scene->now_ns + interval_ns;
}

static unsigned count_first(const struct witness *witness, const struct catalog_group *group)
{
    unsigned n = 0;

    for (uint32_t i = 0; i < group->n_backends; i++) {
        n += witness->shown[group->backends[i].row.row].word.row_class == ROW_HEALTHY;
    }
    return n;
}

static void judge_group(struct checker *checker, struct witness *witness,
                        const struct world_node *node, const struct catalog_group *group,
                        uint64_t now_ns)
{
    bool any_whole = follow_group(checker, witness, group, now_ns);
    const struct scene scene = {.checker = checker,
                                .witness = witness,
                                .node = node,
                                .group = group,
                                .now_ns = now_ns,
                                .n_first = count_first(witness, group)};

    for (uint32_t i = 0; i < group->n_backends; i++) {
        struct weighed *weighed = &witness->weighed[group->backends[i].row.row];

        if (!any_whole && weighed->begun_ns != 0) {
            checker->sometimes->slow_start_cut_short += weighed->was_slow;
            checker->sometimes->slow_start_of_none += !weighed->was_slow;
            weighed->begun_ns = 0;
        }
        checker->sometimes->slow_start_begun += weighed->begun_ns == now_ns;
        unsigned slow = slow_percent(weighed, duration_ns(group), now_ns);
        if (group->spec.graded_weight == GRADED_BY_LATENCY) {
            judge_latency(&scene, i, slow);
        } else {
            weighed->percent = 0;
            judge_exactly(&scene, i, slow);
        }
    }
}

static void judge_weights(struct checker *checker, struct witness *witness,
                          const struct world_node *node, const struct engine_event *event)
{
    for (size_t g = 0; g < catalog_n_groups(witness->catalog); g++) {
        judge_group(checker, witness, node, catalog_group_at(witness->catalog, g), event->now_ns);
    }
}

const struct checker_part checker_weights = {.name = "weights", .judge = judge_weights};
