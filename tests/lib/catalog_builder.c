#include "tests/lib/catalog_builder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/str.h"
#include "common/model/feature_level.h"
#include "common/model/profile.h"

static void *allocate(size_t size)
{
    void *memory = calloc(1, size);

    if (memory == NULL) {
        abort();
    }
    return memory;
}

static void *duplicate(const void *from, size_t size)
{
    return memcpy(allocate(size), from, size);
}

static void copy_name(char to[LIMIT_NAME_BYTES + 1], const char *from)
{
    if (!str_copy(to, LIMIT_NAME_BYTES + 1, from)) {
        abort();
    }
}

struct endpoint build_endpoint(const char *text)
{
    struct endpoint endpoint;
    struct errmsg err;

    if (endpoint_parse(text, &endpoint, &err) != 0) {
        fprintf(stderr, "%s\n", err.text);
        abort();
    }
    return endpoint;
}

static size_t count_words(const char *text)
{
    size_t n = 0;

    for (text += strspn(text, " "); *text != '\0'; text += strspn(text, " ")) {
        text += strcspn(text, " ");
        n++;
    }
    return n;
}

void build_group(struct server_group *ret_group, const char *name, const char *endpoints)
{
    size_t n_words = count_words(endpoints);
    char text[64];

    profile_group_defaults(PROFILE_NLB, PROTOCOL_TCP, ret_group);
    copy_name(ret_group->name, name);
    ret_group->backends = allocate((n_words + 1) * sizeof *ret_group->backends);
    endpoints += strspn(endpoints, " ");
    while (*endpoints != '\0') {
        size_t n = strcspn(endpoints, " ");
        struct backend *backend = &ret_group->backends[ret_group->n_backends++];

        if (n >= sizeof text) {
            abort();
        }
        memcpy(text, endpoints, n);
        text[n] = '\0';
        profile_backend_defaults(PROFILE_NLB, backend);
        backend->at = build_endpoint(text);
        endpoints += n + strspn(endpoints + n, " ");
    }
    server_group_sort_backends(ret_group);
}

static struct change *add(struct command *command, enum change_kind kind)
{
    struct change *changes =
        realloc(command->changes, (command->n_changes + 1) * sizeof *command->changes);

    if (changes == NULL) {
        abort();
    }
    command->changes = changes;
    changes[command->n_changes] = (struct change){.kind = (uint8_t)kind};
    return &changes[command->n_changes++];
}

struct change *build_put_group(struct command *command, const struct server_group *group)
{
    struct change *change = add(command, CHANGE_PUT_GROUP);

    change->u.group = duplicate(group, sizeof *group);
    change->u.group->backends =
        group->n_backends == 0
            ? NULL
            : duplicate(group->backends, group->n_backends * sizeof *group->backends);
    if (server_group_copy_checks(change->u.group, group) != 0) {
        abort();
    }
    return change;
}

struct change *build_put(struct command *command, const char *name, const char *endpoints)
{
    struct server_group group;

    build_group(&group, name, endpoints);
    struct change *change = build_put_group(command, &group);
    server_group_close(&group);
    return change;
}

static struct change *add_named(struct command *command, enum change_kind kind, const char *name)
{
    struct change *change = add(command, kind);

    change->u.name = duplicate(name, strlen(name) + 1);
    return change;
}

struct change *build_hold(struct command *command, const char *group, bool is_on)
{
    struct change *change = add(command, CHANGE_SET_HOLD);
    struct hold_update update = {.is_on = is_on};

    strncpy(update.group, group, sizeof update.group - 1);
    change->u.hold = duplicate(&update, sizeof update);
    return change;
}

struct change *build_delete_group(struct command *command, const char *name)
{
    return add_named(command, CHANGE_DELETE_GROUP, name);
}

struct change *build_listener(struct command *command, const char *name, const char *at,
                              const char *group)
{
    struct change *change = add(command, CHANGE_PUT_LISTENER);
    struct listener listener = {.at = build_endpoint(at), .protocol = PROTOCOL_TCP};

    listener.port_last = listener.at.port;
    copy_name(listener.name, name);
    copy_name(listener.group, group);
    change->u.listener = duplicate(&listener, sizeof listener);
    return change;
}

struct change *build_delete_listener(struct command *command, const char *name)
{
    return add_named(command, CHANGE_DELETE_LISTENER, name);
}

static struct member_node make_node(uint64_t node_id, enum raft_role role)
{
    struct member_node node = {.node_id = node_id, .role = (uint8_t)role, .n_endpoints = 1};

    node.key.bytes[0] = 1;
    for (unsigned i = 0; i < 8; i++) {
        node.key.bytes[8 + i] = (uint8_t)(node_id >> (8 * i));
    }
    snprintf(node.endpoints[0].host, sizeof node.endpoints[0].host, "node-%llu.example",
             (unsigned long long)node_id);
    node.endpoints[0].mesh_port = 7001;
    node.endpoints[0].raft_port = 7002;
    return node;
}

struct change *build_node(struct command *command, uint64_t node_id, enum raft_role role)
{
    struct change *change = add(command, CHANGE_PUT_NODE);
    struct member_node node = make_node(node_id, role);

    change->u.node = duplicate(&node, sizeof node);
    return change;
}

