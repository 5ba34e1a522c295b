#include "agent/core/replay.h"

#include <stdlib.h>
#include <string.h>

#include "agent/core/replay_state.h"
#include "common/base/err.h"

/* --- what came of a step --- */

static bool is_counted(const struct replay *replay)
{
    return replay->engine->now_ns >= replay->question.since_ns;
}

static void note_out(struct replay *replay, struct replay_row *row, uint64_t until_ns)
{
    uint64_t since_ns = row->out_since_ns > replay->question.since_ns ? row->out_since_ns
                                                                      : replay->question.since_ns;

    if (until_ns > since_ns && until_ns - since_ns > replay->answer->out_longest_ns) {
        replay->answer->out_longest_ns = until_ns - since_ns;
    }
    row->out_since_ns = 0;
}

/* What the history tells of this step is what happened in it. A new row has no state before. */
static bool is_as_told(const struct replay_row *row, uint8_t state)
{
    if (row->told_to == HEALTH_NONE) {
        return row->state == state || row->state == HEALTH_NONE || state == HEALTH_NONE;
    }
    return row->told_to == state && (row->told_from == row->state || row->state == HEALTH_NONE);
}

static void follow_row(struct replay *replay, uint32_t index)
{
    struct replay_row *row = &replay->plan.votes.rows[index];
    const struct engine_backend *backend = &replay->engine->backends[index];
    uint8_t state = backend->birth != 0 ? backend->health_state : HEALTH_NONE;

    if (row->is_told && !is_as_told(row, state)) {
        replay->answer->is_exact = false;
    }
    row->told_from = HEALTH_NONE;
    row->told_to = HEALTH_NONE;
    row->is_kept = false;
    row->state = state;
    if (state == HEALTH_UNHEALTHY && row->out_since_ns == 0) {
        row->out_since_ns = replay->engine->now_ns;
        replay->n_out++;
    } else if (state != HEALTH_UNHEALTHY && row->out_since_ns != 0) {
        replay->n_out--;
        note_out(replay, row, replay->engine->now_ns);
    }
}

static void count_event(struct replay *replay, const struct event *event)
{
    struct replay_answer *answer = replay->answer;

    if (!is_counted(replay)) {
        return;
    }
    if (event->kind == EVENT_VERDICT_CHANGED) {
        answer->n_changes++;
        answer->n_ejections += event->from == HEALTH_HEALTHY && event->to == HEALTH_UNHEALTHY;
    } else if (event->kind == EVENT_GROUP_CHANGED) {
        answer->n_fail_opens += event->to == GROUP_FAIL_OPEN;
    }
    if (replay->question.on_event != NULL) {
        replay->question.on_event(replay->question.user, event);
    }
}

static void follow_outcome(struct replay *replay)
{
    struct engine *engine = replay->engine;
    uint32_t n_before = replay->n_out;
    uint32_t row;

    for (; replay->next_event < engine->events.next_sequence; replay->next_event++) {
        count_event(replay, event_ring_get(&engine->events, replay->next_event));
    }
    while (id_set_take(&replay->plan.votes.changed_rows, &row)) {
        if (row != replay->plan.scope_row) {
            follow_row(replay, row);
        }
    }
    uint32_t n_most = n_before > replay->n_out ? n_before : replay->n_out;
    if (is_counted(replay) && n_most > replay->answer->n_out_max) {
        replay->answer->n_out_max = n_most;
    }
}

/* --- one step --- */

static bool is_same(const struct history_from *a, uint64_t at_ns, uint32_t step)
{
    return a->at_ns == at_ns && a->step == step;
}

static void take_kept(struct replay *replay, size_t end)
{
    for (size_t i = replay->next_entry; i < end; i++) {
        if (replay->plan.entries[i].entry.kind == HISTORY_KEPT) {
            replay->plan.votes.rows[replay->plan.entries[i].index].is_kept = true;
        }
    }
}

