/* Random histories (row 1.3, I-4): a state that went through a snapshot, and one that got every
 * command through the codec, end in the same bytes as the one that just went on. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/base/prng.h"
#include "common/model/profile.h"
#include "tests/lib/catalog_builder.h"

#define N_SEEDS 60
#define N_COMMANDS 120

/* --- random commands; small numbers of names, so that they meet --- */

static void random_text(struct prng *prng, char *to, const char *prefix, unsigned n)
{
    sprintf(to, "%s%u", prefix, (unsigned)prng_below(prng, n));
}

static void random_at(struct prng *prng, char *to)
{
    sprintf(to, "10.0.%u.%u:80", (unsigned)prng_below(prng, 2), 1 + (unsigned)prng_below(prng, 12));
}

static void random_put(struct prng *prng, struct command *command)
{
    struct server_group group;
    char endpoints[400] = "";
    char name[16];
    unsigned n = (unsigned)prng_below(prng, 9);

    random_text(prng, name, "group", 8);
    for (unsigned i = 1; i <= 12 && n > 0; i++) {
        if (prng_below(prng, 2) == 0) {
            sprintf(endpoints + strlen(endpoints), "10.0.0.%u:80 ", i);
            n--;
        }
    }
    build_group(&group, name, endpoints);
    if (prng_below(prng, 3) == 0) {
        profile_check_defaults(PROFILE_NLB, PROTOCOL_TCP, CHECK_TYPE_HTTP, &group.check);
    }
    group.check.interval_ms = 1000 * (1 + (uint32_t)prng_below(prng, 2));
    group.check.port = prng_below(prng, 4) == 0 ? 8080 : 0;
    group.check.is_enabled = prng_below(prng, 8) != 0;
    for (uint32_t i = 0; i < group.n_backends; i++) {
        group.backends[i].weight = (uint8_t)prng_below(prng, 3);
        group.backends[i].admin_state = (uint8_t)prng_below(prng, 4);
    }
    build_put_group(command, &group);
    server_group_close(&group);
}

static void random_change(struct prng *prng, struct command *command, const struct catalog *now)
{
    char name[16];
    char group[16];
    char at[32];

    random_text(prng, group, "group", 8);
    random_text(prng, name, "listener", 6);
    random_at(prng, at);
    switch (prng_below(prng, 20)) {
    case 0:
        build_delete_group(command, group);
        break;
    case 1:
        build_listener(command, name, at, group);
        break;
    case 2:
        build_delete_listener(command, name);
        break;
    case 3:
        build_node(command, 1 + prng_below(prng, 9),
                   (enum raft_role)(1 + prng_below(prng, ROLE_SPARE)));
        break;
    case 4:
        build_delete_node(command, 1 + prng_below(prng, 9));
        break;
    case 5:
        build_key(command, name, KEY_ROLE_VIEWER, (uint8_t)prng_below(prng, 6));
        break;
    case 6:
        build_delete_key(command, name);
        break;
    case 7:
        build_weight(command, group, at, (uint8_t)prng_below(prng, 101));
        break;
    case 8:
    case 9:
        build_admin(command, group, at, (enum admin_state)(1 + prng_below(prng, 3)));
        break;
    case 10:
    case 11:
    case 12:
        build_purge(command, now, group, at);
        break;
    default:
        random_put(prng, command);
        break;
    }
}

static void random_command(struct prng *prng, struct command *command, const struct catalog *now)
{
    unsigned n = prng_below(prng, 3) == 0 ? 1 + (unsigned)prng_below(prng, 4) : 1;

    for (unsigned i = 0; i < n; i++) {
        random_change(prng, command, now);
    }
    command->wall_ms = (int64_t)prng_below(prng, 1000000);
    command->request_id.bytes[0] = 1;
    command->request_id.bytes[1] = (uint8_t)prng_below(prng, 200);
    command->request_id.bytes[2] = (uint8_t)prng_below(prng, 3);
}

/* Forces what R-CFG-2 asks to be forced, half of the time. */
static void maybe_force(struct prng *prng, struct catalog_state *state, struct command *command)
{
    struct apply_answer answer;
    const char *count;

    catalog_check(state, command, &answer);
    if (answer.err == ERR_FORCE && prng_below(prng, 2) == 0) {
        count = strstr(answer.message.text, "the count ");
        assert_non_null(count);
        command->is_forced = true;
        command->forced_count = (uint32_t)strtoul(count + strlen("the count "), NULL, 10);
    }
}

/* --- comparing states --- */

static struct catalog_chunk_view *views_of(const struct catalog_snapshot *snapshot)
{
    size_t n = catalog_snapshot_n_chunks(snapshot);
    struct catalog_chunk_view *views = calloc(n, sizeof *views);

