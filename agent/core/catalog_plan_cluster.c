/* Planning changes of settings, member nodes and keys, and the first command of a cluster. */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/core/catalog_state.h"
#include "common/base/plant.h"
#include "common/model/validate.h"

/* --- working copies --- */

static void *copy_array(const void *from, size_t n, size_t n_more, size_t size)
{
    void *copy = catalog_alloc(n + n_more, size);

    if (n > 0) {
        memcpy(copy, from, n * size);
    }
    return copy;
}

static void start_part(struct part *part, enum part_kind kind)
{
    atomic_init(&part->refs, 1);
    part->kind = (uint8_t)kind;
    part->name = "";
}

/* With room for as many more as the command has changes, or as an init may bring. */
static struct nodes_part *own_nodes(struct plan *plan)
{
    if (plan->nodes == NULL) {
        const struct nodes_part *from = plan->base->nodes;
        size_t n_more = (size_t)plan->command->n_changes + LIMIT_VOTERS;
        struct nodes_part *part = catalog_alloc(1, sizeof *part);

        start_part(&part->head, PART_NODES);
        part->n_nodes = from->n_nodes;
        part->nodes = copy_array(from->nodes, from->n_nodes, n_more, sizeof *part->nodes);
        part->n_retired = from->n_retired;
        part->retired_ids =
            copy_array(from->retired_ids, from->n_retired, n_more, sizeof *part->retired_ids);
        plan->nodes = part;
    }
    return plan->nodes;
}

static struct keys_part *own_keys(struct plan *plan)
{
    if (plan->keys == NULL) {
        const struct keys_part *from = plan->base->keys;
        size_t n_more = (size_t)plan->command->n_changes + INIT_KEYS_MAX;
        struct keys_part *part = catalog_alloc(1, sizeof *part);

        start_part(&part->head, PART_KEYS);
        part->n_keys = from->n_keys;
        part->keys = copy_array(from->keys, from->n_keys, n_more, sizeof *part->keys);
        plan->keys = part;
    }
    return plan->keys;
}

/* --- settings --- */

static void set_settings(struct plan *plan, const struct cluster_settings *settings, uint8_t level)
{
    struct settings_part *part = catalog_alloc(1, sizeof *part);

    start_part(&part->head, PART_SETTINGS);
    part->settings = *settings;
    part->changed_revision = plan->revision;
    part->feature_level = level;
    plan->settings = part;
}

static bool same_settings(const struct cluster_settings *a, const struct cluster_settings *b)
{
    if (a->vote_interval_ms != b->vote_interval_ms || a->hold != b->hold ||
        a->n_allowed != b->n_allowed) {
        return false;
    }
    for (uint32_t i = 0; i < a->n_allowed; i++) {
        if (a->allowed[i].prefix_bits != b->allowed[i].prefix_bits ||
            addr_compare(&a->allowed[i].addr, &b->allowed[i].addr) != 0) {
            return false;
        }
    }
    return true;
}

static void note_settings(struct plan *plan, const struct cluster_settings *wanted)
{
    bool is_changed = !same_settings(&plan->base->settings->settings, wanted);

    plan_note(plan, true, is_changed);
    if (is_changed) {
        set_settings(plan, wanted, plan->base->settings->feature_level);
    }
}

int plan_raise_level(struct plan *plan, const struct change *change)
{
    const struct settings_part *before = plan->base->settings;
    uint8_t level = change->u.feature_level;
    int rc = plan_name_once(plan, PART_SETTINGS, "cluster settings", NULL);

    if (rc != 0) {
        return rc;
    }
    bool is_higher = level > before->feature_level;
    plan_note(plan, true, is_higher); /* it never falls: bytes of that level may be in the log */
    if (is_higher) {
        set_settings(plan, &before->settings, level);
    }
    return 0;
}

