/* Groups, backends, drains and listeners. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/model/guard.h"
#include "common/model/names.h"
#include "common/model/reason.h"
#include "common/spec/field.h"
#include "common/spec/value.h"
#include "nodectl/remark.h"
#include "nodectl/render.h"

static enum render_color group_color(Jury__V1__GroupState state)
{
    switch ((int)state) {
    case GROUP_OK:
        return RENDER_GOOD;
    case GROUP_DEGRADED:
        return RENDER_WARN;
    case GROUP_FAIL_OPEN:
    case GROUP_CLOSED:
        return RENDER_BAD;
    default:
        return RENDER_DIM;
    }
}

void render_groups(struct ctl *ctl, const Jury__V1__ListGroupsResponse *groups)
{
    static const struct render_column columns[] = {
        {"GROUP", false},  {"PROFILE", false}, {"PROTOCOL", false}, {"STATE", false},
        {"HEALTHY", true}, {"BACKENDS", true}, {"SINCE", true},     {"REVISION", true}};
    struct render_table *table = render_table_new(columns, 8);
    char text[RENDER_TEXT_BYTES];

    for (size_t i = 0; i < groups->n_groups; i++) {
        const Jury__V1__GroupSummary *group = groups->groups[i];

        render_row(table);
        render_cell(table, "%s", group->name);
        render_cell(table, "%s", names_word(&names_profile, (unsigned)group->profile));
        render_cell(table, "%s", names_word(&names_protocol, (unsigned)group->protocol));
        render_cell(table, "%s%s", group_state_word((enum group_state)group->state),
                    group->is_deleted   ? " (deleted)"
                    : group->is_warming ? " (warming)"
                                        : "");
        render_cell_color(table, group_color(group->state));
        render_cell(table, "%" PRIu32 "/%" PRIu32, group->n_healthy, group->n_eligible);
        render_cell(table, "%" PRIu32, group->backends == NULL ? 0 : group->backends->total);
        render_cell(table, "%s", render_duration(group->since, text));
        render_cell(table, "%" PRIu64, group->changed_revision);
    }
    render_table_print(ctl, table);
}

/* What each check of a list has alike, or is called by. */
static bool is_same_in_lists(const char *prefix, const struct spec_field *field)
{
    static const char *const names[] = {"name", "enabled", "probers", "recheck"};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strncmp(prefix, "checks.", 7) == 0 && strcmp(field->name, names[i]) == 0) {
            return true;
        }
    }
    return false;
}

/* The fields of a table, one a line, nested ones by their path. hold_remark: behind the switch. */
static void put_fields(FILE *out, const struct spec_table *table, const void *base,
                       const char *prefix, const char *hold_remark)
{
    for (size_t i = 0; i < table->n_fields; i++) {
        const struct spec_field *field = &table->fields[i];
        const void *from = (const uint8_t *)base + field->offset;
        char path[RENDER_TEXT_BYTES];
        char text[VALUE_TEXT_BYTES];

        if ((field->flags & (SPEC_LATER | SPEC_ALTERNATE)) != 0 ||
            is_same_in_lists(prefix, field) || !spec_field_applies(field, base) ||
            field->type == SPEC_TYPE_LIST ||
            ((field->flags & SPEC_OMIT_ZERO) != 0 && value_is_zero(field, from))) {
            continue;
        }
        snprintf(path, sizeof path, "%s%s", prefix, field->name);
        if (field->type == SPEC_TYPE_OBJECT) {
            strncat(path, ".", sizeof path - strlen(path) - 1);
            put_fields(out, field->fields, from, path, "");
        } else {
            fprintf(out, "  %-26s %s%s\n", path, value_show(field, from, text, sizeof text),
                    strcmp(path, "hold") == 0 ? hold_remark : "");
        }
    }
}

/* answers: which ones it is for, or "". */
static void put_window(FILE *out, const char *title, const Jury__V1__Window *window,
                       const char *answers)
{
    char opinion[RENDER_TEXT_BYTES];
    char verdict[RENDER_TEXT_BYTES];

    if (window != NULL) {
        fprintf(out, "  %-26s %s to a node's opinion, %s to the verdict everywhere%s\n", title,
                render_duration(window->opinion, opinion),
                render_duration(window->verdict, verdict), answers);
    }
}

/* The two windows of one check, or of all of them. */
struct windows {
    const Jury__V1__Window *failure, *success;
    const Google__Protobuf__Duration *response; /* that the success window is for */
    bool is_silence; /* silence passes: the timeout is how long a pass takes, and a closed port is
                        told before it */
};

