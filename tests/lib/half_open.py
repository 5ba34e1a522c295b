"""What a half-open probe puts on the wire, flag by flag, and what it makes of the answers: S6, S42, S5,
S41, spec.md 4. Two namespaces, IPv4 and IPv6; answers that no kernel gives are forged. The same for
each way by which such probes leave and come back: the scripts half_open_*.py say which. Needs root.
"""
import concurrent.futures
import subprocess
import sys

from netns import FAR_4, FAR_6, NEAR_4, Cable
from prober import Prober, Server, arguments, check, finish, run
from wire import FAMILIES, SECOND_SOURCE, attempts, capture_at, check_shape, place, seen_of

MSS = {"IPv4": "020405b4", "IPv6": "020405a0"}  # 1460, 1440
N = 2  # conclusive results of each target
T = 400

# port, story, T, onTimeout, result, packets: (end, flags, number after the ISN: of the sequence at
# the near end, of the acknowledgement at the far end; "-" = none). A reset of the near end is its
# kernel's, but for those that follow a timeout.
ROWS = (
    (7001, "closed", T, "rst", "fail CONNECT_FAILED", "near S 0, far RA 1"),
    (7002, "silent", T, "nothing", "fail CONNECT_TIMEOUT", "near S 0"),
    (7003, "silent", T, "rst", "fail CONNECT_TIMEOUT", "near S 0, near R 1"),
    (7004, "silent", 4000, "nothing", "fail CONNECT_TIMEOUT", "near S 0, near S 0, near S 0"),
    (7005, "silent", 1500, "rst", "fail CONNECT_TIMEOUT", "near S 0, near S 0, near R 1"),
    (7006, "ack-of-another", T, "nothing", "fail CONNECT_TIMEOUT", "near S 0, far SA 2, near R 2"),
    (7007, "ack-of-isn", T, "nothing", "fail CONNECT_TIMEOUT", "near S 0, far SA 0, near R 0"),
    (7008, "late", T, "nothing", "fail CONNECT_TIMEOUT", "near S 0, far SA 1, near R 1"),
    (7009, "late", T, "rst", "fail CONNECT_TIMEOUT", "near S 0, near R 1, far SA 1, near R 1"),
    (7010, "rst-of-another", T, "nothing", "fail CONNECT_TIMEOUT", "near S 0, far RA 2"),
    (7011, "rst-without-ack", T, "nothing", "fail CONNECT_TIMEOUT", "near S 0, far R -"),
    (7012, "bare-ack", T, "nothing", "fail CONNECT_TIMEOUT", "near S 0, far A 1, near R 1"),
    (7013, "damaged", T, "nothing", "fail CONNECT_TIMEOUT", "near S 0, far SA 1"),
    (7014, "another-then-right", T, "nothing", "pass OK",
     "near S 0, far SA 2, far SA 1, near R 2, near R 1"),
    (7015, "icmp-of-another", T, "nothing", "fail CONNECT_TIMEOUT", "near S 0"),
    (7016, "icmp", 5000, "rst", "fail CONNECT_FAILED", "near S 0"),
    (7017, "from-another-port", T, "nothing", "fail CONNECT_TIMEOUT", "near S 0"),
)


def check_bytes(what, family, found):
    """Of what the prober itself made: the resets of its kernel may get their sums from the link."""
    near = [(text, line) for packets in found.values() for text, line in packets
            if text.startswith("near")]
    syns = [line for text, line in near if text == "near S 0"]
    made = [line for text, line in near] if "silent" in what else syns
    check(syns and {line["options"] for line in syns} == {MSS[family]} and
          all(line["payload"] == 0 for _, line in near) and all(line["sum"] for line in made),
          f"{what}: each SYN has the option MSS, no packet has data, the checksums are right")


def check_repeats(what, found, stated):
    for n, want in enumerate(stated, 1):
        times = [[line["time"] for text, line in packets if text == "near S 0"]
                 for packets in found.values()]
        gaps = [some[n] - some[0] for some in times if len(some) > n]
        check(gaps and want - 0.1 <= min(gaps) and max(gaps) < want + 1,
              f"{what}: the SYN again after {min(gaps):.3f}..{max(gaps):.3f} s (stated {want})")


