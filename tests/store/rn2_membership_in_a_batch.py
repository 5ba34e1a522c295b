#!/usr/bin/python3
# twin: rn2 node 3 restarted with a membership without node 4
"""RN2: a membership entry in the middle of the entries that a follower catches up with. Node 3 is
down while node 4 becomes a voter, gets all of it in one batch, takes snapshots until its log has
forgotten the entry, and is started again: it must still know node 4."""
from cluster import VOTER, check, run, wait_until


def role_of_four(node):
    return (node.status() or {}).get("peers", {}).get("4", {}).get("role", 0)


def main(make, _):
    cluster = make(options=["--threshold", "64", "--trailing", "64"], n_more=1).up()
    if cluster.leader().id == 3:
        cluster.leader().request("transfer {} 1")
    three = cluster.nodes[3]
    three.kill()
    cluster.fill(10)
    four = cluster.add(4).start().wait_started()
    event = cluster.leader().request("put {} 4 %d %d" % (VOTER, four.port))
    check(event["outcome"] == "done", "node 4 was not put: %r" % event)
    cluster.wait_voters([1, 2, 4])
    cluster.fill(15)
    # The leader keeps its newest messages for a peer that is away: let all of them be of now.
    leader = cluster.leader()
    evicted = leader.status()["send_evicted"]
    wait_until("what was kept for node 3 is new", 20,
               lambda: leader.status()["send_evicted"] > evicted + 20)

    three.start().wait_started()
    cluster.settle()
    cuts = three.status()["cut_changes"]
    wait_until("node 3 has node 4 as a voter", 10, lambda: role_of_four(three) == VOTER)
    cluster.fill(300)
    wait_until("node 3 took a snapshot", 10, lambda: three.status()["snapshots"] > 0)
    cluster.settle()

    three.stop()
    three.start().wait_started()
    wait_until("node 3 runs again", 10, lambda: three.status()["applied"] > 0)
    check(role_of_four(three) == VOTER, "node 3 restarted with a membership without node 4")
    cluster.fill(20)
    cluster.settle()
    check(cuts > 0, "nothing had to be cut: the schedule missed RN2")
    event = cluster.leader().request("del {} 4")
    check(event["outcome"] == "done", "node 4 was not removed: %r" % event)
    wait_until("node 4 is told", 20, lambda: "removed" in (four.status() or {}).get("message", ""))
    print("%d batches cut; the membership outlived snapshot and restart; node 4 left: %s" %
          (cuts, four.status()["message"]))


if __name__ == "__main__":
    run(main)
