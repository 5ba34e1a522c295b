/* catalog_diff against comparing everything with everything. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/core/catalog_diff.h"
#include "common/base/prng.h"
#include "tests/lib/catalog_builder.h"

#define N_HISTORY 40

struct seen {
    const struct catalog *before;
    const struct catalog *after;
    unsigned n_groups;
    unsigned n_targets;
    char last_name[LIMIT_NAME_BYTES + 1];
    int64_t last_slot;
};

static void see_group(void *user, const struct catalog_group *before,
                      const struct catalog_group *after)
{
    struct seen *seen = user;
    const char *name = before != NULL ? before->spec.name : after->spec.name;

    assert_true(strcmp(seen->last_name, name) < 0);
    strcpy(seen->last_name, name);
    assert_ptr_equal(before, seen->before != NULL ? catalog_group_find(seen->before, name) : NULL);
    assert_ptr_equal(after, catalog_group_find(seen->after, name));
    assert_ptr_not_equal(before, after);
    seen->n_groups++;
}

static void see_target(void *user, const struct catalog_target *before,
                       const struct catalog_target *after)
{
    struct seen *seen = user;
    uint32_t slot = before != NULL ? before->id.slot : after->id.slot;

    assert_true(slot > seen->last_slot);
    seen->last_slot = slot;
    assert_ptr_equal(before, seen->before != NULL ? catalog_target_at(seen->before, slot) : NULL);
    assert_ptr_equal(after, catalog_target_at(seen->after, slot));
    assert_true(before == NULL || after == NULL || before->id.birth != after->id.birth);
    seen->n_targets++;
}

static unsigned count_groups(const struct catalog *before, const struct catalog *after)
{
    unsigned n = 0;

    for (size_t i = 0; i < catalog_n_groups(after); i++) {
        const struct catalog_group *group = catalog_group_at(after, i);

        n += before == NULL || catalog_group_find(before, group->spec.name) != group;
    }
    for (size_t i = 0; before != NULL && i < catalog_n_groups(before); i++) {
        n += catalog_group_find(after, catalog_group_at(before, i)->spec.name) == NULL;
    }
    return n;
}

static uint64_t birth_at(const struct catalog *catalog, uint32_t slot)
{
    const struct catalog_target *target = catalog != NULL ? catalog_target_at(catalog, slot) : NULL;

    return target != NULL ? target->id.birth : 0;
}

static unsigned count_targets(const struct catalog *before, const struct catalog *after)
{
    unsigned n = 0;

    for (uint32_t slot = 0; slot < 2000; slot++) {
        n += birth_at(before, slot) != birth_at(after, slot);
    }
    return n;
}

static void random_write(struct prng *prng, struct catalog_state *state)
{
    struct command command = {.is_forced = true};
    struct apply_answer answer;
    char name[16];
    char endpoints[200] = "";
    struct catalog *now = catalog_state_catalog(state);

    sprintf(name, "group%03u", (unsigned)prng_below(prng, 300));
    for (unsigned i = 1; i <= 5; i++) {
        if (prng_below(prng, 2) == 0) {
            sprintf(endpoints + strlen(endpoints), "10.0.0.%u:80 ", i);
        }
    }
    if (prng_below(prng, 4) == 0 && catalog_group_find(now, name) != NULL) {
        build_delete_group(&command, name);
    } else {
        build_put(&command, name, endpoints);
        command.changes[0].u.group->check.interval_ms = 1000 + (uint32_t)prng_below(prng, 3);
    }
    catalog_unref(now);
    catalog_check(state, &command, &answer);
    if (answer.err == ERR_FORCE) {
        command.forced_count =
            (uint32_t)strtoul(strstr(answer.message.text, "the count ") + 10, NULL, 10);
    }
    build_apply(state, &command);
}

static void the_difference_of_any_two_revisions_is_complete(void **unused)
{
    struct catalog_state *state = build_state(3);
    struct catalog *history[N_HISTORY + 1] = {NULL};
    struct prng prng;

    (void)unused;
    prng_init(&prng, 31);
    for (size_t i = 1; i <= N_HISTORY; i++) {
        for (unsigned j = 0; j < (i == 1 ? 300 : i % 5 + 1); j++) {
            random_write(&prng, state);
        }
        history[i] = catalog_state_catalog(state);
    }
    for (size_t i = 0; i <= N_HISTORY; i++) {
        for (size_t j = 1; j <= N_HISTORY; j++) {
            struct seen seen = {.before = history[i], .after = history[j], .last_slot = -1};
            const struct catalog_diff_hooks hooks = {
                .user = &seen, .group = see_group, .target = see_target};

            catalog_diff(history[i], history[j], &hooks);
            assert_int_equal(seen.n_groups, count_groups(history[i], history[j]));
            assert_int_equal(seen.n_targets, count_targets(history[i], history[j]));
        }
    }
    for (size_t i = 1; i <= N_HISTORY; i++) {
        catalog_unref(history[i]);
    }
    catalog_state_free(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_difference_of_any_two_revisions_is_complete),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
