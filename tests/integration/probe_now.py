#!/usr/bin/python3
"""`nodectl probe` on three real agents, each a host of its own, against real backends: one that answers,
a closed port, one that a firewall keeps silent, HTTP 503, a closed UDP port, lines, IPv6, a check port
that is not the backend's. One node lacks CAP_NET_RAW, and the own list of another forbids some. Every step
is told, from each node; nothing of it counts in a streak, vote or verdict; nobody waits for it; and there
are never more of them than the limits say. Row 3.8. Needs root.
"""
# twin: probe-now-counts it counts
# twin: probe-now-often exit 10 was expected
import contextlib
import os
import socket
import ssl
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from cluster import Backend, KeyPair, check, run, wait_until  # noqa: E402
from ctl import ask, expect, here, over  # noqa: E402
from lan import NET, Lan, LanCluster  # noqa: E402
from tls_servers import Authority  # noqa: E402

HOSTS = {"a": 1, "b": 2, "c": 3, "web": 11, "mute": 12}
NODES = {1: "a", 2: "b", 3: "c"}
WITHOUT_RIGHTS, STRICT = 2, 3
NO_RIGHTS = ["setpriv", "--bounding-set=-net_raw", "--inh-caps=-net_raw"]
WEB, MUTE, WEB6 = NET + ".11", NET + ".12", "fd23:7::11"
HTTP, BROKEN, CLOSED, LINE, DNS, SEALED = 8080, 8081, 8082, 2500, 5300, 8443
SYN, AGAIN, SYN_ACK, ACK = "SYN_SENT", "SYN_REPEATED", "SYN_ACK_RECEIVED", "ACK_SENT"
RST_IN, RST, FIN_IN, FIN = "RST_RECEIVED", "RST_SENT", "FIN_RECEIVED", "FIN_SENT"
OUT, IN, OVER, SECURED = "DATA_SENT", "DATA_RECEIVED", "DEADLINE", "TLS_ESTABLISHED"

GROUP = """---
apiVersion: jury/v1
kind: Group
metadata: {name: %s}
spec:
  profile: nlb
  rule: majority
  protocol: %s
  check: {%s}
  backends: [%s]
"""
# name, protocol, check, backends
GROUPS = [
    ("page", "tcp", "type: http, timeout: 3s, interval: 60s", [(WEB, HTTP), (WEB, BROKEN)]),
    ("full", "tcp", "type: tcp, timeout: 1500ms, interval: 60s",
     [(WEB, HTTP), (WEB, CLOSED), (MUTE, HTTP)]),
    ("half", "tcp", "type: tcp, timeout: 1500ms, interval: 60s, tcp: {handshake: half-open}",
     [(WEB, HTTP), (WEB, CLOSED), (MUTE, HTTP)]),
    ("line", "tcp", 'type: tcp, timeout: 3s, interval: 60s, tcp: {send: "PING\\r\\n", expect: "+"}',
     [(WEB, LINE)]),
    ("seal", "tcp", "type: tls, timeout: 3s, interval: 60s", [(WEB, SEALED)]),
    ("side", "tcp", "type: tcp, port: %d, timeout: 3s, interval: 60s" % HTTP, [(WEB, 9999)]),
    ("open", "udp", "type: udp, timeout: 1500ms, interval: 60s, udp: {method: port}",
     [(WEB, CLOSED), (MUTE, DNS)]),
    ("echo", "udp", "type: udp, timeout: 1500ms, interval: 60s", [(WEB, DNS)]),
    ("says", "udp", "type: udp, timeout: 1500ms, interval: 60s, udp: {method: exchange, "
                    "payload: ask, expect: told}", [(WEB, DNS)]),
    ("six", "tcp", "type: tcp, timeout: 3s, interval: 60s, tcp: {handshake: half-open}",
     [(WEB6, HTTP), (WEB6, CLOSED)]),
    ("page6", "tcp", "type: http, timeout: 3s, interval: 60s", [(WEB6, HTTP)]),
]
VIEWER = """
apiVersion: jury/v1
kind: Key
metadata: {name: looker}
spec: {key: %s, role: viewer}
"""


def at(address, port):
    return ("[%s]:%d" if ":" in address else "%s:%d") % (address, port)


def documents():
    return "".join(GROUP % (name, protocol, words, ", ".join(
        "{at: \"%s\"}" % at(*one) for one in backends)) for name, protocol, words, backends in GROUPS)


# --- backends ---

