/* What people see of answers that no story of a cluster leads to, as golden files:
 * answers/NAME.json, an answer as `nodectl -o json` prints it, is rendered as golden/NAME.txt. What
 * engines answer is in tests/golden (tests/scenario/README.md). */
#include "golden.h"

#include "common/wire/json.h"
#include "common/wire/object.h"
#include "nodectl/render.h"

static bool is_update;

/* An answer read from its file, and a run without a command line whose output is looked at. */
struct fixture {
    struct wire_arena arena;
    ProtobufCMessage *message;
    struct ctl ctl;
    char *environment[2];
    char *text;
    size_t n_bytes;
};

static void fixture_open(struct fixture *fixture, const ProtobufCMessageDescriptor *type,
                         const char *name)
{
    char path[256];
    struct errmsg err = {{0}};
    json_error_t error;

    *fixture = (struct fixture){.environment = {NULL, NULL}};
    snprintf(path, sizeof path, "tests/unit/nodectl/answers/%s.json", name);
    json_t *json = json_load_file(path, 0, &error);
    if (json == NULL) {
        fail_msg("%s:%d: %s", path, error.line, error.text);
    }
    wire_arena_init(&fixture->arena, 16 * 1024 * 1024);
    if (wire_json_read(type, json, &fixture->arena, &fixture->message, &err) != 0) {
        fail_msg("%s: %s", path, err.text);
    }
    json_decref(json);
    fixture->ctl.process.environment = fixture->environment;
    fixture->ctl.values = ctl_values_new();
    fixture->ctl.out = open_memstream(&fixture->text, &fixture->n_bytes);
    assert_non_null(fixture->ctl.values);
    assert_non_null(fixture->ctl.out);
}

static void fixture_close(struct fixture *fixture)
{
    free(fixture->text);
    ctl_values_free(fixture->ctl.values);
    json_decref(fixture->ctl.failure.metadata);
    wire_arena_close(&fixture->arena);
}

static void fixture_expect(struct fixture *fixture, const char *golden)
{
    fclose(fixture->ctl.out);
    golden_expect(golden, fixture->text, is_update);
    fixture_close(fixture);
}

