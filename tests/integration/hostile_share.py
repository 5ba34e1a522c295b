#!/usr/bin/python3
"""A tenth of the backends is hostile, and the others do not feel it: F-30, G-14, R-PROBE-1..3.

In rounds by turns all targets are good, or every tenth goes to a backend of one of the habits of
hostile_server.c or to a port that drops SYNs. The good ones' probes begin as late and take as long as in
the round without; each hostile probe ends by its deadline with the reason of its habit; bytes read and
memory are bounded. `--targets 10000` is the campaign `hostile`. Needs root.
"""
# alone: it measures how late probes begin
# twin: http-header-bound left > 0
# twin: slow-starves WRONG a good probe begins late by, most
import mmap
import os
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from netns import FAR_4, Cable  # noqa: E402
from prober import FAILURES, Lines, Prober, arguments, check, check_counts, finish, run, took  # noqa: E402

T = 500
LATE_S = 0.5  # ten times the stated tolerance of a deadline
PORT, HOLE_PORT = 80, 9
BYTES_MAX = 16385  # of one connection
PER_TARGET_BYTES = 64  # that memory may grow between the first round and the last
MEMORY_KIB = 2048

REASONS = {
    "silent": "RECV_RESPONSE_TIMEOUT", "hangup": "CONNECT_INTERRUPT",
    "reset-at-once": "CONNECT_INTERRUPT", "half-status": "RECV_RESPONSE_TIMEOUT",
    "reset-in-header": "CONNECT_INTERRUPT", "tls": "HTTP_INVALID_HEADER",
    "nul": "HTTP_INVALID_HEADER", "huge-chunk": "OK", "redirect": "OK",
    "drip": "RECV_RESPONSE_TIMEOUT", "endless-header": "HTTP_INVALID_HEADER", "endless-body": "OK",
    "endless-status": "HTTP_INVALID_HEADER", "continue": "HTTP_INVALID_HEADER",
    "hole": "CONNECT_TIMEOUT",
}
HABITS = list(REASONS)


