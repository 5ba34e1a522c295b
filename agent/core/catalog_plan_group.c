/* Planning changes of groups and their backends. */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/core/catalog_state.h"
#include "common/base/plant.h"
#include "common/base/units.h"
#include "common/model/feature_level.h"
#include "common/model/names.h"
#include "common/model/validate.h"

static uint64_t name_hash(const char *name)
{
    return catalog_hash(name, strlen(name)).low;
}

void group_draft_free(struct group_draft *draft)
{
    check_set_close(&draft->checks);
    free(draft->targets);
    free(draft->backends);
    free(draft);
}

/* While changes are drafted; afterwards the drafts are sorted and the index is gone. */
static struct group_draft *find_draft(const struct plan *plan, const char *name)
{
    size_t cursor = 0;
    uint64_t hash = name_hash(name);
    uint64_t i;

    while ((i = idmap_next(&plan->drafts, hash, &cursor)) != IDMAP_NONE) {
        if (strcmp(plan->groups[i]->after.spec.name, name) == 0) {
            return plan->groups[i];
        }
    }
    return NULL;
}

/* The draft of a group, made from the base when the command names it for the first time. */
static struct group_draft *open_group(struct plan *plan, const char *name)
{
    struct group_draft *draft = find_draft(plan, name);

    if (draft != NULL) {
        return draft;
    }
    draft = catalog_alloc(1, sizeof *draft);
    draft->before = (const struct group_part *)part_list_find(&plan->base->groups, name);
    draft->change_index = plan->change_index;
    if (draft->before != NULL) {
        const struct catalog_group *group = &draft->before->group;

        draft->after = *group;
        draft->backends = catalog_alloc(group->n_backends, sizeof *draft->backends);
        if (group->n_backends > 0) {
            memcpy(draft->backends, group->backends, group->n_backends * sizeof *draft->backends);
        }
    } else {
        strcpy(draft->after.spec.name, name);
    }
    draft->after.backends = draft->backends;
    if (idmap_add(&plan->drafts, name_hash(name), plan->n_groups) != 0) {
        abort();
    }
    plan->groups[plan->n_groups++] = draft;
    return draft;
}

static int compare_name(const void *name, const void *draft)
{
    return strcmp(name, (*(struct group_draft *const *)draft)->after.spec.name);
}

const struct catalog_group *plan_group_after(const struct plan *plan, const char *name)
{
    struct group_draft *const *place = NULL;
    const struct catalog_group *group = NULL;

    if (plan->n_groups > 0) {
        place =
            bsearch(name, plan->groups, plan->n_groups, sizeof(struct group_draft *), compare_name);
    }
    group = place != NULL ? &(*place)->after : catalog_group_find(plan->base, name);
    return group == NULL || group->is_deleted ? NULL : group;
}

static bool was_there(const struct group_draft *draft)
{
    return draft->before != NULL && !draft->before->group.is_deleted;
}

static int check_whole(struct plan *plan, struct group_draft *draft, const struct change *change)
{
    const char *name = draft->after.spec.name;
    char what[LIMIT_NAME_BYTES + 32];

    if (draft->is_whole || draft->is_partial) {
        return plan_refuse(plan, ERR_INVALID, "server group \"%s\" is named twice in one command",
                           name);
    }
    draft->is_whole = true;
    snprintf(what, sizeof what, "server group \"%s\"", name);
    return plan_check_expected(plan, change, what,
                               was_there(draft) ? draft->before->group.changed_revision : 0);
}

/* The draft of a group of which a part is named: a backend, or its hold switch. */
static int open_part(struct plan *plan, const char *name, struct group_draft **ret_draft)
{
    struct errmsg message;
    int rc = validate_name("server group", name, &message);

    if (rc != 0) {
        return plan_refuse(plan, rc, "%s", message.text);
    }
    struct group_draft *draft = open_group(plan, name);
    if (draft->is_whole) {
        return plan_refuse(plan, ERR_INVALID, "server group \"%s\" is named twice in one command",
                           name);
    }
    draft->is_partial = true;
    if (!was_there(draft)) {
        return plan_refuse(plan, ERR_NOTFOUND, ERR_SAY_MISSING, "server group", name);
    }
    *ret_draft = draft;
    return 0;
}

