/* Events of this node: the engine's log with wall times, words and one sentence each. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "agent/core/engine_view.h"
#include "agent/rpc/handlers_part.h"
#include "agent/rpc/rpc_internal.h"
#include "common/model/doubt.h"
#include "common/model/names.h"
#include "common/wire/object.h"
#include "jury/v1/event.pb-c.h"

static const char *state_word(const struct event *event, uint8_t value)
{
    switch ((enum event_kind)event->kind) {
    case EVENT_VERDICT_CHANGED:
    case EVENT_DEPENDENCY_CHANGED:
        return health_state_word((enum health_state)value);
    case EVENT_GROUP_CHANGED:
        return group_state_word((enum group_state)value);
    case EVENT_OPINION_CHANGED:
        return opinion_word((enum opinion)value);
    case EVENT_REACHABLE_CHANGED:
        return value == 0 ? "reachable" : "unreachable";
    case EVENT_SELF_DOUBT:
        return value == 0 ? "trusted" : "suspect";
    case EVENT_GUARD_CHANGED:
        return guard_change_word(value);
    case EVENT_HELD_CHANGED:
        return value == 0 ? "free" : "held";
    case EVENT_ADMIN_CHANGED:
        return names_word(&names_admin_state, value);
    case EVENT_PROBE_BUDGET:
        return value == 0 ? "in-time" : "delayed";
    case EVENT_CERTIFICATE:
        return value == 0 ? "valid" : "ends-soon";
    case EVENT_PEER_LOST:
        return value == 0 ? "heard" : "lost";
    case EVENT_LEADER_CHANGED:
        return value == 0 ? "known" : "none";
    case EVENT_FEW_VOTES:
        return value == 0 ? "enough" : "too-few";
    case EVENT_NONE:
    case EVENT_OBSERVERS_CHANGED:
    case EVENT_CATALOG_ADOPTED:
    case EVENT_CATALOGS_DIFFER:
    case EVENT_PEER_EPOCH:
    case EVENT_DRAIN_DONE:
        break;
    }
    return "";
}

/* "web 10.0.0.1:80" or "web". */
static char *subject(const struct view *view, const struct event *event)
{
    char text[ENDPOINT_TEXT_BYTES], probed[ENDPOINT_TEXT_BYTES];

    if (event->backend.addr.family == ADDR_NONE) {
        return wire_text(view->arena, event->group);
    }
    endpoint_format(&event->backend, text);
    if (event->probed.addr.family != ADDR_NONE) {
        return wire_format(view->arena, "%s %s (probed at %s)", event->group, text,
                           endpoint_format(&event->probed, probed));
    }
    return wire_format(view->arena, "%s %s", event->group, text);
}

/* "HTTP_CODE_NOT_MATCH (503)" */
static const char *reason_text(const struct view *view, const struct event *event)
{
    const char *word = probe_reason_word(event->reason);
    const char *text = event->http_status == 0
                           ? word
                           : wire_format(view->arena, "%s (%u)", word, event->http_status);

    if (text != NULL && event->check[0] != '\0' && event->kind == EVENT_VERDICT_CHANGED) {
        text = wire_format(view->arena, "%s by check %s", text, event->check);
    }
    return text != NULL ? text : word;
}

/* "; for it: node 2, node 3; against it: node 1"; of more than EVENT_VOTES the first. */
static char *voters(const struct view *view, const struct event *event)
{
    char text[2][EVENT_VOTES * 28] = {"", ""};
    size_t n[2] = {0, 0};

    for (size_t i = 0; i < event->n_votes && i < EVENT_VOTES; i++) {
        const struct event_vote *vote = &event->votes[i];
        bool is_for = (vote->opinion == OPINION_FAIL) == (event->to == HEALTH_UNHEALTHY);
        char *side = text[is_for ? 0 : 1];
        size_t used = strlen(side);

        if (vote->opinion != OPINION_NONE) {
            n[is_for ? 0 : 1]++;
            snprintf(side + used, sizeof text[0] - used, "%snode %" PRIu64, used > 0 ? ", " : "",
                     vote->node_id);
        }
    }
    return wire_format(view->arena, "%s%s%s%s", n[0] == 0 ? "" : "; for it: ", text[0],
                       n[1] == 0 ? "" : "; against it: ", text[1]);
}