def serve_lines(listener):
    while True:
        connection, _ = listener.accept()
        with connection, contextlib.suppress(OSError):
            if connection.recv(64) == b"PING\r\n":
                connection.sendall(b"+PONG\r\n")
                connection.recv(64)


def serve_sealed(listener, folder):
    authority = Authority(folder)
    authority.make("web")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority.path("web.pem"), authority.path("web.key"))
    while True:
        connection, _ = listener.accept()
        with connection, contextlib.suppress(OSError), \
                context.wrap_socket(connection, server_side=True) as inside:
            inside.recv(64)


def serve_datagrams(server):
    while True:
        data, peer = server.recvfrom(512)
        if data == b"ask":
            server.sendto(b"told you", peer)


def start_backends(cluster, lan):
    cluster.lan_backend("ok", "web", HTTP)
    cluster.lan_backend("broken", "web", BROKEN, status=503)
    with lan.inside("web"):
        lines = socket.create_server((WEB, LINE))
        sealed = socket.create_server((WEB, SEALED))
        datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        datagrams.bind((WEB, DNS))
    threading.Thread(target=serve_lines, args=(lines,), daemon=True).start()
    threading.Thread(target=serve_sealed, args=(sealed, cluster.dir), daemon=True).start()
    threading.Thread(target=serve_datagrams, args=(datagrams,), daemon=True).start()
    six = Backend("six", WEB6, HTTP)
    with lan.inside("web"):
        six.start()
    cluster.backends.append(six)
    lan.filter("mute", {"in": ["ip protocol tcp drop", "ip protocol udp drop"]})


# --- what is told ---

def kinds(probe):
    return [step["kind"].removeprefix("PROBE_STEP_KIND_") for step in probe.get("steps", [])]


def seconds(text):
    return float(text.rstrip("s"))


def patiently(cluster, words):
    """Once the pause between two probes of one backend is over, on every node; and again when a node
    says that it was too slow itself, which a busy machine can be."""
    last = []

    def is_over():
        last.append(ask(cluster, ["probe"] + words))
        said = last[-1].out + last[-1].err
        return "on demand less than" not in said and "LOCAL_LATE" not in said

    # Further apart than the pause of each node: who asks sooner hears busy from one of them each time.
    wait_until("the pause is over", 60, is_over, interval=1.2)
    return last[-1]


def probe_once(cluster, words, status):
    """What people read, and the probes as JSON, of two probes."""
    plain, answer = patiently(cluster, words), patiently(cluster, words + ["-o", "json"])
    for one in (plain, answer):
        check(one.status == status, "exit %d was expected of %s" % (status, one))
    return plain, answer.json["probes"]


def waited_for_fin(probe):
    """The backend was slow to close: after 100 ms the connection is reset."""
    times = [seconds(step["at"]) for step in probe["steps"]]
    return times[-1] - times[-2] >= 0.1


def check_probe(probe, wanted):
    where = "node %s of %s: %s" % (probe["nodeId"], wanted, probe)
    check(probe.get("reason") == "PROBE_REASON_" + wanted["reason"], "another reason: " + where)
    told = kinds(probe)
    if SECURED in wanted["steps"]:  # how many records there are is OpenSSL's to say
        told = [kind for i, kind in enumerate(told)
                if kind not in (OUT, IN, FIN_IN, RST_IN) or kind in wanted["steps"] and
                kind not in told[:i]]
    if told[-1:] == [RST] and wanted["steps"][-1:] == [FIN] and waited_for_fin(probe):
        told = told[:-1] + [kind for kind in (FIN_IN, FIN) if kind in wanted["steps"]]
    check(told == wanted["steps"], "other steps: %s: %s" % (told, where))
    check((probe["address"], probe["port"]) == wanted["at"], "probed elsewhere: " + where)
    check(probe["kind"] == wanted["kind"], "another kind: " + where)
    check(probe.get("engine", "") == wanted["engine"], "another engine: " + where)
    times = [seconds(step["at"]) for step in probe.get("steps", [])]
    check(times == sorted(times), "steps out of order: " + where)
    if wanted["steps"]:
        last = NODES[int(probe["nodeId"])]
        check(probe["sourceAddress"].endswith("%d" % HOSTS[last]) and probe["sourcePort"] > 0,
              "another source: " + where)
    if OVER in wanted["steps"]:
        early = min(seconds(step["at"]) for step in probe["steps"] if step["kind"].endswith(OVER))
        check(early >= seconds(probe["timeout"]), "over before the timeout: " + where)
    for text in wanted.get("says", []):
        check(any(text in step.get("text", "") for step in probe["steps"]),
              "%s is not said: %s" % (text, where))


