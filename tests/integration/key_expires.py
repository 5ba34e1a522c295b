#!/usr/bin/python3
"""Case A47, of keys that programs and people have: one that expires ends that access alone.

A key that is good for some seconds is used until a node refuses it; the log names whose it was and
`key list` says so. Of a key that has days left `key list` says how many. Another key, the votes and
the leader go on.
"""
import datetime
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from cluster import Cluster, KeyPair, check, run, tcp_group, wait_until  # noqa: E402
from ctl import ask, here, over  # noqa: E402

GOOD_FOR_S = 4  # and up to a second: a key's end is told in whole ones here
WITHIN_S = 2  # the agents look once a second; ten times it fails
VERDICT = 1   # enum EventType


def now():
    return datetime.datetime.now(datetime.timezone.utc)


def key(name, pair, expires):
    return {"key": {"name": name, "public_key": pair.public, "role": "ROLE_VIEWER",
                    "expires": expires.strftime("%Y-%m-%dT%H:%M:%S.000Z")}}


def test(options):
    with Cluster(options) as cluster:
        cluster.make(vote_interval="0.5s")
        backend = cluster.backend("b1")
        cluster.apply([tcp_group("web", [backend])])
        cluster.wait_verdicts("web", {backend: "healthy"})
        soon, later = (KeyPair(os.path.join(cluster.dir, name)) for name in ("soon.key", "later.key"))
        agent, leader = cluster.agents[1], cluster.leader().id
        before = {a.id: len(a.call("EventService/ListEvents", {"type": VERDICT}).events)
                  for a in cluster.agents.values()}
        end = (now() + datetime.timedelta(seconds=GOOD_FOR_S + 1)).replace(microsecond=0)
        cluster.apply([key("soon", soon, end),
                       key("later", later, now() + datetime.timedelta(days=9, hours=12))])
        show = lambda pair: ask(cluster, ["key", "list"] + over(agent, pair))  # noqa: E731
        wait_until("both keys are taken", 20, lambda: show(soon).status == 0)
        listed = show(later)
        check(listed.status == 0 and "(9 days left)" in listed.out, "days left: %s" % listed)

        refused = wait_until("the key is refused", GOOD_FOR_S + 1 + 10 * WITHIN_S, lambda: (
            lambda answer: answer.status != 0 and answer)(show(soon)))
        took = (now() - end).total_seconds()
        check(refused.status == 6, "not as one who may not: %s" % refused)
        check(0 <= took, "refused %.2f s before its end" % -took)
        for one in cluster.agents.values():
            words = ["event=key_expired", "name=soon", "key=%s..." % soon.public[:8]]
            wait_until("one line of %s with %s" % (one.name, words), 10 * WITHIN_S,
                       lambda one=one, words=words: one.count(words) == 1)
            check(one.count(["event=key_expired", "name=later"]) == 0, "later has expired")
        listed = show(later)
        check(listed.status == 0, "another key is refused: %s" % listed)
        check(listed.out.count("(expired)") == 1, "key list does not say it: %s" % listed)
        for one in cluster.agents.values():
            check(len(one.call("EventService/ListEvents", {"type": VERDICT}).events)
                  == before[one.id], "%s changed a verdict" % one.name)
            check(one.status().store.leader_id == leader, "the leader changed")
        print("refused %.2f s after its end (goal %d s)" % (took, WITHIN_S))
        print(ask(cluster, ["key", "list"] + here(agent)).out)


run(test)
