/* The tables of listeners, cluster settings, nodes and keys. */
#include "common/spec/fields.h"

#include <assert.h>

#include "common/base/limits.h"

#define EXAMPLE_KEY "6f1d0a5b9c3e47d28a1b5c6d7e8f90123456789abcdef0123456789abcdef012"

static const struct spec_field listener_fields[] = {
    {.name = "at",
     .type = SPEC_TYPE_ENDPOINT,
     AT(listener, at),
     .example = "127.0.0.1:8080",
     .help = "Where clients connect, on every node: address and port, IPv6 in brackets; 0.0.0.0 or "
             "[::] = all addresses. Or write address and port apart."},
    {.name = "address",
     .type = SPEC_TYPE_ADDRESS,
     .flags = SPEC_ALTERNATE,
     AT(listener, at.addr),
     .help = "The address alone, without brackets; with port."},
    {.name = "port",
     .type = SPEC_TYPE_UINT,
     .flags = SPEC_ALTERNATE,
     AT(listener, at.port),
     .min = 1,
     .max = 65535,
     .help = "The port alone; with address."},
    {.name = "lastPort", .flags = SPEC_LATER, .help = "Last port of a range."},
    {.name = "protocol",
     .type = SPEC_TYPE_WORD,
     AT(listener, protocol),
     .names = &names_protocol,
     .later = "geneve, udp, tcp_udp",
     .help = "What is accepted; must suit the group."},
    {.name = "group",
     .type = SPEC_TYPE_TEXT,
     .flags = SPEC_REQUIRED,
     AT(listener, group),
     .min = 2,
     .max = LIMIT_NAME_BYTES,
     .example = "web",
     .help = "Name of the server group that serves it."},
    {.name = "idleTimeout",
     .type = SPEC_TYPE_DURATION,
     AT(listener, idle_timeout_ms),
     .min = 1000,
     .max = 6000000,
     .zero_word = "group",
     .help = "A flow without a packet for this long has ended; wins over the group's. "
             "\"group\" = the group's."},
    {.name = "proxyProtocol", .flags = SPEC_LATER, .help = "PROXY protocol v2 towards backends."},
    {.name = "check", .flags = SPEC_LATER, .help = "A health check of the listener's own."},
};
const struct spec_table spec_listener_table = {
    "spec", listener_fields, COUNT(listener_fields),
    "An address and port where clients connect (layer 4, no TLS termination)."};

static const struct spec_field listener_metadata_fields[] = {
    {.name = "name",
     .type = SPEC_TYPE_TEXT,
     .flags = SPEC_REQUIRED,
     AT(listener, name),
     .min = 2,
     .max = LIMIT_NAME_BYTES,
     .example = "web-http",
     .help = "Name of the listener: a letter first, then letters, digits, \".\", \"_\" and \"-\"."},
};
const struct spec_table spec_listener_metadata_table = {"metadata", listener_metadata_fields,
                                                        COUNT(listener_metadata_fields),
                                                        "What the listener is called."};

static const struct spec_field cidr_field = {
    .name = "allowedCidrs", .type = SPEC_TYPE_CIDR, .bytes = (uint32_t)sizeof(struct cidr)};
static const struct spec_list cidr_list = {
    .element_bytes = sizeof(struct cidr),
    .count_offset = (uint32_t)offsetof(struct cluster_settings, n_allowed),
    .n_max = LIMIT_CIDRS,
    .element_word = "prefix",
    .scalar = &cidr_field,
};

static const struct spec_field settings_fields[] = {
    {.name = "voteInterval",
     .type = SPEC_TYPE_DURATION,
     AT(cluster_settings, vote_interval_ms),
     .min = 200,
     .max = 5000,
     .help = "V: how often each node sends its whole vote vector. A vote counts for 3 V."},
    {.name = "allowedCidrs",
     .type = SPEC_TYPE_LIST,
     AT(cluster_settings, allowed),
     .list = &cidr_list,
     .example = "[10.0.0.0/8]",
     .help = "The prefixes that backends may have addresses in; a group with another one is "
             "refused. The list replaces the one that was there: write all of them. Left out, it "
             "is the default."},
    {.name = "hold",
     .type = SPEC_TYPE_WORD,
     .flags = SPEC_OMIT_ZERO | SPEC_ZERO_KEEPS,
     AT(cluster_settings, hold),
     .names = &names_hold,
     .example = "off",
     .help = SPEC_HOLD_HELP("any group")},
};
const struct spec_table spec_settings_table = {"spec", settings_fields, COUNT(settings_fields),
                                               "What holds for the whole cluster."};

static const struct spec_field endpoint_fields[] = {
    {.name = "host",
     .type = SPEC_TYPE_TEXT,
     .flags = SPEC_REQUIRED,
     AT(node_endpoint, host),
     .min = 1,
     .max = HOST_BYTES,
     .example = "node1.example.net",
     .help = "DNS name or numeric address, without brackets."},
    {.name = "meshPort",
     .type = SPEC_TYPE_UINT,
     .flags = SPEC_REQUIRED,
     AT(node_endpoint, mesh_port),
     .min = 1,
     .max = 65535,
     .example = "7400",
     .help = "Port of votes, hellos and requests."},
    {.name = "raftPort",
     .type = SPEC_TYPE_UINT,
     .flags = SPEC_REQUIRED,
     AT(node_endpoint, raft_port),
     .min = 1,
     .max = 65535,
     .example = "7401",
     .help = "Port of the replicated configuration."},
};
static const struct spec_table endpoint_table = {
    "endpoints", endpoint_fields, COUNT(endpoint_fields), "Where the other nodes reach this one."};
