"""The phases of tests/run: lint, builds, ctest by label, sanitizers, twins, fuzz, in that order.

Cheap phases come first. Each ctest case, lint and build counts as one test. A skipped test that is not
named with a reason in tests/skips is a failure.
"""
import argparse
import concurrent.futures
import datetime
import glob
import os
import re
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CPUS = os.cpu_count() or 2
JOBS = str(CPUS)
# Scripts that drive real processes mostly wait for timers: a quarter of a processor each, on the
# average. What must be alone says so itself.
SCRIPT_JOBS = str(2 * CPUS)
FUZZ_SECONDS = 8

# preset -> what is built; the presets themselves say how.
SANITIZED = "unit|scenario|sim"


class Tally:
    def __init__(self):
        self.passed, self.failed, self.skipped = 0, [], []

    def add(self, name, ok, detail=""):
        if ok:
            self.passed += 1
        else:
            self.failed.append(name)
            print(f"FAILED {name}\n{detail}", flush=True)


def run(command, log=None, env=None):
    """Exit status and combined output (with `log` it grows in that file, so that it can be watched)."""
    environment = dict(os.environ, **(env or {}))
    if log:
        os.makedirs(os.path.dirname(log), exist_ok=True)
    with open(log, "w+", encoding="utf-8", errors="replace") if log else \
            tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as file:
        done = subprocess.run(command, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL,
                              stdout=file, stderr=subprocess.STDOUT, check=False)
        file.seek(0)
        return done.returncode, file.read()


def tail(text, lines=60):
    return "\n".join(text.split("\n")[-lines:])


def step(tally, name, command, env=None):
    started = time.monotonic()
    status, output = run(command, env=env)
    print(f"  {name}: {'ok' if status == 0 else 'FAILED'} ({time.monotonic() - started:.1f} s)",
          flush=True)
    tally.add(name, status == 0, tail(output))
    return status == 0


def build(tally, preset):
    ok = step(tally, f"configure {preset}", ["cmake", "--preset", preset])
    return ok and step(tally, f"build {preset}", ["cmake", "--build", "--preset", preset, "-j", JOBS])


def allowed_skips():
    reasons = {}
    path = os.path.join(ROOT, "tests/skips")
    with open(path, encoding="utf-8") as file:
        for line in file:
            line = line.strip()
            if line and not line.startswith("#"):
                name, _, reason = line.partition(" ")
                reasons[name] = reason
    return reasons


def ctest(tally, preset, label, more=(), jobs=JOBS):
    """more: options of ctest that choose among the label's tests."""
    what = " ".join([label, *more])
    report = os.path.join(ROOT, "build", preset, f"report-{re.sub('[^a-zA-Z]+', '-', what)}.xml")
    if os.path.exists(report):
        os.unlink(report)
    started = time.monotonic()
    status, output = run(["ctest", "--test-dir", f"build/{preset}", "-L", f"^({label})$", *more,
                          "-j", jobs, "--output-on-failure", "--no-tests=ignore", "--output-junit",
                          report], log=os.path.join(ROOT, "build", preset, "ctest.log"))
    reasons = allowed_skips()
    count = 0
    if os.path.exists(report):
        for case in ElementTree.parse(report).getroot().iter("testcase"):
            name, state = case.get("name"), case.get("status")
            count += 1
            if state == "run":
                tally.add(name, True)
            elif state in ("notrun", "disabled"):
                tally.skipped.append(name)
                print(f"  skipped {name}: {reasons.get(name, 'NO REASON in tests/skips')}")
                if name not in reasons:
                    tally.failed.append(name + " (skipped without a reason)")
            else:
                text = case.findtext("system-out") or ""
                tally.add(f"{preset}/{name}", False, tail(text))
    elif status != 0:
        tally.add(f"ctest {preset} {what}", False, tail(output))
    print(f"  ctest {preset} [{what}]: {count} cases ({time.monotonic() - started:.1f} s)", flush=True)


def phase_lint(tally):
    for name in ("include_rules", "format", "clean_text", "self_test", "proto", "probe_rows",
                 "python_names"):
        step(tally, f"lint {name}", [f"tests/lint/{name}"])


def phase_dev(tally):
    if build(tally, "dev"):
        step(tally, "lint core_symbols", ["tests/lint/core_symbols", "build/dev"])
        ctest(tally, "dev", "unit|scenario|lint")
        ctest(tally, "dev", "sim")


def phase_asan(tally):
    if build(tally, "asan"):
        ctest(tally, "asan", SANITIZED)


def phase_tsan(tally):
    # All of it: this is also the build that shows clang's warnings.
    if build(tally, "tsan"):
        ctest(tally, "tsan", "threads")


