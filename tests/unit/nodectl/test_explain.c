/* What `explain` says of fields is what the reader of documents does: minimal documents are read,
 * and each of their fields is compared with the default that is told. */
#include "golden.h"

#include <jansson.h>

#include "common/spec/field.h"
#include "common/spec/value.h"
#include "tests/lib/spec_first.h"

#define KEY "6f1d0a5b9c3e47d28a1b5c6d7e8f90123456789abcdef0123456789abcdef012"

static struct spec_set read_one(const char *text)
{
    struct spec_set set = {0};
    struct spec_error error = {0};

    if (spec_read_first(&set, "f.yaml", text, strlen(text), &error) != 0) {
        fail_msg("%s\nis refused: %s", text, error.message.text);
    }
    assert_int_equal(set.n_documents, 1);
    return set;
}

/* The field as `explain TABLE -o json` tells it; "" = it says nothing. Given: json_decref. */
static json_t *explained(const char *path)
{
    char line[256];

    snprintf(line, sizeof line, "explain %s -o json", path);
    struct golden_run run = run_nodectl(line);
    if (run.status != 0) {
        fail_msg("nodectl %s: %s", line, run.err);
    }
    json_t *answer = json_loads(run.out, 0, NULL);
    assert_non_null(answer);
    run_close(&run);
    return answer;
}

static const char *member(const json_t *answer, const char *field, const char *key)
{
    const json_t *fields = json_object_get(answer, "fields");

    for (size_t i = 0; i < json_array_size(fields); i++) {
        const json_t *row = json_array_get(fields, i);

        if (strcmp(json_string_value(json_object_get(row, "name")), field) == 0) {
            return json_string_value(json_object_get(row, key));
        }
    }
    fail_msg("explain does not know the field %s", field);
    return "";
}

/* Copy from behind `head` to the next `end`, or to the end. False: there is no such head. */
static bool cut_out(const char *told, const char *head, const char *end, char text[256])
{
    const char *from = strstr(told, head);

    if (from == NULL) {
        return false;
    }
    from += strlen(head);
    const char *to = strstr(from, end);
    snprintf(text, 256, "%.*s", (int)(to == NULL ? strlen(from) : (size_t)(to - from)), from);
    return true;
}

/* Whose defaults are compared. */
struct told {
    const char *profile;
    const char *protocol, *type; /* what they may follow from */
    bool is_protocol_written, is_type_written;
    unsigned n; /* fields compared */
};

/* What "gwlb 10s, nlb 5s, clb 2s; clb with type udp: 5s" says of one profile. */
static void told_of(const struct told *told, const char *text, char said[256])
{
    char head[64];
    char all[256];

    snprintf(head, sizeof head, "; %s with type %s: ", told->profile, told->type);
    if (cut_out(text, head, ";", said)) {
        return;
    }
    snprintf(head, sizeof head, "; %s with protocol %s: ", told->profile, told->protocol);
    if (cut_out(text, head, ";", said)) {
        return;
    }
    assert_true(cut_out(text, "", ";", all));
    if (strncmp(all, "gwlb ", 5) != 0) {
        strcpy(said, all);
        return;
    }
    snprintf(head, sizeof head, "%s ", told->profile);
    assert_true(cut_out(all, head, ", ", said));
    if (strcmp(said, "-") == 0) {
        said[0] = '\0';
    }
}

static void read_text(const struct spec_field *field, const uint8_t *base, char text[256])
{
    char value[VALUE_TEXT_BYTES];

    text[0] = '\0';
    if (field->type == SPEC_TYPE_LIST) {
        uint32_t n = *(const uint32_t *)(const void *)(base + field->list->count_offset);

        for (uint32_t i = 0; i < n; i++) {
            const uint8_t *element = base + field->offset + i * field->list->element_bytes;

            strcat(text, i == 0 ? "" : ", ");
            strcat(text, value_format(field->list->scalar, element, value, sizeof value));
        }
    } else if ((field->flags & SPEC_OMIT_ZERO) == 0 ||
               !value_is_zero(field, base + field->offset)) {
        value_format(field, base + field->offset, value, sizeof value);
        snprintf(text, 256, "%.255s", strcmp(value, "?") == 0 ? "" : value);
    }
}

