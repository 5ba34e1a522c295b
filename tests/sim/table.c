/* What the table's words say, judged by what the verdicts are: which backends may take new flows
 * (I-11, I-12), when existing flows end (I-13), whose flows move (I-14).
 *
 * The groups of a simulated cluster are of the profile nlb, without failover: spec.md 6 gives them
 * close-at for a drain, for a removal and for an unhealthy verdict, the latter two with drain on,
 * and keep for the rest. */
#include <string.h>

#include "agent/core/select.h"
#include "agent/table/jury_table.h"
#include "tests/lib/row_words.h"
#include "tests/sim/guards.h"

static const struct hash_key hash_key = {0};

static void note_words(struct witness *witness, const struct world_node *node)
{
    for (uint32_t i = 0; i < node->actions.n_rows; i++) {
        const struct row_word *word = &node->actions.rows[i];

        if (word->row < CHECK_ROWS) {
            witness->shown[word->row].word = *word;
        }
    }
}

/* --- new flows --- */

struct members {
    unsigned m, h, i;
};

static bool is_eligible(const struct catalog_backend *backend)
{
    return backend->life != LIFE_REMOVING && backend->spec.weight > 0 &&
           backend->spec.admin_state == ADMIN_ENABLED;
}

static bool is_good(const struct judged *row)
{
    return row->state == HEALTH_HEALTHY || row->state == HEALTH_UNAVAILABLE;
}

static struct members count_members(const struct witness *witness,
                                    const struct catalog_group *group, bool without_returned)
{
    struct members members = {0};

    for (uint32_t i = 0; i < group->n_backends; i++) {
        const struct judged *row = &witness->rows[group->backends[i].row.row];

        if (is_eligible(&group->backends[i])) {
            members.m++;
            members.h += is_good(row) && !(without_returned && guards_has_returned(row));
            members.i += row->state == HEALTH_INITIAL;
        }
    }
    return members;
}

static uint8_t scope_class(const struct catalog_group *group, const struct members *members)
{
    unsigned settled = members->m - members->i;

    if (members->m == 0) {
        return ROW_SCOPE_CLOSED;
    }
    if (members->h == 0 || 100 * members->h < group->spec.fail_open_percent * settled) {
        return group->spec.all_bad == ALL_BAD_FAIL_CLOSED ? ROW_SCOPE_CLOSED : ROW_SCOPE_FAIL_OPEN;
    }
    return members->h < members->m ? ROW_SCOPE_DEGRADED : ROW_SCOPE_OK;
}

uint8_t table_scope_class(const struct witness *witness, const struct catalog_group *group,
                          bool without_returned)
{
    struct members members = count_members(witness, group, without_returned);

    return scope_class(group, &members);
}

static uint8_t row_class_of(const struct catalog_backend *backend, const struct judged *row,
                            uint8_t scope)
{
    if (!is_eligible(backend) || scope == ROW_SCOPE_CLOSED) {
        return ROW_NONE;
    }
    if (scope == ROW_SCOPE_FAIL_OPEN) {
        return ROW_FAIL_OPEN;
    }
    return !is_good(row) ? ROW_NONE : row->unreachable ? ROW_UNREACHABLE : ROW_HEALTHY;
}

static void judge_new_flows(struct checker *checker, const struct witness *witness,
                            const struct world_node *node, const struct catalog_group *group)
{
    struct members members = count_members(witness, group, false);
    uint8_t said = witness->shown[group->row.row].word.row_class;
    uint8_t known = scope_class(group, &members);

    if (said == ROW_SCOPE_WARMING) { /* spec.md 6: members in `initial` stand in for a while */
        checker->sometimes->warming++;
        if (members.h == members.m || members.i == 0) {
            checker_fail(checker, node, "I-12: %s warms up with nothing to wait for",
                         group->spec.name);
        }
        return;
    }
    checker->sometimes->fail_open += known == ROW_SCOPE_FAIL_OPEN;
    checker->sometimes->fail_open_by_threshold += known == ROW_SCOPE_FAIL_OPEN && members.h > 0;
    checker->sometimes->group_closed += known == ROW_SCOPE_CLOSED;
    if (said != known) {
        checker_fail(checker, node, "I-11: %s is %s, but %u healthy and %u initial of %u give %s",
                     group->spec.name, row_class_word(said), members.h, members.i, members.m,
                     row_class_word(known));
        return;
    }
    for (uint32_t i = 0; i < group->n_backends; i++) {
        const struct catalog_backend *backend = &group->backends[i];
        const struct row_word *word = &witness->shown[backend->row.row].word;
        uint8_t wanted = row_class_of(backend, &witness->rows[backend->row.row], known);

        if (word->row_class != wanted || word->birth != backend->row.birth) {
            checker_fail(checker, node, "I-12: %s backend %u is %s in the table, and really %s",
                         group->spec.name, i, row_class_word(word->row_class),
                         row_class_word(wanted));
        }
    }
}

/* --- existing flows --- */