/* Where the entries of this step end; of them, what is before the last that a time brought was
 * there when it came (history.h): an own opinion that had become old, say. */
static size_t find_step_end(const struct replay *replay, const struct history_from *at,
                            size_t *ret_by_time)
{
    const struct replay_plan *plan = &replay->plan;
    size_t i = replay->next_entry;

    *ret_by_time = i;
    for (; i < plan->n_entries; i++) {
        const struct history_entry *entry = &plan->entries[i].entry;

        if (!is_same(at, entry->at_ns, entry->step)) {
            break;
        }
        if (entry->kind == HISTORY_TIMER || entry->kind == HISTORY_GUARD) {
            *ret_by_time = i + 1;
        }
    }
    return i;
}

static void take_entries(struct replay *replay, size_t end)
{
    while (replay->next_entry < end) {
        replay_take_entry(replay, &replay->plan.entries[replay->next_entry++]);
    }
}

/* Later results of streaks, which are not kept. */
static void run_results(struct replay *replay)
{
    uint32_t slot;

    while (timers_pop(&replay->engine->opinion_timers, replay->engine->now_ns, &slot)) {
        replay_count_result(replay, slot);
    }
}

/* As engine_step does it: what time brings, what came in, then the verdicts. */
static int run_step(struct replay *replay, const struct history_from *at)
{
    struct replay_plan *plan = &replay->plan;
    struct engine *engine = replay->engine;
    size_t by_time;
    size_t end = find_step_end(replay, at, &by_time);
    int err = 0;

    replay->n_steps++;
    engine->now_ns = at->at_ns;
    engine->boot_ns = at->at_ns;
    plan->votes.now_ns = at->at_ns;
    take_kept(replay, end);
    run_results(replay);
    take_entries(replay, by_time);
    engine_run_verdict_timers(engine);
    while (replay->next_surroundings < plan->n_surroundings) {
        const struct history_surroundings *next = &plan->surroundings[replay->next_surroundings];

        if (!is_same(at, next->at_ns, next->step)) {
            break;
        }
        replay_take_surroundings(replay);
    }
    while (err == 0 && replay->next_version < plan->n_versions &&
           is_same(at, plan->versions[replay->next_version].from_ns,
                   plan->versions[replay->next_version].from_step)) {
        err = replay_take_version(replay);
    }
    take_entries(replay, end);
    engine_settle(engine, replay->actions);
    follow_outcome(replay);
    return err;
}

/* --- the whole --- */

static void take_earlier(struct history_from *first, uint64_t at_ns, uint32_t step)
{
    struct history_from other = {.at_ns = at_ns, .step = step};

    if (history_is_after(first, &other)) {
        *first = other;
    }
}

/* The next step that the history has; at_ns UINT64_MAX: none. */
static struct history_from find_next(const struct replay *replay)
{
    const struct replay_plan *plan = &replay->plan;
    struct history_from next = {.at_ns = UINT64_MAX};

    if (replay->next_entry < plan->n_entries) {
        const struct history_entry *entry = &plan->entries[replay->next_entry].entry;

        take_earlier(&next, entry->at_ns, entry->step);
    }
    if (replay->next_version < plan->n_versions) {
        take_earlier(&next, plan->versions[replay->next_version].from_ns,
                     plan->versions[replay->next_version].from_step);
    }
    if (replay->next_surroundings < plan->n_surroundings) {
        const struct history_surroundings *surroundings =
            &plan->surroundings[replay->next_surroundings];

        take_earlier(&next, surroundings->at_ns, surroundings->step);
    }
    return next;
}

/* A time that came late came then: its step says so. */
static bool timer_was_late(const struct replay *replay, const struct history_from *next)
{
    size_t by_time;

    (void)find_step_end(replay, next, &by_time);
    return by_time > replay->next_entry;
}

