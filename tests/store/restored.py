#!/usr/bin/python3
# twin: restored-unseen node 3 knows that its directory is an older copy
"""A data directory that was restored from an older copy. Its node ran with an epoch that the others had
heard before: they dropped all its messages as old and nobody said why, until enough restarts had
brought the epoch above theirs; from then on it voted with a log that had forgotten votes.

Now the others say it, the node closes Raft for good, over restarts, and goes on above the epoch that
was heard, for the votes on health; also when only the term or the end of the log gives it away. A
node whose epoch file was damaged is none of that: it skips the epochs that may be lost."""
import os
import shutil

from cluster import NEEDS_OPERATOR, PEER_OK, PEER_RESTORED, RUNNING, check, each_by_itself, run, wait_until


def says(node, *words):
    status = node.status()
    return status is not None and all(word in status["message"] for word in words) and status


def copy(node, name):
    path = os.path.join(node.cluster.dir, name)
    shutil.copytree(os.path.join(node.dir, "store"), path)
    return path


def restore(node, path):
    shutil.rmtree(os.path.join(node.dir, "store"))
    shutil.copytree(path, os.path.join(node.dir, "store"))


def follower(cluster):
    leader = cluster.leader()
    return next(n for n in cluster.nodes.values() if n is not leader), leader


def refused_for_good(cluster, node, why):
    """It knows, the others know, and no number of restarts brings it back."""
    status = wait_until("node %d knows that its directory is an older copy" % node.id, 20,
                        lambda: says(node, "restored from an older copy", why, "new id"))
    check(status["state"] == NEEDS_OPERATOR and status["leader"] == 0, "it goes on: %r" % status)
    for other in cluster.nodes.values():
        if other is not node:
            wait_until("node %d sees it" % other.id, 10,
                       lambda: other.status()["peers"][str(node.id)]["state"] == PEER_RESTORED)
    print("node %d: %s" % (node.id, status["message"]))
    epoch = status["epoch"]
    for _ in range(4):
        node.kill()
        node.start().wait_started()
        status = wait_until("it still says so", 10, lambda: says(node, "older copy", why))
        check(status["state"] == NEEDS_OPERATOR and status["raft"] == 0 and status["epoch"] > epoch,
              "after a restart: %r" % status)
        epoch = status["epoch"]
    cluster.fill(20)
    return epoch


def old_epoch(make):
    cluster = make().up()
    cluster.fill(20)
    three = cluster.nodes[3]
    three.stop()
    path = copy(three, "copy")
    for _ in range(4):
        three.start().wait_started()
        cluster.settle()
        three.stop()
    cluster.fill(20)
    seen = max(n.status()["old_epochs"] for n in cluster.nodes.values() if n is not three)
    check(seen == 0, "ordinary restarts were taken for old epochs")
    restore(three, path)
    three.start().wait_started()
    epoch = refused_for_good(cluster, three, "has heard epoch 5 of it")
    check(epoch >= 10, "the epoch did not go on above those that were heard: %d" % epoch)
    log = "".join(open(n.log).read() for n in cluster.nodes.values() if n is not three)
    check("node 3 runs with epoch 2, but epoch 5 was heard from it" in log and
          "restored from an older copy" in log, "the others do not say why")
    three.stop()
    event = cluster.leader().request("del {} 3")
    check(event["outcome"] == "done", "node 3 was not removed: %r" % event)
    four = cluster.add(4).start().wait_started()
    event = cluster.leader().request("put {} 4 1 %d" % four.port)
    check(event["outcome"] == "done", "node 4 was not put: %r" % event)
    cluster.settle(ids=[1, 2, 4])
    print("removed and replaced by node 4")


def old_log(make):
    """Copied and put back between two starts: the epoch says nothing, the log does."""
    cluster = make().up()
    cluster.fill(20)
    node, _ = follower(cluster)
    node.stop()
    path = copy(node, "copy")
    node.start().wait_started()
    cluster.fill(50)
    cluster.settle()
    node.kill()
    epoch_file = os.path.join(node.dir, "store", "epoch")
    shutil.copy(epoch_file, os.path.join(path, "epoch"))
    restore(node, path)
    # Nobody sends it what it lost before it has been asked how far its log goes.
    node.start().wait_started()
    refused_for_good(cluster, node, "acknowledged entry")


def damaged_slot(make):
    cluster = make().up()
    cluster.fill(5)
    node, leader = follower(cluster)
    for _ in range(2):
        node.stop()
        node.start().wait_started()
    cluster.settle()
    used = node.status()["epoch"]
    node.kill()
    with open(os.path.join(node.dir, "store", "epoch"), "r+b") as file:
        file.seek(used % 2 * 512 + 8)
        file.write(b"\xff")
    node.start().wait_started()
    status = wait_until("node %d runs" % node.id, 20,
                        lambda: node.status()["state"] == RUNNING and node.status())
    check(status["epoch"] > used, "epoch %d was used again: %d" % (used, status["epoch"]))
    check("epoch_file_damaged" in open(node.log).read(), "the damage is not in the log")
    cluster.fill(5)
    cluster.settle()
    check(leader.status()["peers"][str(node.id)]["state"] == PEER_OK, "its peer does not take it")
    print("damaged slot of epoch %d: goes on with %d" % (used, status["epoch"]))


def main(make, _):
    each_by_itself(make, (old_epoch, old_log, damaged_slot))


if __name__ == "__main__":
    run(main)
