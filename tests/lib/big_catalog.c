#include "tests/lib/big_catalog.h"

#include <stdio.h>
#include <stdlib.h>

#include "tests/lib/catalog_builder.h"

static void set_backend(struct backend *backend, uint32_t index)
{
    backend->weight = 100;
    backend->admin_state = ADMIN_ENABLED;
    backend->at.addr.family = ADDR_IPV4;
    backend->at.addr.bytes[0] = 10;
    backend->at.addr.bytes[1] = (uint8_t)(index / 62500);
    backend->at.addr.bytes[2] = (uint8_t)(index / 250 % 250);
    backend->at.addr.bytes[3] = (uint8_t)(index % 250 + 1);
    backend->at.port = 80;
}

static void put_group(struct catalog_state *state, const struct big_catalog *size, uint32_t group)
{
    struct command command = {0};
    struct server_group spec;
    char name[24];
    uint32_t first = group * size->n_each;
    uint32_t n = size->n_targets - first < size->n_each ? size->n_targets - first : size->n_each;

    snprintf(name, sizeof name, "group%u", group);
    build_group(&spec, name, "");
    free(spec.backends);
    spec.backends = calloc(n, sizeof *spec.backends);
    if (spec.backends == NULL) {
        abort();
    }
    spec.n_backends = n;
    for (uint32_t i = 0; i < n; i++) {
        set_backend(&spec.backends[i], first + i);
    }
    spec.rule.down = spec.rule.up = (struct rule_column){.kind = RULE_MAJORITY};
    spec.check.interval_ms = spec.check.timeout_ms = size->interval_ms;
    spec.check.healthy_threshold = spec.check.unhealthy_threshold = 1;
    server_group_sort_backends(&spec);
    build_put_group(&command, &spec);
    server_group_close(&spec);
    build_commit(state, &command);
}

uint32_t big_catalog_n_groups(const struct big_catalog *size)
{
    return (size->n_targets + size->n_each - 1) / size->n_each;
}

struct catalog_state *big_catalog_state(const struct big_catalog *size)
{
    uint32_t n_voters = size->n_nodes < LIMIT_VOTERS ? size->n_nodes : LIMIT_VOTERS;
    struct catalog_state *state = build_state(n_voters);
    struct cluster_settings settings;
    struct command command = {0};

    cluster_settings_default(&settings);
    settings.vote_interval_ms = size->vote_interval_ms;
    build_settings(&command, &settings);
    for (uint64_t id = n_voters + 1; id <= size->n_nodes; id++) {
        build_node(&command, id, ROLE_STANDBY);
    }
    build_commit(state, &command);
    for (uint32_t group = 0; group < big_catalog_n_groups(size); group++) {
        put_group(state, size, group);
    }
    return state;
}

struct catalog *big_catalog(const struct big_catalog *size)
{
    struct catalog_state *state = big_catalog_state(size);
    struct catalog *catalog = catalog_state_catalog(state);

    catalog_state_free(state);
    return catalog;
}
