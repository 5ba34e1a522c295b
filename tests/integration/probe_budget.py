#!/usr/bin/python3
"""Row 3.4, a probe budget a second: an agent may begin 10 probes a second to one address, and eight checks
of that address want 16. Counted at the backends: no second has more than the budget, a tenth and one;
each backend has its turn; none is skipped. `apply` warns with both numbers, and `node describe`,
`events` and the counters say what is delayed, and by how much.
"""
# twin: probe-budget-address more than the budget
import os
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from cluster import Backend, Cluster, check, run, wait_until  # noqa: E402
from ctl import ask, here  # noqa: E402

BUDGET, N_BACKENDS, INTERVAL_MS = 10, 8, 500
COUNTED = 3  # seconds
GROUP = """---
apiVersion: jury/v1
kind: Group
metadata: {name: web}
spec:
  profile: nlb
  check: {type: http, timeout: 1s, interval: %dms, http: {path: /}}
  backends: [%s]
"""


def told(cluster, agent, words):
    answer = ask(cluster, words + here(agent))
    check(answer.status == 0, "exit 0 was expected of %s" % answer)
    return answer.out


def refused(cluster, *options):
    done = subprocess.run([os.path.join(cluster.bin, "jury-agent"), "--check-config", *options],
                          capture_output=True, text=True, check=False)
    check(done.returncode != 0, "%s is taken: %s" % (options, done.stdout + done.stderr))
    return done.stdout + done.stderr


class Sampler:
    """When requests came, by their sum: looked at often enough to see each second by itself."""

    def __init__(self, backends):
        self.samples, self.backends = [], backends

    def run(self, seconds):
        begin = time.monotonic()
        while time.monotonic() - begin < seconds:
            self.samples.append((time.monotonic(), sum(b.n_requests for b in self.backends)))
            threading.Event().wait(0.02)

    def busiest(self):
        """The most in any window of at most a second between two looks."""
        most = 0
        for at, (when, n) in enumerate(self.samples):
            later = [m for t, m in self.samples[at:] if t - when <= 1]
            most = max(most, later[-1] - n)
        return most


def whole_node(options):
    """The node's budget, with each backend at an address of its own: it is told just as well."""
    with Cluster(options, n_nodes=1, agent_options=["--probe-budget", str(BUDGET),
                                                    "--probe-budget-address", str(BUDGET)]) as cluster:
        cluster.make()
        agent = cluster.agents[1]
        backends = [Backend("b%d" % i, address="127.0.1.%d" % (i + 1)).start()
                    for i in range(N_BACKENDS)]
        cluster.backends += backends
        text = GROUP % (INTERVAL_MS, ", ".join('{at: "%s"}' % b.at for b in backends))
        answer = ask(cluster, ["apply", "-f", "-"] + here(agent), text=text)
        check(answer.status == 0, answer)
        wait_until("back-pressure of the node is an event", 20,
                   lambda: "probe-budget" in told(cluster, agent, ["events"]))
        check("BACK-PRESSURE: probes begin up to " in told(cluster, agent, ["node", "describe"]),
              told(cluster, agent, ["node", "describe"]))
        counters = agent.counters()
        check(counters["probe_budget_delayed"] > 0 and counters["probe_budget_pressed"] == 1, counters)


def test(options):
    with Cluster(options, n_nodes=1,
                 agent_options=["--probe-budget-address", str(BUDGET)]) as cluster:
        cluster.make()
        agent = cluster.agents[1]
        backends = [cluster.backend("b%d" % i) for i in range(N_BACKENDS)]
        text = GROUP % (INTERVAL_MS, ", ".join('{at: "%s"}' % b.at for b in backends))
        answer = ask(cluster, ["apply", "-f", "-"] + here(agent), text=text)
        check(answer.status == 0, answer)
        check("16 probes a second of each node to address 127.0.0.1, and the probe budget of this node "
              "is 10 for an address" in " ".join(answer.err.split()), answer)
        cluster.wait_verdicts("web", {b: "healthy" for b in backends})

        before = [b.n_requests for b in backends]
        sampler = Sampler(backends)
        sampler.run(COUNTED)
        busiest = sampler.busiest()
        # A request is seen a little after its probe began: as many more as begin in 0.2 s.
        check(busiest <= BUDGET + BUDGET // 10 + 1 + 2,
              "%d probes in a second: more than the budget of %d" % (busiest, BUDGET))
        each = [b.n_requests - n for b, n in zip(backends, before)]
        check(min(each) > 0 and max(each) - min(each) <= 2, "in turn: %s" % each)
        print("busiest second %d of %d, each backend %s in %d s" % (busiest, BUDGET, each, COUNTED))

        wait_until("back-pressure is an event", 10,
                   lambda: "probe-budget" in told(cluster, agent, ["events"]))
        page = told(cluster, agent, ["node", "describe"])
        print(page)
        for words in ("10 a second to one address, at most 16 wanted, of 127.0.0.1",
                      "BACK-PRESSURE: probes begin up to ", "delayed since the start"):
            check(words in page, "%r is missing in %s" % (words, page))
        counters = agent.counters()
        check(counters["probe_budget_delayed"] > 0 and counters["probe_budget_pressed"] == 1 and
              counters["probes_lost"] == 0, counters)
        # All are up all the time: the delay is shorter than what a result is good for.
        cluster.wait_verdicts("web", {b: "healthy" for b in backends})

        whole_node(options)
        text = refused(cluster, "--probe-budget-address", "0")
        check("probe-budget-address" in text and "from 10 to 10000000" in text, text)
        text = refused(cluster, "--probe-budget", "50", "--probe-budget-address", "60")
        check("60 is more than the whole probe-budget, 50" in text, text)


run(test)
