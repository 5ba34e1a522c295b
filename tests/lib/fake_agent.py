"""An agent's RPC on a unix socket, answered by a Python function: for tests of clients.

    agent = FakeAgent(answer)        # answer(method, request, envelope) -> message or Refusal
    with agent: run("nodectl", "--socket", agent.path, ...)

The messages are made from proto/ with protoc, so none of our C code is involved.
"""
import os
import subprocess
import sys
import tempfile
import threading

import zmq

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FILES = ["options", "types", "verdict", "group", "listener", "hold", "cluster", "config", "event",
         "envelope"]


def load_messages():
    """A name space with every message of jury.v1, and the request and response type by method."""
    out = tempfile.mkdtemp(prefix="jury-proto-")
    proto = os.path.join(ROOT, "proto")
    subprocess.run(["protoc", f"-I{proto}", "-I/usr/include", f"--python_out={out}"]
                   + [os.path.join(proto, "jury", "v1", f"{name}.proto") for name in FILES],
                   check=True)
    sys.path.insert(0, out)
    messages, methods = {}, {}
    for name in FILES:
        module = __import__(f"jury.v1.{name}_pb2", fromlist=["DESCRIPTOR"])
        for key in dir(module):
            messages.setdefault(key, getattr(module, key))
        for service in module.DESCRIPTOR.services_by_name.values():
            for method in service.methods:
                methods[f"{service.full_name}/{method.name}"] = (method.input_type.name,
                                                                 method.output_type.name)
    return messages, methods


class Refusal(Exception):
    """Answered as a status that is not OK."""

    def __init__(self, code, reason, message, metadata=(), refusals=()):
        super().__init__(message)
        self.code, self.reason, self.message, self.metadata = code, reason, message, metadata
        self.refusals = refusals  # (document index, reason, message): what a dry run tells besides


SILENCE = object()  # no answer at all


class FakeAgent:
    def __init__(self, messages, methods, answer, revision=42):
        self.messages, self.methods = messages, methods
        self.answer, self.revision = answer, revision
        self.folder = tempfile.TemporaryDirectory(prefix="jury-fake-")
        self.path = os.path.join(self.folder.name, "agent.sock")
        self.calls = []  # (method, request, envelope)
        self.context = zmq.Context()
        self.router = self.context.socket(zmq.ROUTER)
        self.router.linger = 0
        self.router.bind(f"ipc://{self.path}")
        self.stop = self.context.socket(zmq.PAIR)
        self.stop.bind("inproc://stop")
        self.thread = threading.Thread(target=self.serve, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *ignored):
        wake = self.context.socket(zmq.PAIR)
        wake.connect("inproc://stop")
        wake.send(b"")
        self.thread.join()
        wake.close(0)
        self.router.close(0)
        self.stop.close(0)
        self.context.term()
        self.folder.cleanup()

    def reply(self, envelope, payload):
        """The two frames of the answer, or None."""
        request_type, _ = self.methods[envelope.method]
        request = self.messages[request_type].FromString(payload)
        self.calls.append((envelope.method.split("/")[1], request, envelope))
        head = self.messages["Response"](request_id=envelope.request_id, revision=self.revision,
                                         node_id=1, stale=envelope.stale)
        try:
            answer = self.answer(envelope.method.split("/")[1], request, envelope)
        except Refusal as refusal:
            head.status.code = refusal.code
            head.status.reason = refusal.reason
            head.status.message = refusal.message
            for key, value in refusal.metadata:
                head.status.metadata.add(key=key, value=value)
            for index, reason, message in refusal.refusals:
                head.status.refusals.add(document_index=index, reason=reason, message=message)
            return head.SerializeToString(), b""
        if answer is SILENCE:
            return None
        head.status.code = 0
        return head.SerializeToString(), answer.SerializeToString()

    def serve(self):
        poller = zmq.Poller()
        poller.register(self.router, zmq.POLLIN)
        poller.register(self.stop, zmq.POLLIN)
        while True:
            ready = dict(poller.poll())
            if self.stop in ready:
                return
            identity, empty, head, payload = self.router.recv_multipart()
            frames = self.reply(self.messages["Request"].FromString(head), payload)
            if frames is not None:
                self.router.send_multipart([identity, empty, *frames])