struct change *build_delete_node(struct command *command, uint64_t node_id)
{
    struct change *change = add(command, CHANGE_DELETE_NODE);

    change->u.node_id = node_id;
    return change;
}

static struct access_key make_key(const char *name, enum key_role role, uint8_t key_byte)
{
    struct access_key key = {.role = (uint8_t)role, .key = {.bytes = {2, key_byte}}};

    copy_name(key.name, name);
    return key;
}

struct change *build_key(struct command *command, const char *name, enum key_role role,
                         uint8_t key_byte)
{
    struct change *change = add(command, CHANGE_PUT_KEY);
    struct access_key key = make_key(name, role, key_byte);

    change->u.key = duplicate(&key, sizeof key);
    return change;
}

struct change *build_delete_key(struct command *command, const char *name)
{
    return add_named(command, CHANGE_DELETE_KEY, name);
}

struct change *build_settings(struct command *command, const struct cluster_settings *settings)
{
    struct change *change = add(command, CHANGE_PUT_SETTINGS);

    change->u.settings = duplicate(settings, sizeof *settings);
    return change;
}

static struct change *add_update(struct command *command, const char *group, const char *at)
{
    struct change *change = add(command, CHANGE_SET_BACKEND);

    change->u.backend = allocate(sizeof *change->u.backend);
    copy_name(change->u.backend->group, group);
    change->u.backend->at = build_endpoint(at);
    return change;
}

struct change *build_admin(struct command *command, const char *group, const char *at,
                           enum admin_state admin_state)
{
    struct change *change = add_update(command, group, at);

    change->u.backend->admin_state = (uint8_t)admin_state;
    return change;
}

struct change *build_weight(struct command *command, const char *group, const char *at,
                            uint8_t weight)
{
    struct change *change = add_update(command, group, at);

    change->u.backend->has_weight = true;
    change->u.backend->weight = weight;
    return change;
}

struct change *build_purge(struct command *command, const struct catalog *catalog,
                           const char *group, const char *at)
{
    struct change *change = add(command, CHANGE_PURGE_BACKEND);
    const struct catalog_group *found = catalog_group_find(catalog, group);
    struct backend_purge *purge = allocate(sizeof *purge);

    copy_name(purge->group, group);
    purge->at = build_endpoint(at);
    if (found != NULL) {
        const struct catalog_backend *backend = catalog_backend_find(found, &purge->at);

        if (backend != NULL) {
            purge->backend_id = backend->id;
            purge->drain_revision = backend->drain_revision;
        }
    }
    change->u.purge = purge;
    return change;
}

struct change *build_init(struct command *command, uint32_t n_voters)
{
    struct change *change = add(command, CHANGE_INIT);
    struct cluster_init *init = allocate(sizeof *init);

    memcpy(init->cluster_id.bytes, "0123456789abcdef", sizeof init->cluster_id.bytes);
    cluster_settings_default(&init->settings);
    init->feature_level = feature_level();
    for (init->n_nodes = 0; init->n_nodes < n_voters; init->n_nodes++) {
        init->nodes[init->n_nodes] = make_node(init->n_nodes + 1, ROLE_VOTER);
    }
    init->keys[0] = make_key("root", KEY_ROLE_ADMIN, 1);
    init->n_keys = 1;
    change->u.init = init;
    return change;
}

struct apply_answer build_apply(struct catalog_state *state, struct command *command)
{
    struct apply_answer answer;

    catalog_apply(state, command, &answer);
    command_close(command);
    return answer;
}

uint64_t build_commit(struct catalog_state *state, struct command *command)
{
    struct apply_answer answer = build_apply(state, command);

    if (answer.err != 0) {
        fprintf(stderr, "refused: %s\n", answer.message.text);
        abort();
    }
    return answer.revision;
}

struct catalog_state *build_state(uint32_t n_voters)
{
    struct catalog_state *state = catalog_state_new();
    struct command command = {.wall_ms = 1000};

    if (state == NULL) {
        abort();
    }
    build_init(&command, n_voters);
    build_commit(state, &command);
    return state;
}

struct catalog *build_catalog(uint32_t n_voters, const char *group, const char *endpoints)
{
    struct catalog_state *state = build_state(n_voters);
    struct command command = {0};

    build_put(&command, group, endpoints);
    build_commit(state, &command);
    struct catalog *catalog = catalog_state_catalog(state);
    catalog_state_free(state);
    return catalog;
}

struct named_check *build_check(struct server_group *group, const char *name, enum check_type type,
                                uint16_t port, enum check_class check_class)
{
    struct named_check *grown =
        realloc(group->checks, (group->n_checks + 1) * sizeof *group->checks);

    if (grown == NULL) {
        abort();
    }
    group->checks = grown;
    struct named_check *check = &grown[group->n_checks++];
    *check = (struct named_check){.check_class = (uint8_t)check_class};
    memcpy(check->name, name, strlen(name) + 1);
    profile_check_defaults(PROFILE_NLB, PROTOCOL_TCP, type, &check->check);
    check->check.port = port;
    group->pass.kind = group->pass.kind == RULE_NONE ? RULE_ALL : group->pass.kind;
    group_settle_checks(group);
    return check;
}
