#include "tests/lib/kept_check.h"

#include <stdlib.h>

#include "agent/core/catalog.h"

/* So that a look for leaks finds them. */
static struct kept {
    struct kept *next;
    const struct health_check *check;
} * all;

const struct health_check *kept_check(const struct health_check *check)
{
    struct kept *kept = malloc(sizeof *kept);

    if (kept == NULL) {
        abort();
    }
    *kept = (struct kept){.next = all, .check = catalog_check_new(check)};
    all = kept;
    return kept->check;
}

struct health_check *own_check(struct target_definition *definition)
{
    static const struct health_check none;

    definition->check = kept_check(definition->check != NULL ? definition->check : &none);
    return (struct health_check *)(uintptr_t)definition->check; /* nobody else has it yet */
}
