#!/usr/bin/python3
# twin: ready-without-data-plane ready says 0 of a node whose shim was killed
"""Whoever keeps an address on a node by `nodectl ready` loses it there when the shim is killed.

An agent alone is ready and says that no data plane has attached; with a shim it is ready; after
kill -9 of the shim it is not, in the words of `status`, which names a command to run next; with the
shim started again it is ready, and with the file of one that is not to come back removed as well.
"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from cluster import Cluster, check, run, wait_until  # noqa: E402
from ctl import ask, expect, here  # noqa: E402

SENTENCE = "data plane jury-shim is absent, its last heartbeat was "


def check_of(answer):
    rows = [c for c in answer.json["checks"] if c["name"] == "data_plane"]
    check(len(rows) == 1, "no check of the data plane: %s" % answer)
    return rows[0]


def plane_states(agent):
    return [p.is_alive for p in agent.status().data_planes]


def test(options):
    with Cluster(options, n_nodes=1) as cluster:
        cluster.make(vote_interval="0.2s")
        agent = cluster.agents[1]

        alone, alone_json = expect(cluster, 0, ["ready"] + here(agent))
        check("no data plane has attached" in alone.out, "not said: %s" % alone)
        check(check_of(alone_json)["isOk"], "an agent alone is not ready: %s" % alone_json)

        shim = cluster.shim(1).start()
        wait_until("the shim is seen", 20, lambda: plane_states(agent) == [True])
        both, _ = expect(cluster, 0, ["ready"] + here(agent))
        check("no data plane" not in both.out, "the shim is not seen: %s" % both)

        shim.kill()
        wait_until("the shim is missed", 20, lambda: plane_states(agent) == [False])
        dead = ask(cluster, ["ready"] + here(agent))
        check(dead.status == 1, "ready says %d of a node whose shim was killed: %s" % (dead.status, dead))
        check(dead.out.startswith("not ready: " + SENTENCE), "not in these words: %s" % dead)
        finding = [f for f in ask(cluster, ["status", "-o", "json"] + here(agent)).json["findings"]
                   if f["sentence"].startswith(SENTENCE)]
        check(len(finding) == 1 and finding[0]["next"] == "nodectl ready", "findings: %s" % finding)
        print("killed: %s" % dead.out.splitlines()[0])

        shim.start()
        wait_until("the shim is seen again", 20, lambda: plane_states(agent) == [True])
        expect(cluster, 0, ["ready"] + here(agent))

        shim.stop()
        wait_until("it is missed after an orderly end, too", 20, lambda: plane_states(agent) == [False])
        expect(cluster, 1, ["ready"] + here(agent))
        os.unlink(os.path.join(agent.status_dir, "jury-shim.status"))
        wait_until("its file is missed by nobody", 20, lambda: plane_states(agent) == [])
        expect(cluster, 0, ["ready"] + here(agent))


run(test)
