/* Reads of groups, backends and listeners. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/core/engine_view.h"
#include "agent/rpc/rpc_internal.h"
#include "common/base/str.h"
#include "common/wire/object.h"

#define ASSUMED_RESPONSE_MS 1000 /* of the success window, as in the product's table (S22) */
#define PROPAGATION_MS 100       /* beside two vote intervals, until every node has the verdict */

int handle_page_size(uint32_t asked, size_t *ret_size, struct errmsg *err)
{
    if (asked > RPC_PAGE_MAX) {
        return errmsg_set(err, ERR_INVALID, "page_size must be 0..%d, got %u", RPC_PAGE_MAX, asked);
    }
    *ret_size = asked == 0 ? RPC_PAGE_MAX : asked;
    return 0;
}

static int find_group(const struct view *view, const char *name,
                      const struct catalog_group **ret_group, struct errmsg *err)
{
    const struct catalog_group *group = catalog_group_find(view->catalog, name);

    if (group == NULL) {
        return errmsg_set(err, ERR_NOTFOUND, ERR_SAY_MISSING, "server group", name);
    }
    *ret_group = group;
    return 0;
}

/* --- one group --- */

static Jury__V1__ServerGroup *group_document_new(const struct view *view,
                                                 const struct catalog_group *group)
{
    Jury__V1__ServerGroup *message = wire_group_new(view->arena, &group->spec);

    if (message == NULL) {
        return NULL;
    }
    message->backends = wire_alloc_array(view->arena, group->n_backends, sizeof *message->backends);
    message->n_backends = 0;
    for (uint32_t i = 0; message->backends != NULL && i < group->n_backends; i++) {
        if (group->backends[i].life == LIFE_REMOVING) {
            continue;
        }
        const struct backend spec = catalog_backend_value(&group->backends[i]);
        Jury__V1__Backend *backend = wire_backend_new(view->arena, &spec);
        if (backend == NULL) {
            break;
        }
        message->backends[message->n_backends++] = backend;
    }
    return message;
}

static Jury__V1__BackendCounts *counts_of(const struct view *view,
                                          const struct group_view *group_view)
{
    Jury__V1__BackendCounts *counts =
        WIRE_NEW(view->arena, Jury__V1__BackendCounts, jury__v1__backend_counts);

    if (counts != NULL) {
        counts->total = group_view->n_backends;
        counts->initial = group_view->n_by_state[HEALTH_INITIAL];
        counts->healthy = group_view->n_by_state[HEALTH_HEALTHY];
        counts->unhealthy = group_view->n_by_state[HEALTH_UNHEALTHY];
        counts->unavailable = group_view->n_by_state[HEALTH_UNAVAILABLE];
        counts->unused = group_view->n_by_state[HEALTH_UNUSED];
        counts->unreachable = group_view->n_unreachable;
        counts->held = group_view->n_held;
        counts->removing = group_view->n_removing;
        counts->draining = group_view->n_draining;
        counts->degraded = group_view->n_degraded;
    }
    return counts;
}

static void add_guards(const struct view *view, const struct group_view *group_view,
                       Jury__V1__GroupSummary *summary)
{
    summary->guards = wire_alloc_array(view->arena, group_view->n_guards, sizeof *summary->guards);
    for (size_t i = 0; summary->guards != NULL && i < group_view->n_guards; i++) {
        const struct guard_view *guard = &group_view->guards[i];
        Jury__V1__ActiveGuard *message =
            WIRE_NEW(view->arena, Jury__V1__ActiveGuard, jury__v1__active_guard);

        if (message == NULL) {
            return;
        }
        message->guard = (Jury__V1__Guard)guard->guard;
        message->since = wire_duration_new(view->arena, guard->since_ns);
        message->n_backends = guard->n_backends;
        message->sentence = wire_text(view->arena, guard->sentence);
        summary->guards[summary->n_guards++] = message;
    }
}

