#!/usr/bin/python3
"""A thousand targets on real sockets: case A13 (ports and descriptors), jitter, no lost probe.

Half tcp, half http, I = 1 s, of one nginx, and 50 black holes with T = 500 ms. `--targets 10000 --holes
1000` is the size of G-14. Needs root.
"""
# alone: it fills the machine
import os
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from netns import FAR_4, Cable
from nginx import PORT, Nginx
from prober import (EARLY_S, Prober, arguments, check, check_counts, cpu_seconds, finish,
                    run)

I, ROUNDS = 1000, 8
HOLE_PORT = 9


def n_descriptors(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def open_sockets(cable):
    """Sockets of the prober's side by destination, and how many are in TIME_WAIT."""
    by_destination, n_waiting = {}, 0
    for line in cable.in_near("ss -Htan").splitlines():
        fields = line.split()
        if fields[0] == "TIME-WAIT":
            n_waiting += 1
        elif fields[0] != "LISTEN":
            by_destination[fields[4]] = by_destination.get(fields[4], 0) + 1
    return by_destination, n_waiting


def percentile(values, share):
    return sorted(values)[int(share * (len(values) - 1))]


def main():
    options = arguments(targets=1000, holes=50)
    n_targets = options.targets
    cable = Cable()
    run(f"ip -n {cable.far} route add local 10.240.0.0/16 dev lo")
    run(f"ip -n {cable.near} route add 10.240.0.0/16 via {FAR_4}")
    cable.filter(cable.far, f"tcp dport {HOLE_PORT} drop")
    with tempfile.TemporaryDirectory() as folder:
        nginx = Nginx(cable.far, folder)
        prober = Prober(options.bin, netns=cable.near)
        for slot in range(n_targets):
            prober.set(slot, type="tcp" if slot % 2 else "http", T=20000, I=I,
                       to=f"10.240.{10 + slot // 250}.{slot % 250 + 1}:{PORT}")
        for hole in range(options.holes):
            prober.set(n_targets + hole, type="tcp", T=500, I=100,
                       to=f"10.240.{hole // 250}.{hole % 250 + 1}:{HOLE_PORT}")
        prober.publish()
        descriptors, waiting, shared = [], [], set()
        # Each target has passed so many times; meanwhile the sockets are looked at.
        prober.wait_results(0, 2)
        deadline = time.monotonic() + 10 * ROUNDS * I / 1000
        while len(prober.results(0)) < ROUNDS and time.monotonic() < deadline:
            by_destination, n_waiting = open_sockets(cable)
            waiting.append(n_waiting)
            shared |= {to for to, n in by_destination.items() if n > 1}
            descriptors.append(n_descriptors(prober.process.pid))
            time.sleep(0.05)
        for slot in range(n_targets):
            prober.wait_results(slot, ROUNDS - 2)
        used = cpu_seconds(prober.process.pid)
        counts = prober.final_counts()
        prober.stop()
        nginx.stop()

    lines = [line for line in prober.lines if "slot" in line]
    mixed = {(line["slot"] < n_targets, line["class"], line["reason"]) for line in lines
             if line["reason"] != "LOCAL_LATE"}
    check(mixed == {(True, "pass", "OK"), (False, "fail", "CONNECT_TIMEOUT")},
          f"{len(lines)} results: {sorted(mixed)}")
    check(max(waiting) <= 10, f"A13: {max(waiting)} TIME_WAIT sockets at most in {len(waiting)} looks "
          "(bound 10)")
    check(not shared, f"A13: never more than one open socket of a target: {sorted(shared)[:3]}")
    half = len(descriptors) // 2
    low, high = sorted(descriptors[:half])[half // 2], sorted(descriptors[half:])[half // 2]
    # Sockets are kept for later probes: as many as were in use at a time, and no more.
    check(high - low <= 20, f"A13: descriptors do not grow: median {low} in the first half, {high} in "
          f"the second, {max(descriptors)} at most")
    late = []
    for slot in range(n_targets):
        results = prober.results(slot)
        late += [b["start"] - a["end"] - I / 1000 for a, b in zip(results, results[1:])]
    late = [value for value in late if value < I / 1000]  # without a result that was left out
    check(min(late) >= -EARLY_S and percentile(late, 0.99) < 0.2,
          f"starts after their due time: median {percentile(late, 0.5) * 1000:.2f} ms, p99 "
          f"{percentile(late, 0.99) * 1000:.2f} ms (goal 20, bound 200), early by {-min(late) * 1000:.2f} ms at most (bound 1)")
    check_counts(counts)
    print(f"      {used / counts['probes_finished'] * 1e6:.0f} us of CPU a probe, starting, planning and "
          "printing included")
    finish()


main()
