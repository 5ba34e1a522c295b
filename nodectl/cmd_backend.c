/* backend: list, drain, ready, weight, maintenance. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/base/clock.h"
#include "common/base/str.h"
#include "common/base/units.h"
#include "common/model/names.h"
#include "common/model/reason.h"
#include "jury/v1/group.pb-c.h"
#include "nodectl/backend_ref.h"
#include "nodectl/commands.h"
#include "nodectl/connect.h"
#include "nodectl/render.h"
#include "nodectl/suggest.h"

#define POLL_NS (300 * NS_PER_MS)
#define CLOSING_NS (5 * NS_PER_SECOND)
#define WAIT_MARGIN_NS (60 * NS_PER_SECOND) /* behind the deadline: a silent node's report */

/* Whether one of the words of its row is this one. */
static bool has_word(const Jury__V1__BackendStatus *status, const char *word)
{
    char marks[RENDER_TEXT_BYTES];
    const Jury__V1__Verdict *verdict = status->verdict;
    bool is_removing = status->life == JURY__V1__BACKEND_LIFE__BACKEND_LIFE_REMOVING;

    if (verdict == NULL || status->backend == NULL) {
        return false;
    }
    if (strcmp(word, "removing") == 0) {
        return is_removing;
    }
    if (strcmp(word, "unreachable") == 0) {
        return verdict->is_unreachable;
    }
    /* No mark is a part of another. */
    return strcmp(health_state_word((enum health_state)verdict->state), word) == 0 ||
           strstr(render_marks(verdict, marks), word) != NULL ||
           (!is_removing &&
            strcmp(names_word(&names_admin_state, (unsigned)status->backend->admin_state), word) ==
                0);
}

/* Keeps those of the list that --state wants; for people and programs alike. */
static void filter(struct ctl *ctl, Jury__V1__ListBackendsResponse *backends)
{
    const char *word = ctl_text(ctl, FLAG_STATE);
    size_t n = 0;

    for (size_t i = 0; i < backends->n_backends; i++) {
        if (has_word(backends->backends[i], word)) {
            backends->backends[n++] = backends->backends[i];
        }
    }
    backends->n_backends = n;
}

int cmd_backend_list(struct ctl *ctl)
{
    Jury__V1__ListBackendsRequest request;
    struct ctl_list list = {0};

    jury__v1__list_backends_request__init(&request);
    if (ctl->n_args > 0) {
        request.group = ctl->args[0];
    }
    int rc = ctl_call_list(ctl, "jury.v1.BackendService/ListBackends", &request.base, &list);
    if (rc == ERR_NOTFOUND) {
        suggest_group(ctl, ctl->args[0]);
    }
    Jury__V1__ListBackendsResponse *backends =
        rc == 0 ? (Jury__V1__ListBackendsResponse *)(void *)list.whole : NULL;
    if (rc == 0 && ctl_has(ctl, FLAG_STATE)) {
        filter(ctl, backends);
    }
    if (rc == 0 && ctl_is_json(ctl)) {
        rc = ctl_print_message(ctl, list.whole);
    } else if (rc == 0) {
        render_backends(ctl, backends->backends, backends->n_backends, ctl->n_args == 0);
        if (backends->n_backends == 0 && ctl_has(ctl, FLAG_STATE)) {
            ctl_note(ctl, "no backend is %s", ctl_text(ctl, FLAG_STATE));
        } else if (backends->n_backends == 0) {
            ctl_note(ctl, "there are no backends yet");
        }
    }
    ctl_list_close(&list);
    return rc;
}

static int ready(struct ctl *ctl, struct backend_ref *ref)
{
    Jury__V1__ReadyBackendRequest request;
    struct rpc_result result = {0};
    char endpoint[RENDER_TEXT_BYTES];

    jury__v1__ready_backend_request__init(&request);
    request.backend = &ref->ref;
    if (ctl_has(ctl, FLAG_EXPECTED_REVISION)) {
        request.precondition_case = JURY__V1__READY_BACKEND_REQUEST__PRECONDITION_EXPECTED_REVISION;
        request.expected_revision = ctl_number(ctl, FLAG_EXPECTED_REVISION);
    }
    int rc = ctl_call(ctl, "jury.v1.BackendService/ReadyBackend", &request.base, &result);
    if (rc == 0 && ctl_is_json(ctl)) {
        rc = ctl_print_message(ctl, result.response);
    } else if (rc == 0) {
        const Jury__V1__ReadyBackendResponse *answer =
            (const Jury__V1__ReadyBackendResponse *)(const void *)result.response;

        fprintf(ctl->out, "%s/%s is enabled %s revision %" PRIu64 "\n", ref->group,
                render_endpoint(ref->address, ref->ref.port, endpoint),
                answer->is_unchanged ? "already: unchanged at" : "since", answer->revision);
    }
    rpc_result_close(&result);
    return rc;
}

