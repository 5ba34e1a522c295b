"""jury-shim with a table that the test writes (table_feed), and TCP backends in this process.

Every wait has a deadline and ends the script with a sentence; nothing sleeps and hopes. Addresses are
loopback ones of this process's own, ports are the kernel's choice.
"""
import atexit
import hashlib
import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import threading
import time

PATIENCE = 30.0
HOST = f"127.{1 + os.getpid() // 65536 % 200}.{os.getpid() // 256 % 256}.{1 + os.getpid() % 250}"


def wait_until(condition, what, patience=PATIENCE):
    """The first true value of condition()."""
    deadline = time.monotonic() + patience
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise SystemExit(f"WRONG waited {patience:.0f} s in vain: {what}")
        time.sleep(0.005)


def endpoint(host, port):
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def free_port(host=HOST):
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as sock:
        sock.bind((host, 0))
        return sock.getsockname()[1]


class Backend:
    """Says its name, then returns what it gets in upper case until FIN, says bye and closes."""

    def __init__(self, name, host=HOST, port=0, serve=None):
        self.name, self.serve = name, serve or self.talk
        self.ends, self.n_accepted, self.lock = [], 0, threading.Lock()
        self.socks = []
        self.listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.listener.bind((host, port))
        self.listener.listen(1024)
        self.port = self.listener.getsockname()[1]
        self.at = endpoint(host, self.port)
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            with self.lock:
                self.n_accepted += 1
                self.socks.append(sock)
            threading.Thread(target=self.run, args=(sock,), daemon=True).start()

    def run(self, sock):
        try:
            end = self.serve(sock)
        except ConnectionResetError:
            end = "reset"
        except OSError as error:
            end = f"error {error.errno}"
        sock.close()
        with self.lock:
            self.ends.append(end)

    def talk(self, sock):
        sock.sendall(self.name.encode() + b"\n")
        while True:
            data = sock.recv(65536)
            if not data:
                sock.sendall(b"bye")
                return "fin"
            sock.sendall(data.upper())

    def n_ended(self, how):
        with self.lock:
            return self.ends.count(how)

    def close(self):
        # A listening socket that another thread waits on is woken by shutdown, not by close.
        try:
            self.listener.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.listener.close()


