#!/usr/bin/python3
# twin: shim-no-overlap the more specific listener serves its address
"""Listeners that overlap, and what a data plane cannot open (case A24).

A listener on every address and one on a certain address of the same port were both taken by the
catalog, but the shim opened only the first, and neither `status` nor `listener list` said so. Now the
more specific one serves its address and the other the rest, in whatever order they come and go; and
an address that is taken is named by `status`, `listener list` and in the answer's JSON until it is free.
"""
import json
import os
import socket
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from cluster import Cluster, Flow, check, free_port, run, tcp_group, wait_until  # noqa: E402


def listener(name, address, port, group):
    return {"listener": {"name": name, "address": address, "port": port,
                         "protocol": "PROTOCOL_TCP", "group": group}}


def delete(cluster, name):
    cluster.agents[1].call("ConfigService/Apply", {
        "documents": [{"deletion": {"kind": "OBJECT_KIND_LISTENER", "name": name}}]})


def who(address, port):
    flow = Flow(address, port)
    flow.close()
    return flow.name


def serves(address, port, name, what):
    def right():
        return who(address, port) == name
    wait_until(what, 20, right)
    check(all(right() for _ in range(20)), "%s: then another answered" % what)


def listed(cluster, *more):
    agent = cluster.agents[1]
    done = subprocess.run([os.path.join(cluster.bin, "nodectl"), "--socket", agent.socket_path,
                           "listener", "list", *more], capture_output=True, text=True, timeout=30)
    check(done.returncode == 0, done.stderr)
    return done.stdout


def overlapping(cluster, one, other):
    agent, port = cluster.agents[1], free_port()
    serves_both = (
        (one, "narrow", "the more specific listener serves its address"),
        (other, "wide", "the one on every address serves the rest"))
    wide = listener("on-every", "0.0.0.0", port, "wide")
    narrow = listener("on-one", one, port, "narrow")
    for first, second, gone in ((wide, narrow, "on-one"), (narrow, wide, "on-every")):
        cluster.apply([first])
        serves(one, port, first["listener"]["group"], "the first listener is open")
        cluster.apply([second])
        for address, name, what in serves_both:
            serves(address, port, name, what)
        check(not agent.status().data_planes[0].failures, "a failure is named: %s" % agent.status())
        check(not [p for p in agent.status().problems if "listener" in p], "status has a problem")
        delete(cluster, gone)
        serves(one, port, "wide" if gone == "on-one" else "narrow", "%s is gone" % gone)
        delete(cluster, first["listener"]["name"])
        print("%s, then the other: the more specific one wins" % first["listener"]["name"])


def taken(cluster, one):
    agent = cluster.agents[1]
    with socket.socket() as squatter:
        squatter.bind((one, 0))
        squatter.listen()
        port = squatter.getsockname()[1]
        cluster.apply([listener("taken", one, port, "wide")])
        problem = wait_until("status names the listener", 20, lambda: [
            p for p in agent.status().problems if "listener" in p])[0]
        check(problem == 'data plane jury-shim cannot open listener "taken": Address already in use',
              problem)
        line = next(line for line in listed(cluster).splitlines() if line.startswith("taken"))
        check("not open in data plane jury-shim: Address already in use" in line, line)
        wanted = json.loads(listed(cluster, "-o", "json"))["listeners"]
        check(any(entry.get("problems") for entry in wanted if
                  entry["listener"]["name"] == "taken"), "not in the JSON: %s" % wanted)
        print("taken: %s" % line)
    serves(one, port, "wide", "the listener is open when the port is free")
    wait_until("the problem is gone", 20, lambda: not [
        p for p in agent.status().problems if "listener" in p])
    check("not open" not in listed(cluster), "listed as not open: %s" % listed(cluster))


def main(options):
    with Cluster(options, n_nodes=1) as cluster:
        wide, narrow = cluster.backend("wide"), cluster.backend("narrow")
        cluster.make(vote_interval="0.2s")
        cluster.apply([tcp_group("wide", [wide]), tcp_group("narrow", [narrow])])
        cluster.wait_verdicts("wide", {wide: "healthy"})
        cluster.wait_verdicts("narrow", {narrow: "healthy"})
        cluster.shim(1).start()
        wait_until("the shim is seen", 20, lambda: cluster.agents[1].status().data_planes)
        one, other = cluster.net + ".200", cluster.net + ".201"
        overlapping(cluster, one, other)
        taken(cluster, one)


if __name__ == "__main__":
    run(main)
