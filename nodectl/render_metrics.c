/* Text for Prometheus (its exposition format 0.0.4).
 *
 * Of each backend two series, with group and address as labels and never a reason or a state: what
 * a label says must not change with the backend's health. */
#include <inttypes.h>
#include <string.h>

#include "nodectl/render.h"

static void put_escaped(FILE *out, const char *text, bool is_label)
{
    for (const char *at = text; *at != '\0'; at++) {
        if (*at == '\n') {
            fputs("\\n", out);
        } else if (*at == '\\' || (*at == '"' && is_label)) {
            fprintf(out, "\\%c", *at);
        } else {
            fputc(*at, out);
        }
    }
}

static void put_head(FILE *out, const char *name, const char *type, const char *help)
{
    fprintf(out, "# HELP jury_%s ", name);
    put_escaped(out, help, false);
    fprintf(out, "\n# TYPE jury_%s %s\n", name, type);
}

/* --- counters --- */

static bool ends_with_total(const char *name)
{
    size_t n_bytes = strlen(name);

    return n_bytes >= 6 && strcmp(name + n_bytes - 6, "_total") == 0;
}

/* All of one name stand together, whatever came between them. */
static void put_counter(FILE *out, const Jury__V1__ListCountersResponse *counters, size_t first)
{
    const char *name = counters->counters[first]->name;
    char total[RENDER_TEXT_BYTES];

    for (size_t i = 0; i < first; i++) {
        if (strcmp(counters->counters[i]->name, name) == 0) {
            return; /* it stood there */
        }
    }
    snprintf(total, sizeof total, "%.120s%s", name, ends_with_total(name) ? "" : "_total");
    put_head(out, total, "counter", counters->counters[first]->help);
    for (size_t i = first; i < counters->n_counters; i++) {
        const Jury__V1__Counter *counter = counters->counters[i];

        if (strcmp(counter->name, name) == 0) {
            fprintf(out, "jury_%s", total);
            if (counter->label[0] != '\0') {
                fputs("{of=\"", out);
                put_escaped(out, counter->label, true);
                fputs("\"}", out);
            }
            fprintf(out, " %" PRIu64 "\n", counter->value);
        }
    }
}

/* --- backends --- */

typedef bool (*path_value)(const Jury__V1__ProbePath *path, double *ret_value);

static bool response_time_of(const Jury__V1__ProbePath *path, double *ret_value)
{
    if (path->response_time == NULL) {
        return false;
    }
    *ret_value = (double)path->response_time->seconds + path->response_time->nanos / 1e9;
    return true;
}

static bool loss_of(const Jury__V1__ProbePath *path, double *ret_value)
{
    if (path->n_probes == 0) {
        return false;
    }
    *ret_value = (double)path->n_lost / path->n_probes;
    return true;
}

static void put_path(FILE *out, const char *name, const Jury__V1__BackendRef *backend,
                     const char *check, double value)
{
    char text[RENDER_TEXT_BYTES];

    fprintf(out, "jury_%s{group=\"", name);
    put_escaped(out, backend->group, true);
    fprintf(out, "\",backend=\"%s\"", render_endpoint(backend->address, backend->port, text));
    if (check[0] != '\0') {
        fputs(",check=\"", out);
        put_escaped(out, check, true);
        fputc('"', out);
    }
    fprintf(out, "} %.6g\n", value);
}

static void put_paths(FILE *out, const Jury__V1__ListVerdictsResponse *verdicts, const char *name,
                      const char *help, path_value value_of)
{
    bool has_head = false;

    for (size_t i = 0; i < verdicts->n_verdicts; i++) {
        const Jury__V1__BackendVerdict *verdict = verdicts->verdicts[i];

        for (size_t j = 0; verdict->backend != NULL && j < verdict->n_paths; j++) {
            double value;

            if (value_of(verdict->paths[j], &value)) {
                if (!has_head) {
                    put_head(out, name, "gauge", help);
                    has_head = true;
                }
                put_path(out, name, verdict->backend, verdict->paths[j]->check, value);
            }
        }
    }
}

void render_metrics(struct ctl *ctl, const Jury__V1__ListCountersResponse *counters,
                    const Jury__V1__ListVerdictsResponse *verdicts)
{
    for (size_t i = 0; i < counters->n_counters; i++) {
        put_counter(ctl->out, counters, i);
    }
    put_paths(
        ctl->out, verdicts, "probe_response_time_seconds",
        "round trip of this node's probes that passed by an answer, smoothed: a new one counts "
        "for an eighth",
        response_time_of);
    put_paths(
        ctl->out, verdicts, "probe_loss_ratio",
        "part of the last 30 probes that wanted a reply which got none at all within the timeout",
        loss_of);
}
