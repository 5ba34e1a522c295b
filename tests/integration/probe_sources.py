#!/usr/bin/python3
"""Where probes come from: each node's `probeSources`, by family, and else what its routes choose; S32, S90,
spec.md 3 "probe source". Three agents, each a host of its own: one probes from second addresses, one
from an address that it has not, one from its own. The backends see just these, of each kind of probe;
`node describe` lists them; a change is followed at once. Needs root.
"""
# shows: S32 S90
# twin: probe-source-ignored from another address
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
WEB, WEB6, PORT = NET + ".11", "fd23:7::11", 8080
SECOND, SECOND6 = NET + ".101", "fd23:7::101"  # of host a, beside its first
NOWHERE = NET + ".102"
SOURCES = {1: [SECOND, SECOND6], 2: [NOWHERE], 3: []}
GROUP = """---
apiVersion: jury/v1
kind: Group
metadata: {name: %s}
spec:
  profile: nlb
  protocol: %s
  check: {%s, timeout: 2s, interval: 1s}
  backends: [{at: "%s"}]
"""
KINDS = {"full": ("tcp", "type: tcp", WEB), "half": ("tcp", "type: tcp, tcp: {handshake: half-open}", WEB),
         "says": ("udp", "type: udp, udp: {method: exchange, payload: ask, expect: told}", WEB),
         "full6": ("tcp", "type: tcp", WEB6),
         "half6": ("tcp", "type: tcp, tcp: {handshake: half-open}", WEB6)}


def at(address):
    return ("[%s]:%d" if ":" in address else "%s:%d") % (address, PORT)


class Seen:
    """The addresses from which a backend was reached."""

    def __init__(self, lan):
        self.peers = set()
        with lan.inside("web"):
            for address in (WEB, WEB6):
                family = socket.AF_INET6 if ":" in address else socket.AF_INET
                listener = socket.create_server((address, PORT), family=family)
                threading.Thread(target=self.accept, args=(listener,), daemon=True).start()
            server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            server.bind((WEB, PORT))
        threading.Thread(target=self.answer, args=(server,), daemon=True).start()

    def accept(self, listener):
        while True:
            connection, peer = listener.accept()
            self.peers.add(peer[0])
            connection.close()

    def answer(self, server):
        while True:
            _, peer = server.recvfrom(512)
            self.peers.add(peer[0])
            server.sendto(b"told", peer)


class Sourced(LanCluster):
    def init_request(self, vote_interval="1s"):
        request = super().init_request(vote_interval)
        for member in request["members"]:
            member["probe_sources"] = SOURCES[member["node_id"]]
        return request


def wanted(node, address):
    """The source of a node's probes; "" where there is none."""
    six = ":" in address
    for source in SOURCES[node]:
        if (":" in source) == six:
            return "" if source == NOWHERE else source
    return ("fd23:7::%d" if six else NET + ".%d") % HOSTS[NODES[node]]


def probes(cluster, name):
    """One of each node, and none that says of itself that it was asked too often, or too late."""
    found = []

    def is_good():
        answer = ask(cluster, ["probe", name, "--all-nodes", "-o", "json"] + here(cluster.agents[1]))
        found[:] = answer.json["probes"] if answer.status in (0, 1) else []
        return len(found) == 3 and not any(
            "error" in one or one["reason"].endswith("LOCAL_LATE") for one in found)

    # Further apart than the pause of each node: who asks sooner hears busy from one of them each time.
    wait_until("each node probes " + name, 60, is_good, interval=1.2)
    return found


def each_kind(cluster):
    for kind, (_, _, address) in KINDS.items():
        for probe in probes(cluster, "%s/%s" % (kind, at(address))):
            node = int(probe["nodeId"])
            source = wanted(node, address)
            check(probe.get("sourceAddress", "") == source,
                  "from another address than %s: %s" % (source, probe))
            check(probe["reason"] == "PROBE_REASON_" + ("OK" if source else "LOCAL_SOURCE_MISSING"),
                  "another reason: %s" % probe)
    print("%s: each from the source of its family; an address that node 2 has not is "
          "LOCAL_SOURCE_MISSING" % ", ".join(KINDS))


def described(cluster, node):
    answer = ask(cluster, ["node", "describe", "-o", "json"] + here(cluster.agents[node]))
    check(answer.status == 0, str(answer))
    return ({one["address"]: one["nTargets"] for one in answer.json.get("probeSources", [])},
            answer.json.get("nTargetsWithoutSource", 0))


def test(options):
    lan = Lan(HOSTS)
    extra = {host: ["fd23:7::%d/64" % number] for host, number in HOSTS.items()}
    extra["a"] += [SECOND + "/24", SECOND6 + "/64"]
    for host, addresses in extra.items():
        for address in addresses:
            subprocess.run(lan.prefix(host) + ["ip", "address", "add", address, "dev", "eth0"]
                           + (["nodad"] if ":" in address else []), check=True)
    with Sourced(options, lan, NODES) as cluster:
        seen = Seen(lan)
        cluster.make()
        expect(cluster, 0, ["apply", "-f", "-"] + here(cluster.agents[1]), text="".join(
            GROUP % (kind, protocol, words, at(address))
            for kind, (protocol, words, address) in KINDS.items()))
        each_kind(cluster)
        want = {SECOND, SECOND6, wanted(2, WEB6), wanted(3, WEB), wanted(3, WEB6)}
        wait_until("the backends are probed from %s" % sorted(want), 60, lambda: seen.peers >= want)
        check(seen.peers == want, "from another address: %s" % sorted(seen.peers - want))
        # Three IPv4 targets and two IPv6 ones.
        for node, sources in ((1, ({SECOND: 3, SECOND6: 2}, 0)), (2, ({wanted(2, WEB6): 2}, 3)),
                              (3, ({wanted(3, WEB): 3, wanted(3, WEB6): 2}, 0))):
            wait_until("node %d describes its sources" % node, 60,
                       lambda node=node, sources=sources: described(cluster, node) == sources)
        plain = ask(cluster, ["node", "describe"] + here(cluster.agents[2]))
        print("\n".join(line for line in plain.out.splitlines()
                        if "probe" in line or "firewall" in line))
        check("no probe can leave for 3 targets: LOCAL_SOURCE_MISSING" in plain.out, str(plain))

        agent = cluster.agents[2]
        SOURCES[2] = [agent.address]
        expect(cluster, 0, ["apply", "-f", "-"] + here(cluster.agents[1]),
               text=cluster.node_document(2, cluster.address(2)))
        wait_until("node 2 probes from the address that it has", 60,
                   lambda: agent.address in seen.peers)
        each_kind(cluster)
        print("a changed source is followed: node 2 probes from %s" % agent.address)


run(test)
