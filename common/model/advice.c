#include "common/model/advice.h"

#include <stdio.h>
#include <string.h>

#include "common/model/profile.h"

/* In the order of the rows below; behind each the statement of the seed documents, or the case. */
enum advice_row {
    SLOW_TIMEOUT,      /* A19 */
    HOST_MISSING,      /* S107 */
    CHECK_OFF,         /* S28 */
    SOURCE_RANGE,      /* S32 */
    SOURCE_RULES,      /* S33 */
    OWN_PAGE,          /* S38 */
    RESET_LOGS,        /* S43, S44 */
    RATE_LIMITED_ICMP, /* S49 */
    CONNECTION_POOLS,  /* S96, S97 */
    HOST_CHECKED,      /* S108 */
    FEW_PROBERS,       /* N7 */
    OPTIONAL_PART      /* of the agent */
};

const struct advice advice_rows[N_ADVICE] = {
    [SLOW_TIMEOUT] = {"slow-timeout", "group.check.timeout",
                      "With check.timeout longer than check.interval a silent backend is probed "
                      "less often than the interval says, since a probe is never begun before the "
                      "last one has ended.",
                      "longer than check.interval: a silent backend is probed less often than the "
                      "interval says; better: at most the interval"},
    [HOST_MISSING] = {"host-missing", "group.check.http.host",
                      "HTTP 1.1 asks for a Host header; with host: omitted many servers answer "
                      "400. Set check.http.domain, or host: address:port.",
                      "HTTP 1.1 without a Host header: many servers answer 400; better: set "
                      "http.domain, or host: address:port"},
    [CHECK_OFF] = {"check-off", "group.check.enabled",
                   "With checks off a dead backend keeps getting flows. To spare a loaded "
                   "backend, lengthen check.interval or probe with tcp instead of http.",
                   "with checks off a dead backend keeps getting flows; better, to spare a loaded "
                   "one: a longer check.interval, or type: tcp"},
    [SOURCE_RANGE] =
        {"source-range", "node.probeSources.ipv4",
         "A packet filter on a backend must let the nodes' probe addresses in; no rule "
         "of a security group is needed for them. Backends behind a classic load "
         "balancer may expect its probes from 100.64.0.0/10: profile clb probes from the "
         "node's address in that range by itself; what is named here is used instead.",
         "outside 100.64.0.0/10: packet filters made for a classic load balancer drop "
         "its probes; better: an address of that range, or let this one in on each "
         "backend"},
    [SOURCE_RULES] = {"source-rules", "clustersettings.allowedCidrs",
                      "Open backends' service ports to your own networks only, never to 0.0.0.0/0, "
                      "and restrict the nodes' probe addresses by no rule. As here: name the "
                      "networks where backends are, not everything.",
                      "lets every address be a backend, so a wrong document has anybody's host "
                      "probed; better: your own networks only"},
    [OWN_PAGE] =
        {"own-page", "group.check.http.expect",
         "Rather than letting 4xx or 5xx pass, give the check a page of its own, such as "
         "/health, that answers 200.",
         "lets 4xx or 5xx pass: a broken service looks healthy; better: a page of its own, "
         "such as /health, that answers 200"},
    [RESET_LOGS] =
        {"reset-logs", "group.check.tcp",
         "A full handshake that ends in a reset reaches the application, which may log "
         "\"connection reset by peer\" once an interval and node; of a half-open one it "
         "hears nothing. If that disturbs, check with http or set tcp.close: fin, or let "
         "the application ignore resets that come from the nodes' addresses.",
         "full handshakes that end in a reset: the application may log \"connection "
         "reset by peer\" at each; better: type: http, handshake: half-open, or close: "
         "fin"},
    [RATE_LIMITED_ICMP] =
        {"rate-limited-icmp", "group.check.udp",
         "Linux limits how many ICMP errors it sends: under load a closed UDP "
         "port may stay silent and a dead service look healthy. With "
         "udp: {method: exchange} the service itself is asked.",
         "silence passes, and hosts limit their ICMP errors: a dead service may "
         "look healthy; better: method: exchange, or no shorter interval than the "
         "profile's"},
    [CONNECTION_POOLS] = {"connection-pools", "group.check.tcp",
                          "Connection pools, those of Java among them, may count the probes' "
                          "resets as errors; http checks or tcp.close: fin avoid it, or an "
                          "application that ignores resets that come from the nodes' addresses.",
                          "a reset each interval, far more often than by the profile: connection "
                          "pools may count them as errors; better: type: http, close: fin, or a "
                          "longer interval"},
    [HOST_CHECKED] = {"host-checked", "group.check.http.domain",
                      "If the application answers by name, set check.http.domain; without it the "
                      "probe may get the page of another site.",
                      "not set: a server that answers by name refuses the probe, or answers for "
                      "another site; better: the site's name"},
    [FEW_PROBERS] = {"few-probers", "group.check.probers",
                     "With fewer than 3 probers one node's bad path, or one node that is down, "
                     "leaves no majority of those that are left: until the others have voted, one "
                     "prober decides alone, and two can only agree or wait.",
                     "fewer than 3: one bad path leaves no majority until the others have voted; "
                     "better: 3 or more, or all"},
    [OPTIONAL_PART] = {"optional-part", "group.check.tls",
                       "An agent may be built without tls and grpc checks: nodectl node describe "
                       "says so, its probes of this group are inconclusive (LOCAL_NOT_BUILT), and "
                       "it has no vote on it.",
                       NULL},
};

