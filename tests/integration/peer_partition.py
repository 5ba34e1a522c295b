#!/usr/bin/python3
"""Cases A48 and A30: nodes that do not hear each other, and then do again.

Three agents, each a host of its own. First nodes A and B lose each other, both ways, while C hears
both; then every node is alone. Meanwhile expired votes do not count, nothing goes down without a
quorum, and each node says whom it misses and since when. Afterwards votes are exchanged again within
10 s, with no restart and no help. Needs root.
"""
# seconds: 57
# twin: vote-no-expiry not within .*an expired vote does not count
# twin: verdict-no-quorum went down
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from cluster import check, run, tcp_group, wait_until  # noqa: E402
from ctl import expect, here  # noqa: E402
from lan import Lan, LanCluster  # noqa: E402

V = 0.5
INTERVAL_S = 0.5  # of tcp_group, from the end of a probe to the next
EXPIRY_S = 3 * V
MEMORY_S = 2 * (0.5 + 0.5) + 3 * V  # U x (T + I) + 3 V
CALM = {"timeout": "2s", "interval": "2s", "unhealthy_threshold": 3}  # 13.5 s of memory
SLOW = 10  # a loaded machine
BACK_WITHIN_S = 10  # A48
HOSTS = {"a": 1, "b": 2, "c": 3, "web1": 11, "web2": 12}
NODES = {1: "a", 2: "b", 3: "c"}
REMEMBERED = 2  # enum VoteStanding
VERDICT = 1     # enum EventType
HELD = 1        # enum HealthMark


def seconds_of(duration):
    return duration.seconds + duration.nanos / 1e9


def cut(lan, pairs):
    """Nothing passes between the nodes of a pair, either way."""
    for node, host in NODES.items():
        others = [b if node == a else a for a, b in pairs if node in (a, b)]
        if others:
            addresses = ", ".join(lan.address(NODES[other]) for other in others)
            lan.filter(host, {"in": ["ip saddr { %s } drop" % addresses],
                              "out": ["ip daddr { %s } drop" % addresses]})


def join(lan):
    for host in NODES.values():
        lan.unfilter(host)


def why(agent, backend, group="web"):
    return agent.call("VerdictService/Why", {"backend": {
        "group": group, "address": backend.address, "port": backend.port}})


def changes(cluster):
    """Verdict events so far, by node."""
    return {agent.id: [event.sequence for event in agent.call(
        "EventService/ListEvents", {"type": VERDICT}).events] for agent in cluster.agents.values()}


def wait_expired(agent, lost, backend, since):
    """Their votes count no longer, in neither direction. Returns how long after `since`. It is the
    group with the long memory that is asked: a vote that counts until it is forgotten would show."""
    def expired():
        answer = why(agent, backend, "calm")
        standing = {vote.node_id: vote.standing for vote in answer.votes}
        return answer.verdict.n_counted == 3 - len(lost) and \
            all(standing[node] == REMEMBERED for node in lost)
    wait_until("an expired vote does not count (%s, of nodes %s)" % (agent.name, lost),
               SLOW * EXPIRY_S, expired)
    return time.monotonic() - since


def says_whom_it_misses(cluster, agent, lost, since):
    plain, answer = expect(cluster, 0, ["cluster", "members", "--stale"] + here(agent))
    # The vector before the cut is at most V older than it.
    silent = time.monotonic() - since
    for member in answer.json["members"]:
        node = int(member["node"]["nodeId"])
        check(member.get("isHeard", node == agent.id) == (node not in lost),
              "node %d: wrong about node %d: %s" % (agent.id, node, plain))
        if node in lost:
            age = float(member["age"].rstrip("s"))
            check(silent - 1 <= age + 1 <= silent + SLOW * V + 2,
                  "node %d heard node %d %.1f s ago, it was cut off for %.1f s: %s"
                  % (agent.id, node, age, silent, plain))
            row = next(line for line in plain.out.splitlines() if line.startswith("%d " % node))
            check(" no " in row, "the table does not say so: %s" % plain)
    # Nobody is taken off the list of those to dial.
    peers = {peer.node_id for peer in agent.call("NodeService/DescribeNode").peers}
    check(peers == set(cluster.agents) - {agent.id}, "%s dials %s" % (agent.name, peers))


def own_streak(agent, backend):
    return next(vote.detail.streak for vote in why(agent, backend).votes if vote.is_self)


def wait_probes(cluster, backend, seconds):
    """Until each node has had as many more equal results in a row as take it at least so long."""
    wanted = {agent: own_streak(agent, backend) + int(seconds / INTERVAL_S) + 1
              for agent in cluster.agents.values()}
    for agent, streak in wanted.items():
        wait_until("%s has probed %s on for %g s" % (agent.name, backend.name, seconds),
                   SLOW * seconds,
                   lambda agent=agent, streak=streak: own_streak(agent, backend) >= streak)


