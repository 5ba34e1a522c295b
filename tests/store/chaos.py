#!/usr/bin/python3
"""Kills, pauses and transfers in any order under load, with large snapshots every 300 entries: the
judgement is the kill loop's, and no node may end by itself."""
import random
import signal
import time

from cluster import check, run
from kill_loop import Writer, judge


def down(cluster, writer, nodes, pick):
    for node in nodes:
        node.kill()
        writer.lost(node)
    time.sleep(pick.uniform(0, 1.0))  # how long it stays down is part of the story
    for node in nodes:
        node.start().wait_started()


def act(cluster, writer, pick):
    what = pick.choice(["kill", "kill two", "pause", "transfer", "nothing"])
    node = cluster.nodes[pick.choice([1, 2, 3])]
    if what == "kill":
        down(cluster, writer, [node], pick)
    elif what == "kill two":
        down(cluster, writer, [node, cluster.nodes[node.id % 3 + 1]], pick)
    elif what == "pause":
        node.signal(signal.SIGSTOP)
        time.sleep(pick.uniform(0.1, 2.0))
        node.signal(signal.SIGCONT)
    elif what == "transfer":
        node.send("transfer %d 0" % cluster.next_cookie())
    time.sleep(pick.uniform(0, 0.5))
    return what


def main(make, options):
    print("seed %d" % options.seed)
    pick = random.Random(options.seed)
    cluster = make(calm=False, options=["--threshold", "300", "--trailing", "300",
                                        "--padding", "2000000"]).up()
    writer = Writer(cluster, 32)
    writer.thread.start()
    done = {}
    for _ in range(options.actions):
        what = act(cluster, writer, pick)
        done[what] = done.get(what, 0) + 1
        for node in cluster.nodes.values():
            check(node.is_alive(), "node %d ended by itself" % node.id)
    writer.stop()
    cluster.leader(40)
    cluster.settle(60)
    n_entries = judge(cluster, writer)
    statuses = [n.status() for n in cluster.nodes.values()]
    print("%s: %d acknowledged, 0 lost, %d revisions equal on all three" %
          (", ".join("%d x %s" % (n, what) for what, n in sorted(done.items())), len(writer.acked),
           n_entries))
    print(", ".join("%s %d" % (c, sum(s[c] for s in statuses)) for c in
                    ("held_snapshots", "cut_changes", "dropped_stale", "dropped_state", "snapshots",
                     "snapshot_repeats", "states_differ")))
    check(sum(s["states_differ"] for s in statuses) == 0, "two states at one revision")


if __name__ == "__main__":
    run(main, seed=1, actions=20)
