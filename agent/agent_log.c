/* The engine's events as lines of the log, one each. Verdicts, groups, alarms always; opinions of
 * this node at debug, since each verdict names them. */
#include <stdio.h>

#include "agent/agent_internal.h"
#include "agent/core/engine_view.h"
#include "agent/core/events.h"
#include "common/base/log.h"
#include "common/base/units.h"
#include "common/model/doubt.h"
#include "common/model/names.h"

#define LOG_EVENTS_PER_STEP 1000 /* of one step; a mass failure is summed up behind that */
#define VOTES_BYTES 512
#define PROBED_BYTES (ENDPOINT_TEXT_BYTES + 8)

/* "2:fail:CONNECT_TIMEOUT,3:pass" */
static void format_votes(const struct event *event, char text[VOTES_BYTES])
{
    size_t n = 0;

    text[0] = '\0';
    for (uint8_t i = 0; i < event->n_votes && n < VOTES_BYTES - 64; i++) {
        const struct event_vote *vote = &event->votes[i];

        n += (size_t)snprintf(text + n, VOTES_BYTES - n, "%s%llu:%s%s%s", i > 0 ? "," : "",
                              (unsigned long long)vote->node_id,
                              opinion_word((enum opinion)vote->opinion),
                              vote->reason != REASON_NONE ? ":" : "",
                              vote->reason != REASON_NONE ? probe_reason_word(vote->reason) : "");
    }
}

/* " probed=10.0.0.1:81", or nothing when that is the backend's own address */
static const char *probed_text(const struct event *event, char text[PROBED_BYTES])
{
    char at[ENDPOINT_TEXT_BYTES];

    text[0] = '\0';
    if (event->probed.addr.family != ADDR_NONE) {
        snprintf(text, PROBED_BYTES, " probed=%s", endpoint_format(&event->probed, at));
    }
    return text;
}

#define CHECK_BYTES (LIMIT_CHECK_NAME_BYTES + 8)

/* " check=page", of one of several. */
static const char *check_text(const struct event *event, char text[CHECK_BYTES])
{
    snprintf(text, CHECK_BYTES, "%s%s", event->check[0] != '\0' ? " check=" : "", event->check);
    return text;
}

static void log_verdict(const struct event *event)
{
    char at[ENDPOINT_TEXT_BYTES], votes[VOTES_BYTES], probed[PROBED_BYTES], check[CHECK_BYTES];

    format_votes(event, votes);
    log_event(LOG_LEVEL_INFO, "verdict_changed",
              "group=%s backend=%s%s%s from=%s to=%s reason=%s http_status=%u votes_fail=%u "
              "votes_pass=%u counted=%u observers=%u by=%s since_first_fail_ms=%llu revision=%llu",
              event->group, endpoint_format(&event->backend, at), probed_text(event, probed),
              check_text(event, check), health_state_word((enum health_state)event->from),
              health_state_word((enum health_state)event->to), probe_reason_word(event->reason),
              event->http_status, event->n_fail, event->n_pass, event->n_counted,
              event->n_observers, votes,
              (unsigned long long)(event->since_first_fail_ns / NS_PER_MS),
              (unsigned long long)event->revision);
}

static void log_opinion(const struct event *event)
{
    char at[ENDPOINT_TEXT_BYTES], probed[PROBED_BYTES], check[CHECK_BYTES];

    log_event(LOG_LEVEL_DEBUG, "opinion_changed",
              "group=%s backend=%s%s%s from=%s to=%s reason=%s http_status=%u", event->group,
              endpoint_format(&event->backend, at), probed_text(event, probed),
              check_text(event, check), opinion_word((enum opinion)event->from),
              opinion_word((enum opinion)event->to), probe_reason_word(event->reason),
              event->http_status);
}

static void log_doubt(const struct event *event)
{
    char causes[DOUBT_TEXT_BYTES];

    log_event(event->to != 0 ? LOG_LEVEL_WARNING : LOG_LEVEL_INFO, "self_doubt",
              "suspect=0x%x before=0x%x score=%u causes=%s", event->to, event->from,
              event->doubt_score, doubt_causes_format(event->doubt_causes, causes));
}

