/* Command lines that need no cluster: exit status and the exact message. */
#include "golden.h"

#include <jansson.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/str.h"

struct row {
    const char *line;
    int status;
    const char *err; /* whole text on stderr */
};

static void check(const struct row rows[], size_t n_rows)
{
    for (size_t i = 0; i < n_rows; i++) {
        struct golden_run run = run_nodectl(rows[i].line);

        if (run.status != rows[i].status || strcmp(run.err, rows[i].err) != 0 ||
            (run.status != 0 && run.out[0] != '\0')) {
            fail_msg("nodectl %s\nexpected %d:\n%s\ngot %d:\n%s\nstdout:\n%s", rows[i].line,
                     rows[i].status, rows[i].err, run.status, run.err, run.out);
        }
        run_close(&run);
    }
}

#define CHECK(rows) check(rows, sizeof(rows) / sizeof((rows)[0]))

static void wrong_usage_exits_with_2_and_says_what_to_do(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"", 2, "error: no command is given\nhint: see: nodectl --help\n"},
        {"statsu", 2, "error: unknown command \"statsu\"\nhint: did you mean \"status\"?\n"},
        {"stat", 2, "error: unknown command \"stat\"\nhint: see: nodectl --help\n"},
        {"list", 2, "error: unknown command \"list\"\nhint: did you mean \"group list\"?\n"},
        {"group", 2,
         "error: nodectl group needs a verb: list, describe or delete\nhint: see: nodectl group "
         "--help\n"},
        {"group lst", 2,
         "error: nodectl group has no verb \"lst\": list, describe or delete\nhint: did you mean "
         "\"group "
         "list\"?\n"},
        {"node list", 2,
         "error: nodectl node has no verb \"list\": describe, counters or metrics\nhint: did you "
         "mean \"cluster members\"?\n"},
        {"backend frobnicate", 2,
         "error: nodectl backend has no verb \"frobnicate\": list, drain, ready, weight, "
         "maintenance or remove\nhint: see: "
         "nodectl backend --help\n"},
        {"group list extra", 2,
         "error: nodectl group list does not take \"extra\"\nhint: usage: nodectl group list\n"},
        {"group describe", 2,
         "error: nodectl group describe needs NAME\nhint: usage: nodectl group describe NAME\n"},
        {"--nonsense", 2, "error: unknown flag --nonsense\n"},
        {"status --output JSON", 2,
         "error: --output must be one of table|json, got \"JSON\"\nhint: did you mean "
         "\"json\"?\n"},
        {"status --outptu json", 2, "error: unknown flag --outptu\nhint: did you mean --output?\n"},
        /* Names are never abbreviated. */
        {"status --out json", 2,
         "error: nodectl status has no flag --out\nhint: see: nodectl status --help\n"},
        {"status --verb", 2, "error: unknown flag --verb\n"},
        {"status -x", 2, "error: unknown flag -x\n"},
        {"status -o", 2, "error: -o needs a value: FORMAT\n"},
        {"status --output", 2, "error: --output needs a value: FORMAT\n"},
        {"status -o yaml", 2, "error: --output must be one of table|json, got \"yaml\"\n"},
        {"status --stale=yes", 2, "error: --stale takes no value\n"},
        {"status --timeout 5", 2,
         "error: --timeout: \"5\" is not a time: write a number and a unit such as 5s, 250ms or "
         "5m\n"},
        {"status --timeout 2m", 2, "error: --timeout must be 1ms..1m, got 2m\n"},
        {"status --timeout 1s --timeout 2s", 2, "error: --timeout is given twice\n"},
        {"status --wait", 2,
         "error: nodectl status has no flag --wait\nhint: see: nodectl status --help\n"},
        {"apply", 2,
         "error: no documents are named: --file is missing\nhint: nodectl apply -f FILE\n"},
        {"apply -f /nonexistent/web.yaml", 2,
         "error: /nonexistent/web.yaml cannot be read: No such file or directory\n"},
        {"apply -f deploy/examples/web.yaml --expected-revision 5", 2,
         "error: --expected-revision is about one object, and there are 2 documents\n"},
        {"apply -f deploy/examples/web.yaml --force 0", 2,
         "error: --force must be 1..4294967295, got \"0\"\n"},
        {"validate -f tests/unit/nodectl", 2,
         "error: tests/unit/nodectl holds no .yaml, .yml or .json file\n"},
        {"why web/", 2,
         "error: \"web/\" is not GROUP/BACKEND\nhint: usage: nodectl why "
         "GROUP[/BACKEND]\n"},
        {"hold set ''", 2,
         "error: GROUP is empty: name a server group, or leave it out for every group\n"},
        {"hold clear --local ''", 2,
         "error: GROUP is empty: name a server group, or leave it out for every group\n"},
        {"backend drain web", 2,
         "error: \"web\" is not GROUP/BACKEND\nhint: usage: nodectl backend drain GROUP/BACKEND\n"},
        {"backend drain web/10.0.0.1:80 --cancel --wait", 2,
         "error: --cancel takes the drain back: --wait, --timeout and --force do not go with it\n"},
        {"backend drain web/10.0.0.1:80 --timeout 2h", 2,
         "error: --timeout must be 0s..1h, got 2h\n"},
        {"events --type verdicts", 2,
         "error: --type must be one of verdict|reachable|opinion|group|observers|catalog|"
         "catalogs-differ|peer|drain|doubt|guard|held|admin|certificate|degraded|"
         "probe-budget|node|leader|few-votes, got "
         "\"verdicts\"\nhint: "
         "did you "
         "mean \"verdict\"?\n"},
        {"status --endpoints 10.0.0.1:7400", 2,
         "error: asking over the network needs your key (--key-file) and the nodes' public keys "
         "(--server-key)\nhint: or leave --endpoints out to ask the node on this machine\n"},
        {"status --endpoints ipc:///x --key-file k --server-key s", 2,
         "error: --endpoints takes HOST:PORT, got \"ipc:///x\"\n"},
        {"status --endpoints , --key-file k --server-key s", 2,
         "error: --endpoints takes HOST:PORT, got \"\"\n"},
        {"status --endpoints 10.0.0.1 --key-file k --server-key s", 2,
         "error: --endpoints takes HOST:PORT, got \"10.0.0.1\"\n"},
        {"status --endpoints 10.0.0.1:65536 --key-file k --server-key s", 2,
         "error: --endpoints takes HOST:PORT, got \"10.0.0.1:65536\"\n"},
        {"cluster init", 2,
         "error: no member is named: use --node or -f\nhint: see: nodectl cluster init --help\n"},
        {"cluster init --node id=1,ky=2", 2,
         "error: --node cannot be understood: \"id=1,ky=2\"\nhint: --node "
         "id=N,key=KEY|FILE,endpoint=HOST:MESHPORT:RAFTPORT[,role=voter][,zone=ZONE]; once for "
         "each member\n"},
        {"cluster init --node id=1,endpoint=h:1:2", 2,
         "error: --node: node \"1\": public key is missing\n"},
        {"key generate", 2,
         "error: no file is named\nhint: nodectl key generate FILE, or nodectl key generate "
         "--nodes 3 --out keys\n"},
        {"key generate --nodes 3", 2,
         "error: --nodes and --out go together: nodectl key generate --nodes 3 --out keys\n"},
        {"key generate --nodes 65 --out keys", 2, "error: --nodes must be 1..64, got \"65\"\n"},
        {"explain --example", 2,
         "error: --example needs a kind: nodectl explain group --example\n"},
        {"validate web.yaml", 2,
         "error: nodectl validate does not take \"web.yaml\"\n"
         "hint: a file is given with -f: nodectl validate -f web.yaml\n"},
        {"help grup", 2, "error: unknown command \"grup\"\nhint: did you mean \"group\"?\n"},
    };
    CHECK(rows);
}