def wanted(reason, place, kind, engine, steps, *says):
    return {"reason": reason, "at": place, "kind": kind, "engine": engine, "steps": steps,
            "says": says}


def rows():
    """group, backend, what each node with rights is to tell; the exit status follows."""
    full, half = ("tcp-full", "connect"), ("tcp-half-open", "packet")
    return [
        ("page", (WEB, HTTP), wanted("OK", (WEB, HTTP), "http", "connect",
                                     [SYN, SYN_ACK, OUT, IN, FIN_IN, FIN],
                                     "GET / HTTP/1.0", "HTTP/1.1 200")),
        ("page", (WEB, BROKEN), wanted("HTTP_CODE_NOT_MATCH", (WEB, BROKEN), "http", "connect",
                                       [SYN, SYN_ACK, OUT, IN, FIN_IN, FIN], "HTTP/1.1 503")),
        ("full", (WEB, HTTP), wanted("OK", (WEB, HTTP), *full, [SYN, SYN_ACK, ACK, RST])),
        ("full", (WEB, CLOSED), wanted("CONNECT_FAILED", (WEB, CLOSED), *full, [SYN, RST_IN])),
        ("full", (MUTE, HTTP), wanted("CONNECT_TIMEOUT", (MUTE, HTTP), *full,
                                      [SYN, AGAIN, OVER, RST])),
        ("half", (WEB, HTTP), wanted("OK", (WEB, HTTP), *half, [SYN, SYN_ACK, RST])),
        ("half", (WEB, CLOSED), wanted("CONNECT_FAILED", (WEB, CLOSED), *half, [SYN, RST_IN])),
        ("half", (MUTE, HTTP), wanted("CONNECT_TIMEOUT", (MUTE, HTTP), *half,
                                      [SYN, AGAIN, OVER, RST])),
        ("line", (WEB, LINE), wanted("OK", (WEB, LINE), *full, [SYN, SYN_ACK, OUT, IN, RST],
                                     "PING", "+PONG")),
        ("seal", (WEB, SEALED), wanted("OK", (WEB, SEALED), "tls", "connect",
                                       [SYN, SYN_ACK, OUT, IN, SECURED, FIN])),
        ("side", (WEB, 9999), wanted("OK", (WEB, HTTP), *full, [SYN, SYN_ACK, ACK, RST])),
        ("open", (WEB, CLOSED), wanted("PORT_UNREACHABLE", (WEB, CLOSED), "udp-port", "udp",
                                       ["DATAGRAM_SENT", "ICMP_ERROR"], "port unreachable")),
        ("open", (MUTE, DNS), wanted("SILENT", (MUTE, DNS), "udp-port", "udp",
                                     ["DATAGRAM_SENT", OVER])),
        ("echo", (WEB, DNS), wanted("ECHO", (WEB, DNS), "udp-port-echo", "udp",
                                    ["DATAGRAM_SENT", "ECHO_SENT", "ECHO_RECEIVED", OVER])),
        ("says", (WEB, DNS), wanted("OK", (WEB, DNS), "udp-exchange", "udp",
                                    ["DATAGRAM_SENT", "DATAGRAM_RECEIVED"], "ask", "told you")),
        ("six", (WEB6, HTTP), wanted("OK", (WEB6, HTTP), *half, [SYN, SYN_ACK, RST])),
        ("six", (WEB6, CLOSED), wanted("CONNECT_FAILED", (WEB6, CLOSED), *half, [SYN, RST_IN])),
        ("page6", (WEB6, HTTP), wanted("OK", (WEB6, HTTP), "http", "connect",
                                       [SYN, SYN_ACK, OUT, IN, FIN_IN, FIN])),
    ]


def seen_from(node, row):
    """A node without the rights for a kind, or whose own list forbids the address, sends nothing."""
    if node == STRICT and row["at"][0] == MUTE:
        return dict(row, reason="LOCAL_FORBIDDEN", engine="", steps=[], says=[])
    if node == WITHOUT_RIGHTS and row["kind"] in ("tcp-half-open", "udp-port-echo"):
        return dict(row, reason="LOCAL_NO_PERMISSION", steps=[], says=[],
                    engine="udp" if row["kind"] == "udp-port-echo" else "")
    if node == WITHOUT_RIGHTS and row["kind"] == "tcp-full" and OVER in row["steps"]:
        return dict(row, steps=[step for step in row["steps"] if step != RST])
    return row


