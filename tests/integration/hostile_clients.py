#!/usr/bin/python3
"""Strangers, liars and noise on real sockets against a running cluster (row 1.5).

Each kind is refused, counted by its reason and logged once; meanwhile the cluster keeps its leader,
its votes and its verdicts.
"""
# twin: mesh-trust-text was believed
import os
import socket
import struct
import sys

import zmq

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import jury_client  # noqa: E402
from cluster import Cluster, KeyPair, check, run, tcp_group, wait_until  # noqa: E402

MAJOR, HELLO = 1, 1
TRIES = 5  # of each kind: one line in the log all the same


def peer_frame(kind, message):
    return b"JM" + bytes([MAJOR, kind]) + message.SerializeToString()


class Hostile:
    """A bare client of one agent's mesh or Raft port."""

    def __init__(self, context, agent, port, key=None, server=None):
        self.socket = context.socket(zmq.DEALER)
        self.socket.linger = 0
        self.socket.reconnect_ivl = 100
        if key is not None:
            self.socket.curve_serverkey = (server or agent.key).public_z85
            self.socket.curve_publickey = key.public_z85
            self.socket.curve_secretkey = key.secret_z85
        self.socket.connect("tcp://%s:%d" % (agent.address, port))

    def send(self, *frames):
        self.socket.send_multipart(list(frames))

    def close(self):
        self.socket.close()


def raw(agent, port, data, until_closed=False):
    with socket.create_connection((agent.address, port), timeout=20) as connection:
        connection.sendall(data)
        try:
            while until_closed and connection.recv(4096):
                pass
        except ConnectionResetError:
            pass


def refused(agent, reason):
    return agent.counters().get("refused_" + reason, 0)


def expect_refused(agent, reason, act, at_least=1):
    """Runs act until the counter has moved, and checks that the log has one line for it."""
    before = refused(agent, reason)
    act()
    wait_until("%s counts %s" % (agent.name, reason), 20,
               lambda: refused(agent, reason) >= before + at_least)
    lines = agent.count(["event=refused", "reason=%s " % reason])
    check(lines == 1, "%s logged %d lines of reason %s, not one" % (agent.name, lines, reason))
    print("%-18s counted %d times, logged once" % (reason, refused(agent, reason) - before))


def strangers(context, agent):
    stranger = KeyPair()
    other = KeyPair()
    for port in (agent.mesh_port, agent.raft_port):
        clients = []

        def unknown_key(port=port, clients=clients):
            for _ in range(TRIES):
                clients.append(Hostile(context, agent, port, stranger))
        expect_refused(agent, "unknown_key", unknown_key, at_least=TRIES)
        for client in clients:
            client.close()

    clients = []

    # A client without a key sees that as well; if it hangs up first, it is one that gave up.
    for port in (agent.mesh_port, agent.raft_port):
        def no_key(port=port):
            before = refused(agent, "no_key")

            def knock():
                clients.append(Hostile(context, agent, port))
                return refused(agent, "no_key") > before
            wait_until("a client without a key is noticed", 20, knock, interval=0.1)
        expect_refused(agent, "no_key", no_key)

    def wrong_server_key():
        clients.append(Hostile(context, agent, agent.mesh_port, stranger, server=other))
    expect_refused(agent, "wrong_server_key", wrong_server_key)
    for client in clients:
        client.close()
    check(refused(agent, "garbage") == 0, "clients that speak ZMTP were counted as garbage")


