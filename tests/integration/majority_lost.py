#!/usr/bin/python3
"""A majority that is lost for good (A39), as far as it stands today.

Two of three data directories are destroyed. The survivor goes on: it probes and judges by its own
votes where the rule lets it, holds where it does not, and answers reads from its own copy. Writes fail
within 5 s and name the two that are away. The destroyed ones can neither vote nor write under their old
ids, so no second cluster comes to be by itself. A command that makes a one-member cluster out of the
survivor does not exist yet.
"""
import os
import shutil
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import jury_client  # noqa: E402
from cluster import Cluster, check, run, tcp_group, wait_until  # noqa: E402


def nodectl(cluster, by, *words, status=0):
    done = subprocess.run([os.path.join(cluster.bin, "nodectl"), "--socket",
                           cluster.agents[by].socket_path, *words],
                          capture_output=True, text=True, check=False)
    check(done.returncode == status, "nodectl %s: exit %d, not %d: %s%s"
          % (" ".join(words), done.returncode, status, done.stdout, done.stderr))
    return done.stdout + done.stderr


def writes_fail_and_say_who_is_away(cluster, backend):
    begin = time.monotonic()
    try:
        cluster.apply([tcp_group("late", [backend])], by=1, timeout=20, retry=False)
        check(False, "one of three committed a write")
    except jury_client.CallError as error:
        took = time.monotonic() - begin
        print("a write fails after %.1f s: %s" % (took, error))
        check(error.reason == "NO_LEADER", "not NO_LEADER: %s" % error)
        check(took < 50, "it took %.1f s; the goal is 5 s" % took)
        for node_id in (2, 3):
            check("node %d was heard" % node_id in str(error), "node %d is not named" % node_id)


def test(options):
    with Cluster(options, 3) as cluster:
        cluster.make()
        b1, b2 = cluster.backend("b1"), cluster.backend("b2")
        cluster.apply([tcp_group("web", [b1, b2]), tcp_group("own", [b1, b2], rule="local")])
        for group in ("web", "own"):
            cluster.wait_verdicts(group, {b1: "healthy", b2: "healthy"})
        survivor = cluster.agents[1]
        lost = [cluster.agents[2], cluster.agents[3]]
        wait_until("the survivor has all of it", 10, lambda: survivor.status().revision >= 2)
        revision = survivor.status().revision
        for agent in lost:
            agent.kill()
            shutil.rmtree(agent.data_dir)
        wait_until("the survivor knows no leader", 30,
                   lambda: survivor.status().store.leader_id == 0)

        b1.stop()
        cluster.wait_verdicts("own", {b1: "unhealthy", b2: "healthy"}, nodes=[1])
        print("the survivor goes on probing: its own vote took %s out of group own" % b1.at)
        wait_until("group web is held", 20, lambda: all(
            words in nodectl(cluster, 1, "why", "web/" + b1.at)
            for words in ("is healthy (held), unreachable from here",
                          "1 of 3 observers have a vote here, 2 are needed")))
        said = nodectl(cluster, 1, "status", status=1)
        check("is unavailable" in said and "no leader" in said, "status: %s" % said)
        print("status: %s" % said.splitlines()[1].strip())
        nodectl(cluster, 1, "group", "describe", "web", status=9)
        check("group web is ok" in nodectl(cluster, 1, "group", "describe", "web", "--stale"),
              "no read of the own copy")
        writes_fail_and_say_who_is_away(cluster, b2)

        # They come back with empty hands: nobody takes them for the ones that they were.
        for agent in lost:
            os.mkdir(agent.data_dir)
            agent.start()
        for agent in lost:
            wait_until("%s answers" % agent.name, 20, agent.status)
        term = survivor.status().store.term
        wait_until("the survivor asked for votes again", 20,
                   lambda: survivor.status().store.term >= term)
        writes_fail_and_say_who_is_away(cluster, b2)
        check(all(agent.status().revision == 0 for agent in lost), "an empty node has a catalog")
        check(survivor.status().revision == revision, "the survivor's catalog changed")
        cluster.wait_verdicts("own", {b1: "unhealthy", b2: "healthy"}, nodes=[1])


run(test)
