#!/usr/bin/python3
"""N20 with three real agents, real TCP and HTTP servers: several checks of a backend.

Each backend has a port that is checked by tcp, a page on another port that is checked by http, and a
database on a third one, which is a dependency. Under `pass: all` one dead page takes its backend out on
every node, within the window that `group describe` prints; under `at-least 1` it comes back though the
page is dead, and goes when the port is dead, too. Both databases dead degrade both backends and take
none out. `why` names the check, of other nodes' votes too, and `probe --check` makes one by hand.
"""
# seconds: 40
# twin: dependency-ejects takes nothing out
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from cluster import Backend, Cluster, check, free_port, run, wait_until  # noqa: E402
from ctl import ask, here  # noqa: E402

T = I = 0.5
V = 0.5
WINDOW = 2 * T + I + 2 * V + 0.1  # of each check, and of the composition
ADDRESSES = ["127.0.0.1", "127.0.0.2"]
GROUP = """
apiVersion: jury/v1
kind: Group
metadata: {name: web}
spec:
  profile: nlb
  rule: majority
  checks:
  - {name: port, type: tcp, timeout: 0.5s, interval: 0.5s}
  - {name: page, type: http, port: %(page)d, timeout: 0.5s, interval: 0.5s, http: {path: /health}}
  - {name: db, class: dependency, type: tcp, port: %(db)d, timeout: 0.5s, interval: 0.5s}
  pass: %(pass)s
  backends:
  - at: 127.0.0.1:%(port)d
  - at: 127.0.0.2:%(port)d
"""


def common_port():
    """One that is free on both addresses."""
    while True:
        port = free_port(ADDRESSES[0])
        try:
            Backend("x", ADDRESSES[1], port).start().stop()
            return port
        except OSError:
            continue


def told(cluster, words, agent=None, text=None):
    agent = agent or next(iter(cluster.agents.values()))
    answer = ask(cluster, words + here(agent), text=text)
    check(answer.status == 0, "exit 0 was expected of %s" % answer)
    return answer.out


def apply(cluster, ports, passes):
    return told(cluster, ["apply", "-f", "-"], text=GROUP % dict(ports, **{"pass": passes}))


def says(cluster, agent, backend, check_name, opinion):
    """What the node itself thinks of one check."""
    lines = told(cluster, ["why", "web/" + backend.at], agent).splitlines()
    return any(line.split()[:1] == [check_name] and line.split()[4] == opinion for line in lines)


def is_degraded(cluster, agent, backend):
    why = told(cluster, ["why", "web/" + backend.at], agent).split("\n", 1)[0]
    return "(degraded)" in why


def detected(cluster, backend, state, since, what):
    cluster.wait_verdicts("web", {backend: state})
    took = time.monotonic() - since
    print("%s: %s on all nodes after %.2f s, the window is %.2f s" % (what, state, took, WINDOW + T + I))
    check(took < 10 * (WINDOW + T + I), "%s took %.1f s" % (what, took))


def test_pass(cluster, servers, ports):
    """One dead port ejects under all, not under at-least 1."""
    one, two = servers["port"]
    since = time.monotonic()
    servers["page"][0].stop()
    detected(cluster, one, "unhealthy", since, "all, the page is dead")
    cluster.wait_verdicts("web", {two: "healthy"})
    wait_until("each node's vote names the check", 30,
               lambda: sum(" counts " in line and "CONNECT_FAILED by page" in line
                           for line in told(cluster, ["why", "web/" + one.at]).splitlines()) == 3)
    why = told(cluster, ["why", "web/" + one.at])
    check("decided by   the failing votes of nodes 1, 2 and 3: CONNECT_FAILED by page" in why, why)
    listed = told(cluster, ["backend", "list", "web", "--state", "unhealthy"]).splitlines()
    check(len(listed) == 2 and "CONNECT_FAILED by page" in listed[1] and " of page" in listed[1], listed)
    check("page   local" in why and "port   local" in why and "db     dependency" in why,
          "why shows each check:\n" + why)
    events = told(cluster, ["events", "--type", "verdict", "--limit", "1"])
    check("CONNECT_FAILED by check page" in events, events)

    apply(cluster, ports, "at-least 1")
    cluster.wait_verdicts("web", {one: "healthy", two: "healthy"})
    check("fail" in told(cluster, ["why", "web/" + one.at]), "its page is known to be dead")
    since = time.monotonic()
    one.stop()
    detected(cluster, one, "unhealthy", since, "at-least 1, the port is dead, too")
    one.start()
    cluster.wait_verdicts("web", {one: "healthy"})
    servers["page"][0].start()
    for agent in cluster.agents.values():
        wait_until("%s finds the page well" % agent.name, 30,
                   lambda agent=agent: says(cluster, agent, one, "page", "pass"))
    apply(cluster, ports, "all")
    cluster.wait_verdicts("web", {one: "healthy", two: "healthy"})


def test_dependency(cluster, servers):
    """All databases dead: degraded everywhere, and nothing leaves."""
    backends = servers["port"]
    before = told(cluster, ["events", "--type", "verdict"]).count("is unhealthy")
    for database in servers["db"]:
        database.stop()
    for agent in cluster.agents.values():
        for backend in backends:
            wait_until("%s says that %s is degraded" % (agent.name, backend.at), 30,
                       lambda a=agent, b=backend: is_degraded(cluster, a, b))
            verdict = agent.verdicts("web")[backend.at]
            check(verdict == "healthy", "a dependency takes nothing out, %s is %s" % (backend.at, verdict))
    describe = told(cluster, ["group", "describe", "web"])
    check(describe.startswith("group web is ok: 2 of 2 backends in use are healthy; 2 degraded by a "
                              "dependency"), describe)
    after = told(cluster, ["events", "--type", "verdict"]).count("is unhealthy")
    check(after == before, "a dependency takes nothing out, but there are %d more events" % (after - before))
    check(told(cluster, ["events", "--type", "degraded"]).count("dependency db of web") == 2, "two events")
    for database in servers["db"]:
        database.start()
    for agent in cluster.agents.values():
        for backend in backends:
            wait_until("%s says that %s is not degraded any more" % (agent.name, backend.at), 30,
                       lambda a=agent, b=backend: not is_degraded(cluster, a, b))


def test(options):
    with Cluster(options) as cluster:
        cluster.make(vote_interval="0.5s")
        ports = {name: common_port() for name in ("port", "page", "db")}
        servers = {name: [Backend(name, address, port).start() for address in ADDRESSES]
                   for name, port in ports.items()}
        try:
            apply(cluster, ports, "all")
            cluster.wait_verdicts("web", {backend: "healthy" for backend in servers["port"]})
            describe = told(cluster, ["group", "describe", "web"])
            check("failure window             1.50s to a node's opinion" in describe, describe)
            check("failure window of page     1.50s to a node's opinion" in describe, describe)
            probe = told(cluster, ["probe", "web/" + servers["port"][0].at, "--check", "page",
                                   "--all-nodes"])
            check(probe.count("http") >= 3, probe)
            test_pass(cluster, servers, ports)
            test_dependency(cluster, servers)
        finally:
            for server in sum(servers.values(), []):
                server.stop()


run(test)