/* of: behind the titles and behind what they say, or "". */
static void put_pair(FILE *out, const struct windows *windows, const char *of, const char *which)
{
    char text[RENDER_TEXT_BYTES];
    char title[RENDER_TEXT_BYTES];
    char behind[RENDER_TEXT_BYTES];

    snprintf(title, sizeof title, "failure window%.60s", of);
    snprintf(behind, sizeof behind, "%s%s", which,
             windows->is_silence ? " at most: a closed port says so before the timeout" : "");
    put_window(out, title, windows->failure, behind);
    snprintf(title, sizeof title, "success window%.60s", of);
    snprintf(behind, sizeof behind, "%s, %s %.40s%s", which,
             windows->is_silence ? "by silence for" : "with answers of",
             render_duration(windows->response, text), windows->is_silence ? " each" : "");
    put_window(out, title, windows->success, behind);
}

static void put_windows(FILE *out, const Jury__V1__DescribeGroupResponse *answer,
                        const struct server_group *group)
{
    for (size_t i = 0; i < answer->n_checks && i < group->n_checks; i++) {
        const Jury__V1__CheckWindows *check = answer->checks[i];
        const struct windows windows = {check->failure_window, check->success_window,
                                        check->assumed_response,
                                        check_passes_by_silence(&group->checks[i].check)};
        char of[RENDER_TEXT_BYTES];

        snprintf(of, sizeof of, " of %.40s", check->name);
        put_pair(out, &windows, of, "");
    }
    const struct windows windows = {answer->failure_window, answer->success_window,
                                    answer->assumed_response,
                                    check_passes_by_silence(&group->check)};
    put_pair(out, &windows, "", group_is_composed(group) ? ", of the check that decides" : "");
}

/* Of several checks the fields of each. */
static void put_checks(FILE *out, const struct server_group *group)
{
    const struct spec_field *field = spec_field_find(spec_kind_info(SPEC_GROUP)->spec, "checks");

    for (uint32_t i = 0; i < group->n_checks; i++) {
        char prefix[RENDER_TEXT_BYTES];

        snprintf(prefix, sizeof prefix, "checks.%.40s.", group->checks[i].name);
        put_fields(out, field->list->fields, &group->checks[i], prefix, "");
    }
}

/* "1.5", "0.004": of so many in 1000 s. */
static char *per_second(uint64_t per_1000s, char text[RENDER_TEXT_BYTES])
{
    snprintf(text, RENDER_TEXT_BYTES, "%" PRIu64 ".%03" PRIu64, per_1000s / 1000, per_1000s % 1000);
    for (size_t n = strlen(text); text[n - 1] == '0' || text[n - 1] == '.'; n--) {
        bool is_point = text[n - 1] == '.';

        text[n - 1] = '\0';
        if (is_point) {
            break;
        }
    }
    return text;
}

/* The windows above are of probes that begin in time. */
static void put_delayed(FILE *out, const Jury__V1__DelayedWindows *delayed)
{
    char delay[RENDER_TEXT_BYTES], failure[RENDER_TEXT_BYTES], success[RENDER_TEXT_BYTES];

    if (delayed != NULL) {
        fprintf(out,
                "  %-26s is short on this node: probes begin up to %s late, so that it takes up to "
                "%s to see a failure and %s to see a recovery; see nodectl explain budget\n",
                "probe budget", render_duration(delayed->delay, delay),
                render_duration(delayed->failure, failure),
                render_duration(delayed->success, success));
    }
}

static void put_load(FILE *out, const Jury__V1__ProbeLoad *load, unsigned probers)
{
    char text[RENDER_TEXT_BYTES];

    if (load == NULL) {
        return;
    }
    fprintf(out, "  %-26s %s a second, from %" PRIu32 " of %" PRIu32 " nodes",
            "probes of a backend", per_second(load->steady_per_1000s, text), load->n_probers,
            load->n_observers);
    if (probers > load->n_observers) {
        fprintf(out, " (probers is %u: all there are probe)", probers);
    }
    if (load->at_once > 0) {
        fprintf(out, "; when one fails %" PRIu32 " at once, and at most %s a second", load->at_once,
                per_second(load->worst_per_1000s, text));
    }
    fputc('\n', out);
}

/* Where the check is not of what is forwarded, or need not be. */
static void put_checked_by(FILE *out, const struct server_group *group)
{
    char text[REMARK_CHECKED_BYTES];

    if (group->protocol != PROTOCOL_TCP && group->check.is_enabled) {
        fprintf(out, "  %-26s %s\n", "checked by", remark_checked_by(group, text));
    }
}

