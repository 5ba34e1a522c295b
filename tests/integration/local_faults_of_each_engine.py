#!/usr/bin/python3
"""Faults of this node with a probe of every kind under way, so with each engine: R-SELF-3, F-9, F-17,
F-19, cases A14 and A15. While a fault lasts no probe of a healthy backend fails; the first that begins
after it passes; each probe has exactly one result. A dead host on the link is no fault of this node:
there each probe fails. Needs root.
"""
# seconds: 25
# twin: probe-local-fault WRONG no descriptor
# twin: probe-late WRONG stopped
# twin: way-unasked WRONG probes under way
# twin: stale-way WRONG .*were silent and lost their way
import contextlib
import os
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from every_kind import KINDS, OK, Backends  # noqa: E402
from netns import FAR_4, Cable  # noqa: E402
from prober import Prober, arguments, check, check_counts, finish, run  # noqa: E402

I = 50
BEHIND = "10.240.1.1"  # the backends' address, behind the other end of the cable
SOURCE = "10.231.1.77"
N = 3  # results of each kind that a fault lasts for
CONNECTING = [kind for kind in KINDS if not kind.startswith("udp") and kind != "half-open"]
DATAGRAMS = [kind for kind in KINDS if kind.startswith("udp")]
FLAGS = ("setpriv", "--bounding-set=-net_raw", "--inh-caps=-net_raw")


class World:
    def __init__(self, folder):
        self.folder, self.cable = folder, Cable()
        run(f"ip -n {self.cable.far} address add {BEHIND}/32 dev lo")
        self.route("add")
        self.backends = Backends(self.cable.far, BEHIND)

    def route(self, verb):
        run(f"ip -n {self.cable.near} route {verb} 10.240.0.0/16 via {FAR_4}")

    def prober(self, timeout_ms, prefix=(), kinds=tuple(KINDS), **more):
        prober = Prober(self.folder, netns=self.cable.near, prefix=prefix)
        prober.kinds = kinds
        for slot, kind in enumerate(kinds):
            prober.set(slot, T=timeout_ms, I=I, to=self.backends.to[kind], **dict(KINDS[kind], **more))
        prober.publish()
        for slot, _ in enumerate(kinds):
            prober.wait_results(slot, 1)
        return prober


def results(prober, slot):
    return [line for line in list(prober.lines) if line.get("slot") == slot]


def word(line):
    return f"{line['class']} {line['reason']}"


def check_fault(prober, what, reasons, fault, must=(), n_seconds=0.0):
    """fault: a context manager. It lasts until each kind in `must` has N results with one of `reasons`,
    or one that counts as a failure (with `any`: all of them together have ten times as many), and
    n_seconds at least."""
    first = {slot: len(results(prober, slot)) for slot, _ in enumerate(prober.kinds)}
    wanted = {f"inconclusive {reason}" for reason in reasons}

    def has_shown(slot):
        lines = results(prober, slot)[first[slot]:]
        return (sum(word(line) in wanted for line in lines) >= N or
                any(line["class"] == "fail" for line in lines))

    with fault():
        begun = time.monotonic()
        if must is any:
            prober.wait(lambda lines: sum(word(line) in wanted or line["class"] == "fail" for line in
                                          list(lines) if "class" in line) >= 10 * N, what)
        for slot, kind in enumerate(prober.kinds):
            if must is not any and kind in must:
                prober.wait(lambda _, slot=slot: has_shown(slot), f"{what}: {N} results of {kind}")
        if n_seconds > 0:
            prober.wait(lambda _: time.monotonic() - begun >= n_seconds, f"{what}: its time")
    after = time.monotonic()
    firsts = {}
    for slot, kind in enumerate(prober.kinds):
        firsts[kind] = word(prober.wait(
            lambda _, slot=slot: [line for line in results(prober, slot) if line["start"] > after
                                  and line["reason"] != "LOCAL_LATE"], f"{what}: {kind} after it")[0])
    seen = {}
    for slot, kind in enumerate(prober.kinds):
        for line in results(prober, slot)[first[slot]:]:
            seen.setdefault(word(line), {}).setdefault(kind, 0)
            seen[word(line)][kind] += 1
    failures = {text: kinds for text, kinds in seen.items() if text.startswith("fail")}
    shown = {text: sum(kinds.values()) for text, kinds in sorted(seen.items())}
    check(not failures, f"{what}: 0 failures: {shown}{failures or ''}")
    check(set(seen) <= wanted | {OK, "inconclusive LOCAL_LATE", "pass ECHO"},
          f"{what}: nothing is said but the fault's reason: {sorted(seen)}")
    check({text.split()[0] for text in firsts.values()} == {"pass"},
          f"{what}: the first probe after it passes, of {len(firsts)} kinds: "
          f"{ {kind: text for kind, text in firsts.items() if not text.startswith('pass')} or ''}")