/* --- backends --- */

static void touch(struct plan *plan, struct group_draft *draft, struct catalog_backend *backend)
{
    draft->is_touched = true;
    backend->changed_revision = plan->revision;
}

/* The one place where an admin state changes. A drain that runs keeps its start: its deadline on
 * the nodes hangs on the revision (spec.md 6). */
static void set_admin_state(struct plan *plan, struct catalog_backend *backend,
                            enum admin_state admin_state, uint32_t drain_timeout_ms)
{
    bool is_new_drain = admin_state == ADMIN_DRAINING && backend->drain_revision == 0;

    assert(backend->life == LIFE_AVAILABLE);
    backend->spec.admin_state = (uint8_t)admin_state;
    if (is_new_drain) {
        backend->drain_revision = plan->revision;
        backend->drain_timeout_ms = drain_timeout_ms;
    } else if (admin_state != ADMIN_DRAINING) {
        backend->drain_revision = 0;
        backend->drain_timeout_ms = 0;
    }
}

/* A removal does not take the operator's drain back: that goes on with its own revision, and so
 * with its own deadlines, unless the removal closes flows too and allows them less. Then nodes have
 * the earlier of both. A program of level 2 would begin anew, so all do until there is none. */
static bool goes_on_draining(const struct plan *plan, const struct group_draft *draft,
                             const struct catalog_backend *backend)
{
    const struct server_group *spec = &draft->after.spec;
    bool closes_sooner = spec->drain.is_on && spec->profile != PROFILE_GWLB &&
                         spec->drain.timeout_ms < backend->drain_timeout_ms;

    return plan->base->settings->feature_level >= DRAIN_OUTLIVES_REMOVAL_LEVEL &&
           backend->spec.admin_state == ADMIN_DRAINING && !closes_sooner &&
           !plant_is("removal-ends-drain");
}

static void remove_backend(struct plan *plan, struct group_draft *draft,
                           struct catalog_backend *backend)
{
    if (backend->life == LIFE_REMOVING) {
        return;
    }
    touch(plan, draft, backend);
    backend->life = LIFE_REMOVING;
    if (goes_on_draining(plan, draft, backend)) {
        return;
    }
    backend->drain_revision = plan->revision;
    backend->drain_timeout_ms = draft->after.spec.drain.timeout_ms;
}

static struct catalog_backend_spec spec_of(const struct backend *backend)
{
    return (struct catalog_backend_spec){.at = backend->at,
                                         .weight = backend->weight,
                                         .admin_state = backend->admin_state,
                                         .zone = backend->zone,
                                         .description = backend->description};
}

static bool same_backend_spec(const struct catalog_backend_spec *a,
                              const struct catalog_backend_spec *b)
{
    return a->weight == b->weight && a->admin_state == b->admin_state &&
           strcmp(a->zone, b->zone) == 0 && strcmp(a->description, b->description) == 0;
}

/* What the document says of a backend that is there already: it keeps id, row and target, also when
 * it was being removed. */
static void put_backend(struct plan *plan, struct group_draft *draft,
                        struct catalog_backend *backend, const struct backend *spec)
{
    struct catalog_backend_spec wanted = spec_of(spec);
    uint8_t old_admin_state = backend->spec.admin_state;

    if (wanted.admin_state == ADMIN_NONE) {
        wanted.admin_state = old_admin_state;
    }
    if (backend->life == LIFE_AVAILABLE && same_backend_spec(&backend->spec, &wanted)) {
        return;
    }
    touch(plan, draft, backend);
    if (backend->life == LIFE_REMOVING) {
        backend->life = LIFE_AVAILABLE;
        backend->drain_revision = 0;
        backend->drain_timeout_ms = 0;
    }
    backend->spec = wanted;
    set_admin_state(plan, backend, (enum admin_state)wanted.admin_state,
                    draft->after.spec.drain.timeout_ms);
}

