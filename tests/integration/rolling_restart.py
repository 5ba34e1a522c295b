#!/usr/bin/python3
"""Row 2.8, cases A22 and A23, live: starts and changes take no health with them.

Three agents and shims and web servers, each a host of its own; web-3 is really down. Clients that
never try twice send traffic through all three shims while every agent is stopped and started in
turn. Then other groups, weights and the group's own check are changed, and web-4 is added before it
listens. Not one failure; in no published table of any node another set may be used than the two that
are well; no verdict changes, in no agent's events; web-4 is used when it has passed, and not before.
Needs root.
"""
# seconds: 40
# twin: kept-ignored FAILED: .*changed verdicts after its start
# twin: check-forgets FAILED: .*(another set may be used|[1-9][0-9]* failures|changed verdicts|held until then)
import contextlib
import os
import sys
import tempfile
import time

LIB = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib")
sys.path.insert(0, LIB)
from cluster import check, run, wait_until  # noqa: E402
from lan import Lan, LanCluster  # noqa: E402
from nginx import PORT, Nginx  # noqa: E402
from traffic import Client, Watch  # noqa: E402

RATE, FLOWS = 40, 4
SERVERS = ("web-1", "web-2", "web-3", "web-4")
HOSTS = {"a": 1, "b": 2, "c": 3, "client": 9, "web-1": 11, "web-2": 12, "web-3": 13, "web-4": 14}
NODES = {1: "a", 2: "b", 3: "c"}
LISTENER_PORT = 8000
INITIAL, HEALTHY, UNHEALTHY = 1, 2, 3  # enum HealthState
HELD = 1                              # enum HealthMark
VERDICT = 1                           # enum EventType


def document(lan, servers=SERVERS[:3], weights=(100, 100, 100, 100), timeout="1s"):
    backends = [{"address": lan.address(server), "port": PORT, "weight": weight}
                for server, weight in zip(servers, weights)]
    return [{"group": {"name": "web", "profile": "PROFILE_NLB", "type": "GROUP_TYPE_IP",
                       "protocol": "PROTOCOL_TCP", "verdict": {"down": {"kind": "KIND_MAJORITY"}},
                       "check": {"type": "CHECK_TYPE_HTTP", "timeout": timeout, "interval": "0.5s",
                                 "healthy_threshold": 2, "unhealthy_threshold": 2},
                       "backends": backends}},
            {"listener": {"name": "web-http", "address": "0.0.0.0", "port": LISTENER_PORT,
                          "protocol": "PROTOCOL_TCP", "group": "web"}}]


def at(lan, server):
    return "%s:%d" % (lan.address(server), PORT)


def verdict(agent, lan, server):
    return agent.call("VerdictService/Why", {"backend": {
        "group": "web", "address": lan.address(server), "port": PORT}}).verdict


def wait_voted(cluster, lan, servers, states):
    """Three votes count on each backend, everywhere, and say what they should."""
    for agent in cluster.agents.values():
        for server, state in zip(servers, states):
            def voted(agent=agent, server=server, state=state):
                now = verdict(agent, lan, server)
                n = now.n_pass if state == HEALTHY else now.n_fail
                return now.state == state and n == 3 and not now.marks
            wait_until("%s judges %s by three votes" % (agent.name, server), 60, voted)


def events(agent):
    """Verdict changes of the group since that agent's start."""
    return [(event.backend.address, event.sequence) for event in
            agent.call("EventService/ListEvents", {"type": VERDICT}).events
            if event.backend.group == "web"]


class World:
    def __init__(self, cluster, lan):
        self.cluster, self.lan = cluster, lan
        self.well = {at(lan, "web-1"), at(lan, "web-2")}
        self.clients = []
        self.watches = [Watch(cluster, agent, 2000) for agent in cluster.agents.values()]
        for watch in self.watches:
            wait_until("the table of %s" % watch.name, 60, lambda watch=watch: watch.tables()
                       and watch.usable(watch.tables()[-1]) == self.well)
        self.seen = [len(watch.tables()) for watch in self.watches]

    def start_clients(self):
        self.clients = [Client(self.lan, "%s:%d" % (self.lan.address(host), LISTENER_PORT), SERVERS,
                               RATE, FLOWS) for host in NODES.values()]

    def traffic(self, what):
        for client in self.clients:
            client.wait_for(RATE, what)

    def stop(self):
        for one in self.clients + self.watches:
            one.stop()

    def check_tables(self, when):
        n = 0
        for i, watch in enumerate(self.watches):
            tables = watch.tables()
            for line in tables[self.seen[i] - 1:]:
                check(watch.usable(line) == self.well and not watch.second_choice(line),
                      "%s: %s: another set may be used: %s" % (when, watch.name, line))
                n += 1
            self.seen[i] = len(tables)
        return n


