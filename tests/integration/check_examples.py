#!/usr/bin/python3
"""Each document of deploy/examples/checks, applied to a real agent and run against the server of its use:
healthy while it runs, unhealthy with the right reason when it is stopped, when something in its place
answers wrongly too, and healthy once more when it is back. Rows S103-S106, 3.11.

Those of small servers, which tests/run installs; with --servers all each, and what is missing is
installed. Only one thing is changed of a document beside its name and its backends: times that suit a test.
"""
# shows: S103 S104 S105 S106
# twin: reply-any not within .*answers wrongly
import contextlib
import os
import shutil
import subprocess
import sys
import tempfile

import yaml

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import real_servers as real  # noqa: E402
from cluster import Cluster, Failure, ROOT, STATES, check, free_port, run, wait_until  # noqa: E402
from ctl import ask, here  # noqa: E402

EXAMPLES = os.path.join(ROOT, "deploy", "examples", "checks")
TIMES = {"timeout": "1s", "interval": "300ms"}
REFUSED, CLOSED = "CONNECT_FAILED", "PORT_UNREACHABLE"
OTHER, STATUS = "RESPONSE_MISMATCH", "HTTP_CODE_NOT_MATCH"


def busy(_):
    return b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n"


def greets(words):
    return lambda data: words if data == b"" else None


def answers(words):
    return lambda data: words if data else None


class Use:
    """document: without .yaml. server: a function of real_servers, its Grpc, or words of a stub. wrong:
    what a stub in its place says, and the reason that follows; None: nothing is wrong to this check.
    light: tests/run has it."""

    def __init__(self, document, what, server, is_udp, wrong, reason, light=False, beside=False):
        self.document, self.what, self.server, self.is_udp = document, what, server, is_udp
        self.wrong, self.reason, self.light, self.beside = wrong, reason, light, beside
        self.running, self.process = None, None

    def place(self, cluster, folder, index):
        self.folder = os.path.join(folder, "%d-%s" % (index, self.document))
        self.address = cluster.net + ".%d" % (100 + index)
        self.port = free_port(self.address)
        # Beside: the check has a port of its own, the backend's own is another.
        self.at = "%s:%d" % (self.address, self.port - 1 if self.beside else self.port)

    def start(self):
        if self.server is real.Grpc:
            self.running = real.Grpc(self.address, self.port).start()
        elif self.server is real.source_engine:
            self.running = real.Stub(True, self.server, self.address, self.port)
        else:
            if self.process is None:
                self.process = real.Real(self.server, self.what, self.folder, self.address,
                                         self.port)
            self.running = self.process.start()

    def start_wrong(self):
        if self.server is real.Grpc:
            self.running = real.Grpc(self.address, self.port, real.NOT_SERVING).start()
        else:
            self.running = real.Stub(self.is_udp, self.wrong, self.address, self.port)

    def stop(self):
        if self.running is not None:
            self.running.stop()
        self.running = None

    @property
    def name(self):
        return "%s (%s)" % (self.document, self.what)

    def text(self):
        """What the server wrote."""
        return self.running.text() if hasattr(self.running, "text") else ""

    def document_text(self):
        with open(os.path.join(EXAMPLES, self.document + ".yaml"), encoding="utf-8") as file:
            document = yaml.safe_load(file)
        # Two servers may have one document.
        self.group = document["metadata"]["name"] + "-" + self.what.split(" ")[0]
        document["metadata"]["name"] = self.group
        document["spec"]["backends"] = [{"at": self.at}]
        document["spec"]["check"].update(TIMES)
        if "port" in document["spec"]["check"]:
            document["spec"]["check"]["port"] = self.port
        return yaml.safe_dump(document)

    def state(self, agent):
        """Its state, and the reason of the last probe: words."""
        address, port = self.at.split(":")
        why = agent.call("VerdictService/Why", {"backend": {
            "group": self.group, "address": address, "port": int(port)}})
        reasons = why.probing.last.DESCRIPTOR.fields_by_name["reason"].enum_type.values_by_number
        return (STATES[why.verdict.state],
                reasons[why.probing.last.reason].name.removeprefix("PROBE_REASON_"))


