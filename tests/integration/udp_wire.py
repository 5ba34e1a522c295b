#!/usr/bin/python3
"""What a udp probe puts on the wire, and what it makes of the answers: S45-S50, S98, S99, A16, A17,
spec.md 4. Two namespaces, IPv4 and IPv6; answers that no kernel gives are forged. Needs root.
"""
# shows: S45 S46 S47 S48 S50 S98 S99
# twin: udp-icmp-ignored WRONG .*closed.*SILENT
# twin: udp-silence-limited WRONG .*limited.*SILENT
# twin: udp-own-evidence WRONG .*eight checks.*
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from netns import FAR_4, Cable
from prober import Prober, arguments, check, finish, run
from wire import FAMILIES, SECOND_SOURCE, capture_at, place, seen_of

N = 2  # conclusive results of each target
T = 400
PING = b"ping".hex()
EXCHANGE = {"udp": "exchange", "answer": "pong"}
PORT, ECHO = {"udp": "port"}, {"udp": "port+echo"}

# port, story, fields, result, whether it takes T ("T"), or ends at once ("now"), or after so many ms
ROWS = (
    (7001, "silent", PORT, "pass SILENT", "T"),
    (7002, "answer", PORT, "pass OK", "now"),
    (7003, "answer-empty", PORT, "pass OK", "now"),
    (7004, "refused", PORT, "fail PORT_UNREACHABLE", "now"),
    (7005, "refused-after-200ms", PORT, "fail PORT_UNREACHABLE", 200),
    (7006, "refused-by-another", PORT, "pass SILENT", "T"),
    (7007, "refused-of-another", PORT, "pass SILENT", "T"),
    (7008, "host-unreachable", PORT, "fail CONNECT_FAILED", "now"),
    (7009, "host-unreachable-by-another", PORT, "pass SILENT", "T"),
    (7010, "answer-from-another-port", PORT, "pass SILENT", "T"),
    (7011, "silent", ECHO, "pass ECHO", "T"),
    (7012, "answer", ECHO, "pass OK", "now"),
    (7013, "refused", ECHO, "fail PORT_UNREACHABLE", "now"),
    (7014, "refused-after-200ms", ECHO, "fail PORT_UNREACHABLE", 200),
    (7015, "answer-then-refused", ECHO, "pass OK", "now"),
    (7021, "answer", EXCHANGE, "pass OK", "now"),
    (7022, "answer-another", EXCHANGE, "fail RESPONSE_MISMATCH", "now"),
    (7023, "answer-empty", EXCHANGE, "fail RESPONSE_MISMATCH", "now"),
    (7024, "silent", EXCHANGE, "fail RECV_RESPONSE_TIMEOUT", "T"),
    (7025, "answer-late", EXCHANGE, "fail RECV_RESPONSE_TIMEOUT", "T"),
    (7026, "answer-from-another-port", EXCHANGE, "fail RECV_RESPONSE_TIMEOUT", "T"),
    (7027, "answer-from-another-address", EXCHANGE, "fail RECV_RESPONSE_TIMEOUT", "T"),
    (7028, "answer-long", EXCHANGE, "pass OK", "now"),
    (7029, "answer-twice", EXCHANGE, "fail RESPONSE_MISMATCH", "now"),
    (7030, "answer-another", dict(EXCHANGE, mask="hex:ff00ffff"), "pass OK", "now"),
    (7031, "answer-another", dict(EXCHANGE, mask="hex:ffff"), "fail RESPONSE_MISMATCH", "now"),
    (7032, "refused", EXCHANGE, "fail PORT_UNREACHABLE", "now"),
)


def check_times(what, results, how):
    """A stated time, or ten times "at once" (100 ms, case A16)."""
    took = [line["end"] - line["start"] for line in results]
    low, high = {"T": (T / 1000, T / 1000 + 1), "now": (0, T / 1000)}.get(how, (0.15, T / 1000)) \
        if isinstance(how, str) else (how / 1000 - 0.05, T / 1000)
    check(low <= min(took) and max(took) < high,
          f"{what}: ended after {min(took):.3f}..{max(took):.3f} s (expected {how})")


def check_datagrams(what, capture, near, far, port, n_results):
    """One datagram a probe, with the payload as it is, a right checksum, and a port of its own."""
    sent = [line for line in capture.lines if line.get("kind") == "udp" and line["src"] == near
            and line["dst"] == far and line["dport"] == port]
    check(len(sent) >= n_results and {line["payload"] for line in sent} == {PING},
          f"{what}: {len(sent)} datagrams of {n_results} or more probes, each with the payload alone")


def check_echoes(what, capture, near, far, n_results):
    kinds = {"IPv4": (8, 0), "IPv6": (128, 129)}[what[:4]]
    for kind, (src, dst) in zip(kinds, ((near, far), (far, near))):
        n = sum(line.get("kind") == "icmp" and line["type"] == kind and line["src"] == src
                and line["dst"] == dst for line in capture.lines)
        check(n >= n_results, f"{what}: {n} ICMP messages of type {kind}")


