"""nodectl as a process, asking an agent that is made of Python, for tests/integration/nodectl_*.py."""
import argparse
import json
import os
import subprocess

from fake_agent import FakeAgent, Refusal, load_messages

M, METHODS = load_messages()
EXAMPLE = "deploy/examples/web.yaml"
GROUP = "apiVersion: jury/v1\nkind: Group\nmetadata: {name: web}\nspec:\n  profile: nlb\n"
failures = []
N_CHECKS = 0


def check(condition, what):
    global N_CHECKS
    N_CHECKS += 1
    if not condition:
        failures.append(what)
        print(f"FAILED: {what}", flush=True)


class Run:
    program = None  # where nodectl is; run_all finds it

    def __init__(self, agent, *words, text="", env=None):
        command = [Run.program, *words] + (["--socket", agent.path] if agent else [])
        # Nothing of the caller's NODECTL_*; a planted fault goes through.
        kept = {name: os.environ[name] for name in ("PATH", "JURY_PLANT") if name in os.environ}
        environment = {**kept, **(env or {})}
        self.words = " ".join(words)
        done = subprocess.run(command, input=text, env=environment, capture_output=True, text=True,
                              timeout=60, check=False)
        self.status, self.out, self.err = done.returncode, done.stdout, done.stderr

    def expect(self, status, out=None, err=None):
        check(self.status == status,
              f"nodectl {self.words}: exit {self.status}, expected {status}\n{self.err}")
        if status not in (0, 1):
            check(self.out == "", f"nodectl {self.words}: half printed: {self.out!r}")
        if out is not None:
            check(out in self.out, f"nodectl {self.words}: stdout lacks {out!r}: {self.out!r}")
        if err is not None:
            check(err in self.err, f"nodectl {self.words}: stderr lacks {err!r}: {self.err!r}")
        return self

    def json(self, stream):
        try:
            return json.loads(stream)
        except ValueError as error:
            check(False, f"nodectl {self.words}: not JSON ({error}): {stream!r}")
            return {}


def refuse(code, reason, message, metadata=()):
    def answer(_method, _request, _envelope):
        raise Refusal(code, reason, message, metadata)
    return answer


def agent_with(answer):
    return FakeAgent(M, METHODS, answer)


def run_all(tests):
    """Each test, one after the other. Returns the exit status."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    Run.program = os.path.join(parser.parse_args().bin, "nodectl")
    for test in tests:
        n_before = len(failures)
        test()
        print(f"{'ok' if len(failures) == n_before else 'FAILED'} {test.__name__}", flush=True)
    print(f"{N_CHECKS} checks, {len(failures)} failed")
    return 1 if failures else 0
