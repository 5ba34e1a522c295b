#!/usr/bin/python3
"""Existing flows: drain with deadline, close-now, keep, removal; listeners and layouts that change.

A33: 0 new flows from the drain's adoption on, flows live until the deadline, then RST to both sides.
"""
# twin: shim-never-close WRONG a busy flow is drained
import os
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from prober import arguments, check, finish
from shim_world import HOST, Backend, Client, World, ask_name, endpoint, free_port, wait_until

DEADLINE_MS = 3000


def talk_until_reset(client):
    """Ask each 50 ms; when and how it ended, and how many answers were wrong."""
    n_wrong = 0
    give_up = time.monotonic() + DEADLINE_MS / 1000 + 2
    while time.monotonic() < give_up:
        try:
            answer = client.ask("word")
        except (ConnectionResetError, BrokenPipeError):
            return time.monotonic(), "reset", n_wrong
        if not answer:
            return time.monotonic(), "fin", n_wrong
        n_wrong += answer != "WORD"
        time.sleep(0.05)
    return time.monotonic(), "nobody", n_wrong


def held_by(port, name):
    while True:
        flow = Client(port)
        if flow.line() == name:
            return flow
        flow.half_close()
        flow.rest()


def drain_flows(world, at, backends, port, flows, homes):
    start = time.monotonic()
    generation = world.feed.set("web", at["b1"], "none", "close-at", DEADLINE_MS)
    world.feed.wait_adopted(generation)
    adopted_ms = 1000 * (time.monotonic() - start)
    row = world.feed.row("web", at["b1"])
    check(row["counting"] and row["adopted"] and row["flows"] == 4,
          f"drain adopted after {adopted_ms:.0f} ms, {row['flows']} flows remain")
    seen = [ask_name(port) for _ in range(40)]
    check(seen == ["b2"] * 40, "no new flow goes to the drained backend")
    on_b1 = [flow for flow, home in zip(flows, homes) if home == "b1"]
    on_b2 = [flow for flow, home in zip(flows, homes) if home == "b2"]
    on_b1[1].half_close()
    check(on_b1[1].rest() == b"bye", "a flow may end by itself meanwhile")
    wait_until(lambda: world.feed.row("web", at["b1"])["flows"] == 3, "one flow less")
    end, how, n_wrong = talk_until_reset(on_b1[0])
    took = end - start
    check(how == "reset" and n_wrong == 0 and abs(took - DEADLINE_MS / 1000) < 0.5,
          f"a busy flow is drained at {took:.2f} s of {DEADLINE_MS / 1000:.0f} s by {how}, "
          f"{n_wrong} wrong answers before")
    check(on_b1[2].how_it_ends(5) == "reset", "a quiet one is drained by RST to the client")
    wait_until(lambda: backends["b1"].n_ended("reset") == 3, "RST to the backend")
    check(True, "and to the backend")
    wait_until(lambda: world.feed.row("web", at["b1"])["flows"] == 0, "no flow remains")
    row = world.feed.row("web", at["b1"])
    check(row["closed"] == 3 and row["adopted"], f"counted: {row}")
    check([flow.ask("still") for flow in on_b2] == ["STILL"] * 4,
          "flows of the other backend go on")
    for flow in on_b2:
        flow.close()


