#!/usr/bin/python3
"""Cases A02 and A11: a failure is told with the code that was seen, and where it was probed.

Three agents probe a backend at another port than its own. There the answer is 200, then 303, which
is not expected. `why`, `events` and the log name both addresses, and 303, and call it no error of a
socket; what is probed at the backend's own address is not told twice.
"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from cluster import Cluster, check, run, tcp_group, wait_until  # noqa: E402
from ctl import ask, here  # noqa: E402


def told(cluster, agent, words):
    answer = ask(cluster, words + here(agent))
    check(answer.status == 0, "exit 0 was expected of %s" % answer)
    return answer.out


def test(options):
    with Cluster(options) as cluster:
        cluster.make(vote_interval="0.5s")
        data, page = cluster.backend("data", status=503), cluster.backend("page")
        http = {"type": "CHECK_TYPE_HTTP", "http": {"path": "/", "expect": [
            {"first": 200, "last": 299}, {"first": 302, "last": 302}]}}
        cluster.apply([tcp_group("web", [data], port=page.port, **http),
                       tcp_group("own", [page], **http)])
        for name, backend in (("web", data), ("own", page)):
            cluster.wait_verdicts(name, {backend: "healthy"})
        check(data.n_requests == 0, "the backend's own port was probed")
        page.status = 303
        for name, backend in (("web", data), ("own", page)):
            cluster.wait_verdicts(name, {backend: "unhealthy"})
        for agent in cluster.agents.values():
            why = told(cluster, agent, ["why", "web/" + data.at])
            for text in ("backend      %s\n" % data.at, "probed       %s by http" % page.at,
                         "HTTP_CODE_NOT_MATCH (303)"):
                check(text in why, "no %r in %s" % (text, why))
            events = told(cluster, agent, ["events", "--type", "verdict"])
            for text in ("web %s (probed at %s) is unhealthy, was healthy" % (data.at, page.at),
                         "own %s is unhealthy, was healthy" % page.at,
                         "HTTP_CODE_NOT_MATCH (303)"):
                check(text in events, "no %r in %s" % (text, events))
            for words in (["group=web", "backend=%s probed=%s " % (data.at, page.at)],
                          ["group=own", "backend=%s from=" % page.at]):
                words += ["verdict_changed", "to=unhealthy", "http_status=303"]
                wait_until("one line of the log of %s with %s" % (agent.name, words), 10,
                           lambda agent=agent, words=words: agent.count(words) == 1)
        check(data.n_requests == 0, "the backend's own port was probed")
        print([line for line in cluster.agents[1].text().splitlines() if "to=unhealthy" in line][0])


run(test)
