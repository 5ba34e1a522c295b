#!/usr/bin/python3
# twin: rpc-no-role-check FAILED: node 1: a viewer is refused a write
"""Row 1.12 against three real agents: a client in Python, without any of our C code, makes a cluster,
applies a group, reads verdicts of real backends on every node, sees roles at work, and keeps one
request id while leaders are killed."""
import argparse
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import jury_client  # noqa: E402
from jury_client import CallError, Client  # noqa: E402

NODES = (1, 2, 3)
KILLS = 5


def check(condition, sentence):
    if not condition:
        raise AssertionError(sentence)
    print("ok:", sentence, flush=True)


def wait_until(what, condition, seconds=30):
    deadline = time.monotonic() + seconds
    last = None
    while time.monotonic() < deadline:
        try:
            last = condition()
            if last:
                return last
        except CallError as error:
            last = error
        time.sleep(0.05)
    raise AssertionError(f"{what}: not within {seconds} s; last: {last}")


def free_ports(n):
    sockets = [socket.socket() for _ in range(n)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


class Backend:
    """Accepts TCP connections on an address of 127/8 until it is stopped."""

    def __init__(self, address):
        self.address = address
        self.socket = socket.create_server((address, 0))
        self.port = self.socket.getsockname()[1]
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        try:
            while True:
                self.socket.accept()[0].close()
        except OSError:
            pass

    def stop(self):
        self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()


class Cluster:
    def __init__(self, binaries):
        self.binary = os.path.join(binaries, "jury-agent")
        self.folder = tempfile.mkdtemp(prefix="jury-python-client-")
        self.keys = {node: jury_client.make_key(self.path(f"node{node}.key")) for node in NODES}
        self.people = {name: jury_client.make_key() for name in ("admin", "operator", "viewer")}
        ports = free_ports(2 * len(NODES))
        self.mesh = dict(zip(NODES, ports[:3]))
        self.raft = dict(zip(NODES, ports[3:]))
        self.processes = {}
        for node in NODES:
            os.makedirs(self.path(f"data{node}"))
            os.makedirs(self.path(f"run{node}"))
            self.start(node)

    def path(self, name):
        return os.path.join(self.folder, name)

    def start(self, node):
        command = [self.binary, "--data-dir", self.path(f"data{node}"),
                   "--run-dir", self.path(f"run{node}"), "--key-file", self.path(f"node{node}.key"),
                   "--mesh-listen", f"127.0.0.1:{self.mesh[node]}",
                   "--raft-listen", f"127.0.0.1:{self.raft[node]}"]
        for other in NODES:
            if other != node:
                command += ["--trust", f"{other}={self.keys[other].public}"]
        with open(self.path(f"log{node}"), "ab") as log:
            self.processes[node] = subprocess.Popen(command, stdout=log, stderr=log)

    def kill(self, node):
        self.processes[node].send_signal(signal.SIGKILL)
        self.processes[node].wait()

    def stop(self, failed):
        for process in self.processes.values():
            process.kill()
            process.wait()
        if failed:
            for node in NODES:
                with open(self.path(f"log{node}"), encoding="utf-8", errors="replace") as log:
                    print(f"--- node {node} ---\n" + "".join(log.readlines()[-40:]))
        shutil.rmtree(self.folder, ignore_errors=True)

    def client(self, person="admin", nodes=NODES, timeout=10.0):
        return Client([(f"tcp://127.0.0.1:{self.mesh[node]}", self.keys[node]) for node in nodes],
                      key=self.people[person], timeout=timeout)

    def local(self, node):
        return Client(["ipc://" + self.path(f"run{node}/agent.sock")])

    def init(self):
        members = [{"nodeId": node, "role": "RAFT_ROLE_VOTER", "publicKey": self.keys[node].public,
                    "endpoints": [{"host": "127.0.0.1", "meshPort": self.mesh[node],
                                   "raftPort": self.raft[node]}]} for node in NODES]
        keys = [{"name": name, "publicKey": key.public, "role": "ROLE_" + name.upper()}
                for name, key in self.people.items()]
        with self.local(1) as local:
            wait_until("node 1 answers", lambda: local.call("NodeService/GetVersion"))
            return local.call("ClusterService/InitCluster",
                              {"members": members, "keys": keys,
                               "settings": {"allowedCidrs": ["127.0.0.0/8"],
                                            "voteInterval": "0.2s"}}, timeout=30)


def fast_group(client, name, backends):
    """All votes count; failures and recoveries show within about a second."""
    group = client.group(name, "nlb", [f"{one.address}:{one.port}" for one in backends])
    group.check.interval.nanos = group.check.timeout.nanos = 200000000
    group.verdict.down.kind = group.verdict.down.KIND_MAJORITY
    return group


def verdicts_follow(cluster, client, backends):
    client.apply(fast_group(client, "web", backends))
    words = {f"web {one.address}:{one.port}": "HEALTHY" for one in backends}
    for node in NODES:
        with cluster.client("viewer", [node]) as viewer:
            wait_until(f"node {node} finds both healthy", lambda: viewer.verdicts("web") == words)
    check(True, "every node has both backends healthy")
    backends[1].stop()
    words[f"web {backends[1].address}:{backends[1].port}"] = "UNHEALTHY"
    for node in NODES:
        with cluster.client("viewer", [node]) as viewer:
            wait_until(f"node {node} finds one unhealthy", lambda: viewer.verdicts("web") == words)
            why = viewer.call("VerdictService/Why", {"backend": {
                "group": "web", "address": backends[1].address, "port": backends[1].port}})
            check(len(why.votes) == 3 and all(
                vote.HasField("detail") and vote.detail.reason == viewer.pb.types.
                PROBE_REASON_CONNECT_FAILED for vote in why.votes),
                f"node {node} says why, with the reason of each of the three votes")


def refused(client, method, request):
    """The reason of the refusal, or None when it was done."""
    try:
        client.call(method, request)
    except CallError as error:
        return error.reason
    return None


def roles_hold(cluster, backend):
    drain = {"backend": {"group": "web", "address": backend.address, "port": backend.port}}
    deletion = {"documents": [{"deletion": {"kind": "OBJECT_KIND_GROUP", "name": "web"}}]}
    for node in NODES:
        with cluster.client("viewer", [node]) as viewer:
            check(refused(viewer, "BackendService/DrainBackend", drain) == "NOT_ALLOWED",
                  f"node {node}: a viewer is refused a write")
            check(refused(viewer, "GroupService/ListGroups", {}) is None,
                  f"node {node}: a viewer may read")
        with cluster.client("operator", [node]) as operator:
            check(refused(operator, "ConfigService/Apply", deletion) == "NOT_ALLOWED",
                  f"node {node}: an operator is refused an apply")
            check(refused(operator, "BackendService/DrainBackend", drain) is None and
                  refused(operator, "BackendService/ReadyBackend", drain) is None,
                  f"node {node}: an operator may drain and take back")


def reads_own_writes(cluster, client):
    with cluster.client(nodes=[3]) as third:
        for number in range(20):
            answer = client.apply(client.group(f"own{number:02}", "nlb", ["127.0.0.9:80"]))
            third.revision = answer.revision
            third.call("GroupService/GetGroup", {"name": f"own{number:02}"})
    check(True, "20 writes are read at once on another node")


def kept_through_kills(cluster, client):
    for number in range(KILLS):
        leader = wait_until("a leader", lambda: client.call(
            "ClusterService/GetStatus").store.leader_id)
        others = [node for node in NODES if node != leader]
        request_id = os.urandom(16)
        group = client.group(f"kept{number}", "nlb", ["127.0.0.9:80"])
        answers = []

        def write():
            with cluster.client(nodes=others, timeout=20) as survivor:
                answers.append(survivor.apply(group, request_id=request_id))
        writer = threading.Thread(target=write)
        writer.start()
        time.sleep(0.001 * number)  # before, in and after the commit
        cluster.kill(leader)
        writer.join()
        check(answers, f"write {number} was answered although its leader, node {leader}, was killed")
        with cluster.client(nodes=others, timeout=20) as survivor:
            again = survivor.apply(group, request_id=request_id)
            found = survivor.call("GroupService/GetGroup", {"name": f"kept{number}"})
        check(again == answers[0] and found.changed_revision == answers[0].revision,
              f"asked again it has the same answer: revision {again.revision}")
        cluster.start(leader)
        wait_until(f"node {leader} is back", lambda: cluster.client(nodes=[leader]).call(
            "GroupService/GetGroup", {"name": f"kept{number}"}))


def run(cluster, backends):
    answer = cluster.init()
    check(len(answer.cluster_id) == 32 and answer.revision == 1, "the cluster is made")
    with cluster.client() as client:
        wait_until("all nodes take part", lambda: client.call(
            "ClusterService/GetStatus").health == client.pb.cluster.CLUSTER_HEALTH_HEALTHY)
        verdicts_follow(cluster, client, backends)
        roles_hold(cluster, backends[0])
        reads_own_writes(cluster, client)
        kept_through_kills(cluster, client)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    cluster = Cluster(parser.parse_args().bin)
    failed = True
    try:
        run(cluster, [Backend("127.0.0.11"), Backend("127.0.0.12")])
        failed = False
    except (AssertionError, CallError) as error:
        print("FAILED:", error)
    finally:
        cluster.stop(failed)
    return 1 if failed else 0


sys.exit(main())
