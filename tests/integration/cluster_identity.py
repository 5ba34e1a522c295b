#!/usr/bin/python3
"""Who a node is: node id, cluster id, epoch and key belong together (row 1.6).

A wiped node is refused under its old id, by itself and by the others, and changes nothing for them.
An init that is killed in the middle goes on or begins again, and never makes two clusters. Needs strace.
"""
import os
import random
import shutil
import subprocess
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import jury_client  # noqa: E402
from cluster import Cluster, check, run, tcp_group, wait_until  # noqa: E402

STORE_FAILED = 4
# Calls that change the disk, and how many of them one thread of a node makes while a cluster is made.
CALLS = {"mkdir": 2, "pwrite64": 8, "fsync": 17, "rename": 3, "fdatasync": 1, "unlink": 4,
         "io_submit": 4, "fallocate": 2}


def wiped_node(cluster):
    b1 = cluster.backend("b1")
    cluster.apply([tcp_group("web", [b1])])
    cluster.wait_verdicts("web", {b1: "healthy"})
    wiped = next(a for a in cluster.agents.values() if a is not cluster.leader())
    rest = [a for a in cluster.agents.values() if a is not wiped]
    term = rest[0].status().store.term

    wiped.stop()
    shutil.rmtree(wiped.data_dir)
    os.mkdir(wiped.data_dir)
    wiped.start()
    wait_until("%s says that it is refused under its old id" % wiped.name, 20,
               lambda: "refused under this id" in wiped.status().store.message)
    status = wiped.status()
    print("the wiped node: \"%s\"" % status.store.message)
    check(status.store.state == STORE_FAILED and status.revision == 0,
          "the wiped node has a catalog")
    for agent in rest:
        wait_until("%s refuses the wiped node" % agent.name, 10,
                   lambda agent=agent: agent.count(["raft_message_refused",
                                                    "peer=%d" % wiped.id]) >= 1)

    # It has no vote: with one more node away there is no majority, however long it asks.
    rest[1].stop()
    with rest[0].client() as client:
        try:
            client.call("ConfigService/Apply", {"documents": [tcp_group("late", [b1])]}, timeout=4,
                        retry=False)
            check(False, "a write went through with one of three nodes and a wiped one")
        except jury_client.CallError as error:
            print("a write with one node and a wiped one: %s" % error)
            check(error.reason in ("NO_LEADER", "DEADLINE_PASSED"), "not NO_LEADER: %s" % error)
    rest[1].start()
    wait_until("a leader again", 20, lambda: rest[0].status().store.leader_id in
               [agent.id for agent in rest])
    cluster.apply([tcp_group("late", [b1])], by=rest[0].id)
    check(wiped.status().revision == 0, "the wiped node got the catalog under its old id")
    check(rest[0].status().store.term >= term, "the term went back")
    cluster.wait_verdicts("web", {b1: "healthy"}, nodes=[agent.id for agent in rest])


class Doomed:
    """An agent that is killed at its n-th call of one kind that changes the disk, if it gets there."""

    def __init__(self, agent, rng):
        self.agent, self.call = agent, rng.choice(sorted(CALLS))
        self.n = rng.randint(1, CALLS[self.call])
        log = os.path.join(agent.dir, "strace.log")
        self.tracer = subprocess.Popen(
            ["strace", "-f", "-o", log, "-e", "trace=" + self.call,
             "-e", "inject=%s:signal=KILL:when=%d" % (self.call, self.n),
             "-p", str(agent.process.pid)], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_until("strace is attached", 60, self.is_traced)

    def is_traced(self):
        """All threads are: the last one to be attached to may be the one that counts."""
        tasks = "/proc/%d/task" % self.agent.process.pid
        for task in os.listdir(tasks):
            with open("%s/%s/status" % (tasks, task), encoding="ascii") as file:
                if "TracerPid:\t0\n" in file.read():
                    return False
        return True

    def end(self):
        """Returns where it died."""
        died = not self.agent.is_running()
        self.agent.kill()
        self.tracer.wait(60)
        return "node %d %s %s %d" % (self.agent.id, "killed at" if died else "not stopped by",
                                     self.call, self.n)


def killed_init(options, seed):
    """The node that makes the cluster dies at some point of it, or another one, or both."""
    rng = random.Random(seed)
    with Cluster(options) as cluster:
        cluster.start()
        first, second = cluster.agents[1], cluster.agents[rng.choice([2, 3])]
        request_id = bytes([seed & 255]) * 16
        request = cluster.init_request()
        doomed = [Doomed(agent, rng)
                  for agent in rng.choice([[first], [second], [first, second]])]
        answers = []

        def ask():
            try:
                answers.append(first.call("ClusterService/InitCluster", request,
                                          request_id=request_id, timeout=60, retry=False))
            except jury_client.CallError:
                pass  # it was killed

        asking = threading.Thread(target=ask, daemon=True)
        asking.start()
        wait_until("init is answered, or node 1 dead (seed %d)" % seed, 60,
                   lambda: answers or not first.is_running())
        if answers:
            wait_until("%s has the catalog, or is dead (seed %d)" % (second.name, seed), 60,
                       lambda: not second.is_running() or second.status().revision >= 1)
        ends = [one.end() for one in doomed]
        for one in doomed:
            one.agent.start()
        for agent in (first, second):
            wait_until("%s answers" % agent.name, 20,
                       lambda agent=agent: agent.call("NodeService/GetVersion"))
        answer = first.call("ClusterService/InitCluster", request, request_id=request_id,
                            timeout=30)
        cluster.wait_ready()
        ids = {agent.status().cluster_id for agent in cluster.agents.values()}
        check(ids == {answer.cluster_id}, "after a killed init the cluster ids are %s" % ids)
        print("seed %d: init with %s: one cluster" % (seed, ", ".join(ends)))


def test(options):
    with Cluster(options) as cluster:
        cluster.make()
        wiped_node(cluster)
    for round_number in range(options.rounds):
        killed_init(options, options.seed + round_number)


run(test, rounds=4, seed=random.randrange(1000))
