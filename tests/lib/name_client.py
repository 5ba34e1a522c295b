#!/usr/bin/python3
"""A client of web servers that answer with their names: it never tries anything twice.

usage: name_client.py ADDRESS:PORT NAMES [--rate PER_SECOND] [--flows N]
NAMES: the answers that are right, with commas. New connections come at the given rate, one request
each; N flows stay open, each asks once a second and must hear the same name for ever. Prints a JSON
line each 0.2 s: {"at", "good", "failed", "names", "flows", "late"}, all of them totals: replies by
name, failures as sentences, and by how many connections it is behind its rate. "flows" are the
requests that the long flows had answered. A line "flows" on its input ends them in order; it ends
itself with its input.
"""
import argparse
import asyncio
import json
import sys
import time

REQUEST = b"GET / HTTP/1.%d\r\nHost: x\r\n\r\n"
PATIENCE = 60


class Client:
    def __init__(self, options):
        self.address, _, port = options.at.rpartition(":")
        self.port = int(port)
        self.right = set(options.names.split(","))
        self.rate, self.n_flows = options.rate, options.flows
        self.good, self.failed, self.names, self.flows = 0, [], {}, 0
        self.n_started = 0
        self.flows_are_over, self.is_over = asyncio.Event(), asyncio.Event()

    def fail(self, what, error):
        self.failed.append("%.3f %s: %s %s" % (time.time(), what, type(error).__name__, error))

    @staticmethod
    async def answer(reader):
        head = await reader.readuntil(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 200 "):
            raise ValueError(repr(head[:60]))
        return (await reader.readuntil(b"\n")).decode().strip()

    async def ask(self, reader, writer, version):
        writer.write(REQUEST % version)
        name = await asyncio.wait_for(self.answer(reader), PATIENCE)
        if name not in self.right:
            raise ValueError("a reply of %r" % name)
        return name

    async def connect(self):
        return await asyncio.wait_for(asyncio.open_connection(self.address, self.port), PATIENCE)

    async def once(self):
        try:
            reader, writer = await self.connect()
            name = await self.ask(reader, writer, 0)
            writer.close()
            self.good += 1
            self.names[name] = self.names.get(name, 0) + 1
        except Exception as error:  # every one of them is a failure to whoever asked
            self.fail("new connection", error)

    async def flow(self, number):
        try:
            reader, writer = await self.connect()
            first = await self.ask(reader, writer, 1)
            while not self.flows_are_over.is_set():
                self.flows += 1
                try:
                    await asyncio.wait_for(self.flows_are_over.wait(), 1)
                except asyncio.TimeoutError:
                    name = await self.ask(reader, writer, 1)
                    if name != first:
                        raise ValueError("%s, and %s before" % (name, first)) from None
            writer.close()
        except Exception as error:
            self.fail("long flow %d" % number, error)

    async def come(self):
        """The connections at their times, whatever becomes of those before."""
        started, tasks = time.monotonic(), set()
        while not self.is_over.is_set():
            due = int((time.monotonic() - started) * self.rate)
            for _ in range(min(due - self.n_started, 50)):
                self.n_started += 1
                task = asyncio.ensure_future(self.once())
                tasks.add(task)
                task.add_done_callback(tasks.discard)
            self.late = due - self.n_started
            await asyncio.sleep(1 / self.rate)
        if tasks:
            await asyncio.wait(tasks, timeout=PATIENCE)

    def say(self):
        print(json.dumps({"at": time.time(), "good": self.good, "failed": self.failed,
                          "names": self.names, "flows": self.flows,
                          "late": self.late}), flush=True)

    async def run(self):
        loop = asyncio.get_running_loop()
        self.late = 0

        def heard():
            line = sys.stdin.readline()
            if line != "flows\n":
                self.is_over.set()
                loop.remove_reader(sys.stdin)
            self.flows_are_over.set()
        loop.add_reader(sys.stdin, heard)
        coming = asyncio.ensure_future(self.come())
        flows = asyncio.gather(*(self.flow(number) for number in range(self.n_flows)))
        while not coming.done():
            await asyncio.sleep(0.2)
            self.say()
        await flows
        self.say()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("at")
    parser.add_argument("names")
    parser.add_argument("--rate", type=float, default=200)
    parser.add_argument("--flows", type=int, default=0)
    asyncio.run(Client(parser.parse_args()).run())


main()
