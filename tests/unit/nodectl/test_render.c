/* What people see of each answer, as golden files. The answers are written as ProtoJSON, so a case
 * is read like `nodectl -o json`. */
#include "golden.h"

#include "common/wire/json.h"
#include "common/wire/object.h"
#include "nodectl/render.h"

static bool is_update;

/* An answer made from JSON text. */
struct answer {
    struct wire_arena arena;
    ProtobufCMessage *message;
};

static void answer_read(struct answer *answer, const ProtobufCMessageDescriptor *type,
                        const char *text)
{
    struct errmsg err = {{0}};
    json_error_t error;
    json_t *json = json_loads(text, 0, &error);

    if (json == NULL) {
        fail_msg("line %d: %s", error.line, error.text);
    }
    wire_arena_init(&answer->arena, 16 * 1024 * 1024);
    if (wire_json_read(type, json, &answer->arena, &answer->message, &err) != 0) {
        fail_msg("%s", err.text);
    }
    json_decref(json);
}

/* A run without a command line, whose output is looked at. */
struct fixture {
    struct ctl ctl;
    char *environment[2];
    char *text;
    size_t n_bytes;
};

static void fixture_open(struct fixture *fixture, bool has_color)
{
    static char color[] = "CLICOLOR_FORCE=1";

    *fixture = (struct fixture){.environment = {has_color ? color : NULL, NULL}};
    fixture->ctl.process.environment = fixture->environment;
    fixture->ctl.values = ctl_values_new();
    fixture->ctl.out = open_memstream(&fixture->text, &fixture->n_bytes);
    assert_non_null(fixture->ctl.values);
    assert_non_null(fixture->ctl.out);
}

static void fixture_expect(struct fixture *fixture, const char *golden)
{
    fclose(fixture->ctl.out);
    golden_expect(golden, fixture->text, is_update);
    free(fixture->text);
    ctl_values_free(fixture->ctl.values);
    json_decref(fixture->ctl.failure.metadata);
}

#define KEY "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
#define MEMBER(id, rest)                                                                      \
    "{\"node\":{\"nodeId\":\"" id "\",\"role\":\"RAFT_ROLE_VOTER\",\"zone\":\"zone-a\","      \
    "\"publicKey\":\"" KEY "\",\"endpoints\":[{\"host\":\"10.0.0." id "\",\"meshPort\":7400," \
    "\"raftPort\":7401}]}," rest "}"

static const char healthy_status[] =
    "{\"health\":\"CLUSTER_HEALTH_HEALTHY\",\"clusterId\":\"0123456789abcdef0123456789abcdef\","
    "\"nodeId\":\"1\",\"revision\":\"42\",\"stateHash\":\"feedfacefeedfacefeedfacefeedface\","
    "\"store\":{\"state\":\"STORE_STATE_RUNNING\",\"role\":\"STORE_ROLE_LEADER\",\"term\":\"3\","
    "\"leaderId\":\"1\",\"appliedIndex\":\"57\",\"lastIndex\":\"57\",\"leaderAge\":\"0s\"},"
    "\"members\":[" MEMBER(
        "1",
        "\"isSelf\":true,\"isLeader\":true,\"isHeard\":true,\"counts\":true,"
        "\"revision\":\"42\",\"epoch\":\"2\"") "," MEMBER("2", "\"isHeard\":true,\"age\":\"0."
                                                               "512s\",\"raftAge\":\"0.031s\","
                                                               "\"counts\":true,"
                                                               "\"revision\":\"42\",\"epoch\":"
                                                               "\"1\"") "],"
                                                                        "\"nObservers\":2,"
                                                                        "\"quorum\":2,\"nFresh\":2,"
                                                                        "\"groups\":{\"total\":1,"
                                                                        "\"ok\":1},"
                                                                        "\"backends\":{\"total\":3,"
                                                                        "\"healthy\":3},"
                                                                        "\"dataPlanes\":[{\"name\":"
                                                                        "\"shim\",\"pid\":77,"
                                                                        "\"isAlive\":true,\"age\":"
                                                                        "\"0.1s\","
                                                                        "\"adoptedGeneration\":"
                                                                        "\"9\","
                                                                        "\"publishedGeneration\":"
                                                                        "\"9\","
                                                                        "\"flows\":\"12\"}]}";

