#!/usr/bin/python3
"""Thousands of connections that never authenticate, against one agent that may have few descriptors.

The agent lives, closes what is too much, counts it and says so once; its peers stay connected, its
probes get their descriptors, and people on the node still get in by the unix socket.
"""
# alone: it fills the machine
# twin: accept-all agent1 died
import contextlib
import multiprocessing
import os
import resource
import selectors
import socket
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from cluster import Cluster, check, run, tcp_group, wait_until  # noqa: E402
import jury_client  # noqa: E402

FILES = 256  # of the agent
CONNECTIONS = 600
CALLS = 50  # each on a connection of its own


class Flood:
    """A process that keeps many connections to some places open: whatever is closed comes again."""

    def __init__(self, places, n_connections=CONNECTIONS, data=b""):
        self.process = multiprocessing.Process(target=self.keep, args=(places, n_connections, data),
                                               daemon=True)

    def __enter__(self):
        self.process.start()
        return self

    def __exit__(self, kind, value, trace):
        self.process.kill()
        self.process.join()

    @staticmethod
    def keep(places, n_connections, data):
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096), hard))
        selector = selectors.DefaultSelector()

        def connect(place):
            connection = socket.socket(socket.AF_UNIX if isinstance(place, str) else socket.AF_INET)
            connection.setblocking(False)
            with contextlib.suppress(OSError):
                connection.connect(place)
            with contextlib.suppress(OSError):
                connection.send(data)
            selector.register(connection, selectors.EVENT_READ, place)

        for i in range(n_connections):
            connect(places[i % len(places)])
        while True:
            for key, _ in selector.select():
                try:
                    is_open = key.fileobj.recv(4096) != b""
                except BlockingIOError:
                    is_open = True
                except OSError:
                    is_open = False
                if not is_open:
                    selector.unregister(key.fileobj)
                    key.fileobj.close()
                    connect(key.data)


def turned_away(agent):
    return agent.counters().get("refused_no_descriptor", 0)


class Watch:
    """What must not change under a flood."""

    def __init__(self, cluster, agent):
        self.cluster, self.agent = cluster, agent
        self.lost = self.n_lost()
        self.term = agent.status().store.term

    def n_lost(self):
        return {a.name: a.count(["event=peer_lost"]) for a in self.cluster.agents.values()}

    def alive(self):
        if not self.agent.is_running():
            check(False, "%s died with %d" % (self.agent.name, self.agent.process.returncode))

    def calls(self):
        """Over the unix socket, each on a new connection."""
        for _ in range(CALLS):
            self.alive()
            try:
                self.agent.call("NodeService/GetVersion", timeout=10)
            except jury_client.CallError as error:
                self.alive()
                check(False, "a call on the unix socket failed under the flood: %s" % error)

    def unchanged(self):
        self.alive()
        check(self.n_lost() == self.lost, "peers lost each other: %s" % self.n_lost())
        check(self.agent.status().n_fresh == 3, "votes are missing under the flood")
        check(self.agent.status().store.term == self.term, "the term changed under the flood")
        lines = self.agent.count(["event=refused", "reason=no_descriptor "])
        check(lines == 1, "the flood was logged %d times, not once" % lines)


def until_turned_away(watch, at_least):
    def is_counted():
        watch.alive()
        return turned_away(watch.agent) >= at_least
    wait_until("%s counts what it turns away" % watch.agent.name, 30, is_counted)


def network_flood(cluster, agent, b1):
    watch = Watch(cluster, agent)
    ports = [(agent.address, agent.mesh_port), (agent.address, agent.raft_port)]
    with Flood(ports):
        until_turned_away(watch, 1)
        watch.calls()
        b1.stop()
        cluster.wait_verdicts("web", {b1: "unhealthy"})
        b1.start()
        cluster.wait_verdicts("web", {b1: "healthy"})
        until_turned_away(watch, turned_away(agent) + CONNECTIONS)
        watch.calls()
        watch.unchanged()
    print("network flood: %d turned away" % turned_away(agent))


def local_flood(cluster, agent):
    """Whoever may use the unix socket can fill its share, and no more than that."""
    watch = Watch(cluster, agent)
    before = turned_away(agent)
    with Flood([agent.socket_path]):
        # Nobody new gets in meanwhile, so this looks from outside.
        def is_full():
            watch.alive()
            return len(os.listdir("/proc/%d/fd" % agent.process.pid)) >= FILES * 7 // 8 - 1
        wait_until("%s has given away the local share" % agent.name, 30, is_full)
    until_turned_away(watch, before + 1)
    watch.unchanged()
    print("local flood: %d turned away" % (turned_away(agent) - before))


def test(options):
    with Cluster(options) as cluster:
        agent = cluster.agents[1]
        agent.prefix = ["prlimit", "--nofile=%d:%d" % (FILES, FILES)]
        cluster.make()
        b1, b2 = cluster.backend("b1"), cluster.backend("b2")
        cluster.apply([tcp_group("web", [b1, b2])])
        cluster.wait_verdicts("web", {b1: "healthy", b2: "healthy"})
        wait_until("all votes fresh", 10, lambda: agent.status().n_fresh == 3)

        network_flood(cluster, agent, b1)
        local_flood(cluster, agent)
        check(agent.stop() == 0, "%s did not stop with 0 after the floods" % agent.name)


run(test)