def set_row(prober, slot, row, address):
    port, _, timeout, on_timeout, _, _ = row
    prober.set(slot, type="tcp", handshake="half-open", onTimeout=on_timeout, T=timeout, I=200,
               to=place(address, port))


def answers(cable, folder, way):
    forged = [f"{port}={story}" for port, story, *_ in ROWS if story != "closed"]
    ports = ", ".join(text.split("=")[0] for text in forged)
    cable.filter(cable.far, "tcp dport { %s } drop" % ports)
    capture = capture_at(cable, "tcp_forger.py", *forged)
    prober = Prober(folder, *way.options, netns=cable.near)
    for n, (_, far, _) in enumerate(FAMILIES):
        for at, row in enumerate(ROWS):
            set_row(prober, 100 * n + at, row, far)
    prober.publish()
    for n, (family, _, near) in enumerate(FAMILIES):
        for at, (port, story, timeout, on_timeout, expected, packets) in enumerate(ROWS):
            what = f"{family} {story}, T {timeout} ms, on timeout {on_timeout}"
            results = prober.wait_results(100 * n + at, N)
            seen = seen_of(results)
            check(seen == {expected}, f"{what}: {seen}, expected {expected}")
            # The last segments of a probe may come after its result.
            capture.wait(lambda lines, port=port, near=near, packets=packets: sum(
                len(found) >= packets.count(",") + 1
                for found in attempts(lines, port, near).values()) >= N, f"packets of {what}",
                         patience=20)
    prober.remove(*range(len(ROWS)), *range(100, 100 + len(ROWS)))
    counts = prober.final_counts()
    prober.stop()
    capture.stop()
    cable.unfilter(cable.far)
    for family, _, near in FAMILIES:
        for port, story, timeout, on_timeout, _, packets in ROWS:
            what = f"{family} {story}, T {timeout} ms, on timeout {on_timeout}"
            found = attempts(capture.lines, port, near)
            check_shape(what, found, packets, N)
            if story == "silent":
                check_bytes(what, family, found)
                check_repeats(what, found, [1, 3][:packets.count("near S") - 1])
    check(counts["probes_by_connect"] == 0 and
          counts["probes_by_packet"] == counts["probes_started"] > 0,
          f"{counts['probes_by_packet']} of {counts['probes_started']} probes by the engine packet")
    way.check_counts(counts)
    check(counts["probe_packets_ignored"] > 0 and counts["probe_packets_dropped"] == 0,
          f"{counts['probe_packets_ignored']} packets ignored, none dropped")
    check(counts["probes_lost"] == 0, "no probe lost")


def is_taken(cable, port):
    """Whether nobody else can have the port, in the namespace of the prober."""
    code = f"import socket; socket.socket().bind(('', {port}))"
    done = subprocess.run(["ip", "netns", "exec", cable.near, sys.executable, "-c", code],
                          stderr=subprocess.PIPE, text=True, check=False)
    return done.returncode != 0 and "in use" in done.stderr


def open_port(cable, folder, way):
    """S6, S42: SYN, SYN-ACK, RST, and no ACK; ports and numbers differ from probe to probe."""
    n = 20
    for family, far, near in FAMILIES + (("IPv4 second source", FAR_4, SECOND_SOURCE),):
        server = Server("silent", netns=cable.far, address=far)
        capture = capture_at(cable, "tcp_forger.py")
        prober = Prober(folder, *way.options, netns=cable.near)
        prober.set(0, type="tcp", handshake="half-open", onTimeout="rst", T=5000, I=100,
                   to=server.to("silent"), **({"source": near} if near == SECOND_SOURCE else {}))
        prober.publish()
        results = prober.wait_results(0, n)
        capture.wait(lambda lines: sum(line.get("flags") == "R" for line in lines) >= n, "resets",
                     patience=10)  # the results have come
        ports = {line["sport"] for line in capture.lines if line.get("flags") == "S"}
        taken = [port for port in ports if is_taken(cable, port)]
        prober.stop()
        server.stop()
        capture.stop()
        found = attempts(capture.lines, server.ports["silent"], near)
        check({line["reason"] for line in results} == {"OK"}, f"{family} open: passes")
        check_shape(f"{family} open", found, "near S 0, far SA 1, near R 1", n)
        check_bytes(f"{family} open", family[:4], found)
        numbers = {key[1] for key in found}
        check(len(numbers) == len(found) and len(ports) > 1,
              f"{family} open: {len(numbers)} sequence numbers and {len(ports)} ports in "
              f"{len(found)} probes")
        check(len(taken) == len(ports), f"{family} open: nobody else can take these ports")


