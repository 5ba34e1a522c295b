"""Drives store_node processes: start, kill, pause, ask; used by the tests beside this file."""
import argparse
import json
import os
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
VOTER, STANDBY, SPARE = 1, 2, 3
WAITING, RUNNING, FAILED, NEEDS_OPERATOR = 2, 3, 4, 5
FOLLOWER, CANDIDATE, LEADER = 1, 2, 3
PEER_WAITING, PEER_OK, PEER_WIPED, PEER_OTHER = 2, 3, 4, 5
PEER_RESTORED = 7


def arguments(**more):
    """--bin and the test's own options (name=default, a number)."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", default=os.path.join(ROOT, "build", "dev", "bin"))
    for name, value in more.items():
        parser.add_argument("--" + name, type=type(value), default=value)
    return parser.parse_args()


def binary():
    return os.path.join(arguments_of_this_run.bin, "store_node")


arguments_of_this_run = argparse.Namespace(bin=os.path.join(ROOT, "build", "dev", "bin"))


class Failure(Exception):
    pass


def check(condition, sentence):
    if not condition:
        raise Failure(sentence)


def wait_until(what, seconds, condition):
    """Polls a condition that talks to processes; the deadline is generous, not a measure."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise Failure("not within %g s: %s" % (seconds, what))
        time.sleep(0.02)


class Node:
    """One process, over all its lives in one directory."""

    def __init__(self, cluster, node_id, options=()):
        self.cluster = cluster
        self.id = node_id
        self.dir = os.path.join(cluster.dir, "node%d" % node_id)
        self.options = list(options)
        self.port = 0
        self.process = None
        self.on_done = None
        self.log = os.path.join(cluster.dir, "node%d.log" % node_id)
        os.makedirs(self.dir, exist_ok=True)

    def start(self, strace=(), env=None):
        check(self.process is None, "node %d runs already" % self.id)
        words = [binary(), "--id", str(self.id), "--dir", self.dir, "--port", str(self.port)]
        for other in self.cluster.trusted:
            words += ["--trust", str(other)]
        words += self.cluster.options + self.options
        env = dict(env or {})
        if strace:
            env["ASAN_OPTIONS"] = "detect_leaks=0"  # that does not work beside another tracer
            words = ["strace", "-f", "-qq", "-o", "/dev/null"] + list(strace) + words
        self.lines = queue.Queue()
        self.started = False
        self.process = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1,
            stderr=open(self.log, "a"), env=dict(os.environ, **env), start_new_session=True)
        self.reader = threading.Thread(target=self._read, args=(self.process, self.lines), daemon=True)
        self.reader.start()
        return self

    def _read(self, process, lines):
        for line in process.stdout:
            try:
                event = json.loads(line)
            except ValueError:
                continue
            if event["ev"] == "started":
                self.port = event["port"]
                self.started = True
            elif event["ev"] == "done" and self.on_done is not None:
                self.on_done(self, event)
            else:
                lines.put(event)

    def wait_started(self):
        wait_until("node %d prints its port" % self.id, 20,
                   lambda: self.started or self.process.poll() is not None)
        return self

    def send(self, text):
        try:
            self.process.stdin.write(text + "\n")
            self.process.stdin.flush()
            return True
        except (OSError, ValueError, AttributeError):
            return False

    def ask(self, text, kind, seconds=20):
        """Send a line and return the first event of that kind; None when the process ends."""
        process, lines = self.process, self.lines
        if process is None or not self.send(text):
            return None
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            try:
                event = lines.get(timeout=0.05)
            except queue.Empty:
                if process.poll() is not None:
                    return None
                continue
            if event["ev"] == kind:
                return event
        return None

    def status(self):
        return self.ask("status", "status")

    def request(self, text, seconds=20):
        """verb without its cookie, e.g. `append {} 7`."""
        cookie = self.cluster.next_cookie()
        event = self.ask(text.format(cookie), "done", seconds)
        while event is not None and event["cookie"] != cookie:
            event = self.lines.get(timeout=seconds)
        return event

    def pids(self):
        """The node itself below strace, if there is one."""
        children = subprocess.run(["pgrep", "-P", str(self.process.pid)], capture_output=True,
                                  text=True).stdout.split()
        return [int(pid) for pid in children] or [self.process.pid]

    def signal(self, number):
        for pid in self.pids():
            os.kill(pid, number)

    def kill(self):
        if self.process is not None:
            try:
                self.signal(signal.SIGKILL)
            except ProcessLookupError:
                pass
            return self.wait()
        return None

    def wait(self, seconds=30):
        code = self.process.wait(timeout=seconds)
        self.reader.join(timeout=5)
        self.process = None
        return code

    def stop(self, codes=(0,)):
        self.send("quit")
        code = self.wait()
        check(code in codes, "node %d ended with %d when it was told to stop" % (self.id, code))
        return code

    def is_alive(self):
        return self.process is not None and self.process.poll() is None

    def dump(self):
        path = os.path.join(self.cluster.dir, "dump%d" % self.id)
        check(self.ask("dump " + path, "dumped") is not None, "node %d cannot be dumped" % self.id)
        with open(path) as file:
            return [line.split() for line in file]


