#include "agent/core/catalog_codec.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/plant.h"
#include "common/model/feature_level.h"

bool codec_is_understood(uint8_t major, uint8_t minor)
{
    return major == CODEC_MAJOR && (minor <= feature_level() || plant_is("level-old-drops"));
}

size_t codec_begin(struct bytes_writer *writer)
{
    size_t begin = writer->n_bytes;

    bytes_write_u32(writer, 0);
    return begin;
}

void codec_end(struct bytes_writer *writer, size_t begin)
{
    if (writer->failed) {
        return;
    }
    size_t n_bytes = writer->n_bytes - begin - 4;
    for (unsigned i = 0; i < 4; i++) {
        writer->data[begin + i] = (uint8_t)(n_bytes >> (8 * i));
    }
}

struct codec_in codec_open(struct codec_in *in)
{
    struct codec_in block = {.minor = in->minor};
    size_t n_bytes = bytes_read_u32(&in->bytes);
    const uint8_t *data = bytes_read_view(&in->bytes, n_bytes);

    bytes_reader_init(&block.bytes, data, data != NULL ? n_bytes : 0);
    block.bytes.failed = data == NULL;
    return block;
}

void codec_shut(struct codec_in *in, const struct codec_in *block)
{
    if (!codec_done(block)) {
        in->bytes.failed = true;
    }
}

bool codec_done(const struct codec_in *in)
{
    return !in->bytes.failed && (in->bytes.left == 0 || plant_is("level-old-drops"));
}

bool codec_has_more(const struct codec_in *in)
{
    return in->minor >= 3 && in->bytes.left > 0;
}

bool codec_read_bool(struct codec_in *in)
{
    uint8_t value = bytes_read_u8(&in->bytes);

    if (value > 1) {
        in->bytes.failed = true;
    }
    return value == 1;
}

uint32_t codec_read_count(struct codec_in *in, uint32_t max)
{
    uint32_t count = bytes_read_u32(&in->bytes);

    if (count > max) {
        in->bytes.failed = true;
        return 0;
    }
    return in->bytes.failed ? 0 : count;
}

static size_t address_bytes(uint8_t family)
{
    return family == ADDR_IPV4 ? 4 : family == ADDR_IPV6 ? 16 : 0;
}

static void write_addr(struct bytes_writer *writer, const struct addr *addr)
{
    bytes_write_u8(writer, addr->family);
    bytes_write_copy(writer, addr->bytes, address_bytes(addr->family));
}

static void read_addr(struct codec_in *in, struct addr *ret_addr)
{
    struct addr addr = {.family = bytes_read_u8(&in->bytes)};

    if (addr.family != ADDR_NONE && address_bytes(addr.family) == 0) {
        in->bytes.failed = true;
        return;
    }
    bytes_read_copy(&in->bytes, addr.bytes, address_bytes(addr.family));
    *ret_addr = addr;
}

void codec_write_endpoint(struct bytes_writer *writer, const struct endpoint *endpoint)
{
    write_addr(writer, &endpoint->addr);
    bytes_write_u16(writer, endpoint->port);
}

void codec_read_endpoint(struct codec_in *in, struct endpoint *ret_endpoint)
{
    read_addr(in, &ret_endpoint->addr);
    ret_endpoint->port = bytes_read_u16(&in->bytes);
}

/* --- guards --- */

static void write_hold(struct bytes_writer *writer, uint8_t hold, const struct hold_origin *origin)
{
    bytes_write_u8(writer, hold);
    bytes_write_string(writer, origin->actor);
    bytes_write_u64(writer, (uint64_t)origin->wall_ms);
}

/* Before minor 1 nothing could be held, and no group had a guard; before minor 2 none had more than
 * a velocity limit. What such a chunk is read as is part of the format: it must not follow when the
 * profiles get other defaults. */
static void read_hold(struct codec_in *in, uint8_t *ret_hold, struct hold_origin *ret_origin)
{
    *ret_hold = HOLD_OFF;
    if (in->minor < 1) {
        return;
    }
    *ret_hold = bytes_read_u8(&in->bytes);
    bytes_read_string(&in->bytes, ret_origin->actor, sizeof ret_origin->actor);
    ret_origin->wall_ms = (int64_t)bytes_read_u64(&in->bytes);
}

