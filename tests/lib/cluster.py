"""Launches real agents, shims and backends for integration tests.

Everything lives below one temporary directory, listens on addresses of 127/8 with free ports, and is
ended by process id. Waiting always has a deadline and says what did not happen. When a test fails
the logs of all processes are printed.
"""
import argparse
import contextlib
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

import zmq
from zmq.utils import z85

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, HERE)

import jury_client  # noqa: E402  (made from the .proto files, none of our C code)


def arguments(**more):
    """--bin, --keep and the test's own options (name=default)."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", default=os.path.join(ROOT, "build", "dev", "bin"))
    parser.add_argument("--keep", action="store_true", help="leave the directory behind")
    for name, value in more.items():
        parser.add_argument("--" + name.replace("_", "-"), type=type(value), default=value)
    return parser.parse_args()


STATES = ("none", "initial", "healthy", "unhealthy", "unavailable", "unused")


class Failure(Exception):
    """What a test saw and should not have seen, in one sentence."""


def check(condition, sentence):
    if not condition:
        raise Failure(sentence)


def wait_until(what, seconds, condition, interval=0.05):
    """Polls until condition() is true and returns its value. The deadline is generous, not a
    measure."""
    deadline = time.monotonic() + seconds
    last = None
    while True:
        try:
            value = condition()
            if value:
                return value
            last = None
        except (jury_client.CallError, OSError, ValueError) as error:
            last = error
        if time.monotonic() > deadline:
            raise Failure("not within %g s: %s%s" % (seconds, what, " (%s)" % last if last else ""))
        time.sleep(interval)


def endpoint(address, port):
    """As text, IPv6 in brackets."""
    return "%s:%d" % ("[%s]" % address if ":" in address else address, port)


def free_port(address="127.0.0.1"):
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        # Below the range that outgoing connections take, so that none takes it meanwhile.
        for _ in range(200):
            port = random.randrange(12000, 30000)
            try:
                probe.bind((address, port))
                return port
            except OSError:
                continue
    raise Failure("no free port on %s" % address)


class KeyPair:
    """A CURVE key pair in the file format of the product."""

    def __init__(self, path=None):
        public, secret = zmq.curve_keypair()
        self.public_z85, self.secret_z85 = public, secret
        self.public = z85.decode(public).hex()
        self.secret = z85.decode(secret).hex()
        self.path = path
        if path:
            fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(fd, "w") as file:
                file.write("jury-key 1\npublic %s\nsecret %s\n" % (self.public, self.secret))


class Process:
    """One program over all its lives; its output goes to one log file."""

    def __init__(self, name, directory, command):
        self.name, self.command = name, command
        self.log = os.path.join(directory, name + ".log")
        self.prefix = []  # put before the command, such as that of a network namespace
        self.process = None

    def start(self, env=None, prefix=()):
        check(not self.is_running(), "%s runs already" % self.name)
        command = list(prefix) + self.prefix + self.command()
        with open(self.log, "ab") as out:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                                            env=dict(os.environ, **(env or {})))
        return self

    def is_running(self):
        return self.process is not None and self.process.poll() is None

    def send(self, number):
        if self.is_running():
            os.kill(self.process.pid, number)

    def kill(self):
        """kill -9."""
        self.send(signal.SIGKILL)
        return self.wait(10)

    def stop(self, seconds=30):
        """SIGTERM; returns the exit status."""
        self.send(signal.SIGTERM)
        return self.wait(seconds)

    def wait(self, seconds):
        if self.process is None:
            return None
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise Failure("%s did not end within %g s" % (self.name, seconds)) from None

    def pause(self):
        self.send(signal.SIGSTOP)

    def go_on(self):
        self.send(signal.SIGCONT)

    def text(self):
        try:
            with open(self.log, encoding="utf-8", errors="replace") as file:
                return file.read()
        except FileNotFoundError:
            return ""

    def count(self, words):
        """Lines of the log that hold all the words."""
        return sum(1 for line in self.text().splitlines() if all(word in line for word in words))


class Agent(Process):
    def __init__(self, cluster, node_id, options=()):
        self.cluster, self.id, self.options = cluster, node_id, list(options)
        self.dir = os.path.join(cluster.dir, "node%d" % node_id)
        self.data_dir = os.path.join(self.dir, "data")
        self.run_dir = os.path.join(self.dir, "run")
        for path in (self.dir, self.data_dir, self.run_dir):
            os.makedirs(path, exist_ok=True)
            os.chmod(path, 0o750)
        self.key = KeyPair(os.path.join(self.dir, "node.key"))
        self.address = cluster.address(node_id)
        self.mesh_port, self.raft_port = cluster.ports(self.address)
        super().__init__("agent%d" % node_id, cluster.dir, self.command_line)

    def command_line(self):
        command = [os.path.join(self.cluster.bin, "jury-agent"),
                   "--data-dir", self.data_dir, "--run-dir", self.run_dir,
                   "--key-file", self.key.path, "--node-id", str(self.id),
                   "--mesh-listen", endpoint(self.address, self.mesh_port),
                   "--raft-listen", endpoint(self.address, self.raft_port),
                   "--log-level", "debug"]
        for peer in self.cluster.agents.values():
            if peer.id != self.id:
                command += ["--trust", "%d=%s" % (peer.id, peer.key.public)]
        return command + self.options

    @property
    def socket_path(self):
        return os.path.join(self.run_dir, "agent.sock")

    @property
    def tables(self):
        return os.path.join(self.run_dir, "tables")

    @property
    def status_dir(self):
        return os.path.join(self.run_dir, "status")

    def client(self):
        """Over the unix socket: as admin."""
        return jury_client.Client(["ipc://" + self.socket_path])

    def client_with(self, key):
        """Over the network with a key of its own."""
        return jury_client.Client(["tcp://" + endpoint(self.address, self.mesh_port)],
                                  server_key=self.key, key=key)

    def call(self, method, request=None, **options):
        try:
            with self.client() as client:
                return client.call(method, request, **options)
        except jury_client.CallError as error:
            if error.reason == "UNREACHABLE":
                error.args = ("%s (%s)" % (error, self.fate()),)
            raise

    def fate(self):
        """An agent that is silent, and one that is no more, are two things to look for."""
        if self.process is None:
            return "%s was never started" % self.name
        status = self.process.poll()
        if status is not None:
            return "%s ended with status %d" % (self.name, status)
        return "%s runs; its socket is %s" % (
            self.name, "there" if os.path.exists(self.socket_path) else "not there")

    def status(self):
        return self.call("ClusterService/GetStatus")

    def counters(self):
        """Name (with {label} if it has one) to value."""
        answer = self.call("NodeService/ListCounters")
        return {c.name + ("{%s}" % c.label if c.label else ""): c.value for c in answer.counters}

    def member(self):
        return {"node_id": self.id, "role": "RAFT_ROLE_VOTER", "public_key": self.key.public,
                "endpoints": [{"host": self.address, "mesh_port": self.mesh_port,
                               "raft_port": self.raft_port}]}

    def verdicts(self, group):
        """Address and port of each backend to the word of its state, as this node sees it."""
        answer = self.call("VerdictService/ListVerdicts", {"group": group})
        return {endpoint(v.backend.address, v.backend.port): STATES[v.verdict.state]
                for v in answer.verdicts}


class Shim(Process):
    def __init__(self, cluster, agent, options=()):
        self.agent, self.options, self.bin = agent, list(options), cluster.bin
        super().__init__("shim%d" % agent.id, cluster.dir, self.command_line)

    def command_line(self):
        return [os.path.join(self.bin, "jury-shim"), "--tables", self.agent.tables,
                "--status", self.agent.status_dir] + self.options


class Backend:
    """An HTTP server of one thread a connection that answers with its name; start and stop are real:
    a stopped one refuses connections. After a request for /hold it keeps the connection open."""

    def __init__(self, name, address="127.0.0.1", port=None, status=200):
        self.name, self.address, self.status = name, address, status
        self.port = port or free_port(address)
        self.listener = None
        self.n_requests = 0
        self.open = set()
        self.lock = threading.Lock()

    @property
    def at(self):
        return endpoint(self.address, self.port)

    def start(self):
        family = socket.AF_INET6 if ":" in self.address else socket.AF_INET
        self.listener = socket.socket(family, socket.SOCK_STREAM)
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.listener.bind((self.address, self.port))
        self.listener.listen(128)
        threading.Thread(target=self.accept, args=(self.listener,), daemon=True).start()
        return self

    def stop(self):
        if self.listener:
            # shutdown wakes the accepting thread; close alone would leave it there.
            with contextlib.suppress(OSError):
                self.listener.shutdown(socket.SHUT_RDWR)
            self.listener.close()
            self.listener = None
        with self.lock:
            for connection in self.open:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)

    def accept(self, listener):
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection):
        with self.lock:
            self.open.add(connection)
        try:
            with connection:
                data = b""
                while b"\r\n\r\n" not in data:
                    part = connection.recv(4096)
                    if not part:
                        return
                    data += part
                self.n_requests += 1
                body = self.name.encode()
                head = data.split(b" ", 1)[0] == b"HEAD"
                connection.sendall(b"HTTP/1.1 %d X\r\nContent-Length: %d\r\n\r\n"
                                   % (self.status, len(body)) + (b"" if head else body))
                if b" /hold " in data:
                    connection.recv(1)
        except OSError:
            pass
        finally:
            with self.lock:
                self.open.discard(connection)


class Cluster:
    def __init__(self, options, n_nodes=3, ipv6=False, agent_options=()):
        self.bin, self.keep, self.ipv6 = os.path.abspath(options.bin), options.keep, ipv6
        self.dir = tempfile.mkdtemp(prefix="jury-")
        # Each cluster has a part of 127/8 to itself.
        self.net = "127.%d.%d" % (random.randrange(1, 255), random.randrange(255))
        self.agents, self.shims, self.backends = {}, {}, []
        for node_id in range(1, n_nodes + 1):
            self.agents[node_id] = Agent(self, node_id, agent_options)
        self.admin = KeyPair(os.path.join(self.dir, "admin.key"))
        self.failed = False

    def address(self, node_id):
        return "::1" if self.ipv6 else "%s.%d" % (self.net, node_id)

    def ports(self, address):
        """For the mesh and for Raft."""
        return free_port(address), free_port(address)

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        for process in self.processes():
            process.go_on()
            process.kill()
        for backend in self.backends:
            backend.stop()
        if kind is not None:
            self.print_logs()
        if self.keep:
            print("left behind: " + self.dir)
        else:
            shutil.rmtree(self.dir, ignore_errors=True)

    def processes(self):
        return list(self.agents.values()) + list(self.shims.values())

    def print_logs(self, lines=60):
        for process in self.processes():
            print("--- %s" % process.log)
            print("\n".join(process.text().splitlines()[-lines:]))

    def backend(self, name, **options):
        backend = Backend(name, **options).start()
        self.backends.append(backend)
        return backend

    def shim(self, node_id, options=()):
        self.shims[node_id] = Shim(self, self.agents[node_id], options)
        return self.shims[node_id]

    # --- making it ---

    def start(self, order=None):
        for node_id in order or sorted(self.agents):
            self.agents[node_id].start()
        for node_id in order or sorted(self.agents):
            agent = self.agents[node_id]
            wait_until("%s answers on its unix socket" % agent.name, 20,
                       lambda agent=agent: agent.call("NodeService/GetVersion"))

    def init_request(self, vote_interval="1s"):
        """All agents as voters; backends of tests live in 127/8."""
        return {"members": [agent.member() for agent in self.agents.values()],
                "settings": {"vote_interval": vote_interval,
                             "allowed_cidrs": ["127.0.0.0/8", "10.0.0.0/8", "fc00::/7", "::1/128"]},
                "keys": [{"name": "admin", "public_key": self.admin.public, "role": "ROLE_ADMIN"}]}

    def init(self, by=1, vote_interval="1s"):
        answer = self.agents[by].call("ClusterService/InitCluster",
                                      self.init_request(vote_interval), timeout=30)
        for agent in self.agents.values():
            wait_until("%s has the catalog" % agent.name, 30,
                       lambda agent=agent: agent.is_running() and agent.status().revision >= 1)
        return answer

    def make(self, **options):
        self.start()
        self.init(**options)
        self.wait_ready()
        return self

    def wait_ready(self, nodes=None):
        for node_id in nodes or sorted(self.agents):
            agent = self.agents[node_id]
            wait_until("%s is ready" % agent.name, 30,
                       lambda agent=agent: agent.call("NodeService/CheckReady").is_ready)

    def leader(self):
        """The agent that leads, as it says itself."""
        def find():
            silent = None
            for agent in self.agents.values():
                if agent.is_running():
                    try:
                        if agent.status().store.leader_id == agent.id:
                            return agent
                    except jury_client.CallError as error:
                        silent = error  # another one may lead
            if silent is not None:
                raise silent
            return None
        return wait_until("a leader", 20, find)

    def apply(self, documents, by=None, **options):
        agent = self.agents[by] if by else next(a for a in self.agents.values() if a.is_running())
        return agent.call("ConfigService/Apply", {"documents": documents}, **options)

    def wait_verdicts(self, group, states, seconds=20, nodes=None):
        """states: a Backend to the word of its state, on every running node (or the given ones)."""
        wanted = {backend.at: state for backend, state in states.items()}
        for node_id in nodes or sorted(self.agents):
            agent = self.agents[node_id]
            if agent.is_running():
                wait_until("%s sees %s in %s" % (agent.name, wanted, group), seconds,
                           lambda agent=agent: wanted.items() <= agent.verdicts(group).items())


class Flow:
    """A connection through a listener that stays open; `name` is the backend that answered."""

    def __init__(self, address, port, timeout=5):
        self.socket = socket.create_connection((address, port), timeout=timeout)
        self.socket.sendall(b"GET /hold HTTP/1.1\r\nHost: x\r\n\r\n")
        data = b""
        while b"\r\n\r\n" not in data or data.endswith(b"\r\n\r\n"):
            part = self.socket.recv(4096)
            if not part:
                raise Failure("the connection ended before an answer came")
            data += part
        self.name = data.split(b"\r\n\r\n", 1)[1].decode()

    def is_open(self):
        """Neither closed nor reset by the other side."""
        self.socket.setblocking(False)
        try:
            return self.socket.recv(1) != b""
        except BlockingIOError:
            return True
        except OSError:
            return False

    def close(self):
        self.socket.close()


def tcp_group(name, backends, rule="majority", **check_fields):
    """A document of a group of profile nlb with times that suit tests."""
    fields = {"type": "CHECK_TYPE_TCP", "timeout": "0.5s", "interval": "0.5s",
              "healthy_threshold": 2, "unhealthy_threshold": 2}
    fields.update(check_fields)
    return {"group": {"name": name, "profile": "PROFILE_NLB", "type": "GROUP_TYPE_IP",
                      "protocol": "PROTOCOL_TCP", "check": fields,
                      "verdict": {"down": {"kind": "KIND_" + rule.upper()}},
                      "backends": [{"address": b.address, "port": b.port} for b in backends]}}


def run(test, **more):
    """Runs a test function (options) and ends the process with 0 or 1. What it returns is its outcome in
    words, for tests/figures.md; None: passed is all there is to say."""
    options = arguments(**more)
    try:
        outcome = test(options)
    except Failure as failure:
        print("FAILED: %s" % failure)
        sys.exit(1)
    print("passed" + (": " + outcome if isinstance(outcome, str) else ""))
