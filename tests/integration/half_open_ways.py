#!/usr/bin/python3
"""By which way half-open probes leave a node: by the link only where nothing stands between, and to
where the kernel would send them, whatever changes meanwhile. Two namespaces. Needs root.
"""
# seconds: 15
# twin: link-blind WRONG .*drops what is INVALID.*near R
# twin: stale-neighbour WRONG .*another station.*CONNECT_TIMEOUT
import contextlib
import ctypes
import os
import socket
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from half_open import quiet_neighbours  # noqa: E402
from netns import FAR_4, NEAR_4, Cable  # noqa: E402
from prober import Prober, Server, arguments, check, finish, run  # noqa: E402
from wire import attempts, capture_at, check_shape, seen_of  # noqa: E402

T, I = 400, 50


def settle(prober, send, why):
    """The way that is said to be gone, within seconds of a change. Else nothing that follows says
    anything."""
    counts = {}

    def is_there(_):
        counts.update(prober.counts())
        return counts["send"] == send and why in counts["send_why"]

    with contextlib.suppress(SystemExit):
        prober.wait(is_there, f"sent by {send} because {why}", 8)
    if not check(is_there(None), f"{why}: sent by the {send} (said: {counts['send']}, "
                                 f"{counts['send_why']})"):
        finish()


def sent(prober, n=5):
    """SYNs by each way, while a slot has n results more."""
    before = prober.counts()
    begun = len(prober.results(0))
    results = prober.wait_results(0, begun + n)[begun:]
    after = prober.counts()
    return seen_of(results), {way: after["probe_syns_by_" + way] - before["probe_syns_by_" + way]
                              for way in ("ip", "link")}


def check_sent(prober, what, way):
    seen, n = sent(prober)
    other = "ip" if way == "link" else "link"
    check(seen == {"pass OK"} and n[way] >= 5 and n[other] == 0, f"{what}: {seen}, {n}")


def start(cable, folder, to, *options, **fields):
    prober = Prober(folder, *options, netns=cable.near, **fields)
    prober.set(0, type="tcp", handshake="half-open", onTimeout="nothing", T=T, I=I, to=to)
    prober.publish()
    return prober


def use_legacy_iptables(cable):
    """Its first question makes a table, with hooks, as `iptables -L` does."""
    libc = ctypes.CDLL(None, use_errno=True)
    with open("/proc/self/ns/net", "rb") as here, open("/run/netns/" + cable.near, "rb") as there:
        check(libc.setns(there.fileno(), 0) == 0, "in the prober's namespace")
        try:
            with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW) as raw:
                info = ctypes.create_string_buffer(b"filter", 84)
                size = ctypes.c_int(84)
                ipt_so_get_info = 64
                return libc.getsockopt(raw.fileno(), socket.IPPROTO_IP, ipt_so_get_info, info,
                                       ctypes.byref(size)) == 0
        finally:
            libc.setns(here.fileno(), 0)


def obstacles(cable, folder, to):
    """auto: the link only where nothing would have seen the packets."""
    prober = start(cable, folder, to)
    settle(prober, "link", "no packet filter")
    check_sent(prober, "nothing is there", "link")
    cable.filter(cable.near, "tcp dport 1 drop")
    settle(prober, "ip", "nftables has chains here")
    check_sent(prober, "nftables", "ip")
    cable.unfilter(cable.near)
    settle(prober, "link", "no packet filter")
    check_sent(prober, "nftables went", "link")
    run(f"ip -n {cable.near} xfrm policy add dir out src 10.9.9.9 dst 10.9.9.8 "
        "tmpl mode transport proto esp")
    settle(prober, "ip", "IPsec has policies")
    run(f"ip -n {cable.near} xfrm policy flush")
    settle(prober, "link", "no packet filter")
    prober.stop()


