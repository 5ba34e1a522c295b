#!/usr/bin/python3
"""Shows that the simulation can see: plants each fault by itself and wants it to be caught.

usage: plants.py --sim BUILD/bin/sim [--seeds N] [--table FILE]

The faults are in agent/core, each behind plant_is("name") (common/base/plant.h), so a build of the
preset `plant` is needed. All are planted in each run, each by itself, on all processors.
"""
import argparse
import concurrent.futures
import os
import re
import subprocess
import sys
import time

# name: (what goes wrong, how it is found). `noise` is the run that must not differ from the clean one.
PLANTS = {
    # The list of the project's reliability specification, as far as the engine decides it.
    "vote-no-expiry": ("a stale vote counts", "storm"),
    "vote-own-twice": ("one voter counts twice", "storm"),
    "vote-old-epoch": ("messages of an earlier start of a peer are taken", "storm"),
    "vote-sender-clock": ("the age of a vote is taken from its sender", "storm"),
    "vote-replay": ("a repeated or overtaken vote counts", "storm"),
    "vote-other-target": ("a vote counts for what now has its slot", "storm"),
    "class-draining": ("a draining backend is selected", "storm"),
    "verdict-no-quorum": ("a verdict goes down below the quorum", "storm"),
    "vote-no-memory": ("a peer that falls silent changes a verdict", "storm"),
    "health-total": ("failures need not be consecutive", "storm"),
    "result-other-definition": ("a result counts for another check", "storm"),
    "opinion-forever": ("an opinion outlives its probes", "storm"),
    "observer-at-once": ("a node that never spoke is in n", "storm"),
    "warming-takes-all": ("a backend that came late is used before it passed", "storm"),
    # Picked in the core alone, before anything of the tests was read.
    "slot-keeps-votes": ("a slot's votes stay when another target gets it", "storm"),
    "epoch-keeps-sequence": ("a restarted peer is held to its old sequence", "storm"),
    "vote-suspect-counts": ("a vote counts that its sender doubts", "storm"),
    "change-over-vector": ("an overtaken change message wins over a vector", "storm"),
    "vote-ages-unseen": ("nobody looks when a vote ages out", "storm"),
    "streak-outlives-opinion": ("a stale opinion leaves its streak behind", "storm"),
    "quorum-of-heard": ("the quorum is taken of those heard", "storm"),
    "up-without-own": ("it comes up below the quorum without the own vote", "storm"),
    "initial-without-timer": ("a tie in `initial` is forgotten when V grows", "storm"),
    "judge-first-user": ("of groups that share a target one is judged", "storm"),
    "kept-any-definition": ("last-known-good is used for another check", "storm"),
    "verdict-deadline-stays": ("a recovery leaves its drain deadline behind", "storm"),
    "removed-node-votes": ("a removed node's votes go to who gets its place", "storm"),
    "verdict-half-is-most": ("half of the votes is a majority", "storm"),
    "verdict-lost-ignored": ("a remembered vote does not block", "storm"),
    "verdict-lost-for-quorum": ("remembered votes make a quorum", "storm"),
    "suspect-own-counts": ("an own vote in doubt counts", "storm"),
    "doubt-evidence-kept": ("what failed in doubt is believed afterwards", "storm"),
    "history-forgets-age": ("the kept history misses that a vote aged out", "storm"),
    "history-wrong-time": ("the kept history has another time", "storm"),
    # Guards and zones.
    "velocity-off": ("there is no limit of ejections", "storm"),
    "velocity-uncounted": ("an ejection is not counted", "storm"),
    "velocity-half-window": ("half of the window is counted", "storm"),
    "guard-order": ("the lowest id leaves first, whatever the votes", "storm"),
    "hold-ignored": ("a hold freezes nothing", "storm"),
    "hold-of-group-ignored": ("a hold of one group freezes nothing", "storm"),
    "hold-of-node-ignored": ("a node's own hold freezes nothing", "storm"),
    "hold-end-unseen": ("what a node's hold of a group froze stays frozen after it", "storm"),
    "hold-blocks-recovery": ("a hold freezes recoveries, too", "storm"),
    "damping-off": ("nothing is remembered of a backend that flaps", "storm"),
    "damping-breaks-unseen": ("passing votes need not be unbroken", "storm"),
    "damping-never-doubles": ("each flap waits as the first one does", "storm"),
    "return-at-once": ("returns wait for nothing", "storm"),
    "return-uncounted": ("a return is not counted", "storm"),
    "return-counts-turns": ("a turn that was not taken counts as a return", "storm"),
    "return-limit-in-fail-open": ("a group in fail-open waits for returns", "storm"),
    "shadow-off": ("a changed check takes out at once", "storm"),
    "shadow-never-stops": ("a shadow ends, however much it would take out", "storm"),
    "shadow-ends-at-start": ("a shadow ends with a restart", "storm"),
    "alarm-off": ("there is no alarm of many failures at once", "storm"),
    "alarm-anew": ("the alarm is raised anew by a restart", "storm"),
    "alarm-any-time": ("failures of any time count as failures at once", "storm"),
    "zone-counts-nodes": ("zone-majority counts nodes", "storm"),
    "zone-one-speaks": ("one observer speaks for its zone", "storm"),
    "zone-no-quorum": ("zone-majority needs no majority of zones", "storm"),
    "doubt-never": ("a node never doubts itself", "storm"),
    "doubt-not-isolated": ("a node that is cut off from everything trusts itself", "storm"),
    "doubt-not-late": ("a node that stood still trusts itself", "storm"),
    # Weights.
    "slow-start-of-all": ("a slow start though no other has all of its weight", "storm"),
    "slow-start-anew": ("each look at a slow start begins it anew", "storm"),
    "slow-start-no-step": ("nobody looks when the next step is due", "storm"),
    "graded-unseen": ("a vote that grades a weight is not looked at", "storm"),
    "graded-though-held": ("votes that may not decide grade a weight", "storm"),
    "graded-no-floor": ("votes or response times leave less than a tenth", "storm"),
    "graded-at-once": ("response times are compared at each look, not once an interval", "storm"),
    # Several checks of a backend.
    "compose-any-fails": ("one check that fails is enough, whatever k is", "storm"),
    "compose-silence-fails": ("a check without an opinion counts as failed", "storm"),
    "compose-suspect-counts": ("a check that the node doubts has a say", "storm"),
    "part-silence-unseen": ("nobody looks when the opinion of one check expires", "storm"),
    "dependency-ejects": ("a dependency that is down ejects", "storm"),
    "dependency-forgotten": ("a change of the group forgets which dependencies are down", "storm"),
    # Probes that are shared.
    "share-counts-unassigned": ("n is of all nodes, whoever probes", "storm"),
    "share-never-opens": ("a failure calls nobody", "storm"),
    "share-drops-former": ("former probers stop before the new ones have voted", "storm"),
    "share-forgets-unheard": ("a few nodes that are cut off judge alone", "storm"),
    "share-forgets-joined": ("who voted and fell silent is no more in n", "storm"),
    "share-silence-unseen": ("nobody looks when a node falls silent", "noise"),
    "recheck-often": ("there is no limit of probes at once", "storm"),
    # Found by the simulation in the product.
    "velocity-counts-turns": ("a turn that was not taken counts as an ejection", "storm"),
    "velocity-room-unseen": ("a raised limit is seen when the old window ends", "storm"),
    "pending-outlives-target": ("a backend without checks is still pending", "storm"),
    "replay-is-life": ("a replayed message says that its sender lives", "noise"),
    "forgotten-opinion-timer": ("a dropped opinion's timer ends the next streak", "storm"),
}


