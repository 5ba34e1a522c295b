#!/usr/bin/python3
"""Row 1.7, real: a web server that is stopped, silent, or drips its header, judged by three agents.

Each node's opinion must come no sooner than the window that the product states (S14, S15: T x U +
I x (U - 1), a probe that fails at once counting with its own duration), by the node's own clock; a
capture at the server's side must agree. The verdict must follow on every node when a majority has
made up its mind. Needs root.
"""
# alone: it measures times to the millisecond
import os
import sys
import time

LIB = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib")
sys.path.insert(0, LIB)
from cluster import Backend, check, run, wait_until  # noqa: E402
from lan import Lan, LanCluster  # noqa: E402
from prober import EARLY_S, Lines  # noqa: E402

T, I, U, H, V = 0.5, 0.5, 3, 2, 0.5
HOSTS = {"a": 1, "b": 2, "c": 3, "web": 11}
OPINION, VERDICT = 3, 1  # enum EventType
PASS, FAIL = "pass", "fail"
SLOW = 10  # a loaded machine: how many times a delay may exceed what is stated
# Between the moment that a probe counts as started and its SYN, and the two clocks' milliseconds.
CAPTURE_S = 0.1


class Dripping(Backend):
    """Answers, or sends a header one byte each 20 ms for ever."""
    drips = False

    def serve(self, connection):
        if not self.drips:
            super().serve(connection)
            return
        try:
            connection.recv(4096)
            connection.sendall(b"HTTP/1.1 200 OK\r\nX-Slow: ")
            while True:
                connection.sendall(b"x")
                time.sleep(0.02)
        except OSError:
            connection.close()


class Capture:
    """The SYNs that reach the server, by source and port."""

    def __init__(self, lan):
        self.lines = Lines(["/usr/bin/python3", os.path.join(LIB, "tcp_capture.py"), "eth0"],
                           netns=lan.namespace("web"))
        self.lines.wait(lambda lines: lines, "the capture")

    def syns(self, source, port):
        with self.lines.changed:
            lines = list(self.lines.lines)
        return [line["time"] for line in lines if line.get("flags") == "S" and
                line["src"] == source and line["dport"] == port]


def seconds_of(duration):
    return duration.seconds + duration.nanos / 1e9


def wall(event):
    return event.time.seconds + event.time.nanos / 1e9


