#include "tests/sim/checker.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void fail(struct checker *checker, const struct world_node *node, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void fail(struct checker *checker, const struct world_node *node, const char *format, ...)
{
    va_list arguments;

    if (checker->failed) {
        return; /* the first one says it */
    }
    checker->failed = true;
    int n = snprintf(checker->failure, sizeof checker->failure,
                     "at %.9f s on node %u: ", (double)checker->world->now_ns / 1e9,
                     (unsigned)node->id);
    va_start(arguments, format);
    vsnprintf(checker->failure + n, sizeof checker->failure - (size_t)n, format, arguments);
    va_end(arguments);
}

static struct witness *witness_of(struct checker *checker, const struct world_node *node)
{
    struct witness *witness = &checker->nodes[node->id];

    if (witness->epoch != node->epoch) { /* started again: votes and streaks were in memory */
        struct witness fresh = {.epoch = node->epoch, .has_kept = witness->has_kept};

        memcpy(fresh.kept, witness->kept, sizeof fresh.kept);
        *witness = fresh;
    }
    return witness;
}

static uint64_t interval_ns(const struct witness *witness)
{
    return catalog_settings(witness->catalog)->vote_interval_ms * WORLD_MS;
}

static const struct health_check *check_at(const struct witness *witness, uint32_t slot)
{
    return catalog_target_at(witness->catalog, slot)->check;
}

static uint64_t cycles_ns(const struct witness *witness, uint32_t slot, uint64_t n)
{
    const struct health_check *check = check_at(witness, slot);

    return n * (check->timeout_ms + (uint64_t)check->interval_ms) * WORLD_MS;
}

/* --- own opinion --- */

/* An opinion does not outlive 3 x (T + I) without a conclusive probe. */
static uint8_t own_opinion(struct checker *checker, struct witness *witness, uint32_t slot,
                           uint64_t now_ns)
{
    struct own *own = &witness->own[slot];

    if (own->opinion != OPINION_NONE && now_ns > own->conclusive_ns + cycles_ns(witness, slot, 3)) {
        *own = (struct own){.conclusive_ns = own->conclusive_ns};
        checker->sometimes->opinion_went_stale++;
    }
    return own->opinion;
}

static void hear_result(struct checker *checker, struct witness *witness,
                        const struct probe_result *result)
{
    uint32_t slot = result->id.slot;

    if (slot >= CHECK_SLOTS || witness->births[slot] != result->id.birth) {
        checker->sometimes->result_of_another++;
        return;
    }
    const struct health_check *check = check_at(witness, slot);
    struct own *own = &witness->own[slot];
    own_opinion(checker, witness, slot, result->end_ns);
    if (result->probe_class == PROBE_PASS) {
        own->passes++;
        own->fails = 0;
        own->conclusive_ns = result->end_ns;
    } else if (result->probe_class == PROBE_FAIL) {
        own->fails++;
        own->passes = 0;
        own->conclusive_ns = result->end_ns;
    } else {
        checker->sometimes->result_inconclusive++;
    }
    if (own->passes >= check->healthy_threshold) {
        own->opinion = OPINION_PASS;
    } else if (own->fails >= check->unhealthy_threshold) {
        own->opinion = OPINION_FAIL;
    }
}

/* --- votes of others --- */

/* The target that a slot meant at a revision. */
static uint64_t birth_at(const struct checker *checker, uint64_t revision, uint32_t slot)
{
    const struct catalog *catalog =
        revision < WORLD_REVISIONS ? checker->world->history[revision] : NULL;
    const struct catalog_target *target = catalog == NULL || slot >= catalog_n_slots(catalog)
                                              ? NULL
                                              : catalog_target_at(catalog, slot);

    return target == NULL ? 0 : target->id.birth;
}

