#!/usr/bin/python3
"""Probes over a network of two namespaces: what is on the wire and what silence and refusals mean.

Cases A12 (packets of tcp full), A14 (source), A15 (unreachable at once), dropped SYNs, ICMP answers,
IPv4 and IPv6. Needs root.
"""
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from netns import FAR_4, FAR_6, NEAR_4, NEAR_6, Cable
from prober import (EARLY_S, LIB, Lines, Prober, Server, arguments, check, cpu_seconds, finish, run,
                    took)

T, I, N = 400, 100, 3
TOLERANCE = 0.5
SECOND_SOURCE = "10.231.1.101"


def connections(capture, port):
    """The segments of each connection to a port, in order, as (from the prober?, flags, payload)."""
    found = {}
    for line in capture.lines:
        if line.get("dport") == port:
            found.setdefault((line["src"], line["sport"]), []).append(
                ("near", line["flags"], line["payload"], line["src"]))
        elif line.get("sport") == port:
            found.setdefault((line["dst"], line["dport"]), []).append(
                ("far", line["flags"], line["payload"], line["dst"]))
    return list(found.values())


# shows: S95
def packets_of_tcp_full(cable, folder):
    """A12: SYN, SYN-ACK, ACK, RST, 0 payload bytes, no FIN. A14: from the source that was set."""
    for address, source in ((FAR_4, NEAR_4), (FAR_6, NEAR_6), (FAR_4, SECOND_SOURCE)):
        server = Server("silent", netns=cable.far, address=address)
        capture = Lines([sys.executable, os.path.join(LIB, "tcp_capture.py"), "far0"], cable.far)
        capture.wait(lambda lines: lines, "the capture")
        prober = Prober(folder, netns=cable.near)
        fields = {"source": source} if source == SECOND_SOURCE else {}
        prober.set(0, type="tcp", to=server.to("silent"), T=5000, I=I, **fields)
        prober.publish()
        results = prober.wait_results(0, 5)
        prober.stop()
        port = server.ports["silent"]
        capture.wait(lambda lines: sum("R" in line.get("flags", "") for line in lines) >= 5,
                     "five resets on the wire")
        server.stop()
        capture.stop()
        seen = connections(capture, port)
        shapes = {tuple((side, flags) for side, flags, _, _ in packets) for packets in seen}
        expected = (("near", "S"), ("far", "SA"), ("near", "A"), ("near", "RA"))
        # The last one may have been cut off by the end of the prober.
        whole = [packets for packets in seen if len(packets) >= 4]
        check(len(whole) >= 5 and shapes <= {expected, expected[:3], expected[:1]},
              f"A12 {address}: {len(whole)} connections of {' '.join(f for _, f in expected)}: "
              f"{sorted(shapes)}")
        check(all(payload == 0 for packets in seen for _, _, payload, _ in packets),
              f"A12 {address}: no payload byte")
        check({packet[3] for packets in seen for packet in packets} == {source},
              f"A14 {address}: every packet is of {source}")
        check({result["reason"] for result in results} == {"OK"}, f"A12 {address}: passes")


def reasons(results):
    return {f"{result['class']} {result['reason']}" for result in results}


# shows: S94
def silence(cable, folder, server4, server6):
    cable.filter(cable.far, "tcp dport { %d, %d } drop" % (server4.ports["ok"], server6.ports["ok"]))
    prober = Prober(folder, netns=cable.near)
    for slot, (kind, to) in enumerate((kind, server.to("ok")) for kind in ("tcp", "http")
                                      for server in (server4, server6)):
        prober.set(slot, type=kind, to=to, T=T, I=I)
    prober.publish()
    for slot in range(4):
        results = prober.wait_results(slot, N)
        ratios = [took(result) / (T / 1000) for result in results]
        check(reasons(results) == {"fail CONNECT_TIMEOUT"}, f"dropped SYNs: {reasons(results)}")
        check(min(ratios) >= 1 and max(ratios) * T / 1000 <= T / 1000 + TOLERANCE,
              f"dropped SYNs: measured/stated {min(ratios):.4f}..{max(ratios):.4f}")
    cable.unfilter(cable.far)
    prober.wait(lambda lines: all(prober.results(slot)[-1]["class"] == "pass" for slot in range(4)),
                "passes after the drop has ended")
    check(True, "passes again when SYNs are let through")
    prober.stop()


