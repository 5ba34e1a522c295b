#!/usr/bin/python3
"""A client with a good key that holds all connections it can get keeps no member out.

Its connections are authenticated, so nothing ends them. A node that starts anew must still reach the
agent, for connections from the members' addresses have descriptors of their own. Needs root.
"""
# seconds: 30
# twin: accept-members-as-any not within 30 s: agent1 hears node 2 again
import os
import resource
import sys

import zmq

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from cluster import check, run, wait_until  # noqa: E402
from lan import Lan, LanCluster  # noqa: E402

FILES = 256
HOSTS = {"a": 1, "b": 2, "c": 3, "greedy": 20}
NODES = {1: "a", 2: "b", 3: "c"}


def turned_away(agent):
    return agent.counters().get("refused_no_descriptor", 0)


def test(options):
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096), hard))
    lan = Lan(HOSTS)
    with LanCluster(options, lan, NODES) as cluster:
        agent, other = cluster.agents[1], cluster.agents[2]
        agent.prefix = agent.prefix + ["prlimit", "--nofile=%d:%d" % (FILES, FILES)]
        cluster.make()
        wait_until("all votes fresh", 20, lambda: agent.status().n_fresh == 3)
        with lan.inside("greedy"):
            # The thread that connects is made here and stays on that host.
            context = zmq.Context()
            clients = [context.socket(zmq.DEALER) for _ in range(FILES)]
        for client in clients:
            client.linger = 0
            client.reconnect_ivl = 100
            client.curve_serverkey = agent.key.public_z85
            client.curve_publickey = cluster.admin.public_z85
            client.curve_secretkey = cluster.admin.secret_z85
            client.connect("tcp://%s:%d" % (agent.address, agent.mesh_port))
        wait_until("connections are turned away", 30, lambda: turned_away(agent) > 2 * FILES)
        check(agent.status().n_fresh == 3, "votes are missing")

        other.kill()
        wait_until("agent1 misses node 2", 30, lambda: agent.status().n_fresh == 2)
        before = turned_away(agent)
        wait_until("what node 2 left is taken", 30, lambda: turned_away(agent) > before + FILES)
        other.start()
        wait_until("agent1 hears node 2 again", 30, lambda: agent.status().n_fresh == 3)
        print("%d turned away, and node 2 is back" % turned_away(agent))
        context.destroy(linger=0)


run(test)