def noise(agent):
    def http():
        for port in [agent.mesh_port, agent.raft_port] * TRIES:
            raw(agent, port, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", until_closed=True)
    expect_refused(agent, "garbage", http, at_least=2 * TRIES)

    def curve_garbage():
        greeting = b"\xff" + b"\0" * 7 + b"\1\x7f\3\0CURVE" + b"\0" * 15 + b"\0" + b"\0" * 31
        raw(agent, agent.mesh_port, greeting + b"\4\xff" + os.urandom(255), until_closed=True)
    expect_refused(agent, "garbage", curve_garbage)

    def silence():
        raw(agent, agent.mesh_port, b"", until_closed=True)
    expect_refused(agent, "silent", silence)

    def gone_at_once():
        raw(agent, agent.mesh_port, b"")
    expect_refused(agent, "gave_up", gone_at_once)


def liars(context, cluster, agent, thief):
    """A client with the key of a member, say a stolen one."""
    pb = jury_client.message
    cluster_id = bytes.fromhex(agent.status().cluster_id)
    client = Hostile(context, agent, agent.mesh_port, thief.key)
    other = next(a for a in cluster.agents.values() if a not in (agent, thief))
    truth = {"node_id": thief.id, "epoch": 1, "revision": 1, "version_min": 1, "version_max": 1,
             "feature_level": 1}

    def hello(of=cluster_id, **changes):
        message = pb("jury.internal.Hello", dict(truth, **changes))
        message.cluster_id = of
        return peer_frame(HELLO, message)

    def another_id():
        # Of a start that is yet to come: believed, it would silence the real node.
        client.send(hello(node_id=other.id, epoch=1 << 40))
    epochs = {m.node.node_id: m.epoch for m in agent.status().members}
    expect = "identity_differs"
    before = refused(agent, expect)
    for _ in range(TRIES):
        another_id()

    def is_counted_and_not_believed():
        now = {m.node.node_id: m.epoch for m in agent.status().members}
        check(now[other.id] == epochs[other.id],
              "node %d said that it is node %d and was believed" % (thief.id, other.id))
        return refused(agent, expect) >= before + TRIES
    wait_until("%s counts the lie" % agent.name, 10, is_counted_and_not_believed)
    check(agent.count(["event=refused", "reason=identity_differs "]) == 1,
          "%s did not log the lie once" % agent.name)
    print("%-18s counted %d times, logged once" % (expect, refused(agent, expect) - before))

    expect_refused(agent, "other_cluster",
                   lambda: client.send(hello(of=os.urandom(16))))
    expect_refused(agent, "version",
                   lambda: client.send(hello(version_min=7, version_max=9)))
    expect_refused(agent, "malformed", lambda: client.send(b"JM\1\2\xff\xff\xff\xff"))
    expect_refused(agent, "unknown_kind", lambda: client.send(b"JM\1\x63"))
    client.send(struct.pack("<I", 0) * 70000)  # 280 kB of nothing
    client.close()


def not_a_member(context, agent, cluster):
    """A key that may call is no node: what it sends is a call, and Raft does not let it in."""
    client = Hostile(context, agent, agent.raft_port, cluster.admin)
    expect_refused(agent, "wrong_role", lambda: None)
    client.close()


def test(options):
    context = zmq.Context()
    with Cluster(options) as cluster:
        cluster.make()
        b1, b2 = cluster.backend("b1"), cluster.backend("b2")
        cluster.apply([tcp_group("web", [b1, b2])])
        cluster.wait_verdicts("web", {b1: "healthy", b2: "healthy"})
        leader, agent = cluster.leader().id, cluster.agents[1]
        term = agent.status().store.term

        liars(context, cluster, agent, cluster.agents[3])
        strangers(context, agent)
        noise(agent)
        not_a_member(context, agent, cluster)

        wait_until("all votes fresh", 10, lambda: agent.status().n_fresh == 3)
        cluster.wait_verdicts("web", {b1: "healthy", b2: "healthy"})
        check((cluster.leader().id, agent.status().store.term) == (leader, term),
              "the leader or term changed under attack")
        for one in cluster.agents.values():
            changes = one.count(["event=verdict_changed"]) - one.count(["from=initial"])
            check(changes == 0, "%s changed %d verdicts under attack" % (one.name, changes))
        b1.stop()
        cluster.wait_verdicts("web", {b1: "unhealthy", b2: "healthy"})
    context.destroy(linger=0)


run(test)
