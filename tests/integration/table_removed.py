#!/usr/bin/python3
# twin: table-stays-gone the table is there again
"""Whoever cleans the run directory under a running agent: the forwarding table is made anew.

An agent and a shim with traffic that never tries twice. The root, the layout, the state file, all
files, and the whole folder are removed, one after the other; each time the agent says so, makes all
files anew with a generation that goes on, the shim takes them, a change made meanwhile arrives, and
not one request fails. While it can not be made (something else stands in its place), `status` and
`ready` say it. The same of the shim's status file: the shim makes it anew, and while it cannot,
`status` says what is wrong.
"""
import glob
import os
import re
import shutil
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from cluster import Cluster, Flow, Failure, check, free_port, run, tcp_group, wait_until  # noqa: E402
from ctl import ask, here  # noqa: E402

HEALTHY = 1


class Traffic:
    """Connections one after the other, never a second try."""

    def __init__(self, address, port):
        self.at, self.is_over, self.n_good, self.failed = (address, port), False, 0, []
        self.last = ""
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        while not self.is_over:
            try:
                flow = Flow(*self.at)
                self.last = flow.name
                self.n_good += 1
                flow.close()
            except (OSError, Failure) as error:
                self.failed.append(str(error))
            time.sleep(0.002)

    def end(self):
        self.is_over = True
        self.thread.join()

    def wait_for(self, n):
        before = self.n_good
        wait_until("%d more answers" % n, 30, lambda: self.n_good >= before + n or self.failed)
        check(not self.failed, "failures: %s" % self.failed[:5])


def documents(backends, port):
    return [tcp_group("web", backends),
            {"listener": {"name": "web", "address": "127.0.0.1", "port": port,
                          "protocol": "PROTOCOL_TCP", "group": "web"}}]


def files_of(tables):
    """Inodes by name. A link is none of the table's files, whatever it leads to."""
    return {name: os.lstat(os.path.join(tables, name)).st_ino for name in os.listdir(tables)
            if (name == "root" or name.startswith(("layout.", "state."))) and
            not os.path.islink(os.path.join(tables, name))}


def problems(agent):
    return [p for p in agent.status().problems if "forwarding table" in p]


def plane(agent):
    return agent.status().data_planes[0]


def remove(tables, what):
    if what == "folder":
        shutil.rmtree(tables)
        return
    name, _, link = what.partition(" as link to ")
    for path in glob.glob(os.path.join(tables, name)):
        os.unlink(path)
        if link:
            os.symlink(link, path)


def removed(cluster, agent, traffic, what, backends, port):
    before = files_of(agent.tables)
    generation = agent.status().data_planes[0].published_generation
    n_back = agent.count(["table_files_back"])
    remove(agent.tables, what)
    wait_until("the table is there again, without %s" % what, 20, lambda: os.path.isdir(
        agent.tables) and len(files_of(agent.tables)) == 3 and
        files_of(agent.tables)["root"] != before["root"])
    after = files_of(agent.tables)
    check(not set(after.items()) & set(before.items()), "a file was repaired and not made anew")
    wait_until("the agent says that it is back", 20,
               lambda: agent.count(["table_files_back"]) == n_back + 1)
    wait_until("no problem is left", 20, lambda: not problems(agent) and
               agent.call("NodeService/CheckReady").is_ready)
    wait_until("the shim has taken the new files", 20, lambda: plane(agent).adopted_generation ==
               plane(agent).published_generation > generation)
    # Words and layouts reach it.
    cluster.apply(documents(backends[:1], port))
    wait_until("the shim follows a removal", 20, lambda: plane(agent).adopted_generation ==
               plane(agent).published_generation)
    traffic.wait_for(50)
    cluster.apply(documents(backends, port))
    cluster.wait_verdicts("web", {b: "healthy" for b in backends})
    traffic.wait_for(50)
    print("%s: made anew, generation %d -> %d, %d answers, 0 failures" %
          (what, generation, plane(agent).published_generation, traffic.n_good))