static void what_cannot_be_explained_exits_with_7(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"explain grup", 7,
         "error: nothing to explain is called \"grup\"\nhint: did you mean \"group\"?\n"},
        {"explain group.chek", 7,
         "error: nothing to explain is called \"group.chek\"\nhint: did you mean "
         "\"group.check\"?\n"},
        {"explain interval", 7,
         "error: nothing to explain is called \"interval\"\nhint: did you mean "
         "\"group.check.interval\"?\n"},
        {"explain check.http.expect", 7,
         "error: nothing to explain is called \"check.http.expect\"\nhint: did you mean "
         "\"group.check.http.expect\"?\n"},
        {"explain http.expcet", 7,
         "error: nothing to explain is called \"http.expcet\"\nhint: did you mean "
         "\"group.check.http.expect\"?\n"},
        {"explain Group.Check.Type", 7,
         "error: nothing to explain is called \"Group.Check.Type\"\nhint: did you mean "
         "\"group.check.type\"?\n"},
        {"explain group.weight", 7,
         "error: nothing to explain is called \"group.weight\"\nhint: did you mean "
         "\"group.backends.weight\"?\n"},
        {"explain rules majorty", 7,
         "error: there is no rule \"majorty\": local, any, majority, all, at-least, percent or "
         "zone-majority\nhint: did you mean \"majority\"?\n"},
        {"explain reason CONECT_TIMEOUT", 7,
         "error: there is no reason \"CONECT_TIMEOUT\"\nhint: did you mean "
         "\"CONNECT_TIMEOUT\"?\n"},
        {"explain group.check.timeout.x", 7,
         "error: nothing to explain is called \"group.check.timeout.x\"\nhint: see: nodectl "
         "explain\n"},
        {"explain rule now", 7,
         "error: there is no rule \"now\": local, any, majority, all, at-least, percent or "
         "zone-majority\n"
         "hint: see: nodectl explain rules\n"},
        {"explain profile nlbb", 7,
         "error: there is no profile \"nlbb\": gwlb, nlb or clb\nhint: did you mean \"nlb\"?\n"},
        {"explain reason VANISHED", 7,
         "error: there is no reason \"VANISHED\"\nhint: see: nodectl explain reason\n"},
    };
    CHECK(rows);
}

