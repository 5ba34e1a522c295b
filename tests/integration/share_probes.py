#!/usr/bin/python3
"""N7 with real agents: of four nodes two probe the backend while all is well, its first failure makes
all four probe at once, all of them call it unhealthy, and when it is well again two stop.

Counted at the backend: requests in 4 s are those of two probers, then of four. `group describe` says
the same number, `why` who does not probe, and `node describe` what each node wants.
"""
import os
import re
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from cluster import Cluster, check, run, tcp_group, wait_until  # noqa: E402
from ctl import ask, here  # noqa: E402

INTERVAL = 0.5
COUNTED = 4  # seconds
HTTP = {"type": "CHECK_TYPE_HTTP", "http": {"path": "/"}, "timeout": "0.5s", "interval": "0.5s",
        "healthy_threshold": 2, "unhealthy_threshold": 2, "probers": 2}


def requests_in(backend, seconds):
    before = backend.n_requests
    time.sleep(seconds)  # what is counted is a rate
    return backend.n_requests - before


def told(cluster, agent, words):
    answer = ask(cluster, words + here(agent))
    check(answer.status == 0, "exit 0 was expected of %s" % answer)
    return answer.out


def wanted_by_each(cluster, agents):
    """What the intervals come to on each node, in probes a second."""
    return sorted(int(re.search(r"(\d+) wanted by the intervals",
                                told(cluster, agent, ["node", "describe"]))[1]) for agent in agents)


def test(options):
    with Cluster(options, n_nodes=4) as cluster:
        cluster.make(vote_interval="0.5s")
        backend = cluster.backend("b1")
        cluster.apply([tcp_group("web", [backend], **HTTP)])
        cluster.wait_verdicts("web", {backend: "healthy"})
        agents = list(cluster.agents.values())
        of_two = COUNTED / INTERVAL * 2
        wait_until("two probe", 20,
                   lambda: told(cluster, agents[0], ["why", "web/" + backend.at]).count(
                       "does not probe it") == 2)
        n = requests_in(backend, COUNTED)
        check(of_two / 2 < n < of_two * 1.5, "%d requests of two probers in %d s" % (n, COUNTED))
        describe = told(cluster, agents[0], ["group", "describe", "web"])
        check("probes of a backend        4 a second, from 2 of 4 nodes; when one fails 4 at once"
              in describe, describe)

        wait_until("those that do not probe want nothing", 20,
                   lambda: wanted_by_each(cluster, agents) == [0, 0, 2, 2])

        backend.status = 503
        cluster.wait_verdicts("web", {backend: "unhealthy"})
        check("does not probe it" not in told(cluster, agents[0], ["why", "web/" + backend.at]),
              "all probe what is down")
        wait_until("all want to probe it", 20,
                   lambda: wanted_by_each(cluster, agents) == [2, 2, 2, 2])
        n = requests_in(backend, COUNTED)
        check(n > of_two * 1.5, "%d requests of four probers in %d s" % (n, COUNTED))
        backend.status = 200
        cluster.wait_verdicts("web", {backend: "healthy"})
        for agent in agents:
            wait_until("two probe again, says %s" % agent.name, 30,
                       lambda agent=agent: told(cluster, agent, ["why", "web/" + backend.at]).count(
                           "does not probe it") == 2)
        print(told(cluster, agents[0], ["why", "web/" + backend.at]))


run(test)
