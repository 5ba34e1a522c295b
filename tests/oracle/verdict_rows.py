#!/usr/bin/python3
"""What every rule must say of every set of votes, worked out by brute force.

Written from the sentences of the specification about votes and verdicts, not from the program. The
program beside it (verdict_rows.c) asks the agent's own code for the same rows and compares.

Peers are alike, so votes are told by counts; a node's own vote stands apart. The rows of one set of
votes are a few lines: one for each situation (state before, below-quorum), one letter for each rule.

usage: verdict_rows.py [N_MAX]     for n = 1 .. N_MAX observers, 7 if not said
"""
import functools
import itertools
import sys

OWN = ["pass", "fail", "none", "suspect-pass", "suspect-fail"]
STATES = ["initial", "initial-overdue", "healthy", "unhealthy", "gray-healthy", "gray-unhealthy"]
SITUATIONS = list(itertools.product(STATES, ["hold", "local"]))
PERCENTS = [1, 33, 50, 67, 82, 100]
ZONE_N_MAX = 5
PRESETS = {"gwlb": "majority:0", "nlb": "local:0", "clb": "any:0", "r53": "percent:82"}
DEFAULTS = {"gwlb": "majority:0", "nlb": "local:0", "clb": "any:0"}

# What a peer's vote is worth, by what was heard of it and how long ago. V = 1 s, T = 2 s, I = 1 s,
# U = 2: it counts for 3 V and is then, or once it became `none`, remembered for U x (T + I) + 3 V.
V_MS, MEMORY_MS = 1000, 2 * (2000 + 1000)
COUNTS_MS, REMEMBERED_MS = 3 * V_MS, MEMORY_MS + 3 * V_MS
KINDS = ["passes", "fails", "lost-passes", "lost-fails", "silent", "suspect"]


def write_stories(out):
    """story KIND OPINION AGE_MS [then none|suspect AGE_MS]; a silent one may have no opinion."""
    for opinion, counts, lost in [("pass", "passes", "lost-passes"),
                                  ("fail", "fails", "lost-fails")]:
        for kind, age in [(counts, 0), (counts, COUNTS_MS), (lost, COUNTS_MS + 1),
                          (lost, COUNTS_MS + REMEMBERED_MS),
                          ("silent", COUNTS_MS + REMEMBERED_MS + 1)]:
            out.write(f"story {kind} {opinion} {age}\n")
        for kind, age in [(lost, 0), (lost, REMEMBERED_MS), ("silent", REMEMBERED_MS + 1)]:
            out.write(f"story {kind} {opinion} {age + 500} none {age}\n")
        for age in [0, COUNTS_MS, REMEMBERED_MS]:
            out.write(f"story suspect {opinion} {age + 500} suspect {age}\n")
    out.write("story silent none 0\n")


class Votes:
    """The votes that one node holds on one target: its own, and how many peers are of each kind.

    passes and fails count. Lost ones aged out or became none and are remembered. Silent ones were
    never heard, or too long ago. Suspect ones are dropped at once: as good as silent.
    own None: the votes of a zone that is not the node's own."""

    def __init__(self, own, peers):
        self.own = own
        passes, fails, self.lost_passes, self.lost_fails = peers[:4]
        self.n = sum(peers) + (own is not None)
        self.p = passes + (own == "pass")
        self.f = fails + (own == "fail")
        self.c = self.p + self.f

    def too_few(self):
        """c < q"""
        return self.c < self.n // 2 + 1

    def tied(self):
        """As many votes that fail as pass."""
        return self.f == self.p >= 1


