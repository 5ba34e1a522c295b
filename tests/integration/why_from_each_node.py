#!/usr/bin/python3
"""Row 1.11, live: three agents, each a host of its own. A firewall cuts node C from backend b1; whoever
is asked `nodectl why web/b1` about whichever node, over the network or at its unix socket, tells of
the same three votes. Then each exit status of nodectl, from a situation that gives rise to it.
"""
# twin: rpc-no-role-check exit 6 was expected
# twin: catalog-expected-revision exit 8 was expected
import os
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from cluster import KeyPair, check, run, wait_until  # noqa: E402
from ctl import ask, expect, here, over  # noqa: E402
from lan import Lan, LanCluster  # noqa: E402

V = 1.0
A, B, C = 1, 2, 3
HOSTS = {"a": 1, "b": 2, "c": 3, "web1": 11, "web2": 12}
IMAGE_BYTES = 400 << 20
LEFT_BYTES = 60 << 20  # less than the store wants

GROUP = """
apiVersion: jury/v1
kind: Group
metadata: {name: %s}
spec:
  profile: nlb
  rule: majority
  check: {type: http, timeout: 500ms, interval: 500ms, unhealthyThreshold: 2, healthyThreshold: 2}
  backends:
  - {at: "%s", description: b1}
  - {at: "%s", description: b2}
"""
KEY = """
apiVersion: jury/v1
kind: Key
metadata: {name: looker}
spec: {key: %s, role: viewer}
"""


def document_of(name, *backends):
    return GROUP % (name, *backends)


def document(b1, b2):
    return document_of("web", b1.at, b2.at)


# --- why ---

def seconds(text):
    return float(text.rstrip("s"))


def votes_of(answer):
    """What each node says, by node; all of it must be there and be fresh."""
    votes = {}
    for vote in answer.json["votes"]:
        check(vote.get("standing") == "VOTE_STANDING_COUNTED", "not all votes count: %s" % answer)
        check("age" in vote and "detail" in vote, "a vote without age or reason: %s" % answer)
        # Each may be as old as is allowed; the machine is as slow as it likes.
        check(seconds(vote["age"]) < 10 * 3 * V, "a vote of long ago: %s" % answer)
        check(vote["detail"]["streak"] > 0, "a vote without a streak: %s" % answer)
        votes[int(vote["nodeId"])] = (vote["opinion"], vote["detail"]["reason"])
    return votes


WANTED = {A: ("OPINION_PASS", "PROBE_REASON_OK"), B: ("OPINION_PASS", "PROBE_REASON_OK"),
          C: ("OPINION_FAIL", "PROBE_REASON_CONNECT_TIMEOUT")}


def check_why(agent, plain, answer):
    check(int(answer.json["nodeId"]) == agent.id, "another node answered: %s" % answer)
    check(votes_of(answer) == WANTED, "%s at node %d: %s" % (votes_of(answer), agent.id, answer))
    check("it passes for nodes 1 and 2 and fails for node 3" in plain.out,
          "the disagreement is not named: %s" % plain)
    check("CONNECT_TIMEOUT" in plain.out, "the reason is not named: %s" % plain)
    here_only = "unreachable from here" in plain.out and answer.json["verdict"].get("isUnreachable")
    check(bool(here_only) == (agent.id == C), "unreachable from here: %s" % plain)
    check(answer.json["verdict"]["state"] == "HEALTH_STATE_HEALTHY", "not healthy: %s" % answer)
    down = answer.json["nextDown"]
    check(down["votes"] == 1 and down["sentence"] in " ".join(plain.out.split()),
          "what would change it is not said: %s" % plain)


def why_everywhere(cluster, lan, backend):
    n = 0
    words = ["why", "web/" + backend.at]
    for agent in cluster.agents.values():
        wait_until("node %d knows why of all three" % agent.id, 60,
                   lambda agent=agent: votes_of(ask(cluster, words + ["-o", "json"] + here(agent)))
                   == WANTED)
        for place in ("a", "b", "c"):
            check_why(agent, *expect(cluster, 0, words + over(agent, cluster.admin),
                                     prefix=lan.prefix(place)))
            n += 2
        plain, answer = expect(cluster, 0, ["why", "web/b1"] + here(agent))
        check_why(agent, plain, answer)
        n += 2
        print(plain.out.split("\n")[0])
    print("the same three votes in %d answers; what would change it: %s"
          % (n, answer.json["nextDown"]["sentence"]))


