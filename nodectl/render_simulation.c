/* A simulation: totals side by side, then each backend's changes, as they were and as they would
 * have been. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nodectl/render.h"

struct line {
    const Jury__V1__Event *event;
    bool is_would;
};

static int64_t time_ms(const Jury__V1__Event *event)
{
    return event->time == NULL ? 0 : event->time->seconds * 1000 + event->time->nanos / 1000000;
}

static const char *address_of(const Jury__V1__Event *event)
{
    return event->backend == NULL ? "" : event->backend->address;
}

static uint32_t port_of(const Jury__V1__Event *event)
{
    return event->backend == NULL ? 0 : event->backend->port;
}

/* The group itself first, then backend by backend, each in the order of time. */
static int compare(const void *a, const void *b)
{
    const struct line *x = a;
    const struct line *y = b;
    int order = strcmp(address_of(x->event), address_of(y->event));

    if (order != 0) {
        return order;
    }
    if (port_of(x->event) != port_of(y->event)) {
        return port_of(x->event) < port_of(y->event) ? -1 : 1;
    }
    if (time_ms(x->event) != time_ms(y->event)) {
        return time_ms(x->event) < time_ms(y->event) ? -1 : 1;
    }
    return (int)x->is_would - (int)y->is_would;
}

/* "healthy -> unhealthy, 2 of 3 fail: node 1, node 2", "..., the own vote fails" */
static char *change_text(const Jury__V1__Event *event, char text[2 * RENDER_TEXT_BYTES])
{
    const size_t n_bytes = (size_t)2 * RENDER_TEXT_BYTES;
    bool is_down = strcmp(event->to, "unhealthy") == 0;
    Jury__V1__Opinion wanted =
        is_down ? JURY__V1__OPINION__OPINION_FAIL : JURY__V1__OPINION__OPINION_PASS;
    const char *before = ": ";

    int n = snprintf(text, n_bytes, "%.20s -> %.20s", event->from, event->to);
    if (event->is_by_own_vote) {
        n += snprintf(text + n, n_bytes - (size_t)n, ", the own vote %s",
                      is_down ? "fails" : "passes");
        return text;
    }
    if (event->n_counted > 0) {
        n += snprintf(text + n, n_bytes - (size_t)n, ", %" PRIu32 " of %" PRIu32 " %s",
                      is_down ? event->n_fail : event->n_pass, event->n_counted,
                      is_down ? "fail" : "pass");
    }
    for (size_t i = 0; i < event->n_votes && (size_t)n < n_bytes; i++) {
        if (event->votes[i]->opinion == wanted) {
            n += snprintf(text + n, n_bytes - (size_t)n, "%snode %" PRIu64, before,
                          event->votes[i]->node_id);
            before = ", ";
        }
    }
    return text;
}

static char *subject_text(const Jury__V1__Event *event, char text[RENDER_TEXT_BYTES])
{
    if (address_of(event)[0] == '\0') {
        snprintf(text, RENDER_TEXT_BYTES, "the group");
        return text;
    }
    return render_endpoint(address_of(event), port_of(event), text);
}

static size_t add_lines(struct line *lines, size_t n, const Jury__V1__SimulationOutcome *outcome,
                        bool is_would)
{
    for (size_t i = 0; outcome != NULL && i < outcome->n_events; i++) {
        lines[n++] = (struct line){.event = outcome->events[i], .is_would = is_would};
    }
    return n;
}

static bool are_beside(const struct line *was, const struct line *would)
{
    return !was->is_would && would->is_would &&
           strcmp(address_of(was->event), address_of(would->event)) == 0 &&
           port_of(was->event) == port_of(would->event) &&
           time_ms(was->event) == time_ms(would->event);
}