def answers(cable, folder):
    ports = ", ".join(str(port) for port, *_ in ROWS)
    cable.filter(cable.far, "udp dport { %s } drop" % ports)
    capture = capture_at(cable, "udp_forger.py", *[f"{port}={story}" for port, story, *_ in ROWS])
    prober = Prober(folder, netns=cable.near)
    for n, (_, far, _) in enumerate(FAMILIES):
        for at, (port, _, fields, _, _) in enumerate(ROWS):
            prober.set(100 * n + at, type="udp", T=T, I=100, to=place(far, port), **fields)
    prober.publish()
    for n, (family, far, near) in enumerate(FAMILIES):
        for at, (port, story, fields, expected, how) in enumerate(ROWS):
            what = f"{family} {fields['udp']} {story}"
            results = prober.wait_results(100 * n + at, N)
            # Forged refusals come in quicker succession than a Linux host would send them: silence
            # of the other ports proves nothing meanwhile, and is told so.
            seen = seen_of(results) - ({"inconclusive ICMP_LIMITED"} if "pass" in expected else set())
            check(seen <= {expected}, f"{what}: {seen}, expected {expected}")
            ended = [line for line in results if line["reason"] != "ICMP_LIMITED"]
            if ended:
                check_times(what, ended, how)
            check_datagrams(what, capture, near, far, port, N)
            if fields is ECHO and story == "silent":
                check_echoes(what, capture, near, far, N)
    counts = prober.final_counts()
    prober.stop()
    capture.stop()
    cable.unfilter(cable.far)
    check(counts["probes_by_udp"] == counts["probes_started"] > 0 and counts["probes_lost"] == 0,
          f"{counts['probes_by_udp']} of {counts['probes_started']} probes by the engine udp, "
          "none lost")
    check(counts["probe_icmp_ignored"] > 0, f"{counts['probe_icmp_ignored']} ICMP messages ignored")


def silent_ports(cable, folder):
    """Silence passes after T (S48), with an echo too (S98), where no refusal comes from the host."""
    for family, far, near in FAMILIES + (("IPv4 second source", FAR_4, SECOND_SOURCE),):
        cable.filter(cable.far, "udp dport 7201 drop")
        capture = capture_at(cable, "udp_forger.py")
        prober = Prober(folder, netns=cable.near)
        source = {"source": near} if near == SECOND_SOURCE else {}
        for slot, fields in enumerate((PORT, ECHO)):
            prober.set(slot, type="udp", T=T, I=100, to=place(far, 7201), **fields, **source)
        prober.publish()
        for slot, expected in enumerate(("pass SILENT", "pass ECHO")):
            results = prober.wait_results(slot, N)
            what = f"{family} silent port"
            check(seen_of(results) == {expected}, f"{what}: {seen_of(results)}")
            check_times(what, results, "T")
        check_echoes(family, capture, near, far, N)
        check_datagrams(family, capture, near, far, 7201, 2 * N)
        strange = [line for line in capture.lines if line.get("kind") == "udp"
                   and line["dport"] == 7201 and line["src"] != near]
        check(not strange, f"{family}: every datagram comes from {near}")
        # S98: the service works, but its host drops echo.
        cable.filter(cable.far, "udp dport 7201 drop\n  icmp type echo-request drop\n"
                                "  icmpv6 type echo-request drop")
        prober.set(5, type="udp", T=T, I=100, to=place(far, 7201), **ECHO, **source)
        prober.publish()
        results = prober.wait_results(5, N)
        check(seen_of(results) == {"fail NO_ECHO_REPLY"}, f"{family} echo dropped: {seen_of(results)}")
        prober.stop()
        capture.stop()
        cable.unfilter(cable.far)


def real_kernel(cable, folder):
    """Ports that are closed in truth, hosts that are off, routes that are not there."""
    cable.in_near("ip route add unreachable 10.231.9.9")
    rows = [(place(far, 7301), fields, "fail PORT_UNREACHABLE", f"{family} {fields['udp']} closed")
            for family, far, _ in FAMILIES for fields in (PORT, ECHO, EXCHANGE)]
    rows += [("10.231.9.9:53", PORT, "fail CONNECT_FAILED", "route unreachable"),
             ("198.51.100.1:53", PORT, "inconclusive LOCAL_NO_ROUTE", "no route"),
             ("[2001:db8::1]:53", EXCHANGE, "inconclusive LOCAL_NO_ROUTE", "no IPv6 route"),
             ("10.231.1.77:53", PORT, "fail CONNECT_FAILED", "powered off"),
             ("[fd23:1::77]:53", PORT, "fail CONNECT_FAILED", "IPv6 powered off")]
    prober = Prober(folder, netns=cable.near)
    for slot, (to, fields, _, _) in enumerate(rows):
        prober.set(slot, type="udp", T=10000, I=100, to=to, **fields)
    prober.set(99, type="udp", T=T, I=100, to=place(FAR_4, 7301), source="10.231.1.250", **PORT)
    prober.publish()
    for slot, (_, _, expected, what) in enumerate(rows):
        results = prober.wait_results(slot, N)
        check(seen_of(results) == {expected}, f"{what}: {seen_of(results)}")
        if "closed" in what:
            check(max(line["end"] - line["start"] for line in results) < 1,
                  f"{what}: at once (100 ms; case A16)")
    seen = seen_of(prober.wait_results(99, N))
    check(seen == {"inconclusive LOCAL_SOURCE_MISSING"}, f"a source of somebody else: {seen}")
    prober.stop()


