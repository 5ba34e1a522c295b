#!/usr/bin/python3
# twin: rn4 writes after space came back
"""RN4 and a full disk: a node is started while its disk has no room for a segment. It must neither
die nor refuse for ever: when space is back, writes go on without a restart. Also: a disk that fills
up under a running node refuses writes by name, and a restart in between needs no help."""
import os
import subprocess
import time

from cluster import RUNNING, check, run, wait_until

SEGMENT = 8 << 20


class Disk:
    """A small file system of its own for the one node."""

    def __init__(self, path, megabytes):
        self.path = path
        self.balloon = os.path.join(path, "balloon")
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=%dm" % megabytes, "none", path], check=True)

    def fill(self, leave_bytes):
        stat = os.statvfs(self.path)
        with open(self.balloon, "wb") as file:
            os.posix_fallocate(file.fileno(), 0, stat.f_bavail * stat.f_frsize - leave_bytes)

    def free(self):
        os.unlink(self.balloon)

    def umount(self):
        subprocess.run(["umount", "-l", self.path], check=True)


def writes_again(node):
    event = node.request("append {} 1", 5)
    return event is not None and event["outcome"] == "done"


def story(cluster, node, disk):
    node.start().wait_started()
    cluster.init(at=1)
    cluster.fill(50)

    disk.fill(200 << 10)
    wait_until("the full disk is seen", 10, lambda: node.status()["full"] == 1)
    event = node.request("append {} 2")
    check(event["outcome"] == "full", "a write on a full disk: %r" % event)
    print("full: %s" % event["message"])
    disk.free()
    wait_until("writes after the balloon went", 10, lambda: writes_again(node))

    node.stop()
    disk.fill(200 << 10)
    node.start().wait_started()
    wait_until("the node runs on a full disk", 20, lambda: node.status()["state"] == RUNNING)
    check(node.status()["ready"] == 0, "a leader is ready without a segment to write to")
    disk.free()
    begin = time.monotonic()
    wait_until("writes after space came back", 10, lambda: writes_again(node))
    print("started on a full disk: writes %.1f s after space came back" % (time.monotonic() - begin))
    check(node.is_alive(), "the node ended")
    wait_until("no write is missing", 10, lambda: node.status()["revision"] >= 52)


def main(make, _):
    cluster = make(1, options=["--allow-tmpfs", "--free-min", str(SEGMENT), "--segment", str(SEGMENT)])
    node = cluster.nodes[1]
    disk = Disk(node.dir, 64)
    try:
        story(cluster, node, disk)
    finally:
        if node.process is not None:
            node.kill()
        disk.umount()


if __name__ == "__main__":
    run(main)
