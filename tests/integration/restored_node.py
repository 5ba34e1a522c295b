#!/usr/bin/python3
# twin: restored-unseen says that its directory is an older copy
"""A node whose data directory was restored from an older copy: what an operator sees, and what goes on.

Its peers once dropped all its votes as old and nobody said why. Now the node itself (log, status, ready)
and its peers (log, status, node describe) name the cause and the way back; it keeps out of Raft, over
restarts, and its votes count again.
"""
import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from cluster import Cluster, check, run, tcp_group, wait_until  # noqa: E402

STORE_FAILED, HEALTHY = 4, 1


def problem(agent, *words):
    return next((p for p in agent.status().problems if all(word in p for word in words)), None)


def knows_group(agent, name):
    """It does by last-known-good, which is written some time after the change."""
    path = os.path.join(agent.data_dir, "lkg")
    if not os.path.exists(path):
        return False
    with open(path, "rb") as file:
        return name.encode() in file.read()


def restore(agent, n_restarts):
    wait_until("last-known-good of %s has the group" % agent.name, 30,
               lambda: knows_group(agent, "web"))
    agent.stop()
    copy = agent.data_dir + ".copy"
    shutil.copytree(agent.data_dir, copy)
    for _ in range(n_restarts):
        agent.start()
        wait_until("%s runs" % agent.name, 30, lambda: agent.call("NodeService/CheckReady").is_ready)
        agent.stop()
    shutil.rmtree(agent.data_dir)
    shutil.move(copy, agent.data_dir)
    agent.start()


def is_refused(cluster, agent, peers):
    wait_until("%s says that its directory is an older copy" % agent.name, 30,
               lambda: problem(agent, "restored from an older copy", "new id"))
    check(agent.status().store.state == STORE_FAILED, "its store runs: %s" % agent.status().store)
    ready = agent.call("NodeService/CheckReady")
    check(any(c.name == "store" and "older copy" in c.message for c in ready.checks),
          "ready does not say why: %s" % ready)
    for peer in peers:
        wait_until("%s says so as well" % peer.name, 30,
                   lambda peer=peer: problem(peer, "node %d" % agent.id, "older copy", "new id"))
        told = subprocess.run([os.path.join(cluster.bin, "nodectl"), "--socket", peer.socket_path,
                               "node", "describe"], capture_output=True, text=True, timeout=30).stdout
        check("old data directory" in told, "node describe: %s" % told)


def main(options):
    with Cluster(options) as cluster:
        backend = cluster.backend("b1")
        cluster.make(vote_interval="0.2s")
        cluster.apply([tcp_group("web", [backend])])
        cluster.wait_verdicts("web", {backend: "healthy"})
        agent = next(a for a in cluster.agents.values() if a is not cluster.leader())
        peers = [a for a in cluster.agents.values() if a is not agent]
        restore(agent, 3)
        is_refused(cluster, agent, peers)
        print("%s: %s" % (agent.name, problem(agent, "older copy")))
        print("%s: %s" % (peers[0].name, problem(peers[0], "older copy")))
        check(any(peer.count(["event=peer_restored", "its data directory was restored"])
                  for peer in peers), "no peer has logged it")
        for _ in range(2):
            wait_until("its votes count", 30, lambda: all(p.status().n_fresh == 3 for p in peers))
            backend.stop()
            cluster.wait_verdicts("web", {backend: "unhealthy"}, seconds=30)
            backend.start()
            cluster.wait_verdicts("web", {backend: "healthy"}, seconds=30)
            agent.stop()
            agent.start()
            is_refused(cluster, agent, peers)
        # The cluster goes on without it.
        cluster.apply([tcp_group("more", [backend])], by=cluster.leader().id)
        check(agent.status().revision < peers[0].status().revision, "it follows Raft")


if __name__ == "__main__":
    run(main)
