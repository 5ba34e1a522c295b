#include "agent/core/catalog.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

#include "agent/core/catalog_chunks.h"
#include "agent/core/catalog_parts.h"
#include "common/base/str.h"
#include "common/model/feature_level.h"

struct catalog *catalog_new_empty(void)
{
    struct catalog *catalog = catalog_alloc(1, sizeof *catalog);
    struct settings_part *settings = catalog_alloc(1, sizeof *settings);
    struct nodes_part *nodes = catalog_alloc(1, sizeof *nodes);
    struct keys_part *keys = catalog_alloc(1, sizeof *keys);
    struct part *parts[] = {&settings->head, &nodes->head, &keys->head};

    settings->head.kind = PART_SETTINGS;
    nodes->head.kind = PART_NODES;
    keys->head.kind = PART_KEYS;
    cluster_settings_default(&settings->settings);
    settings->feature_level = FEATURE_LEVEL_BASE;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        atomic_init(&parts[i]->refs, 1);
        parts[i]->name = "";
        part_encode(parts[i]);
        catalog->content = hash128_add(catalog->content, parts[i]->content);
    }
    atomic_init(&catalog->refs, 1);
    catalog->settings = settings;
    catalog->nodes = nodes;
    catalog->keys = keys;
    catalog->counters = (struct catalog_counters){1, 1, 1};
    catalog->chain = catalog_chain(catalog);
    catalog_encode_header(catalog);
    return catalog;
}

uint64_t catalog_revision(const struct catalog *catalog)
{
    return catalog->revision;
}

struct cluster_id catalog_cluster_id(const struct catalog *catalog)
{
    return catalog->cluster_id;
}

struct hash128 catalog_state_hash(const struct catalog *catalog)
{
    return catalog->chain;
}

const char *catalog_actor(const struct catalog *catalog)
{
    return catalog->actor;
}

const struct cluster_settings *catalog_settings(const struct catalog *catalog)
{
    return &catalog->settings->settings;
}

uint8_t catalog_feature_level(const struct catalog *catalog)
{
    return catalog->settings->feature_level;
}

uint8_t catalog_level_due(const struct catalog *catalog, const uint8_t levels[])
{
    uint8_t lowest = UINT8_MAX;

    for (size_t i = 0; i < catalog_n_nodes(catalog); i++) {
        lowest = levels[i] < lowest ? levels[i] : lowest;
    }
    return lowest != UINT8_MAX && lowest > catalog_feature_level(catalog) ? lowest : 0;
}

uint64_t catalog_settings_changed_revision(const struct catalog *catalog)
{
    return catalog->settings->changed_revision;
}

/* --- groups and listeners --- */

size_t catalog_n_groups(const struct catalog *catalog)
{
    return catalog->groups.n_items;
}

const struct catalog_group *catalog_group_at(const struct catalog *catalog, size_t index)
{
    return &((const struct group_part *)part_list_at(&catalog->groups, index))->group;
}

const struct catalog_group *catalog_group_find(const struct catalog *catalog, const char *name)
{
    const struct part *part = part_list_find(&catalog->groups, name);

    return part != NULL ? &((const struct group_part *)part)->group : NULL;
}

static struct part *part_of_group(const struct catalog_group *group)
{
    /* The content never changes; its count of references does. */
    uintptr_t at = (uintptr_t)group - offsetof(struct group_part, group);

    return &((struct group_part *)at)->head;
}

const struct catalog_group *catalog_group_ref(const struct catalog_group *group)
{
    part_ref(part_of_group(group));
    return group;
}

void catalog_group_unref(const struct catalog_group *group)
{
    if (group != NULL) {
        part_unref(part_of_group(group));
    }
}

size_t catalog_n_listeners(const struct catalog *catalog)
{
    return catalog->listeners.n_items;
}

const struct catalog_listener *catalog_listener_at(const struct catalog *catalog, size_t index)
{
    return &((const struct listener_part *)part_list_at(&catalog->listeners, index))->listener;
}

struct backend catalog_backend_value(const struct catalog_backend *backend)
{
    const struct catalog_backend_spec *spec = &backend->spec;
    struct backend value = {
        .at = spec->at, .weight = spec->weight, .admin_state = spec->admin_state};

    str_copy(value.zone, sizeof value.zone, spec->zone);
    str_copy(value.description, sizeof value.description, spec->description);
    return value;
}

const struct catalog_backend *catalog_backend_find(const struct catalog_group *group,
                                                   const struct endpoint *at)
{
    uint32_t low = 0;
    uint32_t high = group->n_backends;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        int order = endpoint_compare(&group->backends[middle].spec.at, at);

        if (order == 0) {
            return &group->backends[middle];
        }
        if (order < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return NULL;
}

/* --- nodes and keys --- */

size_t catalog_n_nodes(const struct catalog *catalog)
{
    return catalog->nodes->n_nodes;
}

const struct catalog_node *catalog_node_at(const struct catalog *catalog, size_t index)
{
    assert(index < catalog->nodes->n_nodes);

    return &catalog->nodes->nodes[index];
}

const struct catalog_node *catalog_node_find(const struct catalog *catalog, uint64_t node_id)
{
    for (uint32_t i = 0; i < catalog->nodes->n_nodes; i++) {
        if (catalog->nodes->nodes[i].spec.node_id == node_id) {
            return &catalog->nodes->nodes[i];
        }
    }
    return NULL;
}

uint32_t catalog_n_observers(const struct catalog *catalog)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < catalog->nodes->n_nodes; i++) {
        n += catalog->nodes->nodes[i].spec.role != ROLE_SPARE;
    }
    return n;
}

size_t catalog_n_keys(const struct catalog *catalog)
{
    return catalog->keys->n_keys;
}

const struct catalog_key *catalog_key_at(const struct catalog *catalog, size_t index)
{
    assert(index < catalog->keys->n_keys);

    return &catalog->keys->keys[index];
}

const struct catalog_key *catalog_key_find(const struct catalog *catalog, const char *name)
{
    for (uint32_t i = 0; i < catalog->keys->n_keys; i++) {
        if (strcmp(catalog->keys->keys[i].spec.name, name) == 0) {
            return &catalog->keys->keys[i];
        }
    }
    return NULL;
}

uint32_t catalog_n_rows(const struct catalog *catalog)
{
    return catalog->n_rows;
}

/* --- chunks: header, settings, nodes, keys, groups, listeners --- */

#define SINGLE_CHUNKS 4

size_t catalog_n_chunks(const struct catalog *catalog)
{
    return SINGLE_CHUNKS + (size_t)catalog->groups.n_chunks + catalog->listeners.n_chunks;
}

const uint8_t *catalog_chunk_at(const struct catalog *catalog, size_t index, size_t *ret_n_bytes)
{
    const struct part_chunk *chunk;

    assert(index < catalog_n_chunks(catalog));
    if (index < SINGLE_CHUNKS) {
        const struct part_chunk *singles[SINGLE_CHUNKS] = {
            &catalog->header, catalog->settings->head.chunks, catalog->nodes->head.chunks,
            catalog->keys->head.chunks};

        chunk = singles[index];
    } else if (index - SINGLE_CHUNKS < catalog->groups.n_chunks) {
        chunk = part_list_chunk(&catalog->groups, index - SINGLE_CHUNKS);
    } else {
        chunk =
            part_list_chunk(&catalog->listeners, index - SINGLE_CHUNKS - catalog->groups.n_chunks);
    }
    *ret_n_bytes = chunk->n_bytes;
    return chunk->data;
}
