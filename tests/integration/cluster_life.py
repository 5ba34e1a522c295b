#!/usr/bin/python3
"""A cluster from nothing to its end: started in any order, made, fed, hurt, healed, stopped.

Three agents with real backends. The verdict follows a backend that is stopped and started, by votes,
on every node; the loss of the leader changes no verdict, and verdicts go on without it.
"""
import itertools
import os
import random
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from cluster import Cluster, check, run, tcp_group, wait_until  # noqa: E402


def started_in_any_order(options):
    """Each order that is not the plain one, one cluster each; each waits and says for what."""
    orders = random.sample(list(itertools.permutations((1, 2, 3))), 2)
    for order in orders:
        with Cluster(options) as cluster:
            cluster.start(order)
            for agent in cluster.agents.values():
                wait_until("%s says that it waits for `cluster init`" % agent.name, 10,
                           lambda agent=agent: "cluster init" in agent.status().store.message)
            cluster.init(by=order[-1])
            cluster.wait_ready()
            ids = {agent.status().cluster_id for agent in cluster.agents.values()}
            check(len(ids) == 1 and ids != {""}, "cluster ids differ: %s" % ids)
            print("started as %s, made by node %d, ready" % (order, order[-1]))


def verdict_changes(agent):
    """Lines of the log in which a verdict left healthy or unhealthy."""
    return agent.count(["event=verdict_changed"]) - agent.count(["event=verdict_changed",
                                                                  "from=initial"])


def verdicts_follow_votes(cluster, b1, b2):
    started = time.monotonic()
    cluster.apply([tcp_group("web", [b1, b2])])
    cluster.wait_verdicts("web", {b1: "healthy", b2: "healthy"})
    print("healthy on all nodes %.2f s after the apply" % (time.monotonic() - started))

    b1.stop()
    started = time.monotonic()
    cluster.wait_verdicts("web", {b1: "unhealthy", b2: "healthy"})
    print("unhealthy on all nodes %.2f s after the stop" % (time.monotonic() - started))
    for agent in cluster.agents.values():
        answer = agent.call("VerdictService/Why", {"backend": {"group": "web",
                                                               "address": b1.address,
                                                               "port": b1.port}})
        reasons = {vote.node_id: vote.detail.reason for vote in answer.votes}
        check(len(reasons) == 3 and all(reason == 3 for reason in reasons.values()),
              "%s does not show three votes CONNECT_FAILED: %s" % (agent.name, reasons))

    b1.start()
    started = time.monotonic()
    cluster.wait_verdicts("web", {b1: "healthy", b2: "healthy"})
    print("healthy again on all nodes %.2f s after the start" % (time.monotonic() - started))


def leader_loss_changes_no_verdict(cluster, b1, b2):
    leader = cluster.leader()
    rest = [agent for agent in cluster.agents.values() if agent is not leader]
    before = {agent.id: verdict_changes(agent) for agent in rest}

    leader.kill()
    started = time.monotonic()
    wait_until("another leader", 20, lambda: rest[0].status().store.leader_id in
               [agent.id for agent in rest])
    print("another leader %.2f s after the kill" % (time.monotonic() - started))
    cluster.wait_verdicts("web", {b1: "healthy", b2: "healthy"})
    for agent in rest:
        check(verdict_changes(agent) == before[agent.id],
              "%s changed a verdict when the leader was lost" % agent.name)

    # Two of three go on deciding: quorum is 2.
    b2.stop()
    cluster.wait_verdicts("web", {b1: "healthy", b2: "unhealthy"})
    b2.start()
    cluster.wait_verdicts("web", {b1: "healthy", b2: "healthy"})

    # A restarted node serves from last-known-good at once and gets its votes back.
    leader.start()
    cluster.wait_verdicts("web", {b1: "healthy", b2: "healthy"})
    cluster.wait_ready()
    check(leader.count(["event=last_known_good_read"]) == 1,
          "%s did not read its last-known-good file" % leader.name)
    epochs = {member.node.node_id: member.epoch for member in rest[0].status().members}
    check(epochs[leader.id] == 2, "the epoch of the restarted node is not 2: %s" % epochs)


def writes_reach_the_leader_from_every_node(cluster, b1):
    for agent in cluster.agents.values():
        name = "extra-%d" % agent.id
        answer = cluster.apply([tcp_group(name, [b1])], by=agent.id)
        groups = {group.name for group in agent.call("GroupService/ListGroups").groups}
        check(name in groups, "%s does not read its own write of revision %d: %s"
              % (agent.name, answer.revision, groups))


def stops_cleanly(cluster):
    for agent in cluster.agents.values():
        started = time.monotonic()
        status = agent.stop()
        check(status == 0, "%s ended with %s after SIGTERM" % (agent.name, status))
        print("%s stopped with 0 within %.2f s" % (agent.name, time.monotonic() - started))
        check(agent.count(["error"]) == 0 or "event=catalogs_differ" not in agent.text(),
              "%s logged an error" % agent.name)


def over_ipv6(options):
    """The same on IPv6 alone: mesh, Raft, probes and documents."""
    with Cluster(options, ipv6=True) as cluster:
        cluster.make()
        b1 = cluster.backend("b1", address="::1")
        cluster.apply([tcp_group("six", [b1])])
        cluster.wait_verdicts("six", {b1: "healthy"})
        b1.stop()
        cluster.wait_verdicts("six", {b1: "unhealthy"})
        print("the same over IPv6")


def test(options):
    started_in_any_order(options)
    over_ipv6(options)
    with Cluster(options) as cluster:
        cluster.make()
        b1, b2 = cluster.backend("b1"), cluster.backend("b2")
        verdicts_follow_votes(cluster, b1, b2)
        writes_reach_the_leader_from_every_node(cluster, b1)
        leader_loss_changes_no_verdict(cluster, b1, b2)
        stops_cleanly(cluster)


run(test)
