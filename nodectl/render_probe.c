/* Probes on demand: what came of each, and its steps with times. */
#include <inttypes.h>
#include <stdio.h>

#include "common/base/units.h"
#include "common/model/doubt.h"
#include "common/model/reason.h"
#include "nodectl/render.h"

static const char *step_words(Jury__V1__ProbeStepKind kind)
{
    switch (kind) {
    case JURY__V1__PROBE_STEP_KIND__PROBE_STEP_KIND_SYN_SENT:
        return "SYN sent";
    case JURY__V1__PROBE_STEP_KIND__PROBE_STEP_KIND_SYN_REPEATED:
        return "SYN repeated";
    case JURY__V1__PROBE_STEP_KIND__PROBE_STEP_KIND_SYN_ACK_RECEIVED:
        return "SYN-ACK received";
    case JURY__V1__PROBE_STEP_KIND__PROBE_STEP_KIND_ACK_SENT:
        return "ACK sent";
    case JURY__V1__PROBE_STEP_KIND__PROBE_STEP_KIND_RST_RECEIVED:
        return "RST received";
    case JURY__V1__PROBE_STEP_KIND__PROBE_STEP_KIND_RST_SENT:
        return "RST sent";
    case JURY__V1__PROBE_STEP_KIND__PROBE_STEP_KIND_FIN_RECEIVED:
        return "FIN received";
    case JURY__V1__PROBE_STEP_KIND__PROBE_STEP_KIND_FIN_SENT:
        return "FIN sent";
    case JURY__V1__PROBE_STEP_KIND__PROBE_STEP_KIND_DATA_SENT:
        return "sent";
    case JURY__V1__PROBE_STEP_KIND__PROBE_STEP_KIND_DATA_RECEIVED:
        return "received";
    case JURY__V1__PROBE_STEP_KIND__PROBE_STEP_KIND_DATAGRAM_SENT:
        return "datagram sent";
    case JURY__V1__PROBE_STEP_KIND__PROBE_STEP_KIND_DATAGRAM_RECEIVED:
        return "datagram received";
    case JURY__V1__PROBE_STEP_KIND__PROBE_STEP_KIND_ECHO_SENT:
        return "ICMP echo sent";
    case JURY__V1__PROBE_STEP_KIND__PROBE_STEP_KIND_ECHO_RECEIVED:
        return "ICMP echo reply received";
    case JURY__V1__PROBE_STEP_KIND__PROBE_STEP_KIND_ICMP_ERROR:
        return "ICMP error";
    case JURY__V1__PROBE_STEP_KIND__PROBE_STEP_KIND_IGNORED:
        return "packet ignored";
    case JURY__V1__PROBE_STEP_KIND__PROBE_STEP_KIND_DEADLINE:
        return "the timeout is over";
    case JURY__V1__PROBE_STEP_KIND__PROBE_STEP_KIND_TLS_ESTABLISHED:
        return "TLS handshake done";
    case JURY__V1__PROBE_STEP_KIND__PROBE_STEP_KIND_UNSPECIFIED:
    case _JURY__V1__PROBE_STEP_KIND_IS_INT_SIZE:
        break;
    }
    return "a step that this nodectl does not know";
}

static const char *outcome_word(Jury__V1__ProbeOutcome outcome)
{
    switch (outcome) {
    case JURY__V1__PROBE_OUTCOME__PROBE_OUTCOME_PASS:
        return "passed";
    case JURY__V1__PROBE_OUTCOME__PROBE_OUTCOME_FAIL:
        return "failed";
    case JURY__V1__PROBE_OUTCOME__PROBE_OUTCOME_INCONCLUSIVE:
        return "inconclusive";
    case JURY__V1__PROBE_OUTCOME__PROBE_OUTCOME_UNSPECIFIED:
    case _JURY__V1__PROBE_OUTCOME_IS_INT_SIZE:
        break;
    }
    return "not probed";
}

static const char *outcome_color(const struct ctl *ctl, Jury__V1__ProbeOutcome outcome)
{
    if (!render_has_color(ctl)) {
        return "";
    }
    return outcome == JURY__V1__PROBE_OUTCOME__PROBE_OUTCOME_PASS   ? "\033[32m"
           : outcome == JURY__V1__PROBE_OUTCOME__PROBE_OUTCOME_FAIL ? "\033[31m"
                                                                    : "\033[33m";
}

