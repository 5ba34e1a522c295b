/* Each bound of the catalog is reached and refused by name (row 1.17); what the limits allow fits
 * into chunks and snapshots. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/model/profile.h"
#include "tests/lib/catalog_builder.h"

static char *endpoints_of(unsigned net, unsigned n)
{
    char *endpoints = calloc(n + 1, 32);
    size_t used = 0;

    for (unsigned i = 0; i < n; i++) {
        used += (size_t)sprintf(endpoints + used, "10.%u.%u.%u:80 ", net, i / 250, 1 + i % 250);
    }
    return endpoints;
}

static void add_group(struct command *command, unsigned number, unsigned net, unsigned n,
                      bool is_checked)
{
    char name[16];
    char *endpoints = endpoints_of(net, n);

    sprintf(name, "group%u", number);
    build_put(command, name, endpoints);
    command->changes[command->n_changes - 1].u.group->check.is_enabled = is_checked;
    free(endpoints);
}

/* Apply with whatever force it needs. */
static struct apply_answer force(struct catalog_state *state, struct command *command)
{
    struct apply_answer answer;

    catalog_check(state, command, &answer);
    if (answer.err == ERR_FORCE) {
        command->is_forced = true;
        command->forced_count =
            (uint32_t)strtoul(strstr(answer.message.text, "the count ") + 10, NULL, 10);
    }
    answer = build_apply(state, command);
    return answer;
}

static void put_groups(struct catalog_state *state, unsigned first, unsigned n_groups,
                       unsigned n_each, bool is_checked)
{
    for (unsigned i = 0; i < n_groups; i++) {
        struct command command = {0};

        add_group(&command, first + i, (first + i) % 250, n_each, is_checked);
        build_commit(state, &command);
    }
}

static void delete_groups(struct catalog_state *state, unsigned first, unsigned n_groups)
{
    struct command command = {0};
    char name[16];

    for (unsigned i = 0; i < n_groups; i++) {
        sprintf(name, "group%u", first + i);
        build_delete_group(&command, name);
    }
    assert_int_equal(force(state, &command).err, 0);
}

static void expect_limit(struct catalog_state *state, struct command *command, const char *sentence)
{
    struct apply_answer answer = force(state, command);

    if (answer.err != ERR_LIMIT || strcmp(answer.message.text, sentence) != 0) {
        fail_msg("expected: %s\n     got: %s", sentence, answer.message.text);
    }
}

static void groups_and_listeners(void **unused)
{
    struct catalog_state *state = build_state(3);
    struct command command = {0};
    char name[16];
    char at[32];

    (void)unused;
    for (unsigned i = 0; i < LIMIT_GROUPS; i++) {
        add_group(&command, i, 0, 0, true);
    }
    build_commit(state, &command);
    add_group(&command, LIMIT_GROUPS, 0, 0, true);
    expect_limit(state, &command, "the cluster would have 10001 server groups, the limit is 10000");
    for (unsigned i = 0; i < LIMIT_LISTENERS; i++) {
        sprintf(name, "front%u", i);
        sprintf(at, "192.0.2.%u:%u", i % 250, 1000 + i / 250);
        build_listener(&command, name, at, "group0");
    }
    build_commit(state, &command);
    build_listener(&command, "more", "192.0.2.1:80", "group0");
    expect_limit(state, &command, "the cluster would have 10001 listeners, the limit is 10000");
    /* One out, one in. */
    build_delete_listener(&command, "front7");
    build_listener(&command, "more", "192.0.2.1:80", "group0");
    build_commit(state, &command);
    catalog_state_free(state);
}

static void backends_and_targets(void **unused)
{
    struct catalog_state *state = build_state(3);
    struct command command = {0};

    (void)unused;
    put_groups(state, 0, 100, 1000, true);
    add_group(&command, 100, 100, 1, true);
    expect_limit(state, &command, "the cluster would have 100001 backends, the limit is 100000");
    /* Removed ones are still probed. 131,072 - 100,000 more are possible, not one over. */
    delete_groups(state, 0, 32);
    put_groups(state, 100, 31, 1000, true);
    add_group(&command, 131, 131, 73, true);
    expect_limit(state, &command,
                 "the cluster would have 131073 targets to probe, the limit is 131072");
    add_group(&command, 131, 131, 72, true);
    build_commit(state, &command);
    /* The same targets in another group are no more targets. */
    add_group(&command, 132, 130, 900, true);
    build_commit(state, &command);
    /* A slot that comes free in the same command may be used. */
    add_group(&command, 131, 131, 72, false);
    add_group(&command, 133, 133, 25, true);
    build_commit(state, &command);
    struct catalog *catalog = catalog_state_catalog(state);
    assert_int_equal(catalog_n_slots(catalog), LIMIT_TARGETS - 72 + 25);
    catalog_unref(catalog);
    catalog_state_free(state);
}

static void rows(void **unused)
{
    struct catalog_state *state = build_state(3);
    struct command command = {0};

    (void)unused;
    put_groups(state, 0, 100, 1000, false);
    delete_groups(state, 0, 100);
    put_groups(state, 100, 100, 1000, false);
    delete_groups(state, 100, 100);
    put_groups(state, 200, 61, 1000, false);
    /* 261 groups with 261,000 backends; 883 rows are left. */
    add_group(&command, 300, 5, 883, false);
    expect_limit(state, &command,
                 "the cluster would have 262145 server groups and backends, with those being "
                 "removed, the limit is 262144");
    add_group(&command, 300, 5, 882, false);
    build_commit(state, &command);
    struct catalog *catalog = catalog_state_catalog(state);
    assert_int_equal(catalog_n_rows(catalog), LIMIT_ROWS);
    catalog_unref(catalog);
    catalog_state_free(state);
}