static void add_backend(struct plan *plan, struct group_draft *draft,
                        struct catalog_backend *backend, const struct backend *spec)
{
    enum admin_state admin_state =
        spec->admin_state == ADMIN_NONE ? ADMIN_ENABLED : (enum admin_state)spec->admin_state;

    *backend = (struct catalog_backend){.spec = spec_of(spec),
                                        .row = {.row = CATALOG_NO_ROW},
                                        .target = {.slot = CATALOG_NO_SLOT},
                                        .life = LIFE_AVAILABLE};
    touch(plan, draft, backend);
    set_admin_state(plan, backend, admin_state, draft->after.spec.drain.timeout_ms);
}

/* The backends of a document merged with those that are there; both sorted by endpoint. */
static void merge_backends(struct plan *plan, struct group_draft *draft,
                           const struct server_group *spec)
{
    struct catalog_backend *old = draft->backends;
    uint32_t n_old = draft->after.n_backends;
    struct catalog_backend *merged =
        catalog_alloc((size_t)n_old + spec->n_backends, sizeof *merged);
    uint32_t n = 0;
    uint32_t i = 0;
    uint32_t j = 0;

    while (i < n_old || j < spec->n_backends) {
        int order = i == n_old ? 1
                    : j == spec->n_backends
                        ? -1
                        : endpoint_compare(&old[i].spec.at, &spec->backends[j].at);

        if (order > 0) {
            add_backend(plan, draft, &merged[n++], &spec->backends[j++]);
            continue;
        }
        merged[n] = old[i++];
        if (order == 0) {
            put_backend(plan, draft, &merged[n++], &spec->backends[j++]);
        } else {
            remove_backend(plan, draft, &merged[n++]);
        }
    }
    free(old);
    draft->backends = merged;
    draft->after.backends = merged;
    draft->after.n_backends = n;
}

static bool same_group_spec(const struct server_group *a, const struct server_group *b)
{
    struct bytes_writer writer_a;
    struct bytes_writer writer_b;

    bytes_writer_init(&writer_a, LIMIT_CHUNK_BYTES);
    bytes_writer_init(&writer_b, LIMIT_CHUNK_BYTES);
    codec_write_group(&writer_a, a);
    codec_write_group(&writer_b, b);
    return plan_same_bytes(&writer_a, &writer_b);
}

/* What a member that is not upgraded yet could not read. */
static int check_level(struct plan *plan, const struct server_group *spec)
{
    uint8_t level = plan->base->settings->feature_level;
    const char *field;
    uint8_t needed = feature_level_of_group(spec, &field);

    if (needed <= level || plant_is("level-unchecked")) {
        return 0;
    }
    return plan_refuse(plan, ERR_NOTREADY,
                       "server group \"%s\": spec.%s needs feature level %u and the cluster is at "
                       "%u: it rises once every member runs a version that has it, `nodectl "
                       "status` names those that do not",
                       spec->name, field, needed, level);
}

int plan_put_group(struct plan *plan, const struct change *change)
{
    const struct server_group *spec = change->u.group;
    struct errmsg message;
    int rc = validate_group(spec, &message);

    if (rc != 0) {
        return plan_refuse(plan, rc, "%s", message.text);
    }
    rc = check_level(plan, spec);
    if (rc != 0) {
        return rc;
    }
    struct group_draft *draft = open_group(plan, spec->name);
    rc = check_whole(plan, draft, change);
    if (rc != 0) {
        return rc;
    }
    if (draft->before != NULL && draft->after.spec.type != spec->type) {
        return plan_refuse(plan, ERR_INVALID,
                           "server group \"%s\": type cannot change from %s to %s: make another "
                           "group",
                           spec->name, names_word(&names_group_type, draft->after.spec.type),
                           names_word(&names_group_type, spec->type));
    }
    struct server_group wanted = *spec;
    wanted.hold = was_there(draft) ? draft->after.spec.hold : HOLD_OFF;
    wanted.held_by = was_there(draft) ? draft->after.spec.held_by : (struct hold_origin){0};
    plan_set_hold(plan, spec->hold, &wanted.hold, &wanted.held_by);
    wanted.backends = NULL;
    wanted.n_backends = 0;
    draft->is_touched = !was_there(draft) || !same_group_spec(&draft->after.spec, &wanted);
    draft->after.is_deleted = false;
    draft->after.spec = wanted;
    merge_backends(plan, draft, spec);
    plan_note(plan, was_there(draft), draft->is_touched);
    return 0;
}

