/* Returns that wait, judged by the trace (R-FLAP-1, R-EJ-6, `nodectl explain guards`).
 *
 * Damping: a backend that goes down again within 10 minutes is `flapping`, and returns when the
 * votes have said healthy for guard.flapHold without a break, twice that after the next time, up to
 * 5 minutes; 10 minutes after it last went down all is forgotten. Limit: at most returnPercent of a
 * group, rounded down, and at least one, return in any returnWindow, more pass votes first, then
 * the lower id. Nobody waits in a group that is in fail-open or closed, or would be for lack of
 * those that wait, nor, for the limit, one returnWindow after that. Each return waits for one V
 * otherwise.
 *
 * That a return is one, and who waits, is decided in guards.c, step by step; here it is judged
 * whether it might, and whether whoever waits may wait. What the sentences leave open is judged
 * from both sides: votes of one moment turn once and again, so a break of less than one V is none
 * or one; ejections of a time without flapHold may be remembered. */
#include "agent/table/jury_table.h"
#include "tests/lib/row_words.h"
#include "tests/sim/guards.h"
#include "tests/sim/witness.h"

#define LONGEST_V_NS WORLD_SECOND /* of the stories */
#define MEMORY_NS (600 * WORLD_SECOND)
#define LONGEST_HOLD_MS 300000

bool returns_wait(const struct catalog_group *group)
{
    return group->spec.guard.return_percent > 0 || group->spec.guard.flap_hold_ms > 0;
}

/* --- damping --- */

/* After so many times. */
static uint64_t hold_ns(uint32_t flap_hold_ms, unsigned n_flaps)
{
    uint64_t ms = n_flaps == 0 ? 0 : flap_hold_ms;

    for (unsigned i = 1; i < n_flaps && ms < LONGEST_HOLD_MS; i++) {
        ms *= 2;
    }
    return (ms > LONGEST_HOLD_MS ? LONGEST_HOLD_MS : ms) * WORLD_MS;
}

static void note_ejection(struct flaps *flaps, uint32_t flap_hold_ms, uint64_t now_ns)
{
    uint64_t ago_ns = now_ns - flaps->ejected_ns;
    uint64_t sure_ns = now_ns - flaps->sure_ns;
    bool was_out = flaps->ejected_ns != 0 && ago_ns < MEMORY_NS + flaps->error_ns;
    bool was_surely_out = flaps->sure_ns != 0 && sure_ns + flaps->error_ns < MEMORY_NS;

    flaps->n_most = was_out ? flaps->n_most + 1 : 0;
    flaps->ejected_ns = now_ns;
    flaps->up_ns = flaps->break_ns = 0;
    if (flap_hold_ms > 0) {
        flaps->n_least = was_surely_out ? flaps->n_least + 1 : 0;
        flaps->sure_ns = now_ns;
    }
    flaps->error_ns = 0;
}

/* Since when the votes say up, with and without breaks that are too short to be one. */
static void follow_votes(struct flaps *flaps, bool is_up, uint64_t now_ns)
{
    if (is_up) {
        bool goes_on = flaps->up_ns != 0 ||
                       (flaps->break_ns != 0 && now_ns <= flaps->break_ns + 2 * LONGEST_V_NS);

        flaps->earliest_up_ns = goes_on ? flaps->earliest_up_ns : now_ns;
        flaps->up_ns = flaps->up_ns != 0 ? flaps->up_ns : now_ns;
    } else if (flaps->up_ns != 0) {
        flaps->up_ns = 0;
        flaps->break_ns = now_ns;
    }
}

static void judge_mark(struct checker *checker, const struct world_node *node,
                       const struct catalog_group *group, const struct judged *row, uint64_t now_ns)
{
    const struct flaps *flaps = &row->flaps;
    bool is_on = group->spec.guard.flap_hold_ms > 0;
    bool is_marked = (row->marks & MARK_FLAPPING) != 0;
    bool must =
        is_on && flaps->n_least > 0 && now_ns + flaps->error_ns < flaps->sure_ns + MEMORY_NS;
    bool may =
        is_on && flaps->n_most > 0 && now_ns < flaps->ejected_ns + MEMORY_NS + flaps->error_ns;

    checker->sometimes->flapping += is_marked;
    checker->sometimes->flap_forgotten += is_on && flaps->n_least > 0 && !may;
    if ((must && !is_marked) || (is_marked && !may)) {
        checker_fail(checker, node,
                     "R-FLAP-1: a backend of %s that went down again %u to %u times is %smarked "
                     "flapping",
                     group->spec.name, flaps->n_least, flaps->n_most, is_marked ? "" : "not ");
    }
}

/* --- the limit --- */

