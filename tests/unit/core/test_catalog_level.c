/* Feature levels: a cluster of different versions keeps one catalog (agent/core/catalog_codec.h).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/core/catalog_apply.h"
#include "common/model/feature_level.h"
#include "tests/lib/catalog_builder.h"

/* A cluster that an older version made: nothing in it needs more than the base. */
static struct catalog_state *old_cluster(void)
{
    struct catalog_state *state = catalog_state_new();
    struct command command = {0};

    build_init(&command, 3)->u.init->feature_level = FEATURE_LEVEL_BASE;
    build_commit(state, &command);
    return state;
}

static void raise_to(struct catalog_state *state, uint8_t level, struct apply_answer *answer)
{
    struct change change = {.kind = CHANGE_RAISE_LEVEL, .u.feature_level = level};
    const struct command command = {.changes = &change, .n_changes = 1};

    catalog_apply(state, &command, answer);
}

static uint8_t level_of(struct catalog_state *state)
{
    struct catalog *catalog = catalog_state_catalog(state);
    uint8_t level = catalog_feature_level(catalog);

    catalog_unref(catalog);
    return level;
}

static void a_new_cluster_has_the_level_of_the_node_that_makes_it(void **unused)
{
    struct catalog_state *state = build_state(3);

    (void)unused;
    assert_int_equal(level_of(state), FEATURE_LEVEL);
    catalog_state_free(state);
    state = old_cluster();
    assert_int_equal(level_of(state), FEATURE_LEVEL_BASE);
    catalog_state_free(state);
}

static void the_level_rises_and_never_falls(void **unused)
{
    struct catalog_state *state = old_cluster();
    struct apply_answer answer;
    struct command command = {0};

    (void)unused;
    raise_to(state, FEATURE_LEVEL, &answer);
    assert_int_equal(answer.err, 0);
    assert_int_equal(answer.revision, 2);
    raise_to(state, FEATURE_LEVEL, &answer);
    assert_int_equal(answer.revision, 2);
    raise_to(state, FEATURE_LEVEL_BASE, &answer);
    assert_int_equal(answer.err, 0);
    assert_int_equal(answer.revision, 2);
    assert_int_equal(level_of(state), FEATURE_LEVEL);
    build_hold(&command, "", true); /* other settings leave it alone */
    build_commit(state, &command);
    assert_int_equal(level_of(state), FEATURE_LEVEL);
    catalog_state_free(state);
}

static void the_level_is_that_of_the_oldest_member_and_silence_is_none(void **unused)
{
    struct catalog_state *state = old_cluster();
    struct catalog *catalog = catalog_state_catalog(state);
    const uint8_t high = FEATURE_LEVEL + 1;

    (void)unused;
    assert_int_equal(catalog_level_due(catalog, (uint8_t[]){high, high, high}), high);
    assert_int_equal(catalog_level_due(catalog, (uint8_t[]){high, FEATURE_LEVEL, high}),
                     FEATURE_LEVEL);
    assert_int_equal(catalog_level_due(catalog, (uint8_t[]){high, FEATURE_LEVEL_BASE, high}), 0);
    assert_int_equal(catalog_level_due(catalog, (uint8_t[]){high, 0, high}), 0);
    catalog_unref(catalog);
    catalog_state_free(state);
}

/* Each version encodes what the older one knows in the older one's bytes, so the hashes agree
 * while the nodes are upgraded one after the other. */
static void what_an_older_version_knows_is_encoded_as_it_does(void **unused)
{
    struct command command = {0};
    uint8_t *data;
    size_t n_bytes;

    (void)unused;
    build_put(&command, "web", "10.0.0.1:80");
    build_hold(&command, "web", true);
    assert_int_equal(command_encode(&command, &data, &n_bytes, NULL), 0);
    assert_int_equal(data[5], FEATURE_LEVEL_BASE);
    free(data);
    command_close(&command);
    build_init(&command, 3);
    assert_int_equal(command_encode(&command, &data, &n_bytes, NULL), 0);
    assert_int_equal(data[5], FEATURE_LEVEL);
    free(data);
    command_close(&command);
}

/* An older version would probe from another address and not know it: profile clb waits for all, or
 * says `source: node`. Its check without the field has the bytes that it had. */
static void the_source_of_profile_clb_waits_for_the_oldest_member(void **unused)
{
    struct catalog_state *state = old_cluster();
    struct command command = {0};
    struct server_group group;

    (void)unused;
    build_group(&group, "web", "10.0.0.1:80");
    group.profile = PROFILE_CLB;
    group.check.source = CHECK_SOURCE_SHARED_SPACE;
    build_put_group(&command, &group);
    struct apply_answer answer = build_apply(state, &command);
    assert_int_equal(answer.err, ERR_NOTREADY);
    assert_non_null(strstr(answer.message.text,
                           "server group \"web\": spec.check.source needs feature "
                           "level 3 and the cluster is at"));
    group.check.source = CHECK_SOURCE_NODE;
    build_put_group(&command, &group);
    assert_int_equal(feature_level_of_command(&command), FEATURE_LEVEL_BASE);
    build_commit(state, &command);
    server_group_close(&group);
    catalog_state_free(state);
}

static void drain_and_remove(struct catalog_state *state, struct catalog_backend *ret_backend)
{
    struct command command = {0};
    struct endpoint at = build_endpoint("10.0.0.3:80");

    build_put(&command, "web", "10.0.0.1:80 10.0.0.2:80 10.0.0.3:80");
    build_commit(state, &command);
    command = (struct command){0};
    struct change *change = build_admin(&command, "web", "10.0.0.3:80", ADMIN_DRAINING);
    change->u.backend->has_drain_timeout = true;
    change->u.backend->drain_timeout_ms = 8000;
    build_commit(state, &command);
    command = (struct command){0};
    build_put(&command, "web", "10.0.0.1:80 10.0.0.2:80");
    build_commit(state, &command);
    struct catalog *catalog = catalog_state_catalog(state);
    *ret_backend = *catalog_backend_find(catalog_group_find(catalog, "web"), &at);
    catalog_unref(catalog);
}

/* A command must come to the same on a node of either version. */
static void a_removal_ends_a_drain_as_long_as_an_older_version_is_there(void **unused)
{
    struct catalog_state *state = old_cluster();
    struct catalog_backend backend;

    (void)unused;
    drain_and_remove(state, &backend);
    assert_int_equal(backend.drain_revision, 4);
    assert_int_equal(backend.drain_timeout_ms, 300000);
    catalog_state_free(state);

    state = build_state(3);
    drain_and_remove(state, &backend);
    assert_int_equal(backend.life, LIFE_REMOVING);
    assert_int_equal(backend.drain_revision, 3);
    assert_int_equal(backend.drain_timeout_ms, 8000);
    catalog_state_free(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_new_cluster_has_the_level_of_the_node_that_makes_it),
        cmocka_unit_test(the_level_rises_and_never_falls),
        cmocka_unit_test(the_level_is_that_of_the_oldest_member_and_silence_is_none),
        cmocka_unit_test(what_an_older_version_knows_is_encoded_as_it_does),
        cmocka_unit_test(the_source_of_profile_clb_waits_for_the_oldest_member),
        cmocka_unit_test(a_removal_ends_a_drain_as_long_as_an_older_version_is_there),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
