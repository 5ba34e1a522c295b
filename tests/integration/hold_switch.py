#!/usr/bin/python3
"""R-EJ-3 and A32: one command stops all ejections, and shows who gave it.

Three agents, each a host of its own. The replicated switch, set through a node that does not lead,
reaches every node that the leader reaches within a second; backends that die then stay in service.
A node that is cut off is held by its own override, without a leader. Recoveries apply. Needs root.
"""
# seconds: 21
# twin: hold-ignored stays in service
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from cluster import KeyPair, check, run, tcp_group, wait_until  # noqa: E402
from ctl import ask, expect, here, over  # noqa: E402
from lan import Lan, LanCluster  # noqa: E402

V = 0.5
GOAL_S = 1.0
SLOW = 10  # a loaded machine
WINDOW_S = 2 * 0.5 + 0.5 + 2 * V
HOSTS = {"a": 1, "b": 2, "c": 3, "web1": 11, "web2": 12}
NODES = {1: "a", 2: "b", 3: "c"}
HELD_BY_HOLD = 5   # enum HeldCause
GUARD_CHANGED = 11  # enum EventType


def holds(agent):
    return {(hold.source, hold.group): hold.actor
            for hold in agent.call("HoldService/ListHolds").holds}


def wait_hold(cluster, nodes, wanted, since):
    """Returns how long after `since` the last of the nodes had it."""
    for node in nodes:
        wait_until("node %d holds by %s" % (node, wanted), SLOW * GOAL_S,
                   lambda node=node: wanted in holds(cluster.agents[node]), interval=0.01)
    return time.monotonic() - since


def verdict(agent, backend, group):
    return agent.call("VerdictService/Why", {"backend": {
        "group": group, "address": backend.address, "port": backend.port}}).verdict


def stays_in_service(cluster, nodes, backend, group):
    """Its own probes fail and its votes say so, and still it is used."""
    for node in nodes:
        agent = cluster.agents[node]
        wait_until("%s: %s stays in service, held by the switch" % (agent.name, backend.name),
                   SLOW * WINDOW_S,
                   lambda agent=agent: HELD_BY_HOLD in verdict(agent, backend, group).held_causes)
        state = cluster.agents[node].verdicts(group)[backend.at]
        check(state == "healthy", "%s: %s is %s" % (agent.name, backend.name, state))


def first_line(cluster, agent, group):
    answer = ask(cluster, ["group", "describe", group, "--stale"] + here(agent))
    check(answer.status == 0, "group describe: %s" % answer)
    return answer.out.splitlines()[0]


def replicated(cluster, lan, b1, operator):
    follower = next(agent for agent in cluster.agents.values() if agent is not cluster.leader())
    since = time.monotonic()
    answer = ask(cluster, ["hold", "set", "web"] + over(follower, operator), prefix=lan.prefix("a"))
    check(answer.status == 0, "not set: %s" % answer)
    # Whoever asks the same node next, with a program of its own, sees it.
    shown, _ = expect(cluster, 0, ["hold", "show"] + here(follower))
    check("web" in shown.out and "revision" in shown.out, "right after hold set: %s" % shown)
    again, _ = expect(cluster, 0, ["hold", "set", "web"] + here(follower))
    check("already" in again.out, "set twice: %s" % again)
    status, _ = expect(cluster, 1, ["status"] + here(follower))  # nothing is taken out: not healthy
    check("hold         web, on all nodes, by ops" in status.out and
          "  ! hold is on for web (group, by ops): no backend is taken out there\n" in status.out,
          "status: %s" % status)
    took = wait_hold(cluster, NODES, (2, "web"), since)
    check(took <= SLOW * GOAL_S, "the switch took %.2f s" % took)
    print("hold of a group, set through a follower: on all nodes %.3f s later" % took)
    b1.stop()
    stays_in_service(cluster, NODES, b1, "web")
    for agent in cluster.agents.values():
        line = first_line(cluster, agent, "web")
        check("hold is on (group, by ops): 1 backend stays in service" in line, line)
        check(holds(agent)[(2, "web")] == "ops", "who set it is not told")
    cluster.wait_verdicts("own", {b1: "unhealthy"}, seconds=60)  # that group is not held

    plain, _ = expect(cluster, 0, ["hold", "show"] + here(follower))
    check("web" in plain.out and "ops" in plain.out, "hold show: %s" % plain)
    with lan.inside("web1"):
        b1.start()
    cluster.wait_verdicts("own", {b1: "healthy"}, seconds=60)  # it comes back, held or not
    expect(cluster, 0, ["hold", "clear", "web"] + here(follower))
    wait_until("no hold is left", SLOW * GOAL_S,
               lambda: not any(holds(agent) for agent in cluster.agents.values()))
    for agent in cluster.agents.values():
        who = "local socket of node %d, uid %d" % (follower.id, os.getuid())
        events = agent.call("EventService/ListEvents", {"type": GUARD_CHANGED}).events
        check([(event.to, event.actor) for event in events] == [("on", "ops"), ("off", who)],
              "%s: events %s" % (agent.name, events))
        check(agent.text().count("event=guard_changed guard=hold group=web") == 2,
              "%s did not log entry and exit" % agent.name)
        counters = agent.counters()
        check(counters["engine_holds_entered"] == 1 and counters["engine_holds_left"] == 1,
              "%s did not count" % agent.name)


