"""What tcp_forger.py and udp_forger.py have in common: frames taken apart, answers made and sent when
they are due, a JSON line of each. What a packet means, and what is forged, is theirs.
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


def checksum(data):
    if len(data) % 2:
        data += b"\0"
    total = sum(struct.unpack("!%dH" % (len(data) // 2), data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff


def pseudo(src, dst, protocol, n_bytes):
    """The pseudo header of the checksums of TCP, UDP and ICMPv6."""
    return src + dst + struct.pack("!HH" if len(src) == 4 else "!II", *(
        (protocol, n_bytes) if len(src) == 4 else (n_bytes, protocol)))


def ip(source, seen, protocol, payload):
    """A packet to the sender of `seen`."""
    if seen.family == socket.AF_INET6:
        return struct.pack("!IHBB", 6 << 28, len(payload), protocol, 64) + source + seen.src + payload
    head = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(payload), 0, 0x4000, 64, protocol, 0)
    head += source + seen.src
    return head[:10] + struct.pack("!H", checksum(head)) + head[12:] + payload


class Frame:
    """One of an interface; protocol None when it is no IP. A subclass says more by:
    line(moment): what to print of it, None = nothing;
    question(): the port whose story answers it, None = it is none;
    forged(*answer): an IP packet that answers it, by what stands in a story after the delay."""

    def __init__(self, frame):
        self.frame, self.protocol = frame, None
        kind = struct.unpack("!H", frame[12:14])[0]
        packet = frame[14:]
        if kind == 0x0800:
            self.family, self.header = socket.AF_INET, (packet[0] & 15) * 4
            self.protocol, self.src, self.dst = packet[9], packet[12:16], packet[16:20]
            end = struct.unpack("!H", packet[2:4])[0]
        elif kind == 0x86dd:
            self.family, self.header = socket.AF_INET6, 40
            self.protocol, self.src, self.dst = packet[6], packet[8:24], packet[24:40]
            end = 40 + struct.unpack("!H", packet[4:6])[0]
        else:
            return
        self.packet = packet[:end]
        self.body = self.packet[self.header:]

    def addresses(self):
        return (socket.inet_ntop(self.family, self.src), socket.inet_ntop(self.family, self.dst))


def tell(seen):
    line = seen.line(time.time())
    if line is not None:
        print(json.dumps(line), flush=True)


def answer(sock, kind, seen, what):
    frame = seen.frame[6:12] + seen.frame[:6] + seen.frame[12:14] + seen.forged(*what)
    sock.send(frame)
    tell(kind(frame))  # this socket does not see what it sends


def forge(kind, stories):
    """Of the interface and the stories of the ports of the command line, until standard input ends.
    kind: a class of frames. stories: name -> answers (delay in seconds, what forged() takes...)."""
    by_port = {int(port): stories[name] for port, name in (a.split("=") for a in sys.argv[2:])}
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
            seen = kind(frame)
            tell(seen)
            asked = None if where[2] == PACKET_OUTGOING else seen.question()
            for delay, *what in by_port.get(asked, ()):
                n += 1
                heapq.heappush(due, (time.monotonic() + delay, n, seen, what))
        while due and due[0][0] <= time.monotonic():
            _, _, seen, what = heapq.heappop(due)
            answer(sock, kind, seen, what)
