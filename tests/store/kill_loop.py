#!/usr/bin/python3
# alone: it measures the time to the first commit
# twin: ack-before-commit acknowledged write [0-9]+ is lost
"""Kill loop: an outside writer logs what it means to write and what was acknowledged; nodes are
killed (leader 70 %, a follower 20 %, two at once 10 %) and started again. At the end no acknowledged
write may be missing, revisions are unique and rise, and all three logs are equal at each revision.
Prints the time from the kill of a leader to the next acknowledged write."""
import os
import random
import threading
import time

from cluster import FOLLOWER, LEADER, check, run, wait_until

N_BETWEEN_KILLS = 300  # acknowledged writes, at most


class Writer:
    """Keeps `outstanding` appends under way at whoever leads."""

    def __init__(self, cluster, outstanding):
        self.cluster = cluster
        self.outstanding = outstanding
        self.log = open(os.path.join(cluster.dir, "writer.log"), "w", buffering=1)
        self.lock = threading.Lock()
        self.room = threading.Condition(self.lock)
        self.pending = {}   # cookie -> (id, node, time of the call)
        self.acked = []     # (id, revision, called, answered, by which node)
        self.n_unknown = 0
        self.n_refused = 0
        self.next_id = 1
        self.leader = 0
        self.must_stop = False
        for node in cluster.nodes.values():
            node.on_done = self.on_done
        self.thread = threading.Thread(target=self.main, daemon=True)

    def on_done(self, node, event):
        with self.lock:
            entry = self.pending.pop(event["cookie"], None)
            if entry is None:
                return
            number, _, called = entry
            if event["outcome"] == "done":
                now = time.monotonic()
                self.log.write("acknowledged %d %d\n" % (number, event["answer"]))
                self.acked.append((number, event["answer"], called, now, node.id))
                self.leader = node.id
            elif event["outcome"] == "unknown":
                self.n_unknown += 1
            else:
                self.n_refused += 1
                if event["leader"] not in (0, node.id):
                    self.leader = event["leader"]
                else:
                    self.leader = 0
            self.room.notify()

    def lost(self, node):
        """The process is gone: what it had under way may be applied or not."""
        with self.lock:
            for cookie in [c for c, entry in self.pending.items() if entry[1] == node.id]:
                del self.pending[cookie]
                self.n_unknown += 1
            if self.leader == node.id:
                self.leader = 0
            self.room.notify()

    def main(self):
        pick = random.Random(1)
        while not self.must_stop:
            with self.lock:
                if len(self.pending) >= self.outstanding:
                    self.room.wait(0.05)
                    continue
                target = self.leader or pick.choice(list(self.cluster.nodes))
                is_guess = self.leader == 0
                node = self.cluster.nodes[target]
                cookie = self.cluster.cookie = self.cluster.cookie + 1
                number = self.next_id
                self.next_id += 1
                self.log.write("means %d\n" % number)
                self.pending[cookie] = (number, target, time.monotonic())
            if not node.is_alive() or not node.send("append %d %d" % (cookie, number)):
                with self.lock:
                    self.pending.pop(cookie, None)
                    self.leader = 0
                is_guess = True
            if is_guess:
                time.sleep(0.005)  # nobody leads: ask around, not as fast as possible

    def first_ack(self, moment, not_by):
        """Of what a node that was not killed has answered since: its time, or None."""
        with self.lock:
            times = [a[3] for a in self.acked[-20000:] if a[3] > moment and a[4] not in not_by]
            return min(times) if times else None

    def stop(self):
        self.must_stop = True
        self.thread.join()


def choose(cluster, pick):
    statuses = {n.id: n.status() for n in cluster.nodes.values()}
    leaders = [i for i, s in statuses.items() if s["raft"] == LEADER]
    followers = [i for i, s in statuses.items() if s["raft"] == FOLLOWER]
    if not leaders or len(followers) < 2:
        return None, None
    dice = pick.random()
    leader = max(leaders, key=lambda i: statuses[i]["term"])
    if dice < 0.7:
        return [leader], leader
    if dice < 0.9:
        return [pick.choice(followers)], None
    return [leader, pick.choice(followers)], leader


