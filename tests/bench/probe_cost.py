#!/usr/bin/python3
"""What a probe costs: a jury-agent against haproxy's health checks, in alternation.

Both run by themselves on processor 0, with the same backends and interval; the backends are on
processor 1, in another namespace, and count what comes, of either. The cost is user and system time
of the whole process (all of an agent: probes, votes, verdicts, table, RPC) by what the backends
counted in the same time. Each round starts both anew; ratios are taken within a round.

The backends of tcp answer in the driver (tests/tools/syn_reflector.c) and cost less than the
cheapest probe, the same for all. haproxy's tcp check is SYN, SYN-ACK, RST, also beside our full
handshakes, which have an ACK more.

usage: probe_cost.py --bin BIN [--rounds N] [--window-ms N] [--points NAME,...]
Points: see POINTS. It fails when one costs more than BOUND times what its goal says.
"""
import os
import statistics
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from bench_rivals import Far, Haproxy, Jury, cpu_ns, resident_bytes  # noqa: E402
from cluster import check, run, wait_until  # noqa: E402

# name: (kind, targets, interval of ours and of haproxy's in ms, goal: haproxy's cost by ours).
# At saturation haproxy does as many as it can of what is asked; the shortest interval of ours is
# 100 ms, so ours is given more targets.
POINTS = {
    "half-open": ("half-open", (4000, 100), (1000, 10), 4.0),
    "half-open-10000": ("half-open", (10000, 1000), (10000, 1000), 3.5),
    "half-open-1000": ("half-open", (1000, 1000), (1000, 1000), 3.0),
    "half-open-xdp": ("half-open", (4000, 100), (1000, 10), 10.0),
    "half-open-xdp-10000": ("half-open", (10000, 1000), (10000, 1000), 7.0),
    "half-open-ip": ("half-open", (4000, 100), (1000, 10), None),
    "half-open-ip-10000": ("half-open", (10000, 1000), (10000, 1000), None),
    "full": ("full", (2000, 100), (1000, 10), 1.8),
    "http": ("http", (1000, 100), (1000, 10), 1.6),
    "http-1000": ("http", (1000, 1000), (1000, 1000), None),
    # Of one core; haproxy has no descriptors for as many.
    "half-open-30000": ("half-open", (30000, 1000), None, None),
    # The same rate as half-open-10000, and fewer or more targets: what does a probe cost? One core
    # has not room for 100,000 each second.
    "flat-1000": ("half-open", (1000, 100), None, None),
    "flat-100000": ("half-open", (100000, 10000), None, None),
}
# How half-open probes leave, and how their answers are seen: the agent's options.
WAY = ("link", "ring")
WAYS = {"half-open-ip": ("ip", "ring"), "half-open-ip-10000": ("ip", "ring"),
        "half-open-xdp": ("link", "xdp-driver"), "half-open-xdp-10000": ("link", "xdp-driver")}
BOUND = 10  # a goal missed by more is a failure
MEMORY_GOAL_BYTES = 1024
SETTLE_S = 1.2  # more than an interval of those with a rate
# An agent's results are handed over in another way once a target has passed ten times.
STEADY_ROUNDS, STEADY_S_MAX = 11, 12
FLAT = {1000: "flat-1000", 10000: "half-open-10000", 100000: "flat-100000"}
FLAT_GOAL = 1.2  # the dearest by the cheapest
CORE_GOAL = 0.3  # of half-open-30000


def measure(rival, far, kind, load, window_s):
    """One life of a rival: cost in us, probes a second, bytes, and the part of it by thread."""
    n_targets, interval_ms = load
    rival.start(kind, n_targets, interval_ms)
    begin = far.count()
    wait_until("the backends of %s are probed" % rival.name, 60,
               lambda: rival.pid and far.count() - begin >= n_targets)
    steady_s = STEADY_ROUNDS * interval_ms / 1000 if rival.name == "jury" else 0
    time.sleep(max(SETTLE_S, steady_s if steady_s <= STEADY_S_MAX else 0))
    # A whole interval at least: what was applied together is probed together.
    window_s = max(window_s, interval_ms / 1000)
    before, cpu, started = far.count(), cpu_ns(rival.pid), time.monotonic()
    time.sleep(window_s)
    n, after, took = far.count() - before, cpu_ns(rival.pid), time.monotonic() - started
    check(n > 0, "%s probes nothing" % rival.name)
    by_thread = {name: (ns - cpu.get(name, 0)) / 1000 / n for name, ns in after.items()}
    return {"us": sum(by_thread.values()), "rate": n / took, "bytes": resident_bytes(rival.pid),
            "by_thread": by_thread, "counts": rival.probes()}


def one_life(kind_of_rival, options, kind, load, way=None):
    far = Far(options.bin, kind == "http", has_program=way is not None and way[1] != "ring")
    agent_options = [] if way is None else [["--half-open-send", way[0], "--half-open-receive", way[1]]]
    rival = kind_of_rival(far, options, *agent_options)
    window_s = options.window_ms / 1000
    try:
        return measure(rival, far, kind, load, window_s)
    finally:
        rival.stop()
        far.close()