def phase_release(tally):
    if build(tally, "release"):
        step(tally, "lint no_plants", ["tests/lint/no_plants", "build/release"])
    # The agent that lacks what it can be built without.
    if build(tally, "bare"):
        step(tally, "bare: what is not built says so", ["build/bare/bin/probe_test_probe_thread"])


def phase_twins(tally):
    if build(tally, "plant"):
        ctest(tally, "plant", "twin", ["-LE", "^script$"])
        ctest(tally, "plant", "twin", ["-L", "^script$"], jobs=SCRIPT_JOBS)


def phase_store(tally):
    if build(tally, "dev"):
        ctest(tally, "dev", "store", jobs=SCRIPT_JOBS)


def phase_integration(tally):
    if build(tally, "dev"):
        ctest(tally, "dev", "integration", jobs=SCRIPT_JOBS)


def phase_bench(tally):
    if build(tally, "dev"):
        ctest(tally, "dev", "bench", jobs="1")


def phase_quickstart(tally):
    ok = step(tally, "quickstart: start, observe", ["deploy/quickstart"])
    step(tally, "quickstart: stop", ["deploy/quickstart", "stop"])
    return ok


def fuzz(target, seconds):
    """Name, exit status and output of a fuzz target that ran so long."""
    name = os.path.basename(target)
    found = os.path.join(ROOT, "build/fuzz/corpus", name)
    seeds = os.path.join(ROOT, "tests/fuzz/corpus", name.removeprefix("fuzz_"))
    os.makedirs(found, exist_ok=True)
    dirs = [found] + ([seeds] if os.path.isdir(seeds) else [])
    return (name, *run([target, f"-max_total_time={seconds}", "-timeout=5", "-rss_limit_mb=2048",
                        "-print_final_stats=1", f"-artifact_prefix=build/fuzz/{name}-"] + dirs))


def phase_fuzz(tally, seconds=FUZZ_SECONDS):
    """Each target by itself on one processor."""
    if not build(tally, "fuzz"):
        return
    targets = sorted(glob.glob(os.path.join(ROOT, "build/fuzz/bin/fuzz_*")))
    with concurrent.futures.ThreadPoolExecutor(CPUS) as pool:
        for name, status, output in pool.map(lambda target: fuzz(target, seconds), targets):
            match = re.search(r"stat::number_of_executed_units:\s*(\d+)", output)
            print(f"  {name}: {match.group(1) if match else '?'} executions in {seconds} s", flush=True)
            tally.add(name, status == 0, tail(output))
    step(tally, "fuzz: planted lengths are found", ["tests/lib/fuzz", "--bin", "build/fuzz/bin",
                                                    "--plants"])


PHASES = {
    "lint": phase_lint,
    "dev": phase_dev,
    "asan": phase_asan,
    "tsan": phase_tsan,
    "release": phase_release,
    "twins": phase_twins,
    "store": phase_store,
    "integration": phase_integration,
    "bench": phase_bench,
    "quickstart": phase_quickstart,
    "fuzz": phase_fuzz,
}