static void hear_opinion(struct checker *checker, struct told *told, uint64_t epoch,
                         uint64_t sequence, uint8_t opinion, uint64_t now_ns, uint64_t fresh_ns)
{
    if (epoch < told->epoch || (epoch == told->epoch && sequence <= told->sequence)) {
        if (epoch == told->epoch && sequence == told->sequence) {
            checker->sometimes->message_repeated++;
        } else {
            checker->sometimes->message_overtaken++;
        }
        return;
    }
    told->epoch = epoch;
    told->sequence = sequence;
    if (opinion != OPINION_NONE) {
        told->opinion = opinion;
        told->heard_ns = now_ns;
        told->withdrawn = false;
    } else if (told->opinion != OPINION_NONE && !told->withdrawn &&
               now_ns - told->heard_ns <= fresh_ns) {
        told->withdrawn = true;
        told->withdrawn_ns = now_ns;
        checker->sometimes->vote_withdrawn++;
    }
}

/* Only messages of the newest start of a peer are taken. */
static bool epoch_is_newest(struct checker *checker, struct witness *witness, uint64_t peer,
                            uint64_t epoch)
{
    if (epoch < witness->newest_epoch[peer]) {
        checker->sometimes->message_old_epoch++;
        return false;
    }
    if (epoch > witness->newest_epoch[peer]) {
        witness->newest_epoch[peer] = epoch;
        witness->newest_vector[peer] = 0;
    }
    return true;
}

static void hear_chunk(struct checker *checker, struct witness *witness, uint64_t peer,
                       const struct vote_chunk *chunk, uint64_t now_ns)
{
    uint64_t here = catalog_revision(witness->catalog);

    if (!epoch_is_newest(checker, witness, peer, chunk->epoch)) {
        return;
    }
    if (chunk->sequence <= witness->newest_vector[peer]) {
        checker->sometimes->message_repeated += chunk->sequence == witness->newest_vector[peer];
        checker->sometimes->vector_overtaken += chunk->sequence < witness->newest_vector[peer];
        return;
    }
    witness->newest_vector[peer] = chunk->sequence;
    checker->sometimes->sender_behind += chunk->revision < here;
    checker->sometimes->sender_ahead += chunk->revision > here;
    for (uint32_t slot = 0; slot < CHECK_SLOTS; slot++) {
        uint64_t theirs = birth_at(checker, chunk->revision, slot);
        uint8_t opinion = chunk->opinions[slot / 4] >> (slot % 4 * 2) & 3;

        if (witness->births[slot] == 0) {
            continue;
        }
        if (theirs != witness->births[slot]) {
            checker->sometimes->slot_of_another += theirs != 0;
            /* Its sender does not have the target (any more): nothing is said of it, but if it was
             * freed there, `none` is what it says. */
            if (theirs != 0 || chunk->revision < witness->births[slot]) {
                continue;
            }
        }
        hear_opinion(checker, &witness->told[peer][slot], chunk->epoch, chunk->sequence, opinion,
                     now_ns, 3 * interval_ns(witness));
    }
}

static void hear_change(struct checker *checker, struct witness *witness, uint64_t peer,
                        const struct vote_change *change, uint64_t now_ns)
{
    uint32_t slot = change->target.slot;

    if (!epoch_is_newest(checker, witness, peer, change->epoch) || slot >= CHECK_SLOTS ||
        witness->births[slot] != change->target.birth ||
        change->sequence <= witness->newest_vector[peer]) {
        return;
    }
    hear_opinion(checker, &witness->told[peer][slot], change->epoch, change->sequence,
                 change->opinion, now_ns, 3 * interval_ns(witness));
}

/* --- catalogs --- */

/* Observers of its first catalog count at once, later ones from their first hello as observer, or
 * 60 s after their commit. */
static void follow_members(struct checker *checker, struct witness *witness, uint64_t self,
                           bool is_first, uint64_t now_ns)
{
    for (uint64_t id = 1; id <= WORLD_NODES; id++) {
        const struct catalog_node *node = catalog_node_find(witness->catalog, id);
        bool observes =
            node != NULL && (node->spec.role == ROLE_VOTER || node->spec.role == ROLE_STANDBY);

        if (observes && !witness->observes[id]) {
            witness->entered[id] = is_first || id == self;
            witness->enters_ns[id] = now_ns + 60 * WORLD_SECOND;
            checker->sometimes->node_added += !is_first;
        } else if (!observes && witness->observes[id]) {
            checker->sometimes->node_removed++;
            witness->entered[id] = false;
            memset(witness->told[id], 0, sizeof witness->told[id]);
            witness->newest_epoch[id] = 0;
            witness->newest_vector[id] = 0;
        }
        witness->observes[id] = observes;
    }
}

