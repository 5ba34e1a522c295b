#!/usr/bin/python3
"""Killed at each step of `cluster init`: SIGKILL at the n-th call of each kind that changes the disk,
for n = 1, 2, ... until a run gets through; on the node that makes the cluster, and on one that is
being admitted. After each kill the node is started again, init is asked again, and the cluster must
stand and take writes; what was left must have been cleared away or gone on with."""
import concurrent.futures
import signal

from cluster import RUNNING, WAITING, check, run, wait_until

CALLS = ["mkdir", "pwrite64", "fsync", "rename", "fdatasync", "fallocate", "unlink"]


def died(node):
    return not node.is_alive()


def first_member(make, call, n):
    """Returns False when the kill did not come any more."""
    cluster = make(1)
    node = cluster.nodes[1]
    node.start().wait_started()
    wait_until("node 1 waits", 10, lambda: node.status()["state"] == WAITING)
    node.stop()  # the sweep begins at the start of a node with an empty directory
    node.start(strace=["-e", "trace=%s" % call,
                       "-e", "inject=%s:signal=KILL:when=%d" % (call, n)])
    members = cluster.members_text()
    wait_until("node 1 started or died", 10, lambda: node.started or died(node))
    node.send("init 7 %s %s" % (cluster.name, members))
    ended = wait_until("init is done or node 1 dead", 20,
                       lambda: died(node) or (node.status() or {}).get("message") == "" and
                       (node.status() or {}).get("revision") == 1)
    was_killed = died(node)
    assert ended
    code = node.wait() if was_killed else node.stop((0, -signal.SIGKILL))
    check(code in (0, -signal.SIGKILL), "node 1 ended with %s" % code)
    node.start().wait_started()
    wait_until("node 1 is there", 10, lambda: node.status()["state"] in (WAITING, RUNNING))
    event = node.request("init {} %s %s" % (cluster.name, members))
    check(event["outcome"] == "done", "init after a kill at %s %d: %r" % (call, n, event))
    cluster.fill(3)
    wait_until("revision 4", 10, lambda: node.status()["revision"] == 4)
    cluster.close()
    return was_killed


def joiner(make, call, n):
    cluster = make(2)
    one, two = cluster.nodes[1], cluster.nodes[2]
    one.start().wait_started()
    two.start().wait_started()
    two.stop()
    two.start(strace=["-e", "trace=%s" % call,
                      "-e", "inject=%s:signal=KILL:when=%d" % (call, n)])
    wait_until("node 2 started or died", 10, lambda: two.started or died(two))
    wait_until("node 1 waits", 10, lambda: one.status()["state"] == WAITING)
    one.send("init 7 %s %s" % (cluster.name, cluster.members_text()))
    wait_until("node 2 is a voter or dead", 30, lambda: died(two) or (one.status() or {}).get(
        "peers", {}).get("2", {}).get("role") == 1)
    was_killed = died(two)
    code = two.wait() if was_killed else two.stop((0, -signal.SIGKILL))
    check(code in (0, -signal.SIGKILL), "node 2 ended with %s" % code)
    two.start().wait_started()
    cluster.wait_voters([1, 2])
    wait_until("the cluster is made", 10, lambda: (one.status() or {}).get("message") == "")
    cluster.fill(3)
    cluster.settle()
    cluster.close()
    return was_killed


def sweep(make, what, story, call):
    """Returns how many calls there were to be killed at."""
    n = 1
    while story(make, call, n):
        n += 1
    return "%s: killed at each of %d calls of %s" % (what, n - 1, call), n - 1


def main(make, options):
    stories = [("first member", first_member), ("admitted member", joiner)]
    points = dict.fromkeys((what for what, _ in stories), 0)
    # A point is mostly waited for, and each has a cluster of its own.
    with concurrent.futures.ThreadPoolExecutor(options.at_once) as pool:
        sweeps = [(what, pool.submit(sweep, make, what, story, call))
                  for what, story in stories for call in CALLS]
        for what, one in sweeps:
            line, n = one.result()
            print(line, flush=True)
            points[what] += n
    for what, n in points.items():
        check(n >= 20, "%s: only %d points: the sweep missed the init" % (what, n))


if __name__ == "__main__":
    run(main, at_once=4)
