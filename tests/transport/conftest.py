"""Loopback servers that answer, refuse, hang and break, and the words for what became of a call."""

import datetime
import ipaddress
import socket
import ssl
import struct
import threading
from contextlib import ExitStack, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from toolfault import taxonomy
from toolfault.transport import TRANSPORT


class _Handler(BaseHTTPRequestHandler):
    """`/503`, `/503-after-7`, `/503-on-a-date`, `/hangs`, `/resets`, `/closes`, `/breaks-off`.

    What follows the first part of the path is what a client adds of its own.
    """

    protocol_version = "HTTP/1.1"

    def _answer(self):
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        what = self.path.split("/")[1]
        if what[:3].isdigit():
            self._status(*what.split("-", 1))
        else:
            getattr(self, f"_{what.replace('-', '_')}")()

    do_GET = do_POST = _answer  # noqa: N815 - the names http.server calls

    def _status(self, status, wait=""):
        # A date of its own: the wait is told by the clock of the server.
        self.send_response_only(int(status))
        self.send_header("Date", "Tue, 06 Oct 2026 12:00:00 GMT")
        if wait == "on-a-date":
            self.send_header("Retry-After", "Tue, 06 Oct 2026 12:01:30 GMT")
        elif wait.startswith("after-"):
            self.send_header("Retry-After", wait.removeprefix("after-"))
        for name, value in self.server.extra_headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(self.server.body)))
        self.end_headers()
        self.wfile.write(self.server.body)

    def _hangs(self):
        self.server.released.wait(20)
        self.close_connection = True

    def _resets(self):
        _reset(self.connection)
        self.close_connection = True

    def _closes(self):
        self.close_connection = True

    def _breaks_off(self):
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", "100")
        self.end_headers()
        self.wfile.write(b'{"output": ')
        self.close_connection = True

    def log_message(self, *_):
        pass


class _Server(ThreadingHTTPServer):
    body = b'{"error": {"message": "Exception: at com.supplier.Db jdbc:postgresql", "code": null}}'
    extra_headers = {"Content-Type": "application/json"}  # noqa: RUF012 - replaced, not changed

    def handle_error(self, *_):
        """Clients that go away are what the tests are about."""


def _reset(connection):
    """Close with RST in place of FIN."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


@pytest.fixture(scope="session")
def certificate(tmp_path_factory):
    """A certificate for 127.0.0.1 that nobody trusts, with its key, in one file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    address = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    now = datetime.datetime.now(datetime.UTC)
    signed = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(address, critical=False)
        .sign(key, hashes.SHA256())
    )
    path = tmp_path_factory.mktemp("tls") / "server.pem"
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    path.write_bytes(private + signed.public_bytes(serialization.Encoding.PEM))
    return path


class Web:
    """Addresses at which a call ends in a way of its own."""

    def __init__(self, server, tls_port, refused_port, silent_port):
        self.server = server
        self.port, self.tls_port = server.server_port, tls_port
        self.refused_port, self.silent_port = refused_port, silent_port

    def url(self, situation):
        """The address for "refused", "no-such-name", "silent", "untrusted" or a path."""
        special = {
            "refused": f"http://127.0.0.1:{self.refused_port}",
            "no-such-name": "http://booking.invalid",
            "silent": f"http://127.0.0.1:{self.silent_port}",
            "untrusted": f"https://127.0.0.1:{self.tls_port}/200",
        }
        return special.get(situation) or f"http://127.0.0.1:{self.port}/{situation}"


@pytest.fixture(scope="session")
def web(certificate):
    with ExitStack() as stack:
        plain, tls = stack.enter_context(_serving()), stack.enter_context(_serving(certificate))
        yield Web(plain, tls.server_port, _closed_port(), stack.enter_context(_silence()))


class _serving:  # noqa: N801 - read as a verb
    def __init__(self, certificate=None):
        self.server = _Server(("127.0.0.1", 0), _Handler)
        self.server.daemon_threads = True
        self.server.released = threading.Event()
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)

    def __enter__(self):
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True)
        self.thread.start()
        return self.server

    def __exit__(self, *_):
        self.server.released.set()
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


def _closed_port():
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        return unused.getsockname()[1]


class _silence:  # noqa: N801
    """A port whose queue of connections is full: the next attempt gets no answer at all."""

    def __enter__(self):
        self.listener = socket.socket()
        self.listener.bind(("127.0.0.1", 0))
        self.listener.listen(0)
        self.waiting = []
        for _ in range(4):
            client = socket.socket()
            client.setblocking(False)
            client.connect_ex(self.listener.getsockname())
            self.waiting.append(client)
        return self.listener.getsockname()[1]

    def __exit__(self, *_):
        for connection in (*self.waiting, self.listener):
            connection.close()


@pytest.fixture(scope="session")
def verdict():
    """What the map makes of an exception: outcome, code, transient, retry_after and effect.

    The effect is that of a tool that writes.
    """

    def judge(error):
        found = TRANSPORT.classify(error, tool="book")
        effect = found.effect or taxonomy.effect_of(
            found.outcome, found.code, writes=True, nothing_landed=found.transient
        )
        assert "jdbc" not in str(found)
        return (
            found.outcome.value,
            found.code.value,
            found.transient,
            found.retry_after,
            effect.value,
        )

    return judge


@pytest.fixture
def stub():
    """Starts a server for one connection: it reads a request, sends an answer, then hangs up.

    None for an answer means that it hangs until the test ends.
    """
    with ExitStack() as stack:
        yield lambda answer: _scripted(answer, stack)


def _scripted(answer, stack):
    listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
    over = threading.Event()

    def serve():
        with suppress(OSError), listener.accept()[0] as connection:
            connection.recv(4096)
            if answer is None:
                over.wait(20)
            else:
                connection.sendall(answer)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    stack.callback(thread.join)
    stack.callback(listener.shutdown, socket.SHUT_RDWR)  # ends an `accept` nobody answered
    stack.callback(over.set)
    return listener.getsockname()[1]