class Cluster:
    def __init__(self, n_nodes=3, options=(), parent=None, n_more=0, calm=True):
        self.dir = tempfile.mkdtemp(prefix="jury-store-", dir=parent)
        # Where time is not the question, a loaded machine is not to cost leaders their office.
        self.options = (["--election", "1000", "--heartbeat", "100"] if calm else []) + list(options)
        self.trusted = list(range(1, n_nodes + n_more + 1))
        self.cookie = 0
        self.lock = threading.Lock()
        self.nodes = {i: Node(self, i) for i in range(1, n_nodes + 1)}
        self.name = "c%d" % os.getpid()

    def next_cookie(self):
        with self.lock:
            self.cookie += 1
            return self.cookie

    def add(self, node_id, options=()):
        self.nodes[node_id] = Node(self, node_id, options)
        return self.nodes[node_id]

    def members_text(self, ids=None):
        return " ".join("%d:%d:%d" % (n.id, VOTER, n.port) for n in self.nodes.values()
                        if ids is None or n.id in ids)

    def start_all(self, **kwargs):
        for node in self.nodes.values():
            node.start(**kwargs)
        for node in self.nodes.values():
            node.wait_started()

    def init(self, at=1, seconds=30):
        node = self.nodes[at]
        wait_until("node %d waits" % at, 10, lambda: node.status()["state"] == WAITING)
        event = node.request("init {} %s %s" % (self.name, self.members_text()), seconds)
        check(event is not None and event["outcome"] == "done", "init failed: %r" % (event,))
        return event

    def leader(self, seconds=20):
        """The ready leader that a majority of the live nodes knows."""
        def find():
            for node in list(self.nodes.values()):
                if not node.is_alive():
                    continue
                status = node.status()
                if status and status["raft"] == LEADER and status["ready"]:
                    return node
            return None
        return wait_until("there is a leader", seconds, find)

    def settle(self, seconds=30, ids=None):
        """All live nodes have applied the same."""
        def same():
            views = [n.status() for n in self.nodes.values()
                     if n.is_alive() and (ids is None or n.id in ids)]
            if not views or any(v is None for v in views):
                return False
            return len({(v["revision"], v["hash"]) for v in views}) == 1 and \
                all(v["applied"] == v["last"] for v in views)
        wait_until("all nodes have applied the same", seconds, same)

    def wait_voters(self, ids, seconds=20):
        def all_voters():
            status = self.leader().status()
            return status and all(status["peers"].get(str(i), {}).get("role") == VOTER
                                  for i in ids if i != status["node"])
        wait_until("nodes %s are voters" % sorted(ids), seconds, all_voters)

    def up(self):
        """Started, made, settled."""
        self.start_all()
        self.init()
        self.wait_voters(self.nodes)
        return self

    def fill(self, n, padding=0):
        """Appends until n were acknowledged; 16 under way at a time. A machine under load may cost the
        leader its office: what was under way then does not count."""
        left, tries = n, 0
        while left > 0:
            check(tries < 20, "%d of %d appends are still not acknowledged" % (left, n))
            tries += 1
            left -= self._fill_at(self.leader(), left, padding)

    def _fill_at(self, node, n, padding):
        room = threading.Semaphore(16)
        outcomes = []

        def on_done(_, event):
            outcomes.append(event["outcome"])
            room.release()
        node.on_done = on_done
        for _ in range(n):
            check(room.acquire(timeout=60), "an append was not answered within 60 s")
            if set(outcomes) & {"not_leader", "unknown"}:
                room.release()
                break
            node.send("append %d %d %d" % (self.next_cookie(), self.next_cookie(), padding))
        for _ in range(16):
            check(room.acquire(timeout=60), "an append was not answered within 60 s")
        node.on_done = None
        bad = set(outcomes) - {"done", "not_leader", "unknown"}
        check(not bad, "append ended with %s" % bad)
        return outcomes.count("done")

    def close(self, keep=False):
        for node in self.nodes.values():
            if node.process is not None:
                node.kill()
        if keep:
            print("kept: " + self.dir)
        else:
            shutil.rmtree(self.dir, ignore_errors=True)

    def logs(self):
        if not os.path.exists(self.dir):
            return
        for node in self.nodes.values():
            if os.path.exists(node.log):
                print("--- node %d" % node.id)
                with open(node.log) as file:
                    print("".join(file.readlines()[-40:]))


def each_by_itself(make, tests):
    """One after the other: two clusters of the same keys must not meet at a port used twice."""
    for test in tests:
        made = []

        def remember(*args, made=made, **kwargs):
            made.append(make(*args, **kwargs))
            return made[-1]
        test(remember)
        for cluster in made:
            cluster.close()


def run(test, **options):
    """Run a test function with clusters it makes by `make`; print and exit 0 or 1."""
    made = []
    arguments_of_this_run.__dict__.update(arguments(**options).__dict__)

    def make(*a, **k):
        made.append(Cluster(*a, **k))
        return made[-1]
    begin = time.monotonic()
    try:
        test(make, arguments_of_this_run)
    except Failure as failure:
        print("FAILED: %s" % failure)
        for cluster in made:
            cluster.logs()
        code = 1
    else:
        print("passed in %.1f s" % (time.monotonic() - begin))
        code = 0
    finally:
        for cluster in made:
            cluster.close(keep="JURY_KEEP" in os.environ)
    sys.exit(code)
