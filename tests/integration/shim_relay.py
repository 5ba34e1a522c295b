#!/usr/bin/python3
"""jury-shim carries bytes as TCP does: whole, both ways, half-close, reset, back-pressure, IPv6."""
import os
import socket
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from prober import arguments, check, finish
from shim_world import HOST, Backend, Client, World, endpoint, free_port, random_bytes, wait_until

MIB = 1024 * 1024


def bulk(at, seed, n_bytes):
    """Send and receive at once; what comes back must be what was sent in upper case."""
    data = random_bytes(n_bytes, seed)
    client = Client(at)
    client.line()

    def send():
        client.sock.sendall(data)
        client.half_close()

    sender = threading.Thread(target=send)
    sender.start()
    back = client.rest()
    sender.join()
    client.close()
    return back == data.upper() + b"bye"


def swallow(results):
    """A backend that reads nothing until it is told to."""
    gate = threading.Event()

    def serve(sock):
        gate.wait(60)
        n = 0
        while True:
            data = sock.recv(MIB)
            if not data:
                results.append(n)
                return "fin"
            n += len(data)
    return gate, serve


def reset_after_line(sock):
    sock.recv(100)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    return "resets"


def half_close_first(sock):
    """The backend speaks and ends its side first, then listens to the client."""
    sock.sendall(b"all said")
    sock.shutdown(socket.SHUT_WR)
    n = 0
    while True:
        data = sock.recv(65536)
        if not data:
            return f"heard {n}"
        n += len(data)


def main():
    world = World(arguments().bin, "--workers", "2")
    received = []
    gate, serve = swallow(received)
    echo, six = Backend("echo"), Backend("six", host="::1")
    slow = Backend("slow", serve=serve)
    resetter = Backend("resetter", serve=reset_after_line)
    speaker = Backend("speaker", serve=half_close_first)
    backends = {"echo": echo, "six": six, "slow": slow, "resetter": resetter, "speaker": speaker}
    ports = {name: endpoint(HOST, free_port()) for name in backends}
    ports["six"] = endpoint("::1", free_port("::1"))
    ports["any"] = endpoint("0.0.0.0", free_port())
    ports["any6"] = ports["any"].replace("0.0.0.0", "[::]")  # beside it: IPv6 alone
    groups = {name: ("5-tuple", 900000, [(backend.at, 100)]) for name, backend in backends.items()}
    listeners = [(name, ports[name], name, 0) for name in backends]
    listeners += [("any", ports["any"], "echo", 0), ("any6", ports["any6"], "six", 0)]
    world.serve(groups, listeners)

    check(bulk(ports["echo"], 1, 20 * MIB), "20 MiB there and back, whole, with FIN at the end")
    at_once = [threading.Thread(target=lambda i=i: results.append(bulk(ports["echo"], i, MIB)))
               for i in range(40)]
    results = []
    for thread in at_once:
        thread.start()
    for thread in at_once:
        thread.join()
    check(results == [True] * 40, "40 connections of 1 MiB at once, each its own bytes")

    client = Client(ports["six"])
    check(client.line() == "six" and client.ask("hello") == "HELLO", "IPv6 listener and backend")
    client.half_close()
    check(client.rest() == b"bye", "client's FIN reaches the backend, its last words the client")

    client = Client(ports["any"].replace("0.0.0.0", HOST))
    check(client.line() == "echo", "a listener on the unspecified address")
    client.half_close()
    client.rest()

    client = Client(ports["any6"].replace("[::]", "[::1]"))
    check(client.line() == "six", "and on that of IPv6, with the same port")
    client.half_close()
    client.rest()

    client = Client(ports["speaker"])
    check(client.rest() == b"all said", "backend's FIN reaches the client")
    client.sock.sendall(b"x" * 1000)
    client.half_close()
    wait_until(lambda: speaker.ends, "the backend hears the client's end")
    check(speaker.ends == ["heard 1000"], "the client goes on speaking after the backend's FIN")
    client.close()

    client = Client(ports["resetter"])
    client.sock.sendall(b"x\n")
    check(client.how_it_ends() == "reset", "a backend's RST becomes an RST to the client")
    client.close()

    client = Client(ports["echo"])
    client.line()
    client.reset()
    wait_until(lambda: echo.n_ended("reset") == 1, "the backend sees the client's RST")
    check(echo.n_ended("reset") == 1, "a client's RST becomes an RST to the backend")

    before = world.shim.memory_kib()
    client = Client(ports["slow"])
    client.sock.settimeout(1.0)
    n_sent = 0
    try:
        while n_sent < 200 * MIB:
            n_sent += client.sock.send(b"z" * MIB)
    except socket.timeout:
        pass
    grown = world.shim.memory_kib() - before
    check(n_sent < 64 * MIB and grown < 2048,
          f"a backend that does not read stops the client after {n_sent // 1024} KiB; "
          f"the shim grew by {grown} KiB")
    gate.set()
    client.half_close()
    wait_until(lambda: received, "the slow backend gets the rest")
    check(received[0] == n_sent, f"and then gets all {n_sent} bytes")
    client.close()

    wait_until(lambda: world.feed.plane()["flows"] == 0, "no flow left")
    plane, row = world.feed.plane(), world.feed.row("echo", echo.at)
    check(plane["accepted"] == 48 and plane["ended"] == 46 and plane["reset"] == 2
          and plane["refused_limit"] == 0, f"counted: {plane}")
    check(row["flows"] == 0 and row["new_flows"] == 43
          and row["bytes_to_backend"] == 60 * MIB, f"of the row: {row}")
    check(world.shim.process.poll() is None, "the shim lives")
    finish()


main()