int plan_put_settings(struct plan *plan, const struct change *change)
{
    const struct settings_part *before = plan->base->settings;
    struct errmsg message;
    int rc = validate_settings(change->u.settings, &message);

    if (rc != 0) {
        return plan_refuse(plan, rc, "%s", message.text);
    }
    rc = plan_name_once(plan, PART_SETTINGS, "cluster settings", NULL);
    if (rc == 0) {
        rc = plan_check_expected(plan, change, "cluster settings", before->changed_revision);
    }
    struct cluster_settings wanted = *change->u.settings;
    wanted.hold = before->settings.hold;
    wanted.held_by = before->settings.held_by;
    plan_set_hold(plan, change->u.settings->hold, &wanted.hold, &wanted.held_by);
    if (rc == 0) {
        note_settings(plan, &wanted);
    }
    return rc;
}

int plan_hold_cluster(struct plan *plan, const struct change *change)
{
    const struct settings_part *before = plan->base->settings;
    struct cluster_settings wanted = before->settings;
    int rc = plan_name_once(plan, PART_SETTINGS, "cluster settings", NULL);

    if (rc == 0) {
        rc = plan_check_expected(plan, change, "cluster settings", before->changed_revision);
    }
    plan_set_hold(plan, change->u.hold->is_on ? HOLD_ON : HOLD_OFF, &wanted.hold, &wanted.held_by);
    if (rc == 0) {
        note_settings(plan, &wanted);
    }
    return rc;
}

/* --- nodes --- */

static struct catalog_node *find_node(struct nodes_part *nodes, uint64_t node_id)
{
    for (uint32_t i = 0; i < nodes->n_nodes; i++) {
        if (nodes->nodes[i].spec.node_id == node_id) {
            return &nodes->nodes[i];
        }
    }
    return NULL;
}

static bool same_node(const struct member_node *a, const struct member_node *b)
{
    struct bytes_writer writer_a;
    struct bytes_writer writer_b;

    bytes_writer_init(&writer_a, LIMIT_CHUNK_BYTES);
    bytes_writer_init(&writer_b, LIMIT_CHUNK_BYTES);
    codec_write_node(&writer_a, a);
    codec_write_node(&writer_b, b);
    return plan_same_bytes(&writer_a, &writer_b);
}

static int put_node(struct plan *plan, const struct member_node *spec)
{
    struct nodes_part *nodes = own_nodes(plan);
    struct catalog_node *node = find_node(nodes, spec->node_id);

    if (node == NULL) {
        uint32_t at = nodes->n_nodes;

        if (at == LIMIT_NODES) {
            return plan_refuse(plan, ERR_LIMIT,
                               "node \"%" PRIu64 "\": the cluster has %" PRIu32
                               " nodes, the limit is %d",
                               spec->node_id, at, LIMIT_NODES);
        }
        for (; at > 0 && nodes->nodes[at - 1].spec.node_id > spec->node_id; at--) {
            nodes->nodes[at] = nodes->nodes[at - 1];
        }
        node = &nodes->nodes[at];
        *node = (struct catalog_node){.added_revision = plan->revision};
        nodes->n_nodes++;
    } else if (same_node(&node->spec, spec)) {
        return 0;
    }
    node->spec = *spec;
    node->changed_revision = plan->revision;
    return 0;
}

static int check_retired(struct plan *plan, uint64_t node_id)
{
    const struct nodes_part *nodes = plan_nodes_after(plan);

    for (uint32_t i = 0; i < nodes->n_retired; i++) {
        if (nodes->retired_ids[i] == node_id && !plant_is("catalog-node-id-again")) {
            return plan_refuse(plan, ERR_EXISTS,
                               "node \"%" PRIu64
                               "\": a removed node had this id and no other may get it: choose "
                               "another",
                               node_id);
        }
    }
    return 0;
}

static int name_node(struct plan *plan, const struct change *change, uint64_t node_id)
{
    const struct catalog_node *before = catalog_node_find(plan->base, node_id);
    char id[24];
    char what[40];

    snprintf(id, sizeof id, "%" PRIu64, node_id);
    snprintf(what, sizeof what, "node \"%s\"", id);
    int rc = plan_name_once(plan, PART_NODES, id, NULL);
    return rc != 0 ? rc
                   : plan_check_expected(plan, change, what,
                                         before != NULL ? before->changed_revision : 0);
}

