#!/usr/bin/python3
"""How fast a vote becomes a word of the forwarding table, in real agents under real clocks.

1. The deciding vote's arrival to the published word: this program is the third member. It sends one
   change message over CURVE and watches the mapped table of an agent: the time from its send on, so
   libzmq's way is in it. It counts the words that a change of verdict wrote, and sees that no layout
   was made.
2. A change at one node to the verdict at all: three agents under the rule `any`; the backend answers
   one of them, and only that one, with an error. From its first such answer until the words of all
   three tables have changed.

It fails when a p99 is ten times its goal, and when a verdict makes a layout.
usage: change_latency.py --bin BIN [--votes N] [--changes N]
"""
import math
import mmap
import multiprocessing
import os
import random
import socket
import struct
import sys
import time

import zmq

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import jury_client  # noqa: E402
from cluster import Backend, Cluster, check, free_port, run, tcp_group, wait_until  # noqa: E402

HELLO, CHANGE = 1, 3
PASS, FAIL = 1, 2  # opinions
REASON_OK, REASON_FAILED = 1, 3
VOTE_GOAL_MS, ALL_GOAL_MS, MISSED = 2.0, 20.0, 10
WORDS_MAX = 4  # of one change: backend and scope, each a word and a deadline
PATIENCE_S = 20


class Table:
    """The mapped table of one agent: its root, and the words of its rows."""

    def __init__(self, agent):
        self.folder = agent.tables
        self.root = self.map("root")
        layout, state = struct.unpack_from("<QQ", self.root, 56)
        self.state = self.map("state.%d" % state)
        self.n_rows, self.rows_at = struct.unpack_from("<QQ", self.state, 32)
        self.end = self.rows_at + 16 * min(self.n_rows, 64)  # these tables are small
        self.files = (layout, state)

    def map(self, name):
        with open(os.path.join(self.folder, name), "rb") as file:
            return mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)

    def words(self):
        return self.state[self.rows_at:self.end]

    def has_its_files(self):
        return struct.unpack_from("<QQ", self.root, 56) == self.files


def n_words_changed(before, after):
    return sum(before[i:i + 8] != after[i:i + 8] for i in range(0, len(before), 8))


def watch(what, tables, before):
    """Until the words of each table differ from `before`; the moment at which each did."""
    moments = [None] * len(tables)
    deadline = time.monotonic() + PATIENCE_S
    while None in moments:
        for i, table in enumerate(tables):
            if moments[i] is None and table.words() != before[i]:
                moments[i] = time.monotonic()
        check(time.monotonic() < deadline, "not within %d s: %s" % (PATIENCE_S, what))
    return moments


def quantile(values, share):
    values = sorted(values)
    return values[math.ceil(len(values) * share) - 1]


def tell(what, latencies_ms, goal_ms):
    p50, p99 = quantile(latencies_ms, 0.5), quantile(latencies_ms, 0.99)
    line = "%s: p50 %.2f ms, p99 %.2f ms, max %.2f ms of %d (goal p99 %g ms)" % (
        what, p50, p99, max(latencies_ms), len(latencies_ms), goal_ms)
    print(line, flush=True)
    check(p99 < MISSED * goal_ms, "%s: p99 is %.1f ms, ten times the goal" % (what, p99))
    return "%s p50/p99 %.2f/%.2f ms" % (what, p50, p99)


class Member:
    """Node 3 without an agent: its key, a hello, and whatever votes the test wants."""

    def __init__(self, agent, key, cluster_id, revision):
        self.context = zmq.Context()
        self.socket = self.context.socket(zmq.DEALER)
        self.socket.linger = 0
        self.socket.curve_serverkey = agent.key.public_z85
        self.socket.curve_publickey, self.socket.curve_secretkey = key.public_z85, key.secret_z85
        self.socket.connect("tcp://%s:%d" % (agent.address, agent.mesh_port))
        self.revision, self.sequence = revision, 0
        hello = jury_client.message("jury.internal.Hello", {
            "node_id": 3, "epoch": 1, "revision": revision, "version_min": 1, "version_max": 1,
            "feature_level": 1, "is_observer": True})
        hello.cluster_id = cluster_id
        self.send(HELLO, hello)

    def send(self, kind, message):
        self.socket.send(b"JM" + bytes([1, kind]) + message.SerializeToString())

    def vote(self, opinion):
        """Slot 0, born with the group."""
        self.sequence += 1
        self.send(CHANGE, jury_client.message("jury.internal.VoteChange", {
            "epoch": 1, "sequence": self.sequence, "opinion": opinion, "streak": 1,
            "target": {"slot": 0, "birth": self.revision},
            "reason": REASON_OK if opinion == PASS else REASON_FAILED}))

    def close(self):
        self.context.destroy(linger=0)


