#!/usr/bin/python3
"""Prints each TCP segment that an interface sees, a JSON line each, and answers SYNs as it is told:
what no kernel would say can only be forged.

usage: tcp_forger.py INTERFACE [PORT=STORY]...   (as root; ends when its standard input does)
The first line is {"ready": true}; then {"time", "src", "sport", "dst", "dport", "flags", "seq", "ack",
"options", "payload", "sum"}, flags being letters of FSRPAU in this order, sum whether the checksum is
right. STORY is a name of STORIES: the answers to each SYN of that port. The kernel's own answers have
to be dropped by somebody else.
"""
import heapq
import json
import os
import select
import socket
import struct
import sys
import time

ETH_P_ALL, PACKET_OUTGOING = 3, 4
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


def checksum(data):
    if len(data) % 2:
        data += b"\0"
    total = sum(struct.unpack("!%dH" % (len(data) // 2), data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff


def tcp_sum(src, dst, segment):
    return checksum(src + dst + struct.pack("!HH", 6, len(segment)) + segment)


class Segment:
    """Of a frame; None in `flags` when it is no TCP."""

    def __init__(self, frame):
        self.frame, self.flags = frame, None
        kind = struct.unpack("!H", frame[12:14])[0]
        packet = frame[14:]
        if kind == 0x0800 and packet[9] == socket.IPPROTO_TCP:
            self.family, self.header = socket.AF_INET, (packet[0] & 15) * 4
            self.src, self.dst = packet[12:16], packet[16:20]
            end = struct.unpack("!H", packet[2:4])[0]
        elif kind == 0x86dd and packet[6] == socket.IPPROTO_TCP:
            self.family, self.header = socket.AF_INET6, 40
            self.src, self.dst = packet[8:24], packet[24:40]
            end = 40 + struct.unpack("!H", packet[4:6])[0]
        else:
            return
        self.packet = packet[:end]
        tcp = self.packet[self.header:]
        self.sport, self.dport, self.seq, self.ack = struct.unpack("!HHII", tcp[:12])
        self.flags, self.offset = tcp[13] & 63, (tcp[12] >> 4) * 4
        self.tcp = tcp

    def line(self, moment):
        return {"time": moment, "src": socket.inet_ntop(self.family, self.src), "sport": self.sport,
                "dst": socket.inet_ntop(self.family, self.dst), "dport": self.dport,
                "flags": "".join(c for bit, c in enumerate("FSRPAU") if self.flags >> bit & 1),
                "seq": self.seq, "ack": self.ack, "options": self.tcp[20:self.offset].hex(),
                "payload": len(self.tcp) - self.offset,
                "sum": tcp_sum(self.src, self.dst, self.tcp) == 0}


def ip(syn, protocol, payload):
    if syn.family == socket.AF_INET6:
        return struct.pack("!IHBB", 6 << 28, len(payload), protocol, 64) + syn.dst + syn.src + payload
    head = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(payload), 0, 0x4000, 64, protocol, 0)
    head += syn.dst + syn.src
    return head[:10] + struct.pack("!H", checksum(head)) + head[12:] + payload


def forged_tcp(syn, flags, ahead, wrong):
    port = syn.dport + (1000 if wrong == "port" else 0)
    ack = (syn.seq + ahead) % 2 ** 32 if flags & A else 0
    tcp = struct.pack("!HHIIBBHHH", port, syn.sport, 0x01000000, ack, 5 << 4, flags, 64240, 0, 0)
    right = tcp_sum(syn.dst, syn.src, tcp)
    return ip(syn, 6, tcp[:16] + struct.pack("!H", right ^ (wrong == "sum")) + tcp[18:])


def forged_icmp(syn, ahead):
    """Host (address) unreachable, about the SYN or about one with another number."""
    quoted = bytearray(syn.packet)
    struct.pack_into("!I", quoted, syn.header + 4, (syn.seq + ahead) % 2 ** 32)
    if syn.family == socket.AF_INET6:
        icmp = struct.pack("!BBHI", 1, 3, 0, 0) + bytes(quoted)
        pseudo = syn.dst + syn.src + struct.pack("!II", len(icmp), 58)
        return ip(syn, 58, icmp[:2] + struct.pack("!H", checksum(pseudo + icmp)) + icmp[4:])
    icmp = struct.pack("!BBHI", 3, 1, 0, 0) + bytes(quoted[:syn.header + 8])
    return ip(syn, 1, icmp[:2] + struct.pack("!H", checksum(icmp)) + icmp[4:])


def answer(sock, syn, flags, ahead, wrong):
    packet = forged_icmp(syn, ahead) if wrong == "icmp" else forged_tcp(syn, flags, ahead, wrong)
    frame = syn.frame[6:12] + syn.frame[:6] + syn.frame[12:14] + packet
    sock.send(frame)
    told = Segment(frame)  # this socket does not see what it sends
    if told.flags is not None:
        print(json.dumps(told.line(time.time())), flush=True)


def main():
    stories = {int(port): STORIES[name] for port, name in (a.split("=") for a in sys.argv[2:])}
    sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
    sock.bind((sys.argv[1], 0))
    print(json.dumps({"ready": True}), flush=True)
    due = []
    while True:
        patience = max(0, due[0][0] - time.monotonic()) if due else None
        ready, _, _ = select.select([sock, sys.stdin], [], [], patience)
        if sys.stdin in ready and not os.read(0, 4096):
            return
        if sock in ready:
            frame, where = sock.recvfrom(65536)
            seen = Segment(frame)
            if seen.flags is not None:
                print(json.dumps(seen.line(time.time())), flush=True)
                if seen.flags == S and where[2] != PACKET_OUTGOING:
                    for n, (delay, *rest) in enumerate(stories.get(seen.dport, ())):
                        heapq.heappush(due, (time.monotonic() + delay, id(seen), n, seen, rest))
        while due and due[0][0] <= time.monotonic():
            _, _, _, syn, rest = heapq.heappop(due)
            answer(sock, syn, *rest)


main()
