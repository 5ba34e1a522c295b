#include "tests/lib/replay_judge.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/core/engine_view.h"
#include "agent/core/events.h"
#include "agent/core/replay.h"
#include "common/model/profile.h"

struct events {
    struct event *items;
    size_t n, capacity;
};

static bool is_compared(const struct event *event)
{
    return event->kind == EVENT_VERDICT_CHANGED || event->kind == EVENT_REACHABLE_CHANGED ||
           event->kind == EVENT_GROUP_CHANGED ||
           (event->kind == EVENT_GUARD_CHANGED && event->guard != GUARD_HOLD);
}

static void add(void *user, const struct event *event)
{
    struct events *events = user;

    if (!is_compared(event)) {
        return;
    }
    if (events->n == events->capacity) {
        events->capacity = events->capacity * 2 + 64;
        events->items = realloc(events->items, events->capacity * sizeof *events->items);
        if (events->items == NULL) {
            abort();
        }
    }
    events->items[events->n++] = *event;
}

/* Within one step the order is of no meaning. */
static int by_time(const void *a, const void *b)
{
    const struct event *x = a;
    const struct event *y = b;

    if (x->at_ns != y->at_ns) {
        return x->at_ns < y->at_ns ? -1 : 1;
    }
    if (x->kind != y->kind) {
        return x->kind < y->kind ? -1 : 1;
    }
    int order = endpoint_compare(&x->backend, &y->backend);
    if (order != 0) {
        return order;
    }
    return x->from != y->from ? (int)x->from - (int)y->from : (int)x->to - (int)y->to;
}

static void describe(const struct event *event, char text[256])
{
    char backend[ENDPOINT_TEXT_BYTES] = "-";

    if (event->backend.addr.family != ADDR_NONE) {
        endpoint_format(&event->backend, backend);
    }
    snprintf(text, 256, "event of kind %u of %s/%s at %.9f s from %u to %u", event->kind,
             event->group, backend, (double)event->at_ns / 1e9, event->from, event->to);
}

static bool compare(const char *group, struct events *was, struct events *would,
                    struct replay_judgement *judgement)
{
    char first[256] = "nothing more", second[256] = "nothing more";

    if (was->n > 1) {
        qsort(was->items, was->n, sizeof *was->items, by_time);
    }
    if (would->n > 1) {
        qsort(would->items, would->n, sizeof *would->items, by_time);
    }
    for (size_t i = 0; i < was->n || i < would->n; i++) {
        if (i < was->n && i < would->n && by_time(&was->items[i], &would->items[i]) == 0) {
            judgement->n_events++;
            judgement->n_verdicts += was->items[i].kind == EVENT_VERDICT_CHANGED;
            continue;
        }
        if (i < was->n) {
            describe(&was->items[i], first);
        }
        if (i < would->n) {
            describe(&would->items[i], second);
        }
        snprintf(judgement->difference, sizeof judgement->difference,
                 "group %s: event %zu was %s; replayed it is %s", group, i, first, second);
        return false;
    }
    return true;
}

/* Several steps may be of one moment: with a beginning in between, it is left out. */
static void drop_before(struct events *events, uint64_t from_ns)
{
    size_t n = 0;

    for (size_t i = 0; i < events->n; i++) {
        if (events->items[i].at_ns >= from_ns) {
            events->items[n++] = events->items[i];
        }
    }
    events->n = n;
}

/* Guards begin anew in between. */
static void drop_guards(struct events *events)
{
    size_t n = 0;

    for (size_t i = 0; i < events->n; i++) {
        if (events->items[i].kind != EVENT_GUARD_CHANGED) {
            events->items[n++] = events->items[i];
        }
    }
    events->n = n;
}

static bool judge_group(const struct engine *engine, const char *name,
                        struct replay_judgement *judgement)
{
    struct events was = {0}, would = {0};
    uint64_t first = engine_event_first(engine);
    struct replay_question question = {.group = name, .on_event = add, .user = &would};
    struct replay_answer answer;
    struct errmsg err;

    if (first > 1) { /* the log has lost its beginning */
        question.since_ns = engine_event_at(engine, first)->at_ns + 1;
    }
    if (replay_group(engine, &question, &answer, &err) != 0) {
        snprintf(judgement->difference, sizeof judgement->difference, "%s", err.text);
        return false;
    }
    if (!answer.from_beginning && answer.had_guards) {
        free(would.items);
        return true; /* its guards begin anew in a replay */
    }
    uint64_t from_ns = answer.from_beginning ? answer.from_ns : answer.from_ns + 1;
    from_ns = from_ns > question.since_ns ? from_ns : question.since_ns;
    for (uint64_t i = first; i < engine_event_next(engine); i++) {
        const struct event *event = engine_event_at(engine, i);

        if (strcmp(event->group, name) == 0 && event->at_ns >= from_ns) {
            add(&was, event);
        }
    }
    drop_before(&would, from_ns);
    if (!answer.from_beginning) {
        drop_guards(&was);
        drop_guards(&would);
    }
    bool is_equal = compare(name, &was, &would, judgement);
    if (is_equal && !answer.is_exact) {
        snprintf(judgement->difference, sizeof judgement->difference,
                 "group %s: equal to the log, and not to the history's own verdicts", name);
        is_equal = false;
    }
    judgement->n_groups++;
    judgement->n_whole += answer.from_beginning;
    free(was.items);
    free(would.items);
    return is_equal;
}

void replay_judge(const struct engine *engine, struct replay_judgement *ret_judgement)
{
    const struct catalog *catalog = engine_catalog(engine);

    *ret_judgement = (struct replay_judgement){0};
    for (size_t i = 0; catalog != NULL && i < catalog_n_groups(catalog); i++) {
        const struct catalog_group *group = catalog_group_at(catalog, i);

        if (!group->is_deleted && !judge_group(engine, group->spec.name, ret_judgement)) {
            return;
        }
    }
}