/* The votes that decided: the failing ones of an ejection, the passing ones of a recovery. */
static char *verdict_sentence(const struct view *view, const struct event *event, const char *what)
{
    const char *to = state_word(event, event->to);
    const char *from = state_word(event, event->from);
    bool is_down = event->to == HEALTH_UNHEALTHY;
    bool has_reason =
        is_down && event->reason != REASON_NONE && probe_reason_class(event->reason) != PROBE_PASS;
    unsigned n = is_down ? event->n_fail : event->n_pass;
    const char *who = voters(view, event);

    if (event->is_by_own && event->n_votes > 0) {
        return wire_format(view->arena, "%s is %s, was %s: this node's own vote %s%s%s", what, to,
                           from, is_down ? "fails" : "passes", has_reason ? ", " : "",
                           has_reason ? reason_text(view, event) : "");
    }
    if (event->n_observers == 0) { /* decided by no votes: maintenance, checks off, a new check */
        return wire_format(view->arena, "%s is %s, was %s", what, to, from);
    }
    return wire_format(view->arena, "%s is %s, was %s: %u of %u votes %s%s%s%s", what, to, from, n,
                       event->n_counted,
                       is_down  ? (n == 1 ? "fails" : "fail")
                       : n == 1 ? "passes"
                                : "pass",
                       has_reason ? ", " : "", has_reason ? reason_text(view, event) : "",
                       who != NULL ? who : "");
}

/* "check db of web 10.0.0.1:80 (a dependency) is unhealthy, was healthy: ..." */
static char *dependency_sentence(const struct view *view, const struct event *event,
                                 const char *what)
{
    const char *of = wire_format(view->arena, "dependency %s of %s", event->check, what);

    return of == NULL ? NULL : verdict_sentence(view, event, of);
}

/* "this node doubts its own tcp and http probes (score 5): loop-late,isolated" */
static char *doubt_sentence(const struct view *view, const struct event *event)
{
    char causes[DOUBT_TEXT_BYTES];
    char kinds[DOUBT_KINDS_BYTES];

    if (event->to == 0) {
        return wire_text(view->arena, "this node trusts its own probes again");
    }
    return wire_format(view->arena, "this node doubts its own %s probes (score %u): %s",
                       doubt_kinds_format(event->to, kinds), event->doubt_score,
                       doubt_causes_format(event->doubt_causes, causes));
}

static char *budget_sentence(const struct view *view, const struct event *event)
{
    unsigned long long delay_ms = event->delay_ns / NS_PER_MS;

    if (event->to == 0) {
        return wire_format(view->arena,
                           "this node's probe budget delays no probe any more; the longest delay "
                           "was %llu ms",
                           delay_ms);
    }
    return wire_format(
        view->arena,
        "this node's probe budget delays probes, by %llu ms so far: see nodectl node describe",
        delay_ms);
}

static char *guard_sentence(const struct view *view, const struct event *event, const char *what)
{
    const char *of = what[0] != '\0' ? what : "every group";

    if (event->guard == GUARD_HOLD) {
        return wire_format(view->arena, "hold of %s is %s (%s%s%s)", of,
                           state_word(event, event->to), hold_source_word(event->hold_source),
                           event->actor[0] != '\0' ? ", by " : "", event->actor);
    }
    if (event->guard == GUARD_CORRELATED) {
        return wire_format(view->arena,
                           event->to != 0 ? "ALARM: many backends of %s went bad at once"
                                          : "alarm over: many backends of %s had gone bad at once",
                           of);
    }
    if (event->guard == GUARD_SHADOW && event->to == GUARD_EVENT_KEPT) {
        return wire_format(view->arena,
                           "guard shadow of %s is kept beyond its time: the changed check would "
                           "take out too many, and takes out none",
                           of);
    }
    return wire_format(view->arena, "guard %s of %s is %s", guard_word(event->guard), of,
                       state_word(event, event->to));
}

