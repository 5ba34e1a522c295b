/* Verdicts: the short form of lists and the long one of `why`. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "agent/core/engine_view.h"
#include "agent/rpc/handlers_part.h"
#include "agent/rpc/rpc_internal.h"
#include "common/wire/object.h"

/* The value of bit i of a set is i + 1 in the API (jury.v1.HealthMark, HeldCause). */
size_t handle_bits(struct wire_arena *arena, unsigned bits, int **ret_values)
{
    size_t n = 0;
    int *values = wire_alloc_array(arena, 8, sizeof *values);

    for (int i = 0; values != NULL && i < 8; i++) {
        if ((bits >> i & 1) != 0) {
            values[n++] = i + 1;
        }
    }
    *ret_values = values;
    return n;
}

/* The n-th local one of several checks, from 1; NULL = it is not told. */
static const struct named_check *find_part(const struct backend_view *backend_view, uint8_t part)
{
    for (unsigned i = 0; i < backend_view->n_checks && part > 0; i++) {
        const struct named_check *check = backend_view->checks[i].check;

        if (check->check_class == CHECK_LOCAL && --part == 0) {
            return check;
        }
    }
    return NULL;
}

/* Of several checks the one that the verdict has its reason from: of the first vote that has that
 * reason and counts. With one local check votes name none: it is that one. */
static const struct named_check *find_decider(const struct backend_view *backend_view)
{
    for (unsigned i = 0; i < backend_view->n_votes; i++) {
        const struct vote_view *vote = &backend_view->votes[i];

        if (vote->standing == STANDING_COUNTED && vote->opinion == OPINION_FAIL &&
            vote->has_detail && vote->reason == backend_view->reason) {
            return find_part(backend_view, backend_view->n_local == 1 ? 1 : vote->part);
        }
    }
    return NULL;
}

static Jury__V1__Verdict *verdict_new(const struct view *view,
                                      const struct backend_view *backend_view)
{
    Jury__V1__Verdict *verdict = WIRE_NEW(view->arena, Jury__V1__Verdict, jury__v1__verdict);
    int *values;

    if (verdict == NULL) {
        return NULL;
    }
    verdict->state = (Jury__V1__HealthState)backend_view->health_state;
    verdict->n_marks = handle_bits(view->arena, backend_view->marks, &values);
    verdict->marks = (Jury__V1__HealthMark *)values;
    verdict->n_held_causes = handle_bits(view->arena, backend_view->held_causes, &values);
    verdict->held_causes = (Jury__V1__HeldCause *)values;
    verdict->since = wire_duration_new(view->arena, backend_view->since_ns);
    verdict->is_unreachable = backend_view->is_unreachable;
    verdict->reason = (Jury__V1__ProbeReason)backend_view->reason;
    verdict->n_fail = backend_view->n_fail;
    verdict->n_pass = backend_view->n_pass;
    verdict->n_counted = backend_view->n_counted;
    verdict->n_observers = backend_view->n_observers;
    verdict->quorum = backend_view->quorum;
    const struct named_check *check = find_decider(backend_view);
    if (check != NULL) {
        verdict->decider_case = JURY__V1__VERDICT__DECIDER_DECIDING_CHECK;
        verdict->deciding_check = wire_text(view->arena, check->name);
    }
    return verdict;
}

static size_t nodes_new(const struct view *view, const uint64_t ids[], size_t n,
                        uint64_t **ret_nodes)
{
    *ret_nodes = wire_alloc_array(view->arena, n, sizeof **ret_nodes);
    if (*ret_nodes == NULL) {
        return 0;
    }
    memcpy(*ret_nodes, ids, n * sizeof **ret_nodes);
    return n;
}

