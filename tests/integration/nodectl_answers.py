#!/usr/bin/python3
"""nodectl as a process, asking an agent that is made of Python: every exit status, what is asked,
and that stdout is whole or empty and JSON is valid in success and in error (case A45). What it makes
of documents: nodectl_changes.py."""
# twin: ctl-half-printed half printed
# twin: output-error-forgotten exit 0 although the output is lost
import json
import os
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from cluster import wait_until  # noqa: E402
from fake_agent import SILENCE, Refusal  # noqa: E402
from nodectl_run import EXAMPLE, M, Run, agent_with, check, refuse, run_all  # noqa: E402
import prometheus_text  # noqa: E402


def status_answer(health, n_peers=0):
    answer = M["GetStatusResponse"](health=health, node_id=1, revision=42, cluster_id="ab" * 16)
    for node in range(2, 2 + n_peers):
        member = answer.members.add()
        member.node.node_id = node
        endpoint = member.node.endpoints.add(host=f"10.0.0.{node}", mesh_port=7400, raft_port=7401)
        assert endpoint
        member.raft_age.seconds = 100
    return answer


# --- exit statuses ---

def answers_that_are_no_exit_with_1():
    """1 is the answer "no" and nothing else; the output is whole."""
    for health, status, word in ((1, 0, "healthy"), (2, 1, "degraded"), (3, 1, "unavailable"),
                                 (0, 1, "unknown")):
        with agent_with(lambda *_, h=health: status_answer(h)) as agent:
            Run(agent, "status").expect(status, out=f"is {word}, seen from node 1")
            run = Run(agent, "status", "-o", "json").expect(status)
            check(run.json(run.out).get("nodeId") == "1", "status as JSON names the node")
            check(run.err == "", "nothing is on stderr when the answer is no")
    for is_ready, status in ((True, 0), (False, 1)):
        with agent_with(lambda *_, r=is_ready: M["CheckReadyResponse"](is_ready=r)) as agent:
            Run(agent, "ready").expect(status, out="ready" if is_ready else "not ready")


def each_refusal_has_its_exit_status():
    rows = [
        (3, "INVALID_VALUE", 3, "CODE_INVALID_ARGUMENT"),
        (12, "NOT_AVAILABLE_YET", 3, "CODE_UNIMPLEMENTED"),
        (7, "NOT_ALLOWED", 6, "CODE_PERMISSION_DENIED"),
        (16, "NOT_AUTHENTICATED", 6, "CODE_UNAUTHENTICATED"),
        (5, "NOT_FOUND", 7, "CODE_NOT_FOUND"),
        (10, "REVISION_CONFLICT", 8, "CODE_ABORTED"),
        (6, "ALREADY_EXISTS", 8, "CODE_ALREADY_EXISTS"),
        (9, "FORCE_NEEDED", 8, "CODE_FAILED_PRECONDITION"),
        (14, "NO_LEADER", 9, "CODE_UNAVAILABLE"),
        (8, "LIMIT_REACHED", 10, "CODE_RESOURCE_EXHAUSTED"),
        (13, "INTERNAL", 10, "CODE_INTERNAL"),
        (15, "DAMAGED", 10, "CODE_DATA_LOSS"),
    ]
    for code, reason, status, word in rows:
        message = f"the sentence of {reason}"
        with agent_with(refuse(code, reason, message, [("count", "3")])) as agent:
            Run(agent, "apply", "-f", EXAMPLE).expect(status, err=f"{message}\n")
            run = Run(agent, "apply", "-f", EXAMPLE, "-o", "json").expect(status)
            error = run.json(run.err)
            check(error.get("code") == word, f"{reason}: code is {error.get('code')}")
            check(error.get("reason") == reason, f"{reason}: reason is {error.get('reason')}")
            said = "nothing was changed: " + message if reason == "NO_LEADER" else message
            check(error.get("message") == said, f"{reason}: message is {error.get('message')}")
            check(error.get("metadata", {}).get("count") == "3", f"{reason}: metadata is kept")
            check(len(error.get("requestId", "")) == 32, f"{reason}: the request id is told")