static uint32_t limit_of(const struct catalog_group *group)
{
    unsigned n = 0;

    for (uint32_t i = 0; i < group->n_backends; i++) {
        n += guards_is_member(&group->backends[i]);
    }
    n = n * group->spec.guard.return_percent / 100;
    return group->spec.guard.return_percent == 0 ? UINT32_MAX : n == 0 ? 1 : n;
}

static uint32_t used(const struct returns *returns, uint64_t window_ns, uint64_t now_ns)
{
    uint32_t n = 0;

    while (n < returns->n && n < CHECK_EJECTIONS &&
           returns->at_ns[(returns->n - 1 - n) % CHECK_EJECTIONS] + window_ns > now_ns) {
        n++;
    }
    return n;
}

/* --- a return --- */

static void judge_hold(struct checker *checker, const struct world_node *node,
                       const struct catalog_group *group, const struct returns *returns,
                       const struct judged *row, uint64_t now_ns)
{
    const struct flaps *flaps = &row->flaps;
    uint32_t flap_hold_ms = group->spec.guard.flap_hold_ms;

    /* A catalog that comes in the same step finds it on its way. */
    if (returns->flap_hold_ms < flap_hold_ms) {
        flap_hold_ms = returns->flap_hold_ms;
    }
    uint64_t least_ns = hold_ns(flap_hold_ms, flaps->n_least);
    uint64_t up_ns = now_ns - flaps->earliest_up_ns;

    checker->sometimes->damping_over += least_ns > 0;
    if (up_ns < least_ns && now_ns + flaps->error_ns < flaps->sure_ns + MEMORY_NS) {
        checker_fail(checker, node,
                     "R-FLAP-1: a backend of %s that went down again %u times returns after %.3f s "
                     "of passing votes, not %.3f s",
                     group->spec.name, flaps->n_least, (double)up_ns / 1e9, (double)least_ns / 1e9);
    }
}

static void judge_limit(struct checker *checker, const struct world_node *node,
                        const struct catalog_group *group, const struct returns *returns,
                        uint64_t now_ns)
{
    uint64_t window_ns = group->spec.guard.return_window_ms * WORLD_MS;
    uint32_t limit = limit_of(group);

    limit = returns->limit > limit ? returns->limit : limit;
    window_ns = returns->window_ns < window_ns ? returns->window_ns : window_ns;
    uint32_t n = used(returns, window_ns, now_ns);
    if (n > returns->n - returns->n_forgotten) {
        n = (uint32_t)(returns->n - returns->n_forgotten);
    }
    if (returns->was_bad || (returns->well_ns != 0 && now_ns <= returns->well_ns + window_ns)) {
        checker->sometimes->return_unlimited += n > limit;
        return;
    }
    if (n > limit) {
        checker_fail(checker, node,
                     "R-EJ-6: %u backends of %s returned within %.3f s, the limit is %u", n,
                     group->spec.name, (double)window_ns / 1e9, limit);
    }
}

/* is_in_need: without those that return in this step the group were in fail-open or closed. */
static void judge_return(struct checker *checker, struct witness *witness,
                         const struct world_node *node, const struct catalog_group *group,
                         const struct judged *row, bool is_in_need, uint64_t now_ns)
{
    struct returns *returns = &witness->guarded[group->row.row].returns;

    returns->at_ns[returns->n++ % CHECK_EJECTIONS] = now_ns;
    if (is_in_need) {
        checker->sometimes->return_in_need++;
        return;
    }
    if (row->was_frozen != FROZEN_BY_RETURN) {
        checker_fail(checker, node, "R-EJ-6: a backend of %s returns without waiting for one V",
                     group->spec.name);
    }
    judge_hold(checker, node, group, returns, row, now_ns);
    judge_limit(checker, node, group, returns, now_ns);
    checker->sometimes->return_waited++;
}

/* --- who waits --- */

static bool comes_first(const struct turn *a, const struct turn *b)
{
    return a->n_fail > b->n_fail || (a->n_fail == b->n_fail && a->backend_id < b->backend_id);
}

/* Of those that waited: one that went, or one that stays, though nothing but its turn keeps it. */
static void note_turn(struct returns *returns, const struct judged *row, uint64_t backend_id,
                      bool has_gone)
{
    struct turn turn = {.n_fail = row->n_pass, .backend_id = backend_id};
    struct turn *last = has_gone ? &returns->left : &returns->stayed;
    bool *has = has_gone ? &returns->has_left : &returns->has_stayed;

    if (!*has || comes_first(last, &turn) == has_gone) {
        *last = turn;
        *has = true;
    }
}

