#!/usr/bin/python3
"""Prints each TCP segment that an interface sees, a JSON line each, and answers SYNs as it is told:
what no kernel would say can only be forged.

usage: tcp_forger.py INTERFACE [PORT=STORY]...   (as root; ends when its standard input does)
The first line is {"ready": true}; then {"time", "src", "sport", "dst", "dport", "flags", "seq", "ack",
"options", "payload", "sum"}, flags being letters of FSRPAU in this order, sum whether the checksum is
right. STORY is a name of STORIES: the answers to each SYN of that port. The kernel's own answers have
to be dropped by somebody else.
"""
import socket
import struct

from forger import Frame, checksum, forge, ip, pseudo

TCP, ICMP, ICMP6 = 6, 1, 58
F, S, R, A = 1, 2, 4, 16

# Story -> answers: (seconds after the SYN, flags, acknowledges ISN + this, what is wrong with it).
STORIES = {
    "silent": [],
    "ack-of-another": [(0, S | A, 2, "")],
    "ack-of-isn": [(0, S | A, 0, "")],
    "late": [(0.7, S | A, 1, "")],
    "rst-of-another": [(0, R | A, 2, "")],
    "rst-without-ack": [(0, R, 0, "")],
    "bare-ack": [(0, A, 1, "")],
    "damaged": [(0, S | A, 1, "sum")],
    "from-another-port": [(0, S | A, 1, "port")],
    "another-then-right": [(0, S | A, 2, ""), (0, S | A, 1, "")],
    "icmp-of-another": [(0, 0, 1, "icmp")],
    "icmp": [(0, 0, 0, "icmp")],
}


class Segment(Frame):
    """Of a frame; None in `flags` when it is no TCP."""

    def __init__(self, frame):
        super().__init__(frame)
        self.flags = None
        if self.protocol == TCP:
            self.sport, self.dport, self.seq, self.ack = struct.unpack("!HHII", self.body[:12])
            self.flags, self.offset = self.body[13] & 63, (self.body[12] >> 4) * 4

    def line(self, moment):
        if self.flags is None:
            return None
        src, dst = self.addresses()
        whole = pseudo(self.src, self.dst, TCP, len(self.body)) + self.body
        return {"time": moment, "src": src, "sport": self.sport, "dst": dst, "dport": self.dport,
                "flags": "".join(c for bit, c in enumerate("FSRPAU") if self.flags >> bit & 1),
                "seq": self.seq, "ack": self.ack, "options": self.body[20:self.offset].hex(),
                "payload": len(self.body) - self.offset, "sum": checksum(whole) == 0}

    def question(self):
        return self.dport if self.flags == S else None

    def forged(self, flags, ahead, wrong):
        return forged_icmp(self, ahead) if wrong == "icmp" else forged_tcp(self, flags, ahead, wrong)


def forged_tcp(syn, flags, ahead, wrong):
    port = syn.dport + (1000 if wrong == "port" else 0)
    ack = (syn.seq + ahead) % 2 ** 32 if flags & A else 0
    tcp = struct.pack("!HHIIBBHHH", port, syn.sport, 0x01000000, ack, 5 << 4, flags, 64240, 0, 0)
    right = checksum(pseudo(syn.dst, syn.src, TCP, len(tcp)) + tcp)
    tcp = tcp[:16] + struct.pack("!H", right ^ (wrong == "sum")) + tcp[18:]
    return ip(syn.dst, syn, TCP, tcp)


def forged_icmp(syn, ahead):
    """Host (address) unreachable, about the SYN or about one with another number."""
    quoted = bytearray(syn.packet)
    struct.pack_into("!I", quoted, syn.header + 4, (syn.seq + ahead) % 2 ** 32)
    if syn.family == socket.AF_INET6:
        icmp = struct.pack("!BBHI", 1, 3, 0, 0) + bytes(quoted)
        total = checksum(pseudo(syn.dst, syn.src, ICMP6, len(icmp)) + icmp)
        return ip(syn.dst, syn, ICMP6, icmp[:2] + struct.pack("!H", total) + icmp[4:])
    icmp = struct.pack("!BBHI", 3, 1, 0, 0) + bytes(quoted[:syn.header + 8])
    return ip(syn.dst, syn, ICMP, icmp[:2] + struct.pack("!H", checksum(icmp)) + icmp[4:])


forge(Segment, STORIES)
