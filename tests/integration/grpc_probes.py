#!/usr/bin/python3
"""grpc checks on real sockets, over IPv4 and IPv6, in the clear and within TLS: the health service of
python3-grpcio, and servers that are wrong in HTTP/2, in gRPC, in the message, or hostile. Each probe has
one result, with the reason of the specification, by its deadline; bytes read and memory are bounded.
"""
# twin: grpc-serving does not serve
import os
import re
import shutil
import struct
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import grpc_servers as g  # noqa: E402
import tls_servers as tls  # noqa: E402
from prober import Prober, arguments, check, check_counts, finish, took  # noqa: E402

T, I, N = 2000, 100, 3
TOLERANCE = 0.5
LIMIT_BYTES = 65536
SERVICES = {"": g.SERVING, "shop.Orders": g.SERVING, "shop.Old": g.NOT_SERVING, "shop.New": 0}


def memory_kib(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        return int(re.search(r"VmRSS:\s*(\d+)", file.read()).group(1))


class Rows:
    def __init__(self, address):
        self.address, self.rows, self.servers = address, [], []

    def add(self, name, server, reason, number=0, at_once=True, **fields):
        if callable(server):
            server = tls.Odd(self.address, server)
        if server not in self.servers:
            self.servers.append(server)
        self.rows.append((name, server.to, reason, number, at_once, fields))

    def stop(self):
        for server in self.servers:
            server.stop()


def real_rows(rows, authority):
    server = g.Server(rows.address, SERVICES)
    secure = g.Server(rows.address, SERVICES, authority)
    other = g.Server(rows.address, None)
    within = {"within": "tls"}
    ca = {"within": "tls", "verify": "ca", "sni": tls.NAME}
    rows.add("serves", server, "OK")
    rows.add("a service", server, "OK", service="shop.Orders")
    rows.add("does not serve", server, "GRPC_NOT_SERVING", 2, service="shop.Old")
    rows.add("does not know yet", server, "GRPC_NOT_SERVING", 0, service="shop.New")
    rows.add("has no such service", server, "GRPC_STATUS", 5, service="shop.None")
    rows.add("has no health service", other, "GRPC_STATUS", 12)
    rows.add("within TLS", secure, "OK", **within)
    rows.add("within TLS, does not serve", secure, "GRPC_NOT_SERVING", 2, service="shop.Old",
             **within)
    rows.add("within TLS, verified", secure, "OK", **ca)
    rows.add("within TLS, another name", secure, "TLS_CERT_WRONG_NAME", within="tls", verify="ca",
             sni="other.test")
    rows.add("in the clear where TLS is", secure, "CONNECT_INTERRUPT")
    rows.add("TLS where there is none", server, "TLS_HANDSHAKE_FAILED", **within)
    rows.add("TLS without h2", tls.SServer(rows.address, authority.files("good")),
             "TLS_HANDSHAKE_FAILED", **within)
    return server


def wrong_rows(rows):
    """One answer each that is not what it should be; and the right one in odd pieces."""
    serving = g.health_reply(g.SERVING)
    ends_at_once = g.frame(g.HEADERS, g.END_HEADERS | g.END_STREAM, 1,
                           g.field(b":status", b"200") + g.field(b"grpc-status", b"7"))
    rows.add("by hand", g.says(g.GOOD), "OK")
    rows.add("each byte apart", g.says(g.GOOD, each=1), "OK")
    rows.add("unknown fields", g.says(g.head(), g.message(b"\x12\x03abc\x19" + bytes(8) + serving),
                                      g.trailer()), "OK")
    rows.add("an error at once", g.says(ends_at_once), "GRPC_STATUS", 7)
    rows.add("an HTTP error", g.says(g.frame(g.HEADERS, g.END_HEADERS | g.END_STREAM, 1,
                                             g.field(b":status", b"503"))),
             "HTTP_CODE_NOT_MATCH", 503)
    rows.add("an HTTP error, then garbage", g.says(g.head(b"503"), b"\xff" * 64), "HTTP_CODE_NOT_MATCH", 503)
    rows.add("no message", g.says(g.head(), g.trailer()), "GRPC_INVALID")
    rows.add("two messages", g.says(g.head(), g.message(serving), g.message(serving), g.trailer()),
             "GRPC_INVALID")
    rows.add("half a message", g.says(g.head(), g.message(serving)[:-1].replace(
        struct.pack("!I", 7)[1:], struct.pack("!I", 6)[1:], 1), g.trailer()), "GRPC_INVALID")
    rows.add("compressed", g.says(g.head(), g.message(serving, flag=1), g.trailer()), "GRPC_INVALID")
    rows.add("no protobuf", g.says(g.head(), g.message(b"\xff" * 12), g.trailer()), "GRPC_INVALID")
    rows.add("a claim of 4 GiB", g.says(g.head(), g.frame(g.DATA, 0, 1, b"\0\xff\xff\xff\xff"),
                                        g.trailer()), "GRPC_INVALID")
    rows.add("no grpc-status", g.says(g.head(), g.frame(g.DATA, g.END_STREAM, 1,
                                                        g.message(serving)[9:])), "GRPC_INVALID")
    rows.add("no trailer", g.says(g.head(), g.message(serving)), "RECV_RESPONSE_TIMEOUT",
             at_once=False)
    rows.add("the stream is reset", g.says(g.head(), g.frame(g.RST_STREAM, 0, 1, bytes([0, 0, 0, 7]))),
             "GRPC_INVALID")
    rows.add("goes away", g.says(g.frame(g.GOAWAY, 0, 0, bytes(8))), "GRPC_INVALID")
    rows.add("another protocol", g.old_http, "GRPC_INVALID")
    rows.add("garbage", tls.garbage, "GRPC_INVALID")
    rows.add("silent", tls.silent, "RECV_RESPONSE_TIMEOUT", at_once=False)
    rows.add("hangs up", g.hangs_up, "CONNECT_INTERRUPT")


def hostile_rows(rows):
    big = g.frame(g.SETTINGS, 0, 0, struct.pack("!HI", 0xff00, 1) * 2000)
    ping = g.frame(g.PING, 0, 0, bytes(8))
    empty = g.frame(g.HEADERS, 0, 1, b"")
    push = g.frame(g.PUSH, g.END_HEADERS, 1, struct.pack("!I", 2) + g.field(b":method", b"GET"))
    rows.add("a flood of settings", g.floods(g.frame(g.SETTINGS, 0, 0)), "GRPC_INVALID")
    rows.add("settings without end", g.floods(big), "GRPC_INVALID")
    rows.add("a flood of pings", g.floods(ping), "GRPC_INVALID")
    rows.add("a flood of CONTINUATION", g.floods(g.frame(g.CONTINUATION, 0, 1), first=empty),
             "GRPC_INVALID")
    rows.add("a push", g.says(push), "GRPC_INVALID")
    rows.add("a header without end", g.floods(g.frame(g.CONTINUATION, 0, 1, g.field(b"x", b"y" * 99)),
                                              first=empty), "GRPC_INVALID")
    rows.add("an endless body", g.floods(g.frame(g.DATA, 0, 1, bytes(8000)), first=g.head()),
             "GRPC_INVALID")
    rows.add("window updates for ever", g.floods(g.frame(g.WINDOW, 0, 0, bytes([0, 0, 0, 1]))),
             "GRPC_INVALID")


def all_rows(options, authority, address):
    rows = Rows(address)
    server = real_rows(rows, authority)
    wrong_rows(rows)
    hostile_rows(rows)
    prober = Prober(options.bin, prefix=["env", "SSL_CERT_FILE=" + authority.pem])
    for slot, (_, to, _, _, _, fields) in enumerate(rows.rows):
        prober.set(slot, type="grpc", to=to, T=T, I=I, **fields)
    prober.publish()
    for slot in range(len(rows.rows)):
        prober.wait_results(slot, 1)
    before = memory_kib(prober.process.pid)
    for slot, (name, _, reason, number, at_once, _) in enumerate(rows.rows):
        results = prober.wait_results(slot, N)
        seen = {(r["reason"], r["status"]) for r in results}
        check(seen == {(reason, number)}, f"{name}: {sorted(seen)}, expected {reason} {number}")
        times = [took(result) for result in results]
        check(max(times) < T / 1000 if at_once else
              T / 1000 <= min(times) and max(times) <= T / 1000 + TOLERANCE,
              f"{name}: ends {'before' if at_once else 'by'} T: {min(times):.3f}..{max(times):.3f} s")
    grown = memory_kib(prober.process.pid) - before
    check(grown < 2048, f"memory of the prober grew by {grown} KiB (bound 2048)")
    check_counts(prober.final_counts())
    prober.stop()
    metadata = server.handler.metadata[0]
    check(metadata.get("user-agent", "").startswith("jury-probe/"), f"who asks: {metadata}")
    rows.stop()


def reads_are_bounded(options):
    ping = g.frame(g.PING, g.ACK, 0, bytes(8))  # asks for no answer, so nothing else ends it
    server = tls.Odd("127.0.0.1", g.floods(ping))
    with tempfile.NamedTemporaryFile("r") as trace:
        prober = Prober(options.bin, prefix=["strace", "-f", "-qq", "-o", trace.name,
                                             "-e", "trace=connect,recvfrom"])
        prober.set(0, type="grpc", to=server.to, T=T, I=I)
        prober.publish()
        results = prober.wait_results(0, N)
        prober.stop()
        totals, now = [0], 0
        for line in trace:
            match = re.search(r"recvfrom\((\d+), .* = (\d+)$", line)
            now = 0 if "connect(" in line else now + (int(match.group(2)) if match else 0)
            totals.append(now)
    server.stop()
    check({r["reason"] for r in results} == {"GRPC_INVALID"} and 0 < max(totals) <= LIMIT_BYTES,
          f"pongs for ever: most bytes read of a connection: {max(totals)} (bound {LIMIT_BYTES})")


def main():
    options = arguments()
    folder = tempfile.mkdtemp()
    try:
        authority = tls.Authority(folder)
        authority.make("good")
        for address in ("127.0.0.1", "::1"):
            print(f"== {address}, T {T} ms, I {I} ms")
            all_rows(options, authority, address)
        reads_are_bounded(options)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    finish()


main()
