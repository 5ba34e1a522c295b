#include "agent/core/history.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "agent/core/votes.h"
#include "common/base/err.h"
#include "common/base/limits.h"

#define FIRST_CAPACITY 1024

static_assert(HISTORY_INDEXES <= 1U << 20, "an entry's index has 20 bits");
static_assert((LIMIT_HISTORY_FORMER & (LIMIT_HISTORY_FORMER - 1)) == 0,
              "numbers modulo 2^32 find their place in the ring");

#define PLACE_BITS 21
#define PLACE_MASK ((1U << PLACE_BITS) - 1)
static_assert(LIMIT_HISTORY_ENTRIES < 1 << PLACE_BITS, "a chain says where its entries are");
static_assert(LIMIT_HISTORY_ENTRIES_PER_TARGET < 1 << 13, "and how many it has");

/* Of each slot and each row. What was before its first entry is in bases or befores. */
struct chain {
    uint64_t birth;
    uint64_t from_ns;   /* what it had before went out for its own bound: at that time, */
    uint32_t from_step; /* in that step */
    uint32_t former; /* owner of the slot or row before: the number of its putting aside, from 1 on,
                        modulo 2^32; 0 = none */
    uint64_t n : 13;
    uint64_t first : PLACE_BITS; /* places: index in the ring + 1; 0 = none */
    uint64_t last : PLACE_BITS;
};
static_assert(sizeof(struct chain) <= HISTORY_CHAIN_BYTES, "of each target and row");
static_assert(sizeof(struct history_row) <= HISTORY_ROW_BYTES, "of each row");

/* A slot or row as it was with its owner before. */
struct former {
    struct chain chain;
    struct history_votes base; /* of a slot */
    struct history_row before; /* of a row */
};

struct owners {
    struct chain *chains; /* by slot or row */
    uint32_t n;
    struct former *formers; /* a ring */
    uint64_t n_formers;     /* added */
};

struct history {
    struct history_entry *ring;
    uint32_t capacity, capacity_max;
    uint64_t n_added;   /* entry i is at i % capacity */
    uint64_t n_dropped; /* of them */
    struct history_from from;

    struct owners slots, rows;
    struct votes_store bases;    /* by slot, before the first kept entry */
    struct votes_store nows;     /* by slot, after the last */
    struct history_row *befores; /* by row, before the first kept entry */
    uint32_t n_nodes;            /* observers' indexes are below it */

    struct history_surroundings *surroundings; /* oldest first */
    size_t n_surroundings;
    struct history_version *versions; /* a ring */
    uint64_t n_versions_added, n_versions_dropped;
    uint64_t n_version_backends;
};

struct history *history_new(uint64_t now_ns, uint32_t n_entries)
{
    struct history *history = calloc(1, sizeof *history);

    if (history == NULL) {
        return NULL;
    }
    history->from.at_ns = now_ns;
    history->surroundings = calloc(LIMIT_HISTORY_SURROUNDINGS, sizeof *history->surroundings);
    history->versions = calloc(LIMIT_HISTORY_VERSIONS, sizeof *history->versions);
    history->slots.formers = calloc(LIMIT_HISTORY_FORMER, sizeof(struct former));
    history->rows.formers = calloc(LIMIT_HISTORY_FORMER, sizeof(struct former));
    history->capacity_max =
        n_entries == 0 || n_entries > LIMIT_HISTORY_ENTRIES ? LIMIT_HISTORY_ENTRIES : n_entries;
    history->capacity =
        history->capacity_max < FIRST_CAPACITY ? history->capacity_max : FIRST_CAPACITY;
    history->ring = calloc(history->capacity, sizeof *history->ring);
    if (history->slots.formers == NULL || history->rows.formers == NULL ||
        history->surroundings == NULL || history->versions == NULL || history->ring == NULL) {
        history_free(history);
        return NULL;
    }
    return history;
}

void history_free(struct history *history)
{
    if (history == NULL) {
        return;
    }
    for (uint64_t i = history->n_versions_dropped; i < history->n_versions_added; i++) {
        catalog_group_unref(history->versions[i % LIMIT_HISTORY_VERSIONS].group);
    }
    free(history->ring);
    free(history->slots.chains);
    free(history->slots.formers);
    free(history->rows.chains);
    free(history->rows.formers);
    free(history->befores);
    votes_store_close(&history->bases);
    votes_store_close(&history->nows);
    free(history->surroundings);
    free(history->versions);
    free(history);
}

static int grow(void **array, size_t item_bytes, uint32_t n_before, uint32_t n_after)
{
    uint8_t *grown = realloc(*array, n_after * item_bytes);

    if (grown == NULL) {
        return ERR_NOMEM;
    }
    memset(grown + n_before * item_bytes, 0, (n_after - n_before) * item_bytes);
    *array = grown;
    return 0;
}

