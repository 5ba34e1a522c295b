/* Target slots of a catalog: who is in which slot since when, and the digest and births that vote
 * chunks carry (design.md 4, "Target slots"). */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "agent/core/catalog_codec.h"
#include "agent/core/catalog_parts.h"
#include "common/base/bytes.h"

#define PAGES_PER_CHUNK (LIMIT_VOTE_SLOTS_PER_CHUNK / TARGET_PAGE_SLOTS)

bool catalog_wants_target(const struct catalog_group *group, const struct catalog_backend *backend)
{
    return group->spec.check.is_enabled && backend->spec.admin_state != ADMIN_MAINTENANCE;
}

struct hash128 catalog_definition_hash(const struct endpoint *to, const struct check_part *check)
{
    uint8_t bytes[1 + 16 + 2 + 8 + 8];

    bytes[0] = to->addr.family;
    memcpy(bytes + 1, to->addr.bytes, 16);
    bytes[17] = (uint8_t)to->port;
    bytes[18] = (uint8_t)(to->port >> 8);
    for (unsigned i = 0; i < 8; i++) {
        bytes[19 + i] = (uint8_t)(check->hash.low >> (8 * i));
        bytes[27 + i] = (uint8_t)(check->hash.high >> (8 * i));
    }
    return catalog_hash(bytes, sizeof bytes);
}

/* What one slot in use adds to the digest of its page. */
static struct hash128 slot_digest(const struct catalog_target *target)
{
    uint64_t words[4] = {target->id.slot, target->id.birth, target->definition_hash.low,
                         target->definition_hash.high};
    uint8_t bytes[sizeof words];

    for (unsigned i = 0; i < sizeof bytes; i++) {
        bytes[i] = (uint8_t)(words[i / 8] >> (i % 8 * 8));
    }
    return catalog_hash(bytes, sizeof bytes);
}

void catalog_target_page_unref(struct target_page *page)
{
    if (page == NULL || atomic_fetch_sub_explicit(&page->refs, 1, memory_order_acq_rel) != 1) {
        return;
    }
    for (uint32_t i = 0; i < TARGET_PAGE_SLOTS; i++) {
        if (page->targets[i].check != NULL) {
            catalog_check_unref(page->targets[i].check);
        }
    }
    free(page);
}

/* The page of a slot for writing: made when it is missing, copied when another catalog shares it.
 */
static struct target_page *own_page(struct catalog *catalog, uint32_t slot)
{
    struct target_page **place = &catalog->target_pages[slot / TARGET_PAGE_SLOTS];
    struct target_page *page = *place;

    if (page != NULL && atomic_load_explicit(&page->refs, memory_order_acquire) == 1) {
        return page;
    }
    struct target_page *own = catalog_alloc(1, sizeof *own);
    if (page != NULL) {
        own->n_targets = page->n_targets;
        own->birth_max = page->birth_max;
        own->digest = page->digest;
        memcpy(own->targets, page->targets, sizeof own->targets);
        for (uint32_t i = 0; i < TARGET_PAGE_SLOTS; i++) {
            if (own->targets[i].check != NULL) {
                catalog_check_ref(own->targets[i].check);
            }
        }
        catalog_target_page_unref(page);
    }
    atomic_init(&own->refs, 1);
    *place = own;
    return own;
}

void catalog_target_put(struct catalog *catalog, const struct target_id *id,
                        const struct endpoint *to, struct check_part *check)
{
    struct target_page *page = own_page(catalog, id->slot);
    struct catalog_target *target = &page->targets[id->slot % TARGET_PAGE_SLOTS];

    assert(target->check == NULL);
    *target = (struct catalog_target){.id = *id,
                                      .to = *to,
                                      .check = &check_part_ref(check)->check,
                                      .definition_hash = catalog_definition_hash(to, check)};
    page->n_targets++;
    page->digest = hash128_add(page->digest, slot_digest(target));
    if (id->birth > page->birth_max) {
        page->birth_max = id->birth;
    }
    catalog->n_targets++;
}

static void clear_slot(struct catalog *catalog, struct target_page *page,
                       struct catalog_target *target)
{
    uint64_t birth = target->id.birth;