static Jury__V1__GroupSummary *summary_new(const struct view *view,
                                           const struct catalog_group *group)
{
    struct group_view group_view = {.n_backends = group->n_backends};
    Jury__V1__GroupSummary *summary =
        WIRE_NEW(view->arena, Jury__V1__GroupSummary, jury__v1__group_summary);

    if (summary == NULL) {
        return NULL;
    }
    if (view->engine != NULL) {
        engine_view_group(view->engine, group->spec.name, view->now_ns, &group_view);
    }
    summary->name = wire_text(view->arena, group->spec.name);
    summary->profile = (Jury__V1__Profile)group->spec.profile;
    summary->protocol = (Jury__V1__Protocol)group->spec.protocol;
    summary->state = (Jury__V1__GroupState)group_view.group_state;
    summary->is_warming = (group_view.marks & MARK_WARMING) != 0;
    summary->since = wire_duration_new(view->arena, group_view.since_ns);
    summary->n_eligible = group_view.n_eligible;
    summary->n_healthy = group_view.n_healthy;
    summary->backends = counts_of(view, &group_view);
    summary->changed_revision = group->changed_revision;
    summary->is_deleted = group->is_deleted;
    add_guards(view, &group_view, summary);
    return summary;
}

int handle_list_groups(const struct view *view, const ProtobufCMessage *request,
                       ProtobufCMessage **ret_response, struct errmsg *err)
{
    const Jury__V1__ListGroupsRequest *list = (const Jury__V1__ListGroupsRequest *)request;
    Jury__V1__ListGroupsResponse *response =
        WIRE_NEW(view->arena, Jury__V1__ListGroupsResponse, jury__v1__list_groups_response);
    size_t page = 0;
    int rc = handle_page_size(list->page_size, &page, err);

    if (rc != 0 || response == NULL) {
        return rc;
    }
    response->groups = wire_alloc_array(view->arena, page, sizeof *response->groups);
    for (size_t i = 0; response->groups != NULL && i < catalog_n_groups(view->catalog); i++) {
        const struct catalog_group *group = catalog_group_at(view->catalog, i);

        if (strcmp(group->spec.name, list->page_token) <= 0) {
            continue;
        }
        if (response->n_groups == page) {
            /* The next page begins behind the last name of this one. */
            response->next_page_token = response->groups[page - 1]->name;
            break;
        }
        Jury__V1__GroupSummary *summary = summary_new(view, group);
        if (summary == NULL) {
            break;
        }
        response->groups[response->n_groups++] = summary;
    }
    *ret_response = &response->base;
    return 0;
}

int handle_get_group(const struct view *view, const ProtobufCMessage *request,
                     ProtobufCMessage **ret_response, struct errmsg *err)
{
    const Jury__V1__GetGroupRequest *get = (const Jury__V1__GetGroupRequest *)request;
    const struct catalog_group *group = NULL;
    int rc = find_group(view, get->name, &group, err);

    if (rc == 0 && group != NULL && group->is_deleted) {
        rc = errmsg_set(err, ERR_NOTFOUND,
                        "server group \"%.128s\" was deleted; its last flows are coming to an end",
                        get->name);
    }
    if (rc != 0) {
        return rc;
    }
    Jury__V1__GetGroupResponse *response =
        WIRE_NEW(view->arena, Jury__V1__GetGroupResponse, jury__v1__get_group_response);
    if (response != NULL) {
        response->group = group_document_new(view, group);
        response->changed_revision = group->changed_revision;
        *ret_response = &response->base;
    }
    return 0;
}