static void put_lines(struct ctl *ctl, const struct line lines[], size_t n)
{
    static const struct render_column columns[] = {
        {"WHAT", false}, {"TIME", false}, {"AS IT WAS", false}, {"WITH THE CHANGE", false}};
    struct render_table *table = render_table_new(columns, 4);
    char text[2 * RENDER_TEXT_BYTES];

    for (size_t i = 0; i < n; i++) {
        bool is_pair = i + 1 < n && are_beside(&lines[i], &lines[i + 1]);

        render_row(table);
        render_cell(table, "%s", subject_text(lines[i].event, text));
        render_cell(table, "%s", render_time(lines[i].event->time, text));
        render_cell(table, "%s", lines[i].is_would ? "-" : change_text(lines[i].event, text));
        i += is_pair;
        render_cell(table, "%s", lines[i].is_would ? change_text(lines[i].event, text) : "-");
    }
    render_table_print(ctl, table);
}

static void put_totals(struct ctl *ctl, const Jury__V1__SimulateGroupResponse *answer)
{
    static const struct render_column columns[] = {
        {"IN TOTAL", false}, {"AS IT WAS", true}, {"WITH THE CHANGE", true}};
    const Jury__V1__SimulationOutcome *was = answer->was;
    const Jury__V1__SimulationOutcome *would = answer->would;
    const struct {
        const char *what;
        uint32_t was, would;
    } rows[] = {
        {"changes of verdicts", was->n_changes, would->n_changes},
        {"ejections", was->n_ejections, would->n_ejections},
        {"out at once, at most", was->n_out_max, would->n_out_max},
        {"fail-open entered", was->n_fail_opens, would->n_fail_opens},
    };
    struct render_table *table = render_table_new(columns, 3);
    char text[RENDER_TEXT_BYTES];

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        render_row(table);
        render_cell(table, "%s", rows[i].what);
        render_cell(table, "%" PRIu32, rows[i].was);
        render_cell(table, "%" PRIu32, rows[i].would);
    }
    render_row(table);
    render_cell(table, "longest time out");
    render_cell(table, "%s", render_duration(was->out_longest, text));
    render_cell(table, "%s", render_duration(would->out_longest, text));
    render_table_print(ctl, table);
}

static void put_head(struct ctl *ctl, const Jury__V1__SimulateGroupResponse *answer)
{
    char from[RENDER_TEXT_BYTES];
    char to[RENDER_TEXT_BYTES];

    fprintf(ctl->out, "group %s on node %" PRIu64 ", from %s to %s\n", answer->group,
            answer->node_id, render_time(answer->from, from), render_time(answer->to, to));
    if (!answer->from_beginning) {
        fprintf(ctl->out, "older votes are not kept: verdicts begin as they were then, guards as "
                          "if they had not worked before\n");
    }
    if (answer->counts_own_results) {
        fprintf(ctl->out,
                "thresholds: the results of node %" PRIu64
                " are counted anew; of the other nodes the opinions are known and not "
                "the results, so their votes are as they were\n",
                answer->node_id);
    }
    if (!answer->is_exact) {
        ctl_warn(ctl,
                 "the history does not explain all that happened: the simulation is not exact");
    }
}

void render_simulation(struct ctl *ctl, const Jury__V1__SimulateGroupResponse *answer)
{
    if (answer->was == NULL || answer->would == NULL) {
        return;
    }
    size_t n_all = answer->was->n_events + answer->would->n_events;
    struct line *lines = calloc(n_all + 1, sizeof *lines);

    put_head(ctl, answer);
    if (lines == NULL) {
        return;
    }
    if (n_all == 0) {
        fprintf(ctl->out, "no verdict changed in that time, nor would one have\n");
        free(lines);
        return;
    }
    size_t n = add_lines(lines, 0, answer->was, false);
    n = add_lines(lines, n, answer->would, true);
    qsort(lines, n, sizeof *lines, compare);
    if (answer->changes_nothing) {
        fprintf(ctl->out, "the change changes nothing\n");
    }
    fputc('\n', ctl->out);
    put_totals(ctl, answer);
    fputc('\n', ctl->out);
    put_lines(ctl, lines, n);
    if (answer->was->has_more || answer->would->has_more) {
        ctl_note(ctl, "there are more changes than are listed; the totals have all");
    }
    free(lines);
}
