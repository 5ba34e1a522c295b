#!/usr/bin/python3
"""Making a cluster: all three started in any order, a member down at that time, init asked again."""
import itertools

from cluster import WAITING, check, run, wait_until


def any_order(make):
    for order in itertools.permutations([1, 2, 3]):
        cluster = make()
        for node_id in order:
            cluster.nodes[node_id].start().wait_started()
        cluster.init(at=order[1])
        cluster.wait_voters(cluster.nodes)
        cluster.fill(20)
        cluster.settle()
        print("started %s, init at node %d: three voters, equal hashes" % (order, order[1]))
        for node_id in order:
            cluster.nodes[node_id].stop()
        for node_id in reversed(order):
            cluster.nodes[node_id].start().wait_started()
        cluster.leader()
        cluster.fill(5)
        cluster.settle()
        cluster.close()


def one_down(make):
    cluster = make()
    cluster.start_all()
    cluster.nodes[3].stop()
    cluster.init(at=1)
    cluster.fill(50)
    status = cluster.leader().status()
    check(status["peers"]["3"]["role"] == 0, "node 3 is a server although it never answered")
    cluster.nodes[3].start().wait_started()
    cluster.wait_voters(cluster.nodes)
    cluster.settle()
    print("a member that was down at init joined when it came")
    cluster.close()


def alone(make):
    """Fewer than half of the first members: no write is accepted, and init waits."""
    cluster = make()
    cluster.start_all()
    cluster.nodes[2].stop()
    cluster.nodes[3].stop()
    one = cluster.nodes[1]
    wait_until("node 1 waits", 10, lambda: one.status()["state"] == WAITING)
    one.send("init 900 %s %s" % (cluster.name, cluster.members_text()))
    wait_until("node 1 leads alone", 10, lambda: one.status()["revision"] == 1)
    event = one.request("append {} 5")
    check(event["outcome"] == "not_ready", "a write was accepted by one of three: %r" % event)
    print("one of three: %s" % event["message"])
    one.kill()
    one.start().wait_started()
    wait_until("node 1 leads again", 10, lambda: one.status()["ready"] == 1)
    cluster.nodes[2].start().wait_started()
    wait_until("the cluster is made", 20, lambda: one.status()["message"] == "")
    event = one.request("init {} %s %s" % (cluster.name, cluster.members_text()))
    check(event["outcome"] == "done", "init again: %r" % event)
    event = one.request("init {} other %s" % cluster.members_text())
    check(event["outcome"] == "exists", "another init on a member: %r" % event)
    print("another init: %s" % event["message"])
    cluster.fill(10)
    event = cluster.nodes[3].start().wait_started()
    cluster.wait_voters(cluster.nodes)
    cluster.settle()


def main(make, _):
    any_order(make)
    one_down(make)
    alone(make)


if __name__ == "__main__":
    run(main)