static void log_group(const struct event *event)
{
    enum group_state to = (enum group_state)event->to;
    bool is_bad = to == GROUP_FAIL_OPEN || to == GROUP_CLOSED;

    log_event(is_bad ? LOG_LEVEL_WARNING : LOG_LEVEL_INFO, "group_changed",
              "group=%s from=%s to=%s", event->group,
              group_state_word((enum group_state)event->from), group_state_word(to));
}

#define BY_BYTES (4 * LIMIT_NAME_BYTES)

/* " by=NAME", or nothing. */
static const char *by_text(const struct event *event, char by[BY_BYTES])
{
    char quoted[BY_BYTES - 8];

    if (event->actor[0] == '\0') {
        return "";
    }
    snprintf(by, BY_BYTES, " by=%s", log_quote(quoted, sizeof quoted, event->actor));
    return by;
}

static void log_guard(const struct event *event)
{
    char by[BY_BYTES];
    bool is_hold = event->guard == GUARD_HOLD;

    log_event(event->to ? LOG_LEVEL_WARNING : LOG_LEVEL_INFO, "guard_changed",
              "guard=%s group=%s to=%s%s%s%s", guard_word(event->guard),
              event->group[0] != '\0' ? event->group : "all", guard_change_word(event->to),
              is_hold ? " source=" : "", is_hold ? hold_source_word(event->hold_source) : "",
              by_text(event, by));
}

static void log_held(const struct event *event)
{
    char at[ENDPOINT_TEXT_BYTES], by[BY_BYTES];

    if (event->n_backends > 0) {
        snprintf(at, sizeof at, "%u-more", event->n_backends);
    } else {
        endpoint_format(&event->backend, at);
    }
    log_event(event->to ? LOG_LEVEL_WARNING : LOG_LEVEL_INFO, "held_changed",
              "group=%s backend=%s held=%s%s%s%s", event->group, at, event->to ? "yes" : "no",
              event->to ? " source=" : "", event->to ? hold_source_word(event->hold_source) : "",
              by_text(event, by));
}

static void log_dependency(const struct event *event)
{
    char at[ENDPOINT_TEXT_BYTES];

    log_event(event->to == HEALTH_UNHEALTHY ? LOG_LEVEL_WARNING : LOG_LEVEL_INFO,
              "dependency_changed", "group=%s backend=%s check=%s from=%s to=%s reason=%s",
              event->group, endpoint_format(&event->backend, at), event->check,
              health_state_word((enum health_state)event->from),
              health_state_word((enum health_state)event->to), probe_reason_word(event->reason));
}

static void log_node(const struct event *event)
{
    bool is_lost = event->to != 0;

    log_event(is_lost ? LOG_LEVEL_WARNING : LOG_LEVEL_INFO, is_lost ? "node_lost" : "node_heard",
              "node=%llu silent_ms=%llu untold=%u", (unsigned long long)event->node_id,
              (unsigned long long)(event->span_ns / NS_PER_MS), event->n_untold);
}

static void log_leader(const struct event *event)
{
    bool is_none = event->to != 0;

    log_event(is_none ? LOG_LEVEL_WARNING : LOG_LEVEL_INFO, "leader_changed",
              "leader=%llu before=%llu none_ms=%llu nodes_heard=%u nodes=%u untold=%u",
              is_none ? 0ULL : (unsigned long long)event->node_id,
              (unsigned long long)event->before_id,
              (unsigned long long)(event->span_ns / NS_PER_MS), event->n_counted,
              event->n_observers, event->n_untold);
}

static void log_few_votes(const struct event *event)
{
    log_event(event->to != 0 ? LOG_LEVEL_WARNING : LOG_LEVEL_INFO,
              event->to != 0 ? "votes_too_few" : "votes_enough",
              "counted=%u observers=%u needed=%u for_ms=%llu untold=%u", event->n_counted,
              event->n_observers, event->n_needed, (unsigned long long)(event->span_ns / NS_PER_MS),
              event->n_untold);
}

