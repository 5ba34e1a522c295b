/* Why a backend is what it is. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/model/names.h"
#include "common/model/reason.h"
#include "common/model/rule.h"
#include "nodectl/render_why.h"

static const char *held_sentence(Jury__V1__HeldCause cause)
{
    switch (cause) {
    case JURY__V1__HELD_CAUSE__HELD_CAUSE_FEW_VOTES:
        return "held: fewer votes count than it takes to take a backend out";
    case JURY__V1__HELD_CAUSE__HELD_CAUSE_NO_OWN_VOTE:
        return "held: this node's own vote decides and it has none that it trusts";
    case JURY__V1__HELD_CAUSE__HELD_CAUSE_CHECK_CHANGED:
        return "held: the check changed, the votes on the new one have not settled it yet";
    case JURY__V1__HELD_CAUSE__HELD_CAUSE_LAST_KNOWN_GOOD:
        return "held: the verdict is of the time before this node was started";
    case JURY__V1__HELD_CAUSE__HELD_CAUSE_SHADOW:
        return "held: the votes on the changed check say unhealthy, and it is in its shadow";
    case JURY__V1__HELD_CAUSE__HELD_CAUSE_HOLD:
        return "held: the votes say unhealthy, and hold is on (nodectl hold show)";
    case JURY__V1__HELD_CAUSE__HELD_CAUSE_UNSPECIFIED:
    case _JURY__V1__HELD_CAUSE_IS_INT_SIZE:
        break;
    }
    return "held";
}

static const char *policy_sentence(Jury__V1__FlowPolicy policy)
{
    switch (policy) {
    case JURY__V1__FLOW_POLICY__FLOW_POLICY_KEEP:
        return "they stay";
    case JURY__V1__FLOW_POLICY__FLOW_POLICY_CLOSE_AT:
        return "they are closed at the deadline";
    case JURY__V1__FLOW_POLICY__FLOW_POLICY_CLOSE_NOW:
        return "they are closed";
    case JURY__V1__FLOW_POLICY__FLOW_POLICY_MOVE:
        return "they move";
    case JURY__V1__FLOW_POLICY__FLOW_POLICY_MOVE_AT:
        return "they move at the deadline";
    case JURY__V1__FLOW_POLICY__FLOW_POLICY_HOLD_IDLE:
        return "they stay, idle ones until the deadline";
    case JURY__V1__FLOW_POLICY__FLOW_POLICY_UNSPECIFIED:
    case _JURY__V1__FLOW_POLICY_IS_INT_SIZE:
        break;
    }
    return "-";
}

/* Of a drain that is done there is no deadline to come. */
static const char *flows_sentence(const Jury__V1__WhyResponse *why)
{
    const Jury__V1__DrainStatus *drain = why->drain;

    if (drain != NULL && drain->is_done && drain->n_flows == 0 && drain->n_uncounted_nodes == 0) {
        return "none are left";
    }
    if (drain != NULL && drain->is_done &&
        why->flow_policy == JURY__V1__FLOW_POLICY__FLOW_POLICY_CLOSE_AT) {
        return "those that are left are closed: the deadline is over";
    }
    return policy_sentence(why->flow_policy);
}

static void put_rule(FILE *out, const Jury__V1__VerdictRule *rule)
{
    char down[RENDER_TEXT_BYTES];
    char up[RENDER_TEXT_BYTES];

    if (rule == NULL) {
        return;
    }
    render_rule(rule->down, down);
    if (rule->up == NULL) {
        fprintf(out, "  rule         %s, below quorum %s\n", down,
                names_word(&names_below_quorum, (unsigned)rule->below_quorum));
    } else {
        fprintf(out, "  rule         down: %s, up: %s, below quorum %s\n", down,
                render_rule(rule->up, up),
                names_word(&names_below_quorum, (unsigned)rule->below_quorum));
    }
}

/* The answers that the success window is for; `group describe` has it for those of an assumed time.
 */
static const char *window_answers(const Jury__V1__OwnProbing *probing)
{
    const Jury__V1__ProbeResult *last = probing->last;
    bool has_passed = last != NULL && probe_reason_class((unsigned)last->reason) == PROBE_PASS;

    if (probing->passes_by_silence) {
        return "by silence until the timeout";
    }
    return has_passed ? "with answers like the last" : "with answers at once";
}

/* of: which one of several checks, or "". A check that passes by silence says nothing of its way.
 */
static void put_path(FILE *out, const char *of, const Jury__V1__ProbePath *path)
{
    char text[RENDER_TEXT_BYTES];

    if (path == NULL || path->n_probes == 0) {
        return;
    }
    fprintf(out, "  path         %s", of);
    if (path->response_time != NULL) {
        fprintf(out, "round trip %s (smoothed), ", render_duration(path->response_time, text));
    }
    fprintf(out, "%" PRIu32 " of the last %" PRIu32 " probes got no reply\n", path->n_lost,
            path->n_probes);
}

