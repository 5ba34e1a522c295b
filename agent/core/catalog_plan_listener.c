/* Planning changes of listeners, and what holds between listeners and groups. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/core/catalog_state.h"
#include "common/base/plant.h"
#include "common/model/names.h"
#include "common/model/validate.h"

uint64_t listener_place_hash(const struct listener *listener)
{
    uint8_t bytes[1 + 16 + 2 + 1];

    bytes[0] = listener->at.addr.family;
    memcpy(bytes + 1, listener->at.addr.bytes, 16);
    bytes[17] = (uint8_t)listener->at.port;
    bytes[18] = (uint8_t)(listener->at.port >> 8);
    bytes[19] = listener->protocol;
    return catalog_hash(bytes, sizeof bytes).low;
}

static bool same_place(const struct listener *a, const struct listener *b)
{
    return a->protocol == b->protocol && endpoint_compare(&a->at, &b->at) == 0;
}

static bool same_spec(const struct listener *a, const struct listener *b)
{
    return same_place(a, b) && a->port_last == b->port_last &&
           a->idle_timeout_ms == b->idle_timeout_ms && strcmp(a->group, b->group) == 0;
}

/* A draft from the base; the caller has made sure that the name comes once. */
static struct listener_draft *open_listener(struct plan *plan, const char *name)
{
    struct listener_draft *draft = catalog_alloc(1, sizeof *draft);

    draft->before = (const struct listener_part *)part_list_find(&plan->base->listeners, name);
    draft->change_index = plan->change_index;
    if (draft->before != NULL) {
        draft->after = draft->before->listener;
    }
    plan->listeners[plan->n_listeners++] = draft;
    return draft;
}

static int check_expected(struct plan *plan, const struct change *change, const char *name,
                          const struct listener_draft *draft)
{
    char what[LIMIT_NAME_BYTES + 32];

    snprintf(what, sizeof what, "listener \"%s\"", name);
    return plan_check_expected(
        plan, change, what, draft->before != NULL ? draft->before->listener.changed_revision : 0);
}

int plan_put_listener(struct plan *plan, const struct change *change)
{
    const struct listener *spec = change->u.listener;
    struct errmsg message;
    int rc = validate_listener(spec, &message);

    if (rc != 0) {
        return plan_refuse(plan, rc, "%s", message.text);
    }
    rc = plan_name_once(plan, PART_LISTENER, spec->name, NULL);
    if (rc != 0) {
        return rc;
    }
    struct listener_draft *draft = open_listener(plan, spec->name);
    draft->is_touched = draft->before == NULL || !same_spec(&draft->after.spec, spec);
    draft->after.spec = *spec;
    plan_note(plan, draft->before != NULL, draft->is_touched);
    return check_expected(plan, change, spec->name, draft);
}

int plan_delete_listener(struct plan *plan, const struct change *change)
{
    const char *name = change->u.name;
    struct errmsg message;
    int rc = validate_name("listener", name, &message);

    if (rc != 0) {
        return plan_refuse(plan, rc, "%s", message.text);
    }
    rc = plan_name_once(plan, PART_LISTENER, name, NULL);
    if (rc != 0) {
        return rc;
    }
    struct listener_draft *draft = open_listener(plan, name);
    if (draft->before == NULL) {
        return plan_refuse(plan, ERR_NOTFOUND, ERR_SAY_MISSING, "listener", name);
    }
    draft->is_touched = true;
    draft->is_gone = true;
    plan_note(plan, true, true);
    return check_expected(plan, change, name, draft);
}

/* --- the whole --- */

static int compare_draft_name(const void *name, const void *draft)
{
    return strcmp(name, (*(struct listener_draft *const *)draft)->after.spec.name);
}

static bool is_drafted(const struct plan *plan, const char *name)
{
    return plan->n_listeners > 0 &&
           bsearch(name, plan->listeners, plan->n_listeners, sizeof(struct listener_draft *),
                   compare_draft_name) != NULL;
}

/* A listener of the base in this place that the command leaves as it is. */
static const struct listener *other_in_base(const struct plan *plan,
                                            const struct listener *listener)
{
    size_t cursor = 0;
    uint64_t hash = listener_place_hash(listener);
    uint64_t id;

    while ((id = idmap_next(&plan->state->listeners, hash, &cursor)) != IDMAP_NONE) {
        const struct listener *other =
            &((const struct listener_part *)(uintptr_t)id)->listener.spec;

        if (same_place(other, listener) && !is_drafted(plan, other->name)) {
            return other;
        }
    }
    return NULL;
}

static int refuse_place(struct plan *plan, const struct listener *listener,
                        const struct listener *other)
{
    char text[ENDPOINT_TEXT_BYTES];

    return plan_refuse(plan, ERR_EXISTS,
                       "listener \"%s\": at %s (%s) is taken by listener \"%s\" of server group "
                       "\"%s\"",
                       listener->name, endpoint_format(&listener->at, text),
                       names_word(&names_protocol, listener->protocol), other->name, other->group);
}