static void backends_being_removed_in_one_group(void **unused)
{
    struct catalog_state *state = build_state(3);
    struct command command = {0};

    (void)unused;
    put_groups(state, 0, 1, 1000, true);
    put_groups(state, 1, 1, 1, true);
    add_group(&command, 0, 1, 1000, true);
    assert_int_equal(force(state, &command).err, 0);
    add_group(&command, 0, 2, 1, true);
    expect_limit(state, &command,
                 "server group \"group0\": 2001 backends with those still being removed, the limit "
                 "is 2000: wait for removals to end");
    catalog_state_free(state);
}

static void members_and_keys(void **unused)
{
    struct catalog_state *state = build_state(3);
    struct command command = {0};
    char name[16];

    (void)unused;
    for (unsigned i = 0; i < LIMIT_KEYS; i++) {
        struct access_key *key;

        sprintf(name, "key%u", i);
        key = build_key(&command, name, KEY_ROLE_VIEWER, 9)->u.key;
        key->key.bytes[2] = (uint8_t)i;
        key->key.bytes[3] = (uint8_t)(i >> 8);
    }
    expect_limit(state, &command, "key \"key255\": the cluster has 256 keys, the limit is 256");
    /* Node ids that were removed are remembered up to a bound. */
    for (uint64_t id = 10; id < 10 + LIMIT_RETIRED_NODES; id++) {
        build_node(&command, id, ROLE_SPARE);
        build_commit(state, &command);
        build_delete_node(&command, id);
        build_commit(state, &command);
    }
    build_node(&command, 9000, ROLE_SPARE);
    build_commit(state, &command);
    build_delete_node(&command, 9000);
    expect_limit(state, &command,
                 "4096 node ids were used and removed, the limit is 4096: make a new cluster");
    catalog_state_free(state);
}

/* The largest objects: each chunk within its limit, and the worst catalog within a snapshot. */
static void the_largest_objects_fit(void **unused)
{
    struct catalog_state *state = build_state(3);
    struct command command = {0};
    struct server_group group;
    char *endpoints = endpoints_of(1, 1000);
    size_t group_bytes = 0;

    (void)unused;
    build_group(&group, "web", endpoints);
    free(endpoints);
    memset(group.name, 'g', LIMIT_NAME_BYTES);
    profile_check_defaults(PROFILE_NLB, PROTOCOL_TCP, CHECK_TYPE_HTTP, &group.check);
    memset(group.check.http.path, '/', LIMIT_PATH_BYTES);
    memset(group.check.http.domain, 'd', LIMIT_DOMAIN_BYTES);
    group.check.http.host = HTTP_HOST_DOMAIN;
    group.n_labels = LIMIT_LABELS;
    for (unsigned i = 0; i < LIMIT_LABELS; i++) {
        memset(group.labels[i].key, 'a' + (int)i, LIMIT_LABEL_KEY_BYTES);
        memset(group.labels[i].value, 'v', LIMIT_LABEL_VALUE_BYTES);
    }
    for (uint32_t i = 0; i < group.n_backends; i++) {
        uint8_t *bytes = group.backends[i].at.addr.bytes;

        memmove(bytes + 12, bytes, 4); /* as wide as addresses are */
        memset(bytes, 0xfd, 12);
        group.backends[i].at.addr.family = ADDR_IPV6;
        memset(group.backends[i].zone, 'z', LIMIT_ZONE_BYTES);
        memset(group.backends[i].description, 'd', LIMIT_DESCRIPTION_BYTES);
    }
    build_put_group(&command, &group);
    server_group_close(&group);
    build_commit(state, &command);
    struct catalog *catalog = catalog_state_catalog(state);
    for (size_t i = 0; i < catalog_n_chunks(catalog); i++) {
        size_t n_bytes;

        catalog_chunk_at(catalog, i, &n_bytes);
        assert_true(n_bytes <= LIMIT_CHUNK_BYTES / 2);
        group_bytes = i >= 4 ? group_bytes + n_bytes : group_bytes;
    }
    /* Every row a backend of this size, every group with these labels. */
    size_t backend_bytes = group_bytes / 1000;
    size_t worst = backend_bytes * LIMIT_ROWS + (size_t)6000 * LIMIT_GROUPS +
                   (size_t)400 * LIMIT_LISTENERS + (size_t)600 * LIMIT_REQUEST_IDS;
    printf("largest backend %zu bytes, worst snapshot %zu MiB\n", backend_bytes, worst >> 20);
    assert_in_range(backend_bytes, 200, 260);
    assert_true(worst < LIMIT_SNAPSHOT_BYTES);
    catalog_unref(catalog);
    catalog_state_free(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(groups_and_listeners),
        cmocka_unit_test(backends_and_targets),
        cmocka_unit_test(rows),
        cmocka_unit_test(backends_being_removed_in_one_group),
        cmocka_unit_test(members_and_keys),
        cmocka_unit_test(the_largest_objects_fit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