static const char degraded_status[] =
    "{\"health\":\"CLUSTER_HEALTH_UNAVAILABLE\","
    "\"problems\":[\"no leader is known\",\"node 2 was last heard 1m40s ago\\nand more\"],"
    "\"clusterId\":\"0123456789abcdef0123456789abcdef\",\"nodeId\":\"1\",\"revision\":\"41\","
    "\"isLastKnownGood\":true,"
    "\"store\":{\"state\":\"STORE_STATE_FAILED\",\"message\":\"the disk is full\","
    "\"role\":\"STORE_ROLE_CANDIDATE\",\"term\":\"9\",\"appliedIndex\":\"50\",\"lastIndex\":\"52\","
    "\"leaderAge\":\"100.5s\",\"isDiskFull\":true,\"freeBytes\":\"10485760\"},"
    "\"members\":[" MEMBER("1", "\"isSelf\":true,\"counts\":true,\"revision\":\"41\",\"epoch\":"
                                "\"4\"") "," MEMBER("2", "\"age\":\"100s\",\"raftAge\":\"99s\","
                                                         "\"counts\":true,\"revision\":\"40\","
                                                         "\"epoch\":\"1\"") "," MEMBER(
        "3",
        "\"isHeard\":true,\"age\":\"0.2s\",\"catalogDiffers\":true,\"revision\":\"41\",\"epoch\":"
        "\"7\","
        "\"suspect\":[\"CHECK_TYPE_TCP\"]") "],"
                                            "\"nObservers\":3,\"quorum\":2,\"nFresh\":2,\"groups\":"
                                            "{\"total\":2,\"degraded\":1,\"failOpen\":1},"
                                            "\"backends\":{\"total\":5,\"healthy\":1,\"unhealthy\":"
                                            "2,\"initial\":1,\"unused\":1,\"unreachable\":1,"
                                            "\"held\":2}}";

static void status_shows_health_problems_and_members(void **state)
{
    (void)state;
    static const char *const rows[][2] = {{healthy_status, "status_healthy"},
                                          {degraded_status, "status_unavailable"}};

    for (size_t i = 0; i < 2; i++) {
        struct answer answer;
        struct fixture fixture;

        answer_read(&answer, &jury__v1__get_status_response__descriptor, rows[i][0]);
        fixture_open(&fixture, false);
        render_status(&fixture.ctl,
                      (const Jury__V1__GetStatusResponse *)(const void *)answer.message);
        fixture_expect(&fixture, rows[i][1]);
        wire_arena_close(&answer.arena);
    }
}

/* Case A45: "no leader" lists each peer with address and last contact. */
static void a_failure_without_a_leader_lists_the_peers(void **state)
{
    (void)state;
    struct answer answer;
    struct fixture fixture;

    answer_read(&answer, &jury__v1__get_status_response__descriptor, degraded_status);
    fixture_open(&fixture, false);
    render_peers(&fixture.ctl, (const Jury__V1__GetStatusResponse *)(const void *)answer.message);

    assert_string_equal(fixture.ctl.failure.lines,
                        "  node 2: 10.0.0.2:7400, last heard 1m39s ago, not answering now\n"
                        "  node 3: 10.0.0.3:7400, last heard 200ms ago");
    assert_string_equal(json_string_value(json_object_get(fixture.ctl.failure.metadata, "node_2")),
                        "10.0.0.2:7400, last heard 1m39s ago, not answering now");
    fclose(fixture.ctl.out);
    free(fixture.text);
    ctl_values_free(fixture.ctl.values);
    json_decref(fixture.ctl.failure.metadata);
    wire_arena_close(&answer.arena);
}

