#!/usr/bin/python3
"""A web server with one odd habit a port, and a log of what each connection did.

usage: backend_server.py [--address ADDRESS] [--drip MS] MODE[=PORT]...
The first line of its output is a JSON object {mode: port}. Each connection that ends gives one line:
{"mode", "request", "sent", "ended"}, ended being how it ended at this side: "fin", "reset", "closed"
(by this side) or "open" (still open when the server stopped). Ends when its standard input does.
"""
import argparse
import json
import os
import socket
import struct
import sys
import threading
import time

BLANK = b"\r\n\r\n"
PATIENCE = 120.0


class Ended(Exception):
    """The connection is over: how."""


class Connection:
    def __init__(self, sock, options):
        self.sock, self.options = sock, options
        self.sent, self.request = 0, b""
        self.sock.settimeout(PATIENCE)

    def send(self, data):
        try:
            self.sock.sendall(data)
        except (ConnectionResetError, BrokenPipeError) as error:
            raise Ended("reset") from error
        except OSError as error:
            raise Ended(f"error {error}") from error
        self.sent += len(data)

    def read_request(self):
        while BLANK not in self.request:
            self.request += self.read_some()

    def read_some(self):
        try:
            data = self.sock.recv(65536)
        except ConnectionResetError as error:
            raise Ended("reset") from error
        except socket.timeout as error:
            raise Ended("open") from error
        if not data:
            raise Ended("fin")
        return data

    def wait_for_end(self):
        while True:
            self.read_some()

    def reset(self):
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()
        raise Ended("closed")

    def finish(self):
        """FIN, and wait for the other side's."""
        try:
            self.sock.shutdown(socket.SHUT_WR)
        except OSError as error:
            raise Ended("reset") from error
        self.wait_for_end()


def ok(c):
    c.read_request()
    c.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")
    c.finish()


def no_reason(c):
    c.read_request()
    c.send(b"HTTP/1.1 200 \r\nContent-Length: 0\r\n\r\n")
    c.finish()


def code(c):
    """The status is the last part of the path: GET /x/404."""
    c.read_request()
    status = c.request.split(b" ")[1].rsplit(b"/", 1)[1]
    c.send(b"HTTP/1.1 " + status + b" Any\r\nContent-Length: 0\r\n\r\n")
    c.finish()