int history_reserve(struct history *history, uint32_t n_slots, uint32_t n_rows)
{
    struct owners *slots = &history->slots;
    struct owners *rows = &history->rows;

    if (n_slots > slots->n) {
        if (grow((void **)&slots->chains, sizeof *slots->chains, slots->n, n_slots) != 0 ||
            votes_store_reserve(&history->bases, n_slots, history->n_nodes) != 0 ||
            votes_store_reserve(&history->nows, n_slots, history->n_nodes) != 0) {
            return ERR_NOMEM;
        }
        slots->n = n_slots;
    }
    if (n_rows > rows->n) {
        if (grow((void **)&rows->chains, sizeof *rows->chains, rows->n, n_rows) != 0 ||
            grow((void **)&history->befores, sizeof *history->befores, rows->n, n_rows) != 0) {
            return ERR_NOMEM;
        }
        rows->n = n_rows;
    }
    return 0;
}

int history_reserve_nodes(struct history *history, uint32_t n_nodes)
{
    if (votes_store_reserve(&history->bases, 0, n_nodes) != 0 ||
        votes_store_reserve(&history->nows, 0, n_nodes) != 0) {
        return ERR_NOMEM;
    }
    history->n_nodes = n_nodes > history->n_nodes ? n_nodes : history->n_nodes;
    return 0;
}

/* --- entries --- */

bool history_is_of_slot(const struct history_entry *entry)
{
    return entry->kind == HISTORY_VOTE || entry->kind == HISTORY_OWN ||
           entry->kind == HISTORY_RESULT || entry->kind == HISTORY_ELECTOR;
}

void history_fold(struct history_votes *votes, const struct history_entry *entry)
{
    uint64_t bit = UINT64_C(1) << (entry->from);
    bool fails = entry->to == OPINION_FAIL;

    if (entry->kind == HISTORY_OWN) {
        votes->own_opinion = entry->to;
        votes->own_is_suspect = entry->hold != 0;
        return;
    }
    if (entry->kind == HISTORY_ELECTOR) {
        votes->electors = entry->to != 0 ? votes->electors | bit : votes->electors & ~bit;
    }
    if (entry->kind != HISTORY_VOTE) {
        return;
    }
    votes->fails &= ~bit;
    votes->passes &= ~bit;
    votes->lost_fails &= ~bit;
    votes->lost_passes &= ~bit;
    switch ((enum vote_hold)entry->hold) {
    case VOTE_NOT_HELD:
        break;
    case VOTE_COUNTS:
        *(fails ? &votes->fails : &votes->passes) |= bit;
        break;
    case VOTE_REMEMBERED:
        *(fails ? &votes->lost_fails : &votes->lost_passes) |= bit;
        break;
    }
}

void history_fold_row(struct history_row *row, const struct history_entry *entry)
{
    if (entry->kind == HISTORY_VERDICT || entry->kind == HISTORY_KEPT) {
        row->state = entry->to;
        row->was_kept |= entry->kind == HISTORY_KEPT;
    }
    if (entry->kind == HISTORY_VERDICT && entry->to == HEALTH_INITIAL) {
        row->initial_ns = entry->at_ns;
    }
    if (entry->kind == HISTORY_VERDICT && entry->from == HEALTH_UNUSED) {
        row->joined_ns = entry->at_ns;
    }
}

static struct chain *chain_of(const struct history *history, const struct history_entry *entry)
{
    const struct owners *owners = history_is_of_slot(entry) ? &history->slots : &history->rows;

    return entry->index >= HISTORY_FORMER ? &owners->formers[entry->index - HISTORY_FORMER].chain
                                          : &owners->chains[entry->index];
}

static void fold_into_base(struct history *history, const struct history_entry *entry)
{
    if (entry->index >= HISTORY_FORMER) {
        history_fold(&history->slots.formers[entry->index - HISTORY_FORMER].base, entry);
        return;
    }
    struct history_votes votes = votes_store_get(&history->bases, entry->index);
    history_fold(&votes, entry);
    votes_store_put(&history->bases, entry->index, &votes);
}

static struct history_row *before_of(const struct history *history, uint32_t index)
{
    return index >= HISTORY_FORMER ? &history->rows.formers[index - HISTORY_FORMER].before
                                   : &history->befores[index];
}

/* The first entry of a chain goes out of it, into the base. */
static void pop_first(struct history *history, struct chain *chain)
{
    struct history_entry *entry = &history->ring[chain->first - 1];

    if (history_is_of_slot(entry)) {
        fold_into_base(history, entry);
    } else {
        history_fold_row(before_of(history, entry->index), entry);
    }
    chain->first = entry->next & PLACE_MASK;
    chain->last = entry->next == 0 ? 0 : chain->last;
    chain->n--;
    entry->kind = HISTORY_NONE;
}

