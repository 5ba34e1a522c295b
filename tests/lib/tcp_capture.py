#!/usr/bin/python3
"""Prints each TCP segment that an interface sees, a JSON line each.

usage: tcp_capture.py [--syns] INTERFACE    (as root; ends when its standard input does)
The first line is {"ready": true}; then {"time", "src", "sport", "dst", "dport", "flags", "payload",
"leaves"}, time being the kernel's in seconds since 1970, flags being letters of FSRPAU in this order;
a loopback link sees each segment leave and come. --syns: SYNs over IPv4 that leave, no others.
"""
import ctypes
import json
import os
import select
import socket
import struct
import sys

ETH_P_ALL = 3
SO_ATTACH_FILTER, SO_TIMESTAMPNS = 26, 35
PACKET_OUTGOING = 4
# Of classic BPF: (code, jump if true, if false, value).
SYNS_THAT_LEAVE = (
    (0x28, 0, 0, 0xfffff004),  # how the packet passes
    (0x15, 0, 8, PACKET_OUTGOING),
    (0x28, 0, 0, 12),
    (0x15, 0, 6, 0x0800),
    (0x30, 0, 0, 23),
    (0x15, 0, 4, socket.IPPROTO_TCP),
    (0xb1, 0, 0, 14),  # length of the IP header
    (0x50, 0, 0, 14 + 13),
    (0x15, 0, 1, 0x02),
    (0x06, 0, 0, 0xffff),
    (0x06, 0, 0, 0),
)


def parse(frame):
    kind = struct.unpack("!H", frame[12:14])[0]
    packet = frame[14:]
    if kind == 0x0800:
        header = (packet[0] & 15) * 4
        length, protocol = struct.unpack("!H", packet[2:4])[0], packet[9]
        src, dst = (socket.inet_ntop(socket.AF_INET, packet[at:at + 4]) for at in (12, 16))
    elif kind == 0x86dd:
        header, protocol = 40, packet[6]
        length = 40 + struct.unpack("!H", packet[4:6])[0]
        src, dst = (socket.inet_ntop(socket.AF_INET6, packet[at:at + 16]) for at in (8, 24))
    else:
        return None
    if protocol != socket.IPPROTO_TCP:
        return None
    tcp = packet[header:]
    sport, dport = struct.unpack("!HH", tcp[:4])
    flags = "".join(letter for bit, letter in enumerate("FSRPAU") if tcp[13] >> bit & 1)
    return {"src": src, "sport": sport, "dst": dst, "dport": dport, "flags": flags,
            "payload": length - header - (tcp[12] >> 4) * 4}


def attach(sock, instructions):
    program = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *one) for one in instructions))
    sock.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER,
                    struct.pack("HL", len(instructions), ctypes.addressof(program)))


def main():
    sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
    sock.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    if sys.argv[1] == "--syns":
        attach(sock, SYNS_THAT_LEAVE)
    sock.bind((sys.argv[-1], 0))
    print(json.dumps({"ready": True}), flush=True)
    while True:
        ready, _, _ = select.select([sock, sys.stdin], [], [])
        if sys.stdin in ready and not os.read(0, 4096):
            return
        if sock in ready:
            frame, notes, _, where = sock.recvmsg(65536, 64)
            line = parse(frame)
            if line:
                seconds, nanoseconds = struct.unpack("qq", notes[0][2])
                print(json.dumps({"time": seconds + nanoseconds / 1e9, **line,
                                  "leaves": where[2] == PACKET_OUTGOING}), flush=True)


main()
