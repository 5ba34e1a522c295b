/* Simulation: the kept history of a group with a changed document (agent/core/replay.h). What is
 * played is copied on this thread, played on another, and answered on this one again. */
#include <stdlib.h>
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

/* Simulations take a processor from the threads that probe and vote, and viewers may ask for them.
 */
static int check_budget(const struct view *view, struct errmsg *err)
{
    struct rpc_server *server = view->server;
    uint64_t ms = (view->now_ns - server->simulated_ns) / NS_PER_MS;
    uint64_t forgotten = ms * (LIMIT_SIMULATION_WORK_PER_SECOND / 1000);

    server->simulated_work =
        server->simulated_work > forgotten ? server->simulated_work - forgotten : 0;
    server->simulated_ns += ms * NS_PER_MS;
    if ((server->simulated_work >= LIMIT_SIMULATION_WORK ||
         server->n_simulations >= LIMIT_SIMULATIONS) &&
        !plant_is("simulation-no-budget")) {
        return errmsg_set(err, ERR_BUSY,
                          "this node has simulated enough for the moment: ask again in a second");
    }
    server->simulated_work += SIMULATION_WORK;
    return 0;
}

/* One playing and what came of it. */
struct playing {
    struct replay *replay;
    struct replay_answer answer;
    struct event *events; /* the first LIMIT_REPLAY_CHANGES of those that are listed */
    uint32_t n_events;
    bool has_more;
    struct hash128 digest; /* of all of them */
};

struct rpc_simulation {
    struct server_group change;
    uint64_t since_ns;
    struct playing was, would;
    int rc;
    struct errmsg err;
};

/* What makes two events the same. */
static void digest_event(struct playing *playing, const struct event *event)
{
    static const struct hash_key key = {0};
    struct {
        struct hash128 before;
        uint64_t at_ns;
        uint64_t kind_from_to_port;
        struct addr addr;
    } item;

    memset(&item, 0, sizeof item);
    item.before = playing->digest;
    item.at_ns = event->at_ns;
    item.kind_from_to_port = (uint64_t)event->kind << 48 | (uint64_t)event->from << 40 |
                             (uint64_t)event->to << 32 | event->backend.port;
    item.addr = event->backend.addr;
    playing->digest = hash_128(&key, &item, sizeof item);
}

static void keep_event(void *user, const struct event *event)
{
    struct playing *playing = user;

    if (event->kind != EVENT_VERDICT_CHANGED && event->kind != EVENT_GROUP_CHANGED) {
        return;
    }
    digest_event(playing, event);
    if (playing->n_events == LIMIT_REPLAY_CHANGES) {
        playing->has_more = true;
        return;
    }
    playing->events[playing->n_events] = *event;
    playing->events[playing->n_events++].sequence = 0; /* it is in no log */
}

/* Errors: those of replay_open. */
static int open_playing(const struct view *view, struct rpc_simulation *job,
                        const struct server_group *change, struct playing *playing)
{
    const struct replay_question question = {.group = job->change.name,
                                             .change = change,
                                             .since_ns = job->since_ns,
                                             .on_event = keep_event,
                                             .user = playing};

    playing->events = malloc(LIMIT_REPLAY_CHANGES * sizeof *playing->events);
    if (playing->events == NULL) {
        return errmsg_set(&job->err, ERR_NOMEM, "out of memory");
    }
    return replay_open(view->engine, &question, &playing->replay, &job->err);
}

static void close_playing(struct playing *playing)
{
    replay_close(playing->replay);
    free(playing->events);
}

void rpc_simulation_free(struct rpc_simulation *job)
{
    if (job == NULL) {
        return;
    }
    close_playing(&job->was);
    close_playing(&job->would);
    server_group_close(&job->change);
    free(job);
}

void rpc_simulation_run(struct rpc_simulation *job)
{
    job->rc = replay_play(job->was.replay, &job->was.answer, &job->err);
    if (job->rc == 0) {
        job->rc = replay_play(job->would.replay, &job->would.answer, &job->err);
    }
}

uint64_t rpc_simulation_work(const struct rpc_simulation *job)
{
    return job->was.answer.work + job->would.answer.work;
}