static void drop_oldest(struct history *history)
{
    struct history_entry *entry = &history->ring[history->n_dropped % history->capacity];

    if (entry->kind != HISTORY_NONE) {
        history->from = (struct history_from){.at_ns = entry->at_ns, .step = entry->step};
        pop_first(history, chain_of(history, entry));
    }
    history->n_dropped++;
}

/* The ring doubles until its bound: as long as it does, nothing was dropped and nothing wrapped. */
static bool has_room(struct history *history)
{
    if (history->n_added - history->n_dropped < history->capacity) {
        return true;
    }
    uint32_t capacity = 2 * history->capacity < history->capacity_max ? 2 * history->capacity
                                                                      : history->capacity_max;
    if (history->n_dropped > 0 || history->capacity == history->capacity_max) {
        return false;
    }
    /* Not wiped: a place is read once something is there, and only then becomes memory. */
    struct history_entry *ring = realloc(history->ring, capacity * sizeof *ring);
    if (ring == NULL) {
        return false;
    }
    history->ring = ring;
    history->capacity = capacity;
    return true;
}

void history_add(struct history *history, const struct history_entry *entry)
{
    struct chain *chain = chain_of(history, entry);

    assert(entry->kind != HISTORY_NONE &&
           entry->index < (history_is_of_slot(entry) ? history->slots.n : history->rows.n));
    if (!has_room(history)) {
        drop_oldest(history);
    }
    if (chain->n == LIMIT_HISTORY_ENTRIES_PER_TARGET) {
        const struct history_entry *first = &history->ring[chain->first - 1];

        chain->from_ns = first->at_ns;
        chain->from_step = first->step;
        pop_first(history, chain);
    }
    uint32_t place = (uint32_t)(history->n_added++ % history->capacity) + 1;
    history->ring[place - 1] = *entry;
    history->ring[place - 1].next = 0;
    if (chain->last != 0) {
        history->ring[chain->last - 1].next = place;
    } else {
        chain->first = place & PLACE_MASK;
    }
    chain->last = place & PLACE_MASK;
    chain->n++;
    if (history_is_of_slot(entry)) {
        struct history_votes now = votes_store_get(&history->nows, entry->index);

        history_fold(&now, entry);
        votes_store_put(&history->nows, entry->index, &now);
    }
}

static void forget_chain(struct history *history, const struct chain *chain)
{
    for (uint32_t place = chain->first; place != 0; place = history->ring[place - 1].next) {
        history->ring[place - 1].kind = HISTORY_NONE;
    }
}

/* Give the chain of an owner to the ring of former ones. The next owner's chain leads to it. */
static struct former *put_aside(struct history *history, struct owners *owners, uint32_t number)
{
    uint32_t at = (uint32_t)(owners->n_formers++ % LIMIT_HISTORY_FORMER);
    struct former *former = &owners->formers[at];

    forget_chain(history, &former->chain);
    *former = (struct former){.chain = owners->chains[number]};
    for (uint32_t place = former->chain.first; place != 0; place = history->ring[place - 1].next) {
        history->ring[place - 1].index = (HISTORY_FORMER + at) & ((1U << 20) - 1);
    }
    return former;
}

/* Of the chain that is about to begin, behind put_aside. */
static uint32_t last_former(const struct owners *owners, uint32_t number)
{
    return owners->chains[number].birth != 0 ? (uint32_t)owners->n_formers : 0;
}

void history_reset_slot(struct history *history, uint32_t slot, uint64_t birth)
{
    static const struct history_votes none;

    if (history->slots.chains[slot].birth != 0) {
        put_aside(history, &history->slots, slot)->base = votes_store_get(&history->bases, slot);
    }
    history->slots.chains[slot] =
        (struct chain){.birth = birth, .former = last_former(&history->slots, slot)};
    votes_store_put(&history->bases, slot, &none);
    votes_store_put(&history->nows, slot, &none);
}

void history_reset_row(struct history *history, struct row_id row, uint64_t now_ns)
{
    if (history->rows.chains[row.row].birth != 0) {
        put_aside(history, &history->rows, row.row)->before = history->befores[row.row];
    }
    history->rows.chains[row.row] =
        (struct chain){.birth = row.birth, .former = last_former(&history->rows, row.row)};
    history->befores[row.row] = (struct history_row){.joined_ns = now_ns, .initial_ns = now_ns};
}

struct history_votes history_votes_now(const struct history *history, uint32_t slot)
{
    return votes_store_get(&history->nows, slot);
}

/* --- surroundings and versions --- */