static char *held_sentence(const struct view *view, const struct event *event, const char *what)
{
    unsigned n = event->n_backends;

    if (n > 0 && event->to == 0) {
        return wire_format(view->arena, "no hold keeps %u more %s of %s in service any more", n,
                           n == 1 ? "backend" : "backends", what);
    }
    if (n > 0) {
        return wire_format(view->arena,
                           "%u more %s of %s %s in service by a hold (%s%s%s), against the votes",
                           n, n == 1 ? "backend" : "backends", what, n == 1 ? "stays" : "stay",
                           hold_source_word(event->hold_source),
                           event->actor[0] != '\0' ? ", by " : "", event->actor);
    }
    if (event->to == 0) {
        return wire_format(view->arena, "no hold keeps %s in service any more", what);
    }
    if (event->is_by_own) {
        return wire_format(view->arena,
                           "%s stays in service by a hold (%s%s%s), though this node's own vote "
                           "fails",
                           what, hold_source_word(event->hold_source),
                           event->actor[0] != '\0' ? ", by " : "", event->actor);
    }
    return wire_format(view->arena,
                       "%s stays in service by a hold (%s%s%s), though %u of %u votes fail", what,
                       hold_source_word(event->hold_source), event->actor[0] != '\0' ? ", by " : "",
                       event->actor, event->n_fail, event->n_counted);
}

static char *drain_sentence(const struct view *view, const struct event *event, const char *what)
{
    struct wire_arena *arena = view->arena;

    if (event->n_uncounted == 0 && event->n_flows == 0) {
        return wire_format(arena, "%s has no flows left on any node", what);
    }
    const char *uncounted =
        event->n_uncounted == 0
            ? ""
            : wire_format(arena, ", flows are not known on %u %s", event->n_uncounted,
                          event->n_uncounted == 1 ? "node" : "nodes");
    return wire_format(arena, "%s: the deadline has passed on every node, %" PRIu64 " %s left%s%s",
                       what, event->n_flows, event->n_flows == 1 ? "flow" : "flows",
                       event->n_uncounted == 0 ? "" : " where they are counted",
                       uncounted == NULL ? "" : uncounted);
}

static char *certificate_sentence(const struct view *view, const struct event *event,
                                  const char *what)
{
    const Jury__V1__Certificate *certificate =
        part_certificate_new(view, (struct cert_end){.day = event->cert_day & CERT_END_DAY_MAX});

    if (certificate == NULL) {
        return NULL;
    }
    return wire_format(view->arena,
                       event->to != 0 ? "the certificate of %s ends on %s, soon: renew it"
                                      : "the certificate of %s is a newer one that ends on %s",
                       what, certificate->ends);
}

