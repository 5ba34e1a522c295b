#include "agent/core/fwd_layout.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "agent/core/flow_key.h"
#include "agent/core/select.h"

/* The numbers of the public format are those of the model: one conversion less to get wrong. */
static_assert((int)JURY_PROTOCOL_TCP == (int)PROTOCOL_TCP, "protocol");
static_assert((int)JURY_PROTOCOL_TCP_UDP == (int)PROTOCOL_TCP_UDP, "protocol");
static_assert((int)JURY_SCHEDULER_5_TUPLE == (int)SCHEDULER_5_TUPLE, "scheduler");
static_assert((int)JURY_SCHEDULER_WRR == (int)SCHEDULER_WRR, "scheduler");
static_assert((int)JURY_SCHEDULER_WLC == (int)SCHEDULER_WLC, "scheduler");
static_assert(JURY_NO_MEMBER == SELECT_SLOT_NONE, "selection array");
static_assert(LIMIT_NAME_BYTES < JURY_NAME_BYTES, "names");

void fwd_endpoint_put(const struct endpoint *from, struct jury_endpoint *to)
{
    memset(to, 0, sizeof *to);
    memcpy(to->address, from->addr.bytes, sizeof to->address);
    to->family = from->addr.family;
    to->port = from->port;
}

void fwd_endpoint_get(const struct jury_endpoint *from, struct endpoint *to)
{
    memset(to, 0, sizeof *to);
    memcpy(to->addr.bytes, from->address, from->family == ADDR_IPV4 ? 4 : 16);
    to->addr.family = from->family;
    to->port = from->port;
}

uint32_t fwd_layout_crc(const uint8_t *bytes, size_t n_bytes)
{
    static const uint8_t zero[sizeof(uint32_t)];
    const size_t at = offsetof(struct jury_layout, crc32c);
    uint32_t crc = hash_crc32c(0, bytes, at);

    crc = hash_crc32c(crc, zero, sizeof zero);
    return hash_crc32c(crc, bytes + at + sizeof zero, n_bytes - at - sizeof zero);
}

void fwd_layout_close(struct fwd_layout *layout)
{
    free(layout->bytes);
    *layout = (struct fwd_layout){0};
}

/* --- building --- */

/* The parts of a layout's bytes that lie side by side; of our own making, so not checked. */
struct parts {
    struct jury_layout *header;
    struct jury_listener *listeners;
    struct jury_scope *scopes;
    struct jury_member *members;
    uint16_t *slots;
};

static struct parts parts_of(uint8_t *bytes)
{
    /* malloc aligns the start, the builder every offset to 8. */
    struct jury_layout *header = (void *)bytes;

    return (struct parts){
        .header = header,
        .listeners = (void *)(bytes + header->listeners_at),
        .scopes = (void *)(bytes + header->scopes_at),
        .members = (void *)(bytes + header->members_at),
        .slots = (void *)(bytes + header->slots_at),
    };
}

static void fill_header(const struct fwd_source *source, uint64_t n_slots,
                        struct jury_layout *header)
{
    struct hash_key key = flow_key_of_cluster(&source->cluster_id);

    *header = (struct jury_layout){
        .magic = JURY_LAYOUT_MAGIC,
        .version = JURY_VERSION_WORD(JURY_TABLE_MAJOR, JURY_TABLE_MINOR),
        .header_bytes = sizeof *header,
        .revision = source->revision,
        .hash_key0 = key.k0,
        .hash_key1 = key.k1,
        .n_rows = source->n_rows,
        .n_listeners = source->n_listeners,
        .n_scopes = source->n_scopes,
        .n_members = source->n_members,
        .n_slots = n_slots,
        .listener_bytes = sizeof(struct jury_listener),
        .scope_bytes = sizeof(struct jury_scope),
        .member_bytes = sizeof(struct jury_member),
    };
    memcpy(&header->cluster_low, source->cluster_id.bytes, 8);
    memcpy(&header->cluster_high, source->cluster_id.bytes + 8, 8);
    header->listeners_at = sizeof *header;
    header->scopes_at =
        header->listeners_at + (uint64_t)header->n_listeners * sizeof(struct jury_listener);
    header->members_at = header->scopes_at + (uint64_t)header->n_scopes * sizeof(struct jury_scope);
    header->slots_at =
        header->members_at + (uint64_t)header->n_members * sizeof(struct jury_member);
    header->file_bytes = (header->slots_at + n_slots * sizeof(uint16_t) + 7) & ~UINT64_C(7);
}