/* An opinion takes `ms`; every node that hears the votes follows 2 V + 100 ms later. */
static Jury__V1__Window *window_new(const struct view *view, uint64_t ms)
{
    Jury__V1__Window *window = WIRE_NEW(view->arena, Jury__V1__Window, jury__v1__window);

    if (window != NULL) {
        uint64_t vote_ms = catalog_settings(view->catalog)->vote_interval_ms;

        window->opinion = wire_duration_new(view->arena, ms * NS_PER_MS);
        window->verdict =
            wire_duration_new(view->arena, (ms + 2 * vote_ms + PROPAGATION_MS) * NS_PER_MS);
    }
    return window;
}

static Jury__V1__ProbeLoad *load_new(const struct view *view, const struct server_group *spec)
{
    Jury__V1__ProbeLoad *message = WIRE_NEW(view->arena, Jury__V1__ProbeLoad, jury__v1__probe_load);
    uint32_t n_observers = catalog_n_observers(view->catalog);
    struct check_load load = check_load_of(group_check_at(spec, 0), n_observers);

    for (unsigned i = 1; i < group_n_checks(spec); i++) {
        struct check_load more = check_load_of(group_check_at(spec, i), n_observers);

        load.steady_per_1000s += more.steady_per_1000s;
        load.worst_per_1000s += more.worst_per_1000s;
    }
    if (message != NULL) {
        message->n_observers = n_observers;
        message->n_probers = load.n_probers;
        message->steady_per_1000s = load.steady_per_1000s;
        message->worst_per_1000s = load.worst_per_1000s;
        message->at_once = check_is_shared(&spec->check) ? n_observers : 0;
    }
    return message;
}

static uint64_t assumed_response_ms(const struct health_check *check)
{
    bool is_longest = check_passes_by_silence(check) || check->timeout_ms < ASSUMED_RESPONSE_MS;

    return is_longest ? check->timeout_ms : ASSUMED_RESPONSE_MS;
}

static Jury__V1__CheckWindows *check_windows_new(const struct view *view,
                                                 const struct named_check *check)
{
    Jury__V1__CheckWindows *message =
        WIRE_NEW(view->arena, Jury__V1__CheckWindows, jury__v1__check_windows);

    if (message != NULL) {
        uint64_t response_ms = assumed_response_ms(&check->check);

        message->name = wire_text(view->arena, check->name);
        message->check_class = (Jury__V1__CheckClass)check->check_class;
        message->failure_window = window_new(view, check_failure_window_ms(&check->check));
        message->success_window =
            window_new(view, check_success_window_ms(&check->check, response_ms));
        message->assumed_response = wire_duration_new(view->arena, response_ms * NS_PER_MS);
    }
    return message;
}

static void add_check_windows(const struct view *view, const struct server_group *spec,
                              Jury__V1__DescribeGroupResponse *response)
{
    response->checks = wire_alloc_array(view->arena, spec->n_checks, sizeof *response->checks);
    for (uint32_t i = 0; response->checks != NULL && i < spec->n_checks; i++) {
        Jury__V1__CheckWindows *windows = check_windows_new(view, &spec->checks[i]);

        if (windows == NULL) {
            return;
        }
        response->checks[response->n_checks++] = windows;
    }
}

/* The probes of this node alone; how long those of others wait is told by them. */
static Jury__V1__DelayedWindows *delayed_new(const struct view *view,
                                             const struct server_group *spec, uint64_t response_ms)
{
    struct rpc_node node = {0};
    unsigned unhealthy = 0, healthy = 0;

    view->server->hooks.node(view->server->hooks.user, &node);
    uint64_t delay_ns = node.probe_budget.is_pressed ? node.probe_budget.delay_ns : 0;
    for (unsigned i = 0; i < group_n_checks(spec); i++) {
        const struct health_check *check = group_check_at(spec, i);

        unhealthy = check->unhealthy_threshold > unhealthy ? check->unhealthy_threshold : unhealthy;
        healthy = check->healthy_threshold > healthy ? check->healthy_threshold : healthy;
    }
    Jury__V1__DelayedWindows *message =
        delay_ns == 0 ? NULL
                      : WIRE_NEW(view->arena, Jury__V1__DelayedWindows, jury__v1__delayed_windows);
    if (message != NULL) {
        message->delay = wire_duration_new(view->arena, delay_ns);
        message->failure =
            wire_duration_new(view->arena, check_failure_window_ms(&spec->check) * NS_PER_MS +
                                               (unhealthy - 1) * delay_ns);
        message->success =
            wire_duration_new(view->arena, group_success_window_ms(spec, response_ms) * NS_PER_MS +
                                               (healthy - 1) * delay_ns);
    }
    return message;
}