class Case:
    """A group with one backend, watched on all nodes."""

    def __init__(self, cluster, capture, name, backend, kind):
        self.cluster, self.capture, self.name, self.backend = cluster, capture, name, backend
        check_fields = {"type": "CHECK_TYPE_" + kind, "timeout": "%gs" % T, "interval": "%gs" % I,
                        "unhealthy_threshold": U, "healthy_threshold": H}
        cluster.apply([{"group": {
            "name": name, "profile": "PROFILE_NLB", "type": "GROUP_TYPE_IP",
            "protocol": "PROTOCOL_TCP", "check": check_fields,
            "verdict": {"down": {"kind": "KIND_MAJORITY"}},
            "backends": [{"address": backend.address, "port": backend.port}]}}])

    def wait(self, state):
        self.cluster.wait_verdicts(self.name, {self.backend: state}, seconds=SLOW * 10)

    def windows(self):
        """Of failure and success for the opinion, and what the verdict may take longer."""
        answer = self.cluster.agents[1].call("GroupService/DescribeGroup",
                                               {"name": self.name})
        fail, success = answer.failure_window, answer.success_window
        return (seconds_of(fail.opinion), seconds_of(success.opinion),
                seconds_of(fail.verdict) - seconds_of(fail.opinion))

    def events(self, agent, kind, to, since):
        answer = agent.call("EventService/ListEvents", {"group": self.name, "type": kind})
        return [event for event in answer.events if event.to == to and wall(event) >= since]

    def event(self, agent, kind, to, since):
        return wait_until("%s: event %s at %s" % (self.name, to, agent.name), SLOW * 10,
                          lambda: (self.events(agent, kind, to, since) or [None])[0])

    def first_syn(self, agent, opinion, n):
        """Start of the first of the n probes that made the opinion, as the server's host saw it."""
        before = [at for at in self.capture.syns(agent.address, self.backend.port)
                  if at < wall(opinion) + 0.002]  # whole milliseconds, cut
        check(len(before) >= n, "%s: %d SYNs of %s" % (self.name, len(before), agent.name))
        return before[-n]

    def verdict_delay(self, to_opinion, to_state, since, slack):
        """From the second opinion, which makes the majority, to the last verdict."""
        agents = self.cluster.agents.values()
        opinions = sorted(wall(self.event(agent, OPINION, to_opinion, since)) for agent in agents)
        verdicts = [wall(self.event(agent, VERDICT, to_state, since)) for agent in agents]
        delay = max(verdicts) - opinions[1]
        check(delay < SLOW * slack, "%s: the verdict came %.3f s after the majority, %.3f s are "
              "stated" % (self.name, delay, slack))
        return delay

    def goes_down(self, what, reason, begin, times_out):
        upper, _, slack = self.windows()
        check(abs(upper - (T * U + I * (U - 1))) < 0.001, "the window is stated as %g s" % upper)
        stated = upper if times_out else I * (U - 1)
        since = time.time()
        begin()
        ratios = []
        for agent in self.cluster.agents.values():
            event = self.event(agent, OPINION, FAIL, since)
            check(event.reason == reason, "%s: reason %d" % (what, event.reason))
            measured = seconds_of(event.since_first_fail)
            outside = wall(event) - self.first_syn(agent, event, U)
            check(measured >= stated - EARLY_S * (U - 1), "%s, node %d: %.4f s are less than the window of %.4f s"
                  % (what, agent.id, measured, stated))
            check(outside >= stated - CAPTURE_S and measured <= SLOW * upper,
                  "%s, node %d: %.3f s, from outside %.3f s" % (what, agent.id, measured, outside))
            ratios.append("%.4f (outside %.4f)" % (measured / stated, outside / stated))
        delay = self.verdict_delay(FAIL, "unhealthy", since, slack)
        print("%s, %s: measured/stated %s of %.1f s%s; all verdicts %.0f ms after the majority, %.0f "
              "ms are stated" % (self.name, what, ", ".join(ratios), stated, "" if times_out else
                                 " + own durations", 1000 * delay, 1000 * slack))
        self.wait("unhealthy")

    def comes_back(self, what, end):
        _, _, slack = self.windows()
        stated = I * (H - 1)  # and H response times, which are not 0
        since = time.time()
        end()
        ratios = []
        for agent in self.cluster.agents.values():
            event = self.event(agent, OPINION, PASS, since)
            outside = wall(event) - self.first_syn(agent, event, H)
            check(outside >= stated - CAPTURE_S,
                  "%s, node %d: pass after %.3f s" % (what, agent.id, outside))
            ratios.append("%.3f" % outside)
        delay = self.verdict_delay(PASS, "healthy", since, slack)
        print("%s, %s ended: pass %s s after the first passing probe (stated %.1f + own durations); "
              "all verdicts %.0f ms after the majority"
              % (self.name, what, ", ".join(ratios), stated, 1000 * delay))
        self.wait("healthy")


def test(options):
    lan = Lan(HOSTS)
    with LanCluster(options, lan, {1: "a", 2: "b", 3: "c"}) as cluster:
        cluster.make(vote_interval="%gs" % V)
        backend = Dripping("b1", lan.address("web"), 80)
        cluster.backends.append(backend)

        def start():
            with lan.inside("web"):
                backend.start()

        def drip(is_on):
            backend.drips = is_on

        start()
        capture = Capture(lan)
        http = Case(cluster, capture, "by-http", backend, "HTTP")
        http.wait("healthy")
        http.goes_down("header drips", 4, lambda: drip(True), times_out=True)
        http.comes_back("header drips", lambda: drip(False))
        http.goes_down("server stopped", 3, backend.stop, times_out=False)
        http.comes_back("server stopped", start)
        http.goes_down("packets dropped", 2,
                       lambda: lan.filter("web", {"in": ["tcp dport 80 drop"]}), times_out=True)
        http.comes_back("packets dropped", lambda: lan.unfilter("web"))
        capture.lines.stop()


run(test)
