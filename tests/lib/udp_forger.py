#!/usr/bin/python3
"""Prints each UDP datagram and ICMP message that an interface sees, a JSON line each, and answers
datagrams as it is told: what no kernel would say can only be forged.

usage: udp_forger.py INTERFACE [PORT=STORY]...   (as root; ends when its standard input does)
The first line is {"ready": true}; then {"time", "kind", "src", "dst", ...}: of udp "sport", "dport",
"payload" (hex) and "sum" (whether the checksum is right); of icmp "type", "code" and "quoted" (the
destination port that it is about, or null). STORY is a name of STORIES: the answers to each datagram of
that port. The kernel's own answers have to be dropped by somebody else.
"""
import socket
import struct

from forger import Frame, checksum, forge, ip, pseudo

UDP, ICMP, ICMP6 = 17, 1, 58

# Story -> answers: (seconds after the datagram, what comes, how it is wrong).
STORIES = {
    "silent": [],
    "answer": [(0, b"pong", "")],
    "answer-from-another-port": [(0, b"pong", "port")],
    "answer-from-another-address": [(0, b"pong", "address")],
    "answer-late": [(0.7, b"pong", "")],
    "answer-empty": [(0, b"", "")],
    "answer-another": [(0, b"pang", "")],
    "answer-long": [(0, b"pong" + bytes(900), "")],
    "answer-twice": [(0, b"pang", ""), (0, b"pong", "")],
    "refused": [(0, "port", "")],
    "refused-by-another": [(0, "port", "address")],
    "refused-of-another": [(0, "port", "quoted")],
    "refused-after-200ms": [(0.2, "port", "")],
    "host-unreachable": [(0, "host", "")],
    "host-unreachable-by-another": [(0, "host", "address")],
    "answer-then-refused": [(0, b"pong", ""), (0.1, "port", "")],
}
CODES = {socket.AF_INET: {"port": (3, 3), "host": (3, 1)},
         socket.AF_INET6: {"port": (1, 4), "host": (1, 3)}}
STRANGER = {socket.AF_INET: "10.231.1.99", socket.AF_INET6: "fd23:1::99"}


class Packet(Frame):
    """Of a frame; protocol None when it is neither UDP nor ICMP."""

    def __init__(self, frame):
        super().__init__(frame)
        if self.protocol not in (UDP, ICMP, ICMP6) or len(self.body) < 8:
            self.protocol = None

    def line(self, moment):
        if self.protocol is None:
            return None
        src, dst = self.addresses()
        told = {"time": moment, "src": src, "dst": dst}
        if self.protocol == UDP:
            sport, dport, _, _ = struct.unpack("!HHHH", self.body[:8])
            whole = pseudo(self.src, self.dst, UDP, len(self.body)) + self.body
            told.update(kind="udp", sport=sport, dport=dport, payload=self.body[8:].hex(),
                        sum=checksum(whole) == 0)
            return told
        error = 8 + (20 if self.family == socket.AF_INET else 40)
        is_error = self.body[0] in (3, 11) if self.family == socket.AF_INET else self.body[0] < 128
        quoted = struct.unpack("!H", self.body[error + 2:error + 4])[0] \
            if is_error and len(self.body) >= error + 4 else None
        told.update(kind="icmp", type=self.body[0], code=self.body[1], quoted=quoted,
                    bytes=len(self.body))
        return told

    def question(self):
        return struct.unpack("!H", self.body[2:4])[0] if self.protocol == UDP else None

    def forged(self, what, wrong):
        source = self.dst
        if wrong == "address":
            source = socket.inet_pton(self.family, STRANGER[self.family])
        return forged_udp(self, source, what, wrong) if isinstance(what, bytes) \
            else forged_icmp(self, source, what, wrong)


def forged_udp(seen, source, payload, wrong):
    sport, dport = struct.unpack("!HH", seen.body[:4])
    body = struct.pack("!HHHH", dport + (1000 if wrong == "port" else 0), sport,
                       8 + len(payload), 0) + payload
    total = checksum(pseudo(source, seen.src, UDP, len(body)) + body) or 0xffff
    return ip(source, seen, UDP, body[:6] + struct.pack("!H", total) + body[8:])


def forged_icmp(seen, source, what, wrong):
    quoted = bytearray(seen.packet)
    if wrong == "quoted":
        dport = struct.unpack_from("!H", quoted, seen.header + 2)[0]
        struct.pack_into("!H", quoted, seen.header + 2, dport + 1000)
    kind, code = CODES[seen.family][what]
    icmp = struct.pack("!BBHI", kind, code, 0, 0) + bytes(quoted)
    protocol = ICMP if seen.family == socket.AF_INET else ICMP6
    total = checksum(icmp if protocol == ICMP
                     else pseudo(source, seen.src, ICMP6, len(icmp)) + icmp)
    return ip(source, seen, protocol, icmp[:2] + struct.pack("!H", total) + icmp[4:])


forge(Packet, STORIES)
