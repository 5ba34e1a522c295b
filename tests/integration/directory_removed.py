#!/usr/bin/python3
# twin: directory-unseen not within .* says that its directory is gone
"""A data directory that is removed under its agent: somebody tidied up, or unmounted a volume.

Raft wrote on into files without a name: the node led and acknowledged what its next start could not
find, and nobody said so. Now it leaves Raft within seconds, says why, and so do its peers; another one
leads, writes go on, and its own probes and votes do as well.
"""
import os
import shutil
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from cluster import Cluster, check, run, tcp_group, wait_until  # noqa: E402


def problem(agent, *words):
    return next((p for p in agent.status().problems if all(word in p for word in words)), None)


def remove_all(path):
    shutil.rmtree(path)


def replace(path):
    """By an empty one, as a mount on top of it does."""
    os.rename(path, path + ".away")
    os.mkdir(path, 0o750)


def remove_log(path):
    shutil.rmtree(os.path.join(path, "store"))


def try_one(options, remove):
    with Cluster(options) as cluster:
        backend = cluster.backend("b1")
        cluster.make(vote_interval="0.2s")
        cluster.apply([tcp_group("web", [backend])])
        cluster.wait_verdicts("web", {backend: "healthy"})
        agent = cluster.leader()
        peers = [a for a in cluster.agents.values() if a is not agent]
        remove(agent.data_dir)
        wait_until("%s says that its directory is gone" % agent.name, 20,
                   lambda: problem(agent, agent.data_dir, "removed or replaced", "new id"))
        for peer in peers:
            wait_until("%s says so as well" % peer.name, 30,
                       lambda peer=peer: problem(peer, "node %d" % agent.id, "removed or restored"))
        wait_until("another one leads", 30,
                   lambda: peers[0].status().store.leader_id not in (0, agent.id))
        cluster.apply([tcp_group("more", [backend])], by=peers[0].id, timeout=20)
        for state, act in (("unhealthy", backend.stop), ("healthy", backend.start)):
            act()
            cluster.wait_verdicts("web", {backend: state}, seconds=30)
        wait_until("its votes count", 30, lambda: all(p.status().n_fresh == 3 for p in peers))
        print("%s: %s" % (remove.__name__, problem(agent, "removed or replaced")))
        status = agent.stop()
        check(status == 0, "it ended with status %d" % status)


def main(options):
    for remove in (remove_all, replace, remove_log):
        try_one(options, remove)


run(main)
