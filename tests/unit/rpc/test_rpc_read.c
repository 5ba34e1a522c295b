/* What a node answers about its catalog, its verdicts and itself. */
#include <stdio.h>

#include "jury/v1/cluster.pb-c.h"
#include "jury/v1/event.pb-c.h"
#include "jury/v1/group.pb-c.h"
#include "jury/v1/verdict.pb-c.h"
#include "tests/unit/rpc/rpc_fixture.h"

static void what_was_applied_is_read_back_with_every_default_filled_in(void **state)
{
    struct fixture *fixture = *state;
    struct server_group group, expected;
    struct errmsg err = {{0}};

    apply(fixture, "web", "10.0.0.1:80 10.0.0.2:80");
    Jury__V1__GetGroupRequest *get =
        WIRE_NEW(&fixture->arena, Jury__V1__GetGroupRequest, jury__v1__get_group_request);
    get->name = wire_text(&fixture->arena, "web");
    const struct rpc_world_reply *reply =
        ask(fixture, "GroupService/GetGroup", get, KEY_ROLE_VIEWER);
    Jury__V1__GetGroupResponse *response =
        MESSAGE(fixture, reply, Jury__V1__GetGroupResponse, jury__v1__get_group_response);

    assert_int_equal(wire_group_read(response->group, &group, &err), 0);
    build_group(&expected, "web", "10.0.0.1:80 10.0.0.2:80");
    for (uint32_t i = 0; i < expected.n_backends; i++) {
        expected.backends[i].admin_state = ADMIN_ENABLED;
        assert_memory_equal(&group.backends[i], &expected.backends[i], sizeof group.backends[i]);
    }
    assert_memory_equal(&group.check, &expected.check, sizeof group.check);
    assert_int_equal(reply->revision, 2);
    assert_int_equal(response->changed_revision, 2);
    server_group_close(&group);
    server_group_close(&expected);

    Jury__V1__DescribeGroupRequest *describe =
        WIRE_NEW(&fixture->arena, Jury__V1__DescribeGroupRequest, jury__v1__describe_group_request);
    describe->name = get->name;
    reply = ask(fixture, "GroupService/DescribeGroup", describe, KEY_ROLE_VIEWER);
    Jury__V1__DescribeGroupResponse *description =
        MESSAGE(fixture, reply, Jury__V1__DescribeGroupResponse, jury__v1__describe_group_response);
    /* nlb: T 5 s, I 5 s, U 2 (S89): 15 s; V 1 s. */
    assert_int_equal(description->failure_window->opinion->seconds, 15);
    assert_int_equal(description->failure_window->verdict->seconds, 17);
    assert_int_equal(description->failure_window->verdict->nanos, 100000000);
    assert_int_equal(description->n_backends, 2);
    assert_int_equal(description->backends[0]->verdict->state, HEALTH_INITIAL);
    assert_int_equal(description->summary->n_eligible, 2);
}

