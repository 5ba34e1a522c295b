/* The tables of a server group. Ranges are spec.md 3's; help is printed by `nodectl explain`. */
#include "common/spec/fields.h"

#include "common/base/limits.h"

static const struct name_row family_rows[] = {{ADDR_IPV4, "ipv4"}, {ADDR_IPV6, "ipv6"}};
static const struct name_table names_family = {"address family", family_rows, COUNT(family_rows)};

static const struct spec_field drain_fields[] = {
    {.name = "enabled",
     .type = SPEC_TYPE_BOOL,
     .flags = SPEC_BY_PROFILE,
     AT(drain_policy, is_on),
     .help = "Whether a removed backend's flows are closed when the timeout has passed."},
    {.name = "timeout",
     .type = SPEC_TYPE_DURATION,
     .flags = SPEC_BY_PROFILE,
     AT(drain_policy, timeout_ms),
     .max = 3600000,
     .help = "How long flows may live on; 0s closes them at once."},
};
static const struct spec_table drain_table = {"drain", drain_fields, COUNT(drain_fields),
                                              "What happens to flows of a backend that leaves."};

static const struct spec_field guard_fields[] = {
    {.name = "velocityPercent",
     .type = SPEC_TYPE_UINT,
     .flags = SPEC_BY_PROFILE,
     AT(guard_policy, velocity_percent),
     .max = 100,
     .help =
         "At most this share of the group, rounded down, and at least one backend, may leave by "
         "the votes in any velocityWindow; more of them are pending and stay in service. The "
         "limit makes an ejection wait for up to one vote interval, so that all nodes choose "
         "the same. 0 = no limit."},
    {.name = "velocityWindow",
     .type = SPEC_TYPE_DURATION,
     .flags = SPEC_BY_PROFILE,
     AT(guard_policy, velocity_window_ms),
     .min = GUARD_WINDOW_MS_MIN,
     .max = GUARD_WINDOW_MS_MAX,
     .help = "The time that velocityPercent is for; it slides."},
    {.name = "exemptBelow",
     .type = SPEC_TYPE_UINT,
     .flags = SPEC_BY_PROFILE,
     AT(guard_policy, exempt_below),
     .max = LIMIT_BACKENDS_PER_GROUP,
     .help = "Groups of fewer enabled backends have no such limit."},
    {.name = "flapHold",
     .type = SPEC_TYPE_DURATION,
     .flags = SPEC_BY_PROFILE,
     AT(guard_policy, flap_hold_ms),
     .min = GUARD_FLAP_HOLD_MS_MIN,
     .max = GUARD_FLAP_HOLD_MS_MAX,
     .zero_word = "off",
     .help = "A backend that went down again within 10 minutes returns when the votes have said "
             "healthy for this long without a break; each further time within 10 minutes doubles "
             "it, up to 5 minutes. Going down is not delayed by it, but waits for one vote "
             "interval."},
    {.name = "returnPercent",
     .type = SPEC_TYPE_UINT,
     .flags = SPEC_BY_PROFILE,
     AT(guard_policy, return_percent),
     .max = 100,
     .help = "At most this share of the group, rounded down, and at least one backend, may return "
             "by the votes in any returnWindow. A group in fail-open or closed waits for nothing. "
             "0 = no limit."},
    {.name = "returnWindow",
     .type = SPEC_TYPE_DURATION,
     .flags = SPEC_BY_PROFILE,
     AT(guard_policy, return_window_ms),
     .min = GUARD_WINDOW_MS_MIN,
     .max = GUARD_WINDOW_MS_MAX,
     .help = "The time that returnPercent is for; it slides."},
    {.name = "slowStart",
     .type = SPEC_TYPE_DURATION,
     .flags = SPEC_BY_PROFILE,
     AT(guard_policy, slow_start_ms),
     .min = GUARD_SLOW_START_MS_MIN,
     .max = GUARD_SLOW_START_MS_MAX,
     .zero_word = "off",
     .help = "For so long the weight of a backend that takes new flows again, or for the first "
             "time, rises in ten steps from a tenth to all of it, on each node by itself. None "
             "while no other backend has all of its weight, and none in fail-open and at a cold "
             "start. Only with schedulers that take turns (wrr), not with profile gwlb."},
    {.name = "shadowCycles",
     .type = SPEC_TYPE_UINT,
     .flags = SPEC_BY_PROFILE,
     AT(guard_policy, shadow_cycles),
     .max = GUARD_SHADOW_CYCLES_MAX,
     .help = "After a change of the check its votes are shown for so many cycles (timeout + "
             "interval) and take nothing out. 0 = they may at once."},
    {.name = "shadowStop",
     .type = SPEC_TYPE_BOOL,
     .flags = SPEC_BY_PROFILE,
     AT(guard_policy, shadow_stop),
     .help = "The shadow does not end while the changed check would take out more than "
             "velocityPercent of the group (10 % when that is 0; at least one backend): it is kept "
             "until fewer would go out, the check is changed again, or shadowCycles or shadowStop "
             "are switched off."},
    {.name = "correlatedAlarm",
     .type = SPEC_TYPE_BOOL,
     .flags = SPEC_BY_PROFILE,
     AT(guard_policy, correlated_alarm),
     .help = "An alarm, and nothing else, when at least 3 backends and over 30 % of the group go "
             "bad within one failure window."},
};
static const struct spec_table guard_table = {
    "guard", guard_fields, COUNT(guard_fields),
    "Limits on how fast backends are taken out and return."};

