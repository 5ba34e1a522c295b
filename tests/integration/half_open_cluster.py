#!/usr/bin/python3
"""A group of profile clb by its defaults, half-open, in a cluster of real agents, one of which has no
CAP_NET_RAW: the others judge and see a backend die, that one says why it cannot vote and makes no
other probe in the place of this one. S42; spec.md 4. Needs root.
"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from cluster import Cluster, check, run, tcp_group, wait_until  # noqa: E402
from ctl import ask, here  # noqa: E402

WITHOUT = 3  # the node that has not the rights
NO_RIGHTS = ["setpriv", "--bounding-set=-net_raw", "--inh-caps=-net_raw"]


def half_open_group(name, backends):
    """All of the check's kind is the profile's; times that suit tests, and one vote is enough."""
    group = tcp_group(name, backends)
    group["group"]["profile"] = "PROFILE_CLB"
    del group["group"]["verdict"]
    return group


def probed(agent, key):
    return agent.counters().get(key, 0)


def describe(cluster, agent):
    answer = ask(cluster, ["node", "describe"] + here(agent))
    check(answer.status == 0, "node describe: %s" % answer)
    return " ".join(answer.out.split())


def test(options):
    with Cluster(options) as cluster:
        cluster.agents[WITHOUT].prefix = NO_RIGHTS
        cluster.make()
        b1, b2 = cluster.backend("b1"), cluster.backend("b2")
        cluster.apply([half_open_group("web", [b1, b2])])
        cluster.wait_verdicts("web", {b1: "healthy", b2: "healthy"}, seconds=60)
        b1.stop()
        cluster.wait_verdicts("web", {b1: "unhealthy", b2: "healthy"}, seconds=60)
        print("by the votes of two nodes, all three see that one backend died")

        for node, agent in cluster.agents.items():
            counts = {name: probed(agent, name) for name in
                      ("probes_by_packet", "probes_by_connect", "probe_results{ok}",
                       "probe_results{local_no_permission}", "probes_lost")}
            text = describe(cluster, agent)
            print("node %d: %s" % (node, counts))
            check(counts["probes_by_connect"] == 0, "node %d made full probes instead" % node)
            check(counts["probes_lost"] == 0, "node %d lost probes" % node)
            if node == WITHOUT:
                check(counts["probes_by_packet"] == 0 and counts["probe_results{ok}"] == 0 and
                      counts["probe_results{local_no_permission}"] > 0, "node %d probed" % node)
                check("half-open probes are inconclusive here: the agent lacks CAP_NET_RAW and no RST "
                      "follows the timeout of a full handshake" in text,
                      "node describe does not say why: %s" % text)
            else:
                check(counts["probe_results{ok}"] > 0, "node %d has no pass" % node)
                check("engine connect, packet (tcp-full, tcp-half-open, http," in text and
                      "inconclusive here" not in text, "node describe: %s" % text)
                check("half-open probes are sent by the" in text, "node describe: %s" % text)
        check(b2.n_requests == 0, "the application saw a probe")

        b1.start()
        cluster.wait_verdicts("web", {b1: "healthy"}, seconds=60)
        wait_until("the reason is in why", 20, lambda: "LOCAL_NO_PERMISSION" in ask(
            cluster, ["why", "web/" + b1.at] + here(cluster.agents[WITHOUT])).out)
        print("and that it is back; `why` says what the third one lacks")


run(test)
