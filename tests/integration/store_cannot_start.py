#!/usr/bin/python3
"""A store that cannot start does not stop the agent: it serves from last-known-good, says so, votes,
and takes the store back when that is well again (row 1.4).

Damage: bytes flipped in every file of Raft's log. Full: the data directory on a small file system
that is filled to the last byte (needs root and loop mounts; said and left out without). Read-only: a
mount that became so, as a disk with errors does (needs root).
"""
# twin: read-only-refused ended with status 3
import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from cluster import Cluster, check, run, tcp_group, wait_until  # noqa: E402

STORE_FAILED = 4
MEMBER_STORE_DOWN = 25
DEGRADED = 2
IMAGE_BYTES = 24 << 20


def damage(data_dir):
    """Flips bytes in every closed segment of the log: in an open one they would be taken for a write
    that a crash tore. Returns what it touched."""
    raft = os.path.join(data_dir, "store", "raft")
    touched = []
    for name in sorted(os.listdir(raft)):
        path = os.path.join(raft, name)
        if not name[0].isdigit():
            continue
        with open(path, "r+b") as file:
            for at in (9, 40, 200):
                file.seek(at)
                byte = file.read(1)
                if byte:
                    file.seek(at)
                    file.write(bytes([byte[0] ^ 0x55]))
        touched.append(name)
    check(touched, "no log to damage in %s" % raft)
    return touched


def names_store_of(status, node_id):
    return [f.node_id for f in status.findings if f.kind == MEMBER_STORE_DOWN] == [node_id]


def serves(cluster, agent, b1, b2, what, votes=True):
    """The node without its store: table, verdicts and votes are there, and it says what is wrong."""
    wait_until("%s says that its store cannot start" % agent.name, 20,
               lambda: agent.status().store.state == STORE_FAILED)
    status = agent.status()
    print("%s: \"%s\"" % (what, status.store.message))
    check(status.is_last_known_good, "%s does not say that it serves from last-known-good" % agent.name)
    check(status.revision >= 2, "%s has no catalog" % agent.name)
    cluster.wait_verdicts("web", {b1: "healthy", b2: "healthy"})
    check(os.path.exists(os.path.join(agent.tables, "root")) or os.listdir(agent.tables),
          "%s wrote no table" % agent.name)

    # It probes, votes and decides: a backend goes down on all three nodes.
    b1.stop()
    cluster.wait_verdicts("web", {b1: "unhealthy", b2: "healthy"})
    b1.start()
    cluster.wait_verdicts("web", {b1: "healthy", b2: "healthy"})
    others = [a for a in cluster.agents.values() if a is not agent]
    if votes:
        wait_until("votes of all three nodes are fresh", 10,
                   lambda: others[0].status().n_fresh == 3)
    for other in others if votes else []:  # they called the cluster healthy, as it was heard
        wait_until("%s says that the store of %s does not run" % (other.name, agent.name), 10,
                   lambda other=other: names_store_of(other.status(), agent.id))
        check(other.status().health == DEGRADED, "%s calls the cluster healthy" % other.name)
    ready = agent.call("NodeService/CheckReady")
    check(not ready.is_ready, "%s says that it is ready" % agent.name)


def damaged(cluster, b1, b2):
    agent = next(a for a in cluster.agents.values() if a is not cluster.leader())
    check(agent.stop() == 0, "%s did not stop with 0" % agent.name)  # closes its segments
    print("damaged %s" % ", ".join(damage(agent.data_dir)))
    agent.start()
    serves(cluster, agent, b1, b2, "damaged")
    check(agent.stop() == 0, "%s did not stop with 0" % agent.name)


def mount(agent):
    """Moves the agent's data directory to a small file system. None: not possible here."""
    image = os.path.join(agent.dir, "disk.img")
    moved = os.path.join(agent.dir, "moved")
    with open(image, "wb") as file:
        file.truncate(IMAGE_BYTES)
    for command in (["mkfs.ext4", "-q", "-m", "0", image],
                    ["mv", agent.data_dir, moved], ["mkdir", "-m", "750", agent.data_dir],
                    ["mount", "-o", "loop", image, agent.data_dir],
                    ["cp", "-a", moved + "/.", agent.data_dir]):
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              check=False)
        if done.returncode != 0:
            print("full disk left out, %s: %s" % (command[0], done.stdout.strip()))
            return False
    return True