int cmd_backend_ready(struct ctl *ctl)
{
    struct backend_ref ref;
    int rc = backend_ref_parse(ctl, ctl->args[0], &ref);

    return rc != 0 ? rc : ready(ctl, &ref);
}

/* --- drain --- */

static const Jury__V1__BackendStatus *find_backend(const Jury__V1__ListBackendsResponse *backends,
                                                   const struct backend_ref *ref)
{
    for (size_t i = 0; i < backends->n_backends; i++) {
        const Jury__V1__Backend *backend = backends->backends[i]->backend;

        if (backend != NULL && backend->port == ref->ref.port &&
            strcmp(backend->address, ref->address) == 0) {
            return backends->backends[i];
        }
    }
    return NULL;
}

static void pause_ns(uint64_t ns)
{
    struct timespec pause = {.tv_sec = (time_t)(ns / NS_PER_SECOND),
                             .tv_nsec = (long)(ns % NS_PER_SECOND)};

    nanosleep(&pause, NULL);
}

struct drain_watch {
    const struct backend_ref *ref;
    uint64_t revision;    /* that committed the drain */
    uint64_t deadline_ns; /* monotonic; 0 = not known yet */
    uint64_t closing_ns;  /* monotonic, when the data planes are to have closed what was left */
    char *told;           /* progress as told last; owned */
};

static void tell_progress(struct ctl *ctl, struct drain_watch *watch,
                          const Jury__V1__DrainStatus *drain)
{
    char *text = render_drain_progress(drain);

    if (text != NULL && (watch->told == NULL || strcmp(watch->told, text) != 0)) {
        ctl_note(ctl, "%s", text);
        free(watch->told);
        watch->told = text;
    } else {
        free(text);
    }
}

/* A drain is over at its deadline; the data planes close what is left just then and tell it with
 * their next report. What was closed should be in the answer, so that is waited for a moment. */
static bool is_still_closing(struct drain_watch *watch, const Jury__V1__DrainStatus *drain)
{
    if (watch->closing_ns == 0) {
        watch->closing_ns = clock_monotonic_ns() + CLOSING_NS;
    }
    return drain->n_flows > 0 && clock_monotonic_ns() < watch->closing_ns;
}

/* The deadline passes on every node's own clock; after it nobody has to wait for long. */
static void set_deadline(struct drain_watch *watch, const Jury__V1__DrainStatus *drain)
{
    uint64_t timeout_ns = WAIT_MARGIN_NS;

    if (watch->deadline_ns != 0) {
        return;
    }
    if (drain->timeout != NULL && drain->timeout->seconds > 0) {
        timeout_ns += (uint64_t)drain->timeout->seconds * NS_PER_SECOND;
    }
    watch->deadline_ns = clock_monotonic_ns() + timeout_ns;
}

/* Somebody enabled the backend again, or did more: the answer to "is it drained" is no. */
static int taken_back(struct ctl *ctl, const Jury__V1__Backend *backend)
{
    if (ctl_is_json(ctl)) {
        int rc = ctl_print_json(ctl, json_pack("{s:b, s:b}", "isDone", 0, "isTakenBack", 1));

        return rc != 0 ? rc : 1;
    }
    fputs(backend->admin_state == JURY__V1__ADMIN_STATE__ADMIN_STATE_MAINTENANCE
              ? "the backend went into maintenance meanwhile: its flows are closed at once\n"
              : "the drain was taken back\n",
          ctl->out);
    return 1;
}

/* An answer from before the drain says nothing about it. */
static bool is_taken_back(const struct ctl_list *list, const Jury__V1__BackendStatus *status,
                          uint64_t drain_revision)
{
    return list->results[0].header->revision >= drain_revision &&
           status->life == JURY__V1__BACKEND_LIFE__BACKEND_LIFE_AVAILABLE &&
           status->backend->admin_state != JURY__V1__ADMIN_STATE__ADMIN_STATE_DRAINING;
}

