#!/usr/bin/python3
"""Static stability, live (R-SS-1, R-SS-2, R-SS-3, R-LEAD-1): one step down the ladder after another.

Three agents and shims and web servers, each a host of its own; web-3 is really down. Clients that
never try twice send traffic through all three shims while there is no leader, then no quorum and no
peers, then a node that starts alone from its last-known-good, then one that has no store either, then
no agent at all. At each step: not one failure, the same two backends in every published table, no
verdict event; the staleness is shown; a write fails fast. Then all come back, and the next write is
committed. --seconds is the length of the whole, in equal steps. Needs root.
"""
# seconds: 36
# twin: kept-ignored FAILED: .*(another set may be used|changed a verdict|[1-9][0-9]* failures)
import contextlib
import os
import sys
import tempfile
import time

LIB = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib")
sys.path.insert(0, LIB)
from cluster import check, run, wait_until  # noqa: E402
from jury_client import CallError  # noqa: E402
from lan import Lan, LanCluster  # noqa: E402
from nginx import PORT, Nginx  # noqa: E402
from traffic import Client, Watch  # noqa: E402

RATE, FLOWS = 20, 4
STEPS = 6
SERVERS = ("web-1", "web-2", "web-3")
HOSTS = {"a": 1, "b": 2, "c": 3, "client": 9, "web-1": 11, "web-2": 12, "web-3": 13}
NODES = {1: "a", 2: "b", 3: "c"}
LISTENER_PORT = 8000
HEALTHY, UNHEALTHY = 2, 3             # enum HealthState
HELD = 1                              # enum HealthMark
VERDICT = 1                           # enum EventType
STORE_FAILED = 4
WRITE_FAILS_S = 1                     # the goal; ten times it fails


def group(lan, name, **fields):
    return {"group": {"name": name, "profile": "PROFILE_NLB", "type": "GROUP_TYPE_IP",
                      "protocol": "PROTOCOL_TCP",
                      "verdict": {"down": {"kind": "KIND_MAJORITY"}, **fields},
                      "check": {"type": "CHECK_TYPE_HTTP", "timeout": "1s", "interval": "0.5s",
                                "healthy_threshold": 2, "unhealthy_threshold": 2},
                      "backends": [{"address": lan.address(server), "port": PORT}
                                   for server in SERVERS]}}


def documents(lan):
    """The same targets twice: held below the quorum, and by the own vote there."""
    return [group(lan, "web"), group(lan, "own", below_quorum="BELOW_QUORUM_LOCAL"),
            {"listener": {"name": "web-http", "address": "0.0.0.0", "port": LISTENER_PORT,
                          "protocol": "PROTOCOL_TCP", "group": "web"}}]


class World:
    """The cluster, traffic through each of its shims, and every table that its nodes publish."""

    def __init__(self, cluster, lan, seconds):
        self.cluster, self.lan, self.seconds = cluster, lan, seconds
        self.well = {"%s:%d" % (lan.address(server), PORT) for server in SERVERS[:2]}
        self.clients = []
        self.watches = [Watch(cluster, agent, 2000) for agent in cluster.agents.values()]
        for watch in self.watches:
            wait_until("the table of %s" % watch.name, 60, lambda watch=watch: watch.tables()
                       and watch.usable(watch.tables()[-1]) == self.well)
        self.seen = [len(watch.tables()) for watch in self.watches]
        self.known = {}
        self.begin()

    def begin(self):
        self.clients = [Client(self.lan, "%s:%d" % (self.lan.address(host), LISTENER_PORT), SERVERS,
                               RATE, FLOWS) for host in NODES.values()]

    def stop(self):
        for one in self.clients + self.watches:
            one.stop()

    def verdict(self, agent, server, name="web"):
        return agent.call("VerdictService/Why", {"backend": {
            "group": name, "address": self.lan.address(server), "port": PORT}}).verdict

    def is_voted(self):
        """Three votes count on each backend, everywhere, and say what they should."""
        for agent in self.cluster.agents.values():
            for server in SERVERS:
                now = self.verdict(agent, server)
                n_agree = now.n_fail if server == "web-3" else now.n_pass
                if n_agree != 3 or now.marks or \
                        now.state != (UNHEALTHY if server == "web-3" else HEALTHY):
                    return False
        return True

    @staticmethod
    def events(agent):
        """Verdict changes of the two groups since that agent's start."""
        return [(event.backend.group, event.backend.address, event.sequence) for event in
                agent.call("EventService/ListEvents", {"type": VERDICT}).events
                if event.backend.group in ("web", "own")]

    def know(self, *agents):
        for agent in agents:
            self.known[agent.id] = self.events(agent)

    def step(self, what, living):
        """One step's length of traffic; the living agents' verdicts have not moved since know()."""
        before = [client.now()["good"] for client in self.clients]
        for client, good in zip(self.clients, before):
            done = client.now()["good"] - good
            client.wait_for(max(int(RATE * self.seconds / STEPS) - done, 0), what)
        n_tables = 0
        for i, watch in enumerate(self.watches):
            tables = watch.tables()
            for line in tables[max(self.seen[i] - 1, 0):]:
                check(watch.usable(line) == self.well and not watch.second_choice(line),
                      "%s: %s: another set may be used: %s" % (what, watch.name, line))
                n_tables += 1
            self.seen[i] = len(tables)
        for agent in living:
            check(self.events(agent) == self.known[agent.id], "%s: %s changed a verdict: %s"
                  % (what, agent.name, self.events(agent)))
        n = sum(client.now()["good"] for client in self.clients) - sum(before)
        print("%s: %d connections, 0 failures, %d tables, 0 verdicts changed" % (what, n, n_tables))