def network(cable, folder, way):
    """Answers of routers, and what the kernel finds out by itself."""
    ports = {"icmpx type host-unreachable": 7101, "icmpx type admin-prohibited": 7102,
             "icmpx type no-route": 7103, "icmpx type port-unreachable": 7104, "tcp reset": 7105}
    cable.filter(cable.far, "\n  ".join(f"meta l4proto tcp th dport {port} reject with {how}"
                                        for how, port in ports.items()))
    rows = [(place(far, port), "fail CONNECT_FAILED", how)
            for how, port in ports.items() for _, far, _ in FAMILIES]
    cable.in_near("ip route add unreachable 10.231.9.9")
    cable.in_near("ip route add unreachable fd23:9::9")
    cable.in_near("ip route add blackhole 10.231.9.11")
    rows += [("10.231.9.9:80", "fail CONNECT_FAILED", "route unreachable"),
             ("[fd23:9::9]:80", "fail CONNECT_FAILED", "route unreachable"),
             ("10.231.9.11:80", "inconclusive LOCAL_NO_ROUTE", "route blackhole"),
             ("198.51.100.1:80", "inconclusive LOCAL_NO_ROUTE", "no route"),
             ("[2001:db8::1]:80", "inconclusive LOCAL_NO_ROUTE", "no IPv6 route"),
             ("10.231.1.77:80", "fail CONNECT_FAILED", "no neighbour"),
             ("[fd23:1::77]:80", "fail CONNECT_FAILED", "no IPv6 neighbour")]
    prober = Prober(folder, *way.options, netns=cable.near)
    for slot, (to, _, _) in enumerate(rows):
        prober.set(slot, type="tcp", handshake="half-open", onTimeout="nothing", T=20000, I=100, to=to)
    prober.set(99, type="tcp", handshake="half-open", T=T, I=100, to=f"{FAR_4}:80",
               source="10.231.1.250")
    prober.publish()
    for slot, (to, expected, what) in enumerate(rows):
        results = prober.wait_results(slot, N)
        seen = seen_of(results)
        check(seen == {expected} and max(line["end"] - line["start"] for line in results) < 20,
              f"{what}, {to}: {seen}")
    seen = {line["reason"] for line in prober.wait_results(99, N)}
    check(seen == {"LOCAL_SOURCE_MISSING"}, f"a source that this node does not own: {seen}")
    prober.stop()
    cable.unfilter(cable.far)