static char *sentence(const struct view *view, const struct event *event)
{
    struct wire_arena *arena = view->arena;
    const char *what = subject(view, event);

    if (what == NULL) {
        return NULL;
    }
    switch ((enum event_kind)event->kind) {
    case EVENT_VERDICT_CHANGED:
        return verdict_sentence(view, event, what);
    case EVENT_REACHABLE_CHANGED:
        return wire_format(arena, "%s is %s from this node", what, state_word(event, event->to));
    case EVENT_OPINION_CHANGED:
        return wire_format(arena, "this node's opinion of %s%s%s%s is %s, was %s: %s",
                           event->check[0] != '\0' ? "check " : "", event->check,
                           event->check[0] != '\0' ? " of " : "",
                           what[0] != '\0' ? what : "a target", state_word(event, event->to),
                           state_word(event, event->from), reason_text(view, event));
    case EVENT_GROUP_CHANGED:
        return wire_format(arena, "group %s is %s, was %s", what, state_word(event, event->to),
                           state_word(event, event->from));
    case EVENT_OBSERVERS_CHANGED:
        return wire_format(arena, "observing nodes: %u, before %u", event->to, event->from);
    case EVENT_CATALOG_ADOPTED:
        return wire_format(arena, "revision %" PRIu64 " is in use%s%s", event->revision,
                           event->actor[0] == '\0' ? ""
                           : event->from == 1      ? ", by "
                                                   : ", the last change by ",
                           event->actor);
    case EVENT_ADMIN_CHANGED:
        return wire_format(arena, "the admin state of %s is %s, was %s%s%s", what,
                           state_word(event, event->to), state_word(event, event->from),
                           event->actor[0] != '\0' ? ", by " : "", event->actor);
    case EVENT_DEPENDENCY_CHANGED:
        return dependency_sentence(view, event, what);
    case EVENT_CATALOGS_DIFFER:
        return wire_format(arena,
                           "node %" PRIu64 " has another catalog at the same revision %" PRIu64
                           ": its votes are refused",
                           event->node_id, event->revision);
    case EVENT_PEER_EPOCH:
        return wire_format(arena, "node %" PRIu64 " was started again", event->node_id);
    case EVENT_DRAIN_DONE:
        return drain_sentence(view, event, what);
    case EVENT_PROBE_BUDGET:
        return budget_sentence(view, event);
    case EVENT_CERTIFICATE:
        return certificate_sentence(view, event, what);
    case EVENT_PEER_LOST:
    case EVENT_LEADER_CHANGED:
    case EVENT_FEW_VOTES:
        return handle_news_sentence(view->arena, event);
    case EVENT_SELF_DOUBT:
        return doubt_sentence(view, event);
    case EVENT_GUARD_CHANGED:
        return guard_sentence(view, event, what);
    case EVENT_HELD_CHANGED:
        return held_sentence(view, event, what);
    case EVENT_NONE:
        break;
    }
    return wire_format(arena, "event of kind %u", event->kind);
}

static void add_votes(const struct view *view, const struct event *event, Jury__V1__Event *message)
{
    message->votes = wire_alloc_array(view->arena, EVENT_VOTES, sizeof *message->votes);
    for (size_t i = 0; message->votes != NULL && i < event->n_votes && i < EVENT_VOTES; i++) {
        const struct event_vote *vote = &event->votes[i];
        Jury__V1__EventVote *vote_message =
            WIRE_NEW(view->arena, Jury__V1__EventVote, jury__v1__event_vote);

        if (vote_message == NULL) {
            return;
        }
        vote_message->node_id = vote->node_id;
        vote_message->opinion = (Jury__V1__Opinion)vote->opinion;
        vote_message->reason = (Jury__V1__ProbeReason)vote->reason;
        vote_message->http_status = vote->http_status;
        vote_message->age = wire_duration_new(view->arena, vote->age_ns);
        message->votes[message->n_votes++] = vote_message;
    }
}

Jury__V1__Event *handle_event_new(const struct view *view, const struct event *event)
{
    Jury__V1__Event *message = WIRE_NEW(view->arena, Jury__V1__Event, jury__v1__event);
    int *values;

    if (message == NULL) {
        return NULL;
    }
    uint64_t age_ns = view->now_ns > event->at_ns ? view->now_ns - event->at_ns : 0;
    message->sequence = event->sequence;
    message->time = wire_timestamp_new(view->arena, view->wall_ms - (int64_t)(age_ns / NS_PER_MS));
    message->type = (Jury__V1__EventType)event->kind;
    if (event->group[0] != '\0') {
        message->backend = wire_backend_ref_new(view->arena, event->group, &event->backend);
    }
    message->from = wire_text(view->arena, state_word(event, event->from));
    message->to = wire_text(view->arena, state_word(event, event->to));
    message->n_marks = handle_bits(view->arena, event->marks, &values);
    message->marks = (Jury__V1__HealthMark *)values;
    message->reason = (Jury__V1__ProbeReason)event->reason;
    message->http_status = event->http_status;
    message->n_observers = event->n_observers;
    message->n_counted = event->n_counted;
    message->n_fail = event->n_fail;
    message->n_pass = event->n_pass;
    add_votes(view, event, message);
    message->node_id = event->node_id;
    message->revision = event->revision;
    if (event->since_first_fail_ns != 0) {
        message->since_first_fail = wire_duration_new(view->arena, event->since_first_fail_ns);
    }
    message->guard = (Jury__V1__Guard)event->guard;
    message->actor = wire_text(view->arena, event->actor);
    message->n_backends = event->n_backends;
    message->is_by_own_vote = event->is_by_own;
    message->check = wire_text(view->arena, event->check);
    message->message = sentence(view, event);
    return message;
}