# name -> (what it shows, preset, command with {seed} and {count}, count)
CAMPAIGNS = {
    "ill-node": ("one node of a simulated cluster falls ill in five ways, {count} seeds each", "dev",
                 "build/dev/bin/ill_node --first {seed} --seeds {count}", 1000),
    "self-doubt": ("one of three agents made ill in nine ways, {count} times each: nobody is thrown out",
                   "dev", "/usr/bin/python3 tests/integration/self_doubt.py --bin build/dev/bin "
                   "--faults all --runs {count}", 3),
    "stability": ("{count} s without leader, quorum, peers, store and agents under traffic", "dev",
                  "/usr/bin/python3 tests/integration/static_stability.py --bin build/dev/bin "
                  "--seconds {count}", 300),
    "sim": ("votes and verdicts on a seeded network", "bench",
            f"build/bench/bin/sim --first {{seed}} --seeds {{count}} --jobs {JOBS}", 200000),
    "plants": ("planted faults that the simulation must see; writes tests/plants.md", "plant",
               "tests/sim/plants.py --sim build/plant/bin/sim --seeds {count} "
               "--table tests/plants.md", 500),
    "fuzz": ("each fuzz target, {count} s each", "fuzz", None, 300),
    "fuzz-replies": ("{count} million executions of what parses probes' replies, its lines, its plants",
                     "fuzz", "tests/lib/fuzz --bin build/fuzz/bin --millions {count}", 100),
    "hostile": ("10,000 targets, a tenth of them hostile or not, by turns, {count} rounds", "dev",
                "/usr/bin/python3 tests/integration/hostile_share.py --bin build/dev/bin "
                "--targets 10000 --interval 2000 --rounds {count}", 3),
    "kills": ("kill loop of the store", "dev",
              "/usr/bin/python3 tests/store/kill_loop.py --bin build/dev/bin --seed {seed} "
              "--cycles {count}", 300),
    "bench-votes": ("what votes cost: 100,000 targets and 16 nodes, {count} rounds; on an idle machine",
                    "bench", "/usr/bin/python3 tests/bench/scale.py --bin build/bench/bin "
                    "--rounds {count}", 4),
    "pacing": ("when probes begin, by the backends' capture, for {count} s", "dev",
               "/usr/bin/python3 tests/integration/probe_pacing.py --bin build/dev/bin "
               "--seconds {count}", 120),
    "bench-probes": ("what probes cost, in alternation with haproxy, {count} rounds; on an idle machine",
                     "bench", "/usr/bin/python3 tests/bench/probe_cost.py --bin build/bench/bin "
                     "--rounds {count}", 4),
    "uses": ("each document of deploy/examples/checks against a server of its use; installs those servers",
             "dev", "/usr/bin/python3 tests/integration/check_examples.py --bin build/dev/bin "
             "--servers all", 1),
    "bench-detection": ("how soon dead backends are found, beside haproxy with equal parameters, {count} "
                        "rounds; on an idle machine", "bench",
                        "/usr/bin/python3 tests/bench/detection.py --bin build/bench/bin "
                        "--rounds {count}", 4),
    "fresh-root": ("both set-up commands in a clean Debian 12 root", None,
                   "tests/lib/fresh_root", 1),
    "compose": ("the compose file in a real Docker: build, health, replies, an agent replaced", None,
                "tests/lib/compose_real", 1),
}


def campaign(name, seed, count):
    what, preset, command, default_count = CAMPAIGNS[name]
    count = count or default_count
    seed = seed or int(time.time()) % 1000000
    tally = Tally()
    # Now: what is committed while it runs was not measured.
    _, commit = run(["git", "rev-parse", "--short", "HEAD"])
    started = time.monotonic()
    if name == "fuzz":
        phase_fuzz(tally, seconds=count)
        last = f"{tally.passed} targets clean, {len(tally.failed)} with findings"
        command = f"tests/run --campaign fuzz --count {count}"
    else:
        if preset and not build(tally, preset):
            return tally
        command = command.format(seed=seed, count=count)
        print(f"campaign {name}: {command}  (seed {seed}, count {count})", flush=True)
        log = os.path.join(ROOT, f"build/logs/{name}.log")
        status, output = run(command.split(), log=log)
        print(tail(output, 40))
        tally.add(f"campaign {name}", status == 0)
        lines = [line for line in output.strip().split("\n") if line not in ("", "passed")]
        last = lines[-1] if lines else "no output"
    row = (f"| {datetime.date.today()} | {commit.strip()} | {name} | `{command}` | {seed} | {count} "
           f"| {time.monotonic() - started:.0f} s | {'ok' if not tally.failed else 'FAILED'}: "
           f"{last.replace('|', '/')} |\n")
    with open(os.path.join(ROOT, "tests/figures.md"), "a", encoding="utf-8") as file:
        file.write(row)
    print(row)
    return tally


def main():
    parser = argparse.ArgumentParser(prog="tests/run")
    parser.add_argument("--only", help="phases, separated by commas")
    parser.add_argument("--campaign", choices=sorted(CAMPAIGNS))
    parser.add_argument("--seed", type=int)
    parser.add_argument("--count", type=int)
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    if options.list:
        print("phases:", ", ".join(PHASES))
        for name, row in sorted(CAMPAIGNS.items()):
            print(f"campaign {name}: {row[0].format(count=row[3])}")
        return 0
    if options.campaign:
        tally = campaign(options.campaign, options.seed, options.count)
    else:
        tally = Tally()
        names = options.only.split(",") if options.only else list(PHASES)
        unknown = [name for name in names if name not in PHASES]
        if unknown:
            print(f"there is no phase {unknown[0]!r}: use {', '.join(PHASES)}", file=sys.stderr)
            return 2
        for name in names:
            started = time.monotonic()
            print(f"== {name}", flush=True)
            PHASES[name](tally)
            print(f"== {name}: {time.monotonic() - started:.0f} s", flush=True)
    if tally.failed:
        print("failed: " + ", ".join(tally.failed))
    print(f"{tally.passed} passed, {len(tally.failed)} failed, {len(tally.skipped)} skipped")
    return 1 if tally.failed or not tally.passed else 0


sys.exit(main())