static void fill_guard(unsigned preset, void *ret)
{
    *(struct guard_policy *)ret = guard_policy_of((enum guard_preset)preset);
}

static const struct spec_field backend_fields[] = {
    {.name = "at",
     .type = SPEC_TYPE_ENDPOINT,
     AT(backend, at),
     .example = "10.0.0.11:8080",
     .help = "Address and port in one, IPv6 in brackets: \"[2001:db8::10]:80\". Or write address "
             "and port apart."},
    {.name = "address",
     .type = SPEC_TYPE_ADDRESS,
     .flags = SPEC_ALTERNATE,
     AT(backend, at.addr),
     .help = "The address alone, without brackets; with port."},
    {.name = "port",
     .type = SPEC_TYPE_UINT,
     .flags = SPEC_ALTERNATE,
     AT(backend, at.port),
     .min = 1,
     .max = 65535,
     .help = "The port alone; with address."},
    {.name = "instance",
     .flags = SPEC_LATER,
     .help = "Id of an instance (groups of type instance)."},
    {.name = "weight",
     .type = SPEC_TYPE_UINT,
     .flags = SPEC_BY_PROFILE,
     AT(backend, weight),
     .max = 100,
     .help = "Share of new flows; 0 = none, but still probed, and its open flows live on. With "
             "profile gwlb 0 or 100 only."},
    {.name = "adminState",
     .type = SPEC_TYPE_WORD,
     .flags = SPEC_OMIT_ZERO | SPEC_ZERO_KEEPS,
     AT(backend, admin_state),
     .names = &names_admin_state,
     .help =
         "What the operator wants. Left out, a backend that is there keeps the state that it has "
         "and a new one is enabled. draining takes no new flows; maintenance is not probed."},
    {.name = "zone",
     .type = SPEC_TYPE_TEXT,
     .flags = SPEC_OMIT_ZERO,
     AT(backend, zone),
     .min = 1,
     .max = LIMIT_ZONE_BYTES,
     .example = "zone-a",
     .help = "Where the backend is; for people."},
    {.name = "description",
     .type = SPEC_TYPE_TEXT,
     .flags = SPEC_OMIT_ZERO,
     AT(backend, description),
     .min = 1,
     .max = LIMIT_DESCRIPTION_BYTES,
     .example = "rack 4",
     .help = "Free text for people."},
};
static const struct spec_table backend_table = {
    "backends", backend_fields, COUNT(backend_fields),
    "The backends; each address and port once, in any spelling."};
