"""What the tests of single probes on a wire have in common: a capture at the far end of a cable
(netns.Cable), places as probe_tool wants them, and results as the tables of the tests name them.
"""
import os
import sys

from netns import FAR_4, FAR_6, NEAR_4, NEAR_6
from prober import LIB, Lines

SECOND_SOURCE = "10.231.1.101"
FAMILIES = (("IPv4", FAR_4, NEAR_4), ("IPv6", FAR_6, NEAR_6))


def place(address, port):
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def capture_at(cable, forger, *stories):
    """forger: a script of this folder. stories: PORT=STORY, what it answers. Begun when it returns."""
    capture = Lines([sys.executable, os.path.join(LIB, forger), "far0", *stories], cable.far)
    capture.wait(lambda lines: lines, "the capture")
    return capture


def seen_of(results):
    return {f"{line['class']} {line['reason']}" for line in results}
