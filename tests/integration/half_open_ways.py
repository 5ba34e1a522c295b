#!/usr/bin/python3
"""By which way half-open probes leave a node: by the link only where nothing stands between, and to
where the kernel would send them, whatever changes meanwhile. Two namespaces. Needs root.
"""
# seconds: 20
# twin: link-blind WRONG .*drops what is INVALID.*near R
# twin: link-unbound WRONG .*bound to a device.*sent by the ip
# twin: xdp-past-filter WRONG .*a packet filter that is to see what comes.*seen by the ring
# twin: xdp-under-vlan WRONG .*one that is on it.*as configured
# twin: stale-neighbour WRONG .*another station.*CONNECT_TIMEOUT
import ctypes
import os
import socket
import struct
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from netns import FAR_4, LIBC, NEAR_4, Cable, enter  # noqa: E402
from prober import Prober, Server, arguments, check, finish, run  # noqa: E402
from wire import attempts, capture_at, check_shape, seen_of  # noqa: E402

T, I = 400, 50


def expect(prober, what, key, value, why):
    """What the prober says of its ways, within seconds of a change. Else nothing that follows says
    anything."""
    deadline = time.monotonic() + 8
    counts = prober.counts()
    while (counts[key] != value or why not in counts[key + "_why"]) and time.monotonic() < deadline:
        time.sleep(0.05)
        counts = prober.counts()
    word = {"send": "sent", "receive": "seen"}[key]
    if not check(counts[key] == value and why in counts[key + "_why"],
                 f"{what}: {word} by the {value} (said: {counts[key]}, {counts[key + '_why']})"):
        finish()


def settle(prober, send, why):
    expect(prober, why, "send", send, why)


def sent(prober, n=5):
    """SYNs by each way, while a slot has n results more; of the first the SYN may be older."""
    before = prober.counts()
    begun = len(prober.results(0))
    results = prober.wait_results(0, begun + n)[begun:]
    after = prober.counts()
    return seen_of(results), {way: after["probe_syns_by_" + way] - before["probe_syns_by_" + way]
                              for way in ("ip", "link")}


def check_sent(prober, what, way):
    seen, n = sent(prober)
    other = "ip" if way == "link" else "link"
    check(seen == {"pass OK"} and n[way] >= 4 and n[other] == 0, f"{what}: {seen}, {n}")


def start(cable, folder, to, *options, **fields):
    prober = Prober(folder, *options, **{"netns": cable.near, **fields})
    prober.set(0, type="tcp", handshake="half-open", onTimeout="nothing", T=T, I=I, to=to)
    prober.publish()
    return prober


def use_legacy_iptables(cable):
    """Its first question makes a table, with hooks, as `iptables -L` does."""
    with open("/proc/self/ns/net", "rb") as here, open("/run/netns/" + cable.near, "rb") as there:
        enter(there)
        try:
            with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW) as raw:
                info = ctypes.create_string_buffer(b"filter", 84)
                size = ctypes.c_int(84)
                ipt_so_get_info = 64
                return LIBC.getsockopt(raw.fileno(), socket.IPPROTO_IP, ipt_so_get_info, info,
                                       ctypes.byref(size)) == 0
        finally:
            enter(here)


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


BPF_PROG_LOAD, BPF_PROG_ATTACH = 5, 8
BPF_CGROUP_SKB, BPF_CGROUP_INET_EGRESS = 8, 1
BPF_CGROUP_SOCK, BPF_CGROUP_INET_SOCK_CREATE = 9, 2
RETURN_1 = struct.pack("<BBhiBBhi", 0xb7, 0, 0, 1, 0x95, 0, 0, 0)


def bpf(command, attributes):
    room = ctypes.create_string_buffer(attributes, 128)
    return LIBC.syscall(321, command, room, 128)


def attach_to(group, kind, hook, instructions):
    """A program of a control group. Whether this kernel takes it."""
    program = ctypes.create_string_buffer(instructions + RETURN_1)
    word = ctypes.create_string_buffer(b"none")
    n = (len(program) - 1) // 8
    loaded = bpf(BPF_PROG_LOAD, struct.pack("<IIQQ", kind, n, ctypes.addressof(program),
                                            ctypes.addressof(word)))
    folder = os.open(group, os.O_RDONLY)
    done = bpf(BPF_PROG_ATTACH, struct.pack("<IIII", folder, loaded, hook, 0))
    os.close(folder)
    if loaded >= 0:
        os.close(loaded)
    return done == 0