/* The document says it itself, or the field has no one default. */
static bool is_left_out(const struct told *told, const struct spec_field *field)
{
    bool is_own = (field->flags & (SPEC_REQUIRED | SPEC_ALTERNATE | SPEC_LATER)) != 0;
    bool is_mapping = field->type == SPEC_TYPE_LABELS || field->type == SPEC_TYPE_ENDPOINT ||
                      (field->type == SPEC_TYPE_LIST && field->list->scalar == NULL);
    bool is_other = field->type == SPEC_TYPE_PASS || (field->flags & SPEC_ZERO_KEEPS) != 0;

    return is_own || is_mapping || is_other ||
           (told->is_type_written && strcmp(field->name, "type") == 0) ||
           (told->is_protocol_written && strcmp(field->name, "protocol") == 0);
}

static void compare_below(struct told *told, const struct spec_table *table, const uint8_t *base,
                          const char *path)
{
    json_t *answer = explained(path);

    for (size_t i = 0; i < table->n_fields; i++) {
        const struct spec_field *field = &table->fields[i];
        char inner[128];
        char wanted[256];
        char said[256];

        snprintf(inner, sizeof inner, "%s.%s", path, field->name);
        if (!spec_field_applies(field, base) || is_left_out(told, field)) {
            continue;
        }
        if (field->type == SPEC_TYPE_OBJECT) {
            compare_below(told, field->fields, base + field->offset, inner);
            continue;
        }
        told_of(told, member(answer, field->name, "default"), said);
        read_text(field, base, wanted);
        if (strcmp(said, wanted) != 0) {
            fail_msg("%s with profile %s, %s, %s: a document has \"%s\", explain says \"%s\" (%s)",
                     inner, told->profile, told->protocol, told->type, wanted, said,
                     member(answer, field->name, "default"));
        }
        told->n++;
    }
    json_decref(answer);
}

/* A group with nothing but what is given; type: "" = none is written. */
static void compare_group(const char *profile, const char *protocol, const char *type)
{
    const struct spec_table *spec = spec_kind_info(SPEC_GROUP)->spec;
    struct told told = {.profile = profile, .protocol = protocol, .is_protocol_written = true};
    char text[512];
    char written[64] = "";

    if (type[0] != '\0') {
        snprintf(written, sizeof written, "type: %s", type);
    }
    snprintf(text, sizeof text,
             "apiVersion: jury/v1\nkind: Group\nmetadata: {name: web}\nspec:\n"
             "  profile: %s\n  protocol: %s\n  check: {%s}\n"
             "  backends: [{at: '10.0.0.1:80'}]\n",
             profile, protocol, written);
    struct spec_set set = read_one(text);
    const struct server_group *group = set.documents[0].u.group;
    told.type = names_word(&names_check_type, group->check.type);
    told.is_type_written = type[0] != '\0';
    compare_below(&told, spec, (const uint8_t *)group, "group");
    assert_true(told.n > 20);
    told.is_type_written = false;
    compare_below(&told, spec_field_find(spec, "backends")->list->fields,
                  (const uint8_t *)&group->backends[0], "group.backends");
    spec_set_close(&set);
}

/* The same of the second of two checks; the first has nothing but a name. */
static void compare_checks(const char *profile, const char *protocol, const char *type)
{
    const struct spec_field *checks = spec_field_find(spec_kind_info(SPEC_GROUP)->spec, "checks");
    struct told told = {.profile = profile, .protocol = protocol, .is_protocol_written = true};
    char text[512];

    snprintf(text, sizeof text,
             "apiVersion: jury/v1\nkind: Group\nmetadata: {name: web}\nspec:\n"
             "  profile: %s\n  protocol: %s\n"
             "  checks: [{name: first}, {name: second, type: %s, class: dependency}]\n",
             profile, protocol, type);
    struct spec_set set = read_one(text);
    struct server_group *group = set.documents[0].u.group;
    assert_string_equal(names_word(&names_check_class, group->checks[1].check_class), "dependency");
    group->checks[1].check_class = CHECK_LOCAL;
    for (uint32_t i = 0; i < group->n_checks; i++) {
        told.type = names_word(&names_check_type, group->checks[i].check.type);
        told.is_type_written = i == 1;
        compare_below(&told, checks->list->fields, (const uint8_t *)&group->checks[i],
                      "group.checks");
    }
    assert_true(told.n > 25);
    spec_set_close(&set);
}

/* Defaults of a list's elements were told as zero, and those of a list of prefixes not at all. */
static void defaults_that_are_told_are_those_that_a_group_gets(void **state)
{
    (void)state;
    static const char *const types[] = {"", "tcp", "http", "udp", "tls", "grpc"};
    static const char *const protocols[] = {"tcp", "udp", "tcp_udp"};
    static const char *const profiles[] = {"nlb", "clb"};

    for (size_t i = 0; i < 2; i++) {
        for (size_t p = 0; p < 3; p++) {
            for (size_t t = 0; t < 6; t++) {
                compare_group(profiles[i], protocols[p], types[t]);
                if (t > 0) {
                    compare_checks(profiles[i], protocols[p], types[t]);
                }
            }
        }
    }
    compare_group("gwlb", "tcp", "");
    compare_group("gwlb", "tcp", "http");
    compare_checks("gwlb", "tcp", "http");
}