class Feed:
    """The table of an agent that is the test."""

    def __init__(self, bin_dir, folder):
        self.tables = os.path.join(folder, "tables")
        self.status = os.path.join(folder, "status")
        os.makedirs(self.tables, exist_ok=True)
        os.makedirs(self.status, exist_ok=True)
        self.process = subprocess.Popen([os.path.join(bin_dir, "table_feed")],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        bufsize=1)
        atexit.register(self.end)
        self.revision, self.epoch = 0, 0

    def end(self):
        self.process.kill()
        self.process.wait()

    def tell(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline().strip()
        if not answer.startswith("ok"):
            raise SystemExit(f"WRONG table_feed: {line!r}: {answer!r}")
        return answer[3:]

    def start(self):
        self.epoch += 1
        self.tell(f"open {self.tables} {self.epoch}")

    def describe(self, groups, listeners):
        """groups: {name: (scheduler, idle_ms, [(address, weight), ...])}; listeners: (name, address,
        group, idle_ms)."""
        self.tell("clear")
        for name in sorted(groups):
            scheduler, idle_ms, backends = groups[name]
            self.tell(f"group {name} {scheduler} {idle_ms}")
            for at, weight in sorted(backends):
                self.tell(f"backend {at} {weight}")
        for name, at, group, idle_ms in listeners:
            self.tell(f"listener {name} {at} {group} {idle_ms}")

    def publish(self):
        self.revision += 1
        return int(self.tell(f"publish {self.revision}"))

    def set(self, group, at, row_class, policy="keep", deadline_ms=0, share=100):
        return int(self.tell(f"set {group} {at} {row_class} {policy} {deadline_ms} {share}"))

    def planes(self):
        return json.loads(self.tell(f"planes {self.status}"))

    def plane(self, name="jury-shim"):
        found = [plane for plane in self.planes() if plane["name"] == name]
        return found[0] if found else {"state": "none", "generation": 0, "flows": 0}

    def row(self, group, at=""):
        return json.loads(self.tell(f"row {self.status} {group} {at}"))

    def wait_adopted(self, generation):
        wait_until(lambda: self.plane()["state"] == "alive" and
                   self.plane()["generation"] >= generation, f"generation {generation} adopted")


class Shim:
    def __init__(self, bin_dir, feed, *options, name="jury-shim"):
        self.command = [os.path.join(bin_dir, "jury-shim"), "--tables", feed.tables, "--status",
                        feed.status, "--name", name, *options]
        self.log = tempfile.TemporaryFile("w+")
        self.process = None
        atexit.register(self.kill)

    def start(self):
        self.process = subprocess.Popen(self.command, stderr=self.log, stdin=subprocess.DEVNULL)
        return self

    def kill(self):
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def terminate(self):
        self.process.send_signal(signal.SIGTERM)

    def text(self):
        self.log.seek(0)
        return self.log.read()

    def n_logged(self, what):
        return self.text().count(what)

    def memory_kib(self):
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as file:
            return next(int(line.split()[1]) for line in file if line.startswith("VmRSS:"))


class World:
    """Folder, feed and shim of one test."""

    def __init__(self, bin_dir, *options):
        self.bin, self.folder = bin_dir, tempfile.mkdtemp(prefix="jury-shim-")
        atexit.register(shutil.rmtree, self.folder, ignore_errors=True)
        self.feed = Feed(bin_dir, self.folder)
        self.feed.start()
        self.shim = Shim(bin_dir, self.feed, *options)

    def serve(self, groups, listeners):
        """Describe, publish, and wait until the shim forwards by it."""
        self.feed.describe(groups, listeners)
        generation = self.feed.publish()
        if self.shim.process is None:
            self.shim.start()
        self.feed.wait_adopted(generation)

    def set(self, *arguments, **named):
        """A word, adopted by the shim."""
        self.feed.wait_adopted(self.feed.set(*arguments, **named))


class Client:
    """A connection through the shim."""

    def __init__(self, at, source=None, timeout=PATIENCE):
        host, port = at.rsplit(":", 1)
        self.sock = socket.create_connection((host.strip("[]"), int(port)), timeout=timeout,
                                             source_address=source)
        self.buffer = b""

    def line(self):
        while b"\n" not in self.buffer:
            data = self.sock.recv(65536)
            if not data:
                return ""
            self.buffer += data
        line, self.buffer = self.buffer.split(b"\n", 1)
        return line.decode()

    def ask(self, text):
        self.sock.sendall(text.encode() + b"\n")
        return self.line()

    def rest(self):
        data = self.buffer
        while True:
            more = self.sock.recv(65536)
            if not more:
                return data
            data += more

    def half_close(self):
        self.sock.shutdown(socket.SHUT_WR)

    def reset(self):
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()

    def close(self):
        self.sock.close()

    def how_it_ends(self, timeout=PATIENCE):
        """fin, reset, or open when nothing came within the time."""
        self.sock.settimeout(timeout)
        try:
            while True:
                if not self.sock.recv(65536):
                    return "fin"
        except ConnectionResetError:
            return "reset"
        except socket.timeout:
            return "open"


def ask_name(at):
    """One short connection: the backend's name, or how it failed."""
    try:
        client = Client(at)
        name = client.line()
        client.close()
        return name or "fin"
    except ConnectionResetError:
        return "reset"
    except ConnectionRefusedError:
        return "refused"


def random_bytes(n_bytes, seed):
    block = b"".join(hashlib.sha256(f"{seed}-{i}".encode()).digest() for i in range(32768))
    return (block * (n_bytes // len(block) + 1))[:n_bytes]