def write_fails(world, agent, what):
    """In under a second once it is known, with the reason, and nothing is half done."""
    started = time.monotonic()
    try:
        agent.call("ConfigService/Apply", {"documents": [group(world.lan, "late")]}, timeout=30,
                   retry=False)
        check(False, "%s: a write was committed" % what)
    except CallError as error:
        took = time.monotonic() - started
        print("%s: a write fails after %.3f s (goal %d s): %s" % (what, took, WRITE_FAILS_S, error))
        check(took < 10 * WRITE_FAILS_S, "%s: a write took %.3f s to fail" % (what, took))


def flip(folder):
    """Flips bytes in every closed segment of the log; a second time makes it whole again."""
    n_files = 0
    for name in sorted(os.listdir(folder)):
        if not name[0].isdigit():
            continue
        with open(os.path.join(folder, name), "r+b") as file:
            for at in (9, 40, 200):
                file.seek(at)
                byte = file.read(1)
                if byte:
                    file.seek(at)
                    file.write(bytes([byte[0] ^ 0x55]))
        n_files += 1
    check(n_files, "no log to damage in %s" % folder)


def is_held(world, agent):
    """All verdicts of the group are kept for lack of votes; where the own vote decides, none is."""
    return all(HELD in world.verdict(agent, server).marks for server in SERVERS) and \
        not any(HELD in world.verdict(agent, server, "own").marks for server in SERVERS)


def wait_written(cluster):
    """Last-known-good holds what is known now: it is written at most once a second, and the first
    write that one waits for may have begun before."""
    for below_quorum in ("HOLD", "LOCAL"):
        before = {agent.id: written(agent) for agent in cluster.agents.values()}
        cluster.apply([group(cluster.lan, "other", below_quorum="BELOW_QUORUM_" + below_quorum)])
        for agent in cluster.agents.values():
            wait_until("%s wrote its last-known-good" % agent.name, 60, lambda agent=agent:
                       written(agent) > before[agent.id])


def written(agent):
    return agent.counters()["agent_lkg_written"]


def ladder(world):
    cluster = world.cluster
    one, peers = cluster.agents[1], [cluster.agents[2], cluster.agents[3]]
    all_three = list(cluster.agents.values())

    leader = cluster.leader()
    world.know(*all_three)
    leader.kill()
    others = [agent for agent in all_three if agent is not leader]
    world.step("the leader gone", others)
    leader.start()
    cluster.wait_ready()
    wait_until("three votes again", 60, world.is_voted)
    world.know(*all_three)
    check(not world.known[leader.id], "%s changed a verdict at its start: %s"
          % (leader.name, world.known[leader.id]))

    for peer in peers:
        peer.kill()
    wait_until("%s knows that nobody leads" % one.name, 60,
               lambda: one.status().store.leader_id == 0)
    write_fails(world, one, "no quorum")
    wait_until("%s shows that it holds" % one.name, 60, lambda: is_held(world, one))
    check(one.status().n_fresh == 1, "%s hears votes of agents that are gone" % one.name)
    world.step("no leader, no quorum, no peers", [one])

    check(one.stop() == 0, "%s did not stop with 0" % one.name)
    one.start()
    wait_until("%s serves what it knew" % one.name, 60, lambda: one.status().is_last_known_good)
    world.known[one.id] = []
    wait_until("%s shows that it holds" % one.name, 60, lambda: is_held(world, one))
    world.step("started alone, from last-known-good", [one])
    write_fails(world, one, "started alone")

    check(one.stop() == 0, "%s did not stop with 0" % one.name)
    log = os.path.join(one.data_dir, "store", "raft")
    flip(log)
    one.start()
    wait_until("%s says that it has no store" % one.name, 60,
               lambda: one.status().store.state == STORE_FAILED)
    world.step("no store either", [one])
    print("it says: \"%s\"" % one.status().store.message)

    one.kill()
    world.step("no agent anywhere", [])

    flip(log)
    for agent in all_three:
        agent.start()
    cluster.wait_ready()
    wait_until("three votes again", 60, world.is_voted)
    for agent in all_three:
        world.known[agent.id] = []
    world.step("all are back", all_three)
    done = cluster.apply([group(world.lan, "late")], timeout=60)
    print("the next write is committed: revision %d" % done.revision)


def test(options):
    lan = Lan(HOSTS)
    with tempfile.TemporaryDirectory() as folder, LanCluster(options, lan, NODES) as cluster, \
            contextlib.ExitStack() as at_end:
        for server in SERVERS[:2]:
            os.mkdir(os.path.join(folder, server))
            at_end.callback(Nginx(lan.namespace(server), os.path.join(folder, server), server).stop)
        cluster.make(vote_interval="0.5s")
        for node, host in NODES.items():
            cluster.shim(node).prefix = lan.prefix(host)
            cluster.shims[node].start()
        cluster.apply(documents(lan))
        world = World(cluster, lan, options.seconds)
        at_end.callback(world.stop)
        wait_until("three votes on each backend", 60, world.is_voted)
        wait_written(cluster)
        ladder(world)


run(test, seconds=20.0)
