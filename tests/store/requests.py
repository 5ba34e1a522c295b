#!/usr/bin/python3
"""What the store is asked: barriers share one, transfers, refusals, the largest command, a full queue;
membership that follows the state (a standby, a leader that is removed); a new member that needs a
snapshot of many parts; and a log of large commands that stays small on the disk (A41)."""
import os
import time

from cluster import LEADER, STANDBY, VOTER, check, run, wait_until

COMMAND_MAX = 512 * 1024


class Answers:
    def __init__(self, node):
        self.events = []
        node.on_done = lambda _, event: self.events.append(event)

    def wait(self, n, seconds=30):
        wait_until("%d answers, there are %d" % (n, len(self.events)), seconds,
                   lambda: len(self.events) >= n)
        return [event["outcome"] for event in self.events]


def barriers(cluster):
    leader = cluster.leader()
    before = leader.status()["barriers"]
    answers = Answers(leader)
    for _ in range(200):
        leader.send("barrier %d" % cluster.next_cookie())
    check(set(answers.wait(200)) == {"done"}, "barriers: %r" % answers.events[:1])
    leader.on_done = None
    wait_until("the status tells it", 5, lambda: leader.status()["barriers"] > before)
    n = leader.status()["barriers"] - before
    check(n < 100, "200 readers took %d barriers" % n)
    print("200 readers shared %d barriers" % n)
    follower = next(n for n in cluster.nodes.values() if n is not leader)
    event = follower.request("barrier {}")
    check(event["outcome"] == "not_leader" and event["leader"] == leader.id, "follower: %r" % event)


def transfers(cluster):
    leader = cluster.leader()
    other = next(i for i in cluster.nodes if i != leader.id)
    begin = time.monotonic()
    event = leader.request("transfer {} %d" % other)
    took = time.monotonic() - begin
    check(event["outcome"] == "done", "transfer: %r" % event)
    wait_until("node %d leads" % other, 10,
               lambda: cluster.nodes[other].status()["raft"] == LEADER)
    event = cluster.leader().request("transfer {} 77")
    check(event["outcome"] == "refused" and "77" in event["message"], "transfer to 77: %r" % event)
    print("transfer in %.1f ms" % (1000 * took))


def refusals(cluster):
    cluster.settle()
    leader = cluster.leader()
    revision = leader.status()["revision"]
    event = leader.request("refused {}")
    check(event["outcome"] == "done" and event["answer"] == revision, "refused by check: %r" % event)
    check(leader.status()["revision"] == revision, "a refused command was applied")
    event = leader.request("append {} 7 %d" % (COMMAND_MAX - 16))
    check(event["outcome"] == "done", "the largest command: %r" % event)
    event = leader.request("append {} 7 %d" % (COMMAND_MAX - 8))
    check(event["outcome"] == "busy", "a command that is too large: %r" % event)
    cluster.settle()
    answers = Answers(leader)
    others = [n for n in cluster.nodes.values() if n is not leader]
    for node in others:
        node.signal(19)  # SIGSTOP: nothing can be committed
    for i in range(500):
        leader.send("append %d %d" % (cluster.next_cookie(), i + 1))
    wait_until("writes are turned away", 20,
               lambda: sum(e["outcome"] == "busy" for e in answers.events) >= 100)
    for node in others:
        node.signal(18)
    outcomes = answers.wait(500)
    leader.on_done = None
    print("500 writes while nothing commits: %s" % {o: outcomes.count(o) for o in set(outcomes)})
    cluster.leader()
    cluster.settle()


def membership(cluster):
    four = cluster.add(4).start().wait_started()
    leader = cluster.leader()
    leader.request("put {} 4 %d %d" % (STANDBY, four.port))
    wait_until("node 4 is a standby", 20,
               lambda: cluster.leader().status()["peers"].get("4", {}).get("role") == STANDBY)
    cluster.settle()
    leader = cluster.leader()
    leader.request("put {} 4 %d %d" % (VOTER, four.port))
    cluster.wait_voters([4])
    leader = cluster.leader()
    event = leader.request("del {} %d" % leader.id)
    check(event["outcome"] == "done", "the leader's removal: %r" % event)
    wait_until("the removed leader is told", 30,
               lambda: "was removed" in (leader.status() or {}).get("message", ""))
    wait_until("the removed leader steps down", 10, lambda: leader.status()["raft"] != LEADER)
    leader.stop()
    del cluster.nodes[leader.id]
    cluster.leader()
    cluster.fill(20)
    cluster.settle()
    print("standby, voter, removal of the leader: node %d says so and the rest goes on" % leader.id)


def snapshots(make):
    """Snapshots of 3 MB go in a dozen parts to a new member."""
    cluster = make(options=["--threshold", "64", "--trailing", "64", "--padding", str(3 << 20)],
                   n_more=1).up()
    cluster.fill(300)
    four = cluster.add(4).start().wait_started()
    cluster.leader().request("put {} 4 %d %d" % (VOTER, four.port))
    cluster.wait_voters([4])
    cluster.fill(20)
    cluster.settle()
    with open(four.log) as file:
        received = [line for line in file if "store_snapshot_received" in line]
    check(received, "node 4 did not get a snapshot")
    print("a new member took %s" % received[0].split("event=")[1].strip())
    for node in cluster.nodes.values():
        node.stop()
    for node in cluster.nodes.values():
        node.start().wait_started()
    cluster.leader()
    cluster.settle()
    cluster.close()


def size_of(path):
    """0 for a file that raft has renamed or removed since it was listed."""
    try:
        return os.path.getsize(path)
    except FileNotFoundError:
        return 0


def disk_use(make):
    cluster = make(1).up()
    node = cluster.nodes[1]
    cluster.fill(400, 256 * 1024)

    def used():
        return sum(size_of(os.path.join(root, f)) for root, _, files in
                   os.walk(node.dir) for f in files)

    # What is there at once says nothing: a snapshot may be late, while one is written there is no
    # other, and on a machine under load all 100 MB may come meanwhile (88 to 104 MB were seen). It
    # must go again.
    at_once = used()
    wait_until("100 MB of entries take less than 48 MB of the disk (at once %d)" % (at_once >> 20), 60,
               lambda: used() < 48 << 20 or cluster.fill(1, 256 * 1024))
    print("100 MB of entries: %d snapshots, %d MB on the disk at once"
          % (node.status()["snapshots"], at_once >> 20))
    wait_until("the status tells of all 400", 10, lambda: node.status()["revision"] >= 401)
    written = node.status()["revision"]
    node.stop()
    node.start().wait_started()
    cluster.leader()
    wait_until("revision %d" % written, 10, lambda: node.status()["revision"] == written)
    cluster.close()


def main(make, _):
    cluster = make(n_more=1).up()
    barriers(cluster)
    transfers(cluster)
    refusals(cluster)
    membership(cluster)
    cluster.close()
    snapshots(make)
    disk_use(make)


if __name__ == "__main__":
    run(main)