def nobody_there_exits_with_4():
    with tempfile.TemporaryDirectory() as folder:
        Run(None, "status", "--socket", f"{folder}/agent.sock").expect(4, err="no agent listens at")
        run = Run(None, "status", "-o", "json", "--socket", f"{folder}/agent.sock").expect(4)
        check(run.json(run.err).get("reason") == "UNREACHABLE", "unreachable is told as JSON")


def silence_exits_with_5():
    with agent_with(lambda *_: SILENCE) as agent:
        Run(agent, "status", "--timeout", "300ms").expect(5, err="error: ")
        run = Run(agent, "status", "--timeout", "300ms", "-o", "json").expect(5)
        check(run.json(run.err).get("code") == "CODE_DEADLINE_EXCEEDED", "deadline as JSON")


def no_leader_lists_each_peer():
    """Case A45: address and last contact of each, for people and for programs."""
    def answer(method, _request, _envelope):
        if method == "GetStatus":
            return status_answer(3, n_peers=2)
        raise Refusal(14, "NO_LEADER", "no leader is known")
    with agent_with(answer) as agent:
        run = Run(agent, "apply", "-f", EXAMPLE).expect(9, err="error: nothing was changed: no leader is known\n")
        for node in (2, 3):
            check(f"node {node}: 10.0.0.{node}:7400, last heard 1m40s ago" in run.err,
                  f"node {node} is listed: {run.err}")
        check("--stale" not in run.err, "a write cannot be stale")
        Run(agent, "group", "list").expect(9, err="add --stale")
        run = Run(agent, "apply", "-f", EXAMPLE, "-o", "json").expect(9)
        check("node_3" in run.json(run.err).get("metadata", {}), "peers are in the metadata")


def an_interrupted_wait_exits_with_130():
    def answer(method, _request, _envelope):
        if method == "DrainBackend":
            return M["DrainBackendResponse"](revision=43)
        return backends(draining=True)
    with agent_with(answer) as agent:
        process = subprocess.Popen([Run.program, "backend", "drain", "web/10.0.0.1:80", "--wait",
                                    "--socket", agent.path], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE)
        wait_until("nodectl asks how far the drain is", 30, lambda: len(agent.calls) >= 2)
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=30)
        check(process.returncode == 130, f"interrupted: exit {process.returncode}")
        check(out == b"", f"interrupted: half printed {out!r}")


# --- what is asked ---

def backends(draining=False, done=False, seen=True, addresses=("10.0.0.1",)):
    answer = M["ListBackendsResponse"]()
    for number, address in enumerate(addresses):
        status = answer.backends.add(group="web")
        status.backend.address, status.backend.port = address, 80
        status.backend.description = f"web-{number + 1}"
        status.backend.admin_state = 2 if draining else 1
        status.life, status.verdict.state = 2, 2
        if draining and seen:
            status.drain.timeout.seconds = 30
            status.drain.n_flows = 0 if done else 5
            status.drain.is_done = done
    return answer


def backends_are_listed_by_state():
    def answer(method, _request, _envelope):
        check(method == "ListBackends", f"one call: {method}")
        response = M["ListBackendsResponse"]()
        for port, state, marks, admin, life, away in (
                (1, 2, [], 1, 2, False), (2, 3, [], 1, 2, False), (3, 2, [1, 5], 2, 2, False),
                (4, 2, [], 1, 3, True)):
            backend = response.backends.add(group="web", life=life)
            backend.backend.address, backend.backend.port = "10.0.0.1", port
            backend.backend.admin_state = admin
            backend.verdict.state, backend.verdict.is_unreachable = state, away
            backend.verdict.marks.extend(marks)
        return response
    with agent_with(answer) as agent:
        for word, ports in (("healthy", [1, 3, 4]), ("unhealthy", [2]), ("held", [3]), ("flapping", [3]),
                            ("draining", [3]), ("removing", [4]), ("unreachable", [4]),
                            ("enabled", [1, 2]), ("gray", [])):
            run = Run(agent, "backend", "list", "--state", word, "-o", "json").expect(0)
            check([b["backend"]["port"] for b in run.json(run.out).get("backends", [])] == ports,
                  f"{word}: {run.out}")
            run = Run(agent, "backend", "list", "web", "--state", word).expect(0)
            check(run.out.count("10.0.0.1:") == len(ports), f"{word}: {run.out}")
            check(("no backend is gray" in run.err) == (word == "gray"), run.err)
        Run(agent, "backend", "list", "--state", "helthy").expect(2, err="unhealthy")


