/* Sentences of what becomes of the other nodes (cluster_watch.h). */
#include <inttypes.h>

#include "agent/core/events.h"
#include "agent/rpc/rpc_internal.h"
#include "common/base/units.h"
#include "common/wire/arena.h"

#define SPAN_BYTES 32

static const char *span_of(const struct event *event, char text[SPAN_BYTES])
{
    return units_format_span_us(event->span_ns / 1000, text, SPAN_BYTES);
}

static char *node_sentence(struct wire_arena *arena, const struct event *event)
{
    char span[SPAN_BYTES];

    return wire_format(arena,
                       event->to != 0 ? "node %" PRIu64 " is lost: nothing was heard of it for %s"
                                      : "node %" PRIu64 " is heard again, after %s",
                       event->node_id, span_of(event, span));
}

static char *leader_sentence(struct wire_arena *arena, const struct event *event)
{
    char span[SPAN_BYTES];

    span_of(event, span);
    if (event->to != 0) {
        return wire_format(arena,
                           "no leader is known here for %s: the configuration cannot be changed "
                           "(%u of %u nodes are heard, this one included)",
                           span, event->n_counted, event->n_observers);
    }
    if (event->before_id != 0) {
        return wire_format(arena, "node %" PRIu64 " leads now, node %" PRIu64 " did before",
                           event->node_id, event->before_id);
    }
    return wire_format(arena, "node %" PRIu64 " leads now, after %s without a leader",
                       event->node_id, span);
}

static char *votes_sentence(struct wire_arena *arena, const struct event *event)
{
    char span[SPAN_BYTES];

    return wire_format(arena,
                       event->to != 0 ? "too few votes count: of %u of %u observers for %s, and "
                                        "verdicts by votes need %u"
                                      : "enough votes count again: of %u of %u observers, after "
                                        "%s; verdicts by votes need %u",
                       event->n_counted, event->n_observers, span_of(event, span), event->n_needed);
}

char *handle_news_sentence(struct wire_arena *arena, const struct event *event)
{
    char *text = event->kind == EVENT_PEER_LOST        ? node_sentence(arena, event)
                 : event->kind == EVENT_LEADER_CHANGED ? leader_sentence(arena, event)
                                                       : votes_sentence(arena, event);

    if (text == NULL || event->n_untold == 0) {
        return text;
    }
    return wire_format(arena, "%s (%u changes before it were not told, there were too many)", text,
                       event->n_untold);
}
