/* Objects of the model through the API's messages and bytes: what goes in comes out equal, and what
 * does not fit is refused in one sentence that names object, field and range. */
#include "common/wire/object.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/model/profile.h"
#include "common/wire/unpack.h"
#include "tests/lib/random_objects.h"

#define N_ROUNDS 400

static const struct wire_limits limits = {.bytes_max = 1024 * 1024, .elements_max = 262144};

/* Pack into one arena, unpack into another: nothing may point back. */
static ProtobufCMessage *through_bytes(const ProtobufCMessage *message, struct wire_arena *arena)
{
    struct wire_arena packing;
    struct errmsg err = {{0}};
    ProtobufCMessage *copy = NULL;
    size_t n_bytes = 0;

    assert_non_null(message);
    wire_arena_init(&packing, 4 * 1024 * 1024);
    uint8_t *data = wire_pack(message, &packing, &n_bytes);
    assert_non_null(data);
    int rc = wire_unpack(message->descriptor, &limits, data, n_bytes, arena, &copy, &err);
    assert_string_equal(err.text, "");
    assert_int_equal(rc, 0);
    wire_arena_close(&packing);
    return copy;
}

struct round {
    struct prng prng;
    struct wire_arena to;
    struct wire_arena from;
    struct errmsg err;
};

static void round_start(struct round *round, uint64_t seed)
{
    memset(round, 0, sizeof *round);
    prng_init(&round->prng, seed);
    wire_arena_init(&round->to, 64 * 1024 * 1024);
    wire_arena_init(&round->from, wire_budget(&limits));
}

static void round_end(struct round *round)
{
    wire_arena_close(&round->to);
    wire_arena_close(&round->from);
}

static void groups_come_back_equal(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < N_ROUNDS; seed++) {
        struct round round;
        struct server_group group, back = {0};

        round_start(&round, seed);
        random_group(&round.prng, seed % 10 == 0 ? 200 : 8, &group);

        ProtobufCMessage *message =
            through_bytes(&wire_group_new(&round.to, &group)->base, &round.from);
        int rc = wire_group_read((Jury__V1__ServerGroup *)message, &back, &round.err);

        assert_string_equal(round.err.text, "");
        assert_int_equal(rc, 0);
        assert_true(is_same_group(&back, &group));
        server_group_close(&back);
        server_group_close(&group);
        round_end(&round);
    }
}

static void listeners_settings_nodes_and_keys_come_back_equal(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < N_ROUNDS; seed++) {
        struct round round;
        struct listener listener, listener_back;
        struct cluster_settings settings, settings_back;
        struct member_node node, node_back;
        struct access_key key, key_back;

        round_start(&round, seed);
        random_listener(&round.prng, &listener);
        random_settings(&round.prng, &settings);
        random_node(&round.prng, &node);
        random_key(&round.prng, &key);

        ProtobufCMessage *message =
            through_bytes(&wire_listener_new(&round.to, &listener)->base, &round.from);
        assert_int_equal(
            wire_listener_read((Jury__V1__Listener *)message, &listener_back, &round.err), 0);
        message = through_bytes(&wire_settings_new(&round.to, &settings)->base, &round.from);
        assert_int_equal(
            wire_settings_read((Jury__V1__ClusterSettings *)message, &settings_back, &round.err),
            0);
        message = through_bytes(&wire_node_new(&round.to, &node)->base, &round.from);
        assert_int_equal(wire_node_read((Jury__V1__MemberNode *)message, &node_back, &round.err),
                         0);
        message = through_bytes(&wire_key_new(&round.to, &key)->base, &round.from);
        assert_int_equal(wire_key_read((Jury__V1__AccessKey *)message, &key_back, &round.err), 0);

        assert_memory_equal(&listener_back, &listener, sizeof listener);
        assert_memory_equal(&settings_back, &settings, sizeof settings);
        assert_memory_equal(&node_back, &node, sizeof node);
        assert_memory_equal(&key_back, &key, sizeof key);
        round_end(&round);
    }
}

/* --- what a document leaves out --- */

/* A group with nothing but what is required, changed by the test. */
static Jury__V1__ServerGroup *bare_group(struct wire_arena *arena)
{
    Jury__V1__ServerGroup *group = WIRE_NEW(arena, Jury__V1__ServerGroup, jury__v1__server_group);

    group->name = wire_text(arena, "web");
    group->profile = JURY__V1__PROFILE__PROFILE_NLB;
    group->protocol = JURY__V1__PROTOCOL__PROTOCOL_TCP;
    group->check = WIRE_NEW(arena, Jury__V1__HealthCheck, jury__v1__health_check);
    group->check->http = NULL;
    group->backends = wire_alloc_array(arena, 2, sizeof *group->backends);
    group->backends[0] = WIRE_NEW(arena, Jury__V1__Backend, jury__v1__backend);
    group->backends[0]->address = wire_text(arena, "10.0.0.1");
    group->backends[0]->port = 80;
    group->n_backends = 1;
    return group;
}