def limit_errors(cable, value):
    for limit in ("net.ipv4.icmp_ratelimit", "net.ipv6.icmp.ratelimit"):
        cable.in_far(f"sysctl -q -w {limit}={value}")


# shows: S49
def eight_checks(cable, folder):
    """3.7, S49, N13: a host that limits its ICMP errors as Linux does; eight checks, each of another
    definition, on one closed port. Each of them fails, though some are told nothing."""
    limit_errors(cable, 1000)
    for family, far, _ in FAMILIES:
        prober = Prober(folder, netns=cable.near)
        for slot in range(8):
            prober.set(slot, type="udp", T=300 + slot, I=1200, to=place(far, 7401), **PORT)
        prober.publish()
        for slot in range(8):
            results = prober.wait_results(slot, 6)
            check(seen_of(results) == {"fail PORT_UNREACHABLE"},
                  f"{family} eight checks on a closed port, number {slot}: {seen_of(results)}")
        counts = prober.final_counts()
        check(counts["probe_refusals_shared"] > 0,
              f"{family}: {counts['probe_refusals_shared']} failed by what another was told")
        prober.stop()
    limit_errors(cable, 0)


# shows: S49
def limited_silence(cable, folder):
    """S49: while closed ports of a host use up its errors, silence of its other ports is no pass; and
    is one again when they are gone."""
    limit_errors(cable, 1000)
    cable.filter(cable.far, "udp dport 7500 drop")
    prober = Prober(folder, netns=cable.near)
    for slot in range(1, 13):
        prober.set(slot, type="udp", T=200, I=200, to=place(FAR_4, 7500 + slot), **PORT)
    prober.publish()
    prober.wait_results(1, 5)
    prober.set(0, type="udp", T=200, I=200, to=place(FAR_4, 7500), **PORT)
    prober.publish()
    seen = seen_of(prober.wait_results(0, 5))
    check(seen == {"inconclusive ICMP_LIMITED"}, f"silence while errors are limited: {seen}")
    for slot in range(1, 13):
        seen = seen_of(prober.results(slot))
        check("pass SILENT" not in seen, f"closed port {slot} while errors are limited: {seen}")
    n = len(prober.results(0))
    prober.remove(*range(1, 13))
    prober.wait(lambda lines: [line for line in prober.results(0)[n:] if line["class"] == "pass"],
                "a pass after the limit")
    check(True, "silence passes again when nothing uses up the errors")
    prober.stop()
    cable.unfilter(cable.far)
    limit_errors(cable, 0)


def without_rights(cable, folder):
    """Never replaced by another kind; what needs no rights goes on."""
    cable.filter(cable.far, "udp dport 7601 drop")
    capture = capture_at(cable, "udp_forger.py")
    prober = Prober(folder, netns=cable.near,
                    prefix=("setpriv", "--bounding-set=-net_raw", "--inh-caps=-net_raw"))
    prober.set(0, type="udp", T=T, I=100, to=place(FAR_4, 7601), **ECHO)
    prober.publish()
    results = prober.wait_results(0, 5)
    n_packets = sum("kind" in line and line.get("dport") == 7601 for line in capture.lines)
    prober.set(1, type="udp", T=T, I=100, to=place(FAR_4, 7601), **PORT)
    prober.publish()
    port = prober.wait_results(1, N)
    prober.stop()
    capture.stop()
    cable.unfilter(cable.far)
    check(seen_of(results) == {"inconclusive LOCAL_NO_PERMISSION"} and n_packets == 0,
          f"port+echo without CAP_NET_RAW: {seen_of(results)}, {n_packets} packets")
    check(seen_of(port) == {"pass SILENT"}, "and port goes on")


def main():
    options = arguments()
    cable = Cable()
    run(f"ip -n {cable.near} address add {SECOND_SOURCE}/24 dev near0")
    # These come first: what was sent without a limit would leave the host with an empty bucket.
    eight_checks(cable, options.bin)
    limited_silence(cable, options.bin)
    silent_ports(cable, options.bin)
    answers(cable, options.bin)
    real_kernel(cable, options.bin)
    without_rights(cable, options.bin)
    finish()


main()
