#!/usr/bin/python3
"""What nodectl makes of documents: what it sends as one change, what it says of it, and of what is
refused. The agent is made of Python (tests/lib/nodectl_run.py)."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from fake_agent import Refusal  # noqa: E402
from nodectl_run import EXAMPLE, GROUP, M, Run, agent_with, check, refuse, run_all  # noqa: E402


def last_apply(agent):
    return [request for method, request, _envelope in agent.calls if method == "Apply"][-1]


def more_probes_than_the_budget_are_a_warning_with_both_numbers():
    def answer(method, _request, _envelope):
        if method == "DescribeNode":
            response = M["DescribeNodeResponse"]()
            budget = response.probe_budget
            budget.per_second, budget.per_second_to_address = of_all, of_one
            return response
        return M["ApplyResponse"](revision=43) if method == "Apply" else M["GetGroupResponse"]()

    def warnings(run):
        return " ".join(run.err.split())

    with agent_with(answer) as agent:
        of_all, of_one = 1000, 20
        text = crowd(5, "200ms")  # 25 a second
        run = Run(agent, "apply", "-f", "-", text=text).expect(0)
        check("the checks come to 25 probes a second of each node to address 10.0.0.1, and the probe "
              "budget of this node is 20 for an address" in warnings(run), run.err)
        of_all = 20
        run = Run(agent, "apply", "-f", "-", text=text).expect(0)
        check("the checks come to 25 probes a second of each node, and the probe budget of this node is "
              "20:" in warnings(run), run.err)
        of_all, of_one = 1000, 25
        run = Run(agent, "apply", "-f", "-", text=text).expect(0)
        check("budget" not in run.err, run.err)
        run = Run(agent, "validate", "-f", "-", text=crowd(501, "100ms")).expect(0)
        check("the checks come to 5010 probes a second of each node to address 10.0.0.1, and the probe "
              "budget that nodes have by default is 5000 for an address" in warnings(run), run.err)
        run = Run(agent, "validate", "-f", "-", text=crowd(500, "100ms")).expect(0)
        check("budget" not in run.err, run.err)


def what_nodes_were_built_without_is_told_once():
    def answer(method, _request, _envelope):
        if method == "DescribeNode":
            response = M["DescribeNodeResponse"](node_id=1)
            response.probe_engine.capabilities.extend(kinds)
            for node, types in peers.items():
                response.peers.add(node_id=node).unbuilt.extend(types)
            return response
        return M["ApplyResponse"](revision=43) if method == "Apply" else M["GetGroupResponse"]()

    text = "---\n".join(GROUP.replace("web", f"web-{name}") + f"  check: {{{check}}}\n"
                        for name, check in (("tls", "type: tls"), ("grpc", "type: grpc, tls: {}"),
                                            ("tcp", "type: tcp")))
    tls = 'no vote on server group "web-tls" and others (LOCAL_NOT_BUILT): built without tls checks'
    grpc = 'no vote on server group "web-grpc" (LOCAL_NOT_BUILT): built without grpc checks'
    with agent_with(answer) as agent:
        for kinds, peers, said in (
                (["tcp-full"], {2: [], 3: [4, 5]}, [f"nodes 1, 3 have {tls}", f"nodes 1, 3 have {grpc}"]),
                (["tcp-full", "tls"], {}, [f"node 1 has {grpc}"]),
                (["tcp-full", "tls", "grpc"], {2: [4]}, [f"node 2 has {tls}"]),
                (["tcp-full", "tls", "grpc"], {2: []}, []), ([], {}, [])):
            run = Run(agent, "apply", "-f", "-", text=text).expect(0)
            check(run.err.count("built without") == len(said), f"told once: {run.err}")
            check(all(words in run.err for words in said), f"{kinds}, {peers}: {run.err}")


def probers_share_the_demand_and_all_probe_what_fails():
    """Of 5 nodes 2 probe each backend: 25 probes a second are 10 of each node, and 50 at worst."""
    def answer(method, _request, _envelope):
        if method == "DescribeNode":
            response = M["DescribeNodeResponse"]()
            budget = response.probe_budget
            budget.per_second, budget.per_second_to_address, budget.n_observers = 1000, of_one, 5
            return response
        return M["ApplyResponse"](revision=43) if method == "Apply" else M["GetGroupResponse"]()

    text = crowd(5, "200ms, probers: 2").replace("nlb", "nlb\n  rule: majority")
    with agent_with(answer) as agent:
        for of_one, said in (
                (9, "the checks come to 10 probes a second of each node to address 10.0.0.1, and the "
                    "probe budget of this node is 9 for an address: probes will be delayed; see"),
                (10, "the checks come to 50 probes a second of each node to address 10.0.0.1 while they "
                     "fail, and the probe budget of this node is 10 for an address: probes will be "
                     "delayed then;"),
                (50, None)):
            run = Run(agent, "apply", "-f", "-", text=text).expect(0)
            warnings = " ".join(run.err.split())
            check(said in warnings if said else "budget" not in warnings, run.err)


def crowd(n, interval):
    """A group of so many ports of one address."""
    return ("apiVersion: jury/v1\nkind: Group\nmetadata: {name: web}\nspec:\n  profile: nlb\n"
            "  check: {timeout: 100ms, interval: %s}\n  backends:\n" % interval +
            "".join("  - at: 10.0.0.1:%d\n" % (1000 + port) for port in range(n)))


def apply_sends_all_documents_as_one_change():
    with agent_with(lambda *_: M["ApplyResponse"](revision=43)) as agent:
        Run(agent, "apply", "-f", EXAMPLE).expect(0, out="applied 2 documents as revision 43\n")
        check([call[0] for call in agent.calls] == ["GetGroup", "Apply", "DescribeNode"],
              "the group as it was is asked for, then there is one Apply, then the node's budget")
        _method, request, envelope = agent.calls[1]
        check(len(request.documents) == 2, "one Apply with two documents")
        group = request.documents[0].group
        check(group.name == "web" and group.profile == 2, "the group is web with profile nlb")
        check(group.verdict.down.kind == 3, "its rule is majority")
        check([b.address for b in group.backends] == ["10.77.0.1", "10.77.0.2", "10.77.0.3"],
              "its backends are there")
        check(all(b.admin_state == 0 for b in group.backends),
              "an admin state that is not written is left to the cluster")
        check(request.documents[1].listener.group == "web", "the listener follows")
        check(not request.dry_run and not request.HasField("force"), "neither dry nor forced")
        check(len(envelope.request_id) == 16, "the write has a request id")
        Run(agent, "apply", "-f", "-", "--force", "2", text=GROUP).expect(0)
        check(last_apply(agent).force.count == 2, "the force's count is sent")
        Run(agent, "apply", "-f", "-", "--expected-revision", "0", text=GROUP).expect(0)
        document = last_apply(agent).documents[0]
        check(document.WhichOneof("precondition") == "expected_revision" and
              document.expected_revision == 0, "expected revision 0 = must not exist")
        run = Run(agent, "apply", "-f", EXAMPLE, "-o", "json").expect(0)
        check(run.json(run.out).get("revision") == "43", "the answer as JSON")


def apply_says_of_each_object_what_became_of_it():
    """An apply that changed nothing said "applied ... as revision N" with a new N."""
    def answer(method, request, _envelope):
        response = M["ApplyResponse"](revision=43)
        for number, action in enumerate(actions):
            response.results.add(action=action)
        return response if method == "Apply" else M["GetGroupResponse"]()
    for actions, said in (([1, 2], "group/web created\nlistener/web-http configured\n"
                                   "applied 2 documents as revision 43\n"),
                          ([3, 2], "group/web unchanged\nlistener/web-http configured\n"
                                   "applied 2 documents as revision 43\n"),
                          ([3, 3], "group/web unchanged\nlistener/web-http unchanged\n"
                                   "nothing changed at revision 43\n")):
        with agent_with(answer) as agent:
            Run(agent, "apply", "-f", EXAMPLE).expect(0, out=said)
    with agent_with(lambda *_: M["DrainBackendResponse"](revision=43, is_unchanged=True)) as agent:
        Run(agent, "backend", "drain", "web/10.0.0.1:80").expect(
            0, out="web/10.0.0.1:80 is draining already: unchanged at revision 43\n")
    with agent_with(lambda *_: M["ReadyBackendResponse"](revision=43, is_unchanged=True)) as agent:
        Run(agent, "backend", "ready", "web/10.0.0.1:80").expect(
            0, out="web/10.0.0.1:80 is enabled already: unchanged at revision 43\n")


def a_bad_file_asks_nobody():
    with agent_with(lambda *_: M["ApplyResponse"]()) as agent:
        Run(agent, "apply", "-f", "-", text=GROUP + "  conect_port: 80\n").expect(
            3, err="-:6:3: server group \"web\": unknown field \"conect_port\"\n")
        Run(agent, "apply", "-f", "-", text="").expect(3)
        check(not agent.calls, "nothing was sent")


def the_refused_document_is_named_by_file_and_line():
    with agent_with(refuse(5, "NOT_FOUND", "server group \"web\" does not exist",
                           [("document_index", "1")])) as agent:
        Run(agent, "apply", "-f", EXAMPLE).expect(7, err=f"  in the document at {EXAMPLE}:")


def all_that_the_cluster_refuses_is_told_with_its_place():
    text = GROUP + ("  rule: at-least 9\n  backends:\n  - {at: \"8.8.8.8:80\"}\n"
                    "  - {at: \"10.0.0.1:80\"}\n  - {at: \"9.9.9.9:80\"}\n")
    outside = [(0, "INVALID_VALUE", f"server group \"web\": backend {at}:80 is outside the prefixes "
                                       "that the cluster settings allow (allowedCidrs): 10.0.0.0/8")
               for at in ("8.8.8.8", "9.9.9.9")]
    rule = (0, "INVALID_VALUE", "server group \"web\": rule at-least 9 needs 9 observers, the cluster "
                                   "would have 3")

    def answer(method, request, _envelope):
        if method != "Apply":
            raise Refusal(5, "NOT_FOUND", "server group \"web\" does not exist")
        raise Refusal(3, "INVALID_VALUE", outside[0][2], [("document_index", "0")],
                      [*outside, rule] if request.dry_run else [])
    with agent_with(answer) as agent:
        run = Run(agent, "apply", "-f", "-", text=text).expect(3)
        check([line for line in run.err.splitlines() if line.startswith("-:")] ==
              [f"-:8:5: {outside[0][2]}", f"-:10:5: {outside[1][2]}",
               f"-:6:9: {rule[2]}"], f"each with its place: {run.err}")
        check([call[1].dry_run for call in agent.calls if call[0] == "Apply"] == [False, True],
              "a dry run was asked for the others")
        check("hint: the prefixes are those of the document of kind ClusterSettings" in run.err and
              "its list replaces the one that is there" in run.err and
              "nodectl explain clustersettings.allowedCidrs" in run.err, f"what to do: {run.err}")
        run = Run(agent, "apply", "-f", "-", "--dry-run", "-o", "json", text=text).expect(3)
        check([(e["line"], e["column"]) for e in run.json(run.err)["metadata"]["errors"]] ==
              [(8, 5), (10, 5), (6, 9)], f"for programs too: {run.err}")
        check(run.json(run.err)["metadata"]["hasMoreErrors"] is False and "may be more" not in run.err,
              f"that is all: {run.err}")

    def many(method, _request, _envelope):
        if method != "Apply":
            raise Refusal(5, "NOT_FOUND", "server group \"web\" does not exist")
        raise Refusal(3, "INVALID_VALUE", rule[2], [("document_index", "0")], [rule] * 20)
    with agent_with(many) as agent:
        Run(agent, "apply", "-f", "-", text=text).expect(
            3, err="nothing was changed; there may be more, these are the first 20\n")
        run = Run(agent, "apply", "-f", "-", "-o", "json", text=text).expect(3)
        check(run.json(run.err)["metadata"]["hasMoreErrors"] is True, f"for programs too: {run.err}")

    def one(method, _request, _envelope):
        if method != "Apply":
            raise Refusal(5, "NOT_FOUND", "server group \"web\" does not exist")
        raise Refusal(3, "INVALID_VALUE", outside[1][2], [("document_index", "0")])
    with agent_with(one) as agent:
        Run(agent, "apply", "-f", "-", text=text).expect(3, err=f"error: {outside[1][2]}\n").expect(
            3, err="  in the document at -:10\n").expect(3, err="kind ClusterSettings (nodectl export")


def a_dry_run_shows_what_would_change():
    def answer(method, _request, _envelope):
        if method == "GetGroup":
            current = M["GetGroupResponse"](changed_revision=7)
            current.group.name, current.group.profile, current.group.protocol = "web", 2, 2
            current.group.backends.add(address="10.0.0.9", port=80, weight=100)
            return current
        response = M["ApplyResponse"](revision=42)
        response.results.add(kind=1, name="web", action=2)
        return response
    with agent_with(answer) as agent:
        text = GROUP + "  rule: majority\n  backends: [{at: \"10.0.0.1:80\"}]\n"
        run = Run(agent, "apply", "-f", "-", "--dry-run", text=text).expect(
            0, out="change   server group \"web\"\n")
        check("    ~ rule local -> majority\n" in run.out, f"the changed rule is shown: {run.out}")
        check("    - backend 10.0.0.9:80" in run.out, f"the lost backend is shown: {run.out}")
        check("    + backend 10.0.0.1:80" in run.out, f"the new backend is shown: {run.out}")
        check("nothing was applied" in run.out, "a dry run says so")
        check(last_apply(agent).dry_run, "the request is a dry run")


def group_of(*addresses):
    current = M["GetGroupResponse"](changed_revision=7)
    current.group.name, current.group.profile, current.group.protocol = "web", 2, 2
    for address in addresses:
        current.group.backends.add(address=address, port=80, weight=100)
    return current


def apply_says_which_backends_it_takes_away():
    """A document that dropped a backend was told as "configured" and nothing else."""
    def answer(method, _request, _envelope):
        if method == "GetGroup":
            return before or group_of("10.0.0.1")
        response = M["ApplyResponse"](revision=43)
        response.results.add(kind=1, name="web", action=2)
        return response
    three = "[{at: \"10.0.0.1:80\"}, {at: \"10.0.0.2:80\"}, {at: \"10.0.0.3:80\"}]"
    with agent_with(answer) as agent:
        before = None
        Run(agent, "apply", "-f", "-", text=GROUP + f"  backends: {three}\n").expect(0)
        before = M["GetGroupResponse"](changed_revision=7, group=last_apply(agent).documents[0].group)
    for kept, said in (
            ("[{at: \"10.0.0.1:80\"}, {at: \"10.0.0.2:80\"}]", ": removes 10.0.0.3:80 (3 -> 2 backends)\n"),
            ("[{at: \"10.0.0.1:80\"}, {at: \"10.0.0.2:80\"}, {at: \"10.0.0.4:80\"}]",
             ": adds 10.0.0.4:80; removes 10.0.0.3:80 (3 -> 3 backends)\n"),
            ("[{at: \"10.0.0.1:80\"}, {at: \"10.0.0.2:80\"}, {at: \"10.0.0.3:80\", weight: 50}]",
             "\n    ~ backend 10.0.0.3:80: weight 100 -> 50\n")):
        with agent_with(answer) as agent:
            Run(agent, "apply", "-f", "-", text=GROUP + f"  backends: {kept}\n").expect(
                0, out=f"group/web configured{said}applied 1 document as revision 43\n")
    # What cannot be known is not told, and what nobody leads is not asked twice.
    def unknown(method, request, envelope):
        if method == "GetGroup":
            raise Refusal(7, "NOT_ALLOWED", "the role viewer is needed")
        return answer(method, request, envelope)
    with agent_with(unknown) as agent:
        Run(agent, "apply", "-f", "-", text=GROUP).expect(0, out="group/web configured\n")
    with agent_with(refuse(14, "NO_LEADER", "no leader")) as agent:
        Run(agent, "apply", "-f", "-", text=GROUP).expect(9, err="error: nothing was changed: no leader\n")
        check("Apply" not in [call[0] for call in agent.calls], "no second wait")


SETTINGS = "apiVersion: jury/v1\nkind: ClusterSettings\nspec: {allowedCidrs: [%s]}\n"


def apply_says_which_fields_it_changes():
    """A weight of 0 that `backend weight` had set was put back to 100 by a document that does not
    speak of it, and a list of addresses was replaced: "configured" was all that was said."""
    text = (GROUP + "  backends: [{at: \"10.0.0.1:80\"}]\n---\n" + SETTINGS % "10.0.0.0/8, 192.168.0.0/16" +
            "---\napiVersion: jury/v1\nkind: Listener\nmetadata: {name: lis}\n"
            "spec: {address: 127.0.0.1, port: 81, group: web}\n")
    documents = []

    def answer(method, _request, _envelope):
        if method == "Apply":
            response = M["ApplyResponse"](revision=43)
            for _ in range(3):
                response.results.add(action=2)
            return response
        if not documents:
            raise Refusal(5, "NOT_FOUND", "there is no such object")
        if method == "GetGroup":
            current = M["GetGroupResponse"](group=documents[0].group)
            current.group.backends[0].weight = 0
            return current
        if method == "GetSettings":
            current = M["GetSettingsResponse"](settings=documents[1].settings)
            current.settings.allowed_cidrs[:] = ["10.0.0.0/8", "127.0.0.0/8"]
            return current
        if method != "ListListeners":
            raise Refusal(5, "NOT_FOUND", "not asked for")
        current = M["ListListenersResponse"]()
        for name, port in (("kis", 79), ("lis", 80)):
            current.listeners.add(listener=documents[2].listener)
            current.listeners[-1].listener.name, current.listeners[-1].listener.port = name, port
        return current
    with agent_with(answer) as agent:
        Run(agent, "apply", "-f", "-", text=text).expect(0, out="group/web configured\n")
        documents[:] = last_apply(agent).documents
        said = ("group/web configured\n    ~ backend 10.0.0.1:80: weight 0 -> 100\n"
                "clustersettings configured\n    - prefix 127.0.0.0/8\n"
                "    + prefix 192.168.0.0/16\nlistener/lis configured\n"
                "    ~ at 127.0.0.1:80 -> 127.0.0.1:81\n"
                "applied 3 documents as revision 43\n")
        Run(agent, "apply", "-f", "-", text=text).expect(0, out=said)
        Run(agent, "apply", "-f", "-", "--dry-run", text=text).expect(0, out="    + prefix 192.168.0.0/16\n")
        run = Run(agent, "apply", "-f", "-", "-o", "json", text=text).expect(0)
        check([[c.get("before") for c in r["changes"]] + [c.get("after") for c in r["changes"]]
               for r in run.json(run.out)["results"]] ==
              [["0", "100"], ["", None, None, ""], ["127.0.0.1:80", "127.0.0.1:81"]], f"for programs too: {run.out}")


def a_removal_is_sent_against_what_was_read():
    """Whatever others change meanwhile stays: the group is read again."""
    conflicts = [2]
    def answer(method, _request, _envelope):
        if method == "GetGroup":
            return group_of("10.0.0.1", "10.0.0.2")
        if conflicts[0] > 0:
            conflicts[0] -= 1
            raise Refusal(10, "REVISION_CONFLICT", "server group \"web\" last changed at revision 8")
        return M["ApplyResponse"](revision=43)
    with agent_with(answer) as agent:
        Run(agent, "backend", "remove", "web/10.0.0.1:80").expect(
            0, out="web/10.0.0.1:80 is removed since revision 43\n")
        sent = [call[1].documents[0] for call in agent.calls if call[0] == "Apply"]
        check(len(sent) == 3, "tried again until nobody was quicker")
        check(all(document.expected_revision == 7 for document in sent), "each against what was read")
        check([b.address for b in sent[-1].group.backends] == ["10.0.0.2"], "the others stay")
        conflicts[0] = 1
        Run(agent, "backend", "remove", "web/10.0.0.1:80", "--expected-revision", "6").expect(
            8, err="last changed at revision 8")
        Run(agent, "backend", "remove", "web/10.0.0.9:80").expect(7, err="does not exist")
    # It was advised to add --stale, which no change can be.
    with agent_with(refuse(14, "NO_LEADER", "no leader")) as agent:
        run = Run(agent, "backend", "remove", "web/10.0.0.1:80").expect(
            9, err="error: nothing was changed: no leader\n")
        check("--stale" not in run.err, f"a change cannot be stale: {run.err}")


def deletions_are_sent_as_one_change():
    with agent_with(lambda *_: M["ApplyResponse"](revision=43)) as agent:
        Run(agent, "delete", "-f", EXAMPLE, "--force", "3").expect(
            0, out="group/web deleted\nlistener/web-http deleted\ndeleted 2 objects as revision 43\n")
        Run(agent, "delete", "-f", EXAMPLE, "--dry-run").expect(
            0, out="delete   server group \"web\"\n").expect(
            0, out="checked against revision 43; nothing was deleted\n")
        Run(agent, "listener", "delete", "web-http", "--dry-run").expect(
            0, out="listener/web-http could be deleted at revision 43\n")
        requests = [call[1] for call in agent.calls]
        check([(d.deletion.kind, d.deletion.name) for d in requests[0].documents] ==
              [(1, "web"), (2, "web-http")], "both in one request")
        check(requests[0].force.count == 3, "with the force's count")
        check([request.dry_run for request in requests] == [False, True, True], "a dry run is one")
        Run(agent, "delete", "-f", EXAMPLE, "--expected-revision", "7").expect(
            2, err="--expected-revision is about one object, and there are 2 documents")
    with agent_with(refuse(5, "NOT_FOUND", "server group \"web\" does not exist",
                           [("document_index", "0")])) as agent:
        Run(agent, "delete", "-f", EXAMPLE).expect(7, err=f"  in the document at {EXAMPLE}:")


def main():
    return run_all((
        apply_sends_all_documents_as_one_change,
        more_probes_than_the_budget_are_a_warning_with_both_numbers,
        probers_share_the_demand_and_all_probe_what_fails,
        what_nodes_were_built_without_is_told_once, apply_says_of_each_object_what_became_of_it,
        a_bad_file_asks_nobody, the_refused_document_is_named_by_file_and_line,
        all_that_the_cluster_refuses_is_told_with_its_place,
        apply_says_which_backends_it_takes_away, apply_says_which_fields_it_changes,
        a_removal_is_sent_against_what_was_read, deletions_are_sent_as_one_change,
        a_dry_run_shows_what_would_change))


if __name__ == "__main__":
    sys.exit(main())
