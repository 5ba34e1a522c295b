/* Verdicts to what the data planes see: classes, policies, deadlines, one word a row. */
#include <assert.h>
#include <string.h>

#include "agent/core/engine_state.h"
#include "common/base/plant.h"

bool engine_table_is_open(const struct engine *engine)
{
    return engine->catalog != NULL &&
           (catalog_revision(engine->catalog) >= engine->config.table_revision ||
            plant_is("table-older-catalog"));
}

static void emit(struct engine *engine, const struct row_word *word, struct engine_actions *actions)
{
    struct engine_row *row = &engine->rows[word->row];

    if (!engine_table_is_open(engine) ||
        (row->has_word && row->scope_row == word->scope_row &&
         row->birth_low == (uint32_t)word->birth && row->row_class == word->row_class &&
         row->flow_policy == word->flow_policy && row->deadline_cause == word->deadline_cause &&
         row->weight_percent == word->weight_percent &&
         row->deadline_boot_ns == word->deadline_boot_ns)) {
        return;
    }
    assert(actions->n_rows < actions->rows_capacity);
    *row = (struct engine_row){.deadline_boot_ns = word->deadline_boot_ns,
                               .birth_low = (uint32_t)word->birth,
                               .scope_row = word->scope_row,
                               .scope = row->scope,
                               .row_class = word->row_class,
                               .flow_policy = word->flow_policy & 15U,
                               .deadline_cause = word->deadline_cause & 15U,
                               .weight_percent = word->weight_percent,
                               .has_word = true};
    actions->rows[actions->n_rows++] = *word;
}

void engine_tell_freed(struct engine *engine, struct engine_actions *actions)
{
    uint32_t index;

    while (id_set_take(&engine->freed_rows, &index)) {
        struct engine_row *row = &engine->rows[index];

        if (engine->backends[index].birth != 0 || row->scope != NO_SCOPE || !row->has_word) {
            continue; /* taken again at once: its new owner has written it */
        }
        struct row_word word = {.scope_row = row->scope_row,
                                .row = index,
                                .birth = row->birth_low,
                                .weight_percent = 100};
        emit(engine, &word, actions);
        row->has_word = false;
    }
}

/* --- classes --- */

static bool may_warm(struct engine *engine, struct engine_scope *scope)
{
    uint64_t window_ns =
        (scope->failure_window_ms + scope->interval_ms) * NS_PER_MS + 2 * engine->vote_interval_ns;

    if (!scope->has_check) {
        return false;
    }
    if (scope->first_probe_ns == 0) {
        return true;
    }
    uint64_t end_ns = scope->first_probe_ns + window_ns;
    if (engine->now_ns >= end_ns) {
        return false;
    }
    timers_set(&engine->row_timers, scope->row.row, end_ns);
    return true;
}

bool engine_is_late(const struct engine *engine, const struct engine_backend *backend)
{
    const struct engine_scope *scope = &engine->scopes[backend->scope];

    return scope->first_probe_ns != 0 && backend->joined_ns > scope->first_probe_ns &&
           !plant_is("warming-takes-all");
}

static void classify(struct engine *engine, struct engine_scope *scope,
                     struct class_result *ret_result)
{
    struct class_policy policy = {.all_bad = scope->all_bad,
                                  .fail_open_percent = scope->fail_open_percent,
                                  .may_warm = may_warm(engine, scope)};
    uint32_t n = 0;

    for (uint32_t row = scope->first_row; row != NO_ROW;
         row = engine->backends[row].next_in_scope) {
        const struct engine_backend *backend = &engine->backends[row];

        engine->members[n++] = (struct class_member){
            .health_state = backend->health_state,
            .is_unreachable = backend->is_unreachable,
            .is_eligible = backend->life != LIFE_REMOVING && backend->weight > 0 &&
                           (backend->admin_state == ADMIN_ENABLED || plant_is("class-draining")),
            .was_judged = backend->was_judged,
            .is_late = engine_is_late(engine, backend),
        };
    }
    classes_decide(&policy, engine->members, n, engine->classes, ret_result);
}

/* --- existing flows --- */

static uint64_t deadline_after(const struct engine *engine, uint32_t timeout_ms)
{
    uint64_t at_ns = engine->boot_ns + timeout_ms * NS_PER_MS;

    return at_ns == 0 ? 1 : at_ns;
}

/* The deadline of a drain or removal is set once for each revision that committed one: replay,
 * restart and a repeated step never move it. */
static void follow_drain_deadline(struct engine *engine, uint32_t row,
                                  const struct flow_answer *answer)
{
    struct engine_backend *backend = &engine->backends[row];

    if (answer->cause == DEADLINE_NONE) {
        backend->drain_deadline_ns = 0;
        backend->deadline_revision = 0;
        return;
    }
    if (backend->drain_deadline_ns != 0 && backend->deadline_revision == backend->drain_revision) {
        return;
    }
    uint64_t kept_ns =
        engine_use_kept_deadline(engine, row, backend->birth, backend->drain_revision);
    uint64_t deadline_ns = kept_ns != 0 ? kept_ns : deadline_after(engine, answer->timeout_ms);
    bool was_draining = backend->drain_deadline_ns != 0 && backend->life == LIFE_REMOVING &&
                        backend->admin_state == ADMIN_DRAINING;

    if (!was_draining || deadline_ns < backend->drain_deadline_ns) {
        backend->drain_deadline_ns = deadline_ns; /* else the operator's is the earlier one */
    }
    backend->deadline_revision = backend->drain_revision;
}