/* With the removal the backend goes: its flows still end by the drain, but nobody asks for that. */
static bool is_removed(const Jury__V1__BackendStatus *status, uint64_t drain_revision)
{
    return status->life == JURY__V1__BACKEND_LIFE__BACKEND_LIFE_REMOVING && status->drain != NULL &&
           status->drain->revision >= drain_revision;
}

/* One look. Returns 0 and *ret_ended when the drain has come to its end. */
static int look(struct ctl *ctl, struct drain_watch *watch, bool *ret_ended)
{
    Jury__V1__ListBackendsRequest request;
    struct ctl_list list = {0};

    jury__v1__list_backends_request__init(&request);
    request.group = watch->ref->ref.group;
    int rc = ctl_call_list(ctl, "jury.v1.BackendService/ListBackends", &request.base, &list);
    if (rc == 0) {
        const Jury__V1__BackendStatus *status = find_backend(
            (const Jury__V1__ListBackendsResponse *)(const void *)list.whole, watch->ref);

        if (status == NULL || is_removed(status, watch->revision)) {
            rc = ctl_fail(ctl, ERR_NOTFOUND, "the backend was removed while it was drained");
        } else if (is_taken_back(&list, status, watch->revision)) {
            *ret_ended = true;
            rc = taken_back(ctl, status->backend);
        } else if (status->drain == NULL) {
            *ret_ended = false; /* the node has not begun with it yet */
        } else if (status->drain->is_done && !is_still_closing(watch, status->drain)) {
            if (ctl_is_json(ctl)) {
                rc = ctl_print_message(ctl, &status->drain->base);
            } else {
                render_drain(ctl, status->drain);
            }
            *ret_ended = true;
        } else {
            set_deadline(watch, status->drain);
            tell_progress(ctl, watch, status->drain);
        }
    }
    ctl_list_close(&list);
    return rc;
}

static int wait_drained(struct ctl *ctl, const struct backend_ref *ref, uint64_t revision)
{
    struct drain_watch watch = {.ref = ref, .revision = revision};
    bool has_ended = false;
    int rc = 0;

    ctl->is_stale = true; /* the asked node's own view: needs no leader */
    while (rc == 0 && !has_ended) {
        rc = look(ctl, &watch, &has_ended);
        if (rc == 0 && !has_ended) {
            if (watch.deadline_ns != 0 && clock_monotonic_ns() > watch.deadline_ns) {
                rc = ctl_fail(ctl, ERR_TIMEOUT,
                              "the deadline of the drain passed long ago and not every node is "
                              "done");
            } else {
                pause_ns(POLL_NS);
            }
        }
    }
    free(watch.told);
    return rc;
}

static int drain(struct ctl *ctl, struct backend_ref *ref, uint64_t *ret_revision)
{
    Jury__V1__DrainBackendRequest request;
    Google__Protobuf__Duration timeout;
    Jury__V1__Force force;
    struct rpc_result result = {0};
    char endpoint[RENDER_TEXT_BYTES];

    jury__v1__drain_backend_request__init(&request);
    google__protobuf__duration__init(&timeout);
    jury__v1__force__init(&force);
    request.backend = &ref->ref;
    if (ctl_has(ctl, FLAG_DRAIN_TIMEOUT)) {
        uint64_t ms = ctl_number(ctl, FLAG_DRAIN_TIMEOUT);

        timeout.seconds = (int64_t)(ms / 1000);
        timeout.nanos = (int32_t)(ms % 1000) * 1000000;
        request.timeout = &timeout;
    }
    if (ctl_has(ctl, FLAG_EXPECTED_REVISION)) {
        request.precondition_case = JURY__V1__DRAIN_BACKEND_REQUEST__PRECONDITION_EXPECTED_REVISION;
        request.expected_revision = ctl_number(ctl, FLAG_EXPECTED_REVISION);
    }
    if (ctl_has(ctl, FLAG_FORCE)) {
        force.count = (uint32_t)ctl_number(ctl, FLAG_FORCE);
        request.force = &force;
    }
    int rc = ctl_call(ctl, "jury.v1.BackendService/DrainBackend", &request.base, &result);
    if (rc == 0) {
        const Jury__V1__DrainBackendResponse *answer =
            (const Jury__V1__DrainBackendResponse *)(const void *)result.response;

        *ret_revision = answer->revision;
        if (!ctl_is_json(ctl)) {
            fprintf(ctl->out, "%s/%s is draining %s revision %" PRIu64 "\n", ref->group,
                    render_endpoint(ref->address, ref->ref.port, endpoint),
                    answer->is_unchanged ? "already: unchanged at" : "since", answer->revision);
        } else if (!ctl_has(ctl, FLAG_WAIT)) {
            /* With --wait the end of the drain is the one answer. */
            rc = ctl_print_message(ctl, result.response);
        }
    }
    rpc_result_close(&result);
    return rc;
}

