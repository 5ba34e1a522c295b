"""Servers that speak TLS, for tests: certificates by openssl, its s_server, and odd ones of our own
that are wrong before, in, or after the handshake. Everything listens on a port of the kernel's choice.
"""
import os
import re
import socket
import ssl
import struct
import subprocess
import sys
import threading
import time

NAME = "good.test"


def openssl(folder, *words):
    done = subprocess.run(["openssl", *words], cwd=folder, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"openssl {' '.join(words)}: {done.stdout}")


class Authority:
    """A certificate authority below `folder`, with the certificates that it made: NAME.pem, NAME.key."""

    def __init__(self, folder):
        self.folder = folder
        self.pem = os.path.join(folder, "ca.pem")
        openssl(folder, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
                "-nodes", "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=test authority",
                "-days", "30")

    def make(self, name, host=NAME, days=100):
        """days -1: it ended yesterday. Returns the options of s_server that name its files."""
        with open(os.path.join(self.folder, "ext"), "w", encoding="ascii") as file:
            file.write(f"subjectAltName=DNS:{host}\n")
        openssl(self.folder, "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={host}")
        openssl(self.folder, "x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey",
                "ca.key", "-CAcreateserial", "-days", str(days), "-extfile", "ext", "-out",
                f"{name}.pem")
        return self.files(name)

    def files(self, name):
        return ["-cert", self.path(name + ".pem"), "-key", self.path(name + ".key")]

    def path(self, name):
        return os.path.join(self.folder, name)


class SServer:
    """`openssl s_server` with some options."""

    def __init__(self, address, options):
        host = f"[{address}]" if ":" in address else address
        self.process = subprocess.Popen(["openssl", "s_server", "-accept", f"{host}:0", *options],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT)
        self.port = None
        while self.port is None:
            line = self.process.stdout.readline().decode("latin1")
            if not line:
                sys.exit("openssl s_server did not start")
            match = re.search(r"ACCEPT .*:(\d+)$", line.strip())
            self.port = int(match.group(1)) if match else None
        self.to = f"{host}:{self.port}"
        threading.Thread(target=self._drain, daemon=True).start()

    def _drain(self):
        while self.process.stdout.read1(65536):
            pass

    def stop(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()


def reset(sock):
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    sock.close()


def record(kind, body, version=b"\x03\x03"):
    return bytes([kind]) + version + struct.pack("!H", len(body)) + body


HELLO_REQUEST = record(22, b"\0\0\0\0")


def server_hello():
    body = b"\x03\x03" + bytes(32) + b"\0" + b"\xc0\x2f" + b"\0"
    return record(22, b"\x02" + struct.pack("!I", len(body))[1:] + body)


def in_the_clear(sock):
    sock.recv(4096)
    sock.sendall(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")
    sock.recv(4096)


def silent(sock):
    while sock.recv(4096):
        pass


def reset_after_hello(sock):
    sock.recv(4096)
    reset(sock)


def close_after_hello(sock):
    sock.recv(4096)
    sock.shutdown(socket.SHUT_WR)
    silent(sock)


def endless_requests(sock):
    """Hello requests, which a client that is in a handshake ignores, as many as it will take."""
    sock.recv(4096)
    while True:
        sock.sendall(HELLO_REQUEST * 1000)


def slow_requests(sock):
    sock.recv(4096)
    while True:
        sock.sendall(HELLO_REQUEST)
        time.sleep(0.02)


def huge_certificate(sock):
    sock.recv(4096)
    sock.sendall(server_hello())
    sock.sendall(record(22, b"\x0b\xff\xff\xff" + b"\xff" * 4096))
    while True:
        sock.sendall(record(22, b"\xff" * 16000))


def warnings(sock):
    sock.recv(4096)
    while True:
        sock.sendall(record(21, b"\x01\x6e") * 1000)


def garbage(sock):
    sock.recv(4096)
    sock.sendall(os.urandom(8192))
    silent(sock)


class Odd:
    """One habit on one port: a function of the accepted connection, which may end as it likes."""

    def __init__(self, address, habit):
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        self.habit, self.n_sent, self.n_connections = habit, 0, 0
        self.listener = socket.socket(family, socket.SOCK_STREAM)
        self.listener.bind((address, 0))
        self.listener.listen(64)
        self.port = self.listener.getsockname()[1]
        self.to = f"[{address}]:{self.port}" if family == socket.AF_INET6 else f"{address}:{self.port}"
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        while True:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            self.n_connections += 1
            threading.Thread(target=self._serve_one, args=(sock,), daemon=True).start()

    def _serve_one(self, sock):
        sock.settimeout(60)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            self.habit(sock)
        except OSError:
            pass
        sock.close()

    def stop(self):
        self.listener.close()


def relay(to, n_bytes, pause=0.0):
    """A habit: what the server at (address, port) says is handed on n_bytes at a time."""
    def habit(sock):
        with socket.create_connection(to) as server:
            def forth():
                try:
                    while data := sock.recv(4096):
                        server.sendall(data)
                    server.shutdown(socket.SHUT_WR)
                except OSError:
                    pass
            threading.Thread(target=forth, daemon=True).start()
            while data := server.recv(4096):
                for at in range(0, len(data), n_bytes):
                    sock.sendall(data[at:at + n_bytes])
                    if pause:
                        time.sleep(pause)
    return habit


def inside(authority, name, habit):
    """A habit within TLS: habit(connection) after the handshake."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority.path(name + ".pem"), authority.path(name + ".key"))

    def secured(sock):
        with context.wrap_socket(sock, server_side=True) as connection:
            habit(connection)
    return secured


def read_request(connection):
    data = b""
    while b"\r\n\r\n" not in data:
        more = connection.recv(4096)
        if not more:
            return data
        data += more
    return data


def hangs_up(connection):
    read_request(connection)
    connection.unwrap()


def says_nothing(connection):
    read_request(connection)
    silent(connection)


def endless_header(connection):
    read_request(connection)
    connection.sendall(b"HTTP/1.1 200 OK\r\n")
    while True:
        connection.sendall(b"X-Pad: 01234567890123456789\r\n" * 32)


def endless_body(connection):
    read_request(connection)
    connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
    while True:
        connection.sendall(b"x" * 16384)
