/* The metrics of a node: its counters, and of each backend what it is and what the node's probes
 * tell of the way to it. */
#include "nodectl/render_metrics.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "common/model/reason.h"

/* --- the format --- */

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

void metric_head(FILE *out, const char *name, const char *type, const char *help)
{
    fprintf(out, "# HELP jury_%s ", name);
    put_escaped(out, help, false);
    fprintf(out, "\n# TYPE jury_%s %s\n", name, type);
}

static void put_name(FILE *out, const char *name, const struct metric_label labels[], size_t n)
{
    const char *before = "{";

    fprintf(out, "jury_%s", name);
    for (size_t i = 0; i < n; i++) {
        if (labels[i].value[0] != '\0') {
            fprintf(out, "%s%s=\"", before, labels[i].name);
            put_escaped(out, labels[i].value, true);
            fputc('"', out);
            before = ",";
        }
    }
    fputs(before[0] == ',' ? "} " : " ", out);
}

void metric_sample(FILE *out, const char *name, const struct metric_label labels[], size_t n,
                   double value)
{
    put_name(out, name, labels, n);
    fprintf(out, "%.15g\n", value);
}

void metric_gauge(FILE *out, const char *name, const char *help, double value)
{
    metric_head(out, name, "gauge", help);
    metric_sample(out, name, NULL, 0, value);
}

char *metric_word(const char *name, size_t n_bytes, char text[RENDER_TEXT_BYTES])
{
    size_t n = 0;

    for (const char *at = strlen(name) > n_bytes ? name + n_bytes : name;
         *at != '\0' && n < RENDER_TEXT_BYTES - 1; at++) {
        text[n++] = (char)tolower((unsigned char)*at);
    }
    text[n] = '\0';
    return text;
}

/* --- counters --- */

/* Names of the registry end in a unit that is handy in the program; Prometheus' are base units. */
struct unit {
    const char *suffix;
    double per_second;
};
static const struct unit units[] = {{"_ns", 1e9}, {"_us", 1e6}, {"_ms", 1e3}};

static bool ends_with(const char *name, const char *suffix)
{
    size_t n_bytes = strlen(name), n_suffix = strlen(suffix);

    return n_bytes >= n_suffix && strcmp(name + n_bytes - n_suffix, suffix) == 0;
}

/* NULL: it has none. */
static const struct unit *unit_of(const char *name)
{
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (ends_with(name, units[i].suffix)) {
            return &units[i];
        }
    }
    return NULL;
}

static void name_metric(const Jury__V1__Counter *counter, char name[RENDER_TEXT_BYTES])
{
    const struct unit *unit = unit_of(counter->name);
    size_t n = strlen(counter->name) - (unit != NULL ? strlen(unit->suffix) : 0);
    bool has_total = counter->is_gauge || ends_with(counter->name, "_total");

    snprintf(name, RENDER_TEXT_BYTES, "%.*s%s%s", (int)(n < 120 ? n : 120), counter->name,
             unit != NULL ? "_seconds" : "", has_total ? "" : "_total");
}

/* What the label of a counter says. */
static const char *label_name(const char *name)
{
    if (strcmp(name, "probe_results") == 0 || strcmp(name, "zap_refused") == 0) {
        return "reason";
    }
    return strncmp(name, "loop_", 5) == 0 ? "loop" : "of";
}

/* "pass" of "ok"; empty for other counters, and reasons that a newer agent may have. */
static const char *result_word(const Jury__V1__Counter *counter)
{
    if (strcmp(counter->name, "probe_results") != 0) {
        return "";
    }
    switch (probe_reason_class(probe_reason_find(counter->label))) {
    case PROBE_PASS:
        return "pass";
    case PROBE_FAIL:
        return "fail";
    case PROBE_INCONCLUSIVE:
        return "inconclusive";
    case PROBE_CLASS_NONE:
        break;
    }
    return "";
}

static void put_value(FILE *out, const Jury__V1__Counter *counter, const char *name)
{
    const struct unit *unit = unit_of(counter->name);

    put_name(out, name,
             (const struct metric_label[]){{label_name(counter->name), counter->label},
                                           {"result", result_word(counter)}},
             2);
    if (unit == NULL) {
        fprintf(out, "%" PRIu64 "\n", counter->value); /* each digit of it */
    } else {
        fprintf(out, "%.15g\n", (double)counter->value / unit->per_second);
    }
}