static uint32_t admin_timeout_ms(const struct catalog_group *group,
                                 const struct catalog_backend *backend)
{
    if (backend->life == LIFE_REMOVING && backend->spec.admin_state != ADMIN_DRAINING) {
        return group->spec.drain.is_on ? backend->drain_timeout_ms : 0;
    }
    return backend->spec.admin_state == ADMIN_DRAINING ? backend->drain_timeout_ms : 0;
}

/* Set once for the revision that committed it; a start that brings it along keeps it. A removal
 * that allows less than the operator's drain before it leaves the earlier of both. */
static void follow_drain(struct witness *witness, const struct catalog_group *group,
                         const struct catalog_backend *backend, uint64_t boot_ns)
{
    struct shown *shown = &witness->shown[backend->row.row];
    const struct kept_row *kept = &witness->begun[backend->row.row];
    uint32_t timeout_ms = admin_timeout_ms(group, backend);

    if (timeout_ms == 0) {
        shown->drain_ns = 0;
    } else if (shown->drain_ns == 0 || shown->drain_revision != backend->drain_revision) {
        bool was_kept = kept->birth == backend->row.birth &&
                        kept->drain_revision == backend->drain_revision && kept->drain_ns != 0;

        uint64_t drain_ns = was_kept ? kept->drain_ns : boot_ns + timeout_ms * WORLD_MS;
        bool was_draining = shown->drain_ns != 0 && backend->life == LIFE_REMOVING &&
                            backend->spec.admin_state == ADMIN_DRAINING;

        if (!was_draining || drain_ns < shown->drain_ns) {
            shown->drain_ns = drain_ns;
        }
        shown->drain_revision = backend->drain_revision;
    }
}

/* From the verdict on. A recovery or a fail-open takes it back; what comes after begins anew. */
static void follow_verdict(struct checker *checker, struct witness *witness,
                           const struct catalog_group *group, const struct catalog_backend *backend,
                           uint64_t boot_ns)
{
    struct shown *shown = &witness->shown[backend->row.row];
    const struct judged *row = &witness->rows[backend->row.row];
    struct kept_row *kept = &witness->begun[backend->row.row];
    bool is_fail_open = witness->shown[group->row.row].word.row_class == ROW_SCOPE_FAIL_OPEN;

    if (row->state != HEALTH_UNHEALTHY || is_fail_open || !group->spec.drain.is_on) {
        checker->sometimes->fail_open_ended += shown->verdict_ns == 0 && shown->was_fail_open &&
                                               !is_fail_open && row->state == HEALTH_UNHEALTHY;
        shown->verdict_ns = 0;
    } else if (shown->verdict_ns == 0) {
        bool was_kept =
            row->held_kept && kept->birth == backend->row.birth && kept->verdict_ns != 0;

        shown->verdict_ns = boot_ns + group->spec.drain.timeout_ms * WORLD_MS;
        if (was_kept) { /* once: a later verdict begins anew */
            shown->verdict_ns = kept->verdict_ns;
            kept->verdict_ns = 0;
        }
        checker->sometimes->verdict_deadline++;
        checker->sometimes->verdict_deadline_again += shown->had_verdict_deadline;
        shown->had_verdict_deadline = true;
    }
    shown->was_fail_open = is_fail_open;
}

static void judge_existing_flows(struct checker *checker, const struct witness *witness,
                                 const struct world_node *node, const struct catalog_group *group,
                                 const struct catalog_backend *backend)
{
    const struct shown *shown = &witness->shown[backend->row.row];
    uint64_t known_ns = shown->drain_ns;
    uint64_t said_ns = shown->word.deadline_boot_ns;
    bool is_leaving =
        (backend->life == LIFE_AVAILABLE && backend->spec.admin_state == ADMIN_MAINTENANCE) ||
        (backend->spec.admin_state == ADMIN_DRAINING && shown->drain_ns == 0);

    if (shown->verdict_ns != 0 && (known_ns == 0 || shown->verdict_ns < known_ns)) {
        known_ns = shown->verdict_ns;
    }
    uint8_t wanted = is_leaving ? FLOW_CLOSE_NOW : known_ns != 0 ? FLOW_CLOSE_AT : FLOW_KEEP;
    if (shown->word.flow_policy != wanted || (wanted == FLOW_CLOSE_AT && said_ns != known_ns)) {
        checker_fail(
            checker, node,
            "I-13: flows of %s row %u end by %s at %.3f s of boot time, not by %s at %.3f s",
            group->spec.name, backend->row.row, flow_policy_word(shown->word.flow_policy),
            (double)said_ns / 1e9, flow_policy_word(wanted), (double)known_ns / 1e9);
    }
    checker->sometimes->drain_deadline += shown->drain_ns != 0;
}

/* --- whose flows move --- */

static void fill_choices(const struct witness *witness, const struct catalog_group *group,
                         struct choices *choices)
{
    uint8_t ranks[CHECK_MEMBERS];
    struct select_set set = {.ids = choices->ids,
                             .weights = choices->weights,
                             .shares = choices->shares,
                             .ranks = ranks};