/* of: which one of several checks, or "". */
static void put_certificate(FILE *out, const char *of, const Jury__V1__Certificate *certificate)
{
    if (certificate == NULL) {
        return;
    }
    int32_t days = certificate->days_left;
    fprintf(out, "  certificate  %s%s %s", of, days < 0 ? "ended on" : "ends on",
            certificate->ends);
    if (days == 0) {
        fprintf(out, ", today");
    } else {
        fprintf(out, ", %s%" PRId32 " day%s%s", days > 0 ? "in " : "", days < 0 ? -days : days,
                days == 1 || days == -1 ? "" : "s", days < 0 ? " ago" : "");
    }
    fprintf(out, "%s\n", certificate->is_near ? ": renew it" : "");
}

/* Of one of several checks: whose vote it is made of, and how long that takes. */
static void put_composition(FILE *out, const Jury__V1__WhyResponse *why, unsigned n_local)
{
    const Jury__V1__OwnProbing *probing = why->probing;
    unsigned n_others = (unsigned)why->n_checks - n_local;
    char text[RENDER_TEXT_BYTES];

    fprintf(out, "  checks       %zu", why->n_checks);
    if (n_local > 1) {
        fprintf(out, "; of the %u local ones must pass: %s", n_local, render_rule(why->pass, text));
    }
    if (n_others > 0) {
        fprintf(out, "; %u only degrade%s", n_others, n_others == 1 ? "s" : "");
    }
    fputc('\n', out);
    if (n_local > 1 && probing != NULL) {
        fprintf(out,
                "  windows      %s from the first failing probe of the check that decides to this "
                "node's vote at most",
                render_duration(probing->failure_window, text));
        fprintf(out, ", %s from the first passing one with answers at once\n",
                render_duration(probing->success_window, text));
    }
    for (size_t i = 0; n_local > 1 && i < why->n_checks; i++) {
        char of[RENDER_TEXT_BYTES];

        snprintf(of, sizeof of, "of %.40s ", why->checks[i]->name);
        if (why->checks[i]->probing != NULL) {
            put_path(out, of, why->checks[i]->probing->path);
            put_certificate(out, of, why->checks[i]->probing->certificate);
        }
    }
}

static unsigned count_local(const Jury__V1__WhyResponse *why)
{
    unsigned n = 0;

    for (size_t i = 0; i < why->n_checks; i++) {
        n += why->checks[i]->check_class != JURY__V1__CHECK_CLASS__CHECK_CLASS_DEPENDENCY;
    }
    return n;
}

/* What the votes on a dependency come to; of a local check, whether the own vote is as it says. */
static void put_check_effect(struct render_table *table, const Jury__V1__CheckStatus *check)
{
    if (check->check_class == JURY__V1__CHECK_CLASS__CHECK_CLASS_DEPENDENCY) {
        render_cell(table, "%s: %" PRIu32 " pass, %" PRIu32 " fail",
                    health_state_word((enum health_state)check->state), check->n_pass,
                    check->n_fail);
        return;
    }
    bool decides = check->decides && (enum opinion)check->opinion == OPINION_FAIL;
    render_cell(table, "%s", check->is_suspect ? "suspect" : decides ? "decides" : "-");
}

/* One line a check: what this node knows of it. */
static void put_checks(struct ctl *ctl, const Jury__V1__WhyResponse *why)
{
    static const struct render_column columns[] = {
        {"CHECK", false},   {"CLASS", false},   {"PROBED AT", false}, {"BY", false},
        {"OPINION", false}, {"REASON", false},  {"PROBED", true},     {"STREAK", true},
        {"FOR", true},      {"RESPONSE", true}, {"EFFECT", false}};
    struct render_table *table = render_table_new(columns, 11);
    char text[RENDER_TEXT_BYTES];

    for (size_t i = 0; i < why->n_checks; i++) {
        const Jury__V1__CheckStatus *check = why->checks[i];
        const Jury__V1__OwnProbing *probing = check->probing;
        const Jury__V1__VoteDetail *detail = check->detail;

        render_row(table);
        render_cell(table, "%s", check->name);
        render_cell(table, "%s", names_word(&names_check_class, (unsigned)check->check_class));
        render_cell(table, "%s",
                    probing == NULL || probing->address[0] == '\0'
                        ? "-"
                        : render_endpoint(probing->address, probing->port, text));
        render_cell(table, "%s",
                    probing == NULL ? "-" : names_word(&names_check_type, (unsigned)probing->type));
        render_cell(table, "%s", opinion_word((enum opinion)check->opinion));
        render_cell_color(table, why_opinion_color(check->opinion));
        const Jury__V1__ProbeResult *last = probing == NULL ? NULL : probing->last;
        render_cell(table, "%s",
                    last == NULL ? "-" : why_reason_text(last->reason, last->http_status, text));
        render_cell(table, "%s", last == NULL ? "-" : render_duration(last->age, text));
        render_cell(table, "%" PRIu32, detail == NULL ? 0 : detail->streak);
        render_cell(table, "%s", detail == NULL ? "-" : render_duration(detail->since, text));
        render_cell(table, "%s", last == NULL ? "-" : render_duration(last->response_time, text));
        put_check_effect(table, check);
    }
    fputs("\nthis node's checks of it:\n", ctl->out);
    render_table_print(ctl, table);
}