def wait_whole(cluster, backend, since, what):
    def whole():
        return all(why(agent, backend, group).verdict.n_counted == 3
                   for agent in cluster.agents.values() for group in ("web", "calm"))
    wait_until("all votes count again", SLOW * BACK_WITHIN_S, whole)
    took = time.monotonic() - since
    check(took <= BACK_WITHIN_S, "votes were exchanged only %.1f s after %s" % (took, what))
    wait_until("there is a leader for all", 60, lambda: len(
        {agent.status().store.leader_id for agent in cluster.agents.values()} - {0}) == 1)
    print("%s: all votes count on all nodes %.2f s later" % (what, took))


def two_lose_each_other(cluster, lan, b1, b2, seconds):
    before = changes(cluster)
    since = time.monotonic()
    cut(lan, [(1, 2)])
    for agent, lost in ((1, [2]), (2, [1])):
        took = wait_expired(cluster.agents[agent], lost, b1, since)
        print("node %d: the vote of node %d has expired %.2f s after the cut (3 V = %.1f s)"
              % (agent, lost[0], took, EXPIRY_S))
    wait_probes(cluster, b1, seconds)
    for agent, lost in ((1, [2]), (2, [1]), (3, [])):
        says_whom_it_misses(cluster, cluster.agents[agent], lost, since)
    check(changes(cluster) == before, "a cut between two nodes changed a verdict")

    # Two votes of three are a quorum: verdicts go on.
    b2.stop()
    cluster.wait_verdicts("web", {b1: "healthy", b2: "unhealthy"}, seconds=60)
    with lan.inside("web2"):
        b2.start()
    cluster.wait_verdicts("web", {b1: "healthy", b2: "healthy"}, seconds=60)
    since = time.monotonic()
    join(lan)
    wait_whole(cluster, b1, since, "A and B hear each other again")


def each_is_alone(cluster, lan, b1, b2, seconds):
    before = changes(cluster)
    since = time.monotonic()
    cut(lan, [(1, 2), (1, 3), (2, 3)])
    b2.stop()
    for agent in cluster.agents.values():
        lost = sorted(set(NODES) - {agent.id})
        wait_expired(agent, lost, b1, since)
        wait_until("%s fails to reach b2" % agent.name, 60, lambda agent=agent: next(
            vote.opinion for vote in why(agent, b2).votes if vote.is_self) == 2)
    wait_probes(cluster, b2, max(seconds, MEMORY_S + V))
    for agent in cluster.agents.values():
        says_whom_it_misses(cluster, agent, sorted(set(NODES) - {agent.id}), since)
        for backend in (b1, b2):
            verdict = why(agent, backend).verdict
            check(verdict.state == 2, "%s alone: %s went down" % (agent.name, backend.name))
            check(HELD in verdict.marks and verdict.n_counted == 1,
                  "%s alone: not held: %s" % (agent.name, verdict))
        check(not agent.call("NodeService/CheckReady").is_ready or
              agent.status().health != 1, "%s alone calls the cluster healthy" % agent.name)
    check(changes(cluster) == before, "a node alone: a backend went down or up")
    print("alone for %.0f s with a backend stopped: all verdicts held" % (time.monotonic() - since))

    since = time.monotonic()
    join(lan)
    wait_whole(cluster, b1, since, "all hear each other again")
    cluster.wait_verdicts("web", {b1: "healthy", b2: "unhealthy"}, seconds=60)
    print("the stopped backend is unhealthy on all %.2f s later" % (time.monotonic() - since))
    with lan.inside("web2"):
        b2.start()
    cluster.wait_verdicts("web", {b1: "healthy", b2: "healthy"}, seconds=60)


def test(options):
    lan = Lan(HOSTS)
    with LanCluster(options, lan, NODES) as cluster:
        cluster.make(vote_interval="%gs" % V)
        b1, b2 = (cluster.lan_backend(name, host, 80) for name, host in (("b1", "web1"),
                                                                          ("b2", "web2")))
        cluster.apply([tcp_group("web", [b1, b2]), tcp_group("calm", [b1], **CALM)])
        cluster.wait_verdicts("web", {b1: "healthy", b2: "healthy"}, seconds=60)
        cluster.wait_verdicts("calm", {b1: "healthy"}, seconds=60)
        wait_whole(cluster, b1, time.monotonic(), "the start")
        pids = [agent.process.pid for agent in cluster.agents.values()]

        two_lose_each_other(cluster, lan, b1, b2, options.seconds)
        each_is_alone(cluster, lan, b1, b2, options.seconds)

        check([agent.process.pid for agent in cluster.agents.values() if agent.is_running()] == pids,
              "an agent was restarted")
        for agent in cluster.agents.values():
            stale = sum(peer.n_stale for peer in agent.call("NodeService/DescribeNode").peers)
            print("%s: %d stale vote messages dropped" % (agent.name, stale))


run(test, seconds=15.0)
