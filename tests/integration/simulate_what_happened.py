#!/usr/bin/python3
"""Row 2.11, live: three agents; a backend dies and comes back. Each node's `nodectl simulate` with the
document as it is shows exactly the verdicts of `nodectl events`, at the same times; a rule that asks
for all votes would have ejected no sooner than `any`; what only other probes could tell is refused.
"""
# twin: history-wrong-time is not what happened
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from cluster import Cluster, check, run, tcp_group, wait_until  # noqa: E402
from ctl import expect, here  # noqa: E402

V = 0.2
GROUP = """
apiVersion: jury/v1
kind: Group
metadata: {name: web}
spec:
  profile: nlb
  rule: %s
  check: {type: tcp, timeout: 500ms, interval: %s, healthyThreshold: 2, unhealthyThreshold: 2}
  backends:
  - {at: "%s"}
  - {at: "%s"}
"""


def n_fail(agent, backend):
    for row in agent.call("VerdictService/ListVerdicts", {"group": "web"}).verdicts:
        if row.backend.port == backend.port:
            return row.verdict.n_fail
    return 0


def changes(events):
    """Verdicts by time in milliseconds and backend; times are told to a millisecond."""
    return [(event["time"], event["backend"]["port"], event["from"], event["to"])
            for event in events if event["type"] == "EVENT_TYPE_VERDICT_CHANGED"]


def milliseconds(text):
    """Of the time of day."""
    hours, minutes, rest = text.split("T")[1].rstrip("Z").split(":")
    return round(1000 * (3600 * int(hours) + 60 * int(minutes) + float(rest)))


def is_same(was, happened):
    """The two questions are asked at two moments, whose wall time is rounded."""
    return len(was) == len(happened) and all(
        a[1:] == b[1:] and abs(milliseconds(a[0]) - milliseconds(b[0])) <= 2
        for a, b in zip(was, happened))


def simulate(cluster, agent, document, status=0):
    path = os.path.join(cluster.dir, "change.yaml")
    with open(path, "w", encoding="utf-8") as file:
        file.write(document)
    return expect(cluster, status, ["simulate", "-f", path] + here(agent))


def judge(cluster, agent, backends):
    _, events = expect(cluster, 0, ["events", "--type", "verdict", "--limit", "100"] + here(agent))
    plain, answer = simulate(cluster, agent, GROUP % ("majority", "500ms", *backends))
    happened, was = changes(events.json["events"]), changes(answer.json["was"]["events"])

    check(len(happened) >= 4, "too little happened: %s" % happened)
    check(is_same(sorted(was), sorted(happened)) and answer.json["isExact"],
          "on node %d %s is not what happened: %s" % (agent.id, was, happened))
    check(answer.json["changesNothing"] and "the change changes nothing" in plain.out,
          "an unchanged document changes something: %s" % plain)
    check(answer.json["was"]["nEjections"] == 1, "one ejection: %s" % answer)
    ejected = {}
    for rule in ("any", "all"):
        _, answer = simulate(cluster, agent, GROUP % (rule, "500ms", *backends))
        downs = [change for change in changes(answer.json["would"]["events"])
                 if change[3] == "unhealthy"]
        check(downs, "the rule %s would have ejected nothing: %s" % (rule, answer))
        ejected[rule] = milliseconds(downs[0][0])
    check(ejected["any"] <= ejected["all"] + 2, "one vote is not sooner than all: %s" % ejected)
    plain, _ = simulate(cluster, agent, GROUP % ("majority", "1s", *backends), status=3)
    check("check.interval" in plain.err, "the field is not named: %s" % plain)


def test(options):
    with Cluster(options) as cluster:
        cluster.make(vote_interval="%gs" % V)
        b1, b2 = cluster.backend("b1"), cluster.backend("b2")
        cluster.apply([tcp_group("web", [b1, b2])])
        cluster.wait_verdicts("web", {b1: "healthy", b2: "healthy"}, seconds=60)
        b1.stop()
        cluster.wait_verdicts("web", {b1: "unhealthy"}, seconds=60)
        for agent in cluster.agents.values():
            wait_until("all three fail at node %d" % agent.id, 60,
                       lambda agent=agent: n_fail(agent, b1) == 3)
        b1.start()
        cluster.wait_verdicts("web", {b1: "healthy", b2: "healthy"}, seconds=60)
        for agent in cluster.agents.values():
            judge(cluster, agent, (b1.at, b2.at))


run(test)