def every_kind(cluster):
    asked = here(cluster.agents[1])
    n = 0
    for group, backend, row in rows():
        all_pass = all(seen_from(node, row)["reason"] in ("OK", "ECHO", "SILENT") for node in NODES)
        status = 0 if all_pass else 1
        plain, probes = probe_once(cluster, ["%s/%s" % (group, at(*backend)), "--all-nodes"] + asked,
                                   status)
        check([int(one["nodeId"]) for one in probes] == [1, 2, 3], "not all nodes: %s" % probes)
        for probe in probes:
            check_probe(probe, seen_from(int(probe["nodeId"]), row))
            n += 1
        if group in ("page", "half") and not all_pass:
            print(plain.out.rstrip())
    print("%d probes of %d kinds and fates, each told with its steps" % (n, len(rows())))


# --- it counts nowhere ---

def streaks(cluster, name):
    answer = ask(cluster, ["why", name, "-o", "json"] + here(cluster.agents[1]))
    check(answer.status == 0, str(answer))
    why = answer.json
    return why["verdict"]["state"], {one["nodeId"]: (one["opinion"], one["detail"].get("streak"))
                                     for one in why["votes"] if "detail" in one}


def counts_nowhere(cluster, lan):
    """Thresholds of one, and an interval in which nothing else happens."""
    once = GROUP % ("once", "tcp", "type: tcp, timeout: 2s, interval: 300s, healthyThreshold: 1, "
                                   "unhealthyThreshold: 1", "{at: \"%s\"}" % at(WEB, HTTP))
    expect(cluster, 0, ["apply", "-f", "-"] + here(cluster.agents[1]), text=once)
    name = "once/" + at(WEB, HTTP)
    wait_until("all three have a vote", 60, lambda: streaks(cluster, name) == (
        "HEALTH_STATE_HEALTHY", {str(i): ("OPINION_PASS", 1) for i in NODES}))
    before = streaks(cluster, name)
    probe_once(cluster, [name, "--all-nodes"] + here(cluster.agents[1]), 0)
    lan.filter("web", {"in": ["ip protocol tcp drop"]})
    _, probes = probe_once(cluster, [name, "--all-nodes"] + here(cluster.agents[1]), 1)
    check(all(one["reason"].endswith("CONNECT_TIMEOUT") for one in probes), str(probes))
    lan.unfilter("web")
    # A vote that had changed would be told at once, and with the next vector after that.
    deadline = time.monotonic() + 3
    while time.monotonic() < deadline:
        check(streaks(cluster, name) == before, "it counts: %s, before %s"
              % (streaks(cluster, name), before))
        time.sleep(0.2)
    print("12 probes on demand, 6 of them failed: votes and streaks are as before: %s" % (before,))


# --- its bounds ---

def bounds(cluster):
    agent = cluster.agents[1]
    many = GROUP % ("many", "tcp", "type: tcp, timeout: 3s, interval: 300s", ", ".join(
        "{at: \"%s\"}" % at(MUTE, 7000 + i) for i in range(6)))
    expect(cluster, 0, ["apply", "-f", "-"] + here(agent), text=many)
    name = "full/" + at(WEB, HTTP)
    # Whoever probed it last may have been here less than its pause ago.
    first = wait_until("that backend may be probed again", 20, lambda: next(
        (one for one in [ask(cluster, ["probe", name] + here(agent))] if one.status != 10), None))
    second = ask(cluster, ["probe", name, "-o", "json"] + here(agent))
    check(first.status == 0, str(first))
    check(second.status == 10 and second.error["reason"] == "BUSY",
          "exit 10 was expected of %s" % second)
    print("again at once: " + second.error["message"])

    answers = {}

    def one(i):
        answers[i] = ask(cluster, ["probe", "many/" + at(MUTE, 7000 + i), "-o", "json"] + here(agent))

    threads = [threading.Thread(target=one, args=(i,)) for i in range(6)]
    for thread in threads:
        thread.start()
    # Two are refused at once, so the four others are under way, for 3 s.
    wait_until("two of them are refused", 20, lambda: len(answers) == 2)
    start = time.monotonic()
    status = ask(cluster, ["status"] + here(agent))
    took = time.monotonic() - start
    check(status.status in (0, 1) and took < 2, "status took %.1f s beside probes: %s" % (took, status))
    for thread in threads:
        thread.join()
    busy = [one for one in answers.values() if one.status == 10]
    done = [one for one in answers.values() if one.status == 1]
    check(len(busy) == 2 and len(done) == 4, "not four at a time: %s"
          % [str(one) for one in answers.values()])
    print("of six at once four were made: %s; status took %.0f ms meanwhile"
          % (busy[0].error["message"], took * 1000))