def run(sim, name, seeds):
    """(caught, seed number or 0, sentence, seconds)"""
    how = ["--noise"] if PLANTS[name][1] == "noise" else []
    started = time.monotonic()
    done = subprocess.run([sim, *how, "--seeds", str(seeds)], env=dict(os.environ, JURY_PLANT=name),
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    took = time.monotonic() - started
    number = re.search(r"failed at the (\d+)th seed", done.stdout)
    sentence = re.search(r"^seed \d+: (.*)$", done.stdout, re.M)
    if not number or not sentence:
        return False, 0, done.stdout.strip().split("\n")[-1], took
    return True, int(number.group(1)), sentence.group(1), took


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--sim", required=True)
    parser.add_argument("--seeds", type=int, default=500)
    parser.add_argument("--table", help="a file for the table of all")
    options = parser.parse_args()
    rows, missed = [], []
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        found = list(pool.map(lambda name: run(options.sim, name, options.seeds), PLANTS))
    for name, (caught, number, sentence, took) in zip(PLANTS, found):
        law = re.search(r"(I-\d+|N5|N7|N18|N20|N24|A22|R-VOTE-2|R-EJ-\d|R-FLAP-1|R-CFG-4|replay)", sentence)
        rows.append(f"| `{name}` | {PLANTS[name][0]} | {'sim: ' + law.group(1) if law else 'sim'} "
                    f"| {number if caught else f'not in {options.seeds}'} |")
        print(f"{name}: {'seed ' + str(number) if caught else 'NOT CAUGHT'} ({took:.1f} s): {sentence}",
              flush=True)
        if not caught:
            missed.append(name)
    if options.table:
        with open(options.table, "w", encoding="utf-8") as file:
            file.write("# Planted faults and what catches them\n\nWritten by `tests/run --campaign "
                       "plants`: each fault is planted alone, and the simulation must go red.\n"
                       "Faults outside the engine are planted by twins of other tests (`tests/run --only "
                       "twins`).\n\n"
                       "| fault | what goes wrong | caught by | seeds needed |\n| --- | --- | --- | --- |\n"
                       + "\n".join(rows) + "\n")
    print(f"{len(PLANTS) - len(missed)} of {len(PLANTS)} plants caught within {options.seeds} seeds"
          + (", not caught: " + ", ".join(missed) if missed else ""))
    return 1 if missed else 0


sys.exit(main())