def lists_are_read_to_their_end():
    def answer(_method, request, _envelope):
        page = M["ListGroupsResponse"]()
        first = int(request.page_token or "0")
        for number in range(first, first + 2):
            page.groups.add(name=f"group-{number}", profile=2, protocol=2, state=1)
        page.next_page_token = str(first + 2) if first < 4 else ""
        return page
    with agent_with(answer) as agent:
        run = Run(agent, "group", "list").expect(0)
        check([f"group-{n}" for n in range(6)] == [w for w in run.out.split() if "group-" in w],
              f"six groups of three pages: {run.out}")
        run = Run(agent, "group", "list", "-o", "json").expect(0)
        check(len(run.json(run.out).get("groups", [])) == 6, "one JSON document of all pages")
    with agent_with(lambda *_: M["ListGroupsResponse"]()) as agent:
        run = Run(agent, "group", "list").expect(0)
        check(run.out == "" and "no groups yet" in run.err, "an empty list is a remark on stderr")


def misspelt_groups_get_a_suggestion():
    def answer(method, request, _envelope):
        if method == "ListGroups":
            page = M["ListGroupsResponse"]()
            page.groups.add(name="web")
            return page
        raise Refusal(5, "NOT_FOUND", f"server group \"{request.name}\" does not exist")
    with agent_with(answer) as agent:
        Run(agent, "group", "describe", "wbe").expect(7, err="did you mean \"web\"?")


def backends_are_found_by_address_or_description():
    def answer(method, request, _envelope):
        if method == "Why":
            response = M["WhyResponse"](node_id=1)
            response.backend.CopyFrom(request.backend)
            response.verdict.state = 2
            return response
        return backends(addresses=("10.0.0.1", "10.0.0.2"))
    with agent_with(answer) as agent:
        for word in ("web/10.0.0.2:80", "web/10.0.0.2", "web/web-2"):
            Run(agent, "why", word).expect(0, out="web/10.0.0.2:80 is healthy on node 1")
        Run(agent, "why", "web/web-9").expect(7, err="backend web-9 of server group \"web\" does not exist")
        Run(agent, "why", "web").expect(0, out="web/10.0.0.1:80 is healthy")
        run = Run(agent, "why", "web", "-o", "json").expect(0)
        check(len(run.json(run.out)) == 2, "why of a group is an array")
        run = Run(agent, "why", "web/web-1", "-o", "json").expect(0)
        check(run.json(run.out).get("nodeId") == "1", "why of one backend is its message")
        check(all(call[2].stale for call in agent.calls), "why asks for nothing that needs a leader")
    with agent_with(lambda *_: backends(addresses=("10.0.0.1", "10.0.0.1"))) as agent:
        Run(agent, "why", "web/10.0.0.1").expect(2, err="is more than one backend")


def a_drain_waits_until_it_is_done():
    def answer(method, _request, _envelope):
        if method == "DrainBackend":
            return M["DrainBackendResponse"](revision=43)
        n_asked = sum(1 for call in agent.calls if call[0] == "ListBackends")
        # 1: a node that has not heard of the drain; 2: one that has not begun with it
        if n_asked == 1:
            agent.revision = 42
            return backends()
        agent.revision = 43
        return backends(draining=True, seen=n_asked > 2, done=n_asked >= 4)
    with agent_with(answer) as agent:
        run = Run(agent, "backend", "drain", "web/10.0.0.1:80", "--timeout", "1500ms", "--wait")
        run.expect(0, out="web/10.0.0.1:80 is draining since revision 43\ndone, 0 flows left\n",
                   err="not done, 5 flows left")
        timeout = agent.calls[0][1].timeout
        check((timeout.seconds, timeout.nanos) == (1, 500000000), "the timeout is sent exactly")
        check(all(call[2].stale for call in agent.calls[1:]), "waiting needs no leader")
        run = Run(agent, "backend", "drain", "web/10.0.0.1:80", "--wait", "-o", "json").expect(0)
        check(run.json(run.out).get("isDone") is True, "with --wait JSON is the end of the drain")


