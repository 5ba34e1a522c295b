"""Servers from Debian for the uses that deploy/examples/checks names, started by hand in the foreground
with configurations of their own, and stubs that stand in for them or answer wrongly.

Each takes a folder of its own, which every user may enter, and an address and port that are its alone.
"""
import contextlib
import os
import pwd
import socket
import subprocess
import threading

from cluster import Process
from grpc_servers import NOT_SERVING, SERVING, Server as GrpcHealth
from nginx import HEALTH_PAGE, certificate, configuration
from tls_servers import Authority

ROOT_FOLDERS = {"sshd": "/run/sshd"}  # compiled in; the package's service makes them

HAPROXY = """
defaults
    mode http
    timeout client 10s
    timeout connect 10s
    timeout server 10s
frontend gateway
    bind {address}:{port}
    use_backend api if {{ hdr(host),host_only -i api.example.com }}
backend api
    http-request return status 200 content-type text/plain string ok if {{ path /health }}
    http-request deny deny_status 404
"""
VSFTPD = """
listen=YES
listen_address={address}
listen_port={port}
background=NO
anonymous_enable=YES
no_anon_password=YES
secure_chroot_dir={folder}/empty
anon_root={folder}/empty
seccomp_sandbox=NO
"""
SSHD = """
ListenAddress {address}:{port}
HostKey {folder}/host_key
PidFile {folder}/pid
UsePAM no
"""
UNBOUND = """
server:
    interface: {address}@{port}
    access-control: 127.0.0.0/8 allow
    username: ""
    chroot: ""
    directory: "{folder}"
    pidfile: "{folder}/pid"
    do-daemonize: no
    use-syslog: no
    logfile: ""
    num-threads: 1
    local-zone: "." refuse
remote-control:
    control-enable: no
"""
EXIM = """
primary_hostname = mail.test
spool_directory = {folder}/spool
log_file_path = {folder}/%slog
pid_file_path = {folder}/pid
local_interfaces = <; {address}
daemon_smtp_ports = {port}
tls_advertise_hosts =
host_lookup =
never_users =
acl_smtp_rcpt = deny
begin acl
deny:
  deny
"""
DOVECOT = """
protocols = imap
base_dir = {folder}/run
log_path = /dev/stderr
listen = {address}
ssl = no
default_vsz_limit = 0
service imap-login {{
  inet_listener imap {{
    port = {port}
  }}
  inet_listener imaps {{
    port = 0
  }}
}}
passdb {{
  driver = static
  args = nopassword=y
}}
userdb {{
  driver = static
  args = uid=nobody gid=nogroup home={folder}
}}
"""
KAMAILIO = """
listen=udp:{address}:{port}
children=1
tcp_children=1
disable_tcp=yes
log_stderror=yes
auto_aliases=no
alias="jury.invalid"
mpath="{modules}"
loadmodule "sl.so"
loadmodule "pv.so"
loadmodule "maxfwd.so"
request_route {{
    if (!mf_process_maxfwd_header("10")) {{
        sl_send_reply("483", "Too Many Hops");
        exit;
    }}
    if (method == "OPTIONS" && uri == myself) {{
        sl_send_reply("200", "Keepalive");
        exit;
    }}
    sl_send_reply("404", "Not Here");
}}
"""
ICECAST = """
<icecast>
  <limits><clients>100</clients><sources>2</sources></limits>
  <authentication>
    <source-password>{secret}</source-password>
    <admin-user>admin</admin-user><admin-password>{secret}</admin-password>
  </authentication>
  <hostname>radio.test</hostname>
  <listen-socket><port>{port}</port><bind-address>{address}</bind-address></listen-socket>
  <paths>
    <basedir>/usr/share/icecast2</basedir>
    <logdir>{folder}</logdir>
    <webroot>/usr/share/icecast2/web</webroot>
    <adminroot>/usr/share/icecast2/admin</adminroot>
  </paths>
  <logging><accesslog>access.log</accesslog><errorlog>error.log</errorlog></logging>
  <security><chroot>0</chroot>
    <changeowner><user>nobody</user><group>nogroup</group></changeowner></security>
</icecast>
"""
RTSP = """
import sys
import gi
gi.require_version("Gst", "1.0")
gi.require_version("GstRtspServer", "1.0")
from gi.repository import GLib, Gst, GstRtspServer
Gst.init(None)
server = GstRtspServer.RTSPServer()
server.set_address(sys.argv[1])
server.set_service(sys.argv[2])
assert server.attach(None) > 0
GLib.MainLoop().run()
"""


