/* Planning one command: the order in which its changes and then the whole are judged. */
#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/core/catalog_state.h"
#include "common/base/plant.h"
#include "common/base/str.h"
#include "common/model/validate.h"

int plan_refuse(struct plan *plan, int err, const char *format, ...)
{
    char sentence[ERRMSG_BYTES];
    va_list args;

    va_start(args, format);
    vsnprintf(sentence, sizeof sentence, format, args);
    va_end(args);
    if (plan->refusals != NULL && plan->refusals->n < CATALOG_REFUSALS) {
        struct catalog_refusal *refusal = &plan->refusals->items[plan->refusals->n++];

        *refusal = (struct catalog_refusal){.change_index = plan->change_index};
        refusal->err = errmsg_set(&refusal->message, err, "%s", sentence);
    }
    if (plan->answer->err == 0) {
        plan->answer->err = errmsg_set(&plan->answer->message, err, "%s", sentence);
        plan->answer->change_index = plan->change_index;
    }
    return err;
}

bool plan_goes_on(const struct plan *plan, int rc, int *first)
{
    *first = *first != 0 ? *first : rc;
    return rc == 0 || (plan->refusals != NULL && plan->refusals->n < CATALOG_REFUSALS);
}

bool plan_is_refused(const struct plan *plan, uint32_t change_index)
{
    uint32_t n = plan->n_undrafted;

    for (uint32_t i = 0; i < n; i++) {
        if (plan->refusals->items[i].change_index == change_index) {
            return true;
        }
    }
    return false;
}

/* "" = all of its kind, which are named by a number or not at all. */
static const char *name_of(const struct change *change)
{
    switch ((enum change_kind)change->kind) {
    case CHANGE_PUT_GROUP:
        return change->u.group->name;
    case CHANGE_PUT_LISTENER:
        return change->u.listener->name;
    case CHANGE_DELETE_GROUP:
    case CHANGE_DELETE_LISTENER:
    case CHANGE_DELETE_KEY:
        return change->u.name;
    case CHANGE_NONE:
    case CHANGE_PUT_SETTINGS:
    case CHANGE_PUT_NODE:
    case CHANGE_DELETE_NODE:
    case CHANGE_PUT_KEY:
    case CHANGE_SET_BACKEND:
    case CHANGE_PURGE_BACKEND:
    case CHANGE_INIT:
    case CHANGE_SET_HOLD:
    case CHANGE_RAISE_LEVEL:
        break;
    }
    return "";
}

bool plan_none_refused(const struct plan *plan, enum change_kind kind, const char *name)
{
    uint32_t n = plan->n_undrafted;

    for (uint32_t i = 0; i < n; i++) {
        const struct change *change =
            &plan->command->changes[plan->refusals->items[i].change_index];

        if (change->kind == kind && (name == NULL || strcmp(name_of(change), name) == 0)) {
            return false;
        }
    }
    return true;
}

void plan_set_hold(const struct plan *plan, uint8_t wanted, uint8_t *hold,
                   struct hold_origin *origin)
{
    if (wanted == HOLD_KEEP || wanted == *hold) {
        return;
    }
    *hold = wanted;
    *origin = (struct hold_origin){.wall_ms = plan->command->wall_ms};
    str_copy(origin->actor, sizeof origin->actor, plan->command->actor);
}

void plan_note(struct plan *plan, bool was_there, bool is_changed)
{
    unsigned outcome = !was_there   ? OUTCOME_CREATED
                       : is_changed ? OUTCOME_CHANGED
                                    : OUTCOME_UNCHANGED;
    uint8_t *byte = &plan->answer->outcomes[plan->change_index / 4];

    *byte = (uint8_t)(*byte | outcome << (plan->change_index % 4 * 2));
    plan->is_effective |= outcome != OUTCOME_UNCHANGED;
}

