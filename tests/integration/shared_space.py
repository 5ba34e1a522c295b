#!/usr/bin/python3
"""Profile clb probes from 100.64.0.0/10 by itself (S32), and no other profile does (S90): three agents, each a
host of its own with an address in that range beside its ordinary one, and a backend that records where
packets come from and lets nothing but that range in to two of its ports. Groups that differ in nothing but
their profile share no probe; over IPv6 nothing is otherwise; `source` of a check says it by hand. An address that goes
is left, and told; one that comes is taken; what the operator names in `probeSources` wins. Needs root.
"""
# shows: S32 S90
# twin: shared-space-ignored probed from
import os
import socket
import subprocess
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from cluster import check, run, wait_until  # noqa: E402
from ctl import ask, expect, here  # noqa: E402
from lan import NET, Lan, LanCluster  # noqa: E402

HOSTS = {"a": 1, "b": 2, "c": 3, "web": 11}
NODES = {1: "a", 2: "b", 3: "c"}
WEB, WEB6 = NET + ".11", "fd23:7::11"
# The lowest is taken, whichever came first.
SHARED = {"a": ["100.64.0.1"], "b": ["100.127.255.254", "100.64.0.2"], "c": ["100.64.0.3"]}
OUTSIDE = {"a": ["100.63.255.255", "100.128.0.1"]}
FROM_SHARED = {"100.64.0.%d" % n for n in (1, 2, 3)}
FROM_NODE = {NET + ".%d" % n for n in (1, 2, 3)}
FROM_NODE6 = {"fd23:7::%d" % n for n in (1, 2, 3)}
TIMES = "timeout: 1s, interval: 500ms, healthyThreshold: 2, unhealthyThreshold: 2"
SAME = "type: tcp, tcp: {handshake: full, close: rst, onTimeout: rst}"
# Port: name, profile, protocol, what the check says, where it is probed from.
GROUPS = [
    (8001, "clb-tcp", "clb", "tcp", "", FROM_SHARED),
    (8002, "clb-http", "clb", "tcp", "type: http", FROM_SHARED),
    (8003, "clb-udp", "clb", "udp", "", FROM_SHARED),
    (8004, "clb-six", "clb", "tcp", "", FROM_NODE6),
    (8005, "nlb", "nlb", "tcp", "", FROM_NODE),
    (8006, "gwlb", "gwlb", "tcp", "port: 8006", FROM_NODE),
    (8007, "one", "nlb", "tcp", SAME, FROM_NODE | FROM_SHARED),
    (8007, "other", "clb", "tcp", SAME, FROM_NODE | FROM_SHARED),
    (8008, "nlb-shared", "nlb", "tcp", "source: 100.64.0.0/10", FROM_SHARED),
    (8009, "clb-node", "clb", "tcp", "source: node", FROM_NODE),
]
GUARDED = (8001, 8002)
GROUP = """---
apiVersion: jury/v1
kind: Group
metadata: {name: %s}
spec:
  profile: %s
  protocol: %s
  check: {%s}
  backends: [{at: "%s"}]
"""


def at(port):
    return "[%s]:%d" % (WEB6, port) if port == 8004 else "%s:%d" % (WEB, port)


class Web:
    """The backend: answers, and records the source of each packet that comes for one of its ports."""

    def __init__(self, lan):
        self.seen = {}
        with lan.inside("web"):
            for port in sorted({row[0] for row in GROUPS}):
                self.serve(WEB6 if port == 8004 else WEB, port)
            tap = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(3))
            tap.bind(("eth0", 3))
        threading.Thread(target=self.record, args=(tap,), daemon=True).start()

    def serve(self, address, port):
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        if port == 8003:
            server = socket.socket(family, socket.SOCK_DGRAM)
            server.bind((address, port))
            threading.Thread(target=self.answer, args=(server,), daemon=True).start()
            return
        listener = socket.create_server((address, port), family=family)
        threading.Thread(target=self.accept, args=(listener,), daemon=True).start()

    @staticmethod
    def answer(server):
        while True:
            _, peer = server.recvfrom(512)
            server.sendto(b"here", peer)

    @staticmethod
    def accept(listener):
        while True:
            try:
                connection, _ = listener.accept()
                connection.sendall(b"HTTP/1.0 200 OK\r\n\r\n")
                connection.close()
            except OSError:
                pass  # reset by the probe

    def record(self, tap):
        while True:
            packet, (_, protocol, kind, _, _) = tap.recvfrom(2048)
            if kind == socket.PACKET_OUTGOING:
                continue
            if protocol == 0x0800 and packet[9] in (6, 17):
                begin, source = (packet[0] & 15) * 4, socket.inet_ntop(socket.AF_INET, packet[12:16])
            elif protocol == 0x86dd and packet[6] in (6, 17):
                begin, source = 40, socket.inet_ntop(socket.AF_INET6, packet[8:24])
            else:
                continue
            self.seen.setdefault(int.from_bytes(packet[begin + 2:begin + 4], "big"), set()).add(source)

    def forget(self):
        self.seen = {}

    def comes_from(self, port, sources, what):
        """Until all of them came, and nothing else did."""
        wait_until("port %d (%s) is probed from %s" % (port, what, sorted(sources)), 30,
                   lambda: self.seen.get(port, set()) >= sources)
        check(self.seen[port] == sources, "port %d (%s) is probed from %s as well" % (
            port, what, sorted(self.seen[port] - sources)))