    page->digest = hash128_subtract(page->digest, slot_digest(target));
    catalog_check_unref(target->check);
    *target = (struct catalog_target){0};
    page->n_targets--;
    catalog->n_targets--;
    if (birth == page->birth_max) {
        page->birth_max = 0;
        for (uint32_t i = 0; i < TARGET_PAGE_SLOTS; i++) {
            if (page->targets[i].check != NULL && page->targets[i].id.birth > page->birth_max) {
                page->birth_max = page->targets[i].id.birth;
            }
        }
    }
}

uint32_t catalog_target_use(struct catalog *catalog, uint32_t slot, int32_t delta)
{
    struct target_page *page = own_page(catalog, slot);
    struct catalog_target *target = &page->targets[slot % TARGET_PAGE_SLOTS];

    assert(target->check != NULL);
    assert(delta >= 0 || target->n_users >= (uint32_t)-delta);
    target->n_users += (uint32_t)delta;
    uint32_t n_users = target->n_users;
    if (n_users == 0) {
        clear_slot(catalog, page, target);
    }
    return n_users;
}

/* --- reading --- */

uint32_t catalog_n_slots(const struct catalog *catalog)
{
    return catalog->n_slots;
}

const struct catalog_target *catalog_target_at(const struct catalog *catalog, uint32_t slot)
{
    if (slot >= LIMIT_TARGETS) {
        return NULL;
    }
    const struct target_page *page = catalog->target_pages[slot / TARGET_PAGE_SLOTS];
    if (page == NULL || page->targets[slot % TARGET_PAGE_SLOTS].check == NULL) {
        return NULL;
    }
    return &page->targets[slot % TARGET_PAGE_SLOTS];
}

void catalog_target_definition(const struct catalog_target *target,
                               struct target_definition *ret_definition)
{
    ret_definition->to = target->to;
    ret_definition->check = target->check;
}

struct hash128 catalog_chunk_digest(const struct catalog *catalog, uint16_t chunk)
{
    struct hash128 digest = {0};

    assert(chunk < LIMIT_VOTE_CHUNKS);
    for (uint32_t i = 0; i < PAGES_PER_CHUNK; i++) {
        const struct target_page *page = catalog->target_pages[chunk * PAGES_PER_CHUNK + i];

        if (page != NULL) {
            digest = hash128_add(digest, page->digest);
        }
    }
    return digest;
}

/* The births seen so far, newest first, of one birth by slot; bounded. */
struct births {
    struct target_id *ids;
    uint16_t n_ids;
    uint64_t floor; /* newest birth that found no place */
};

static void offer_birth(struct births *births, const struct target_id *id)
{
    uint16_t at = births->n_ids;

    if (births->n_ids == LIMIT_BIRTHS_PER_CHUNK) {
        uint64_t oldest = births->ids[LIMIT_BIRTHS_PER_CHUNK - 1].birth;

        /* Slots come in rising order, so an equal birth stands behind and is the one left out. */
        if (id->birth <= oldest) {
            births->floor = id->birth > births->floor ? id->birth : births->floor;
            return;
        }
        births->floor = oldest > births->floor ? oldest : births->floor;
        at--;
    } else {
        births->n_ids++;
    }
    for (; at > 0 && births->ids[at - 1].birth < id->birth; at--) {
        births->ids[at] = births->ids[at - 1];
    }
    births->ids[at] = *id;
}

uint16_t catalog_chunk_births(const struct catalog *catalog, uint16_t chunk,
                              struct target_id births[LIMIT_BIRTHS_PER_CHUNK], uint64_t *ret_floor)
{
    struct births found = {.ids = births};

    assert(chunk < LIMIT_VOTE_CHUNKS);
    for (uint32_t i = 0; i < PAGES_PER_CHUNK; i++) {
        const struct target_page *page = catalog->target_pages[chunk * PAGES_PER_CHUNK + i];

        if (page == NULL || page->n_targets == 0) {
            continue;
        }
        if (found.n_ids == LIMIT_BIRTHS_PER_CHUNK &&
            page->birth_max <= births[LIMIT_BIRTHS_PER_CHUNK - 1].birth) {
            found.floor = page->birth_max > found.floor ? page->birth_max : found.floor;
            continue;
        }
        for (uint32_t j = 0; j < TARGET_PAGE_SLOTS; j++) {
            if (page->targets[j].check != NULL) {
                offer_birth(&found, &page->targets[j].id);
            }
        }
    }
    *ret_floor = found.floor;
    return found.n_ids;
}
