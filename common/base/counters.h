/* Named counters: one registry a program, read by `nodectl node counters` and, later, by metrics.
 *
 * Each module keeps a plain struct of uint64_t and describes it by one X-macro list; the registry
 * only knows where the fields are. Read on the thread that owns the structs. */
#ifndef JURY_BASE_COUNTERS_H
#define JURY_BASE_COUNTERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define COUNTER_SETS_MAX 32
#define COUNTER_NAME_BYTES 96

struct counter_field {
    const char *name;
    const char *help; /* a phrase without a period */
    size_t offset;    /* of a uint64_t in the struct */
};

/* From a list of X(name, help) to the fields of `struct type`:
 * static const struct counter_field fields[] = {
 *     #define FIELD(name, help) COUNTER_FIELD(struct mesh_counters, name, help)
 *     MESH_COUNTERS(FIELD)
 *     #undef FIELD
 * }; */
#define COUNTER_FIELD(type, name, help) {#name, help, offsetof(type, name)},

/* Of what the program registers. All kept. */
struct counter_set {
    const char *prefix; /* "mesh": its field hellos becomes mesh_hellos */
    const char *label;  /* NULL, or what tells sets of one prefix apart: a peer, a file */
    const struct counter_field *fields;
    size_t n_fields;
    const void *values;
};

struct counters {
    struct counter_set sets[COUNTER_SETS_MAX];
    size_t n_sets;
};

/* One value as it is told; texts borrowed for the call. */
struct counter_value {
    const char *name;
    const char *label; /* NULL = none */
    uint64_t value;
    const char *help;
    bool is_gauge; /* a value of now, or the largest yet: it is no count since the start */
};
typedef void (*counter_emit)(void *to, const struct counter_value *value);

/* At most COUNTER_SETS_MAX in a program's life; at start. */
void counters_add(struct counters *counters, const struct counter_set *set);
/* One set, for those that come and go. */
void counter_set_emit(const struct counter_set *set, counter_emit emit, void *to);
void counters_emit(const struct counters *counters, counter_emit emit, void *to);

#endif