def let_all_leave(group):
    return attach_to(group, BPF_CGROUP_SKB, BPF_CGROUP_INET_EGRESS, b"")


def bind_all(group, ifindex):
    """As `ip vrf exec` does: *(u32 *)(r1 + 0) = ifindex, the first word of struct bpf_sock."""
    store = struct.pack("<BBhiBBhi", 0xb7, 2, 0, ifindex, 0x63, 0x21, 0, 0)
    return attach_to(group, BPF_CGROUP_SOCK, BPF_CGROUP_INET_SOCK_CREATE, store)


def mark_all(group, mark):
    store = struct.pack("<BBhiBBhi", 0xb7, 2, 0, mark, 0x63, 0x21, 16, 0)
    return attach_to(group, BPF_CGROUP_SOCK, BPF_CGROUP_INET_SOCK_CREATE, store)


def control_group(cable, folder, to):
    """Programs of the agent's control group see what it sends by IP, and no frames; and they say
    where its sockets send to."""
    root = next((path for path in ("/sys/fs/cgroup", "/sys/fs/cgroup/unified")
                 if os.path.exists(path + "/cgroup.procs") and
                 os.path.exists(path + "/cgroup.controllers")), None)
    if root is None or os.uname().machine != "x86_64":
        print("      no control groups of version 2 here")
        return
    near0 = int(cable.in_near("cat /sys/class/net/near0/ifindex"))
    bound = "bound to a device or marked"
    for name, attach, options, send, why in (
            ("none", lambda group: True, (), "link", "no packet filter"),
            ("egress", let_all_leave, (), "ip", "the control group of the agent has programs"),
            ("bind", lambda group: bind_all(group, near0), (), "ip", bound),
            ("mark", lambda group: mark_all(group, 7), (), "ip", bound),
            ("bind", lambda group: bind_all(group, near0), ("--send", "link"), "ip", bound)):
        group = f"{root}/jury-test-{os.getpid()}"
        os.mkdir(group)
        if not attach(group):
            print(f"      this kernel takes no such program of control groups: {name}")
            os.rmdir(group)
            continue
        # nsenter, since `ip netns exec` covers the groups with a /sys of its own.
        join = (f"echo $$ > {group}/cgroup.procs; "
                f"exec nsenter --net=/run/netns/{cable.near} \"$@\"")
        prober = start(cable, folder, to, *options, prefix=("sh", "-c", join, "sh"), netns=None)
        try:
            settle(prober, send, why)
            check_sent(prober, f"a program of the control group, {name} {options}", send)
        finally:
            prober.stop()
            os.rmdir(group)


def is_attached(cable, link="near0"):
    return "xdp" in cable.in_near(f"ip -details link show {link}")


def becomes(cable, attached):
    """Whether there is a program, or none, within seconds."""
    deadline = time.monotonic() + 10
    while is_attached(cable) != attached and time.monotonic() < deadline:
        time.sleep(0.05)
    return is_attached(cable) == attached


def wait_xdp(prober, receive, why, what):
    expect(prober, what, "receive", receive, why)


def seen(prober, n=5):
    """Results, and packets by each way, while a slot has n results more."""
    before = prober.counts()
    begun = len(prober.results(0))
    results = prober.wait_results(0, begun + n)[begun:]
    after = prober.counts()
    return seen_of(results), {way: after["probe_packets_by_" + way] -
                              before["probe_packets_by_" + way] for way in ("ring", "xdp")}