int handle_describe_group(const struct view *view, const ProtobufCMessage *request,
                          ProtobufCMessage **ret_response, struct errmsg *err)
{
    const Jury__V1__DescribeGroupRequest *get = (const Jury__V1__DescribeGroupRequest *)request;
    const struct catalog_group *group = NULL;
    int rc = find_group(view, get->name, &group, err);

    if (rc != 0) {
        return rc;
    }
    Jury__V1__DescribeGroupResponse *response =
        WIRE_NEW(view->arena, Jury__V1__DescribeGroupResponse, jury__v1__describe_group_response);
    if (response == NULL) {
        return 0;
    }
    const struct health_check *check = &group->spec.check;
    response->group = group_document_new(view, group);
    response->changed_revision = group->changed_revision;
    response->summary = summary_new(view, group);
    response->failure_window = window_new(view, check_failure_window_ms(check));
    uint64_t response_ms = assumed_response_ms(check);
    response->success_window = window_new(view, group_success_window_ms(&group->spec, response_ms));
    response->assumed_response = wire_duration_new(view->arena, response_ms * NS_PER_MS);
    if (check->is_enabled) {
        response->probe_load = load_new(view, &group->spec);
        response->delayed = delayed_new(view, &group->spec, response_ms);
    }
    add_check_windows(view, &group->spec, response);
    response->backends =
        wire_alloc_array(view->arena, group->n_backends, sizeof *response->backends);
    for (uint32_t i = 0; response->backends != NULL && i < group->n_backends; i++) {
        Jury__V1__BackendStatus *status = handle_backend_status(view, group, &group->backends[i]);

        if (status == NULL) {
            break;
        }
        response->backends[response->n_backends++] = status;
    }
    *ret_response = &response->base;
    return 0;
}

/* --- lists over backends: a token is "GROUP ENDPOINT" of the last one --- */

struct backend_walk {
    const char *group; /* of which only; empty = all */
    size_t page;       /* at most so many */
    char after_group[LIMIT_NAME_BYTES + 1];
    struct endpoint after;
    bool has_after;
};

/* Checks the group, and goes on behind the token's place; empty = from the beginning. */
static int walk_begin(const struct view *view, struct backend_walk *walk, const char *token,
                      struct errmsg *err)
{
    const struct catalog_group *group;
    const char *blank = strchr(token, ' ');
    int rc = walk->group[0] == '\0' ? 0 : find_group(view, walk->group, &group, err);

    if (rc != 0 || token[0] == '\0') {
        return rc;
    }
    walk->has_after = blank != NULL && (size_t)(blank - token) < sizeof walk->after_group &&
                      endpoint_parse(blank + 1, &walk->after, NULL) == 0;
    if (!walk->has_after) {
        return errmsg_set(err, ERR_INVALID, "page_token is not one that this node gave");
    }
    memcpy(walk->after_group, token, (size_t)(blank - token));
    walk->after_group[blank - token] = '\0';
    return 0;
}

static bool walk_skips(const struct backend_walk *walk, const struct catalog_group *group,
                       const struct catalog_backend *backend)
{
    int order = walk->has_after ? strcmp(group->spec.name, walk->after_group) : 1;

    if (walk->group[0] != '\0' && strcmp(group->spec.name, walk->group) != 0) {
        return true;
    }
    return order < 0 || (order == 0 && backend != NULL &&
                         endpoint_compare(&backend->spec.at, &walk->after) <= 0);
}