/* On the first line: what keeps the verdicts from following the votes. */
static void put_guards(FILE *out, const Jury__V1__GroupSummary *summary)
{
    char text[RENDER_TEXT_BYTES];

    for (size_t i = 0; i < summary->n_guards; i++) {
        fprintf(out, "; %s (on for %s)", summary->guards[i]->sentence,
                render_duration(summary->guards[i]->since, text));
    }
}

/* The first line says which hold is on, and the field may be another switch. */
static const char *hold_remark(const struct server_group *group,
                               const Jury__V1__GroupSummary *summary)
{
    for (size_t i = 0; i < summary->n_guards; i++) {
        if ((unsigned)summary->guards[i]->guard == GUARD_HOLD && group->hold != HOLD_ON) {
            return " (the group's own switch; the hold that is on is not by it)";
        }
    }
    return "";
}

void render_group(struct ctl *ctl, const Jury__V1__DescribeGroupResponse *answer,
                  const struct server_group *group)
{
    const Jury__V1__GroupSummary *summary = answer->summary;
    FILE *out = ctl->out;
    char title[RENDER_TEXT_BYTES];

    fprintf(out, "group %s", group->name);
    if (summary != NULL) {
        fprintf(out, " is %s%s: %" PRIu32 " of %" PRIu32 " backends in use are healthy",
                group_state_word((enum group_state)summary->state),
                summary->is_warming ? " (warming)" : "", summary->n_healthy, summary->n_eligible);
        if (summary->is_warming) {
            fputs(", those not judged yet share the new flows", out);
        }
        if (summary->backends != NULL && summary->backends->degraded > 0) {
            fprintf(out, "; %" PRIu32 " degraded by a dependency", summary->backends->degraded);
        }
        put_guards(out, summary);
    }
    fprintf(out, "\n  %-26s %" PRIu64 "\n", "revision", answer->changed_revision);
    for (uint32_t i = 0; i < group->n_labels; i++) {
        snprintf(title, sizeof title, "labels.%.63s", group->labels[i].key);
        fprintf(out, "  %-26s %s\n", title, group->labels[i].value);
    }
    put_fields(out, spec_kind_info(SPEC_GROUP)->spec, group, "",
               summary != NULL ? hold_remark(group, summary) : "");
    put_checks(out, group);
    put_checked_by(out, group);
    put_windows(out, answer, group);
    put_delayed(out, answer->delayed);
    put_load(out, answer->probe_load, group->check.probers);
    if (answer->n_backends > 0) {
        fputc('\n', out);
        render_backends(ctl, answer->backends, answer->n_backends, false);
    }
}

/* Flows of an unhealthy backend that have a deadline: nobody drains it and nobody counts them. */
static bool is_ejection(const Jury__V1__DrainStatus *drain)
{
    return drain->cause == JURY__V1__DRAIN_STATUS__CAUSE__CAUSE_VERDICT;
}

static void put_drain_cell(struct render_table *table, const Jury__V1__DrainStatus *drain)
{
    char text[RENDER_TEXT_BYTES];

    if (drain == NULL) {
        render_cell(table, "-");
    } else if (is_ejection(drain)) {
        render_cell(table, "ejection, %s left",
                    drain->remaining != NULL ? render_duration(drain->remaining, text) : "0s");
    } else if (drain->is_done) {
        render_cell(table, "done%s", drain->n_uncounted_nodes > 0 ? ", flows unknown" : "");
    } else {
        char flows[RENDER_TEXT_BYTES] = "flows not counted yet";

        /* Of more nodes some may be counted: then it is at least so many. */
        if (drain->n_unreported_nodes == 0 || drain->n_flows > 0) {
            snprintf(flows, sizeof flows, "%" PRIu64 " flow%s%s", drain->n_flows,
                     drain->n_flows == 1 ? "" : "s",
                     drain->n_unreported_nodes > 0 ? " or more" : "");
        }
        if (drain->remaining != NULL) {
            render_cell(table, "%s, %s left", flows, render_duration(drain->remaining, text));
        } else {
            render_cell(table, "%s", flows);
        }
    }
}

static void put_life(struct render_table *table, const Jury__V1__BackendStatus *status)
{
    static const char *const words[] = {"?", "adding", "available", "removing", "replacing"};
    unsigned life = (unsigned)status->life;

    if (life == 3 || life == 4 || life == 1) {
        render_cell(table, "%s", words[life]);
    } else {
        render_cell(table, "%s",
                    names_word(&names_admin_state, (unsigned)status->backend->admin_state));
    }
}

/* "" = the reason is of the one check, or it is not told of which. */
static const char *decider(const Jury__V1__Verdict *verdict)
{
    return verdict->decider_case == JURY__V1__VERDICT__DECIDER_DECIDING_CHECK
               ? verdict->deciding_check
               : "";
}