def in_its_place(agent, traffic):
    """The folder cannot be made: said as long as it lasts."""
    shutil.rmtree(agent.tables)
    with open(agent.tables, "w") as file:
        file.write("in the way\n")
    sentence = wait_until("status says that the table is gone", 20, lambda: problems(agent))[0]
    check("were removed or replaced" in sentence, sentence)
    check(agent.status().health != HEALTHY, "status calls it healthy")
    ready = agent.call("NodeService/CheckReady")
    check(not ready.is_ready and any(c.name == "table" and not c.is_ok for c in ready.checks),
          "ready does not name the table")
    print("status: %s" % sentence)
    traffic.wait_for(50)
    os.unlink(agent.tables)
    wait_until("the table is there again", 20, lambda: not problems(agent) and
               os.path.exists(os.path.join(agent.tables, "root")))
    traffic.wait_for(50)


def damage_status(path, how):
    if how == "removed":
        os.unlink(path)
    else:
        os.truncate(path, 0)


def status_file(agent, shim, traffic):
    """The shim's own file: it makes it anew, and its flows go on being counted."""
    path = os.path.join(agent.status_dir, "jury-shim.status")
    for n, how in enumerate(("removed", "cut"), 1):
        damage_status(path, how)
        wait_until("the status file that was %s is made anew" % how, 20,
                   lambda n=n: shim.count(["event=status_file_made_anew"]) == n)
        wait_until("the shim is seen again", 20, lambda: plane(agent).is_alive and
                   plane(agent).adopted_generation == plane(agent).published_generation and
                   not agent.status().problems)
        traffic.wait_for(50)
        print("status file %s: made anew" % how)


def status_in_words(cluster, agent, shim):
    """While nobody can make it anew, status says what is wrong, in words."""
    path = os.path.join(agent.status_dir, "jury-shim.status")
    for how, word, sentence in (("cut", "refused", "a status file has more"), ("removed", "gone", "was removed")):
        wait_until("the shim is seen", 20, lambda: plane(agent).is_alive)
        shim.pause()
        damage_status(path, how)
        said = wait_until("status says that the file was %s" % how, 20,
                          lambda: [p for p in agent.status().problems if sentence in p])
        check(agent.status().health != HEALTHY, "status calls it healthy")
        text = ask(cluster, ["status"] + here(agent)).out
        row = [line for line in text.splitlines() if line.startswith("jury-shim")]
        check(len(row) == 1 and word in row[0] and not re.search("[0-9]{7}", row[0]), text)
        print("status: %s" % said[0])
        shim.go_on()
    wait_until("nothing is wrong any more", 20, lambda: plane(agent).is_alive and not agent.status().problems)


def main(options):
    with Cluster(options, n_nodes=1) as cluster:
        backends = [cluster.backend("b1"), cluster.backend("b2")]
        cluster.make(vote_interval="0.2s")
        agent = cluster.agents[1]
        port = free_port()
        cluster.apply(documents(backends, port))
        cluster.wait_verdicts("web", {b: "healthy" for b in backends})
        cluster.shim(1).start()
        wait_until("the shim serves", 20, lambda: Flow("127.0.0.1", port).name)
        wait_until("it is seen", 20, lambda: agent.status().data_planes and not problems(agent))
        traffic = Traffic("127.0.0.1", port)
        try:
            for what in ("root", "layout.*", "state.*", "*", "folder", "root as link to /dev/null",
                         "state.* as link to /dev/null"):
                removed(cluster, agent, traffic, what, backends, port)
            in_its_place(agent, traffic)
            status_file(agent, cluster.shims[1], traffic)
        finally:
            traffic.end()
        check(not traffic.failed, "failures: %s" % traffic.failed[:5])
        status_in_words(cluster, agent, cluster.shims[1])
        check(agent.counters()["agent_tables_made_anew"] >= 6, "not counted: %s" % agent.counters())
        print("%d answers, 0 failures" % traffic.n_good)


if __name__ == "__main__":
    run(main)
