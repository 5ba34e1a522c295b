/* Prometheus' text format 0.0.4, as far as it is used here. Private to nodectl/render_metrics*.c.
 *
 * A family has its HELP and TYPE once, before its samples, and those stand together. Names begin
 * with jury_, which is added here, and end with their unit in its base form. What a label says is
 * no state or reason of a backend: it must not change with its health. */
#ifndef JURY_NODECTL_RENDER_METRICS_H
#define JURY_NODECTL_RENDER_METRICS_H

#include "nodectl/render.h"

struct metric_label {
    const char *name;
    const char *value; /* any text */
};

/* type: "counter" or "gauge". */
void metric_head(FILE *out, const char *name, const char *type, const char *help);
/* Labels without a value are left out. */
void metric_sample(FILE *out, const char *name, const struct metric_label labels[], size_t n,
                   double value);
/* A gauge of one sample without labels. */
void metric_gauge(FILE *out, const char *name, const char *help, double value);

/* "FINDING_KIND_FEW_VOTES" without its first n_bytes, as "few_votes". Returns text. */
char *metric_word(const char *name, size_t n_bytes, char text[RENDER_TEXT_BYTES]);

/* render_metrics_cluster.c */
void metrics_put_groups(FILE *out, const Jury__V1__ListGroupsResponse *groups);
void metrics_put_status(FILE *out, const Jury__V1__GetStatusResponse *status);

#endif
