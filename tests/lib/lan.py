"""Hosts of their own for agents: network namespaces on one switch, and a cluster that lives in them.

Nothing leaves the machine: the switch is a bridge in a namespace of its own. Needs root.
"""
import atexit
import contextlib
import os
import subprocess
import threading

from cluster import Backend, Cluster
from netns import enter
from prober import run

NET = "10.232.7"
NODE = """
apiVersion: jury/v1
kind: Node
spec:
  id: %d
  key: %s
  endpoints: [{host: %s, meshPort: %d, raftPort: %d}]
  probeSources: {ipv4: %s}
"""


class Lan:
    """hosts: names to the last number of their addresses, in NET/24."""

    def __init__(self, hosts):
        self.hosts = hosts
        self.switch = self.namespace("switch")
        atexit.register(self.remove)
        run(f"ip netns add {self.switch}")
        run(f"ip -n {self.switch} link add br0 type bridge")
        run(f"ip -n {self.switch} link set br0 up")
        for host, number in hosts.items():
            self.add(host, number)

    @staticmethod
    def namespace(host):
        return f"jury-{os.getpid()}-{host}"

    def add(self, host, number):
        name = self.namespace(host)
        run(f"ip netns add {name}")
        run(f"ip -n {name} link set lo up")
        run(f"ip -n {name} link add eth0 type veth peer name {host} netns {self.switch}")
        run(f"ip -n {name} address add {NET}.{number}/24 dev eth0")
        run(f"ip -n {name} link set eth0 up")
        run(f"ip -n {self.switch} link set dev {host} master br0 up")

    def address(self, host):
        return f"{NET}.{self.hosts[host]}"

    def prefix(self, host):
        """What to put before a command so that it runs on that host."""
        return ["ip", "netns", "exec", self.namespace(host)]

    def filter(self, host, rules):
        """nftables rules for what goes out of a host ("out") and comes in ("in"), instead of those
        that are there: {"out": ["ip daddr 10.232.7.9 drop"]}."""
        text = "flush ruleset\ntable inet jury {\n"
        for hook, lines in rules.items():
            text += (f" chain {hook} {{\n  type filter hook {hook}put priority 0\n  "
                     + "\n  ".join(lines) + "\n }\n")
        text += "}\n"
        done = subprocess.run(self.prefix(host) + ["nft", "-f", "-"], input=text, text=True,
                              capture_output=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"nft refuses {rules}: {done.stderr}")

    def unfilter(self, host):
        subprocess.run(self.prefix(host) + ["nft", "flush", "ruleset"], check=True)

    @contextlib.contextmanager
    def inside(self, host):
        """Sockets that this thread makes meanwhile belong to that host, and stay its own."""
        with open(f"/proc/self/task/{threading.get_native_id()}/ns/net", "rb") as here, \
                open(f"/run/netns/{self.namespace(host)}", "rb") as there:
            enter(there)
            try:
                yield
            finally:
                enter(here)

    def remove(self):
        for host in list(self.hosts) + ["switch"]:
            run(f"ip netns del {self.namespace(host)}", ok=False)


class LanCluster(Cluster):
    """Agent N runs on the host named nodes[N]."""

    def __init__(self, options, lan, nodes, agent_options=()):
        self.lan, self.nodes = lan, nodes
        super().__init__(options, len(nodes), agent_options=agent_options)
        for number, agent in self.agents.items():
            agent.prefix = lan.prefix(nodes[number])

    def address(self, node_id):
        return self.lan.address(self.nodes[node_id])

    def ports(self, address):
        return 7400, 7401

    def node_document(self, node_id, source):
        """The node as it is, to probe from that address."""
        agent = self.agents[node_id]
        return NODE % (node_id, agent.key.public, agent.address, agent.mesh_port, agent.raft_port,
                       source)

    def lan_backend(self, name, host, port, **options):
        """A web server on a host of the switch."""
        backend = Backend(name, self.lan.address(host), port, **options)
        with self.lan.inside(host):
            backend.start()
        self.backends.append(backend)
        return backend
