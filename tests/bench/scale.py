#!/usr/bin/python3
"""Everything about scale and cost in one run, for the campaign: the engine's steps, votes among 16
nodes, memory, latency of real agents. The last line is the summary; the others are the tables.

usage: scale.py --bin BIN [--rounds N] [--window-s S]
"""
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from cluster import ROOT, arguments  # noqa: E402


def show(command):
    """Runs it before our eyes; its lines."""
    print("$ " + " ".join(command), flush=True)
    lines = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout:
            print(line, end="", flush=True)
            lines.append(line.strip())
    if process.returncode != 0:
        print("FAILED: %s ended with %d" % (command[0], process.returncode))
        sys.exit(1)
    return lines


def main():
    options = arguments(rounds=4, window_s=10)
    program = os.path.join(options.bin, "bench_%s").__mod__
    engine = show([program("engine")])
    votes = show([program("votes"), "--rounds", str(options.rounds),
                  "--window-s", str(options.window_s), "--memory", "10000"])
    latency = show([sys.executable, os.path.join(ROOT, "tests/bench/change_latency.py"),
                    "--bin", options.bin, "--votes", "1000", "--changes", "200"])
    memory = next(line for line in votes if line.startswith("memory: "))
    print("; ".join([engine[-1], votes[-1], memory, latency[-2]]))


main()
