/* How much of each weight counts, judged by the words that the node has shown and by its clock
 * (R-EJ-6). Percent of 1 to 100, never 0, so that no class is changed by it.
 *
 * Slow start: who takes new flows after the word said that it takes none begins with 10 and has 9
 * more after each tenth of guard.slowStart; only while another one of the group has all of its
 * weight, and for those alone that take flows by being healthy. */
#include "tests/lib/row_words.h"
#include "tests/sim/checker.h"

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
static bool follow_row(struct weighed *weighed, unsigned row_class, uint64_t slow_ns,
                       uint64_t now_ns)
{
    bool was_out = weighed->is_out;

    weighed->is_out = row_class == ROW_NONE && slow_ns != 0;
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

static uint8_t percent_of(const struct weighed *weighed, uint64_t slow_ns, uint64_t now_ns)
{
    return weighed->begun_ns == 0
               ? 100
               : (uint8_t)(FIRST + RISE * ((now_ns - weighed->begun_ns) * STEPS / slow_ns));
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
        any_whole |= follow_row(weighed, witness->shown[row->row].word.row_class,
                                duration_ns(group), now_ns);
        checker->sometimes->slow_start_through += weighed->is_through;
    }
    return any_whole;
}

static void judge_group(struct checker *checker, struct witness *witness,
                        const struct world_node *node, const struct catalog_group *group,
                        uint64_t now_ns)
{
    bool any_whole = follow_group(checker, witness, group, now_ns);

    for (uint32_t i = 0; i < group->n_backends; i++) {
        const struct row_id *row = &group->backends[i].row;
        const struct row_word *word = &witness->shown[row->row].word;
        struct weighed *weighed = &witness->weighed[row->row];

        if (!any_whole && weighed->begun_ns != 0) {
            checker->sometimes->slow_start_cut_short += weighed->was_slow;
            checker->sometimes->slow_start_of_none += !weighed->was_slow;
            weighed->begun_ns = 0;
        }
        checker->sometimes->slow_start_begun += weighed->begun_ns == now_ns;
        uint8_t wanted = percent_of(weighed, duration_ns(group), now_ns);
        if (word->weight_percent != wanted) {
            checker_fail(
                checker, node, "R-EJ-6: %s backend %u, %s, has %u %% of its weight, not %u",
                group->spec.name, i, row_class_word(word->row_class), word->weight_percent, wanted);
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