/* Present while flows come to their end. */
static Jury__V1__DrainStatus *drain_new(const struct view *view,
                                        const struct catalog_backend *backend,
                                        const struct backend_view *backend_view)
{
    bool is_ending = backend->drain_revision != 0 || backend->life == LIFE_REMOVING;

    if (!is_ending && backend_view->deadline_cause == DEADLINE_NONE) {
        return NULL;
    }
    Jury__V1__DrainStatus *drain =
        WIRE_NEW(view->arena, Jury__V1__DrainStatus, jury__v1__drain_status);
    if (drain == NULL) {
        return NULL;
    }
    drain->cause = (Jury__V1__DrainStatus__Cause)backend_view->deadline_cause;
    if (drain->cause == JURY__V1__DRAIN_STATUS__CAUSE__CAUSE_UNSPECIFIED && is_ending) {
        drain->cause = backend->life == LIFE_REMOVING ? JURY__V1__DRAIN_STATUS__CAUSE__CAUSE_REMOVED
                                                      : JURY__V1__DRAIN_STATUS__CAUSE__CAUSE_DRAIN;
    }
    drain->revision = backend->drain_revision;
    drain->timeout = wire_duration_new(view->arena, backend->drain_timeout_ms * NS_PER_MS);
    if (backend_view->deadline_in_ns != 0) {
        drain->remaining = wire_duration_new(view->arena, backend_view->deadline_in_ns);
    }
    drain->n_flows = backend_view->n_flows;
    drain->n_closed = backend_view->n_closed;
    drain->n_pending_nodes = nodes_new(view, backend_view->pending, backend_view->n_nodes_pending,
                                       &drain->pending_nodes);
    drain->n_uncounted_nodes = nodes_new(view, backend_view->uncounted,
                                         backend_view->n_nodes_uncounted, &drain->uncounted_nodes);
    drain->n_unreported_nodes = nodes_new(
        view, backend_view->unreported, backend_view->n_nodes_unreported, &drain->unreported_nodes);
    drain->is_done = is_ending && backend_view->n_nodes_pending == 0;
    return drain;
}

/* False when there is no engine, or it does not know the backend (yet). */
static bool look(const struct view *view, const char *group, const struct endpoint *at,
                 struct backend_view *ret_view)
{
    return view->engine != NULL &&
           engine_view_backend(view->engine, group, at, view->now_ns, view->boot_ns, ret_view) == 0;
}

/* NULL: all of its weight counts. */
static Jury__V1__WeightShare *weight_share_new(const struct view *view,
                                               const struct backend_view *backend_view)
{
    if (backend_view->weight_percent >= 100) {
        return NULL;
    }
    Jury__V1__WeightShare *share =
        WIRE_NEW(view->arena, Jury__V1__WeightShare, jury__v1__weight_share);

    if (share != NULL) {
        share->percent = backend_view->weight_percent;
        if (backend_view->slow_left_ns > 0) {
            share->slow_start_left = wire_duration_new(view->arena, backend_view->slow_left_ns);
        }
        if (backend_view->graded_percent < 100) {
            share->graded_by = (Jury__V1__GradedWeight)backend_view->graded_by;
            share->graded_percent = backend_view->graded_percent;
        }
        if (share->graded_by == JURY__V1__GRADED_WEIGHT__GRADED_WEIGHT_LATENCY) {
            share->response_time =
                wire_duration_new(view->arena, backend_view->smoothed_us * UINT64_C(1000));
            share->group_response_time =
                wire_duration_new(view->arena, backend_view->median_us * UINT64_C(1000));
        }
    }
    return share;
}

