"""What every answer carries, and which requests never reach a route."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders

from toolfault.web.problems import ProblemError

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

#: No inline script or style, nothing from elsewhere, never inside a frame.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
_SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_MAX_BODY = 1024 * 1024


class Guard:
    """Security headers, no foreign origins, no foreign host names where everybody may do everything.

    A page elsewhere may send a browser's requests here, and a name under its control may resolve to
    this machine; neither may use the reader's rights.
    """

    def __init__(self, app: ASGIApp, *, is_open: bool, base_url: str | None) -> None:
        self._app = app
        own = urlsplit(base_url).hostname if base_url else None
        self._hosts = _LOOPBACK | ({own} if own else set()) if is_open else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers[name] = value
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        refused = self._refusal(scope["method"], Headers(scope=scope))
        app = refused.response() if refused else self._app
        await app(scope, receive, send_guarded)

    def _refusal(self, method: str, headers: Headers) -> ProblemError | None:
        host = urlsplit(f"//{headers.get('host', '')}")
        if self._hosts is not None and host.hostname not in self._hosts:
            return ProblemError(
                421, "Use the address this service was started with, or set TOOLFAULT_BASE_URL."
            )
        if method not in _SAFE_METHODS and not _is_same_origin(headers):
            return ProblemError(403, "A page of another site may not change anything here.")
        if int(headers.get("content-length") or 0) > _MAX_BODY:
            return ProblemError(413, "The body is larger than 1 MiB.")
        return None


def _is_same_origin(headers: Headers) -> bool:
    """Whether a browser says that the request comes from our own pages; programs say nothing."""
    if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        return False
    origin = headers.get("origin")
    return origin is None or urlsplit(origin).netloc == headers.get("host")


def is_from_our_page(headers: Headers) -> bool:
    """Whether a browser proves that a form was sent by one of our pages."""
    proven = "origin" in headers or headers.get("sec-fetch-site") == "same-origin"
    return proven and _is_same_origin(headers)
