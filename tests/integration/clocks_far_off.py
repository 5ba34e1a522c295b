#!/usr/bin/python3
"""R-VOTE-1 and case A20, with real processes: clocks that are far off, and that jump, change no verdict.

Node 1 is as it is. Node 2's wall clock is a year ahead, and later a year behind (LD_PRELOAD). Node 3 is
in a time namespace: its monotonic and boot-time clocks are 400 days ahead of the others'. A backend that
lives stays healthy on each node all the while, each vote counts and is young, and a backend that dies
and comes back is seen by all, with either offset. Needs root.
"""
import os
import struct
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from cluster import Cluster, check, run, tcp_group, wait_until  # noqa: E402

V = 0.5
YEAR_S = 365 * 86400
AHEAD_S = 400 * 86400
SLOW = 10
WINDOW_S = 2 * 0.5 + 0.5 + 0.5 + 2 * V + 0.1  # U x T + I x (U - 1), the interval, the votes
VERDICT = 1  # enum EventType
COUNTED = 1  # enum VoteStanding


def set_wall_clock(path, seconds):
    with open(path, "r+b") as file:
        file.write(struct.pack("=q", seconds))


def why(agent, backend):
    return agent.call("VerdictService/Why", {"backend": {
        "group": "web", "address": backend.address, "port": backend.port}})


def all_see(cluster, backend, state):
    wait_until("%s is %s on all nodes" % (backend.name, state), SLOW * WINDOW_S, lambda: all(
        agent.verdicts("web")[backend.at] == state for agent in cluster.agents.values()))


def votes_are_young(agent, backend):
    """All three count, and none is older than it may be; the machine is as slow as it likes."""
    votes = why(agent, backend).votes
    return len(votes) == 3 and all(
        vote.standing == COUNTED and vote.age.seconds < SLOW * 3 * V for vote in votes)


def go_through(cluster, lives, dies, what):
    for agent in cluster.agents.values():
        wait_until("%s: all votes count and are young (%s)" % (agent.name, what), SLOW * 3 * V,
                   lambda agent=agent: votes_are_young(agent, lives))
    dies.stop()
    all_see(cluster, dies, "unhealthy")
    dies.start()
    all_see(cluster, dies, "healthy")
    print("%s: a backend died and came back on all nodes" % what)


def verdict_events(agent, backend):
    return [event for event in agent.call("EventService/ListEvents", {"type": VERDICT}).events
            if event.backend.port == backend.port and event.backend.address == backend.address]


def years_in_log(agent):
    return {line[:4] for line in agent.text().splitlines() if line[:2] == "20"}


def probe_rate(agent, n=12):
    """Of the node, a second, over its next n probes."""
    begun, first = time.monotonic(), agent.counters()["probes_finished"]
    wait_until("probes go on", SLOW * n * 0.5, lambda:
               agent.counters()["probes_finished"] >= first + n)
    return (agent.counters()["probes_finished"] - first) / (time.monotonic() - begun)


def test(options):
    with Cluster(options) as cluster:
        wall_clock = os.path.join(cluster.dir, "wall-clock")
        with open(wall_clock, "wb") as file:
            file.write(struct.pack("=q", YEAR_S))
        library = os.path.join(cluster.bin, "libwall_clock.so")
        cluster.agents[2].prefix = ["env", "LD_PRELOAD=" + library,
                                    "JURY_TEST_WALL_CLOCK=" + wall_clock]
        cluster.agents[3].prefix = ["unshare", "--time", "--monotonic", str(AHEAD_S), "--boottime",
                                    str(AHEAD_S), "--fork", "--kill-child"]
        cluster.make(vote_interval="0.5s")
        lives, dies = cluster.backend("lives"), cluster.backend("dies")
        cluster.apply([tcp_group("web", [lives, dies])])
        for backend in (lives, dies):
            all_see(cluster, backend, "healthy")
        before = {node: len(verdict_events(agent, lives)) for node, agent in cluster.agents.items()}
        go_through(cluster, lives, dies, "a year ahead")
        # Case A20: who leads and how often is probed do not feel the step.
        leader, rate = cluster.leader().id, probe_rate(cluster.agents[2])
        set_wall_clock(wall_clock, -YEAR_S)
        stepped = probe_rate(cluster.agents[2])
        print("probes a second of node 2: %.2f, and %.2f over the step" % (rate, stepped))
        check(rate / 2 < stepped < 2 * rate, "the step changed how often node 2 probes")
        check(cluster.leader().id == leader, "the step changed the leader")
        go_through(cluster, lives, dies, "a year behind")
        for node, agent in cluster.agents.items():
            changes = len(verdict_events(agent, lives)) - before[node]
            check(changes == 0, "%s changed its verdict of what lives %d times"
                  % (agent.name, changes))
        years = years_in_log(cluster.agents[2])
        check(len(years - years_in_log(cluster.agents[1])) >= 2,
              "node 2 knew no other years than node 1: its clock was not off (%s)" % years)


run(test)
