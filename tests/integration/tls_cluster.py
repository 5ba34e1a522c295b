#!/usr/bin/python3
"""https checks of a real web server, and gRPC checks of a real gRPC server, by a cluster of real agents,
from documents as users write them:
votes and verdicts, what `why`, `events` and the log say of a certificate that ends soon and of one that
was renewed, and certificates that are verified. Each agent makes the probes itself.
"""
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import grpc_servers  # noqa: E402
import tls_servers as tls  # noqa: E402
from cluster import Cluster, ROOT, check, free_port, run, wait_until  # noqa: E402
from ctl import ask, here  # noqa: E402
from nginx import HEALTH_PAGE, certificate, configuration  # noqa: E402


class Nginx:
    """A server with TLS; another certificate, or another end of it, by start once more."""

    def __init__(self, folder):
        self.folder, self.port, self.process = folder, free_port(), None
        self.at = "127.0.0.1:%d" % self.port

    def start(self, cert):
        self.stop()
        config = os.path.join(self.folder, "nginx.conf")
        with open(config, "w", encoding="ascii") as file:
            file.write(configuration(self.folder, self.at + " ssl",
                                     certificate(self.folder, cert) + HEALTH_PAGE))
        self.process = subprocess.Popen(["nginx", "-e", self.folder + "/error.log", "-c", config])

    def stop(self):
        if self.process is not None:
            self.process.terminate()
            self.process.wait()
        self.process = None

    def requests(self):
        with open(os.path.join(self.folder, "access.log"), encoding="utf-8") as file:
            return file.read()


def document(name, at, check_text):
    """The example, for another place and with times that suit a test."""
    path = os.path.join(ROOT, "deploy", "examples", "checks", "https.yaml")
    with open(path, encoding="utf-8") as file:
        head, _, tail = file.read().partition("  check:\n")
    text = tail.partition("  backends:\n")[0]
    if check_text is not None:
        text = check_text
    else:
        text = text.replace("www.example.com", tls.NAME).replace("type: tls", "type: tls\n    timeout: "
                            "1s\n    interval: 500ms", 1)
    return (head.replace("name: https", "name: " + name) + "  check:\n" + text +
            "  backends:\n  - at: %s\n" % at)


def apply(cluster, text):
    path = os.path.join(cluster.dir, "group.yaml")
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    answer = ask(cluster, ["apply", "-f", path] + here(cluster.agents[1]))
    check(answer.status == 0, "not applied: %s" % answer)


def each(cluster, what, words, text):
    """All nodes come to say so."""
    for agent in cluster.agents.values():
        wait_until("%s on node %d" % (what, agent.id), 60, lambda agent=agent: text in " ".join(
            ask(cluster, words + here(agent)).out.split()))
    print("on all nodes: %s" % what)


def grpc_group(cluster, authority):
    """One server in the clear, one within TLS, and a service that stops to serve."""
    services = {"shop.Orders": grpc_servers.SERVING}
    clear = grpc_servers.Server("127.0.0.1", services)
    secure = grpc_servers.Server("127.0.0.1", services, authority, "near")
    check_text = ("    type: grpc\n    timeout: 1s\n    interval: 500ms\n"
                  "    grpc: {service: shop.Orders}\n")
    apply(cluster, document("clear", clear.to, check_text))
    apply(cluster, document("secure", secure.to, check_text +
                            "    tls: {verify: ca, serverName: %s}\n" % tls.NAME))
    each(cluster, "gRPC in the clear is healthy", ["why", "clear/" + clear.to], "is healthy")
    each(cluster, "gRPC within TLS is healthy", ["why", "secure/" + secure.to], "is healthy")
    each(cluster, "with its certificate", ["why", "secure/" + secure.to], "in 5 days: renew it")
    services["shop.Orders"] = grpc_servers.NOT_SERVING
    each(cluster, "it stops to serve", ["why", "clear/" + clear.to], "GRPC_NOT_SERVING (2)")
    each(cluster, "and is unhealthy", ["why", "secure/" + secure.to], "is unhealthy")
    clear.stop()
    secure.stop()


def test(options):
    with tempfile.TemporaryDirectory() as folder, Cluster(options) as cluster:
        os.chmod(folder, 0o755)
        authority = tls.Authority(folder)
        authority.make("good", days=100)
        authority.make("near", days=5)
        authority.make("ended", days=-1)
        nginx = Nginx(folder)
        for agent in cluster.agents.values():
            agent.prefix = ["env", "SSL_CERT_FILE=" + authority.pem]
        try:
            nginx.start("near")
            cluster.make()
            apply(cluster, document("web", nginx.at, None))
            why = ["why", "web/" + nginx.at]
            each(cluster, "healthy, by votes of three", why, "is healthy")
            each(cluster, "the certificate ends in 5 days", why, "in 5 days: renew it")
            each(cluster, "an event says so", ["events", "--type", "certificate"], "soon: renew it")
            check(all(agent.count(["event=certificate", "ends_soon=yes"]) == 1
                      for agent in cluster.agents.values()), "not once in each log")
            for agent in cluster.agents.values():
                counts = agent.counters()
                check(counts["probe_results{ok}"] > 0 and counts["probes_lost"] == 0,
                      "node %d did not probe by itself" % agent.id)
            check('"GET /health HTTP/1.1" 200' in nginx.requests() and
                  "jury-probe/" in nginx.requests(), "no request inside")

            nginx.start("good")
            each(cluster, "a renewed certificate", why, "in 100 days")
            each(cluster, "and its event", ["events", "--type", "certificate"],
                 "is a newer one that ends on")
            nginx.stop()
            each(cluster, "unhealthy without the server", why, "is unhealthy")
            each(cluster, "by its reason", why, "CONNECT_FAILED")

            verified = ("    type: tls\n    timeout: 1s\n    interval: 500ms\n"
                        "    tls: {verify: ca, serverName: %s}\n")
            nginx.start("ended")
            apply(cluster, document("verified", nginx.at, verified % tls.NAME))
            why = ["why", "verified/" + nginx.at]
            each(cluster, "a certificate that ended is refused", why, "TLS_CERT_EXPIRED")
            each(cluster, "with the day", why, "1 day ago: renew it")
            nginx.start("good")
            each(cluster, "and a good one passes", why, "is healthy")
            apply(cluster, document("verified", nginx.at, verified % "other.test"))
            each(cluster, "one of another name is refused", why, "TLS_CERT_WRONG_NAME")
            grpc_group(cluster, authority)
        finally:
            nginx.stop()


run(test)