static bool is_wanted(const Jury__V1__ListEventsRequest *list, const struct event *event)
{
    return event != NULL && (list->group[0] == '\0' || strcmp(list->group, event->group) == 0) &&
           (list->type == JURY__V1__EVENT_TYPE__EVENT_TYPE_UNSPECIFIED ||
            (unsigned)list->type == event->kind);
}

/* Where to begin: with `newest`, so that the last `page` wanted ones follow. */
static uint64_t first_wanted(const struct view *view, const Jury__V1__ListEventsRequest *list,
                             size_t page)
{
    uint64_t first = engine_event_first(view->engine);
    uint64_t at = engine_event_next(view->engine);
    size_t n = 0;

    if (list->after_sequence + 1 > first) {
        first = list->after_sequence + 1;
    }
    if (!list->newest) {
        return first;
    }
    while (at > first && n < page) {
        at--;
        n += is_wanted(list, engine_event_at(view->engine, at));
    }
    return at;
}

static void fill_events(const struct view *view, const Jury__V1__ListEventsRequest *list,
                        size_t page, Jury__V1__ListEventsResponse *response)
{
    uint64_t next = engine_event_next(view->engine);
    uint64_t oldest = engine_event_first(view->engine);

    response->events = wire_alloc_array(view->arena, page, sizeof *response->events);
    response->has_gap = list->after_sequence != 0 && list->after_sequence + 1 < oldest;
    response->last_sequence = list->after_sequence;
    for (uint64_t sequence = first_wanted(view, list, page);
         response->events != NULL && sequence < next && response->n_events < page; sequence++) {
        const struct event *event = engine_event_at(view->engine, sequence);

        response->last_sequence = sequence;
        if (!is_wanted(list, event)) {
            continue;
        }
        Jury__V1__Event *message = handle_event_new(view, event);
        if (message == NULL) {
            return;
        }
        response->events[response->n_events++] = message;
    }
}

/* No group of that name, and none that was: of a deleted one the events are still there. */
static bool is_unknown(const struct view *view, const char *group)
{
    if (group[0] == '\0' || view->catalog == NULL ||
        catalog_group_find(view->catalog, group) != NULL) {
        return false;
    }
    for (uint64_t at = engine_event_first(view->engine); at < engine_event_next(view->engine);
         at++) {
        const struct event *event = engine_event_at(view->engine, at);

        if (event != NULL && strcmp(event->group, group) == 0) {
            return false;
        }
    }
    return true;
}

int handle_list_events(const struct view *view, const ProtobufCMessage *request,
                       ProtobufCMessage **ret_response, struct errmsg *err)
{
    const Jury__V1__ListEventsRequest *list = (const Jury__V1__ListEventsRequest *)request;
    Jury__V1__ListEventsResponse *response =
        WIRE_NEW(view->arena, Jury__V1__ListEventsResponse, jury__v1__list_events_response);
    struct rpc_node node = {0};
    size_t page = 0;
    int rc = handle_page_size(list->page_size, &page, err);

    if (rc == 0 && view->engine != NULL && is_unknown(view, list->group)) {
        rc = errmsg_set(err, ERR_NOTFOUND, ERR_SAY_MISSING, "server group", list->group);
    }
    if (rc != 0 || response == NULL) {
        return rc;
    }
    view->server->hooks.node(view->server->hooks.user, &node);
    response->epoch = node.epoch;
    if (view->engine != NULL) {
        fill_events(view, list, page, response);
    }
    *ret_response = &response->base;
    return 0;
}