#define RENDER_ONE(function, type, descriptor, text, golden)                \
    do {                                                                    \
        struct answer answer;                                               \
        struct fixture fixture;                                             \
                                                                            \
        answer_read(&answer, &descriptor##__descriptor, text);              \
        fixture_open(&fixture, false);                                      \
        function(&fixture.ctl, (const type *)(const void *)answer.message); \
        fixture_expect(&fixture, golden);                                   \
        wire_arena_close(&answer.arena);                                    \
    } while (0)

static void readiness_names_each_part(void **state)
{
    (void)state;
    RENDER_ONE(render_ready, Jury__V1__CheckReadyResponse, jury__v1__check_ready_response,
               "{\"isReady\":false,\"checks\":[{\"name\":\"store\",\"isOk\":true},{\"name\":"
               "\"data_plane\",\"isOk\":false,\"message\":\"no heartbeat for 2 s\"}]}",
               "ready");
}

static void nodes_counters_keys_and_listeners_are_tables(void **state)
{
    (void)state;
    RENDER_ONE(
        render_node, Jury__V1__DescribeNodeResponse, jury__v1__describe_node_response,
        "{\"nodeId\":\"1\",\"clusterId\":\"0123456789abcdef0123456789abcdef\",\"epoch\":\"3\","
        "\"publicKey\":\"" KEY "\",\"version\":\"0.1.0\",\"uptime\":\"93784s\","
        "\"nTargets\":3,\"probeEngine\":{\"name\":\"connect\",\"capabilities\":[\"tcp-full\","
        "\"http\"],\"nInFlight\":1},\"peers\":[{\"nodeId\":\"2\",\"endpoint\":"
        "\"[fd00::2]:7400\",\"age\":\"0.25s\",\"helloAge\":\"12s\",\"nReceived\":\"1000\","
        "\"nDropped\":\"1\",\"nStale\":\"2\",\"nRefused\":\"3\"},{\"nodeId\":\"3\"}],"
        "\"time\":\"2026-11-30T12:00:00.250Z\",\"store\":{\"state\":\"STORE_STATE_RUNNING\","
        "\"role\":\"STORE_ROLE_FOLLOWER\",\"term\":\"3\",\"leaderId\":\"2\",\"appliedIndex\":"
        "\"57\",\"lastIndex\":\"58\",\"leaderAge\":\"0.04s\"},\"publishedGeneration\":\"9\","
        "\"meshAddress\":\"0.0.0.0:7400\",\"raftAddress\":\"0.0.0.0:7401\"}",
        "node");
    RENDER_ONE(
        render_node, Jury__V1__DescribeNodeResponse, jury__v1__describe_node_response,
        "{\"epoch\":\"0\",\"version\":\"0.1.0\",\"store\":{\"state\":\"STORE_STATE_WAITING\"}}",
        "node_waiting");
    RENDER_ONE(
        render_counters, Jury__V1__ListCountersResponse, jury__v1__list_counters_response,
        "{\"counters\":[{\"name\":\"mesh_refused_total\",\"label\":\"unknown key\",\"value\":"
        "\"18446744073709551615\",\"help\":\"connections refused\"},{\"name\":"
        "\"probes_total\",\"value\":\"7\",\"help\":\"probes made\"}]}",
        "counters");
    RENDER_ONE(render_keys, Jury__V1__ListKeysResponse, jury__v1__list_keys_response,
               "{\"keys\":[{\"key\":{\"name\":\"ops\",\"publicKey\":\"" KEY
               "\",\"role\":\"ROLE_OPERATOR\",\"expires\":\"2027-01-31T00:00:00Z\"},"
               "\"changedRevision\":\"5\"},{\"key\":{\"name\":\"root\",\"publicKey\":\"" KEY
               "\",\"role\":\"ROLE_ADMIN\"},\"changedRevision\":\"1\"}]}",
               "keys");
    RENDER_ONE(
        render_listeners, Jury__V1__ListListenersResponse, jury__v1__list_listeners_response,
        "{\"listeners\":[{\"listener\":{\"name\":\"web-http\",\"address\":\"127.0.0.1\","
        "\"port\":8080,\"protocol\":\"PROTOCOL_TCP\",\"group\":\"web\"},\"changedRevision\":"
        "\"7\"},{\"listener\":{\"name\":\"mail\",\"address\":\"::\",\"port\":25,\"protocol\":"
        "\"PROTOCOL_TCP\",\"group\":\"mail\",\"idleTimeout\":\"350s\"},\"changedRevision\":"
        "\"8\"}]}",
        "listeners");
    RENDER_ONE(render_members, Jury__V1__ListMembersResponse, jury__v1__list_members_response,
               "{\"clusterId\":\"0123456789abcdef0123456789abcdef\",\"members\":[" MEMBER(
                   "1", "\"isSelf\":true,\"isLeader\":true,\"counts\":true,\"revision\":\"3\","
                        "\"epoch\":\"1\"") "," MEMBER("2", "\"revision\":\"0\"") "]}",
               "members");
}

static void groups_are_a_table(void **state)
{
    (void)state;
    RENDER_ONE(
        render_groups, Jury__V1__ListGroupsResponse, jury__v1__list_groups_response,
        "{\"groups\":[{\"name\":\"web\",\"profile\":\"PROFILE_NLB\",\"protocol\":"
        "\"PROTOCOL_TCP\",\"state\":\"GROUP_STATE_DEGRADED\",\"since\":\"72s\",\"nEligible\":3,"
        "\"nHealthy\":2,\"backends\":{\"total\":3},\"changedRevision\":\"12\"},{\"name\":"
        "\"old\",\"profile\":\"PROFILE_CLB\",\"protocol\":\"PROTOCOL_TCP\",\"state\":"
        "\"GROUP_STATE_CLOSED\",\"isDeleted\":true,\"backends\":{\"total\":1},"
        "\"changedRevision\":\"13\"},{\"name\":\"new\",\"profile\":\"PROFILE_GWLB\","
        "\"protocol\":\"PROTOCOL_TCP\",\"state\":\"GROUP_STATE_OK\",\"isWarming\":true,"
        "\"since\":\"0.5s\",\"nEligible\":2,\"changedRevision\":\"14\"}]}",
        "groups");
}

#define BACKENDS                                                                               \
    "[{\"group\":\"web\",\"backend\":{\"address\":\"10.77.0.1\",\"port\":8080,\"weight\":100," \
    "\"description\":\"web-1\",\"adminState\":\"ADMIN_STATE_ENABLED\"},"                       \
    "\"life\":\"BACKEND_LIFE_AVAILABLE\",\"verdict\":{\"state\":\"HEALTH_STATE_UNHEALTHY\","   \
    "\"since\":\"12.5s\",\"reason\":\"PROBE_REASON_CONNECT_FAILED\",\"nFail\":3,"              \
    "\"nCounted\":3,\"nObservers\":3,\"quorum\":2},\"rowClass\":\"ROW_CLASS_NONE\"},"          \
    "{\"group\":\"web\",\"backend\":{\"address\":\"10.77.0.2\",\"port\":8080,\"weight\":0,"    \
    "\"adminState\":\"ADMIN_STATE_DRAINING\",\"description\":\"web-2\"},\"life\":"             \
    "\"BACKEND_LIFE_AVAILABLE\",\"verdict\":{\"state\":\"HEALTH_STATE_HEALTHY\",\"marks\":["   \
    "\"HEALTH_MARK_HELD\",\"HEALTH_MARK_GRAY\"],\"since\":\"3700s\",\"isUnreachable\":true,"   \
    "\"reason\":\"PROBE_REASON_OK\",\"nPass\":2,\"nFail\":1,\"nCounted\":3,\"nObservers\":3,"  \
    "\"quorum\":2},\"rowClass\":\"ROW_CLASS_UNREACHABLE\",\"drain\":{\"nFlows\":\"14\","       \
    "\"remaining\":\"21s\",\"pendingNodes\":[\"1\",\"3\"]}},"                                  \
    "{\"group\":\"web\",\"backend\":{\"address\":\"fd00::3\",\"port\":8080,\"weight\":100,"    \
    "\"adminState\":\"ADMIN_STATE_ENABLED\"},\"life\":\"BACKEND_LIFE_REMOVING\",\"verdict\":"  \
    "{\"state\":\"HEALTH_STATE_INITIAL\",\"nObservers\":3},\"drain\":{\"isDone\":true}}]"

static void backends_are_a_table(void **state)
{
    (void)state;
    for (int has_color = 0; has_color < 2; has_color++) {
        struct answer answer;
        struct fixture fixture;

        answer_read(&answer, &jury__v1__list_backends_response__descriptor,
                    "{\"backends\":" BACKENDS "}");
        const Jury__V1__ListBackendsResponse *backends =
            (const Jury__V1__ListBackendsResponse *)(const void *)answer.message;
        fixture_open(&fixture, has_color);
        render_backends(&fixture.ctl, backends->backends, backends->n_backends, true);
        fixture_expect(&fixture, has_color ? "backends_color" : "backends");
        wire_arena_close(&answer.arena);
    }
}

static void a_group_shows_fields_windows_and_backends(void **state)
{
    (void)state;
    struct answer answer;
    struct fixture fixture;
    struct server_group group = {0};

    answer_read(&answer, &jury__v1__describe_group_response__descriptor,
                "{\"group\":{\"name\":\"web\",\"profile\":\"PROFILE_NLB\",\"protocol\":"
                "\"PROTOCOL_TCP\",\"verdict\":{\"down\":{\"kind\":\"KIND_MAJORITY\"}},"
                "\"labels\":[{\"key\":\"tier\",\"value\":\"front\"}],"
                "\"check\":{\"type\":\"CHECK_TYPE_HTTP\",\"timeout\":\"2s\"}},"
                "\"changedRevision\":\"12\",\"summary\":{\"name\":\"web\",\"state\":"
                "\"GROUP_STATE_DEGRADED\",\"nEligible\":3,\"nHealthy\":2},"
                "\"failureWindow\":{\"opinion\":\"9s\",\"verdict\":\"11.1s\"},"
                "\"successWindow\":{\"opinion\":\"6s\",\"verdict\":\"8.1s\"},"
                "\"assumedResponse\":\"0.5s\",\"backends\":" BACKENDS "}");
    const Jury__V1__DescribeGroupResponse *message =
        (const Jury__V1__DescribeGroupResponse *)(const void *)answer.message;
    assert_int_equal(wire_group_read(message->group, &group, NULL), 0);
    fixture_open(&fixture, false);
    render_group(&fixture.ctl, message, &group);
    fixture_expect(&fixture, "group");
    server_group_close(&group);
    wire_arena_close(&answer.arena);
}

#define VOTE(id, opinion, standing, age, rest)                                          \
    "{\"nodeId\":\"" id "\",\"opinion\":\"" opinion "\",\"standing\":\"" standing "\"," \
    "\"age\":\"" age "\"" rest "}"
#define DETAIL(reason, sentence, http, streak)                                                  \
    ",\"detail\":{\"reason\":\"" reason "\",\"sentence\":\"" sentence "\",\"httpStatus\":" http \
    ",\"responseTime\":\"0.0042s\",\"streak\":" streak ",\"since\":\"31s\",\"age\":\"0.7s\"}"

/* Issue: a firewall cuts node 3 from the backend; each node shows the same three votes. */
static const char why_disagree[] =
    "{\"backend\":{\"group\":\"web\",\"address\":\"10.77.0.1\",\"port\":8080},\"nodeId\":\"3\","
    "\"verdict\":{\"state\":\"HEALTH_STATE_HEALTHY\",\"since\":\"125s\",\"isUnreachable\":true,"
    "\"reason\":\"PROBE_REASON_OK\",\"nFail\":1,\"nPass\":2,\"nCounted\":3,\"nObservers\":3,"
    "\"quorum\":2},\"sentence\":\"healthy by 2 of 3 counted votes; node 3 alone fails\","
    "\"reasons\":[\"PROBE_REASON_OK\"],\"rule\":{\"down\":{\"kind\":\"KIND_MAJORITY\"},"
    "\"belowQuorum\":\"BELOW_QUORUM_HOLD\"},\"votes\":[" VOTE(
        "1", "OPINION_PASS", "VOTE_STANDING_COUNTED", "0.4s",
        DETAIL(
            "PROBE_REASON_OK", "the probe passed", "200",
            "30")) "," VOTE("2", "OPINION_PASS", "VOTE_STANDING_COUNTED", "0.9s",
                            "") "," VOTE("3", "OPINION_FAIL", "VOTE_STANDING_COUNTED", "0.1s",
                                         ",\"isSelf\":true" DETAIL(
                                             "PROBE_REASON_CONNECT_TIMEOUT",
                                             "no answer to the connection attempt within the "
                                             "timeout",
                                             "0",
                                             "5")) "],"
                                                   "\"probing\":{\"address\":\"10.77.0.1\","
                                                   "\"port\":8081,\"type\":\"CHECK_TYPE_HTTP\","
                                                   "\"timeout\":\"2s\",\"interval\":\"1s\","
                                                   "\"healthyThreshold\":2,\"unhealthyThreshold\":"
                                                   "2,"
                                                   "\"failStreak\":5,\"last\":{\"reason\":\"PROBE_"
                                                   "REASON_CONNECT_TIMEOUT\",\"sentence\":"
                                                   "\"no answer to the connection attempt within "
                                                   "the timeout\",\"responseTime\":\"2.001s\","
                                                   "\"age\":\"0.3s\"},\"failureWindow\":\"5s\","
                                                   "\"successWindow\":\"1.0084s\"},"
                                                   "\"nextDown\":{\"to\":\"HEALTH_STATE_"
                                                   "UNHEALTHY\",\"votes\":1,\"sentence\":\"one "
                                                   "more vote that "
                                                   "says fail takes it "
                                                   "down\"},\"nextUp\":{\"isImpossible\":true,"
                                                   "\"sentence\":\"it is up\"},"
                                                   "\"rowClass\":\"ROW_CLASS_UNREACHABLE\","
                                                   "\"flowPolicy\":\"FLOW_POLICY_KEEP\","
                                                   "\"adminState\":\"ADMIN_STATE_ENABLED\","
                                                   "\"life\":\"BACKEND_LIFE_AVAILABLE\",\"weight\":"
                                                   "100}";

static const char why_held[] =
    "{\"backend\":{\"group\":\"mail\",\"address\":\"fd20::13\",\"port\":25},\"nodeId\":\"1\","
    "\"verdict\":{\"state\":\"HEALTH_STATE_UNHEALTHY\",\"marks\":[\"HEALTH_MARK_HELD\"],"
    "\"heldCauses\":[\"HELD_CAUSE_FEW_VOTES\",\"HELD_CAUSE_LAST_KNOWN_GOOD\"],\"since\":\"4000s\","
    "\"reason\":\"PROBE_REASON_HTTP_CODE_NOT_MATCH\",\"nFail\":1,\"nCounted\":1,\"nObservers\":3,"
    "\"quorum\":2},\"reasons\":[\"PROBE_REASON_HTTP_CODE_NOT_MATCH\"],\"httpStatus\":404,"
    "\"rule\":{\"down\":{\"kind\":\"KIND_AT_LEAST\",\"value\":2},\"up\":{\"kind\":\"KIND_PERCENT\","
    "\"value\":82},\"belowQuorum\":\"BELOW_QUORUM_LOCAL\"},\"votes\":[" VOTE(
        "1", "OPINION_FAIL", "VOTE_STANDING_COUNTED", "0.1s",
        ",\"isSelf\":true" DETAIL(
            "PROBE_REASON_HTTP_CODE_NOT_MATCH", "the HTTP status is not among the expected ones",
            "404",
            "12")) "," VOTE("2", "OPINION_FAIL", "VOTE_STANDING_REMEMBERED", "14s",
                            "") ","
                                "{\"nodeId\":\"3\"}," VOTE(
                                    "4", "OPINION_PASS", "VOTE_STANDING_SUSPECT", "1s",
                                    "") "," VOTE("5", "OPINION_PASS", "VOTE_STANDING_WAITING", "1s",
                                                 "") "],"
                                                     "\"nRememberedFail\":1,\"keptAge\":\"90061s\","
                                                     "\"adminState\":\"ADMIN_STATE_DRAINING\","
                                                     "\"weight\":50,"
                                                     "\"rowClass\":\"ROW_CLASS_NONE\","
                                                     "\"flowPolicy\":\"FLOW_POLICY_CLOSE_AT\","
                                                     "\"drain\":{\"cause\":"
                                                     "\"CAUSE_DRAIN\",\"revision\":\"9\","
                                                     "\"timeout\":\"30s\",\"remaining\":\"12.5s\","
                                                     "\"nFlows\":\"3\","
                                                     "\"pendingNodes\":[\"1\",\"2\"]},\"nextUp\":{"
                                                     "\"to\":\"HEALTH_STATE_HEALTHY\",\"votes\":1,"
                                                     "\"ownResults\":2,\"sentence\":\"one more "
                                                     "vote that says pass and 2 passing probes "
                                                     "here\"}}";

static void why_shows_votes_rule_and_what_would_change_it(void **state)
{
    (void)state;
    static const char *const rows[][2] = {{why_disagree, "why_disagree"}, {why_held, "why_held"}};

    for (size_t i = 0; i < 2; i++) {
        struct answer answer;
        struct fixture fixture;

        answer_read(&answer, &jury__v1__why_response__descriptor, rows[i][0]);
        fixture_open(&fixture, false);
        render_why(&fixture.ctl, (const Jury__V1__WhyResponse *)(const void *)answer.message, 42);
        fixture_expect(&fixture, rows[i][1]);
        wire_arena_close(&answer.arena);
    }
}

static void events_are_a_table_or_lines(void **state)
{
    (void)state;
    struct answer answer;
    struct fixture fixture;

    answer_read(
        &answer, &jury__v1__list_events_response__descriptor,
        "{\"events\":[{\"sequence\":\"1\",\"time\":\"2026-11-30T12:00:00Z\",\"type\":"
        "\"EVENT_TYPE_VERDICT_CHANGED\",\"backend\":{\"group\":\"web\",\"address\":"
        "\"10.77.0.1\",\"port\":8080},\"from\":\"healthy\",\"to\":\"unhealthy\",\"reason\":"
        "\"PROBE_REASON_CONNECT_FAILED\",\"nFail\":2,\"nPass\":1,\"revision\":\"12\","
        "\"nodeId\":\"1\"},{\"sequence\":\"2\",\"time\":\"2026-11-30T12:00:00.125Z\",\"type\":"
        "\"EVENT_TYPE_GROUP_CHANGED\",\"backend\":{\"group\":\"web\"},\"from\":\"ok\",\"to\":"
        "\"degraded\",\"revision\":\"12\"},{\"sequence\":\"3\",\"time\":"
        "\"2026-11-30T12:00:01Z\",\"type\":\"EVENT_TYPE_PEER_EPOCH\",\"nodeId\":\"2\","
        "\"revision\":\"12\",\"message\":\"node 2 was started\\tagain\"}],"
        "\"lastSequence\":\"3\",\"epoch\":\"1\"}");
    const Jury__V1__ListEventsResponse *events =
        (const Jury__V1__ListEventsResponse *)(const void *)answer.message;
    fixture_open(&fixture, false);
    render_events(&fixture.ctl, events->events, events->n_events);
    fputc('\n', fixture.ctl.out);
    for (size_t i = 0; i < events->n_events; i++) {
        render_event_line(fixture.ctl.out, events->events[i]);
    }
    fixture_expect(&fixture, "events");
    wire_arena_close(&answer.arena);
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
        Google__Protobuf__Duration duration = GOOGLE__PROTOBUF__DURATION__INIT;

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
        cmocka_unit_test(nodes_counters_keys_and_listeners_are_tables),
        cmocka_unit_test(groups_are_a_table),
        cmocka_unit_test(backends_are_a_table),
        cmocka_unit_test(a_group_shows_fields_windows_and_backends),
        cmocka_unit_test(why_shows_votes_rule_and_what_would_change_it),
        cmocka_unit_test(events_are_a_table_or_lines),
        cmocka_unit_test(durations_are_short_and_times_are_rfc_3339),
    };

    is_update = argc > 1 && strcmp(argv[1], "--update") == 0;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