def rolling_restart(world, cluster, lan):
    for agent in cluster.agents.values():
        others = [other for other in cluster.agents.values() if other is not agent]
        before = {other.id: events(other) for other in others}
        status = agent.stop()
        check(status == 0, "%s ended with %s" % (agent.name, status))
        world.traffic("a second without %s" % agent.name)
        agent.start()
        cluster.wait_ready()
        wait_voted(cluster, lan, SERVERS[:3], (HEALTHY, HEALTHY, UNHEALTHY))
        world.traffic("traffic with %s again" % agent.name)
        check(events(agent) == [], "%s changed verdicts after its start: %s"
              % (agent.name, events(agent)))
        for other in others:
            check(events(other) == before[other.id],
                  "%s changed verdicts meanwhile: %s" % (other.name, events(other)))
        n = world.check_tables("restart of %s" % agent.name)
        print("%s restarted under traffic: 0 verdicts changed, %d tables, 0 failures"
              % (agent.name, n))


def changes(world, cluster, lan):
    """A23: what does not touch the check changes nothing; a changed check holds what was known."""
    before = {agent.id: events(agent) for agent in cluster.agents.values()}
    since = {server: verdict(cluster.agents[1], lan, server).since for server in SERVERS[:3]}
    other = document(lan)[0]
    other["group"] = dict(other["group"], name="other")
    cluster.apply([other])
    cluster.apply(document(lan, weights=(10, 100, 20, 100)))
    world.traffic("traffic after changes beside the check")
    for server, held in since.items():
        now = verdict(cluster.agents[1], lan, server)
        check(now.since.seconds >= held.seconds and not now.marks,
              "%s: its verdict began anew or is marked: %s" % (server, now))

    cluster.apply(document(lan, timeout="0.9s"))
    was_held = set()
    def settled():
        marks = {server: verdict(cluster.agents[1], lan, server).marks for server in SERVERS[:3]}
        was_held.update(server for server in marks if HELD in marks[server])
        return was_held and not any(marks.values())
    wait_until("votes of the changed check, the verdicts held until then", 60, settled,
               interval=0.01)
    wait_voted(cluster, lan, SERVERS[:3], (HEALTHY, HEALTHY, UNHEALTHY))
    world.traffic("traffic after a changed check")
    for agent in cluster.agents.values():
        check(events(agent) == before[agent.id],
              "%s changed verdicts: %s" % (agent.name, events(agent)))
    n = world.check_tables("changes")
    print("changed beside the check and the check itself: 0 verdicts changed, %d tables, %d held"
          % (n, len(was_held)))


def new_backend(world, cluster, lan, folder, servers):
    """A22 (a): it listens only later. H passes lead out of `initial`, or U failures."""
    cluster.apply(document(lan, servers=SERVERS, timeout="0.9s"))
    first = {agent.id: wait_until("%s knows web-4" % agent.name, 60, lambda agent=agent: verdict(
        agent, lan, "web-4").state, interval=0.005) for agent in cluster.agents.values()}
    check(set(first.values()) <= {INITIAL, UNHEALTHY}, "it is judged before it was probed: %s" % first)
    world.traffic("traffic beside a backend that does not listen")
    wait_voted(cluster, lan, SERVERS, (HEALTHY, HEALTHY, UNHEALTHY, UNHEALTHY))
    n = world.check_tables("a new backend that does not listen")
    started = time.time()
    servers.append(Nginx(lan.namespace("web-4"), folder, "web-4"))
    wait_voted(cluster, lan, SERVERS, (HEALTHY, HEALTHY, UNHEALTHY, HEALTHY))
    for watch in world.watches:
        took = [line for line in watch.tables() if at(lan, "web-4") in watch.usable(line)]
        check(took and took[0]["at"] >= started, "%s used web-4 before it listened" % watch.name)
    for client in world.clients:
        wait_until("web-4 answers", 60, lambda client=client: client.now()["names"].get("web-4"))
        client.check("web-4 joins")
    print("web-4: initial, then unhealthy in %d tables; used on all nodes once it passed" % n)


def test(options):
    lan = Lan(HOSTS)
    servers = []
    with tempfile.TemporaryDirectory() as folder, LanCluster(options, lan, NODES) as cluster, \
            contextlib.ExitStack() as at_end:
        at_end.callback(lambda: [server.stop() for server in servers])
        for server in SERVERS:
            os.mkdir(os.path.join(folder, server))
        for server in SERVERS[:2]:
            servers.append(Nginx(lan.namespace(server), os.path.join(folder, server), server))
        cluster.make(vote_interval="0.5s")
        for node, host in NODES.items():
            cluster.shim(node).prefix = lan.prefix(host)
            cluster.shims[node].start()
        cluster.apply(document(lan))
        wait_voted(cluster, lan, SERVERS[:3], (HEALTHY, HEALTHY, UNHEALTHY))
        wait_until("a data plane at every node", 60, lambda: all(
            agent.status().data_planes for agent in cluster.agents.values()))
        world = World(cluster, lan)
        at_end.callback(world.stop)
        world.start_clients()
        world.traffic("traffic")

        rolling_restart(world, cluster, lan)
        changes(world, cluster, lan)
        new_backend(world, cluster, lan, os.path.join(folder, "web-4"), servers)

        print("%d connections through three shims: 0 failures"
              % sum(client.now()["good"] for client in world.clients))


run(test)
