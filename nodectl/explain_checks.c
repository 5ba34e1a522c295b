/* `nodectl explain checks`. */
#include <stdio.h>

#include "nodectl/explain.h"

int explain_checks(struct ctl *ctl)
{
    fputs(
        "A group has one `check`, or `checks`: 2 to 8 of them, each with a name of its own and\n"
        "the fields of a check. Each is a probe of its own, with its own times and thresholds;\n"
        "what groups agree in is probed once.\n"
        "\n"
        "  checks:\n"
        "  - {name: port, type: tcp}\n"
        "  - {name: page, type: http, http: {path: /health}}\n"
        "  - {name: db, class: dependency, type: tcp, port: 5432}\n"
        "  pass: all\n"
        "\n"
        "  local        (the default) asks what the backend itself can do. `pass` says how many\n"
        "               of the n local ones must pass, k: all (k = n), any (k = 1), at-least k.\n"
        "  the vote     of a node is made of its own opinions of the local ones: pass when k\n"
        "               pass; fail when k can no longer be reached by those that pass and those\n"
        "               without an opinion; else none, and a missing vote decides nothing. One\n"
        "               that the node doubts (self-doubt) is one without an opinion. That vote,\n"
        "               and not the opinions, is put to the group's rule with those of the other\n"
        "               nodes: rules, quorum, marks and guards are as with one check.\n"
        "  its reason   is that of one local check that says so: the one that said it first\n"
        "               and still does, of several the first in the list. `nodectl why` names it,\n"
        "               also of other nodes' votes, and shows all that this node knows of each.\n"
        "  windows      W = T x U + I x (U - 1) of the check that decides, from its first failing\n"
        "               probe: at most the longest of the local ones, whatever k is. When all "
        "fail\n"
        "               at once, the (n - k + 1)th shortest. Likewise for a recovery: the k-th "
        "that\n"
        "               passes decides. `nodectl group describe` has both, of each and of all.\n"
        "  dependency   asks what the backend needs and others may need too, such as a database.\n"
        "               It never ejects: when the votes on it say down by the group's rule, the\n"
        "               backend has the mark `degraded`, an event says so, and that is all. It\n"
        "               moves no flow, changes no weight, and no guard or group state looks at "
        "it:\n"
        "               when the one database is gone, taking out all that need it helps nobody.\n"
        "               An agent that starts knows of no dependency that is down until votes say "
        "so.\n"
        "  load         the sum of all: each node probes each check.\n"
        "  changes      a local one more or less, another order, port or `pass` makes another\n"
        "               vote: verdicts are held until it says something, or have their shadow. A\n"
        "               dependency more or less, or another name, changes none.\n"
        "\n"
        "At least one must be local. `probers` and `recheck` are refused in a list so far: who\n"
        "probes is worked out from the votes on one target, and such a vote has several.\n"
        "`nodectl simulate` takes a list of checks as it was: what other thresholds or another k\n"
        "would have made of the other nodes' probes is not known here.\n",
        ctl->out);
    return 0;
}
