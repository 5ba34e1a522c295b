/* What the past cannot tell. */
#include <string.h>

#include "agent/core/replay.h"

static int refuse(const struct server_group *to, const char *field, const char *why,
                  struct errmsg *err)
{
    return errmsg_set(err, ERR_INVALID, "server group \"%s\": %s cannot be replayed: %s", to->name,
                      field, why);
}

#define OTHER_PROBES "other probes would have had other results"

static bool is_same_tcp(const struct tcp_check *a, const struct tcp_check *b)
{
    return a->handshake == b->handshake && a->close == b->close && a->on_timeout == b->on_timeout;
}

static bool is_same_http(const struct http_check *a, const struct http_check *b)
{
    return a->method == b->method && a->version == b->version && a->host == b->host &&
           strcmp(a->path, b->path) == 0 && strcmp(a->domain, b->domain) == 0 &&
           memcmp(&a->expect, &b->expect, sizeof a->expect) == 0;
}

static bool is_same_udp(const struct udp_check *a, const struct udp_check *b)
{
    return a->method == b->method && a->n_payload_bytes == b->n_payload_bytes &&
           a->n_expect_bytes == b->n_expect_bytes &&
           memcmp(a->payload, b->payload, sizeof a->payload) == 0 &&
           memcmp(a->expect, b->expect, sizeof a->expect) == 0;
}

static int check_probes(const struct health_check *from, const struct server_group *group,
                        struct errmsg *err)
{
    const struct health_check *to = &group->check;
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
        {!is_same_tcp(&from->tcp, &to->tcp), "check.tcp"},
        {!is_same_http(&from->http, &to->http), "check.http"},
        {!is_same_udp(&from->udp, &to->udp), "check.udp"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (rows[i].differs) {
            return refuse(group, rows[i].field, OTHER_PROBES, err);
        }
    }
    return 0;
}

int replay_check(const struct catalog_group *from, const struct server_group *to,
                 struct errmsg *err)
{
    uint32_t n_live = 0;
    int rc = from->spec.check.is_enabled || to->check.is_enabled
                 ? check_probes(&from->spec.check, to, err)
                 : 0;

    for (uint32_t i = 0; rc == 0 && i < to->n_backends; i++) {
        const struct catalog_backend *backend = catalog_backend_find(from, &to->backends[i].at);

        if (backend == NULL || backend->life == LIFE_REMOVING) {
            return refuse(to, "backends", "one that is not there was never probed", err);
        }
        if ((backend->spec.weight == 0) != (to->backends[i].weight == 0)) {
            return refuse(to, "weight", "whether it is 0 is taken as it was", err);
        }
    }
    for (uint32_t i = 0; i < from->n_backends; i++) {
        n_live += from->backends[i].life != LIFE_REMOVING;
    }
    if (rc == 0 && n_live != to->n_backends) {
        return refuse(to, "backends", "those that are there were part of what happened", err);
    }
    return rc;
}

bool replay_counts_results(const struct catalog_group *from, const struct server_group *to)
{
    return from->spec.check.healthy_threshold != to->check.healthy_threshold ||
           from->spec.check.unhealthy_threshold != to->check.unhealthy_threshold;
}