def keep(c):
    c.read_request()
    c.send(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")
    c.wait_for_end()


def announce(c):
    """A length, and never a body."""
    c.read_request()
    c.send(b"HTTP/1.1 200 OK\r\nContent-Length: 1192\r\n\r\n")
    c.wait_for_end()


def chunked(c):
    c.read_request()
    c.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n")
    c.wait_for_end()


def huge_chunk(c):
    c.read_request()
    c.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\nx")
    c.wait_for_end()


def until_fin(c):
    c.read_request()
    c.send(b"HTTP/1.0 200 OK\r\n\r\ndata")
    c.finish()


def hangup(c):
    c.finish()


def silent(c):
    c.wait_for_end()


def deaf(c):
    """Reads the request and never answers."""
    c.read_request()
    c.wait_for_end()


def drip(c):
    c.read_request()
    block = b"HTTP/1.1 200 OK\r\n" + b"X-Pad: 0123456789012345678901234567890\r\n" * 72 + BLANK
    for at in range(0, len(block), 50):
        c.send(block[at:at + 50])
        time.sleep(c.options.drip / 1000)
    c.wait_for_end()


def one_byte(c):
    c.read_request()
    c.send(b"HTTP/1.1 200 OK\r\nX: ")
    while True:
        c.send(b"x")
        time.sleep(c.options.drip / 1000)


def endless_body(c):
    c.read_request()
    c.send(b"HTTP/1.1 200 OK\r\n\r\n")
    chunk = b"x" * 65536
    while True:
        c.send(chunk)


def endless_header(c):
    c.read_request()
    c.send(b"HTTP/1.1 200 OK\r\n")
    while True:
        c.send(b"X-Pad: 01234567890123456789\r\n" * 32)


def endless_status(c):
    c.read_request()
    c.send(b"HTTP/1.1 200 ")
    while True:
        c.send(b"O" * 1024)


def half_status(c):
    c.read_request()
    c.send(b"HTTP/1.1 20")
    c.wait_for_end()


def continue_for_ever(c):
    c.read_request()
    while True:
        c.send(b"HTTP/1.1 100 Continue\r\n\r\n")


def continue_slowly(c):
    c.read_request()
    while True:
        c.send(b"HTTP/1.1 100 Continue\r\n\r\n")
        time.sleep(c.options.drip / 1000)


def continue_then_ok(c):
    c.read_request()
    c.send(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: <x>\r\n\r\n")
    c.send(b"HTTP/1.1 204 No Content\r\n\r\n")
    c.finish()


def switching(c):
    c.read_request()
    c.send(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n")
    c.wait_for_end()


def reset_in_header(c):
    c.read_request()
    c.send(b"HTTP/1.1 200 OK\r\nServer: x")
    time.sleep(0.02)
    c.reset()


def reset_at_once(c):
    c.reset()


def tls(c):
    c.read_request()
    c.send(bytes([0x15, 3, 1, 0, 2, 2, 0x16]))
    c.wait_for_end()


def nul(c):
    c.read_request()
    c.send(b"HTTP/1.1 200 OK\r\nX: \0\0\0\0\r\n\r\n")
    c.wait_for_end()


def garbage(c):
    c.read_request()
    c.send(os.urandom(4096))
    c.wait_for_end()


def redirect(c):
    c.read_request()
    c.send(f"HTTP/1.1 302 Found\r\nLocation: http://{c.options.redirect}/up\r\n\r\n".encode())
    c.finish()


def late_header(c):
    """A07: the status line, a pause, 1,200 bytes of header."""
    c.read_request()
    c.send(b"HTTP/1.1 200 OK\r\n")
    time.sleep(0.05)
    c.send(b"X-Pad: " + b"x" * 1193 + BLANK)
    c.finish()


def header_of(n_bytes):
    head = b"HTTP/1.1 200 OK\r\n"
    lines = b""
    while len(head) + len(lines) + 2 < n_bytes:
        left = n_bytes - 2 - len(head) - len(lines)
        size = left if left <= 1010 else 1000
        lines += b"X: " + b"x" * (size - 5) + b"\r\n"
    return head + lines + b"\r\n"


def longest_header(c):
    c.read_request()
    c.send(header_of(16384))
    c.finish()


def too_long_header(c):
    c.read_request()
    c.send(header_of(16385))
    c.wait_for_end()


MODES = {name.replace("_", "-"): value for name, value in list(globals().items())
         if callable(value) and name not in ("Ended", "Connection", "header_of")}
MODES["closed"] = None  # the port is taken, nobody listens
OUTPUT = threading.Lock()


def say(line):
    with OUTPUT:
        print(json.dumps(line), flush=True)


def serve_one(mode, sock, options):
    connection = Connection(sock, options)
    ended = "open"
    try:
        MODES[mode](connection)
    except Ended as how:
        ended = str(how)
    sock.close()
    say({"mode": mode, "request": connection.request.decode("latin1"), "sent": connection.sent,
         "ended": ended})


def serve(mode, listener, options):
    while True:
        sock, _ = listener.accept()
        threading.Thread(target=serve_one, args=(mode, sock, options), daemon=True).start()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--address", default="127.0.0.1")
    parser.add_argument("--drip", type=float, default=20)
    parser.add_argument("--redirect", default="127.0.0.1:1")
    parser.add_argument("modes", nargs="+")
    options = parser.parse_args()
    ports = {}
    family = socket.AF_INET6 if ":" in options.address else socket.AF_INET
    for text in options.modes:
        mode, _, port = text.partition("=")
        if mode not in MODES:
            parser.error(f"there is no mode {mode}: use {', '.join(sorted(MODES))}")
        listener = socket.socket(family, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((options.address, int(port or 0)))
        ports[mode] = listener.getsockname()[1]
        if MODES[mode]:
            listener.listen(1024)
            threading.Thread(target=serve, args=(mode, listener, options), daemon=True).start()
        else:
            options.kept = listener
    say(ports)
    sys.stdin.read()


if __name__ == "__main__":
    main()
