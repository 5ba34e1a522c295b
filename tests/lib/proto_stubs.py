"""Python classes of the .proto files, made by protoc at run time into a folder of this process."""
import atexit
import importlib
import os
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MODULES = ("envelope", "types", "group", "listener", "cluster", "verdict", "event", "config",
           "options")


def load():
    """A namespace with one module a .proto file: load().group.ServerGroup()."""
    if "jury.v1.envelope_pb2" not in sys.modules:
        folder = tempfile.mkdtemp(prefix="jury-proto-")
        atexit.register(shutil.rmtree, folder, True)
        proto = os.path.join(ROOT, "proto")
        files = [os.path.join(proto, "jury", "v1", name + ".proto") for name in MODULES]
        subprocess.run(["protoc", "-I" + proto, "--python_out=" + folder, *files], check=True)
        sys.path.insert(0, folder)
    names = {name: importlib.import_module(f"jury.v1.{name}_pb2") for name in MODULES}
    return type("Stubs", (), names)