def fill(path):
    """Until a synced round finds no room: what is only promised to a file may come back as free."""
    with open(path, "wb", buffering=0) as file:
        has_room = True
        while has_room:
            has_room = False
            try:
                while True:
                    file.write(b"x" * 4096)
                    has_room = True
            except OSError:
                pass
            os.fsync(file.fileno())


def full(cluster, b1, b2):
    agent = next(a for a in cluster.agents.values() if a.is_running() and a is not cluster.leader())
    agent.stop()
    if not mount(agent):
        return
    filler = os.path.join(agent.data_dir, "filler")
    try:
        fill(filler)
        agent.start()
        serves(cluster, agent, b1, b2, "full")
        os.unlink(filler)
        started = time.monotonic()
        wait_until("%s has its store again" % agent.name, 60,
                   lambda: agent.status().store.state == 3 and
                   not agent.status().is_last_known_good)
        for other in cluster.agents.values():
            wait_until("%s says no more that its store is down" % other.name, 20,
                       lambda other=other: not names_store_of(other.status(), agent.id))
        print("the store is back %.1f s after space was" % (time.monotonic() - started))
        cluster.wait_ready([agent.id])
    finally:
        agent.kill()
        back = os.path.join(agent.dir, "back")
        for command in (["cp", "-a", agent.data_dir, back], ["umount", agent.data_dir],
                        ["rmdir", agent.data_dir], ["mv", back, agent.data_dir]):
            subprocess.run(command, check=False)


def read_only_refused_the_start(cluster, b1, b2):
    """"This user may not write to it" and exit code 3: a node whose disk went read-only served nobody."""
    agent = next(a for a in cluster.agents.values() if a.is_running() and a is not cluster.leader())
    agent.stop()
    done = subprocess.run(["mount", "--bind", agent.data_dir, agent.data_dir], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode != 0:
        print("read-only left out: %s" % done.stdout.strip())
        return
    try:
        subprocess.run(["mount", "-o", "remount,bind,ro", agent.data_dir], check=True)
        agent.start()
        # Its start counter cannot be raised, so it sends no votes.
        serves(cluster, agent, b1, b2, "read-only", votes=False)
        check("may not write to it" in agent.status().store.message and
              agent.data_dir in agent.status().store.message, agent.status().store.message)
        check(any("may not write to it" in problem for problem in agent.status().problems),
              "status finds nothing: %s" % agent.status().problems)
        subprocess.run(["mount", "-o", "remount,bind,rw", agent.data_dir], check=True)
        wait_until("%s has its store again" % agent.name, 90,
                   lambda: agent.status().store.state == 3 and
                   not agent.status().is_last_known_good)
        cluster.wait_ready([agent.id])
    finally:
        agent.kill()
        subprocess.run(["umount", agent.data_dir], check=False)


def test(options):
    with Cluster(options) as cluster:
        cluster.make()
        b1, b2 = cluster.backend("b1"), cluster.backend("b2")
        cluster.apply([tcp_group("web", [b1, b2])])
        cluster.wait_verdicts("web", {b1: "healthy", b2: "healthy"})
        for agent in cluster.agents.values():
            wait_until("%s has written last-known-good" % agent.name, 10,
                       lambda agent=agent: agent.counters()["agent_lkg_written"] >= 1)
        time.sleep(1.2)  # what was written last shall hold the verdicts: one write a second
        full(cluster, b1, b2)
        for agent in cluster.agents.values():
            if not agent.is_running():
                agent.start()
        cluster.wait_ready()
        read_only_refused_the_start(cluster, b1, b2)
        for agent in cluster.agents.values():
            if not agent.is_running():
                agent.start()
        cluster.wait_ready()
        damaged(cluster, b1, b2)


run(test)