class ZonedVotes(Votes):
    """The same by zone of the observers, as the rule zone-majority asks. The first zone is the
    node's own; observers of which no zone is known are a zone together."""

    def __init__(self, own, zones):
        super().__init__(own, [sum(kind) for kind in zip(*zones)])
        self.zones = [Votes(own if i == 0 else None, peers) for i, peers in enumerate(zones)]

    def too_few(self):
        """Fewer than q observers count, or no majority of the zones has a counted vote."""
        heard = sum(zone.c >= 1 for zone in self.zones)
        return super().too_few() or heard < len(self.zones) // 2 + 1

    def down(self):
        """More than half of the zones with votes fail: in each more than half of the counted votes
        fail and at least half of its observers count. A lost pass blocks in its zone."""
        voting = sum(zone.c + zone.lost_passes >= 1 for zone in self.zones)
        return 2 * self.failing() > voting

    def up(self):
        """More than half of the zones with votes pass: in each more than half of the counted votes
        pass. A lost fail blocks in its zone."""
        voting = sum(zone.c + zone.lost_fails >= 1 for zone in self.zones)
        return 2 * self.passing() > voting

    def failing(self):
        return sum(2 * zone.f > zone.c + zone.lost_passes and 2 * zone.c >= zone.n
                   for zone in self.zones)

    def passing(self):
        return sum(2 * zone.p > zone.c + zone.lost_fails for zone in self.zones)

    def tied(self):
        """As many zones that fail as pass, and votes of both kinds."""
        return self.f >= 1 and self.p >= 1 and self.failing() == self.passing()


def first_column(kind, number, share, c):
    """The first column of a rule, where `share` of `c` votes say so."""
    if kind == "any":
        return share >= 1
    if kind == "majority":
        return 2 * share > c
    if kind == "all":
        return share == c and share >= 1
    if kind == "at-least":
        return share >= number
    if kind == "percent":
        return 100 * share >= number * c and share >= 1
    raise ValueError(kind)


def down_column(rule, votes):
    """A lost pass counts in p and c of the down column."""
    kind, number = rule
    if kind == "local":
        return votes.own == "fail"
    if kind == "zone-majority":
        return votes.down()
    return first_column(kind, number, votes.f, votes.c + votes.lost_passes)


def up_column(rule, votes, apart):
    """A lost fail counts in f and c of the up column."""
    kind, number = rule
    p, f, c = votes.p, votes.f + votes.lost_fails, votes.c + votes.lost_fails
    if kind == "local":
        return votes.own == "pass"
    if kind == "zone-majority":
        return votes.up()
    if apart:  # the rule's first column with p in the place of f
        return first_column(kind, number, p, c)
    if kind == "any":
        return f == 0 and p >= 1
    if kind == "majority":
        return 2 * p > c
    if kind == "all":
        return p >= 1
    if kind == "at-least":
        return f < number and p >= 1
    if kind == "percent":
        return 100 * f < number * c and p >= 1
    raise ValueError(kind)


def next_state(state, own, below, case):
    """The state after one look at the votes, and whether it is held.

    A rule is under `local` when both its columns are; when one is, only that one goes without a
    quorum, and a missing own vote holds. A tie is as many votes that fail as pass."""
    down, up, few, down_local, up_local, tie = case
    vote = {"pass": "healthy", "fail": "unhealthy"}.get(own)  # what the own vote says, if it counts
    few = few and not (down_local and up_local)
    if few and below == "local":
        return vote or state, not vote
    held = few or ((down_local or up_local) and not vote)
    if down:  # looked at first, and up never holds where it does
        return "unhealthy" if down_local or not few else state, held
    if up:
        return "healthy" if not few or own == "pass" else state, held
    if state == "initial-overdue" and tie and vote and not few:
        return "gray-" + vote, held
    return state, held


def outcome(state, own, below, case):
    """A letter for: the state after it, gray, held, unreachable from here."""
    after, held = next_state(state, own, below, case)
    gray = after.startswith("gray-")
    word = after.replace("gray-", "").replace("-overdue", "")
    few = case[2]
    unreachable = word == "healthy" and own == "fail" and (not few or held)
    number = ["initial", "healthy", "unhealthy"].index(word)
    return chr(ord("A") + number * 8 + gray * 4 + held * 2 + unreachable)


