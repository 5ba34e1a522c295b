#!/usr/bin/python3
"""Round trip and loss of real probes, as `why`, `backend list` and `node metrics` tell them: a server that
leaves every third question unanswered, one that answers late, one that answers wrongly, a closed port and
one that is silent. What is lost is what got no reply at all, and nothing else. The text for Prometheus is
read by Prometheus' own client. Rows S104, 3.11.
"""
# twin: loss-all-failures wrong: lost 30
import os
import re
import socket
import sys
import threading
import time

from prometheus_client.parser import text_string_to_metric_families

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from cluster import Backend, Cluster, check, free_port, run, wait_until  # noqa: E402
from ctl import ask, here  # noqa: E402
import prometheus_text  # noqa: E402

LATE_S = 0.02
LAST = 30  # probes that the loss is of
TOO_SLOW = 3  # of them the servers here may answer after the timeout, on a loaded machine
DOCUMENT = """---
apiVersion: jury/v1
kind: Group
metadata: {name: %s}
spec:
  profile: nlb
  protocol: %s
  rule: majority
  check: {%s, timeout: 200ms, interval: 100ms}
  backends:
  - at: %s
"""
EXCHANGE = 'type: udp, udp: {method: exchange, payload: "ping", expect: "pong"}'
# name, protocol, check, lost of LAST, has it a round trip?
ROWS = [
    ("third", "udp", EXCHANGE, LAST // 3, True),
    ("late", "udp", EXCHANGE, 0, True),
    ("wrong", "udp", EXCHANGE, 0, False),
    ("closed", "tcp", "type: tcp", 0, False),
    ("closed-half", "tcp", "type: tcp, tcp: {handshake: half-open}", 0, False),
    ("open", "tcp", "type: tcp", 0, True),
    ("open-half", "tcp", "type: tcp, tcp: {handshake: half-open}", 0, True),
    ("full", "tcp", "type: tcp", LAST, False),
    ("full-half", "tcp", "type: tcp, tcp: {handshake: half-open}", LAST, False),
    ("mute", "udp", EXCHANGE, LAST, False),
]


class Server:
    """On a UDP port: answers(number of the question) is what it says, None: nothing."""

    def __init__(self, address, answers, wait_s=0):
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind((address, free_port(address)))
        self.at = "%s:%d" % self.socket.getsockname()
        threading.Thread(target=self.serve, args=(answers, wait_s), daemon=True).start()

    def serve(self, answers, wait_s):
        number = 0
        while True:
            _, sender = self.socket.recvfrom(2048)
            number += 1
            if wait_s:
                time.sleep(wait_s)  # that is what it is for
            answer = answers(number)
            if answer is not None:
                self.socket.sendto(answer, sender)


class Full:
    """A TCP port that nobody accepts on any more: the kernel drops SYNs."""

    def __init__(self, address):
        self.socket = socket.create_server((address, free_port(address)), backlog=0)
        self.at = "%s:%d" % self.socket.getsockname()
        self.waiting = []
        while True:
            try:
                self.waiting.append(socket.create_connection(self.socket.getsockname(), 0.2))
            except TimeoutError:
                return


def place(cluster):
    """Name to ADDRESS:PORT."""
    address = cluster.net + ".50"
    full, closed = Full(address), "%s:%d" % (address, free_port(address))
    cluster.full = full  # it is open for as long as the cluster is there
    listener = Backend("open", address=address).start()
    cluster.backends.append(listener)
    return {"open": listener.at, "open-half": listener.at, "full": full.at, "full-half": full.at,
            "closed": closed, "closed-half": closed, "third": Server(address, lambda number: None if number % 3 == 0 else b"pong").at,
            "late": Server(address, lambda number: b"pong", wait_s=LATE_S).at,
            "wrong": Server(address, lambda number: b"ping").at,
            "mute": Server(address, lambda number: None).at}


def path_of(agent, name, at):
    address, port = at.split(":")
    return agent.call("VerdictService/Why", {"backend": {
        "group": name, "address": address, "port": int(port)}}).probing.path


def seconds(duration):
    return duration.seconds + duration.nanos / 1e9


def is_near(name, wanted, seen):
    """The kernel answers for TCP ports, and nobody for the silent one."""
    return wanted <= seen <= wanted + (TOO_SLOW if name in ("third", "late", "wrong") else 0)


def as_metrics(cluster, agent):
    """(name, group) to value of the gauges that have one; each family once and with a type."""
    answer = ask(cluster, ["node", "metrics"] + here(agent))
    check(answer.status == 0, "no metrics: %s" % answer)
    text = prometheus_text.Text(answer.out)
    check(not text.faults, "not as it should be: %s" % text.faults)
    check(len(text.series) <= 500 + 12 * len(ROWS), "%d series" % len(text.series))
    values, names = {}, []
    for family in text_string_to_metric_families(answer.out):
        names.append(family.name)
        check(family.type in ("counter", "gauge") and family.documentation, "untold: %s" % family)
        for sample in family.samples:
            if family.type == "gauge":
                values[sample.name, sample.labels.get("verdict", sample.labels.get("group"))] = sample.value
            elif not sample.labels:
                values[sample.name] = sample.value
    check(len(names) == len(set(names)), "told twice: %s" % sorted(names))
    return values


def test(options):
    with Cluster(options, n_nodes=1) as cluster:
        places = place(cluster)
        cluster.make(vote_interval="0.2s")
        agent = cluster.agents[1]
        text = "".join(DOCUMENT % (name, protocol, how, places[name])
                       for name, protocol, how, _, _ in ROWS)
        answer = ask(cluster, ["apply", "-f", "-"] + here(agent), text=text)
        check(answer.status == 0, "not applied: %s" % answer)
        for name, _, _, lost, has_time in ROWS:
            path = wait_until("%s: %d probes" % (name, LAST), 60, lambda name=name: next(
                (path for path in [path_of(agent, name, places[name])] if path.n_probes == LAST),
                None))
            check(is_near(name, lost, path.n_lost),
                  "%s: lost %d of %d, not %d" % (name, path.n_lost, LAST, lost))
            check(path.HasField("response_time") == has_time, "%s: a round trip? %s" % (name, path))
            print("%s: lost %d of %d, round trip %s" % (
                name, path.n_lost, path.n_probes,
                "%.2f ms" % (1000 * seconds(path.response_time)) if has_time else "not known"))
        late = seconds(path_of(agent, "late", places["late"]).response_time)
        check(LATE_S <= late < 5 * LATE_S, "late: %g s" % late)

        values = as_metrics(cluster, agent)
        for name, _, _, lost, has_time in ROWS:
            ratio = values["jury_probe_loss_ratio", name]
            check(is_near(name, lost, round(ratio * LAST, 3)), "%s: loss ratio %g" % (name, ratio))
            check((("jury_probe_response_time_seconds", name) in values) == has_time,
                  "%s: the time in metrics" % name)
        check(LATE_S <= values["jury_probe_response_time_seconds", "late"] < 5 * LATE_S, "late")
        check(values["jury_probes_in_flight", None] <= len(ROWS) and
              values["jury_store_is_leader", None] == 1 and values["jury_catalog_revision", None] >= 2 and
              values["jury_group_fail_open", "mute"] == 1 and
              values["jury_group_fail_open", "third"] == 0, "gauges: %s" % values)
        check(values["jury_engine_probes_without_reply_total"] >= LAST + LAST // 3 and
              values["jury_engine_probes_replied_total"] >= 3 * LAST, "counters: %s" % values)

        why = ask(cluster, ["why", "third/" + places["third"]] + here(agent)).out
        check(re.search(r"path +round trip .* \(smoothed\), 1[0-3] of the last 30 probes got no "
                        "reply", why), why)
        rows = ask(cluster, ["backend", "list", "mute"] + here(agent)).out.splitlines()
        check("RTT" in rows[0] and "30/30" in rows[1], rows)


run(test)