static char *walk_token(struct wire_arena *arena, const Jury__V1__BackendRef *last)
{
    struct endpoint at = {0};
    char text[ENDPOINT_TEXT_BYTES];

    /* Of our own making: it can be read. */
    if (addr_parse(last->address, &at.addr, NULL) != 0) {
        return NULL;
    }
    at.port = (uint16_t)last->port;
    return wire_format(arena, "%s %s", last->group, endpoint_format(&at, text));
}

/* Each backend of the page is given to add, which returns false when the arena is used up. Returns
 * true when there are more. */
static bool walk_backends(const struct view *view, const struct backend_walk *walk,
                          bool (*add)(const struct view *view, const struct catalog_group *group,
                                      const struct catalog_backend *backend, void *to),
                          void *to)
{
    size_t n = 0;

    for (size_t i = 0; i < catalog_n_groups(view->catalog); i++) {
        const struct catalog_group *group = catalog_group_at(view->catalog, i);

        if (walk_skips(walk, group, NULL)) {
            continue;
        }
        for (uint32_t j = 0; j < group->n_backends; j++) {
            if (walk_skips(walk, group, &group->backends[j])) {
                continue;
            }
            if (n++ == walk->page) {
                return true;
            }
            if (!add(view, group, &group->backends[j], to)) {
                return false;
            }
        }
    }
    return false;
}

static bool add_status(const struct view *view, const struct catalog_group *group,
                       const struct catalog_backend *backend, void *to)
{
    Jury__V1__ListBackendsResponse *response = to;
    Jury__V1__BackendStatus *status = handle_backend_status(view, group, backend);

    if (status != NULL) {
        response->backends[response->n_backends++] = status;
    }
    return status != NULL;
}

int handle_list_backends(const struct view *view, const ProtobufCMessage *request,
                         ProtobufCMessage **ret_response, struct errmsg *err)
{
    const Jury__V1__ListBackendsRequest *list = (const Jury__V1__ListBackendsRequest *)request;
    Jury__V1__ListBackendsResponse *response =
        WIRE_NEW(view->arena, Jury__V1__ListBackendsResponse, jury__v1__list_backends_response);
    struct backend_walk walk = {.group = list->group};
    int rc = handle_page_size(list->page_size, &walk.page, err);

    if (rc == 0) {
        rc = walk_begin(view, &walk, list->page_token, err);
    }
    if (rc != 0 || response == NULL) {
        return rc;
    }
    response->backends = wire_alloc_array(view->arena, walk.page, sizeof *response->backends);
    bool is_cut = response->backends != NULL && walk_backends(view, &walk, add_status, response);
    if (is_cut && !view->arena->failed) {
        const Jury__V1__BackendStatus *last = response->backends[response->n_backends - 1];
        Jury__V1__BackendRef ref = {
            .group = last->group, .address = last->backend->address, .port = last->backend->port};

        response->next_page_token = walk_token(view->arena, &ref);
    }
    *ret_response = &response->base;
    return 0;
}

static bool add_verdict(const struct view *view, const struct catalog_group *group,
                        const struct catalog_backend *backend, void *to)
{
    Jury__V1__ListVerdictsResponse *response = to;
    Jury__V1__BackendVerdict *verdict =
        WIRE_NEW(view->arena, Jury__V1__BackendVerdict, jury__v1__backend_verdict);
    Jury__V1__BackendStatus *status = handle_backend_status(view, group, backend);

    if (verdict == NULL || status == NULL) {
        return false;
    }
    verdict->backend = wire_backend_ref_new(view->arena, group->spec.name, &backend->spec.at);
    verdict->verdict = status->verdict;
    verdict->n_paths = status->n_paths;
    verdict->paths = status->paths;
    response->verdicts[response->n_verdicts++] = verdict;
    return true;
}

