#!/usr/bin/python3
"""jury-shim and the ends of things: its own by kill -9 and SIGTERM, the agent's, busy ports, bad starts.

Row 1.9: `kill -9` of the shim: back in under 1 s; an agent that stops, or starts again, changes nothing
for connections; generation never goes back.
"""
import json
import os
import socket
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from prober import arguments, check, finish
from shim_world import (HOST, Backend, Client, Feed, Shim, World, ask_name, endpoint, free_port,
                        wait_until)


class Knocker:
    """Short connections without pause or retry; every answer is kept."""

    def __init__(self, port, good):
        self.port, self.good, self.is_over = port, good, False
        self.n_good, self.bad = 0, []
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        while not self.is_over:
            name = ask_name(self.port)
            if name in self.good:
                self.n_good += 1
            else:
                self.bad.append(name)
            time.sleep(0.005)  # 200 a second

    def end(self):
        self.is_over = True
        self.thread.join()
        return f"{self.n_good} good, {len(self.bad)} bad {self.bad[:3]}"


def killed(world, port):
    """kill -9 and start again: how long until connections are served?"""
    for n in range(3):
        client = Client(port)
        client.line()
        world.shim.kill()
        start = time.monotonic()
        check(client.how_it_ends() in ("reset", "fin"), "a flow of a killed shim is over")
        world.shim.start()
        wait_until(lambda: ask_name(port) in ("b1", "b2"), "served again", patience=10)
        took = time.monotonic() - start
        check(took < 1, f"kill -9, round {n}: served again after {1000 * took:.0f} ms")
        wait_until(lambda: world.feed.plane()["state"] == "alive" and
                   world.feed.plane()["flows"] == 0, "the new status file")


def agent_gone(world, at, port, groups, listeners):
    flows = [Client(port) for _ in range(50)]
    homes = [flow.line() for flow in flows]
    knocker = Knocker(port, ("b1", "b2"))
    generations = [world.feed.plane()["generation"]]
    for _ in range(5):
        before = knocker.n_good
        world.feed.tell("close")
        wait_until(lambda: knocker.n_good > before + 50, "connections while no agent is there")
        world.feed.start()
        world.feed.describe(groups, listeners)
        generation = world.feed.publish()
        world.feed.wait_adopted(generation)
        generations.append(world.feed.plane()["generation"])
    wait_until(lambda: world.shim.n_logged("event=agent_absent") > 0 or
               world.feed.tell("close") == "never", "the agent is missed", patience=10)
    said = knocker.end()
    check(not knocker.bad, f"an agent that stops and starts five times: {said}")
    check([flow.ask("on") for flow in flows] == ["ON"] * 50,
          f"50 long flows ({homes.count('b1')} on b1) live through it")
    check(generations == sorted(set(generations)), f"generations rise: {generations}")
    for flow in flows:
        flow.half_close()
        flow.rest()
    world.feed.tell("close")
    world.feed.start()
    world.serve(groups, listeners)


def stopped(world, port):
    """SIGTERM: nothing new, what is there may end, the rest gets RST at the stop timeout."""
    quick, stubborn = Client(port), Client(port)
    quick.line()
    stubborn.line()
    start = time.monotonic()
    world.shim.terminate()
    wait_until(lambda: ask_name(port) == "refused", "nothing is accepted any more")
    check(quick.ask("still") == "STILL", "a flow goes on after SIGTERM")
    quick.half_close()
    check(quick.rest() == b"bye", "and may end by itself")
    how = stubborn.how_it_ends()
    took = time.monotonic() - start
    check(how == "reset" and 1.4 < took < 2.3, f"the rest gets {how} after {took:.2f} s of 1.5 s")
    check(world.shim.process.wait(5) == 0, "exit status 0")
    world.shim.start()
    wait_until(lambda: ask_name(port) in ("b1", "b2"), "served again")
    client = Client(port)
    client.line()
    world.shim.terminate()
    wait_until(lambda: ask_name(port) == "refused", "nothing is accepted any more")
    start = time.monotonic()
    world.shim.terminate()
    check(client.how_it_ends() == "reset" and world.shim.process.wait(5) == 0 and
          time.monotonic() - start < 0.5, "a second SIGTERM ends it at once")
    world.shim.start()
    wait_until(lambda: ask_name(port) in ("b1", "b2"), "served again")