Jury__V1__BackendStatus *handle_backend_status(const struct view *view,
                                               const struct catalog_group *group,
                                               const struct catalog_backend *backend)
{
    struct backend_view backend_view = {0};
    Jury__V1__BackendStatus *status =
        WIRE_NEW(view->arena, Jury__V1__BackendStatus, jury__v1__backend_status);

    if (status == NULL) {
        return NULL;
    }
    bool is_known = look(view, group->spec.name, &backend->spec.at, &backend_view);
    status->group = wire_text(view->arena, group->spec.name);
    const struct backend spec = catalog_backend_value(backend);
    status->backend = wire_backend_new(view->arena, &spec);
    status->life = (Jury__V1__BackendLife)backend->life;
    status->verdict = verdict_new(view, &backend_view);
    status->changed_revision = backend->changed_revision;
    status->backend_id = backend->id;
    if (is_known) {
        status->drain = drain_new(view, backend, &backend_view);
        status->row_class = (Jury__V1__RowClass)backend_view.row_class;
        status->weight_share = weight_share_new(view, &backend_view);
        status->n_paths = part_paths_new(view, &backend_view, &status->paths);
    }
    return view->arena->failed ? NULL : status;
}

/* --- why --- */

/* Type of the check that a vote has its reason from; CHECK_TYPE_NONE = it is not told which. */
static unsigned part_type(const struct backend_view *backend_view, uint8_t part)
{
    const struct named_check *check = find_part(backend_view, part);

    return check != NULL ? check->check.type : backend_view->check_type;
}

static Jury__V1__VoteDetail *detail_new(const struct view *view, const struct vote_view *vote,
                                        unsigned check_type)
{
    Jury__V1__VoteDetail *detail =
        WIRE_NEW(view->arena, Jury__V1__VoteDetail, jury__v1__vote_detail);

    if (detail != NULL) {
        detail->reason = (Jury__V1__ProbeReason)vote->reason;
        detail->sentence =
            wire_text(view->arena, probe_reason_sentence_of(vote->reason, check_type));
        detail->http_status = vote->http_status;
        detail->response_time = wire_duration_new(view->arena, vote->response_us * NS_PER_US);
        detail->streak = vote->streak;
        detail->since =
            vote->opinion != OPINION_NONE ? wire_duration_new(view->arena, vote->since_ns) : NULL;
        detail->age = wire_duration_new(view->arena, vote->detail_age_ns);
        detail->probe_age = vote->probe_age_ns != AGE_NEVER
                                ? wire_duration_new(view->arena, vote->probe_age_ns)
                                : NULL;
    }
    return detail;
}

static Jury__V1__NodeVote *vote_new(const struct view *view,
                                    const struct backend_view *backend_view,
                                    const struct vote_view *vote)
{
    Jury__V1__NodeVote *message = WIRE_NEW(view->arena, Jury__V1__NodeVote, jury__v1__node_vote);

    if (message != NULL) {
        message->node_id = vote->node_id;
        message->is_self = vote->is_self;
        message->standing = (Jury__V1__VoteStanding)vote->standing;
        message->opinion = (Jury__V1__Opinion)vote->opinion;
        message->age =
            vote->age_ns != AGE_NEVER ? wire_duration_new(view->arena, vote->age_ns) : NULL;
        message->detail =
            vote->has_detail ? detail_new(view, vote, part_type(backend_view, vote->part)) : NULL;
        const struct named_check *check = find_part(backend_view, vote->part);
        if (message->detail != NULL && check != NULL) {
            message->detail->check = wire_text(view->arena, check->name);
        }
        message->n_doubt_causes =
            part_doubt_causes(view, vote->doubt_causes, &message->doubt_causes);
    }
    return message;
}

static Jury__V1__NextChange *next_new(const struct view *view, const struct next_change *next)
{
    Jury__V1__NextChange *message =
        WIRE_NEW(view->arena, Jury__V1__NextChange, jury__v1__next_change);

    if (message != NULL) {
        message->is_impossible = !next->is_possible;
        message->to = (Jury__V1__HealthState)next->to;
        message->votes = next->votes;
        message->own_results = next->own_results;
        message->sentence = wire_text(view->arena, next->sentence);
    }
    return message;
}