static int run(struct replay *replay)
{
    uint64_t end_ns = replay->plan.end_ns;
    int err = 0;

    replay->answer->to_ns = end_ns;
    while (err == 0) {
        struct history_from next = find_next(replay);
        uint64_t timer_ns = engine_verdict_timer_ns(replay->engine);
        uint64_t result_ns = timers_next(&replay->engine->opinion_timers);

        if (result_ns < next.at_ns && result_ns <= timer_ns && result_ns <= end_ns) {
            next = (struct history_from){.at_ns = result_ns};
        } else if (timer_ns < next.at_ns && timer_ns <= end_ns && !timer_was_late(replay, &next)) {
            next = (struct history_from){.at_ns = timer_ns};
        }
        if (next.at_ns > end_ns) {
            break;
        }
        if (replay->n_steps == LIMIT_REPLAY_STEPS) {
            replay->answer->to_ns = replay->engine->now_ns;
            break;
        }
        err = run_step(replay, &next);
    }
    for (uint32_t row = 0; row < replay->plan.votes.n_rows; row++) {
        if (replay->plan.votes.rows[row].out_since_ns != 0) {
            note_out(replay, &replay->plan.votes.rows[row], replay->answer->to_ns);
        }
    }
    return err;
}

/* What was not after the beginning is as it stood then. */
static void skip_past(struct replay *replay)
{
    struct replay_plan *plan = &replay->plan;

    for (;;) {
        struct history_from next = find_next(replay);
        bool is_played = plan->is_whole ? !history_is_after(&plan->begin, &next)
                                        : history_is_after(&next, &plan->begin);

        if (next.at_ns == UINT64_MAX || is_played) {
            return;
        }
        if (replay->next_surroundings < plan->n_surroundings) {
            const struct history_surroundings *surroundings =
                &plan->surroundings[replay->next_surroundings];

            if (is_same(&next, surroundings->at_ns, surroundings->step)) {
                replay_take_surroundings(replay);
                continue;
            }
        }
        replay->next_version++;
    }
}

static void begin_row(struct replay *replay, uint32_t index)
{
    const struct replay_row *row = &replay->plan.votes.rows[index];
    struct engine_backend *backend = &replay->engine->backends[index];

    if (backend->birth == 0 || !backend->is_linked || row->begins == HEALTH_NONE) {
        return;
    }
    backend->health_state = row->begins;
    backend->joined_ns = row->joined_ns;
    backend->was_judged = row->was_kept;
    backend->is_gray = row->begins_gray;
    backend->initial_ns = row->initial_ns;
    timers_clear(&replay->engine->row_timers, index); /* set again when it is judged */
}

/* A history without its beginning: the group, its verdicts and holds as they were. */
static int begin_in_between(struct replay *replay)
{
    struct replay_plan *plan = &replay->plan;
    bool is_held = plan->is_held;
    bool is_probed = plan->first_probe_ns != 0;

    replay->next_version -= replay->next_version > 0;
    replay->engine->now_ns = plan->begin.at_ns;
    int err = replay_take_version(replay);
    for (size_t i = plan->n_entries; i-- > 0;) {
        const struct history_entry *entry = &plan->entries[i].entry;

        is_held = entry->kind == HISTORY_NODE_HOLD ? entry->from != 0 : is_held;
        is_probed = is_probed && entry->kind != HISTORY_FIRST;
    }
    replay_set_node_hold(replay, is_held);
    if (is_probed) {
        replay_see_first_probe(replay);
    }
    for (uint32_t row = 0; row < plan->votes.n_rows; row++) {
        begin_row(replay, row);
    }
    engine_settle(replay->engine, replay->actions);
    replay->next_event = replay->engine->events.next_sequence;
    for (uint32_t row = 0; row < plan->votes.n_rows; row++) {
        plan->votes.rows[row].state = replay->engine->backends[row].birth != 0
                                          ? replay->engine->backends[row].health_state
                                          : HEALTH_NONE;
        if (plan->votes.rows[row].state == HEALTH_UNHEALTHY) {
            plan->votes.rows[row].out_since_ns = plan->begin.at_ns + 1;
            replay->n_out++;
        }
        id_set_remove(&plan->votes.changed_rows, row);
    }
    return err;
}