/* Renderers take their own type of message; the descriptor says that it is that. */
#define RENDER(name, function, type, descriptor)                             \
    do {                                                                     \
        struct fixture fixture;                                              \
                                                                             \
        fixture_open(&fixture, &descriptor##__descriptor, name);             \
        function(&fixture.ctl, (const type *)(const void *)fixture.message); \
        fixture_expect(&fixture, name);                                      \
    } while (0)

static void status_shows_health_problems_and_members(void **state)
{
    (void)state;
    RENDER("status_unavailable", render_status, Jury__V1__GetStatusResponse,
           jury__v1__get_status_response);
}

/* Case A45: "no leader" lists each peer with address and last contact. */
static void a_failure_without_a_leader_lists_the_peers(void **state)
{
    (void)state;
    struct fixture fixture;

    fixture_open(&fixture, &jury__v1__get_status_response__descriptor, "status_unavailable");
    render_peers(&fixture.ctl, (const Jury__V1__GetStatusResponse *)(const void *)fixture.message);

    assert_string_equal(fixture.ctl.failure.lines,
                        "  node 2: 10.0.0.2:7400, last heard 1m39s ago, not answering now\n"
                        "  node 3: 10.0.0.3:7400, last heard 200ms ago");
    assert_string_equal(json_string_value(json_object_get(fixture.ctl.failure.metadata, "node_2")),
                        "10.0.0.2:7400, last heard 1m39s ago, not answering now");
    fclose(fixture.ctl.out);
    fixture_close(&fixture);
}

static void readiness_names_each_part(void **state)
{
    (void)state;
    RENDER("ready", render_ready, Jury__V1__CheckReadyResponse, jury__v1__check_ready_response);
}

static void counters_keys_and_listeners_are_tables(void **state)
{
    (void)state;
    RENDER("node_waiting", render_node, Jury__V1__DescribeNodeResponse,
           jury__v1__describe_node_response);
    RENDER("node_pressed", render_node, Jury__V1__DescribeNodeResponse,
           jury__v1__describe_node_response);
    RENDER("counters", render_counters, Jury__V1__ListCountersResponse,
           jury__v1__list_counters_response);
    RENDER("keys", render_keys, Jury__V1__ListKeysResponse, jury__v1__list_keys_response);
    RENDER("listeners", render_listeners, Jury__V1__ListListenersResponse,
           jury__v1__list_listeners_response);
}

/* Labels may hold anything, samples of one name stand together, and what is not known has none. */
static void metrics_are_text_that_prometheus_reads(void **state)
{
    struct fixture counters, backends, groups, status;

    (void)state;
    fixture_open(&counters, &jury__v1__list_counters_response__descriptor, "metrics_counters");
    fixture_open(&backends, &jury__v1__list_backends_response__descriptor, "metrics_backends");
    fixture_open(&groups, &jury__v1__list_groups_response__descriptor, "metrics_groups");
    fixture_open(&status, &jury__v1__get_status_response__descriptor, "metrics_status");
    render_metrics(&counters.ctl, &(struct metrics){
                                      .counters = (const void *)counters.message,
                                      .backends = (const void *)backends.message,
                                      .groups = (const void *)groups.message,
                                      .status = (const void *)status.message,
                                  });
    fixture_expect(&counters, "metrics");
    fclose(backends.ctl.out);
    fclose(groups.ctl.out);
    fclose(status.ctl.out);
    fixture_close(&backends);
    fixture_close(&groups);
    fixture_close(&status);
}

static void backends_are_a_table_with_or_without_colour(void **state)
{
    (void)state;
    static char forced[] = "CLICOLOR_FORCE=1";
    static char *const environments[2] = {NULL, forced};
    static const char *const golden[2] = {"backends", "backends_color"};

    for (size_t i = 0; i < 2; i++) {
        struct fixture fixture;

        fixture_open(&fixture, &jury__v1__list_backends_response__descriptor, "backends");
        const Jury__V1__ListBackendsResponse *backends =
            (const Jury__V1__ListBackendsResponse *)(const void *)fixture.message;
        fixture.environment[0] = environments[i];
        render_backends(&fixture.ctl, backends->backends, backends->n_backends, true);
        fixture_expect(&fixture, golden[i]);
    }
}

static void a_group_shows_fields_windows_and_backends(void **state)
{
    (void)state;
    struct fixture fixture;
    struct server_group group = {0};

    fixture_open(&fixture, &jury__v1__describe_group_response__descriptor, "group");
    const Jury__V1__DescribeGroupResponse *message =
        (const Jury__V1__DescribeGroupResponse *)(const void *)fixture.message;
    assert_int_equal(wire_group_read(message->group, &group, NULL), 0);
    render_group(&fixture.ctl, message, &group);
    fixture_expect(&fixture, "group");
    server_group_close(&group);
}

/* Suspect votes and those that do not count yet, an IPv6 backend, rules set apart, a drain. */
static void why_shows_each_standing_of_a_vote(void **state)
{
    (void)state;
    struct fixture fixture;

    fixture_open(&fixture, &jury__v1__why_response__descriptor, "why_held");
    render_why(&fixture.ctl, (const Jury__V1__WhyResponse *)(const void *)fixture.message, 42);
    fixture_expect(&fixture, "why_held");
    fixture_open(&fixture, &jury__v1__why_response__descriptor, "why_ejected");
    render_why(&fixture.ctl, (const Jury__V1__WhyResponse *)(const void *)fixture.message, 7);
    fixture_expect(&fixture, "why_ejected");
}

static void events_are_a_table_or_lines(void **state)
{
    (void)state;
    struct fixture fixture;

    fixture_open(&fixture, &jury__v1__list_events_response__descriptor, "events");
    const Jury__V1__ListEventsResponse *events =
        (const Jury__V1__ListEventsResponse *)(const void *)fixture.message;
    render_events(&fixture.ctl, events->events, events->n_events);
    fputc('\n', fixture.ctl.out);
    for (size_t i = 0; i < events->n_events; i++) {
        render_event_line(fixture.ctl.out, events->events[i]);
    }
    fixture_expect(&fixture, "events");
}

static void durations_are_short_and_times_are_rfc_3339(void **state)
{
    (void)state;
    static const struct {
        int64_t seconds;
        int32_t nanos;
        const char *text;
    } rows[] = {
        {0, 0, "0s"},
        {0, 250000, "250us"},
        {0, 1000000, "1ms"},
        {0, 999999999, "999ms"},
        {1, 0, "1s"},
        {1, 5000000, "1s"},
        {1, 250000000, "1.25s"},
        {59, 990000000, "59.99s"},
        {60, 0, "1m0s"},
        {3599, 0, "59m59s"},
        {3600, 0, "1h0m"},
        {86399, 0, "23h59m"},
        {86400, 0, "1d0h"},
        {-5, 0, "0s"},
    };
    char text[RENDER_TEXT_BYTES];

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        Google__Protobuf__Duration duration;

        google__protobuf__duration__init(&duration);
        duration.seconds = rows[i].seconds;
        duration.nanos = rows[i].nanos;
        assert_string_equal(render_duration(&duration, text), rows[i].text);
    }
    assert_string_equal(render_duration(NULL, text), "-");
    assert_string_equal(render_time(NULL, text), "-");
    assert_string_equal(render_endpoint("2001:db8::10", 80, text), "[2001:db8::10]:80");
}

int main(int argc, char *argv[])
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(status_shows_health_problems_and_members),
        cmocka_unit_test(a_failure_without_a_leader_lists_the_peers),
        cmocka_unit_test(readiness_names_each_part),
        cmocka_unit_test(counters_keys_and_listeners_are_tables),
        cmocka_unit_test(metrics_are_text_that_prometheus_reads),
        cmocka_unit_test(backends_are_a_table_with_or_without_colour),
        cmocka_unit_test(a_group_shows_fields_windows_and_backends),
        cmocka_unit_test(why_shows_each_standing_of_a_vote),
        cmocka_unit_test(events_are_a_table_or_lines),
        cmocka_unit_test(durations_are_short_and_times_are_rfc_3339),
    };

    is_update = argc > 1 && strcmp(argv[1], "--update") == 0;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