int plan_put_node(struct plan *plan, const struct change *change)
{
    const struct member_node *spec = change->u.node;
    struct errmsg message;
    int rc = validate_node(spec, &message);

    if (rc != 0) {
        return plan_refuse(plan, rc, "%s", message.text);
    }
    rc = name_node(plan, change, spec->node_id);
    if (rc == 0) {
        rc = check_retired(plan, spec->node_id);
    }
    if (rc == 0) {
        const struct catalog_node *before = catalog_node_find(plan->base, spec->node_id);

        plan_note(plan, before != NULL, before == NULL || !same_node(&before->spec, spec));
        rc = put_node(plan, spec);
    }
    return rc;
}

static void retire(struct nodes_part *nodes, uint64_t node_id)
{
    uint32_t at = nodes->n_retired++;

    for (; at > 0 && nodes->retired_ids[at - 1] > node_id; at--) {
        nodes->retired_ids[at] = nodes->retired_ids[at - 1];
    }
    nodes->retired_ids[at] = node_id;
}

int plan_delete_node(struct plan *plan, const struct change *change)
{
    uint64_t node_id = change->u.node_id;
    char id_text[24];
    int rc = name_node(plan, change, node_id);

    if (rc != 0) {
        return rc;
    }
    if (catalog_node_find(plan->base, node_id) == NULL) {
        snprintf(id_text, sizeof id_text, "%" PRIu64, node_id);
        return plan_refuse(plan, ERR_NOTFOUND, ERR_SAY_MISSING, "node", id_text);
    }
    struct nodes_part *nodes = own_nodes(plan);
    if (nodes->n_retired == LIMIT_RETIRED_NODES) {
        return plan_refuse(plan, ERR_LIMIT,
                           "%d node ids were used and removed, the limit is %d: make a new cluster",
                           LIMIT_RETIRED_NODES, LIMIT_RETIRED_NODES);
    }
    struct catalog_node *node = find_node(nodes, node_id);
    size_t n_behind = nodes->n_nodes - (size_t)(node - nodes->nodes) - 1;
    memmove(node, node + 1, n_behind * sizeof *node);
    nodes->n_nodes--;
    retire(nodes, node_id);
    plan_note(plan, true, true);
    return 0;
}

/* --- keys --- */

static struct catalog_key *find_key(struct keys_part *keys, const char *name)
{
    for (uint32_t i = 0; i < keys->n_keys; i++) {
        if (strcmp(keys->keys[i].spec.name, name) == 0) {
            return &keys->keys[i];
        }
    }
    return NULL;
}

static bool same_key(const struct access_key *a, const struct access_key *b)
{
    return memcmp(&a->key, &b->key, sizeof a->key) == 0 && a->role == b->role &&
           a->expires_wall_ms == b->expires_wall_ms;
}

static int put_key(struct plan *plan, const struct access_key *spec)
{
    struct keys_part *keys = own_keys(plan);
    struct catalog_key *key = find_key(keys, spec->name);

    if (key == NULL) {
        uint32_t at = keys->n_keys;

        if (at == LIMIT_KEYS) {
            return plan_refuse(plan, ERR_LIMIT,
                               "key \"%s\": the cluster has %" PRIu32 " keys, the limit is %d",
                               spec->name, at, LIMIT_KEYS);
        }
        for (; at > 0 && strcmp(keys->keys[at - 1].spec.name, spec->name) > 0; at--) {
            keys->keys[at] = keys->keys[at - 1];
        }
        key = &keys->keys[at];
        keys->n_keys++;
    } else if (same_key(&key->spec, spec)) {
        return 0;
    }
    *key = (struct catalog_key){.spec = *spec, .changed_revision = plan->revision};
    return 0;
}

static int name_key(struct plan *plan, const struct change *change, const char *name)
{
    const struct catalog_key *before = catalog_key_find(plan->base, name);
    char what[LIMIT_NAME_BYTES + 16];

    snprintf(what, sizeof what, "key \"%s\"", name);
    int rc = plan_name_once(plan, PART_KEYS, name, NULL);
    return rc != 0 ? rc
                   : plan_check_expected(plan, change, what,
                                         before != NULL ? before->changed_revision : 0);
}