static Jury__V1__ProbeResult *result_new(const struct view *view, const struct own_result *result,
                                         unsigned check_type)
{
    Jury__V1__ProbeResult *message =
        WIRE_NEW(view->arena, Jury__V1__ProbeResult, jury__v1__probe_result);

    if (message != NULL) {
        message->reason = (Jury__V1__ProbeReason)result->reason;
        message->sentence =
            wire_text(view->arena, probe_reason_sentence_of(result->reason, check_type));
        message->http_status = result->http_status;
        message->response_time = wire_duration_new(view->arena, result->response_us * NS_PER_US);
        message->age = wire_duration_new(view->arena, result->age_ns);
    }
    return message;
}

/* By how much each probe but the first of a streak is late at most, as `group describe` has it. */
static uint64_t budget_delay_ns(const struct view *view)
{
    struct rpc_node node = {0};

    view->server->hooks.node(view->server->hooks.user, &node);
    return node.probe_budget.is_pressed ? node.probe_budget.delay_ns : 0;
}

static Google__Protobuf__Duration *own_window_new(const struct view *view, uint64_t window_ms,
                                                  unsigned threshold)
{
    uint64_t n_late = threshold == 0 ? 0 : threshold - 1;

    return wire_duration_new(view->arena, window_ms * NS_PER_MS + n_late * budget_delay_ns(view));
}

static Jury__V1__OwnProbing *probing_new(const struct view *view,
                                         const struct backend_view *backend_view)
{
    char text[ADDR_TEXT_BYTES];
    Jury__V1__OwnProbing *message =
        WIRE_NEW(view->arena, Jury__V1__OwnProbing, jury__v1__own_probing);

    if (message == NULL) {
        return NULL;
    }
    const struct catalog_target *target =
        backend_view->target.slot != CATALOG_NO_SLOT
            ? catalog_target_at(view->catalog, backend_view->target.slot)
            : NULL;
    if (target != NULL) {
        message->address = wire_text(view->arena, addr_format(&target->to.addr, text));
        message->port = target->to.port;
    }
    message->type = (Jury__V1__CheckType)backend_view->check_type;
    message->timeout = wire_duration_new(view->arena, backend_view->timeout_ms * NS_PER_MS);
    message->interval = wire_duration_new(view->arena, backend_view->interval_ms * NS_PER_MS);
    message->healthy_threshold = backend_view->healthy_threshold;
    message->unhealthy_threshold = backend_view->unhealthy_threshold;
    message->pass_streak = backend_view->pass_streak;
    message->fail_streak = backend_view->fail_streak;
    message->last = backend_view->last.has_result
                        ? result_new(view, &backend_view->last, backend_view->check_type)
                        : NULL;
    message->failure_window =
        own_window_new(view, backend_view->failure_window_ms, backend_view->unhealthy_threshold);
    message->success_window =
        own_window_new(view, backend_view->success_window_ms, backend_view->healthy_threshold);
    message->passes_by_silence = backend_view->passes_by_silence;
    message->certificate =
        backend_view->cert.day != 0 ? part_certificate_new(view, backend_view->cert) : NULL;
    message->path = part_path_new(view, &backend_view->last, "");
    return message;
}

static Jury__V1__OwnProbing *check_probing_new(const struct view *view,
                                               const struct check_view *check_view)
{
    const struct health_check *check = &check_view->check->check;
    const struct own_result *last = &check_view->last;
    bool has_passed = last->has_result && last->probe_class == PROBE_PASS;
    struct backend_view probed = {
        .target = check_view->target,
        .check_type = check->type,
        .timeout_ms = check->timeout_ms,
        .interval_ms = check->interval_ms,
        .healthy_threshold = check->healthy_threshold,
        .unhealthy_threshold = check->unhealthy_threshold,
        .pass_streak = check_view->pass_streak,
        .fail_streak = check_view->fail_streak,
        .last = *last,
        .failure_window_ms = check_failure_window_ms(check),
        .success_window_ms =
            check_success_window_ms(check, has_passed ? last->response_us / 1000 : 0),
        .passes_by_silence = check_passes_by_silence(check),
        .cert = check_view->cert,
    };

    return probing_new(view, &probed);
}

