#!/usr/bin/python3
# twin: rn1 node 3 died of SIGSEGV
"""RN1: an InstallSnapshot that comes while a node writes its own snapshot. Node 3's snapshots are
slow (linkat, which only they use, is delayed); it is stopped in the middle of one while the others
go on beyond what they keep of the log, so the leader has to send it a snapshot."""
import signal

from cluster import check, run, wait_until

SLOW = ["--seccomp-bpf", "-e", "trace=linkat", "-e", "inject=linkat:delay_enter=2000000"]


def main(make, _):
    cluster = make(options=["--threshold", "64", "--trailing", "64"])
    three = cluster.nodes[3]
    cluster.nodes[1].start().wait_started()
    cluster.nodes[2].start().wait_started()
    three.start(strace=SLOW).wait_started()
    cluster.init(at=1)
    cluster.wait_voters(cluster.nodes)
    leader = cluster.leader()
    check(leader.id != 3, "the slow node leads")

    def caught_up():
        if not three.is_alive():
            code = three.wait()
            check(code != -signal.SIGSEGV, "node 3 died of SIGSEGV")
            check(False, "node 3 ended with code %d" % code)
        status = three.status()
        return status is not None and status["revision"] == leader.status()["revision"] and status

    for _ in range(5):  # on a machine under load it may be stopped before or after its snapshot
        cluster.fill(100)  # node 3 begins a snapshot
        three.signal(signal.SIGSTOP)
        cluster.fill(400)
        three.signal(signal.SIGCONT)
        status = wait_until("node 3 catches up", 30, caught_up)
        if status["held_snapshots"] > 0:
            break
    check(status["held_snapshots"] > 0, "no snapshot had to be held back: the schedule missed RN1")
    cluster.fill(20)
    cluster.settle()
    print("held back %d times, then installed; hashes equal" % status["held_snapshots"])


if __name__ == "__main__":
    run(main)
