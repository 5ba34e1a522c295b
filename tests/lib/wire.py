"""What the tests of single probes on a wire have in common: a capture at the far end of a cable
(netns.Cable), places as probe_tool wants them, and results as the tables of the tests name them.
"""
import os
import sys

from netns import FAR_4, FAR_6, NEAR_4, NEAR_6
from prober import LIB, Lines, check

SECOND_SOURCE = "10.231.1.101"
FAMILIES = (("IPv4", FAR_4, NEAR_4), ("IPv6", FAR_6, NEAR_6))


def place(address, port):
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def capture_at(cable, forger, *stories):
    """forger: a script of this folder. stories: PORT=STORY, what it answers. Begun when it returns."""
    capture = Lines([sys.executable, os.path.join(LIB, forger), getattr(cable, "device", "far0"), *stories], cable.far)
    capture.wait(lambda lines: lines, "the capture")
    return capture


def seen_of(results):
    return {f"{line['class']} {line['reason']}" for line in results}


def attempts(lines, port, near):
    """The segments of each probe of a port, as texts; by their source port and ISN."""
    found, newest = {}, {}
    for line in lines:
        is_near = line.get("dport") == port and line["src"] == near
        if not is_near and (line.get("sport") != port or line["dst"] != near):
            continue
        own = line["sport"] if is_near else line["dport"]
        if is_near and line["flags"] == "S" and (own, line["seq"]) not in found:
            newest[own] = line["seq"]
        has_number = is_near or "A" in line["flags"]
        number = line["seq"] if is_near else line["ack"]
        # An answer that comes late is of an older probe than the port's newest.
        isn = next((isn for at, isn in found if at == own and (number - isn) % 2 ** 32 <= 2),
                   newest.get(own, 0)) if has_number else newest.get(own, 0)
        text = f"{'near' if is_near else 'far'} {line['flags']} "
        text += str((number - isn) % 2 ** 32) if has_number else "-"
        found.setdefault((own, isn), []).append((text, line))
    return found


def check_shape(what, found, expected, n):
    """At least n whole probes; each is that, or was cut off by the end of the prober."""
    expected = expected.split(", ")
    seen = [[text for text, _ in packets] for packets in found.values()]
    whole = [packets for packets in seen if sorted(packets) == sorted(expected)]
    strange = [packets for packets in seen if packets != expected[:len(packets)]
               and sorted(packets) != sorted(expected)]
    check(len(whole) >= n and not strange,
          f"{what}: {len(whole)} probes of {', '.join(expected)}" +
          (f"; but {len(strange)} others: {strange[:2]}" if strange else ""))