bool plan_same_bytes(struct bytes_writer *a, struct bytes_writer *b)
{
    if (a->failed || b->failed) {
        abort(); /* no memory */
    }
    bool is_same = a->n_bytes == b->n_bytes && memcmp(a->data, b->data, a->n_bytes) == 0;

    bytes_writer_close(a);
    bytes_writer_close(b);
    return is_same;
}

int plan_name_once(struct plan *plan, enum part_kind kind, const char *name,
                   const struct endpoint *at)
{
    struct bytes_writer writer;
    char text[ENDPOINT_TEXT_BYTES];
    size_t cursor = 0;
    uint64_t index;

    bytes_writer_init(&writer, LIMIT_CHUNK_BYTES);
    bytes_write_u8(&writer, (uint8_t)kind);
    bytes_write_string(&writer, name);
    if (at != NULL) {
        codec_write_endpoint(&writer, at);
    }
    if (writer.failed) {
        abort(); /* no memory */
    }
    struct hash128 hash = catalog_hash(writer.data, writer.n_bytes);
    bytes_writer_close(&writer);
    while ((index = idmap_next(&plan->named_index, hash.low, &cursor)) != IDMAP_NONE) {
        if (hash128_equal(plan->named[index], hash)) {
            return plan_refuse(plan, ERR_INVALID, "\"%s\"%s%s is named twice in one command", name,
                               at != NULL ? " backend " : "",
                               at != NULL ? endpoint_format(at, text) : "");
        }
    }
    if (idmap_add(&plan->named_index, hash.low, plan->n_named) != 0) {
        abort();
    }
    plan->named[plan->n_named++] = hash;
    return 0;
}

int plan_check_expected(struct plan *plan, const struct change *change, const char *what,
                        uint64_t changed_revision)
{
    if (!change->has_expected_revision || change->expected_revision == changed_revision ||
        plant_is("catalog-expected-revision")) {
        return 0;
    }
    if (changed_revision == 0) {
        return plan_refuse(plan, ERR_CONFLICT,
                           "%s does not exist, expected it at revision %" PRIu64, what,
                           change->expected_revision);
    }
    if (change->expected_revision == 0) {
        return plan_refuse(plan, ERR_CONFLICT,
                           "%s exists already, last changed at revision %" PRIu64 ", expected none",
                           what, changed_revision);
    }
    return plan_refuse(plan, ERR_CONFLICT,
                       "%s last changed at revision %" PRIu64 ", expected %" PRIu64
                       ": read it again",
                       what, changed_revision, change->expected_revision);
}

static int plan_change(struct plan *plan, const struct change *change)
{
    switch ((enum change_kind)change->kind) {
    case CHANGE_PUT_SETTINGS:
        return plan_put_settings(plan, change);
    case CHANGE_PUT_GROUP:
        return plan_put_group(plan, change);
    case CHANGE_DELETE_GROUP:
        return plan_delete_group(plan, change);
    case CHANGE_PUT_LISTENER:
        return plan_put_listener(plan, change);
    case CHANGE_DELETE_LISTENER:
        return plan_delete_listener(plan, change);
    case CHANGE_PUT_NODE:
        return plan_put_node(plan, change);
    case CHANGE_DELETE_NODE:
        return plan_delete_node(plan, change);
    case CHANGE_PUT_KEY:
        return plan_put_key(plan, change);
    case CHANGE_DELETE_KEY:
        return plan_delete_key(plan, change);
    case CHANGE_SET_BACKEND:
        return plan_set_backend(plan, change);
    case CHANGE_PURGE_BACKEND:
        return plan_purge_backend(plan, change);
    case CHANGE_INIT:
        return plan_init_cluster(plan, change);
    case CHANGE_SET_HOLD:
        return change->u.hold->group[0] != '\0' ? plan_hold_group(plan, change)
                                                : plan_hold_cluster(plan, change);
    case CHANGE_RAISE_LEVEL:
        return plan_raise_level(plan, change);
    case CHANGE_NONE:
        break;
    }
    return plan_refuse(plan, ERR_INVALID, "a change of unknown kind %u", change->kind);
}

