#!/usr/bin/python3
"""Row 2.4, N5 and case A29: one path that is cut ejects nothing, and its node goes another way.

Three agents and two web servers, each a host of its own, rule majority. Firewalls cut what node C
sends to b1; then, instead, what b1 answers to C; then what C says to A as well, so that A counts no
vote of C and C none of A; then the Raft leader is killed. All the while b1 is healthy on every node,
C alone calls it unreachable from here and takes it as second choice, no verdict changes anywhere,
and every agent probes on. At last a second node loses its way to b1, and it goes down on all, also
where its path is whole. Needs root.
"""
# twin: vote-own-twice changed a verdict
# twin: class-ignore-reachable is not second choice
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from cluster import Backend, check, run, tcp_group, wait_until  # noqa: E402
from lan import Lan, LanCluster  # noqa: E402
from traffic import Watch  # noqa: E402

V = 0.5
INTERVAL_S = 0.5
SLOW = 10  # a loaded machine
A, B, C = 1, 2, 3
HOSTS = {"a": 1, "b": 2, "c": 3, "web1": 11, "web2": 12}
NODES = {A: "a", B: "b", C: "c"}
PASS, FAIL = 1, 2          # enum Opinion
COUNTED, REMEMBERED = 1, 2  # enum VoteStanding
VERDICT = 1                # enum EventType


class Counted(Backend):
    """Keeps who asked when."""

    def __init__(self, name, address, port):
        super().__init__(name, address, port)
        self.asked = {}

    def serve(self, connection):
        try:
            self.asked.setdefault(connection.getpeername()[0], []).append(time.monotonic())
        except OSError:
            pass  # reset already
        super().serve(connection)

    def longest_pause(self, address, since):
        asked = [since] + [at for at in self.asked.get(address, []) if at > since]
        return max(after - before for before, after in zip(asked, asked[1:] + [time.monotonic()]))


def start_backend(lan, cluster, name, host):
    backend = Counted(name, lan.address(host), 80)
    with lan.inside(host):
        backend.start()
    cluster.backends.append(backend)
    return backend


def why(agent, backend):
    return agent.call("VerdictService/Why", {"backend": {
        "group": "web", "address": backend.address, "port": backend.port}})


def votes_of(agent, backend):
    """By node: the opinion, None if it does not count."""
    return {vote.node_id: vote.opinion if vote.standing == COUNTED else None
            for vote in why(agent, backend).votes}


def changes(cluster):
    return {agent.id: [event.sequence for event in agent.call(
        "EventService/ListEvents", {"type": VERDICT}).events]
        for agent in cluster.agents.values() if agent.is_running()}


class Calm:
    """No verdict changes within; at the end all running nodes still call b1 healthy, C alone
    unreachable, and their tables say so."""

    def __init__(self, cluster, watches, b1, b2, what):
        self.cluster, self.watches, self.b1, self.b2, self.what = cluster, watches, b1, b2, what

    def __enter__(self):
        self.before, self.since = changes(self.cluster), time.monotonic()

    def __exit__(self, kind, value, trace):
        if kind is not None:
            return
        now = changes(self.cluster)
        check(all(now[node] == self.before[node] for node in now),
              "%s changed a verdict: %s, then %s" % (self.what, self.before, now))
        for node in now:
            verdict = why(self.cluster.agents[node], self.b1).verdict
            check(verdict.state == 2, "%s: b1 went down on node %d" % (self.what, node))
            check(verdict.is_unreachable == (node == C), "%s: node %d says unreachable: %s"
                  % (self.what, node, verdict.is_unreachable))
            line = self.watches[node].tables()[-1]
            usable, second = Watch.usable(line), Watch.second_choice(line)
            check(second == ({self.b1.at} if node == C else set()),
                  "%s: b1 is not second choice for C alone: node %d: %s" % (self.what, node, line))
            check(usable == ({self.b2.at} if node == C else {self.b1.at, self.b2.at}),
                  "%s: node %d sends new flows to %s" % (self.what, node, usable))
        print("%s: %.1f s, no verdict changed, C alone goes to b2"
              % (self.what, time.monotonic() - self.since))


def wait_votes(cluster, backend, wanted, what):
    """wanted: by asked node, the votes that count there."""
    for node, votes in wanted.items():
        agent = cluster.agents[node]
        if agent.is_running():
            wait_until("%s: node %d counts %s" % (what, node, votes), 60,
                       lambda agent=agent, votes=votes: votes_of(agent, backend) == votes)