static int make_engine(struct replay *replay)
{
    const struct replay_plan *plan = &replay->plan;
    struct engine_room room = {.n_slots = plan->votes.n_slots,
                               .n_shares = plan->votes.n_slots,
                               .n_rows = plan->votes.n_rows,
                               .n_scopes = 1};

    replay->actions = malloc(sizeof *replay->actions);
    replay->engine = engine_new(&plan->config, plan->begin.at_ns);
    if (replay->actions == NULL || replay->engine == NULL) {
        return ERR_NOMEM;
    }
    engine_actions_init(replay->actions);
    history_free(replay->engine->history);
    replay->engine->history = NULL;
    replay->engine->kept_at_ns = plan->kept_at_ns;
    replay->engine->kept_age_ms = plan->kept_age_ms;
    replay->engine->replay = &replay->plan.votes;
    replay->next_event = replay->engine->events.next_sequence;
    return engine_reserve_room(replay->engine, &room, replay->actions);
}

static int play(struct replay *replay)
{
    struct replay_plan *plan = &replay->plan;
    int err = make_engine(replay);

    if (err != 0) {
        return err;
    }
    replay->answer->from_ns = plan->begin.at_ns;
    replay->answer->from_beginning = plan->is_whole;
    replay->answer->is_exact = true;
    skip_past(replay);
    if (!plan->is_whole) {
        err = begin_in_between(replay);
    }
    err = err == 0 ? run(replay) : err;
    replay->answer->work =
        replay->n_steps * (1 + plan->votes.n_rows / 64) + plan->votes.n_slots + plan->votes.n_rows;
    return err;
}

static int no_memory(const char *group, struct errmsg *err)
{
    return errmsg_set(err, ERR_NOMEM, "server group \"%s\": no memory for the replay", group);
}

int replay_open(const struct engine *engine, const struct replay_question *question,
                struct replay **ret_replay, struct errmsg *err)
{
    const struct catalog_group *group =
        engine->catalog == NULL ? NULL : catalog_group_find(engine->catalog, question->group);

    if (group == NULL || group->is_deleted) {
        return errmsg_set(err, ERR_NOTFOUND, "there is no server group \"%s\"", question->group);
    }
    int rc = question->change == NULL ? 0 : replay_check(group, question->change, err);
    if (rc != 0) {
        return rc;
    }
    struct replay *replay = calloc(1, sizeof *replay);
    if (replay == NULL) {
        return no_memory(question->group, err);
    }
    replay->question = *question;
    replay->present = &group->spec;
    replay->plan.counts_results =
        question->change != NULL && replay_counts_results(group, question->change);
    if (replay_plan_make(&replay->plan, engine, group) != 0) {
        replay_close(replay);
        return no_memory(question->group, err);
    }
    *ret_replay = replay;
    return 0;
}

int replay_play(struct replay *replay, struct replay_answer *ret_answer, struct errmsg *err)
{
    struct replay_answer answer = {.counts_results = replay->plan.counts_results};

    replay->answer = &answer;
    if (play(replay) != 0) {
        return no_memory(replay->question.group, err);
    }
    *ret_answer = answer;
    return 0;
}

void replay_close(struct replay *replay)
{
    if (replay == NULL) {
        return;
    }
    replay_free_group(replay->group);
    engine_free(replay->engine);
    if (replay->actions != NULL) {
        engine_actions_close(replay->actions);
        free(replay->actions);
    }
    replay_plan_close(&replay->plan);
    free(replay);
}

int replay_group(const struct engine *engine, const struct replay_question *question,
                 struct replay_answer *ret_answer, struct errmsg *err)
{
    struct replay *replay = NULL;
    int rc = replay_open(engine, question, &replay, err);

    if (rc == 0) {
        rc = replay_play(replay, ret_answer, err);
    }
    replay_close(replay);
    return rc;
}