static void lists_come_in_pages_that_lose_nothing(void **state)
{
    struct fixture *fixture = *state;
    struct wire_arena *arena = &fixture->arena;
    char name[16];
    size_t n_groups = 0, n_backends = 0, n_pages = 0;

    for (int i = 0; i < 7; i++) {
        snprintf(name, sizeof name, "g%d", i);
        apply(fixture, name, "10.0.0.1:80 10.0.0.2:80 [fd00::1]:80");
    }
    Jury__V1__ListGroupsRequest *groups =
        WIRE_NEW(arena, Jury__V1__ListGroupsRequest, jury__v1__list_groups_request);
    groups->page_size = 3;
    do {
        const struct rpc_world_reply *reply =
            ask(fixture, "GroupService/ListGroups", groups, KEY_ROLE_VIEWER);
        Jury__V1__ListGroupsResponse *response =
            MESSAGE(fixture, reply, Jury__V1__ListGroupsResponse, jury__v1__list_groups_response);

        for (size_t i = 0; i < response->n_groups; i++, n_groups++) {
            snprintf(name, sizeof name, "g%zu", n_groups);
            assert_string_equal(response->groups[i]->name, name);
        }
        groups->page_token = response->next_page_token;
        n_pages++;
    } while (groups->page_token[0] != '\0');
    assert_int_equal(n_groups, 7);
    assert_int_equal(n_pages, 3);

    Jury__V1__ListBackendsRequest *backends =
        WIRE_NEW(arena, Jury__V1__ListBackendsRequest, jury__v1__list_backends_request);
    backends->page_size = 4;
    do {
        const struct rpc_world_reply *reply =
            ask(fixture, "BackendService/ListBackends", backends, KEY_ROLE_VIEWER);
        Jury__V1__ListBackendsResponse *response = MESSAGE(
            fixture, reply, Jury__V1__ListBackendsResponse, jury__v1__list_backends_response);

        n_backends += response->n_backends;
        backends->page_token = response->next_page_token;
    } while (backends->page_token[0] != '\0');
    assert_int_equal(n_backends, 21);

    backends->page_token = wire_text(arena, "nonsense");
    assert_string_equal(
        ask(fixture, "BackendService/ListBackends", backends, KEY_ROLE_VIEWER)->message,
        "page_token is not one that this node gave");
    groups->page_size = 1001;
    assert_string_equal(ask(fixture, "GroupService/ListGroups", groups, KEY_ROLE_VIEWER)->message,
                        "page_size must be 0..1000, got 1001");
}

static void why_names_every_observer_and_what_would_change_it(void **state)
{
    struct fixture *fixture = *state;

    apply(fixture, "web", "10.0.0.1:80 10.0.0.2:80");
    Jury__V1__WhyRequest *request =
        WIRE_NEW(&fixture->arena, Jury__V1__WhyRequest, jury__v1__why_request);
    request->backend = ref(fixture, "web", "10.0.0.1:80");
    const struct rpc_world_reply *reply =
        ask(fixture, "VerdictService/Why", request, KEY_ROLE_VIEWER);
    Jury__V1__WhyResponse *why =
        MESSAGE(fixture, reply, Jury__V1__WhyResponse, jury__v1__why_response);

    assert_int_equal(why->node_id, 1);
    assert_int_equal(why->verdict->state, HEALTH_INITIAL);
    assert_int_equal(why->n_votes, 1);
    assert_true(why->votes[0]->is_self);
    assert_string_equal(why->probing->address, "10.0.0.1");
    assert_int_equal(why->probing->port, 80);
    assert_true(why->next_down->sentence[0] != '\0');
    assert_true(why->next_up->sentence[0] != '\0');
    assert_true(why->sentence[0] != '\0');
    assert_int_equal(fixture->world.nodes[1].n_asked, 1);

    request->backend = ref(fixture, "web", "10.0.0.9:80");
    reply = ask(fixture, "VerdictService/Why", request, KEY_ROLE_VIEWER);
    assert_int_equal(reply->code, ERR_NOTFOUND);
    assert_string_equal(reply->message,
                        "backend 10.0.0.9:80 of server group \"web\" does not exist");
    request->backend = NULL;
    reply = ask(fixture, "VerdictService/Why", request, KEY_ROLE_VIEWER);
    assert_string_equal(reply->message, "backend must be set: group, address and port");
}

static Jury__V1__GetStatusResponse *status_of(struct fixture *fixture)
{
    const struct rpc_world_reply *reply =
        ask(fixture, "ClusterService/GetStatus", NULL, KEY_ROLE_VIEWER);

    return MESSAGE(fixture, reply, Jury__V1__GetStatusResponse, jury__v1__get_status_response);
}

