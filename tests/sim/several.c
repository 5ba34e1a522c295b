#include "tests/sim/several.h"

#include <assert.h>
#include <string.h>

#include "tests/sim/rules.h"
#include "tests/sim/witness.h"

static bool is_local(const struct server_group *spec, uint32_t i)
{
    return spec->checks[i].check_class == CHECK_LOCAL;
}

/* How many of the local ones must pass. */
static unsigned wanted_passes(const struct server_group *spec)
{
    unsigned n_local = 0;

    for (uint32_t i = 0; i < spec->n_checks; i++) {
        n_local += is_local(spec, i);
    }
    return spec->pass.kind == RULE_ALL   ? n_local
           : spec->pass.kind == RULE_ANY ? 1
                                         : spec->pass.value;
}

/* --- what is composed of what --- */

static void follow_backend(struct witness *witness, const struct catalog_group *group,
                           const struct catalog_backend *backend)
{
    const struct target_id *targets = catalog_parts_of(group, backend);
    struct composition composition = {.k = wanted_passes(&group->spec)};

    if (backend->target.slot == CATALOG_NO_SLOT) {
        return;
    }
    for (uint32_t i = 0; i < group->spec.n_checks; i++) {
        assert(targets[i].slot < CHECK_SLOTS);
        if (is_local(&group->spec, i)) {
            composition.slots[composition.n++] = targets[i].slot;
        }
    }
    if (composition.n > 1) {
        witness->compositions[backend->target.slot] = composition;
    }
}

/* What it was of the same dependency goes on. */
static void follow_dependencies(struct witness *witness, const struct catalog_group *group,
                                const struct catalog_backend *backend)
{
    const struct target_id *targets = catalog_parts_of(group, backend);
    struct dependencies *of = &witness->dependencies[backend->row.row];
    struct dependencies before = *of;

    memset(of, 0, sizeof *of);
    for (uint32_t i = 0; targets != NULL && i < group->spec.n_checks; i++) {
        struct dependency *dependency = &of->items[of->n];

        if (is_local(&group->spec, i) || targets[i].slot == CATALOG_NO_SLOT) {
            continue;
        }
        *dependency = (struct dependency){.target = targets[i]};
        for (unsigned j = 0; j < before.n; j++) {
            if (before.items[j].target.slot == targets[i].slot &&
                before.items[j].target.birth == targets[i].birth) {
                dependency->followed = before.items[j].followed;
            }
        }
        of->n++;
    }
}

void several_follow(struct witness *witness)
{
    memset(witness->compositions, 0, sizeof witness->compositions);
    for (uint32_t r = 0; r < CHECK_ROWS; r++) {
        if (witness->rows[r].birth == 0) {
            memset(&witness->dependencies[r], 0, sizeof witness->dependencies[r]);
        }
    }
    for (size_t i = 0; i < catalog_n_groups(witness->catalog); i++) {
        const struct catalog_group *group = catalog_group_at(witness->catalog, i);

        for (uint32_t j = 0; j < group->n_backends; j++) {
            if (group->spec.n_checks > 0) {
                follow_backend(witness, group, &group->backends[j]);
            }
            follow_dependencies(witness, group, &group->backends[j]);
        }
    }
}

bool several_is_composed(const struct witness *witness, uint32_t slot)
{
    return slot < CHECK_SLOTS && witness->compositions[slot].n > 0;
}

bool several_has_part(const struct witness *witness, uint32_t slot, uint32_t part)
{
    for (unsigned i = 0; several_is_composed(witness, slot) && i < witness->compositions[slot].n;
         i++) {
        if (witness->compositions[slot].slots[i] == part) {
            return true;
        }
    }
    return false;
}

/* --- opinions --- */

bool several_is_doubted(const struct witness *witness, uint32_t slot, uint32_t suspect_mask)
{
    const struct composition *of = &witness->compositions[slot];
    unsigned n = 0;

    for (unsigned i = 0; i < of->n; i++) {
        n += suspect_mask >> witness_check_at(witness, of->slots[i])->type & 1;
    }
    return n == of->n;
}

/* So many may still pass, and so many do; what the node doubts may, unless it doubts all. */
uint8_t several_opinion(struct checker *checker, struct witness *witness, uint32_t slot,
                        uint64_t now_ns)
{
    const struct composition *of = &witness->compositions[slot];
    bool is_doubted = several_is_doubted(witness, slot, witness->suspect_mask);
    unsigned n_pass = 0, n_may_pass = 0, n_hidden = 0;

    for (unsigned i = 0; i < of->n; i++) {
        uint8_t opinion = witness_own_opinion(checker, witness, of->slots[i], now_ns);
        bool is_hidden = !is_doubted && witness_doubts(witness, of->slots[i]);

        n_hidden += is_hidden && opinion != OPINION_NONE;
        n_pass += !is_hidden && opinion == OPINION_PASS;
        n_may_pass += is_hidden || opinion != OPINION_FAIL;
    }
    struct sometimes *sometimes = checker->sometimes;
    sometimes->composed_hides_doubted += n_hidden > 0;
    sometimes->composed_pass_beside_fail += n_pass >= of->k && n_may_pass < of->n;
    sometimes->composed_fail_beside_pass += n_may_pass < of->k && n_pass > 0;
    sometimes->composed_waits += n_pass > 0 && n_pass < of->k && n_may_pass >= of->k;
    uint8_t opinion = (uint8_t)(n_may_pass < of->k ? OPINION_FAIL
                                : n_pass >= of->k  ? OPINION_PASS
                                                   : OPINION_NONE);
    witness->own[slot].opinion = opinion;
    return opinion;
}

