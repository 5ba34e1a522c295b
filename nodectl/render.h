/* Answers of the cluster as text for people. JSON is not made here: it is the message itself
 * (ctl_print_message).
 *
 * Tables may change from version to version; scripts use -o json. Everything is pure: message in,
 * text out, so that golden files show it. */
#ifndef JURY_NODECTL_RENDER_H
#define JURY_NODECTL_RENDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/model/group.h"
#include "jury/v1/cluster.pb-c.h"
#include "jury/v1/config.pb-c.h"
#include "jury/v1/event.pb-c.h"
#include "jury/v1/group.pb-c.h"
#include "jury/v1/listener.pb-c.h"
#include "jury/v1/probe.pb-c.h"
#include "jury/v1/simulation.pb-c.h"
#include "jury/v1/verdict.pb-c.h"
#include "nodectl/ctl.h"

/* --- tables --- */

struct render_column {
    const char *title;
    bool is_right; /* numbers */
};

enum render_color {
    RENDER_PLAIN = 0,
    RENDER_GOOD,
    RENDER_WARN,
    RENDER_BAD,
    RENDER_DIM
};

struct render_table;

/* columns: kept until the print. NULL: no memory; then all that follows does nothing. */
struct render_table *render_table_new(const struct render_column columns[], size_t n_columns);
void render_row(struct render_table *table);
/* The next cell of the row. */
void render_cell(struct render_table *table, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* The colour of the cell that was put last. */
void render_cell_color(struct render_table *table, enum render_color color);
/* Print to ctl->out and free. Without rows nothing is printed. */
void render_table_print(struct ctl *ctl, struct render_table *table);

/* --- words --- */

#define RENDER_TEXT_BYTES 160

bool render_has_color(const struct ctl *ctl);
/* "1.25s", "3m4s", "5h12m", "2d3h"; "-" for NULL. Returns text. */
char *render_duration(const Google__Protobuf__Duration *duration, char text[RENDER_TEXT_BYTES]);
/* 2027-01-31T00:00:00Z; "-" for NULL. */
char *render_time(const Google__Protobuf__Timestamp *time, char text[RENDER_TEXT_BYTES]);
char *render_endpoint(const char *address, uint32_t port, char text[RENDER_TEXT_BYTES]);
/* "held, gray" or "-". */
char *render_marks(const Jury__V1__Verdict *verdict, char text[RENDER_TEXT_BYTES]);
/* "100", or "100 -> 40" while less of it counts; share may be NULL. */
char *render_weight(uint32_t weight, const Jury__V1__WeightShare *share,
                    char text[RENDER_TEXT_BYTES]);
/* " (slow start, 12s left; votes 67 %)", or ""; with details how slow it is. */
char *render_weight_cause(const Jury__V1__WeightShare *share, bool with_details,
                          char text[RENDER_TEXT_BYTES]);
/* What a backend is to new flows: "first", "second", "fail-open" ... */
const char *render_row_class(Jury__V1__RowClass row_class);
char *render_rule(const Jury__V1__Rule *rule, char text[RENDER_TEXT_BYTES]);
enum render_color render_health_color(Jury__V1__HealthState state);
/* A sentence of the server on one line, without control characters. */
void render_sentence(FILE *out, const char *indent, const char *sentence);

/* Words from `column` on, broken between words, and a newline; the cursor is at `at`. */
void render_wrapped(FILE *out, unsigned column, unsigned at, const char *text);

/* --- answers --- */

void render_status(struct ctl *ctl, const Jury__V1__GetStatusResponse *status);
void render_ready(struct ctl *ctl, const Jury__V1__CheckReadyResponse *ready);
void render_members(struct ctl *ctl, const Jury__V1__ListMembersResponse *members);
/* Lines about the peers for a failure without a leader, and their details for JSON. */
void render_peers(struct ctl *ctl, const Jury__V1__GetStatusResponse *status);
void render_node(struct ctl *ctl, const Jury__V1__DescribeNodeResponse *node);
void render_counters(struct ctl *ctl, const Jury__V1__ListCountersResponse *counters);
/* Text for Prometheus: what status says, groups, counters, and of the backends verdict, admin
 * state, weight and what this node's probes tell of the way. At most 10 series a group, 6 a backend
 * for at most METRICS_BACKENDS_MAX of them, 2 a backend and check, and some 400. */
#define METRICS_BACKENDS_MAX 10000
struct metrics {
    const Jury__V1__ListCountersResponse *counters;
    const Jury__V1__ListBackendsResponse *backends;
    const Jury__V1__ListGroupsResponse *groups;
    const Jury__V1__GetStatusResponse *status;
};
void render_metrics(struct ctl *ctl, const struct metrics *metrics);
void render_keys(struct ctl *ctl, const Jury__V1__ListKeysResponse *keys);

void render_groups(struct ctl *ctl, const Jury__V1__ListGroupsResponse *groups);
/* group: the model of answer->group. */
void render_group(struct ctl *ctl, const Jury__V1__DescribeGroupResponse *answer,
                  const struct server_group *group);
void render_backends(struct ctl *ctl, Jury__V1__BackendStatus *const backends[], size_t n_backends,
                     bool with_group);
/* One line on how far a drain is. */
void render_drain(struct ctl *ctl, const Jury__V1__DrainStatus *drain);
/* One indented line of `why`: what ends the open flows - an operator's drain, a removal, or the
 * ejection of an unhealthy backend whose group drains. */
void render_flow_end(struct ctl *ctl, const Jury__V1__DrainStatus *drain);
/* The same without a line end and what changes each moment. Given: free(); NULL: no memory. */
char *render_drain_progress(const Jury__V1__DrainStatus *drain);
void render_listeners(struct ctl *ctl, const Jury__V1__ListListenersResponse *listeners);

/* revision: of the answer. */
void render_why(struct ctl *ctl, const Jury__V1__WhyResponse *why, uint64_t revision);
/* "verdict", "peer" ...: the words of --type. */
const char *render_event_word(Jury__V1__EventType type);
void render_events(struct ctl *ctl, Jury__V1__Event *const events[], size_t n_events);
void render_event_line(FILE *out, const Jury__V1__Event *event);
void render_probes(struct ctl *ctl, const Jury__V1__ProbeBackendResponse *answer);
void render_simulation(struct ctl *ctl, const Jury__V1__SimulateGroupResponse *answer);

#endif
