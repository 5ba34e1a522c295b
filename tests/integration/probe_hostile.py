#!/usr/bin/python3
"""Hostile and odd backends on real sockets: F-30, R-PROBE-1..3, cases A01-A08.

Each mode of tests/lib/backend_server.py is probed several times. Every probe has exactly one result,
with the reason of the specification, and ends no later than its deadline and ten times the stated
tolerance of 50 ms.
"""
# twin: probe-rearm gave up waiting for 1 results of slot 0
# twin: http-header-bound left > 0
import os
import re
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from prober import Prober, Server, arguments, check, check_counts, finish, took

T, I, N = 500, 100, 4
TOLERANCE = 0.5

# mode, reason, status, at once (long before T)
ROWS = [
    ("ok", "OK", 200, True),
    ("no-reason", "OK", 200, True),
    ("keep", "OK", 200, True),
    ("announce", "OK", 200, True),
    ("chunked", "OK", 200, True),
    ("huge-chunk", "OK", 200, True),
    ("until-fin", "OK", 200, True),
    ("late-header", "OK", 200, True),
    ("longest-header", "OK", 200, True),
    ("continue-then-ok", "OK", 204, True),
    ("endless-body", "OK", 200, True),
    ("redirect", "OK", 302, True),
    ("switching", "HTTP_CODE_NOT_MATCH", 101, True),
    ("closed", "CONNECT_FAILED", 0, True),
    ("hangup", "CONNECT_INTERRUPT", 0, True),
    ("reset-in-header", "CONNECT_INTERRUPT", 200, True),
    ("reset-at-once", "CONNECT_INTERRUPT", 0, True),
    ("tls", "HTTP_INVALID_HEADER", 0, True),
    ("nul", "HTTP_INVALID_HEADER", 200, True),
    ("garbage", "HTTP_INVALID_HEADER", 0, True),
    ("too-long-header", "HTTP_INVALID_HEADER", 200, True),
    ("endless-header", "HTTP_INVALID_HEADER", 200, True),
    ("endless-status", "HTTP_INVALID_HEADER", 0, True),
    ("continue-for-ever", "HTTP_INVALID_HEADER", 0, True),
    ("silent", "RECV_RESPONSE_TIMEOUT", 0, False),
    ("deaf", "RECV_RESPONSE_TIMEOUT", 0, False),
    ("half-status", "RECV_RESPONSE_TIMEOUT", 0, False),
    ("drip", "RECV_RESPONSE_TIMEOUT", 200, False),
    ("continue-slowly", "RECV_RESPONSE_TIMEOUT", 0, False),
    ("one-byte", "RECV_RESPONSE_TIMEOUT", 200, False),
]