static void write_guard(struct bytes_writer *writer, const struct guard_policy *guard)
{
    bytes_write_u8(writer, guard->velocity_percent);
    bytes_write_u32(writer, guard->velocity_window_ms);
    bytes_write_u16(writer, guard->exempt_below);
    bytes_write_u32(writer, guard->flap_hold_ms);
    bytes_write_u8(writer, guard->return_percent);
    bytes_write_u32(writer, guard->return_window_ms);
    bytes_write_u16(writer, guard->shadow_cycles);
    bytes_write_u8(writer, guard->shadow_stop);
    bytes_write_u8(writer, guard->correlated_alarm);
}

static void read_guard(struct codec_in *in, struct guard_policy *guard)
{
    *guard = (struct guard_policy){.velocity_window_ms = 30000,
                                   .exempt_below = 10,
                                   .return_window_ms = 10000,
                                   .shadow_stop = true,
                                   .correlated_alarm = true};
    if (in->minor < 1) {
        return;
    }
    guard->velocity_percent = bytes_read_u8(&in->bytes);
    guard->velocity_window_ms = bytes_read_u32(&in->bytes);
    guard->exempt_below = bytes_read_u16(&in->bytes);
    if (in->minor < 2) {
        return;
    }
    guard->flap_hold_ms = bytes_read_u32(&in->bytes);
    guard->return_percent = bytes_read_u8(&in->bytes);
    guard->return_window_ms = bytes_read_u32(&in->bytes);
    guard->shadow_cycles = bytes_read_u16(&in->bytes);
    guard->shadow_stop = codec_read_bool(in);
    guard->correlated_alarm = codec_read_bool(in);
}

/* --- groups and backends --- */

void codec_write_backend(struct bytes_writer *writer, const struct backend *backend)
{
    size_t begin = codec_begin(writer);

    codec_write_endpoint(writer, &backend->at);
    bytes_write_u8(writer, backend->weight);
    bytes_write_u8(writer, backend->admin_state);
    bytes_write_string(writer, backend->zone);
    bytes_write_string(writer, backend->description);
    codec_end(writer, begin);
}

void codec_read_backend(struct codec_in *in, struct backend *ret_backend)
{
    struct codec_in block = codec_open(in);

    *ret_backend = (struct backend){0};
    codec_read_endpoint(&block, &ret_backend->at);
    ret_backend->weight = bytes_read_u8(&block.bytes);
    ret_backend->admin_state = bytes_read_u8(&block.bytes);
    bytes_read_string(&block.bytes, ret_backend->zone, sizeof ret_backend->zone);
    bytes_read_string(&block.bytes, ret_backend->description, sizeof ret_backend->description);
    codec_shut(in, &block);
}

static void write_rule(struct bytes_writer *writer, const struct verdict_rule *rule)
{
    size_t begin = codec_begin(writer);

    bytes_write_u8(writer, rule->down.kind);
    bytes_write_u8(writer, rule->down.value);
    bytes_write_u8(writer, rule->up.kind);
    bytes_write_u8(writer, rule->up.value);
    bytes_write_u8(writer, rule->is_split);
    bytes_write_u8(writer, rule->below_quorum);
    codec_end(writer, begin);
}

static void read_rule(struct codec_in *in, struct verdict_rule *rule)
{
    struct codec_in block = codec_open(in);

    rule->down.kind = bytes_read_u8(&block.bytes);
    rule->down.value = bytes_read_u8(&block.bytes);
    rule->up.kind = bytes_read_u8(&block.bytes);
    rule->up.value = bytes_read_u8(&block.bytes);
    rule->is_split = codec_read_bool(&block);
    rule->below_quorum = bytes_read_u8(&block.bytes);
    codec_shut(in, &block);
}

/* What level 3 brought to a group, each if it is used: bits in front say which, in this order. */
enum group_more {
    GROUP_HAS_CHECKS = 1 << 0,
    GROUP_HAS_SLOW_START = 1 << 1,
    GROUP_IS_GRADED = 1 << 2
};
#define GROUP_MORE (GROUP_HAS_CHECKS | GROUP_HAS_SLOW_START | GROUP_IS_GRADED)