static void a_data_plane_that_cannot_be_read_is_told_in_words_and_never_healthy(void **state)
{
    struct fixture *fixture = *state;
    struct rpc_data_plane *plane = &fixture->world.plane;

    apply(fixture, "web", "10.0.0.1:80");
    *plane =
        (struct rpc_data_plane){.state = RPC_PLANE_REFUSED, .name = "shim", .age_ns = RPC_NEVER_NS};
    errmsg_set(&plane->problem, 0, "status file of data plane \"shim\": cut short");
    Jury__V1__GetStatusResponse *status = status_of(fixture);
    assert_int_equal(status->health, JURY__V1__CLUSTER_HEALTH__CLUSTER_HEALTH_DEGRADED);
    assert_int_equal(status->n_problems, 1);
    assert_string_equal(status->problems[0], plane->problem.text);
    assert_false(status->data_planes[0]->is_alive);
    assert_int_equal(status->data_planes[0]->state,
                     JURY__V1__DATA_PLANE_STATE__DATA_PLANE_STATE_REFUSED);
    assert_null(status->data_planes[0]->age);
}

static void listeners_that_cannot_be_opened_and_have_no_place_are_counted(void **state)
{
    struct fixture *fixture = *state;
    struct rpc_data_plane *plane = &fixture->world.plane;

    apply(fixture, "web", "10.0.0.1:80");
    *plane = (struct rpc_data_plane){.state = RPC_PLANE_ALIVE, .name = "shim"};
    plane->n_failures_all = RPC_LISTENER_FAILURES;
    assert_int_equal(status_of(fixture)->n_problems, 0); /* none of a listener that is there */
    plane->n_failures_all = RPC_LISTENER_FAILURES + 3;
    Jury__V1__GetStatusResponse *status = status_of(fixture);
    assert_int_equal(status->n_problems, 1);
    assert_string_equal(status->problems[0],
                        "and 3 more listeners that data plane shim cannot open");
    assert_int_equal(status->data_planes[0]->failures_total, RPC_LISTENER_FAILURES + 3);
}

static void status_ready_node_events_and_counters_tell_of_the_node(void **state)
{
    struct fixture *fixture = *state;

    apply(fixture, "web", "10.0.0.1:80 10.0.0.2:80");
    const struct rpc_world_reply *reply =
        ask(fixture, "ClusterService/GetStatus", NULL, KEY_ROLE_VIEWER);
    Jury__V1__GetStatusResponse *status =
        MESSAGE(fixture, reply, Jury__V1__GetStatusResponse, jury__v1__get_status_response);
    assert_int_equal(status->health, JURY__V1__CLUSTER_HEALTH__CLUSTER_HEALTH_HEALTHY);
    assert_int_equal(status->n_members, 1);
    assert_true(status->members[0]->is_self && status->members[0]->is_leader);
    assert_int_equal(status->revision, 2);
    assert_int_equal(strlen(status->state_hash), 32);
    assert_int_equal(strlen(status->cluster_id), 32);
    assert_int_equal(status->backends->total, 2);
    assert_int_equal(status->data_planes[0]->flows, 12);

    reply = ask(fixture, "NodeService/CheckReady", NULL, KEY_ROLE_VIEWER);
    Jury__V1__CheckReadyResponse *ready =
        MESSAGE(fixture, reply, Jury__V1__CheckReadyResponse, jury__v1__check_ready_response);
    assert_false(ready->is_ready);
    assert_string_equal(ready->checks[1]->message, "not caught up");

    reply = ask(fixture, "NodeService/DescribeNode", NULL, KEY_ROLE_VIEWER);
    Jury__V1__DescribeNodeResponse *node =
        MESSAGE(fixture, reply, Jury__V1__DescribeNodeResponse, jury__v1__describe_node_response);
    assert_int_equal(node->n_targets, 2);
    assert_int_equal(node->probe_engine->n_capabilities, 2);
    assert_string_equal(node->probe_engine->capabilities[1], "http");

    reply = ask(fixture, "EventService/ListEvents", NULL, KEY_ROLE_VIEWER);
    Jury__V1__ListEventsResponse *events =
        MESSAGE(fixture, reply, Jury__V1__ListEventsResponse, jury__v1__list_events_response);
    assert_true(events->n_events > 0);
    assert_int_equal(events->events[0]->sequence, 1);
    assert_true(events->events[0]->message[0] != '\0');
    assert_int_equal(events->last_sequence, events->events[events->n_events - 1]->sequence);
    for (size_t i = 0; i < events->n_events; i++) {
        print_message("event %s\n", events->events[i]->message);
    }

    reply = ask(fixture, "NodeService/ListCounters", NULL, KEY_ROLE_VIEWER);
    Jury__V1__ListCountersResponse *counters =
        MESSAGE(fixture, reply, Jury__V1__ListCountersResponse, jury__v1__list_counters_response);
    assert_string_equal(counters->counters[0]->name, "rpc_calls");
    assert_int_equal(counters->counters[0]->value, 6);
    assert_true(counters->counters[0]->help[0] != '\0');

    reply = ask(fixture, "ClusterService/ListMembers", NULL, KEY_ROLE_VIEWER);
    assert_int_equal(
        MESSAGE(fixture, reply, Jury__V1__ListMembersResponse, jury__v1__list_members_response)
            ->n_members,
        1);
    reply = ask(fixture, "KeyService/ListKeys", NULL, KEY_ROLE_VIEWER);
    Jury__V1__ListKeysResponse *keys =
        MESSAGE(fixture, reply, Jury__V1__ListKeysResponse, jury__v1__list_keys_response);
    assert_string_equal(keys->keys[0]->key->name, "root");
    reply = ask(fixture, "ClusterService/GetSettings", NULL, KEY_ROLE_VIEWER);
    assert_int_equal(
        MESSAGE(fixture, reply, Jury__V1__GetSettingsResponse, jury__v1__get_settings_response)
            ->settings->n_allowed_cidrs,
        5);
}

