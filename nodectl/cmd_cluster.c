/* cluster and node: making one, its members, what a node is. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/str.h"
#include "common/model/names.h"
#include "common/model/validate.h"
#include "common/wire/object.h"
#include "jury/v1/cluster.pb-c.h"
#include "nodectl/commands.h"
#include "nodectl/connect.h"
#include "nodectl/load.h"
#include "nodectl/render.h"

#define INIT_KEYS_MAX 8
#define ARENA_BYTES ((size_t)1024 * 1024)

/* What the flags and documents name. */
struct init_parts {
    struct member_node nodes[LIMIT_VOTERS];
    size_t n_nodes;
    struct access_key keys[INIT_KEYS_MAX];
    size_t n_keys;
    struct cluster_settings settings;
    bool has_settings;
};

/* --- the flags' `name=value,name=value` --- */

struct pair {
    char name[16];
    char value[400];
};

static bool next_pair(const char **at, struct pair *pair)
{
    size_t n = strcspn(*at, ",");
    const char *equals = memchr(*at, '=', n);

    if (n == 0 || equals == NULL) {
        return false;
    }
    snprintf(pair->name, sizeof pair->name, "%.*s", (int)(equals - *at), *at);
    snprintf(pair->value, sizeof pair->value, "%.*s", (int)(*at + n - equals - 1), equals + 1);
    *at += n + ((*at)[n] == ',');
    return true;
}

static int refuse_flag(struct ctl *ctl, enum ctl_flag_id flag, const char *text)
{
    ctl_hint(ctl, "--%s %s", ctl_flags[flag].name, ctl_flags[flag].help);
    return ctl_fail(ctl, ERR_USAGE, "--%s cannot be understood: \"%.120s\"", ctl_flags[flag].name,
                    text);
}

static bool parse_port(const char *text, uint16_t *ret_port)
{
    uint64_t port = 0;

    if (!str_parse_u64(text, 65535, &port) || port == 0) {
        return false;
    }
    *ret_port = (uint16_t)port;
    return true;
}

/* "10.0.0.1:7400:7401", "[fd00::1]:7400:7401" */
static bool parse_node_endpoint(char *text, struct node_endpoint *ret_endpoint)
{
    struct node_endpoint endpoint = {.mesh_port = 0};
    char *raft = strrchr(text, ':');

    if (raft == NULL) {
        return false;
    }
    *raft++ = '\0';
    char *mesh = strrchr(text, ':');
    if (mesh == NULL) {
        return false;
    }
    *mesh++ = '\0';
    size_t n = strlen(text);
    if (n > 2 && text[0] == '[' && text[n - 1] == ']') {
        text[n - 1] = '\0';
        text++;
    }
    if (!parse_port(mesh, &endpoint.mesh_port) || !parse_port(raft, &endpoint.raft_port) ||
        !str_copy(endpoint.host, sizeof endpoint.host, text)) {
        return false;
    }
    *ret_endpoint = endpoint;
    return true;
}

static int set_node_pair(struct ctl *ctl, struct member_node *node, struct pair *pair,
                         const char *text)
{
    if (strcmp(pair->name, "key") == 0) {
        return load_public_key(ctl, "--node: key", pair->value, &node->key);
    }
    if (strcmp(pair->name, "id") == 0 && str_parse_u64(pair->value, INT64_MAX, &node->node_id)) {
        return 0;
    }
    if (strcmp(pair->name, "role") == 0) {
        node->role = (uint8_t)names_value(&names_raft_role, pair->value);
        return node->role != ROLE_NONE ? 0 : refuse_flag(ctl, FLAG_NODE, text);
    }
    if (strcmp(pair->name, "zone") == 0 && str_copy(node->zone, sizeof node->zone, pair->value)) {
        return 0;
    }
    if (strcmp(pair->name, "endpoint") == 0 && node->n_endpoints < LIMIT_ENDPOINTS_PER_NODE &&
        parse_node_endpoint(pair->value, &node->endpoints[node->n_endpoints])) {
        node->n_endpoints++;
        return 0;
    }
    return refuse_flag(ctl, FLAG_NODE, text);
}

static int add_node(struct ctl *ctl, struct init_parts *parts, const char *text)
{
    struct member_node *node = &parts->nodes[parts->n_nodes];
    struct errmsg err = {{0}};
    struct pair pair;
    const char *at = text;

    if (parts->n_nodes == LIMIT_VOTERS) {
        return ctl_fail(ctl, ERR_USAGE, "a cluster begins with at most %d nodes; add others later",
                        LIMIT_VOTERS);
    }
    *node = (struct member_node){.role = ROLE_VOTER};
    while (*at != '\0') {
        if (!next_pair(&at, &pair)) {
            return refuse_flag(ctl, FLAG_NODE, text);
        }
        int rc = set_node_pair(ctl, node, &pair, text);
        if (rc != 0) {
            return rc;
        }
    }
    if (validate_node(node, &err) != 0) {
        return ctl_fail(ctl, ERR_USAGE, "--node: %s", err.text);
    }
    parts->n_nodes++;
    return 0;
}

