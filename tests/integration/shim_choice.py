#!/usr/bin/python3
"""Which backend a new connection gets: wrr, 5-tuple, classes, fail-open, closed, weight 0, retries."""
# twin: shim-ignore-classes WRONG closed
# twin: shim-ignore-share WRONG a share of its weight
import collections
import os
import socket
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from prober import arguments, check, finish
from shim_world import HOST, Backend, Client, World, ask_name, endpoint, free_port, wait_until

N_FLOWS = 3000


def names(at, n):
    return collections.Counter(ask_name(at) for _ in range(n))


def main():
    # One worker: a cycle of wrr is exact in each worker, and one worker sees every connection.
    world = World(arguments().bin, "--workers", "1", "--connect-timeout", "900ms")
    backends = {name: Backend(name) for name in ("b1", "b2", "b3")}
    at = {name: backend.at for name, backend in backends.items()}
    ports = {name: endpoint(HOST, free_port()) for name in ("wrr", "hash", "source", "idle")}
    closed_port = endpoint(HOST, free_port())
    weights = [(at["b1"], 50), (at["b2"], 30), (at["b3"], 20)]
    groups = {
        "wrr": ("wrr", 900000, weights),
        "hash": ("5-tuple", 900000, weights),
        "source": ("source", 900000, weights),
        "idle": ("5-tuple", 60000, [(at["b1"], 100)]),
    }
    listeners = [(name, ports[name], name, 700 if name == "idle" else 0) for name in ports]
    world.serve(groups, listeners)

    for cycle in range(5):
        seen = names(ports["wrr"], 10)
        check(seen == {"b1": 5, "b2": 3, "b3": 2}, f"wrr, cycle {cycle}: {dict(seen)}")
    seen = names(ports["hash"], N_FLOWS)
    shares = {name: 100 * seen[name] / N_FLOWS for name in at}
    # Client ports are the kernel's choice: five standard deviations are 4.6 points.
    check(all(abs(shares[name] - wanted) < 4.6 for name, wanted in
              (("b1", 50), ("b2", 30), ("b3", 20))), f"5-tuple shares of 50/30/20: {shares}")
    first = {}
    source_port = free_port()
    for _ in range(3):  # the same 5-tuple each time
        client = Client(ports["hash"], source=(HOST, source_port))
        first[client.line()] = True
        client.reset()
    check(len(first) == 1, f"the same 5-tuple gets the same backend: {list(first)}")
    seen = names(ports["source"], 30)
    check(len(seen) == 1, f"the same source address gets the same backend: {dict(seen)}")

    world.set("wrr", at["b1"], "healthy", share=20)
    seen = names(ports["wrr"], 60)
    check(seen == {"b1": 10, "b2": 30, "b3": 20}, f"a share of its weight, 20 % of 50: {dict(seen)}")
    world.set("hash", at["b1"], "healthy", share=20)
    seen = names(ports["hash"], N_FLOWS)
    part = 100 * seen["b1"] / N_FLOWS  # 10 of 60; five standard deviations are 3.4 points
    check(abs(part - 16.7) < 3.4, f"a share of its weight by 5-tuple: {part:.1f} %, wanted 16.7")
    world.set("hash", at["b1"], "healthy")

    world.set("wrr", at["b1"], "none")
    seen = names(ports["wrr"], 25)
    check(seen == {"b2": 15, "b3": 10}, f"one ejected, the others keep their weights: {dict(seen)}")
    world.set("wrr", at["b2"], "unreachable")
    seen = names(ports["wrr"], 10)
    check(seen == {"b3": 10}, f"unreachable ones wait while a reachable one is there: {dict(seen)}")
    world.set("wrr", at["b3"], "none")
    seen = names(ports["wrr"], 10)
    check(seen == {"b2": 10}, f"then they are used: {dict(seen)}")
    for name in at:
        world.set("wrr", at[name], "fail-open")
    seen = names(ports["wrr"], 10)
    check(seen == {"b1": 5, "b2": 3, "b3": 2}, f"fail-open uses all by weight: {dict(seen)}")
    for name in at:
        world.set("wrr", at[name], "none")
    seen = names(ports["wrr"], 10)
    check(seen == {"reset": 10}, f"closed: every new connection gets RST: {dict(seen)}")
    check(world.feed.row("wrr")["refused"] >= 10, "and is counted in the row of the scope")
    world.set("wrr", at["b1"], "warming")
    check(names(ports["wrr"], 5) == {"b1": 5}, "a warming one takes new flows")
    for name in at:
        world.set("wrr", at[name], "healthy")

    groups["wrr"] = ("wrr", 900000, [(at["b1"], 0), (at["b2"], 100), (at["b3"], 100)])
    client = Client(ports["hash"])
    kept = client.line()
    world.serve(groups, listeners)
    seen = names(ports["wrr"], 20)
    check(seen == {"b2": 10, "b3": 10}, f"A25: weight 0 gets nothing: {dict(seen)}")
    check(client.ask("still") == "STILL", f"a new layout leaves the flow to {kept} alone")
    client.close()
    groups["wrr"] = ("wrr", 900000, [(at["b1"], 0)])
    world.serve(groups, listeners)
    check(names(ports["wrr"], 3) == {"reset": 3}, "only weight 0 left: closed")

    groups["wrr"] = ("wrr", 900000, [(closed_port, 100), (at["b2"], 100)])
    world.serve(groups, listeners)
    retried = world.feed.plane()["retried"]
    seen = names(ports["wrr"], 20)
    plane, row = world.feed.plane(), world.feed.row("wrr", closed_port)
    check(seen == {"b2": 20}, f"a backend that refuses is passed over: {dict(seen)}")
    check(plane["retried"] - retried == 10 and row["connect_failures"] == 10 and row["flows"] == 0,
          f"and counted: {row}")
    groups["wrr"] = ("wrr", 900000, [(closed_port, 100)])
    world.serve(groups, listeners)
    check(names(ports["wrr"], 3) == {"reset": 3}, "nobody to go to: RST")
    check(world.feed.plane()["unreached"] == 3, "counted as unreached")

    silence = Silence()
    groups["wrr"] = ("wrr", 900000, [(silence.at, 100), (at["b2"], 100)])
    world.serve(groups, listeners)
    times = []
    for _ in range(2):
        start = time.monotonic()
        name = ask_name(ports["wrr"])
        times.append((name, round(time.monotonic() - start, 2)))
    check(sorted(name for name, _ in times) == ["b2", "b2"] and
          0.29 < max(took for _, took in times) < 0.8,
          f"one that is silent is given up after a third of the connect timeout: {times}")
    groups["wrr"] = ("wrr", 900000, [(silence.at, 100)])
    world.serve(groups, listeners)
    start = time.monotonic()
    name = ask_name(ports["wrr"])
    took = time.monotonic() - start
    check(name == "reset" and 0.85 < took < 1.6,
          f"with nobody else to ask it has the whole connect timeout: {name} after {took:.2f} s")

    start = time.monotonic()
    client = Client(ports["idle"])
    client.line()
    how = client.how_it_ends()
    took = time.monotonic() - start
    check(how == "reset" and 0.69 < took < 1.2,
          f"idle for the listener's 0.7 s (the group has 60 s): {how} after {took:.2f} s")
    client = Client(ports["idle"])
    client.line()
    start = time.monotonic()
    n_asked = 0
    while time.monotonic() - start < 1.5:
        n_asked += client.ask("more") == "MORE"
        wait_until(lambda begun=time.monotonic(): time.monotonic() - begun > 0.2, "a moment")
    check(n_asked >= 5, f"one that speaks lives on: {n_asked} answers in 1.5 s")
    client.close()
    check(world.feed.plane()["idled"] == 1, "one was ended for being idle")
    finish()


class Silence:
    """An address whose full queue drops every SYN: a listener that nobody accepts from."""

    def __init__(self):
        self.listener = socket.socket()
        self.listener.bind((HOST, 0))
        self.listener.listen(0)
        self.at = endpoint(HOST, self.listener.getsockname()[1])
        self.fillers = []
        for _ in range(4):
            filler = socket.socket()
            filler.setblocking(False)
            filler.connect_ex((HOST, self.listener.getsockname()[1]))
            self.fillers.append(filler)


main()
