#!/usr/bin/python3
# twin: trust-text-id a message with another id in its text was taken
# twin: readmit-wiped node 3 knows that it was wiped
# twin: damage-is-empty damage is called an empty directory
"""Who is refused, and with which words: a wiped node under its old id, a directory of another cluster,
of another key, in memory, in use, damaged; and messages whose text names another node than their key."""
import os
import shutil
import subprocess

from cluster import (NEEDS_OPERATOR, PEER_WIPED, binary, check, each_by_itself, run,
                     wait_until)


def says(node, *words):
    status = node.status()
    return status is not None and all(word in status["message"] for word in words) and status


def wiped(make):
    cluster = make().up()
    cluster.fill(20)
    three = cluster.nodes[3]
    old = three.status()["incarnation"]
    three.kill()
    shutil.rmtree(os.path.join(three.dir, "store"))
    three.start().wait_started()
    status = wait_until("node 3 knows that it was wiped", 20,
                        lambda: says(three, "refused", "remove node 3", "new id"))
    check(status["state"] == NEEDS_OPERATOR and status["epoch"] == 0, "wiped node: %r" % status)
    one = cluster.leader()
    wait_until("the others see it", 10, lambda: one.status()["peers"]["3"]["state"] == PEER_WIPED)
    event = three.request("init {} %s %s" % (cluster.name, cluster.members_text()))
    check(event["outcome"] in ("not_ready", "refused"), "a wiped node made a cluster: %r" % event)
    cluster.fill(20)
    print("wiped: %s" % status["message"])

    # A directory made for the same id by hand has another incarnation and is refused as well.
    check(three.status()["state"] == NEEDS_OPERATOR, "node 3 changed its mind")
    event = one.request("del {} 3")
    check(event["outcome"] == "done", "node 3 was not removed: %r" % event)
    four = cluster.add(4).start().wait_started()
    event = cluster.leader().request("put {} 4 1 %d" % four.port)
    check(event["outcome"] == "done", "node 4 was not put: %r" % event)
    cluster.wait_voters([1, 2, 4])
    cluster.settle(ids=[1, 2, 4])
    check(four.status()["incarnation"] != old, "an incarnation was used twice")
    print("removed and replaced by node 4, which holds everything")


def damage_was_called_empty(make):
    """Peers that know node 3 told it "your directory is empty: join under a new id", when one file of
    it was damaged that can be restored."""
    cluster = make().up()
    cluster.fill(20)
    three = cluster.nodes[3]
    incarnation = three.status()["incarnation"]
    for name in ("identity", "complete"):
        three.stop()
        path = os.path.join(three.dir, "store", name)
        with open(path, "rb") as file:
            good = file.read()
        os.unlink(path)
        if name == "identity":
            with open(path, "wb") as file:
                file.write(bytes(range(1, 200)))
        three.start().wait_started()
        status = three.status()
        n_until = status["received"] + 12  # hellos: each is a chance to be told the wrong thing

        def has_heard():
            nonlocal status
            status = three.status() or status
            check("is empty" not in status["message"],
                  "damage is called an empty directory: %r" % status)
            return status["received"] >= n_until
        wait_until("node 3 hears the others, its %s being damaged" % name, 30, has_heard)
        check(status["state"] == NEEDS_OPERATOR and path in status["message"] and
              "restore this file" in status["message"], "damaged %s: %r" % (name, status))
        print("damaged %s: %s" % (name, status["message"]))
        with open(path, "wb") as file:
            file.write(good)
        wait_until("node 3 is back without a restart", 90,
                   lambda: (three.status() or {}).get("incarnation") == incarnation and
                   three.status()["leader"] != 0)