    for (size_t i = 0; i < n; i++) {
        views[i].data = catalog_snapshot_chunk_at(snapshot, i, &views[i].n_bytes);
    }
    return views;
}

static void assert_same_state(struct catalog_state *a, struct catalog_state *b)
{
    struct catalog_snapshot *snapshot_a = catalog_state_snapshot(a);
    struct catalog_snapshot *snapshot_b = catalog_state_snapshot(b);
    size_t n = catalog_snapshot_n_chunks(snapshot_a);

    assert_int_equal(n, catalog_snapshot_n_chunks(snapshot_b));
    for (size_t i = 0; i < n; i++) {
        size_t n_bytes_a;
        size_t n_bytes_b;
        const uint8_t *data_a = catalog_snapshot_chunk_at(snapshot_a, i, &n_bytes_a);
        const uint8_t *data_b = catalog_snapshot_chunk_at(snapshot_b, i, &n_bytes_b);

        assert_int_equal(n_bytes_a, n_bytes_b);
        assert_memory_equal(data_a, data_b, n_bytes_a);
    }
    catalog_snapshot_free(snapshot_a);
    catalog_snapshot_free(snapshot_b);
}

static void assert_same_targets(struct catalog_state *a, struct catalog_state *b)
{
    struct catalog *catalog_a = catalog_state_catalog(a);
    struct catalog *catalog_b = catalog_state_catalog(b);
    struct hash128 hash_a = catalog_state_hash(catalog_a);
    struct hash128 hash_b = catalog_state_hash(catalog_b);

    assert_memory_equal(&hash_a, &hash_b, sizeof hash_a);
    assert_int_equal(catalog_n_slots(catalog_a), catalog_n_slots(catalog_b));
    assert_int_equal(catalog_n_rows(catalog_a), catalog_n_rows(catalog_b));
    for (uint32_t slot = 0; slot < catalog_n_slots(catalog_a); slot++) {
        const struct catalog_target *target_a = catalog_target_at(catalog_a, slot);
        const struct catalog_target *target_b = catalog_target_at(catalog_b, slot);

        assert_true((target_a == NULL) == (target_b == NULL));
        if (target_a != NULL) {
            assert_int_equal(target_a->id.birth, target_b->id.birth);
            assert_int_equal(target_a->n_users, target_b->n_users);
            assert_memory_equal(&target_a->definition_hash, &target_b->definition_hash,
                                sizeof target_a->definition_hash);
        }
    }
    struct hash128 digest_a = catalog_chunk_digest(catalog_a, 0);
    struct hash128 digest_b = catalog_chunk_digest(catalog_b, 0);
    assert_memory_equal(&digest_a, &digest_b, sizeof digest_a);
    catalog_unref(catalog_a);
    catalog_unref(catalog_b);
}

/* What every catalog must hold, looked at by brute force. */
static void assert_sound(struct catalog_state *state)
{
    struct catalog *catalog = catalog_state_catalog(state);
    static uint32_t users[LIMIT_TARGETS];
    static uint8_t rows[LIMIT_ROWS];
    uint32_t row_end = 0;
    uint32_t slot_end = 0;

    memset(users, 0, sizeof users);
    memset(rows, 0, sizeof rows);
    for (size_t i = 0; i < catalog_n_groups(catalog); i++) {
        const struct catalog_group *group = catalog_group_at(catalog, i);

        assert_int_equal(rows[group->row.row]++, 0);
        row_end = group->row.row >= row_end ? group->row.row + 1 : row_end;
        for (uint32_t j = 0; j < group->n_backends; j++) {
            const struct catalog_backend *backend = &group->backends[j];
            bool is_probed =
                group->spec.check.is_enabled && backend->spec.admin_state != ADMIN_MAINTENANCE;

            assert_int_equal(rows[backend->row.row]++, 0);
            row_end = backend->row.row >= row_end ? backend->row.row + 1 : row_end;
            assert_true(is_probed == (backend->target.slot != CATALOG_NO_SLOT));
            assert_true(backend->life == LIFE_REMOVING || !group->is_deleted);
            assert_true(
                (backend->drain_revision != 0) ==
                (backend->life == LIFE_REMOVING || backend->spec.admin_state == ADMIN_DRAINING));
            assert_int_not_equal(backend->spec.admin_state, ADMIN_NONE);
            if (is_probed) {
                const struct catalog_target *target =
                    catalog_target_at(catalog, backend->target.slot);

                assert_non_null(target);
                assert_int_equal(target->id.birth, backend->target.birth);
                assert_int_equal(addr_compare(&target->to.addr, &backend->spec.at.addr), 0);
                assert_int_equal(target->check->interval_ms, group->spec.check.interval_ms);
                assert_int_equal(target->check->type, group->spec.check.type);
                users[target->id.slot]++;
                slot_end = target->id.slot >= slot_end ? target->id.slot + 1 : slot_end;
            }
        }
    }
    assert_int_equal(row_end, catalog_n_rows(catalog));
    assert_int_equal(slot_end, catalog_n_slots(catalog));
    for (uint32_t slot = 0; slot < slot_end; slot++) {
        const struct catalog_target *target = catalog_target_at(catalog, slot);

        assert_int_equal(target != NULL ? target->n_users : 0, users[slot]);
    }
    for (size_t i = 0; i < catalog_n_listeners(catalog); i++) {
        const struct catalog_listener *listener = catalog_listener_at(catalog, i);
        const struct catalog_group *group = catalog_group_find(catalog, listener->spec.group);

        assert_non_null(group);
        assert_false(group->is_deleted);
        assert_int_equal(group->id, listener->group_id);
    }
    catalog_unref(catalog);
}