static void defaults_that_are_told_are_those_of_the_other_kinds(void **state)
{
    (void)state;
    static const char *const documents[][2] = {
        {"listener", "kind: Listener\nmetadata: {name: front}\n"
                     "spec: {at: '10.0.0.1:80', group: web}\n"},
        {"clustersettings", "kind: ClusterSettings\nspec: {}\n"},
        {"node", "kind: Node\nspec: {id: 4, key: " KEY
                 ", endpoints: [{host: a, meshPort: 1, raftPort: 2}]}\n"},
        {"key", "kind: Key\nmetadata: {name: anna}\nspec: {role: viewer, key: " KEY "}\n"},
    };

    for (size_t i = 0; i < sizeof documents / sizeof documents[0]; i++) {
        struct told told = {.profile = "nlb", .protocol = "tcp", .type = "tcp"};
        char text[512];

        snprintf(text, sizeof text, "apiVersion: jury/v1\n%s", documents[i][1]);
        struct spec_set set = read_one(text);
        const struct spec_kind_info *kind = spec_kind_info((enum spec_kind)set.documents[0].kind);
        compare_below(&told, kind->spec, (const uint8_t *)set.documents[0].u.group,
                      documents[i][0]);
        assert_true(told.n > 0);
        spec_set_close(&set);
    }
}

/* --- ranges --- */

/* Whether a group takes the value of the field: "check.tls.warnDays". */
static bool is_taken(const char *path, const char *value)
{
    struct spec_set set = {0};
    struct spec_error error = {0};
    char text[512] = "apiVersion: jury/v1\nkind: Group\nmetadata: {name: web}\nspec:\n"
                     "  profile: nlb\n  rule: majority\n";
    unsigned indent = 2;

    for (const char *at = path; *at != '\0'; indent += 2) {
        size_t n = strcspn(at, ".");
        bool is_last = at[n] == '\0';

        snprintf(text + strlen(text), sizeof text - strlen(text), "%*s%.*s: %s\n", (int)indent, "",
                 (int)n, at, is_last ? value : "");
        if (at == path && strncmp(path, "check.tls.", strlen("check.tls.")) == 0) {
            strcat(text, "    type: tls\n"); /* the field exists with this type only */
        }
        at += is_last ? n : n + 1;
    }
    int rc = spec_read_first(&set, "f.yaml", text, strlen(text), &error);
    if (rc == 0) {
        spec_set_close(&set);
    }
    return rc == 0;
}

static void expect_range(const char *path, const struct spec_field *field)
{
    const char *unit = field->type == SPEC_TYPE_DURATION ? "ms" : "";
    const uint64_t values[] = {field->min, field->max, field->min - 1, field->max + 1};

    for (size_t i = 0; i < 4; i++) {
        char value[32];

        if (i == 2 && field->min <= 1) {
            continue; /* zero is a word of its own, or there is nothing below it */
        }
        snprintf(value, sizeof value, "%llu%s", (unsigned long long)values[i], unit);
        if (is_taken(path, value) != (i < 2)) {
            fail_msg("%s: explain %s %s, and the reader does not agree", path,
                     i < 2 ? "allows" : "forbids", value);
        }
    }
}

static unsigned expect_ranges(const struct spec_table *table, const char *prefix)
{
    unsigned n = 0;

    for (size_t i = 0; i < table->n_fields; i++) {
        const struct spec_field *field = &table->fields[i];
        char path[128];

        snprintf(path, sizeof path, "%s%s", prefix, field->name);
        if (field->type == SPEC_TYPE_OBJECT) {
            strcat(path, ".");
            n += expect_ranges(field->fields, path);
        } else if (field->type == SPEC_TYPE_UINT || field->type == SPEC_TYPE_DURATION) {
            expect_range(path, field);
            n++;
        }
    }
    return n;
}

static void ranges_that_are_told_are_those_that_the_whole_document_has(void **state)
{
    (void)state;

    assert_true(expect_ranges(spec_kind_info(SPEC_GROUP)->spec, "") >= 17);
}

/* --- what is told of a list of checks --- */

