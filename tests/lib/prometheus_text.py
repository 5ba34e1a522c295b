"""What is wrong with a text in Prometheus' exposition format 0.0.4, as nodectl writes it.

Stricter than Prometheus: each family has HELP and TYPE once, HELP first, before all its samples, which
stand together; counters end in _total and gauges do not; names end in no unit but base ones."""
import re

NAME = re.compile(r"jury_[a-z0-9_]*[a-z0-9]")
SAMPLE = re.compile(r"([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)")
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\["\\n])*)"(,|$)')
NOT_BASE = re.compile(r"_(ns|us|ms|milliseconds|microseconds|nanoseconds|kb|mb|kib|mib|percent)(_total)?$")


def labels_of(text, line, faults):
    labels, at = [], 0
    while at < len(text):
        match = LABEL.match(text, at)
        if match is None or (match.end() == len(text) and match.group(3) == ","):
            faults.append(f"labels cannot be read: {line!r}")
            return None
        labels.append((match.group(1), match.group(2)))
        at = match.end()
    names = [name for name, _ in labels]
    if len(set(names)) < len(names):
        faults.append(f"a label twice: {line!r}")
    return tuple(sorted(labels))


class Text:
    """faults: what is wrong; series: (name, labels) to value."""

    def __init__(self, text):
        self.faults, self.series = [], {}
        self.helps, self.types = {}, {}
        self.family = None
        if not text.endswith("\n"):
            self.faults.append("the last line has no end")
        for line in text.split("\n")[:-1]:
            if line.startswith("#"):
                self.comment(line)
            else:
                self.sample(line)
        for name in self.types:
            if not any(series == name for series, _ in self.series):
                self.faults.append(f"{name} has no samples")

    def comment(self, line):
        words = line.split(" ", 3)
        if len(words) < 4 or words[0] != "#" or words[1] not in ("HELP", "TYPE") or not words[3]:
            self.faults.append(f"neither HELP nor TYPE with a text: {line!r}")
            return
        _, kind, name, text = words
        told = self.helps if kind == "HELP" else self.types
        if name in told:
            self.faults.append(f"{kind} of {name} twice")
        told[name] = text
        if kind == "HELP":
            self.family = None
            if re.search(r"(?<!\\)(\\\\)*\\[^\\n]", text):
                self.faults.append(f"HELP has a wrong escape: {line!r}")
        elif name not in self.helps or text not in ("counter", "gauge"):
            self.faults.append(f"TYPE before HELP, or unknown: {line!r}")
        else:
            self.family = name
            self.check_name(name, text)

    def check_name(self, name, kind):
        if NAME.fullmatch(name) is None or NOT_BASE.search(name):
            self.faults.append(f"{name} is no name with a base unit")
        if (kind == "counter") != name.endswith("_total"):
            self.faults.append(f"{name} is a {kind}")

    def sample(self, line):
        match = SAMPLE.fullmatch(line)
        if match is None:
            self.faults.append(f"no sample: {line!r}")
            return
        name, labels, value = match.groups()
        if name != self.family:
            self.faults.append(f"{name} is not under its own TYPE")
        key = name, labels_of(labels or "", line, self.faults)
        if key in self.series:
            self.faults.append(f"twice: {line!r}")
        try:
            self.series[key] = float(value)
            if self.types.get(name) == "counter" and not float(value) >= 0:
                self.faults.append(f"a counter below 0: {line!r}")
        except ValueError:
            self.faults.append(f"no number: {line!r}")

    def value(self, name, **labels):
        return self.series[name, tuple(sorted(labels.items()))]


GOOD = '# HELP jury_a_total what\n# TYPE jury_a_total counter\njury_a_total{of="x\\\\\\"\\n,{}"} 1\njury_a_total 2\n'
BAD = {
    "the last line has no end": GOOD[:-1],
    "HELP of jury_a_total twice": GOOD + GOOD,
    "twice: 'jury_a_total 2'": GOOD + "jury_a_total 2\n",
    "no sample": GOOD + "jury_a_total  2\n",
    "no number": GOOD + 'jury_a_total{of="z"} two\n',
    "a counter below 0": GOOD + 'jury_a_total{of="z"} -1\n',
    "labels cannot be read": GOOD + 'jury_a_total{of="z"w"} 1\n',
    "a label twice": GOOD + 'jury_a_total{of="z",of="w"} 1\n',
    "is not under its own TYPE": GOOD + "jury_b_total 1\n",
    "jury_b is a counter": GOOD.replace("jury_a_total", "jury_b"),
    "jury_b_total is a gauge": GOOD.replace("jury_a_total", "jury_b_total").replace("counter", "gauge"),
    "is no name with a base unit": GOOD.replace("jury_a_total", "jury_a_ms_total"),
    "TYPE before HELP": "# TYPE jury_a_total counter\njury_a_total 1\n",
    "has no samples": GOOD + "# HELP jury_b what\n# TYPE jury_b gauge\n",
    "neither HELP nor TYPE": "# jury\n" + GOOD,
    "HELP has a wrong escape": GOOD.replace("what", "w\\hat"),
}


def judge_itself():
    """Sentences about what it should have refused and did not."""
    wrong = [f"a good text is refused: {Text(GOOD).faults}"] if Text(GOOD).faults else []
    for said, text in BAD.items():
        if not any(said in fault for fault in Text(text).faults):
            wrong.append(f"not seen: {said}: {Text(text).faults}")
    return wrong