int plan_hold_group(struct plan *plan, const struct change *change)
{
    const struct hold_update *update = change->u.hold;
    char what[LIMIT_NAME_BYTES + 32];
    struct group_draft *draft = NULL;
    int rc = open_part(plan, update->group, &draft);

    if (rc != 0) {
        return rc;
    }
    snprintf(what, sizeof what, "server group \"%s\"", update->group);
    rc = plan_name_once(plan, PART_GROUP, update->group, NULL);
    if (rc == 0) {
        rc = plan_check_expected(plan, change, what, draft->before->group.changed_revision);
    }
    if (rc == 0) {
        struct server_group *spec = &draft->after.spec;
        uint8_t before = spec->hold;

        plan_set_hold(plan, update->is_on ? HOLD_ON : HOLD_OFF, &spec->hold, &spec->held_by);
        draft->is_touched = draft->is_touched || spec->hold != before;
        plan_note(plan, true, spec->hold != before);
    }
    return rc;
}

int plan_delete_group(struct plan *plan, const struct change *change)
{
    struct errmsg message;
    int rc = validate_name("server group", change->u.name, &message);

    if (rc != 0) {
        return plan_refuse(plan, rc, "%s", message.text);
    }
    struct group_draft *draft = open_group(plan, change->u.name);
    rc = check_whole(plan, draft, change);
    if (rc != 0) {
        return rc;
    }
    if (!was_there(draft)) {
        return plan_refuse(plan, ERR_NOTFOUND, ERR_SAY_MISSING, "server group", change->u.name);
    }
    draft->is_touched = true;
    draft->after.is_deleted = true;
    for (uint32_t i = 0; i < draft->after.n_backends; i++) {
        remove_backend(plan, draft, &draft->backends[i]);
    }
    draft->is_gone = draft->after.n_backends == 0;
    plan_note(plan, true, true);
    return 0;
}

static struct catalog_backend *find_backend(const struct group_draft *draft,
                                            const struct endpoint *at)
{
    const struct catalog_backend *found = catalog_backend_find(&draft->after, at);

    return found != NULL ? &draft->backends[found - draft->backends] : NULL;
}

static int check_update(struct plan *plan, const struct backend_update *update, const char *what)
{
    if (update->admin_state == ADMIN_NONE && !update->has_weight && !update->has_drain_timeout) {
        return plan_refuse(plan, ERR_INVALID, "%s: the change sets nothing", what);
    }
    if (update->admin_state > ADMIN_MAINTENANCE) {
        return plan_refuse(plan, ERR_INVALID,
                           "%s: adminState must be enabled, draining or maintenance", what);
    }
    if (update->has_drain_timeout && update->admin_state != ADMIN_DRAINING) {
        return plan_refuse(plan, ERR_INVALID, "%s: a drain timeout goes with draining only", what);
    }
    if (update->has_drain_timeout && update->drain_timeout_ms > DRAIN_TIMEOUT_MS_MAX) {
        return plan_refuse(plan, ERR_INVALID,
                           "%s: the drain timeout must be 0s..3600s, got %" PRIu32 "ms", what,
                           update->drain_timeout_ms);
    }
    return 0;
}

