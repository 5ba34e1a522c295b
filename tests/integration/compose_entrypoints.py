#!/usr/bin/python3
"""The compose deployment without Docker (row 1.14): its entrypoints in three network namespaces, one a
node, with the users, volumes, mount options and health checks of deploy/docker-compose.yml and
deploy/Dockerfile (tests/lib/containers.py reads them).

An agent is replaced without cutting a flow or failing a request; keys and cluster are made once. A shim
that is started again by itself, in a new network, does not leave its agent in the old one for good.
"""
import copy
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from cluster import ROOT, Backend, Failure, Flow, check, run, wait_until  # noqa: E402
from containers import Containers, sh  # noqa: E402
from lan import Lan  # noqa: E402

HOSTS = {"shim1": 1, "shim2": 2, "shim3": 3, "init": 8, "shop": 9}
NODES = (1, 2, 3)
BACKENDS = {8081: "web1", 8082: "web2", 8083: "web3"}
NET_RAW = 1 << 13
HALF_OPEN = """
apiVersion: jury/v1
kind: Group
metadata: {name: gate}
spec:
  profile: nlb
  check: {type: tcp, timeout: 2s, interval: 1s, tcp: {handshake: half-open}}
  backends: [{at: "%s:%d"}]
"""
LISTENER = 8000  # the one that the compose file publishes


def ask(address):
    """Which backend answered one request through a shim."""
    with socket.create_connection((address, LISTENER), timeout=5) as connection:
        connection.sendall(b"GET / HTTP/1.0\r\n\r\n")
        data = b""
        while part := connection.recv(4096):
            data += part
    head, _, body = data.partition(b"\r\n\r\n")
    check(b" 200 " in head, "not a reply of a backend: %r" % data)
    return body.decode()


class Customer(threading.Thread):
    """One request after the other through one shim; every failure is kept."""

    def __init__(self, lan, host):
        super().__init__(daemon=True)
        self.lan, self.address = lan, lan.address(host)
        self.names, self.failures, self.stopping = [], [], threading.Event()

    def run(self):
        with self.lan.inside("shop"):
            while not self.stopping.wait(0.01):
                try:
                    self.names.append(ask(self.address))
                except (OSError, Failure) as error:
                    self.failures.append(str(error))

    def finish(self):
        self.stopping.set()
        self.join(10)
        check(not self.failures, "%d requests failed: %s" % (len(self.failures), self.failures[:3]))
        check(len(self.names) > 20, "only %d requests" % len(self.names))
        return len(self.names)


def documents(address):
    """deploy/examples/web.yaml with the backends of this test."""
    with open(os.path.join(ROOT, "deploy/examples/web.yaml"), encoding="utf-8") as file:
        text = file.read()
    for number, port in enumerate(BACKENDS, 1):
        text = text.replace("10.77.0.%d:8080" % number, "%s:%d" % (address, port))
    check("10.77" not in text, "an address of the example is left")
    return text


def the_file_is_valid():
    done = subprocess.run(["docker-compose", "-f", "deploy/docker-compose.yml", "config", "-q"],
                          cwd=ROOT, capture_output=True, text=True, check=False)
    check(done.returncode == 0, "docker-compose config -q: %s%s" % (done.stdout, done.stderr))
    print("docker-compose config -q: valid")


def keys_are_made_once(containers):
    keys = containers.container("keys")
    folder = containers.volumes["keys"]

    def read():
        content = {}
        for name in os.listdir(folder):
            with open(os.path.join(folder, name), encoding="ascii") as file:
                content[name] = file.read()
        return content

    # As if a first start had been cut off: half a set, not marked complete.
    keys.complete()
    os.unlink(os.path.join(folder, "complete"))
    os.unlink(os.path.join(folder, "node-3.key"))
    print(keys.complete())
    first = read()
    check({"admin.key", "admin.pub", "node-1.key", "node-3.key", "node-3.pub", "complete"}
          <= set(first), "keys that are missing: %s" % sorted(first))
    said = keys.complete()
    print("again: " + said)
    check("there already" in said and read() == first, "the second run of keys changed them")
    for name in first:
        mode = os.stat(os.path.join(folder, name)).st_mode & 0o777
        check(not name.endswith(".key") or mode == 0o600, "%s has mode %o" % (name, mode))


