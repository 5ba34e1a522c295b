#!/usr/bin/python3
"""Two of three agents are away for a while: `nodectl events` of the third says so, and when they are back.

Each of them is lost and heard again, once; the leader is missing and known again; too few votes count
and enough again. All of it by the events of the node that stayed, with the time that it lasted. The
start of the cluster is none of that.
"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from cluster import Cluster, check, run, wait_until  # noqa: E402
from ctl import ask, here  # noqa: E402


def told(cluster, kind):
    """(subject's node, word) of the events of a type, oldest first."""
    answer = ask(cluster, ["events", "--type", kind, "-o", "json"] + here(cluster.agents[1]))
    check(answer.status == 0, "events: %s" % answer)
    return [(int(e["nodeId"]), e["to"]) for e in answer.json["events"]]


def leaders(cluster):
    return [word for _, word in told(cluster, "leader")]


def test(options):
    with Cluster(options, 3) as cluster:
        cluster.make(vote_interval="0.2s")
        stays = cluster.agents[1]
        away = [cluster.agents[2], cluster.agents[3]]
        check(not told(cluster, "node") and "none" not in leaders(cluster), "news of the start")

        for agent in away:
            agent.kill()
        wait_until("both are told as lost", 30, lambda: sorted(told(cluster, "node")) ==
                   [(2, "lost"), (3, "lost")])
        wait_until("the leader is missed", 30, lambda: leaders(cluster)[-1:] == ["none"])
        wait_until("too few votes are told", 30, lambda: told(cluster, "few-votes") == [(1, "too-few")])

        for agent in away:
            agent.start()
        wait_until("both are told as heard again", 30, lambda: sorted(told(cluster, "node")) ==
                   [(2, "heard"), (2, "lost"), (3, "heard"), (3, "lost")])
        wait_until("a leader is told", 30, lambda: leaders(cluster)[-1:] == ["known"])
        wait_until("enough votes are told", 30, lambda: told(cluster, "few-votes") ==
                   [(1, "too-few"), (1, "enough")])
        print(ask(cluster, ["events"] + here(stays)).out)


run(test)