def invalid_is_dropped(cable, folder, server):
    """Why: there the kernel's RST would never leave, for connection tracking knows no SYN."""
    rules = ("table inet jury {\n chain out {\n  type filter hook output priority 0;\n"
             "  ct state invalid drop\n }\n}\n")
    run_nft(cable, rules)
    capture = capture_at(cable, "tcp_forger.py")
    prober = start(cable, folder, server.to("silent"))
    prober.wait_results(0, 5)
    prober.stop()
    capture.stop()
    check_shape("a filter that drops what is INVALID",
                attempts(capture.lines, server.ports["silent"], NEAR_4),
                "near S 0, far SA 1, near R 1", 4)
    cable.unfilter(cable.near)


def run_nft(cable, rules):
    path = f"/run/jury-rules-{os.getpid()}"
    with open(path, "w", encoding="ascii") as file:
        file.write(rules)
    try:
        cable.in_near(f"nft -f {path}")
    finally:
        os.unlink(path)


def what_stays(cable, folder, to):
    """Connections that are tracked, and tables of iptables, outlive what brought them."""
    prober = start(cable, folder, to)
    settle(prober, "ip", "connection tracking is in use")
    if use_legacy_iptables(cable):
        settle(prober, "ip", "iptables has tables")
    prober.stop()


def by_hand(cable, folder, to):
    """What is configured is done, and without rights to look nothing is assumed."""
    for way in ("ip", "link"):
        prober = start(cable, folder, to, "--send", way)
        settle(prober, way, "as configured")
        check_sent(prober, f"configured: {way}", way)
        prober.stop()
    prober = start(cable, folder, to,
                   prefix=("setpriv", "--bounding-set=-net_admin", "--inh-caps=-net_admin"))
    settle(prober, "ip", "cannot see packet filters")
    check_sent(prober, "without CAP_NET_ADMIN", "ip")
    prober.stop()


def hops(cable, folder, server):
    """Frames go where the kernel's packets go, or the kernel sends them."""
    prober = start(cable, folder, server.to("silent"), "--send", "link")
    check_sent(prober, "a station that is known", "link")
    run(f"ip -n {cable.far} link set far0 address 02:00:00:00:00:77")
    run(f"ip -n {cable.near} neigh replace {FAR_4} lladdr 02:00:00:00:00:77 nud reachable dev near0")
    prober.wait_results(0, len(prober.results(0)) + 2)  # what was under way
    check_sent(prober, "another station has its address", "link")

    run(f"ip -n {cable.near} neigh change {FAR_4} lladdr 02:00:00:00:00:77 nud stale dev near0")
    prober.wait_results(0, len(prober.results(0)) + 2)
    check_sent(prober, "a station that was not heard for long", "ip")
    run(f"ip -n {cable.near} neigh replace {FAR_4} lladdr 02:00:00:00:00:77 nud permanent dev near0")
    prober.wait_results(0, len(prober.results(0)) + 2)
    check_sent(prober, "a station that was set by hand", "link")

    run(f"ip -n {cable.near} link add near1 type veth peer name far1 netns {cable.far}")
    for name, link, address in ((cable.near, "near1", "10.231.2.1/24"),
                                (cable.far, "far1", "10.231.2.2/24")):
        run(f"ip -n {name} address add {address} dev {link}")
        run(f"ip -n {name} link set {link} up")
    cable.in_near("ping -c 1 -W 10 10.231.2.2", ok=False)
    run(f"ip -n {cable.near} route add {FAR_4}/32 via 10.231.2.2 dev near1 src {NEAR_4}")
    prober.wait_results(0, len(prober.results(0)) + 2)
    before = received(cable, "far1")
    check_sent(prober, "another route", "link")
    check(received(cable, "far1") - before >= 5, "by the other link")

    run(f"ip -n {cable.near} route del {FAR_4}/32")
    run(f"ip -n {cable.near} link set near1 arp off")
    prober.set(1, type="tcp", handshake="half-open", onTimeout="nothing", T=T, I=I, to="10.9.9.9:80")
    run(f"ip -n {cable.near} route add 10.9.9.9/32 dev near1 src {NEAR_4}")
    prober.publish()
    prober.remove(0)
    prober.wait_results(1, 2)
    before = prober.counts()
    prober.wait_results(1, len(prober.results(1)) + 3)
    after = prober.counts()
    check(after["probe_syns_by_link"] == before["probe_syns_by_link"] and
          after["probe_syns_by_ip"] > before["probe_syns_by_ip"], "a link without neighbours: by IP")
    prober.stop()


