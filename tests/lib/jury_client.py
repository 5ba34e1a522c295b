#!/usr/bin/python3
"""A client of the API in nothing but Python, ZeroMQ and protobuf: for tests, load and curiosity.

As a module:
    client = Client([("tcp://127.0.0.1:7001", server_key_hex)], key=read_key("ops.key"))
    client.apply(client.group("web", "nlb", ["10.0.0.1:80"]))
    for verdict in client.verdicts("web"): print(verdict)
    answer = client.call("GroupService/GetGroup", name="web")
As a program:
    jury_client.py --endpoint ipc:///run/jury/agent.sock verdicts web
    jury_client.py --endpoint tcp://HOST:PORT --server-key HEX --key FILE call METHOD '{"name": "web"}'

Writes may be repeated with one request id: they are carried out once. Every error is an RpcError with
the reason that the agent gave (or UNREACHABLE, DEADLINE_PASSED of its own).
"""
import argparse
import os
import sys
import time

import zmq
from zmq.utils import z85
from google.protobuf import json_format

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import proto_stubs  # noqa: E402

RETRIED = {"NO_LEADER", "NOT_LEADER", "UNREACHABLE", "BUSY", "DEADLINE_PASSED"}


class RpcError(Exception):
    def __init__(self, reason, message, code=0, metadata=None, revision=0):
        super().__init__(f"{reason}: {message}")
        self.reason, self.message, self.code = reason, message, code
        self.metadata, self.revision = metadata or {}, revision


def read_key(path):
    """(public, secret) of a key file, 32 bytes each; secret is None in a public one."""
    found = {}
    with open(path, encoding="ascii") as file:
        for line in file:
            words = line.split()
            if len(words) == 2 and words[0] in ("public", "secret"):
                found[words[0]] = bytes.fromhex(words[1])
    return found["public"], found.get("secret")


def make_key():
    """A new (public, secret) pair."""
    return tuple(z85.decode(half) for half in zmq.curve_keypair())


def write_key(path, key):
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(f"jury-key 1\npublic {key[0].hex()}\nsecret {key[1].hex()}\n")


class Client:
    """endpoints: list of (address, server's public key in hex, or None for ipc). key: (public,
    secret). Not for several threads at once."""

    def __init__(self, endpoints, key=None, timeout=5.0):
        self.pb = proto_stubs.load()
        self.endpoints, self.key, self.timeout = list(endpoints), key, timeout
        self.revision = 0        # newest seen: the next read shows at least that
        self.header = None       # envelope of the last answer
        self.context = zmq.Context()
        self.current, self.socket = 0, None

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
            self.socket.curve_serverkey = z85.encode(bytes.fromhex(server_key))
            self.socket.curve_publickey = z85.encode(self.key[0])
            self.socket.curve_secretkey = z85.encode(self.key[1])
        self.socket.connect(address)
        self.current = index

    def _exchange(self, index, envelope, payload, until):
        """The answer's two frames, or an RpcError."""
        self._connect(index)
        address = self.endpoints[index][0]
        share = until if len(self.endpoints) == 1 else min(until, time.monotonic() + 1.5)
        if not self.socket.poll(max(0, share - time.monotonic()) * 1000, zmq.POLLOUT):
            self._disconnect()
            raise RpcError("UNREACHABLE", f"no agent answers at {address}")
        self.socket.send_multipart([b"", envelope.SerializeToString(), payload])
        while self.socket.poll(max(0, until - time.monotonic()) * 1000):
            frames = self.socket.recv_multipart()
            header = self.pb.envelope.Response()
            if len(frames) != 3 or frames[0]:
                continue
            header.ParseFromString(frames[1])
            if header.request_id == envelope.request_id:
                return header, frames[2]
        self._disconnect()
        raise RpcError("DEADLINE_PASSED", f"no answer from {address} in time")

    # --- calls ---

    def _request(self, method, request, fields):
        service, name = method.split("/")
        for module in (self.pb.group, self.pb.listener, self.pb.cluster, self.pb.verdict,
                       self.pb.event, self.pb.config):
            found = module.DESCRIPTOR.services_by_name.get(service)
            if found is not None:
                kinds = found.methods_by_name[name]
                request = request or kinds.input_type._concrete_class(**fields)
                return request, kinds.output_type._concrete_class()
        raise RpcError("UNKNOWN_METHOD", f"there is no method {method}")

    def call(self, method, request=None, *, request_id=None, stale=False, timeout=None,
             retry=True, **fields):
        """method: "GroupService/GetGroup". The response message; RpcError otherwise."""
        request, response = self._request(method, request, fields)
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
            except RpcError as problem:
                error = problem
                continue
            self.header = header
            if header.status.code == self.pb.envelope.CODE_OK:
                self.revision = max(self.revision, header.revision)
                response.ParseFromString(payload)
                return response
            error = RpcError(header.status.reason, header.status.message, header.status.code,
                             {pair.key: pair.value for pair in header.status.metadata},
                             header.revision)
            if error.reason not in RETRIED:
                break
            time.sleep(min(0.05, max(0, until - time.monotonic())))
        raise error or RpcError("DEADLINE_PASSED", f"{method}: no time was left")

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
        answer = self.call("VerdictService/ListVerdicts", group=group, **options)
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
    with Client([(arguments.endpoint, arguments.server_key)], key, arguments.timeout) as client:
        try:
            if arguments.verb == "verdicts":
                for backend, state in client.verdicts(*arguments.words).items():
                    print(backend, state)
            else:
                method, text = (arguments.words + ["{}"])[:2]
                request, _ = client._request(method, None, {})
                print(json_format.MessageToJson(client.call(method, json_format.Parse(text,
                                                                                      request))))
        except RpcError as error:
            print(f"error: {error}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
