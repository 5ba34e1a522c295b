/* The catalog's part of fwd_layout.h: groups, backends and listeners as records of the layout. */
#include "agent/core/fwd_layout.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define SCOPE_KIND_GROUP 1

struct records {
    struct jury_listener *listeners;
    struct jury_scope *scopes;
    struct jury_member *members;
    uint32_t n_listeners;
    uint32_t n_scopes;
    uint32_t n_members;
};

static void put_name(char to[JURY_NAME_BYTES], const char *from)
{
    size_t n_bytes = strlen(from);

    assert(n_bytes < JURY_NAME_BYTES);
    memset(to, 0, JURY_NAME_BYTES);
    memcpy(to, from, n_bytes);
}

static void put_member(const struct catalog_backend *backend, uint32_t scope,
                       struct jury_member *member)
{
    *member = (struct jury_member){
        .birth = backend->row.birth,
        .id = backend->id,
        .row = backend->row.row,
        .scope = scope,
        .weight = backend->spec.weight,
        .is_going = backend->life == LIFE_REMOVING,
    };
    fwd_endpoint_put(&backend->spec.at, &member->at);
}

static void put_group(const struct catalog_group *group, struct records *records)
{
    struct jury_scope *scope = &records->scopes[records->n_scopes];

    *scope = (struct jury_scope){
        .id = group->id,
        .birth = group->row.birth,
        .row = group->row.row,
        .first_member = records->n_members,
        .n_members = group->n_backends,
        .idle_timeout_ms = group->spec.idle_timeout_ms,
        .drain_timeout_ms = group->spec.drain.timeout_ms,
        .kind = SCOPE_KIND_GROUP,
        .profile = group->spec.profile,
        .protocol = group->spec.protocol,
        .scheduler = group->spec.scheduler,
        .all_bad = group->spec.all_bad,
        .fail_open_percent = group->spec.fail_open_percent,
        .failover = group->spec.failover,
        .drain_is_on = group->spec.drain.is_on,
    };
    put_name(scope->name, group->spec.name);
    for (uint32_t i = 0; i < group->n_backends; i++) {
        put_member(&group->backends[i], records->n_scopes, &records->members[records->n_members]);
        records->n_members++;
    }
    records->n_scopes++;
}

static int compare_scope(const void *name, const void *scope)
{
    return strcmp(name, ((const struct jury_scope *)scope)->name);
}

static void put_listener(const struct catalog_listener *from, struct records *records)
{
    struct jury_listener *listener = &records->listeners[records->n_listeners];
    const struct jury_scope *scope = bsearch(from->spec.group, records->scopes, records->n_scopes,
                                             sizeof *records->scopes, compare_scope);

    /* The catalog refuses a listener that leads to no group, and sorts groups by name. */
    assert(scope != NULL);
    *listener = (struct jury_listener){
        .id = from->id,
        .port_last = from->spec.port_last,
        .protocol = from->spec.protocol,
        .scope = (uint32_t)(scope - records->scopes),
        .idle_timeout_ms = from->spec.idle_timeout_ms,
    };
    put_name(listener->name, from->spec.name);
    fwd_endpoint_put(&from->spec.at, &listener->at);
    records->n_listeners++;
}

static int records_new(const struct catalog *catalog, struct records *ret_records)
{
    size_t n_members = 0;

    for (size_t i = 0; i < catalog_n_groups(catalog); i++) {
        n_members += catalog_group_at(catalog, i)->n_backends;
    }
    /* One more of each, so that none has size 0. */
    *ret_records = (struct records){
        .listeners = calloc(catalog_n_listeners(catalog) + 1, sizeof(struct jury_listener)),
        .scopes = calloc(catalog_n_groups(catalog) + 1, sizeof(struct jury_scope)),
        .members = calloc(n_members + 1, sizeof(struct jury_member)),
    };
    return ret_records->listeners != NULL && ret_records->scopes != NULL &&
                   ret_records->members != NULL
               ? 0
               : ERR_NOMEM;
}

static int build(const struct catalog *catalog, struct records *records,
                 const struct fwd_layout *last, struct fwd_layout *ret_layout, struct errmsg *err)
{
    for (size_t i = 0; i < catalog_n_groups(catalog); i++) {
        put_group(catalog_group_at(catalog, i), records);
    }
    for (size_t i = 0; i < catalog_n_listeners(catalog); i++) {
        put_listener(catalog_listener_at(catalog, i), records);
    }
    struct fwd_source source = {
        .revision = catalog_revision(catalog),
        .cluster_id = catalog_cluster_id(catalog),
        .n_rows = catalog_n_rows(catalog),
        .listeners = records->listeners,
        .n_listeners = records->n_listeners,
        .scopes = records->scopes,
        .n_scopes = records->n_scopes,
        .members = records->members,
        .n_members = records->n_members,
    };
    return fwd_layout_build(&source, last, ret_layout, err);
}

int fwd_layout_from_catalog(const struct catalog *catalog, const struct fwd_layout *last,
                            struct fwd_layout *ret_layout, struct errmsg *err)
{
    struct records records;
    int result = records_new(catalog, &records);

    if (result == 0) {
        result = build(catalog, &records, last, ret_layout, err);
    } else {
        errmsg_set(err, result, "no memory for the forwarding table of revision %llu",
                   (unsigned long long)catalog_revision(catalog));
    }
    free(records.listeners);
    free(records.scopes);
    free(records.members);
    return result;
}
