/* Simulation: the kept history of a group with a changed document (agent/core/replay.h). */
#include <string.h>

#include "agent/core/replay.h"
#include "agent/rpc/handlers_part.h"
#include "agent/rpc/rpc_internal.h"
#include "common/base/hash.h"
#include "common/base/plant.h"
#include "common/model/validate.h"
#include "common/wire/object.h"
#include "jury/v1/simulation.pb-c.h"

/* What each simulation costs besides, at the planned size. */
#define SIMULATION_WORK 10000

/* Simulations run where votes are counted, and viewers may ask for them. */
static int check_budget(const struct view *view, struct errmsg *err)
{
    struct rpc_server *server = view->server;
    uint64_t ms = (view->now_ns - server->simulated_ns) / NS_PER_MS;
    uint64_t forgotten = ms * (LIMIT_SIMULATION_WORK_PER_SECOND / 1000);

    server->simulated_work =
        server->simulated_work > forgotten ? server->simulated_work - forgotten : 0;
    server->simulated_ns += ms * NS_PER_MS;
    if (server->simulated_work >= LIMIT_SIMULATION_WORK && !plant_is("simulation-no-budget")) {
        return errmsg_set(err, ERR_BUSY,
                          "this node has simulated enough for the moment: ask again in a second");
    }
    server->simulated_work += SIMULATION_WORK;
    return 0;
}

struct listing {
    const struct view *view;
    Jury__V1__SimulationOutcome *outcome;
    struct hash128 digest; /* of all events, listed or not */
};

/* What makes two events the same. */
static void digest_event(struct listing *listing, const struct event *event)
{
    static const struct hash_key key = {0};
    struct {
        struct hash128 before;
        uint64_t at_ns;
        uint64_t kind_from_to_port;
        struct addr addr;
    } item;

    memset(&item, 0, sizeof item);
    item.before = listing->digest;
    item.at_ns = event->at_ns;
    item.kind_from_to_port = (uint64_t)event->kind << 48 | (uint64_t)event->from << 40 |
                             (uint64_t)event->to << 32 | event->backend.port;
    item.addr = event->backend.addr;
    listing->digest = hash_128(&key, &item, sizeof item);
}

static void list_event(void *user, const struct event *event)
{
    struct listing *listing = user;
    Jury__V1__SimulationOutcome *outcome = listing->outcome;

    if (event->kind != EVENT_VERDICT_CHANGED && event->kind != EVENT_GROUP_CHANGED) {
        return;
    }
    digest_event(listing, event);
    if (outcome->n_events == LIMIT_REPLAY_CHANGES) {
        outcome->has_more = true;
        return;
    }
    Jury__V1__Event *message = handle_event_new(listing->view, event);
    if (message != NULL) {
        message->sequence = 0; /* it is in no log */
        outcome->events[outcome->n_events++] = message;
    }
}

/* One playing. Errors: those of replay_group, ERR_NOMEM. */
static int play(const struct view *view, const struct replay_question *asked,
                struct listing *ret_listing, struct replay_answer *ret_answer, struct errmsg *err)
{
    struct replay_question question = *asked;
    Jury__V1__SimulationOutcome *outcome =
        WIRE_NEW(view->arena, Jury__V1__SimulationOutcome, jury__v1__simulation_outcome);

    if (outcome != NULL) {
        outcome->events =
            wire_alloc_array(view->arena, LIMIT_REPLAY_CHANGES, sizeof(Jury__V1__Event *));
    }
    if (outcome == NULL || outcome->events == NULL) {
        return errmsg_set(err, ERR_NOMEM, "out of memory");
    }
    *ret_listing = (struct listing){.view = view, .outcome = outcome};
    question.on_event = list_event;
    question.user = ret_listing;
    int rc = replay_group(view->engine, &question, ret_answer, err);
    if (rc == 0) {
        view->server->simulated_work += ret_answer->work;
        outcome->n_changes = ret_answer->n_changes;
        outcome->n_ejections = ret_answer->n_ejections;
        outcome->n_out_max = ret_answer->n_out_max;
        outcome->out_longest = wire_duration_new(view->arena, ret_answer->out_longest_ns);
        outcome->n_fail_opens = ret_answer->n_fail_opens;
    }
    return rc;
}