def cut_and_ask(cluster, lan, b1, b2):
    cluster.wait_verdicts("web", {b1: "healthy", b2: "healthy"}, seconds=60)
    cut = ["ip daddr %s drop" % b1.address]
    lan.filter("c", {"out": cut})
    wait_until("node 3 calls b1 unreachable from here", 60, lambda: ask(
        cluster, ["why", "web/b1", "-o", "json"] + here(cluster.agents[C]))
        .json["verdict"].get("isUnreachable"))
    why_everywhere(cluster, lan, b1)

    # It said: one more vote. So be it.
    lan.filter("b", {"out": cut})
    cluster.wait_verdicts("web", {b1: "unhealthy", b2: "healthy"}, seconds=60)
    print("cut from node 2 as well: unhealthy on all, as it said")
    lan.unfilter("b")
    lan.unfilter("c")
    cluster.wait_verdicts("web", {b1: "healthy", b2: "healthy"}, seconds=60)


# --- exit statuses ---

def say(status, what, answer):
    line = answer.err.strip().split("\n") if status > 1 else [answer.out.strip().split("\n")[0]]
    print("exit %d, %s: %s" % (status, what, " | ".join(part.strip()[:160] for part in line[:4])))


def asked_rightly_and_wrongly(cluster, lan, b1, b2):
    node = cluster.agents[A]
    admin = over(node, cluster.admin)
    there = {"prefix": lan.prefix("b")}
    plain, answer = expect(cluster, 0, ["status"] + admin, **there)
    check(answer.json["health"] == "CLUSTER_HEALTH_HEALTHY", "not healthy: %s" % answer)
    say(0, "status", plain)
    plain, _ = expect(cluster, 2, ["group", "describe", "web", "--stael"] + admin, **there)
    say(2, "unknown flag", plain)

    wrong = document(b1, b2).replace("unhealthyThreshold: 2", "unhealthyThreshold: 11")
    plain, answer = expect(cluster, 3, ["apply", "-f", "-"] + admin, text=wrong, **there)
    place = answer.error["metadata"]
    check((place["file"], place["line"]) == ("-", "8") and "column" in place and
          "1..10" in plain.err, "no place or no range: %s%s" % (plain, answer))
    say(3, "threshold of 11", plain)

    looker = KeyPair(os.path.join(cluster.dir, "looker.key"))
    expect(cluster, 0, ["apply", "-f", "-"] + admin, text=KEY % looker.public, **there)
    expect(cluster, 0, ["group", "list"] + over(node, looker), **there)
    plain, _ = expect(cluster, 6, ["apply", "-f", "-"] + over(node, looker),
                      text=document(b1, b2), **there)
    say(6, "a viewer's apply", plain)
    stranger = KeyPair(os.path.join(cluster.dir, "stranger.key"))
    plain, _ = expect(cluster, 6, ["group", "list"] + over(node, stranger), **there)
    say(6, "an unknown key", plain)

    plain, _ = expect(cluster, 7, ["group", "describe", "wbe"] + admin, **there)
    say(7, "unknown group", plain)
    changed = document(b1, b2).replace("description: b2", "description: other")
    plain, _ = expect(cluster, 8, ["apply", "-f", "-", "--expected-revision", "1"] + admin,
                      text=changed, **there)
    say(8, "changed since revision 1", plain)


def many_groups(n_groups, n_backends):
    """No probe of them ever leaves: nothing of it is accepted."""
    text = ""
    for group in range(n_groups):
        text += "---" + document_of("huge%d" % group, "10.8.0.1:80", "10.8.0.2:80")
        text += "".join("  - {at: 10.9.%d.%d:80, description: %s}\n" % (i >> 8, i & 255, "d" * 100)
                        for i in range(n_backends))
    return text


def too_much(cluster):
    plain, answer = expect(cluster, 10, ["apply", "-f", "-"] + here(cluster.agents[A]),
                           text=many_groups(8, 900))
    check(answer.error["reason"] == "LIMIT_REACHED", "another reason: %s" % answer)
    say(10, "7,200 backends at once", plain)
    groups = ask(cluster, ["group", "list", "-o", "json"] + here(cluster.agents[A])).json["groups"]
    check([one["name"] for one in groups] == ["web"], "some of it was applied: %s" % groups)


