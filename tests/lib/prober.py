"""Driving probe_tool and backend_server.py from a test script: start, read lines, wait for conditions.

Every wait has a deadline and ends the script with a sentence when it passes; nothing sleeps and hopes.
"""
import argparse
import json
import os
import subprocess
import sys
import threading
import time

LIB = os.path.dirname(os.path.abspath(__file__))
PATIENCE = 60.0
EARLY_S = 0.001  # by which a probe may begin before its interval is over (probe_loop.h)
FAILURES = []


def arguments(**numbers):
    """--bin, and an option for each number with its default."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True, help="folder of the built programs")
    for name, default in numbers.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    return parser.parse_args()


def check(ok, text):
    """One observation: printed, and counted when it is wrong."""
    print(("ok    " if ok else "WRONG ") + text, flush=True)
    if not ok:
        FAILURES.append(text)
    return ok


def finish():
    if FAILURES:
        print(f"{len(FAILURES)} wrong")
        sys.exit(1)
    print("all as expected")
    sys.exit(0)


def run(command, ok=True):
    done = subprocess.run(command.split(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, check=False)
    if ok and done.returncode != 0:
        raise RuntimeError(f"{command}: {done.stdout}")
    return done.stdout


class Lines:
    """A process whose output is JSON lines."""

    def __init__(self, command, netns=None):
        if netns:
            command = ["ip", "netns", "exec", netns] + command
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True, bufsize=1)
        self.lines, self.changed = [], threading.Condition()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.process.stdout:
            with self.changed:
                self.lines.append(json.loads(line))
                self.take(self.lines[-1])
                self.changed.notify_all()

    def take(self, line):
        """Of each line as it comes; for those who keep more than the list."""

    def tell(self, text):
        self.process.stdin.write(text + "\n")
        self.process.stdin.flush()

    def wait(self, condition, what, patience=PATIENCE):
        """The first true value of condition(lines)."""
        deadline = time.monotonic() + patience
        with self.changed:
            while True:
                value = condition(self.lines)
                if value:
                    return value
                left = deadline - time.monotonic()
                if left <= 0 or self.process.poll() is not None and not self.changed.wait(1):
                    print(f"gave up waiting for {what}; last lines: {self.lines[-5:]}")
                    self.process.kill()
                    sys.exit(1)
                self.changed.wait(min(left, 1))

    def stop(self):
        self.process.stdin.close()
        try:
            return self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise


class Prober(Lines):
    def __init__(self, folder, *options, netns=None, prefix=()):
        self.by_slot, self.every_by_slot = {}, {}
        super().__init__(list(prefix) + [os.path.join(folder, "probe_tool")] + list(options), netns)

    def take(self, line):
        if "slot" not in line:
            return
        self.every_by_slot.setdefault(line["slot"], []).append(line)
        # Without those of moments in which this machine was too busy to probe.
        if line["reason"] != "LOCAL_LATE":
            self.by_slot.setdefault(line["slot"], []).append(line)

    def set(self, slot, **fields):
        self.tell(f"set {slot} " + " ".join(f"{key}={value}" for key, value in fields.items()))

    def publish(self):
        self.tell("publish")

    def remove(self, *slots):
        for slot in slots:
            self.tell(f"remove {slot}")
        self.publish()

    def results(self, slot):
        """Of one slot, without those that are late by this machine's own fault."""
        return list(self.by_slot.get(slot, ()))

    def every(self, slot):
        """Of one slot, with those."""
        return list(self.every_by_slot.get(slot, ()))

    def wait_results(self, slot, n, patience=PATIENCE):
        """The first n results of a slot."""
        return self.wait(lambda lines: len(self.by_slot.get(slot, ())) >= n and self.results(slot)[:n],
                         f"{n} results of slot {slot}", patience)

    def counts(self):
        with self.changed:
            n = sum(1 for line in self.lines if "counts" in line)
        self.tell("counts")
        return self.wait(lambda lines: [line for line in lines if "counts" in line][n:],
                         "counts")[0]

    def final_counts(self):
        """The counts after every target has been removed: all of one moment."""
        for slot in sorted({line["slot"] for line in list(self.lines) if "slot" in line}):
            self.tell(f"remove {slot}")
        self.publish()
        deadline = time.monotonic() + PATIENCE
        while True:
            counts = self.counts()
            if counts["probe_targets"] == 0 and counts["probes_in_flight"] == 0:
                return counts
            if time.monotonic() > deadline:
                print(f"gave up waiting for the targets to go: {counts}")
                sys.exit(1)


def check_counts(counts):
    """R-PROBE-2: each probe has exactly one result or was abandoned with its target."""
    check(counts["probes_lost"] == 0 and counts["probe_results_dropped"] == 0 and
          counts["probes_started"] == counts["probes_finished"] + counts["probes_abandoned"],
          f"{counts['probes_started']} probes started = {counts['probes_finished']} finished + "
          f"{counts['probes_abandoned']} abandoned, 0 lost, 0 dropped")
    print(f"      results left out because this machine was busy: "
          f"{counts['probe_results_local_late']}")


class Server(Lines):
    def __init__(self, *modes, netns=None, address="127.0.0.1", options=()):
        super().__init__([sys.executable, os.path.join(LIB, "backend_server.py"), "--address",
                          address, *options, *modes], netns)
        self.address = address
        self.ports = self.wait(lambda lines: lines[:1], "the backend server")[0]

    def to(self, mode):
        host = f"[{self.address}]" if ":" in self.address else self.address
        return f"{host}:{self.ports[mode]}"

    def connections(self, mode):
        return [line for line in self.lines if line.get("mode") == mode]


def took(result):
    return result["end"] - result["start"]


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