def busy_port(world, at, port):
    """A port that somebody else has, even one who would share it, is named and does not hold up others."""
    with socket.socket() as squatter:
        squatter.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        squatter.bind((HOST, 0))
        squatter.listen()
        taken = endpoint(HOST, squatter.getsockname()[1])
        foreign = endpoint("192.0.2.77", 80)
        groups = {"web": ("5-tuple", 900000, [(at["b1"], 100)])}
        world.serve(groups, [("good", port, "web", 0), ("taken", taken, "web", 0),
                             ("foreign", foreign, "web", 0)])
        check(ask_name(port) == "b1", "the other listener serves")
        wait_until(lambda: world.shim.n_logged("event=listener_failed") == 2, "both are named")
        lines = [line for line in world.shim.text().split("\n") if "listener_failed" in line]
        busy = next(line for line in lines if 'listener="taken"' in line)
        check(taken in busy and "Address already in use" in busy and "taken" in busy,
              f"busy port: {busy.split('event=')[1]}")
        not_ours = next(line for line in lines if 'listener="foreign"' in line)
        check(foreign in not_ours and "does not own the address" in not_ours,
              f"foreign address: {not_ours.split('event=')[1]}")
        wait_until(lambda begun=time.monotonic(): time.monotonic() - begun > 2.2, "two retries")
        check(world.shim.n_logged("event=listener_failed") == 2, "said once, tried again silently")
    start = time.monotonic()
    wait_until(lambda: ask_name(taken) == "b1", "the port is free now", patience=5)
    check(True, f"taken {time.monotonic() - start:.1f} s after it was free")


def moved_listener(world, at):
    """From every address to one of them: the shim's own old socket is in the way for a moment."""
    port = free_port()
    groups = {"web": ("5-tuple", 900000, [(at["b1"], 100)])}
    world.serve(groups, [("s", endpoint("0.0.0.0", port), "web", 0)])
    one = endpoint(HOST, port)
    wait_until(lambda: ask_name(one) == "b1", "served on every address")
    opened = "event=listener_opened listener=\"s\" address=" + one
    start = time.monotonic()
    world.feed.describe(groups, [("s", one, "web", 0)])
    world.feed.publish()
    wait_until(lambda: world.shim.n_logged(opened) == 1, "the one address is open")
    took = time.monotonic() - start
    check(took < 0.9 and ask_name(one) == "b1", f"moved to one address in {took:.2f} s")


def refused_start(command, wanted_status, *wanted):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=20, check=False)
    text = done.stdout.strip()
    check(done.returncode == wanted_status and all(word in text for word in wanted) and
          text.count("\n") == 0, f"exit {done.returncode}: {text}")


def waits_for_its_folder(world, shim):
    """The agent makes the folder for status files, and it may start later than the shim."""
    late = world.feed.status + "-late"
    with subprocess.Popen([shim, "--tables", world.feed.tables, "--status", late, "--name", "late"],
                          stderr=subprocess.PIPE, text=True) as process:
        line = process.stderr.readline()
        check("event=status_folder_absent" in line and late in line, line.strip())
        os.mkdir(late)
        wait_until(lambda: os.path.exists(os.path.join(late, "late.status")), "it goes on")
        process.terminate()
        process.stderr.read()
    check(process.returncode == 0, "it went on when the folder was there")


def bad_starts(world, bin_dir):
    shim = os.path.join(bin_dir, "jury-shim")
    base = [shim, "--tables", world.feed.tables, "--status", world.feed.status]
    refused_start(base, 3, "another process", str(world.shim.process.pid), "under that name")
    refused_start(base + ["--name", "a/b"], 3, 'name "a/b"', "1 to 40")
    waits_for_its_folder(world, shim)
    refused_start([shim, "--worker", "2"], 2, "--worker")
    refused_start([shim, "--workers", "99"], 2, "workers", "99", "0 to 16")
    refused_start([shim, "--connect-timeout", "5"], 2, "connect-timeout", "unit")


def limits(world, at, bin_dir):
    """Flows and descriptors at their bound: refused by RST and counted, the others go on."""
    port = endpoint(HOST, free_port())
    small = Shim(bin_dir, world.feed, "--flows", "4", "--workers", "1", name="small")
    world.shim.kill()
    small.start()
    world.feed.describe({"web": ("5-tuple", 900000, [(at["b1"], 100)])}, [("s", port, "web", 0)])
    world.feed.publish()
    wait_until(lambda: ask_name(port) == "b1", "served")
    wait_until(lambda: world.feed.plane("small")["flows"] == 0, "no flow")
    flows = [Client(port) for _ in range(4)]
    check([flow.line() for flow in flows] == ["b1"] * 4, "4 flows of 4")
    check([ask_name(port) for _ in range(3)] == ["reset"] * 3, "the fifth gets RST")
    wait_until(lambda: world.feed.plane("small")["refused_limit"] == 3, "counted as a limit")
    check(small.n_logged("event=flows_refused") == 1, "said once")
    flows.pop().close()
    wait_until(lambda: ask_name(port) == "b1", "room again")
    check([flow.ask("on") for flow in flows] == ["ON"] * 3, "the flows that were there go on")
    # Descriptors: what is open now, and two more.
    used = len(os.listdir(f"/proc/{small.process.pid}/fd"))
    subprocess.run(["prlimit", "--pid", str(small.process.pid), f"--nofile={used + 1}:{used + 1}"],
                   check=True)
    wait_until(lambda: ask_name(port) == "reset", "no descriptor: RST")
    check([flow.ask("on") for flow in flows] == ["ON"] * 3, "and still do without descriptors")
    cpu = cpu_ticks(small.process.pid)
    wait_until(lambda begun=time.monotonic(): time.monotonic() - begun > 1, "a second")
    spent = cpu_ticks(small.process.pid) - cpu
    check(spent < 20, f"no busy loop over it: {spent} ticks in a second")
    small.kill()


