#!/usr/bin/python3
"""When probes begin, by the stamps of a capture at the backends (row 3.4): against the end of the last
one and the interval, and with `pacing: fixed` against their beat. Needs root.

Goals: p99 of the error 2 ms and a slot; none accumulating. It fails at ten times them.
usage: probe_pacing.py --bin BIN [--seconds N]      120 s as the campaign "pacing"
"""
# alone: it measures times
import os
import statistics
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from netns import FAR_4, Cable
from prober import Prober, Server, arguments, check, finish, run
from wire import capture_at

NET = "10.240.0"
PACINGS = ("end-to-start", "fixed")
INTERVAL_MS = 500
N_TARGETS = 20
GOAL_S = 0.007  # 2 ms and a slot
MISSED = 10


def rounds_of(lines, address):
    """Of one backend: the times of each SYN and of the SYN-ACK to it."""
    rounds = []
    for line in lines:
        if line.get("flags") == "S" and line["dst"] == address:
            rounds.append([line["time"], None])
        elif line.get("flags") == "SA" and line["src"] == address and rounds:
            rounds[-1][1] = line["time"]
    return [pair for pair in rounds if pair[1] is not None]


def percentile(values, share):
    return sorted(values)[int(share * (len(values) - 1))]


def judge(what, errors, drift):
    sizes = [abs(error) for error in errors]
    p99 = percentile(sizes, 0.99)
    check(p99 <= MISSED * GOAL_S and abs(drift) <= MISSED * GOAL_S,
          f"{what}: {len(errors)} starts, error median {statistics.median(errors) * 1000:+.2f} ms, p99 "
          f"{p99 * 1000:.2f} ms (goal {GOAL_S * 1000:.0f}{', reached' if p99 <= GOAL_S else ', missed'}), "
          f"longest {max(sizes) * 1000:.2f} ms; of the last tenth against the first {drift * 1000:+.2f} ms")


def tenths(values):
    """How much later the mean of the last tenth is."""
    n = max(1, len(values) // 10)
    return statistics.mean(values[-n:]) - statistics.mean(values[:n])


def main():
    options = arguments(seconds=8)
    cable = Cable()
    run(f"ip -n {cable.far} route add local {NET}.0/24 dev lo")
    run(f"ip -n {cable.near} route add {NET}.0/24 via {FAR_4}")
    server = Server("silent", netns=cable.far, address="0.0.0.0")
    capture = capture_at(cable, "tcp_forger.py")
    prober = Prober(options.bin, netns=cable.near)
    for slot in range(N_TARGETS):
        prober.set(slot, type="tcp", handshake="half-open" if slot < N_TARGETS // 2 else "full",
                   onTimeout="rst", T=400, I=INTERVAL_MS, pacing=PACINGS[slot % 2],
                   to=f"{NET}.{slot + 1}:{server.ports['silent']}")
    prober.publish()
    n = int(options.seconds * 1000 / INTERVAL_MS)
    for slot in range(N_TARGETS):
        prober.wait_results(slot, n, options.seconds * 10)
    counts = prober.counts()
    prober.stop()
    capture.stop()
    server.stop()
    for at, pacing in enumerate(PACINGS):
        errors, drifts = [], []
        for slot in range(at, N_TARGETS, 2):
            rounds = rounds_of(capture.lines, f"{NET}.{slot + 1}")
            if pacing == "fixed":
                own = [pair[0] - rounds[0][0] - k * INTERVAL_MS / 1000
                       for k, pair in enumerate(rounds)]
                # A beat that this machine slept through is left out, and begins anew.
                own = [(error + INTERVAL_MS / 2000) % (INTERVAL_MS / 1000) - INTERVAL_MS / 2000
                       for error in own]
            else:
                own = [later[0] - earlier[1] - INTERVAL_MS / 1000
                       for earlier, later in zip(rounds, rounds[1:])]
            errors += own
            drifts.append(tenths(own))
        judge("pacing " + pacing, errors, statistics.median(drifts))
    check(counts["probes_by_packet"] > 0 and counts["probes_by_connect"] > 0,
          f"{counts['probes_by_packet']} probes by the engine packet, {counts['probes_by_connect']} by "
          "the engine connect")
    finish()


main()
