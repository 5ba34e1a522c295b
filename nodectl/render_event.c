/* Events as a table and, when they are followed, line by line. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/model/reason.h"
#include "nodectl/render.h"

const char *render_event_word(Jury__V1__EventType type)
{
    static const char *const words[] = {
        "unknown",         "verdict",  "reachable",    "opinion", "group",  "observers", "catalog",
        "catalogs-differ", "peer",     "drain",        "doubt",   "guard",  "held",      "admin",
        "certificate",     "degraded", "probe-budget", "node",    "leader", "few-votes"};
    unsigned number = (unsigned)type;

    return words[number < sizeof words / sizeof words[0] ? number : 0];
}

/* "web/10.0.0.1:80", "web", "node 3" or "". */
static char *event_subject(const Jury__V1__Event *event, char text[2 * RENDER_TEXT_BYTES])
{
    const size_t n = (size_t)2 * RENDER_TEXT_BYTES;
    char endpoint[RENDER_TEXT_BYTES];

    text[0] = '\0';
    if (event->backend != NULL && event->backend->address[0] != '\0') {
        snprintf(text, n, "%.128s/%s", event->backend->group,
                 render_endpoint(event->backend->address, event->backend->port, endpoint));
    } else if (event->backend != NULL && event->backend->group[0] != '\0') {
        snprintf(text, n, "%.128s", event->backend->group);
    } else if (event->node_id != 0) {
        snprintf(text, n, "node %" PRIu64, event->node_id);
    }
    return text;
}

/* The server's sentence; made up from the fields if it has none. */
static char *event_text(const Jury__V1__Event *event, char *text, size_t text_bytes)
{
    if (event->message[0] != '\0') {
        snprintf(text, text_bytes, "%s", event->message);
    } else if (event->reason != JURY__V1__PROBE_REASON__PROBE_REASON_UNSPECIFIED) {
        snprintf(text, text_bytes, "%.40s -> %.40s (%s, %" PRIu32 " pass, %" PRIu32 " fail)",
                 event->from, event->to, probe_reason_word((unsigned)event->reason), event->n_pass,
                 event->n_fail);
    } else {
        snprintf(text, text_bytes, "%.40s -> %.40s", event->from, event->to);
    }
    return text;
}

void render_event_line(FILE *out, const Jury__V1__Event *event)
{
    char time[RENDER_TEXT_BYTES];
    char subject[2 * RENDER_TEXT_BYTES];
    char text[1024];

    fprintf(out, "%s  %-15s  %s  ", render_time(event->time, time), render_event_word(event->type),
            event_subject(event, subject));
    render_sentence(out, "", event_text(event, text, sizeof text));
}

void render_events(struct ctl *ctl, Jury__V1__Event *const events[], size_t n_events)
{
    static const struct render_column columns[] = {
        {"TIME", false}, {"TYPE", false}, {"WHAT", false}, {"REVISION", true}, {"CHANGE", false}};
    struct render_table *table = render_table_new(columns, 5);
    char text[1024];

    for (size_t i = 0; i < n_events; i++) {
        const Jury__V1__Event *event = events[i];

        render_row(table);
        render_cell(table, "%s", render_time(event->time, text));
        render_cell(table, "%s", render_event_word(event->type));
        render_cell(table, "%s", event_subject(event, text));
        render_cell(table, "%" PRIu64, event->revision);
        render_cell(table, "%s", event_text(event, text, sizeof text));
    }
    render_table_print(ctl, table);
}