/* What of a verdict fits into a row. */
static void put_verdict_cells(struct render_table *table, const Jury__V1__Verdict *verdict)
{
    char text[RENDER_TEXT_BYTES];

    render_cell(table, "%s", health_state_word((enum health_state)verdict->state));
    render_cell_color(table, render_health_color(verdict->state));
    render_cell(table, "%s", render_marks(verdict, text));
    render_cell(table, "%" PRIu32 "/%" PRIu32 "/%" PRIu32, verdict->n_pass, verdict->n_fail,
                verdict->n_observers);
    render_cell(table, "%s", render_duration(verdict->since, text));
    if (verdict->reason == JURY__V1__PROBE_REASON__PROBE_REASON_UNSPECIFIED) {
        render_cell(table, "%s", "");
    } else {
        render_cell(table, "%s%s%.40s", probe_reason_word((unsigned)verdict->reason),
                    decider(verdict)[0] != '\0' ? " by " : "", decider(verdict));
    }
}

static bool is_worse(const Jury__V1__ProbePath *path, const Jury__V1__ProbePath *than)
{
    if (than == NULL || path->n_lost != than->n_lost) {
        return than == NULL || path->n_lost > than->n_lost;
    }
    return path->response_time != NULL &&
           (than->response_time == NULL ||
            path->response_time->seconds > than->response_time->seconds ||
            (path->response_time->seconds == than->response_time->seconds &&
             path->response_time->nanos > than->response_time->nanos));
}

/* Of several checks that of the one that decides, else the worst one's. NULL: none is known. */
static const Jury__V1__ProbePath *path_to_show(const Jury__V1__BackendStatus *status)
{
    const Jury__V1__ProbePath *worst = NULL;

    for (size_t i = 0; i < status->n_paths; i++) {
        const Jury__V1__ProbePath *path = status->paths[i];

        if (path->n_probes > 0 && path->check[0] != '\0' &&
            strcmp(path->check, decider(status->verdict)) == 0) {
            return path;
        }
        if (path->n_probes > 0 && is_worse(path, worst)) {
            worst = path;
        }
    }
    return worst;
}

static void put_path_cells(struct render_table *table, const Jury__V1__BackendStatus *status)
{
    const Jury__V1__ProbePath *path = path_to_show(status);
    char text[RENDER_TEXT_BYTES];

    render_cell(table, "%s", path == NULL ? "-" : render_duration(path->response_time, text));
    if (path == NULL) {
        render_cell(table, "-");
    } else {
        render_cell(table, "%" PRIu32 "/%" PRIu32 "%s%.40s", path->n_lost, path->n_probes,
                    path->check[0] != '\0' ? " of " : "", path->check);
    }
}

void render_backends(struct ctl *ctl, Jury__V1__BackendStatus *const backends[], size_t n_backends,
                     bool with_group)
{
    static const struct render_column columns[] = {
        {"GROUP", false},  {"BACKEND", false},    {"WEIGHT", true},       {"ADMIN", false},
        {"STATE", false},  {"MARKS", false},      {"PASS/FAIL/OF", true}, {"SINCE", true},
        {"REASON", false}, {"RTT", true},         {"LOST", true},         {"USE", false},
        {"DRAIN", false},  {"DESCRIPTION", false}};
    struct render_table *table =
        render_table_new(columns + (with_group ? 0 : 1), with_group ? 14 : 13);
    char text[RENDER_TEXT_BYTES];
    char cause[RENDER_TEXT_BYTES];

    for (size_t i = 0; i < n_backends; i++) {
        const Jury__V1__BackendStatus *status = backends[i];

        if (status->backend == NULL || status->verdict == NULL) {
            continue;
        }
        render_row(table);
        if (with_group) {
            render_cell(table, "%s", status->group);
        }
        render_cell(table, "%s",
                    render_endpoint(status->backend->address, status->backend->port, text));
        render_cell(table, "%s%s",
                    render_weight(status->backend->weight, status->weight_share, text),
                    render_weight_cause(status->weight_share, false, cause));
        put_life(table, status);
        put_verdict_cells(table, status->verdict);
        put_path_cells(table, status);
        render_cell(table, "%s", render_row_class(status->row_class));
        put_drain_cell(table, status->drain);
        render_cell(table, "%s", status->backend->description);
    }
    render_table_print(ctl, table);
}

