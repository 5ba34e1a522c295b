/* Looks into a catalog state, and commands in a line each. */
#ifndef JURY_TEST_CATALOG_FIXTURE_H
#define JURY_TEST_CATALOG_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/lib/catalog_builder.h"

static inline const struct catalog_group *group_of(struct catalog *catalog, const char *name)
{
    const struct catalog_group *group = catalog_group_find(catalog, name);

    assert_non_null(group);
    return group;
}

static inline const struct catalog_backend *backend_of(struct catalog *catalog, const char *group,
                                                       const char *at)
{
    struct endpoint endpoint = build_endpoint(at);
    const struct catalog_backend *backend =
        catalog_backend_find(group_of(catalog, group), &endpoint);

    assert_non_null(backend);
    return backend;
}

/* A copy that may be looked at after the catalog has gone. */
static inline struct catalog_backend look(struct catalog_state *state, const char *group,
                                          const char *at)
{
    struct catalog *catalog = catalog_state_catalog(state);
    struct catalog_backend backend = *backend_of(catalog, group, at);

    catalog_unref(catalog);
    return backend;
}

static inline bool is_there(struct catalog_state *state, const char *group)
{
    struct catalog *catalog = catalog_state_catalog(state);
    bool found = catalog_group_find(catalog, group) != NULL;

    catalog_unref(catalog);
    return found;
}

static inline void put(struct catalog_state *state, const char *name, const char *endpoints)
{
    struct command command = {0};

    build_put(&command, name, endpoints);
    build_commit(state, &command);
}

static inline void admin(struct catalog_state *state, const char *group, const char *at,
                         enum admin_state admin_state)
{
    struct command command = {0};

    build_admin(&command, group, at, admin_state);
    build_commit(state, &command);
}

static inline void purge(struct catalog_state *state, const char *group, const char *at)
{
    struct catalog *catalog = catalog_state_catalog(state);
    struct command command = {0};

    build_purge(&command, catalog, group, at);
    build_commit(state, &command);
    catalog_unref(catalog);
}

#endif
