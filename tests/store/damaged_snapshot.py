#!/usr/bin/python3
"""A snapshot that was damaged on the disk: at the start the store says what cannot be read, tries again,
and leaves every byte in its directory as it found it (but the start counter); with the file mended it
goes on with all that it had, without a restart. raft itself skips a snapshot that is empty, as a crash
may leave one, or whose description is damaged: then the one before it and the log are used, and nothing
is lost. What the agent does meanwhile: store_cannot_start.py."""
import hashlib
import os

from cluster import FAILED, NEEDS_OPERATOR, RUNNING, check, run, wait_until

N_WRITES = 400


def flip(data):
    at = 20  # behind the format; the end may be padding
    return data[:at] + bytes([data[at] ^ 0x55]) + data[at + 1:]


DAMAGES = {"flipped": flip, "cut short": lambda data: data[:len(data) // 2]}


def snapshots(raft):
    """Their files, oldest first: snapshot-TERM-INDEX-TIME; the same with .meta describes it."""
    names = [name for name in os.listdir(raft) if name.startswith("snapshot-") and
             not name.endswith(".meta")]
    names.sort(key=lambda name: [int(part) for part in name.split("-")[1:]])
    return [os.path.join(raft, name) for name in names]


def content(folder):
    """What is in each file below it."""
    found = {}
    for path, _, names in os.walk(folder):
        for name in names:
            with open(os.path.join(path, name), "rb") as file:
                found[os.path.relpath(os.path.join(path, name), folder)] = \
                    hashlib.sha256(file.read()).hexdigest()
    return found


def read(path):
    with open(path, "rb") as file:
        return file.read()


def write(path, data):
    with open(path, "wb") as file:
        file.write(data)


def starts_without_store(node, what):
    node.start().wait_started()
    status = wait_until("%s: the store cannot start" % what, 20,
                        lambda: node.status() if node.status()["state"] in
                        (FAILED, NEEDS_OPERATOR) else None)
    print("%s: %s" % (what, status["message"]))
    check("snapshot" in status["message"], "%s: it does not say what is damaged: %s" %
          (what, status["message"]))
    check(node.request("append {} 1")["outcome"] != "done", "%s: a write was taken" % what)


def refuses(node, what):
    """Started with what is there now: it says so and changes nothing but its start counter."""
    before = content(node.dir)
    starts_without_store(node, what)
    node.stop()
    after = content(node.dir)
    changed = sorted(name for name in before.keys() | after.keys()
                     if before.get(name) != after.get(name) and os.path.basename(name) != "epoch")
    check(not changed, "%s: changed: %s" % (what, changed))


def has_all(node, revision):
    status = node.status()
    return status["state"] == RUNNING and status["revision"] >= revision


def main(make, _):
    # As in the product, more is kept behind a snapshot than lies between two, which may be more than the
    # threshold while one is written: else the log does not reach back to the one before the newest.
    cluster = make(1, options=["--threshold", "50", "--trailing", "200"])
    node = cluster.nodes[1]
    node.start().wait_started()
    cluster.init(at=1)
    cluster.fill(N_WRITES)
    wait_until("a snapshot is written", 20, lambda: node.status()["snapshots"] >= 1)
    revision = node.status()["revision"]
    node.stop()
    raft = os.path.join(node.dir, "store", "raft")
    check(len(snapshots(raft)) == 2, "not two snapshots: %s" % snapshots(raft))
    newest = snapshots(raft)[-1]
    whole = read(newest)
    for word, damage in DAMAGES.items():
        write(newest, damage(whole))
        refuses(node, "the newest %s" % word)
    starts_without_store(node, "the newest once more")
    write(newest, whole)
    wait_until("the store is taken back without a restart", 60, lambda: has_all(node, revision))
    node.stop()

    metas = [path + ".meta" for path in snapshots(raft)]
    descriptions = [read(path) for path in metas]
    for path, description in zip(metas, descriptions):
        write(path, flip(description))
    refuses(node, "both descriptions flipped")
    write(metas[0], descriptions[0])
    node.start().wait_started()
    wait_until("the one before the damaged description is used", 20,
               lambda: has_all(node, revision))
    node.stop()

    if os.path.exists(metas[1]):
        write(metas[1], descriptions[1])
    write(snapshots(raft)[-1], b"")
    node.start().wait_started()
    wait_until("the one before the empty one is used", 20, lambda: has_all(node, revision))
    cluster.fill(5)


if __name__ == "__main__":
    run(main)