/* They were told as if each probe began in time. */
static void windows_are_told_with_the_delay_of_a_short_probe_budget(void **state)
{
    struct fixture *fixture = *state;
    struct rpc_probe_budget *budget = &fixture->world.nodes[1].probe_budget;
    Jury__V1__DescribeGroupRequest *describe =
        WIRE_NEW(&fixture->arena, Jury__V1__DescribeGroupRequest, jury__v1__describe_group_request);
    Jury__V1__DescribeGroupResponse *answer;

    describe->name = (char *)(uintptr_t) "web";
    apply(fixture, "web", "10.0.0.1:80");
    *budget = (struct rpc_probe_budget){.per_node = 10, .delay_ns = 700 * RPC_WORLD_MS};
    answer = MESSAGE(fixture, ask(fixture, "GroupService/DescribeGroup", describe, KEY_ROLE_VIEWER),
                     Jury__V1__DescribeGroupResponse, jury__v1__describe_group_response);
    assert_null(answer->delayed); /* it was, and is no more */

    budget->is_pressed = true;
    answer = MESSAGE(fixture, ask(fixture, "GroupService/DescribeGroup", describe, KEY_ROLE_VIEWER),
                     Jury__V1__DescribeGroupResponse, jury__v1__describe_group_response);
    assert_non_null(answer->delayed);
    assert_int_equal(answer->delayed->delay->nanos, 700 * RPC_WORLD_MS);
    /* U = H = 2 of the profile: one start of each streak is late. */
    assert_int_equal(answer->group->check->unhealthy_threshold, 2);
    assert_int_equal(answer->delayed->failure->seconds, answer->failure_window->opinion->seconds);
    assert_int_equal(answer->delayed->failure->nanos, 700 * RPC_WORLD_MS);
    assert_int_equal(answer->delayed->success->seconds, answer->success_window->opinion->seconds);
    assert_int_equal(answer->delayed->success->nanos, 700 * RPC_WORLD_MS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_was_applied_is_read_back_with_every_default_filled_in),
        TEST(lists_come_in_pages_that_lose_nothing),
        TEST(why_names_every_observer_and_what_would_change_it),
        TEST(status_ready_node_events_and_counters_tell_of_the_node),
        TEST(a_data_plane_that_cannot_be_read_is_told_in_words_and_never_healthy),
        TEST(listeners_that_cannot_be_opened_and_have_no_place_are_counted),
        TEST(windows_are_told_with_the_delay_of_a_short_probe_budget),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
