#!/usr/bin/python3
"""Replies that come in two parts, split once at each byte, of each kind that reads a stream: the outcome
is that of the whole, of good replies and of bad ones (R-PROBE-3, F-30).
"""
# twin: grpc-serving WRONG grpc, not serving
import os
import socket
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import grpc_servers as g  # noqa: E402
from prober import Prober, arguments, check, check_counts, finish  # noqa: E402

PAUSE = 0.004  # between the parts, so that they are mostly read one by one
HTTP = b"HTTP/1.1 %s\r\nContent-Length: 0\r\n\r\n"
INTERIM = b"HTTP/1.1 103 Early Hints\r\nLink: <x>\r\n\r\n"
GRPC = {"type": "grpc"}
LINE = {"type": "tcp", "send": "ask", "line": "220-good"}

# what, fields of the probe, reply, reason, status
ROWS = [
    ("http", {"type": "http"}, HTTP % b"200 OK", "OK", 200),
    ("http after an interim reply", {"type": "http"}, INTERIM + HTTP % b"204", "OK", 204),
    ("http, another code", {"type": "http"}, HTTP % b"503 No", "HTTP_CODE_NOT_MATCH", 503),
    ("http, a NUL at its end", {"type": "http"}, (HTTP % b"200 OK")[:-2] + b"X: \0\r\n\r\n",
     "HTTP_INVALID_HEADER", 200),
    ("tcp expect", LINE, b"220-good morning", "OK", 0),
    ("tcp expect, another answer", LINE, b"220-gone", "RESPONSE_MISMATCH", 0),
    ("grpc", GRPC, g.GREETING + g.GOOD, "OK", 0),
    ("grpc, not serving", GRPC, g.GREETING + g.head() + g.message(g.health_reply(2)) + g.trailer(),
     "GRPC_NOT_SERVING", 2),
    ("grpc, two messages", GRPC, g.GREETING + g.head() + g.message(b"") * 2 + g.trailer(),
     "GRPC_INVALID", 0),
]


class Splitter:
    """Answers the n-th connection with the reply split behind its n-th byte, round and round."""

    def __init__(self, reply):
        self.reply, self.n_splits = reply, 0
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.to = "127.0.0.1:%d" % self.listener.getsockname()[1]
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            sock, _ = self.listener.accept()
            sock.settimeout(60)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            at = 1 + self.n_splits % (len(self.reply) - 1)
            self.n_splits += 1
            try:
                sock.recv(4096)
                sock.sendall(self.reply[:at])
                time.sleep(PAUSE)
                sock.sendall(self.reply[at:])
                while sock.recv(4096):
                    pass
            except OSError:
                pass
            sock.close()


def main():
    options = arguments()
    prober = Prober(options.bin)
    splitters = [Splitter(reply) for _, _, reply, _, _ in ROWS]
    for slot, (row, splitter) in enumerate(zip(ROWS, splitters)):
        prober.set(slot, T=5000, I=5, to=splitter.to, **row[1])
    prober.publish()
    for slot, (what, _, reply, reason, status) in enumerate(ROWS):
        n = len(reply) - 1
        seen = {(line["reason"], line["status"]) for line in prober.wait_results(slot, n)}
        check(seen == {(reason, status)}, f"{what}, split at each of {n} places: {sorted(seen)}, "
              f"expected {reason} {status}")
    check_counts(prober.final_counts())
    prober.stop()
    finish()


main()