USES = [
    Use("ftp", "vsftpd", real.vsftpd, False, greets(b"421 Too many users.\r\n"), OTHER, light=True),
    Use("ssh", "sshd", real.sshd, False, greets(b"Exceeded MaxStartups\r\n"), OTHER, light=True),
    Use("dns", "dnsmasq", real.dnsmasq, True, answers(b"\x4a\x55\x01\x00"), OTHER, light=True),
    Use("database", "redis", real.redis, False,
        answers(b"-LOADING Redis is loading the dataset in memory\r\n"), OTHER, light=True),
    Use("game-cube", "cube2", real.cube2, True, answers(b"\x81jury\0\x04"), OTHER, light=True,
        beside=True),
    Use("game", "stub of A2S", real.source_engine, True, answers(b"\xfe\xff\xff\xff"), OTHER,
        light=True),
    Use("website", "nginx", real.nginx, False, busy, STATUS, light=True),
    Use("api-gateway", "haproxy", real.haproxy, False, busy, STATUS, light=True),
    Use("https", "nginx with TLS", real.nginx_tls, False, busy, "TLS_HANDSHAKE_FAILED", light=True),
    Use("quic-by-http", "nginx beside it", real.nginx, False, busy, STATUS, light=True, beside=True),
    Use("grpc", "python3-grpcio", real.Grpc, False, None, "GRPC_NOT_SERVING", light=True),
    Use("mail", "exim4", real.exim, False, greets(b"421 Too busy\r\n"), OTHER),
    Use("imap", "dovecot", real.dovecot, False, greets(b"* BYE Too many connections\r\n"), OTHER),
    Use("dns", "unbound", real.unbound, True, answers(b"\x4a\x56\x80\x00"), OTHER),
    Use("sip", "kamailio", real.kamailio, True, answers(b"HTTP/1.1 200 OK\r\n\r\n"), OTHER),
    Use("conference", "coturn", real.coturn, True,
        answers(b"\x01\x11\0\0\x21\x12\xa4\x42jury-health0"), OTHER),
    Use("streaming", "gst-rtsp-server", real.rtsp, False,
        answers(b"RTSP/1.0 503 Service Unavailable\r\nCSeq: 1\r\n\r\n"), OTHER),
    Use("radio", "icecast2", real.icecast, False, busy, STATUS),
    Use("quic", "ngtcp2", real.ngtcp2, True, None, None),
    Use("database-postgres", "postgresql", real.postgres, False,
        answers(b"E\0\0\0\x1aSFATAL\0Mstarting up\0\0"), OTHER),
]


def each(agent, uses, what, state, reasons):
    """They come to be so; returns the reason of each. reasons: of a use, those that are right."""
    seen = {}
    for use in uses:
        def has_come(use=use):
            seen[use] = use.state(agent)
            return seen[use][0] == state and seen[use][1] in reasons(use)
        try:
            wait_until("%s: %s" % (use.name, what), 20, has_come)
        except Failure:
            print("%s: last seen %s\n%s" % (use.name, seen.get(use), use.text()[-3000:]))
            raise
    return {use: reason for use, (_, reason) in seen.items()}


def apply(cluster, uses):
    path = os.path.join(cluster.dir, "uses.yaml")
    with open(path, "w", encoding="utf-8") as file:
        file.write("---\n".join(use.document_text() for use in uses))
    answer = ask(cluster, ["apply", "-f", path] + here(cluster.agents[1]))
    check(answer.status == 0, "not applied: %s" % answer)


def all_documents_have_a_use():
    names = {name.removesuffix(".yaml") for name in os.listdir(EXAMPLES)}
    used = {use.document for use in USES}
    check(names == used, "no use for %s, no document for %s" % (names - used, used - names))


def rounds(agent, uses):
    """What was seen of each use, in words."""
    told = {use: [] for use in uses}

    def tell(what, state, reasons, of=uses):
        for use, reason in each(agent, of, what, state, reasons).items():
            told[use].append("%s: %s (%s)" % (what, state, reason))

    well = lambda use: ("SILENT",) if use.document == "quic" else ("OK",)  # noqa: E731
    for use in uses:
        use.start()
    tell("runs", "healthy", well)
    for use in uses:
        use.stop()
    tell("stopped", "unhealthy", lambda use: (CLOSED if use.is_udp else REFUSED,))
    can_be_wrong = [use for use in uses if use.reason]
    for use in can_be_wrong:
        use.start_wrong()
    tell("answers wrongly", "unhealthy", lambda use: (use.reason,), can_be_wrong)
    for use in can_be_wrong:
        use.stop()
    for use in uses:
        use.start()
    tell("is back", "healthy", well)
    return told


def test(options):
    all_documents_have_a_use()
    uses = [use for use in USES if use.light or options.servers == "all"]
    if options.servers == "all":
        subprocess.run([os.path.join(ROOT, "deploy/install-packages"), "test", "uses"], check=True)
    folder = tempfile.mkdtemp(prefix="jury-uses-")
    os.chmod(folder, 0o755)  # some servers become another user
    try:
        with Cluster(options, n_nodes=1) as cluster:
            try:
                for index, use in enumerate(uses):
                    use.place(cluster, folder, index)
                cluster.make(vote_interval="0.2s")
                apply(cluster, uses)
                told = rounds(cluster.agents[1], uses)
            finally:
                for use in uses:
                    with contextlib.suppress(Failure):  # the others are to end, too
                        use.stop()
        for use in uses:
            print("%s: %s" % (use.name, "; ".join(told[use])))
        return ("%d documents, %d servers: each healthy while it runs, and not otherwise"
                % (len({use.document for use in uses}), len(uses)))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


run(test, servers="light")