static void log_one(const struct event *event)
{
    char at[ENDPOINT_TEXT_BYTES];
    char by[BY_BYTES];

    switch ((enum event_kind)event->kind) {
    case EVENT_VERDICT_CHANGED:
        log_verdict(event);
        return;
    case EVENT_OPINION_CHANGED:
        log_opinion(event);
        return;
    case EVENT_GROUP_CHANGED:
        log_group(event);
        return;
    case EVENT_REACHABLE_CHANGED:
        log_event(LOG_LEVEL_INFO, "reachable_changed", "group=%s backend=%s reachable=%s",
                  event->group, endpoint_format(&event->backend, at),
                  event->to == 0 ? "yes" : "no");
        return;
    case EVENT_OBSERVERS_CHANGED:
        log_event(LOG_LEVEL_INFO, "observers_changed", "from=%u to=%u", event->from, event->to);
        return;
    case EVENT_CATALOG_ADOPTED:
        log_event(LOG_LEVEL_INFO, "catalog_adopted", "revision=%llu%s",
                  (unsigned long long)event->revision, by_text(event, by));
        return;
    case EVENT_CATALOGS_DIFFER:
        log_event(LOG_LEVEL_ERROR, "catalogs_differ",
                  "node=%llu revision=%llu text=\"that node has another catalog at the same "
                  "revision; its votes are refused\"",
                  (unsigned long long)event->node_id, (unsigned long long)event->revision);
        return;
    case EVENT_PEER_EPOCH:
        log_event(LOG_LEVEL_INFO, "peer_started", "node=%llu", (unsigned long long)event->node_id);
        return;
    case EVENT_DRAIN_DONE:
        log_event(LOG_LEVEL_INFO, "drain_done", "group=%s backend=%s", event->group,
                  endpoint_format(&event->backend, at));
        return;
    case EVENT_ADMIN_CHANGED:
        log_event(LOG_LEVEL_INFO, "admin_changed", "group=%s backend=%s from=%s to=%s%s",
                  event->group, endpoint_format(&event->backend, at),
                  names_word(&names_admin_state, event->from),
                  names_word(&names_admin_state, event->to), by_text(event, by));
        return;
    case EVENT_CERTIFICATE:
        log_event(event->to != 0 ? LOG_LEVEL_WARNING : LOG_LEVEL_INFO, "certificate",
                  "group=%s backend=%s ends_soon=%s", event->group,
                  endpoint_format(&event->backend, at), event->to != 0 ? "yes" : "no");
        return;
    case EVENT_PROBE_BUDGET:
        log_event(event->to != 0 ? LOG_LEVEL_WARNING : LOG_LEVEL_INFO, "probe_budget",
                  "delays=%s delay_max_ms=%llu", event->to != 0 ? "yes" : "no",
                  (unsigned long long)(event->delay_ns / NS_PER_MS));
        return;
    case EVENT_DEPENDENCY_CHANGED:
        log_dependency(event);
        return;
    case EVENT_PEER_LOST:
        log_node(event);
        return;
    case EVENT_LEADER_CHANGED:
        log_leader(event);
        return;
    case EVENT_FEW_VOTES:
        log_few_votes(event);
        return;
    case EVENT_SELF_DOUBT:
        log_doubt(event);
        return;
    case EVENT_GUARD_CHANGED:
        log_guard(event);
        return;
    case EVENT_HELD_CHANGED:
        log_held(event);
        return;
    case EVENT_NONE:
        return;
    }
}

void agent_log_events(struct agent *agent, uint64_t first, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        const struct event *event = engine_event_at(agent->engine, first + i);

        if (i == LOG_EVENTS_PER_STEP) {
            log_event(LOG_LEVEL_WARNING, "events_not_logged", "n=%u text=\"see nodectl events\"",
                      n - i);
            return;
        }
        if (event != NULL) {
            log_one(event);
        }
    }
}
