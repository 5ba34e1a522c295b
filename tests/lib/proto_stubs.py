"""Python classes of the .proto files, made by protoc at run time into a folder of this process."""
import atexit
import glob
import importlib
import os
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROTO = os.path.join(ROOT, "proto")


def load():
    """A namespace with one module a .proto file: load().group.ServerGroup()."""
    files = sorted(glob.glob(os.path.join(PROTO, "jury", "*", "*.proto")))
    if "jury.v1.envelope_pb2" not in sys.modules:
        folder = tempfile.mkdtemp(prefix="jury-proto-")
        atexit.register(shutil.rmtree, folder, True)
        subprocess.run(["protoc", "-I" + PROTO, "--python_out=" + folder, *files], check=True)
        sys.path.insert(0, folder)
    modules = {}
    for file in files:
        path = os.path.relpath(file, PROTO)[:-len(".proto")]
        modules[os.path.basename(path)] = importlib.import_module(path.replace("/", ".") + "_pb2")
    return type("Stubs", (), modules)