def all_hear(votes):
    return {node: votes for node in NODES}


def forgotten(cluster, backend):
    """The lost votes do not even block any more."""
    for node, lost in ((A, C), (C, A)):
        wait_until("node %d remembers no vote of node %d" % (node, lost), 60, lambda node=node,
                   lost=lost: next(vote.standing for vote in why(cluster.agents[node], backend).votes
                                   if vote.node_id == lost) not in (COUNTED, REMEMBERED))


def leader_dies(cluster, b1, b2):
    leader = cluster.leader()
    since = time.monotonic()
    leader.kill()
    alive = [agent for agent in cluster.agents.values() if agent is not leader]
    wait_until("another leader", 60, lambda: all(
        agent.status().store.leader_id not in (0, leader.id) for agent in alive))
    gap = time.monotonic() - since
    wait_until("the dead leader's vote counts no more", 60, lambda: all(
        votes_of(agent, b2)[leader.id] is None for agent in alive))
    for agent in alive:
        pause = b2.longest_pause(agent.address, since)
        check(pause < SLOW * 2 * INTERVAL_S, "node %d did not probe b2 for %.2f s" % (agent.id, pause))
        print("node %d probed on: at most %.2f s between two probes (interval %.1f s)"
              % (agent.id, pause, INTERVAL_S))
    print("leader %d killed: another one after %.2f s" % (leader.id, gap))
    return leader


def cut_paths(cluster, lan, watches, b1, b2):
    one_fails = {A: PASS, B: PASS, C: FAIL}
    calm = lambda what: Calm(cluster, watches, b1, b2, what)  # noqa: E731
    to_b1 = "ip daddr %s drop" % b1.address
    with calm("C's requests to b1 are cut"):
        lan.filter("c", {"out": [to_b1]})
        wait_votes(cluster, b1, all_hear(one_fails), "requests cut")
    lan.unfilter("c")
    wait_votes(cluster, b1, all_hear({A: PASS, B: PASS, C: PASS}), "joined")
    with calm("b1's replies to C are cut"):
        lan.filter("c", {"in": ["ip saddr %s drop" % b1.address]})
        wait_votes(cluster, b1, all_hear(one_fails), "replies cut")
    with calm("A does not hear C either"):
        lan.filter("a", {"in": ["ip saddr %s drop" % lan.address("c")]})
        wait_votes(cluster, b1, {A: {A: PASS, B: PASS, C: None}, B: one_fails,
                                 C: {A: None, B: PASS, C: FAIL}}, "one way cut")
        forgotten(cluster, b1)
    lan.unfilter("a")
    wait_votes(cluster, b1, all_hear(one_fails), "A hears C again")
    with calm("the leader dies"):
        leader = leader_dies(cluster, b1, b2)
    leader.start()
    cluster.wait_ready()
    wait_votes(cluster, b1, all_hear(one_fails), "the leader is back")
    lan.filter("b", {"out": [to_b1]})
    cluster.wait_verdicts("web", {b1: "unhealthy", b2: "healthy"}, seconds=60)
    check(votes_of(cluster.agents[A], b1) == {A: PASS, B: FAIL, C: FAIL}, "not by two of three")
    print("B loses its way too: unhealthy on all, A included")
    lan.unfilter("b")
    lan.unfilter("c")
    cluster.wait_verdicts("web", {b1: "healthy", b2: "healthy"}, seconds=60)


def test(options):
    lan = Lan(HOSTS)
    with LanCluster(options, lan, NODES) as cluster:
        cluster.make(vote_interval="%gs" % V)
        b1, b2 = (start_backend(lan, cluster, name, host)
                  for name, host in (("b1", "web1"), ("b2", "web2")))
        cluster.apply([tcp_group("web", [b1, b2], type="CHECK_TYPE_HTTP",
                                 timeout="%gs" % INTERVAL_S, interval="%gs" % INTERVAL_S)])
        cluster.wait_verdicts("web", {b1: "healthy", b2: "healthy"}, seconds=60)
        watches = {agent.id: Watch(cluster, agent, 5000) for agent in cluster.agents.values()}
        for watch in watches.values():
            wait_until("the whole table of %s" % watch.name, 60, lambda watch=watch: watch.tables()
                       and watch.usable(watch.tables()[-1]) == {b1.at, b2.at})
        wait_votes(cluster, b1, all_hear({A: PASS, B: PASS, C: PASS}), "the start")
        cut_paths(cluster, lan, watches, b1, b2)


run(test)
