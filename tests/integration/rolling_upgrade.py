#!/usr/bin/python3
"""Nodes of two versions: one catalog, and nothing that the older one would drop.

Three agents of the older feature level make a cluster and are upgraded one after the other. Between,
every node has the same state hash after each write, and says which node is older; a field that the
older ones do not know is refused by each node, and nothing of that write is done. When the last one is
upgraded the cluster's level rises by itself, and the field is taken. A node that goes back to the older version afterwards
ends and says why; the others go on.
"""
# planted: the older version is the same program, told by JURY_PLANT=level-old to be one
# twin: level-old-drops FAILED: .*node 3 to refuse
# twin: level-unchecked FAILED: .*(a field of level 3 was taken|the refusal through node)
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import jury_client  # noqa: E402
from cluster import Cluster, check, run, tcp_group, wait_until  # noqa: E402

NAME = os.environ.pop("JURY_PLANT", "")
OLD = {"JURY_PLANT": NAME if NAME.startswith("level-old") else "level-old"}
NEW = {"JURY_PLANT": "" if NAME.startswith("level-old") else NAME}
BASE, NEWEST = 2, 3
OPERATOR = 11  # exit status: somebody has to do something


def older(agent):
    return [text for text in agent.status().problems if "feature level" in text]


def same_state(cluster, when):
    def is_same():
        states = {(status.revision, status.state_hash)
                  for status in (agent.status() for agent in cluster.agents.values())}
        return len(states) == 1
    wait_until("one state on all nodes %s" % when, 60, is_same)
    for agent in cluster.agents.values():
        check(agent.count(["must be replaced"]) == 0,
              "%s: %s calls for a node to be replaced" % (when, agent.name))


class Nobody:
    address, port = "127.0.0.9", 9


def write(cluster, through, name):
    return cluster.apply([tcp_group(name, [Nobody])], by=through).revision


def share(cluster, through):
    """A write of two groups, of which the second has a field of the newest level."""
    cluster.apply([tcp_group("early", [Nobody]), tcp_group("shared", [Nobody], probers=2)], by=through)


def check_refused(cluster, through):
    before = cluster.agents[through].status().revision
    try:
        share(cluster, through)
    except jury_client.CallError as error:
        check('server group "shared": spec.check.probers needs feature level 3 and' in str(error),
              "the refusal through node %d says: %s" % (through, error))
    else:
        check(False, "a field of level 3 was taken through node %d" % through)
    check(cluster.agents[through].status().revision == before, "a refused write made a revision")


def check_away(cluster):
    """Who is away keeps the level down. A node that had not heard it since its own start named nobody."""
    cluster.agents[3].stop()
    cluster.agents[1].stop()
    cluster.agents[1].start(env=NEW)
    wait_until("node 1 to name node 3 as the one it waits for", 60, lambda: any(
        text.startswith("node 3 has not been heard since node 1 started")
        for text in older(cluster.agents[1])))
    cluster.agents[3].start(env=OLD)
    cluster.wait_ready()
    wait_until("node 1 to hear node 3", 60, lambda: any(
        text.startswith("node 3 runs feature level 2") for text in older(cluster.agents[1])))


def main(options):
    with Cluster(options, 3) as cluster:
        for agent in cluster.agents.values():
            agent.start(env=OLD)
        for agent in cluster.agents.values():
            wait_until("%s answers" % agent.name, 20,
                       lambda agent=agent: agent.call("NodeService/GetVersion"))
        cluster.init()
        cluster.wait_ready()
        for agent in cluster.agents.values():
            check(agent.status().feature_level == BASE, "%s starts at the older level" % agent.name)
        write(cluster, 1, "before")
        same_state(cluster, "before the upgrade")
        for node_id in (1, 2, 3):
            agent = cluster.agents[node_id]
            agent.stop()
            agent.start(env=NEW)
            cluster.wait_ready()
            write(cluster, node_id, "web%d" % node_id)
            write(cluster, node_id % 3 + 1, "app%d" % node_id)
            same_state(cluster, "with node %d upgraded" % node_id)
            if node_id < 3:
                wait_until("node 1 to name node 3 as older", 60, lambda: any(
                    text.startswith("node 3 runs feature level 2") for text in older(cluster.agents[1])))
                wait_until("node 3 to name node 1 as newer", 60, lambda: any(
                    text.startswith("node 1 runs feature level 3") for text in older(cluster.agents[3])))
                check(cluster.agents[1].status().feature_level == BASE, "the level waits for node 3")
                for through in range(1, node_id + 1):
                    check_refused(cluster, through)
            if node_id == 2:
                check_away(cluster)
        for agent in cluster.agents.values():
            wait_until("level %d on %s" % (NEWEST, agent.name), 60,
                       lambda agent=agent: agent.status().feature_level == NEWEST)
            check(not older(agent), "%s names nobody any more" % agent.name)
        share(cluster, 2)
        same_state(cluster, "after the upgrade")

        back = cluster.agents[3]
        back.stop()
        back.start(env=OLD)
        wait_until("node 3 to refuse what it cannot read", 60, lambda: not back.is_running())
        check(back.wait(1) == OPERATOR, "node 3 ends with %s" % back.wait(1))
        check(back.count(["of version 1.3: this node reads up to 1.2, update it"]) > 0,
              "node 3 says why")
        newest = write(cluster, 1, "after")
        wait_until("nodes 1 and 2 to go on", 60, lambda: all(
            cluster.agents[node_id].status().revision == newest for node_id in (1, 2)))
        back.start(env=NEW)
        cluster.wait_ready()
        same_state(cluster, "with node 3 upgraded again")


if __name__ == "__main__":
    run(main)
