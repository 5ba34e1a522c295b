/* The kept history, judged at the end: the replay of each group on each node, with its document
 * unchanged, gives the events that are in the node's log (tests/lib/replay_judge.h). */
#include "tests/lib/replay_judge.h"
#include "tests/sim/checker.h"

static void judge_replays(struct checker *checker)
{
    for (uint64_t id = 1; id <= checker->n_nodes_max && !checker->failed; id++) {
        const struct world_node *node = &checker->world->nodes[id];
        struct replay_judgement judgement;

        if (!node->is_up) {
            continue;
        }
        replay_judge(node->engine, &judgement);
        if (judgement.difference[0] != '\0') {
            checker_fail(checker, node, "replay: %s", judgement.difference);
        }
        checker->sometimes->replayed_whole += judgement.n_whole;
        checker->sometimes->replayed_in_between += judgement.n_groups - judgement.n_whole;
        checker->sometimes->replayed_verdict += judgement.n_verdicts;
    }
}

static void judge_nothing(struct checker *checker, struct witness *witness,
                          const struct world_node *node, const struct engine_event *event)
{
    (void)checker;
    (void)witness;
    (void)node;
    (void)event;
}

const struct checker_part checker_replay = {
    .name = "replay", .judge = judge_nothing, .judge_end = judge_replays};
