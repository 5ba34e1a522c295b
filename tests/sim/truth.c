/* I-18: with everything well, each verdict becomes what the backend really is (checker.h). */
#include "tests/sim/guards.h"
#include "tests/sim/several.h"

uint64_t checker_bound_ns(const struct checker *checker, const struct catalog_group *group)
{
    const struct catalog *catalog = checker->world->history[checker->world->revision];
    uint64_t cycle_ms = several_cycle_ms(group);
    uint64_t window_ms = several_window_ms(group);
    uint64_t vote_ms = 2 * (uint64_t)catalog_settings(catalog)->vote_interval_ms + 100;
    uint64_t whole_ms = 2000 + cycle_ms + window_ms + vote_ms;

    whole_ms +=
        guards_delay_ns(group, catalog_settings(catalog)->vote_interval_ms * WORLD_MS) / WORLD_MS;

    whole_ms += returns_delay_ns(checker, group) / WORLD_MS;
    if (checker->was_in_shadow[group->row.row]) {
        whole_ms += group->spec.guard.shadow_cycles * cycle_ms + 3000;
    }
    if (checker->is_doubted) {
        whole_ms += 10000 + cycle_ms + window_ms;
    }
    return whole_ms * 1000000 / (1000000 - CHECK_CLOCK_PPM_MAX) * WORLD_MS;
}

uint64_t checker_longest_bound_ns(const struct checker *checker)
{
    const struct catalog *catalog = checker->world->history[checker->world->revision];
    uint64_t longest_ns = 0;

    for (size_t i = 0; i < catalog_n_groups(catalog); i++) {
        uint64_t bound_ns = checker_bound_ns(checker, catalog_group_at(catalog, i));

        longest_ns = bound_ns > longest_ns ? bound_ns : longest_ns;
    }
    return longest_ns;
}

/* A dependency that is down is marked, and no other; whatever becomes of the backend. */
static bool is_degraded_as_truth(struct checker *checker, uint32_t id,
                                 const struct catalog_group *group,
                                 const struct catalog_backend *backend)
{
    bool wanted = backend->target.slot != CATALOG_NO_SLOT &&
                  several_degraded_truth(checker, group, backend, id);

    checker->sometimes->dependency_in_the_calm += wanted;
    return several_is_degraded(checker->nodes[id], backend->row.row) == wanted;
}

static bool is_as_truth(struct checker *checker, uint32_t id, const struct catalog_group *group,
                        const struct catalog_backend *backend)
{
    const struct judged *row = &checker->nodes[id]->rows[backend->row.row];
    bool is_stopped = checker->nodes[id]->guarded[group->row.row].shadow.was_stopped;
    uint8_t wanted = several_truth(checker, group, backend, id);

    if (!is_degraded_as_truth(checker, id, group, backend)) {
        return false;
    }

    if (wanted == HEALTH_UNHEALTHY && row->frozen == FROZEN_BY_HOLD) {
        checker->sometimes->hold_in_the_calm++; /* it stays, and is used as healthy */
        return true;
    }
    if (wanted == HEALTH_UNHEALTHY && row->frozen == FROZEN_BY_SHADOW && is_stopped) {
        checker->sometimes->shadow_in_the_calm++;
        return true;
    }
    return row->target_slot == CATALOG_NO_SLOT ||
           (row->birth == backend->row.birth && row->state == wanted && !row->gray &&
            !row->held_check_changed && !row->held_kept);
}

static void check_group_truth(struct checker *checker, uint32_t id,
                              const struct catalog_group *group)
{
    uint64_t bound_ns = checker_bound_ns(checker, group);
    uint64_t passed_ns = checker->world->now_ns - checker->calm_ns;

    for (uint32_t j = 0; j < group->n_backends; j++) {
        const struct catalog_backend *backend = &group->backends[j];
        const struct judged *row = &checker->nodes[id]->rows[backend->row.row];

        if (is_as_truth(checker, id, group, backend)) {
            checker->sometimes->ended_as_truth += passed_ns > bound_ns;
        } else if (passed_ns > bound_ns) {
            checker_fail(checker, &checker->world->nodes[id],
                         "I-18: %s backend %u is %s %.1f s after all is well, its bound is %.1f s",
                         group->spec.name, j, health_state_word((enum health_state)row->state),
                         (double)passed_ns / 1e9, (double)bound_ns / 1e9);
        } else if (passed_ns * 1000 / bound_ns > checker->slowest_pm) {
            checker->slowest_pm = passed_ns * 1000 / bound_ns;
        }
    }
}

void checker_check_truth(struct checker *checker)
{
    const struct catalog *catalog = checker->world->history[checker->world->revision];

    for (uint32_t id = 1; id <= checker->world->n_nodes && !checker->failed; id++) {
        if (checker->world->nodes[id].is_gone) {
            continue;
        }
        checker->is_doubted |= checker->nodes[id]->suspect_mask != 0;
        for (size_t i = 0; i < catalog_n_groups(catalog); i++) {
            uint32_t row = catalog_group_at(catalog, i)->row.row;

            checker->was_in_shadow[row] |= checker->nodes[id]->guarded[row].shadow.is_on;
        }
        if (checker->nodes[id]->catalog != catalog &&
            checker->world->now_ns > checker->calm_ns + 2 * WORLD_SECOND) {
            checker_fail(checker, &checker->world->nodes[id],
                         "I-18: it has not got the newest catalog");
            return;
        }
        for (size_t i = 0; i < catalog_n_groups(catalog); i++) {
            check_group_truth(checker, id, catalog_group_at(catalog, i));
        }
    }
}
