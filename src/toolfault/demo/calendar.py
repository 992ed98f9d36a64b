"""The calendar service the agent's tools call: a real HTTP server with an outage in its script."""

from __future__ import annotations

import json
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

_OUTAGE = 2  # bookings answered 503 before the service recovers
_STALL_SECONDS = 3.0  # longer than any tool waits


class _Calendar(ThreadingHTTPServer):
    daemon_threads = True
    bookings = 0


class _Handler(BaseHTTPRequestHandler):
    server: _Calendar

    def do_GET(self) -> None:
        self._answer(200, {"meetingId": self.path.rpartition("/")[2], "state": "started"})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path == "/invitations":
            time.sleep(_STALL_SECONDS)
            self._answer(202, {})
            return
        self.server.bookings += 1
        if self.server.bookings <= _OUTAGE:
            self._answer(503, {})
        else:
            self._answer(
                201, {"meetingId": "m-7781", "start": f"{body['date']}T{body['slot']}:00Z"}
            )

    def _answer(self, status: int, body: dict[str, Any]) -> None:
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Say nothing: the agent's story is on the screen."""


@contextmanager
def calendar() -> Iterator[str]:
    """The service on a free port; gives its address."""
    with _Calendar(("127.0.0.1", 0), _Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