/* A drain that runs cannot get another deadline: nodes look theirs up by the drain's revision. */
static int check_running_drain(struct plan *plan, const struct backend_update *update,
                               const struct catalog_backend *backend, const char *what)
{
    char timeout[32];

    if (update->has_drain_timeout && backend->spec.admin_state == ADMIN_DRAINING &&
        update->drain_timeout_ms != backend->drain_timeout_ms) {
        return plan_refuse(
            plan, ERR_EXISTS,
            "%s drains already, with a timeout of %s since revision %" PRIu64
            ": cancel that drain first",
            what, units_format_duration_ms(backend->drain_timeout_ms, timeout, sizeof timeout),
            backend->drain_revision);
    }
    return 0;
}

static bool update_backend(struct plan *plan, struct group_draft *draft,
                           struct catalog_backend *backend, const struct backend_update *update)
{
    struct catalog_backend_spec wanted = backend->spec;

    if (update->has_weight) {
        wanted.weight = update->weight;
    }
    if (update->admin_state != ADMIN_NONE) {
        wanted.admin_state = update->admin_state;
    }
    if (same_backend_spec(&backend->spec, &wanted)) {
        return false;
    }
    touch(plan, draft, backend);
    backend->spec.weight = wanted.weight;
    set_admin_state(plan, backend, (enum admin_state)wanted.admin_state,
                    update->has_drain_timeout ? update->drain_timeout_ms
                                              : draft->after.spec.drain.timeout_ms);
    return true;
}

int plan_set_backend(struct plan *plan, const struct change *change)
{
    const struct backend_update *update = change->u.backend;
    char at[ENDPOINT_TEXT_BYTES];
    char what[LIMIT_NAME_BYTES + ENDPOINT_TEXT_BYTES + 32];
    struct group_draft *draft = NULL;
    struct errmsg message;
    int rc = open_part(plan, update->group, &draft);

    if (rc != 0) {
        return rc;
    }
    snprintf(what, sizeof what, "backend %s of server group \"%s\"",
             endpoint_format(&update->at, at), update->group);
    rc = plan_name_once(plan, PART_GROUP, update->group, &update->at);
    if (rc == 0) {
        rc = check_update(plan, update, what);
    }
    if (rc != 0) {
        return rc;
    }
    struct catalog_backend *backend = find_backend(draft, &update->at);
    if (backend == NULL || backend->life == LIFE_REMOVING) {
        return plan_refuse(plan, ERR_NOTFOUND, "%s %s", what,
                           backend == NULL ? "does not exist" : "is being removed");
    }
    rc = plan_check_expected(plan, change, what, backend->changed_revision);
    if (rc == 0) {
        rc = check_running_drain(plan, update, backend, what);
    }
    if (rc == 0 && update->has_weight &&
        validate_backend_weight(&draft->after.spec, &update->at, update->weight, &message) != 0) {
        rc = plan_refuse(plan, ERR_INVALID, "%s", message.text);
    }
    if (rc == 0) {
        plan_note(plan, true, update_backend(plan, draft, backend, update));
    }
    return rc;
}

int plan_purge_backend(struct plan *plan, const struct change *change)
{
    const struct backend_purge *purge = change->u.purge;

    if (find_draft(plan, purge->group) == NULL &&
        part_list_find(&plan->base->groups, purge->group) == NULL) {
        plan_note(plan, true, false);
        return 0;
    }
    struct group_draft *draft = open_group(plan, purge->group);
    if (draft->is_whole) {
        return plan_refuse(plan, ERR_INVALID, "server group \"%s\" is named twice in one command",
                           purge->group);
    }
    draft->is_partial = true;
    struct catalog_backend *backend = find_backend(draft, &purge->at);
    if (backend == NULL || backend->life != LIFE_REMOVING || backend->id != purge->backend_id ||
        backend->drain_revision != purge->drain_revision) {
        plan_note(plan, true, false);
        return 0;
    }
    uint32_t index = (uint32_t)(backend - draft->backends);
    uint32_t n_behind = draft->after.n_backends - index - 1;
    memmove(backend, backend + 1, n_behind * sizeof *backend);
    draft->after.n_backends--;
    draft->is_purged = true;
    draft->is_gone = draft->after.is_deleted && draft->after.n_backends == 0;
    plan_note(plan, true, true);
    return 0;
}