static const struct spec_list endpoint_list = {
    .element_bytes = sizeof(struct node_endpoint),
    .count_offset = (uint32_t)offsetof(struct member_node, n_endpoints),
    .n_min = 1,
    .n_max = LIMIT_ENDPOINTS_PER_NODE,
    .element_word = "endpoint",
    .fields = &endpoint_table,
};

/* As in the model: member_node.probe_sources. */
struct source_pair {
    struct addr ipv4, ipv6;
};
static_assert(sizeof(struct source_pair) ==
                  sizeof(((const struct member_node *)NULL)->probe_sources),
              "an address of each family");

static const struct spec_field source_fields[] = {
    {.name = "ipv4",
     .type = SPEC_TYPE_ADDRESS,
     .flags = SPEC_OMIT_ZERO,
     AT(source_pair, ipv4),
     .max = ADDR_IPV4,
     .example = "10.0.0.1",
     .help = "Of probes of IPv4 backends."},
    {.name = "ipv6",
     .type = SPEC_TYPE_ADDRESS,
     .flags = SPEC_OMIT_ZERO,
     AT(source_pair, ipv6),
     .max = ADDR_IPV6,
     .example = "fd00::1",
     .help = "Of probes of IPv6 backends."},
};
static const struct spec_table sources_table = {"probeSources", source_fields, COUNT(source_fields),
                                                "Source addresses of probes."};

static const struct spec_field node_fields[] = {
    {.name = "id",
     .type = SPEC_TYPE_UINT,
     .flags = SPEC_REQUIRED,
     AT(member_node, node_id),
     .min = 1,
     .max = INT64_MAX,
     .example = "1",
     .help = "Number of the node; never used again after its removal."},
    {.name = "role",
     .type = SPEC_TYPE_WORD,
     AT(member_node, role),
     .names = &names_raft_role,
     .help = "voter: counts for Raft's quorum; standby: has the catalog and probes; spare: "
             "neither."},
    {.name = "zone",
     .type = SPEC_TYPE_TEXT,
     .flags = SPEC_OMIT_ZERO,
     AT(member_node, zone),
     .min = 1,
     .max = LIMIT_ZONE_BYTES,
     .example = "zone-a",
     .help = "Where the node is: the rule zone-majority counts by it. Nodes without one are a "
             "zone together."},
    {.name = "key",
     .type = SPEC_TYPE_PUBLIC_KEY,
     .flags = SPEC_REQUIRED,
     AT(member_node, key),
     .example = EXAMPLE_KEY,
     .help = "The node's public key: nodectl key show FILE."},
    {.name = "endpoints",
     .type = SPEC_TYPE_LIST,
     .flags = SPEC_REQUIRED,
     AT(member_node, endpoints),
     .list = &endpoint_list,
     .help = "Where the other nodes reach this one."},
    {.name = "probeSources",
     .type = SPEC_TYPE_OBJECT,
     .flags = SPEC_OMIT_ZERO,
     AT(member_node, probe_sources),
     .fields = &sources_table,
     .help =
         "Where this node's probes come from, by family, instead of the address that its routes "
         "choose. A probe from an address that the node has not is inconclusive "
         "(LOCAL_SOURCE_MISSING)."},
};
const struct spec_table spec_node_table = {"spec", node_fields, COUNT(node_fields),
                                           "A member of the cluster."};

static const struct spec_field key_fields[] = {
    {.name = "key",
     .type = SPEC_TYPE_PUBLIC_KEY,
     .flags = SPEC_REQUIRED,
     AT(access_key, key),
     .example = EXAMPLE_KEY,
     .help = "The public key: nodectl key show FILE."},
    {.name = "role",
     .type = SPEC_TYPE_WORD,
     .flags = SPEC_REQUIRED,
     AT(access_key, role),
     .names = &names_key_role,
     .example = "viewer",
     .help = "viewer reads; operator also drains and weighs; admin may do everything."},
    {.name = "expires",
     .type = SPEC_TYPE_TIME,
     AT(access_key, expires_wall_ms),
     .zero_word = "never",
     .help = "When the key stops working, in UTC: 2027-01-31T00:00:00Z."},
};
const struct spec_table spec_key_table = {"spec", key_fields, COUNT(key_fields),
                                          "Who may ask the cluster and what."};

static const struct spec_field key_metadata_fields[] = {
    {.name = "name",
     .type = SPEC_TYPE_TEXT,
     .flags = SPEC_REQUIRED,
     AT(access_key, name),
     .min = 2,
     .max = LIMIT_NAME_BYTES,
     .example = "ops-anna",
     .help = "Name of the key; stands in the record of who changed what."},
};
const struct spec_table spec_key_metadata_table = {
    "metadata", key_metadata_fields, COUNT(key_metadata_fields), "What the key is called."};
