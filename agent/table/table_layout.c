#include "agent/table/table_layout.h"

#include <assert.h>
#include <string.h>

#include "agent/core/fwd_layout.h"
#include "common/base/limits.h"
#include "common/base/plant.h"

/* A record of a later minor version is longer, but not without bound. */
#define RECORD_BYTES_MAX 4096
#define ALIGNMENT 8

static int check_version(uint64_t version, const char *name, struct errmsg *err)
{
    if (version >> 32 != JURY_TABLE_MAJOR && !plant_is("table-any-major")) {
        return errmsg_set(err, ERR_VERSION, "%s: format version %u.%u, this program reads %u.x",
                          name, (unsigned)(version >> 32), (unsigned)version, JURY_TABLE_MAJOR);
    }
    return 0;
}

static const void *record_at(const struct table_layout *layout, uint64_t section_at,
                             uint32_t record_bytes, uint32_t index)
{
    return layout->bytes + section_at + (uint64_t)index * record_bytes;
}

const struct jury_listener *table_layout_listener(const struct table_layout *layout, uint32_t index)
{
    assert(index < layout->header->n_listeners);
    return record_at(layout, layout->header->listeners_at, layout->header->listener_bytes, index);
}

const struct jury_scope *table_layout_scope(const struct table_layout *layout, uint32_t index)
{
    assert(index < layout->header->n_scopes);
    return record_at(layout, layout->header->scopes_at, layout->header->scope_bytes, index);
}

const struct jury_member *table_layout_member(const struct table_layout *layout, uint32_t index)
{
    assert(index < layout->header->n_members);
    return record_at(layout, layout->header->members_at, layout->header->member_bytes, index);
}

const uint16_t *table_layout_slots(const struct table_layout *layout,
                                   const struct jury_scope *scope)
{
    if (scope->n_slots == 0) {
        return NULL;
    }
    return (const void *)(layout->bytes + layout->header->slots_at +
                          scope->first_slot * sizeof(uint16_t));
}

/* --- what can be wrong --- */

static bool fits(const struct jury_layout *header, uint64_t at, uint64_t n_records,
                 uint64_t record_bytes)
{
    return at % ALIGNMENT == 0 && at >= header->header_bytes && at <= header->file_bytes &&
           n_records <= (header->file_bytes - at) / record_bytes;
}

static bool good_size(uint32_t bytes, size_t wanted)
{
    return bytes >= wanted && bytes <= RECORD_BYTES_MAX && bytes % ALIGNMENT == 0;
}

static int check_header(const uint8_t *bytes, size_t n_bytes, const char *name, struct errmsg *err)
{
    const struct jury_layout *header = (const void *)bytes;

    if (n_bytes < sizeof *header || header->magic != JURY_LAYOUT_MAGIC) {
        return errmsg_set(err, ERR_CORRUPT, "%s: not a layout file", name);
    }
    int result = check_version(header->version, name, err);
    if (result != 0) {
        return result;
    }
    if (header->file_bytes != n_bytes) {
        return errmsg_set(err, ERR_CORRUPT, "%s: %zu bytes long, it should be %llu", name, n_bytes,
                          (unsigned long long)header->file_bytes);
    }
    if (header->crc32c != fwd_layout_crc(bytes, n_bytes) && !plant_is("table-no-checksum")) {
        return errmsg_set(err, ERR_CORRUPT, "%s: damaged (checksum differs)", name);
    }
    if (!good_size(header->header_bytes, sizeof *header) || header->header_bytes > n_bytes ||
        !good_size(header->listener_bytes, sizeof(struct jury_listener)) ||
        !good_size(header->scope_bytes, sizeof(struct jury_scope)) ||
        !good_size(header->member_bytes, sizeof(struct jury_member))) {
        return errmsg_set(err, ERR_CORRUPT, "%s: a record size is out of range", name);
    }
    if (header->n_rows > LIMIT_ROWS) {
        return errmsg_set(err, ERR_LIMIT, "%s: %u rows, this program has room for %u", name,
                          header->n_rows, LIMIT_ROWS);
    }
    if (!fits(header, header->listeners_at, header->n_listeners, header->listener_bytes) ||
        !fits(header, header->scopes_at, header->n_scopes, header->scope_bytes) ||
        !fits(header, header->members_at, header->n_members, header->member_bytes) ||
        !fits(header, header->slots_at, header->n_slots, sizeof(uint16_t))) {
        return errmsg_set(err, ERR_CORRUPT, "%s: a section lies outside the file", name);
    }
    return 0;
}