def fill(path):
    """All the room that is left."""
    with open(path, "ab", buffering=0) as file:
        try:
            while True:
                file.write(b"x" * 4096)
        except OSError:
            pass


def full_disks(world, bin_dir):
    """A full tmpfs is a sentence, never a signal: for the status file, and for the agent's table."""
    folder = os.path.join(world.folder, "small")
    filler = os.path.join(folder, "filler")
    os.mkdir(folder)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=128k", "none", folder], check=True)
    try:
        fill(filler)
        refused_start([os.path.join(bin_dir, "jury-shim"), "--tables", world.feed.tables, "--status",
                       folder], 3, folder, "No space left")
        os.truncate(filler, 60 * 1024)  # enough for the file, not for its rows
        tight = Shim(bin_dir, world.feed, "--workers", "1", "--status", folder, name="tight").start()
        wait_until(lambda: tight.n_logged("event=status_file_full") == 1, "rows have no room")
        wait_until(lambda: planes_of(world, folder)[0]["generation"] > 0, "it follows the table")
        check(planes_of(world, folder)[0]["state"] == "alive",
              "the shim forwards and says that it does not count: "
              + tight.text().split("event=status_file_full")[1].split("\n")[0])
        tight.kill()
        os.truncate(filler, 0)
        feed = Feed(bin_dir, world.folder)
        feed.tables = folder
        feed.start()
        feed.describe({"web": ("wrr", 1000, [])}, [])
        generation = feed.publish()
        fill(filler)
        feed.process.stdin.write("publish 2\n")
        feed.process.stdin.flush()
        answer = feed.process.stdout.readline().strip()
        check(answer.startswith("error") and "No space left" in answer, f"full: {answer}")
        os.truncate(filler, 0)
        check(feed.publish() > generation, "with room again the writer goes on")
        feed.end()
    finally:
        subprocess.run(["umount", folder], check=True)


def planes_of(world, folder):
    return json.loads(world.feed.tell(f"planes {folder}"))


def privileged_port(world, at):
    """Without CAP_NET_BIND_SERVICE a port below 1024 is named with what it needs."""
    port, good = endpoint(HOST, 81), endpoint(HOST, free_port())
    world.shim.command = ["setpriv", "--bounding-set=-net_bind_service",
                          "--inh-caps=-net_bind_service", *world.shim.command]
    world.shim.start()
    world.serve({"web": ("5-tuple", 900000, [(at["b1"], 100)])},
                [("low", port, "web", 0), ("good", good, "web", 0)])
    line = wait_until(lambda: [line for line in world.shim.text().split("\n")
                               if 'listener="low"' in line], "the low port is named")[0]
    check(port in line and "Permission denied" in line and "CAP_NET_BIND_SERVICE" in line
          and ask_name(good) == "b1", f"privileged port: {line.split('event=')[1]}")


def cpu_ticks(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        return sum(int(word) for word in file.read().rsplit(")", 1)[1].split()[11:13])


def main():
    bin_dir = arguments().bin
    world = World(bin_dir, "--workers", "2", "--stop-timeout", "1500ms")
    backends = {name: Backend(name) for name in ("b1", "b2")}
    at = {name: backend.at for name, backend in backends.items()}
    port = endpoint(HOST, free_port())
    groups = {"web": ("5-tuple", 900000, [(at["b1"], 100), (at["b2"], 100)])}
    listeners = [("front", port, "web", 0)]
    world.shim.start()
    wait_until(lambda: world.shim.n_logged("event=table_absent") == 1, "a shim without a table waits")
    world.serve(groups, listeners)
    bad_starts(world, bin_dir)
    agent_gone(world, at, port, groups, listeners)
    killed(world, port)
    stopped(world, port)
    busy_port(world, at, port)
    moved_listener(world, at)
    limits(world, at, bin_dir)
    full_disks(world, bin_dir)
    privileged_port(world, at)
    finish()


main()
