#!/usr/bin/python3
"""What a target takes of a whole agent's memory: resident bytes at two sizes, so that what is fixed
drops out. Half-open targets in groups of 1,000, all found healthy; one node. Both sizes are above the
number of events that a node keeps (LIMIT_EVENTS, 616 bytes each), of which a target makes two when it
comes. What it adds to the past is counted in, and told: it ends at 24 MiB (agent/core/history.h), and
is not there yet. What the engine alone takes, with peers, is tests/unit/core/test_memory.c. Needs
root.
"""
# twin: checks-are-copied takes [0-9]+ bytes, more than
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from bench_rivals import Far, Jury, resident_bytes  # noqa: E402
from cluster import check, run, wait_until  # noqa: E402

FEW, MANY = 6000, 16000
INTERVAL_MS = 2000
GOAL_BYTES = 1024
BOUND_BYTES = 1300
PAST_BYTES = 5 * 24  # of a new target of a node alone


def settled_bytes(pid):
    """What a change takes for a moment is given back within a second or two."""
    least = resident_bytes(pid)
    for _ in range(15):
        time.sleep(0.1)
        least = min(least, resident_bytes(pid))
    return least


def bytes_of(n_targets, options):
    far = Far(options.bin, False)
    jury = Jury(far, options)
    try:
        jury.start("half-open", n_targets, INTERVAL_MS)
        wait_until("all targets are judged", 120,
                   lambda: jury.probes()["engine_opinion_changes"] >= n_targets)
        return settled_bytes(jury.pid)
    finally:
        jury.stop()
        far.close()


def test(options):
    few, many = bytes_of(FEW, options), bytes_of(MANY, options)
    each = (many - few) / (MANY - FEW)
    print("%d targets: %.1f MB, %d targets: %.1f MB: %.0f bytes a target, without the past %.0f (goal"
          " %d, bound %d)" % (FEW, few / 1e6, MANY, many / 1e6, each, each - PAST_BYTES, GOAL_BYTES,
                              BOUND_BYTES))
    check(each <= BOUND_BYTES, "a target takes %.0f bytes, more than %d" % (each, BOUND_BYTES))


run(test)