def other_cluster(make):
    cluster = make().up()
    stranger = make()
    stranger.name = "other"
    stranger.start_all()
    stranger.init()
    stranger.wait_voters(stranger.nodes)
    # Node 3 of the other cluster in place of node 3 of this one, under the same key.
    three = cluster.nodes[3]
    three.stop()
    for node in stranger.nodes.values():
        node.stop()
    shutil.rmtree(os.path.join(three.dir, "store"))
    shutil.copytree(os.path.join(stranger.nodes[3].dir, "store"), os.path.join(three.dir, "store"))
    three.start().wait_started()
    cluster.fill(20)
    status = wait_until("node 3 says why it is alone", 10,
                        lambda: says(three, "belongs to cluster", "data directory"))
    print("other cluster: %s" % status["message"])
    check(three.status()["leader"] == 0, "a node of another cluster follows a leader here")
    wait_until("what comes from another cluster is counted", 10,
               lambda: three.status()["dropped_cluster"] > 0)
    print("other cluster: %d messages dropped" % three.status()["dropped_cluster"])


def start_alone(node_id, path, *options):
    process = subprocess.Popen([binary(), "--id", str(node_id), "--dir", path] + list(options),
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                               text=True)
    process.stdin.write("status\n")
    process.stdin.flush()
    return process


def sentence(make, what, words, node_id, path, *options):
    import json
    process = start_alone(node_id, path, *options)
    try:
        message = ""

        def found():
            nonlocal message
            process.stdin.write("status\n")
            process.stdin.flush()
            event = json.loads(process.stdout.readline())
            message = event.get("message", "")
            return event["ev"] == "status" and all(word in message for word in words)
        wait_until("%s is refused with %s" % (what, words), 10, found)
        print("%s: %s" % (what, message))
    finally:
        process.kill()
        process.wait()


def bad_directories(make):
    cluster = make(1)
    node = cluster.nodes[1].start().wait_started()
    cluster.init()
    cluster.fill(5)
    sentence(make, "in use", ["another agent is using it"], 1, node.dir)
    node.stop()
    sentence(make, "other node", ["belongs to node 1", "configured as node 2"], 2, node.dir)
    identity = os.path.join(node.dir, "store", "identity")
    good = open(identity).read()
    open(identity, "w").write(good.replace("node 1", "node 2"))
    sentence(make, "damaged identity", ["damaged"], 1, node.dir)
    open(identity, "w").write(good.replace("jury-identity 1", "jury-identity 9"))
    sentence(make, "other version", ["version 9 is not understood"], 1, node.dir)
    open(identity, "w").write(good)
    os.unlink(os.path.join(node.dir, "store", "complete"))
    sentence(make, "marker gone", ["complete is missing", "new node id"], 1, node.dir)
    open(os.path.join(node.dir, "store", "complete"), "w").close()
    raft = os.path.join(node.dir, "store", "raft")
    closed = sorted(f for f in os.listdir(raft) if f.startswith("0") and f != "0000000000000001-0000000000000001")
    with open(os.path.join(raft, closed[-1]), "r+b") as file:
        file.seek(60)
        byte = file.read(1)
        file.seek(60)
        file.write(bytes([byte[0] ^ 1]))
    sentence(make, "damaged log", ["cannot be read"], 1, node.dir)
    memory = os.path.join(cluster.dir, "memory")
    os.mkdir(memory)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", memory], check=True)
    try:
        sentence(make, "in memory", ["tmpfs", "forget its votes"], 1, memory)
    finally:
        subprocess.run(["umount", memory], check=True)


def false_name(make):
    """A process with node 3's key that writes node 2 into its messages."""
    cluster = make().up()
    three = cluster.nodes[3]
    three.stop()
    liar = os.path.join(os.path.dirname(binary()), "store_liar")
    one = cluster.nodes[1]
    before = one.status()
    subprocess.run([liar, "3", "2", str(one.port), cluster.name], check=True, timeout=20)
    wait_until("node 1 has read it", 10,
               lambda: one.status()["dropped_identity"] + one.status()["dropped_malformed"] +
               one.status()["dropped_incarnation"] > before["dropped_identity"])
    after = one.status()
    check(after["dropped_identity"] > before["dropped_identity"] and
          after["dropped_incarnation"] == before["dropped_incarnation"],
          "a message with another id in its text was taken")
    print("false name: dropped and counted")
    three.start().wait_started()
    cluster.settle()


def main(make, _):
    each_by_itself(make, (wiped, damage_was_called_empty, other_cluster, bad_directories, false_name))


if __name__ == "__main__":
    run(main)
