#!/usr/bin/python3
"""What a group's check puts on the wire by the defaults of its profile, from a document to the packets at the
backend's host: hand-typed flags, request lines, datagrams and ICMP messages, IPv4 and IPv6, always at the
port of the check, where that is not the backend's. One agent and one backend, each a host of its own.
Needs root.
"""
# shows: S2
# seconds: 12
# twin: packet-acks WRONG .*profile gwlb
# twin: connect-timeout-quiet gave up waiting for probes without an answer, IPv4, profile nlb
# twin: udp-icmp-ignored WRONG .*profile clb, closed.*SILENT
import os
import socket
import subprocess
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from cluster import check as demand, run, wait_until  # noqa: E402
from ctl import ask, here  # noqa: E402
from lan import NET, Lan, LanCluster  # noqa: E402
from prober import FAILURES, check  # noqa: E402
from wire import attempts, capture_at, check_shape  # noqa: E402

HOSTS = {"a": 1, "web": 11}
# family, the agent's address, the backend's
FAMILIES = (("IPv4", NET + ".1", NET + ".11"), ("IPv6", "fd23:7::1", "fd23:7::11"))
CLOSED = 1000  # the backend's own port, where nobody listens, is so much above that of the check
HALF_OPEN = "near S 0, far SA 1, near R 1"
FULL = "near S 0, far SA 1, near A 1, near RA 1"
# port of the check, profile, protocol, what is seen of each probe
TCP = ((7001, "gwlb", "geneve", HALF_OPEN), (7002, "clb", "tcp", HALF_OPEN), (7003, "nlb", "tcp", FULL),
       (7004, "nlb", "udp", FULL))
# Where a filter keeps the backend silent.
SILENT = ((7021, "gwlb", "geneve", "near S 0"), (7022, "clb", "tcp", "near S 0, near R 1"),
          (7023, "nlb", "tcp", "near S 0, near R 1"))
# A full handshake, and the quiet end: the prober's FIN, and no RST of anybody.
QUIET = (7011, "nlb")
# port of the check, profile, protocol, fields of the request, request line, Host; AT: the probed place
HTTP = (
    (7101, "gwlb", "geneve", "", "GET / HTTP/1.1", "AT"),
    (7102, "gwlb", "geneve", "path: /up, domain: a.example", "GET /up HTTP/1.1", "a.example"),
    (7103, "clb", "tcp", "", "HEAD / HTTP/1.0", None),
    (7104, "clb", "tcp", "method: GET, domain: b.example", "GET / HTTP/1.0", "b.example"),
    (7105, "nlb", "tcp", "path: /up", "GET /up HTTP/1.0", None),
    (7106, "nlb", "udp", "method: HEAD, path: /up, domain: c.example", "HEAD /up HTTP/1.0", "c.example"),
    (7107, "clb", "tcp_udp", "", "HEAD / HTTP/1.0", None),
)
# port of the check, profile, what it expects if not the profile's, the status that is answered (0: none at
# all), the reason
CODES = (
    (7201, "gwlb", "", 200, "OK"), (7202, "gwlb", "", 302, "HTTP_CODE_NOT_MATCH"),
    (7203, "gwlb", "", 0, "RECV_RESPONSE_TIMEOUT"),
    (7204, "gwlb", "302", 302, "OK"), (7205, "gwlb", "302", 200, "HTTP_CODE_NOT_MATCH"),
    (7211, "clb", "", 204, "OK"), (7212, "clb", "", 302, "OK"),
    *((7213 + at, "clb", "", status, "HTTP_CODE_NOT_MATCH")
      for at, status in enumerate((400, 403, 404, 429, 500, 502, 503))),
    (7220, "clb", "", 0, "RECV_RESPONSE_TIMEOUT"),
    (7221, "nlb", "", 200, "OK"), (7222, "nlb", "", 503, "HTTP_CODE_NOT_MATCH"),
    (7223, "nlb", "", 0, "RECV_RESPONSE_TIMEOUT"), (7224, "nlb", "503-504", 503, "OK"),
)
EXCHANGE = "udp: {method: exchange, payload: ask, expect: told}"
# port of the check, profile, fields, what is there, the reason, whether the host is asked for an echo
UDP = (
    (7301, "clb", "", "silent", "SILENT", False),
    (7302, "clb", "", "closed", "PORT_UNREACHABLE", False),
    (7303, "nlb", "type: udp", "silent", "ECHO", True),
    (7304, "nlb", "type: udp", "closed", "PORT_UNREACHABLE", True),
    (7305, "nlb", "type: udp, " + EXCHANGE, "told", "OK", False),
    (7306, "nlb", "type: udp, " + EXCHANGE, "tale", "RESPONSE_MISMATCH", False),
    (7307, "clb", EXCHANGE, "told", "OK", False),
    (7308, "clb", EXCHANGE, "silent", "RECV_RESPONSE_TIMEOUT", False),
)
PAYLOAD = "jury-healthcheck"  # that of the profiles
REFUSAL = {"IPv4": (3, 3), "IPv6": (1, 4)}
ECHO = {"IPv4": 8, "IPv6": 128}
GROUP = """---
apiVersion: jury/v1
kind: Group
metadata: {name: %s}
spec:
  profile: %s
  protocol: %s
  check: {%s, port: %d, timeout: %s, interval: 500ms}
  backends: [{at: "%s"}]
"""


