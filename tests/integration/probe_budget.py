#!/usr/bin/python3
"""Row 3.4, a probe budget a second: an agent may begin 10 probes a second to one address, and eight checks
of that address want 32. Counted on the wire, by the kernel's time: no second has more than the budget,
a tenth and one;
each backend has its turn; none is skipped. `apply` warns with both numbers, and `node describe`,
`events` and the counters say what is delayed, and by how much.
"""
# twin: probe-budget-address more than the budget
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from cluster import Backend, Cluster, check, run, wait_until  # noqa: E402
from ctl import ask, here  # noqa: E402
from prober import LIB, Lines  # noqa: E402

BUDGET, N_BACKENDS, INTERVAL_MS = 10, 8, 250
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


def syns_to(backends, seconds):
    """When they left, of so long a time, by backend. The kernel's time: however late this script and the
    backends in it have their turns."""
    ports = {backend.port: backend for backend in backends}
    capture = Lines([sys.executable, os.path.join(LIB, "tcp_capture.py"), "--syns", "lo"])

    def syns(lines):
        return [line for line in lines if line.get("dport") in ports]

    def is_over(lines):
        seen = syns(lines)
        return seen and seen[-1]["time"] - seen[0]["time"] > seconds

    capture.wait(is_over, "SYNs of %d s" % seconds)
    found = syns(list(capture.lines))
    capture.stop()
    return {backend: [line["time"] for line in found if line["dport"] == port]
            for port, backend in ports.items()}


def busiest_second(times):
    """The most in any window of a second."""
    times = sorted(times)
    return max(sum(begin <= time < begin + 1 for time in times) for begin in times)


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


def window_of_why(cluster, agent, backend):
    answer = ask(cluster, ["why", "web/%s" % backend.at, "-o", "json"] + here(agent))
    return answer.json["probing"]["failureWindow"]


def window_of_group(cluster, agent):
    answer = ask(cluster, ["group", "describe", "web", "-o", "json"] + here(agent))
    return answer.json["delayed"]["failure"]


def test(options):
    with Cluster(options, n_nodes=1,
                 agent_options=["--probe-budget-address", str(BUDGET)]) as cluster:
        cluster.make()
        agent = cluster.agents[1]
        backends = [cluster.backend("b%d" % i) for i in range(N_BACKENDS)]
        text = GROUP % (INTERVAL_MS, ", ".join('{at: "%s"}' % b.at for b in backends))
        answer = ask(cluster, ["apply", "-f", "-"] + here(agent), text=text)
        check(answer.status == 0, answer)
        check("32 probes a second of each node to address 127.0.0.1, and the probe budget of this node "
              "is 10 for an address" in " ".join(answer.err.split()), answer)
        cluster.wait_verdicts("web", {b: "healthy" for b in backends})

        seen = syns_to(backends, COUNTED)
        busiest = busiest_second([time for times in seen.values() for time in times])
        each = [len(times) for times in seen.values()]
        # A SYN leaves a little after its start was counted: as many more as begin in 0.2 s, and in one
        # second, of an agent that has to wait for a processor, in 0.5 s.
        check(sum(each) <= BUDGET * COUNTED + BUDGET // 10 + 1 + 2,
              "%d probes in %d s: more than the budget of %d" % (sum(each), COUNTED, BUDGET))
        check(busiest <= BUDGET + BUDGET // 10 + 1 + 5,
              "%d probes in a second: more than the budget of %d" % (busiest, BUDGET))
        check(min(each) > 0 and max(each) - min(each) <= 2, "in turn: %s" % each)
        print("busiest second %d of %d, each backend %s in %d s" % (busiest, BUDGET, each, COUNTED))

        wait_until("back-pressure is an event", 10,
                   lambda: "probe-budget" in told(cluster, agent, ["events"]))
        page = told(cluster, agent, ["node", "describe"])
        print(page)
        for words in ("10 a second to one address, at most 32 wanted, of 127.0.0.1",
                      "BACK-PRESSURE: probes begin up to ", "delayed since the start"):
            check(words in page, "%r is missing in %s" % (words, page))
        counters = agent.counters()
        check(counters["probe_budget_delayed"] > 0 and counters["probe_budget_pressed"] == 1 and
              counters["probes_lost"] == 0, counters)
        # `why` told the window without the delay, and `group describe` with it.
        wait_until("why and group describe tell the same window", 10,
                   lambda: window_of_why(cluster, agent, backends[0]) ==
                   window_of_group(cluster, agent))
        # All are up all the time: the delay is shorter than what a result is good for.
        cluster.wait_verdicts("web", {b: "healthy" for b in backends})

        whole_node(options)
        text = refused(cluster, "--probe-budget-address", "0")
        check("probe-budget-address" in text and "from 10 to 10000000" in text, text)
        text = refused(cluster, "--probe-budget", "50", "--probe-budget-address", "60")
        check("60 is more than the whole probe-budget, 50" in text, text)


run(test)