static void a_bare_group_gets_what_its_profile_says(void **state)
{
    (void)state;
    struct round round;
    struct server_group group, expected;

    round_start(&round, 1);
    assert_int_equal(wire_group_read(bare_group(&round.to), &group, &round.err), 0);

    profile_group_defaults(PROFILE_NLB, PROTOCOL_TCP, &expected);
    assert_memory_equal(&group.check, &expected.check, sizeof group.check);
    assert_memory_equal(&group.rule, &expected.rule, sizeof group.rule);
    assert_int_equal(group.idle_timeout_ms, expected.idle_timeout_ms);
    assert_int_equal(group.scheduler, expected.scheduler);
    assert_int_equal(group.backends[0].weight, 100);
    assert_int_equal(group.backends[0].admin_state, ADMIN_NONE);
    server_group_close(&group);
    round_end(&round);
}

static void a_check_of_another_type_gets_that_types_defaults(void **state)
{
    (void)state;
    struct round round;
    struct server_group group;
    struct health_check expected;

    round_start(&round, 1);
    Jury__V1__ServerGroup *message = bare_group(&round.to);
    message->check->type = JURY__V1__CHECK_TYPE__CHECK_TYPE_HTTP;
    message->check->http = WIRE_NEW(&round.to, Jury__V1__HttpCheck, jury__v1__http_check);
    message->check->http->domain = wire_text(&round.to, "a.example");

    assert_int_equal(wire_group_read(message, &group, &round.err), 0);
    profile_check_defaults(PROFILE_NLB, PROTOCOL_TCP, CHECK_TYPE_HTTP, &expected);
    expected.http.host = HTTP_HOST_DOMAIN;
    strcpy(expected.http.domain, "a.example");
    assert_memory_equal(&group.check, &expected, sizeof expected);
    server_group_close(&group);
    round_end(&round);
}

static void a_rule_for_down_alone_is_not_split(void **state)
{
    (void)state;
    struct round round;
    struct server_group group;

    round_start(&round, 1);
    Jury__V1__ServerGroup *message = bare_group(&round.to);
    message->verdict = WIRE_NEW(&round.to, Jury__V1__VerdictRule, jury__v1__verdict_rule);
    message->verdict->down =
        wire_rule_new(&round.to, &(struct rule_column){.kind = RULE_AT_LEAST, .value = 2});

    assert_int_equal(wire_group_read(message, &group, &round.err), 0);
    assert_false(group.rule.is_split);
    assert_int_equal(group.rule.up.kind, RULE_AT_LEAST);
    assert_int_equal(group.rule.up.value, 2);
    assert_int_equal(group.rule.below_quorum, BELOW_QUORUM_HOLD);
    server_group_close(&group);
    round_end(&round);
}

/* --- refusals --- */

struct refusal {
    void (*spoil)(struct wire_arena *arena, Jury__V1__ServerGroup *group);
    const char *sentence;
};

#define SPOIL(name) static void name(struct wire_arena *arena, Jury__V1__ServerGroup *group)

