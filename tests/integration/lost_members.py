#!/usr/bin/python3
"""Members that are lost, and members that never come (A38).

Three agents, one dies. A new member is named that never starts: it is no voter before it has caught
up, so two of three still decide, and either of the two can be removed at every step. The same with one
node and a second one that never starts. All of it as an operator does it, by documents of kind Node.
A removal that would leave no majority of voters that are heard is refused with the count.
"""
# seconds: 30
# twin: member-goes-unheard not within 20 s: Raft has let a leader alone
# twin: voters-unchecked exit 0, not 8
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from cluster import Cluster, KeyPair, check, run, tcp_group, wait_until  # noqa: E402

NODE = """apiVersion: jury/v1
kind: Node
spec: {id: %d, key: "%s", endpoints: [{host: "%s", meshPort: %d, raftPort: %d}]}
"""


def nodectl(cluster, by, *words, status=0):
    done = subprocess.run([os.path.join(cluster.bin, "nodectl"), "--socket",
                           cluster.agents[by].socket_path, *words],
                          capture_output=True, text=True, check=False)
    check(done.returncode == status, "nodectl %s: exit %d, not %d: %s%s"
          % (" ".join(words), done.returncode, status, done.stdout, done.stderr))
    return done.stdout + done.stderr


def document(cluster, node_id, key, ports):
    path = os.path.join(cluster.dir, "node-%d.yaml" % node_id)
    with open(path, "w", encoding="utf-8") as file:
        file.write(NODE % (node_id, key.public, cluster.address(node_id), *ports))
    return path


def never_started(cluster, node_id):
    return document(cluster, node_id, KeyPair(), cluster.ports(cluster.address(node_id)))


def is_member(cluster, by, node_id):
    return any(m.node.node_id == node_id
               for m in cluster.agents[by].call("ClusterService/ListMembers").members)


class Writes:
    """One more write, which only a majority of the voters commits."""
    def __init__(self, cluster, backend, by=1):
        self.cluster, self.backend, self.by, self.n = cluster, backend, by, 0

    def go_on(self, when):
        self.n += 1
        answer = self.cluster.apply([tcp_group("group%d" % self.n, [self.backend])], by=self.by,
                                    timeout=20)
        print("%s: a write is committed as revision %d" % (when, answer.revision))


def a_dead_member_is_replaced(options):
    with Cluster(options, 3) as cluster:
        cluster.make()
        writes = Writes(cluster, cluster.backend("b1"))
        dead = cluster.agents[3]
        dead.kill()
        wait_until("one of the others leads", 20,
                   lambda: cluster.agents[1].status().store.leader_id in (1, 2))
        writes.go_on("with one of three dead")
        new = never_started(cluster, 4)
        print(nodectl(cluster, 1, "apply", "-f", new), end="")
        check(is_member(cluster, 1, 4), "node 4 is no member")
        for _ in range(3):
            writes.go_on("with a fourth that never starts")
        old = document(cluster, 3, dead.key, (dead.mesh_port, dead.raft_port))
        print(nodectl(cluster, 1, "delete", "-f", old), end="")
        wait_until("node 3 is no member", 10, lambda: not is_member(cluster, 2, 3))
        writes.go_on("without the dead one")
        print(nodectl(cluster, 2, "delete", "-f", new), end="")
        wait_until("node 4 is no member", 10, lambda: not is_member(cluster, 2, 4))
        writes.go_on("without the one that never started")


def one_node_and_one_that_never_starts(options):
    with Cluster(options, 1) as cluster:
        cluster.make()
        writes = Writes(cluster, cluster.backend("b1"))
        new = never_started(cluster, 2)
        print(nodectl(cluster, 1, "apply", "-f", new), end="")
        for _ in range(3):
            writes.go_on("one node, with a second that never starts")
        print(nodectl(cluster, 1, "delete", "-f", new), end="")
        writes.go_on("one node again")


def heard(cluster, by, node_id):
    for member in cluster.agents[by].call("ClusterService/ListMembers").members:
        if member.node.node_id == node_id and member.HasField("raft_age"):
            return member.raft_age.seconds + member.raft_age.nanos / 1e9
    return 1e9


def a_live_one_is_not_removed_beside_a_dead_one(options):
    """It would leave one of two: nothing could be changed ever after."""
    with Cluster(options, 3) as cluster:
        cluster.make()
        writes = Writes(cluster, cluster.backend("b1"))
        cluster.agents[3].kill()
        leader = wait_until("one of the others leads", 20, lambda: next(
            (n for n in (1, 2) if cluster.agents[n].status().store.leader_id == n), None))
        wait_until("node 3 is silent", 20, lambda: heard(cluster, leader, 3) > 3.5)
        for node_id in (1, 2):
            live, dead = cluster.agents[node_id], cluster.agents[3]
            path = document(cluster, node_id, live.key, (live.mesh_port, live.raft_port))
            said = nodectl(cluster, leader, "delete", "-f", path, status=8)
            check("only 1 of 2 voters would be heard" in said and "the count 1" in said, said)
            print(said, end="")
        writes.go_on("nobody was removed")
        path = document(cluster, 3, dead.key, (dead.mesh_port, dead.raft_port))
        nodectl(cluster, leader, "delete", "-f", path)
        writes.go_on("the dead one first")
        other = cluster.agents[3 - leader]
        path = document(cluster, other.id, other.key, (other.mesh_port, other.raft_port))
        nodectl(cluster, leader, "delete", "-f", path)
        writes.by = leader
        writes.go_on("then one of the two that live")


def a_dead_and_a_live_one_are_removed_at_once(options):
    """The live one went first, if its id was lower: the rest was no majority, and that for ever."""
    with Cluster(options, 3) as cluster:
        cluster.make()
        leader = cluster.leader().id
        live, dead = sorted(n for n in (1, 2, 3) if n != leader)
        cluster.agents[dead].kill()
        paths = []
        for node_id in (live, dead):
            agent = cluster.agents[node_id]
            paths += ["-f", document(cluster, node_id, agent.key, (agent.mesh_port, agent.raft_port))]
        def changes(node_id):
            return cluster.agents[leader].count(
                ["store_membership", "node=%d " % node_id, 'result="done"'])
        before = {node_id: changes(node_id) for node_id in (live, dead)}
        nodectl(cluster, leader, "delete", *paths)
        wait_until("Raft has let a leader alone: both are gone", 20,
                   lambda: all(changes(n) > before[n] for n in (live, dead)))
        Writes(cluster, cluster.backend("b1"), by=leader).go_on("two removed at once")


def test(options):
    a_dead_and_a_live_one_are_removed_at_once(options)
    a_dead_member_is_replaced(options)
    one_node_and_one_that_never_starts(options)
    a_live_one_is_not_removed_beside_a_dead_one(options)


run(test)