def check_engine(name, kind, counts):
    """Which engine made them, and by which way."""
    engine = "packet" if kind == "half-open" else "connect"
    other = "connect" if kind == "half-open" else "packet"
    check(counts["probes_by_" + engine] > 0 and counts["probes_by_" + other] == 0,
          "%s: not by the engine %s" % (name, engine))
    if kind == "half-open":
        way = WAYS.get(name, WAY)
        for what, one, other in (("syns", way[0], "ip" if way[0] == "link" else "link"),
                                 ("packets", way[1][:4].rstrip("-"),
                                  "xdp" if way[1] == "ring" else "ring")):
            check(counts["probe_%s_by_%s" % (what, one)] >
                  10 * counts["probe_%s_by_%s" % (what, other)],
                  "%s: %s not by %s: %s" % (name, what, one, {word: counts[word] for word in counts if
                                                              word.startswith("probe_%s_by" % what)}))
    failed = {word: n for word, n in counts.items()
              if word.startswith("probe_results{") and n > 0 and "{ok}" not in word}
    check(sum(failed.values()) <= counts["probes_finished"] / 100,
          "%s: backends that are well have %s" % (name, failed))


def spread(values, form="%.2f"):
    return " / ".join(form % value for value in (min(values), statistics.median(values),
                                                 max(values)))


def run_point(name, options):
    kind, ours, theirs, goal = POINTS[name]
    rounds = []
    for _ in range(options.rounds):
        of_jury = one_life(Jury, options, kind, ours, WAYS.get(name, WAY))
        check_engine(name, kind, of_jury["counts"])
        of_haproxy = theirs and one_life(Haproxy, options, kind, theirs)
        rounds.append((of_jury, of_haproxy))
    mine = [a["us"] for a, _ in rounds]
    threads = max((a["by_thread"] for a, _ in rounds[:1]), key=len)
    text = "%-16s us %s (%.0f/s; %s)" % (
        name, spread(mine, "%.1f"), statistics.median(a["rate"] for a, _ in rounds),
        ", ".join("%s %.1f" % (thread, us) for thread, us in
                  sorted(threads.items(), key=lambda row: -row[1])[:3]))
    ratios = [b["us"] / a["us"] for a, b in rounds if b]
    if ratios:
        text += "; haproxy us %s (%.0f/s); haproxy by ours %s" % (
            spread([b["us"] for _, b in rounds], "%.1f"),
            statistics.median(b["rate"] for _, b in rounds), spread(ratios))
    if goal:
        reached = statistics.median(ratios)
        text += ", goal %.1f: %s" % (goal, "reached" if reached >= goal else
                                     "missed by %.2f" % (goal / reached))
        check(reached * BOUND >= goal, text)
    print(text, flush=True)
    return rounds


# Of an agent above the number of events that it keeps (tests/integration/agent_memory.py).
MEMORY = {"jury": (10000, 30000), "haproxy": (1000, 10000)}


def memory(rounds_of):
    """Bytes a target: what so many more of them take."""
    for at, (who, sizes) in enumerate(MEMORY.items()):
        few, many = (statistics.median(r[at]["bytes"] for r in rounds_of["half-open-%d" % n])
                     for n in sizes)
        print("memory a target, %s: %.0f bytes" % (who, (many - few) / (sizes[1] - sizes[0]))
              + (" (goal %d)" % MEMORY_GOAL_BYTES if who == "jury" else ""), flush=True)


def missed_by(what, goal):
    return " (goal %.2f, %s)" % (goal, "reached" if what <= goal else
                                 "missed by %.2f" % (what / goal))


def flat(rounds_of):
    """10,000 probes a second of ever more targets."""
    costs = {n: [a["us"] for a, _ in rounds_of[name]] for n, name in FLAT.items()}
    for n_targets, us in costs.items():
        print("a probe of 10,000 a second, %6d targets: us %s" % (n_targets, spread(us, "%.1f")))
    medians = [statistics.median(us) for us in costs.values()]
    ratio = max(medians) / min(medians)
    print("the dearest by the cheapest: %.2f%s" % (ratio, missed_by(ratio, FLAT_GOAL)), flush=True)


def test(options):
    names = options.points.split(",")
    check(set(names) <= set(POINTS), "there are the points " + ", ".join(POINTS))
    rounds_of = {name: run_point(name, options) for name in names}
    if {"half-open-%d" % n for sizes in MEMORY.values() for n in sizes} <= set(names):
        memory(rounds_of)
    if set(FLAT.values()) <= set(names):
        flat(rounds_of)
    if "half-open-30000" in names:
        share = [a["us"] * a["rate"] / 1e6 for a, _ in rounds_of["half-open-30000"]]
        print("30,000 targets each second, part of a core: %s%s"
              % (spread(share), missed_by(statistics.median(share), CORE_GOAL)), flush=True)
    print("; ".join("%s %s" % (name, spread([b["us"] / a["us"] for a, b in rounds if b]))
                    for name, rounds in rounds_of.items() if rounds[0][1]))


run(test, rounds=4, window_ms=3000, points=",".join(POINTS))