static bool accepts_errors(const struct http_codes *codes)
{
    for (unsigned code = 400; code <= HTTP_CODE_MAX; code++) {
        if (http_codes_has(codes, code)) {
            return true;
        }
    }
    return false;
}

/* What servers answer that know no such site. */
static bool accepts_refusals(const struct http_codes *codes)
{
    return http_codes_has(codes, 400) || http_codes_has(codes, 403) || http_codes_has(codes, 404) ||
           http_codes_has(codes, 421);
}

static bool is_closed_by_reset(const struct health_check *check)
{
    return check->type == CHECK_TYPE_TCP && check->tcp.handshake == TCP_FULL &&
           check->tcp.close == TCP_CLOSE_RST;
}

/* So many times as often as by the profile is often: with nlb once a second. */
#define OFTEN 5

/* `usual`: the profile's check of that type. */
static bool applies_to_tcp(enum advice_row row, const struct health_check *check,
                           const struct health_check *usual)
{
    if (!is_closed_by_reset(check)) {
        return false;
    }
    bool is_usual = is_closed_by_reset(usual);

    return row == RESET_LOGS ? !is_usual
                             : is_usual && OFTEN * check->interval_ms <= usual->interval_ms;
}

static bool is_slow(const struct health_check *check, const struct health_check *usual)
{
    return check->timeout_ms > check->interval_ms &&
           (check->timeout_ms > usual->timeout_ms || check->interval_ms < usual->interval_ms);
}

static bool misses_host(const struct http_check *http)
{
    return http->version == HTTP_1_1 && http->host == HTTP_HOST_OMITTED;
}

static bool applies(enum advice_row row, const struct server_group *group,
                    const struct health_check *check)
{
    const bool is_http = check_asks_http(check);
    struct health_check usual;

    if (!check->is_enabled) {
        return row == CHECK_OFF;
    }
    profile_check_defaults((enum profile)group->profile, (enum protocol)group->protocol,
                           (enum check_type)check->type, &usual);
    switch (row) {
    case SLOW_TIMEOUT:
        return is_slow(check, &usual);
    case HOST_MISSING:
        return is_http && misses_host(&check->http);
    case OWN_PAGE:
        return is_http && accepts_errors(&check->http.expect);
    case RESET_LOGS:
    case CONNECTION_POOLS:
        return applies_to_tcp(row, check, &usual);
    case RATE_LIMITED_ICMP:
        return check_passes_by_silence(check) &&
               (check->udp.method != usual.udp.method || check->interval_ms < usual.interval_ms);
    case HOST_CHECKED:
        /* One of the two is enough to tell of a missing Host header. */
        return is_http && check->http.domain[0] == '\0' && !misses_host(&check->http) &&
               (check_is_secured(check) || accepts_refusals(&check->http.expect));
    case FEW_PROBERS:
        return check->probers != 0 && check->probers < 3;
    case OPTIONAL_PART: /* of a node: nodectl asks it */
    case CHECK_OFF:
    case SOURCE_RANGE:
    case SOURCE_RULES:
        break;
    }
    return false;
}

size_t advice_of_group(const struct server_group *group, struct advice_due ret_due[])
{
    size_t n = 0;

    for (size_t i = 0; i < N_ADVICE; i++) {
        for (unsigned c = 0; c < group_n_checks(group); c++) {
            if (applies((enum advice_row)i, group, group_check_at(group, c))) {
                ret_due[n++] = (struct advice_due){&advice_rows[i],
                                                   group->n_checks == 0 ? NULL : &group->checks[c]};
                break;
            }
        }
    }
    return n;
}

size_t advice_of_settings(const struct cluster_settings *settings, struct advice_due ret_due[])
{
    for (uint32_t i = 0; i < settings->n_allowed; i++) {
        if (settings->allowed[i].prefix_bits == 0) {
            ret_due[0] = (struct advice_due){&advice_rows[SOURCE_RULES], NULL};
            return 1;
        }
    }
    return 0;
}

size_t advice_of_node(const struct member_node *node, struct advice_due ret_due[])
{
    const struct addr *source = &node->probe_sources[0];

    if (source->family == ADDR_NONE || addr_is_shared_space(source)) {
        return 0;
    }
    ret_due[0] = (struct advice_due){&advice_rows[SOURCE_RANGE], NULL};
    return 1;
}

const char *advice_field(const struct advice_due *due, char text[ADVICE_FIELD_BYTES])
{
    const char *field = strchr(due->row->path, '.') + 1;

    if (due->check == NULL) {
        snprintf(text, ADVICE_FIELD_BYTES, "%s", field);
    } else {
        snprintf(text, ADVICE_FIELD_BYTES, "check %s: %s", due->check->name,
                 strchr(field, '.') + 1);
    }
    return text;
}