def received(cable, link):
    """Packets that came to the far end of a link."""
    text = cable.in_far("cat /proc/net/dev")
    return next(int(line.split(":")[1].split()[1]) for line in text.splitlines()
                if line.strip().startswith(link + ":"))


BPF_MAP_CREATE, BPF_PROG_LOAD, BPF_PROG_ATTACH = 0, 5, 8
BPF_CGROUP_SKB, BPF_CGROUP_INET_EGRESS = 8, 1


def bpf(command, attributes):
    libc = ctypes.CDLL(None, use_errno=True)
    room = ctypes.create_string_buffer(attributes, 128)
    return libc.syscall(321, command, room, 128)


def let_all_leave(folder):
    """A program of a control group that lets everything leave."""
    program = ctypes.create_string_buffer(struct.pack("<BBhiBBhi", 0xb7, 0, 0, 1, 0x95, 0, 0, 0))
    word = ctypes.create_string_buffer(b"none")
    loaded = bpf(BPF_PROG_LOAD, struct.pack("<IIQQ", BPF_CGROUP_SKB, 2, ctypes.addressof(program),
                                            ctypes.addressof(word)))
    group = os.open(folder, os.O_RDONLY)
    done = bpf(BPF_PROG_ATTACH, struct.pack("<IIII", group, loaded, BPF_CGROUP_INET_EGRESS, 0))
    os.close(group)
    if loaded >= 0:
        os.close(loaded)
    return done == 0


def control_group(cable, folder, to):
    """Programs of the agent's control group see what it sends by IP, and no frames."""
    root = next((path for path in ("/sys/fs/cgroup", "/sys/fs/cgroup/unified")
                 if os.path.exists(path + "/cgroup.procs") and
                 os.path.exists(path + "/cgroup.controllers")), None)
    if root is None or os.uname().machine != "x86_64":
        print("      no control groups of version 2 here")
        return
    group = f"{root}/jury-test-{os.getpid()}"
    os.mkdir(group)
    try:
        join = f"echo $$ > {group}/cgroup.procs; exec nsenter --net=/run/netns/{cable.near} \"$@\""
        for has_program in (False, True):
            if has_program and not let_all_leave(group):
                print("      this kernel takes no programs of control groups")
                break
            # nsenter, since `ip netns exec` covers the groups with a /sys of its own.
            prober = Prober(folder, prefix=("sh", "-c", join, "sh"))
            prober.set(0, type="tcp", handshake="half-open", T=T, I=I, to=to)
            prober.publish()
            if has_program:
                settle(prober, "ip", "the control group of the agent has programs")
            else:
                settle(prober, "link", "no packet filter")
            prober.stop()
    finally:
        os.rmdir(group)


def main():
    options = arguments()
    tracked, cable = Cable(), Cable()
    server = Server("silent", netns=tracked.far, address=FAR_4)
    invalid_is_dropped(tracked, options.bin, server)
    what_stays(tracked, options.bin, server.to("silent"))
    server.stop()
    quiet_neighbours(cable)
    server = Server("silent", netns=cable.far, address=FAR_4)
    by_hand(cable, options.bin, server.to("silent"))
    control_group(cable, options.bin, server.to("silent"))
    obstacles(cable, options.bin, server.to("silent"))
    hops(cable, options.bin, server)
    server.stop()
    finish()


main()
