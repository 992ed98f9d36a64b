"""HTTP clients and the standard library."""

from __future__ import annotations

from toolfault.error_map import Rule, by_cause, by_status
from toolfault.transport.statuses import (
    CERTIFICATE,
    DISCONNECTED,
    FAILED,
    NEVER_SENT,
    POOL_EXHAUSTED,
    READ_TIMED_OUT,
    not_connected,
    repeated,
    tls_failed,
)

_STANDARD_LIBRARY: dict[str, Rule] = {
    "builtins.ConnectionRefusedError": NEVER_SENT,
    # A family of its own in place of OSError: a missing file is the tool's bug, not the other side.
    "builtins.ConnectionError": DISCONNECTED,
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