static void without_an_agent_the_status_is_4(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"status --socket /nonexistent/agent.sock", 4,
         "error: no agent listens at /nonexistent/agent.sock: No such file or directory\nhint: is "
         "jury-agent running here? --socket names its unix socket, --endpoints a node "
         "elsewhere\n"},
    };
    CHECK(rows);
}

static const char bad_document[] = "apiVersion: jury/v1\nkind: Group\nmetadata: {name: web}\n"
                                   "spec:\n  profile: nlb\n  conect_port: 80\n";

static void an_invalid_document_exits_with_3_and_names_the_place(void **state)
{
    (void)state;
    static const char *const lines[] = {"validate -f -", "apply -f -", "apply -f - --dry-run"};

    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        struct golden_run run = run_nodectl_in(lines[i], bad_document, "");

        assert_int_equal(run.status, 3);
        assert_string_equal(run.out, "");
        assert_string_equal(run.err, "-:6:3: server group \"web\": unknown field \"conect_port\"\n"
                                     "     6 |   conect_port: 80\n"
                                     "       |   ^\n");
        run_close(&run);
    }
}

/* A file of somebody else's is looked at before it is trusted. */
static void an_error_does_not_steer_the_terminal(void **state)
{
    static const char *const documents[] = {
        "apiVersion: jury/v1\nkind: Group\nmetadata: {name: web, \"\\e[31m\\u009b2J\": 1}\n",
        "apiVersion: jury/v1\nkind: \xff\xc2\x9b\n",
    };

    (void)state;
    for (size_t i = 0; i < sizeof documents / sizeof documents[0]; i++) {
        struct golden_run run = run_nodectl_in("validate -f -", documents[i], "");

        assert_int_equal(run.status, 3);
        for (char *line = strtok(run.err, "\n"); line != NULL; line = strtok(NULL, "\n")) {
            assert_true(str_is_text(line));
        }
        run_close(&run);
    }
}

static void an_empty_file_exits_with_3(void **state)
{
    (void)state;
    struct golden_run run = run_nodectl_in("apply -f -", "", "");

    assert_int_equal(run.status, 3);
    assert_string_equal(run.err,
                        "-: there is no document in this file; nothing would be applied\n");
    run_close(&run);
}

static void documents_of_other_kinds_cannot_make_a_cluster(void **state)
{
    (void)state;
    struct golden_run run = run_nodectl("cluster init -f deploy/examples/web.yaml");

    assert_int_equal(run.status, 3);
    assert_string_equal(run.err, "error: server group \"web\" cannot be part of cluster init: make "
                                 "the cluster first, then apply it\n");
    run_close(&run);
}