static bool is_taken_in_a_list(const char *field, const char *value)
{
    struct spec_set set = {0};
    struct spec_error error = {0};
    char text[512];

    snprintf(text, sizeof text,
             "apiVersion: jury/v1\nkind: Group\nmetadata: {name: web}\nspec:\n"
             "  profile: nlb\n  rule: majority\n"
             "  checks: [{name: first, %s: %s}, {name: second, port: 9}]\n",
             field, value);
    int rc = spec_read_first(&set, "f.yaml", text, strlen(text), &error);
    if (rc == 0) {
        spec_set_close(&set);
    }
    return rc == 0;
}

static void explain_tells_what_a_list_of_checks_takes(void **state)
{
    (void)state;
    static const char *const rows[][4] = {
        {"enabled", "true in a list of checks", "true", "false"},
        {"probers", "all in a list of checks", "all", "3"},
        {"recheck", "false in a list of checks", "false", "true"},
    };
    json_t *answer = explained("group.checks");

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_string_equal(member(answer, rows[i][0], "allowed"), rows[i][1]);
        assert_true(is_taken_in_a_list(rows[i][0], rows[i][2]));
        assert_false(is_taken_in_a_list(rows[i][0], rows[i][3]));
    }
    json_decref(answer);
}

/* --- words that answers show --- */

static void reasons_rules_and_profiles_are_explained_by_their_name(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"explain RECV_RESPONSE_TIMEOUT", "explain reason RECV_RESPONSE_TIMEOUT"},
        {"explain local_no_route", "explain reason LOCAL_NO_ROUTE"},
        {"explain majority", "explain rule majority"},
        {"explain clb", "explain profile clb"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct golden_run by_name = run_nodectl(rows[i][0]);
        struct golden_run whole = run_nodectl(rows[i][1]);

        assert_int_equal(by_name.status, 0);
        assert_string_equal(by_name.out, whole.out);
        run_close(&by_name);
        run_close(&whole);
    }
}

static void a_word_that_answers_show_leads_to_what_explains_it(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"explain RECV_RESPONSE_TIMEOT", "did you mean \"RECV_RESPONSE_TIMEOUT\"?"},
        {"explain loop-late", "see: nodectl explain self-doubt"},
        {"explain group.chek.timeout", "did you mean \"group.check.timeout\"?"},
        {"explain udp.echoes", "see: nodectl explain"},
        {"explain nonesuch", "see: nodectl explain"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct golden_run run = run_nodectl(rows[i][0]);

        assert_int_equal(run.status, 7);
        assert_non_null(strstr(run.err, rows[i][1]));
        run_close(&run);
    }
}

static void words_of_answers_are_explained_by_their_paragraph(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"held", "too few votes to go down"},
        {"pending", "a guard makes it wait"},
        {"unreachable", "this node's own opinion is fail"},
        {"suspect", "its sender doubts its own probes"},
        {"suspect", "its vote is taken back"},
        {"warming", "at the start of a group or agent"},
        {"flapping", "it went down again within 10 minutes"},
        {"lost", "its sender fell silent"},
        {"velocity", "at most velocityPercent"},
        {"STANDING", "lost, only blocks"},
        {"MARKS", "beside the state"},
        {"EPOCH", "how often that node was started"},
        {"BEHIND", "generations of the forwarding table"},
        {"state hash", "the whole configuration"},
        {"streak", "in a row"},
        {"opinion", "by its own probes"},
        {"reachable", "own probes reach"},
        {"unhealthy", "the votes say that it is down"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char line[80];

        snprintf(line, sizeof line, "explain %s", rows[i][0]);
        struct golden_run run = run_nodectl(line);
        char *out = strdup(run.out);
        for (char *at = out; *at != '\0'; at++) { /* lines are broken anywhere */
            *at = *at == '\n' ? ' ' : *at;
        }
        if (run.status != 0 || strstr(out, rows[i][1]) == NULL ||
            strstr(out, "More: nodectl explain ") == NULL) {
            fail_msg("%s: %d\n%s%s", line, run.status, run.out, run.err);
        }
        free(out);
        run_close(&run);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_that_are_told_are_those_that_a_group_gets),
        cmocka_unit_test(defaults_that_are_told_are_those_of_the_other_kinds),
        cmocka_unit_test(ranges_that_are_told_are_those_that_the_whole_document_has),
        cmocka_unit_test(explain_tells_what_a_list_of_checks_takes),
        cmocka_unit_test(reasons_rules_and_profiles_are_explained_by_their_name),
        cmocka_unit_test(words_of_answers_are_explained_by_their_paragraph),
        cmocka_unit_test(a_word_that_answers_show_leads_to_what_explains_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