def memory_kib(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmRSS:"))


def percentile(values, share):
    return sorted(values)[int(share * (len(values) - 1))] if values else 0.0


class World:
    def __init__(self, options, cable, most_read):
        self.n, self.interval = options.targets, options.interval / 1000
        self.http = subprocess.Popen(["ip", "netns", "exec", cable.far,
                                      os.path.join(options.bin, "http_counter"), str(PORT)],
                                     stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.http.stdout.readline() == "ready\n"
        self.hostile = Lines([os.path.join(options.bin, "hostile_server"), *HABITS[:-1]],
                             netns=cable.far)
        self.ports = dict(self.hostile.wait(lambda lines: lines[:1], "the hostile server")[0],
                          hole=HOLE_PORT)
        self.prober = Prober(options.bin, "--in-flight", "4096", netns=cable.near,
                             prefix=["env", "LD_PRELOAD=" + os.path.abspath(options.bin) + "/libmost_read.so",
                                     "JURY_TEST_MOST_READ=" + most_read])
        self.hostile_slots = range(9, self.n, 10)

    def put(self, slot, port):
        self.prober.set(slot, type="http", T=T, I=int(self.interval * 1000),
                        to=f"10.240.{1 + slot // 250}.{slot % 250 + 1}:{port}")

    def habit(self, slot):
        return HABITS[slot // 10 % len(HABITS)]

    def round(self, is_hostile, n_results):
        """Lateness and duration of the good ones, and slot -> results of the others."""
        for slot in self.hostile_slots:
            self.put(slot, self.ports[self.habit(slot)] if is_hostile else PORT)
        self.prober.publish()
        # A first result each, under the new plan, before anything is measured.
        births = {slot: len(self.prober.results(slot)) for slot in range(self.n)}
        begun = {slot: len(self.prober.every(slot)) for slot in range(self.n)}
        for slot in range(self.n):
            self.prober.wait_results(slot, births[slot] + 2 + n_results)
        late, long = [], []
        for slot in range(self.n):
            if slot in self.hostile_slots:
                continue
            seen = self.prober.results(slot)[births[slot] + 1:]
            long += [took(line) for line in seen]
            # Of all, the results of a loop that was late itself included: that is what is looked for.
            every = self.prober.every(slot)[begun[slot] + 1:]
            late += [b["start"] - a["end"] - self.interval for a, b in zip(every, every[1:])]
            check_reason(seen, "OK", "a good backend")
        others = {slot: self.prober.results(slot)[births[slot] + 2:] for slot in self.hostile_slots}
        return late, long, others

    def stop(self):
        self.prober.stop()
        self.hostile.stop()
        self.http.stdin.close()
        self.http.wait()


WRONG = []
RATIOS = []  # of all rounds: late by median, p99, most; takes the same


def check_reason(results, reason, what):
    for line in results:
        if line["reason"] != reason:
            WRONG.append(f"{what}: {line['reason']}, expected {reason}")


def compare(name, quiet, hostile):
    """Ratios of this round; what is below `floor` s is alike."""
    for share, word, floor in ((0.5, "median", 0.002), (0.99, "p99", 0.01), (1, "most", 0.1)):
        a, b = percentile(quiet, share), percentile(hostile, share)
        ratio = max(b, floor) / max(a, floor)
        check(ratio < 10, f"{name}, {word}: {a * 1000:.2f} ms with 0 % hostile, {b * 1000:.2f} ms with "
              f"10 %: ratio {ratio:.2f} (goal 1, bound 10)")
        RATIOS.append(ratio)


def main():
    options = arguments(targets=500, interval=1000, rounds=1, results=2)
    cable = Cable()
    run(f"ip -n {cable.far} route add local 10.240.0.0/16 dev lo")
    run(f"ip -n {cable.near} route add 10.240.0.0/16 via {FAR_4}")
    cable.filter(cable.far, f"tcp dport {HOLE_PORT} drop")
    with tempfile.NamedTemporaryFile() as file:
        file.write(bytes(8))
        file.flush()
        world = World(options, cable, file.name)
        for slot in range(options.targets):
            world.put(slot, PORT)
        world.prober.publish()
        world.prober.wait_results(0, 1)
        memory = []
        for _ in range(options.rounds):
            quiet = world.round(False, options.results)
            before = memory_kib(world.prober.process.pid)
            hostile = world.round(True, options.results)
            memory.append(memory_kib(world.prober.process.pid) - before)
            compare("a good probe begins late by", quiet[0], hostile[0])
            compare("a good probe takes", quiet[1], hostile[1])
            overshoot = []
            for slot, results in hostile[2].items():
                habit = world.habit(slot)
                check_reason(results, REASONS[habit], habit)
                overshoot += [took(line) - T / 1000 for line in results]
            check(len(overshoot) > 0 and max(overshoot) < LATE_S,
                  f"{len(overshoot)} probes of hostile backends end by their deadline: p99 beyond it by "
                  f"{percentile(overshoot, 0.99) * 1000:.1f} ms (goal 50), most "
                  f"{max(overshoot) * 1000:.1f} (bound 500)")
        with mmap.mmap(file.fileno(), 8) as most:
            n_bytes = struct.unpack("q", most[:8])[0]
        check(0 < n_bytes <= BYTES_MAX,
              f"bytes read of one connection: {n_bytes} at most (bound {BYTES_MAX})")
        bound = MEMORY_KIB + PER_TARGET_BYTES * options.targets // 1024
        check(max(memory) < bound, f"memory of the prober grew in a hostile round by {max(memory)} KiB at "
              f"most (bound {bound})")
        check(not WRONG, f"each probe has the reason of its backend's habit: {len(WRONG)} have another: "
              f"{sorted(set(WRONG))[:5]}")
        check_counts(world.prober.final_counts())
        world.stop()
    if not FAILURES:
        parts = [sorted(RATIOS[at::6])[len(RATIOS[at::6]) // 2] for at in (0, 1, 3, 4)]
        print("good probes beside 10 % hostile ones, to those without, medians of rounds: begin late by "
              "{:.2f} (p99 {:.2f}), take {:.2f} (p99 {:.2f})".format(*parts) +
              f"; {n_bytes} bytes of a connection, {max(memory)} KiB more memory")
        sys.exit(0)
    finish()


main()
