#!/usr/bin/python3
"""Faults of this node are never held against a backend: R-SELF-3, F-9, F-17, F-19, case A14.

Each fault is made while probes of a healthy backend run: only inconclusive results may come, with the
reason of the fault, and the first probe after it passes again. Needs root.
"""
# twin: probe-local-fault WRONG no descriptor
# twin: probe-late WRONG stopped
# twin: probe-allowed WRONG own list
import os
import signal
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from netns import FAR_4, Cable
from prober import PATIENCE, Prober, Server, arguments, check, finish, run

I, N = 100, 5
LONG = 20000  # T, where only the fault may end a probe


def every_result(prober, slot):
    return [line for line in prober.lines if line.get("slot") == slot]


def wait_for_pass(prober, slot, what):
    """A pass that is newer than this call."""
    first = len(every_result(prober, slot))
    prober.wait(lambda lines: any(line["class"] == "pass"
                                  for line in every_result(prober, slot)[first:]),
                f"{what}: a pass")


def fault_and_repair(prober, slots, reason, what, fault, repair):
    """The fault lasts until each slot has N results by it, or one that counts as a failure."""
    for slot in slots:
        wait_for_pass(prober, slot, what)
    first = {slot: len(every_result(prober, slot)) for slot in slots}
    fault()
    for slot in slots:
        prober.wait(lambda lines, slot=slot: sum(
            line["reason"] == reason or line["class"] == "fail"
            for line in every_result(prober, slot)[first[slot]:]) >= N, f"{what}: {N} results")
    repair()
    for slot in slots:
        wait_for_pass(prober, slot, what)
        lines = every_result(prober, slot)[first[slot]:]
        seen = {f"{line['class']} {line['reason']}" for line in lines}
        n_faults = sum(line["reason"] == reason for line in lines)
        check(seen <= {f"inconclusive {reason}", "inconclusive LOCAL_LATE", "pass OK"}
              and n_faults >= N, f"{what}: {n_faults} results {reason}, 0 failures, then passes: "
              f"{sorted(seen)}")


def descriptors(folder):
    server = Server("ok")
    prober = Prober(folder)
    # One that ends by FIN keeps no socket, and uses up what the other one keeps.
    for slot, kind in enumerate(("tcp", "http")):
        prober.set(slot, type=kind, to=server.to("ok"), T=LONG, I=I, close="fin")
    prober.publish()
    pid = prober.process.pid
    fault_and_repair(prober, (0, 1), "LOCAL_NO_DESCRIPTOR", "no descriptor",
                     lambda: run(f"prlimit --pid {pid} --nofile=3:4096"),
                     lambda: run(f"prlimit --pid {pid} --nofile=1024:4096"))
    prober.stop()
    server.stop()


def kept_sockets(folder):
    """A probe that ends by RST keeps its socket, and needs no descriptor any more."""
    server = Server("ok")
    prober = Prober(folder)
    prober.set(0, type="tcp", to=server.to("ok"), T=LONG, I=I)
    prober.publish()
    wait_for_pass(prober, 0, "kept")
    run(f"prlimit --pid {prober.process.pid} --nofile=3:4096")
    first = len(every_result(prober, 0))
    prober.wait(lambda lines: len(every_result(prober, 0)) >= first + 2 * N, "results of a kept socket")
    seen = {line["reason"] for line in every_result(prober, 0)[first:]}
    check(seen <= {"OK", "LOCAL_LATE"}, f"without a free descriptor a kept socket goes on: {seen}")
    prober.stop()
    server.stop()