def status_names_what_a_node_cannot_judge(cluster):
    """A node that judges nothing, or not all, called the cluster healthy."""
    for node, reason in ((WITHOUT_RIGHTS, "LOCAL_NO_PERMISSION"), (STRICT, "LOCAL_FORBIDDEN")):
        asked = here(cluster.agents[node])
        said = wait_until("node %d says that it judges not all" % node, 60, lambda asked=asked: next(
            (answer for answer in [ask(cluster, ["status"] + asked)]
             if "this node has no vote on " in answer.out), None))
        line = next(line for line in said.out.splitlines() if "this node has no vote on " in line)
        check(said.status == 1 and reason in line, "status of node %d: %s" % (node, said))
        told = ask(cluster, ["status", "-o", "json"] + asked)
        kinds = [finding["kind"] for finding in told.json["findings"]]
        check(told.status == 1 and "FINDING_KIND_NODE_BLIND" in kinds and
              told.json["health"] == "CLUSTER_HEALTH_DEGRADED", "as JSON: %s" % told)
        print(line.strip())


def errors(cluster):
    asked = here(cluster.agents[1])
    name = "full/" + at(WEB, HTTP)
    looker = KeyPair(os.path.join(cluster.dir, "looker.key"))
    expect(cluster, 0, ["apply", "-f", "-"] + asked, text=VIEWER % looker.public)
    there = {"prefix": cluster.lan.prefix("b")}
    expect(cluster, 0, ["group", "list"] + over(cluster.agents[2], looker), **there)
    for status, words, more in [(7, ["probe", "nope/" + at(WEB, HTTP)] + asked, {}),
                                (7, ["probe", "full/" + at(WEB, 1)] + asked, {}),
                                (7, ["probe", name, "--from", "9"] + asked, {}),
                                (2, ["probe", name, "--from", "x"] + asked, {}),
                                (2, ["probe", name, "--from", "1", "--all-nodes"] + asked, {}),
                                (3, ["probe", name, "--timeout", "1s"] + asked, {}),
                                (6, ["probe", name] + over(cluster.agents[2], looker), there)]:
        plain, _ = expect(cluster, status, words, **more)
        print("exit %d: %s" % (status, plain.err.strip().split("\n")[0]))
    cluster.agents[3].stop()
    wait_until("node 3 is missing in the answer, and named", 60, lambda: any(
        "error" in one for one in probe_once(
            cluster, [name, "--all-nodes"] + asked, 1)[1]))
    answer = ask(cluster, ["probe", name, "--from", "3", "-o", "json"] + asked)
    check(answer.status in (4, 5), "a node that is away was asked: %s" % answer)
    print("a node that is away: " + answer.error["message"])


def hears_all(cluster, agent):
    """Which it may without being healthy: one of them cannot make all kinds of probes."""
    answer = ask(cluster, ["node", "describe", "-o", "json"] + here(agent))
    return answer.status == 0 and all("helloAge" in peer for peer in answer.json["peers"])


def test(options):
    lan = Lan(HOSTS)
    for host, number in HOSTS.items():
        subprocess.run(lan.prefix(host) + ["ip", "address", "add", "fd23:7::%d/64" % number, "dev",
                                           "eth0", "nodad"], check=True)
    with LanCluster(options, lan, NODES) as cluster:
        cluster.agents[WITHOUT_RIGHTS].prefix = lan.prefix("b") + NO_RIGHTS
        cluster.agents[STRICT].options = ["--allow", WEB + "/32", "--allow", WEB6 + "/128"]
        start_backends(cluster, lan)
        cluster.make()
        expect(cluster, 0, ["apply", "-f", "-"] + here(cluster.agents[1]), text=documents())
        for agent in cluster.agents.values():
            wait_until("node %d hears the others" % agent.id, 60,
                       lambda agent=agent: hears_all(cluster, agent))
        status_names_what_a_node_cannot_judge(cluster)
        every_kind(cluster)
        counts_nowhere(cluster, lan)
        bounds(cluster)
        errors(cluster)


run(test)