static bool good_name(const char name[JURY_NAME_BYTES])
{
    return memchr(name, '\0', JURY_NAME_BYTES) != NULL;
}

static bool good_endpoint(const struct jury_endpoint *at)
{
    return (at->family == ADDR_IPV4 || at->family == ADDR_IPV6) && at->port > 0;
}

static bool good_listener(const struct table_layout *layout, const struct jury_listener *listener)
{
    return good_name(listener->name) && good_endpoint(&listener->at) &&
           listener->port_last >= listener->at.port && listener->scope < layout->header->n_scopes;
}

static bool good_slots(const struct table_layout *layout, const struct jury_scope *scope)
{
    const uint16_t *slots;

    if (scope->n_slots > layout->header->n_slots ||
        scope->first_slot > layout->header->n_slots - scope->n_slots) {
        return false;
    }
    slots = table_layout_slots(layout, scope);
    for (uint32_t i = 0; i < scope->n_slots; i++) {
        if (slots[i] >= scope->n_members && slots[i] != JURY_NO_MEMBER &&
            !plant_is("table-any-slot")) {
            return false;
        }
    }
    return true;
}

/* Scopes must take the members one after the other and leave none out: then they are disjoint. */
static bool good_scope(const struct table_layout *layout, const struct jury_scope *scope,
                       uint32_t index, uint32_t first_member)
{
    if (!good_name(scope->name) || scope->row >= layout->header->n_rows ||
        scope->first_member != first_member || scope->n_members >= JURY_NO_MEMBER ||
        scope->n_members > layout->header->n_members - first_member || !good_slots(layout, scope)) {
        return false;
    }
    for (uint32_t i = 0; i < scope->n_members; i++) {
        const struct jury_member *member = table_layout_member(layout, first_member + i);

        if (member->scope != index || member->row >= layout->header->n_rows ||
            member->weight > 100 || !good_endpoint(&member->at)) {
            return false;
        }
    }
    return true;
}

int table_layout_check(const uint8_t *bytes, size_t n_bytes, const char *name,
                       struct table_layout *ret_layout, struct errmsg *err)
{
    struct table_layout layout = {.bytes = bytes, .header = (const void *)bytes};
    uint32_t first_member = 0;
    int result = check_header(bytes, n_bytes, name, err);

    if (result != 0) {
        return result;
    }
    for (uint32_t i = 0; i < layout.header->n_scopes; i++) {
        const struct jury_scope *scope = table_layout_scope(&layout, i);

        if (!good_scope(&layout, scope, i, first_member)) {
            return errmsg_set(err, ERR_CORRUPT, "%s: scope %u is out of range", name, i);
        }
        first_member += scope->n_members;
    }
    if (first_member != layout.header->n_members) {
        return errmsg_set(err, ERR_CORRUPT, "%s: members without a scope", name);
    }
    for (uint32_t i = 0; i < layout.header->n_listeners; i++) {
        if (!good_listener(&layout, table_layout_listener(&layout, i))) {
            return errmsg_set(err, ERR_CORRUPT, "%s: listener %u is out of range", name, i);
        }
    }
    *ret_layout = layout;
    return 0;
}

int table_root_check(const uint8_t *bytes, size_t n_bytes, struct errmsg *err)
{
    const struct jury_root *root = (const void *)bytes;

    if (n_bytes < sizeof *root || root->magic != JURY_ROOT_MAGIC) {
        return errmsg_set(err, ERR_CORRUPT, "root: not the root of a forwarding table");
    }
    return check_version(root->version, "root", err);
}

int table_state_check(const uint8_t *bytes, size_t n_bytes, uint32_t n_rows, const char *name,
                      struct errmsg *err)
{
    const struct jury_state *state = (const void *)bytes;

    if (n_bytes < sizeof *state || state->magic != JURY_STATE_MAGIC) {
        return errmsg_set(err, ERR_CORRUPT, "%s: not a state file", name);
    }
    int result = check_version(state->version, name, err);
    if (result != 0) {
        return result;
    }
    if (state->file_bytes != n_bytes || state->n_rows < n_rows || state->n_rows > LIMIT_ROWS ||
        state->rows_at % ALIGNMENT != 0 || state->sequences_at % ALIGNMENT != 0 ||
        state->rows_at > n_bytes || state->sequences_at > n_bytes ||
        state->n_rows > (n_bytes - state->rows_at) / sizeof(struct jury_row) ||
        state->n_rows > (n_bytes - state->sequences_at) / sizeof(uint64_t)) {
        return errmsg_set(err, ERR_CORRUPT, "%s: its sizes are out of range for %u rows", name,
                          n_rows);
    }
    return 0;
}