static void enter_by_time(struct checker *checker, struct witness *witness, uint64_t now_ns)
{
    for (uint64_t id = 1; id <= WORLD_NODES; id++) {
        if (witness->observes[id] && !witness->entered[id] && now_ns >= witness->enters_ns[id]) {
            witness->entered[id] = true;
            checker->sometimes->entered_by_time++;
        }
    }
}

static void hear_hello(struct checker *checker, struct witness *witness, uint64_t peer,
                       const struct hello *hello)
{
    if (epoch_is_newest(checker, witness, peer, hello->epoch) && hello->is_observer &&
        witness->observes[peer] && !witness->entered[peer]) {
        witness->entered[peer] = true;
        checker->sometimes->entered_by_hello++;
    }
}

static bool has_row(const struct catalog *catalog, struct row_id id)
{
    for (size_t i = 0; catalog != NULL && i < catalog_n_groups(catalog); i++) {
        const struct catalog_group *group = catalog_group_at(catalog, i);

        for (uint32_t j = 0; j < group->n_backends; j++) {
            if (group->backends[j].row.row == id.row && group->backends[j].row.birth == id.birth) {
                return true;
            }
        }
    }
    return false;
}

static void begin_row(struct checker *checker, struct witness *witness,
                      const struct catalog_backend *backend, uint64_t now_ns)
{
    struct judged *row = &witness->rows[backend->row.row];
    const struct kept_row *kept = &witness->kept[backend->row.row];
    struct hash128 definition =
        catalog_target_at(witness->catalog, backend->target.slot)->definition_hash;

    if (row->birth == 0 && witness->has_kept && kept->birth == backend->row.birth &&
        memcmp(&kept->definition, &definition, sizeof definition) == 0) {
        row->state = kept->state;
        row->held_kept = true;
        checker->sometimes->held_kept++;
        return;
    }
    row->state = HEALTH_INITIAL;
    row->initial_ns = now_ns;
}

static void follow_row(struct checker *checker, struct witness *witness,
                       const struct catalog_backend *backend, uint64_t now_ns)
{
    assert(backend->row.row < CHECK_ROWS);
    struct judged *row = &witness->rows[backend->row.row];
    bool is_other =
        row->target_birth != backend->target.birth || row->target_slot != backend->target.slot;

    if (row->birth != backend->row.birth) {
        *row = (struct judged){0};
    }
    if (backend->target.slot == CATALOG_NO_SLOT) {
        row->state =
            backend->spec.admin_state == ADMIN_MAINTENANCE ? HEALTH_UNUSED : HEALTH_UNAVAILABLE;
        row->gray = row->held_check_changed = row->held_kept = false;
    } else if (row->state == HEALTH_NONE || row->state == HEALTH_UNUSED) {
        begin_row(checker, witness, backend, now_ns);
    } else if (row->state == HEALTH_UNAVAILABLE) {
        row->state = HEALTH_HEALTHY;
        row->held_check_changed = true;
    } else if (is_other && row->state == HEALTH_INITIAL) {
        row->initial_ns = now_ns;
    } else if (is_other) {
        row->held_check_changed = true;
        row->gray = false;
        checker->sometimes->held_check_changed++;
    }
    row->birth = backend->row.birth;
    row->target_birth = backend->target.birth;
    row->target_slot = backend->target.slot;
}