static void judge_waiting(struct checker *checker, struct witness *witness,
                          const struct world_node *node, const struct catalog_group *group,
                          struct judged *row, uint64_t now_ns)
{
    struct returns *returns = &witness->guarded[group->row.row].returns;
    uint64_t window_ns = group->spec.guard.return_window_ms * WORLD_MS;
    uint64_t most_ns = hold_ns(group->spec.guard.flap_hold_ms, row->flaps.n_most);
    bool is_free = row->flaps.up_ns != 0 && now_ns >= row->flaps.up_ns + most_ns;
    bool has_room = used(returns, window_ns, now_ns) < limit_of(group);

    returns->n_waiting++;
    checker->sometimes->damping_waits += most_ns > 0 && !is_free;
    checker->sometimes->return_waits += is_free && !has_room;
    if (guards_lasts_ns(&row->flaps.overdue_ns, is_free && has_room, now_ns) > 2 * LONGEST_V_NS) {
        checker_fail(checker, node,
                     "R-EJ-6: a backend of %s waits %.3f s after its hold of %.3f s, and %u of %u "
                     "returned",
                     group->spec.name, (double)(now_ns - row->flaps.up_ns - most_ns) / 1e9,
                     (double)most_ns / 1e9, used(returns, window_ns, now_ns), limit_of(group));
    }
}

static void judge_order(struct checker *checker, const struct witness *witness,
                        const struct world_node *node, const struct catalog_group *group)
{
    const struct returns *returns = &witness->guarded[group->row.row].returns;

    if (!witness->is_quiet || !returns->has_left || !returns->has_stayed) {
        return;
    }
    checker->sometimes->return_in_order++;
    if (comes_first(&returns->stayed, &returns->left)) {
        checker_fail(checker, node,
                     "R-EJ-6: of %s one with %u pass votes returned before one with %u, or of a "
                     "lower id",
                     group->spec.name, returns->left.n_fail, returns->stayed.n_fail);
    }
}

/* --- the group --- */

/* The first line of `group describe`. */
static void judge_first_line(struct checker *checker, struct witness *witness,
                             const struct world_node *node, const struct catalog_group *group,
                             uint64_t now_ns)
{
    struct guarded *guarded = &witness->guarded[group->row.row];
    struct returns *returns = &guarded->returns;
    uint32_t both = 1U << GUARD_DAMPING | 1U << GUARD_RETURN;
    uint32_t is_on = guarded->line.guards_on & both;
    uint32_t came = is_on & ~returns->guards_on;
    uint32_t went = returns->guards_on & ~is_on;

    checker->sometimes->damping_entered += came >> GUARD_DAMPING & 1;
    checker->sometimes->damping_left += went >> GUARD_DAMPING & 1;
    checker->sometimes->return_entered += came >> GUARD_RETURN & 1;
    checker->sometimes->return_left += went >> GUARD_RETURN & 1;
    returns->guards_on = is_on;
    if (guards_lasts_ns(&returns->idle_ns, is_on != 0 && returns->n_waiting == 0, now_ns) >
        2 * LONGEST_V_NS) {
        checker_fail(checker, node, "R-EJ-6: a guard lets nobody of %s wait, and is at work",
                     group->spec.name);
    }
}

/* What was there before this step, as far as it has a bearing on the next. */
static void remember(struct witness *witness, const struct catalog_group *group, uint8_t class,
                     uint64_t now_ns)
{
    struct returns *returns = &witness->guarded[group->row.row].returns;
    bool is_bad = class == ROW_SCOPE_FAIL_OPEN || class == ROW_SCOPE_CLOSED;

    returns->well_ns = returns->was_bad && !is_bad ? now_ns : returns->well_ns;
    returns->was_bad = is_bad;
    returns->flap_hold_ms = group->spec.guard.flap_hold_ms;
    returns->limit = limit_of(group);
    /* What a shorter window has left behind is not counted by a longer one. */
    if (group->spec.guard.return_window_ms * WORLD_MS > returns->window_ns) {
        returns->n_forgotten = returns->n;
    }
    returns->window_ns = group->spec.guard.return_window_ms * WORLD_MS;
}

/* What last-known-good says; what it does not is forgotten. */
static void adopt(struct checker *checker, const struct kept_row *kept, struct judged *row,
                  uint64_t now_ns)
{
    row->flaps =
        (struct flaps){.has_adopted = true,
                       .n_least = kept->flaps.n_least,
                       .n_most = kept->flaps.n_most,
                       .ejected_ns = kept->flaps.ejected_ns,
                       .sure_ns = kept->flaps.sure_ns,
                       .error_ns = kept->flaps.error_ns + guards_kept_error_ns(kept, now_ns)};
    checker->sometimes->flap_kept += row->flaps.n_least > 0;
}

