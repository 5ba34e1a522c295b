#!/usr/bin/python3
"""R-EJ-6 and N18: real connections follow the part of a weight that counts, and no verdict does.

Three agents that probe from addresses of their own, a shim on node 1, three web servers. One that
comes back gets few connections first, and then its third; one that node 3 alone finds bad gets 67 %
of its weight, on every node; one that is slow to node 1 gets less on node 1 and all on node 2. What
`ListBackends` says of a weight, and what 300 connections made of it, are of the same moment.
"""
# seconds: 40
# twin: shim-ignore-share connections in all
# twin: graded-unseen two thirds of its weight
import collections
import os
import socket
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from cluster import (Backend, Cluster, check, endpoint, free_port, run, tcp_group,  # noqa: E402
                     wait_until)

N = 300
# So long that a slow machine sees its beginning, and then so short that nobody waits for its end.
SLOW_START_S, REST_S = 60, 1
PATIENCE = 60


class Server(Backend):
    """Answers some probers with 503, and some late."""

    def __init__(self, *arguments, **options):
        self.bad_to, self.late_to, self.late_s = set(), set(), 0
        super().__init__(*arguments, **options)

    def serve(self, connection):
        peer = connection.getpeername()[0]
        if peer in self.late_to:
            time.sleep(self.late_s)
        if peer in self.bad_to:
            with connection:
                connection.recv(4096)
                connection.sendall(b"HTTP/1.1 503 X\r\nContent-Length: 0\r\n\r\n")
            return
        super().serve(connection)


class OwnSources(Cluster):
    """Each agent probes from its own address, so that a server knows who asks."""

    def init_request(self, vote_interval="1s"):
        request = super().init_request(vote_interval)
        for member in request["members"]:
            member["probe_sources"] = [self.address(member["node_id"])]
        return request

    def server(self, name):
        self.backends.append(Server(name).start())
        return self.backends[-1]


def group(name, servers, **fields):
    document = tcp_group(name, servers, type="CHECK_TYPE_HTTP")
    document["group"].update(fields)
    return document


def slow_group(servers, slow_start_s):
    return group("slow", servers, guard={"slow_start": "%ds" % slow_start_s})


def name_of(at):
    with socket.create_connection(at, timeout=PATIENCE) as connection:
        connection.sendall(b"GET / HTTP/1.0\r\n\r\n")
        data = b""
        while part := connection.recv(4096):
            data += part
            if data.partition(b"\r\n\r\n")[2]:
                break
    return data.partition(b"\r\n\r\n")[2].decode()


def shares(agent, name):
    """Percent of its weight that counts, by address and port; and that all of them are healthy."""
    answer = agent.call("BackendService/ListBackends", {"group": name}, stale=True)
    for one in answer.backends:
        check(one.verdict.state == 2, "%s is not healthy in %s" % (one.backend.port, name))
    return {endpoint(one.backend.address, one.backend.port): one.weight_share.percent or 100
            for one in answer.backends}


def reaches_all(agent, name):
    """Two votes make it healthy: what its node does not reach itself it uses after all others."""
    answer = agent.call("BackendService/ListBackends", {"group": name}, stale=True)
    return not any(one.verdict.is_unreachable for one in answer.backends)


def follows(cluster, name, port, what):
    """Connections of one moment, in which no weight changed, are as the weights. Returns these."""
    agent = cluster.agents[1]
    wait_until("%s reaches all of %s" % (agent.name, name), PATIENCE,
               lambda: reaches_all(agent, name))
    for _ in range(20):
        before = shares(agent, name)
        got = collections.Counter(name_of((cluster.address(100), port)) for _ in range(N))
        if shares(agent, name) == before:
            break
    else:
        check(False, "%s: the weights of %s never stood still" % (what, name))
    total = sum(before.values())
    for server in cluster.backends:
        wanted = N * before[server.at] / total
        # One worker takes turns: exact but for where a cycle begins, and retries.
        check(abs(got[server.name] - wanted) <= 3 + wanted / 10,
              "%s: %s has %d %% of its weight and got %d of %d connections in all, not about %.0f" %
              (what, server.name, before[server.at], got[server.name], N, wanted))
    print("%s: %s" % (what, ", ".join("%s %d %%: %d" % (s.name, before[s.at], got[s.name])
                                      for s in cluster.backends)))
    return before


