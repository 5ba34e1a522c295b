#!/usr/bin/python3
# twin: rn5 did not stop
"""RN5: a write of log entries fails. Both ways: the submission is refused (raft_uv then never calls
back), and the write itself comes back with an error (raft_uv then retries through a wrong pointer).
The node must end with exit code 12 before that, and lose nothing. A slow disk is no failed one: writes
that take 3 s each end nothing."""
import subprocess

from cluster import check, run, wait_until


def fail_with(cluster, what, inject, seconds):
    node = cluster.nodes[1]
    node.stop()
    acked = []
    node.on_done = lambda _, event: acked.append(event) if event["outcome"] == "done" else None
    node.start(strace=["-e", "trace=io_submit,io_getevents", "-e", inject]).wait_started()
    wait_until("node 1 leads", 20, lambda: (node.status() or {"ready": 1})["ready"] == 1)
    for i in range(40):
        node.send("append %d %d" % (cluster.next_cookie(), 1000 + i))
    try:
        code = node.wait(seconds)
    except subprocess.TimeoutExpired:
        check(False, "%s: node 1 did not stop within %d s" % (what, seconds))
    check(code == 12, "%s: node 1 did not stop with 12 but with %d" % (what, code))
    node.on_done = None
    node.start().wait_started()
    wait_until("node 1 leads again", 20, lambda: node.status()["ready"] == 1)
    held = {int(r): int(i) for r, i, _ in node.dump()}
    for event in acked:
        check(1000 <= held.get(event["answer"], 0), "acknowledged revision %d is lost" % event["answer"])
    with open(node.log) as file:
        reason = [line for line in file if "store_fail_stop" in line][-1].strip()
    print("%s: exit code 12, %d acknowledged, none lost: %s" % (what, len(acked), reason.split("reason=")[1]))


def slow(cluster):
    node = cluster.nodes[1]
    node.stop()
    node.start(strace=["-e", "trace=io_submit,fsync,fdatasync",
                       "-e", "inject=io_submit,fsync,fdatasync:delay_enter=3000000:when=3+"])
    node.wait_started()
    done = []
    node.on_done = lambda _, event: done.append(event["outcome"])
    for i in range(3):
        wait_until("node 1 takes a write", 60, lambda: node.send("append %d 5" % cluster.next_cookie()))
    wait_until("the slow disk took what it was given", 100, lambda: done)
    check(node.is_alive(), "a slow disk ended the node")
    print("3 s for each write: still there, %s" % done)
    node.on_done = None
    node.kill()


def main(make, _):
    cluster = make(1)
    cluster.nodes[1].start().wait_started()
    cluster.init(at=1)
    cluster.fill(20)
    fail_with(cluster, "submission refused", "inject=io_submit:error=EIO:when=4+", 20)
    fail_with(cluster, "write failed", "inject=io_getevents:retval=0:when=4+", 20)
    slow(cluster)


if __name__ == "__main__":
    run(main)
