#!/usr/bin/python3
"""Callers that ask for much and read nothing: they lose answers, which is counted and told once; the
agent's memory stays within the bound, and whoever reads is answered.
"""
# twin: unread-unbounded the agent grew by
import os
import sys

import zmq

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from cluster import Cluster, check, run, wait_until  # noqa: E402

BACKENDS = 1000
CALLERS = 4
CALLS = 1000  # of each
# LIMIT_RPC_UNSENT_BYTES_ALL, and as much again for what the allocator does not give back.
MIB_MOST = 48 + 48


def resident_mib(agent):
    with open("/proc/%d/status" % agent.process.pid) as file:
        line = next(line for line in file if line.startswith("VmRSS:"))
    return int(line.split()[1]) / 1024


def test(options):
    with Cluster(options, n_nodes=1) as cluster:
        cluster.make()
        agent = cluster.agents[1]
        backends = [{"address": "10.1.%d.%d" % divmod(i, 250), "port": 80}
                    for i in range(BACKENDS)]
        cluster.apply([{"group": {"name": "large", "profile": "PROFILE_NLB",
                                  "type": "GROUP_TYPE_IP", "protocol": "PROTOCOL_TCP",
                                  "check": {"type": "CHECK_TYPE_TCP", "enabled": False},
                                  "backends": backends}}])
        with agent.client() as client:
            answer = client.call("BackendService/ListBackends",
                                 {"group": "large", "page_size": BACKENDS})
            n_bytes = answer.ByteSize()
            request, _ = client._request("BackendService/ListBackends",
                                         {"group": "large", "page_size": BACKENDS})
            envelope = client.pb.envelope.Request
        before = resident_mib(agent)
        context = zmq.Context()
        callers = []
        for _ in range(CALLERS):
            caller = context.socket(zmq.DEALER)
            caller.linger, caller.rcvhwm, caller.sndhwm = 0, 1, CALLS
            caller.connect("ipc://" + agent.socket_path)
            callers.append(caller)
        for _ in range(CALLS):
            for caller in callers:
                header = envelope(api_version=1, method="jury.v1.BackendService/ListBackends",
                                  request_id=os.urandom(16), stale=True, deadline_ms=60000)
                caller.send_multipart([b"", header.SerializeToString(),
                                       request.SerializeToString()])
        wait_until("all calls are taken", 120,
                   lambda: agent.counters()["rpc_answered"] >= CALLERS * CALLS, interval=0.2)
        after = resident_mib(agent)
        unread = agent.counters().get("mesh_answers_unread", 0)
        print("%d x %d answers of %.0f KiB: %.0f to %.0f MiB resident, %d answers dropped"
              % (CALLERS, CALLS, n_bytes / 1024, before, after, unread))
        check(after - before <= MIB_MOST, "the agent grew by %.0f MiB, allowed are %d"
              % (after - before, MIB_MOST))
        check(unread > 0, "no answer was counted as unread")
        lines = agent.count(["event=answers_unread"])
        check(lines == 1, "the loss was logged %d times, not once" % lines)
        for caller in callers:
            caller.close()
        context.term()


if __name__ == "__main__":
    run(test)