static void hear_catalog(struct checker *checker, struct witness *witness, uint64_t self,
                         const struct catalog *catalog, uint64_t now_ns)
{
    bool is_first = witness->catalog == NULL;

    if (!is_first && catalog_revision(catalog) <= catalog_revision(witness->catalog)) {
        return;
    }
    if (!is_first) {
        checker->sometimes->catalog_changed++;
        checker->sometimes->interval_changed +=
            catalog_settings(catalog)->vote_interval_ms !=
            catalog_settings(witness->catalog)->vote_interval_ms;
    }
    witness->catalog = catalog;
    follow_members(checker, witness, self, is_first, now_ns);
    for (uint32_t slot = 0; slot < CHECK_SLOTS; slot++) {
        uint64_t birth = birth_at(checker, catalog_revision(catalog), slot);

        if (birth != witness->births[slot]) {
            witness->births[slot] = birth;
            witness->own[slot] = (struct own){0};
            for (uint32_t peer = 0; peer <= WORLD_NODES; peer++) {
                witness->told[peer][slot] = (struct told){0};
            }
        }
    }
    for (uint32_t r = 0; r < CHECK_ROWS; r++) {
        struct row_id id = {.row = r, .birth = witness->rows[r].birth};

        if (id.birth != 0 && !has_row(catalog, id)) {
            witness->rows[r] = (struct judged){0};
        }
    }
    for (size_t i = 0; i < catalog_n_groups(catalog); i++) {
        const struct catalog_group *group = catalog_group_at(catalog, i);

        for (uint32_t j = 0; j < group->n_backends; j++) {
            follow_row(checker, witness, &group->backends[j], now_ns);
        }
    }
}

static void before_step(void *user, struct world *world, struct world_node *node,
                        const struct engine_event *event)
{
    struct checker *checker = user;
    struct witness *witness = witness_of(checker, node);

    (void)world;
    if (event->kind == ENGINE_CATALOG) {
        hear_catalog(checker, witness, node->id, event->u.catalog, event->now_ns);
    }
    if (witness->catalog == NULL) {
        return; /* it knows nobody yet */
    }
    if (event->kind == ENGINE_PROBE_RESULT) {
        hear_result(checker, witness, event->u.result);
    }
    if (event->peer == 0 || catalog_node_find(witness->catalog, event->peer) == NULL) {
        return; /* strangers are not heard */
    }
    if (event->kind == ENGINE_HELLO) {
        hear_hello(checker, witness, event->peer, event->u.hello);
    } else if (event->kind == ENGINE_VOTE_CHUNK) {
        hear_chunk(checker, witness, event->peer, event->u.chunk, event->now_ns);
    } else if (event->kind == ENGINE_VOTE_CHANGE) {
        hear_change(checker, witness, event->peer, event->u.change, event->now_ns);
    }
}

/* --- judging --- */

struct count {
    unsigned n, f, p, lost_f, lost_p;
    uint8_t own;
};

static void count_told(struct checker *checker, struct witness *witness, uint32_t slot,
                       struct told *told, uint64_t now_ns, struct count *count)
{
    uint64_t fresh_ns = 3 * interval_ns(witness);
    uint64_t memory_ns =
        cycles_ns(witness, slot, check_at(witness, slot)->unhealthy_threshold) + fresh_ns;
    bool fails = told->opinion == OPINION_FAIL;

    if (told->opinion == OPINION_NONE) {
        return;
    }
    if (!told->withdrawn && now_ns - told->heard_ns <= fresh_ns) {
        count->f += fails;
        count->p += !fails;
        return;
    }
    uint64_t stopped_ns = told->withdrawn ? told->withdrawn_ns : told->heard_ns + fresh_ns;
    if (now_ns <= stopped_ns + memory_ns) {
        count->lost_f += fails;
        count->lost_p += !fails;
        checker->sometimes->vote_expired += !told->withdrawn;
    } else {
        told->opinion = OPINION_NONE;
        checker->sometimes->vote_lapsed++;
    }
}

static struct count count_votes(struct checker *checker, struct witness *witness,
                                const struct world_node *node, uint32_t slot, uint64_t now_ns)
{
    struct count count = {.own = own_opinion(checker, witness, slot, now_ns)};

    count.f = count.own == OPINION_FAIL;
    count.p = count.own == OPINION_PASS;
    for (uint32_t peer = 1; peer <= WORLD_NODES; peer++) {
        count.n += witness->entered[peer];
        if (peer == node->id) {
            continue;
        }
        if (witness->entered[peer]) {
            count_told(checker, witness, slot, &witness->told[peer][slot], now_ns, &count);
        } else {
            checker->sometimes->voter_not_entered +=
                witness->told[peer][slot].opinion != OPINION_NONE;
        }
    }
    return count;
}

