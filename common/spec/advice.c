#include "common/spec/advice.h"

/* In the order of the rows below; behind each the statement of the seed documents, or the case. */
enum advice_row {
    SLOW_TIMEOUT,      /* A19 */
    HOST_MISSING,      /* S107 */
    CHECK_OFF,         /* S28 */
    SOURCE_RANGE,      /* S32 */
    SOURCE_RULES,      /* S33 */
    OWN_PAGE,          /* S38 */
    RESET_LOGS,        /* S43 */
    QUIET_PROBES,      /* S44 */
    RATE_LIMITED_ICMP, /* S49 */
    CONNECTION_POOLS,  /* S96, S97 */
    HOST_CHECKED,      /* S108 */
    FEW_PROBERS,       /* N7 */
    OPTIONAL_PART      /* of the agent */
};

const struct spec_advice spec_advice[SPEC_N_ADVICE] = {
    [SLOW_TIMEOUT] = {"slow-timeout", "group.check.timeout", true,
                      "With check.timeout longer than check.interval a silent backend is probed "
                      "less often than the interval says, since a probe is never begun before the "
                      "last one has ended."},
    [HOST_MISSING] = {"host-missing", "group.check.http.host", true,
                      "HTTP 1.1 asks for a Host header; with host: omitted many servers answer "
                      "400. Set check.http.domain, or host: address:port."},
    [CHECK_OFF] = {"check-off", "group.check.enabled", false,
                   "With checks off a dead backend keeps getting flows. To spare a loaded "
                   "backend, lengthen check.interval or probe with tcp instead of http."},
    [SOURCE_RANGE] = {"source-range", "group.check.source", false,
                      "Profile clb: probes of the original come from 100.64.0.0/10. No rule of a "
                      "security group is needed for them, but a packet filter on the backend must "
                      "let them in; here they come from the nodes' own addresses."},
    [SOURCE_RULES] = {"source-rules", "group.check.source", false,
                      "Profile clb: open service ports to your own network only, never to "
                      "0.0.0.0/0, and leave the nodes' probe addresses out of such rules."},
    [OWN_PAGE] = {"own-page", "group.check.http.expect", false,
                  "Rather than letting 4xx or 5xx pass, give the check a page of its own, such as "
                  "/health, that answers 200."},
    [RESET_LOGS] = {"reset-logs", "group.check.tcp", false,
                    "A tcp probe ends in a reset: the application may log \"connection reset by "
                    "peer\" once an interval and node."},
    [QUIET_PROBES] = {"quiet-probes", "group.check.tcp", false,
                      "If resets in the backend's log disturb, check with http, or let the "
                      "application ignore resets that come from the nodes' addresses."},
    [RATE_LIMITED_ICMP] = {"rate-limited-icmp", "group.check.udp", false,
                           "Linux limits how many ICMP errors it sends: under load a closed UDP "
                           "port may stay silent and a dead service look healthy. With "
                           "udp: {method: exchange} the service itself is asked."},
    [CONNECTION_POOLS] = {"connection-pools", "group.check.tcp", false,
                          "Connection pools, those of Java among them, may count the probes' "
                          "resets as errors; http checks avoid it."},
    [HOST_CHECKED] = {"host-checked", "group.check.http.domain", false,
                      "If the application answers by name, set check.http.domain; without it the "
                      "probe may get the page of another site."},
    [FEW_PROBERS] = {"few-probers", "group.check.probers", true,
                     "With fewer than 3 probers one node's bad path, or one node that is down, "
                     "leaves no majority of those that are left: until the others have voted, one "
                     "prober decides alone, and two can only agree or wait."},
    [OPTIONAL_PART] =
        {"optional-part", "group.check.tls", false,
         "An agent may be built without tls and grpc checks: nodectl node describe says so, its "
         "probes of this group are inconclusive (LOCAL_NOT_BUILT), and it has no "
         "vote on it."},
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

static bool applies(enum advice_row row, const struct server_group *group,
                    const struct health_check *check)
{
    const bool is_http = check->is_enabled && check_asks_http(check);
    const bool is_tcp = check->is_enabled && check->type == CHECK_TYPE_TCP;

    switch (row) {
    case SLOW_TIMEOUT:
        return check->is_enabled && check->timeout_ms > check->interval_ms;
    case HOST_MISSING:
        return is_http && check->http.version == HTTP_1_1 && check->http.host == HTTP_HOST_OMITTED;
    case CHECK_OFF:
        return !check->is_enabled;
    case SOURCE_RANGE:
    case SOURCE_RULES:
        return check->is_enabled && group->profile == PROFILE_CLB;
    case OWN_PAGE:
        return is_http && accepts_errors(&check->http.expect);
    case RESET_LOGS:
    case QUIET_PROBES:
        return is_tcp && check->tcp.close == TCP_CLOSE_RST;
    case RATE_LIMITED_ICMP:
        return check->is_enabled && check_passes_by_silence(check);
    case CONNECTION_POOLS:
        return is_tcp && check->tcp.close == TCP_CLOSE_RST && group->profile == PROFILE_NLB;
    case HOST_CHECKED:
        return is_http && check->http.domain[0] == '\0';
    case FEW_PROBERS:
        return check->is_enabled && check->probers != 0 && check->probers < 3;
    case OPTIONAL_PART:
        return check->is_enabled &&
               (check->type == CHECK_TYPE_TLS || check->type == CHECK_TYPE_GRPC);
    }
    return false;
}

size_t spec_advise(const struct spec_document *document, const struct spec_advice *ret_rows[])
{
    size_t n = 0;

    if (document->kind != SPEC_GROUP) {
        return 0;
    }
    for (size_t i = 0; i < SPEC_N_ADVICE; i++) {
        bool is_due = false;

        for (unsigned c = 0; c < group_n_checks(document->u.group); c++) {
            is_due = is_due || applies((enum advice_row)i, document->u.group,
                                       group_check_at(document->u.group, c));
        }
        if (is_due) {
            ret_rows[n++] = &spec_advice[i];
        }
    }
    return n;
}
