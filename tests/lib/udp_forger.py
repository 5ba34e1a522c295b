#!/usr/bin/python3
"""Prints each UDP datagram and ICMP message that an interface sees, a JSON line each, and answers
datagrams as it is told: what no kernel would say can only be forged.

usage: udp_forger.py INTERFACE [PORT=STORY]...   (as root; ends when its standard input does)
The first line is {"ready": true}; then {"time", "kind", "src", "dst", ...}: of udp "sport", "dport",
"payload" (hex) and "sum" (whether the checksum is right); of icmp "type", "code" and "quoted" (the
destination port that it is about, or null). STORY is a name of STORIES: the answers to each datagram of
that port. The kernel's own answers have to be dropped by somebody else.
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


def checksum(data):
    if len(data) % 2:
        data += b"\0"
    total = sum(struct.unpack("!%dH" % (len(data) // 2), data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff


def pseudo(src, dst, protocol, n_bytes):
    return src + dst + struct.pack("!HH" if len(src) == 4 else "!II", *(
        (protocol, n_bytes) if len(src) == 4 else (n_bytes, protocol)))


class Packet:
    """Of a frame; protocol None when it is neither UDP nor ICMP."""

    def __init__(self, frame):
        self.frame, self.protocol = frame, None
        kind = struct.unpack("!H", frame[12:14])[0]
        packet = frame[14:]
        if kind == 0x0800:
            family, header, protocol = socket.AF_INET, (packet[0] & 15) * 4, packet[9]
            self.src, self.dst = packet[12:16], packet[16:20]
            end = struct.unpack("!H", packet[2:4])[0]
        elif kind == 0x86dd:
            family, header, protocol = socket.AF_INET6, 40, packet[6]
            self.src, self.dst = packet[8:24], packet[24:40]
            end = 40 + struct.unpack("!H", packet[4:6])[0]
        else:
            return
        self.family, self.header, self.packet = family, header, packet[:end]
        self.body = self.packet[header:]
        if protocol in (UDP, ICMP, ICMP6) and len(self.body) >= 8:
            self.protocol = protocol

    def line(self, moment):
        told = {"time": moment, "src": socket.inet_ntop(self.family, self.src),
                "dst": socket.inet_ntop(self.family, self.dst)}
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


def ip(seen, source, protocol, payload):
    if seen.family == socket.AF_INET6:
        return struct.pack("!IHBB", 6 << 28, len(payload), protocol, 64) + source + seen.src + payload
    head = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(payload), 0, 0x4000, 64, protocol, 0)
    head += source + seen.src
    return head[:10] + struct.pack("!H", checksum(head)) + head[12:] + payload


def forged(seen, what, wrong):
    sport, dport = struct.unpack("!HH", seen.body[:4])
    source = socket.inet_pton(seen.family, STRANGER[seen.family]) if wrong == "address" else seen.dst
    if isinstance(what, bytes):
        body = struct.pack("!HHHH", dport + (1000 if wrong == "port" else 0), sport,
                           8 + len(what), 0) + what
        total = checksum(pseudo(source, seen.src, UDP, len(body)) + body) or 0xffff
        return ip(seen, source, UDP, body[:6] + struct.pack("!H", total) + body[8:])
    quoted = bytearray(seen.packet)
    if wrong == "quoted":
        struct.pack_into("!H", quoted, seen.header + 2, dport + 1000)
    kind, code = CODES[seen.family][what]
    icmp = struct.pack("!BBHI", kind, code, 0, 0) + bytes(quoted)
    protocol = ICMP if seen.family == socket.AF_INET else ICMP6
    total = checksum(icmp if protocol == ICMP
                     else pseudo(source, seen.src, ICMP6, len(icmp)) + icmp)
    return ip(seen, source, protocol, icmp[:2] + struct.pack("!H", total) + icmp[4:])


def answer(sock, seen, what, wrong):
    frame = seen.frame[6:12] + seen.frame[:6] + seen.frame[12:14] + forged(seen, what, wrong)
    sock.send(frame)
    print(json.dumps(Packet(frame).line(time.time())), flush=True)  # not seen by this socket


def main():
    stories = {int(port): STORIES[name] for port, name in (a.split("=") for a in sys.argv[2:])}
    sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
    sock.bind((sys.argv[1], 0))
    print(json.dumps({"ready": True}), flush=True)
    due, n = [], 0
    while True:
        patience = max(0, due[0][0] - time.monotonic()) if due else None
        ready, _, _ = select.select([sock, sys.stdin], [], [], patience)
        if sys.stdin in ready and not os.read(0, 4096):
            return
        if sock in ready:
            frame, where = sock.recvfrom(65536)
            seen = Packet(frame)
            if seen.protocol is not None:
                line = seen.line(time.time())
                print(json.dumps(line), flush=True)
                if seen.protocol == UDP and where[2] != PACKET_OUTGOING:
                    for delay, *rest in stories.get(line["dport"], ()):
                        n += 1
                        heapq.heappush(due, (time.monotonic() + delay, n, seen, rest))
        while due and due[0][0] <= time.monotonic():
            _, _, seen, rest = heapq.heappop(due)
            answer(sock, seen, *rest)


main()
