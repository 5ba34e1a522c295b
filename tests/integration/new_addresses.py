#!/usr/bin/python3
"""Nodes that come back with other addresses (A40): the endpoints of the catalog are names.

One of three is started again elsewhere: it is a member again within 10 s. Then all three are taken down
and come up with new addresses, their data directories kept: a leader within 15 s. In both cases with the
same catalog and nothing done by an administrator: a name is looked up again for each connection that
has to be made. Needs root: each agent has /etc/hosts of its own.
"""
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from cluster import Agent, Cluster, check, run, tcp_group, wait_until  # noqa: E402


class NamedAgent(Agent):
    """Its endpoint is a name; the ports stay, the address may be another one after a start."""

    @property
    def name_in_hosts(self):
        return "node-%d.jury.test" % self.id

    def member(self):
        member = super().member()
        member["endpoints"][0]["host"] = self.name_in_hosts
        return member


class NamedCluster(Cluster):
    """One file of names for all agents, and for nobody else."""

    def __init__(self, options):
        super().__init__(options, 0)
        self.hosts = os.path.join(self.dir, "hosts")
        for node_id in (1, 2, 3):
            self.agents[node_id] = NamedAgent(self, node_id)
            self.agents[node_id].prefix = [
                "unshare", "--mount", "sh", "-c", 'mount --bind "$0" /etc/hosts && exec "$@"', self.hosts]
        self.write_hosts()

    def write_hosts(self):
        with open(self.hosts, "w", encoding="utf-8") as file:
            file.write("127.0.0.1 localhost\n")
            for agent in self.agents.values():
                file.write("%s %s\n" % (agent.address, agent.name_in_hosts))

    def move(self, node_id):
        agent = self.agents[node_id]
        net, _, last = agent.address.rpartition(".")
        agent.address = "%s.%d" % (net, int(last) + 100)


def all_hear_all(cluster):
    return all(m.is_self or m.is_heard for agent in cluster.agents.values()
               for m in agent.call("ClusterService/ListMembers").members)


def took(what, begin, goal):
    seconds = time.monotonic() - begin
    print("%s after %.1f s (goal: %d s)" % (what, seconds, goal))
    check(seconds < 10 * goal, "%s only after %.1f s" % (what, seconds))


def one_comes_back_elsewhere(cluster):
    agent = next(a for a in cluster.agents.values() if a is not cluster.leader())
    agent.stop()
    cluster.move(agent.id)
    cluster.write_hosts()
    begin = time.monotonic()
    agent.start()
    wait_until("all hear all", 100, lambda: all_hear_all(cluster))
    took("one with another address is a member again", begin, 10)


def all_come_back_elsewhere(cluster):
    for agent in cluster.agents.values():
        agent.stop()
    for node_id in cluster.agents:
        cluster.move(node_id)
    cluster.write_hosts()
    begin = time.monotonic()
    for agent in cluster.agents.values():
        agent.start()
    wait_until("a leader", 150, lambda: all(
        agent.status().store.leader_id != 0 for agent in cluster.agents.values()))
    took("all with other addresses have a leader", begin, 15)
    wait_until("all hear all", 100, lambda: all_hear_all(cluster))


def test(options):
    with NamedCluster(options) as cluster:
        cluster.make()
        b1 = cluster.backend("b1")
        cluster.apply([tcp_group("web", [b1])])
        cluster.wait_verdicts("web", {b1: "healthy"})
        before = cluster.agents[1].status()
        for what in (one_comes_back_elsewhere, all_come_back_elsewhere):
            what(cluster)
            for agent in cluster.agents.values():
                wait_until("%s has the catalog of before" % agent.name, 30,
                           lambda agent=agent: agent.status().revision == before.revision and
                           agent.status().state_hash == before.state_hash)
            cluster.wait_verdicts("web", {b1: "healthy"})
        cluster.apply([tcp_group("late", [b1])], timeout=20)


run(test)
