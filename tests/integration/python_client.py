#!/usr/bin/python3
# twin: rpc-no-role-check FAILED: node 1: a viewer is refused a write
"""Row 1.12 against three real agents: a client in Python, without any of our C code, applies a group,
reads verdicts of real backends on every node, sees roles at work, reads its own writes, and keeps one
request id while leaders are killed."""
import os
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import cluster as lib  # noqa: E402
from cluster import Cluster, KeyPair, check, tcp_group, wait_until  # noqa: E402
from jury_client import CallError, Client  # noqa: E402

KILLS = 5


def saw(condition, sentence):
    check(condition, sentence)
    print("ok:", sentence, flush=True)


def client_of(agents, key, timeout=10.0):
    """Over the network, to these nodes in turn."""
    return Client([(f"tcp://{agent.address}:{agent.mesh_port}", agent.key) for agent in agents],
                  key=key, timeout=timeout)


def add_people(cluster):
    """Keys of an operator and a viewer, put in by the administrator over the network."""
    people = {role: KeyPair() for role in ("operator", "viewer")}
    with client_of(cluster.agents.values(), cluster.admin) as client:
        client.call("ConfigService/Apply", {"documents": [
            {"key": {"name": "the-" + role, "publicKey": key.public, "role": "ROLE_" + role.upper()}}
            for role, key in people.items()]})
    return people


def verdicts_follow(cluster, viewer_key):
    backends = [cluster.backend(name) for name in ("b1", "b2")]
    with client_of(cluster.agents.values(), cluster.admin) as client:
        client.call("ConfigService/Apply", {"documents": [
            tcp_group("web", backends, interval="0.2s", timeout="0.2s")]})
    words = {f"web {one.address}:{one.port}": "HEALTHY" for one in backends}
    viewers = {node: client_of([agent], viewer_key) for node, agent in cluster.agents.items()}
    for node, viewer in viewers.items():
        wait_until(f"node {node} finds both healthy", 20,
                   lambda viewer=viewer: viewer.verdicts("web") == words)
    saw(True, "every node has both backends healthy")
    backends[1].stop()
    words[f"web {backends[1].address}:{backends[1].port}"] = "UNHEALTHY"
    request = {"backend": {"group": "web", "address": backends[1].address,
                           "port": backends[1].port}}

    def failed_everywhere(viewer):
        why = viewer.call("VerdictService/Why", request)
        failed = viewer.pb.types.PROBE_REASON_CONNECT_FAILED
        return len(why.votes) == 3 and all(vote.HasField("detail") and vote.detail.reason == failed
                                           for vote in why.votes)
    for node, viewer in viewers.items():
        wait_until(f"node {node} finds one unhealthy", 20,
                   lambda viewer=viewer: viewer.verdicts("web") == words)
        wait_until(f"node {node} has the reason of each vote", 20,
                   lambda viewer=viewer: failed_everywhere(viewer))
        saw(True, f"node {node} says unhealthy and why, with the reason of each of the three votes")
        viewer.close()
    return backends[0]


def refused(client, method, request):
    """The reason of the refusal, or None when it was done."""
    try:
        client.call(method, request)
    except CallError as error:
        return error.reason
    return None


def roles_hold(cluster, people, backend):
    drain = {"backend": {"group": "web", "address": backend.address, "port": backend.port}}
    deletion = {"documents": [{"deletion": {"kind": "OBJECT_KIND_GROUP", "name": "web"}}]}
    for node, agent in cluster.agents.items():
        with client_of([agent], people["viewer"]) as viewer:
            saw(refused(viewer, "BackendService/DrainBackend", drain) == "NOT_ALLOWED",
                f"node {node}: a viewer is refused a write")
            saw(refused(viewer, "GroupService/ListGroups", {}) is None,
                f"node {node}: a viewer may read")
        with client_of([agent], people["operator"]) as operator:
            saw(refused(operator, "ConfigService/Apply", deletion) == "NOT_ALLOWED",
                f"node {node}: an operator is refused an apply")
            saw(refused(operator, "BackendService/DrainBackend", drain) is None and
                refused(operator, "BackendService/ReadyBackend", drain) is None,
                f"node {node}: an operator may drain and take back")


def reads_own_writes(cluster):
    with client_of([cluster.agents[2]], cluster.admin) as one, \
            client_of([cluster.agents[3]], cluster.admin) as other:
        for number in range(20):
            answer = one.apply(one.group(f"own{number:02}", "nlb", ["127.0.0.9:80"]))
            other.revision = answer.revision
            other.call("GroupService/GetGroup", {"name": f"own{number:02}"})
    saw(True, "20 writes are read at once on another node")


def keep_through_kill(cluster, number):
    leader = cluster.leader()
    others = [agent for agent in cluster.agents.values() if agent is not leader]
    request_id, answers = os.urandom(16), []

    def write(client):
        group = client.group(f"kept{number}", "nlb", ["127.0.0.9:80"])
        return client.apply(group, request_id=request_id)

    def first():
        with client_of(others, cluster.admin, timeout=20) as client:
            answers.append(write(client))
    writer = threading.Thread(target=first)
    writer.start()
    time.sleep(0.002 * number)  # before, in and after the commit: each is as good
    leader.kill()
    writer.join()
    saw(answers, f"write {number} is answered although its leader, {leader.name}, was killed")
    with client_of(others, cluster.admin, timeout=20) as client:
        again = write(client)
        found = client.call("GroupService/GetGroup", {"name": f"kept{number}"})
    saw(again == answers[0] and found.changed_revision == again.revision,
        f"asked again it has the same answer: revision {again.revision}")
    leader.start()
    wait_until(f"{leader.name} is back", 30,
               lambda: leader.call("NodeService/CheckReady").is_ready)


def test(options):
    with Cluster(options) as cluster:
        cluster.make(vote_interval="0.2s")
        people = add_people(cluster)
        backend = verdicts_follow(cluster, people["viewer"])
        roles_hold(cluster, people, backend)
        reads_own_writes(cluster)
        for number in range(KILLS):
            keep_through_kill(cluster, number)


lib.run(test)