SPOIL(no_profile)
{
    (void)arena;
    group->profile = JURY__V1__PROFILE__PROFILE_UNSPECIFIED;
}
SPOIL(unknown_profile)
{
    (void)arena;
    group->profile = (Jury__V1__Profile)259; /* 3 in eight bits */
}
SPOIL(large_weight)
{
    (void)arena;
    group->backends[0]->weight_choice_case = JURY__V1__BACKEND__WEIGHT_CHOICE_WEIGHT;
    group->backends[0]->weight = 256;
}
SPOIL(large_port)
{
    (void)arena;
    group->backends[0]->port = 65536;
}
SPOIL(no_port)
{
    (void)arena;
    group->backends[0]->port = 0;
}
SPOIL(name_as_address)
{
    group->backends[0]->address = wire_text(arena, "web1.example");
}
SPOIL(large_threshold)
{
    (void)arena;
    group->check->unhealthy_threshold = 257;
}
SPOIL(fine_timeout)
{
    group->check->timeout = wire_duration_new(arena, 1500001);
}
SPOIL(negative_timeout)
{
    group->check->timeout = wire_duration_new(arena, 0);
    group->check->timeout->seconds = -1;
}
SPOIL(endless_timeout)
{
    group->check->timeout = wire_duration_new(arena, 0);
    group->check->timeout->seconds = INT64_MAX;
}
SPOIL(foreign_part)
{
    group->check->http = WIRE_NEW(arena, Jury__V1__HttpCheck, jury__v1__http_check);
}
SPOIL(code_out_of_range)
{
    group->check->type = JURY__V1__CHECK_TYPE__CHECK_TYPE_HTTP;
    group->check->http = WIRE_NEW(arena, Jury__V1__HttpCheck, jury__v1__http_check);
    group->check->http->expect = wire_alloc_array(arena, 1, sizeof(void *));
    group->check->http->expect[0] = WIRE_NEW(arena, Jury__V1__CodeRange, jury__v1__code_range);
    group->check->http->expect[0]->first = 200;
    group->check->http->expect[0]->last = 600;
    group->check->http->n_expect = 1;
}
SPOIL(percent_of_nothing)
{
    group->verdict = WIRE_NEW(arena, Jury__V1__VerdictRule, jury__v1__verdict_rule);
    group->verdict->down = wire_rule_new(arena, &(struct rule_column){.kind = RULE_PERCENT});
}
SPOIL(figure_without_use)
{
    group->verdict = WIRE_NEW(arena, Jury__V1__VerdictRule, jury__v1__verdict_rule);
    group->verdict->up =
        wire_rule_new(arena, &(struct rule_column){.kind = RULE_MAJORITY, .value = 3});
}
SPOIL(twice_in_two_spellings)
{
    group->backends[0]->address = wire_text(arena, "fd00::1");
    group->backends[1] = WIRE_NEW(arena, Jury__V1__Backend, jury__v1__backend);
    group->backends[1]->address = wire_text(arena, "fd00:0:0::0001");
    group->backends[1]->port = 80;
    group->n_backends = 2;
}
SPOIL(long_zone)
{
    group->backends[0]->zone = wire_text(arena, "0123456789012345678901234567890123");
}

static const struct refusal refusals[] = {
    {no_profile, "server group \"web\": profile must be gwlb, nlb or clb"},
    {unknown_profile, "server group \"web\": profile must be gwlb, nlb or clb, got the number 259"},
    {large_weight, "server group \"web\": backend \"10.0.0.1\" port 80: weight must be 0..100, got "
                   "256"},
    {large_port, "server group \"web\": backend \"10.0.0.1\" port 65536: port must be 1..65535, "
                 "got 65536"},
    {no_port, "server group \"web\": backend \"10.0.0.1\" port 0: port must be 1..65535, got 0"},
    {name_as_address, "server group \"web\": backend \"web1.example\" port 80: address: "},
    {large_threshold, "server group \"web\": check.unhealthy_threshold must be 1..10, got 257"},
    {fine_timeout, "server group \"web\": check.timeout must not be finer than a millisecond"},
    {negative_timeout, "server group \"web\": check.timeout must be a time of 0 or more"},
    {endless_timeout, "server group \"web\": check.timeout must be at most "},
    {foreign_part,
     "server group \"web\": check.http is allowed only with check.type http or tls, this "
     "check is tcp"},
    {code_out_of_range,
     "server group \"web\": check.http.expect must be ranges within 200..599, got 200..600"},
    {percent_of_nothing, "server group \"web\": verdict.down.value must be 1..100, got 0"},
    {figure_without_use,
     "server group \"web\": verdict.up.value is allowed only with at-least and percent"},
    {twice_in_two_spellings, "server group \"web\": backend [fd00::1]:80 is there twice"},
    {long_zone, "server group \"web\": backend \"10.0.0.1\" port 80: zone must be at most 32 "
                "bytes, got 34"},
};

static void what_does_not_fit_is_refused_by_name(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
        struct round round;
        struct server_group group;

        round_start(&round, 1);
        Jury__V1__ServerGroup *message = bare_group(&round.to);
        refusals[i].spoil(&round.to, message);

        assert_int_equal(wire_group_read(message, &group, &round.err), ERR_INVALID);
        if (strncmp(round.err.text, refusals[i].sentence, strlen(refusals[i].sentence)) != 0) {
            fail_msg("expected \"%s\", got \"%s\"", refusals[i].sentence, round.err.text);
        }
        round_end(&round);
    }
}

