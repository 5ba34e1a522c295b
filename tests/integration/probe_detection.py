#!/usr/bin/python3
"""Detection and return of a real web server (nginx): measured against the stated windows.

Row 1.7 and S14, S15: failure window = T x U + I x (U - 1) from the start of the first failing probe when
every probe times out; a probe that fails sooner counts with its own duration. Success window = r x H +
I x (H - 1). Measured/stated is printed and never below 1, but for the slots in which probes start: 1 ms
a pause. Needs root.
"""
# alone: it measures times
import os
import signal
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from netns import FAR_4, Cable
from nginx import PORT, Nginx
from prober import EARLY_S, Prober, arguments, check, finish, took

T, I, U, H = 400, 200, 3, 2
# How much later than stated: ten times the 50 ms a probe.
TOLERANCE = U * 0.5

def wait_streak(prober, slot, after, wanted, n):
    """The first n results in a row of the wanted class that start after a moment."""
    def look(_):
        streak = []
        for result in prober.results(slot):
            if result["class"] != wanted or result["start"] < after:
                streak = []
                continue
            streak.append(result)
            if len(streak) == n:
                return streak
        return None
    return prober.wait(look, f"{n} results {wanted} in a row of slot {slot}")


def monotonic():
    return time.clock_gettime(time.CLOCK_MONOTONIC)


def down(prober, slot, since, what, timeouts):
    streak = wait_streak(prober, slot, since - T / 1000, "fail", U)
    measured = streak[-1]["end"] - streak[0]["start"]
    own = 0 if not timeouts else T * U / 1000
    stated = own + I * (U - 1) / 1000
    upper = T * U / 1000 + I * (U - 1) / 1000
    ratio = measured / stated
    check(measured >= stated - EARLY_S * (U - 1) and measured <= upper + TOLERANCE,
          f"{what}: {streak[0]['reason']} x {U}, opinion after {measured:.3f} s, stated {stated:.3f} s"
          f"{'' if timeouts else ' + own durations'} (upper bound {upper:.3f} s), measured/stated "
          f"{ratio:.4f}; {streak[-1]['end'] - since:.3f} s after the fault")


def up(prober, slot, since, what):
    streak = wait_streak(prober, slot, since, "pass", H)
    measured = streak[-1]["end"] - streak[0]["start"]
    response = sum(took(result) for result in streak) / H
    stated = response * H + I * (H - 1) / 1000
    check(measured >= stated - EARLY_S * (H - 1) and measured <= stated + TOLERANCE,
          f"{what}: opinion after {measured:.3f} s, stated {stated:.3f} s, measured/stated "
          f"{measured / stated:.4f}")


def fault(prober, what, begin, end, timeouts, slots=(0, 1)):
    since = monotonic()
    begin()
    for slot in slots:
        down(prober, slot, since, f"{what}, {'tcp' if slot == 0 else 'http'}", timeouts)
    end()
    since = monotonic()
    for slot in slots:
        up(prober, slot, since, f"{what} ended, {'tcp' if slot == 0 else 'http'}")


def main():
    options = arguments()
    cable = Cable()
    with tempfile.TemporaryDirectory() as folder:
        nginx = Nginx(cable.far, folder)
        prober = Prober(options.bin, netns=cable.near)
        for slot, kind in enumerate(("tcp", "http")):
            prober.set(slot, type=kind, to=f"{FAR_4}:{PORT}", T=T, I=I, path="/healthz?x=1")
        prober.publish()
        for slot in (0, 1):
            wait_streak(prober, slot, 0, "pass", H)

        fault(prober, "server killed", nginx.stop, nginx.start, timeouts=False)
        fault(prober, "packets dropped", lambda: cable.filter(cable.far, f"tcp dport {PORT} drop"),
              lambda: cable.unfilter(cable.far), timeouts=True)
        # The kernel still shakes hands for a stopped process: only http can see it.
        fault(prober, "server frozen", lambda: nginx.process.send_signal(signal.SIGSTOP),
              lambda: nginx.process.send_signal(signal.SIGCONT), timeouts=True, slots=(1,))

        waiting = cable.in_near("ss -Htan state time-wait").count("\n")
        check(waiting <= 10, f"A13: {waiting} TIME_WAIT sockets at the prober's side (bound 10)")
        prober.stop()
        nginx.stop()
        agents = {line.rsplit('"', 2)[1] for line in nginx.log("access.log").splitlines()}
        print(f"      nginx saw user agents {agents}")
        check(all(agent.startswith("jury-probe/") for agent in agents),
              "the probes are recognisable in the server's log")
        check('"GET /healthz?x=1 HTTP/1.1" 200' in nginx.log("access.log"), "A10: the path as given")
        wrong = [line for line in nginx.log("error.log").splitlines()
                 if "client sent invalid" in line or "broken pipe" in line.lower()]
        check(not wrong, f"nginx has nothing to say about the probes: {wrong[:2]}")
    finish()


main()