static int add_key(struct ctl *ctl, struct init_parts *parts, const char *text)
{
    struct access_key *key = &parts->keys[parts->n_keys];
    struct errmsg err = {{0}};
    struct pair pair;
    const char *at = text;

    if (parts->n_keys == INIT_KEYS_MAX) {
        return ctl_fail(ctl, ERR_USAGE, "a cluster begins with at most %d keys; add others later",
                        INIT_KEYS_MAX);
    }
    *key = (struct access_key){0};
    while (*at != '\0') {
        int rc = 0;

        if (!next_pair(&at, &pair)) {
            return refuse_flag(ctl, FLAG_ACCESS_KEY, text);
        }
        if (strcmp(pair.name, "key") == 0) {
            rc = load_public_key(ctl, "--access-key: key", pair.value, &key->key);
        } else if (strcmp(pair.name, "role") == 0) {
            key->role = (uint8_t)names_value(&names_key_role, pair.value);
        } else if (strcmp(pair.name, "name") != 0 ||
                   !str_copy(key->name, sizeof key->name, pair.value)) {
            rc = refuse_flag(ctl, FLAG_ACCESS_KEY, text);
        }
        if (rc != 0) {
            return rc;
        }
    }
    if (validate_key(key, &err) != 0) {
        return ctl_fail(ctl, ERR_USAGE, "--access-key: %s", err.text);
    }
    parts->n_keys++;
    return 0;
}

/* --- documents --- */

static int add_document(struct ctl *ctl, struct init_parts *parts,
                        const struct spec_document *document)
{
    char object[LOAD_OBJECT_BYTES];

    if (document->kind == SPEC_NODE && parts->n_nodes < LIMIT_VOTERS) {
        parts->nodes[parts->n_nodes++] = *document->u.node;
        return 0;
    }
    if (document->kind == SPEC_KEY && parts->n_keys < INIT_KEYS_MAX) {
        parts->keys[parts->n_keys++] = *document->u.key;
        return 0;
    }
    if (document->kind == SPEC_CLUSTER_SETTINGS) {
        parts->settings = *document->u.settings;
        parts->has_settings = true;
        return 0;
    }
    load_object(document, object);
    if (document->kind == SPEC_NODE || document->kind == SPEC_KEY) {
        return ctl_fail(ctl, ERR_INVALID,
                        "%s is one too many: a cluster begins with at most %d nodes and %d keys",
                        object, LIMIT_VOTERS, INIT_KEYS_MAX);
    }
    return ctl_fail(ctl, ERR_INVALID,
                    "%s cannot be part of cluster init: make the cluster first, then apply it",
                    object);
}

static int collect_documents(struct ctl *ctl, struct init_parts *parts)
{
    struct spec_set set = {0};
    int rc = load_documents(ctl, &set);

    for (uint32_t i = 0; rc == 0 && i < set.n_documents; i++) {
        rc = add_document(ctl, parts, &set.documents[i]);
    }
    spec_set_close(&set);
    return rc;
}

static int check_parts(struct ctl *ctl, const struct init_parts *parts)
{
    if (parts->n_nodes == 0) {
        ctl_hint(ctl, "see: nodectl cluster init --help");
        return ctl_fail(ctl, ERR_USAGE, "no member is named: use --node or -f");
    }
    for (size_t i = 0; i < parts->n_nodes; i++) {
        for (size_t j = 0; j < i; j++) {
            if (parts->nodes[i].node_id == parts->nodes[j].node_id) {
                return ctl_fail(ctl, ERR_USAGE, "node %" PRIu64 " is named twice",
                                parts->nodes[i].node_id);
            }
            if (memcmp(&parts->nodes[i].key, &parts->nodes[j].key, sizeof(struct public_key)) ==
                0) {
                return ctl_fail(ctl, ERR_USAGE,
                                "nodes %" PRIu64 " and %" PRIu64 " have the same key: each node "
                                "needs one of its own",
                                parts->nodes[j].node_id, parts->nodes[i].node_id);
            }
        }
    }
    return 0;
}

/* --- init --- */