int handle_list_verdicts(const struct view *view, const ProtobufCMessage *request,
                         ProtobufCMessage **ret_response, struct errmsg *err)
{
    const Jury__V1__ListVerdictsRequest *list = (const Jury__V1__ListVerdictsRequest *)request;
    Jury__V1__ListVerdictsResponse *response =
        WIRE_NEW(view->arena, Jury__V1__ListVerdictsResponse, jury__v1__list_verdicts_response);
    struct backend_walk walk = {.group = list->group};
    int rc = handle_page_size(list->page_size, &walk.page, err);

    if (rc == 0 && view->catalog == NULL) {
        rc = errmsg_set(err, ERR_NOTREADY, "this node has no catalog yet");
    }
    if (rc == 0) {
        rc = walk_begin(view, &walk, list->page_token, err);
    }
    if (rc != 0 || response == NULL) {
        return rc;
    }
    response->verdicts = wire_alloc_array(view->arena, walk.page, sizeof *response->verdicts);
    bool is_cut = response->verdicts != NULL && walk_backends(view, &walk, add_verdict, response);
    if (is_cut && !view->arena->failed) {
        response->next_page_token =
            walk_token(view->arena, response->verdicts[response->n_verdicts - 1]->backend);
    }
    *ret_response = &response->base;
    return 0;
}

/* --- listeners, keys, settings --- */

/* Asks each plane, so that a page costs planes x failures and not a look at each listener. */
static void fill_problems(const struct view *view, uint64_t listener_id,
                          Jury__V1__ListenerStatus *status)
{
    struct rpc_data_plane plane = {0};

    status->problems = wire_alloc_array(view->arena, LIMIT_DATA_PLANES, sizeof *status->problems);
    for (size_t n = 0; status->problems != NULL && n < LIMIT_DATA_PLANES &&
                       view->server->hooks.data_plane(view->server->hooks.user, n, &plane);
         n++) {
        for (uint32_t i = 0; i < plane.n_failures; i++) {
            if (plane.failures[i].listener_id == listener_id) {
                status->problems[status->n_problems++] =
                    wire_format(view->arena, "not open in data plane %s: %s", plane.name,
                                plane.failures[i].reason);
                break;
            }
        }
        plane = (struct rpc_data_plane){0};
    }
}

int handle_list_listeners(const struct view *view, const ProtobufCMessage *request,
                          ProtobufCMessage **ret_response, struct errmsg *err)
{
    const Jury__V1__ListListenersRequest *list = (const Jury__V1__ListListenersRequest *)request;
    Jury__V1__ListListenersResponse *response =
        WIRE_NEW(view->arena, Jury__V1__ListListenersResponse, jury__v1__list_listeners_response);
    size_t page = 0;
    int rc = handle_page_size(list->page_size, &page, err);

    if (rc != 0 || response == NULL) {
        return rc;
    }
    response->listeners = wire_alloc_array(view->arena, page, sizeof *response->listeners);
    for (size_t i = 0; response->listeners != NULL && i < catalog_n_listeners(view->catalog); i++) {
        const struct catalog_listener *listener = catalog_listener_at(view->catalog, i);

        if (strcmp(listener->spec.name, list->page_token) <= 0) {
            continue;
        }
        if (response->n_listeners == page) {
            response->next_page_token = response->listeners[page - 1]->listener->name;
            break;
        }
        Jury__V1__ListenerStatus *status =
            WIRE_NEW(view->arena, Jury__V1__ListenerStatus, jury__v1__listener_status);
        if (status == NULL) {
            break;
        }
        status->listener = wire_listener_new(view->arena, &listener->spec);
        status->changed_revision = listener->changed_revision;
        fill_problems(view, listener->id, status);
        response->listeners[response->n_listeners++] = status;
        if (status->listener == NULL) {
            break;
        }
    }
    *ret_response = &response->base;
    return 0;
}