def cut_off(cluster, lan, b2):
    others = ", ".join(lan.address(NODES[node]) for node in (1, 2))
    lan.filter("c", {"in": ["ip saddr { %s } drop" % others],
                     "out": ["ip daddr { %s } drop" % others]})
    alone = cluster.agents[3]
    wait_until("there is a leader among the others", 60, lambda: any(
        cluster.agents[node].status().store.role == 3 for node in (1, 2)))
    wait_until("node 3 knows no leader", 60, lambda: alone.status().store.leader_id == 0)

    answer = ask(cluster, ["hold", "set"] + here(alone))
    check(answer.status == 9 and "--local" in answer.err, "alone, replicated: %s" % answer)
    since = time.monotonic()
    answer = ask(cluster, ["hold", "set", "--local"] + here(alone))
    check(answer.status == 0, "alone, its own: %s" % answer)
    took = wait_hold(cluster, [3], (3, ""), since)
    print("a node that is cut off holds by its own override %.3f s later" % took)
    answer = ask(cluster, ["ready"] + here(alone))
    check("hold is on for every group (node, by local socket of node 3" in answer.out,
          "ready says nothing of a hold: %s" % answer)
    since = time.monotonic()
    answer = ask(cluster, ["hold", "set"] + here(cluster.agents[1]))
    check(answer.status == 0, "the majority: %s" % answer)
    took = wait_hold(cluster, [1, 2], (1, ""), since)
    check(took <= SLOW * GOAL_S, "the switch took %.2f s" % took)
    print("hold of everything: on the reachable majority %.3f s later" % took)
    check((1, "") not in holds(alone), "the switch reached a node that is cut off")

    b2.stop()
    stays_in_service(cluster, NODES, b2, "own")
    # The end of one node's override is the end of that alone.
    expect(cluster, 0, ["hold", "clear", "--local"] + here(alone))
    cluster.wait_verdicts("own", {b2: "unhealthy"}, seconds=60, nodes=[3])
    cluster.wait_verdicts("own", {b2: "healthy"}, seconds=1, nodes=[1, 2])
    lan.unfilter("c")
    wait_hold(cluster, [3], (1, ""), time.monotonic())
    # What the votes took out before stays out, and comes back by them.
    check(alone.verdicts("own")[b2.at] == "unhealthy", "a hold brought a dead backend back")
    with lan.inside("web2"):
        b2.start()
    cluster.wait_verdicts("own", {b2: "healthy"}, seconds=60)


def test(options):
    lan = Lan(HOSTS)
    with LanCluster(options, lan, NODES) as cluster:
        cluster.make(vote_interval="%gs" % V)
        operator = KeyPair(os.path.join(cluster.dir, "ops.key"))
        b1, b2 = (cluster.lan_backend(name, host, 80) for name, host in (("b1", "web1"),
                                                                         ("b2", "web2")))
        cluster.apply([{"key": {"name": "ops", "public_key": operator.public,
                                "role": "ROLE_OPERATOR"}},
                       tcp_group("web", [b1, b2]), tcp_group("own", [b1, b2], rule="local")])
        for group in ("web", "own"):
            cluster.wait_verdicts(group, {b1: "healthy", b2: "healthy"}, seconds=60)
        replicated(cluster, lan, b1, operator)
        cut_off(cluster, lan, b2)


run(test)