static int build_request(struct ctl *ctl, const struct init_parts *parts, struct wire_arena *arena,
                         Jury__V1__InitClusterRequest *request)
{
    request->members = wire_alloc_array(arena, parts->n_nodes, sizeof *request->members);
    request->keys = wire_alloc_array(arena, parts->n_keys + 1, sizeof *request->keys);
    for (size_t i = 0; i < parts->n_nodes && request->members != NULL; i++) {
        request->members[i] = wire_node_new(arena, &parts->nodes[i]);
    }
    for (size_t i = 0; i < parts->n_keys && request->keys != NULL; i++) {
        request->keys[i] = wire_key_new(arena, &parts->keys[i]);
    }
    if (parts->has_settings) {
        request->settings = wire_settings_new(arena, &parts->settings);
    }
    request->n_members = parts->n_nodes;
    request->n_keys = parts->n_keys;
    return arena->failed ? ctl_fail(ctl, ERR_NOMEM, "out of memory") : 0;
}

static int init_cluster(struct ctl *ctl, const struct init_parts *parts)
{
    Jury__V1__InitClusterRequest request;
    struct rpc_result result = {0};
    struct wire_arena arena;

    jury__v1__init_cluster_request__init(&request);
    wire_arena_init(&arena, ARENA_BYTES);
    int rc = build_request(ctl, parts, &arena, &request);
    if (rc == 0) {
        rc = ctl_call(ctl, "jury.v1.ClusterService/InitCluster", &request.base, &result);
    }
    if (rc == 0 && ctl_is_json(ctl)) {
        rc = ctl_print_message(ctl, result.response);
    } else if (rc == 0) {
        const Jury__V1__InitClusterResponse *answer =
            (const Jury__V1__InitClusterResponse *)(const void *)result.response;

        fprintf(ctl->out, "cluster %s is made of %zu node%s, revision %" PRIu64 "\n",
                answer->cluster_id, parts->n_nodes, parts->n_nodes == 1 ? "" : "s",
                answer->revision);
    }
    rpc_result_close(&result);
    wire_arena_close(&arena);
    return rc;
}

int cmd_cluster_init(struct ctl *ctl)
{
    struct init_parts *parts = calloc(1, sizeof *parts);
    int rc = parts == NULL ? ctl_fail(ctl, ERR_NOMEM, "out of memory") : 0;

    if (rc == 0 && ctl_has(ctl, FLAG_FILE)) {
        rc = collect_documents(ctl, parts);
    }
    for (size_t i = 0; rc == 0 && i < ctl_n_texts(ctl, FLAG_NODE); i++) {
        rc = add_node(ctl, parts, ctl_text_at(ctl, FLAG_NODE, i));
    }
    for (size_t i = 0; rc == 0 && i < ctl_n_texts(ctl, FLAG_ACCESS_KEY); i++) {
        rc = add_key(ctl, parts, ctl_text_at(ctl, FLAG_ACCESS_KEY, i));
    }
    if (rc == 0) {
        rc = check_parts(ctl, parts);
    }
    if (rc == 0) {
        rc = init_cluster(ctl, parts);
    }
    free(parts);
    return rc;
}

/* --- reading --- */

int cmd_cluster_members(struct ctl *ctl)
{
    Jury__V1__ListMembersRequest request;
    struct rpc_result result = {0};

    jury__v1__list_members_request__init(&request);
    int rc = ctl_call(ctl, "jury.v1.ClusterService/ListMembers", &request.base, &result);

    if (rc == 0 && ctl_is_json(ctl)) {
        rc = ctl_print_message(ctl, result.response);
    } else if (rc == 0) {
        render_members(ctl, (const Jury__V1__ListMembersResponse *)(const void *)result.response);
    }
    rpc_result_close(&result);
    return rc;
}

int cmd_node_describe(struct ctl *ctl)
{
    Jury__V1__DescribeNodeRequest request;
    struct rpc_result result = {0};

    jury__v1__describe_node_request__init(&request);
    int rc = ctl_call(ctl, "jury.v1.NodeService/DescribeNode", &request.base, &result);

    if (rc == 0 && ctl_is_json(ctl)) {
        rc = ctl_print_message(ctl, result.response);
    } else if (rc == 0) {
        render_node(ctl, (const Jury__V1__DescribeNodeResponse *)(const void *)result.response);
    }
    rpc_result_close(&result);
    return rc;
}

int cmd_node_counters(struct ctl *ctl)
{
    Jury__V1__ListCountersRequest request;
    struct rpc_result result = {0};

    jury__v1__list_counters_request__init(&request);
    int rc = ctl_call(ctl, "jury.v1.NodeService/ListCounters", &request.base, &result);

    if (rc == 0 && ctl_is_json(ctl)) {
        rc = ctl_print_message(ctl, result.response);
    } else if (rc == 0) {
        render_counters(ctl, (const Jury__V1__ListCountersResponse *)(const void *)result.response);
    }
    rpc_result_close(&result);
    return rc;
}
