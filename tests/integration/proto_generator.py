#!/usr/bin/python3
"""The build refuses .proto files that the server could not bear: a message type that contains
itself, directly or through others (S-PB-1), and a method without a role or kind."""
import argparse
import os
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
HEAD = 'syntax = "proto3";\npackage jury.v1;\nimport "jury/v1/options.proto";\n'
OPTIONS = "option (jury.v1.role) = {}; option (jury.v1.kind) = {};"
SERVICE = ("message Ask {{}} message Say {{}}\n"
           "service S {{ rpc Do(Ask) returns (Say) {{ {} }} }}\n")
GOOD = OPTIONS.format("ROLE_VIEWER", "METHOD_KIND_READ")

CASES = [
    ("a good file", SERVICE.format(GOOD), ""),
    ("itself", "message A { A a = 1; }\n", "message type jury.v1.A contains itself"),
    ("through a list", "message A { repeated B b = 1; } message B { C c = 1; }\n"
     "message C { repeated A a = 1; }\n", "contains itself"),
    ("through a nested type", "message A { message B { A a = 1; } B b = 1; }\n",
     "contains itself"),
    ("through a oneof", "message A { oneof x { A a = 1; } }\n", "contains itself"),
    ("a diamond is fine", "message A { B b = 1; C c = 2; } message B { C c = 1; }\n"
     "message C { uint32 n = 1; }\n", ""),
    ("no role", SERVICE.format("option (jury.v1.kind) = METHOD_KIND_READ;"),
     "S/Do has no role or no kind"),
    ("no kind", SERVICE.format("option (jury.v1.role) = ROLE_ADMIN;"),
     "S/Do has no role or no kind"),
    ("no options", SERVICE.format(""), "S/Do has no role or no kind"),
    ("unspecified", SERVICE.format(OPTIONS.format("ROLE_UNSPECIFIED", "METHOD_KIND_READ")),
     "S/Do has no role or no kind"),
]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    generator = os.path.join(parser.parse_args().bin, "gen_methods")
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for name, body, refusal in CASES:
            os.makedirs(os.path.join(folder, "t"), exist_ok=True)
            source = os.path.join(folder, "t", "case.proto")
            with open(source, "w", encoding="utf-8") as file:
                file.write(HEAD + body)
            out = os.path.join(folder, "out")
            subprocess.run(["protoc", "-I" + folder, "-I" + os.path.join(ROOT, "proto"),
                            "--include_imports", "--descriptor_set_out=" + out, source], check=True)
            done = subprocess.run([generator, out, os.path.join(folder, "table")],
                                  capture_output=True, text=True, check=False)
            fine = (done.returncode == 0) == (refusal == "") and refusal in done.stderr
            print(f"{name}: {'ok' if fine else 'FAILED'} {done.stderr.strip()}")
            failed += not fine
    return 1 if failed else 0


sys.exit(main())