/* How this node probes, and the last result: case A11 wants both addresses. */
static void put_probing(FILE *out, const Jury__V1__WhyResponse *why)
{
    const Jury__V1__OwnProbing *probing = why->probing;
    char text[RENDER_TEXT_BYTES];
    char other[RENDER_TEXT_BYTES];

    fprintf(out, "  backend      %s\n",
            render_endpoint(why->backend->address, why->backend->port, text));
    if (probing == NULL || probing->address[0] == '\0') {
        fprintf(out, "  probed       no\n");
        return;
    }
    if (why->n_checks > 0) {
        put_composition(out, why, count_local(why));
    }
    if (why->n_checks > 0 && count_local(why) > 1) {
        return; /* of each, below */
    }
    fprintf(out, "  probed       %s by %s", render_endpoint(probing->address, probing->port, text),
            names_word(&names_check_type, (unsigned)probing->type));
    fprintf(out, ", timeout %s, interval %s\n", render_duration(probing->timeout, text),
            render_duration(probing->interval, other));
    fprintf(out,
            "  thresholds   %" PRIu32 " failures in a row make a vote fail (now %" PRIu32
            "), %" PRIu32 " passes make it pass (now %" PRIu32 ")\n",
            probing->unhealthy_threshold, probing->fail_streak, probing->healthy_threshold,
            probing->pass_streak);
    fprintf(out, "  windows      %s from the first failing probe to this node's vote at most",
            render_duration(probing->failure_window, text));
    fprintf(out, ", %s from the first passing one %s\n",
            render_duration(probing->success_window, text), window_answers(probing));
    if (probing->last != NULL) {
        const Jury__V1__ProbeResult *last = probing->last;

        fprintf(out, "  last probe   %s after %s, ",
                why_reason_text(last->reason, last->http_status, text),
                render_duration(last->response_time, other));
        fprintf(out, "%s ago: %s\n", render_duration(last->age, text), last->sentence);
    }
    put_path(out, "", probing->path);
    put_certificate(out, "", probing->certificate);
}

static bool is_local(const Jury__V1__VerdictRule *rule, bool is_down)
{
    const Jury__V1__Rule *column = rule == NULL                  ? NULL
                                   : is_down || rule->up == NULL ? rule->down
                                                                 : rule->up;

    return column != NULL && column->kind == JURY__V1__RULE__KIND__KIND_LOCAL;
}

/* Marks that say that something other than votes makes the state what it is. A dependency that is
 * down does not, nor does it that the backend went down before. */
static bool is_kept(const Jury__V1__Verdict *verdict)
{
    for (size_t i = 0; i < verdict->n_marks; i++) {
        if (verdict->marks[i] != JURY__V1__HEALTH_MARK__HEALTH_MARK_DEGRADED &&
            verdict->marks[i] != JURY__V1__HEALTH_MARK__HEALTH_MARK_FLAPPING) {
            return true;
        }
    }
    return verdict->n_held_causes > 0;
}

/* The votes that stand for the state and why they are what they are; none if something other than
 * votes keeps it. */
static void put_deciders(FILE *out, const Jury__V1__WhyResponse *why)
{
    bool is_down = why->verdict->state == JURY__V1__HEALTH_STATE__HEALTH_STATE_UNHEALTHY;
    /* Of a vote that is made of several nobody knows which probe: it has no type. */
    unsigned type = why->probing == NULL ? CHECK_TYPE_NONE : (unsigned)why->probing->type;
    char nodes[RENDER_TEXT_BYTES] = "this node";
    size_t n = 1;

    if (is_kept(why->verdict) || why->n_reasons == 0) {
        return;
    }
    if (!is_local(why->rule, is_down)) {
        n = why_list_nodes(why, is_down ? OPINION_FAIL : OPINION_PASS, nodes);
    }
    fprintf(out, "  decided by   the %s vote%s of %s:", is_down ? "failing" : "passing",
            n == 1 ? "" : "s", nodes);
    for (size_t i = 0; i < why->n_reasons; i++) {
        const char *check = is_down ? why_check_of(why, why->reasons[i]) : "";

        fprintf(out, "%s %s%s%.40s, %s", i == 0 ? "" : ";",
                probe_reason_word((unsigned)why->reasons[i]), check[0] != '\0' ? " by " : "", check,
                probe_reason_sentence_of((unsigned)why->reasons[i], type));
    }
    fputc('\n', out);
}

