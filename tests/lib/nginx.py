"""A real web server for tests."""
import atexit
import os
import subprocess
import time

from prober import run

PORT = 8080

CONFIG = """
daemon off;
master_process off;
pid {folder}/pid;
error_log {folder}/error.log info;
events {{ worker_connections 4096; }}
http {{
    access_log {folder}/access.log;
    client_body_temp_path {folder}/1; proxy_temp_path {folder}/2; fastcgi_temp_path {folder}/3;
    uwsgi_temp_path {folder}/4; scgi_temp_path {folder}/5;
    {more}
    server {{ listen {listen}; {served} }}
}}
"""
LONG_LIVES = """log_format times "$msec $remote_addr $server_addr $status";
    access_log %s/times.log times;
    keepalive_requests 100000; keepalive_timeout 3600s;"""
HEALTH_PAGE = 'location = /health { return 200 "ok"; } location / { return 404; }'


def configuration(folder, listen, served, more=""):
    """The file of a server whose files are all in `folder`. served: of its block, more: of http's."""
    return CONFIG.format(folder=folder, listen=listen, served=served, more=more)


def certificate(folder, name):
    """The lines for NAME.pem and NAME.key there; `listen` has to end in "ssl"."""
    return f"ssl_certificate {folder}/{name}.pem; ssl_certificate_key {folder}/{name}.key; "


class Nginx:
    """One process on PORT of all addresses of a namespace; its files are in `folder`. It answers with
    the line `reply`."""

    def __init__(self, netns, folder, reply="ok"):
        self.netns, self.folder = netns, folder
        os.chmod(folder, 0o755)
        self.config = os.path.join(folder, "nginx.conf")
        with open(self.config, "w", encoding="ascii") as file:
            file.write(configuration(folder, f"{PORT} backlog=4096",
                                     'location / { return 200 "%s\\n"; }' % reply, LONG_LIVES % folder))
        self.process = None
        atexit.register(self.stop)  # whatever becomes of the test
        self.start()

    def start(self):
        self.process = subprocess.Popen(["ip", "netns", "exec", self.netns, "nginx", "-e",
                                         os.path.join(self.folder, "error.log"), "-c", self.config])
        deadline = time.monotonic() + 60
        while not run(f"ip netns exec {self.netns} ss -Hltn sport = :{PORT}"):
            if time.monotonic() > deadline:
                raise RuntimeError("nginx does not listen")
            time.sleep(0.01)

    def stop(self):
        """Once more is fine."""
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            self.process.wait()

    def log(self, name):
        with open(os.path.join(self.folder, name), encoding="utf-8") as file:
            return file.read()