/* "goes down when", in the words of spec.md 5. */
static bool goes_down(struct rule_column rule, unsigned f, unsigned c, uint8_t own)
{
    return rule.kind == RULE_LOCAL      ? own == OPINION_FAIL
           : rule.kind == RULE_ANY      ? f >= 1
           : rule.kind == RULE_MAJORITY ? f > c - f
           : rule.kind == RULE_ALL      ? f == c && f >= 1
           : rule.kind == RULE_AT_LEAST ? f >= rule.value
                                        : f * 100 >= rule.value * c && f >= 1;
}

static bool comes_up(const struct verdict_rule *rule, unsigned f, unsigned p, unsigned c,
                     uint8_t own)
{
    struct rule_column up = rule->up;

    if (rule->is_split) {
        return up.kind == RULE_LOCAL      ? own == OPINION_PASS
               : up.kind == RULE_ANY      ? p >= 1
               : up.kind == RULE_MAJORITY ? p > c - p
               : up.kind == RULE_ALL      ? p == c && p >= 1
               : up.kind == RULE_AT_LEAST ? p >= up.value
                                          : p * 100 >= up.value * c && p >= 1;
    }
    return up.kind == RULE_LOCAL      ? own == OPINION_PASS
           : up.kind == RULE_ANY      ? f == 0 && p >= 1
           : up.kind == RULE_MAJORITY ? p > c - p
           : up.kind == RULE_ALL      ? p >= 1
           : up.kind == RULE_AT_LEAST ? f < up.value && p >= 1
                                      : f * 100 < up.value * c && p >= 1;
}

/* 'd', 'u' or '-'. */
static char follow_rule(struct checker *checker, const struct verdict_rule *rule,
                        const struct count *v)
{
    unsigned c = v->f + v->p;
    bool enough = c >= v->n / 2 + 1;
    bool is_local = rule->down.kind == RULE_LOCAL && rule->up.kind == RULE_LOCAL;
    bool down = goes_down(rule->down, v->f, c + v->lost_p, v->own);
    bool up = !down && comes_up(rule, v->f + v->lost_f, v->p, c + v->lost_f, v->own);

    checker->sometimes->down_blocked += !down && goes_down(rule->down, v->f, c, v->own);
    checker->sometimes->up_blocked += !down && !up && comes_up(rule, v->f, v->p, c, v->own);
    if (!enough && rule->below_quorum == BELOW_QUORUM_LOCAL && !is_local) {
        checker->sometimes->own_decided += v->own != OPINION_NONE;
        return v->own == OPINION_FAIL ? 'd' : v->own == OPINION_PASS ? 'u' : '-';
    }
    if (down) {
        checker->sometimes->quorum_blocked += !enough && rule->down.kind != RULE_LOCAL;
        return enough || rule->down.kind == RULE_LOCAL ? 'd' : '-';
    }
    return up && (enough || v->own == OPINION_PASS) ? 'u' : '-';
}

static void judge_row(struct checker *checker, struct witness *witness,
                      const struct verdict_rule *rule, struct judged *row, const struct count *v,
                      uint64_t now_ns)
{
    const struct health_check *check = check_at(witness, row->target_slot);
    uint64_t window_ns = (check->timeout_ms * (uint64_t)check->unhealthy_threshold +
                          check->interval_ms * (uint64_t)(check->unhealthy_threshold - 1)) *
                             WORLD_MS +
                         3 * interval_ns(witness);
    char followed = follow_rule(checker, rule, v);

    if (followed != '-') {
        uint8_t state = followed == 'd' ? HEALTH_UNHEALTHY : HEALTH_HEALTHY;

        checker->sometimes->went_down += state == HEALTH_UNHEALTHY && row->state != state;
        checker->sometimes->came_up += state == HEALTH_HEALTHY && row->state == HEALTH_UNHEALTHY;
        row->state = state;
        row->gray = row->held_check_changed = row->held_kept = false;
    } else if (row->state == HEALTH_INITIAL && now_ns >= row->initial_ns + window_ns &&
               v->f == v->p && v->f >= 1 && v->f + v->p >= v->n / 2 + 1 && v->own != OPINION_NONE) {
        row->state = v->own == OPINION_FAIL ? HEALTH_UNHEALTHY : HEALTH_HEALTHY;
        row->gray = true;
        checker->sometimes->gray++;
    }
}

