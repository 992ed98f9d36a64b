"""What every answer carries, and which requests never reach a route."""

from __future__ import annotations

import ipaddress
from functools import lru_cache
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from starlette.datastructures import Headers

from toolfault.web.problems import ProblemError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

#: No inline script or style, nothing from elsewhere, never inside a frame.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    b"content-security-policy": POLICY.encode(),
    b"x-content-type-options": b"nosniff",
    b"x-frame-options": b"DENY",
    # Not "no-referrer": with it browsers hide the origin of our own forms from us.
    b"referrer-policy": b"same-origin",
    b"cross-origin-opener-policy": b"same-origin",
    b"cross-origin-resource-policy": b"same-origin",
    b"permissions-policy": b"camera=(), geolocation=(), microphone=()",
}
_NOT_STORED = (b"cache-control", b"no-store")
_SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
_MAX_BODY = 1024 * 1024


class Guard:
    """Security headers, no foreign origins, no foreign host names where everybody may do everything.

    A page elsewhere may send a browser's requests here, and a name under its control may resolve to
    this machine; neither may use the reader's rights.
    """

    def __init__(self, app: ASGIApp, *, is_open: bool, base_url: str | None) -> None:
        self._app = app
        own = urlsplit(base_url).hostname if base_url else None
        self._own = {"localhost", own or "localhost"}
        self._is_open = is_open

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        is_head = scope["method"] == "HEAD"

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.body" and is_head:
                message = {**message, "body": b""}
            if message["type"] == "http.response.start":
                message = {**message, "headers": _guarded(message["headers"])}
            await send(message)

        try:
            self._check(scope["method"], Headers(scope=scope))
            body = await _whole_body(receive) if scope["method"] not in _SAFE_METHODS else None
        except ProblemError as refused:
            await refused.response()(scope, receive, send_guarded)
            return
        if is_head:  # the answer to GET without its body; FastAPI's routes know only GET
            scope = {**scope, "method": "GET"}
        await self._app(scope, receive if body is None else _replay(body, receive), send_guarded)

    def _check(self, method: str, headers: Headers) -> None:
        host = _hostname(f"//{headers.get('host', '')}")
        if self._is_open and host not in self._own and not _is_loopback(host):
            raise ProblemError(
                421, "Use the address this service was started with, or set TOOLFAULT_BASE_URL."
            )
        if method not in _SAFE_METHODS and not _is_same_origin(headers):
            raise ProblemError(403, "A page of another site may not change anything here.")


def _guarded(headers: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """The headers of an answer, ours among them."""
    own = [one for one in headers if one[0] not in _HEADERS]
    if all(name != _NOT_STORED[0] for name, _ in own):
        own.append(_NOT_STORED)
    return [*own, *_HEADERS.items()]


async def _whole_body(receive: Receive) -> bytes:
    """A request's body, counted as it comes: it may have no length, or a wrong one."""
    body = bytearray()
    while True:
        message = await receive()
        body += message.get("body", b"")
        if len(body) > _MAX_BODY:
            raise ProblemError(413, "The body is larger than 1 MiB.")
        if not message.get("more_body"):
            return bytes(body)


def _replay(body: bytes, receive: Receive) -> Receive:
    """Gives the body that was read already, then whatever comes."""
    waiting = [body]

    async def again() -> Message:
        if waiting:
            return {"type": "http.request", "body": waiting.pop(), "more_body": False}
        return await receive()

    return again


def _is_same_origin(headers: Headers) -> bool:
    """Whether a browser says that the request comes from our own pages; programs say nothing."""
    if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        return False
    origin = headers.get("origin")
    return origin is None or origin.partition("://")[2] == headers.get("host")


def _hostname(address: str) -> str | None:
    try:
        return urlsplit(address).hostname
    except ValueError:  # half an IPv6 address
        return None


@lru_cache(maxsize=256)
def _is_loopback(host: str | None) -> bool:
    """Whether it is such an address; a name is nobody's promise."""
    try:
        return ipaddress.ip_address(host or "").is_loopback
    except ValueError:
        return False


def is_from_our_page(headers: Headers) -> bool:
    """Whether a browser proves that a form was sent by one of our pages."""
    proven = "origin" in headers or headers.get("sec-fetch-site") == "same-origin"
    return proven and _is_same_origin(headers)
