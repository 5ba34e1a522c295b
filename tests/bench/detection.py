#!/usr/bin/python3
"""How soon a dead backend is found: a jury-agent and haproxy side by side, with equal parameters, the same
backends and the same fault. Of N backends a fifth fails at once, by a packet filter in their namespace:
`closed` answers with RST, `silent` drops. Counted is the time from the fault to haproxy's line "is DOWN"
and to the agent's line of the verdict, for each backend; the agent has two groups of them, by both
`pacing`s. All three meet the same fault in the same round, which begins at another phase each time;
ratios are taken within a round.

Expected of a fault at a random phase, end to start: closed U(0, I) + (U - 1) x I, silent U(0, I + r) +
(U - 1) x (I + T) + T; with `pacing: fixed` silent U(0, I) + (U - 1) x R + T, R the first multiple of I
above T. The agent begins its probes by slots of 5 ms, haproxy counts in ms.

usage: detection.py --bin BIN [--targets N] [--rounds N] [--interval-ms N] [--points NAME,...]
Points: see POINTS. It fails when the median of a ratio is beyond BOUNDS. A round in
which the agent found its own thread late is made again: what it probed then is inconclusive, and counts
for nothing, by intent. If there is no other, ten times the bounds are asked for.
"""
import calendar
import contextlib
import os
import random
import re
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from bench_rivals import CONFIG, AgentAlone, address  # noqa: E402
from cluster import check, run, wait_until  # noqa: E402
from netns import FAR_4, Cable  # noqa: E402
from prober import run as shell  # noqa: E402

PORT, RISE, FALL = 8080, 2, 3
# name: (what the filter does, timeout by interval)
POINTS = {
    "closed": ("reject with tcp reset", 1.0),
    "silent": ("drop", 1.0),
    "silent-half": ("drop", 0.5),
}
PACINGS = {"end": "PACING_END_TO_START", "fixed": "PACING_FIXED"}
WHO = ("haproxy",) + tuple(PACINGS)
BOUNDS = {"p50": 1.25, "p99": 2.0}  # of ours by haproxy's
BOUND_IF_SOUND, BOUND_IF_STALLED = 1, 10  # times those
LISTENER = """
import socket, sys
with socket.create_server(("0.0.0.0", %d), backlog=4096) as listener:
    print("ready", flush=True)
    sys.stdin.read()
""" % PORT