/* --- the histories --- */

static struct catalog_state *restored_copy(struct catalog_state *state)
{
    struct catalog_snapshot *snapshot = catalog_state_snapshot(state);
    struct catalog_chunk_view *views = views_of(snapshot);
    struct catalog_state *copy = catalog_state_new();
    struct errmsg err;
    int rc = catalog_state_restore(copy, views, catalog_snapshot_n_chunks(snapshot), &err);

    if (rc != 0) {
        fail_msg("%s", err.text);
    }
    free(views);
    catalog_snapshot_free(snapshot);
    return copy;
}

/* decode(encode(command)), checking that the bytes are the only ones. */
static void through_codec(const struct command *command, struct command *ret_command)
{
    uint8_t *data;
    uint8_t *again;
    size_t n_bytes;
    size_t n_again;
    struct errmsg err;

    assert_int_equal(command_encode(command, &data, &n_bytes, &err), 0);
    assert_int_equal(n_bytes % 8, 0);
    assert_int_equal(command_decode(data, n_bytes, ret_command, &err), 0);
    assert_int_equal(command_encode(ret_command, &again, &n_again, &err), 0);
    assert_int_equal(n_bytes, n_again);
    assert_memory_equal(data, again, n_bytes);
    free(data);
    free(again);
}

static unsigned run_history(uint64_t seed)
{
    struct prng prng;
    struct catalog_state *straight = build_state(3);
    struct catalog_state *by_codec = build_state(3);
    struct catalog_state *restored = NULL;
    unsigned n_applied = 0;

    prng_init(&prng, seed);
    for (unsigned i = 0; i < N_COMMANDS; i++) {
        struct command command = {0};
        struct command decoded;
        struct catalog *now = catalog_state_catalog(straight);
        struct apply_answer checked;
        struct apply_answer answers[3];

        random_command(&prng, &command, now);
        catalog_unref(now);
        maybe_force(&prng, straight, &command);
        through_codec(&command, &decoded);
        catalog_check(straight, &command, &checked);
        catalog_apply(straight, &command, &answers[0]);
        catalog_apply(by_codec, &decoded, &answers[1]);
        /* R-CFG-1: the check at propose and the apply say the same, to the letter. */
        assert_memory_equal(&checked, &answers[0], sizeof checked);
        assert_memory_equal(&answers[0], &answers[1], sizeof checked);
        if (restored != NULL) {
            catalog_apply(restored, &decoded, &answers[2]);
            assert_memory_equal(&answers[0], &answers[2], sizeof checked);
            assert_same_targets(straight, restored);
        }
        /* Again and again from a copy of the copy. */
        if (prng_below(&prng, 25) == 0) {
            struct catalog_state *copy = restored_copy(restored != NULL ? restored : straight);

            catalog_state_free(restored);
            restored = copy;
        }
        n_applied += answers[0].err == 0 && !answers[0].is_repeat;
        assert_same_targets(straight, by_codec);
        assert_sound(straight);
        command_close(&command);
        command_close(&decoded);
    }
    assert_same_state(straight, by_codec);
    if (restored != NULL) {
        assert_same_state(straight, restored);
    }
    catalog_state_free(straight);
    catalog_state_free(by_codec);
    catalog_state_free(restored);
    return n_applied;
}

static void states_are_equal_through_codec_and_snapshot(void **unused)
{
    unsigned n_applied = 0;

    (void)unused;
    for (uint64_t seed = 1; seed <= N_SEEDS; seed++) {
        n_applied += run_history(seed);
    }
    printf("%u histories of %u commands, %u applied\n", N_SEEDS, N_COMMANDS, n_applied);
    assert_true(n_applied > N_SEEDS * N_COMMANDS / 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(states_are_equal_through_codec_and_snapshot),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
