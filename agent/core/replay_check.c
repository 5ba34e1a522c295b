/* What the past cannot tell. */
#include <stdio.h>
#include <string.h>

#include "agent/core/replay.h"

static int refuse(const struct server_group *to, const char *field, const char *why,
                  struct errmsg *err)
{
    return errmsg_set(err, ERR_INVALID, "server group \"%s\": %s cannot be replayed: %s", to->name,
                      field, why);
}

#define OTHER_PROBES "other probes would have had other results"

static bool is_same_data(const struct check_data *a, const struct check_data *b)
{
    return memcmp(a, b, sizeof *a) == 0; /* zero behind the data */
}

static bool is_same_line(const struct check_line *a, const struct check_line *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}

/* The first field in which they differ and that decides what probes see; NULL: none does. */
static const char *differing_field(const struct health_check *from, const struct health_check *to)
{
    const struct {
        bool differs;
        const char *field;
    } rows[] = {
        {from->is_enabled != to->is_enabled, "check.enabled"},
        {from->type != to->type, "check.type"},
        {from->port != to->port, "check.port"},
        {from->timeout_ms != to->timeout_ms, "check.timeout"},
        {from->interval_ms != to->interval_ms, "check.interval"},
        {from->pacing != to->pacing, "check.pacing"},
        {from->probers != to->probers, "check.probers"},
        {from->recheck != to->recheck, "check.recheck"},
        {from->source != to->source, "check.source"},
        {from->tcp.handshake != to->tcp.handshake, "check.tcp.handshake"},
        {from->tcp.close != to->tcp.close, "check.tcp.close"},
        {from->tcp.on_timeout != to->tcp.on_timeout, "check.tcp.onTimeout"},
        {from->http.method != to->http.method, "check.http.method"},
        {from->http.version != to->http.version, "check.http.version"},
        {from->http.host != to->http.host, "check.http.host"},
        {strcmp(from->http.path, to->http.path) != 0, "check.http.path"},
        {strcmp(from->http.domain, to->http.domain) != 0, "check.http.domain"},
        {memcmp(&from->http.expect, &to->http.expect, sizeof from->http.expect) != 0,
         "check.http.expect"},
        {from->udp.method != to->udp.method, "check.udp.method"},
        {!is_same_data(&from->udp.payload, &to->udp.payload), "check.udp.payload"},
        {!is_same_data(&from->udp.expect, &to->udp.expect), "check.udp.expect"},
        {!is_same_line(&from->udp.mask, &to->udp.mask), "check.udp.mask"},
        {!is_same_line(&from->tcp.send, &to->tcp.send), "check.tcp.send"},
        {!is_same_line(&from->tcp.expect, &to->tcp.expect), "check.tcp.expect"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (rows[i].differs) {
            return rows[i].field;
        }
    }
    return NULL;
}

static bool has_other_thresholds(const struct health_check *from, const struct health_check *to)
{
    return from->healthy_threshold != to->healthy_threshold ||
           from->unhealthy_threshold != to->unhealthy_threshold;
}

/* "checks.page.http.path" for "check.http.path" */
static int refuse_named(const struct server_group *to, const struct named_check *check,
                        const char *field, struct errmsg *err)
{
    char path[LIMIT_CHECK_NAME_BYTES + 64];

    snprintf(path, sizeof path, "checks.%s%s", check->name, strchr(field, '.'));
    return refuse(to, path, OTHER_PROBES, err);
}

#define OTHER_VOTES                                                                               \
    "of the other nodes' probes only the votes that they came to are known, not what each check " \
    "said"

/* A list is taken as it was: other dependencies and names make no other vote. */
static int check_named(const struct named_check *from, const struct server_group *group,
                       const struct named_check *to, struct errmsg *err)
{
    const char *field = differing_field(&from->check, &to->check);

    if (field != NULL) {
        return refuse_named(group, to, field, err);
    }
    if (group_n_local(group) > 1 && has_other_thresholds(&from->check, &to->check)) {
        char path[LIMIT_CHECK_NAME_BYTES + 64];

        snprintf(path, sizeof path, "checks.%s: healthyThreshold or unhealthyThreshold", to->name);
        return refuse(group, path, OTHER_VOTES, err);
    }
    return 0;
}

static int check_lists(const struct server_group *from, const struct server_group *to,
                       struct errmsg *err)
{
    if (group_n_local(from) != group_n_local(to) || (from->n_checks == 0) != (to->n_checks == 0)) {
        return refuse(to, to->n_checks == 0 ? "check" : "checks", OTHER_PROBES, err);
    }
    if (group_pass_k(from) != group_pass_k(to)) {
        return refuse(to, "pass", OTHER_VOTES, err);
    }
    for (unsigned i = 0; i < group_n_local(to); i++) {
        int rc = check_named(group_local_check(from, i), to, group_local_check(to, i), err);

        if (rc != 0) {
            return rc;
        }
    }
    return 0;
}

static int check_probes(const struct server_group *from, const struct server_group *to,
                        struct errmsg *err)
{
    if (from->n_checks != 0 || to->n_checks != 0) {
        return check_lists(from, to, err);
    }
    const char *field = differing_field(&from->check, &to->check);

    if (field != NULL) {
        return refuse(to, field, OTHER_PROBES, err);
    }
    if (check_is_shared(&from->check) && has_other_thresholds(&from->check, &to->check)) {
        return refuse(to, "check.healthyThreshold or check.unhealthyThreshold",
                      "with probers or recheck they decide who probes, and when", err);
    }
    return 0;
}

static int refuse_backend(const struct server_group *to, const struct endpoint *at, const char *why,
                          struct errmsg *err)
{
    char text[ENDPOINT_TEXT_BYTES];

    return errmsg_set(err, ERR_INVALID, "server group \"%s\": backend %s cannot be replayed: %s",
                      to->name, endpoint_format(at, text), why);
}

static bool is_asked_for(const struct server_group *to, const struct endpoint *at)
{
    for (uint32_t i = 0; i < to->n_backends; i++) {
        if (endpoint_compare(&to->backends[i].at, at) == 0) {
            return true;
        }
    }
    return false;
}

/* One that the change leaves out; NULL: none. */
static const struct endpoint *find_left_out(const struct catalog_group *from,
                                            const struct server_group *to)
{
    for (uint32_t i = 0; i < from->n_backends; i++) {
        const struct endpoint *at = &from->backends[i].spec.at;

        if (from->backends[i].life != LIFE_REMOVING && !is_asked_for(to, at)) {
            return at;
        }
    }
    return NULL;
}

static int check_backends(const struct catalog_group *from, const struct server_group *to,
                          struct errmsg *err)
{
    uint32_t n_live = 0;

    for (uint32_t i = 0; i < to->n_backends; i++) {
        const struct endpoint *at = &to->backends[i].at;
        const struct catalog_backend *backend = catalog_backend_find(from, at);

        if (backend == NULL || backend->life == LIFE_REMOVING) {
            return refuse_backend(to, at, "it is not in the group, and was never probed", err);
        }
        if ((backend->spec.weight == 0) != (to->backends[i].weight == 0)) {
            return refuse_backend(to, at, "its weight: whether that is 0 is taken as it was", err);
        }
    }
    for (uint32_t i = 0; i < from->n_backends; i++) {
        n_live += from->backends[i].life != LIFE_REMOVING;
    }
    const struct endpoint *left_out = n_live == to->n_backends ? NULL : find_left_out(from, to);
    return left_out == NULL
               ? 0
               : refuse_backend(to, left_out,
                                "it is missing in the document, and was part of what happened",
                                err);
}

int replay_check(const struct catalog_group *from, const struct server_group *to,
                 struct errmsg *err)
{
    int rc = from->spec.check.is_enabled || to->check.is_enabled
                 ? check_probes(&from->spec, to, err)
                 : 0;

    return rc != 0 ? rc : check_backends(from, to, err);
}

bool replay_counts_results(const struct catalog_group *from, const struct server_group *to)
{
    return has_other_thresholds(&from->spec.check, &to->check);
}
