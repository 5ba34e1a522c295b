/* events: what changed on the asked node. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/base/clock.h"
#include "common/base/limits.h"
#include "common/base/output.h"
#include "common/base/str.h"
#include "common/base/units.h"
#include "common/wire/json.h"
#include "jury/v1/event.pb-c.h"
#include "nodectl/commands.h"
#include "nodectl/connect.h"
#include "nodectl/render.h"
#include "nodectl/suggest.h"

#define FOLLOW_NS (500 * NS_PER_MS)
#define PAGE_MAX 1000

/* What is asked for, and how far the printing came. */
struct event_query {
    Jury__V1__ListEventsRequest request;
    char group[LIMIT_NAME_BYTES + 1]; /* a longer name is refused before */
    int64_t since_wall_ms;            /* 0 = from the beginning */
    uint64_t epoch;                   /* of the node; 0 = not asked yet */
};

static Jury__V1__EventType type_of_word(const char *word)
{
    for (int type = 1; type < 32; type++) {
        if (strcmp(render_event_word((Jury__V1__EventType)type), word) == 0) {
            return (Jury__V1__EventType)type;
        }
    }
    return JURY__V1__EVENT_TYPE__EVENT_TYPE_UNSPECIFIED;
}

static int query_init(struct ctl *ctl, struct event_query *query)
{
    *query = (struct event_query){.group = ""};
    jury__v1__list_events_request__init(&query->request);
    if (ctl_has(ctl, FLAG_GROUP) &&
        !str_copy(query->group, sizeof query->group, ctl_text(ctl, FLAG_GROUP))) {
        return ctl_fail(ctl, ERR_USAGE, "--group is no name: it has more than %d bytes",
                        LIMIT_NAME_BYTES);
    }
    query->request.group = query->group;
    if (ctl_has(ctl, FLAG_TYPE)) {
        query->request.type = type_of_word(ctl_text(ctl, FLAG_TYPE));
    }
    query->request.newest = true;
    query->request.page_size = (uint32_t)ctl_number(ctl, FLAG_LIMIT);
    if (ctl_has(ctl, FLAG_SINCE)) {
        query->since_wall_ms = clock_wall_ms() - (int64_t)ctl_number(ctl, FLAG_SINCE);
        if (!ctl_has(ctl, FLAG_LIMIT)) {
            query->request.page_size = PAGE_MAX;
        }
    }
    return 0;
}

/* Drop what is older than --since; the list is in the order of time. */
static void cut_old(const struct event_query *query, Jury__V1__ListEventsResponse *events)
{
    size_t n_old = 0;

    while (n_old < events->n_events) {
        const Google__Protobuf__Timestamp *time = events->events[n_old]->time;

        if (time == NULL || time->seconds * 1000 + time->nanos / 1000000 >= query->since_wall_ms) {
            break;
        }
        n_old++;
    }
    events->events += n_old;
    events->n_events -= n_old;
}

static int print_list(struct ctl *ctl, const Jury__V1__ListEventsResponse *events)
{
    if (ctl_is_json(ctl)) {
        return ctl_print_message(ctl, &events->base);
    }
    render_events(ctl, events->events, events->n_events);
    if (events->n_events == 0) {
        ctl_note(ctl, "there are no such events");
    }
    return 0;
}

static int print_line(struct ctl *ctl, const Jury__V1__Event *event)
{
    FILE *out = ctl->process.out;

    if (ctl_is_json(ctl)) {
        json_t *json = wire_json_new(&event->base);
        char *text = json == NULL ? NULL : json_dumps(json, JSON_COMPACT);
        json_decref(json);
        if (text == NULL) {
            return ctl_fail(ctl, ERR_NOMEM, "out of memory");
        }
        errno = 0;
        fprintf(out, "%s\n", text);
        free(text);
    } else {
        errno = 0;
        render_event_line(out, event);
    }
    return output_end(out, &ctl->failure.message);
}

/* One line an event, at once. */
static int print_lines(struct ctl *ctl, const Jury__V1__ListEventsResponse *events)
{
    int rc = 0;

    for (size_t i = 0; rc == 0 && ferror(ctl->process.out) == 0 && i < events->n_events; i++) {
        rc = print_line(ctl, events->events[i]);
    }
    return rc;
}

/* Ask once, print, and remember where the next question begins. */
static int ask(struct ctl *ctl, struct event_query *query, bool is_follow)
{
    struct rpc_result result = {0};
    int rc = ctl_call(ctl, "jury.v1.EventService/ListEvents", &query->request.base, &result);

    if (rc == ERR_NOTFOUND) {
        suggest_group(ctl, query->group);
    }
    if (rc == 0) {
        Jury__V1__ListEventsResponse *events =
            (Jury__V1__ListEventsResponse *)(void *)result.response;
        bool is_restarted = query->epoch != 0 && events->epoch != query->epoch;

        query->epoch = events->epoch;
        if (is_restarted) {
            /* Its events are numbered from 1 again: ask for all of them. */
            ctl_warn(ctl, "the node was started again");
            query->request.after_sequence = 0;
        } else {
            if (events->has_gap && is_follow) {
                ctl_warn(ctl, "events were lost: the node keeps %d", LIMIT_EVENTS);
            }
            query->request.after_sequence = events->last_sequence;
            cut_old(query, events);
            rc = is_follow ? print_lines(ctl, events) : print_list(ctl, events);
        }
        query->request.newest = false;
        query->request.page_size = PAGE_MAX;
        query->since_wall_ms = 0;
    }
    rpc_result_close(&result);
    return rc;
}

int cmd_events(struct ctl *ctl)
{
    const struct timespec pause = {.tv_nsec = (long)FOLLOW_NS};
    struct event_query query;

    int rc = query_init(ctl, &query);
    if (rc != 0) {
        return rc;
    }
    if (!ctl_has(ctl, FLAG_FOLLOW)) {
        return ask(ctl, &query, false);
    }
    for (;;) {
        rc = ask(ctl, &query, true);
        if (rc != 0 || ferror(ctl->process.out) != 0) {
            return rc; /* 0: the reader has gone */
        }
        nanosleep(&pause, NULL);
    }
}