static Jury__V1__CheckStatus *check_status_new(const struct view *view,
                                               const struct check_view *check_view)
{
    Jury__V1__CheckStatus *message =
        WIRE_NEW(view->arena, Jury__V1__CheckStatus, jury__v1__check_status);

    if (message == NULL) {
        return NULL;
    }
    const struct vote_view said = {
        .has_detail = check_view->has_detail,
        .opinion = check_view->opinion,
        .reason = check_view->reason,
        .http_status = check_view->http_status,
        .response_us = check_view->response_us,
        .streak = check_view->streak,
        .since_ns = check_view->since_ns,
        .probe_age_ns = check_view->probe_age_ns,
    };
    message->name = wire_text(view->arena, check_view->check->name);
    message->check_class = (Jury__V1__CheckClass)check_view->check->check_class;
    message->probing = check_probing_new(view, check_view);
    message->opinion = (Jury__V1__Opinion)check_view->opinion;
    message->is_suspect = check_view->is_suspect;
    message->decides = check_view->decides;
    message->detail =
        said.has_detail ? detail_new(view, &said, check_view->check->check.type) : NULL;
    message->state = (Jury__V1__HealthState)check_view->health_state;
    message->n_pass = check_view->n_pass;
    message->n_fail = check_view->n_fail;
    return message;
}

static void fill_checks(const struct view *view, const struct backend_view *backend_view,
                        Jury__V1__WhyResponse *response)
{
    if (backend_view->n_checks == 0) {
        return;
    }
    response->pass = wire_rule_new(view->arena, &backend_view->pass);
    response->checks = wire_alloc_array(view->arena, LIMIT_CHECKS, sizeof *response->checks);
    for (size_t i = 0; response->checks != NULL && i < backend_view->n_checks; i++) {
        Jury__V1__CheckStatus *check = check_status_new(view, &backend_view->checks[i]);

        if (check == NULL) {
            return;
        }
        response->checks[response->n_checks++] = check;
    }
}

static void fill_votes(const struct view *view, const struct backend_view *backend_view,
                       Jury__V1__WhyResponse *response)
{
    response->votes = wire_alloc_array(view->arena, LIMIT_NODES, sizeof *response->votes);
    for (size_t i = 0; response->votes != NULL && i < backend_view->n_votes; i++) {
        Jury__V1__NodeVote *vote = vote_new(view, backend_view, &backend_view->votes[i]);

        if (vote == NULL) {
            return;
        }
        response->votes[response->n_votes++] = vote;
    }
    response->reasons = wire_alloc_array(view->arena, 8, sizeof *response->reasons);
    for (size_t i = 0; response->reasons != NULL && i < backend_view->n_reasons; i++) {
        response->reasons[response->n_reasons++] = (Jury__V1__ProbeReason)backend_view->reasons[i];
    }
    response->n_remembered_fail = backend_view->n_remembered_fail;
    response->n_remembered_pass = backend_view->n_remembered_pass;
}

static void fill_why(const struct view *view, const struct backend_view *backend_view,
                     Jury__V1__WhyResponse *response)
{
    struct rpc_node node = {0};
    bool is_down = backend_view->health_state == HEALTH_UNHEALTHY;
    bool is_up = backend_view->health_state == HEALTH_HEALTHY;

    view->server->hooks.node(view->server->hooks.user, &node);
    response->backend = wire_backend_ref_new(view->arena, backend_view->group, &backend_view->at);
    response->node_id = node.node_id;
    response->verdict = verdict_new(view, backend_view);
    response->sentence = wire_text(view->arena, backend_view->sentence);
    response->http_status = backend_view->http_status;
    response->rule = wire_verdict_rule_new(view->arena, &backend_view->rule);
    fill_votes(view, backend_view, response);
    fill_checks(view, backend_view, response);
    response->probing = probing_new(view, backend_view);
    response->next_down = is_down ? NULL : next_new(view, &backend_view->down);
    response->next_up = is_up ? NULL : next_new(view, &backend_view->up);
    response->row_class = (Jury__V1__RowClass)backend_view->row_class;
    /* In the API 0 is kept for "not known". */
    response->flow_policy = (Jury__V1__FlowPolicy)(backend_view->flow_policy + 1);
    response->admin_state = (Jury__V1__AdminState)backend_view->admin_state;
    response->life = (Jury__V1__BackendLife)backend_view->life;
    response->weight = backend_view->weight;
    response->weight_share = weight_share_new(view, backend_view);
    if ((backend_view->held_causes & HELD_LAST_KNOWN_GOOD) != 0) {
        response->kept_age = wire_duration_new(view->arena, backend_view->kept_age_ns);
    }
}

