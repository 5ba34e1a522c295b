/* What is said of a data plane, by status and by ready.
 * ctest labels: twin */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "agent/rpc/plane_trouble.h"
#include "common/base/plant.h"
#include "common/base/units.h"

static const struct plane_look alive = {
    .name = "jury-shim", .state = RPC_PLANE_ALIVE, .problem = ""};
static const struct plane_look absent = {
    .name = "jury-shim", .state = RPC_PLANE_ABSENT, .age_ns = 12500 * NS_PER_MS, .problem = ""};

static struct rpc_ready_check check_of(const struct plane_look looks[], size_t n)
{
    struct plane_tally tally = {0};
    struct rpc_ready_check check = {.is_ok = false};

    for (size_t i = 0; i < n; i++) {
        plane_tally_add(&tally, &looks[i]);
    }
    plane_tally_check(&tally, &check);
    return check;
}

static void each_state_of_a_data_plane_has_its_sentence(void **state)
{
    static const struct {
        struct plane_look look;
        const char *text; /* NULL: no trouble */
    } rows[] = {
        {{.name = "own", .state = RPC_PLANE_ALIVE, .problem = ""}, NULL},
        {{.name = "own", .state = RPC_PLANE_ABSENT, .age_ns = 90 * NS_PER_SECOND, .problem = ""},
         "data plane own is absent, its last heartbeat was 1m30s ago: start it, or remove its "
         "status file if it is not to come back"},
        {{.name = "own", .state = RPC_PLANE_ABSENT, .age_ns = RPC_NEVER_NS, .problem = ""},
         "data plane own is absent, without a heartbeat since this machine was started: start it, "
         "or remove its status file if it is not to come back"},
        {{.name = "own", .state = RPC_PLANE_REFUSED, .problem = "cut short"}, "cut short"},
        {{.name = "own", .state = RPC_PLANE_GONE, .problem = "was removed"}, "was removed"},
        {{.name = "own", .state = RPC_PLANE_NONE, .problem = ""},
         "it is not known how data plane own is"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct errmsg text;

        assert_int_equal(plane_trouble(&rows[i].look, &text), rows[i].text != NULL);
        assert_string_equal(text.text, rows[i].text != NULL ? rows[i].text : "");
    }
}

/* The shim was killed, and `ready` went on with 0: the address stayed on a node that is dead. */
static void node_whose_data_plane_is_absent_is_not_ready(void **state)
{
    const struct plane_look both[] = {absent, alive, absent};

    (void)state;
    struct rpc_ready_check check = check_of(both, 2);
    assert_false(check.is_ok);
    assert_string_equal(check.message.text,
                        "data plane jury-shim is absent, its last heartbeat was 12.50s ago: start "
                        "it, or remove its status file if it is not to come back");
    check = check_of(both, 3);
    assert_false(check.is_ok);
    assert_non_null(strstr(check.message.text, " (and so on of 1 more)"));
}

static void node_whose_data_planes_live_is_ready_and_nothing_is_said(void **state)
{
    const struct plane_look both[] = {alive, alive};

    (void)state;
    struct rpc_ready_check check = check_of(both, 2);
    assert_true(check.is_ok);
    assert_string_equal(check.message.text, "");
}

static void node_that_never_had_a_data_plane_is_ready_and_says_so(void **state)
{
    (void)state;
    struct rpc_ready_check check = check_of(NULL, 0);
    assert_true(check.is_ok);
    assert_string_equal(check.message.text, "no data plane has attached: this node only judges");
}

#ifdef JURY_PLANTS
static void twin_ready_without_its_data_plane_is_caught(void **state)
{
    (void)state;
    plant_set("ready-without-data-plane");
    bool is_ok = check_of(&absent, 1).is_ok;
    plant_set(NULL);
    assert_true(is_ok);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_state_of_a_data_plane_has_its_sentence),
        cmocka_unit_test(node_whose_data_plane_is_absent_is_not_ready),
        cmocka_unit_test(node_whose_data_planes_live_is_ready_and_nothing_is_said),
        cmocka_unit_test(node_that_never_had_a_data_plane_is_ready_and_says_so),
#ifdef JURY_PLANTS
        cmocka_unit_test(twin_ready_without_its_data_plane_is_caught),
#endif
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