static void put_counts(FILE *out, const Jury__V1__WhyResponse *why)
{
    const Jury__V1__Verdict *verdict = why->verdict;

    fprintf(out,
            "  votes        %" PRIu32 " pass and %" PRIu32 " fail of %" PRIu32
            " that count; %" PRIu32 " observer%s, ",
            verdict->n_pass, verdict->n_fail, verdict->n_counted, verdict->n_observers,
            verdict->n_observers == 1 ? "" : "s");
    if (is_local(why->rule, true)) {
        fprintf(out, "the one of this node alone decides%s\n",
                is_local(why->rule, false) ? "" : " whether it goes down");
    } else {
        fprintf(out, "%" PRIu32 " must count for it to go down\n", verdict->quorum);
    }
    if (why->n_remembered_fail > 0 || why->n_remembered_pass > 0) {
        fprintf(out,
                "               lost votes that only block: %" PRIu32 " pass, %" PRIu32 " fail\n",
                why->n_remembered_pass, why->n_remembered_fail);
    }
    put_deciders(out, why);
}

static void put_use(FILE *out, const Jury__V1__WhyResponse *why)
{
    char weight[RENDER_TEXT_BYTES];
    char cause[RENDER_TEXT_BYTES];

    fprintf(out, "  weight       %s%s, %s\n", render_weight(why->weight, why->weight_share, weight),
            render_weight_cause(why->weight_share, true, cause),
            names_word(&names_admin_state, (unsigned)why->admin_state));
    fprintf(out, "  new flows    %s\n",
            why->row_class == JURY__V1__ROW_CLASS__ROW_CLASS_UNSPECIFIED
                ? "not in the forwarding table"
                : render_row_class(why->row_class));
    fprintf(out, "  open flows   %s\n", flows_sentence(why));
}

static void put_head(struct ctl *ctl, const Jury__V1__WhyResponse *why)
{
    const Jury__V1__Verdict *verdict = why->verdict;
    FILE *out = ctl->out;
    char text[RENDER_TEXT_BYTES];
    char marks[RENDER_TEXT_BYTES];

    render_marks(verdict, marks);
    fprintf(out, "%s/%s is %s%s%s%s%s on node %" PRIu64 "\n", why->backend->group,
            render_endpoint(why->backend->address, why->backend->port, text),
            health_state_word((enum health_state)verdict->state), marks[0] == '\0' ? "" : " (",
            marks, marks[0] == '\0' ? "" : ")",
            verdict->is_unreachable ? ", unreachable from here," : "", why->node_id);
    if (why->sentence[0] != '\0') {
        render_sentence(out, "  ", why->sentence);
    }
    for (size_t i = 0; i < verdict->n_held_causes; i++) {
        fprintf(out, "  %s\n", held_sentence(verdict->held_causes[i]));
    }
    if (why->kept_age != NULL) {
        fprintf(out, "  kept         %s ago\n", render_duration(why->kept_age, text));
    }
    fprintf(out, "  since        %s\n", render_duration(verdict->since, text));
}

static void put_next(FILE *out, const Jury__V1__WhyResponse *why)
{
    if (why->next_down == NULL && why->next_up == NULL) {
        return;
    }
    fputs("\nwhat would change it:\n", out);
    if (why->next_down != NULL) {
        render_sentence(out, "  - ", why->next_down->sentence);
    }
    /* Why nothing can change it, such as checks that are off, is said once. */
    bool is_said = why->next_up != NULL && why->next_down != NULL &&
                   strcmp(why->next_up->sentence, why->next_down->sentence) == 0;
    if (why->next_up != NULL && !is_said) {
        render_sentence(out, "  - ", why->next_up->sentence);
    }
}

void render_why(struct ctl *ctl, const Jury__V1__WhyResponse *why, uint64_t revision)
{
    FILE *out = ctl->out;

    if (why->backend == NULL || why->verdict == NULL) {
        return;
    }
    put_head(ctl, why);
    put_probing(out, why);
    put_rule(out, why->rule);
    put_counts(out, why);
    put_use(out, why);
    if (why->drain != NULL) {
        render_flow_end(ctl, why->drain);
    }
    fprintf(out, "  revision     %" PRIu64 "\n", revision);
    if (why->n_checks > 0) {
        put_checks(ctl, why);
    }
    if (why->n_votes > 0) {
        fputc('\n', out);
        why_put_votes(ctl, why);
    }
    why_put_disagreement(out, why);
    put_next(out, why);
}
