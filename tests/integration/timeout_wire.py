#!/usr/bin/python3
"""What is on the wire when a tcp probe times out, flag by flag: nothing by the defaults of gwlb (S5), a RST
that carries ISN + 1 by those of clb (S41, half-open) and nlb (S94, full handshake, whose SYN is the
kernel's). Without CAP_NET_RAW no RST follows a full handshake, and all else is as ever. IPv4 and IPv6;
a firewall keeps the backend silent. Needs root.
"""
# shows: S5 S41 S94
# twin: connect-timeout-quiet gave up waiting for packets, IPv4 profile nlb
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from netns import Cable
from prober import Prober, arguments, check, finish
from wire import FAMILIES, attempts, capture_at, check_shape, place, seen_of

N = 3  # probes of each target
# port, what it is, handshake, onTimeout, T, packets: as in half_open_wire.py
ROWS = (
    (7201, "profile gwlb", "half-open", "nothing", 400, "near S 0"),
    (7202, "profile nlb", "full", "rst", 400, "near S 0, near R 1"),
    (7203, "profile clb", "half-open", "rst", 400, "near S 0, near R 1"),
    (7204, "full, nothing", "full", "nothing", 400, "near S 0"),
    (7205, "profile nlb, SYN repeated", "full", "rst", 1500, "near S 0, near S 0, near R 1"),
)
WITHOUT_RIGHTS = ((7202, "profile nlb without rights", "full", "rst", 400, "near S 0"),)


def probe(cable, folder, rows, prefix=()):
    capture = capture_at(cable, "tcp_forger.py")
    prober = Prober(folder, netns=cable.near, prefix=prefix)
    slots = [(100 * n + at, row, far) for n, (_, far, _) in enumerate(FAMILIES)
             for at, row in enumerate(rows)]
    for slot, (port, _, handshake, on_timeout, timeout, _), far in slots:
        prober.set(slot, type="tcp", handshake=handshake, onTimeout=on_timeout, T=timeout, I=200,
                   to=place(far, port))
    prober.publish()
    for slot, row, _ in slots:
        seen = seen_of(prober.wait_results(slot, N))
        check(seen == {"fail CONNECT_TIMEOUT"}, f"{row[1]}: {seen}")
    for family, _, near in FAMILIES:
        for port, what, *_, packets in rows:
            # The last segments of a probe may come after its result.
            capture.wait(lambda lines, port=port, near=near, packets=packets: sum(
                len(found) >= packets.count(",") + 1
                for found in attempts(lines, port, near).values()) >= N, f"packets, {family} {what}")
    prober.remove(*[slot for slot, _, _ in slots])
    counts = prober.final_counts()
    prober.stop()
    capture.stop()
    for family, _, near in FAMILIES:
        for port, what, *_, packets in rows:
            check_shape(f"{family}, {what}", attempts(capture.lines, port, near), packets, N)
    return counts


def main():
    options = arguments()
    cable = Cable()
    cable.filter(cable.far, "tcp dport 7201-7299 drop")
    counts = probe(cable, options.bin, ROWS)
    check(counts["probes_by_connect"] > 0 and counts["probes_by_packet"] > 0 and
          counts["probes_lost"] == 0, "by both engines, none lost")
    probe(cable, options.bin, WITHOUT_RIGHTS,
          prefix=("setpriv", "--bounding-set=-net_raw", "--inh-caps=-net_raw"))
    finish()


main()
