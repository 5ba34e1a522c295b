#include "common/model/guard.h"

const char *hold_source_word(unsigned sources)
{
    return (sources & HOLD_BY_CLUSTER) != 0 ? "cluster"
           : (sources & HOLD_BY_GROUP) != 0 ? "group"
           : sources != 0                   ? "node"
                                            : "?";
}

const char *guard_word(unsigned kind)
{
    switch ((enum guard_kind)kind) {
    case GUARD_NONE:
        break;
#define GUARD_CASE(name, number, word) \
    case name:                         \
        return word;
        GUARDS(GUARD_CASE)
#undef GUARD_CASE
    }
    return "?";
}