/* --- dependencies --- */

bool several_is_degraded(const struct witness *witness, uint32_t row)
{
    for (unsigned i = 0; i < witness->dependencies[row].n; i++) {
        if (witness->dependencies[row].items[i].followed == 'd') {
            return true;
        }
    }
    return false;
}

static void judge_row(struct checker *checker, struct witness *witness,
                      const struct world_node *node, const struct catalog_group *group, uint32_t r,
                      uint64_t now_ns)
{
    struct dependencies *of = &witness->dependencies[r];

    for (unsigned i = 0; i < of->n; i++) {
        struct dependency *dependency = &of->items[i];
        struct count v = rules_count(checker, witness, node, dependency->target.slot, now_ns);
        char said = rules_follow(checker, witness, &group->spec.rule, &v);

        checker->sometimes->dependency_down += said == 'd' && dependency->followed != 'd';
        checker->sometimes->dependency_up += said == 'u' && dependency->followed == 'd';
        dependency->followed = said == '-' ? dependency->followed : said;
    }
}

static void judge(struct checker *checker, struct witness *witness, const struct world_node *node,
                  const struct engine_event *event)
{
    for (size_t i = 0; i < catalog_n_groups(witness->catalog); i++) {
        const struct catalog_group *group = catalog_group_at(witness->catalog, i);
        struct backend_line lines[16];

        if (group->spec.n_checks == 0) {
            continue;
        }
        size_t n = engine_view_lines(node->engine, group->spec.name, lines, 16);
        for (uint32_t j = 0; j < n && j < group->n_backends; j++) {
            uint32_t r = group->backends[j].row.row;

            judge_row(checker, witness, node, group, r, event->now_ns);
            bool is_marked = (lines[j].marks & MARK_DEGRADED) != 0;
            if (is_marked != several_is_degraded(witness, r)) {
                checker_fail(checker, node, "N20: %s backend %u is %smarked degraded",
                             group->spec.name, j, is_marked ? "" : "not ");
            }
        }
    }
}

const struct checker_part checker_several = {.name = "several", .judge = judge};

/* --- what is so --- */

uint64_t several_cycle_ms(const struct catalog_group *group)
{
    const struct server_group *spec = &group->spec;
    uint64_t most = spec->n_checks == 0 ? spec->check.timeout_ms + spec->check.interval_ms : 0;

    for (uint32_t i = 0; i < spec->n_checks; i++) {
        uint64_t one = spec->checks[i].check.timeout_ms + spec->checks[i].check.interval_ms;

        most = is_local(spec, i) && one > most ? one : most;
    }
    return most;
}

static uint64_t window_of(const struct health_check *check)
{
    uint64_t most = check->unhealthy_threshold > check->healthy_threshold
                        ? check->unhealthy_threshold
                        : check->healthy_threshold;

    return most * (check->timeout_ms + (uint64_t)check->interval_ms) - check->interval_ms;
}

uint64_t several_window_ms(const struct catalog_group *group)
{
    const struct server_group *spec = &group->spec;
    uint64_t most = spec->n_checks == 0 ? window_of(&spec->check) : 0;

    for (uint32_t i = 0; i < spec->n_checks; i++) {
        uint64_t one = window_of(&spec->checks[i].check);

        most = one > most ? one : most;
    }
    return most;
}

static bool passes(struct checker *checker, const struct catalog_backend *backend,
                   const struct health_check *check, uint32_t node_id)
{
    struct endpoint at = backend->spec.at;

    at.port = check->port != 0 ? check->port : at.port;
    return world_backend(checker->world, &at)->truth[node_id].reason == REASON_OK;
}

uint8_t several_truth(struct checker *checker, const struct catalog_group *group,
                      const struct catalog_backend *backend, uint32_t node_id)
{
    const struct server_group *spec = &group->spec;
    unsigned n = 0;

    for (uint32_t i = 0; i < spec->n_checks; i++) {
        n += is_local(spec, i) && passes(checker, backend, &spec->checks[i].check, node_id);
    }
    bool is_well = spec->n_checks == 0 ? passes(checker, backend, &spec->check, node_id)
                                       : n >= wanted_passes(spec);
    return is_well ? HEALTH_HEALTHY : HEALTH_UNHEALTHY;
}

bool several_degraded_truth(struct checker *checker, const struct catalog_group *group,
                            const struct catalog_backend *backend, uint32_t node_id)
{
    const struct server_group *spec = &group->spec;

    for (uint32_t i = 0; i < spec->n_checks; i++) {
        if (!is_local(spec, i) && !passes(checker, backend, &spec->checks[i].check, node_id)) {
            return true;
        }
    }
    return false;
}
