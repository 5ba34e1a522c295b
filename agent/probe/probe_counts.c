#include "agent/probe/probe_counts.h"

#include <assert.h>
#include <ctype.h>

static uint64_t load(const _Atomic uint64_t *value)
{
    return atomic_load_explicit(value, memory_order_relaxed);
}

/* One writer: a plain read and write, without a locked instruction. */
static void store(_Atomic uint64_t *value, uint64_t to)
{
    atomic_store_explicit(value, to, memory_order_relaxed);
}

void probe_counts_emit(const struct probe_counts *counts, counter_emit emit, void *to)
{
    enum {
        COUNT,
        GAUGE
    };
#define EMIT_COUNT(index, kind, word, text)                          \
    emit(to, &(struct counter_value){.name = (word),                 \
                                     .value = counts->values[index], \
                                     .help = (text),                 \
                                     .is_gauge = (kind) == GAUGE});
    PROBE_COUNTS(EMIT_COUNT)
#undef EMIT_COUNT
    for (unsigned reason = 1; reason < PROBE_REASON_SPAN; reason++) {
        char label[COUNTER_NAME_BYTES];
        size_t n = 0;

        if (probe_reason_class(reason) == PROBE_CLASS_NONE) {
            continue; /* a number without a reason */
        }
        for (const char *word = probe_reason_word(reason); word[n] != '\0'; n++) {
            assert(n < sizeof label - 1);
            label[n] = (char)tolower((unsigned char)word[n]);
        }
        label[n] = '\0';
        emit(to, &(struct counter_value){.name = "probe_results",
                                         .label = label,
                                         .value = counts->results[reason],
                                         .help = "probes with this result"});
    }
}

void probe_counters_init(struct probe_counters *counters)
{
    for (unsigned i = 0; i < PROBE_N_COUNTS; i++) {
        atomic_init(&counters->values[i], 0);
    }
    for (unsigned i = 0; i < PROBE_REASON_SPAN; i++) {
        atomic_init(&counters->results[i], 0);
    }
}

void probe_counters_set(struct probe_counters *counters, enum probe_count count, uint64_t value)
{
    store(&counters->values[count], value);
}

void probe_counters_add(struct probe_counters *counters, enum probe_count count, uint64_t value)
{
    store(&counters->values[count], load(&counters->values[count]) + value);
}

void probe_counters_max(struct probe_counters *counters, enum probe_count count, uint64_t value)
{
    if (value > load(&counters->values[count])) {
        store(&counters->values[count], value);
    }
}

void probe_counters_result(struct probe_counters *counters, enum probe_reason reason)
{
    assert((unsigned)reason < PROBE_REASON_SPAN);
    store(&counters->results[reason], load(&counters->results[reason]) + 1);
}

void probe_counters_read(const struct probe_counters *counters, struct probe_counts *ret_counts)
{
    for (unsigned i = 0; i < PROBE_N_COUNTS; i++) {
        ret_counts->values[i] = load(&counters->values[i]);
    }
    for (unsigned i = 0; i < PROBE_REASON_SPAN; i++) {
        ret_counts->results[i] = load(&counters->results[i]);
    }
}
