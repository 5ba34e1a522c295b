"""nodectl as a person or a script runs it: its exit status, what it printed where, and its JSON."""
import json
import os
import subprocess

from cluster import check

PATIENCE = 120  # for the process, not for its question


class Answer:
    def __init__(self, words, done):
        self.words, self.status, self.out, self.err = words, done.returncode, done.stdout, done.stderr

    def __str__(self):
        return "nodectl %s: exit %d\n%s%s" % (" ".join(self.words), self.status, self.out, self.err)

    @property
    def json(self):
        return json.loads(self.out)

    @property
    def error(self):
        return json.loads(self.err)


def ask(cluster, words, prefix=(), env=None, text=None):
    done = subprocess.run(list(prefix) + [os.path.join(cluster.bin, "nodectl")] + words, text=True,
                          input=text, stdin=None if text else subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=PATIENCE,
                          env=dict(os.environ, NODECTL_TIMEOUT="30s", **(env or {})), check=False)
    return Answer(words, done)


def here(agent):
    """Flags that ask an agent by its unix socket."""
    return ["--socket", agent.socket_path]


def over(agent, key):
    """Flags that ask an agent over the network."""
    host = "[%s]" % agent.address if ":" in agent.address else agent.address
    return ["--endpoints", "%s:%d" % (host, agent.mesh_port), "--key-file", key.path,
            "--server-key", agent.key.public]


def expect(cluster, status, words, **more):
    """As a table and as JSON: both end with that status, JSON parses wherever it is, and a command
    that failed has printed nothing as if it were data. Returns both answers."""
    plain = ask(cluster, words, **more)
    check(plain.status == status, "exit %d was expected of %s" % (status, plain))
    answer = ask(cluster, words + ["-o", "json"], **more)
    check(answer.status == status, "exit %d was expected of %s" % (status, answer))
    if status in (0, 1):
        check(plain.out and answer.json is not None, "nothing was said: %s" % answer)
    else:
        check(not plain.out and not answer.out, "data of a failed command: %s" % answer)
        check(plain.err.startswith("error: ") or status == 3, "no plain error: %s" % plain)
        missing = {"code", "reason", "message", "metadata", "requestId"} - answer.error.keys()
        check(not missing, "%s is missing: %s" % (missing, answer))
    return plain, answer
