"""Containers without Docker: what deploy/docker-compose.yml and deploy/Dockerfile say, carried out with
namespaces, chroot and setpriv, so that a test runs the same entrypoints under the same restrictions.

Everything is read from these two files: user and group ids, what an image holds and where, entrypoints,
volumes and their mount options, environment, health checks. A container has a PID and a mount
namespace of its own, a read-only root, the capabilities that it is given, and the network namespace that its service is
given. Mounts are made in a mount namespace of this process: they end with it. Needs root.
"""
import ctypes
import os
import re
import resource
import shlex
import shutil
import signal
import subprocess

import yaml

from cluster import ROOT, Process, check, wait_until
from netns import LIBC

CLONE_NEWNS = 0x00020000
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
NSSWITCH = "passwd: files\ngroup: files\nhosts: files dns\n"


def sh(*command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          check=False)
    check(done.returncode == 0, "%s: %s" % (" ".join(command), done.stdout))


class Image:
    """One stage of the Dockerfile with those that it is built from."""

    def __init__(self, path, stage):
        self.gid, self.uids, self.directories, self.files = 0, {}, [], []
        self.user, self.entrypoint = "root", []
        with open(path, encoding="utf-8") as file:
            text = re.sub(r"#.*\n", "", file.read()).replace("\\\n", " ")
        stages = {}
        for part in re.split(r"^FROM ", text, flags=re.MULTILINE)[1:]:
            head, _, body = part.partition("\n")
            base, name = re.fullmatch(r"(\S+) AS (\S+)", head.strip()).groups()
            stages[name] = stages.get(base, []) + body.splitlines()
        for line in stages[stage]:
            self.take(line.strip())

    def take(self, line):
        word, _, rest = line.partition(" ")
        if word == "USER":
            self.user = rest
        elif word == "ENTRYPOINT":
            self.entrypoint = yaml.safe_load(rest)
        elif word == "COPY":
            names = rest.split()
            built = names[0].startswith("--from=")
            for source in names[built:-1]:
                self.files.append((built, source, names[-1]))
        elif word == "RUN":
            for command in rest.split("&&"):
                self.run(command.split())

    def run(self, words):
        if words[0] == "groupadd":
            self.gid = int(words[words.index("--gid") + 1])
        elif words[0] == "useradd":
            self.uids[words[-1]] = int(words[words.index("--uid") + 1])
        elif words[0] == "install":
            owner, mode = words[words.index("-o") + 1], words[words.index("-m") + 1]
            paths = [word for word in words if word.startswith("/")]
            self.directories += [(path, self.uids[owner], int(mode, 8)) for path in paths]


class Containers:
    """The services of the compose file; `network` gives the prefix of a command for a service name."""

    def __init__(self, directory, bin_dir, network, hosts):
        self.dir, self.network = directory, network
        with open(os.path.join(ROOT, "deploy/docker-compose.yml"), encoding="utf-8") as file:
            self.file = yaml.safe_load(file)
        dockerfile = os.path.join(ROOT, "deploy/Dockerfile")
        self.images = {name: Image(dockerfile, name) for name in ("agent", "shim")}
        check(LIBC.unshare(CLONE_NEWNS) == 0, "unshare: errno %d" % ctypes.get_errno())
        sh("mount", "--make-rprivate", "/")
        self.roots = {name: self.make_root(name, image, bin_dir, hosts)
                      for name, image in self.images.items()}
        self.volumes = {name: self.make_volume(name, volume or {})
                        for name, volume in self.file["volumes"].items()}
        self.running = []

    def make_root(self, name, image, bin_dir, hosts):
        """This machine's /usr with the image's files laid over it, and nothing else of it."""
        root, layer = (os.path.join(self.dir, kind, name) for kind in ("root", "layer"))
        os.makedirs(root)
        sh("mount", "-t", "tmpfs", "-o", "size=4m,mode=0755", "tmpfs", root)
        for built, source, target in image.files:
            if not target.startswith("/usr/"):
                continue  # of the build alone
            source = os.path.join(bin_dir if built else ROOT,
                                  os.path.basename(source) if built else source)
            target = layer + target.removeprefix("/usr") + (
                os.path.basename(source) if target.endswith("/") else "")
            os.makedirs(os.path.dirname(target), exist_ok=True)
            shutil.copy(source, target)
            os.chmod(target, os.stat(source).st_mode & 0o755)
        for folder in ("usr", "etc", "proc", "dev", "tmp"):
            os.mkdir(os.path.join(root, folder))
        for link in ("bin", "sbin", "lib", "lib64"):
            os.symlink("usr/" + link, os.path.join(root, link))
        for path, uid, mode in image.directories:
            os.makedirs(root + path)
            os.chown(root + path, uid, image.gid)
            os.chmod(root + path, mode)
        users = "".join("%s:x:%d:%d::/:/usr/sbin/nologin\n" % (user, uid, image.gid)
                        for user, uid in image.uids.items())
        for path, text in (("passwd", users), ("group", "jury:x:%d:\n" % image.gid),
                           ("nsswitch.conf", NSSWITCH), ("hosts", "127.0.0.1 localhost\n" + hosts)):
            with open(os.path.join(root, "etc", path), "w", encoding="ascii") as file:
                file.write(text)
        sh("mount", "-t", "overlay", "-o", "lowerdir=%s:/usr" % layer, "overlay", root + "/usr")
        sh("mount", "--rbind", "/dev", root + "/dev")
        return root

    def make_volume(self, name, volume):
        """As Docker does: an empty one gets owner and mode of the image's folder it is laid over."""
        path = os.path.join(self.dir, "volumes", name)
        os.makedirs(path)
        options = volume.get("driver_opts")
        if options:
            sh("mount", "-t", options["type"], "-o", options["o"], options["device"], path)
            return path
        for service in self.file["services"].values():
            for mount in service.get("volumes", []):
                source, target = mount.split(":")[:2]
                for folder, uid, mode in self.images["agent"].directories:
                    if source == name and folder == target:
                        os.chown(path, uid, self.images["agent"].gid)
                        os.chmod(path, mode)
        return path

    def container(self, name):
        return Container(self, name)

    def close(self):
        for container in self.running:
            container.kill()
        with open("/proc/self/mounts", encoding="utf-8") as file:
            points = [line.split()[1] for line in file]
        for point in reversed(points):
            if point.startswith(self.dir + "/"):
                sh("umount", point)