static int check_command(struct plan *plan)
{
    const struct command *command = plan->command;

    if (command->n_changes == 0) {
        return plan_refuse(plan, ERR_INVALID, "a command without a change");
    }
    if (command->n_changes > LIMIT_CHANGES_PER_COMMAND) {
        return plan_refuse(plan, ERR_LIMIT,
                           "the change set holds %" PRIu32
                           " changes, the limit of one command is %d: split it",
                           command->n_changes, LIMIT_CHANGES_PER_COMMAND);
    }
    if (plan->base->revision == 0 && command->changes[0].kind != CHANGE_INIT) {
        return plan_refuse(plan, ERR_NOTREADY,
                           "the cluster was not made yet: run `nodectl cluster init`");
    }
    return 0;
}

static int compare_groups(const void *a, const void *b)
{
    return strcmp((*(struct group_draft *const *)a)->after.spec.name,
                  (*(struct group_draft *const *)b)->after.spec.name);
}

static int compare_listeners(const void *a, const void *b)
{
    return strcmp((*(struct listener_draft *const *)a)->after.spec.name,
                  (*(struct listener_draft *const *)b)->after.spec.name);
}

/* Sorted drafts no longer sit at the indexes that `drafts` knows. */
static void sort_drafts(struct plan *plan)
{
    idmap_close(&plan->drafts);
    if (plan->n_groups > 1) {
        qsort(plan->groups, plan->n_groups, sizeof(struct group_draft *), compare_groups);
    }
    if (plan->n_listeners > 1) {
        qsort(plan->listeners, plan->n_listeners, sizeof(struct listener_draft *),
              compare_listeners);
    }
}

/* What spans objects. That of the whole - totals, targets, how much is taken away - means nothing
 * while a part of it was refused. */
static int check_whole(struct plan *plan)
{
    static int (*const checks[])(struct plan *) = {plan_check_members, plan_check_groups,
                                                   plan_check_listeners, plan_targets,
                                                   plan_check_force};
    const size_t n_of_objects = 3;
    int first = 0;

    for (size_t i = 0; i < sizeof checks / sizeof checks[0]; i++) {
        if (i >= n_of_objects && plan->answer->err != 0) {
            break;
        }
        if (!plan_goes_on(plan, checks[i](plan), &first)) {
            break;
        }
    }
    return first;
}

int plan_make(struct plan *plan)
{
    int rc = check_command(plan);
    int first = 0;

    if (rc != 0) {
        return rc;
    }
    plan->named = catalog_alloc(plan->command->n_changes, sizeof *plan->named);
    plan->groups = catalog_alloc(plan->command->n_changes, sizeof(struct group_draft *));
    plan->listeners = catalog_alloc(plan->command->n_changes, sizeof(struct listener_draft *));
    for (uint32_t i = 0; i < plan->command->n_changes; i++) {
        plan->change_index = i;
        if (!plan_goes_on(plan, plan_change(plan, &plan->command->changes[i]), &first)) {
            return first;
        }
    }
    plan->n_undrafted = plan->refusals == NULL ? 0 : plan->refusals->n;
    sort_drafts(plan);
    rc = check_whole(plan);
    return first != 0 ? first : rc;
}

void plan_close(struct plan *plan)
{
    for (uint32_t i = 0; i < plan->n_groups; i++) {
        group_draft_free(plan->groups[i]);
    }
    for (uint32_t i = 0; i < plan->n_listeners; i++) {
        free(plan->listeners[i]);
    }
    free(plan->groups);
    free(plan->listeners);
    free(plan->named);
    idmap_close(&plan->drafts);
    idmap_close(&plan->named_index);
    part_unref((struct part *)plan->settings);
    part_unref((struct part *)plan->nodes);
    part_unref((struct part *)plan->keys);
    free(plan->deltas);
    free(plan->fresh);
}