class At:
    """A host as wire.capture_at wants it."""

    def __init__(self, lan, host):
        self.far, self.device = lan.namespace(host), "eth0"


def at(address, port):
    return ("[%s]:%d" if ":" in address else "%s:%d") % (address, port)


def name_of(family, port):
    return "%s-%d" % (family.lower(), port)


class Listener:
    """Keeps what it is asked on each connection, and whether it was over when the answer was read."""

    def __init__(self, lan, address, port, status):
        self.status, self.requests, self.n_accepted = status, [], 0
        with lan.inside("web"):
            family = socket.AF_INET6 if ":" in address else socket.AF_INET
            listener = socket.create_server((address, port), family=family, backlog=64)
        threading.Thread(target=self.accept, args=(listener,), daemon=True).start()

    def accept(self, listener):
        while True:
            connection, _ = listener.accept()
            self.n_accepted += 1
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection):
        asked = b""
        try:
            while b"\r\n\r\n" not in asked:
                data = connection.recv(4096)
                if not data:
                    return
                asked += data
            self.requests.append(asked.decode())
            if self.status:
                connection.sendall(b"HTTP/1.1 %d Any\r\nContent-Length: 0\r\n\r\n" % self.status)
            while connection.recv(4096):
                pass
        except OSError:
            pass
        finally:
            connection.close()


def udp_address(far, port):
    """One of each row: what is asked of a host, and the errors that it may send, are of an address."""
    return far[:-2] + str(port % 100 + 20)


def serve_udp(lan, address, port, there):
    with lan.inside("web"):
        server = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_DGRAM)
        server.bind((address, port))

    def serve():
        while True:
            _, peer = server.recvfrom(2048)
            if there != "silent":
                server.sendto(there.encode(), peer)

    threading.Thread(target=serve, daemon=True).start()


def groups():
    """Each row as a document, over both families."""
    rows = [(port, profile, protocol, "type: tcp", "3s") for port, profile, protocol, _ in TCP]
    rows += [(port, profile, protocol, "type: tcp", "300ms") for port, profile, protocol, _ in SILENT]
    rows.append((*QUIET, "tcp", "type: tcp, tcp: {close: fin}", "3s"))
    rows += [(port, profile, protocol, "type: http" + (", http: {%s}" % fields if fields else ""), "3s")
             for port, profile, protocol, fields, _, _ in HTTP]
    rows += [(port, profile, "tcp", "type: http" + (', http: {expect: "%s"}' % expect if expect else ""),
              "3s" if status else "300ms") for port, profile, expect, status, _ in CODES]
    texts = [GROUP % (name_of(family, port), profile, protocol, words, port, timeout,
                      at(far, port + CLOSED)) for family, _, far in FAMILIES
             for port, profile, protocol, words, timeout in rows]
    texts += [GROUP % (name_of(family, port), profile, "udp", words or "enabled: true", port, "300ms",
                       at(udp_address(far, port), port + CLOSED)) for family, _, far in FAMILIES
              for port, profile, words, *_ in UDP]
    return "".join(texts)


