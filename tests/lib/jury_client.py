#!/usr/bin/python3
"""A client of the API in nothing but Python, ZeroMQ and protobuf: for tests, load and curiosity.

As a module:
    client = Client(["tcp://127.0.0.1:7001"], server_key=HEX, key=read_key("ops.key"))
    client.apply(client.group("web", "nlb", ["10.0.0.1:80"]))
    print(client.verdicts("web"))
    answer = client.call("GroupService/GetGroup", {"name": "web"})
As a program:
    jury_client.py --endpoint ipc:///run/jury/agent.sock verdicts web
    jury_client.py --endpoint tcp://HOST:PORT --server-key HEX --key FILE call METHOD '{"name": "web"}'

Writes may be repeated with one request id: they are carried out once. Every error is a CallError with
the reason that the agent gave (or UNREACHABLE, DEADLINE_PASSED of the client's own).
"""
import argparse
import json
import os
import sys
import time

import zmq
from zmq.utils import z85
from google.protobuf import descriptor_pool, json_format

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import proto_stubs  # noqa: E402

RETRIED = {"NO_LEADER", "NOT_LEADER", "UNREACHABLE", "BUSY", "DEADLINE_PASSED"}


class CallError(Exception):
    def __init__(self, reason, message, code=0, metadata=None, revision=0):
        super().__init__(f"{reason}: {message}")
        self.reason, self.message, self.code = reason, message, code
        self.metadata, self.revision = metadata or {}, revision


class Key:
    """A CURVE key pair: `public` and `secret` in hex, as in the product's key files."""

    def __init__(self, public, secret=None):
        self.public, self.secret = public, secret


def read_key(path):
    """The Key in a key file; secret is None when it holds the public half only."""
    with open(path, encoding="ascii") as file:
        words = [line.split() for line in file]
    found = dict(pair for pair in words if len(pair) == 2)
    return Key(found["public"], found.get("secret"))


def make_key(path=None):
    """A new Key, in a new file if a path is given."""
    key = Key(*(z85.decode(half).hex() for half in zmq.curve_keypair()))
    if path:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(f"jury-key 1\npublic {key.public}\nsecret {key.secret}\n")
    return key


def message(name, fields=None):
    """A message by its full name, "jury.internal.Hello", from a dict as json_format takes it."""
    proto_stubs.load()
    found = descriptor_pool.Default().FindMessageTypeByName(name)._concrete_class()
    return json_format.ParseDict(fields or {}, found)


def curve_text(key):
    """Hex as the Z85 that ZeroMQ wants."""
    return z85.encode(bytes.fromhex(key))