def a_drain_that_nobody_counted_or_that_cut_flows_says_so():
    """It said "0 flows left" where no data plane counted, a countdown beside "done", and nothing of
    flows closed at the deadline."""
    def ended(**fields):
        def answer(method, _request, _envelope):
            if method == "DrainBackend":
                return M["DrainBackendResponse"](revision=43)
            page = backends(draining=True, done=True)
            drain = page.backends[0].drain
            drain.remaining.seconds = 20
            drain.n_flows = fields.get("flows", 0)
            drain.n_closed = fields.get("closed", 0)
            drain.uncounted_nodes.extend(fields.get("uncounted", []))
            return page
        return answer
    for fields, said in (
            ({"uncounted": [1]}, "done, flows are not known on node 1 (no data plane counts there)\n"),
            ({"uncounted": [1, 3], "closed": 4},
             "done, flows are not known on nodes 1, 3 (no data plane counts there), "
             "4 were closed by the drain\n"),
            ({"closed": 1}, "done, 0 flows left, 1 was closed by the drain\n")):
        with agent_with(ended(**fields)) as agent:
            agent.revision = 43
            run = Run(agent, "backend", "drain", "web/10.0.0.1:80", "--wait")
            run.expect(0, out="draining since revision 43\n" + said)
            check("flows left" not in run.out or "uncounted" not in fields, "no number is made up")
            check("deadline" not in run.out, "no countdown beside done")
            run = Run(agent, "backend", "drain", "web/10.0.0.1:80", "--wait", "-o", "json").expect(0)
            answer = run.json(run.out)
            check(answer.get("uncountedNodes", []) == [str(n) for n in fields.get("uncounted", [])],
                  "JSON names the nodes that do not count")
            check(answer.get("nClosed", "0") == str(fields.get("closed", 0)), "JSON has the count")


def a_drain_that_is_taken_back_is_a_no():
    def answer(method, _request, _envelope):
        if method == "DrainBackend":
            return M["DrainBackendResponse"](revision=43)
        return backends()
    with agent_with(answer) as agent:
        agent.revision = 44
        Run(agent, "backend", "drain", "web/10.0.0.1:80", "--wait").expect(
            1, out="the drain was taken back\n")
    # Maintenance was told as a drain taken back, and a removal waited for until the drain's deadline.
    def replaced(admin_state, life):
        def ask(method, request, envelope):
            page = answer(method, request, envelope)
            if method == "ListBackends":
                page = backends(draining=True)
                page.backends[0].backend.admin_state, page.backends[0].life = admin_state, life
                page.backends[0].drain.revision = 44
            return page
        return ask
    with agent_with(replaced(3, 2)) as agent:
        agent.revision = 44
        Run(agent, "backend", "drain", "web/10.0.0.1:80", "--wait").expect(
            1, out="the backend went into maintenance meanwhile: its flows are closed at once\n")
    with agent_with(replaced(2, 3)) as agent:
        agent.revision = 44
        Run(agent, "backend", "drain", "web/10.0.0.1:80", "--wait").expect(
            7, err="the backend was removed while it was drained")
    with agent_with(lambda *_: M["ReadyBackendResponse"](revision=44)) as agent:
        Run(agent, "backend", "drain", "web/10.0.0.1:80", "--cancel").expect(
            0, out="web/10.0.0.1:80 is enabled since revision 44\n")
        Run(agent, "backend", "ready", "web/10.0.0.1:80").expect(0)
        check([call[0] for call in agent.calls] == ["ReadyBackend"] * 2, "both take it back")


def a_failure_behind_a_success_prints_no_half_answer():
    """The drain is committed and then the waiting fails: the data of the first half is dropped."""
    def answer(method, _request, _envelope):
        if method == "DrainBackend":
            return M["DrainBackendResponse"](revision=43)
        raise Refusal(13, "INTERNAL", "something broke")
    with agent_with(answer) as agent:
        Run(agent, "backend", "drain", "web/10.0.0.1:80", "--wait").expect(10)
    with agent_with(refuse(9, "NOT_READY", "this node has no catalog yet")) as agent:
        Run(agent, "group", "list").expect(9)


