#!/usr/bin/python3
"""Cases A31 and A32: all backends fail, or only the checker does, and what clients see of it.

Three agents, their shims, a client and the web servers, each a host of its own; the shims have hosts
apart from the agents, so that a firewall can take the probes alone. A31: both members of two groups
fail their checks; the one is fail-open and its new flows go to both, the other is fail-closed and
refuses at once. A32: 20 healthy backends. The probes of one agent are dropped: no verdict changes
anywhere. Those of all: the group fails open and all 20 go on serving, a group with standard guards
loses two at most, each raises one alarm; under a hold nothing is ejected, and it is said who holds.
Then half of the backends fail every other check: each keeps its state. Clients never try twice and
no request fails. Needs root.
"""
# seconds: 53
# twin: shim-ignore-classes was not refused
# twin: alarm-off the alarm
# twin: health-total changed its verdict
# shows: S91
import contextlib
import os
import socket
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from cluster import Backend, KeyPair, check, run, tcp_group, wait_until  # noqa: E402
from ctl import ask, expect, here, over  # noqa: E402
from lan import NET, Lan, LanCluster  # noqa: E402
from prober import run as shell  # noqa: E402
from traffic import Client, Watch  # noqa: E402

V = 0.5
INTERVAL_S = 0.5
REFUSED_S = 0.1           # the goal; ten times it fails
CUT_S = 6 * INTERVAL_S    # what is kept up after all saw it
TURNS = 20                # checks of each backend that pass and fail in turn
RATE = 20
HOSTS = {"a": 1, "b": 2, "c": 3, "client": 9, "web": 11, "shim-a": 21, "shim-b": 22, "shim-c": 23}
NODES = {1: "a", 2: "b", 3: "c"}
PORT, WEB, OPEN, SHUT = 80, 8000, 8001, 8002
N_BACKENDS, N_OUT_MAX = 20, 2  # standard: 10 % in 30 s
VERDICT = 1                    # enum EventType
GROUPS = ("web", "guarded")


class Server(Backend):
    """Healthy to its clients whatever it tells the agents: "pass", "fail", or both "in turn"."""

    def __init__(self, name, address, agents):
        super().__init__(name, address, PORT)
        self.agents, self.to_agents = agents, "pass"
        self.n_asked = dict.fromkeys(agents, 0)

    def status_for(self, peer):
        if peer not in self.agents:
            return 200
        self.n_asked[peer] += 1
        fails = self.to_agents == "fail" or self.to_agents == "in turn" and self.n_asked[peer] % 2
        return 500 if fails else 200

    def serve(self, connection):
        with contextlib.suppress(OSError), connection:
            status = self.status_for(connection.getpeername()[0])
            data = b""
            while b"\r\n\r\n" not in data:
                part = connection.recv(4096)
                if not part:
                    return
                data += part
            connection.sendall(b"HTTP/1.1 %d X\r\nContent-Length: %d\r\n\r\n%s\n"
                               % (status, len(self.name) + 1, self.name.encode()))


def servers(cluster, lan, names, first):
    agents = [lan.address(host) for host in NODES.values()]
    made = []
    for number, name in enumerate(names, first):
        shell(f"ip -n {lan.namespace('web')} address add {NET}.{number}/24 dev eth0")
        server = Server(name, "%s.%d" % (NET, number), agents)
        with lan.inside("web"):
            server.start()
        cluster.backends.append(server)
        made.append(server)
    return made


def group(name, backends, **fields):
    document = tcp_group(name, backends, type="CHECK_TYPE_HTTP", timeout="%gs" % INTERVAL_S,
                         interval="%gs" % INTERVAL_S)
    document["group"].update(fields)
    return document


def listener(name, port, served):
    return {"listener": {"name": name, "address": "0.0.0.0", "port": port,
                         "protocol": "PROTOCOL_TCP", "group": served}}