/* All of one name stand together, whatever came between them. */
static void put_counter(FILE *out, const Jury__V1__ListCountersResponse *counters, size_t first)
{
    const Jury__V1__Counter *counter = counters->counters[first];
    char name[RENDER_TEXT_BYTES];

    for (size_t i = 0; i < first; i++) {
        if (strcmp(counters->counters[i]->name, counter->name) == 0) {
            return; /* it stood there */
        }
    }
    name_metric(counter, name);
    metric_head(out, name, counter->is_gauge ? "gauge" : "counter", counter->help);
    for (size_t i = first; i < counters->n_counters; i++) {
        if (strcmp(counters->counters[i]->name, counter->name) == 0) {
            put_value(out, counters->counters[i], name);
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

static void put_backend(FILE *out, const char *name, const Jury__V1__BackendStatus *status,
                        const char *check, double value)
{
    const Jury__V1__Backend *backend = status->backend;
    char text[RENDER_TEXT_BYTES];

    metric_sample(out, name,
                  (const struct metric_label[]){
                      {"group", status->group},
                      {"backend", render_endpoint(backend->address, backend->port, text)},
                      {"check", check}},
                  3, value);
}

static void put_paths(FILE *out, const Jury__V1__ListBackendsResponse *backends, const char *name,
                      const char *help, path_value value_of)
{
    bool has_head = false;

    for (size_t i = 0; i < backends->n_backends; i++) {
        const Jury__V1__BackendStatus *status = backends->backends[i];

        for (size_t j = 0; status->backend != NULL && j < status->n_paths; j++) {
            double value;

            if (value_of(status->paths[j], &value)) {
                if (!has_head) {
                    metric_head(out, name, "gauge", help);
                    has_head = true;
                }
                put_backend(out, name, status, status->paths[j]->check, value);
            }
        }
    }
}

/* A boolean each, and not one number: a maintenance is no bad verdict, and a backend that is
 * drained may be healthy. */
typedef double (*backend_value)(const Jury__V1__BackendStatus *status);

static bool has_state(const Jury__V1__BackendStatus *status, Jury__V1__HealthState state)
{
    return status->verdict != NULL && status->verdict->state == state;
}

static double is_healthy(const Jury__V1__BackendStatus *status)
{
    return has_state(status, JURY__V1__HEALTH_STATE__HEALTH_STATE_HEALTHY) ||
           has_state(status, JURY__V1__HEALTH_STATE__HEALTH_STATE_UNAVAILABLE);
}

static double is_unhealthy(const Jury__V1__BackendStatus *status)
{
    return has_state(status, JURY__V1__HEALTH_STATE__HEALTH_STATE_UNHEALTHY);
}

static double is_initial(const Jury__V1__BackendStatus *status)
{
    return has_state(status, JURY__V1__HEALTH_STATE__HEALTH_STATE_INITIAL);
}

static double is_draining(const Jury__V1__BackendStatus *status)
{
    return status->backend->admin_state == JURY__V1__ADMIN_STATE__ADMIN_STATE_DRAINING;
}

static double is_in_maintenance(const Jury__V1__BackendStatus *status)
{
    return status->backend->admin_state == JURY__V1__ADMIN_STATE__ADMIN_STATE_MAINTENANCE;
}

static double weight_of(const Jury__V1__BackendStatus *status)
{
    return status->backend->weight;
}

/* Of those that are members: one that was removed is none of the group's any more. */
static bool is_member(const Jury__V1__BackendStatus *status)
{
    return status->backend != NULL && status->life != JURY__V1__BACKEND_LIFE__BACKEND_LIFE_REMOVING;
}

static void put_backend_value(FILE *out, const Jury__V1__ListBackendsResponse *backends,
                              const char *name, const char *help, backend_value value_of)
{
    uint32_t n = 0;

    for (size_t i = 0; i < backends->n_backends && n < METRICS_BACKENDS_MAX; i++) {
        if (is_member(backends->backends[i])) {
            if (n++ == 0) {
                metric_head(out, name, "gauge", help);
            }
            put_backend(out, name, backends->backends[i], "", value_of(backends->backends[i]));
        }
    }
}

static void put_backends(FILE *out, const Jury__V1__ListBackendsResponse *backends)
{
    uint32_t n = 0;

    for (size_t i = 0; i < backends->n_backends; i++) {
        n += is_member(backends->backends[i]);
    }
    metric_gauge(out, "backends_left_out",
                 "backends beyond the first 10000, which have no verdict, admin state and weight "
                 "here; their groups count them",
                 n > METRICS_BACKENDS_MAX ? n - METRICS_BACKENDS_MAX : 0);
    put_backend_value(out, backends, "backend_healthy",
                      "1 while this node's verdict is healthy, or its checks are off", is_healthy);
    put_backend_value(
        out, backends, "backend_unhealthy",
        "1 while this node's verdict is unhealthy; 0 in maintenance and while nothing "
        "is known",
        is_unhealthy);
    put_backend_value(out, backends, "backend_initial",
                      "1 while the votes have not settled its verdict yet", is_initial);
    put_backend_value(out, backends, "backend_draining",
                      "1 while an operator drains it: probed, no new flows", is_draining);
    put_backend_value(out, backends, "backend_maintenance",
                      "1 while it is in maintenance: not probed, no flows", is_in_maintenance);
    put_backend_value(out, backends, "backend_weight",
                      "its share of new flows as it is configured, 0 to 100", weight_of);
}

void render_metrics(struct ctl *ctl, const struct metrics *metrics)
{
    metrics_put_status(ctl->out, metrics->status);
    metrics_put_groups(ctl->out, metrics->groups);
    put_backends(ctl->out, metrics->backends);
    for (size_t i = 0; i < metrics->counters->n_counters; i++) {
        put_counter(ctl->out, metrics->counters, i);
    }
    put_paths(
        ctl->out, metrics->backends, "probe_response_time_seconds",
        "round trip of this node's probes that passed by an answer, smoothed: a new one counts "
        "for an eighth",
        response_time_of);
    put_paths(
        ctl->out, metrics->backends, "probe_loss_ratio",
        "part of the last 30 probes that wanted a reply which got none at all within the timeout",
        loss_of);
}