def a_reader_that_goes_is_no_error():
    def answer(_method, _request, _envelope):
        page = M["ListGroupsResponse"]()
        for number in range(1000):
            page.groups.add(name=f"group-{number}-{'x' * 100}")
        return page
    with agent_with(answer) as agent:
        process = subprocess.Popen([Run.program, "group", "list", "-o", "json", "--socket", agent.path],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        process.stdout.read(10)
        process.stdout.close()
        err = process.stderr.read()
        process.stderr.close()
        check(process.wait(timeout=30) == 0 and err == b"", f"nodectl | head: {err!r}")


def followed(agent, *words):
    """nodectl events --follow to a reader that goes after the first bytes: how it ends."""
    process = subprocess.Popen([Run.program, "events", "--follow", *words, "--socket", agent.path],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdout.read(10)
    process.stdout.close()
    err = process.stderr.read()
    process.stderr.close()
    return process.wait(timeout=30), err


def output_lost_to_a_full_disk_exited_with_0():
    """stdio drops what it cannot write, and the flush at the end then has nothing to fail with:
    whatever was longer than its buffer was lost with exit 0."""
    def answer(method, request, _envelope):
        page = M[method + "Response"]()
        for number in range(200):
            if method == "ListEvents":
                page.events.add(sequence=request.after_sequence + number + 1, type=1,
                                message=f"event {'x' * 100}")
                page.last_sequence = request.after_sequence + number + 1
            elif method == "ListCounters":
                page.counters.add(name=f"counter_{number}", value=1, help="h" * 100)
            elif method == "ListGroups":
                page.groups.add(name=f"group-{number}-{'x' * 100}")
        return page

    def lost(command):
        with open("/dev/full", "wb") as full:
            done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True,
                                  timeout=60, check=False)
        what = " ".join(os.path.basename(word) for word in command)
        check(done.returncode != 0, f"{what}: exit 0 although the output is lost")
        check(done.returncode in (0, 10) and
              "the output cannot be written: No space left on device" in done.stderr,
              f"{what}: exit {done.returncode}: {done.stderr!r}")

    text = Run(None, "explain").expect(0).out
    topics = [line.split()[0] for line in text.splitlines() if line.startswith("  ") and line.split()]
    check("verdict" in topics, f"topics: {topics}")
    for topic in topics:
        if Run(None, "explain", topic).status == 0:
            lost([Run.program, "explain", topic])
    for words in ((), ("group",), ("apply",), ("node", "metrics")):
        lost([Run.program, *words, "--help"])
    lost([Run.program, "--version"])
    for program, words in (("jury-agent", ("help", "version", "print-example")),
                           ("jury-shim", ("help", "version", "print-example", "print-config"))):
        for word in words:
            lost([os.path.join(os.path.dirname(Run.program), program), "--" + word])
    with agent_with(answer) as agent:
        for words in (("node", "metrics"), ("node", "counters"), ("events",), ("events", "--follow"),
                      ("group", "list"), ("ready",), ("status",)):
            for form in ((), ("-o", "json")):
                lost([Run.program, *words, *form, "--socket", agent.path])
        for form in ((), ("-o", "json")):
            status, err = followed(agent, *form)
            check(status == 0 and err == b"", f"nodectl events --follow | head: {status} {err!r}")


def events_are_followed_line_by_line():
    def answer(_method, request, _envelope):
        page = M["ListEventsResponse"](epoch=1)
        first = request.after_sequence + 1
        if first <= 3:
            page.events.add(sequence=first, type=1, message=f"event {first}")
        page.last_sequence = max(request.after_sequence, min(first, 3))
        return page
    with agent_with(answer) as agent:
        process = subprocess.Popen([Run.program, "events", "--follow", "-o", "json", "--socket",
                                    agent.path], stdout=subprocess.PIPE, text=True)
        lines = [json.loads(process.stdout.readline()) for _ in range(3)]
        process.send_signal(signal.SIGINT)
        process.wait(timeout=30)
        process.stdout.close()
        check([line["sequence"] for line in lines] == ["1", "2", "3"], f"three events: {lines}")
        check(process.returncode == 130, f"following ends with 130, got {process.returncode}")
        check(agent.calls[0][1].newest and agent.calls[0][1].page_size == 50, "the newest 50 first")
        check(not agent.calls[1][1].newest, "then all that come")
        Run(agent, "events", "--group", "web", "--type", "verdict", "--limit", "7").expect(0)
        request = agent.calls[-1][1]
        check((request.group, request.type, request.page_size) == ("web", 1, 7), "filters are sent")


def metrics_are_valid_text_whatever_an_agent_says():
    """Gauges were exported as counters with _total, and times in nanoseconds."""
    for wrong in prometheus_text.judge_itself():
        check(False, f"the judge: {wrong}")
    odd = "a\\b\"c\nd{e},f="
    n_more = 0

    def answer(method, _request, _envelope):
        if method == "ListCounters":
            page = M["ListCountersResponse"]()
            for label in (odd, "plain"):
                page.counters.add(name="mesh_refused", label=label, value=2**64 - 1, help=odd)
            page.counters.add(name="probe_late_max_ns", value=5, help="longest", is_gauge=True)
            page.counters.add(name="probe_stalled_ns", value=3, help="in all")
            page.counters.add(name="probe_results", label="ok", value=9, help="results")
            return page
        if method == "GetStatus":
            answer = status_answer(2, n_peers=2)
            answer.findings.add(kind=12, sentence="a hold")
            answer.data_planes.add(name=odd)
            return answer
        if method == "ListGroups":
            page = M["ListGroupsResponse"]()
            for number in range(3):
                group = page.groups.add(name=f"g{number}", state=3 + number % 2)
                group.backends.unhealthy = number
            return page
        page = M["ListBackendsResponse"]()
        for number, (state, admin) in enumerate(((2, 1), (3, 2), (5, 3), (1, 1), (4, 0))):
            status = page.backends.add(group="g0", life=2)
            status.backend.address, status.backend.port = "10.0.0.1", 80 + number
            status.backend.weight, status.backend.admin_state = number, admin
            status.verdict.state = state
        for number in range(n_more):
            page.backends.add(group="more", life=2).backend.port = number % 65535 + 1
        return page
    with agent_with(answer) as agent:
        text = prometheus_text.Text(Run(agent, "node", "metrics").expect(0).out)
        check(not text.faults, f"metrics: {text.faults}")
        for value, name, labels in (
                (5e-9, "jury_probe_late_max_seconds", {}), (3e-9, "jury_probe_stalled_seconds_total", {}),
                (9, "jury_probe_results_total", {"reason": "ok", "result": "pass"}),
                (1, "jury_findings", {"kind": "hold"}), (0, "jury_findings", {"kind": "no_leader"}),
                (0, "jury_healthy", {}), (1, "jury_group_fail_open", {"group": "g0"}),
                (1, "jury_group_closed", {"group": "g1"}), (0, "jury_group_closed", {"group": "g2"}),
                (2, "jury_group_backends", {"group": "g2", "verdict": "unhealthy"})):
            check(text.value(name, **labels) == value, f"{name} {labels}: {text.value(name, **labels)}")
        for name, values in (("healthy", (1, 0, 0, 0, 1)), ("unhealthy", (0, 1, 0, 0, 0)),
                             ("initial", (0, 0, 0, 1, 0)), ("draining", (0, 1, 0, 0, 0)),
                             ("maintenance", (0, 0, 1, 0, 0)), ("weight", (0, 1, 2, 3, 4))):
            told = tuple(text.value("jury_backend_" + name, group="g0", backend=f"10.0.0.1:{80 + i}")
                         for i in range(5))
            check(told == values, f"jury_backend_{name}: {told}")
        check(text.value("jury_backends_left_out") == 0, "no backend is left out")
        n_of_groups = sum(1 for name, _ in text.series if name.startswith("jury_group_"))
        check(n_of_groups == 3 * 10, f"{n_of_groups} series of 3 groups")
        check(all(call[2].stale for call in agent.calls), "metrics need no leader")
        run = Run(agent, "node", "metrics", "-o", "json").expect(0)
        told = run.json(run.out)
        check(told.get("status", {}).get("findings", [{}])[0].get("kind") == "FINDING_KIND_HOLD" and
              len(told.get("groups", [])) == 3 and len(told.get("counters", [])) == 5,
              f"JSON has what the text is made of: {sorted(told)}")
        n_more = 10002
        text = prometheus_text.Text(Run(agent, "node", "metrics").expect(0).out)
        check(text.value("jury_backends_left_out") == 7, "seven of 10007 are left out")
        n = sum(1 for name, _ in text.series if name == "jury_backend_weight")
        check(n == 10000, f"{n} backends have a weight")


def a_node_without_a_cluster_has_metrics_that_say_so():
    def answer(method, _request, _envelope):
        if method == "ListCounters":
            return M["ListCountersResponse"]()
        if method == "GetStatus":
            answer = M["GetStatusResponse"](node_id=1)
            answer.findings.add(kind=1, sentence="store: waits for cluster init")
            return answer
        raise Refusal(9, "NOT_READY", "this node has no catalog yet")
    with agent_with(answer) as agent:
        text = prometheus_text.Text(Run(agent, "node", "metrics").expect(0).out)
        check(not text.faults, f"metrics: {text.faults}")
        check(text.value("jury_findings", kind="not_formed") == 1, "not formed")
        check(text.value("jury_healthy") == 0, "not healthy")
        Run(agent, "node", "metrics", "-o", "json").expect(0)


def cluster_init_names_all_members():
    with tempfile.TemporaryDirectory() as folder:
        Run(None, "key", "generate", "--nodes", "2", "--out", f"{folder}/keys").expect(0)
        words = ["cluster", "init"]
        for node in (1, 2):
            words += ["--node", f"id={node},key={folder}/keys/node-{node}.pub,"
                                f"endpoint=[fd00::{node}]:7400:7401,zone=z"]
        words += ["--access-key", f"name=admin,role=admin,key={folder}/keys/admin.key"]
        with agent_with(lambda *_: M["InitClusterResponse"](cluster_id="cd" * 16,
                                                            revision=1)) as agent:
            Run(agent, *words).expect(0, out=f"cluster {'cd' * 16} is made of 2 nodes, revision 1\n")
            request = agent.calls[0][1]
            check([m.endpoints[0].host for m in request.members] == ["fd00::1", "fd00::2"],
                  "endpoints without brackets")
            check(all(len(m.public_key) == 64 and m.role == 1 for m in request.members),
                  "voters with their keys")
            check(request.keys[0].name == "admin" and request.keys[0].role == 3, "the admin's key")
            check(not request.HasField("settings"), "settings are the cluster's defaults")
            Run(agent, "cluster", "init", "--node", words[3], "--node", words[3]).expect(
                2, err="node 1 is named twice")


def flags_reach_the_envelope():
    with agent_with(lambda *_: M["ListMembersResponse"]()) as agent:
        Run(agent, "cluster", "members", "--stale", "--timeout", "2s").expect(0)
        envelope = agent.calls[0][2]
        check(envelope.stale and envelope.api_version == 1, "stale and the version are sent")
        check(1500 <= envelope.deadline_ms <= 2000, f"the deadline is sent: {envelope.deadline_ms}")
        Run(agent, "cluster", "members", "-v").expect(0, err="node 1 at ipc://")
        Run(agent, "cluster", "members", env={"NODECTL_TIMEOUT": "3s"}).expect(0)
        check(2500 <= agent.calls[2][2].deadline_ms <= 3000, "the variable is used")


def main():
    return run_all((
        answers_that_are_no_exit_with_1, each_refusal_has_its_exit_status,
        nobody_there_exits_with_4, silence_exits_with_5, no_leader_lists_each_peer,
        an_interrupted_wait_exits_with_130, backends_are_listed_by_state,
        lists_are_read_to_their_end, misspelt_groups_get_a_suggestion,
        backends_are_found_by_address_or_description, a_drain_waits_until_it_is_done,
        a_drain_that_nobody_counted_or_that_cut_flows_says_so, a_drain_that_is_taken_back_is_a_no,
        a_failure_behind_a_success_prints_no_half_answer, a_reader_that_goes_is_no_error,
        output_lost_to_a_full_disk_exited_with_0, events_are_followed_line_by_line,
        metrics_are_valid_text_whatever_an_agent_says,
        a_node_without_a_cluster_has_metrics_that_say_so, cluster_init_names_all_members,
        flags_reach_the_envelope))


if __name__ == "__main__":
    sys.exit(main())