static void counts_over_the_limit_are_refused(void **state)
{
    (void)state;
    struct round round;
    struct server_group group;

    round_start(&round, 1);
    Jury__V1__ServerGroup *message = bare_group(&round.to);
    Jury__V1__Backend *one = message->backends[0];
    message->n_backends = LIMIT_BACKENDS_PER_GROUP + 1;
    message->backends = wire_alloc_array(&round.to, message->n_backends, sizeof *message->backends);
    for (size_t i = 0; i < message->n_backends; i++) {
        message->backends[i] = one;
    }

    assert_int_equal(wire_group_read(message, &group, &round.err), ERR_LIMIT);
    assert_string_equal(round.err.text,
                        "server group \"web\": backends: 1001 entries, the limit is 1000");
    round_end(&round);
}

static void keys_and_nodes_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    struct round round;
    struct access_key key;
    struct member_node node;

    round_start(&round, 1);
    Jury__V1__AccessKey *message = WIRE_NEW(&round.to, Jury__V1__AccessKey, jury__v1__access_key);
    message->name = wire_text(&round.to, "ops");
    message->public_key = wire_text(&round.to, "12ab");
    assert_int_equal(wire_key_read(message, &key, &round.err), ERR_INVALID);
    assert_string_equal(round.err.text,
                        "key \"ops\": public_key must be 64 hex digits, got 4 characters");

    random_node(&round.prng, &node);
    Jury__V1__MemberNode *member = wire_node_new(&round.to, &node);
    member->probe_sources = wire_alloc_array(&round.to, 2, sizeof(char *));
    member->probe_sources[0] = wire_text(&round.to, "10.0.0.1");
    member->probe_sources[1] = wire_text(&round.to, "10.0.0.2");
    member->n_probe_sources = 2;
    assert_int_equal(wire_node_read(member, &node, &round.err), ERR_INVALID);
    assert_non_null(strstr(round.err.text, "at most one address of each family"));
    round_end(&round);
}

/* The word fills the guard, fields beside it win, and what comes back are the fields. */
static void a_word_fills_a_guard_and_fields_win(void **unused)
{
    struct round round;
    struct server_group group;
    struct server_group read = {0};

    (void)unused;
    round_start(&round, 7);
    random_group(&round.prng, 3, &group);
    Jury__V1__ServerGroup *message = wire_group_new(&round.to, &group);
    Jury__V1__GuardPolicy guard = JURY__V1__GUARD_POLICY__INIT;
    guard.preset = JURY__V1__GUARD_PRESET__GUARD_PRESET_STANDARD;
    guard.return_choice_case = JURY__V1__GUARD_POLICY__RETURN_CHOICE_RETURN_PERCENT;
    guard.return_percent = 50;
    message->guard = &guard;
    message->profile = JURY__V1__PROFILE__PROFILE_NLB;
    message->scheduler = JURY__V1__SCHEDULER__SCHEDULER_WRR;

    assert_int_equal(wire_group_read(message, &read, &round.err), 0);
    assert_int_equal(read.guard.slow_start_ms, 30000);
    assert_int_equal(read.guard.velocity_percent, 10);
    assert_int_equal(read.guard.exempt_below, 10);
    assert_int_equal(read.guard.flap_hold_ms, 30000);
    assert_int_equal(read.guard.return_percent, 50);
    assert_int_equal(read.guard.return_window_ms, 10000);
    assert_true(read.guard.correlated_alarm);
    server_group_close(&read);

    message->scheduler = JURY__V1__SCHEDULER__SCHEDULER_SOURCE;
    assert_int_equal(wire_group_read(message, &read, &round.err), 0);
    assert_int_equal(read.guard.slow_start_ms, 0);
    server_group_close(&read);

    guard.preset = (Jury__V1__GuardPreset)9;
    assert_int_equal(wire_group_read(message, &read, &round.err), ERR_INVALID);
    assert_non_null(
        strstr(round.err.text, "guard.preset must be off or standard, got the number 9"));
    server_group_close(&group);
    round_end(&round);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(groups_come_back_equal),
        cmocka_unit_test(a_word_fills_a_guard_and_fields_win),
        cmocka_unit_test(listeners_settings_nodes_and_keys_come_back_equal),
        cmocka_unit_test(a_bare_group_gets_what_its_profile_says),
        cmocka_unit_test(a_check_of_another_type_gets_that_types_defaults),
        cmocka_unit_test(a_rule_for_down_alone_is_not_split),
        cmocka_unit_test(what_does_not_fit_is_refused_by_name),
        cmocka_unit_test(counts_over_the_limit_are_refused),
        cmocka_unit_test(keys_and_nodes_that_do_not_fit_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