def local_ports(cable, folder):
    """Two ports are left for one destination, and both are held by probes that wait."""
    server = Server("deaf", netns=cable.far, address=FAR_4)
    key = "net.ipv4.ip_local_port_range"
    before = cable.in_near(f"sysctl -n {key}").strip()
    prober = Prober(folder, netns=cable.near)
    prober.set(0, type="tcp", to=server.to("deaf"), T=LONG, I=I)
    prober.publish()

    def fault():
        cable.sysctl_near(key, "20000 20001")
        for slot in (1, 2):
            prober.set(slot, type="http", to=server.to("deaf"), T=300000, I=I)
        prober.publish()

    fault_and_repair(prober, (0,), "LOCAL_NO_PORT", "no free port", fault,
                     lambda: cable.sysctl_near(key, before))
    prober.stop()
    server.stop()


def source(cable, folder):
    """A14: the address that probes are to leave from goes and comes back."""
    server = Server("ok", netns=cable.far, address=FAR_4)
    add = f"ip -n {cable.near} address add 10.231.1.77/24 dev near0"
    run(add)
    prober = Prober(folder, netns=cable.near)
    for slot, kind in enumerate(("tcp", "http")):
        prober.set(slot, type=kind, to=server.to("ok"), T=LONG, I=I, source="10.231.1.77")
    prober.publish()
    fault_and_repair(prober, (0, 1), "LOCAL_SOURCE_MISSING", "source missing",
                     lambda: run(add.replace(" add ", " del ")), lambda: run(add))
    prober.stop()
    server.stop()


def own_list(folder):
    """The node's own list of prefixes is asked at each connect; nothing is sent to what it forbids."""
    allowed = Server("ok", address="127.0.0.1")
    forbidden = Server("ok", address="127.0.0.200")
    prober = Prober(folder, "--allow", "127.0.0.0/25", "--allow", "10.0.0.0/8")
    for slot, kind in enumerate(("tcp", "http")):
        prober.set(slot, type=kind, to=forbidden.to("ok"), T=LONG, I=I)
    prober.set(9, type="http", to=allowed.to("ok"), T=LONG, I=I)
    prober.publish()
    prober.wait_results(9, N)
    for slot in (0, 1):
        seen = {f"{line['class']} {line['reason']}" for line in prober.wait_results(slot, N)}
        check(seen == {"inconclusive LOCAL_FORBIDDEN"}, f"own list: {seen}")
    check(len(forbidden.lines) == 1, "own list: no connection to the forbidden address")
    prober.stop()
    for server in (allowed, forbidden):
        server.stop()


def stopped(folder):
    """F-9: the process is stopped for longer than T while probes are under way."""
    server = Server("late-header", "ok")
    prober = Prober(folder)
    for slot in range(20):
        prober.set(slot, type="http", to=server.to("late-header"), T=400, I=I)
    prober.set(50, type="tcp", to=server.to("ok"), T=400, I=I)
    prober.publish()
    for _ in range(4):
        wait_for_pass(prober, 0, "stopped")
        deadline = time.monotonic() + PATIENCE
        while prober.counts()["probes_in_flight"] < 5 and time.monotonic() < deadline:
            pass
        prober.process.send_signal(signal.SIGSTOP)
        time.sleep(1)  # the fault itself
        prober.process.send_signal(signal.SIGCONT)
    wait_for_pass(prober, 0, "stopped")
    wait_for_pass(prober, 50, "stopped")
    counts = prober.counts()
    n_late = counts["probe_results_local_late"]
    seen = {f"{line['class']} {line['reason']}" for line in prober.lines if "class" in line}
    check(seen == {"pass OK", "inconclusive LOCAL_LATE"} and n_late >= 4,
          f"stopped four times for 1 s with T = 0.4 s: {n_late} inconclusive, 0 failures: "
          f"{sorted(seen)}")
    check(counts["probe_stalled_ns"] >= 3.5e9,
          f"stopped: {counts['probe_stalled_ns'] / 1e9:.2f} s of 4 s were noticed")
    prober.stop()
    server.stop()


def main():
    options = arguments()
    cable = Cable()
    descriptors(options.bin)
    kept_sockets(options.bin)
    local_ports(cable, options.bin)
    source(cable, options.bin)
    own_list(options.bin)
    stopped(options.bin)
    finish()


main()
