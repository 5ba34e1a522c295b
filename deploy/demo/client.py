#!/usr/bin/python3
"""Sends one request after the other through the shims and writes down who answered.

usage: client.py LOG ADDRESS:PORT...

One line a request: `milliseconds address:port name`, or `... ERROR reason`. No retries: what a line
says is what a client saw. Runs until SIGTERM.
"""
import signal
import socket
import sys
import time

PAUSE_S = 0.02
TIMEOUT_S = 2.0


def ask(host, port):
    with socket.create_connection((host, port), timeout=TIMEOUT_S) as connection:
        connection.sendall(b"GET / HTTP/1.0\r\nHost: demo\r\n\r\n")
        reply = b""
        while True:
            part = connection.recv(4096)
            if not part:
                break
            reply += part
    head, _, body = reply.partition(b"\r\n\r\n")
    if b" 200 " not in head.split(b"\r\n")[0] + b" ":
        raise ValueError("no 200 in the reply")
    return body.decode("ascii").strip()


def main():
    log = open(sys.argv[1], "w", encoding="ascii", buffering=1)
    shims = []
    for text in sys.argv[2:]:
        host, _, port = text.rpartition(":")
        shims.append((host.strip("[]"), int(port), text))
    stopping = []
    signal.signal(signal.SIGTERM, lambda *_: stopping.append(True))
    turn = 0
    while not stopping:
        host, port, text = shims[turn % len(shims)]
        turn += 1
        try:
            outcome = ask(host, port)
        except (OSError, ValueError) as error:
            outcome = f"ERROR {error}".replace("\n", " ")
        log.write(f"{int(time.time() * 1000)} {text} {outcome}\n")
        time.sleep(PAUSE_S)


main()