/* Each place once (case A24). `places` indexes the drafts that were looked at before. */
static int check_place(struct plan *plan, const struct listener_draft *draft, uint32_t draft_index,
                       struct idmap *places)
{
    const struct listener *listener = &draft->after.spec;
    const struct listener *other = other_in_base(plan, listener);
    size_t cursor = 0;
    uint64_t hash = listener_place_hash(listener);
    uint64_t i;

    while (other == NULL && (i = idmap_next(places, hash, &cursor)) != IDMAP_NONE) {
        if (same_place(&plan->listeners[i]->after.spec, listener)) {
            other = &plan->listeners[i]->after.spec;
        }
    }
    if (other != NULL && !plant_is("catalog-listener-twice")) {
        return refuse_place(plan, listener, other);
    }
    if (idmap_add(places, hash, draft_index) != 0) {
        abort();
    }
    return 0;
}

/* Any other protocol than the group's; as long as listeners have one, it is the group's that is
 * another one. */
static int refuse_protocol(struct plan *plan, const struct listener *listener,
                           const struct catalog_group *group)
{
    return plan_refuse(plan, ERR_INVALID,
                       "listener \"%s\": group \"%s\" is of protocol %s, and listeners serve %s so "
                       "far: leave this listener out, its group is checked without it",
                       listener->name, listener->group,
                       names_word(&names_protocol, group->spec.protocol),
                       names_word(&names_protocol, listener->protocol));
}

static int check_reference(struct plan *plan, const struct listener_draft *draft)
{
    const struct listener *listener = &draft->after.spec;
    const struct catalog_group *group = plan_group_after(plan, listener->group);

    if (!plan_none_refused(plan, CHANGE_PUT_GROUP, listener->group) ||
        !plan_none_refused(plan, CHANGE_DELETE_GROUP, listener->group)) {
        return 0; /* what the group would be was refused */
    }
    if (group == NULL) {
        return plan_refuse(plan, ERR_NOTFOUND, "listener \"%s\": " ERR_SAY_MISSING, listener->name,
                           "server group", listener->group);
    }
    if (group->spec.protocol != listener->protocol) {
        return refuse_protocol(plan, listener, group);
    }
    return 0;
}

/* Deletes groups, or puts them whole, and so perhaps with another protocol. */
static bool replaces_groups(const struct plan *plan)
{
    for (uint32_t i = 0; i < plan->n_groups; i++) {
        if (plan->groups[i]->is_whole) {
            return true;
        }
    }
    return false;
}

/* Listeners that the command does not name and whose group it deletes or changes. */
static int check_replaced_groups(struct plan *plan)
{
    uint32_t n = replaces_groups(plan) ? plan->base->listeners.n_items : 0;

    for (uint32_t i = 0; i < n; i++) {
        const struct catalog_listener *listener = catalog_listener_at(plan->base, i);
        const struct catalog_group *group = plan_group_after(plan, listener->spec.group);

        if (is_drafted(plan, listener->spec.name) ||
            (group != NULL && group->spec.protocol == listener->spec.protocol)) {
            continue;
        }
        if (group != NULL) {
            return refuse_protocol(plan, &listener->spec, group);
        }
        return plan_refuse(plan, ERR_CONFLICT,
                           "server group \"%s\" is used by listener \"%s\": delete the listener "
                           "first or in the same command",
                           listener->spec.group, listener->spec.name);
    }
    return 0;
}

static int check_number(struct plan *plan)
{
    uint32_t n = plan->base->listeners.n_items;

    for (uint32_t i = 0; i < plan->n_listeners; i++) {
        n += plan->listeners[i]->before == NULL;
        n -= plan->listeners[i]->is_gone;
    }
    if (n > LIMIT_LISTENERS) {
        return plan_refuse(plan, ERR_LIMIT,
                           "the cluster would have %" PRIu32 " listeners, the limit is %d", n,
                           LIMIT_LISTENERS);
    }
    return 0;
}

int plan_check_listeners(struct plan *plan)
{
    struct idmap places = {0};
    int first = 0;
    bool is_open = plan_goes_on(plan, check_number(plan), &first);

    for (uint32_t i = 0; i < plan->n_listeners && is_open; i++) {
        struct listener_draft *draft = plan->listeners[i];

        if (draft->is_gone || plan_is_refused(plan, draft->change_index)) {
            continue;
        }
        plan->change_index = draft->change_index;
        is_open = plan_goes_on(plan, check_reference(plan, draft), &first) &&
                  plan_goes_on(plan, check_place(plan, draft, i, &places), &first);
    }
    idmap_close(&places);
    if (is_open) {
        plan_goes_on(plan, check_replaced_groups(plan), &first);
    }
    return first;
}
