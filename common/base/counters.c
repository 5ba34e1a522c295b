#include "common/base/counters.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

void counters_add(struct counters *counters, const struct counter_set *set)
{
    assert(counters->n_sets < COUNTER_SETS_MAX);
    counters->sets[counters->n_sets++] = *set;
}

void counter_set_emit(const struct counter_set *set, counter_emit emit, void *to)
{
    for (size_t i = 0; i < set->n_fields; i++) {
        const struct counter_field *field = &set->fields[i];
        char name[COUNTER_NAME_BYTES];
        struct counter_value value = {.name = name, .label = set->label, .help = field->help};

        snprintf(name, sizeof name, "%s_%s", set->prefix, field->name);
        memcpy(&value.value, (const uint8_t *)set->values + field->offset, sizeof value.value);
        emit(to, &value);
    }
}

void counters_emit(const struct counters *counters, counter_emit emit, void *to)
{
    for (size_t i = 0; i < counters->n_sets; i++) {
        counter_set_emit(&counters->sets[i], emit, to);
    }
}
