"""Servers of the gRPC health service, for tests: one by Debian's python3-grpcio, and odd ones of our own
that are wrong in HTTP/2, in gRPC or in the message."""
import concurrent.futures
import os
import struct

os.environ.setdefault("GRPC_VERBOSITY", "NONE")
import grpc  # noqa: E402

PATH = b"/grpc.health.v1.Health/Check"
SERVING, NOT_SERVING = 1, 2
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, SETTINGS, PUSH, PING, GOAWAY, WINDOW, CONTINUATION = 0, 1, 3, 4, 5, 6, 7, 8, 9
END_STREAM, ACK, END_HEADERS = 1, 1, 4


def health_reply(status):
    """HealthCheckResponse {status}."""
    return bytes([8, status]) if status else b""


class Handler(grpc.GenericRpcHandler):
    """The health service without generated code. `services`: name to status; others are NOT_FOUND."""

    def __init__(self, services):
        self.services, self.metadata = services, []

    def service(self, details):
        if details.method.encode() != PATH:
            return None
        self.metadata.append(dict(details.invocation_metadata))
        return grpc.unary_unary_rpc_method_handler(self.check)

    def check(self, request, context):
        # HealthCheckRequest {service}: a name of less than 128 bytes.
        name = request[2:].decode() if request else ""
        if name not in self.services:
            context.abort(grpc.StatusCode.NOT_FOUND, "unknown service")
        return health_reply(self.services[name])


class Server:
    """A real one; with `authority` within TLS by its certificate `cert`."""

    def __init__(self, address, services, authority=None, cert="good", port=0):
        self.handler = Handler(services)
        self.server = grpc.server(concurrent.futures.ThreadPoolExecutor(4))
        if services is not None:
            self.server.add_generic_rpc_handlers((self.handler,))
        host = f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
        if authority is None:
            self.port = self.server.add_insecure_port(host)
        else:
            with open(authority.path(cert + ".pem"), "rb") as pem, \
                    open(authority.path(cert + ".key"), "rb") as key:
                credentials = grpc.ssl_server_credentials([(key.read(), pem.read())])
            self.port = self.server.add_secure_port(host, credentials)
        self.server.start()
        self.address = address
        self.to = host.rsplit(":", 1)[0] + f":{self.port}"

    def stop(self):
        self.server.stop(None)


# --- frames by hand ---

def frame(kind, flags, stream, body=b""):
    return struct.pack("!I", len(body))[1:] + bytes([kind, flags]) + struct.pack("!I", stream) + body


def field(name, value):
    """A field of HPACK as it is: no table, no Huffman."""
    return b"\0" + bytes([len(name)]) + name + bytes([len(value)]) + value


GREETING = frame(SETTINGS, 0, 0) + frame(SETTINGS, ACK, 0)


def head(status=b"200"):
    block = field(b":status", status) + field(b"content-type", b"application/grpc")
    return frame(HEADERS, END_HEADERS, 1, block)


def trailer(status=b"0"):
    return frame(HEADERS, END_HEADERS | END_STREAM, 1, field(b"grpc-status", status))


def message(body, flag=0):
    return frame(DATA, 0, 1, bytes([flag]) + struct.pack("!I", len(body)) + body)


GOOD = head() + message(health_reply(SERVING)) + trailer()


def read_call(sock):
    """The preface, settings and the request; all of them are short."""
    data = b""
    while PREFACE not in data or not data.endswith(b"\0\0\0\0\0") and len(data) < 4096:
        more = sock.recv(4096)
        if not more:
            return
        data += more


def says(*parts, each=0):
    """A habit: answers with these bytes, `each` > 0: so many at a time."""
    def habit(sock):
        read_call(sock)
        data = GREETING + b"".join(parts)
        for at in range(0, len(data), each or len(data)):
            sock.sendall(data[at:at + (each or len(data))])
        while sock.recv(4096):
            pass
    return habit


def floods(*parts, first=b""):
    """A habit: these bytes again and again, for as long as they are taken."""
    def habit(sock):
        read_call(sock)
        sock.sendall(GREETING + first)
        while True:
            sock.sendall(b"".join(parts) * 100)
    return habit


def old_http(sock):
    read_call(sock)
    sock.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
    while sock.recv(4096):
        pass


def hangs_up(sock):
    read_call(sock)
    sock.sendall(GREETING + head())