static uint64_t us_of(const Google__Protobuf__Duration *duration)
{
    return duration == NULL
               ? 0
               : (uint64_t)duration->seconds * 1000000 + (uint64_t)duration->nanos / 1000;
}

/* "GET / HTTP/1.1" (78 bytes), by 10.0.0.9: port unreachable. */
static void put_step(FILE *out, const Jury__V1__ProbeStep *step)
{
    char span[32];

    fprintf(out, "  %9s  %s", units_format_span_us(us_of(step->at), span, sizeof span),
            step_words(step->kind));
    if (step->from[0] != '\0') {
        fprintf(out, " from %s", step->from);
    }
    if (step->n_bytes > 0) {
        fprintf(out, " (%" PRIu32 " bytes)", step->n_bytes);
    }
    render_sentence(out, step->text[0] == '\0' ? "" : ": ", step->text);
}

static void put_head(struct ctl *ctl, const Jury__V1__NodeProbe *probe)
{
    FILE *out = ctl->out;

    fprintf(out, "node %" PRIu64 ": %s%s%s by %s", probe->node_id,
            outcome_color(ctl, probe->outcome), outcome_word(probe->outcome),
            render_has_color(ctl) ? "\033[0m" : "", probe_reason_word((unsigned)probe->reason));
    if (probe->http_status != 0) {
        fprintf(out, ", HTTP status %" PRIu32, probe->http_status);
    }
    fprintf(out, ": %s\n",
            probe_reason_sentence_of((unsigned)probe->reason, (unsigned)probe->type));
}

static void put_remarks(FILE *out, const Jury__V1__NodeProbe *probe)
{
    char causes[DOUBT_TEXT_BYTES];
    uint32_t set = 0;

    for (size_t i = 0; i < probe->n_doubt_causes; i++) {
        set |= UINT32_C(1) << ((unsigned)probe->doubt_causes[i] % 32);
    }
    if (probe->is_suspect) {
        fprintf(out, "  suspect    this node doubts its own probes of this kind: %s\n",
                doubt_causes_format(set, causes));
    }
    if (probe->is_check_off) {
        fprintf(out, "  not checked  checks of the group are off: only this command probes it\n");
    }
    if (probe->is_in_maintenance) {
        fprintf(out, "  not checked  the backend is in maintenance: only this command probes it\n");
    }
}

static void put_probe(struct ctl *ctl, const Jury__V1__NodeProbe *probe)
{
    FILE *out = ctl->out;
    char text[RENDER_TEXT_BYTES];
    char span[32];

    if (probe->error != NULL) {
        fprintf(out, "node %" PRIu64 ": not probed", probe->node_id);
        render_sentence(out, ": ", probe->error->message);
        return;
    }
    put_head(ctl, probe);
    fprintf(out, "  probed     %s, %s", render_endpoint(probe->address, probe->port, text),
            probe->kind);
    if (probe->engine[0] != '\0') {
        fprintf(out, ", engine %s", probe->engine);
    }
    fputc('\n', out);
    if (probe->source_address[0] != '\0') {
        fprintf(out, "  from       %s\n",
                render_endpoint(probe->source_address, probe->source_port, text));
    }
    fprintf(out, "  took       %s",
            units_format_span_us(us_of(probe->duration), span, sizeof span));
    units_format_duration_ms(us_of(probe->timeout) / 1000, span, sizeof span);
    fprintf(out, " of the timeout of %s, from %s on\n", span, render_time(probe->start, text));
    put_remarks(out, probe);
    for (size_t i = 0; i < probe->n_steps; i++) {
        put_step(out, probe->steps[i]);
    }
    if (probe->n_steps_left_out > 0) {
        fprintf(out, "  %9s  %" PRIu32 " more steps\n", "", probe->n_steps_left_out);
    }
}

void render_probes(struct ctl *ctl, const Jury__V1__ProbeBackendResponse *answer)
{
    char text[RENDER_TEXT_BYTES];

    if (answer->backend != NULL) {
        fprintf(ctl->out, "%s/%s, probed once more than its schedule; it counts in no vote\n",
                answer->backend->group,
                render_endpoint(answer->backend->address, answer->backend->port, text));
    }
    for (size_t i = 0; i < answer->n_probes; i++) {
        put_probe(ctl, answer->probes[i]);
    }
}
