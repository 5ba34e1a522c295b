#!/usr/bin/python3
"""What `export` prints of a real cluster is what is committed: `apply --dry-run` of it changes nothing,
with defaults left out and with --full, after every example of deploy/examples was applied and the
verbs changed weights, drains, maintenance and holds since. A cluster that has lost all groups and
listeners has the same ones again when it is applied.
"""
import glob
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from cluster import ROOT, Cluster, check, run  # noqa: E402
from ctl import ask, here  # noqa: E402

VERBS = (["backend", "weight", "web/10.77.0.1:8080", "30"],
         ["backend", "maintenance", "web/10.77.0.2:8080"],
         ["backend", "drain", "shop/10.30.0.11:443", "--timeout", "40s"],
         ["hold", "set", "shop"], ["hold", "set"])


def done(cluster, words, **more):
    answer = ask(cluster, words + here(cluster.agents[1]), **more)
    check(answer.status == 0, "exit 0 was expected of %s" % answer)
    return answer.out


def changes_nothing(cluster, text):
    """Returns how many objects it names."""
    lines = done(cluster, ["apply", "-f", "-", "--dry-run"], text=text).splitlines()
    check(len(lines) > 1, "nothing was planned: %s" % lines)
    for line in lines[:-1]:
        check(line.split()[0] in ("nothing", "unchanged"), "this changes: %s" % line)
    return len(lines) - 1


def test(options):
    with Cluster(options, n_nodes=1) as cluster:
        cluster.make()
        files = sorted(glob.glob(os.path.join(ROOT, "deploy", "examples", "**", "*.yaml"),
                                 recursive=True))
        for path in files:
            done(cluster, ["apply", "-f", path])
        for words in VERBS:
            done(cluster, words)

        brief, full = done(cluster, ["export"]), done(cluster, ["export", "--full"])
        n = changes_nothing(cluster, brief)
        check(n == changes_nothing(cluster, full) and n > len(files), "%d objects" % n)
        check(len(brief) < len(full) / 2, "%d of %d bytes" % (len(brief), len(full)))
        check("weight: 30" in brief and "adminState: maintenance" in brief and
              "adminState: draining" in brief, brief)
        check("adminState: enabled" in full and 'hold: "on"' in full, full)

        parts = done(cluster, ["export", "group", "listener"])
        refused = ask(cluster, ["delete", "-f", "-"] + here(cluster.agents[1]), text=parts)
        force = re.search(r"the count (\d+)", refused.err)
        check(refused.status == 8 and force, "no force was asked for: %s" % refused)
        done(cluster, ["delete", "-f", "-", "--force", force.group(1)], text=parts)
        check("kind: Group" not in done(cluster, ["export"]), "a group is left")
        done(cluster, ["apply", "-f", "-"], text=parts)
        check(done(cluster, ["export", "group", "listener"]) == parts, "other groups came back")
        print("%d objects of %d files: %d bytes, --full %d" % (n, len(files), len(brief), len(full)))


run(test)