class Real(Process):
    """A server in a process of its own. make: fills the folder and says its command."""

    def __init__(self, make, what, folder, address, port):
        self.make, self.what, self.folder = make, what, folder
        self.address, self.port = address, port
        os.makedirs(folder, exist_ok=True)
        os.chmod(folder, 0o755)
        words = make(self)
        super().__init__(what, folder, lambda: words)
        self.prefix = ["setpriv", "--pdeathsig", "KILL"]  # whatever becomes of the test

    def write(self, name, text, **more):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="ascii") as file:
            file.write(text.format(folder=self.folder, address=self.address, port=self.port, **more))
        return path

    def path(self, name, as_folder=False):
        path = os.path.join(self.folder, name)
        if as_folder:
            os.makedirs(path, exist_ok=True)
        return path

    def give_to(self, user, path):
        entry = pwd.getpwnam(user)
        os.chown(path, entry.pw_uid, entry.pw_gid)


def nginx(server, secured="", served=HEALTH_PAGE):
    text = configuration(server.folder, f"{server.address}:{server.port}{secured}", served)
    return ["nginx", "-e", server.path("error.log"), "-c", server.write("conf", "{whole}", whole=text)]


def nginx_tls(server):
    Authority(server.folder).make("good", host="www.example.com", days=100)
    return nginx(server, " ssl", certificate(server.folder, "good") + HEALTH_PAGE)


def haproxy(server):
    return ["haproxy", "-db", "-f", server.write("conf", HAPROXY)]


def vsftpd(server):
    server.path("empty", as_folder=True)
    return ["vsftpd", server.write("conf", VSFTPD)]


def sshd(server):
    os.makedirs(ROOT_FOLDERS["sshd"], mode=0o755, exist_ok=True)
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", server.path("host_key")],
                   stdin=subprocess.DEVNULL, check=True)
    return ["/usr/sbin/sshd", "-D", "-e", "-f", server.write("conf", SSHD)]


def dnsmasq(server):
    return ["dnsmasq", "--keep-in-foreground", "--conf-file=/dev/null", "--no-resolv", "--no-hosts",
            "--user=root", "--bind-interfaces", "--listen-address=" + server.address,
            "--port=%d" % server.port, "--pid-file=" + server.path("pid")]


def unbound(server):
    return ["unbound", "-d", "-c", server.write("conf", UNBOUND)]


def redis(server):
    return ["redis-server", "--bind", server.address, "--port", str(server.port), "--save", "",
            "--daemonize", "no", "--dir", server.folder]


def cube2(server):
    """Players' port is one below that of the query."""
    server.write("server-init.cfg", 'updatemaster 0\nserverip "{address}"\nserverport %d\n'
                 % (server.port - 1))
    return ["/usr/lib/cube2/cube2_server", "-q" + server.folder, "-i" + server.address,
            "-j%d" % (server.port - 1)]


def exim(server):
    server.path("spool", as_folder=True)
    server.give_to("Debian-exim", server.path("spool"))
    server.give_to("Debian-exim", server.folder)
    return ["exim4", "-bdf", "-C", server.write("conf", EXIM)]


def dovecot(server):
    server.path("run", as_folder=True)
    return ["dovecot", "-F", "-c", server.write("conf", DOVECOT)]