def answers_of_the_network(cable, folder, server4, server6):
    """RST and ICMP errors are the backend's or the network's: CONNECT_FAILED, long before T."""
    for rule in ("reject with tcp reset", "reject with icmpx type host-unreachable",
                 "reject with icmpx type admin-prohibited", "reject with icmpx type no-route",
                 "reject with icmpx type port-unreachable"):
        ports = "tcp dport { %d, %d } " % (server4.ports["ok"], server6.ports["ok"])
        cable.filter(cable.far, ports + rule)
        prober = Prober(folder, netns=cable.near)
        prober.set(0, type="tcp", to=server4.to("ok"), T=5000, I=I)
        prober.set(1, type="http", to=server6.to("ok"), T=5000, I=I)
        prober.publish()
        for slot, family in ((0, "IPv4 tcp"), (1, "IPv6 http")):
            results = prober.wait_results(slot, N)
            check(reasons(results) == {"fail CONNECT_FAILED"} and max(map(took, results)) < 5,
                  f"{rule}, {family}: {reasons(results)} after "
                  f"{max(map(took, results)) * 1000:.1f} ms at most")
        prober.stop()
        cable.unfilter(cable.far)


def unreachable_route(cable, folder, server4):
    """A15, ten times as fast: I = 200 ms, and 10 backends whose SYNs are dropped."""
    interval, n_rounds = 200, 15
    cable.in_near("ip route add unreachable 10.231.9.9")
    cable.in_near("ip route add unreachable fd23:9::9")
    cable.filter(cable.far, "tcp dport 7000-7009 drop")
    prober = Prober(folder, netns=cable.near)
    prober.set(0, type="tcp", to="10.231.9.9:80", T=T, I=interval)
    prober.set(1, type="http", to="10.231.9.9:80", T=T, I=interval)
    prober.set(2, type="tcp", to="[fd23:9::9]:80", T=T, I=interval)
    for slot in range(10):
        prober.set(10 + slot, type="tcp", to=f"{FAR_4}:{7000 + slot}", T=T, I=interval)
    prober.publish()
    begin, begin_cpu = time.monotonic(), cpu_seconds(prober.process.pid)
    for slot in range(3):
        results = prober.wait_results(slot, n_rounds)
        gaps = [b["start"] - a["end"] for a, b in zip(results, results[1:])]
        check(reasons(results) == {"fail CONNECT_FAILED"}, f"A15: {reasons(results)}")
        check(min(gaps) >= interval / 1000 - EARLY_S,
              f"A15: at most one attempt an interval: shortest gap {min(gaps) * 1000:.1f} ms")
        third = results[2]["end"] - results[0]["start"]
        check(third >= 2 * (interval / 1000 - EARLY_S), f"A15: third failure after {third:.3f} s, measured/"
              f"stated {third / (2 * interval / 1000):.4f} (stated: own durations + 2 I)")
    share = (cpu_seconds(prober.process.pid) - begin_cpu) / (time.monotonic() - begin)
    check(share < 0.02, f"A15: {share * 100:.2f} % of a CPU (bound 2)")
    prober.stop()
    cable.unfilter(cable.far)
    check(server4.process.poll() is None, "the backend lives")


def own_network(cable, folder, server4):
    """No route, link down, prohibited: this node's own faults move nothing."""
    cable.in_near("ip route add prohibit 10.231.9.10")
    cable.in_near("ip route add blackhole 10.231.9.11")
    prober = Prober(folder, netns=cable.near)
    rows = [("198.51.100.1:80", "LOCAL_NO_ROUTE", "no route"),
            ("[2001:db8::1]:80", "LOCAL_NO_ROUTE", "no IPv6 route"),
            ("10.231.9.10:80", "LOCAL_NO_PERMISSION", "route prohibit"),
            ("10.231.9.11:80", "LOCAL_NO_ROUTE", "route blackhole")]
    for slot, (to, _, _) in enumerate(rows):
        prober.set(slot, type="tcp", to=to, T=T, I=I)
    prober.set(9, type="http", to=server4.to("ok"), T=5000, I=I)
    prober.publish()
    for slot, (_, reason, what) in enumerate(rows):
        results = prober.wait_results(slot, N)
        check(reasons(results) == {f"inconclusive {reason}"}, f"{what}: {reasons(results)}")
    prober.wait_results(9, N)
    cable.in_near("ip link set near0 down")
    prober.wait(lambda lines: prober.results(9)[-1]["reason"] == "LOCAL_NO_ROUTE", "link down")
    cable.in_near("ip link set near0 up")
    prober.wait(lambda lines: prober.results(9)[-1]["class"] == "pass", "link up again")
    check(all(line["class"] != "fail" for line in prober.results(9)),
          f"link down and up: {reasons(prober.results(9))}, the next probe counts")
    prober.stop()


def main():
    options = arguments()
    cable = Cable()
    run(f"ip -n {cable.near} address add {SECOND_SOURCE}/24 dev near0")
    server4 = Server("ok", netns=cable.far, address=FAR_4)
    server6 = Server("ok", netns=cable.far, address=FAR_6)
    packets_of_tcp_full(cable, options.bin)
    silence(cable, options.bin, server4, server6)
    answers_of_the_network(cable, options.bin, server4, server6)
    unreachable_route(cable, options.bin, server4)
    own_network(cable, options.bin, server4)
    server4.stop()
    server6.stop()
    finish()


main()