def agents_say_what_is_missing(containers):
    for name, spoil, words in (
            ("agent1", lambda service: service.pop("environment"), "JURY_NODE is not set"),
            ("agent2", lambda service: service["volumes"].pop(), "/keys/admin.pub cannot be read")):
        agent = containers.container(name)
        agent.service = copy.deepcopy(agent.service)
        spoil(agent.service)
        status, said = agent.start().wait(10), agent.text().strip()
        check(status not in (0, None) and words in said, "%s ended with %s: %s" % (name, status, said))
        print("a wrong %s: %s" % (name, said))


def start(containers):
    """In the order of depends_on; returns shims and agents by number."""
    keys_are_made_once(containers)
    shims = {n: containers.container("shim%d" % n) for n in NODES}
    agents = {n: containers.container("agent%d" % n) for n in NODES}
    for shim in shims.values():
        shim.start()
    for agent in agents.values():
        agent.start()
    init = containers.container("init")
    print(init.complete())
    for container in list(shims.values()) + list(agents.values()):
        wait_until("%s passes its health check" % container.name, 30, container.is_healthy)
    said = init.complete()
    print("again: " + said)
    check("made already" in said, "the second run of init")
    print("all six pass the health checks of the compose file")
    return shims, agents


def nothing_is_allowed(containers):
    """What the restrictions promise, seen from the inside."""
    for container in containers:
        _, status = container.execute(["cat", "/proc/1/status"])
        fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
        uid = container.image.uids[container.image.user]
        check(fields["Uid"].split() == [str(uid)] * 4 and uid != 0, "runs as %s" % fields["Uid"])
        allowed = NET_RAW if container.name.startswith("agent") else 0
        for which in ("CapBnd", "CapEff", "CapPrm", "CapInh", "CapAmb"):
            check(int(fields[which], 16) == allowed,
                  "%s of %s is %s" % (which, container.name, fields[which]))
        check(fields["NoNewPrivs"] == "1" and fields["Groups"].strip() == "",
              "%s: %s" % (container.name, status))
        for path in ("/x", "/usr/x", "/etc/x"):
            check(container.execute(["touch", path])[0] != 0, "%s can write %s" % (container.name, path))
    shim = containers[0]
    for command in (["touch", "/run/jury/tables/x"], ["touch", "/run/jury/x"],
                    ["nodectl", "status"], ["cat", "/run/jury/agent.sock"]):
        status, said = shim.execute(command)
        check(status != 0, "a shim may: %s: %s" % (" ".join(command), said))
    print("no user 0, no capability but an agent's NET_RAW, no writing outside of the volumes; a shim "
          "cannot ask the agent")


def half_open_is_probed(agent, address):
    """By the agent's own packets, for which it has its one capability."""
    port = next(iter(BACKENDS))
    status, said = agent.execute(["nodectl", "apply", "-f", "-"], HALF_OPEN % (address, port))
    check(status == 0, "apply: " + said)
    status, said = agent.execute(["nodectl", "node", "describe"])
    check(status == 0 and "tcp-half-open" in said and "inconclusive here" not in said,
          "node describe: " + said)
    name = "gate/%s:%d" % (address, port)
    words = ["nodectl", "probe", name, "--all-nodes"]

    def all_by_packets():
        said = agent.execute(words)[1]
        return [said.count(word) for word in ("engine packet", "SYN-ACK")] == [len(NODES)] * 2

    # Each node probes when it has the group, and once a second.
    wait_until("each node probes by packets", 60, all_by_packets, interval=1.1)
    wait_until("the half-open group is healthy", 60, lambda: "is healthy" in agent.execute(
        ["nodectl", "why", name])[1].split("\n")[0])
    print("half-open probes by packets of each agent, from its container")