static void judge_row(struct checker *checker, struct witness *witness,
                      const struct world_node *node, const struct catalog_group *group,
                      const struct catalog_backend *backend, bool is_in_need, uint64_t now_ns)
{
    struct returns *returns = &witness->guarded[group->row.row].returns;
    struct judged *row = &witness->rows[backend->row.row];
    bool is_out = row->state == HEALTH_UNHEALTHY;
    bool waits = row->frozen == FROZEN_BY_RETURN;

    if (row->is_adopted && !row->flaps.has_adopted) {
        adopt(checker, &witness->begun[backend->row.row], row, now_ns);
    }
    if (row->state_before == HEALTH_HEALTHY && is_out) {
        note_ejection(&row->flaps, group->spec.guard.flap_hold_ms, now_ns);
    }
    follow_votes(&row->flaps, row->followed == 'u' && row->state_before == HEALTH_UNHEALTHY,
                 now_ns);
    judge_mark(checker, node, group, row, now_ns);
    if (guards_has_returned(row) && returns_wait(group)) {
        judge_return(checker, witness, node, group, row, is_in_need, now_ns);
        if (!is_in_need && row->was_frozen == FROZEN_BY_RETURN) {
            note_turn(returns, row, backend->id, true);
        }
    }
    if (!waits) {
        row->flaps.overdue_ns = 0;
        return;
    }
    judge_waiting(checker, witness, node, group, row, now_ns);
    bool is_free =
        now_ns >= row->flaps.up_ns + hold_ns(group->spec.guard.flap_hold_ms, row->flaps.n_most);
    if (row->was_frozen == FROZEN_BY_RETURN && is_free) {
        note_turn(returns, row, backend->id, false);
    }
}

static void judge_group(struct checker *checker, struct witness *witness,
                        const struct world_node *node, const struct catalog_group *group,
                        uint64_t now_ns)
{
    struct returns *returns = &witness->guarded[group->row.row].returns;
    uint8_t before = table_scope_class(witness, group, true);
    uint8_t class = witness->shown[group->row.row].word.row_class;
    bool is_in_need = before == ROW_SCOPE_FAIL_OPEN || before == ROW_SCOPE_CLOSED;

    returns->n_waiting = 0;
    returns->has_left = returns->has_stayed = false;
    for (uint32_t i = 0; i < group->n_backends; i++) {
        const struct judged *row = &witness->rows[group->backends[i].row.row];

        if (row->target_slot != CATALOG_NO_SLOT) {
            judge_row(checker, witness, node, group, &group->backends[i], is_in_need, now_ns);
        }
    }
    judge_order(checker, witness, node, group);
    if (returns->n_waiting > 0 && (class == ROW_SCOPE_FAIL_OPEN || class == ROW_SCOPE_CLOSED)) {
        checker_fail(checker, node, "R-EJ-6: %u of %s wait to return, and it is %s",
                     returns->n_waiting, group->spec.name, row_class_word(class));
    }
    judge_first_line(checker, witness, node, group, now_ns);
    remember(witness, group, class, now_ns);
}

static void judge_returns(struct checker *checker, struct witness *witness,
                          const struct world_node *node, const struct engine_event *event)
{
    for (size_t i = 0; i < catalog_n_groups(witness->catalog); i++) {
        judge_group(checker, witness, node, catalog_group_at(witness->catalog, i), event->now_ns);
    }
}

/* --- last-known-good, and the calm --- */

void returns_keep(const struct judged *row, struct kept_row *kept)
{
    kept->flaps = row->flaps;
}

uint64_t returns_delay_ns(const struct checker *checker, const struct catalog_group *group)
{
    const struct guard_policy *guard = &group->spec.guard;
    unsigned n_most = 0;
    uint64_t delay_ns = 0;

    if (!returns_wait(group)) {
        return 0;
    }
    for (uint32_t id = 1; id <= checker->world->n_nodes; id++) {
        for (uint32_t i = 0; i < group->n_backends; i++) {
            unsigned n = checker->nodes[id]->rows[group->backends[i].row.row].flaps.n_most;

            n_most = n > n_most ? n : n_most;
        }
    }
    delay_ns = hold_ns(guard->flap_hold_ms, n_most) + 4 * LONGEST_V_NS;
    if (guard->return_percent > 0) {
        uint32_t limit = limit_of(group);

        delay_ns += ((group->n_backends + limit - 1) / limit + 1) *
                    (guard->return_window_ms * WORLD_MS + LONGEST_V_NS);
    }
    return delay_ns;
}

const struct checker_part checker_returns = {.name = "returns", .judge = judge_returns};
