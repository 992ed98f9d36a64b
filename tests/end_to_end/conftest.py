"""A service for all tests of this folder, and a recorder that stands between agents and it."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from tests.end_to_end.harness import Export, Service, new_database, running


@pytest.fixture(scope="session")
def service(postgres):
    """One service for all tests of this folder, on a database of its own."""
    url = new_database(postgres, "end_to_end")
    with running(TOOLFAULT_DATABASE_URL=url) as addresses:
        yield Service(url, **addresses)


@pytest.fixture
def recorder():
    """Takes OTLP over HTTP and keeps it: address and exports."""
    exports = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            exports.append(Export(self.path, self.headers["Content-Type"], body))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}", exports
        server.shutdown()