def xdp(cable, folder, server):
    """An XDP program takes SYN-ACKs for probes, and nothing else, and never outlives its agent."""
    to = server.to("silent")
    cable.send_whole_sums(cable.far, "far0")
    prober = start(cable, folder, to, "--receive", "xdp")
    prober.set(1, type="tcp", handshake="full", T=5000, I=I, to=to)
    prober.publish()
    wait_xdp(prober, "xdp", "as configured", "an XDP program")
    results, n = seen(prober)
    check(results == {"pass OK"} and n["xdp"] >= 4 and n["ring"] == 0, f"by XDP: {results}, {n}")
    begun = len(prober.results(1))
    full = prober.wait_results(1, begun + 5)[begun:]
    check(seen_of(full) == {"pass OK"}, "connections of the kernel go on beside it")
    cable.filter(cable.near, "tcp dport 1 drop")
    wait_xdp(prober, "ring", "sent by the link", "a packet filter that is to see what comes")
    check(not is_attached(cable), "the program is gone then")
    results, n = seen(prober)
    check(results == {"pass OK"} and n["xdp"] == 0 and n["ring"] >= 4, f"by the ring: {results}, {n}")
    cable.unfilter(cable.near)
    wait_xdp(prober, "xdp", "as configured", "the filter went")
    prober.stop()
    check(not is_attached(cable), "no program stays behind an agent that ends")

    prober = start(cable, folder, to, "--receive", "xdp")
    wait_xdp(prober, "xdp", "as configured", "an agent that is about to be killed")
    check(is_attached(cable), "its program is there")
    pid = next(int(pid) for pid in cable.in_near(f"ip netns pids {cable.near}").split()
               if os.path.basename(os.readlink(f"/proc/{pid}/exe")) == "probe_tool")
    os.kill(pid, 9)
    prober.process.wait()
    check(becomes(cable, False), "no program stays behind an agent that is killed")
    xdp_refused(cable, folder, to)


def xdp_under(cable, folder, server):
    """A program on a link cannot tell what is for a VLAN on it, and would answer without its tag. As
    a VLAN, here, a macvlan: not each kernel has the others."""
    run(f"ip -n {cable.near} link add link near0 name near2 type macvlan mode bridge")
    run(f"ip -n {cable.near} address add 10.231.3.1/24 dev near2")
    run(f"ip -n {cable.far} address add 10.231.3.2/24 dev far0")
    run(f"ip -n {cable.near} link set near2 up")
    cable.in_near("ping -c 1 -W 10 10.231.3.2", ok=False)
    upper = Server("silent", netns=cable.far, address="10.231.3.2")
    prober = start(cable, folder, server.to("silent"), "--receive", "xdp")
    wait_xdp(prober, "xdp", "as configured", "a link with none on it")
    prober.set(1, type="tcp", handshake="half-open", onTimeout="nothing", T=T, I=I,
               to=upper.to("silent"))
    prober.publish()
    wait_xdp(prober, "xdp", "VLAN or the like", "one that is on it")
    check(is_attached(cable, "near2") and not is_attached(cable), "the lower one's program is gone")
    results, n = seen(prober)
    check(results == {"pass OK"} and n["xdp"] >= 4 and n["ring"] >= 4,
          f"the upper one's by XDP, the lower one's by the ring: {results}, {n}")
    check(seen_of(prober.results(1)[1:]) == {"pass OK"}, "both pass")
    prober.stop()
    upper.stop()
    run(f"ip -n {cable.near} link del near2")


def xdp_refused(cable, folder, to):
    """Then the ring does it, and the reason is told."""
    other = subprocess.Popen(["ip", "netns", "exec", cable.near,
                              os.path.join(folder, "syn_reflector"), "--pass", "near0"],
                             stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    check(becomes(cable, True), "a program of somebody else is there")
    for options, why, prefix in (
            (("--send", "link"), "takes no XDP program", ()),
            (("--send", "link"), "the kernel refuses the XDP program",
             ("setpriv", "--bounding-set=-net_admin,-bpf,-sys_admin",
              "--inh-caps=-net_admin,-bpf,-sys_admin")),
            (("--send", "ip"), "sent by the link", ())):
        prober = start(cable, folder, to, *options, "--receive", "xdp", prefix=prefix)
        wait_xdp(prober, "ring", why, why)
        results, n = seen(prober)
        check(results == {"pass OK"} and n["xdp"] == 0, f"by the ring: {results}, {n}")
        prober.stop()
    other.stdin.close()
    other.wait()


def main():
    options = arguments()
    tracked, cable = Cable(), Cable()
    server = Server("silent", netns=tracked.far, address=FAR_4)
    invalid_is_dropped(tracked, options.bin, server)
    what_stays(tracked, options.bin, server.to("silent"))
    server.stop()
    cable.quiet_neighbours()
    server = Server("silent", netns=cable.far, address=FAR_4)
    by_hand(cable, options.bin, server.to("silent"))
    control_group(cable, options.bin, server.to("silent"))
    obstacles(cable, options.bin, server.to("silent"))
    xdp(cable, options.bin, server)
    xdp_under(cable, options.bin, server)
    hops(cable, options.bin, server)
    server.stop()
    finish()


main()