/* NULL: the arena is used up. */
static Jury__V1__SimulationOutcome *outcome_new(const struct view *view,
                                                const struct playing *playing)
{
    const struct replay_answer *answer = &playing->answer;
    Jury__V1__SimulationOutcome *outcome =
        WIRE_NEW(view->arena, Jury__V1__SimulationOutcome, jury__v1__simulation_outcome);

    if (outcome == NULL) {
        return NULL;
    }
    outcome->events =
        wire_alloc_array(view->arena, LIMIT_REPLAY_CHANGES, sizeof(Jury__V1__Event *));
    for (uint32_t i = 0; outcome->events != NULL && i < playing->n_events; i++) {
        Jury__V1__Event *message = handle_event_new(view, &playing->events[i]);

        if (message != NULL) {
            message->sequence = 0;
            outcome->events[outcome->n_events++] = message;
        }
    }
    outcome->has_more = playing->has_more;
    outcome->n_changes = answer->n_changes;
    outcome->n_ejections = answer->n_ejections;
    outcome->n_out_max = answer->n_out_max;
    outcome->out_longest = wire_duration_new(view->arena, answer->out_longest_ns);
    outcome->n_fail_opens = answer->n_fail_opens;
    return outcome->events != NULL ? outcome : NULL;
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

/* A group that may be applied as it is. */
static int read_change(const struct view *view, const Jury__V1__SimulateGroupRequest *asked,
                       struct server_group *ret_change, struct errmsg *err)
{
    int rc = wire_group_read(asked->group, ret_change, err);

    if (rc == 0) {
        rc = validate_group(ret_change, err);
    }
    return rc == 0 ? catalog_check_rule(ret_change, catalog_n_observers(view->catalog), err) : rc;
}

int handle_simulate_prepare(const struct view *view, const ProtobufCMessage *request,
                            struct rpc_simulation **ret_job, struct errmsg *err)
{
    const Jury__V1__SimulateGroupRequest *asked = (const Jury__V1__SimulateGroupRequest *)request;

    if (asked->group == NULL) {
        return errmsg_set(err, ERR_INVALID, "group must be set: the changed group, whole");
    }
    if (view->engine == NULL || view->catalog == NULL) {
        return errmsg_set(err, ERR_NOTREADY,
                          "this node has no catalog yet: it waits for `nodectl cluster init` or "
                          "for its peers");
    }
    struct rpc_simulation *job = calloc(1, sizeof *job);
    if (job == NULL) {
        return errmsg_set(err, ERR_NOMEM, "out of memory");
    }
    job->since_ns = since_of(view, asked->since);
    int rc = read_change(view, asked, &job->change, &job->err);
    if (rc == 0) {
        rc = check_budget(view, &job->err);
    }
    if (rc == 0) {
        rc = open_playing(view, job, NULL, &job->was);
    }
    if (rc == 0) {
        rc = open_playing(view, job, &job->change, &job->would);
    }
    if (rc != 0) {
        *err = job->err;
        rpc_simulation_free(job);
        return rc;
    }
    *ret_job = job;
    return 0;
}

int handle_simulate_group(const struct view *view, const ProtobufCMessage *request,
                          ProtobufCMessage **ret_response, struct errmsg *err)
{
    const struct rpc_simulation *job = view->simulation;
    Jury__V1__SimulateGroupResponse *response =
        WIRE_NEW(view->arena, Jury__V1__SimulateGroupResponse, jury__v1__simulate_group_response);

    (void)request;
    if (job->rc != 0) {
        *err = job->err;
        return job->rc;
    }
    if (response == NULL) {
        return 0;
    }
    const struct replay_answer *was = &job->was.answer, *would = &job->would.answer;
    uint64_t from_ns = was->from_ns > would->from_ns ? was->from_ns : would->from_ns;

    from_ns = from_ns > job->since_ns ? from_ns : job->since_ns;
    response->group = wire_text(view->arena, job->change.name);
    response->node_id = part_node_of(view).node_id;
    response->from = time_new(view, from_ns);
    response->to = time_new(view, was->to_ns < would->to_ns ? was->to_ns : would->to_ns);
    response->from_beginning = was->from_beginning && would->from_beginning;
    response->counts_own_results = would->counts_results;
    response->was = outcome_new(view, &job->was);
    response->would = outcome_new(view, &job->would);
    response->changes_nothing = job->was.digest.low == job->would.digest.low &&
                                job->was.digest.high == job->would.digest.high;
    response->is_exact = was->is_exact;
    if (response->was != NULL && response->would != NULL) {
        *ret_response = &response->base;
    }
    return 0;
}
