#!/usr/bin/python3
"""Bad starts of a real agent: each ends in one clear sentence and the right exit code, and leaves the
data directory as it was, byte by byte (row 1.17)."""
# twin: open-waits not within 20 s: the agent starts with a FIFO at store/identity
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from cluster import Cluster, KeyPair, check, run, wait_until  # noqa: E402

NOBODY = 65534


def digest(directory):
    """Names, modes and content of everything below a directory."""
    found = hashlib.sha256()
    for path, names, files in sorted(os.walk(directory)):
        for name in sorted(names + files):
            full = os.path.join(path, name)
            found.update(("%s %o\n" % (full, os.lstat(full).st_mode)).encode())
            if os.path.isfile(full):
                with open(full, "rb") as file:
                    found.update(file.read())
    return found.hexdigest()


class Table:
    """One directory in which each row changes one thing of a good command."""

    def __init__(self, options, cluster):
        self.agent, self.bin = cluster.agents[1], os.path.abspath(options.bin)
        self.dir, self.n_rows = cluster.dir, 0

    def command(self, **changes):
        """The agent's own command line; changes: option to value, None leaves it out."""
        words = self.agent.command_line()
        command, options = words[:1], dict(zip(words[1::2], words[2::2]))
        options.pop("--trust", None)
        for name, value in changes.items():
            options["--" + name.replace("_", "-")] = value
        for name, value in options.items():
            if value is not None:
                command += [name, value]
        return command

    def row(self, what, status, sentence, command, data_dir=None, env=None, user=None):
        """Runs it; the sentence's words must stand in what it printed, in one line."""
        data_dir = data_dir or self.agent.data_dir
        before = digest(data_dir) if os.path.isdir(data_dir) else None
        prepare = None
        if user is not None:
            def prepare():
                os.setgid(user)
                os.setuid(user)
        try:
            done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True, timeout=20, check=False,
                                  env=dict(os.environ, **(env or {})), preexec_fn=prepare)
        except subprocess.TimeoutExpired as error:
            check(False, "%s: the agent did not end: %s" % (what, error.output))
        lines = [line for line in done.stdout.splitlines() if line.startswith("jury-agent: ")]
        check(done.returncode == status, "%s: exit code %d, not %d: %s"
              % (what, done.returncode, status, done.stdout))
        check(len(lines) == 1 and sentence in lines[0], "%s: not the sentence \"%s\": %s"
              % (what, sentence, done.stdout))
        if before is not None:
            check(digest(data_dir) == before, "%s: the data directory changed" % what)
        self.n_rows += 1
        print("%d  %-34s %s" % (status, what, lines[0][len("jury-agent: "):]))

    def fifo(self, name):
        path = os.path.join(self.dir, name)
        os.mkfifo(path, 0o600)
        return path

    def file(self, name, text, mode=0o600):
        path = os.path.join(self.dir, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(path, mode)
        return path


def options_and_file(table):
    table.row("unknown flag", 2, "unknown option --data-dirr; did you mean \"data-dir\"?",
              table.command() + ["--data-dirr", "x"])
    table.row("a word too many", 2, "unexpected argument \"start\"", table.command() + ["start"])
    table.row("value without unit", 2, "\"5\" is not a time", table.command(election_timeout="5"))
    table.row("value out of range", 2, "must be a time from 100ms to 1m",
              table.command(election_timeout="2h"))
    table.row("address without port", 2, "has no port", table.command(mesh_listen="127.0.0.1"))
    table.row("IPv6 without brackets", 2, "is ambiguous", table.command(mesh_listen="::1:7400"))
    table.row("two options that do not fit", 3, "must be at most a quarter of election-timeout",
              table.command(election_timeout="100ms", heartbeat="50ms"))
    table.row("XDP for what no link sends", 3, "half-open-receive: \"xdp\" is for probes that are sent by "
              "the link", table.command(half_open_send="ip", half_open_receive="xdp"))
    table.row("no such file", 3, "No such file or directory", table.command(config="/nowhere"))
    table.row("wrong line in the file", 3, "line 2: unknown option \"log-levle\"; did you mean "
              "\"log-level\"?",
              table.command(config=table.file("a.conf", "# mine\nlog-levle: debug\n")))
    table.row("not a file of options", 3, "is not of the form name: value",
              table.command(config=table.file("b.conf", "{\"data-dir\"}\n")))
    table.row("FIFO for the file", 3, "not a regular file",
              table.command(config=table.fifo("fifo.conf")))
    table.row("wrong environment", 3, "environment JURY_HEARTBEAT", table.command(),
              env={"JURY_HEARTBEAT": "soon"})
    table.row("bad trust", 3, "must be ID=KEY", table.command(trust="two"))


def keys(table):
    table.row("no key", 3, "cannot read the key file", table.command(key_file="/nowhere/node.key"))
    path = table.file("open.key", "")
    shutil.copyfile(table.agent.key.path, path)
    os.chmod(path, 0o644)
    table.row("key readable by others", 3, "can be read by others (mode 0644): run chmod 600",
              table.command(key_file=path))
    table.row("garbage for a key", 3, "this is not a line of a key file",
              table.command(key_file=table.file("garbage.key", "-----BEGIN\n")))
    table.row("public key only", 3, "holds a public key only",
              table.command(key_file=table.file("public.key", "jury-key 1\npublic %s\n"
                                                % table.agent.key.public)))
    table.row("directory for a key", 3, "not a regular file", table.command(key_file=table.dir))
    table.row("FIFO for a key", 3, "not a regular file",
              table.command(key_file=table.fifo("fifo.key")))
    if os.geteuid() == 0:
        os.chmod(table.dir, 0o755)
        table.row("key of another user", 3, "Permission denied", table.command(), user=NOBODY)


def sockets(table, cluster):
    other = cluster.agents[2]
    other.start()
    wait_until("agent 2 is there", 10, lambda: other.call("NodeService/GetVersion"))
    host = other.address
    table.row("busy mesh port", 3, "in use by another process",
              table.command(mesh_listen="%s:%d" % (host, other.mesh_port)))
    table.row("busy raft port", 3, "in use by another process",
              table.command(raft_listen="%s:%d" % (host, other.raft_port)))
    table.row("address of another machine", 3, "this machine does not have that address",
              table.command(mesh_listen="192.0.2.1:7400"))
    table.row("run directory of another agent", 3, "in use by another agent (process %d)"
              % other.process.pid, table.command(run_dir=other.run_dir))
    table.row("data directory of another agent", 3, "another agent is using it",
              table.command(data_dir=other.data_dir, key_file=other.key.path, node_id="2"),
              data_dir=other.data_dir)
    other.stop()


def directories(table, cluster):
    table.row("no data directory", 3, "/nowhere/data", table.command(data_dir="/nowhere/data"))
    table.row("relative data directory", 3, "must be an absolute path",
              table.command(data_dir="data"))
    table.row("file for a data directory", 3, "not a directory",
              table.command(data_dir=table.file("a-file", "x")))
    memory = tempfile.mkdtemp(dir="/dev/shm")
    try:
        table.row("data directory in memory", 3, "memory", table.command(data_dir=memory),
                  data_dir=memory)
    finally:
        os.rmdir(memory)
    open_dir = os.path.join(table.dir, "open-run")
    os.mkdir(open_dir)
    os.chmod(open_dir, 0o777)
    table.row("run directory open to all", 3, "writable by everybody",
              table.command(run_dir=open_dir))
    # The data directory of a cluster, under another key and under another id.
    node = cluster.agents[3]
    node.start()
    wait_until("agent 3 is there", 10, lambda: node.call("NodeService/GetVersion"))
    node.call("ClusterService/InitCluster", {"members": [node.member()]}, timeout=20)
    wait_until("agent 3 has its cluster", 10, lambda: node.status().revision >= 1)
    node.stop()
    stranger = KeyPair(os.path.join(table.dir, "stranger.key"))
    table.row("data directory of another key", 3, "key",
              table.command(data_dir=node.data_dir, key_file=stranger.path, node_id="3"),
              data_dir=node.data_dir)
    table.row("data directory of another node", 3, "node 3",
              table.command(data_dir=node.data_dir, key_file=node.key.path, node_id="1"),
              data_dir=node.data_dir)
    no_file(node)
    check(node.start().is_running(), "agent 3 does not run")
    wait_until("agent 3 still has its cluster", 10, lambda: node.status().revision >= 1)
    node.stop()


# Where a FIFO lies instead of a file of the data directory, to what must be said of it.
STORE = "event=store_state state=needs_operator"
NO_FILES = {"store/identity": STORE, "store/epoch": STORE, "store/raft/metadata1": STORE,
            "LOCK": STORE, "store/init": STORE, "store/members": None, "lkg": "event=last_known_good_unusable"}


def no_file(node):
    """A FIFO at the name of a file has no end to read. Damage, as any other: the agent is there,
    names the file and waits for somebody."""
    for name, said in NO_FILES.items():
        path = os.path.join(node.data_dir, name)
        aside = os.path.join(node.dir, "aside")
        if os.path.exists(path):
            os.rename(path, aside)
        os.mkfifo(path, 0o600)
        sentence = "%s: not a regular file" % path
        node.start()
        wait_until("the agent starts with a FIFO at " + name, 20,
                   lambda: node.call("NodeService/GetVersion"))
        if said:
            wait_until("the agent names " + name, 20, lambda: node.count([said, sentence]))
        check(node.stop() == 0, "with a FIFO at %s the agent did not stop with 0" % name)
        os.unlink(path)
        if os.path.exists(aside):
            os.rename(aside, path)
        print("-  FIFO at %-27s %s" % (name, "said" if said else "passed over"))


def good_ones(table):
    """The same command without a change is good, and --check-config says so and changes nothing."""
    before = digest(table.agent.data_dir)
    done = subprocess.run(table.command() + ["--check-config"], stdout=subprocess.PIPE, text=True,
                          timeout=20, check=False)
    check(done.returncode == 0 and "the configuration is valid" in done.stdout,
          "--check-config: %d: %s" % (done.returncode, done.stdout))
    check(digest(table.agent.data_dir) == before, "--check-config changed the data directory")
    done = subprocess.run(table.command() + ["--print-config"], stdout=subprocess.PIPE, text=True,
                          timeout=20, check=False)
    check(done.returncode == 0 and "data-dir: %s  # flag --data-dir" % table.agent.data_dir
          in done.stdout, "--print-config: %s" % done.stdout)
    # What it prints can be read back.
    path = table.file("printed.conf", done.stdout)
    again = subprocess.run([table.command()[0], "--config", path, "--print-config"],
                           stdout=subprocess.PIPE, text=True, timeout=20, check=False)
    lines = [line.split("  # ")[0] for line in done.stdout.splitlines()]
    check(again.returncode == 0 and lines == [line.split("  # ")[0] for line in
                                              again.stdout.splitlines()],
          "--print-config cannot be read back: %s" % again.stdout)
    for flag in ("--help", "--version", "--print-example"):
        done = subprocess.run([table.command()[0], flag], stdout=subprocess.PIPE, timeout=20,
                              check=False)
        check(done.returncode == 0 and done.stdout, "%s does not work" % flag)


CLOCK = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <time.h>
int clock_gettime(clockid_t id, struct timespec *now)
{
    int (*real)(clockid_t, struct timespec *) =
        (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int rc = real(id, now);
    if (id == CLOCK_REALTIME) {
        now->tv_sec = 1000000;
    }
    return rc;
}
"""


def clock_far_off(table, cluster):
    """No reason to stop: votes and verdicts do not use it. It is said, and the agent runs."""
    source = table.file("clock.c", CLOCK)
    library = os.path.join(table.dir, "clock.so")
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    agent = cluster.agents[1]
    agent.start(env={"LD_PRELOAD": library})
    wait_until("the agent says that the clock is far off", 10,
               lambda: agent.count(["event=clock_far_off"]) == 1)
    wait_until("agent 1 is there", 10, lambda: agent.call("NodeService/GetVersion"))
    check(agent.stop() == 0, "the agent with a clock far off did not stop with 0")
    print("-  clock far off                      a warning, the agent runs")


def test(options):
    with Cluster(options) as cluster:
        table = Table(options, cluster)
        options_and_file(table)
        keys(table)
        sockets(table, cluster)
        directories(table, cluster)
        good_ones(table)
        clock_far_off(table, cluster)
        check(table.n_rows >= 25, "only %d rows" % table.n_rows)
        print("%d bad starts, each with its sentence and exit code" % table.n_rows)


run(test)