# shows: S3 S4 S6 S39 S40 S42 S92 S93 S95
def handshakes(capture, listeners):
    for family, near, far in FAMILIES:
        for port, profile, protocol, packets in TCP:
            what = "%s, profile %s, protocol %s" % (family, profile, protocol)
            capture.wait(lambda lines, port=port, near=near: sum(
                any(" R" in text for text, _ in found)
                for found in attempts(lines, port, near).values()) >= 2, "probes, " + what)
            check_shape(what, attempts(capture.lines, port, near), packets, 2)
            if packets == HALF_OPEN:
                check(listeners[far, port].n_accepted == 0, what + ": the application sees none")


# shows: S5 S41 S94
def timeouts(capture):
    for family, near, _ in FAMILIES:
        for port, profile, _, packets in SILENT:
            what = "without an answer, %s, profile %s" % (family, profile)
            capture.wait(lambda lines, port=port, near=near, packets=packets: sum(
                len(found) >= packets.count(",") + 1
                for found in attempts(lines, port, near).values()) >= 2, "probes " + what)
            check_shape(what, attempts(capture.lines, port, near), packets, 2)


# shows: S45 S46 S47 S48 S50 S98 S99
def datagrams(cluster, capture):
    """To the backend's address and the check's port; the echo of nlb alone; the refusal is its kernel's."""
    for family, near, far in FAMILIES:
        for port, profile, words, there, reason, has_echo in UDP:
            what, address = "%s, profile %s, %s" % (family, profile, there), udp_address(far, port)

            def icmp(kind, port=port, address=address):
                return [line for line in capture.lines if line.get("kind") == "icmp" and address in (
                    line["src"], line["dst"]) and (line["type"], line["quoted"]) == kind]

            payload = (PAYLOAD if EXCHANGE not in words else "ask").encode().hex()
            capture.wait(lambda lines, port=port, address=address: sum(
                line.get("dport") == port and line["dst"] == address for line in lines) >= 2, what)
            seen = wait_until("a probe, " + what, 60, lambda family=family, port=port, address=address:
                              reason_of(cluster, name_of(family, port), at(address, port + CLOSED)), interval=0.3)
            sent = {(line["src"], line["dport"], line["payload"]) for line in capture.lines
                    if line.get("kind") == "udp" and line["dst"] == address}
            refused, echoes = icmp((REFUSAL[family][0], port)), icmp((ECHO[family], None))
            check(seen == "PROBE_REASON_" + reason and sent == {(near, port, payload)} and
                  bool(refused) == (there == "closed") and bool(echoes) == has_echo and
                  {(line["src"], line["code"]) for line in refused} <= {(address, REFUSAL[family][1])},
                  "%s: %s; datagrams %s, refused %d times, %d echoes asked for" %
                  (what, seen, sorted(sent), len(refused), len(echoes)))


# shows: S7 S8 S25 S34 S35 S36 S100 S101 S107
def requests(listeners):
    """In the clear, to the backend's address, the check's port, path and name, with the profile's method."""
    for family, near, far in FAMILIES:
        for port, profile, protocol, fields, line, host in HTTP:
            what = "%s, profile %s, protocol %s, {%s}" % (family, profile, protocol, fields)
            listener = listeners[far, port]
            wait_until("requests, " + what, 60, lambda listener=listener: len(listener.requests) >= 2)
            lines = [request.split("\r\n") for request in list(listener.requests)]
            check({one[0] for one in lines} == {line}, "%s: %s" % (what, lines[0][0]))
            hosts = {tuple(text for text in one if text.lower().startswith("host:")) for one in lines}
            wanted = () if host is None else ("Host: " + host.replace("AT", at(far, port)),)
            check(hosts == {wanted}, "%s: %s" % (what, hosts))


# shows: S84
def each_connection_is_closed(capture, listeners):
    """By the prober's own segment, soon after the answer, before the next probe begins."""
    for family, near, far in FAMILIES:
        for port, profile, *_ in TCP + HTTP:
            probes = sorted(attempts(capture.lines, port, near).values(), key=lambda one: one[0][1]["time"])
            ended = [next((line["time"] for text, line in packets
                           if text.startswith("near") and ("F" in text or "R" in text)), None)
                     for packets in probes]
            begun = [packets[0][1]["time"] for packets in probes]
            check(len(probes) >= 2 and all(end is not None and end < start
                                           for end, start in zip(ended, begun[1:])),
                  "%s, profile %s, port %d: %d connections, each closed before the next" %
                  (family, profile, port, len(probes)))


