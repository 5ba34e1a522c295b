#!/usr/bin/python3
"""A node that is ill throws nobody out: R-SELF-1..4, F-9, F-10, F-13, F-17, F-19.

Three agents, each a host of its own, probe six healthy web servers by http each 200 ms, in three groups
with the rules majority, any and local, so that one wrong vote that counts is enough. Then something is
done to one agent: it is stopped, starved of processor time, left without descriptors or local ports, or
three of ten of its packets are dropped, both ways. No node may call any backend unhealthy, from the
fault's begin until the node trusts itself again; the servers' own log says that they answered the other
nodes all the time. Each fault's line says what the ill node thought of itself. Needs root.

usage: self_doubt.py [--faults stop-1,quota,...] [--runs N]      (all of them: --faults all)
"""
# alone: it starves an agent and needs the others well
# twin: doubt-never FAILED: .*(did not doubt itself|says that it is not ready)
import collections
import contextlib
import os
import re
import socket
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from cluster import check, run, wait_until  # noqa: E402
from lan import NET, Lan, LanCluster  # noqa: E402
from nginx import PORT, Nginx  # noqa: E402
from prober import run as shell  # noqa: E402

HOSTS = {"a": 1, "b": 2, "c": 3, "web": 11}
NODES = {1: "a", 2: "b", 3: "c"}
ILL = 1
V = "0.2s"
CHECK = {"type": "CHECK_TYPE_HTTP", "timeout": "1s", "interval": "0.2s", "healthy_threshold": 2,
         "unhealthy_threshold": 3, "http": {"path": "/"}}
RULES = ("MAJORITY", "ANY", "LOCAL")
SERVERS = [f"{NET}.{n}" for n in range(21, 27)]
VERDICT_CHANGED = 1  # enum EventType
UNHEALTHY = "unhealthy"
QUIET_S = 5  # longest silence of a server towards a healthy node, on a loaded machine

Address = collections.namedtuple("Address", "address port")


def group(rule):
    return {"group": {"name": rule.lower(), "profile": "PROFILE_NLB", "type": "GROUP_TYPE_IP",
                      "protocol": "PROTOCOL_TCP", "check": CHECK,
                      "verdict": {"down": {"kind": "KIND_" + rule}},
                      "backends": [{"address": server, "port": PORT} for server in SERVERS]}}


class World:
    def __init__(self, cluster, lan, nginx):
        self.cluster, self.lan, self.nginx = cluster, lan, nginx
        self.ill = cluster.agents[ILL]

    def ejections(self, agent):
        """Events of backends that became unhealthy, all there are in the node's log."""
        return agent.count(["event=verdict_changed", "to=" + UNHEALTHY])

    def is_well(self):
        """All nodes trust themselves and all backends, by their own probes too."""
        for agent in self.cluster.agents.values():
            for rule in RULES:
                answer = agent.call("VerdictService/ListVerdicts", {"group": rule.lower()})
                if any(v.verdict.state != 2 or v.verdict.n_pass != 3 for v in answer.verdicts):
                    return False
            if agent.call("NodeService/DescribeNode").self_doubt.suspect:
                return False
        return True

    def wait_well(self, what):
        wait_until("%s: all nodes trust themselves and all backends" % what, 120, self.is_well)

    def silences(self, begin, end):
        """Longest time, by the servers' own log, in which one of them did not answer one of the
        healthy nodes."""
        times = collections.defaultdict(lambda: [begin])
        for line in self.nginx.log("times.log").splitlines():
            at, node, server, status = line.split()
            if begin <= float(at) <= end and status == "200":
                times[node, server].append(float(at))
        longest = 0
        for node in (2, 3):
            for server in SERVERS:
                row = times[self.lan.address(NODES[node]), server] + [end]
                longest = max([longest] + [b - a for a, b in zip(row, row[1:])])
        return longest


# --- faults: what is done, for how long ---

@contextlib.contextmanager
def stopped(world):
    world.ill.pause()
    try:
        yield
    finally:
        world.ill.go_on()


@contextlib.contextmanager
def quota(world):
    """5 ms of processor time in each 100 ms."""
    folder = "/sys/fs/cgroup/cpu/jury-%d" % os.getpid()
    os.mkdir(folder)
    pid = world.ill.process.pid
    try:
        for name, value in (("cpu.cfs_period_us", 100000), ("cpu.cfs_quota_us", 5000),
                            ("cgroup.procs", pid)):
            with open(os.path.join(folder, name), "w", encoding="ascii") as file:
                file.write(str(value))
        yield
    finally:
        with open("/sys/fs/cgroup/cpu/cgroup.procs", "w", encoding="ascii") as file:
            file.write(str(pid))
        wait_until("the control group is empty", 20, lambda: not open(
            os.path.join(folder, "cgroup.procs"), encoding="ascii").read())
        os.rmdir(folder)


@contextlib.contextmanager
def no_descriptors(world):
    pid = world.ill.process.pid
    shell(f"prlimit --pid {pid} --nofile=3:4096")
    try:
        yield
    finally:
        shell(f"prlimit --pid {pid} --nofile=1024:4096")


