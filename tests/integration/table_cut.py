#!/usr/bin/python3
"""Files of the forwarding table that somebody cuts short while they are mapped.

The first touch of a page that is gone is SIGBUS. The shim must live, keep its flows, choose by its
last copy, say which file it was, and follow the next table; the agent must not write into nothing.
"""
# twin: table-cut-kills WRONG .* the shim lives
# twin: table-cut-believed WRONG .* go to the same backend
import glob
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import cluster  # noqa: E402
from prober import arguments, check, finish  # noqa: E402
from shim_world import HOST, Backend, Client, World, ask_name, endpoint, free_port, wait_until  # noqa: E402

# name, bytes that are left: a page is gone, or only the end of one, which then reads as zeros
CUTS = [("root", 0), ("root", 48), ("root", 70), ("state.", 0), ("state.", 4096), ("state.", 20000),
        ("layout.", 0), ("layout.", 100)]


def newest(world, name):
    return sorted(glob.glob(os.path.join(world.feed.tables, name + "*")))[-1]


def cut(world, at, name, left):
    groups = world.groups
    flow = Client(at)
    check(flow.line() == "b1", f"{name} cut to {left}: a flow before it")
    world.shim.log.seek(0, os.SEEK_END)
    n_refused = world.shim.n_logged("event=table_refused")
    os.truncate(newest(world, name), left)
    names = [ask_name(at) for _ in range(20)]
    lives = world.shim.process.poll() is None
    if not check(lives, f"{name} cut to {left}: the shim lives"):
        finish()
    check(names == ["b1"] * 20, f"{name} cut to {left}: new connections go to the same backend")
    check(flow.ask("on") == "ON", f"{name} cut to {left}: the flow goes on")
    if name != "layout.":
        wait_until(lambda: world.shim.n_logged("event=table_refused") > n_refused,
                   f"the shim says that {name} was cut")
        check("it was cut short" in world.shim.text() or "not a file of" in world.shim.text(),
              f"{name} cut to {left}: it says which")
    else:
        world.feed.publish()  # another layout: the old one does not matter any more
    # The agent that comes next writes all files anew.
    world.feed.tell("close")
    world.feed.start()
    world.serve(groups, world.listeners)
    world.set("web", world.b2, "removed")
    check(flow.ask("still") == "STILL" and ask_name(at) == "b1",
          f"{name} cut to {left}: the next table is followed")
    flow.half_close()
    flow.rest()


def shim(bin_dir):
    world = World(bin_dir, "--stop-timeout", "1s")
    b1, b2 = Backend("b1"), Backend("b2")
    at, world.b2 = endpoint(HOST, free_port()), b2.at
    world.groups = {"web": ("rr", 60000, [(b1.at, 100), (b2.at, 100)])}
    world.listeners = [("front", at, "web", 0)]
    world.serve(world.groups, world.listeners)
    world.set("web", b2.at, "removed")
    for name, left in CUTS:
        cut(world, at, name, left)
    path = os.path.join(world.feed.status, "jury-shim.status")
    os.truncate(path, 0)
    names = [ask_name(at) for _ in range(20)]
    check(names == ["b1"] * 20 and world.shim.process.poll() is None,
          f"its own status file cut to 0: the shim serves: {set(names)}, {world.shim.process.poll()}")
    wait_until(lambda: world.feed.plane()["state"] == "alive", "the shim makes that file anew")
    check(world.shim.n_logged("event=status_file_made_anew") == 1, "the shim says so, once")


def agent(options):
    """It ends with the code for "restart me", for only a new start writes all words."""
    with cluster.Cluster(options, n_nodes=1) as world:
        world.make()
        one, b1 = world.agents[1], world.backend("b1")
        world.apply([cluster.tcp_group("web", [b1])])
        world.wait_verdicts("web", {b1: "healthy"})
        for name, left in (("root", 0), ("state.", 0), ("state.", 20000)):
            path = sorted(glob.glob(os.path.join(one.tables, name + "*")))[-1]
            os.truncate(path, left)
            status = one.wait(20)
            check(status == 12 and one.count(["event=table_cut", path]) > 0,
                  f"{name} cut to {left}: the agent ends with {status} and names the file")
            one.start()
            world.wait_ready()
            world.wait_verdicts("web", {b1: "healthy"})


options = arguments()
options.keep = False
shim(options.bin)
agent(options)
finish()
