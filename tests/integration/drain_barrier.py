#!/usr/bin/python3
"""A drain is one operation with an end that every node knows: flows left on each node are counted,
reported, and the end waits for all of them (N3). A removed backend is purged when all are done.
"""
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from cluster import Cluster, Flow, check, free_port, run, tcp_group, wait_until  # noqa: E402

N_FLOWS = 24


def status_of(agent, group, backend):
    for one in agent.call("BackendService/ListBackends", {"group": group}, stale=True).backends:
        if (one.backend.address, one.backend.port) == (backend.address, backend.port):
            return one
    return None


def seconds_of(duration):
    return duration.seconds + duration.nanos / 1e9


def open_flows(cluster, port):
    flows = [Flow(cluster.address(100), port) for _ in range(N_FLOWS)]
    by_name = {name: [f for f in flows if f.name == name] for name in {f.name for f in flows}}
    print("%d flows: %s" % (len(flows), {name: len(some) for name, some in by_name.items()}))
    check(len(by_name) == 2, "not all backends are in use: %s" % sorted(by_name))
    return by_name


def drain(cluster, b1, flows):
    agent = cluster.agents[2]
    cluster.agents[1].call("BackendService/DrainBackend",
                           {"backend": {"group": "web", "address": b1.address, "port": b1.port},
                            "timeout": "60s"})
    wait_until("%d flows are reported as left" % len(flows), 10,
               lambda: status_of(agent, "web", b1).drain.n_flows == len(flows))
    for node in cluster.agents.values():
        wait_until("%s counts the flows of all nodes" % node.name, 10,
                   lambda node=node: status_of(node, "web", b1).drain.n_flows == len(flows))
    check(status_of(agent, "web", b1).drain.pending_nodes, "nobody is pending")
    check(all(flow.is_open() for flow in flows), "a drain closed a flow before its deadline")
    half = len(flows) // 2
    for flow in flows[:half]:
        flow.close()
    wait_until("%d flows are left" % (len(flows) - half), 10,
               lambda: status_of(agent, "web", b1).drain.n_flows == len(flows) - half)
    for flow in flows[half:]:
        flow.close()
    started = time.monotonic()
    for node in cluster.agents.values():
        wait_until("%s says that the drain is done" % node.name, 10,
                   lambda node=node: status_of(node, "web", b1).drain.is_done)
    print("done on all nodes %.2f s after the last flow" % (time.monotonic() - started))


def carrier(cluster):
    """The agent whose shim has the flows."""
    return next(agent for agent in cluster.agents.values()
                if any(plane.flows > 0 for plane in agent.status().data_planes))


def deadline(cluster, b2, flows):
    """Flows that do not go are closed at the deadline, also when the agent is killed meanwhile: the
    time is that of the commit and never starts anew."""
    agent = carrier(cluster)
    other = next(one for one in cluster.agents.values() if one is not agent)
    started = time.monotonic()
    other.call("BackendService/DrainBackend",
               {"backend": {"group": "web", "address": b2.address, "port": b2.port},
                "timeout": "4s"})
    wait_until("%s knows the drain" % agent.name, 5,
               lambda: status_of(agent, "web", b2).drain.revision > 0)
    wait_until("1.5 s of the 4 s are over", 10,
               lambda: seconds_of(status_of(agent, "web", b2).drain.remaining) <= 2.5)
    agent.kill()
    agent.start()
    check(all(flow.is_open() for flow in flows), "flows were closed at once")
    wait_until("the flows are closed", 10, lambda: not any(flow.is_open() for flow in flows))
    took = time.monotonic() - started
    print("closed %.2f s after a drain of 4 s, the agent killed and restarted at 1.5 s" % took)
    check(3.9 <= took <= 4.9, "not closed at the deadline")
    for node in cluster.agents.values():
        wait_until("%s says that the drain is done" % node.name, 10,
                   lambda node=node: status_of(node, "web", b2).drain.is_done)


def removal(cluster, b1, b2):
    """A backend that is taken out of the document goes when all nodes are done with it."""
    cluster.apply([tcp_group("web", [b2])])
    agent = cluster.agents[1]
    wait_until("b1 is purged", 15, lambda: status_of(agent, "web", b1) is None)
    proposed = sum(a.counters()["agent_purges_proposed"] for a in cluster.agents.values())
    check(proposed == 1, "%d purges were proposed, not one by the leader" % proposed)
    print("b1 is purged, proposed once")


def test(options):
    with Cluster(options) as cluster:
        cluster.make(vote_interval="0.3s")
        for node_id in cluster.agents:
            cluster.shim(node_id).start()
        b1, b2 = cluster.backend("b1"), cluster.backend("b2")
        port = free_port(cluster.address(100))
        cluster.apply([tcp_group("web", [b1, b2])])
        cluster.apply([{"listener": {"name": "front", "address": cluster.address(100),
                                     "port": port, "protocol": "PROTOCOL_TCP", "group": "web"}}])
        cluster.wait_verdicts("web", {b1: "healthy", b2: "healthy"})
        wait_until("the listener answers", 10, lambda: Flow(cluster.address(100), port).close() or
                   True)
        flows = open_flows(cluster, port)
        drain(cluster, b1, flows["b1"])
        check(all(flow.is_open() for flow in flows["b2"]), "a flow of b2 was harmed")
        names = {Flow(cluster.address(100), port).name for _ in range(8)}
        check(names == {"b2"}, "new flows went to %s" % names)
        deadline(cluster, b2, flows["b2"])
        removal(cluster, b1, b2)


run(test)
