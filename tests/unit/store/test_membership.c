#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/store/membership.h"

/* "1v 2s" : ids with role v(oter), s(tandby), p(spare). */
static void make_conf(const char *text, struct raft_configuration *conf)
{
    raft_configuration_init(conf);
    for (; *text != '\0'; text += text[2] == '\0' ? 2 : 3) {
        char address[16];
        int role = text[1] == 'v' ? RAFT_VOTER : text[1] == 's' ? RAFT_STANDBY : RAFT_SPARE;

        snprintf(address, sizeof address, "node-%c", text[0]);
        assert_int_equal(raft_configuration_add(conf, (raft_id)(text[0] - '0'), address, role), 0);
    }
}

static void make_wanted(const char *text, struct store_members *wanted)
{
    memset(wanted, 0, sizeof *wanted);
    for (; *text != '\0'; text += text[2] == '\0' ? 2 : 3) {
        struct member_node *node = &wanted->nodes[wanted->n_nodes++];

        node->node_id = (uint64_t)(text[0] - '0');
        node->role = text[1] == 'v' ? ROLE_VOTER : text[1] == 's' ? ROLE_STANDBY : ROLE_SPARE;
    }
}

static void format(const struct membership_step *step, char text[8])
{
    const char *changes = ".+=-";
    char role = step->raft_role == RAFT_VOTER ? 'v' : step->raft_role == RAFT_STANDBY ? 's' : 'p';

    snprintf(text, 8, "%c%c%c ", changes[step->change], (char)('0' + step->node_id), role);
}

static void steps_lead_from_raft_to_the_state(void **state)
{
    static const struct {
        const char *raft;
        const char *state;
        const char *steps;
    } rows[] = {
        {"1v", "1v", ""},
        {"1v", "", ""}, /* before the first command */
        {"1v", "1v 2v 3v", "+2p +3p "},
        {"1v 2p 3p", "1v 2v 3s", "=2v =3s "},
        {"1v 2v 3v", "1v 2v", "-3v "},
        {"1v 2v 3v", "1v 2v 3s", "=3s "},
        {"1v 2v 3v 4s", "1v 2v 4v", "-3v =4v "},
        {"1v 2v", "2v 3v", "-1v +3p "},
        {"1v", "2v", "+2p "},    /* never without a voter: the new one comes first */
        {"1v 2p", "2v", "=2v "}, /* and is promoted before the old one goes */
        {"1v", "1s 2v", "+2p "},
        {"1v 2v", "1s 2v", "=1s "},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct store_members *wanted = malloc(sizeof *wanted);
        struct raft_configuration conf;
        struct membership_step steps[8];
        char text[80] = "";

        make_conf(rows[i].raft, &conf);
        make_wanted(rows[i].state, wanted);
        uint32_t n = membership_steps(&conf, wanted, 8, steps);
        for (uint32_t k = 0; k < n; k++) {
            format(&steps[k], text + strlen(text));
        }
        assert_string_equal(text, rows[i].steps);
        raft_configuration_close(&conf);
        free(wanted);
    }
}

static void no_more_steps_than_asked_for(void **state)
{
    struct store_members *wanted = malloc(sizeof *wanted);
    struct raft_configuration conf;
    struct membership_step steps[2];

    (void)state;
    make_conf("1v", &conf);
    make_wanted("1v 2v 3v 4v 5v", wanted);
    assert_int_equal(membership_steps(&conf, wanted, 2, steps), 2);
    raft_configuration_close(&conf);
    free(wanted);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_lead_from_raft_to_the_state),
        cmocka_unit_test(no_more_steps_than_asked_for),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
