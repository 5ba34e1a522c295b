#include "agent/core/observers.h"

#include <assert.h>
#include <string.h>

#include "common/base/plant.h"

void observers_init(struct observers *observers, uint64_t self_id)
{
    assert(self_id != 0);
    *observers = (struct observers){.self_id = self_id};
}

uint32_t observers_index(const struct observers *observers, uint64_t node_id)
{
    for (uint32_t i = 0; node_id != 0 && i < LIMIT_NODES; i++) {
        if (observers->members[i].node_id == node_id) {
            return i;
        }
    }
    return OBSERVER_NO_INDEX;
}

static uint64_t bit_of(uint32_t index)
{
    return UINT64_C(1) << index;
}

static bool role_observes(uint8_t role)
{
    return role == ROLE_VOTER || role == ROLE_STANDBY;
}

/* Zones in the order of the lowest index in them. Returns true if they changed. */
static bool map_zones(struct observers *observers)
{
    struct zone_map before = observers->zones;
    const char *names[LIMIT_NODES];

    memset(&observers->zones, 0, sizeof observers->zones);
    for (uint64_t left = observers->counting; left != 0; left &= left - 1) {
        uint32_t index = (uint32_t)__builtin_ctzll(left);
        uint8_t zone = 0;

        names[observers->zones.n_zones] = observers->members[index].zone;
        while (strcmp(names[zone], observers->members[index].zone) != 0) {
            zone++;
        }
        observers->zones.n_zones =
            (uint8_t)(observers->zones.n_zones + (zone == observers->zones.n_zones));
        observers->zones.members[zone] |= bit_of(index);
    }
    return before.n_zones != observers->zones.n_zones ||
           memcmp(before.members, observers->zones.members, sizeof before.members) != 0;
}

/* Members that left, and those that stopped observing. */
static uint64_t drop_gone(struct observers *observers, const struct catalog *catalog)
{
    uint64_t removed = 0;

    for (uint32_t i = 0; i < LIMIT_NODES; i++) {
        struct observer *member = &observers->members[i];
        const struct catalog_node *node =
            member->node_id == 0 ? NULL : catalog_node_find(catalog, member->node_id);

        if (member->node_id == 0) {
            continue;
        }
        if (node == NULL) {
            *member = (struct observer){0};
            removed |= bit_of(i);
        } else if (member->is_observer && !role_observes(node->spec.role)) {
            member->is_observer = false;
            member->counts = false;
            removed |= bit_of(i);
        }
    }
    observers->counting &= ~removed;
    return removed;
}

static uint32_t find_free(const struct observers *observers)
{
    uint32_t index = 0;

    while (index < LIMIT_NODES && observers->members[index].node_id != 0) {
        index++;
    }
    return index;
}

bool observers_follow(struct observers *observers, const struct catalog *catalog, uint64_t now_ns,
                      uint64_t *ret_removed)
{
    uint64_t before = observers->counting;

    *ret_removed = drop_gone(observers, catalog);
    for (size_t i = 0; i < catalog_n_nodes(catalog); i++) {
        const struct catalog_node *node = catalog_node_at(catalog, i);
        uint32_t index = observers_index(observers, node->spec.node_id);

        if (index == OBSERVER_NO_INDEX) {
            index = find_free(observers);
            if (index == LIMIT_NODES) {
                continue; /* the catalog's own limit is the same number */
            }
            observers->members[index] = (struct observer){.node_id = node->spec.node_id};
        }
        struct observer *member = &observers->members[index];
        memcpy(member->zone, node->spec.zone, sizeof member->zone);
        if (!role_observes(node->spec.role) || member->is_observer) {
            continue;
        }
        member->is_observer = true;
        member->enters_ns = now_ns + OBSERVER_ENTRY_NS;
        member->counts = !observers->has_catalog || member->node_id == observers->self_id ||
                         plant_is("observer-at-once");
        if (member->counts) {
            observers->counting |= bit_of(index);
        }
    }
    observers->has_catalog = true;
    return map_zones(observers) || observers->counting != before || *ret_removed != 0;
}

static bool let_in(struct observers *observers, uint32_t index)
{
    struct observer *member = &observers->members[index];

    if (!member->is_observer || member->counts) {
        return false;
    }
    member->counts = true;
    observers->counting |= bit_of(index);
    map_zones(observers);
    return true;
}

bool observers_heard(struct observers *observers, uint64_t node_id)
{
    uint32_t index = observers_index(observers, node_id);

    return index != OBSERVER_NO_INDEX && let_in(observers, index);
}

bool observers_enter_due(struct observers *observers, uint64_t now_ns)
{
    bool changed = false;

    for (uint32_t i = 0; i < LIMIT_NODES; i++) {
        if (observers->members[i].is_observer && observers->members[i].enters_ns <= now_ns) {
            changed |= let_in(observers, i);
        }
    }
    return changed;
}

uint64_t observers_next_ns(const struct observers *observers)
{
    uint64_t next_ns = UINT64_MAX;

    for (uint32_t i = 0; i < LIMIT_NODES; i++) {
        const struct observer *member = &observers->members[i];

        if (member->is_observer && !member->counts && member->enters_ns < next_ns) {
            next_ns = member->enters_ns;
        }
    }
    return next_ns;
}

uint8_t observers_n(const struct observers *observers)
{
    return (uint8_t)__builtin_popcountll(observers->counting);
}

bool observers_self_counts(const struct observers *observers)
{
    uint32_t index = observers_index(observers, observers->self_id);

    return index != OBSERVER_NO_INDEX && (observers->counting & bit_of(index)) != 0;
}

uint64_t observers_self_bit(const struct observers *observers)
{
    uint32_t index = observers_index(observers, observers->self_id);

    return index == OBSERVER_NO_INDEX ? 0 : observers->counting & bit_of(index);
}

uint64_t observers_peers(const struct observers *observers)
{
    uint32_t index = observers_index(observers, observers->self_id);

    return index == OBSERVER_NO_INDEX ? observers->counting : observers->counting & ~bit_of(index);
}
