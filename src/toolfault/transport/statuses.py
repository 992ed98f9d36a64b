"""What an HTTP status of the other side means, and the rules the tables share."""

from __future__ import annotations

import re

from toolfault import carried
from toolfault.error_map import Rule, permanent, timed_out, transient
from toolfault.errors import ToolError
from toolfault.taxonomy import Code, Effect

#: The request never left: refused, name not found, no connection in time, none free in the pool.
NEVER_SENT = transient("upstream_unavailable")
POOL_EXHAUSTED = transient("connection_pool_exhausted")
#: The connection broke while the request was on its way: nobody knows what it did.
DISCONNECTED = permanent("upstream_disconnected", code=Code.UNAVAILABLE)
READ_TIMED_OUT = timed_out()
UNAUTHORIZED = permanent("upstream_unauthorized", code=Code.PERMISSION_DENIED)
FORBIDDEN = permanent("upstream_forbidden", code=Code.PERMISSION_DENIED)
RATE_LIMITED = transient("upstream_rate_limited", code=Code.RATE_LIMITED)
NOT_FOUND = permanent("upstream_not_found", code=Code.NOT_FOUND)
CONFLICT = permanent("upstream_conflict", code=Code.CONFLICT)
INVALID = permanent("upstream_invalid_argument", code=Code.INVALID_ARGUMENT)
BUSY = transient("upstream_unavailable")
FAILED = permanent("upstream_error", code=Code.INTERNAL)
#: Nothing was sent, and nothing will be until somebody renews the certificate: a dependency that
#: cannot be used, neither a bug of the tool (INTERNAL) nor gone by itself (transient).
CERTIFICATE = permanent("upstream_certificate_invalid", code=Code.UNAVAILABLE, effect=Effect.NONE)

_REPEATED = re.compile(r"too many ([0-9]{3}) error responses")

STATUSES: dict[int, Rule] = {
    # A request the other side did not take, for a reason the model can do nothing about.
    **dict.fromkeys(range(400, 500), permanent("upstream_rejected", code=Code.INTERNAL)),
    **dict.fromkeys(range(500, 600), FAILED),
    400: INVALID,
    401: UNAUTHORIZED,
    403: FORBIDDEN,
    404: NOT_FOUND,
    407: UNAUTHORIZED,
    408: timed_out(),
    409: CONFLICT,
    410: NOT_FOUND,
    412: CONFLICT,
    422: INVALID,
    423: CONFLICT,
    429: RATE_LIMITED,
    502: permanent("upstream_bad_gateway", code=Code.UNAVAILABLE),
    503: BUSY,
    504: timed_out("upstream_gateway_timeout"),
    529: BUSY,  # "overloaded", turned away before any work, as 503
}


def not_connected(tool: str, error: BaseException) -> ToolError | None:
    """For an exception that says the connection was never made."""
    rule = CERTIFICATE if bad_certificate(error) else NEVER_SENT
    return rule(tool, error)


def tls_failed(tool: str, error: BaseException) -> ToolError | None:
    """For a TLS error that may come from the handshake or from the middle."""
    rule = CERTIFICATE if bad_certificate(error) else DISCONNECTED
    return rule(tool, error)


def bad_certificate(error: BaseException) -> bool:
    """Whether the other side's certificate was the cause; contexts count, they only forbid."""
    seen: set[int] = set()
    link: BaseException | None = error
    while link is not None and id(link) not in seen:
        if any(kind.__qualname__ == "SSLCertVerificationError" for kind in type(link).__mro__):
            return True
        seen.add(id(link))
        link = link.__cause__ or link.__context__
    return False


def repeated(tool: str, error: BaseException) -> ToolError | None:
    """For urllib3's "too many 503 error responses": its last status, after its own retries."""
    found = _REPEATED.match(carried.text(error))
    rule = STATUSES.get(int(found[1])) if found else None
    return rule(tool, error) if rule else None


def coded(tool: str, error: BaseException) -> ToolError | None:
    """For an exception whose `code` is an HTTP status."""
    code = carried.read(error, "code")
    rule = STATUSES.get(code) if isinstance(code, int) else None
    return rule(tool, error) if rule else None
