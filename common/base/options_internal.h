/* What the files of the option table share; nobody else includes it. */
#ifndef JURY_BASE_OPTIONS_INTERNAL_H
#define JURY_BASE_OPTIONS_INTERNAL_H

#include "common/base/options.h"

#define OPTION_ORIGIN_BYTES 320

/* Rising: a value of a higher rank replaces one of a lower. */
enum option_rank {
    RANK_NONE = 0,
    RANK_DEFAULT,
    RANK_FILE,
    RANK_ENVIRONMENT,
    RANK_ARGUMENT
};

struct option_value {
    enum option_rank rank;
    size_t n_texts;
    char **texts; /* owned */
    char origin[OPTION_ORIGIN_BYTES];
};

struct options {
    const struct option_table *table;
    struct option_value *values; /* by index of the spec */
};

/* NULL: there is no such option. */
const struct option_spec *options_find_spec(const struct option_table *table, const char *name);

#endif
