#include "agent/core/id_set.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/err.h"

void id_set_init(struct id_set *set)
{
    *set = (struct id_set){0};
}

void id_set_close(struct id_set *set)
{
    free(set->words);
    free(set->summary);
    *set = (struct id_set){0};
}

static int grow(uint64_t **words, uint32_t n_before, uint32_t n_after)
{
    uint64_t *grown = realloc(*words, n_after * sizeof *grown);

    if (grown == NULL) {
        return ERR_NOMEM;
    }
    memset(grown + n_before, 0, (n_after - n_before) * sizeof *grown);
    *words = grown;
    return 0;
}

static uint32_t n_words_for(uint32_t n)
{
    return (n + 63) / 64;
}

int id_set_reserve(struct id_set *set, uint32_t n_ids)
{
    uint32_t before = n_words_for(set->n_ids);
    uint32_t after = n_words_for(n_ids);

    if (n_ids <= set->n_ids) {
        return 0;
    }
    if (after > before) {
        if (grow(&set->words, before, after) != 0 ||
            grow(&set->summary, n_words_for(before), n_words_for(after)) != 0) {
            return ERR_NOMEM;
        }
    }
    set->n_ids = n_ids;
    return 0;
}

void id_set_add(struct id_set *set, uint32_t id)
{
    assert(id < set->n_ids);

    uint64_t bit = UINT64_C(1) << (id % 64);
    if ((set->words[id / 64] & bit) == 0) {
        set->words[id / 64] |= bit;
        set->summary[id / 4096] |= UINT64_C(1) << (id / 64 % 64);
        set->n_set++;
    }
}

void id_set_add_below(struct id_set *set, uint32_t n_ids)
{
    for (uint32_t id = 0; id < n_ids; id++) {
        id_set_add(set, id);
    }
}

void id_set_remove(struct id_set *set, uint32_t id)
{
    if (!id_set_has(set, id)) {
        return;
    }
    set->words[id / 64] &= ~(UINT64_C(1) << (id % 64));
    if (set->words[id / 64] == 0) {
        set->summary[id / 4096] &= ~(UINT64_C(1) << (id / 64 % 64));
    }
    set->n_set--;
}

bool id_set_has(const struct id_set *set, uint32_t id)
{
    return id < set->n_ids && (set->words[id / 64] >> (id % 64) & 1) != 0;
}

uint32_t id_set_next(const struct id_set *set, uint32_t from)
{
    if (set->n_set == 0 || from >= set->n_ids) {
        return ID_SET_END;
    }
    uint32_t w = from / 64;
    uint64_t word = set->words[w] & UINT64_MAX << (from % 64);
    uint32_t n_words = n_words_for(set->n_ids);

    while (word == 0) {
        if (++w == n_words) {
            return ID_SET_END;
        }
        if (w % 64 == 0 && set->summary[w / 64] == 0) {
            w += 63; /* a whole summary word without members */
            if (w >= n_words - 1) {
                return ID_SET_END;
            }
            continue;
        }
        word = set->words[w];
    }
    return w * 64 + (uint32_t)__builtin_ctzll(word);
}

bool id_set_take(struct id_set *set, uint32_t *ret_id)
{
    if (set->n_set == 0) {
        return false;
    }
    uint32_t s = 0;
    while (set->summary[s] == 0) {
        s++;
    }
    uint32_t w = s * 64 + (uint32_t)__builtin_ctzll(set->summary[s]);
    uint32_t bit = (uint32_t)__builtin_ctzll(set->words[w]);

    set->words[w] &= set->words[w] - 1;
    if (set->words[w] == 0) {
        set->summary[s] &= ~(UINT64_C(1) << (w % 64));
    }
    set->n_set--;
    *ret_id = w * 64 + bit;
    return true;
}