static void compare(struct checker *checker, const struct world_node *node,
                    const struct catalog_group *group, const struct backend_line *line,
                    const struct judged *row, const struct count *v)
{
    bool unreachable = row->state == HEALTH_HEALTHY && v->own == OPINION_FAIL;
    bool held = v->f + v->p < v->n / 2 + 1u && group->spec.rule.down.kind != RULE_LOCAL &&
                group->spec.rule.below_quorum == BELOW_QUORUM_HOLD;
    char at[ENDPOINT_TEXT_BYTES];

    endpoint_format(&line->at, at);
    if (line->n_fail != v->f || line->n_pass != v->p || line->n_observers != v->n) {
        fail(checker, node,
             "I-8: %s/%s: the engine counts %u fail, %u pass of %u, the trace has %u, %u of %u",
             group->spec.name, at, line->n_fail, line->n_pass, line->n_observers, v->f, v->p, v->n);
    } else if (line->health_state != row->state || ((line->marks & MARK_GRAY) != 0) != row->gray) {
        fail(checker, node,
             "I-7: %s/%s is %s%s, but %u fail, %u pass, %u and %u remembered, own %s, of %u give "
             "%s%s",
             group->spec.name, at, health_state_word((enum health_state)line->health_state),
             (line->marks & MARK_GRAY) != 0 ? " gray" : "", v->f, v->p, v->lost_f, v->lost_p,
             opinion_word((enum opinion)v->own), v->n,
             health_state_word((enum health_state)row->state), row->gray ? " gray" : "");
    } else if (line->is_unreachable != unreachable) {
        fail(checker, node, "N5: %s/%s is %sunreachable", group->spec.name, at,
             line->is_unreachable ? "" : "not ");
    } else if ((held || row->held_check_changed || row->held_kept) &&
               (line->marks & MARK_HELD) == 0) {
        fail(checker, node, "%s/%s is not marked held:%s%s%s", group->spec.name, at,
             held ? " few votes" : "", row->held_check_changed ? " check changed" : "",
             row->held_kept ? " last-known-good" : "");
    }
    checker->sometimes->unreachable += unreachable;
    checker->sometimes->held_few_votes += held;
}

static void check_group(struct checker *checker, struct witness *witness,
                        const struct world_node *node, const struct catalog_group *group,
                        uint64_t now_ns)
{
    struct backend_line lines[16];
    size_t n = engine_view_lines(node->engine, group->spec.name, now_ns, 0, lines, 16);

    assert(group->n_backends <= 16);
    if (n != group->n_backends) {
        fail(checker, node, "%s has %zu lines", group->spec.name, n);
        return;
    }
    for (uint32_t i = 0; i < group->n_backends; i++) {
        struct judged *row = &witness->rows[group->backends[i].row.row];

        if (row->target_slot == CATALOG_NO_SLOT) {
            if (lines[i].health_state != row->state) {
                fail(checker, node, "%s: state without checks", group->spec.name);
            }
            continue;
        }
        struct count v = count_votes(checker, witness, node, row->target_slot, now_ns);
        judge_row(checker, witness, &group->spec.rule, row, &v, now_ns);
        compare(checker, node, group, &lines[i], row, &v);
    }
}

/* A node says nothing of itself that its own results do not bear out. */
static void check_sent(struct checker *checker, struct witness *witness,
                       const struct world_node *node, uint64_t now_ns)
{
    const struct engine_actions *actions = &node->actions;

    for (uint32_t slot = 0; actions->n_chunks > 0 && slot < CHECK_SLOTS; slot++) {
        uint8_t said = actions->chunks[0].opinions[slot / 4] >> (slot % 4 * 2) & 3;
        uint8_t known =
            witness->births[slot] == 0 ? OPINION_NONE : own_opinion(checker, witness, slot, now_ns);

        if (said != known) {
            fail(checker, node, "I-7: it votes %s on slot %u, its results give %s",
                 opinion_word((enum opinion)said), slot, opinion_word((enum opinion)known));
        }
    }
    for (uint16_t i = 0; i < actions->n_changes; i++) {
        uint32_t slot = actions->changes[i].target.slot;
        uint8_t known = own_opinion(checker, witness, slot, now_ns);

        if (actions->changes[i].opinion != known) {
            fail(checker, node, "I-7: it tells %s of slot %u, its results give %s",
                 opinion_word((enum opinion)actions->changes[i].opinion), slot,
                 opinion_word((enum opinion)known));
        }
    }
}