/* The file that is applied may be the one that is simulated. */
static void simulate_takes_the_group_of_a_file_with_a_listener(void **state)
{
    (void)state;
    struct golden_run run =
        run_nodectl("simulate -f deploy/examples/web.yaml --socket /nonexistent/a");

    assert_int_equal(run.status, 4); /* so far, and no agent */
    assert_non_null(
        strstr(run.err, "warning: only Group web is replayed; the other documents are left out\n"));
    run_close(&run);

    run = run_nodectl("simulate -f deploy/examples/web.yaml -f deploy/examples/clb.yaml");
    assert_int_equal(run.status, 2);
    assert_non_null(
        strstr(run.err, "simulate takes exactly one document of kind Group; there are 3"));
    run_close(&run);
}

/* {code, reason, message, metadata, requestId}, whatever went wrong, and nothing beside it. */
static void every_error_is_one_json_object(void **state)
{
    (void)state;
    static const struct {
        const char *line;
        const char *environment;
        int status;
        const char *code;
        const char *reason;
    } rows[] = {
        {"--nonsense -o json", "", 2, "CODE_INVALID_ARGUMENT", "USAGE"},
        {"-o json statsu", "", 2, "CODE_INVALID_ARGUMENT", "USAGE"},
        {"statsu", "NODECTL_OUTPUT=json", 2, "CODE_INVALID_ARGUMENT", "USAGE"},
        {"status -ojson --timeout 5", "", 2, "CODE_INVALID_ARGUMENT", "USAGE"},
        {"validate -o=json -f -", "", 3, "CODE_INVALID_ARGUMENT", "INVALID_VALUE"},
        {"status --output=json --socket /nonexistent/a", "", 4, "CODE_UNAVAILABLE", "UNREACHABLE"},
        {"explain grup -o json", "", 7, "CODE_NOT_FOUND", "NOT_FOUND"},
        {"key show /nonexistent/key -o json", "", 3, "CODE_FAILED_PRECONDITION", "CONFIGURATION"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct golden_run run = run_nodectl_in(rows[i].line, bad_document, rows[i].environment);
        json_error_t error;
        json_t *json = json_loads(run.err, 0, &error);

        if (json == NULL) {
            fail_msg("nodectl %s: %s\n%s", rows[i].line, error.text, run.err);
        }
        assert_int_equal(run.status, rows[i].status);
        assert_string_equal(run.out, "");
        assert_string_equal(json_string_value(json_object_get(json, "code")), rows[i].code);
        assert_string_equal(json_string_value(json_object_get(json, "reason")), rows[i].reason);
        assert_true(json_string_length(json_object_get(json, "message")) > 0);
        assert_true(json_is_object(json_object_get(json, "metadata")));
        assert_true(json_is_string(json_object_get(json, "requestId")));
        assert_int_equal(json_object_size(json), 5);
        json_decref(json);
        run_close(&run);
    }
}

static void the_place_of_a_document_is_in_the_json_error(void **state)
{
    (void)state;
    struct golden_run run = run_nodectl_in("validate -f - -o json", bad_document, "");
    json_t *json = json_loads(run.err, 0, NULL);
    json_t *metadata = json_object_get(json, "metadata");

    assert_string_equal(json_string_value(json_object_get(metadata, "file")), "-");
    assert_string_equal(json_string_value(json_object_get(metadata, "line")), "6");
    assert_string_equal(json_string_value(json_object_get(metadata, "column")), "3");
    json_decref(json);
    run_close(&run);
}

static void every_error_of_the_documents_is_told(void **state)
{
    (void)state;
    static const char documents[] =
        "apiVersion: jury/v1\nkind: Group\nmetadata: {name: web}\nspec:\n  profil: nlb\n  colour: "
        "1\n"
        "---\napiVersion: jury/v1\nkind: Grup\nmetadata: {name: api}\nspec: {}\n";
    struct golden_run run = run_nodectl_in("validate -f -", documents, "");
    assert_int_equal(run.status, 3);
    assert_string_equal(run.out, "");
    assert_non_null(strstr(run.err, "-:5:3: server group \"web\": unknown field \"profil\""));
    assert_non_null(strstr(run.err, "\n-:6:3: server group \"web\": unknown field \"colour\""));
    assert_non_null(strstr(run.err, "\n-:9:7: document: kind must be"));
    run_close(&run);

    run = run_nodectl_in("apply -f - -o json", documents, "");
    assert_int_equal(run.status, 3);
    json_t *json = json_loads(run.err, 0, NULL);
    json_t *errors = json_object_get(json_object_get(json, "metadata"), "errors");
    assert_int_equal(json_array_size(errors), 3);
    json_t *second = json_array_get(errors, 1);
    assert_string_equal(json_string_value(json_object_get(second, "file")), "-");
    assert_int_equal(json_integer_value(json_object_get(second, "line")), 6);
    assert_int_equal(json_integer_value(json_object_get(second, "column")), 3);
    assert_non_null(strstr(json_string_value(json_object_get(second, "message")), "colour"));
    assert_true(json_is_false(json_object_get(json_object_get(json, "metadata"), "hasMoreErrors")));
    json_decref(json);
    run_close(&run);
}

static void a_list_of_errors_that_is_cut_says_so_in_json(void **state)
{
    (void)state;
    char documents[2048] = "";
    size_t used = 0;

    for (unsigned i = 0; i < 21; i++) {
        used += (size_t)snprintf(documents + used, sizeof documents - used,
                                 "%sapiVersion: jury/v1\nkind: Grup\n", i > 0 ? "---\n" : "");
    }
    struct golden_run run = run_nodectl_in("validate -f - -o json", documents, "");
    assert_int_equal(run.status, 3);
    json_t *json = json_loads(run.err, 0, NULL);
    json_t *metadata = json_object_get(json, "metadata");
    assert_int_equal(json_array_size(json_object_get(metadata, "errors")), 20);
    assert_true(json_is_true(json_object_get(metadata, "hasMoreErrors")));
    json_decref(json);
    run_close(&run);
}

static void a_flag_wins_over_its_variable_and_that_over_the_default(void **state)
{
    (void)state;
    struct golden_run run =
        run_nodectl_in("status", "", "NODECTL_SOCKET=/nonexistent/from-variable");
    assert_non_null(strstr(run.err, "/nonexistent/from-variable"));
    run_close(&run);

    run = run_nodectl_in("status --socket /nonexistent/from-flag", "",
                         "NODECTL_SOCKET=/nonexistent/from-variable");
    assert_non_null(strstr(run.err, "/nonexistent/from-flag"));
    run_close(&run);

    run = run_nodectl_in("explain rules", "", "NODECTL_OUTPUT=");
    assert_int_equal(run.status, 0);
    run_close(&run);

    run = run_nodectl_in("status", "", "NODECTL_TIMEOUT=1y");
    assert_int_equal(run.status, 2);
    assert_string_equal(run.err, "error: NODECTL_TIMEOUT: \"1y\" is not a time: write a number and "
                                 "a unit such as 5s, 250ms or 5m\n");
    run_close(&run);
}

static void every_example_is_valid_offline(void **state)
{
    (void)state;
    struct golden_run run = run_nodectl("validate -f deploy/examples -q");

    assert_int_equal(run.status, 0);
    assert_string_equal(run.err, "");
    assert_non_null(strstr(run.out, "deploy/examples/web.yaml:6: server group \"web\" is valid\n"));
    run_close(&run);
}

static void expect_warning(const char *command, const char *text, int status, const char *warning)
{
    struct golden_run run = run_nodectl_in(command, text, "");

    assert_int_equal(run.status, status);
    assert_non_null(strstr(run.err, warning));
    run_close(&run);
}

/* spec.md 4: a warning is one line with place, object, field, and the better setting. It refuses
 * nothing: apply goes on until nobody answers. */
static void validate_and_apply_warn_with_the_place_and_change_nothing(void **state)
{
    (void)state;
    static const char text[] = "apiVersion: jury/v1\nkind: Group\nmetadata: {name: web}\n"
                               "spec:\n  profile: nlb\n  check:\n    type: http\n"
                               "    http: {domain: a.b,\n           expect: \"2xx,404\"}\n";
    static const char warning[] =
        "warning: -:9: server group \"web\": check.http.expect: lets 4xx or 5xx pass: a broken "
        "service looks healthy; better: a page of its own, such as /health, that answers 200 "
        "(own-page)\n";
    static const char apply[] = "apply -f - --socket /nonexistent/a";

    expect_warning("validate -f -", text, 0, warning);
    expect_warning(apply, text, 4, warning);
    expect_warning("apply --dry-run -f - --socket /nonexistent/a", text, 4, warning);

    struct golden_run run = run_nodectl_in("validate -f - -o json", text, "");
    json_t *json = json_loads(run.out, 0, NULL);
    assert_int_equal(json_array_size(json_object_get(json, "documents")), 1);
    json_t *list = json_object_get(json, "advice");
    assert_int_equal(json_array_size(list), 1);
    json_t *first = json_array_get(list, 0);
    assert_string_equal(json_string_value(json_object_get(first, "id")), "own-page");
    assert_int_equal(json_integer_value(json_object_get(first, "line")), 9);
    assert_true(json_is_true(json_object_get(first, "warning")));
    assert_string_equal(run.err, "");
    json_decref(json);
    run_close(&run);
}

/* Each tls and grpc group was told that an agent may be built without, whether one is or not. */
static void an_optional_part_is_no_advice_where_nothing_is_known_of_nodes(void **state)
{
    (void)state;
    static const char text[] = "apiVersion: jury/v1\nkind: Group\nmetadata: {name: rpc}\n"
                               "spec: {profile: nlb, check: {type: grpc}}\n";
    static const char *const lines[] = {"validate -f -", "apply -f - --socket /nonexistent/a"};

    for (size_t i = 0; i < 2; i++) {
        struct golden_run run = run_nodectl_in(lines[i], text, "");

        assert_null(strstr(run.err, "advice: "));
        assert_null(strstr(run.err, "warning: "));
        run_close(&run);
    }
    struct golden_run explained = run_nodectl("explain group.check.tls");
    assert_non_null(strstr(explained.out, "An agent may be built without tls and grpc checks"));
    run_close(&explained);
}

/* A udp group of profile nlb without a check was checked by tcp without a word. */
static void the_check_of_a_group_that_is_not_tcp_is_told_with_its_port(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"protocol: udp",
         "server group \"dns\": protocol udp, checked by tcp on each backend's own "
         "port, which has to take TCP connections; check: {type: udp} asks by "
         "datagrams\n"},
        {"protocol: udp, check: {type: http, port: 81}",
         "server group \"dns\": protocol udp, checked by http on port 81\n"},
        {"protocol: udp, check: {type: udp}", "server group \"dns\": protocol udp, checked by udp "
                                              "(port+echo) on each backend's own port\n"},
        {"protocol: tcp_udp", "server group \"dns\": protocol tcp_udp, checked by tcp on each "
                              "backend's own port\n"},
        {"protocol: udp, checks: [{name: a, type: udp}, {name: b, port: 7}]",
         "server group \"dns\": protocol udp, checked by udp (port+echo) on each backend's own "
         "port "
         "as a, tcp on port 7 as b\n"},
        {"protocol: udp, check: {enabled: false}", NULL},
        {"protocol: tcp", NULL},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[512];

        snprintf(text, sizeof text,
                 "apiVersion: jury/v1\nkind: Group\nmetadata: {name: dns}\n"
                 "spec: {profile: nlb, %s}\n",
                 rows[i][0]);
        struct golden_run valid = run_nodectl_in("validate -f -", text, "");
        struct golden_run applied = run_nodectl_in("apply -f - --socket /nonexistent/a", text, "");
        assert_int_equal(valid.status, 0);
        if (rows[i][1] == NULL) {
            assert_null(strstr(valid.err, "checked by"));
        } else if (strstr(valid.err, rows[i][1]) == NULL ||
                   strstr(applied.err, rows[i][1]) == NULL) {
            fail_msg("expected: %sgot: %s%s", rows[i][1], valid.err, applied.err);
        }
        run_close(&valid);
        run_close(&applied);
    }
}

