#!/usr/bin/python3
"""How much jury-shim costs beside a direct connection: connections a second, latency, bytes a second.

Prints and judges nothing; the clients are Python processes, so the figures are of this machine and
compare only with each other.   usage: shim_smoke.py --bin BIN [--seconds N] [--clients N]
"""
import multiprocessing
import os
import socket
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from prober import arguments
from shim_world import HOST, World, endpoint, free_port

BLOCK = b"x" * 65536


def backend(listener, talk):
    """One process: answers each connection with a byte, or swallows it whole."""
    while True:
        sock, _ = listener.accept()
        if talk == "byte":
            sock.sendall(b"b")
            sock.close()
            continue
        while sock.recv(1 << 20):
            pass
        sock.sendall(b"e")
        sock.close()


def start_backend(talk):
    listener = socket.socket()
    listener.bind((HOST, 0))
    listener.listen(1024)
    for _ in range(2):
        multiprocessing.Process(target=backend, args=(listener, talk), daemon=True).start()
    return endpoint(HOST, listener.getsockname()[1])


def knock(at, seconds, results):
    host, port = at.rsplit(":", 1)
    times, end = [], time.monotonic() + seconds
    while time.monotonic() < end:
        start = time.monotonic()
        with socket.create_connection((host, int(port))) as sock:
            sock.recv(1)
        times.append(time.monotonic() - start)
    results.put(times)


def rate(at, seconds, n_clients):
    results = multiprocessing.Queue()
    clients = [multiprocessing.Process(target=knock, args=(at, seconds, results))
               for _ in range(n_clients)]
    for client in clients:
        client.start()
    times = sorted(t for _ in clients for t in results.get())
    for client in clients:
        client.join()
    return len(times) / seconds, times[len(times) // 2] * 1e6, times[len(times) * 99 // 100] * 1e6


def bulk(at, seconds):
    host, port = at.rsplit(":", 1)
    n_bytes, start = 0, time.monotonic()
    with socket.create_connection((host, int(port))) as sock:
        while time.monotonic() - start < seconds:
            sock.sendall(BLOCK)
            n_bytes += len(BLOCK)
        sock.shutdown(socket.SHUT_WR)
        sock.recv(1)
    return n_bytes / (time.monotonic() - start) / 1e6


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        return sum(int(word) for word in file.read().rsplit(")", 1)[1].split()[11:13]) / 100


def main():
    options = arguments(seconds=3, clients=2)
    byte, swallow = start_backend("byte"), start_backend("swallow")
    front, sink = endpoint(HOST, free_port()), endpoint(HOST, free_port())
    world = World(options.bin)
    world.serve({"byte": ("wrr", 900000, [(byte, 100)]), "sink": ("5-tuple", 900000, [(swallow, 100)])},
                [("front", front, "byte", 0), ("sink", sink, "sink", 0)])
    for name, at in (("direct", byte), ("shim", front)):
        before = cpu_seconds(world.shim.process.pid)
        per_second, median, p99 = rate(at, options.seconds, options.clients)
        spent = cpu_seconds(world.shim.process.pid) - before
        print(f"{name:7} {per_second:8.0f} connections/s   median {median:6.0f} us   p99 {p99:6.0f} us"
              f"   shim CPU {1e6 * spent / per_second / options.seconds:5.0f} us a connection")
    for name, at in (("direct", swallow), ("shim", sink)):
        before = cpu_seconds(world.shim.process.pid)
        speed = bulk(at, options.seconds)
        spent = cpu_seconds(world.shim.process.pid) - before
        print(f"{name:7} {speed:8.0f} MB/s one way, one connection   shim CPU {spent:.2f} s "
              f"of {options.seconds} s")


main()