def memory_kib(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        for line in file:
            if line.startswith("VmRSS:"):
                return int(line.split()[1])
    return 0


def hostile(folder, address):
    counter = Server("ok", address=address)  # where a followed redirect would go
    server = Server(*[row[0] for row in ROWS], address=address,
                    options=("--redirect", counter.to("ok")))
    prober = Prober(folder)
    slots = {row[0]: slot for slot, row in enumerate(ROWS)}
    for mode, slot in slots.items():
        prober.set(slot, type="http", to=server.to(mode), T=T, I=I)
    prober.publish()
    prober.wait_results(slots["ok"], 1)
    memory_before = memory_kib(prober.process.pid)

    for mode, reason, status, at_once in ROWS:
        results = prober.wait_results(slots[mode], N, patience=10 * N * (T + I) / 1000)
        seen = {(r["reason"], r["status"]) for r in results}
        check(seen == {(reason, status)}, f"{mode}: {sorted(seen)}, expected {reason} {status}")
        times = [took(result) for result in results]
        if at_once:
            check(max(times) < T / 1000, f"{mode}: ends before T: longest {max(times):.3f} s")
        else:
            ratio = [time / (T / 1000) for time in times]
            check(min(ratio) >= 1 and max(times) <= T / 1000 + TOLERANCE,
                  f"{mode}: measured/stated {min(ratio):.4f}..{max(ratio):.4f}")

    grown = memory_kib(prober.process.pid) - memory_before
    check(grown < 1024, f"memory of the prober grew by {grown} KiB (bound 1024)")
    # Before the end, which cuts what is under way.
    late, ok = server.connections("late-header"), server.connections("ok")
    check_counts(prober.final_counts())
    prober.stop()

    ended = {line["ended"] for line in server.connections("endless-body")}
    check(ended == {"reset"}, f"A06: each connection with an endless body was reset: {ended}")
    check(not counter.connections("ok"), "A03: no connection to where the redirect points")
    errors = [line for line in late if line["ended"] != "fin"]
    check(late and not errors, f"A07: no write error in {len(late)} probes whose header came late")
    polite = {line["ended"] for line in ok}
    check(polite == {"fin"}, f"A13: a server that closes first is answered by FIN: {polite}")
    kept = {line["ended"] for line in server.connections("keep")}
    check(kept == {"reset"}, f"A13: a server that does not close is reset: {kept}")
    server.stop()
    counter.stop()


# At least this many probes of each endless mode are watched.
N_WATCHED = 5


def reads_are_bounded(folder):
    """Looks at the system calls: bytes read of one connection, whatever is sent (R-PROBE-3)."""
    modes = ["endless-body", "endless-header", "endless-status", "continue-for-ever"]
    server = Server(*modes)
    with tempfile.NamedTemporaryFile("r") as trace:
        prober = Prober(folder, prefix=["strace", "-f", "-qq", "-o", trace.name,
                                        "-e", "trace=connect,recvfrom"])
        for slot, mode in enumerate(modes):
            prober.set(slot, type="http", to=server.to(mode), T=5000, I=100)
        prober.publish()
        for slot in range(len(modes)):
            prober.wait_results(slot, N_WATCHED)
        prober.stop()
        totals, open_total = [], {}
        for line in trace:
            match = re.search(r"connect\((\d+), ", line)
            if match:
                totals.append(open_total.pop(match.group(1), 0))
                open_total[match.group(1)] = 0
            match = re.search(r"recvfrom\((\d+), .* = (\d+)$", line)
            if match and match.group(1) in open_total:
                open_total[match.group(1)] += int(match.group(2))
        totals += open_total.values()
    server.stop()
    check(len(totals) >= N_WATCHED * len(modes) and 0 < max(totals) <= 16385,
          f"R-PROBE-3: most bytes read of one of {len(totals)} connections: {max(totals)} "
          "(bound 16385)")


def literal_cases(folder):
    """A05 and A06 with their own figures."""
    drip = Server("drip", options=("--drip", "200"))
    body = Server("endless-body")
    prober = Prober(folder)
    prober.set(0, type="http", to=drip.to("drip"), T=2000, I=100)
    for slot in range(1, 21):
        prober.set(slot, type="http", to=body.to("endless-body"), T=5000, I=100)
    prober.publish()
    prober.wait_results(20, 1)
    before = memory_kib(prober.process.pid)
    result = prober.wait_results(0, 1, patience=20)[0]
    check(result["reason"] == "RECV_RESPONSE_TIMEOUT" and 2 <= took(result) <= 2 + TOLERANCE,
          f"A05: 50 bytes each 200 ms, T = 2 s: {result['reason']} after {took(result):.3f} s, "
          f"measured/stated {took(result) / 2:.4f}")
    seen = {line["reason"] for slot in range(1, 21) for line in prober.wait_results(slot, 5)}
    n_probes = sum(len(prober.results(slot)) for slot in range(1, 21))
    grown = memory_kib(prober.process.pid) - before
    check(seen == {"OK"} and grown < 1024, f"A06: 20 endless bodies, {n_probes} probes: {seen}, memory "
          f"grew by {grown} KiB (bound 1024)")
    prober.stop()
    drip.stop()
    body.stop()


def main():
    options = arguments()
    literal_cases(options.bin)
    reads_are_bounded(options.bin)
    for address in ("127.0.0.1", "::1"):
        print(f"== {address}, T {T} ms, I {I} ms")
        hostile(options.bin, address)
    finish()


main()