class Client:
    """endpoints: addresses, tried in turn; one of them may be (address, server's public key) where the
    nodes' keys differ. server_key, key: a Key (or anything with `public` and `secret` in hex), or hex;
    both are for tcp alone. Not for several threads at once."""

    def __init__(self, endpoints, server_key=None, key=None, timeout=5.0):
        self.pb = proto_stubs.load()
        self.endpoints = [one if isinstance(one, tuple) else (one, server_key)
                          for one in endpoints]
        self.key, self.timeout = key, timeout
        self.revision = 0        # newest seen: the next read shows at least that
        self.header = None       # envelope of the last answer
        self.context = zmq.Context()
        self.current, self.socket, self.monitor = 0, None, None

    def close(self):
        self._disconnect()
        self.context.term()

    def __enter__(self):
        return self

    def __exit__(self, *ignored):
        self.close()

    # --- one connection ---

    def _disconnect(self):
        if self.socket is not None:
            self.socket.disable_monitor()
            self.monitor.close(0)
            self.socket.close(0)
            self.socket = None

    def _connect(self, index):
        if self.socket is not None and index == self.current:
            return
        self._disconnect()
        address, server_key = self.endpoints[index]
        self.socket = self.context.socket(zmq.DEALER)
        self.socket.setsockopt(zmq.IPV6, 1)
        self.socket.setsockopt(zmq.IMMEDIATE, 1)
        if address.startswith("tcp://"):
            self.socket.curve_serverkey = curve_text(getattr(server_key, "public", server_key))
            self.socket.curve_publickey = curve_text(self.key.public)
            self.socket.curve_secretkey = curve_text(self.key.secret)
        self.monitor = self.socket.get_monitor_socket(zmq.EVENT_DISCONNECTED)
        self.socket.connect(address)
        self.current = index

    def _wait_answer(self, until):
        """Until something has come; False: not in time, or the connection went and the answer with
        it."""
        poller = zmq.Poller()
        poller.register(self.socket, zmq.POLLIN)
        poller.register(self.monitor, zmq.POLLIN)
        ready = dict(poller.poll(max(0, until - time.monotonic()) * 1000))
        return self.socket in ready

    def _exchange(self, index, envelope, payload, until):
        """The answer's two frames, or an CallError."""
        self._connect(index)
        address = self.endpoints[index][0]
        share = until if len(self.endpoints) == 1 else min(until, time.monotonic() + 1.5)
        if not self.socket.poll(max(0, share - time.monotonic()) * 1000, zmq.POLLOUT):
            self._disconnect()
            raise CallError("UNREACHABLE", f"no agent answers at {address}")
        while self.monitor.poll(0):
            self.monitor.recv_multipart()  # of a connection before this one
        self.socket.send_multipart([b"", envelope.SerializeToString(), payload])
        while self._wait_answer(until):
            frames = self.socket.recv_multipart()
            header = self.pb.envelope.Response()
            if len(frames) != 3 or frames[0]:
                continue
            header.ParseFromString(frames[1])
            if header.request_id == envelope.request_id:
                return header, frames[2]
        self._disconnect()
        if time.monotonic() < until:
            # It may be carried out: asking again with the same id tells.
            raise CallError("UNREACHABLE", f"the connection to {address} broke before the answer")
        raise CallError("DEADLINE_PASSED", f"no answer from {address} in time")

    # --- calls ---

    def _request(self, method, request):
        """The request as a message, and an empty response."""
        service, name = method.split("/")
        try:
            found = descriptor_pool.Default().FindServiceByName("jury.v1." + service)
            kinds = found.methods_by_name[name]
        except KeyError:
            raise CallError("UNKNOWN_METHOD", f"there is no method {method}") from None
        if request is None or isinstance(request, dict):
            request = json_format.ParseDict(request or {}, kinds.input_type._concrete_class())
        return request, kinds.output_type._concrete_class()

    def call(self, method, request=None, *, request_id=None, stale=False, timeout=None,
             retry=True):
        """method: "GroupService/GetGroup"; request: a message or a dict. The response message;
        CallError otherwise."""
        request, response = self._request(method, request)
        until = time.monotonic() + (timeout or self.timeout)
        envelope = self.pb.envelope.Request(api_version=1, method="jury.v1." + method,
                                            request_id=request_id or os.urandom(16), stale=stale,
                                            min_revision=0 if stale else self.revision)
        error, first = None, self.current
        for step in range(1000):
            left = until - time.monotonic()
            if left <= 0 or (step > 0 and not retry):
                break
            envelope.deadline_ms = max(1, min(60000, int(left * 1000)))
            try:
                header, payload = self._exchange((first + step) % len(self.endpoints), envelope,
                                                 request.SerializeToString(), until)
            except CallError as problem:
                error = problem
                continue
            self.header = header
            if header.status.code == self.pb.envelope.CODE_OK:
                self.revision = max(self.revision, header.revision)
                response.ParseFromString(payload)
                return response
            error = CallError(header.status.reason, header.status.message, header.status.code,
                             {pair.key: pair.value for pair in header.status.metadata},
                             header.revision)
            if error.reason not in RETRIED:
                break
            time.sleep(min(0.05, max(0, until - time.monotonic())))
        raise error or CallError("DEADLINE_PASSED", f"{method}: no time was left")

    # --- what tests do most ---

    def group(self, name, profile, backends, **fields):
        """A group document; backends: "10.0.0.1:80" or "[fd00::1]:80"."""
        group = self.pb.group.ServerGroup(name=name, protocol=self.pb.types.PROTOCOL_TCP, **fields)
        group.profile = self.pb.types.Profile.Value("PROFILE_" + profile.upper())
        for text in backends:
            address, _, port = text.rpartition(":")
            group.backends.add(address=address.strip("[]"), port=int(port))
        return group

    def apply(self, *objects, force=None, dry_run=False, **options):
        """Groups, listeners, settings, nodes, keys or deletions as one change set."""
        kinds = {"ServerGroup": "group", "Listener": "listener", "ClusterSettings": "settings",
                 "MemberNode": "node", "AccessKey": "key", "Deletion": "deletion"}
        request = self.pb.config.ApplyRequest(dry_run=dry_run)
        for item in objects:
            getattr(request.documents.add(), kinds[item.DESCRIPTOR.name]).CopyFrom(item)
        if force is not None:
            request.force.count = force
        return self.call("ConfigService/Apply", request, **options)

    def verdicts(self, group="", **options):
        """{"web 10.0.0.1:80": "HEALTHY"} as the node that answers sees it."""
        answer = self.call("VerdictService/ListVerdicts", {"group": group}, **options)
        word = self.pb.types.HealthState.Name
        return {f"{one.backend.group} {one.backend.address}:{one.backend.port}":
                word(one.verdict.state).removeprefix("HEALTH_STATE_") for one in answer.verdicts}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--endpoint", required=True)
    parser.add_argument("--server-key", help="public key of the node, 64 hex digits")
    parser.add_argument("--key", help="key file of the caller")
    parser.add_argument("--timeout", type=float, default=5.0)
    parser.add_argument("verb", choices=["call", "verdicts"])
    parser.add_argument("words", nargs="*")
    arguments = parser.parse_args()
    key = read_key(arguments.key) if arguments.key else None
    with Client([arguments.endpoint], arguments.server_key, key, arguments.timeout) as client:
        try:
            if arguments.verb == "verdicts":
                for backend, state in client.verdicts(*arguments.words).items():
                    print(backend, state)
            else:
                method, text = (arguments.words + ["{}"])[:2]
                print(json_format.MessageToJson(client.call(method, json.loads(text))))
        except CallError as error:
            print(f"error: {error}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