def main():
    world = World(arguments().bin, "--workers", "2")
    backends = {name: Backend(name) for name in ("b1", "b2")}
    at = {name: backend.at for name, backend in backends.items()}
    port, other = endpoint(HOST, free_port()), endpoint(HOST, free_port())
    both = [(at["b1"], 100), (at["b2"], 100)]
    groups = {"web": ("5-tuple", 900000, both)}
    world.serve(groups, [("front", port, "web", 0)])

    # Flows on both: enough tries with the kernel's ports.
    flows, homes = [], []
    while homes.count("b1") < 4 or homes.count("b2") < 4:
        flow = Client(port)
        home = flow.line()
        if homes.count(home) < 4:
            flows.append(flow)
            homes.append(home)
        else:
            flow.half_close()
            flow.rest()
    wait_until(lambda: world.feed.plane()["flows"] == 8, "8 flows")
    drain_flows(world, at, backends, port, flows, homes)

    # Cancelled: the deadline goes, the flow stays.
    world.set("web", at["b1"], "healthy")
    flow = held_by(port, "b1")
    world.set("web", at["b1"], "none", "close-at", 700)
    world.set("web", at["b1"], "healthy")
    check(flow.how_it_ends(1.5) == "open" and flow.ask("on") == "ON",
          "a drain that is taken back cuts nothing")

    # close-now, and a deadline that has passed already.
    start = time.monotonic()
    world.set("web", at["b1"], "none", "close-now")
    how = flow.how_it_ends()
    check(how == "reset" and time.monotonic() - start < 1, f"close-now: {how} within 1 s")
    world.set("web", at["b1"], "healthy")

    # The deadline is the shim's to keep: an agent that dies meanwhile does not lengthen it.
    flow = held_by(port, "b1")
    start = time.monotonic()
    world.set("web", at["b1"], "none", "close-at", 1200)
    world.feed.tell("close")
    how = flow.how_it_ends()
    took = time.monotonic() - start
    check(how == "reset" and 1.1 < took < 1.7, f"drained without an agent: {how} at {took:.2f} of 1.2 s")
    world.feed.start()
    world.serve(groups, [("front", port, "web", 0)])
    world.set("web", at["b1"], "healthy")

    # S75: no flow ends for being idle before the drain timeout, then it does at once; a busy one
    # lives on. S74 is the flow of 0.5 s beside it.
    listeners = [("front", port, "web", 500)]
    world.serve(groups, listeners)
    plain = held_by(port, "b2")
    idle, busy = held_by(port, "b1"), held_by(port, "b1")
    start = time.monotonic()
    world.set("web", at["b1"], "none", "hold-idle", 1500)
    ends = {}
    watchers = [threading.Thread(target=lambda name=name, flow=flow: ends.update(
        {name: (flow.how_it_ends(), time.monotonic() - start)}))
                for name, flow in (("plain", plain), ("idle", idle))]
    for watcher in watchers:
        watcher.start()
    n_answers = 0
    while time.monotonic() - start < 2.2:
        n_answers += busy.ask("on") == "ON"
        time.sleep(0.1)
    for watcher in watchers:
        watcher.join()
    check(ends["plain"][0] == "reset" and ends["plain"][1] < ends["idle"][1],
          f"idle timeout 0.5 s: {ends['plain'][1]:.2f} s")
    check(ends["idle"][0] == "reset" and 1.4 < ends["idle"][1] < 15.0,
          f"S75: an idle one is held until the drain timeout of 1.5 s: {ends['idle'][1]:.2f} s")
    check(n_answers > 10 and busy.ask("on") == "ON", "S75: a busy one lives on after it")
    busy.close()
    world.set("web", at["b1"], "healthy")
    world.serve(groups, [("front", port, "web", 0)])

    # A group that loses a backend: its flows stay, new ones go to the other.
    flow = held_by(port, "b1")
    world.serve({"web": ("5-tuple", 900000, [(at["b2"], 100)])}, [("front", port, "web", 0)])
    check([ask_name(port) for _ in range(20)] == ["b2"] * 20 and flow.ask("on") == "ON",
          "a removed backend keeps its flow and gets no new one")
    check(world.feed.row("web", at["b1"])["flows"] == 1, "which is still counted in its row")

    # Listeners come and go; flows do not mind.
    world.serve(groups, [("front", port, "web", 0), ("second", other, "web", 0)])
    check(ask_name(other) in at, "a second listener serves")
    world.serve(groups, [("second", other, "web", 0)])
    check(ask_name(port) == "refused" and ask_name(other) in at and flow.ask("on") == "ON",
          "the first is gone: refused; its flow goes on")
    world.serve({"a": ("5-tuple", 900000, [(at["b2"], 100)]), "web": groups["web"]},
                [("moved", other, "a", 0)])
    check([ask_name(other) for _ in range(20)] == ["b2"] * 20,
          "a listener that leads to another group follows without closing")
    check(world.shim.n_logged("event=listener_opened") == 2, "the socket was kept over that")
    flow.close()
    check(world.shim.process.poll() is None, "the shim lives")
    finish()


main()