static const struct spec_list backend_list = {
    .element_bytes = sizeof(struct backend),
    .count_offset = (uint32_t)offsetof(struct server_group, n_backends),
    .n_max = LIMIT_BACKENDS_PER_GROUP,
    .is_allocated = true,
    .element_word = "backend",
    .fields = &backend_table,
};

static const struct spec_field group_fields[] = {
    {.name = "profile",
     .type = SPEC_TYPE_WORD,
     .flags = SPEC_REQUIRED,
     AT(server_group, profile),
     .names = &names_profile,
     .example = "nlb",
     .help = "Whose defaults fill what the document leaves out: see nodectl explain profile NAME."},
    {.name = "type",
     .type = SPEC_TYPE_WORD,
     .flags = SPEC_BY_PROFILE,
     AT(server_group, type),
     .names = &names_group_type,
     .later = "instance",
     .help = "Backends by address (ip) or by instance; cannot be changed later."},
    {.name = "protocol",
     .type = SPEC_TYPE_WORD,
     .flags = SPEC_BY_PROFILE,
     AT(server_group, protocol),
     .names = &names_protocol,
     .help = "What is forwarded. Groups of geneve, udp and tcp_udp are checked, and shown in the "
             "table; listeners for them come later."},
    {.name = "addressFamily",
     .type = SPEC_TYPE_WORD,
     AT(server_group, address_family),
     .names = &names_family,
     .zero_word = "any",
     .help = "Which addresses the backends may have."},
    {.name = "vpc", .flags = SPEC_LATER, .help = "The network of a group of instances."},
    {.name = "scheduler",
     .type = SPEC_TYPE_WORD,
     .flags = SPEC_BY_PROFILE,
     AT(server_group, scheduler),
     .names = &names_scheduler,
     .later = "all but 5-tuple and wrr",
     .help = "How a new flow finds its backend."},
    {.name = "gradedWeight",
     .type = SPEC_TYPE_WORD,
     AT(server_group, graded_weight),
     .names = &names_graded_weight,
     .zero_word = "off",
     .help =
         "A healthy backend gets a part of its weight, never less than a tenth, and no verdict "
         "changes: votes = as many percent as of its counted votes pass; latency = the less, "
         "the slower this node's own probes are answered than in the middle of the group. "
         "Latency needs 3 healthy backends, and differs from node to node. Only with "
         "schedulers that take turns (wrr), not with profile gwlb. See: nodectl explain flows."},
    {.name = "check",
     .type = SPEC_TYPE_OBJECT,
     AT(server_group, check),
     .unless_offset = (uint32_t)offsetof(struct server_group, n_checks),
     .fields = &spec_check_table,
     .help = "The health check."},
    {.name = "checks",
     .type = SPEC_TYPE_LIST,
     .flags = SPEC_OMIT_ZERO,
     AT(server_group, checks),
     .list = &spec_check_list,
     .help = "In place of check: 2 to 8 checks of each backend, each a probe of its own. A node's "
             "vote is what pass makes of its opinions of the local ones. See: nodectl explain "
             "checks."},
    {.name = "pass",
     .type = SPEC_TYPE_PASS,
     .flags = SPEC_OMIT_ZERO,
     AT(server_group, pass),
     .help = "With checks only: how many of the local ones must pass for a node to vote pass: all "
             "(when it is left out), any, or at-least N."},
    {.name = "rule",
     .type = SPEC_TYPE_RULE,
     .flags = SPEC_BY_PROFILE,
     AT(server_group, rule),
     .example = "majority",
     .help = "How the votes of all nodes become this node's verdict: local, any, majority, "
             "zone-majority, all, \"at-least N\", \"percent N\", or {down: RULE, up: RULE} set "
             "apart. See: nodectl explain rules."},
    {.name = "belowQuorum",
     .type = SPEC_TYPE_WORD,
     .flags = SPEC_BY_PROFILE,
     AT(server_group, rule.below_quorum),
     .names = &names_below_quorum,
     .help = "What decides while fewer than a majority of nodes can be heard: hold takes nothing "
             "new out; local lets the node's own vote decide (for clusters of two)."},
    {.name = "allBad",
     .type = SPEC_TYPE_WORD,
     .flags = SPEC_BY_PROFILE,
     AT(server_group, all_bad),
     .names = &names_all_bad,
     .help = "What happens to new flows when no backend is healthy: fail-open uses all of them, "
             "fail-closed none."},
    {.name = "failOpenPercent",
     .type = SPEC_TYPE_UINT,
     .flags = SPEC_BY_PROFILE,
     AT(server_group, fail_open_percent),
     .max = 100,
     .help = "Fail-open begins when fewer than this share of the backends is healthy; 0 = when "
             "none is."},
    {.name = "guard",
     .type = SPEC_TYPE_OBJECT,
     AT(server_group, guard),
     .fields = &guard_table,
     .names = &names_guard_preset,
     .fill = fill_guard,
     .help = "Limits on how fast backends are taken out and return: each by hand, or one word. "
             "standard is velocityPercent 10, flapHold 30s, returnPercent 25, and slowStart 30s "
             "where the scheduler takes turns; off is none of them. See: nodectl explain guards."},
    {.name = "hold",
     .type = SPEC_TYPE_WORD,
     .flags = SPEC_OMIT_ZERO | SPEC_ZERO_KEEPS,
     AT(server_group, hold),
     .names = &names_hold,
     .example = "off",
     .help = SPEC_HOLD_HELP("this group")},
    {.name = "drain",
     .type = SPEC_TYPE_OBJECT,
     AT(server_group, drain),
     .fields = &drain_table,
     .help = "What happens to flows of a backend that leaves."},
    {.name = "existingFlows",
     .flags = SPEC_LATER,
     .help = "Policy for open flows of a backend that turned unhealthy or left."},
    {.name = "failover",
     .type = SPEC_TYPE_WORD,
     .flags = SPEC_BY_PROFILE | SPEC_OMIT_ZERO,
     AT(server_group, failover),
     .names = &names_failover,
     .later = "rebalance",
     .help = "Profile gwlb only: whether open flows move when their backend fails."},
    {.name = "idleTimeout",
     .type = SPEC_TYPE_DURATION,
     .flags = SPEC_BY_PROFILE,
     AT(server_group, idle_timeout_ms),
     .min = 1000,
     .max = 6000000,
     .help = "A flow without a packet for this long has ended."},
    {.name = "backends",
     .type = SPEC_TYPE_LIST,
     AT(server_group, backends),
     .list = &backend_list,
     .help = "The backends; each address and port once, in any spelling."},
};
const struct spec_table spec_group_table = {
    "spec", group_fields, COUNT(group_fields),
    "Backends behind one service, how they are checked and what follows from it."};

static const struct spec_field group_metadata_fields[] = {
    {.name = "name",
     .type = SPEC_TYPE_TEXT,
     .flags = SPEC_REQUIRED,
     AT(server_group, name),
     .min = 2,
     .max = LIMIT_NAME_BYTES,
     .example = "web",
     .help = "Name of the group: a letter first, then letters, digits, \".\", \"_\" and \"-\"."},
    {.name = "labels",
     .type = SPEC_TYPE_LABELS,
     .flags = SPEC_OMIT_ZERO,
     AT(server_group, labels),
     .example = "{tier: front}",
     .help = "Up to 20 pairs of words for people and scripts."},
};
const struct spec_table spec_group_metadata_table = {
    "metadata", group_metadata_fields, COUNT(group_metadata_fields), "What the group is called."};