# shows: S44 S97
def quiet_ends(capture):
    port, profile = QUIET
    for family, near, _ in FAMILIES:
        def whole(lines, near=near):
            return [texts for texts in ([text for text, _ in packets] for packets in
                                        attempts(lines, port, near).values()) if "near A 2" in texts]

        capture.wait(lambda lines: len(whole(lines)) >= 2, "quiet probes, " + family)
        seen = [text for packets in attempts(capture.lines, port, near).values() for text, _ in packets]
        check(all(texts[:3] == ["near S 0", "far SA 1", "near A 1"] and "near FA 1" in texts
                  for texts in whole(capture.lines)) and not any("R" in text for text in seen),
              "%s, profile %s, close fin: %d probes end by FIN, none by RST" %
              (family, profile, len(whole(capture.lines))))


def reason_of(cluster, group, backend):
    """Of a probe that is made now; the node may be asked again after a pause."""
    answer = ask(cluster, ["probe", "%s/%s" % (group, backend), "-o", "json"] + here(cluster.agents[1]))
    found = answer.json["probes"] if answer.status in (0, 1) else []
    reason = "" if not found or "error" in found[0] else found[0].get("reason", "")
    return "" if reason.endswith("LOCAL_LATE") else reason


# shows: S9 S10 S11 S37 S102
def statuses(cluster):
    for family, _, far in FAMILIES:
        for port, profile, expect, status, reason in CODES:
            what = "%s, profile %s, %s, status %d" % (family, profile, expect or "by default", status)
            seen = wait_until("a probe, " + what, 60, lambda port=port, far=far, family=family: reason_of(
                cluster, name_of(family, port), at(far, port + CLOSED)), interval=0.3)
            check(seen == "PROBE_REASON_" + reason, "%s: %s%s" % (what, seen,
                  ", a status that is not expected" if reason == "HTTP_CODE_NOT_MATCH" else ""))


def test(options):
    lan = Lan(HOSTS)
    for host, number in HOSTS.items():
        subprocess.run(lan.prefix(host) + ["ip", "address", "add", "fd23:7::%d/64" % number, "dev", "eth0",
                                           "nodad"], check=True)
    listeners = {(far, port): Listener(lan, far, port, status) for _, _, far in FAMILIES
                 for port, status in [(row[0], 200) for row in TCP + HTTP + (QUIET,)] + [
                     (row[0], row[3]) for row in CODES]}
    lan.filter("web", {"in": ["tcp dport %d drop" % row[0] for row in SILENT]})
    for limit in ("net.ipv4.icmp_ratelimit=0", "net.ipv6.icmp.ratelimit=0"):
        subprocess.run(lan.prefix("web") + ["sysctl", "-q", "-w", limit], check=True)
    for _, _, far in FAMILIES:
        for port, _, _, there, *_ in UDP:
            address = udp_address(far, port)
            subprocess.run(lan.prefix("web") + ["ip", "address", "add", address + ("/64" if ":" in far else "/24"),
                                                "dev", "eth0"] + ["nodad"] * (":" in far), check=True)
            if there != "closed":
                serve_udp(lan, address, port, there)
    with LanCluster(options, lan, {1: "a"}) as cluster:
        cluster.make()
        capture = capture_at(At(lan, "web"), "tcp_forger.py")
        udp_capture = capture_at(At(lan, "web"), "udp_forger.py")
        answer = ask(cluster, ["apply", "-f", "-"] + here(cluster.agents[1]), text=groups())
        demand(answer.status == 0, str(answer))
        handshakes(capture, listeners)
        timeouts(capture)
        datagrams(cluster, udp_capture)
        udp_capture.stop()
        requests(listeners)
        quiet_ends(capture)
        statuses(cluster)
        capture.stop()
        each_connection_is_closed(capture, listeners)
    demand(not FAILURES, "%d wrong" % len(FAILURES))


run(test)
