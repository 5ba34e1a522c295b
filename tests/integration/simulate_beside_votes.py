#!/usr/bin/python3
"""A simulation of a group of 1000 with a long past keeps nobody waiting: while it goes on, an agent
answers others. Its votes come by a third member without an agent, which changes its mind about all
backends at once. Judged by the longest answer to another call in the time that a simulation took.
"""
# twin: simulation-on-the-loop others waited
import os
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import jury_client  # noqa: E402
from cluster import Backend, Cluster, check, run, tcp_group, wait_until  # noqa: E402
from fake_member import FAIL, PASS, Member  # noqa: E402

N = 1000
FLIPS = 6
ROUNDS = 5
SHARE_MAX = 0.5  # of the time of a simulation; on the loop it is nearly all of it


def simulate(agent, document, outcome):
    """In a thread of its own, with a client of its own; tells when it began and ended."""
    client = agent.client()
    while True:
        began = time.monotonic()
        try:
            answer = client.call("SimulationService/SimulateGroup", {"group": document["group"]},
                                 timeout=30)
        except jury_client.CallError as error:
            if "simulated enough" not in str(error):
                outcome["error"] = error
                return
            time.sleep(0.2)  # the budget of simulations is one of time
            continue
        outcome.update(began=began, ended=time.monotonic(), answer=answer)
        return


def longest_answer(agent, document):
    """Of the calls that overlapped with a simulation, as a share of its time."""
    client, outcome, calls = agent.client(), {}, []
    thread = threading.Thread(target=simulate, args=(agent, document, outcome))
    thread.start()
    while thread.is_alive():
        began = time.monotonic()
        client.call("NodeService/GetVersion", timeout=30)
        calls.append((began, time.monotonic()))
    thread.join()
    check("error" not in outcome, "the simulation failed: %s" % outcome.get("error"))
    took = outcome["ended"] - outcome["began"]
    longest = max(min(end, outcome["ended"]) - max(begin, outcome["began"])
                  for begin, end in calls
                  if begin < outcome["ended"] and end > outcome["began"])
    print("a simulation of %d changes took %.0f ms, the longest other call in it %.0f ms" % (
        outcome["answer"].was.n_changes, 1000 * took, 1000 * longest), flush=True)
    return longest / took


def test(options):
    with Cluster(options) as cluster:
        agents = [cluster.agents[1], cluster.agents[2]]
        cluster.start(order=[1, 2])
        agents[0].call("ClusterService/InitCluster", cluster.init_request(), timeout=30)
        cluster.wait_ready([1, 2])
        backends = [Backend("b%d" % i, cluster.address(8 + i // 500), 20000 + i)
                    for i in range(N)]
        document = tcp_group("web", backends, rule="all", interval="10s", unhealthy_threshold=1)
        revision = cluster.apply([document], by=1).revision
        member = Member(agents[0], cluster.agents[3].key,
                        bytes.fromhex(agents[0].status().cluster_id), revision)
        wait_until("node 3 is heard", 20, lambda: agents[0].status().n_fresh >= 2)

        for i in range(FLIPS):
            wait_until("all verdicts follow", 30, lambda wanted=(i + 1) * N:
                       agents[0].counters()["engine_verdict_changes"] >= wanted)
            member.socket.send(member.vector([PASS if i % 2 == 0 else FAIL] * N))
        changed = tcp_group("web", backends, rule="any", interval="10s", unhealthy_threshold=1)
        shares = sorted(longest_answer(agents[0], changed) for _ in range(ROUNDS))
        check(shares[ROUNDS // 2] < SHARE_MAX,
              "others waited for %.0f %% of a simulation" % (100 * shares[ROUNDS // 2]))
        member.close()


if __name__ == "__main__":
    run(test)