@functools.lru_cache(maxsize=None)
def outcomes(own, state, below):
    """The letters for all cases: what next_state() asks of rule and votes are six bits."""
    cases = itertools.product([False, True], repeat=6)
    return bytes(ord(outcome(state, own, below, case)) for case in cases) + bytes(192)


def write_rows(votes, rules, out):
    """The rows of one set of votes; few and tied are asked of zones when a column of the rule is."""
    few, tied = votes.too_few(), votes.tied()
    cases = bytes(32 * down_column(down, votes) + 16 * up_column(up, votes, apart)
                  + 8 * few + 4 * (down[0] == "local") + 2 * (up[0] == "local") + tied
                  for down, up, apart in rules)
    for state, below in SITUATIONS:
        out.write(cases.translate(outcomes(votes.own, state, below)).decode() + "\n")


def write_rules(rules, out):
    names = ["/".join(f"{kind}:{number}" for kind, number in ([down, up] if apart else [down]))
             for down, up, apart in rules]
    out.write(f"rules {' '.join(names)}\n")


def spread(total, n_kinds):
    """All ways to be `total` peers of n_kinds kinds."""
    if n_kinds == 1:
        yield (total,)
        return
    for first in range(total + 1):
        for rest in spread(total - first, n_kinds - 1):
            yield (first, *rest)


def write_plain(n, out):
    """Each rule alone and each pair set apart, on all votes of n observers."""
    parts = [("local", 0), ("any", 0), ("majority", 0), ("all", 0)]
    parts += [("at-least", k) for k in range(1, n + 1)]
    parts += [("percent", x) for x in PERCENTS]
    rules = [(part, part, False) for part in parts] + [
        (down, up, True) for down, up in itertools.product(parts, parts)]
    write_rules(rules, out)
    for own, peers in itertools.product(OWN, spread(n - 1, len(KINDS))):
        out.write(f"votes {own} {','.join(map(str, peers))}\n")
        write_rows(Votes(own, peers), rules, out)


def partitions(total, largest):
    """All ways to be a sum of zones, large ones first."""
    if total == 0:
        yield ()
    for size in range(min(total, largest), 0, -1):
        for rest in partitions(total - size, size):
            yield (size, *rest)


def write_zoned(n, out):
    """The rule that asks zones, alone and set apart with others, on all zones of n observers. A
    suspect vote is as good as a silent one and is left to write_plain()."""
    zone, others = ("zone-majority", 0), [("local", 0), ("any", 0), ("majority", 0), ("all", 0)]
    rules = [(zone, zone, False), (zone, zone, True)]
    rules += [pair for other in others for pair in [(zone, other, True), (other, zone, True)]]
    write_rules(rules, out)
    for own_size in range(1, n + 1):
        for sizes in partitions(n - own_size, n):
            spreads = [spread(size, len(KINDS) - 1) for size in (own_size - 1, *sizes)]
            for own, *zones in itertools.product(OWN, *spreads):
                text = " ".join(",".join(map(str, zone)) + ",0" for zone in zones)
                out.write(f"votes {own} {text}\n")
                write_rows(ZonedVotes(own, zones), rules, out)


def main():
    n_max = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    out = sys.stdout
    out.write("".join(f"default {profile} {rule}\n" for profile, rule in DEFAULTS.items()))
    out.write("".join(f"preset {word} {rule}\n" for word, rule in PRESETS.items()))
    out.write(f"interval {V_MS} {MEMORY_MS}\n")
    write_stories(out)
    out.write(f"situations {' '.join('/'.join(situation) for situation in SITUATIONS)}\n")
    for n in range(1, n_max + 1):
        write_plain(n, out)
    for n in range(1, min(n_max, ZONE_N_MAX) + 1):
        write_zoned(n, out)
    out.write("end\n")


main()