static void write_checks(struct bytes_writer *writer, const struct server_group *group)
{
    bytes_write_u8(writer, group->pass.kind);
    bytes_write_u8(writer, group->pass.value);
    bytes_write_u32(writer, group->n_checks);
    for (uint32_t i = 0; i < group->n_checks; i++) {
        const struct named_check *check = &group->checks[i];

        bytes_write_string(writer, check->name);
        bytes_write_u8(writer, check->check_class);
        codec_write_check(writer, &check->check);
    }
}

static void read_checks(struct codec_in *in, struct server_group *group)
{
    group->pass.kind = bytes_read_u8(&in->bytes);
    group->pass.value = bytes_read_u8(&in->bytes);
    uint32_t n = codec_read_count(in, LIMIT_CHECKS);
    if (n == 0) {
        in->bytes.failed = true; /* one value has one encoding */
        return;
    }
    group->checks = calloc(n, sizeof *group->checks);
    if (group->checks == NULL) {
        in->bytes.failed = true;
        return;
    }
    group->n_checks = n;
    for (uint32_t i = 0; i < n; i++) {
        struct named_check *check = &group->checks[i];

        bytes_read_string(&in->bytes, check->name, sizeof check->name);
        check->check_class = bytes_read_u8(&in->bytes);
        codec_read_check(in, &check->check);
    }
}

static void write_group_more(struct bytes_writer *writer, const struct server_group *group)
{
    unsigned more = (group->n_checks != 0 ? GROUP_HAS_CHECKS : 0U) |
                    (group->guard.slow_start_ms != 0 ? GROUP_HAS_SLOW_START : 0U) |
                    (group->graded_weight != GRADED_OFF ? GROUP_IS_GRADED : 0U);

    if (more != 0) {
        bytes_write_u8(writer, (uint8_t)more);
    }
    if ((more & GROUP_HAS_CHECKS) != 0) {
        write_checks(writer, group);
    }
    if ((more & GROUP_HAS_SLOW_START) != 0) {
        bytes_write_u32(writer, group->guard.slow_start_ms);
    }
    if ((more & GROUP_IS_GRADED) != 0) {
        bytes_write_u8(writer, group->graded_weight);
    }
}

/* The list after which the rest of the check says nothing of its own. */
static void read_list(struct codec_in *in, struct server_group *group)
{
    struct health_check said = group->check;

    read_checks(in, group);
    group_settle_checks(group);
    said.part_kinds = group->check.part_kinds; /* of no encoding: it follows from the list */
    if (memcmp(&said, &group->check, sizeof said) != 0) {
        in->bytes.failed = true; /* one value has one encoding */
    }
}

static void read_group_more(struct codec_in *in, struct server_group *group)
{
    if (!codec_has_more(in)) {
        return;
    }
    uint8_t more = bytes_read_u8(&in->bytes);
    if (more == 0 || (more & ~(unsigned)GROUP_MORE) != 0) {
        in->bytes.failed = true;
    }
    if ((more & GROUP_HAS_CHECKS) != 0) {
        read_list(in, group);
    }
    if ((more & GROUP_HAS_SLOW_START) != 0) {
        group->guard.slow_start_ms = bytes_read_u32(&in->bytes);
        in->bytes.failed |= group->guard.slow_start_ms == 0; /* one value has one encoding */
    }
    if ((more & GROUP_IS_GRADED) != 0) {
        group->graded_weight = bytes_read_u8(&in->bytes);
        in->bytes.failed |= group->graded_weight == GRADED_OFF;
    }
}

void codec_write_group(struct bytes_writer *writer, const struct server_group *group)
{
    size_t begin = codec_begin(writer);

    bytes_write_string(writer, group->name);
    bytes_write_u8(writer, group->profile);
    bytes_write_u8(writer, group->type);
    bytes_write_u8(writer, group->protocol);
    bytes_write_u8(writer, group->address_family);
    bytes_write_u8(writer, group->scheduler);
    bytes_write_u8(writer, group->all_bad);
    bytes_write_u8(writer, group->fail_open_percent);
    bytes_write_u8(writer, group->failover);
    bytes_write_string(writer, group->vpc);
    codec_write_check(writer, &group->check);
    write_rule(writer, &group->rule);
    bytes_write_u8(writer, group->drain.is_on);
    bytes_write_u32(writer, group->drain.timeout_ms);
    bytes_write_u32(writer, group->idle_timeout_ms);
    assert(group->n_labels <= LIMIT_LABELS);
    bytes_write_u32(writer, group->n_labels);
    for (uint32_t i = 0; i < group->n_labels; i++) {
        bytes_write_string(writer, group->labels[i].key);
        bytes_write_string(writer, group->labels[i].value);
    }
    write_hold(writer, group->hold, &group->held_by);
    write_guard(writer, &group->guard);
    write_group_more(writer, group);
    codec_end(writer, begin);
}

