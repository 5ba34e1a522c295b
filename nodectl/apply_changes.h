/* What an apply changes, field by field: the objects of a set as they were before it, and the
 * difference to the documents. The cluster is asked, as a document does not say it. */
#ifndef JURY_NODECTL_APPLY_CHANGES_H
#define JURY_NODECTL_APPLY_CHANGES_H

#include <stddef.h>
#include <stdio.h>

#include <jansson.h>

#include "common/spec/spec.h"
#include "jury/v1/config.pb-c.h"
#include "nodectl/ctl.h"

/* Of more documents those of the rest are not asked for, and only "configured" is said of them. */
#define BEFORES_MAX 64

/* By document: its group, listener or settings. NULL: new, of another kind, or not known. */
struct befores {
    const struct spec_set *set; /* kept */
    void *objects[BEFORES_MAX];
};

/* befores: zeroed; befores_close in every case. What cannot be known is not told: the change itself
 * says what is wrong. But where nobody answers or nobody leads, it would only wait once more.
 * Errors: ERR_UNREACHABLE, ERR_TIMEOUT, ERR_NOLEADER. */
int befores_ask(struct ctl *ctl, const struct spec_set *set, struct befores *befores);
void befores_close(struct befores *befores);

/* ": adds 10.0.0.4:80; removes 10.0.0.3:80 (3 -> 3 backends)" of a group; nothing if they are the
 * same ones, or of another object. */
void befores_put_backends(FILE *out, const struct befores *befores, size_t index);
/* A line each for the first 12 fields that change, "    ~ backend 10.0.0.1:80: weight 0 -> 100",
 * and how many more there are; without backends that come and go. */
void befores_put_fields(FILE *out, const struct befores *befores, size_t index);
/* All of them, and the backends. */
void befores_put_all(FILE *out, const struct befores *befores, size_t index);
/* The answer, and in each of its results that is a change the fields: "changes", a list of path,
 * before and after, which is left out where it is not known. Given; NULL: no memory. */
json_t *befores_json_new(const struct befores *befores, const Jury__V1__ApplyResponse *answer);

#endif