/* A path of 40 characters was once taken for a key in ZeroMQ's spelling, which has "/" as well. */
static void a_key_file_whose_path_has_40_characters_is_a_file(void **state)
{
    (void)state;
    char folder[] = "/tmp/jury-test-key-XXXXXX";
    char path[64];
    char line[256];

    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/node-1-abc.pub", folder);
    assert_int_equal(strlen(path), 40);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs("no key\n", file);
    fclose(file);

    snprintf(line, sizeof line, "cluster init --node id=1,key=%s,endpoint=127.0.0.1:1:2", path);
    struct golden_run run = run_nodectl(line);
    assert_int_equal(run.status, 3);
    assert_non_null(strstr(run.err, path));

    run_close(&run);
    unlink(path);
    rmdir(folder);
}

static void keys_are_made_and_never_overwritten(void **state)
{
    (void)state;
    char folder[] = "/tmp/jury-test-keys-XXXXXX";
    char line[256];
    struct stat info;

    assert_non_null(mkdtemp(folder));
    snprintf(line, sizeof line, "key generate --nodes 2 --out %s/keys -o json", folder);
    struct golden_run run = run_nodectl(line);
    assert_int_equal(run.status, 0);
    json_t *json = json_loads(run.out, 0, NULL);
    assert_int_equal(json_array_size(json_object_get(json, "keys")), 3);
    json_decref(json);
    run_close(&run);
    snprintf(line, sizeof line, "%s/keys/node-2.key", folder);
    assert_int_equal(stat(line, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0600);

    snprintf(line, sizeof line, "key generate --nodes 3 --out %s/keys", folder);
    run = run_nodectl(line);
    assert_int_equal(run.status, 8);
    assert_non_null(strstr(run.err, "node-1.key exists already"));
    run_close(&run);
    snprintf(line, sizeof line, "%s/keys/node-3.key", folder);
    assert_int_equal(access(line, F_OK), -1); /* all of the set or nothing */

    snprintf(line, sizeof line, "key generate %s/keys/admin.key", folder);
    run = run_nodectl(line);
    assert_int_equal(run.status, 8);
    run_close(&run);

    snprintf(line, sizeof line, "key show --public %s/keys/admin.pub", folder);
    struct golden_run half = run_nodectl(line);
    snprintf(line, sizeof line, "key show --public %s/keys/admin.key", folder);
    struct golden_run pair = run_nodectl(line);
    assert_int_equal(strlen(half.out), 65);
    assert_string_equal(half.out, pair.out);
    run_close(&half);
    run_close(&pair);

    static const char *const files[] = {"node-1.key", "node-1.pub", "node-2.key",
                                        "node-2.pub", "admin.key",  "admin.pub"};
    for (size_t i = 0; i < 6; i++) {
        snprintf(line, sizeof line, "%s/keys/%s", folder, files[i]);
        assert_int_equal(unlink(line), 0);
    }
    snprintf(line, sizeof line, "%s/keys", folder);
    assert_int_equal(rmdir(line), 0);
    assert_int_equal(rmdir(folder), 0);
}

static void version_names_this_program_without_a_node(void **state)
{
    (void)state;
    struct golden_run run = run_nodectl("version --socket /nonexistent/a");

    assert_int_equal(run.status, 0);
    assert_string_equal(run.out, "nodectl " JURY_VERSION " (api 1)\n");
    assert_non_null(strstr(run.err, "warning: no node answered: "));
    run_close(&run);

    run = run_nodectl("version -o json --socket /nonexistent/a");
    json_t *json = json_loads(run.out, 0, NULL);
    assert_string_equal(json_string_value(json_object_get(json, "nodectl")), JURY_VERSION);
    assert_true(json_is_null(json_object_get(json, "node")));
    assert_string_equal(run.err, "");
    json_decref(json);
    run_close(&run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrong_usage_exits_with_2_and_says_what_to_do),
        cmocka_unit_test(what_cannot_be_explained_exits_with_7),
        cmocka_unit_test(without_an_agent_the_status_is_4),
        cmocka_unit_test(simulate_takes_the_group_of_a_file_with_a_listener),
        cmocka_unit_test(an_invalid_document_exits_with_3_and_names_the_place),
        cmocka_unit_test(an_error_does_not_steer_the_terminal),
        cmocka_unit_test(an_empty_file_exits_with_3),
        cmocka_unit_test(documents_of_other_kinds_cannot_make_a_cluster),
        cmocka_unit_test(every_error_is_one_json_object),
        cmocka_unit_test(the_place_of_a_document_is_in_the_json_error),
        cmocka_unit_test(every_error_of_the_documents_is_told),
        cmocka_unit_test(a_list_of_errors_that_is_cut_says_so_in_json),
        cmocka_unit_test(a_flag_wins_over_its_variable_and_that_over_the_default),
        cmocka_unit_test(every_example_is_valid_offline),
        cmocka_unit_test(validate_and_apply_warn_with_the_place_and_change_nothing),
        cmocka_unit_test(an_optional_part_is_no_advice_where_nothing_is_known_of_nodes),
        cmocka_unit_test(the_check_of_a_group_that_is_not_tcp_is_told_with_its_port),
        cmocka_unit_test(a_key_file_whose_path_has_40_characters_is_a_file),
        cmocka_unit_test(keys_are_made_and_never_overwritten),
        cmocka_unit_test(version_names_this_program_without_a_node),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
