"""Traffic through a shim, and the forwarding table that it goes by, seen from outside."""
import os

from cluster import check, wait_until
from prober import Lines

HERE = os.path.dirname(os.path.abspath(__file__))


class Watch(Lines):
    """The forwarding table of one node, each published state of it."""

    def __init__(self, cluster, agent, pause_us):
        super().__init__([os.path.join(cluster.bin, "table_watch"), agent.tables, str(pause_us)])
        self.name = agent.name

    def tables(self):
        with self.changed:
            return [line for line in self.lines if "groups" in line]

    @staticmethod
    def usable(line, group="web"):
        """The backends of the class that new flows take."""
        ranks = line["groups"].get(group, {})
        best = min((rank for rank in ranks.values() if rank > 0), default=0)
        return {at for at, rank in ranks.items() if rank == best and rank > 0}

    @staticmethod
    def second_choice(line, group="web"):
        """Those that would be taken if there were no better ones."""
        ranks = line["groups"].get(group, {})
        return {at for at, rank in ranks.items() if rank > 0} - Watch.usable(line, group)


class Client(Lines):
    """Connections at a rate and long flows from the host "client"; it never tries twice."""

    def __init__(self, lan, at, servers, rate, n_flows):
        self.n_flows = n_flows
        super().__init__(["/usr/bin/python3", os.path.join(HERE, "name_client.py"), at,
                          ",".join(servers), "--rate", str(rate), "--flows", str(n_flows)],
                         netns=lan.namespace("client"))

    def now(self):
        with self.changed:
            return self.lines[-1] if self.lines else {"good": 0, "failed": [], "flows": 0}

    def check(self, when):
        failed = self.now()["failed"]
        check(not failed, "%s: %d failures: %s" % (when, len(failed), failed[:5]))

    def wait_for(self, n, what):
        """n more good replies, and one more from each long flow."""
        before = self.now()
        wait_until(what, 120, lambda: self.now()["failed"] or (
            self.now()["good"] >= before["good"] + n and
            self.now()["flows"] >= before["flows"] + self.n_flows))
        self.check(what)