void codec_read_group(struct codec_in *in, struct server_group *ret_group)
{
    struct codec_in block = codec_open(in);
    struct server_group *group = ret_group;

    *group = (struct server_group){0};
    bytes_read_string(&block.bytes, group->name, sizeof group->name);
    group->profile = bytes_read_u8(&block.bytes);
    group->type = bytes_read_u8(&block.bytes);
    group->protocol = bytes_read_u8(&block.bytes);
    group->address_family = bytes_read_u8(&block.bytes);
    group->scheduler = bytes_read_u8(&block.bytes);
    group->all_bad = bytes_read_u8(&block.bytes);
    group->fail_open_percent = bytes_read_u8(&block.bytes);
    group->failover = bytes_read_u8(&block.bytes);
    bytes_read_string(&block.bytes, group->vpc, sizeof group->vpc);
    codec_read_check(&block, &group->check);
    read_rule(&block, &group->rule);
    group->drain.is_on = codec_read_bool(&block);
    group->drain.timeout_ms = bytes_read_u32(&block.bytes);
    group->idle_timeout_ms = bytes_read_u32(&block.bytes);
    group->n_labels = codec_read_count(&block, LIMIT_LABELS);
    for (uint32_t i = 0; i < group->n_labels; i++) {
        struct label *label = &group->labels[i];

        bytes_read_string(&block.bytes, label->key, sizeof label->key);
        bytes_read_string(&block.bytes, label->value, sizeof label->value);
    }
    read_hold(&block, &group->hold, &group->held_by);
    read_guard(&block, &group->guard);
    read_group_more(&block, group);
    codec_shut(in, &block);
}

/* --- listeners, settings, nodes, keys --- */

void codec_write_listener(struct bytes_writer *writer, const struct listener *listener)
{
    size_t begin = codec_begin(writer);

    bytes_write_string(writer, listener->name);
    codec_write_endpoint(writer, &listener->at);
    bytes_write_u16(writer, listener->port_last);
    bytes_write_u8(writer, listener->protocol);
    bytes_write_u32(writer, listener->idle_timeout_ms);
    bytes_write_string(writer, listener->group);
    codec_end(writer, begin);
}

void codec_read_level(struct codec_in *in, uint8_t *ret_level)
{
    *ret_level = FEATURE_LEVEL_BASE;
    if (in->minor > FEATURE_LEVEL_BASE && in->bytes.left > 0) {
        *ret_level = bytes_read_u8(&in->bytes);
        in->bytes.failed |= *ret_level <= FEATURE_LEVEL_BASE || *ret_level > in->minor;
    }
}

void codec_read_listener(struct codec_in *in, struct listener *ret_listener)
{
    struct codec_in block = codec_open(in);
    struct listener *listener = ret_listener;

    *listener = (struct listener){0};
    bytes_read_string(&block.bytes, listener->name, sizeof listener->name);
    codec_read_endpoint(&block, &listener->at);
    listener->port_last = bytes_read_u16(&block.bytes);
    listener->protocol = bytes_read_u8(&block.bytes);
    listener->idle_timeout_ms = bytes_read_u32(&block.bytes);
    bytes_read_string(&block.bytes, listener->group, sizeof listener->group);
    codec_shut(in, &block);
}

void codec_write_settings(struct bytes_writer *writer, const struct cluster_settings *settings)
{
    size_t begin = codec_begin(writer);

    bytes_write_u32(writer, settings->vote_interval_ms);
    assert(settings->n_allowed <= LIMIT_CIDRS);
    bytes_write_u32(writer, settings->n_allowed);
    for (uint32_t i = 0; i < settings->n_allowed; i++) {
        write_addr(writer, &settings->allowed[i].addr);
        bytes_write_u8(writer, settings->allowed[i].prefix_bits);
    }
    bytes_write_u8(writer, settings->hold == HOLD_ON); /* all that minor 0 has */
    write_hold(writer, settings->hold, &settings->held_by);
    codec_end(writer, begin);
}