def sources_change(cable, folder, way):
    """What the node knows of its own addresses is kept between probes, and follows the kernel."""
    server = Server("ok", netns=cable.far, address=FAR_4)
    capture = capture_at(cable, "tcp_forger.py")
    prober = Prober(folder, *way.options, netns=cable.near)
    fields = {"type": "tcp", "handshake": "half-open", "T": T, "I": 100, "to": server.to("ok")}
    prober.set(0, **fields)
    prober.set(1, source=SECOND_SOURCE, **fields)
    prober.publish()

    def syns_from(lines):
        return [line["src"] for line in lines if line.get("flags") == "S"]

    def new_results(slot, n, reason):
        """Whether the n newest results say that, soon."""
        begun = len(prober.results(slot))
        prober.wait_results(slot, begun + n + 1)
        return seen_of(prober.results(slot)[-n:]) == {reason}

    prober.wait_results(0, N)
    run(f"ip -n {cable.near} route change 10.231.1.0/24 dev near0 src {SECOND_SOURCE}")
    old = len(capture.lines)
    check(new_results(0, 5, "pass OK"), "after a change of the route probes pass")
    newest = syns_from(capture.lines[old:])[-4:]
    check(newest and set(newest) == {SECOND_SOURCE}, f"from the route's new source: {set(newest)}")
    run(f"ip -n {cable.near} route change 10.231.1.0/24 dev near0 src {NEAR_4}")
    run(f"ip -n {cable.near} address del {SECOND_SOURCE}/24 dev near0")
    check(new_results(1, 5, "inconclusive LOCAL_SOURCE_MISSING"), "a source that went is missing")
    run(f"ip -n {cable.near} address add {SECOND_SOURCE}/24 dev near0")
    check(new_results(1, 5, "pass OK"), "and is there again")
    prober.stop()
    server.stop()
    capture.stop()


def without_rights(cable, folder, way):
    """Never replaced by another kind: nothing is on the wire."""
    server = Server("ok", netns=cable.far, address=FAR_4)
    capture = capture_at(cable, "tcp_forger.py")
    prober = Prober(folder, *way.options, netns=cable.near,
                    prefix=("setpriv", "--bounding-set=-net_raw", "--inh-caps=-net_raw"))
    prober.set(0, type="tcp", handshake="half-open", T=T, I=100, to=server.to("ok"))
    prober.publish()
    results = prober.wait_results(0, 5)
    n_packets = sum("flags" in line for line in capture.lines)
    prober.set(1, type="tcp", handshake="full", T=5000, I=100, to=server.to("ok"))
    prober.publish()
    full = prober.wait_results(1, 2)
    counts = prober.counts()
    prober.stop()
    server.stop()
    capture.stop()
    check(seen_of(results) == {"inconclusive LOCAL_NO_PERMISSION"} and n_packets == 0,
          f"without CAP_NET_RAW: inconclusive, {n_packets} packets")
    check({line["class"] for line in full} == {"pass"}, "and full probes go on")
    check(counts["probes_by_packet"] == 0, "no probe by the engine packet")


class Way:
    """send, receive: as the agent's options half-open-send and half-open-receive."""

    def __init__(self, send, receive="ring"):
        self.send, self.receive = send, receive
        self.options = ("--send", send, "--receive", receive)

    def check_counts(self, counts):
        """Which way was gone, of probes that nothing hinders."""
        n = {"ip": counts["probe_syns_by_ip"], "link": counts["probe_syns_by_link"]}
        other = n["ip" if self.send == "link" else "link"]
        # Repeated SYNs, and those to a neighbour that is not known yet, go by IP in any case.
        most = counts["probes_started"] // 2 if self.send == "link" else 0
        check(n[self.send] >= 0.9 * counts["probes_started"] and other <= most,
              f"sent by the {self.send}: {n} of {counts['probes_started']} probes")
        n = {"xdp": counts["probe_packets_by_xdp"], "ring": counts["probe_packets_by_ring"]}
        check((n["xdp"] > 0) == (self.receive == "xdp") and n["ring"] > 0,
              f"seen by {self.receive}: {n}, said: {counts['receive']}, {counts['receive_why']}")


def make_cable():
    cable = Cable()
    run(f"ip -n {cable.near} address add {SECOND_SOURCE}/24 dev near0")
    cable.quiet_neighbours()
    cable.send_whole_sums(cable.far, "far0")
    return cable


def wire_main(way):
    """Each test on a cable of its own, all at once: mostly they wait."""
    options = arguments()
    tests = (open_port, answers, network, sources_change, without_rights)
    cables = [make_cable() for _ in tests]
    with concurrent.futures.ThreadPoolExecutor(len(tests)) as pool:
        runs = [pool.submit(test, cable, options.bin, way) for test, cable in zip(tests, cables)]
        for one in runs:
            one.result()
    finish()
