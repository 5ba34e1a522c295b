#!/usr/bin/python3
"""A flood of the sentinel ports of all nodes makes nobody doubt itself, and ejections go on.

The ports by which nodes test their own probes are open to whoever reaches the node, without a key. Three
agents; processes of strangers connect to all three ports as fast as they can, up to a stated rate, and
meanwhile a backend dies: it goes down everywhere, while no node suspects its own votes. Needs root (to
find out the ports).
"""
# alone: it fills the machine
# twin: sentinel-listens doubts itself
import ctypes
import multiprocessing
import os
import socket
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from cluster import Cluster, Failure, check, run, tcp_group, wait_until  # noqa: E402

V = 0.2
WINDOW_S = 2 * 0.5 + 0.5 + 2 * V + 0.1
SLOW = 10  # a loaded machine
ENOUGH = 4400  # connections a second of all nodes together: ten times what once was enough for one
BEFORE_S = 3   # flood before the backend dies: the time for which failures of sentinels count
PIDFD_GETFD = 438


def unconnected_port(fd):
    """Of an IPv4 TCP socket that is bound and has no peer; else 0. Takes the descriptor."""
    try:
        found = socket.socket(fileno=fd)
    except OSError:
        os.close(fd)  # no socket
        return 0
    with found:
        if (found.family, found.type) != (socket.AF_INET, socket.SOCK_STREAM):
            return 0
        try:
            found.getpeername()
            return 0
        except OSError:
            return found.getsockname()[1]


def sentinel_port(agent):
    """The port is bound and nobody listens, so no list of the kernel has it: look at the descriptors.
    It is among the first of them, before any probe."""
    libc = ctypes.CDLL(None, use_errno=True)
    pidfd = os.pidfd_open(agent.process.pid)
    try:
        for number in sorted(int(name) for name in os.listdir("/proc/%d/fd" % agent.process.pid)):
            fd = libc.syscall(PIDFD_GETFD, pidfd, number, 0)
            port = unconnected_port(fd) if fd >= 0 else 0
            if port not in (0, agent.mesh_port, agent.raft_port):
                return port
    finally:
        os.close(pidfd)
    raise Failure("%s has no sentinel port" % agent.name)


class Flood:
    """One process for each place, that connects to it and lets go, `rate` times a second at most."""

    def __init__(self, places, rate):
        self.counts = [multiprocessing.Value("Q", 0) for _ in places]
        self.processes = [multiprocessing.Process(target=self.keep, args=(place, rate, count), daemon=True)
                          for place, count in zip(places, self.counts)]

    def __enter__(self):
        self.begin = time.monotonic()
        for process in self.processes:
            process.start()
        return self

    def __exit__(self, kind, value, trace):
        for process in self.processes:
            process.kill()
            process.join()

    def total(self):
        return sum(count.value for count in self.counts)

    def rate(self):
        return self.total() / (time.monotonic() - self.begin)

    @staticmethod
    def keep(place, rate, count):
        begin = time.monotonic()
        while True:
            for _ in range(64):
                stranger = socket.socket()
                stranger.setblocking(False)
                stranger.connect_ex(place)
                stranger.close()
            count.value += 64
            ahead_s = count.value / rate - (time.monotonic() - begin)
            if ahead_s > 0:
                time.sleep(ahead_s)  # the rate itself


def test(options):
    with Cluster(options) as cluster:
        cluster.make(vote_interval="%gs" % V)
        agents = cluster.agents.values()
        b1, b2 = cluster.backend("b1"), cluster.backend("b2")
        cluster.apply([tcp_group("web", [b1, b2])])
        cluster.wait_verdicts("web", {b1: "healthy", b2: "healthy"})
        for agent in agents:
            wait_until("%s: itself and both peers answer as sentinels" % agent.name, 30, lambda agent=agent:
                       agent.call("NodeService/DescribeNode").self_doubt.n_sentinels == 3)
        doubts = {agent.name: agent.counters()["engine_doubts_begun"] for agent in agents}

        def nobody_doubts():
            for agent in agents:
                answer = agent.call("NodeService/DescribeNode").self_doubt
                n = agent.counters()["engine_doubts_begun"] - doubts[agent.name]
                check(not answer.suspect and n == 0, "%s doubts itself under the flood: %s"
                      % (agent.name, answer))
            return True

        places = [(agent.address, sentinel_port(agent)) for agent in agents]
        with Flood(places, options.rate / len(places)) as flood:
            wait_until("the flood runs for %d s" % BEFORE_S, 60, lambda: nobody_doubts() and
                       time.monotonic() - flood.begin >= BEFORE_S and flood.total() >= BEFORE_S * ENOUGH)
            b1.stop()
            since = time.monotonic()
            for agent in agents:
                wait_until("%s: b1 goes down under the flood" % agent.name, SLOW * WINDOW_S,
                           lambda agent=agent: nobody_doubts() and
                           agent.verdicts("web")[b1.at] == "unhealthy")
            took = time.monotonic() - since
            rate = flood.rate()
        check(rate >= ENOUGH, "the flood had %d connections/s, which proves nothing" % rate)
        nobody_doubts()
        for agent in agents:
            check(agent.verdicts("web")[b2.at] == "healthy", "%s ejected b2" % agent.name)
            n = agent.call("NodeService/DescribeNode").self_doubt.n_sentinels
            check(n == 3, "%s: %d sentinels answer" % (agent.name, n))
        print("%d connections/s to three sentinel ports; b1 down on all nodes after %.2f s (window %.2f s), "
              "nobody doubted itself" % (rate, took, WINDOW_S))


run(test, rate=20000)