void codec_read_settings(struct codec_in *in, struct cluster_settings *ret_settings)
{
    struct codec_in block = codec_open(in);
    struct cluster_settings *settings = ret_settings;

    *settings = (struct cluster_settings){0};
    settings->vote_interval_ms = bytes_read_u32(&block.bytes);
    settings->n_allowed = codec_read_count(&block, LIMIT_CIDRS);
    for (uint32_t i = 0; i < settings->n_allowed; i++) {
        read_addr(&block, &settings->allowed[i].addr);
        settings->allowed[i].prefix_bits = bytes_read_u8(&block.bytes);
    }
    bool was_on = codec_read_bool(&block); /* of minor 0, which never set it */
    read_hold(&block, &settings->hold, &settings->held_by);
    if (block.minor >= 1 && was_on != (settings->hold == HOLD_ON)) {
        block.bytes.failed = true; /* one value has one encoding */
    }
    codec_shut(in, &block);
}

void codec_write_node(struct bytes_writer *writer, const struct member_node *node)
{
    size_t begin = codec_begin(writer);

    bytes_write_u64(writer, node->node_id);
    bytes_write_u8(writer, node->role);
    bytes_write_string(writer, node->zone);
    bytes_write_copy(writer, node->key.bytes, sizeof node->key.bytes);
    assert(node->n_endpoints <= LIMIT_ENDPOINTS_PER_NODE);
    bytes_write_u32(writer, node->n_endpoints);
    for (uint32_t i = 0; i < node->n_endpoints; i++) {
        bytes_write_string(writer, node->endpoints[i].host);
        bytes_write_u16(writer, node->endpoints[i].mesh_port);
        bytes_write_u16(writer, node->endpoints[i].raft_port);
    }
    write_addr(writer, &node->probe_sources[0]);
    write_addr(writer, &node->probe_sources[1]);
    codec_end(writer, begin);
}

void codec_read_node(struct codec_in *in, struct member_node *ret_node)
{
    struct codec_in block = codec_open(in);
    struct member_node *node = ret_node;

    *node = (struct member_node){0};
    node->node_id = bytes_read_u64(&block.bytes);
    node->role = bytes_read_u8(&block.bytes);
    bytes_read_string(&block.bytes, node->zone, sizeof node->zone);
    bytes_read_copy(&block.bytes, node->key.bytes, sizeof node->key.bytes);
    node->n_endpoints = codec_read_count(&block, LIMIT_ENDPOINTS_PER_NODE);
    for (uint32_t i = 0; i < node->n_endpoints; i++) {
        struct node_endpoint *endpoint = &node->endpoints[i];

        bytes_read_string(&block.bytes, endpoint->host, sizeof endpoint->host);
        endpoint->mesh_port = bytes_read_u16(&block.bytes);
        endpoint->raft_port = bytes_read_u16(&block.bytes);
    }
    read_addr(&block, &node->probe_sources[0]);
    read_addr(&block, &node->probe_sources[1]);
    codec_shut(in, &block);
}

void codec_write_key(struct bytes_writer *writer, const struct access_key *key)
{
    size_t begin = codec_begin(writer);

    bytes_write_string(writer, key->name);
    bytes_write_copy(writer, key->key.bytes, sizeof key->key.bytes);
    bytes_write_u8(writer, key->role);
    bytes_write_u64(writer, (uint64_t)key->expires_wall_ms);
    codec_end(writer, begin);
}

void codec_read_key(struct codec_in *in, struct access_key *ret_key)
{
    struct codec_in block = codec_open(in);
    struct access_key *key = ret_key;

    *key = (struct access_key){0};
    bytes_read_string(&block.bytes, key->name, sizeof key->name);
    bytes_read_copy(&block.bytes, key->key.bytes, sizeof key->key.bytes);
    key->role = bytes_read_u8(&block.bytes);
    key->expires_wall_ms = (int64_t)bytes_read_u64(&block.bytes);
    codec_shut(in, &block);
}