def ended(prober, what):
    """Exactly one result a probe."""
    print(f"      {what}:", end=" ")
    check_counts(prober.final_counts())
    prober.stop()


@contextlib.contextmanager
def between(begin, end):
    begin()
    try:
        yield
    finally:
        end()


def link_is_down(world):
    def up():
        run(f"ip -n {world.cable.near} link set near0 up")
        world.route("add")
    return between(lambda: run(f"ip -n {world.cable.near} link set near0 down"), up)


def descriptors(world):
    """Some find a socket that another has kept; there are too few for all."""
    prober = world.prober(5000)
    pid = prober.process.pid
    check_fault(prober, "no descriptor", ["LOCAL_NO_DESCRIPTOR"], lambda: between(
        lambda: run(f"prlimit --pid {pid} --nofile=3:4096"),
        lambda: run(f"prlimit --pid {pid} --nofile=1024:4096")),
        must=any)
    ended(prober, "descriptors")


HOLDER = """
import socket, sys
held = []
for port in (20000, 20001):
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
        held.append(socket.socket(socket.AF_INET, kind))
        held[-1].bind(("0.0.0.0", port))
print("held", flush=True)
sys.stdin.read()
"""


def local_ports(world):
    """Two are left, and another program has both."""
    cable, key = world.cable, "net.ipv4.ip_local_port_range"
    before = cable.in_near(f"sysctl -n {key}").strip()

    @contextlib.contextmanager
    def fault():
        holder = subprocess.Popen(["ip", "netns", "exec", cable.near, sys.executable, "-c", HOLDER],
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert holder.stdout.readline() == "held\n"
        cable.sysctl_near(key, "20000 20001")
        yield
        cable.sysctl_near(key, before)
        holder.stdin.close()
        holder.wait()

    prober = world.prober(5000)
    check_fault(prober, "no port", ["LOCAL_NO_PORT"], fault, must=CONNECTING)
    ended(prober, "ports")


def source(world):
    add = f"ip -n {world.cable.near} address add {SOURCE}/24 dev near0"
    run(add)
    prober = world.prober(5000, source=SOURCE)
    check_fault(prober, "no source address", ["LOCAL_SOURCE_MISSING"], lambda: between(
        lambda: run(add.replace(" add ", " del ")), lambda: run(add)), must=list(KINDS))
    ended(prober, "source")


def route_and_link(world):
    prober = world.prober(3000)
    check_fault(prober, "no route", ["LOCAL_NO_ROUTE"], lambda: between(
        lambda: world.route("del"), lambda: world.route("add")), must=list(KINDS))

    check_fault(prober, "link down", ["LOCAL_NO_ROUTE"], lambda: link_is_down(world),
                must=list(KINDS))
    ended(prober, "route")


def under_way(prober):
    deadline = time.monotonic() + 60
    while prober.counts()["probes_in_flight"] < 3 and time.monotonic() < deadline:
        pass


def stopped(world):
    """For longer than T."""
    prober = world.prober(400)

    def stop():
        under_way(prober)
        prober.process.send_signal(signal.SIGSTOP)
        time.sleep(1)  # the fault itself

    for _ in range(2):
        check_fault(prober, "stopped", ["LOCAL_LATE"], lambda: between(
            stop, lambda: prober.process.send_signal(signal.SIGCONT)))
    n_late = prober.counts()["probe_results_local_late"]
    check(n_late >= 3, f"stopped: {n_late} probes were under way")
    ended(prober, "stopped")


def starved(world):
    """2 ms of processor time in each second, of control groups of version 1."""
    root = "/sys/fs/cgroup/cpu"
    if not os.path.exists(root + "/cpu.cfs_quota_us"):
        print("      no control groups of version 1 here")
        return
    folder = f"{root}/jury-faults-{os.getpid()}"
    prober = world.prober(400)

    def write(name, value):
        with open(name, "w", encoding="ascii") as file:
            file.write(str(value))

    @contextlib.contextmanager
    def fault():
        os.mkdir(folder)
        try:
            write(folder + "/cpu.cfs_period_us", 1000000)
            write(folder + "/cpu.cfs_quota_us", 2000)
            write(folder + "/cgroup.procs", prober.process.pid)
            yield
        finally:
            write(root + "/cgroup.procs", prober.process.pid)
            os.rmdir(folder)

    check_fault(prober, "starved of processor time", ["LOCAL_LATE"], fault, n_seconds=3)
    n_late = prober.counts()["probe_results_local_late"]
    check(n_late >= 1, f"starved: {n_late} probes were late by it")
    ended(prober, "starved")


def link_lost_on_the_way(world):
    """The answers of what is under way are lost with the link, and it times out before there is one."""
    prober = world.prober(400)

    @contextlib.contextmanager
    def fault():
        under_way(prober)
        with link_is_down(world):
            yield

    check_fault(prober, "probes under way when the link goes down", ["LOCAL_NO_ROUTE"], fault,
                n_seconds=1)
    ended(prober, "link")


def silence_after_a_change(world):
    """A backend that is silent, and then the way to it goes, too: what is under way by then says so,
    though there was a way when its last one was silent."""
    world.cable.filter(world.cable.far, f"ip daddr {BEHIND} drop")
    prober = world.prober(400)
    for slot, _ in enumerate(KINDS):
        prober.wait_results(slot, 2)
    under_way(prober)
    before = time.monotonic()
    world.route("del")
    after = time.monotonic()
    prober.wait(lambda _: time.monotonic() - after >= 0.5, "what was under way")
    prober.wait_results(0, len(prober.results(0)) + 1)
    lines = [line for slot, _ in enumerate(KINDS) for line in results(prober, slot)
             if line["start"] < before and line["end"] > after and line["reason"] != "LOCAL_LATE"]
    seen = {word(line) for line in lines}
    check(len(lines) >= 3 and seen == {"inconclusive LOCAL_NO_ROUTE"},
          f"{len(lines)} probes were silent and lost their way: {sorted(seen)}")
    ended(prober, "silence")
    world.route("add")
    world.cable.unfilter(world.cable.far)


def late(world):
    """Most probes are under way, since the backends take a while to answer."""
    usual = world.backends
    world.backends = Backends(world.cable.far, BEHIND, delay_ms=100)
    stopped(world)
    starved(world)
    link_lost_on_the_way(world)
    world.backends.stop()
    world.backends = usual


def without_rights(world):
    kinds = ("half-open", "udp-echo", *[kind for kind in KINDS if kind not in ("half-open", "udp-echo")])
    prober = Prober(world.folder, netns=world.cable.near, prefix=FLAGS)
    for slot, kind in enumerate(kinds):
        prober.set(slot, T=3000, I=I, to=world.backends.to[kind], **KINDS[kind])
    prober.publish()
    for slot, kind in enumerate(kinds):
        expected = "inconclusive LOCAL_NO_PERMISSION" if slot < 2 else OK
        seen = {word(line) for line in prober.wait_results(slot, N)}
        check(seen == {expected}, f"without CAP_NET_RAW, {kind}: {sorted(seen)}")
    ended(prober, "without rights")


def dead_host(world):
    """A15: nobody has the address, so the kernel says EHOSTUNREACH: the backend's failure."""
    world.cable.sysctl_near("net.ipv4.neigh.near0.retrans_time_ms", "100")
    prober = Prober(world.folder, netns=world.cable.near)
    for slot, kind in enumerate(KINDS):
        prober.set(slot, T=5000, I=I, to="10.231.1.99:80", **KINDS[kind])
    prober.publish()
    for slot, kind in enumerate(KINDS):
        lines = prober.wait_results(slot, N)
        seen = {word(line) for line in lines}
        longest = max(line["end"] - line["start"] for line in lines)
        check(seen == {"fail CONNECT_FAILED"} and longest < 4.9,
              f"a dead host on the link, {kind}: {sorted(seen)} after {longest:.2f} s at most")
    ended(prober, "a dead host")


def main():
    options = arguments()
    world = World(options.bin)
    for part in (descriptors, local_ports, source, route_and_link, silence_after_a_change, late,
                 without_rights, dead_host):
        begun = time.monotonic()
        part(world)
        print(f"      {part.__name__}: {time.monotonic() - begun:.1f} s")
    world.backends.stop()
    finish()


main()