class World:
    def __init__(self, cluster, lan, pair, twenty):
        self.cluster, self.lan, self.pair, self.twenty = cluster, lan, pair, twenty
        self.agents = list(cluster.agents.values())
        self.clients, self.watches = [], []

    def connect(self, port, names):
        """A client of the listener on each shim."""
        clients = [Client(self.lan, "%s:%d" % (self.lan.address("shim-" + host), port), names, RATE,
                          0) for host in NODES.values()]
        self.clients += clients
        return clients

    def stop(self):
        for one in self.clients + self.watches:
            one.stop()

    def changes(self, name):
        """Verdict changes in a group, by (node, backend)."""
        count = {}
        for agent in self.agents:
            for event in agent.call("EventService/ListEvents", {"type": VERDICT}).events:
                if event.backend.group == name:
                    key = agent.id, event.backend.address
                    count[key] = count.get(key, 0) + 1
        return count

    def no_change(self, before, name, what):
        """None of a group since `before`, on any node."""
        for key, n in self.changes(name).items():
            check(n == before.get(key, 0), "%s: node %d changed its verdict on %s/%s"
                  % ((what,) + key[:1] + (name, key[1])))

    def votes(self, agent, name):
        """How many pass and fail, by backend."""
        answer = agent.call("VerdictService/ListVerdicts", {"group": name})
        return {v.backend.address: (v.verdict.n_pass, v.verdict.n_fail) for v in answer.verdicts}

    def wait_votes(self, what, is_right):
        for agent in self.agents:
            for name in GROUPS:
                wait_until("%s: the votes of %s at %s" % (what, name, agent.name), 60, lambda
                           agent=agent, name=name: all(map(is_right, self.votes(agent, name).values())))

    def wait_state(self, name, word):
        for agent in self.agents:
            wait_until("%s: group %s is %s" % (agent.name, name, word), 60, lambda agent=agent:
                       self.first_line(agent, name).startswith("group %s is %s" % (name, word)))

    def wait_well(self):
        """Also what a node thinks of itself: a doubt outlives its cause by 5 s."""
        self.wait_votes("all is well", lambda votes: votes == (3, 0))
        for name in GROUPS:
            self.wait_state(name, "ok")

    def first_line(self, agent, name):
        answer = ask(self.cluster, ["group", "describe", name, "--stale"] + here(agent))
        check(answer.status == 0, "group describe: %s" % answer)
        return answer.out.splitlines()[0]

    def counters(self, *names):
        return {agent.id: [agent.counters()[name] for name in names] for agent in self.agents}

    def lines(self, *words):
        """Of each agent's log, those that hold all the words."""
        return [agent.count(words) for agent in self.agents]

    def served(self, clients, names, what):
        """Each client is answered by each of them once more, and by nobody else; nothing fails."""
        by_name = lambda client: client.now().get("names", {})  # noqa: E731
        for client, old in [(client, by_name(client)) for client in clients]:
            wait_until("%s: answers of all %d" % (what, len(names)), 60, lambda client=client, old=old:
                       client.now()["failed"] or all(
                           by_name(client).get(name, 0) > old.get(name, 0) for name in names))
            client.check(what)

    def keep_up(self, clients, seconds, what):
        """Traffic for that long; nothing fails."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            for client in clients:
                client.wait_for(RATE // 4, what)


# --- A31 ---

def refused(world, what):
    for host in NODES.values():
        at = world.lan.address("shim-" + host), SHUT
        since = time.monotonic()
        try:
            with world.lan.inside("client"), socket.create_connection(at, timeout=30) as connection:
                connection.sendall(b"GET / HTTP/1.0\r\n\r\n")
                answer = connection.recv(100)
            check(False, "%s: a connection was not refused: %r" % (what, answer))
        except (ConnectionResetError, ConnectionRefusedError, BrokenPipeError):
            took = time.monotonic() - since
        check(took < 10 * REFUSED_S, "%s: refused after %.3f s" % (what, took))
        print("%s: shim of %s refuses after %.4f s" % (what, host, took))


def both_fail(world):
    names = tuple(server.name for server in world.pair)
    clients = world.connect(OPEN, names)
    world.served(clients, names, "both pass")
    counted = ("engine_fail_opens_entered", "engine_fail_opens_left", "engine_closed_entered",
               "engine_closed_left")
    check(set(map(tuple, world.counters(*counted).values())) == {(0, 0, 0, 0)},
          "at the start: %s" % world.counters(*counted))
    for server in world.pair:
        server.to_agents = "fail"
    world.wait_state("open", "fail-open: 0 of 2 backends in use are healthy")
    world.wait_state("shut", "closed: 0 of 2 backends in use are healthy")
    print("A31: " + world.first_line(world.agents[0], "open"))
    world.served(clients, names, "A31, fail-open")
    refused(world, "A31, fail-closed")
    check(set(map(tuple, world.counters(*counted).values())) == {(1, 0, 1, 0)},
          "in fail-open: %s" % world.counters(*counted))
    for server in world.pair:
        server.to_agents = "pass"
    for name in ("open", "shut"):
        world.wait_state(name, "ok")
    world.served(clients, names, "A31, recovered")
    check(set(map(tuple, world.counters(*counted).values())) == {(1, 1, 1, 1)},
          "after fail-open: %s" % world.counters(*counted))
    for name, state in (("open", "fail-open"), ("shut", "closed")):
        for words in ("from=" + state, "to=" + state):
            lines = world.lines("event=group_changed", "group=%s " % name, words)
            check(lines == [1, 1, 1], "%s: lines with %s: %s" % (name, words, lines))
    print("A31: one line and one count at entry and at exit, on each node; 0 failures")


# --- A32 ---

@contextlib.contextmanager
def no_probes(world, *hosts):
    """Dropped on their way in: to the agent the network is whole, and only the answers are missing."""
    sources = ", ".join(world.lan.address(host) for host in hosts)
    world.lan.filter("web", {"in": ["ip saddr { %s } drop" % sources]})
    yield
    world.lan.unfilter("web")


def one_agent_blind(world, clients, names):
    before = {name: world.changes(name) for name in GROUPS}
    with no_probes(world, "a"):
        world.wait_votes("one agent is blind", lambda votes: votes[0] == 2)
        world.keep_up(clients, CUT_S, "one agent is blind")
        world.served(clients, names, "one agent is blind")
        for name in GROUPS:
            world.no_change(before[name], name, "one agent is blind")
    world.wait_well()
    for name in GROUPS:
        world.no_change(before[name], name, "one agent sees again")
    print("A32, one agent: no verdict changed anywhere, 0 failures")


def tables_hold(world, seen, n_min, name):
    """Each table since then has at least so many for new flows, those of second choice among them.
    Returns how many were looked at."""
    n_tables = 0
    for watch, first in zip(world.watches, seen):
        for line in watch.tables()[max(first - 1, 0):]:
            usable = Watch.usable(line, name) | Watch.second_choice(line, name)
            check(len(usable) >= n_min, "%s: only %d of %s for new flows: %s"
                  % (watch.name, len(usable), name, line))
            n_tables += 1
    return n_tables


def all_agents_blind(world, clients, names):
    seen = [len(watch.tables()) for watch in world.watches]
    raised = world.counters("engine_alarms_raised")
    with no_probes(world, *NODES.values()):
        world.wait_state("web", "fail-open: 0 of 20 backends in use are healthy")
        world.served(clients, names, "all agents are blind")
        for name in GROUPS:
            for agent in world.agents:
                wait_until("%s: the alarm of %s" % (agent.name, name), 20, lambda agent=agent,
                           name=name: "; ALARM: " in world.first_line(agent, name))
            lines = world.lines("event=guard_changed guard=correlated group=%s to=on" % name)
            check(lines == [1, 1, 1], "lines of the alarm of %s: %s" % (name, lines))
        for node, (count,) in world.counters("engine_alarms_raised").items():
            check(count == raised[node][0] + len(GROUPS), "node %d: the alarm was counted %d times"
                  % (node, count - raised[node][0]))
        world.keep_up(clients, CUT_S, "all agents are blind")
        line = world.first_line(world.agents[0], "guarded")
        check(line.startswith("group guarded is degraded"), line)
        print("A32, all agents: " + world.first_line(world.agents[0], "web"))
        print("A32, with guards: " + line)
    world.wait_well()
    n_tables = tables_hold(world, seen, 1, "web")
    tables_hold(world, seen, N_BACKENDS - N_OUT_MAX, "guarded")
    world.served(clients, names, "all agents see again")
    print("A32: %d tables, none empty; 0 failures" % n_tables)


def held(world, clients, names, operator):
    answer = ask(world.cluster, ["hold", "set"] + over(world.agents[1], operator),
                 prefix=world.lan.prefix("b"))
    check(answer.status == 0, "not set: %s" % answer)
    before = {name: world.changes(name) for name in GROUPS}
    with no_probes(world, *NODES.values()):
        world.wait_votes("held", lambda votes: votes == (0, 3))
        world.keep_up(clients, CUT_S, "held")
        for name in GROUPS:
            world.no_change(before[name], name, "held")
        for agent in world.agents:
            line = world.first_line(agent, "web")
            check("hold is on (cluster, by ops): 20 backends stay in service" in line, line)
        plain, _ = expect(world.cluster, 0, ["hold", "show"] + here(world.agents[2]))
        check("ops" in plain.out, "hold show: %s" % plain)
        print("A32, hold: " + line)
    world.wait_votes("held no more", lambda votes: votes == (3, 0))
    expect(world.cluster, 0, ["hold", "clear"] + here(world.agents[0]))
    world.wait_well()
    for name in GROUPS:
        world.no_change(before[name], name, "after the hold")
    world.served(clients, names, "after the hold")


def half_in_turn(world, clients, names):
    before = {name: world.changes(name) for name in GROUPS}
    half = world.twenty[::2]
    asked = [dict(server.n_asked) for server in half]
    for server in half:
        server.to_agents = "in turn"
    for server, old in zip(half, asked):
        wait_until("%s was asked %d times by each agent" % (server.name, TURNS), 120, lambda
                   server=server, old=old: all(n >= old[at] + TURNS
                                               for at, n in server.n_asked.items()))
    for name in GROUPS:
        world.no_change(before[name], name, "pass and fail in turn")
    world.served(clients, names, "pass and fail in turn")
    print("A32: %d checks in turn of %d backends by each agent, no verdict changed"
          % (TURNS, len(half)))


def test(options):
    lan = Lan(HOSTS)
    with LanCluster(options, lan, NODES) as cluster, contextlib.ExitStack() as at_end:
        cluster.make(vote_interval="%gs" % V)
        for node, host in NODES.items():
            cluster.shim(node).prefix = lan.prefix("shim-" + host)
            cluster.shims[node].start()
        operator = KeyPair(os.path.join(cluster.dir, "ops.key"))
        pair = servers(cluster, lan, ("p1", "p2"), 91)
        names = tuple("b%d" % n for n in range(1, N_BACKENDS + 1))
        twenty = servers(cluster, lan, names, 101)
        cluster.apply([
            {"key": {"name": "ops", "public_key": operator.public, "role": "ROLE_OPERATOR"}},
            group("open", pair), group("shut", pair, all_bad="ALL_BAD_FAIL_CLOSED"),
            group("web", twenty), group("guarded", twenty, guard={"preset": "GUARD_PRESET_STANDARD"}),
            listener("web-in", WEB, "web"), listener("open-in", OPEN, "open"),
            listener("shut-in", SHUT, "shut")])
        world = World(cluster, lan, pair, twenty)
        at_end.callback(world.stop)
        world.wait_well()
        both_fail(world)
        clients = world.connect(WEB, names)
        world.watches = [Watch(cluster, agent, 2000) for agent in world.agents]
        world.served(clients, names, "all is well")
        one_agent_blind(world, clients, names)
        all_agents_blind(world, clients, names)
        held(world, clients, names, operator)
        half_in_turn(world, clients, names)


run(test)