    *choices = (struct choices){.birth = group->row.birth, .n = group->n_backends};
    set.n_members = choices->n;
    for (uint32_t i = 0; i < choices->n; i++) {
        const struct catalog_backend *backend = &group->backends[i];

        choices->ids[i] = select_member_id(&backend->spec.at, &hash_key);
        choices->weights[i] = backend->spec.weight;
        choices->shares[i] = witness->shown[backend->row.row].word.weight_percent;
        ranks[i] = (uint8_t)jury_class_rank(witness->shown[backend->row.row].word.row_class);
    }
    uint8_t rank = select_rank(&set, NULL);
    for (uint32_t i = 0; i < choices->n; i++) {
        choices->weights[i] = ranks[i] == rank && rank > 0 ? choices->weights[i] : 0;
    }
    for (uint32_t i = 0; i < CHECK_FLOWS; i++) {
        uint32_t member =
            rank == 0 ? SELECT_NONE
                      : select_by_hash(&set, rank, (i + 1) * UINT64_C(0x9e3779b97f4a7c15), NULL);

        choices->flows[i] = member == SELECT_NONE ? 0 : choices->ids[member];
    }
}

/* What of its weight counts among the members that new flows may take; 0 = it is none of them. */
static unsigned weight_of(const struct choices *choices, uint64_t id)
{
    for (uint32_t i = 0; i < choices->n; i++) {
        if (choices->ids[i] == id) {
            return (unsigned)choices->weights[i] * choices->shares[i];
        }
    }
    return 0;
}

/* A flow leaves its backend only if that one, or the one it goes to, is another one than before. */
static void judge_choices(struct checker *checker, struct witness *witness,
                          const struct world_node *node, const struct catalog_group *group)
{
    struct choices *before = &witness->choices[group->row.row];
    struct choices after;

    fill_choices(witness, group, &after);
    for (uint32_t i = 0; i < CHECK_FLOWS && before->birth == after.birth; i++) {
        uint64_t from = before->flows[i];
        uint64_t to = after.flows[i];

        if (from == to) {
            checker->sometimes->flow_stayed += from != 0;
            continue;
        }
        checker->sometimes->flow_moved += from != 0;
        if (from != 0 && to != 0 && weight_of(&after, from) == weight_of(before, from) &&
            weight_of(before, to) == weight_of(&after, to)) {
            checker_fail(checker, node, "I-14: a flow of %s moved between two that stayed",
                         group->spec.name);
        }
    }
    *before = after;
}

/* --- all --- */

static void judge_table(struct checker *checker, struct witness *witness,
                        const struct world_node *node, const struct engine_event *event)
{
    note_words(witness, node);
    for (size_t g = 0; g < catalog_n_groups(witness->catalog); g++) {
        const struct catalog_group *group = catalog_group_at(witness->catalog, g);

        judge_new_flows(checker, witness, node, group);
        for (uint32_t i = 0; i < group->n_backends; i++) {
            const struct catalog_backend *backend = &group->backends[i];
            struct shown *shown = &witness->shown[backend->row.row];

            if (shown->birth != backend->row.birth) {
                *shown = (struct shown){.birth = backend->row.birth, .word = shown->word};
            }
            follow_drain(witness, group, backend, event->boot_ns);
            follow_verdict(checker, witness, group, backend, event->boot_ns);
            judge_existing_flows(checker, witness, node, group, backend);
            checker->sometimes->deadline_passed +=
                shown->word.deadline_boot_ns != 0 && event->boot_ns > shown->word.deadline_boot_ns;
        }
        if (node->actions.n_rows > 0) {
            judge_choices(checker, witness, node, group);
        }
    }
}

/* Each node begins a slow start when it sees the return. */
static bool is_whole(const struct choices *choices)
{
    for (uint32_t i = 0; i < choices->n; i++) {
        if (choices->shares[i] != 100) {
            return false;
        }
    }
    return true;
}

/* With everything well for long enough the nodes have equal words, and so choose alike. */
static void judge_equal(struct checker *checker)
{
    const struct world *world = checker->world;
    const struct catalog *catalog = world->history[world->revision];
    const struct witness *first = NULL;

    for (uint32_t id = 1; id <= world->n_nodes; id++) {
        const struct witness *witness = checker->nodes[id];

        if (world->nodes[id].is_gone) {
            continue;
        }
        first = first == NULL ? witness : first;
        for (size_t g = 0; g < catalog_n_groups(catalog); g++) {
            const struct catalog_group *group = catalog_group_at(catalog, g);
            uint32_t row = group->row.row;

            /* Which of them a hold or a stopped shadow found in service may differ. */
            if (!guards_hold(witness, group) && !checker->was_in_shadow[row] &&
                is_whole(&first->choices[row]) && is_whole(&witness->choices[row]) &&
                memcmp(first->choices[row].flows, witness->choices[row].flows,
                       sizeof witness->choices[row].flows) != 0) {
                checker_fail(checker, &world->nodes[id],
                             "I-14: it chooses otherwise than the first");
            }
        }
    }
}

const struct checker_part checker_table = {
    .name = "table", .judge = judge_table, .judge_end = judge_equal};
