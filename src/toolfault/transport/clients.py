"""HTTP clients and the standard library."""

from __future__ import annotations

import errno

from toolfault import carried
from toolfault.error_map import Rule, by_cause, by_status
from toolfault.errors import ToolError
from toolfault.transport.statuses import (
    CERTIFICATE,
    DISCONNECTED,
    FAILED,
    NEVER_SENT,
    POOL_EXHAUSTED,
    READ_TIMED_OUT,
    UNAUTHORIZED,
    not_connected,
    repeated,
    tls_failed,
)

_UNREACHABLE = frozenset({errno.ENETDOWN, errno.ENETUNREACH, errno.EHOSTDOWN, errno.EHOSTUNREACH})


def _os_error(tool: str, error: BaseException) -> ToolError | None:
    """Only what is the network's: a missing file is the tool's bug, not the other side."""
    if carried.text(error).startswith("Multiple exceptions: "):  # asyncio, when no address answers
        return NEVER_SENT(tool, error)
    # Also said of a connection that was there, so nobody knows what was sent before.
    return DISCONNECTED(tool, error) if carried.read(error, "errno") in _UNREACHABLE else None


_STANDARD_LIBRARY: dict[str, Rule] = {
    "builtins.ConnectionRefusedError": NEVER_SENT,
    "builtins.ConnectionError": DISCONNECTED,
    "builtins.OSError": _os_error,
    "builtins.TimeoutError": READ_TIMED_OUT,
    "socket.gaierror": NEVER_SENT,
    "socket.herror": NEVER_SENT,
    "ssl.SSLCertVerificationError": CERTIFICATE,
    "ssl.SSLError": DISCONNECTED,
    "urllib.error.HTTPError": by_status(FAILED),
    "urllib.error.URLError": by_cause(DISCONNECTED),
    "urllib.error.ContentTooShortError": DISCONNECTED,
    "http.client.IncompleteRead": DISCONNECTED,
    "http.client.BadStatusLine": DISCONNECTED,
    "asyncio.exceptions.IncompleteReadError": DISCONNECTED,
    "subprocess.TimeoutExpired": READ_TIMED_OUT,
    "smtplib.SMTPServerDisconnected": DISCONNECTED,
    "smtplib.SMTPAuthenticationError": UNAUTHORIZED,
}

# openai, anthropic and google-genai send with httpx2, its fork.
_HTTPX: dict[str, Rule] = {
    f"{package}.{name}": rule
    for package in ("httpx", "httpx2")
    for name, rule in {
        "ConnectError": not_connected,
        "ConnectTimeout": NEVER_SENT,
        "PoolTimeout": POOL_EXHAUSTED,
        "ProxyError": DISCONNECTED,  # also for what the proxy met on the way
        "TimeoutException": READ_TIMED_OUT,
        "NetworkError": DISCONNECTED,
        "RemoteProtocolError": DISCONNECTED,
    }.items()
}

_REQUESTS: dict[str, Rule] = {
    "requests.exceptions.ConnectTimeout": NEVER_SENT,
    "requests.exceptions.ReadTimeout": READ_TIMED_OUT,
    "requests.exceptions.SSLError": by_cause(tls_failed),
    "requests.exceptions.ConnectionError": by_cause(DISCONNECTED),
    "requests.exceptions.ChunkedEncodingError": DISCONNECTED,
    "urllib3.exceptions.MaxRetryError": by_cause(DISCONNECTED),
    "urllib3.exceptions.ConnectTimeoutError": NEVER_SENT,  # with NewConnectionError and DNS
    "urllib3.exceptions.EmptyPoolError": POOL_EXHAUSTED,
    "urllib3.exceptions.ReadTimeoutError": READ_TIMED_OUT,
    "urllib3.exceptions.SSLError": tls_failed,
    "urllib3.exceptions.ProxyError": by_cause(DISCONNECTED),
    "urllib3.exceptions.ProtocolError": DISCONNECTED,
    "urllib3.exceptions.ResponseError": repeated,
}

_AIOHTTP: dict[str, Rule] = {
    f"aiohttp.client_exceptions.{name}": rule
    for name, rule in {
        "ClientConnectorError": not_connected,
        "ConnectionTimeoutError": NEVER_SENT,
        "ServerTimeoutError": READ_TIMED_OUT,
        "ServerFingerprintMismatch": CERTIFICATE,
        "ClientConnectionError": DISCONNECTED,
        "ClientPayloadError": DISCONNECTED,
    }.items()
}

RULES = _STANDARD_LIBRARY | _HTTPX | _REQUESTS | _AIOHTTP