def kamailio(server):
    modules = next(path for path in ("/usr/lib/x86_64-linux-gnu/kamailio/modules",
                                     "/usr/lib/aarch64-linux-gnu/kamailio/modules")
                   if os.path.isdir(path))
    return ["kamailio", "-DD", "-E", "-m", "16", "-M", "4", "-Y", server.folder, "-P",
            server.path("pid"), "-f", server.write("conf", KAMAILIO, modules=modules)]


def coturn(server):
    return ["turnserver", "-n", "--listening-ip", server.address, "--listening-port",
            str(server.port), "--stun-only", "--no-tls", "--no-dtls", "--no-cli", "--log-file",
            "stdout", "--pidfile", server.path("pid"), "--db", server.path("db")]


def rtsp(server):
    return ["/usr/bin/python3", server.write("rtsp.py", RTSP), server.address, str(server.port)]


def icecast(server):
    server.give_to("nobody", server.folder)
    return ["icecast2", "-c", server.write("conf", ICECAST, secret=os.urandom(8).hex())]


def ngtcp2(server):
    Authority(server.folder).make("good", days=100)
    return ["gtlsserver", "--quiet", server.address, str(server.port), server.path("good.key"),
            server.path("good.pem")]


def postgres(server):
    folder = max((os.path.join("/usr/lib/postgresql", name, "bin")
                  for name in os.listdir("/usr/lib/postgresql")), key=len)
    server.give_to("postgres", server.folder)
    as_user = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]
    subprocess.run(as_user + [os.path.join(folder, "initdb"), "-N", "-A", "reject", "-D",
                              server.path("data")], cwd=server.folder, stdin=subprocess.DEVNULL,
                   stdout=subprocess.DEVNULL, check=True)
    return as_user + [os.path.join(folder, "postgres"), "-D", server.path("data"), "-c",
                      "listen_addresses=" + server.address, "-p", str(server.port), "-c",
                      "unix_socket_directories=" + server.folder]


class Grpc:
    """python3-grpcio's server, in this process."""

    def __init__(self, address, port, status=SERVING):
        self.address, self.port, self.status, self.server = address, port, status, None

    def start(self):
        self.server = GrpcHealth(self.address, {"shop.Orders": self.status}, port=self.port)
        return self

    def stop(self):
        if self.server is not None:
            self.server.stop()
        self.server = None


class Stub:
    """Says the same whatever it hears. words: a function of the datagram or the first bytes; b"" when
    somebody has connected and said nothing. None: no answer."""

    def __init__(self, is_udp, words, address, port):
        self.is_udp, self.words = is_udp, words
        self.socket = socket.socket(socket.AF_INET,
                                    socket.SOCK_DGRAM if is_udp else socket.SOCK_STREAM)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind((address, port))
        if not is_udp:
            self.socket.listen(64)
        self.stopping = False
        self.thread = threading.Thread(target=self.serve_udp if is_udp else self.accept, daemon=True)
        self.thread.start()

    def serve_udp(self):
        while True:
            data, sender = self.socket.recvfrom(2048)
            if self.stopping:
                return
            answer = self.words(data)
            if answer is not None:
                self.socket.sendto(answer, sender)

    def accept(self):
        while True:
            with contextlib.suppress(OSError):
                connection, _ = self.socket.accept()
                if self.stopping:
                    connection.close()
                    return
                threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection):
        with contextlib.suppress(OSError), connection:
            data = b""
            while True:
                answer = self.words(data)
                if answer is not None:
                    connection.sendall(answer)
                data = connection.recv(2048)
                if not data:
                    return

    def stop(self):
        self.stopping = True
        at = self.socket.getsockname()
        with socket.socket(socket.AF_INET, self.socket.type) as waker:
            waker.connect(at)
            waker.send(b"\0") if self.is_udp else None
            self.thread.join()
        self.socket.close()


def source_engine(data):
    """A2S_INFO as servers answer since 2020: first a number, then, asked with it, what they are."""
    question = b"\xff\xff\xff\xffTSource Engine Query\0"
    if data == question:
        return b"\xff\xff\xff\xff\x41\x0a\x08\x5e\xea"
    return b"\xff\xff\xff\xffI\x11test\0" if data.startswith(question) else None