def deciding_vote(options):
    with Cluster(options) as cluster:
        agents = [cluster.agents[1], cluster.agents[2]]
        cluster.start(order=[1, 2])
        agents[0].call("ClusterService/InitCluster", cluster.init_request(), timeout=30)
        cluster.wait_ready([1, 2])
        backend, other = cluster.backend("b1"), cluster.backend("b2")
        first, second = sorted([backend, other], key=lambda b: b.port)
        revision = cluster.apply([tcp_group("web", [first, second], rule="any")], by=1).revision
        cluster.wait_verdicts("web", {first: "healthy", second: "healthy"}, nodes=[1, 2])
        member = Member(agents[0], cluster.agents[3].key,
                        bytes.fromhex(agents[0].status().cluster_id), revision)
        wait_until("node 3 is heard", 20, lambda: agents[0].status().n_fresh >= 2)
        table = Table(agents[0])
        latencies, words = [], []
        for i in range(options.votes + 1):
            before = table.words()
            start = time.monotonic()
            member.vote(FAIL if i % 2 == 0 else PASS)
            end = watch("the vote is in the table", [table], [before])[0]
            time.sleep(random.uniform(0.005, 0.015))  # so that all words of the change are there
            if i > 0:  # the first waited for the connection
                latencies.append(1000 * (end - start))
                words.append(n_words_changed(before, table.words()))
        check(table.has_its_files(), "a verdict made a new layout or state file")
        check(1 <= min(words) and max(words) <= WORDS_MAX,
              "a change of one verdict wrote %d to %d words" % (min(words), max(words)))
        print("%d changes of a verdict: no layout, %d to %d words each" % (
            len(words), min(words), max(words)))
        member.close()
        return tell("deciding vote to word", latencies, VOTE_GOAL_MS)


def serve(listener, ill, moment):
    """A backend that answers 500 to the address number `ill`; tells when it first did what is new."""
    served = ill.value
    while True:
        connection, (address, _) = listener.accept()
        with connection:
            try:
                connection.recv(4096)
                number = int(address.rsplit(".", 1)[1])
                wanted = ill.value
                status = 500 if number == wanted else 200
                connection.sendall(b"HTTP/1.1 %d X\r\nContent-Length: 0\r\n\r\n" % status)
                if wanted != served and number in (wanted, served):
                    served, moment.value = wanted, time.monotonic()
            except OSError:
                pass  # the next probe will do


def change_at_one_node(options):
    with Cluster(options) as cluster:
        for agent in cluster.agents.values():
            agent.options += ["--probe-source", agent.address]
        cluster.make()
        ill, moment = multiprocessing.Value("i", 0), multiprocessing.Value("d", 0)
        listener = socket.create_server((cluster.address(9), 0), backlog=128)
        server = multiprocessing.Process(target=serve, args=(listener, ill, moment), daemon=True)
        server.start()
        backend = Backend("judged", listener.getsockname()[0], listener.getsockname()[1])
        other = cluster.backend("other", address=cluster.address(8),
                                port=free_port(cluster.address(8)))
        cluster.apply([tcp_group("web", [backend, other], rule="any", type="CHECK_TYPE_HTTP",
                                 interval="0.2s", healthy_threshold=1, unhealthy_threshold=1)])
        states = {backend: "healthy", other: "healthy"}
        cluster.wait_verdicts("web", states)
        tables = [Table(agent) for agent in cluster.agents.values()]
        latencies = []
        for i in range(options.changes):
            before = [table.words() for table in tables]
            moment.value = 0
            ill.value = 1 + i // 2 % 3 if i % 2 == 0 else 0
            ends = watch("a change is in all tables", tables, before)
            wait_until("the backend tells", 10, lambda: moment.value, interval=0.001)
            latencies.append(1000 * (max(ends) - moment.value))
            time.sleep(random.uniform(0.01, 0.1))  # anywhere in the interval of a vote
        server.kill()
        return tell("change to verdict at all three", latencies, ALL_GOAL_MS)


def test(options):
    print("%s; %s" % (deciding_vote(options), change_at_one_node(options)))


if __name__ == "__main__":
    run(test, votes=300, changes=60)