def cycle(cluster, writer, pick, times):
    def found():
        return choose(cluster, pick) if all(n.is_alive() for n in cluster.nodes.values()) else None
    victims, leader = None, None
    while not victims:
        victims, leader = wait_until("a leader and two followers", 30, found)
    # The moment of the kill is a point in the writes, not in step with anything else.
    n_acked = len(writer.acked) + pick.randrange(N_BETWEEN_KILLS)
    wait_until("acknowledged write %d, for the next kill" % n_acked, 30,
               lambda: len(writer.acked) >= n_acked)
    killed = time.monotonic()
    for victim in victims:
        cluster.nodes[victim].kill()
        writer.lost(cluster.nodes[victim])
    if len(victims) == 1:
        first = wait_until("a write after the kill of %s" % victims, 30,
                           lambda: writer.first_ack(killed, victims))
        if leader is not None:
            times.append(first - killed)
    for victim in victims:
        cluster.nodes[victim].start().wait_started()
    started = time.monotonic()
    wait_until("a write after the restart of %s" % victims, 30,
               lambda: writer.first_ack(started, []))
    wait_until("the victims know a leader", 30,
               lambda: all((cluster.nodes[v].status() or {}).get("leader") for v in victims))


def judge(cluster, writer):
    dumps = {n.id: n.dump() for n in cluster.nodes.values()}
    shortest = min(len(d) for d in dumps.values())
    check(len({len(d) for d in dumps.values()}) == 1, "the nodes hold %s entries" %
          {i: len(d) for i, d in dumps.items()})
    for revision in range(shortest):
        check(len({tuple(d[revision]) for d in dumps.values()}) == 1,
              "the nodes differ at revision %d: %s" %
              (revision + 1, {i: d[revision] for i, d in dumps.items()}))
    at = {}
    for revision, number, _ in next(iter(dumps.values())):
        if int(number) != 0:
            check(int(number) not in at, "write %s was applied twice" % number)
            at[int(number)] = int(revision)
    lost = [a[0] for a in writer.acked if a[0] not in at]
    check(not lost, "acknowledged write %d is lost, %d in all" % (lost[0] if lost else 0, len(lost)))
    for number, revision, _, _, _ in writer.acked:
        check(at[number] == revision, "write %d was acknowledged at revision %d, is at %d" %
              (number, revision, at[number]))
    check(len({a[1] for a in writer.acked}) == len(writer.acked), "a revision was given twice")
    # What was acknowledged before another was called has the lower revision.
    newest = 0
    ends = sorted(writer.acked, key=lambda a: a[3])
    done = 0
    for number, revision, called, _, _ in sorted(writer.acked, key=lambda a: a[2]):
        while done < len(ends) and ends[done][3] < called:
            newest = max(newest, ends[done][1])
            done += 1
        check(revision > newest, "write %d got revision %d, but %d was acknowledged before it "
              "was called" % (number, revision, newest))
    return shortest


def percentile(values, share):
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def main(make, options):
    print("seed %d" % options.seed)
    pick = random.Random(options.seed)
    keep = str(options.snapshot)
    cluster = make(calm=False, options=["--threshold", keep, "--trailing", keep]).up()
    writer = Writer(cluster, options.outstanding)
    writer.thread.start()
    times = []
    for _ in range(options.cycles):
        cycle(cluster, writer, pick, times)
    writer.stop()
    for node in cluster.nodes.values():
        check(node.is_alive(), "node %d is gone" % node.id)
    cluster.settle(60)
    n_entries = judge(cluster, writer)
    statuses = [n.status() for n in cluster.nodes.values()]
    print("seed %d: %d cycles, %d writes meant, %d acknowledged, %d of unknown outcome, %d refused, "
          "0 lost; %d revisions equal on all three" %
          (options.seed, options.cycles, writer.next_id - 1, len(writer.acked), writer.n_unknown,
           writer.n_refused, n_entries))
    print("snapshots held back %d, membership batches cut %d, stale messages dropped %d" %
          tuple(sum(s[c] for s in statuses)
                for c in ("held_snapshots", "cut_changes", "dropped_stale")))
    print("kill of the leader to the next acknowledged write, %d kills: p50 %.0f ms, p99 %.0f ms, "
          "max %.0f ms" % (len(times), 1000 * percentile(times, 0.5), 1000 * percentile(times, 0.99),
                           1000 * max(times)))


if __name__ == "__main__":
    run(main, seed=1, cycles=30, outstanding=16, snapshot=2000)