static int find_backend(const struct view *view, const ProtobufCMessage *request,
                        const struct catalog_backend **ret_backend, struct backend_view *ret_view,
                        struct errmsg *err)
{
    const Jury__V1__WhyRequest *why_request = (const Jury__V1__WhyRequest *)request;
    char group_name[LIMIT_NAME_BYTES + 1], text[ENDPOINT_TEXT_BYTES];
    struct endpoint at;
    int rc = wire_backend_ref_read(why_request->backend, group_name, &at, err);

    if (rc != 0) {
        return rc;
    }
    if (view->catalog == NULL) {
        return errmsg_set(err, ERR_NOTREADY, "this node has no catalog yet");
    }
    const struct catalog_group *group = catalog_group_find(view->catalog, group_name);
    if (group == NULL) {
        return errmsg_set(err, ERR_NOTFOUND, ERR_SAY_MISSING, "server group", group_name);
    }
    const struct catalog_backend *backend = catalog_backend_find(group, &at);
    if (backend == NULL || !look(view, group_name, &at, ret_view)) {
        return errmsg_set(err, ERR_NOTFOUND, ERR_SAY_NO_BACKEND, endpoint_format(&at, text),
                          group_name);
    }
    *ret_backend = backend;
    return 0;
}

int handle_why(const struct view *view, const ProtobufCMessage *request,
               ProtobufCMessage **ret_response, struct errmsg *err)
{
    const struct catalog_backend *backend = NULL;
    struct backend_view backend_view;
    int rc = find_backend(view, request, &backend, &backend_view, err);

    if (rc != 0) {
        return rc;
    }
    Jury__V1__WhyResponse *response =
        WIRE_NEW(view->arena, Jury__V1__WhyResponse, jury__v1__why_response);
    if (response != NULL) {
        fill_why(view, &backend_view, response);
        response->drain = drain_new(view, backend, &backend_view);
        *ret_response = &response->base;
    }
    return 0;
}

struct target_id handle_why_target(const struct view *view, const ProtobufCMessage *request)
{
    const struct catalog_backend *backend;
    struct backend_view backend_view;

    if (find_backend(view, request, &backend, &backend_view, NULL) != 0) {
        return (struct target_id){.slot = CATALOG_NO_SLOT};
    }
    return backend_view.target;
}

bool handle_why_waits(const struct view *view, const ProtobufCMessage *request, uint64_t asked_ns)
{
    const struct catalog_backend *backend;
    struct backend_view backend_view;
    uint64_t since_ns = view->now_ns - asked_ns;

    if (find_backend(view, request, &backend, &backend_view, NULL) != 0 ||
        backend_view.target.slot == CATALOG_NO_SLOT) {
        return false;
    }
    for (size_t i = 0; i < backend_view.n_votes; i++) {
        const struct vote_view *vote = &backend_view.votes[i];
        bool is_heard = !vote->is_self && vote->standing == STANDING_COUNTED;

        if (is_heard && (!vote->has_detail || vote->detail_age_ns > since_ns)) {
            return true;
        }
    }
    return false;
}
