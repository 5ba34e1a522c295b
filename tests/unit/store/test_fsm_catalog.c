/* The catalog behind the store's table of functions, without Raft. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "agent/store/fsm_catalog.h"
#include "agent/store/snapshot_blob.h"
#include "tests/lib/catalog_builder.h"

/* Through bytes, as it goes through the log. */
static struct apply_answer apply(struct fsm_catalog *catalog, struct command *command)
{
    struct store_completion completion = {.outcome = STORE_DONE};
    struct apply_answer answer = {0};
    uint8_t *data = NULL;
    size_t n_bytes = 0;
    struct errmsg err;

    assert_int_equal(command_encode(command, &data, &n_bytes, &err), 0);
    assert_int_equal(catalog->fsm.understands(catalog, data, n_bytes, &err), 0);
    assert_int_equal(catalog->fsm.apply(catalog, data, n_bytes, &completion.answer,
                                        &completion.n_answer_bytes, &err),
                     0);
    assert_true(fsm_catalog_answer(&completion, &answer));
    store_completion_close(&completion);
    free(data);
    command_close(command);
    return answer;
}

static void fill(struct fsm_catalog *catalog)
{
    struct command init = {0}, put = {0};

    assert_int_equal(fsm_catalog_init(catalog), 0);
    build_init(&init, 3);
    assert_int_equal(apply(catalog, &init).err, 0);
    build_put(&put, "web", "10.0.0.1:80 10.0.0.2:80");
    put.request_id.bytes[0] = 1;
    assert_int_equal(apply(catalog, &put).err, 0);
}

static void members_and_revision_are_those_of_the_catalog(void **state)
{
    struct fsm_catalog catalog;
    struct store_members *members = calloc(1, sizeof *members);

    (void)state;
    fill(&catalog);
    assert_int_equal(catalog.fsm.revision(&catalog), 2);
    catalog.fsm.members(&catalog, members);
    assert_int_equal(members->n_nodes, 3);
    assert_int_equal(members->nodes[2].node_id, 3);
    assert_int_equal(members->nodes[2].role, ROLE_VOTER);
    struct catalog *published = catalog.fsm.publish(&catalog);
    assert_int_equal(catalog_revision(published), 2);
    assert_non_null(catalog_group_find(published, "web"));
    catalog.fsm.unpublish(published);
    catalog.fsm.reset(&catalog);
    assert_int_equal(catalog.fsm.revision(&catalog), 0);
    free(members);
    fsm_catalog_close(&catalog);
}

static void image_gives_an_equal_state_with_its_answers(void **state)
{
    struct fsm_catalog catalog, other;
    struct command again = {0};
    struct raft_buffer image;
    struct errmsg err;

    (void)state;
    fill(&catalog);
    assert_int_equal(fsm_catalog_init(&other), 0);
    assert_int_equal(snapshot_image_make(&catalog.fsm, &image, &err), 0);
    assert_int_equal(snapshot_image_restore(&other.fsm, image.base, image.len, &err), 0);
    raft_free(image.base);
    struct hash128 a = catalog.fsm.state_hash(&catalog), b = other.fsm.state_hash(&other);
    assert_memory_equal(&a, &b, sizeof a);
    build_put(&again, "web", "10.0.0.1:80 10.0.0.2:80");
    again.request_id.bytes[0] = 1;
    assert_true(apply(&other, &again).is_repeat); /* a retry after the snapshot */
    fsm_catalog_close(&catalog);
    fsm_catalog_close(&other);
}

static void check_has_the_last_word_on_refusals_and_repeats_only(void **state)
{
    struct fsm_catalog catalog;
    struct command commands[3];
    static const bool is_final[3] = {false, true, true};

    (void)state;
    fill(&catalog);
    memset(commands, 0, sizeof commands);
    build_put(&commands[0], "api", "10.0.0.3:80");
    build_delete_group(&commands[1], "nobody");
    build_put(&commands[2], "web", "10.0.0.1:80 10.0.0.2:80");
    commands[2].request_id.bytes[0] = 1;
    for (size_t i = 0; i < 3; i++) {
        uint8_t *data = NULL, *answer = NULL;
        size_t n_bytes = 0, n_answer = 0;
        struct errmsg err;

        assert_int_equal(command_encode(&commands[i], &data, &n_bytes, &err), 0);
        assert_int_equal(catalog.fsm.check(&catalog, data, n_bytes, &answer, &n_answer),
                         is_final[i]);
        assert_true(is_final[i] == (answer != NULL));
        free(answer);
        free(data);
        command_close(&commands[i]);
    }
    assert_int_equal(catalog.fsm.revision(&catalog), 2);
    fsm_catalog_close(&catalog);
}

static void foreign_bytes_are_not_understood(void **state)
{
    struct fsm_catalog catalog;
    uint8_t bytes[64] = {0};
    struct errmsg err;

    (void)state;
    assert_int_equal(fsm_catalog_init(&catalog), 0);
    assert_int_not_equal(catalog.fsm.understands(&catalog, bytes, sizeof bytes, &err), 0);
    fsm_catalog_close(&catalog);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members_and_revision_are_those_of_the_catalog),
        cmocka_unit_test(image_gives_an_equal_state_with_its_answers),
        cmocka_unit_test(check_has_the_last_word_on_refusals_and_repeats_only),
        cmocka_unit_test(foreign_bytes_are_not_understood),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
