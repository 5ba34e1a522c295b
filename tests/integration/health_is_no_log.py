#!/usr/bin/python3
"""Health never goes through Raft (A43): while backends flap and nobody configures anything, the log
grows by nothing, little is written to the data directories, and events come with changes alone.

100 backends, each probed by three nodes several times a second; ten of them go down and come back all
the time. For 40 s (--seconds 600 for the case as it is written).
"""
# twin: lkg-unbounded bytes were written
# seconds: 55
import os
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from cluster import Cluster, check, run, tcp_group, wait_until  # noqa: E402

N_BACKENDS, N_FLAPPING = 100, 10
BURST = 512 * 1024  # agent/lkg_budget.h: at once, and as much again in 10 minutes
EVENT_TYPES = {1: "verdict", 2: "reachable", 3: "opinion", 4: "group"}


class DataDirectory:
    """Bytes of files that were made or changed, seen by looking often; one that is renamed is the same.
    Raft's segments are as long from the beginning as they will ever be: their index counts."""

    def __init__(self, path):
        self.path, self.seen, self.n_bytes = path, set(), 0
        self.look()
        self.n_bytes = 0

    def look(self):
        for folder, _, names in os.walk(self.path):
            for name in names:
                try:
                    info = os.stat(os.path.join(folder, name))
                except FileNotFoundError:
                    continue
                mark = (info.st_ino, info.st_mtime_ns, info.st_size)
                if mark not in self.seen and not name.startswith("open-"):
                    self.n_bytes += info.st_size
                self.seen.add(mark)


def flap(backends, is_over):
    while not is_over.wait(0.7):
        for backend in backends:
            backend.stop()
        if is_over.wait(0.7):
            return
        for backend in backends:
            backend.start()


def test(options):
    with Cluster(options, 3) as cluster:
        cluster.make()
        backends = [cluster.backend("b%d" % i) for i in range(N_BACKENDS)]
        group = tcp_group("web", backends, interval="0.2s")
        for backend in group["group"]["backends"]:
            backend["description"] = 100 * "x"  # last-known-good has them as well
        cluster.apply([group])
        cluster.wait_verdicts("web", {b: "healthy" for b in backends}, seconds=60)
        agents = list(cluster.agents.values())
        wait_until("all is applied everywhere", 20,
                   lambda: len({a.status().store.applied_index for a in agents}) == 1)
        before = {a.id: (a.status().store.last_index, a.status().store.term, a.status().revision)
                  for a in agents}
        sequence = agents[0].call("EventService/ListEvents").last_sequence
        changes = agents[0].counters()["engine_verdict_changes"]
        directories = [DataDirectory(a.data_dir) for a in agents]
        is_over = threading.Event()
        thread = threading.Thread(target=flap, args=(backends[:N_FLAPPING], is_over), daemon=True)
        thread.start()
        end = time.monotonic() + options.seconds
        while time.monotonic() < end:
            for directory in directories:
                directory.look()
            time.sleep(0.05)
        is_over.set()
        thread.join()

        n_changes = agents[0].counters()["engine_verdict_changes"] - changes
        check(n_changes >= 2 * N_FLAPPING, "only %d verdicts changed: nothing was shown" % n_changes)
        for agent, directory in zip(agents, directories):
            store = agent.status().store
            entries = store.last_index - before[agent.id][0]
            terms = store.term - before[agent.id][1]
            print("node %d: %d entries and %d terms more, %d bytes written"
                  % (agent.id, entries, terms, directory.n_bytes))
            check(entries <= terms, "%d entries in the log of node %d" % (entries, agent.id))
            check(agent.status().revision == before[agent.id][2], "another revision")
            most = BURST * (1 + options.seconds / 600) + 64 * 1024
            check(directory.n_bytes < most, "%d bytes were written, not below %d"
                  % (directory.n_bytes, most))
        events, page = [], None
        while page is None or page.events:
            page = agents[0].call("EventService/ListEvents",
                                  {"after_sequence": sequence, "page_size": 1000})
            events += page.events
            sequence = page.last_sequence
        strange = {e.type for e in events} - set(EVENT_TYPES)
        check(not strange, "events of other types: %s" % strange)
        n_verdicts = sum(e.type == 1 for e in events)
        n_changes = agents[0].counters()["engine_verdict_changes"] - changes
        print("%d verdicts changed on node 1, %d events say so" % (n_changes, n_verdicts))
        check(n_verdicts <= n_changes, "more events than changes")


run(test, seconds=40)
