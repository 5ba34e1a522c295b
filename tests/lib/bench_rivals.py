"""Who is measured by tests/bench/probe_cost.py: an agent and haproxy with the same backends and the
same interval, each on processor 0 of its own, in the namespace `near`; the backends, which count what
comes, on processor 1, in `far`."""
import contextlib
import glob
import os
import shutil
import subprocess
import tempfile

from cluster import HERE, Agent, Cluster, check
from netns import FAR_4, Cable
from prober import run

PORT = 8080
NET = "10.1"
GROUP_BACKENDS = 1000
CONFIG = os.path.join(HERE, "..", "bench", "haproxy.cfg")


def address(index):
    """Of a backend: 65,000 of them, without those that end in 0 or 255."""
    return "%s.%d.%d" % (NET, index // 250, index % 250 + 1)


def place(index):
    """(address, port); beyond 50,000 the same addresses once more, with the next port."""
    return address(index % 50000), PORT + index // 50000


class Far:
    """The backends' end. tcp: packets are answered by the driver (syn_reflector), and a prober pays
    little for its backends; else by an http server (http_counter)."""

    def __init__(self, folder, is_http, has_program=False):
        """has_program: the prober brings an XDP program of its own."""
        self.cable, self.processes = Cable(), []
        self.cable.quiet_neighbours()  # SYNs go by IP while the kernel doubts one
        run(f"ip -n {self.cable.near} route add {NET}.0.0/16 via {FAR_4}")
        run(f"ip -n {self.cable.far} route add local {NET}.0.0/16 dev lo")
        if is_http:
            self.share_out()
            command = [os.path.join(folder, "http_counter"), str(PORT)]
        else:
            self.cable.send_whole_sums(self.cable.near, "near0")
            reflector = os.path.join(folder, "syn_reflector")
            if not has_program:
                self.run(self.cable.near, [reflector, "--pass", "near0"])
            command = [reflector, "far0"]
        self.counter = self.run(self.cable.far, ["taskset", "-c", "1"] + command)

    def run(self, netns, command):
        process = subprocess.Popen(["ip", "netns", "exec", netns] + command, text=True, bufsize=1,
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        check(process.stdout.readline() == "ready\n", "%s does not start" % command)
        self.processes.append(process)
        return process

    def share_out(self):
        """What comes in is worked on by the processor of who it is for."""
        for name, link, mask in ((self.cable.near, "near0", 1), (self.cable.far, "far0", 2)):
            run_in = ["ip", "netns", "exec", name, "sh", "-c",
                      f"echo {mask} > /sys/class/net/{link}/queues/rx-0/rps_cpus"]
            subprocess.run(run_in, check=True)

    def count(self):
        self.counter.stdin.write("\n")
        return int(self.counter.stdout.readline())

    def close(self):
        for process in self.processes:
            process.stdin.close()
            process.wait(10)
        self.cable.remove()


def cpu_ns(pid):
    """User and system time by thread name, from the scheduler's own account."""
    times = {}
    for task in glob.glob(f"/proc/{pid}/task/*"):
        with contextlib.suppress(OSError):
            with open(task + "/schedstat", encoding="ascii") as file:
                ns = int(file.read().split()[0])
            with open(task + "/comm", encoding="ascii") as file:
                name = file.read().strip()
            times[name] = times.get(name, 0) + ns
    return times


def resident_bytes(pid):
    with open(f"/proc/{pid}/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class Haproxy:
    name = "haproxy"

    def __init__(self, far, _options):
        self.prefix = ["ip", "netns", "exec", far.cable.near, "taskset", "-c", "0"]
        self.dir = tempfile.mkdtemp(prefix="jury-haproxy-")
        self.process = None

    def start(self, kind, n_targets, interval_ms):
        path = os.path.join(self.dir, "haproxy.cfg")
        shutil.copy(CONFIG, path)
        with open(path, "a", encoding="ascii") as file:
            file.write("\nbackend all\n")
            if kind == "http":
                file.write("    option httpchk GET /\n")
            for index in range(n_targets):
                file.write("    server s%d %s:%d check inter %d\n"
                           % (index, *place(index), interval_ms))
        self.process = subprocess.Popen(self.prefix + ["haproxy", "-db", "-q", "-f", path],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL)

    @property
    def pid(self):
        check(self.process.poll() is None, "haproxy ended")
        return self.process.pid

    def probes(self):
        return {}

    def stop(self):
        if self.process is not None:
            self.process.terminate()
            self.process.wait(20)
        shutil.rmtree(self.dir, ignore_errors=True)


class QuietAgent(Agent):
    """Without single probes in its log."""

    def command_line(self):
        command = super().command_line()
        at = command.index("--log-level")
        return command[:at] + command[at + 2:]


class AgentAlone(Cluster):
    """A cluster of one."""

    def __init__(self, options, prefix, agent_options):
        super().__init__(options, 0)
        self.agents[1] = QuietAgent(self, 1, agent_options)
        self.agents[1].prefix = prefix


class Jury:
    name = "jury"

    def __init__(self, far, options, agent_options=()):
        self.cluster = AgentAlone(options, ["ip", "netns", "exec", far.cable.near, "taskset", "-c",
                                            "0"], agent_options)
        self.cluster.__enter__()

    def start(self, kind, n_targets, interval_ms):
        self.cluster.make()
        for first in range(0, n_targets, GROUP_BACKENDS):
            self.cluster.apply([group("g%d" % first, kind, interval_ms,
                                      range(first, min(first + GROUP_BACKENDS, n_targets)))],
                               timeout=30)

    @property
    def pid(self):
        check(self.cluster.agents[1].is_running(), "the agent ended")
        return self.cluster.agents[1].process.pid

    def probes(self):
        return self.cluster.agents[1].counters()

    def stop(self):
        self.cluster.__exit__(None, None, None)


def group(name, kind, interval_ms, indexes):
    fields = {"type": "CHECK_TYPE_HTTP" if kind == "http" else "CHECK_TYPE_TCP",
              "timeout": "5s", "interval": "%gs" % (interval_ms / 1000)}
    if kind == "http":
        fields["http"] = {"method": "METHOD_GET"}
    else:
        fields["tcp"] = {"handshake": "HANDSHAKE_HALF_OPEN" if kind == "half-open" else
                         "HANDSHAKE_FULL"}
    return {"group": {"name": name, "profile": "PROFILE_NLB", "type": "GROUP_TYPE_IP",
                      "protocol": "PROTOCOL_TCP", "check": fields,
                      "backends": [{"address": at, "port": port}
                                   for at, port in map(place, indexes)]}}