static void copy_records(const struct fwd_source *source, const struct parts *parts)
{
    struct hash_key key = {.k0 = parts->header->hash_key0, .k1 = parts->header->hash_key1};
    uint64_t n_slots = 0;

    if (source->n_listeners > 0) {
        memcpy(parts->listeners, source->listeners, source->n_listeners * sizeof *parts->listeners);
    }
    if (source->n_scopes > 0) {
        memcpy(parts->scopes, source->scopes, source->n_scopes * sizeof *parts->scopes);
    }
    if (source->n_members > 0) {
        memcpy(parts->members, source->members, source->n_members * sizeof *parts->members);
    }
    for (uint32_t i = 0; i < source->n_scopes; i++) {
        parts->scopes[i].first_slot = n_slots;
        parts->scopes[i].n_slots = select_n_slots(parts->scopes[i].n_members);
        n_slots += parts->scopes[i].n_slots;
    }
    for (uint32_t i = 0; i < source->n_members; i++) {
        struct endpoint at;

        fwd_endpoint_get(&parts->members[i].at, &at);
        parts->members[i].select_id = select_member_id(&at, &key);
    }
}

static bool same_members(const struct parts *a, const struct jury_scope *scope_a,
                         const struct parts *b, const struct jury_scope *scope_b)
{
    if (scope_a->n_members != scope_b->n_members) {
        return false;
    }
    for (uint32_t i = 0; i < scope_a->n_members; i++) {
        const struct jury_member *member_a = &a->members[scope_a->first_member + i];
        const struct jury_member *member_b = &b->members[scope_b->first_member + i];

        if (member_a->select_id != member_b->select_id || member_a->weight != member_b->weight) {
            return false;
        }
    }
    return true;
}

static int fill_scope(const struct parts *parts, const struct jury_scope *scope, uint64_t ids[],
                      uint8_t weights[])
{
    for (uint32_t i = 0; i < scope->n_members; i++) {
        ids[i] = parts->members[scope->first_member + i].select_id;
        weights[i] = parts->members[scope->first_member + i].weight;
    }
    return select_fill_slots(ids, weights, scope->n_members, parts->slots + scope->first_slot,
                             scope->n_slots);
}

/* Both layouts have their scopes sorted by name, so one walk over both finds the pairs. */
static int fill_slots(const struct parts *parts, const struct parts *last)
{
    uint64_t *ids = calloc(parts->header->n_members + 1U, sizeof *ids);
    uint8_t *weights = calloc(parts->header->n_members + 1U, sizeof *weights);
    uint32_t last_index = 0;
    int err = ids != NULL && weights != NULL ? 0 : ERR_NOMEM;

    for (uint32_t i = 0; err == 0 && i < parts->header->n_scopes; i++) {
        const struct jury_scope *scope = &parts->scopes[i];
        const struct jury_scope *found = NULL;

        while (last != NULL && last_index < last->header->n_scopes) {
            int order = strcmp(last->scopes[last_index].name, scope->name);

            found = order == 0 ? &last->scopes[last_index] : NULL;
            if (order >= 0) {
                break;
            }
            last_index++;
        }
        if (scope->n_slots == 0) {
            continue;
        }
        if (found != NULL && same_members(parts, scope, last, found)) {
            memcpy(parts->slots + scope->first_slot, last->slots + found->first_slot,
                   scope->n_slots * sizeof(uint16_t));
        } else {
            err = fill_scope(parts, scope, ids, weights);
        }
    }
    free(ids);
    free(weights);
    return err;
}

int fwd_layout_build(const struct fwd_source *source, const struct fwd_layout *last,
                     struct fwd_layout *ret_layout, struct errmsg *err)
{
    struct jury_layout header;
    struct parts last_parts = {0};
    uint64_t n_slots = 0;

    for (uint32_t i = 0; i < source->n_scopes; i++) {
        const struct jury_scope *scope = &source->scopes[i];

        if (scope->n_members >= SELECT_SLOT_NONE) {
            return errmsg_set(err, ERR_LIMIT,
                              "server group \"%s\": %u backends, the forwarding "
                              "table has room for %u",
                              scope->name, scope->n_members, SELECT_SLOT_NONE - 1U);
        }
        assert(scope->first_member + scope->n_members <= source->n_members);
        n_slots += select_n_slots(scope->n_members);
    }
    fill_header(source, n_slots, &header);
    uint8_t *bytes = calloc(1, header.file_bytes);
    if (bytes == NULL) {
        return errmsg_set(err, ERR_NOMEM, "no memory for a forwarding table of %zu bytes",
                          (size_t)header.file_bytes);
    }
    memcpy(bytes, &header, sizeof header);
    struct parts parts = parts_of(bytes);
    copy_records(source, &parts);
    if (last != NULL && last->bytes != NULL) {
        last_parts = parts_of(last->bytes);
    }
    if (fill_slots(&parts, last_parts.header != NULL ? &last_parts : NULL) != 0) {
        free(bytes);
        return errmsg_set(err, ERR_NOMEM, "no memory to build the selection arrays");
    }
    parts.header->crc32c = fwd_layout_crc(bytes, header.file_bytes);
    *ret_layout = (struct fwd_layout){.bytes = bytes, .n_bytes = header.file_bytes};
    return 0;
}
