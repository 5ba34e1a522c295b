#include "agent/core/numbers.h"

#include <assert.h>
#include <stdlib.h>

#include "common/base/err.h"

#define WORD_BITS 64

int numbers_init(struct numbers *numbers, uint32_t limit)
{
    assert(limit > 0);

    uint32_t n_words = (limit + WORD_BITS - 1) / WORD_BITS;
    uint64_t *words = calloc(n_words, sizeof *words);
    if (words == NULL) {
        return ERR_NOMEM;
    }
    *numbers = (struct numbers){.words = words, .n_words = n_words, .limit = limit};
    return 0;
}

void numbers_close(struct numbers *numbers)
{
    free(numbers->words);
    *numbers = (struct numbers){0};
}

uint32_t numbers_take(struct numbers *numbers)
{
    assert(numbers->n_taken < numbers->limit);

    while (numbers->words[numbers->first_word] == UINT64_MAX) {
        numbers->first_word++;
        assert(numbers->first_word < numbers->n_words);
    }
    uint64_t free_bits = ~numbers->words[numbers->first_word];
    uint32_t bit = (uint32_t)__builtin_ctzll(free_bits);
    uint32_t number = numbers->first_word * WORD_BITS + bit;

    assert(number < numbers->limit);
    numbers->words[numbers->first_word] |= UINT64_C(1) << bit;
    numbers->n_taken++;
    return number;
}

bool numbers_take_this(struct numbers *numbers, uint32_t number)
{
    if (number >= numbers->limit) {
        return false;
    }
    uint64_t bit = UINT64_C(1) << number % WORD_BITS;
    if ((numbers->words[number / WORD_BITS] & bit) != 0) {
        return false;
    }
    numbers->words[number / WORD_BITS] |= bit;
    numbers->n_taken++;
    return true;
}

void numbers_give_back(struct numbers *numbers, uint32_t number)
{
    uint64_t bit = UINT64_C(1) << number % WORD_BITS;
    uint32_t word = number / WORD_BITS;

    assert(number < numbers->limit);
    assert((numbers->words[word] & bit) != 0);
    numbers->words[word] &= ~bit;
    numbers->n_taken--;
    if (word < numbers->first_word) {
        numbers->first_word = word;
    }
}

uint32_t numbers_end(const struct numbers *numbers)
{
    for (uint32_t i = numbers->n_words; i > 0; i--) {
        uint64_t word = numbers->words[i - 1];

        if (word != 0) {
            return (i - 1) * WORD_BITS + (WORD_BITS - (uint32_t)__builtin_clzll(word));
        }
    }
    return 0;
}
