"""Two network namespaces joined by a cable: `near`, where the prober is, and `far`, the backends."""
import atexit
import ctypes
import fcntl
import os
import socket
import struct
import subprocess

from prober import run

CLONE_NEWNET = 0x40000000
LIBC = ctypes.CDLL(None, use_errno=True)
SIOCETHTOOL, ETHTOOL_STXCSUM = 0x8946, 0x17
NEAR_4, FAR_4 = "10.231.1.1", "10.231.1.2"
NEAR_6, FAR_6 = "fd23:1::1", "fd23:1::2"


def enter(file):
    """This thread, into the namespace of an open file."""
    if LIBC.setns(file.fileno(), CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "setns")


class Cable:
    n_made = 0

    def __init__(self):
        Cable.n_made += 1
        self.near, self.far = (f"jury-{end}-{os.getpid()}" + "-%d" % Cable.n_made *
                               (Cable.n_made > 1) for end in ("near", "far"))
        atexit.register(self.remove)
        for name in (self.near, self.far):
            run(f"ip netns add {name}")
            run(f"ip -n {name} link set lo up")
            for limit in ("net.ipv4.icmp_ratelimit", "net.ipv6.icmp.ratelimit"):
                run(f"ip netns exec {name} sysctl -q -w {limit}=0")
        run(f"ip -n {self.near} link add near0 type veth peer name far0 netns {self.far}")
        for name, link, four, six in ((self.near, "near0", NEAR_4, NEAR_6),
                                      (self.far, "far0", FAR_4, FAR_6)):
            run(f"ip -n {name} address add {four}/24 dev {link}")
            run(f"ip -n {name} address add {six}/64 dev {link} nodad")
            run(f"ip -n {name} link set {link} up")
        self.in_near("ping -c 1 -W 10 " + FAR_4, ok=False)  # neighbours are known from here on

    def in_near(self, command, ok=True):
        return run(f"ip netns exec {self.near} {command}", ok)

    def in_far(self, command, ok=True):
        return run(f"ip netns exec {self.far} {command}", ok)

    def sysctl_near(self, key, value):
        subprocess.run(["ip", "netns", "exec", self.near, "sysctl", "-q", "-w", f"{key}={value}"],
                       check=True)

    def filter(self, name, rules):
        """nftables rules for what comes in at `far` (or `near`)."""
        text = ("table inet jury {\n chain in {\n  type filter hook input priority 0;\n"
                f"  {rules}\n }}\n}}\n")
        subprocess.run(["ip", "netns", "exec", name, "nft", "-f", "-"], input=text, text=True,
                       check=True)

    def unfilter(self, name):
        run(f"ip netns exec {name} nft flush ruleset")

    def quiet_neighbours(self):
        """Known, and not asked for again while a test goes on: till they answer, the kernel has doubts."""
        for family in ("ipv4", "ipv6"):
            self.sysctl_near(f"net.{family}.neigh.near0.base_reachable_time_ms", 3600000)
        for far in (FAR_4, FAR_6):
            self.in_near("ping -c 1 -W 10 " + far, ok=False)

    def send_whole_sums(self, name, link):
        """What `ethtool -K LINK tx off` does: an XDP program at the other end sees no sums else."""
        with open("/proc/self/ns/net", "rb") as here, open("/run/netns/" + name, "rb") as there:
            enter(there)
            try:
                with socket.socket() as any_socket:
                    words = (ctypes.c_uint32 * 2)(ETHTOOL_STXCSUM, 0)
                    fcntl.ioctl(any_socket, SIOCETHTOOL,
                                struct.pack("16sP16x", link.encode(), ctypes.addressof(words)))
            finally:
                enter(here)

    def remove(self):
        for name in (self.near, self.far):
            run(f"ip netns del {name}", ok=False)