def an_agent_is_replaced(lan, shims, agents):
    """By SIGTERM and a new container, then by SIGKILL: flows live on, no request fails."""
    agent = agents[1]
    with lan.inside("shop"):
        flows = [Flow(lan.address("shim1"), LISTENER) for _ in BACKENDS]
    customer = Customer(lan, "shim1")
    customer.start()
    status = agent.stop_gracefully()
    check(status == 0, "agent1 ended with %s after SIGTERM" % status)
    n_before = len(customer.names)
    wait_until("requests without an agent", 10, lambda: len(customer.names) > n_before + 20)
    agent.service["environment"]["JURY_LOG_LEVEL"] = "debug"
    agent.start()
    wait_until("the new agent1 is healthy", 30, agent.is_healthy)
    check(agent.count(["jury-agent debug "]), "JURY_LOG_LEVEL of the environment is not heeded")
    agent.kill()
    agent.start()
    wait_until("agent1 is healthy after SIGKILL", 30, agent.is_healthy)
    n_requests = customer.finish()
    check(all(flow.is_open() for flow in flows), "a flow was cut")
    for flow in flows:
        flow.close()
    check(shims[1].is_running(), "the shim ended")
    print("agent1 replaced twice: %d requests, none failed, %d flows lived on" % (n_requests, len(flows)))


def a_shim_is_restarted_alone(lan, shims, agents):
    """As Docker does: the old network loses its link, the new container gets a new one, and the agent
    stays in the old one until it ends. What starts it again here is `restart: unless-stopped` there."""
    shim, agent = shims[3], agents[3]
    shim.kill()
    sh("ip", "-n", lan.namespace("shim3"), "link", "del", "eth0")
    sh("ip", "netns", "del", lan.namespace("shim3"))
    lan.add("shim3", HOSTS["shim3"])
    check(agent.is_running(), "the agent ended before there is a shim: it could not be started then")
    shim.start()
    status = agent.wait(30)
    check(status == 0 and agent.count(["has a new network"]), "agent3 ended with %s" % status)
    agent.start()
    wait_until("agent3 is healthy in the new network", 30, agent.is_healthy)
    with lan.inside("shop"):
        wait_until("replies through the new shim3", 30, lambda: ask(lan.address("shim3")))
    print("shim3 started again alone: agent3 followed it into its new network")


def test_in(lan, directory, options):
    hosts = "".join("%s %s\n" % (lan.address(name), name) for name in HOSTS)
    containers = Containers(directory, os.path.abspath(options.bin), lan.prefix, hosts)
    backends = []
    try:
        agents_say_what_is_missing(containers)
        shims, agents = start(containers)
        nothing_is_allowed(list(shims.values()) + list(agents.values()))
        address = lan.address("shop")
        with lan.inside("shop"):
            backends = [Backend(name, address, port).start() for port, name in BACKENDS.items()]
        status, said = agents[2].execute(["nodectl", "apply", "-f", "-"], documents(address))
        check(status == 0, "apply: " + said)
        with lan.inside("shop"):
            for n in NODES:
                seen = set()
                wait_until("replies of all through shim%d" % n, 30, lambda n=n, seen=seen:
                           seen.add(ask(lan.address("shim%d" % n))) or len(seen) == len(BACKENDS))
        print("replies of all backends through each shim")
        half_open_is_probed(agents[2], address)
        an_agent_is_replaced(lan, shims, agents)
        a_shim_is_restarted_alone(lan, shims, agents)
        for container in list(agents.values()) + list(shims.values()):
            status = container.stop_gracefully()
            check(status == 0, "%s ended with %s after SIGTERM" % (container.name, status))
        print("all six end with 0 after SIGTERM")
    except BaseException:
        for container in containers.running:
            print("--- %s\n%s" % (container.name, "\n".join(container.text().splitlines()[-40:])))
        raise
    finally:
        containers.close()  # and its mounts
        for backend in backends:
            backend.stop()


def test(options):
    the_file_is_valid()
    directory = tempfile.mkdtemp(prefix="jury-compose-")
    lan = Lan(HOSTS)
    try:
        test_in(lan, directory, options)
    finally:
        lan.remove()
        shutil.rmtree(directory)


run(test)
