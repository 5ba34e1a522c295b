#!/usr/bin/python3
"""One healthy backend of each kind of probe, at one address: for tests of what all engines must do.

As a module: KINDS, what a probe of each is, and Backends, which starts them within a namespace. As a
program, usage: every_kind.py ADDRESS DELAY_MS; prints {kind: port} and ends with its input. Each waits
so long before it says anything."""
import json
import os
import socket
import sys
import tempfile
import threading
import time

LIB = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, LIB)

UDP = {"type": "udp", "payload": "ping"}
# kind -> fields of a probe. By engine: `connect` sends and reads the first four, with what OpenSSL and
# libnghttp2 make of it the next four; `packet` half-open; `udp` the rest.
KINDS = {
    "tcp": {"type": "tcp"},
    "tcp-fin": {"type": "tcp", "close": "fin"},
    "tcp-line": {"type": "tcp", "send": "ask", "line": "answer"},
    "http": {"type": "http"},
    "tls": {"type": "tls"},
    "https": {"type": "tls", "inside": "http"},
    "grpc": {"type": "grpc"},
    "grpc-tls": {"type": "grpc", "within": "tls"},
    "half-open": {"type": "tcp", "handshake": "half-open", "onTimeout": "nothing"},
    "udp": dict(UDP, udp="port"),
    "udp-echo": dict(UDP, udp="port+echo"),
    "udp-exchange": dict(UDP, udp="exchange", answer="ping"),
}
# What passes: a udp port by any answer, the others by theirs.
OK = "pass OK"


def listen(address):
    listener = socket.create_server((address, 0), backlog=1024)
    return listener, listener.getsockname()[1]


def each_connection(listener, habit, delay):
    def one(sock):
        try:
            time.sleep(delay)
            habit(sock)
        except OSError:
            pass
        sock.close()

    while True:
        sock, _ = listener.accept()
        sock.settimeout(60)
        threading.Thread(target=one, args=(sock,), daemon=True).start()


def until_closed(sock):
    while sock.recv(4096):
        pass


def answers_line(sock):
    sock.recv(4096)
    sock.sendall(b"answer\r\n")
    until_closed(sock)


def answers_http(sock):
    sock.recv(4096)
    sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
    sock.shutdown(socket.SHUT_WR)
    until_closed(sock)


def answers_grpc(sock):
    import grpc_servers
    grpc_servers.says(grpc_servers.GOOD)(sock)


def within_tls(folder, habit):
    import ssl
    import tls_servers
    authority = tls_servers.Authority(folder)
    authority.make("good")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority.path("good.pem"), authority.path("good.key"))
    context.set_alpn_protocols(["h2"])

    def secured(sock):
        with context.wrap_socket(sock, server_side=True) as inside:
            habit(inside)
    return secured


def echo_datagrams(sock, delay):
    while True:
        data, peer = sock.recvfrom(4096)
        if delay > 0:
            threading.Timer(delay, sock.sendto, (data, peer)).start()
        else:
            sock.sendto(data, peer)


def serve(address, delay):
    ports = {}
    with tempfile.TemporaryDirectory() as folder:
        secure_http = within_tls(folder, answers_http)
        secure_grpc = within_tls(folder, answers_grpc)
    for kinds, habit in ((("tcp", "tcp-fin", "half-open"), until_closed), (("tcp-line",), answers_line),
                         (("http",), answers_http), (("tls", "https"), secure_http),
                         (("grpc",), answers_grpc), (("grpc-tls",), secure_grpc)):
        listener, port = listen(address)
        ports.update(dict.fromkeys(kinds, port))
        threading.Thread(target=each_connection, args=(listener, habit, delay), daemon=True).start()
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.bind((address, 0))
    ports.update(dict.fromkeys(("udp", "udp-echo", "udp-exchange"), sock.getsockname()[1]))
    threading.Thread(target=echo_datagrams, args=(sock, delay), daemon=True).start()
    print(json.dumps(ports), flush=True)
    sys.stdin.read()


class Backends:
    def __init__(self, netns, address, delay_ms=0):
        from prober import Lines
        self.process = Lines([sys.executable, os.path.abspath(__file__), address,
                              str(delay_ms)], netns)
        ports = self.process.wait(lambda lines: lines[:1], "the backends")[0]
        self.to = {kind: f"{address}:{port}" for kind, port in ports.items()}

    def stop(self):
        self.process.stop()


if __name__ == "__main__":
    serve(sys.argv[1], int(sys.argv[2]) / 1000)
