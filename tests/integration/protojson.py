#!/usr/bin/python3
"""Our ProtoJSON against python3-protobuf's json_format, both ways, over random messages of every
type of the API. The seed is printed; SEED=n repeats a run."""
import argparse
import json
import os
import random
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import proto_stubs  # noqa: E402
from google.protobuf import json_format  # noqa: E402
from google.protobuf.descriptor import FieldDescriptor as F  # noqa: E402

ROUNDS = 40
TEXTS = ["", "web", "a b", "\"quoted\"", "back\\slash", "line\nbreak", "\u00e9\u6f22\U0001f40c",
         "</script>", "\t\x01", "true", "0", "null"]
INTS = {
    F.CPPTYPE_INT32: [0, 1, -1, 2**31 - 1, -2**31],
    F.CPPTYPE_INT64: [0, 1, -1, 2**63 - 1, -2**63, 2**53 + 1],
    F.CPPTYPE_UINT32: [0, 1, 80, 2**32 - 1],
    F.CPPTYPE_UINT64: [0, 1, 2**53 + 1, 2**64 - 1],
}


def random_time(rng, message):
    """A Duration or Timestamp in range."""
    nanos = rng.choice([0, 0, 1, 500000000, 123000000, 123456000, 999999999])
    if message.DESCRIPTOR.name == "Duration":
        sign = rng.choice([1, 1, -1])
        message.seconds = sign * rng.choice([0, 1, 5, 3600, 315576000000 - 1])
        message.nanos = sign * nanos
    else:
        message.seconds = rng.choice([0, 1, -1, 1700000000, 253402300799, -62135596800])
        message.nanos = nanos


def random_scalar(rng, field):
    if field.cpp_type == F.CPPTYPE_BOOL:
        return rng.random() < 0.5
    if field.cpp_type == F.CPPTYPE_ENUM:
        values = [value.number for value in field.enum_type.values]
        return rng.choice(values + [4711] if rng.random() < 0.1 else values)
    if field.type == F.TYPE_BYTES:
        return rng.randbytes(rng.choice([0, 1, 2, 3, 16, 100]))
    if field.type == F.TYPE_STRING:
        return rng.choice(TEXTS)
    return rng.choice(INTS[field.cpp_type])


def fill(rng, message):
    if message.DESCRIPTOR.full_name.startswith("google.protobuf."):
        random_time(rng, message)
        return message
    for field in message.DESCRIPTOR.fields:
        if rng.random() < 0.35:
            continue
        repeated = field.label == F.LABEL_REPEATED
        for _ in range(rng.choice([1, 2, 5]) if repeated else 1):
            value = getattr(message, field.name)
            if field.cpp_type == F.CPPTYPE_MESSAGE:
                part = value.add() if repeated else value
                part.SetInParent()
                fill(rng, part)
            elif repeated:
                value.append(random_scalar(rng, field))
            else:
                setattr(message, field.name, random_scalar(rng, field))
    return message


class Filter:
    def __init__(self, path):
        self.process = subprocess.Popen([path], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        encoding="utf-8")

    def ask(self, way, name, data):
        self.process.stdin.write(f"{way} {name} {data}\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().rstrip("\n")


def reachable(stubs):
    """Classes of all messages that a method leads to."""
    found = {}

    def visit(descriptor):
        if descriptor.full_name in found or descriptor.full_name.startswith("google."):
            return
        found[descriptor.full_name] = descriptor._concrete_class
        for field in descriptor.fields:
            if field.message_type:
                visit(field.message_type)

    for module in (stubs.group, stubs.listener, stubs.cluster, stubs.verdict, stubs.event,
                   stubs.config):
        for service in module.DESCRIPTOR.services_by_name.values():
            for method in service.methods:
                visit(method.input_type)
                visit(method.output_type)
    return found


def compare(our, name, message):
    """The first difference, or None."""
    reference = json.loads(json_format.MessageToJson(message, including_default_value_fields=True))
    text = our.ask("out", name, message.SerializeToString().hex())
    if text.startswith("error") or json.loads(text) != reference:
        return f"{name}: ours {text}\nreference {json.dumps(reference)}"
    for snake in (False, True):
        text = json_format.MessageToJson(message, preserving_proto_field_name=snake, indent=None,
                                         ensure_ascii=snake)
        hexed = our.ask("in", name, text)
        back = type(message)()
        if hexed.startswith("error"):
            return f"{name}: {hexed}\n{text}"
        back.ParseFromString(bytes.fromhex(hexed))
        if back != message:
            return f"{name}: read back\n{back}\nfrom {text}\nbut it was\n{message}"
    return None


# What json_format refuses, we refuse; and both take these.
REFUSED = [
    ("jury.v1.Backend", {"prot": 80}), ("jury.v1.Backend", {"port": "eighty"}),
    ("jury.v1.Backend", {"port": -1}), ("jury.v1.Backend", {"port": 4294967296}),
    ("jury.v1.Backend", {"port": 1.5}), ("jury.v1.Backend", {"address": 5}),
    ("jury.v1.Backend", {"adminState": "UP"}),
    ("jury.v1.ServerGroup", {"backends": {}}), ("jury.v1.ServerGroup", {"idleTimeout": "5"}),
    ("jury.v1.ServerGroup", {"idleTimeout": 5}), ("jury.v1.ServerGroup", {"check": 1}),
    ("jury.v1.AccessKey", {"expires": "2026-02-30T00:00:00Z"}),
    ("jury.v1.AccessKey", {"expires": "yesterday"}),
    ("jury.v1.Document", {"group": {}, "listener": {}}),
    ("jury.v1.HealthCheck", {"enabled": "true"}),
]
ACCEPTED = [
    ("jury.v1.Backend", {"port": "80"}), ("jury.v1.Backend", {"port": 80.0}),
    ("jury.v1.Backend", {"port": None, "weight": 0}),
    ("jury.v1.ServerGroup", {"idle_timeout": "0.5s", "all_bad": 2}),
    ("jury.v1.AccessKey", {"expires": "2026-02-28T23:59:59.5+01:30"}),
    ("jury.v1.UdpCheck", {"payload": "_-8"}),
]


def check_edges(our, classes):
    for name, value in REFUSED:
        text = our.ask("in", name, json.dumps(value))
        if not text.startswith("error"):
            return f"{name} {value}: accepted as {text}"
        print(f"  {json.dumps(value)}: {text}")
        try:
            json_format.ParseDict(value, classes[name]())
            return f"{name} {value}: the reference takes it"
        except json_format.ParseError:
            pass
    for name, value in ACCEPTED:
        expected = json_format.ParseDict(value, classes[name]())
        text = our.ask("in", name, json.dumps(value))
        if text.startswith("error") or classes[name].FromString(bytes.fromhex(text)) != expected:
            return f"{name} {value}: {text}"
    return None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    arguments = parser.parse_args()
    seed = int(os.environ.get("SEED", random.SystemRandom().randrange(2**32)))
    rng = random.Random(seed)
    our = Filter(os.path.join(arguments.bin, "json_filter"))
    classes = reachable(proto_stubs.load())
    print(f"seed {seed}, {len(classes)} message types, {ROUNDS} messages each, both ways")
    for name in sorted(classes):
        for _ in range(ROUNDS):
            difference = compare(our, name, fill(rng, classes[name]()))
            if difference:
                print(f"FAILED {difference}")
                return 1
    difference = check_edges(our, classes)
    if difference:
        print(f"FAILED {difference}")
        return 1
    print(f"{len(classes) * ROUNDS} messages alike")
    return 0


sys.exit(main())