static void note_groups(struct checker *checker, const struct world_node *node,
                        const struct catalog_group *group, uint64_t now_ns)
{
    struct group_view view;

    if (engine_view_group(node->engine, group->spec.name, now_ns, &view) == 0) {
        checker->sometimes->fail_open += view.group_state == GROUP_FAIL_OPEN;
        checker->sometimes->group_closed += view.group_state == GROUP_CLOSED;
        checker->sometimes->warming += (view.marks & MARK_WARMING) != 0;
    }
}

static void after_step(void *user, struct world *world, struct world_node *node,
                       const struct engine_event *event)
{
    struct checker *checker = user;
    struct witness *witness = witness_of(checker, node);

    (void)world;
    if (witness->catalog == NULL) {
        return;
    }
    enter_by_time(checker, witness, event->now_ns);
    for (size_t i = 0; i < catalog_n_groups(witness->catalog); i++) {
        const struct catalog_group *group = catalog_group_at(witness->catalog, i);

        check_group(checker, witness, node, group, event->now_ns);
        if (node->actions.n_chunks > 0) {
            note_groups(checker, node, group, event->now_ns);
        }
    }
    check_sent(checker, witness, node, event->now_ns);
}

void checker_init(struct checker *checker, struct world *world, struct sometimes *sometimes)
{
    memset(checker, 0, sizeof *checker);
    checker->world = world;
    checker->sometimes = sometimes;
    world->hooks =
        (struct world_hooks){.user = checker, .before = before_step, .after = after_step};
}

void checker_note_stop(struct checker *checker, uint64_t node_id)
{
    struct witness *witness = witness_of(checker, &checker->world->nodes[node_id]);

    memset(witness->kept, 0, sizeof witness->kept);
    for (uint32_t r = 0; r < CHECK_ROWS; r++) {
        const struct judged *row = &witness->rows[r];

        if (row->birth != 0 && row->target_slot != CATALOG_NO_SLOT &&
            (row->state == HEALTH_HEALTHY || row->state == HEALTH_UNHEALTHY)) {
            witness->kept[r] = (struct kept_row){
                .birth = row->birth,
                .state = row->state,
                .definition =
                    catalog_target_at(witness->catalog, row->target_slot)->definition_hash};
        }
    }
}

void checker_note_start(struct checker *checker, uint64_t node_id, bool with_kept)
{
    checker->nodes[node_id].has_kept = with_kept;
}

void checker_check_truth(struct checker *checker)
{
    struct world *world = checker->world;
    const struct catalog *catalog = world->history[world->revision];

    for (uint32_t id = 1; id <= world->n_nodes && !checker->failed; id++) {
        const struct witness *witness = &checker->nodes[id];

        if (world->nodes[id].is_gone) {
            continue;
        }
        if (witness->catalog != catalog) {
            fail(checker, &world->nodes[id], "I-18: it has not got the newest catalog");
            return;
        }
        for (size_t i = 0; i < catalog_n_groups(catalog); i++) {
            const struct catalog_group *group = catalog_group_at(catalog, i);

            for (uint32_t j = 0; j < group->n_backends; j++) {
                const struct judged *row = &witness->rows[group->backends[j].row.row];
                const struct truth *truth =
                    &world_backend(world, &group->backends[j].spec.at)->truth[id];
                uint8_t wanted = truth->reason == REASON_OK ? HEALTH_HEALTHY : HEALTH_UNHEALTHY;

                if (row->target_slot == CATALOG_NO_SLOT) {
                    continue;
                }
                checker->sometimes->ended_as_truth++;
                if (row->state != wanted || row->gray || row->held_check_changed ||
                    row->held_kept) {
                    fail(checker, &world->nodes[id],
                         "I-18: %s backend %u is %s at the end, and really %s", group->spec.name, j,
                         health_state_word((enum health_state)row->state),
                         health_state_word((enum health_state)wanted));
                }
            }
        }
    }
}