static void put_nodes(FILE *out, const char *title, const uint64_t nodes[], size_t n_nodes)
{
    for (size_t i = 0; i < n_nodes; i++) {
        if (i == 0) {
            fprintf(out, "%s node%s ", title, n_nodes == 1 ? "" : "s");
        }
        fprintf(out, "%s%" PRIu64, i > 0 ? ", " : "", nodes[i]);
    }
}

/* What is known of the flows; nothing is said of a number that nobody counted. */
static void put_flows(FILE *out, const Jury__V1__DrainStatus *drain)
{
    bool is_known = drain->n_uncounted_nodes + drain->n_unreported_nodes == 0;

    if (is_known || drain->n_flows > 0) {
        fprintf(out, ", %" PRIu64 " flow%s left%s", drain->n_flows, drain->n_flows == 1 ? "" : "s",
                is_known ? "" : " where they are counted");
    }
    put_nodes(out, ", flows are not known on", drain->uncounted_nodes, drain->n_uncounted_nodes);
    if (drain->n_uncounted_nodes > 0) {
        fputs(" (no data plane counts there)", out);
    }
    put_nodes(out, ", flows are not counted yet on", drain->unreported_nodes,
              drain->n_unreported_nodes);
    if (drain->n_closed > 0) {
        fprintf(out, ", %" PRIu64 " %s closed by the drain", drain->n_closed,
                drain->n_closed == 1 ? "was" : "were");
    }
}

/* with_time: also what changes each moment. */
static void put_drain(FILE *out, const Jury__V1__DrainStatus *drain, bool with_time)
{
    char text[RENDER_TEXT_BYTES];

    fputs(drain->is_done ? "done" : "not done", out);
    put_flows(out, drain);
    if (with_time && !drain->is_done && drain->remaining != NULL) {
        fprintf(out, ", %s to the deadline of this node", render_duration(drain->remaining, text));
    }
    put_nodes(out, "; waiting for", drain->pending_nodes, drain->n_pending_nodes);
}

void render_drain(struct ctl *ctl, const Jury__V1__DrainStatus *drain)
{
    put_drain(ctl->out, drain, true);
    fputc('\n', ctl->out);
}

void render_flow_end(struct ctl *ctl, const Jury__V1__DrainStatus *drain)
{
    char text[RENDER_TEXT_BYTES];

    if (!is_ejection(drain)) {
        bool is_removal = drain->cause == JURY__V1__DRAIN_STATUS__CAUSE__CAUSE_REMOVED;

        fprintf(ctl->out, "  %-12s ", is_removal ? "removal" : "drain");
        render_drain(ctl, drain);
    } else if (drain->remaining != NULL) {
        fprintf(ctl->out,
                "  ejection     its open flows are closed in %s: unhealthy, and drain is on\n",
                render_duration(drain->remaining, text));
    } else {
        fputs("  ejection     its open flows were closed: unhealthy, and drain is on\n", ctl->out);
    }
}

char *render_drain_progress(const Jury__V1__DrainStatus *drain)
{
    char *text = NULL;
    size_t n_bytes = 0;
    FILE *out = open_memstream(&text, &n_bytes);

    if (out == NULL) {
        return NULL;
    }
    put_drain(out, drain, false);
    return fclose(out) == 0 ? text : NULL;
}

void render_listeners(struct ctl *ctl, const Jury__V1__ListListenersResponse *listeners)
{
    static const struct render_column columns[] = {
        {"LISTENER", false}, {"AT", false},      {"PROTOCOL", false}, {"GROUP", false},
        {"IDLE", false},     {"REVISION", true}, {"REMARKS", false}};
    struct render_table *table = render_table_new(columns, 7);
    char text[RENDER_TEXT_BYTES];

    for (size_t i = 0; i < listeners->n_listeners; i++) {
        const Jury__V1__ListenerStatus *status = listeners->listeners[i];
        const Jury__V1__Listener *listener = status->listener;

        if (listener == NULL) {
            continue;
        }
        render_row(table);
        render_cell(table, "%s", listener->name);
        render_cell(table, "%s", render_endpoint(listener->address, listener->port, text));
        render_cell(table, "%s", names_word(&names_protocol, (unsigned)listener->protocol));
        render_cell(table, "%s", listener->group);
        render_cell(table, "%s",
                    listener->idle_timeout == NULL ? "group's"
                                                   : render_duration(listener->idle_timeout, text));
        render_cell(table, "%" PRIu64, status->changed_revision);
        render_cell(table, "%s%s", status->n_problems == 0 ? "" : status->problems[0],
                    status->n_problems > 1 ? ", and in others" : "");
        render_cell_color(table, status->n_problems == 0 ? RENDER_PLAIN : RENDER_BAD);
    }
    render_table_print(ctl, table);
}