def disk_full(cluster, disk, b1, b2):
    if disk is None:
        return
    filler = os.path.join(disk, "filler")
    left = os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize
    with open(filler, "wb") as file:
        os.posix_fallocate(file.fileno(), 0, left - LEFT_BYTES)
    leader = cluster.leader()
    wait_until("the leader sees that its disk is full", 60,
               lambda: leader.status().store.is_disk_full)
    changed = document(b1, b2).replace("description: b2", "description: other")
    plain, answer = expect(cluster, 10, ["apply", "-f", "-"] + here(leader), text=changed)
    check(answer.error["reason"] == "DISK_FULL", "another reason: %s" % answer)
    say(10, "a full disk", plain)
    os.unlink(filler)
    wait_until("a write after there is room again", 60, lambda: ask(
        cluster, ["apply", "-f", "-"] + here(leader), text=changed).status == 0)


def stopped_ones(cluster, lan):
    node, other, third = (cluster.agents[n] for n in (A, B, C))
    third.pause()
    short = ["--timeout", "1s"]
    plain, _ = expect(cluster, 5, ["status"] + here(third) + short)
    expect(cluster, 5, ["status"] + over(third, cluster.admin) + short, prefix=lan.prefix("a"))
    say(5, "SIGSTOP", plain)
    third.kill()
    expect(cluster, 4, ["status"] + here(third) + short)
    plain, _ = expect(cluster, 4, ["status"] + over(third, cluster.admin) + short,
                      prefix=lan.prefix("a"))
    say(4, "dead endpoint", plain)

    wait_until("node 1 misses node 3", 60, lambda: not member(node, C).is_heard)
    plain, answer = expect(cluster, 1, ["status"] + here(node))
    check(answer.json["health"] == "CLUSTER_HEALTH_DEGRADED", "not degraded: %s" % answer)
    say(1, "status with a node away", plain)

    other.kill()
    wait_until("node 1 is without a leader", 60, lambda: node.status().store.leader_id == 0)
    plain, answer = expect(cluster, 9, ["group", "list", "--timeout", "3s"] + here(node))
    for peer in (other, third):
        for text in (plain.err, answer.error["metadata"]["node_%d" % peer.id]):
            check("%s:7400, last heard" % peer.address in text,
                  "node %d is not named: %s%s" % (peer.id, plain, answer))
    say(9, "two of three stopped", plain)
    expect(cluster, 9, ["apply", "-f", "-", "--timeout", "3s"] + here(node), text=KEY % node.key.public)
    plain, answer = expect(cluster, 1, ["status"] + here(node))
    check(answer.json["health"] == "CLUSTER_HEALTH_UNAVAILABLE", "not unavailable: %s" % answer)
    expect(cluster, 0, ["group", "list", "--stale"] + here(node))
    plain, _ = expect(cluster, 0, ["why", "web/b1"] + here(node))
    check("held" in plain.out, "one vote of three, and not held: %s" % plain)


def member(agent, node_id):
    return next(m for m in agent.status().members if m.node.node_id == node_id)


class SmallDisk:
    """A file system of IMAGE_BYTES for all that is written meanwhile; None where that is not allowed."""

    def __enter__(self):
        self.folder = tempfile.mkdtemp(prefix="jury-")
        self.image, self.at = os.path.join(self.folder, "image"), os.path.join(self.folder, "disk")
        os.mkdir(self.at)
        with open(self.image, "wb") as file:
            file.truncate(IMAGE_BYTES)
        for command in (["mkfs.ext4", "-q", "-m", "0", self.image],
                        ["mount", "-o", "loop", self.image, self.at]):
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  text=True, check=False)
            if done.returncode != 0:
                print("full disk left out, %s: %s" % (command[0], done.stdout.strip()))
                return None
        tempfile.tempdir = self.at
        return self.at

    def __exit__(self, *ignored):
        tempfile.tempdir = None
        subprocess.run(["umount", self.at], stderr=subprocess.DEVNULL, check=False)
        shutil.rmtree(self.folder, ignore_errors=True)


def test(options):
    lan = Lan(HOSTS)
    with SmallDisk() as disk, LanCluster(options, lan, {A: "a", B: "b", C: "c"}) as cluster:
        cluster.make(vote_interval="%gs" % V)
        b1, b2 = (cluster.lan_backend(name, host, 80) for name, host in (("b1", "web1"),
                                                                          ("b2", "web2")))
        expect(cluster, 0, ["apply", "-f", "-"] + here(cluster.agents[B]), text=document(b1, b2))
        cut_and_ask(cluster, lan, b1, b2)
        asked_rightly_and_wrongly(cluster, lan, b1, b2)
        too_much(cluster)
        disk_full(cluster, disk, b1, b2)
        stopped_ones(cluster, lan)


run(test)