class Far:
    """The backends: one listening socket, and the kernel's answers; nobody completes a handshake."""

    def __init__(self, n_targets):
        self.cable = Cable()
        shell(f"ip -n {self.cable.near} route add 10.1.0.0/16 via {FAR_4}")
        shell(f"ip -n {self.cable.far} route add local 10.1.0.0/16 dev lo")
        self.process = subprocess.Popen(
            ["ip", "netns", "exec", self.cable.far, sys.executable, "-c", LISTENER], text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        check(self.process.stdout.readline() == "ready\n", "no listener")
        self.addresses = [address(i) for i in range(n_targets)]
        # Not neighbours: haproxy begins in the order of its servers.
        self.failing = self.addresses[::5]

    def fail(self, action):
        """Returns the moment. What comes in while the rules are taken is within the error."""
        chosen = ", ".join(self.failing)
        begin = time.time()
        self.cable.filter(self.cable.far,
                          f"ip daddr {{ {chosen} }} tcp dport {PORT} {action}")
        return (begin + time.time()) / 2

    def heal(self):
        self.cable.unfilter(self.cable.far)

    def close(self):
        self.process.stdin.close()
        self.process.wait(10)
        self.cable.remove()


class Haproxy:
    """Its log comes to a socket here: the moment of a line is when it came."""

    def __init__(self, far, timeout_ms, interval_ms):
        self.dir = tempfile.mkdtemp(prefix="jury-haproxy-")
        self.address_of = {"s%d" % i: at for i, at in enumerate(far.addresses)}
        self.down, self.up = {}, set()
        self.log = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.log.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
        self.log.bind(os.path.join(self.dir, "log"))
        threading.Thread(target=self.read, daemon=True).start()
        path = os.path.join(self.dir, "haproxy.cfg")
        shutil.copy(CONFIG, path)
        with open(path, encoding="ascii") as file:
            text = file.read().replace("timeout connect 5s", f"timeout connect {timeout_ms}ms")
        text = text.replace("global\n", f"global\n    log {self.dir}/log len 1024 local0\n", 1)
        text = text.replace("defaults\n", "defaults\n    log global\n", 1)
        text += f"\nbackend all\n    timeout check {timeout_ms}ms\n"
        for name, at in self.address_of.items():
            text += (f"    server {name} {at}:{PORT} check inter {interval_ms} "
                     f"rise {RISE} fall {FALL}\n")
        with open(path, "w", encoding="ascii") as file:
            file.write(text)
        self.process = subprocess.Popen(
            ["ip", "netns", "exec", far.cable.near, "haproxy", "-db", "-q", "-f", path],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def read(self):
        while True:
            try:
                line, now = self.log.recv(2048), time.time()
            except OSError:
                return
            found = re.search(rb"Server all/(s\d+) is (DOWN|UP)", line)
            if found:
                at = self.address_of[found[1].decode()]
                if found[2] == b"DOWN":
                    self.down[at] = now
                    self.up.discard(at)
                else:
                    self.up.add(at)

    def stop(self):
        self.process.terminate()
        self.process.wait(20)
        self.log.close()
        shutil.rmtree(self.dir, ignore_errors=True)


class Jury:
    """Its log has the moment of each verdict."""

    def __init__(self, far, options, timeout_ms, interval_ms):
        self.cluster = AgentAlone(options, ["ip", "netns", "exec", far.cable.near], [])
        self.cluster.__enter__()
        self.cluster.make()
        for name, pacing in PACINGS.items():
            self.cluster.apply([{"group": {
                "name": name + "-group", "profile": "PROFILE_NLB", "type": "GROUP_TYPE_IP",
                "protocol": "PROTOCOL_TCP",
                "check": {"type": "CHECK_TYPE_TCP", "tcp": {"handshake": "HANDSHAKE_HALF_OPEN"},
                          "timeout": "%gs" % (timeout_ms / 1000),
                          "interval": "%gs" % (interval_ms / 1000), "pacing": pacing,
                          "healthy_threshold": RISE, "unhealthy_threshold": FALL},
                "backends": [{"address": at, "port": PORT} for at in far.addresses]}}], timeout=30)
        self.down = {name: {} for name in PACINGS}
        self.up = {name: set() for name in PACINGS}
        self.log = open(self.cluster.agents[1].log, encoding="utf-8")  # noqa: SIM115

    def read(self):
        for line in iter(self.log.readline, ""):
            found = re.search(r"^(\S+) .*event=verdict_changed group=(\w+)-group backend=([\d.]+):\d+ "
                              r"from=\w+ to=(\w+)", line)
            if found:
                name, at = found[2], found[3]
                if found[4] == "unhealthy":
                    self.down[name][at] = moment(found[1])
                    self.up[name].discard(at)
                else:
                    self.up[name].add(at)

    def n_late(self):
        return self.cluster.agents[1].counters()["probe_results{local_late}"]

    def stop(self):
        self.log.close()
        self.cluster.__exit__(None, None, None)


def moment(text):
    """Of a stamp of the log, in UTC, as time.time() has it."""
    seconds, fraction = text.rstrip("Z").split(".")
    whole = time.strptime(seconds, "%Y-%m-%dT%H:%M:%S")
    return calendar.timegm(whole) + float("0." + fraction)


def quantile(values, share):
    return sorted(values)[round(share * (len(values) - 1))]


def one_round(far, haproxy, jury, action):
    """Seconds until each of the failing ones was down, by who says so."""
    def all_up():
        jury.read()
        return all(len(up) == len(far.addresses) for up in jury.up.values()) and \
            not haproxy.down.keys() - haproxy.up

    def all_down():
        jury.read()
        wanted = set(far.failing)
        return wanted <= haproxy.down.keys() and all(wanted <= d.keys() for d in jury.down.values())

    wait_until("all are up", 60, all_up)
    time.sleep(random.random() * 0.2)  # another phase
    haproxy.down.clear()
    for down in jury.down.values():
        down.clear()
    begin = far.fail(action)
    wait_until("all are down", 60, all_down, interval=0.02)
    far.heal()
    seen = {"haproxy": haproxy.down, **jury.down}
    strangers = {who: set(down) - set(far.failing) for who, down in seen.items()}
    check(not any(strangers.values()), "others went down, too: %s" % strangers)
    return {who: [down[at] - begin for at in far.failing] for who, down in seen.items()}


def measure(name, options, interval_ms):
    action, share = POINTS[name]
    timeout_ms = int(interval_ms * share)
    sound, stalled = [], []
    with contextlib.ExitStack() as ends:
        far = Far(options.targets)
        ends.callback(far.close)
        haproxy = Haproxy(far, timeout_ms, interval_ms)
        ends.callback(haproxy.stop)
        jury = Jury(far, options, timeout_ms, interval_ms)
        ends.callback(jury.stop)
        while len(sound) < options.rounds and len(stalled) < 2 * options.rounds:
            before = jury.n_late()
            seen = one_round(far, haproxy, jury, action)
            (sound if jury.n_late() == before else stalled).append(seen)
        if stalled:
            print(f"{name}: {len(stalled)} rounds made again, in which this machine kept the agent waiting")
        return sound or stalled, BOUND_IF_SOUND if sound else BOUND_IF_STALLED


def report(name, rounds, interval_ms):
    print(f"{name}, T {int(interval_ms * POINTS[name][1])} ms, I {interval_ms} ms, U {FALL}: seconds from "
          f"the fault to the verdict, {len(rounds)} rounds of {len(rounds[0]['haproxy'])} backends")
    ratios = {}
    for who in WHO:
        all_of = [value for seen in rounds for value in seen[who]]
        line = "  %-8s" % who + "".join("  %s %.3f" % (word, quantile(all_of, share)) for word, share in (
            ("min", 0), ("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("max", 1)))
        for word, share in (("p50", 0.5), ("p99", 0.99)):
            each = [quantile(seen[who], share) / quantile(seen["haproxy"], share) for seen in rounds]
            ratios[who, word] = statistics.median(each)
            line += "  %s/haproxy %.3f" % (word, ratios[who, word])
        print(line, flush=True)
    return ratios


def go_first():
    """This script, the rivals and their backends before whatever else runs here: on a busy machine an
    agent doubts itself, and then judges nobody, by intent."""
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    except OSError as error:
        print("no real-time priority here: %s" % error)


def test(options):
    go_first()
    names = options.points.split(",") if options.points else list(POINTS)
    told = []
    for name in names:
        rounds, times = measure(name, options, options.interval_ms)
        ratios = report(name, rounds, options.interval_ms)
        for who in PACINGS:
            for word in ("p50", "p99"):
                check(ratios[who, word] <= BOUNDS[word] * times, "%s: %s of %s is %.3f of haproxy's" % (
                    name, word, who, ratios[who, word]))
        told.append("%s %s" % (name, ", ".join("%s p50 %.3f p99 %.3f" % (
            who, ratios[who, "p50"], ratios[who, "p99"]) for who in PACINGS)))
    print("of haproxy's time: " + "; ".join(told))


run(test, targets=1000, rounds=4, interval_ms=1000, points="")