def wait_share(agent, name, server, condition, what):
    wait_until("%s has %s on %s" % (server.name, what, agent.name), PATIENCE,
               lambda: condition(shares(agent, name)[server.at]))


def slow_start(cluster, port, b1):
    b1.stop()
    cluster.wait_verdicts("slow", {b1: "unhealthy"}, seconds=PATIENCE)
    b1.start()
    cluster.wait_verdicts("slow", {b1: "healthy"}, seconds=PATIENCE)
    first = follows(cluster, "slow", port, "back again")
    check(first[b1.at] < 60, "back again, it has %d %% of its weight" % first[b1.at])
    wait_share(cluster.agents[1], "slow", b1, lambda percent: percent > first[b1.at], "more")
    second = follows(cluster, "slow", port, "a little later")
    check(second[b1.at] > first[b1.at], "its weight does not rise: %s, %s" % (first, second))
    cluster.apply([slow_group(cluster.backends, REST_S)])
    wait_share(cluster.agents[1], "slow", b1, lambda percent: percent == 100,
               "all of its weight again")
    follows(cluster, "slow", port, "through")
    check(cluster.agents[1].counters()["engine_slow_starts"] == 1, "not counted once")


def by_votes(cluster, port, b2):
    b2.bad_to = {cluster.address(3)}
    for agent in cluster.agents.values():
        wait_share(agent, "votes", b2, lambda percent: percent == 67, "two thirds of its weight")
    follows(cluster, "votes", port, "bad to node 3 alone")
    b2.bad_to = set()
    wait_share(cluster.agents[1], "votes", b2, lambda percent: percent == 100, "all of its weight")
    follows(cluster, "votes", port, "good to all")


def by_latency(cluster, port, b3):
    b3.late_s, b3.late_to = 0.12, {cluster.address(1)}
    wait_share(cluster.agents[1], "latency", b3, lambda percent: percent <= 50, "less")
    seen = follows(cluster, "latency", port, "slow to node 1 alone")
    check(seen[b3.at] >= 10, "less than a tenth")
    b3.late_to = set()
    wait_share(cluster.agents[1], "latency", b3, lambda percent: percent == 100,
               "all of its weight")
    follows(cluster, "latency", port, "no longer slow")


def test(options):
    with OwnSources(options) as cluster:
        servers = [cluster.server("b%d" % n) for n in (1, 2, 3)]
        cluster.make(vote_interval="0.5s")
        ports = {name: free_port(cluster.address(100)) for name in ("slow", "votes", "latency")}
        cluster.apply([
            slow_group(servers, SLOW_START_S),
            group("votes", servers, graded_weight="GRADED_WEIGHT_VOTES"),
            group("latency", servers, graded_weight="GRADED_WEIGHT_LATENCY"),
        ] + [{"listener": {"name": name, "address": cluster.address(100), "port": port,
                           "protocol": "PROTOCOL_TCP", "group": name}}
             for name, port in ports.items()])
        cluster.shim(1, ["--workers", "1"]).start()
        for name in ports:
            cluster.wait_verdicts(name, {server: "healthy" for server in servers},
                                  seconds=PATIENCE)
        wait_until("the shim serves", PATIENCE, lambda: all(
            name_of((cluster.address(100), port)) for port in ports.values()))
        follows(cluster, "slow", ports["slow"], "from the start")
        slow_start(cluster, ports["slow"], servers[0])
        by_votes(cluster, ports["votes"], servers[1])
        by_latency(cluster, ports["latency"], servers[2])


run(test)
