#!/usr/bin/python3
"""tls checks on real sockets, over IPv4 and IPv6: openssl's server in its versions, certificates that
are good, ended, near their end, of another name or authority, https inside, replies cut at each byte;
and servers that are hostile before, in and after the handshake. Each probe has one result, with the
reason of the specification, by its deadline; bytes read and memory are bounded.
"""
# twin: tls-endless endless-requests: most bytes read
# twin: tls-verify ended, verified
import datetime
import os
import re
import shutil
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import tls_servers as tls  # noqa: E402
from prober import Prober, arguments, check, check_counts, finish, took  # noqa: E402

T, I, N = 2000, 100, 3
TOLERANCE = 0.5
LIMIT_BYTES = 65536


def memory_kib(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        return int(re.search(r"VmRSS:\s*(\d+)", file.read()).group(1))


def day_of(days):
    """As in a result: from 2000-01-01 UTC, of a certificate that was made today."""
    today = datetime.datetime.now(datetime.timezone.utc).date()
    return (today - datetime.date(2000, 1, 1)).days + days


class Rows:
    """What is probed, and what must come of it."""

    def __init__(self, address):
        self.address, self.rows, self.servers = address, [], []

    def add(self, name, server, reason, status=0, at_once=True, days=None, near=0, **fields):
        if server is not None and not isinstance(server, str):
            self.servers.append(server)
            server = server.to
        self.rows.append((name, server, reason, status, at_once, days, near, fields))

    def stop(self):
        for server in self.servers:
            server.stop()


def real_rows(rows, authority, others):
    """openssl s_server, which has one connection at a time: each row has its own."""
    def server(*options):
        return tls.SServer(rows.address, list(options))
    good, ended = authority.make("good"), authority.make("ended", days=-1)
    near, bad = authority.make("near", days=5), others.make("bad")
    weak = ["-cipher", "DEFAULT:@SECLEVEL=0"]
    ca = {"verify": "ca", "sni": tls.NAME}
    rows.add("any version", server(*good), "OK", days=100)
    rows.add("1.2 alone", server(*good, "-tls1_2"), "OK", days=100)
    rows.add("1.3 alone", server(*good, "-tls1_3"), "OK", days=100, minVersion="1.3")
    rows.add("1.2 where 1.3 is the least", server(*good, "-tls1_2"), "TLS_HANDSHAKE_FAILED",
             minVersion="1.3")
    rows.add("1.0 alone", server(*good, "-tls1", *weak), "TLS_HANDSHAKE_FAILED")
    rows.add("1.0 where it may be", server(*good, "-tls1", *weak), "OK", days=100, minVersion="1.0")
    rows.add("1.1 where it may be", server(*good, "-tls1_1", *weak), "OK", days=100,
             minVersion="1.0")
    rows.add("finite-field exchange alone", server(*good, "-tls1_2", "-cipher", "kDHE"),
             "TLS_HANDSHAKE_FAILED")
    rows.add("verified", server(*good), "OK", days=100, **ca)
    rows.add("of another name", server(*good), "TLS_CERT_WRONG_NAME", days=100, verify="ca",
             sni="other.test")
    rows.add("ended, not verified", server(*ended), "OK", days=-1, near=1)
    rows.add("ended, verified", server(*ended), "TLS_CERT_EXPIRED", days=-1, near=1, **ca)
    rows.add("of another authority", server(*bad), "TLS_CERT_UNTRUSTED", days=100, **ca)
    rows.add("ends in 5 days", server(*near), "OK", days=5, near=1)
    rows.add("ends in 5 days, no warning", server(*near), "OK", days=5, warnDays=0)
    rows.add("protocol chosen", server(*good, "-alpn", "imap,h2"), "OK", days=100, alpn="h2")
    rows.add("protocol not known", server(*good, "-alpn", "imap"), "TLS_HANDSHAKE_FAILED", alpn="h2")
    rows.add("no protocols at all", server(*good), "TLS_HANDSHAKE_FAILED", days=100, alpn="h2")
    rows.add("asks for the client's certificate", server(*good, "-verify", "1"), "OK", days=100)
    rows.add("https", server(*good, "-www"), "OK", status=200, days=100, inside="http")
    rows.add("https, another status", server(*good, "-www"), "HTTP_CODE_NOT_MATCH", status=200, days=100,
             inside="http", expect="300-399")
    rows.add("many tickets", server(*good, "-tls1_3", "-num_tickets", "20"), "OK", days=100)
    for n, reason in ((40, "OK"), (200, "TLS_HANDSHAKE_FAILED")):
        with open(authority.pem, encoding="ascii") as file:
            chain = file.read() * n
        path = authority.path(f"chain{n}.pem")
        with open(path, "w", encoding="ascii") as file:
            file.write(chain)
        rows.add(f"a chain of {n} more", server(*good, "-cert_chain", path), reason,
                 days=100 if reason == "OK" else None)


def odd_rows(rows, authority):
    def odd(habit):
        return tls.Odd(rows.address, habit)

    def within(habit):
        return odd(tls.inside(authority, "good", habit))

    def relayed(n_bytes, pause, *options):
        server = tls.SServer(rows.address, authority.files("good") + list(options))
        rows.servers.append(server)
        return odd(tls.relay((rows.address, server.port), n_bytes, pause))
    rows.add("each byte apart", relayed(1, 0), "OK", days=100)
    rows.add("https, each byte apart", relayed(1, 0, "-www"), "OK", status=200, days=100,
             inside="http")
    rows.add("7 bytes at a time", relayed(7, 0, "-www"), "OK", status=200, days=100,
             inside="http")
    rows.add("slow bytes", relayed(1, 0.05), "RECV_RESPONSE_TIMEOUT", at_once=False)
    rows.add("no TLS", odd(tls.in_the_clear), "TLS_HANDSHAKE_FAILED")
    rows.add("silent", odd(tls.silent), "RECV_RESPONSE_TIMEOUT", at_once=False)
    rows.add("reset in the handshake", odd(tls.reset_after_hello), "CONNECT_INTERRUPT")
    rows.add("closed in the handshake", odd(tls.close_after_hello), "CONNECT_INTERRUPT")
    rows.add("endless-requests", odd(tls.endless_requests), "TLS_HANDSHAKE_FAILED")
    rows.add("slow requests", odd(tls.slow_requests), "RECV_RESPONSE_TIMEOUT", at_once=False)
    rows.add("a huge certificate", odd(tls.huge_certificate), "TLS_HANDSHAKE_FAILED")
    rows.add("warnings for ever", odd(tls.warnings), "TLS_HANDSHAKE_FAILED")
    rows.add("garbage", odd(tls.garbage), "TLS_HANDSHAKE_FAILED")
    rows.add("nobody listens", f"[{rows.address}]:1" if ":" in rows.address else "127.0.0.1:1", "CONNECT_FAILED")
    rows.add("says goodbye inside", within(tls.hangs_up), "CONNECT_INTERRUPT", days=100,
             inside="http")
    rows.add("says nothing inside", within(tls.says_nothing), "RECV_RESPONSE_TIMEOUT",
             at_once=False, days=100, inside="http")
    rows.add("an endless header inside", within(tls.endless_header), "HTTP_INVALID_HEADER",
             status=200, days=100, inside="http")
    rows.add("an endless body inside", within(tls.endless_body), "OK", status=200, days=100,
             inside="http")


def judge(name, results, row):
    _, _, reason, status, at_once, days, near, _ = row
    seen = {(r["reason"], r["status"]) for r in results}
    check(seen == {(reason, status)}, f"{name}: {sorted(seen)}, expected {reason} {status}")
    wanted = {(0 if days is None else day_of(days), near)}
    certs = {(r["cert_day"], r["cert_near"]) for r in results}
    # A day may begin between the making and the looking.
    check(certs == wanted or days is not None and certs == {(day_of(days) - 1, near)},
          f"{name}: certificate {sorted(certs)}, expected {sorted(wanted)}")
    times = [took(result) for result in results]
    if at_once:
        check(max(times) < T / 1000, f"{name}: ends before T: longest {max(times):.3f} s")
    else:
        check(T / 1000 <= min(times) and max(times) <= T / 1000 + TOLERANCE,
              f"{name}: ends by T: {min(times):.3f}..{max(times):.3f} s")


def all_rows(options, authority, others, address):
    rows = Rows(address)
    real_rows(rows, authority, others)
    odd_rows(rows, authority)
    prober = Prober(options.bin, prefix=["env", "SSL_CERT_FILE=" + authority.pem])
    for slot, row in enumerate(rows.rows):
        prober.set(slot, type="tls", to=row[1], T=T, I=I, **row[7])
    prober.publish()
    for slot in range(len(rows.rows)):
        prober.wait_results(slot, 1)
    before = memory_kib(prober.process.pid)
    for slot, row in enumerate(rows.rows):
        judge(row[0], prober.wait_results(slot, N), row)
    grown = memory_kib(prober.process.pid) - before
    check(grown < 2048, f"memory of the prober grew by {grown} KiB (bound 2048)")
    check_counts(prober.final_counts())
    prober.stop()
    rows.stop()


def reads_are_bounded(options, authority):
    """Looks at the system calls: bytes read of one connection, whatever is sent."""
    for name, habit, fields in (
            ("endless-requests", tls.endless_requests, {}),
            ("a huge certificate", tls.huge_certificate, {}),
            ("an endless body", tls.inside(authority, "good", tls.endless_body), {"inside": "http"})):
        server = tls.Odd("127.0.0.1", habit)
        with tempfile.NamedTemporaryFile("r") as trace:
            prober = Prober(options.bin, prefix=["strace", "-f", "-qq", "-o", trace.name,
                                                 "-e", "trace=connect,recvfrom"])
            prober.set(0, type="tls", to=server.to, T=T, I=I, **fields)
            prober.publish()
            prober.wait_results(0, N)
            prober.stop()
            totals, now = [0], 0
            for line in trace:
                match = re.search(r"recvfrom\((\d+), .* = (\d+)$", line)
                now = 0 if "connect(" in line else now + (int(match.group(2)) if match else 0)
                totals.append(now)
        server.stop()
        bound = LIMIT_BYTES + 16384  # and what is read while it is closed politely
        check(0 < max(totals) <= bound,
              f"{name}: most bytes read of a connection: {max(totals)} (bound {bound})")


def without_trust(options, authority):
    """A node that has no authorities' certificates says so, and blames nobody."""
    server = tls.SServer("127.0.0.1", authority.make("fine"))
    prober = Prober(options.bin, prefix=["env", "SSL_CERT_FILE=/nonexistent"])
    prober.set(0, type="tls", to=server.to, T=T, I=I, verify="ca", sni=tls.NAME)
    prober.set(1, type="tls", to=server.to, T=T, I=I)
    prober.publish()
    seen = [prober.wait_results(slot, N)[0] for slot in (0, 1)]
    check([(r["class"], r["reason"]) for r in seen] ==
          [("inconclusive", "LOCAL_NO_TRUST"), ("pass", "OK")],
          f"without certificates of authorities: {[(r['class'], r['reason']) for r in seen]}")
    prober.stop()
    server.stop()


def main():
    options = arguments()
    folder = tempfile.mkdtemp()
    try:
        for name in ("authority", "others"):
            os.mkdir(os.path.join(folder, name))
        authority = tls.Authority(os.path.join(folder, "authority"))
        others = tls.Authority(os.path.join(folder, "others"))
        for address in ("127.0.0.1", "::1"):
            print(f"== {address}, T {T} ms, I {I} ms")
            all_rows(options, authority, others, address)
        reads_are_bounded(options, authority)
        without_trust(options, authority)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    finish()


main()