class Container(Process):
    """A service, named as in the compose file."""

    def __init__(self, containers, name):
        self.containers, self.service = containers, containers.file["services"][name]
        kind = self.service["image"].removeprefix("jury-")
        self.image, self.root = containers.images[kind], containers.roots[kind]
        super().__init__(name, containers.dir, self.command_line)
        mode = self.service.get("network_mode", "service:" + name)
        self.prefix = (["unshare", "--net"] if mode == "none" else
                       containers.network(mode.removeprefix("service:")))
        containers.running.append(self)

    def as_user(self):
        """Puts a command into the root, as the service's or the image's user. Docker gives what is added
        to user 0 alone; the other users have no capability."""
        service = self.service
        check(service["read_only"] and service["cap_drop"] == ["ALL"]
              and service["security_opt"] == ["no-new-privileges:true"],
              "%s: is to have a read-only root and no privilege" % self.name)
        uid, gid = self.image.uids[self.image.user], self.image.gid
        if "user" in service:
            uid, gid = (int(number) for number in service["user"].split(":"))
        bounds = ",".join(["-all"] + ["+" + name.lower() for name in service.get("cap_add", [])])
        environment = ["%s=%s" % pair for pair in service.get("environment", {}).items()]
        # Not every root may raise a limit.
        nofile = min(service["ulimits"]["nofile"], resource.getrlimit(resource.RLIMIT_NOFILE)[1])
        return (["prlimit", "--nofile=%d" % nofile, "chroot", self.root, "setpriv",
                 "--reuid=%d" % uid, "--regid=%d" % gid, "--clear-groups",
                 "--bounding-set=" + bounds, "--inh-caps=-all", "--no-new-privs",
                 "env", "-i", "PATH=" + PATH] + environment)

    def command_line(self):
        lines = ["set -e", "mount -t proc proc %s/proc" % self.root]
        for mount in self.service.get("tmpfs", []):
            target, options = mount.split(":")
            lines.append("mount -t tmpfs -o %s tmpfs %s%s" % (options, self.root, target))
        for mount in self.service.get("volumes", []):
            source, target, *option = mount.split(":")
            lines.append("mkdir -p %s%s" % (self.root, target))
            lines.append("mount --bind %s %s%s" % (self.containers.volumes[source], self.root, target))
            if option == ["ro"]:
                lines.append("mount -o remount,bind,ro %s%s" % (self.root, target))
        lines.append("mount -o remount,bind,ro %s" % self.root)
        entrypoint = self.service.get("entrypoint", self.image.entrypoint)
        lines.append("exec " + shlex.join(self.as_user() + entrypoint))
        return ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", "\n".join(lines)]

    def inner(self):
        """The process that is number 1 in there, as seen from here; None before it is there."""
        try:
            with open("/proc/%d/task/%d/children" % ((self.process.pid,) * 2), encoding="ascii") as file:
                children = file.read().split()
        except FileNotFoundError:
            return None
        return int(children[0]) if children else None

    def send(self, number):
        if self.is_running():
            pid = wait_until("%s has a process" % self.name, 10, self.inner_or_ended)
            if pid is not True:
                os.kill(pid, number)

    def inner_or_ended(self):
        return self.inner() or not self.is_running()

    def execute(self, command, text=None):
        """`docker exec`: exit status and both outputs."""
        enter = ["nsenter", "--target", str(self.inner()), "--mount", "--net", "--pid"]
        done = subprocess.run(enter + self.as_user() + command, input=text, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60, check=False)
        return done.returncode, done.stdout

    def is_healthy(self):
        kind, *command = self.service["healthcheck"]["test"]
        check(kind == "CMD", "a health check without a shell")
        return self.is_running() and self.inner() and self.execute(command)[0] == 0

    def stop_gracefully(self):
        """`docker stop`: the exit status within the file's time."""
        seconds = self.service["stop_grace_period"]
        self.send(signal.SIGTERM)
        return self.wait(int(seconds.removesuffix("s")))

    def complete(self):
        """Starts it and waits for its end: what it said. For services that run once."""
        before = len(self.text())
        self.start()
        status = self.wait(60)
        said = self.text()[before:]
        check(status == 0, "%s ended with %s: %s" % (self.name, status, said))
        return said.strip()