const struct history_surroundings *history_surroundings_now(const struct history *history)
{
    return history->n_surroundings == 0 ? NULL
                                        : &history->surroundings[history->n_surroundings - 1];
}

void history_add_surroundings(struct history *history,
                              const struct history_surroundings *surroundings)
{
    if (history->n_surroundings == LIMIT_HISTORY_SURROUNDINGS) {
        memmove(&history->surroundings[0], &history->surroundings[1],
                (LIMIT_HISTORY_SURROUNDINGS - 1) * sizeof *history->surroundings);
        history->n_surroundings--;
        struct history_from from = {.at_ns = history->surroundings[0].at_ns,
                                    .step = history->surroundings[0].step};
        history->from = history_is_after(&from, &history->from) ? from : history->from;
    }
    history->surroundings[history->n_surroundings++] = *surroundings;
}

static void drop_version(struct history *history)
{
    struct history_version *oldest =
        &history->versions[history->n_versions_dropped++ % LIMIT_HISTORY_VERSIONS];

    history->n_version_backends -= oldest->group->n_backends;
    catalog_group_unref(oldest->group);
}

void history_add_version(struct history *history, const struct history_version *version)
{
    uint32_t n = version->group->n_backends;

    while (history->n_versions_added > history->n_versions_dropped &&
           (history->n_versions_added - history->n_versions_dropped == LIMIT_HISTORY_VERSIONS ||
            history->n_version_backends + n > LIMIT_HISTORY_VERSION_BACKENDS)) {
        drop_version(history);
    }
    struct history_version *place =
        &history->versions[history->n_versions_added++ % LIMIT_HISTORY_VERSIONS];
    *place = *version;
    catalog_group_ref(version->group);
    history->n_version_backends += n;
}

/* --- reading --- */

bool history_is_after(const struct history_from *a, const struct history_from *b)
{
    return a->at_ns != b->at_ns ? a->at_ns > b->at_ns : (int32_t)(a->step - b->step) > 0;
}

struct history_from history_complete_from(const struct history *history)
{
    return history->from;
}

static struct history_chain read_chain(const struct chain *chain, uint32_t index)
{
    return (struct history_chain){.from = {.at_ns = chain->from_ns, .step = chain->from_step},
                                  .birth_matches = true,
                                  .index = index,
                                  .first = chain->first};
}

/* From owner to owner before, each older than the last: a replay asks for thousands, and the health
 * thread waits for it. */
static struct history_chain find_chain(const struct owners *owners, uint32_t number, uint64_t birth)
{
    uint32_t age = 0;

    if (number >= owners->n) {
        return (struct history_chain){0};
    }
    const struct chain *chain = &owners->chains[number];
    uint32_t index = number;
    while (chain->birth != birth) {
        uint32_t former = chain->former;
        uint32_t next_age = (uint32_t)owners->n_formers - former + 1;

        if (former == 0 || next_age <= age || next_age > LIMIT_HISTORY_FORMER) {
            return (struct history_chain){0}; /* none, or its place has been given away */
        }
        age = next_age;
        index = HISTORY_FORMER + (former - 1) % LIMIT_HISTORY_FORMER;
        chain = &owners->formers[index - HISTORY_FORMER].chain;
    }
    return read_chain(chain, index);
}

struct history_chain history_slot(const struct history *history, uint32_t slot, uint64_t birth)
{
    return find_chain(&history->slots, slot, birth);
}

struct history_chain history_row(const struct history *history, uint32_t row, uint64_t birth)
{
    struct history_chain chain = find_chain(&history->rows, row, birth);

    if (chain.birth_matches) {
        chain.before = *before_of(history, chain.index);
    }
    return chain;
}

struct history_votes history_slot_base(const struct history *history, uint32_t index)
{
    return index >= HISTORY_FORMER ? history->slots.formers[index - HISTORY_FORMER].base
                                   : votes_store_get(&history->bases, index);
}

const struct history_entry *history_at(const struct history *history, uint32_t place)
{
    return &history->ring[place - 1];
}

uint64_t history_first(const struct history *history)
{
    return history->n_dropped;
}

uint64_t history_next(const struct history *history)
{
    return history->n_added;
}

const struct history_entry *history_by_number(const struct history *history, uint64_t number)
{
    return &history->ring[number % history->capacity];
}

size_t history_n_surroundings(const struct history *history)
{
    return history->n_surroundings;
}

const struct history_surroundings *history_surroundings_at(const struct history *history,
                                                           size_t index)
{
    return &history->surroundings[index];
}

size_t history_n_versions(const struct history *history)
{
    return (size_t)(history->n_versions_added - history->n_versions_dropped);
}

const struct history_version *history_version_at(const struct history *history, size_t index)
{
    return &history->versions[(history->n_versions_dropped + index) % LIMIT_HISTORY_VERSIONS];
}