def address(lan, host, what, text):
    subprocess.run(lan.prefix(host) + ["ip", "address", what, text, "dev", "eth0"]
                   + (["nodad"] if ":" in text else []), check=True)


def make_lan():
    lan = Lan(HOSTS)
    for host, number in HOSTS.items():
        address(lan, host, "add", "fd23:7::%d/64" % number)
        for text in SHARED.get(host, []) + OUTSIDE.get(host, []):
            address(lan, host, "add", text + "/32")
    # Lower, but of a link that is down.
    for command in ("link add idle0 type bridge", "address add 100.64.0.0/32 dev idle0"):
        subprocess.run(lan.prefix("b") + ["ip", *command.split()], check=True)
    for network in ("100.64.0.0/10", "100.63.255.255/32", "100.128.0.1/32"):
        subprocess.run(lan.prefix("web") + ["ip", "route", "add", network, "dev", "eth0"], check=True)
    lan.filter("web", {"in": ["tcp dport %d ip saddr != 100.64.0.0/10 drop" % port for port in GUARDED]})
    return lan


def described(cluster, node):
    """Addresses with targets and those of them that ask for the range; whether it has none; the text."""
    words = ["node", "describe"] + here(cluster.agents[node])
    answer = ask(cluster, words + ["-o", "json"])
    check(answer.status == 0, str(answer))
    return ({one["address"]: (one["nTargets"], one.get("nSharedSpaceTargets", 0))
             for one in answer.json.get("probeSources", [])},
            answer.json.get("lacksSharedSpace", False), ask(cluster, words).out)


def describes(cluster, node, sources, lacks):
    wait_until("node %d describes %s" % (node, sources), 30,
               lambda: described(cluster, node)[:2] == (sources, lacks))
    text = described(cluster, node)[2]
    print("\n".join(line for line in text.splitlines() if "probes from" in line or "  " * 6 in line))
    check(("WARNING: no address in 100.64.0.0/10" in text) == lacks, text)


def told_lacking(cluster, node):
    answer = ask(cluster, ["node", "describe", "-o", "json"] + here(cluster.agents[node]))
    return {peer["nodeId"]: peer.get("lacksSharedSpace", False) for peer in answer.json["peers"]}


def apply(cluster, rows):
    """What it says on stderr."""
    answer = ask(cluster, ["apply", "-f", "-"] + here(cluster.agents[1]), text="".join(
        GROUP % (name, profile, protocol, ", ".join(filter(None, (words, TIMES))), at(port))
        for port, name, profile, protocol, words, _ in rows))
    check(answer.status == 0, str(answer))
    return answer.err


def test(options):
    lan = make_lan()
    with LanCluster(options, lan, NODES) as cluster:
        web = Web(lan)
        cluster.make()
        check("100.64" not in apply(cluster, GROUPS), "a warning though each node has such an address")
        for port, name, _, _, _, sources in GROUPS:
            web.comes_from(port, sources, name)
        for port, name, *_ in GROUPS[:2]:
            wait_until("%s is healthy" % name, 30, lambda name=name, port=port: all(
                agent.verdicts(name).get(at(port)) == "healthy" for agent in cluster.agents.values()))
        print("clb is probed from 100.64.0.0/10, and by that through the packet filter; nlb, gwlb and IPv6 as ever")
        now = ask(cluster, ["probe", "clb-tcp/" + at(8001), "-o", "json"] + here(cluster.agents[2]))
        check(now.json["probes"][0]["sourceAddress"] == "100.64.0.2", "a probe now: %s" % now)
        describes(cluster, 1, {"100.64.0.1": (5, 5), NET + ".1": (4, 0), "fd23:7::1": (1, 0)}, False)

        address(lan, "c", "del", "100.64.0.3/32")
        wait_until("node 1 hears that node 3 has none", 30,
                   lambda: told_lacking(cluster, 1) == {"2": False, "3": True})
        warning = apply(cluster, GROUPS[:1])
        print(warning.strip())
        check('warning: node 3 has no address in 100.64.0.0/10, which server group "clb-tcp" asks' in warning,
              "no such warning: " + warning)
        check("100.64" not in apply(cluster, [row for row in GROUPS if row[5] != FROM_SHARED and row[1] != "other"]),
              "a warning of groups that ask for none")
        describes(cluster, 3, {NET + ".3": (9, 5), "fd23:7::3": (1, 0)}, True)
        web.forget()
        web.comes_from(8003, {"100.64.0.1", "100.64.0.2", NET + ".3"}, "node 3 has none")
        address(lan, "c", "add", "100.100.0.3/32")
        describes(cluster, 3, {"100.100.0.3": (5, 5), NET + ".3": (4, 0), "fd23:7::3": (1, 0)}, False)

        expect(cluster, 0, ["apply", "-f", "-"] + here(cluster.agents[1]),
               text=cluster.node_document(2, cluster.address(2)))
        describes(cluster, 2, {NET + ".2": (9, 5), "fd23:7::2": (1, 0)}, False)
        web.forget()
        web.comes_from(8003, {"100.64.0.1", "100.100.0.3", NET + ".2"}, "node 2 is told another")


run(test)