int cmd_backend_drain(struct ctl *ctl)
{
    struct backend_ref ref;
    uint64_t revision = 0;

    if (ctl_has(ctl, FLAG_CANCEL) &&
        (ctl_has(ctl, FLAG_WAIT) || ctl_has(ctl, FLAG_DRAIN_TIMEOUT) || ctl_has(ctl, FLAG_FORCE))) {
        return ctl_fail(ctl, ERR_USAGE,
                        "--cancel takes the drain back: --wait, --timeout and --force do not go "
                        "with it");
    }
    int rc = backend_ref_parse(ctl, ctl->args[0], &ref);
    if (rc == 0 && ctl_has(ctl, FLAG_CANCEL)) {
        return ready(ctl, &ref);
    }
    if (rc == 0) {
        rc = drain(ctl, &ref, &revision);
    }
    if (rc == 0 && ctl_has(ctl, FLAG_WAIT)) {
        rc = wait_drained(ctl, &ref, revision);
    }
    return rc;
}

/* --- weight, maintenance --- */

/* Sends it with what the flags say. what: that it is then, for people. */
static int set_backend(struct ctl *ctl, Jury__V1__SetBackendRequest *request,
                       struct backend_ref *ref, const char *what)
{
    struct rpc_result result = {0};
    Jury__V1__Force force;
    char endpoint[RENDER_TEXT_BYTES];

    jury__v1__force__init(&force);
    request->backend = &ref->ref;
    if (ctl_has(ctl, FLAG_EXPECTED_REVISION)) {
        request->precondition_case = JURY__V1__SET_BACKEND_REQUEST__PRECONDITION_EXPECTED_REVISION;
        request->expected_revision = ctl_number(ctl, FLAG_EXPECTED_REVISION);
    }
    if (ctl_has(ctl, FLAG_FORCE)) {
        force.count = (uint32_t)ctl_number(ctl, FLAG_FORCE);
        request->force = &force;
    }
    int rc = ctl_call(ctl, "jury.v1.BackendService/SetBackend", &request->base, &result);
    if (rc == 0 && ctl_is_json(ctl)) {
        rc = ctl_print_message(ctl, result.response);
    } else if (rc == 0) {
        const Jury__V1__SetBackendResponse *answer =
            (const Jury__V1__SetBackendResponse *)(const void *)result.response;

        fprintf(ctl->out, "%s/%s %s %s revision %" PRIu64 "\n", ref->group,
                render_endpoint(ref->address, ref->ref.port, endpoint), what,
                answer->is_unchanged ? "already: unchanged at" : "since", answer->revision);
    }
    rpc_result_close(&result);
    return rc;
}

int cmd_backend_weight(struct ctl *ctl)
{
    struct backend_ref ref;
    Jury__V1__SetBackendRequest request;
    uint64_t weight = 0;
    char what[32];

    if (!str_parse_u64(ctl->args[1], 100, &weight)) {
        return ctl_fail(ctl, ERR_USAGE, "the weight must be 0..100, got \"%.40s\"", ctl->args[1]);
    }
    int rc = backend_ref_parse(ctl, ctl->args[0], &ref);
    if (rc != 0) {
        return rc;
    }
    jury__v1__set_backend_request__init(&request);
    request.weight_choice_case = JURY__V1__SET_BACKEND_REQUEST__WEIGHT_CHOICE_WEIGHT;
    request.weight = (uint32_t)weight;
    snprintf(what, sizeof what, "has weight %" PRIu64, weight);
    return set_backend(ctl, &request, &ref, what);
}

int cmd_backend_maintenance(struct ctl *ctl)
{
    struct backend_ref ref;
    Jury__V1__SetBackendRequest request;
    int rc = backend_ref_parse(ctl, ctl->args[0], &ref);

    if (rc != 0) {
        return rc;
    }
    jury__v1__set_backend_request__init(&request);
    request.admin_state = JURY__V1__ADMIN_STATE__ADMIN_STATE_MAINTENANCE;
    return set_backend(ctl, &request, &ref, "is in maintenance");
}