@contextlib.contextmanager
def no_ports(world):
    """Two local ports are left, and both are held towards each server."""
    name = world.lan.namespace("a")
    key = "net.ipv4.ip_local_port_range"
    before = shell(f"ip netns exec {name} sysctl -n {key}").strip()
    held = []
    subprocess.run(["ip", "netns", "exec", name, "sysctl", "-q", "-w", f"{key}=20000 20001"],
                   check=True)
    try:
        with world.lan.inside("a"):
            for server in SERVERS:
                for port in (20000, 20001):
                    held.append(hold(server, port))
        yield
    finally:
        subprocess.run(["ip", "netns", "exec", name, "sysctl", "-q", "-w", f"{key}={before}"],
                       check=True)
        for connection in held:
            connection.close()


def hold(server, port):
    """A connection from that local port; a probe may have it for a moment."""
    deadline = time.monotonic() + 20
    while True:
        connection = socket.socket()
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        connection.settimeout(5)
        try:
            connection.bind(("", port))
            connection.connect((server, PORT))
            return connection
        except OSError:
            connection.close()
            check(time.monotonic() < deadline, "port %d to %s is never free" % (port, server))
            time.sleep(0.01)


@contextlib.contextmanager
def loss(world):
    rule = ["oifname != lo numgen random mod 100 < 30 drop"]
    world.lan.filter("a", {"out": rule, "in": [rule[0].replace("oif", "iif")]})
    try:
        yield
    finally:
        world.lan.unfilter("a")


# name -> (what, seconds, whether the node must have noticed)
FAULTS = {
    "stop-1": (stopped, 1, False),
    "stop-5": (stopped, 5, True),
    "stop-10": (stopped, 10, True),
    "stop-30": (stopped, 30, True),
    "stop-60": (stopped, 60, True),
    "quota": (quota, 30, False),
    # With the sockets that its probes kept an agent may well go on: then it is not ill.
    "descriptors": (no_descriptors, 20, False),
    "ports": (no_ports, 20, True),
    "loss": (loss, 30, True),
}


def says_doubt(agent):
    answer = agent.call("NodeService/CheckReady")
    return not answer.is_ready and any(
        c.name == "probes" and not c.is_ok and "doubts its own" in c.message for c in answer.checks)


def one(world, name):
    fault, seconds, must_doubt = FAULTS[name]
    agents = world.cluster.agents.values()

    world.wait_well("before " + name)
    before = {agent.id: world.ejections(agent) for agent in agents}
    doubts = {agent.id: agent.counters()["engine_doubts_begun"] for agent in agents}
    n_lines = len(world.ill.text().splitlines())
    begin = time.time()
    with fault(world):
        time.sleep(seconds)  # the fault itself
    if must_doubt:
        wait_until("%s: the ill node says that it is not ready, and why" % name, 20,
                   lambda: says_doubt(world.ill))
    world.wait_well("after " + name)
    end = time.time()

    silence = world.silences(begin, end)
    check(silence <= QUIET_S, "%s: a server did not answer a healthy node for %.1f s" % (name, silence))
    ejected = {agent.id: world.ejections(agent) - before[agent.id] for agent in agents}
    lines = world.ill.text().splitlines()[n_lines:]
    causes = sorted({cause for line in lines for text in re.findall(
        r"event=self_doubt .*causes=(\S+)", line) for cause in text.split(",")} - {"none"})
    doubts = {agent.id: agent.counters()["engine_doubts_begun"] - doubts[agent.id]
              for agent in agents}
    n_doubts = doubts.pop(ILL)
    print("%-12s %2d s, well again %4.1f s later; %d doubts (%s); ejections by node %s; longest "
          "silence of a server %.2f s" % (name, seconds, end - begin - seconds, n_doubts,
                                          ",".join(causes), ejected, silence), flush=True)
    check(not any(ejected.values()), "%s: healthy backends went down: %s" % (name, ejected))
    check(n_doubts > 0 or not must_doubt, "%s: the node did not doubt itself" % name)
    if any(doubts.values()):
        print("  others doubted themselves too, this machine is busy: %s" % doubts)


def test(options):
    names = list(FAULTS) if options.faults == "all" else options.faults.split(",")
    lan = Lan(HOSTS)
    for server in SERVERS:
        shell(f"ip -n {lan.namespace('web')} address add {server}/24 dev eth0")
    with LanCluster(options, lan, NODES) as cluster:
        folder = os.path.join(cluster.dir, "web")
        os.mkdir(folder)
        nginx = Nginx(lan.namespace("web"), folder)
        try:
            cluster.make(vote_interval=V)
            cluster.apply([group(rule) for rule in RULES])
            world = World(cluster, lan, nginx)
            world.wait_well("at the start")
            wait_until("two peers and itself answer as sentinels", 30, lambda: world.ill.call(
                "NodeService/DescribeNode").self_doubt.n_sentinels == 3)
            for _ in range(options.runs):
                for name in names:
                    one(world, name)
        finally:
            nginx.stop()
    print("%d faults in %d runs, 0 false ejections on any node" % (len(names) * options.runs,
                                                                   options.runs))


run(test, faults="stop-5,ports,descriptors", runs=1)