/* From the verdict on; a recovery or a fail-open in between takes it back (spec.md 6). */
static void follow_verdict_deadline(struct engine *engine, uint32_t row,
                                    const struct flow_answer *answer)
{
    struct engine_backend *backend = &engine->backends[row];
    uint64_t kept_ns = 0;

    if (answer->cause == DEADLINE_NONE) {
        if (!plant_is("verdict-deadline-stays")) {
            backend->verdict_deadline_ns = 0;
        }
        return;
    }
    if (backend->verdict_deadline_ns != 0) {
        return;
    }
    if ((backend->held_causes & HELD_LAST_KNOWN_GOOD) != 0) {
        kept_ns = engine_use_kept_deadline(engine, row, backend->birth, 0);
    }
    backend->verdict_deadline_ns =
        kept_ns != 0 ? kept_ns : deadline_after(engine, answer->timeout_ms);
}

/* Which of the two wills decides: an immediate one, else the one that asks for something, else the
 * earlier deadline. */
static void join_policies(const struct engine_backend *backend, const struct flow_answer *admin,
                          const struct flow_answer *verdict, struct row_word *word)
{
    bool verdict_wins = admin->flow_policy == FLOW_KEEP || verdict->flow_policy == FLOW_MOVE ||
                        verdict->flow_policy == FLOW_CLOSE_NOW;

    if (verdict->flow_policy == FLOW_KEEP || admin->flow_policy == FLOW_CLOSE_NOW) {
        verdict_wins = false;
    } else if (verdict->flow_policy == FLOW_CLOSE_AT && admin->flow_policy == FLOW_CLOSE_AT) {
        verdict_wins = backend->verdict_deadline_ns < backend->drain_deadline_ns;
    }
    const struct flow_answer *winner = verdict_wins ? verdict : admin;
    word->flow_policy = winner->flow_policy;
    word->deadline_cause = winner->cause;
    word->deadline_boot_ns = winner->cause == DEADLINE_NONE ? 0
                             : verdict_wins                 ? backend->verdict_deadline_ns
                                                            : backend->drain_deadline_ns;
}

static void decide_flows(struct engine *engine, uint32_t row, const struct engine_scope *scope,
                         bool is_fail_open, struct row_word *word)
{
    struct engine_backend *backend = &engine->backends[row];
    struct flow_question question = {
        .profile = scope->profile,
        .failover = scope->failover,
        .drain = scope->drain,
        .admin_state = backend->admin_state,
        .is_removing = backend->life == LIFE_REMOVING,
        .is_unhealthy = backend->health_state == HEALTH_UNHEALTHY,
        .is_fail_open = is_fail_open,
        .drain_timeout_ms = backend->drain_timeout_ms,
    };
    struct flow_answer admin = flows_by_admin(&question);
    struct flow_answer verdict = flows_by_verdict(&question);

    follow_drain_deadline(engine, row, &admin);
    follow_verdict_deadline(engine, row, &verdict);
    join_policies(backend, &admin, &verdict, word);
}

/* --- the scope --- */

/* The entry at the start of an agent or a group is no change and has no line in the log either. */
static void count_group_change(struct engine_counters *counters, uint8_t from, uint8_t to)
{
    counters->fail_opens_entered += to == GROUP_FAIL_OPEN;
    counters->fail_opens_left += from == GROUP_FAIL_OPEN;
    counters->closed_entered += to == GROUP_CLOSED;
    counters->closed_left += from == GROUP_CLOSED;
}

static void follow_group_state(struct engine *engine, struct engine_scope *scope,
                               const struct class_result *result)
{
    uint8_t before = scope->result.group_state;

    if (before == result->group_state) {
        return;
    }
    scope->since_ns = engine->now_ns;
    if (before == GROUP_FAIL_OPEN || before == GROUP_CLOSED) {
        scope->well_ns = engine->now_ns;
    }
    if (before != GROUP_NONE) {
        struct event *event = engine_log(engine, EVENT_GROUP_CHANGED);

        event->from = before;
        event->to = result->group_state;
        event->marks = result->is_warming ? MARK_WARMING : 0;
        memcpy(event->group, scope->name, sizeof event->group);
        count_group_change(&engine->counters, before, result->group_state);
    }
}

void engine_settle_scope(struct engine *engine, uint32_t index, struct engine_actions *actions)
{
    struct engine_scope *scope = &engine->scopes[index];
    struct class_result result;
    uint32_t n = 0;

    assert(scope->row.birth != 0);
    classify(engine, scope, &result);
    if ((result.group_state == GROUP_FAIL_OPEN || result.group_state == GROUP_CLOSED) &&
        engine_release_returns(engine, index, actions)) {
        classify(engine, scope, &result);
    }
    follow_group_state(engine, scope, &result);
    scope->result = result;
    if (engine->replay != NULL) {
        return; /* it has no table */
    }
    engine_weigh_scope(engine, index);
    for (uint32_t row = scope->first_row; row != NO_ROW;
         row = engine->backends[row].next_in_scope) {
        struct row_word word = {.scope_row = scope->row.row,
                                .row = row,
                                .birth = engine->backends[row].birth,
                                .row_class = engine->classes[n++],
                                .weight_percent = engine_weight_percent(engine, row)};

        decide_flows(engine, row, scope, result.group_state == GROUP_FAIL_OPEN, &word);
        emit(engine, &word, actions);
    }
    struct row_word own = {.scope_row = scope->row.row,
                           .row = scope->row.row,
                           .birth = scope->row.birth,
                           .row_class = (uint8_t)classes_scope_class(&result),
                           .weight_percent = 100};
    emit(engine, &own, actions);
}