static Google__Protobuf__Timestamp *time_new(const struct view *view, uint64_t at_ns)
{
    uint64_t age_ns = view->now_ns > at_ns ? view->now_ns - at_ns : 0;

    return wire_timestamp_new(view->arena, view->wall_ms - (int64_t)(age_ns / NS_PER_MS));
}

/* 0 = everything. */
static uint64_t since_of(const struct view *view, const Google__Protobuf__Duration *since)
{
    if (since == NULL || since->seconds < 0 || since->nanos < 0) {
        return 0;
    }
    uint64_t age_s = (uint64_t)since->seconds;
    if (age_s >= view->now_ns / NS_PER_SECOND) {
        return 0;
    }
    uint64_t age_ns = age_s * NS_PER_SECOND + (uint32_t)since->nanos;
    return view->now_ns > age_ns ? view->now_ns - age_ns : 0;
}

static int simulate(const struct view *view, const Jury__V1__SimulateGroupRequest *request,
                    const struct server_group *change, Jury__V1__SimulateGroupResponse *response,
                    struct errmsg *err)
{
    struct replay_question question = {.group = change->name,
                                       .since_ns = since_of(view, request->since)};
    struct listing was, would;
    struct replay_answer answer, other;
    int rc = play(view, &question, &was, &answer, err);

    if (rc != 0) {
        return rc;
    }
    question.change = change;
    rc = play(view, &question, &would, &other, err);
    if (rc != 0) {
        return rc;
    }
    uint64_t from_ns = answer.from_ns > other.from_ns ? answer.from_ns : other.from_ns;
    from_ns = from_ns > question.since_ns ? from_ns : question.since_ns;
    response->group = wire_text(view->arena, change->name);
    response->node_id = part_node_of(view).node_id;
    response->from = time_new(view, from_ns);
    response->to = time_new(view, answer.to_ns < other.to_ns ? answer.to_ns : other.to_ns);
    response->from_beginning = answer.from_beginning && other.from_beginning;
    response->counts_own_results = other.counts_results;
    response->was = was.outcome;
    response->would = would.outcome;
    response->changes_nothing =
        was.digest.low == would.digest.low && was.digest.high == would.digest.high;
    response->is_exact = answer.is_exact;
    return 0;
}

int handle_simulate_group(const struct view *view, const ProtobufCMessage *request,
                          ProtobufCMessage **ret_response, struct errmsg *err)
{
    const Jury__V1__SimulateGroupRequest *asked = (const Jury__V1__SimulateGroupRequest *)request;
    Jury__V1__SimulateGroupResponse *response =
        WIRE_NEW(view->arena, Jury__V1__SimulateGroupResponse, jury__v1__simulate_group_response);
    struct server_group change = {0};

    if (response == NULL) {
        return 0;
    }
    if (asked->group == NULL) {
        return errmsg_set(err, ERR_INVALID, "group must be set: the changed group, whole");
    }
    if (view->engine == NULL || view->catalog == NULL) {
        return errmsg_set(err, ERR_NOTREADY,
                          "this node has no catalog yet: it waits for `nodectl cluster init` or "
                          "for its peers");
    }
    int rc = wire_group_read(asked->group, &change, err);
    if (rc == 0) {
        rc = validate_group(&change, err);
    }
    if (rc == 0) {
        rc = catalog_check_rule(&change, catalog_n_observers(view->catalog), err);
    }
    if (rc == 0) {
        rc = check_budget(view, err);
    }
    if (rc == 0) {
        rc = simulate(view, asked, &change, response, err);
    }
    server_group_close(&change);
    if (rc == 0) {
        *ret_response = &response->base;
    }
    return rc;
}
