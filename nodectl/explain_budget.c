/* The probe budget, as a topic of `nodectl explain`. */
#include <stdio.h>

#include "common/model/check.h"
#include "nodectl/explain.h"

int explain_budget(struct ctl *ctl)
{
    fprintf(
        ctl->out,
        "A node begins at most `probe-budget` probes a second, and `probe-budget-address` to one\n"
        "address, over all its ports and checks: options of jury-agent, or lines of its file, of\n"
        "each node for itself. Defaults %u and %u; no profile comes to that. In a second a tenth\n"
        "and one more may begin, so that what is due together is not spread for nothing.\n",
        PROBE_BUDGET_NODE, PROBE_BUDGET_ADDRESS);
    fputs(
        "\n"
        "  what waits   a start that there is no room for is delayed and never dropped. To one\n"
        "               address each target has its turn, one after the other, and other\n"
        "               addresses go on meanwhile; for the node's budget they begin in the\n"
        "               order in which they were due.\n"
        "  windows      each probe begins later by the delay D: a failure window is up to\n"
        "               T x U + (I + D) x (U - 1), and the first failing probe comes up to D\n"
        "               later. `nodectl node describe` shows D as it is now.\n"
        "  votes        a result is good for 3 x (T + I) after its end. When a target's turn\n"
        "               comes later than that, this node has no vote on it until the probe has\n"
        "               ended: its opinion becomes none with the reason LOCAL_DELAYED, and no\n"
        "               verdict changes by that alone (verdicts are held with too few votes).\n"
        "  back-        begins when a probe was delayed by 100ms or more, and ends when none was\n"
        "  pressure     for 10s: an event, a line in the log, a line in node describe.\n"
        "  counters     probe_budget_used, _demand, _waiting, _delayed, _delay_max_ns of\n"
        "               `nodectl node counters`; demand is what the intervals of the targets\n"
        "               that this node probes now come to, with probes that take no time: with\n"
        "               check.probers more of them while backends fail.\n"
        "\n"
        "Apply and validate warn when the checks of the documents come to more, while all is well\n"
        "or else while backends fail: then every node probes, and with check.probers or\n"
        "check.recheck up to twice an interval. Apply knows how many nodes share the targets of\n"
        "check.probers; validate, which asks nobody, takes every node to probe everything. What\n"
        "helps: a longer interval, fewer checks of one address, a larger budget, check.probers.\n"
        "See: nodectl node describe, nodectl events --type probe-budget\n",
        ctl->out);
    return 0;
}