int plan_put_key(struct plan *plan, const struct change *change)
{
    struct errmsg message;
    int rc = validate_key(change->u.key, &message);

    if (rc != 0) {
        return plan_refuse(plan, rc, "%s", message.text);
    }
    rc = name_key(plan, change, change->u.key->name);
    if (rc == 0) {
        const struct catalog_key *before = catalog_key_find(plan->base, change->u.key->name);

        plan_note(plan, before != NULL, before == NULL || !same_key(&before->spec, change->u.key));
        rc = put_key(plan, change->u.key);
    }
    return rc;
}

int plan_delete_key(struct plan *plan, const struct change *change)
{
    const char *name = change->u.name;
    struct errmsg message;
    int rc = validate_name("key", name, &message);

    if (rc != 0) {
        return plan_refuse(plan, rc, "%s", message.text);
    }
    rc = name_key(plan, change, name);
    if (rc != 0) {
        return rc;
    }
    if (catalog_key_find(plan->base, name) == NULL) {
        return plan_refuse(plan, ERR_NOTFOUND, ERR_SAY_MISSING, "key", name);
    }
    struct keys_part *keys = own_keys(plan);
    struct catalog_key *key = find_key(keys, name);
    size_t n_behind = keys->n_keys - (size_t)(key - keys->keys) - 1;
    memmove(key, key + 1, n_behind * sizeof *key);
    keys->n_keys--;
    plan_note(plan, true, true);
    return 0;
}

/* --- the first command --- */

static int check_init(struct plan *plan, const struct cluster_init *init)
{
    static const struct cluster_id none;
    struct errmsg message;

    if (plan->base->revision != 0) {
        return plan_refuse(plan, ERR_EXISTS, "the cluster was made already");
    }
    if (plan->command->n_changes != 1) {
        return plan_refuse(plan, ERR_INVALID, "making the cluster must be the only change");
    }
    if (memcmp(&init->cluster_id, &none, sizeof none) == 0) {
        return plan_refuse(plan, ERR_INVALID, "the cluster id is missing");
    }
    int rc = validate_settings(&init->settings, &message);
    for (uint32_t i = 0; i < init->n_nodes && rc == 0; i++) {
        rc = validate_node(&init->nodes[i], &message);
    }
    for (uint32_t i = 0; i < init->n_keys && rc == 0; i++) {
        rc = validate_key(&init->keys[i], &message);
    }
    return rc != 0 ? plan_refuse(plan, rc, "%s", message.text) : 0;
}

int plan_init_cluster(struct plan *plan, const struct change *change)
{
    const struct cluster_init *init = change->u.init;
    int rc = check_init(plan, init);

    if (rc != 0) {
        return rc;
    }
    struct cluster_settings settings = init->settings;
    settings.hold = HOLD_OFF;
    settings.held_by = (struct hold_origin){0};
    plan_set_hold(plan, init->settings.hold, &settings.hold, &settings.held_by);
    plan->init = init;
    set_settings(plan, &settings, init->feature_level);
    for (uint32_t i = 0; i < init->n_nodes; i++) {
        if (find_node(own_nodes(plan), init->nodes[i].node_id) != NULL) {
            return plan_refuse(plan, ERR_INVALID, "node \"%" PRIu64 "\" is there twice",
                               init->nodes[i].node_id);
        }
        rc = put_node(plan, &init->nodes[i]);
        if (rc != 0) {
            return rc;
        }
    }
    for (uint32_t i = 0; i < init->n_keys; i++) {
        if (find_key(own_keys(plan), init->keys[i].name) != NULL) {
            return plan_refuse(plan, ERR_INVALID, "key \"%s\" is there twice", init->keys[i].name);
        }
        rc = put_key(plan, &init->keys[i]);
        if (rc != 0) {
            return rc;
        }
    }
    plan_note(plan, false, true);
    return 0;
}
